"""Comparisons of what compares as its plain form does: text by code points, which order as their bytes in UTF-8.

Those of floating-point numbers, intervals, jsonb, numerics without a scale and arrays are where these are.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from mz_dagster.functions.casts import short_name
from mz_dagster.functions.function import COMPARISONS, mixed
from mz_dagster.functions.registry import Named, describe, function, refuse
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind

#: Kinds, in families: of two kinds of one, values compare as the wider one's.
_FAMILIES = (
    (Kind.INT2, Kind.INT4, Kind.INT8),
    (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
    *((kind,) for kind in (Kind.BOOL, Kind.NUMERIC, Kind.TEXT, Kind.CHAR, Kind.UUID, Kind.BYTEA)),
    *((kind,) for kind in (Kind.TIME, Kind.TIMETZ, Kind.MZ_TIMESTAMP)),
)

describe(
    Named("=", "Whether two values are equal.", "1 = 1.0", "true"),
    Named("<>", "Whether two values differ; also written `!=`.", "'a' <> 'b'", "true"),
    Named("<", "Whether the first value is less.", "date '2024-01-31' < date '2024-02-01'", "true"),
    Named("<=", "Whether the first value is less, or equal.", "2 <= 2", "true"),
    Named(">", "Whether the first value is greater.", "'NaN'::float8 > 'Infinity'::float8", "true"),
    Named(">=", "Whether the first value is greater, or equal.", "interval '1 mon' >= interval '30 days'", "true"),
)


def _comparison(compare: Any, _: Call) -> Any:
    return compare


for _symbol, _name in COMPARISONS.items():
    _reference = partial(_comparison, getattr(operator, _name))
    for _family in _FAMILIES:
        for _kind in _family:
            function(
                f"{_name}_{short_name(_kind)}",
                (_kind, _kind),
                Kind.BOOL,
                sql=_symbol,
                signatures=mixed(_family, _kind),
                of_call=True,
            )(_reference)
    refuse(_symbol, (Kind.ARRAY, Kind.ARRAY), "arrays can be returned, not computed with")
