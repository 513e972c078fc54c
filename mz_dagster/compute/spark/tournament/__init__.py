"""Tournaments of recomputed groups on Spark.

- `versions`: what every stage does before and after its function: buckets, and their contents at the times they change.
- `top_rows`, `extremes`, `gathered`: functions of a stage; `top_stages`: all stages of first rows at once.
- `winners`: one row of each group of an input that only grows.
"""
