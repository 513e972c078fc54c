"""Scalar expressions over Arrow columns: kernels by the functions' names, and what evaluates with them.

Owns how a batch of rows is evaluated in this process. Invariant: the outcome of each row, value and error, is bit for
bit what `functions.evaluation` gives for it, which holds it against PostgreSQL and Spark; a kernel only spares the
time. So a kernel vouches for each value it returns, and leaves what it cannot to the exact evaluator: a row that
overflows, or whose digits 64 bits do not hold. What has no kernel is evaluated exactly, too, once for each distinct
tuple of arguments.

- `evaluator`: `evaluated`, the walk over an expression; `outcome`: `Evaluated` and `RowBatch`; `by_row`: the exact way.
- `registry`: `Kernel`, and the tables of them.
- `comparisons`, `logic`, `integers`, `decimals`, `quotients`, `statistics`, `floats`, `casts`, `moments`, `text`,
  `arrays`: the kernels, by area. `numbers` is what those of numbers share.

Kernels are `pyarrow.compute`'s and NumPy's, both of which are here anyway. Polars, DuckDB and DataFusion were measured
against them (`bench/columns.py`, where the numbers are). Of a row that overflows they fail as a whole, and say neither
which row it was nor PostgreSQL's error. An expression over 200,000 rows took 14 ms, row by row in Python 1,374, in
Polars 8, in DuckDB 31. What they spare, a third of what 200,000 rows take, is little beside what it
costs to read these.

To add a kernel is to write a function in the file of its area, under `@strict` or `@lenient` with the function's name;
`tests/compute/test_kernels.py` then holds it to all its examples and to random columns.
"""

from mz_dagster.compute.local.expressions import (  # noqa: F401  (each registers its kernels)
    arrays,
    casts,
    comparisons,
    decimals,
    floats,
    integers,
    logic,
    moments,
    quotients,
    statistics,
    text,
)
from mz_dagster.compute.local.expressions.evaluator import evaluated
from mz_dagster.compute.local.expressions.outcome import Evaluated, RowBatch
from mz_dagster.compute.local.expressions.registry import LENIENT, STRICT

__all__ = ["LENIENT", "STRICT", "Evaluated", "RowBatch", "evaluated"]
