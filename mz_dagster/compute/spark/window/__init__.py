"""Window functions over whole partitions, on Spark.

- `windowed`: the stage function; `positions`: functions by place, of which Spark's own frames say too little; `sums`:
  sums over frames that cannot overflow on the way.
"""
