"""Functions in plain Python: what Spark's own functions cannot compute as PostgreSQL does.

Owns `PURE`, implementations of the table's functions by name. Each takes and returns values in the *plain form* below,
never None (a strict function is not called for NULL; what it returns may be None), and raises `SqlFailure` for an
error of the data. Invariant: deterministic, and nothing but the standard library and this package is imported, because
Spark's workers get the code by value and may have nothing else. The binder calls them, too, to fold literals.

| kind | plain form |
|---|---|
| boolean; integers, mz_timestamp; floats; numeric; text; bytea | bool; int; float; Decimal; str; bytes |
| date; time; timestamp, timestamptz | int: days since 1970-01-01; microseconds since midnight; microseconds since \
1970-01-01 UTC |
| interval | tuple (months, days, microseconds) |
| uuid, jsonb | str: the canonical text |
| array; record | list; tuple |

- `registry`: `PURE`, `pure`, `SqlFailure`.
- `floats`: the digits of floating-point numbers.
"""

from mz_dagster.plan.functions.pure import floats
from mz_dagster.plan.functions.pure.registry import PURE, SqlFailure, pure

__all__ = ["PURE", "SqlFailure", "floats", "pure"]
