"""Scalar expressions on Spark.

Owns the emission of each implementation of `functions` as Spark columns. Invariant: what is emitted is total.
It never raises, whatever the row and although sessions run in ANSI mode; a failure is a value of the error column,
`<SQLSTATE> <message>`, and equals PostgreSQL's. It knows nothing of frames but their columns.

- `emitter.py`: the walk over a scalar, `If` and the functions that are not strict.
- `emitted.py`: the records and the registry of strict functions.
- `arithmetic.py`, `numeric.py`, `bits.py`, `comparison.py`, `text.py`, `strings.py`, `like.py`, `moment.py`,
  `text_casts.py`: the functions.
- `jsonb.py`: casts from and to jsonb.
- `array.py`, `record.py`, `series.py`: arrays, records, generate_series.
- `pure.py`: functions that run in Python.
- `accumulation.py`, `float_sum.py`, `elements.py`: those that only plans call.
"""

from mz_dagster.compute.spark.expressions import (  # noqa: F401
    accumulation,
    arithmetic,
    array,
    bits,
    comparison,
    elements,
    float_sum,
    interval,
    jsonb,
    like,
    moment,
    numeric,
    pure,
    record,
    series,
    strings,
    text,
    text_casts,
)
from mz_dagster.compute.spark.expressions.emitted import Emitted
from mz_dagster.compute.spark.expressions.emitter import Emitter, emit, literal

__all__ = ["Emitted", "Emitter", "emit", "literal"]
