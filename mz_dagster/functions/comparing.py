"""The six comparisons, which every kind has that has an order."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.casts import short_name
from mz_dagster.functions.function import Function, Overload
from mz_dagster.scalars.types import Kind

COMPARISONS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def comparing_functions(kind: Kind) -> Iterator[Function]:
    """Yields the implementations of the comparisons of two values of one kind."""
    for name in COMPARISONS.values():
        yield Function(f"{name}_{short_name(kind)}", (kind, kind), Kind.BOOL)


def comparing_overloads(kind: Kind) -> Iterator[Overload]:
    """Yields the operators of `comparing_functions`."""
    for operator, name in COMPARISONS.items():
        yield Overload(operator, (kind, kind), f"{name}_{short_name(kind)}")
