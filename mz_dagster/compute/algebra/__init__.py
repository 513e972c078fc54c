"""What both engines share.

Owns the form of update frames and the formulas that each engine computes in its own way. Invariant: nothing here holds
for one engine only.

- `frame`: the columns of an update frame, their names and Spark's types of them.
- `delta_terms`: the terms of a delta join; `tournaments`: what a stage function alone tells.
- `each_update`: the operators that look at each update by itself, as a protocol.
- `operator_costs`: what each operator costs; `placed`: who computes a subtree, and why.
- `times`: the first time, and the one before all; `lineage`: which input column an output column is.
- `evaluable`: which scalars Python evaluates to the bit as Spark does.

It reads and computes nothing.
"""
