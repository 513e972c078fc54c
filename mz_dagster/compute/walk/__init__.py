"""The walk: each node of a plan by the operators of the engine that computes it.

Owns the protocol that both engines keep. Invariant: whoever computes a node, its updates are the same; updates pass
from one engine to the other here only, and are counted.

- `operators`: the protocol, and the one walk for updates, contents and histories.
- `handover`: what one engine hands to the other.
- `local_plans`: plans that are placed in this process; `render`: plans on Spark, with what this process takes over.
"""
