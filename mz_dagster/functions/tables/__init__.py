"""The parts of the table of functions, one file for each area.

Each area has `functions()`, its implementations, and `overloads()`, the SQL names and signatures that lead to them; a
new area is a file and a line in `AREAS`. Those with functions that return rows (see `sets`) have `set_overloads()`, and
are in `SET_AREAS`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.signature import Function, Overload
from mz_dagster.functions.tables import (
    arrays,
    jsonb,
    moments,
    numbers,
    regexp,
    sets,
    strings,
    texts,
    unconstrained,
)

AREAS = (moments, numbers, strings, texts, regexp, jsonb, arrays, sets, unconstrained)
SET_AREAS = (jsonb, sets)


def functions() -> Iterator[Function]:
    """Yields the implementations of all areas."""
    for area in AREAS:
        yield from area.functions()


def overloads() -> Iterator[Overload]:
    """Yields the overloads of all areas."""
    for area in AREAS:
        yield from area.overloads()


def set_overloads() -> Iterator[Overload]:
    """Yields the overloads of functions that return rows."""
    for area in SET_AREAS:
        yield from area.set_overloads()
