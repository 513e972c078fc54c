"""Placement: who computes a plan, and how much it will be.

Invariant: known from the plan, the catalog's counts and `mz_dagster.budget`, before anything runs.

- `supported`: what this process computes of a plan, operator by operator and scalar by scalar.
- `choice`: which engine, by sizes besides; `explained`: the same for EXPLAIN.
- `sizes`: how many updates a plan makes, for the layout of a large write.
"""
