"""Percentiles and the mode of a group whose values are given in order, none of them NULL."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import TypeVar

from mz_dagster.functions.moments.interval import difference, product, total
from mz_dagster.functions.moments.interval_text import Span
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

T = TypeVar("T")


@function("percentile_place_float8", (Kind.FLOAT8, Kind.INT8), Kind.INT4, fallible=True, internal=True)
def percentile_place(fraction: float, n: int) -> int | None:
    """Returns the place, from 1, of the first of n values up to which there is the `fraction` of them.

    Example:
        >>> percentile_place(0.5, 4), percentile_place(0.5, 5), percentile_place(0.0, 4)
        (2, 3, 1)
    """
    _check(fraction)
    return max(1, math.ceil(fraction * n)) if n else None


@function("percentile_places_float8", (Kind.ARRAY, Kind.INT8), Kind.ARRAY, fallible=True, internal=True)
def percentile_places(fractions: Sequence[float | None], n: int) -> list[int | None] | None:
    """Returns the place for each fraction."""
    return [None if one is None else percentile_place(one, n) for one in fractions] if n else None


@function("percentile_float8", (Kind.ARRAY, Kind.FLOAT8), Kind.FLOAT8, fallible=True, internal=True)
def percentile(values: Sequence[float], fraction: float) -> float:
    """Returns what lies at the `fraction` of the way from the first to the last value, between two neighbours.

    Example:
        >>> percentile([1.0, 2.0, 4.0], 0.75)
        3.0
    """
    low, high, share = _neighbours(values, fraction)
    return low + share * (high - low) if share else low


@function("percentiles_float8", (Kind.ARRAY, Kind.ARRAY), Kind.ARRAY, fallible=True, internal=True)
def percentiles(values: Sequence[float], fractions: Sequence[float | None]) -> list[float | None]:
    """Returns what lies at each fraction of the way."""
    return [None if one is None else percentile(values, one) for one in fractions]


@function("percentile_interval", (Kind.ARRAY, Kind.FLOAT8), Kind.INTERVAL, fallible=True, internal=True)
def percentile_interval(values: Sequence[Span], fraction: float) -> Span:
    """Returns what lies at the `fraction` of the way from the first to the last interval.

    Example:
        >>> percentile_interval([(0, 1, 0), (1, 0, 0)], 0.5)
        (0, 16, -43200000000)
    """
    low, high, share = _neighbours(values, fraction)
    return total(product(difference(high, low), share), low) if share else low


@function("percentiles_interval", (Kind.ARRAY, Kind.ARRAY), Kind.ARRAY, fallible=True, internal=True)
def percentiles_interval(values: Sequence[Span], fractions: Sequence[float | None]) -> list[Span | None]:
    """Returns what lies at each fraction of the way."""
    return [None if one is None else percentile_interval(values, one) for one in fractions]


def _neighbours(values: Sequence[T], fraction: float) -> tuple[T, T, float]:
    """Returns the values between which the place lies, and how far from the first to the second one."""
    _check(fraction)
    place = fraction * (len(values) - 1)
    return values[math.floor(place)], values[math.ceil(place)], place - math.floor(place)


@function("mode_place_array", (Kind.ARRAY,), Kind.INT4, internal=True)
def mode_place(values: Sequence[Hashable]) -> int:
    """Returns the place, from 1, of the first of the values that are most often there.

    Example:
        >>> mode_place(["a", "b", "b", "c", "c"])
        2
    """
    best, longest, place = 1, 0, 1
    for _, run in groupby(values, key=_comparable):
        length = sum(1 for _ in run)
        if length > longest:
            best, longest = place, length
        place += length
    return best


def _comparable(value: Hashable) -> Hashable:
    """Returns what is equal for equal values: NaN is not, in Python."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _check(fraction: float) -> None:
    if not 0 <= fraction <= 1:
        raise SqlFailure("22003", f"percentile value {fraction:g} is not between 0 and 1")
