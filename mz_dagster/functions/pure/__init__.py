"""Functions in plain Python: what Spark's own functions cannot compute as PostgreSQL does, and some that they can.

Owns `PURE`, implementations of the table's functions by name. Each takes and returns values in the *plain form* below,
never None (a strict function is not called for NULL; what it returns may be None), and raises `SqlFailure` for an
error of the data. Invariant: deterministic, and nothing but the standard library and this package is imported, because
Spark's workers get the code by value and may have nothing else. `evaluation` calls them for literals and few rows.

| kind | plain form |
|---|---|
| boolean; integers, mz_timestamp; floats; numeric; text; bytea | bool; int; float; Decimal; str; bytes |
| date; time; timestamp, timestamptz | int: days since 1970-01-01; microseconds since midnight; microseconds since \
1970-01-01 UTC |
| interval | tuple (months, days, microseconds) |
| uuid, jsonb, numeric without a scale | str: the canonical text |
| array; record | list; tuple |

- `registry`: `PURE`, `SCALED`, `pure`, `SqlFailure`.
- `calendar`, `moment`, `moment_text`, `interval`, `interval_text`, `fields`, `zones`, `templates`,
  `moment_templates`: dates, times, timestamps and intervals.
- `floats`: the digits of floating-point numbers; `transcendental`, `degrees`: their functions.
- `decimals`, `numerics`: functions of numerics and integers; `number_templates`, `number_reading`: `to_char` and
  `to_number`; `unconstrained*`: numerics without a scale.
- `characters`, `likeness`, `texts`: functions of text; `strings`: uuid and bytea.
- `regexp`, `similar`: regular expressions; `regexp_syntax` reads them, `regexp_match` matches them.
- `jsonb`, `jsonb_operators`, `jsonb_functions`: the values of jsonb, and what is done with them.
- `sums`, `statistics`, `ordered_sets`: what aggregates are computed by.
"""

from mz_dagster.functions.pure import (
    arrays,
    calendar,
    characters,
    decimals,
    degrees,
    fields,
    floats,
    interval,
    interval_text,
    jsonb,
    jsonb_functions,
    jsonb_operators,
    likeness,
    moment,
    moment_templates,
    moment_text,
    number_reading,
    number_templates,
    numerics,
    ordered_sets,
    regexp,
    series,
    similar,
    statistics,
    strings,
    sums,
    templates,
    texts,
    transcendental,
    unconstrained,
    unconstrained_functions,
    unconstrained_sums,
    zones,
)
from mz_dagster.functions.pure.registry import PURE, SCALED, SqlFailure, pure

__all__ = [
    "PURE",
    "SCALED",
    "SqlFailure",
    "arrays",
    "calendar",
    "characters",
    "decimals",
    "degrees",
    "fields",
    "floats",
    "interval",
    "interval_text",
    "jsonb",
    "jsonb_functions",
    "jsonb_operators",
    "likeness",
    "moment",
    "moment_templates",
    "moment_text",
    "number_reading",
    "number_templates",
    "numerics",
    "ordered_sets",
    "pure",
    "regexp",
    "series",
    "similar",
    "statistics",
    "strings",
    "sums",
    "templates",
    "texts",
    "transcendental",
    "unconstrained",
    "unconstrained_functions",
    "unconstrained_sums",
    "zones",
]
