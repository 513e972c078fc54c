"""Benchmarks: what is promised of this project's speed, measured.

`python -m bench` (or `make bench`) runs them; `harness` measures, compares and keeps results, `tpch` makes the data and
the project that most of them use, and each other module is one benchmark with one function `run(bench)`.

Everything is compared within one run, on one warm Spark, several times over: `results.json` holds medians and spreads.
Not part of the wheel.
"""
