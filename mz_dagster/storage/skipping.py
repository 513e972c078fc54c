"""Which files need not be read, because no row of theirs can pass a predicate: Delta's statistics tell.

For a file the log has, of some columns, the least and the greatest value and how many are NULL. Both writers round
them: text is cut off, moments lose what is finer than a millisecond, in either direction. So a value only counts as
outside of what a file holds if it is by more than that. A file with updates of the error part, which have no data, is
always read.

Invariant: a file that is left out holds no row that passes. Data decide, never times and diffs; so an update and the
retraction of it are left out or read alike, as far as it matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from mz_dagster.plan.bounding import Bound, bound_of, bounds_among, bounds_columns
from mz_dagster.scalars.scalar import Call, Literal, Scalar, columns_of
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.scalars.values import to_stored

#: How many characters of a text no writer cuts off: Delta on Spark keeps 32 units of UTF-16, deltalake 64 bytes.
_SURE_CHARACTERS = 16
#: By how much the bound of a moment may be off, in microseconds.
_MOMENT = 1_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a file's statistics say of one column, in numbers that compare: days, microseconds; or texts.

    Attributes:
        least: Not greater than any value but for what is rounded; None if nothing is known.
        greatest: Likewise, not less.
        all_null: There is no value.
    """

    least: int | str | None
    greatest: int | str | None
    all_null: bool


def asked_columns(where: Sequence[Scalar], columns: Sequence[Column]) -> tuple[Column, ...]:
    """Returns the columns of a collection whose bounds `may_pass` wants to know."""
    positions = {position for one in where if bounds_columns(one) for position in columns_of(one)}
    return tuple(columns[position] for position in sorted(positions))


def may_pass(predicate: Scalar, columns: Sequence[Column], bounds: Mapping[str, Bounds]) -> bool:
    """Returns whether some row within `bounds` may pass.

    Args:
        predicate: Over `columns`.
        columns: Of the collection.
        bounds: By the columns' names; nothing is known of a column that is not there.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import BOOL, INT4
        >>> below_five = Call("lt_int4", (ColumnRef(0, INT4), Literal(5, INT4)), BOOL)
        >>> a = Column("a", INT4)
        >>> [may_pass(below_five, [a], {"a": Bounds(least, 9, all_null=False)}) for least in (4, 5)]
        [True, False]
    """
    if isinstance(predicate, Call) and predicate.function in ("and", "or"):
        parts = (may_pass(one, columns, bounds) for one in predicate.arguments)
        return all(parts) if predicate.function == "and" else any(parts)
    bound = bound_of(predicate)
    if bound is None:
        among = bounds_among(predicate)
        return among is None or all(_may_meet(one, columns, bounds) for one in among)
    return _may_meet(bound, columns, bounds)


def _may_meet(bound: Bound, columns: Sequence[Column], bounds: Mapping[str, Bounds]) -> bool:
    column = columns[bound.column]
    known = bounds.get(column.name)
    return known is None or (not known.all_null and _meets(bound, known, column.type.kind))


def _meets(bound: Bound, known: Bounds, kind: Kind) -> bool:
    """Returns whether a column with these values may have one that the bound allows."""
    value = _comparable(bound.constant)
    above = known.greatest is not None and _is_above(value, known.greatest, kind)
    below = known.least is not None and _is_above(known.least, value, kind)
    exact = kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) and not isinstance(value, str)
    match bound.operation:
        case "eq":
            return not above and not below
        case "lt":
            return not below and not (exact and known.least == value)
        case "le":
            return not below
        case "gt":
            return not above and not (exact and known.greatest == value)
        case _:
            return not above


def _is_above(value: Any, other: Any, kind: Kind) -> bool:
    """Returns whether `value` is greater than `other`, whichever of them was rounded."""
    if isinstance(value, str):
        return value[:_SURE_CHARACTERS] > str(other)[:_SURE_CHARACTERS]
    margin = _MOMENT if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else 0
    return bool(value - other > margin)


def _comparable(literal: Literal) -> int | str:
    """Returns the constant as `Bounds` has values."""
    match literal.value:
        case datetime():
            return (literal.value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case date():
            return literal.value.toordinal() - _EPOCH_DAY
        case _:
            stored = to_stored(literal.value, literal.type)
            assert isinstance(stored, int | str)
            return stored
