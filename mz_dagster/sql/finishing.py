"""ORDER BY, LIMIT and OFFSET of a one-off SELECT: what is done to its rows once they are read.

A collection has no order, so none of this is part of a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mz_dagster.plan.functions.pure.interval import comparable
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.plan.values import Interval


@dataclass(frozen=True, slots=True)
class RowSetFinishing:
    """Is what is done to a row set before it is handed out.

    Attributes:
        order: Keys, most significant first; ties are in no order.
        limit: How many rows at most, or None.
        offset: How many rows to leave out first.
        project: The columns to hand out: those that only the order needs come behind them in the plan.
    """

    order: tuple[ColumnOrder, ...]
    limit: int | None
    offset: int
    project: tuple[int, ...]


def ordered_rows(rows: Sequence[tuple[object, ...]], finishing: RowSetFinishing) -> list[tuple[object, ...]]:
    """Returns `rows` as `finishing` hands them out; text sorts by bytes, NaN above all numbers.

    Example:
        >>> finishing = RowSetFinishing((ColumnOrder(0, True, False),), 2, 0, (0,))
        >>> ordered_rows([(1,), (None,), (3,), (2,)], finishing)
        [(3,), (2,)]
    """
    result = list(rows)
    for key in reversed(finishing.order):
        nulls = [row for row in result if row[key.position] is None]
        others = [row for row in result if row[key.position] is not None]
        others.sort(key=lambda row: _sort_key(row[key.position]), reverse=key.descending)
        result = [*nulls, *others] if key.nulls_first else [*others, *nulls]
    stop = None if finishing.limit is None else finishing.offset + finishing.limit
    return [tuple(row[i] for i in finishing.project) for row in result[finishing.offset : stop]]


def _sort_key(value: object) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (value != value, value if value == value else 0.0)
    if isinstance(value, Interval):
        return comparable(value)
    if isinstance(value, list | tuple):
        # As PostgreSQL compares arrays: element by element, NULL above all.
        return [(True, 0) if one is None else (False, _sort_key(one)) for one in value]
    return value
