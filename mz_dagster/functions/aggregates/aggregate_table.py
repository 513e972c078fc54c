"""What the results of aggregates are computed by; no SQL name leads here.

`sums.py`, `statistics.py` and `ordered_sets.py` say what they return; `elements_array` returns the elements at places
that are counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.function import Function
from mz_dagster.scalars.types import Kind

_I4, _I8, _F8, _N, _T, _ARRAY = Kind.INT4, Kind.INT8, Kind.FLOAT8, Kind.NUMERIC, Kind.TEXT, Kind.ARRAY


def functions() -> Iterator[Function]:
    """Yields the implementations."""
    yield Function("product_digits_float8", (_F8, _F8), _ARRAY)
    # The places and, for each digit that a value has, its sums; see `plan.lowering`.
    yield Function("exact_sum_float8", (_ARRAY,) * 5, _T)
    yield Function("exact_product_sum_float8", (_ARRAY,) * 7, _T)
    yield Function("nearest_float8", (_T,), _F8, fallible=True)
    for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp"):
        yield Function(f"{name}_float8", (_I8, _T, _T), _F8, fallible=True)
        yield Function(f"{name}_numeric", (_I8, _N, _N, _I4), _N, fallible=True)
    yield Function("regr_sxx_float8", (_I8, _T, _T), _F8, fallible=True)
    for name in ("regr_sxy", "covar_pop", "covar_samp"):
        yield Function(f"{name}_float8", (_I8, _T, _T, _T), _F8, fallible=True)
    for name in ("regr_slope", "regr_intercept"):
        yield Function(f"{name}_float8", (_I8, *(_T,) * 4), _F8, fallible=True)
    for name in ("corr", "regr_r2"):
        yield Function(f"{name}_float8", (_I8, *(_T,) * 5), _F8, fallible=True)
    yield Function("percentile_place_float8", (_F8, _I8), _I4, fallible=True)
    yield Function("percentile_places_float8", (_ARRAY, _I8), _ARRAY, fallible=True)
    yield Function("elements_array", (_ARRAY, _ARRAY), _ARRAY)
    yield Function("percentile_float8", (_ARRAY, _F8), _F8, fallible=True)
    yield Function("percentiles_float8", (_ARRAY, _ARRAY), _ARRAY, fallible=True)
    yield Function("percentile_interval", (_ARRAY, _F8), Kind.INTERVAL, fallible=True)
    yield Function("percentiles_interval", (_ARRAY, _ARRAY), _ARRAY, fallible=True)
    yield Function("mode_place_array", (_ARRAY,), _I4)
