"""ORDER BY, LIMIT and OFFSET of a one-off SELECT: what is done to its rows once they are read.

A collection has no order, so none of this is part of a plan. It is the order of a maintained `TopK` all the same: rows
that the keys do not tell apart go by the whole row, so that a query and the view of it hand out the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mz_dagster.functions.moments.interval import comparable
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.scalars.values import Dimensioned, Interval, ZonedTime, to_stored


@dataclass(frozen=True, slots=True)
class RowSetFinishing:
    """What is done to a row set before it is handed out.

    Attributes:
        order: Keys, most significant first.
        limit: How many rows at most, or None.
        offset: How many rows to leave out first.
        project: The columns to hand out: those that only the order needs come behind them in the plan.
        types: Of all columns in the plan, by which ties are broken; without an order and a limit rows are in none.
    """

    order: tuple[ColumnOrder, ...]
    limit: int | None
    offset: int
    project: tuple[int, ...]
    types: tuple[ScalarType, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether it matters in which order the rows are."""
        return bool(self.order) or self.limit is not None or self.offset > 0


def ordered_rows(rows: Sequence[tuple[object, ...]], finishing: RowSetFinishing) -> list[tuple[object, ...]]:
    """Returns `rows` as `finishing` hands them out; text sorts by bytes, NaN above all numbers.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> finishing = RowSetFinishing((ColumnOrder(0, True, False),), 2, 0, (0,), (INT4, INT4))
        >>> ordered_rows([(1, 0), (None, 0), (3, 8), (3, 7)], finishing)
        [(3,), (3,)]
    """
    result = list(rows)
    if finishing.is_ordered:
        keys, types = finishing.order, finishing.types
        for one in reversed(keys):
            nulls = [row for row in result if row[one.position] is None]
            others = [row for row in result if row[one.position] is not None]
            others.sort(key=lambda row: sort_key(row[one.position], types[one.position]), reverse=one.descending)
            result = [*nulls, *others] if one.nulls_first else [*others, *nulls]
        peers = groupby(result, lambda row: [sort_key(row[one.position], types[one.position]) for one in keys])
        result = [row for _, equal in peers for row in _by_whole_row(list(equal), types)]
    stop = None if finishing.limit is None else finishing.offset + finishing.limit
    return [tuple(row[i] for i in finishing.project) for row in result[finishing.offset : stop]]


def sort_key(value: object, type_: ScalarType) -> Any:
    """Returns what orders equal values as equal; NULL is above all."""
    match value:
        case None:
            return None
        case str() | float() | ZonedTime():
            return stored_key(value, type_)
        case Interval():
            return comparable(value)
        case Dimensioned():
            elements, lengths, lowers = value
            return sort_key(list(elements), type_.parts[0]), len(lengths), list(lengths), list(lowers)
        case list() | tuple():
            # As PostgreSQL compares arrays: element by element, NULL above all.
            return [(True, 0) if one is None else (False, sort_key(one, type_.parts[0])) for one in value]
        case _:
            return value


def _by_whole_row(rows: list[tuple[object, ...]], types: Sequence[ScalarType]) -> list[tuple[object, ...]]:
    """Returns rows in the order by which `TopK` breaks ties: of what is stored, ascending, NULLs last.

    Rows that differ in the signs of zeros only are ordered by these, the negative one first.
    """

    def whole(row: tuple[object, ...]) -> Any:
        cells = [(cell is None, stored_key(cell, one)) for cell, one in zip(row, types, strict=True)]
        return cells, list(map(signs, row))

    return rows if len(rows) == 1 else sorted(rows, key=whole)


def stored_key(value: Any, type_: ScalarType) -> Any:
    """Returns what has the order of a value's stored form, in which NULL is first within arrays and records."""
    if value is None:
        return ()
    match type_.kind:
        case Kind.ARRAY | Kind.RECORD | Kind.DIMENSIONED:
            parts = zip(value, type_.parts * len(value) if type_.kind is Kind.ARRAY else type_.parts, strict=True)
            return [(cell is not None, stored_key(cell, one)) for cell, one in parts]
        case Kind.FLOAT4 | Kind.FLOAT8:
            return (value != value, value if value == value else 0.0)
        case Kind.INTERVAL:
            return tuple(value)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return value
        case _:
            stored = to_stored(value, type_)
            return stored.encode() if isinstance(stored, str) else stored


def signs(value: object) -> Any:
    """Returns what has the order of a value's signs among those that are equal: -0.0 before 0.0."""
    if isinstance(value, list | tuple):
        return [signs(one) for one in value]
    return not (isinstance(value, float) and value == 0 and math.copysign(1, value) < 0)
