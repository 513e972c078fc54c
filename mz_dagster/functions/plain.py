"""The plain form of cells, which functions in Python take, from the Python form, which literals have, and back.

Owns the one mapping between the two (`scalars/values.py`, `references.py`).
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from mz_dagster.scalars.infinity import Infinity
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.scalars.values import Dimensioned, from_stored, to_stored

_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def to_plain(value: Any, type_: ScalarType) -> Any:
    """Returns the plain form of a cell's Python form.

    Example:
        >>> from mz_dagster.scalars.types import DATE, INTERVAL
        >>> from mz_dagster.scalars.values import Interval
        >>> to_plain(date(1970, 1, 2), DATE), to_plain(Interval(1, 2, 3), INTERVAL)
        (1, (1, 2, 3))
    """
    if value is None:
        return None
    if isinstance(value, Infinity):
        return value.stored(type_.kind)
    match type_.kind:
        case Kind.DATE:
            return (value - _DAY).days
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return (value.replace(tzinfo=None) - (value.utcoffset() or timedelta()) - _EPOCH) // _MICROSECOND
        case Kind.INTERVAL:
            return tuple(value)
        case Kind.ARRAY:
            assert type_.element is not None
            return [to_plain(one, type_.element) for one in value]
        case Kind.RECORD | Kind.DIMENSIONED:
            return tuple(to_plain(cell, one) for cell, (_, one) in zip(value, type_.fields, strict=True))
        case _:
            return to_stored(value, type_)


def from_plain(value: Any, type_: ScalarType) -> Any:
    """Returns the Python form of a cell's plain form.

    Example:
        >>> from mz_dagster.scalars.types import DATE, TIMESTAMP
        >>> from_plain(1, DATE), from_plain(1, TIMESTAMP)
        (datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 1, 0, 0, 0, 1))
    """
    if value is None:
        return None
    match type_.kind:
        case Kind.UUID:
            return UUID(value)
        case Kind.ARRAY:
            assert type_.element is not None
            return [from_plain(one, type_.element) for one in value]
        case Kind.RECORD:
            return tuple(from_plain(cell, one) for cell, (_, one) in zip(value, type_.fields, strict=True))
        case Kind.DIMENSIONED:
            return Dimensioned(*(tuple(from_plain(cell, one)) for cell, one in zip(value, type_.parts, strict=True)))
        case _:
            return from_stored(value, type_)
