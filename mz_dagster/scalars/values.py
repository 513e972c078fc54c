"""Values of the types that have no Python type of their own, and how cells are stored.

Owns `Interval`, and the one mapping between the *Python form* of a cell, which literals and the rows of a user have,
and its *stored form*, which shards, Spark and Arrow have (`docs/engines.md` names the others). They differ for a few
kinds only:

| kind | Python form | stored form |
|---|---|---|
| date | `datetime.date`, or an `Infinity` | days since 1970-01-01, or a date |
| timestamp(tz) | `datetime.datetime`, or an `Infinity` | microseconds since 1970-01-01, or a datetime |
| time | `datetime.time` | microseconds since midnight |
| timetz | `ZonedTime` | one number, which has their order: `ZonedTime.code` |
| interval | `Interval` | struct of months, days, microseconds |
| uuid | `uuid.UUID` | its text, lower case |
| record | tuple | struct of the fields `f1`, `f2`, ... |
| array | list | list of stored elements |
| array of dimensions | `Dimensioned` | struct of the lists `f1`, `f2`, `f3` |
| char(n) | its text, padded to n characters | the text without its blanks at the end, which never count |
| enum | its label | the member: see `Enumeration` |
| jsonb | canonical text, as PostgreSQL prints it | the same |
| numeric without a scale | its text, as PostgreSQL prints it: equal ones may differ in their scale | the same |
| bytea | `bytes` | the same |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any, NamedTuple
from uuid import UUID

from mz_dagster.scalars.infinity import Infinity, infinity_of
from mz_dagster.scalars.types import Kind, ScalarType

_SECOND = 1_000_000
#: The kinds whose stored form is the Python form.
_STORED_AS_IT_IS = frozenset({
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.UNCONSTRAINED, Kind.TEXT,
    Kind.MZ_TIMESTAMP, Kind.BYTEA, Kind.JSON, Kind.JSONB, Kind.VARCHAR,
})  # fmt: skip
_EPOCHS = {Kind.TIMESTAMP: datetime(1970, 1, 1), Kind.TIMESTAMPTZ: datetime(1970, 1, 1, tzinfo=UTC)}


class Interval(NamedTuple):
    """A span of time of PostgreSQL: three numbers that do not turn into each other by themselves."""

    months: int = 0
    days: int = 0
    microseconds: int = 0


class Dimensioned(NamedTuple):
    """An array of any number of dimensions; of none if it is empty.

    Attributes:
        elements: Row by row: those whose last subscripts differ are neighbours.
        lengths: Of each dimension, outermost first.
        lowers: The least subscript of each.
    """

    elements: Sequence[Any] = ()
    lengths: Sequence[int] = ()
    lowers: Sequence[int] = ()

    @property
    def nested(self) -> list[Any]:
        """The elements as lists in lists, one depth for each dimension.

        Example:
            >>> Dimensioned((1, 2, 3, 4), (2, 2), (1, 1)).nested, Dimensioned().nested
            ([[1, 2], [3, 4]], [])
        """
        found = list(self.elements)
        for length in reversed(self.lengths[1:]):
            found = [found[at : at + length] for at in range(0, len(found), length)]
        return found


class NestedList(list[Any]):
    """An array of any dimensions as a user gets it: lists in lists, which know the lower bounds that they have not.

    Attributes:
        array: The array.
    """

    def __init__(self, array: Dimensioned) -> None:
        super().__init__(array.nested)
        self.array = array


def dimensioned_of(cell: Any) -> Dimensioned:
    """Returns an array of any dimensions, of what a user got as lists in lists too."""
    return cell.array if isinstance(cell, NestedList) else cell


#: The bits of an offset in the code of a time with a zone, and what is added to it so that it is not negative.
_OFFSET_BITS, _OFFSET_BIAS = 17, 1 << 16


class ZonedTime(NamedTuple):
    """A time of day with an offset from UTC: its microseconds since midnight there, and the seconds east.

    Two are equal if both are; they are ordered by their moments, and those of one moment from east to west.
    """

    clock: int
    offset: int

    def __str__(self) -> str:
        """Returns PostgreSQL's text.

        Example:
            >>> str(ZonedTime(1_500_000, -12_600)), str(ZonedTime(0, 0))
            ('00:00:01.5-03:30', '00:00:00+00')
        """
        (minutes, seconds), fraction = divmod(self.clock // _SECOND, 60), self.clock % _SECOND
        clock = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
        minutes, seconds = divmod(abs(self.offset), 60)
        offset = f"{minutes // 60:02}" + (f":{minutes % 60:02}" if minutes % 60 or seconds else "")
        return "".join((
            f"{clock}.{fraction:06}".rstrip("0") if fraction else clock,
            "-" if self.offset < 0 else "+",
            f"{offset}:{seconds:02}" if seconds else offset,
        ))  # fmt: skip

    @property
    def code(self) -> int:
        """The number that has the order: the microseconds of UTC, and behind them the seconds west.

        Example:
            >>> ZonedTime(0, 3600).code < ZonedTime(0, 0).code < ZonedTime(3_600_000_000, 3600).code + 10**6
            True
            >>> ZonedTime.of_code(ZonedTime(5, -3600).code)
            ZonedTime(clock=5, offset=-3600)
        """
        return (self.clock - self.offset * _SECOND << _OFFSET_BITS) + _OFFSET_BIAS - self.offset

    @classmethod
    def of_code(cls, code: int) -> ZonedTime:
        """Returns the time that has a code."""
        utc, biased = divmod(code, 1 << _OFFSET_BITS)
        offset = _OFFSET_BIAS - biased
        return cls(utc + offset * _SECOND, offset)

    @classmethod
    def of_time(cls, value: time) -> ZonedTime:
        """Returns what a time of Python's with a fixed offset is.

        Example:
            >>> ZonedTime.of_time(time(1, tzinfo=UTC))
            ZonedTime(clock=3600000000, offset=0)
        """
        offset = value.utcoffset() or timedelta()
        return cls(to_stored(value, ScalarType(Kind.TIME)), offset // timedelta(seconds=1))

    @property
    def time(self) -> time:
        """The time as Python has it."""
        return from_stored(self.clock, ScalarType(Kind.TIME)).replace(tzinfo=timezone(timedelta(seconds=self.offset)))  # type: ignore[no-any-return]


def to_stored(value: Any, type_: ScalarType) -> Any:
    """Returns the stored form of a cell's Python form.

    Example:
        >>> from mz_dagster.scalars.types import INTERVAL, TIME
        >>> to_stored(time(0, 0, 1), TIME), to_stored(Interval(1, 2, 3), INTERVAL)
        (1000000, {'months': 1, 'days': 2, 'microseconds': 3})
    """
    if value is None or type_.kind in _STORED_AS_IT_IS:
        return value
    match type_.kind:
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return value.stored(type_.kind) if isinstance(value, Infinity) else value
        case Kind.TIME:
            return ((value.hour * 60 + value.minute) * 60 + value.second) * _SECOND + value.microsecond
        case Kind.TIMETZ:
            return value.code
        case Kind.INTERVAL:
            return {"months": value.months, "days": value.days, "microseconds": value.microseconds}
        case Kind.UUID:
            return str(value)
        case Kind.CHAR:
            return value.rstrip(" ")
        case Kind.ENUM:
            assert type_.enumeration is not None
            return type_.enumeration.member(value)
        case Kind.RECORD | Kind.DIMENSIONED:
            cells = zip(value, type_.fields, strict=True)
            return {f"f{i}": to_stored(cell, one) for i, (cell, (_, one)) in enumerate(cells, 1)}
        case Kind.ARRAY:
            assert type_.element is not None
            return all_to_stored(value, type_.element)
        case _:
            raise AssertionError(type_)


def all_to_stored(values: Iterable[Any], type_: ScalarType) -> list[Any]:
    """Returns the stored forms of the Python forms of many cells of one type.

    Example:
        >>> from mz_dagster.scalars.types import INT4, TIME
        >>> all_to_stored([time(0, 0, 1), None], TIME), all_to_stored([1, None], INT4)
        ([1000000, None], [1, None])
    """
    return list(values) if type_.kind in _STORED_AS_IT_IS else [to_stored(one, type_) for one in values]


def from_stored(value: Any, type_: ScalarType) -> Any:
    """Returns the Python form of a cell's stored form; a struct may be a mapping or a tuple.

    Example:
        >>> from mz_dagster.scalars.types import INTERVAL, TIME
        >>> from_stored(1000000, TIME), from_stored((1, 2, 3), INTERVAL)
        (datetime.time(0, 0, 1), Interval(months=1, days=2, microseconds=3))
    """
    if value is None:
        return None
    match type_.kind:
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return moment_of(value, type_.kind) if isinstance(value, int) else value
        case Kind.TIME:
            seconds, microsecond = divmod(value, _SECOND)
            return time(seconds // 3600, seconds // 60 % 60, seconds % 60, microsecond)
        case Kind.TIMETZ:
            return ZonedTime.of_code(value)
        case Kind.INTERVAL:
            return Interval(*_cells(value))
        case Kind.UUID:
            return UUID(value)
        case Kind.CHAR:
            return value.ljust(type_.length)
        case Kind.ENUM:
            assert type_.enumeration is not None
            return type_.enumeration.label(value)
        case Kind.RECORD:
            cells = zip(_cells(value), type_.fields, strict=True)
            return tuple(from_stored(cell, one) for cell, (_, one) in cells)
        case Kind.DIMENSIONED:
            parts = zip(_cells(value), type_.parts, strict=True)
            return Dimensioned(*(tuple(from_stored(cell, one)) for cell, one in parts))
        case Kind.ARRAY:
            assert type_.element is not None
            return [from_stored(one, type_.element) for one in value]
        case _:
            return value


def moment_of(number: int, kind: Kind) -> date | datetime | Infinity:
    """Returns the date of days since 1970-01-01, or the timestamp of microseconds.

    Example:
        >>> moment_of(1, Kind.DATE), moment_of(1, Kind.TIMESTAMP), moment_of(2_932_897, Kind.DATE)
        (datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 1, 0, 0, 0, 1), INFINITY)
    """
    if (infinity := infinity_of(number, kind)) is not None:
        return infinity
    if kind is Kind.DATE:
        return date(1970, 1, 1) + timedelta(days=number)
    return _EPOCHS[kind] + timedelta(microseconds=number)


def _cells(struct: Any) -> tuple[Any, ...]:
    return tuple(struct.values() if isinstance(struct, Mapping) else struct)
