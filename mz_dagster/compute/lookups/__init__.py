"""Lookups: what changed finds what it meets, in files that are chosen by its keys.

Invariant: a lookup may find more than was asked for, and never less, so whoever asked still compares.

- `lookup_keys`: keys in this process: which buckets and pages may hold them.
- `common_lookups`: the paths by which joins look up, and lookups made once for all joins of a step.
- `step_reads`: what the step of one collection reads, as frames or as tables; `spans`: times, by lists and files alone.
- `shared_reads`: what the collections of a step ask of storage alike.

It knows no operator; which engine asks decides the form in which rows come.
"""
