"""The areas' parts of the table of functions.

Each area has `functions()`, its implementations, and `overloads()`, the SQL names and signatures that lead to them; a
new area is a file and a line in `AREAS`. Those with functions that return rows (see `arrays/set_table.py`) have
`set_overloads()`, and are in `SET_AREAS`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.arrays import array_table as arrays
from mz_dagster.functions.arrays import set_table as sets
from mz_dagster.functions.function import Function, Overload

AREAS = (arrays, sets)
SET_AREAS = (sets,)


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
