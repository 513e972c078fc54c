"""The engine on Spark: operators over data frames.

Owns how each operator is rendered, at any size. Invariant: only the API that Spark Classic and Connect share; the
updates are bit for bit those that `local` makes.

- `operators`, `updates`, `content`, `histories`: the operators of the walk, over an interval, at one time, and over all
  before a time, as the lookups of a join need them.
- `constant`, `linear` and `linear_by_workers`, `negate`, `union`, `repeat`, `unnest`, `delta_join`, `accumulate`,
  `staged`, `temporal`: one operator each; `consolidate`; `state`: what a keyed one reads of its own collection.
- `expressions/`: scalars as total columns, a value or an error; `tournament/`, `window/`: what `staged` does with a
  bucket.
- `balanced`, `broadcast`: plans that are not deep, and what is sent to all tasks.
- `warm_spark`, `spark_use`: Spark, opened when there is work for it, and why it was.
"""
