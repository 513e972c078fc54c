"""Comparisons and assignments of strings with a length, `uuid` and `bytea`."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.comparing import comparing_functions, comparing_overloads
from mz_dagster.functions.function import Function, Overload
from mz_dagster.scalars.types import Kind

_COMPARED = (Kind.CHAR, Kind.UUID, Kind.BYTEA)
#: Where a text may not be longer than its column: the blanks beyond are dropped, anything else is an error.
_ASSIGNED = ("text", "varchar", "bpchar")


def functions() -> Iterator[Function]:
    """Yields the implementations of this area."""
    for kind in _COMPARED:
        yield from comparing_functions(kind)
    for source in _ASSIGNED:
        yield Function(f"assign_{source}_to_varchar", (), Kind.VARCHAR, fallible=True)
        yield Function(f"assign_{source}_to_bpchar", (), Kind.CHAR, fallible=True)


def overloads() -> Iterator[Overload]:
    """Yields the SQL names of this area."""
    for kind in _COMPARED:
        yield from comparing_overloads(kind)
