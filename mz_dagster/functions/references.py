"""Functions in plain Python: what Spark's own functions cannot compute as PostgreSQL does, and some that they can.

Imports the modules of the areas, which make the records (`registry.py`), and so owns what is in `PURE`. Each takes and
returns values in the *plain form* below, never None (a strict function is not called for NULL; what it returns may be
None), and raises `SqlFailure` for an error of the data. Invariant: deterministic, and nothing but the standard library
and this package is imported, because Spark's workers get the code by value and may have nothing else. `evaluation`
calls them for literals and few rows.

| kind | plain form |
|---|---|
| boolean; integers, mz_timestamp; floats; numeric; text; bytea | bool; int; float; Decimal; str; bytes |
| date; time; timestamp, timestamptz | int: days since 1970-01-01; microseconds since midnight; microseconds since \
1970-01-01 UTC |
| interval | tuple (months, days, microseconds) |
| uuid, jsonb, numeric without a scale | str: the canonical text |
| enum | str: the member |
| json | str: the text as written |
| array; record | list; tuple |
| array of dimensions | tuple of the lists of its elements, lengths and lower bounds |
"""

from __future__ import annotations

# Each registers its functions.
from mz_dagster.functions import comparing, modifiers  # noqa: F401
from mz_dagster.functions.aggregates import ordered_sets, spelled, statistics, sums  # noqa: F401
from mz_dagster.functions.arrays import array_evaluation, arrays, parts  # noqa: F401
from mz_dagster.functions.catalog import catalog_functions, keywords  # noqa: F401
from mz_dagster.functions.jsonb import json_arrays, json_text, jsonb, jsonb_functions, jsonb_operators, path  # noqa: F401
from mz_dagster.functions.moments import (  # noqa: F401
    fields,
    infinite,
    interval,
    interval_text,
    moment,
    moment_templates,
    moment_text,
    series,
    templates,
    timeline,
    timetz,
    zones,
)
from mz_dagster.functions.numbers import (  # noqa: F401
    arithmetic,
    chance,
    decimals,
    degrees,
    float_evaluation,
    floats,
    number_reading,
    number_templates,
    transcendental,
    unconstrained,
    unconstrained_functions,
    unconstrained_sums,
)
from mz_dagster.functions.regexps import regexp, similar  # noqa: F401
from mz_dagster.functions.registry import DESCRIBED, OF_ANY, PURE, RECORDS, REFUSED, SCALED
from mz_dagster.functions.text import characters, enums, like_patterns, strings, texts  # noqa: F401

PURE.update({name: infinite.guarded(name, PURE[name]) for name in infinite.RULES if name in PURE})

__all__ = ["DESCRIBED", "OF_ANY", "PURE", "RECORDS", "REFUSED", "SCALED"]
