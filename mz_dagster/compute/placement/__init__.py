"""Placement: who computes a plan, and how much it will be.

Invariant: known from the plan, the catalog's counts and `mz_dagster.budget`, before anything runs.

- `supported`: which scalars of a plan this process leaves to Spark.
- `portioned`: what of it goes by a portion at a time.
- `choice`: which engine, by sizes besides; `explained`: the same for EXPLAIN.
- `sizes`: how many updates a plan makes, for the layout of a large write.
"""
