"""Tournaments of recomputed groups on Spark.

- `versions`: what every stage does before and after its function: buckets, and their contents at the times they change.
- `top_rows`, `extremes`, `gathered`: functions of a stage; `top_stages`: all stages of first rows at once.
- `winners`: one row of each group of an input that only grows.

A function of a stage takes `frame`, rows of `shape` with a positive diff and columns `keys`, which part versions of
buckets, besides the group's, and are kept, and `subject`: whether a row is one of a bucket, over `keys`. Other rows
pass as they came. It returns `keys`, the columns of `shape`, its results if it has any, and the diff.
"""
