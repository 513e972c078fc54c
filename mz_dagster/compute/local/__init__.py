"""The engine in this process: operators over Arrow columns.

Owns what of a plan is computed without Spark, column by column. Invariant: the updates are bit for bit those that Spark
makes, errors of the data included; what is too much is `declined`.

- `operators`, `updates`, `content`: the operators of the walk, over an interval and over all from the beginning.
- `linear_operators`, `join`, `accumulate`, `staged`, `temporal`, `windowed`, `gathered`: one operator each, over these:
- `expressions`: scalars over batches of rows; `linear`: maps, filters and projections.
- `matching`: which rows of two sides have equal keys; `ranges`: which compare; `joined_rows`: what a join has put
  together so far; `computed_keys`: how rows are found by what is computed of them.
- `multiplicities`: how often a row is there, exactly, or the error that no bigint says it.
- `sums`: counts and sums per key; `tournament`: first rows and extremes, of changes at one time; `coded_rows`: values
  as integers of their order.
- `versions`: the rows of groups before and at each change; `window_frames`: what sorted rows see of one another;
  `window_reach`: which rows see what changes; `window_functions`: what functions say of that; `elements`: arrays and
  texts of rows.
- `bucket_pruning`: which buckets of large groups need not be looked at; `error_part`: updates that are errors.

Columns stay columns from the file to the file: values are looked at one by one only where no kernel knows a function,
once for each distinct tuple. Kernels are Arrow's and NumPy's, of which each call lets other threads run.

It reads by `lookups` alone, writes nothing, and knows nothing of Spark.
"""
