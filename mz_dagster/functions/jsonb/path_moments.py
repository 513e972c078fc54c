"""Dates, times and timestamps within SQL/JSON paths: what `.datetime()` makes of a string, as PostgreSQL 15 does.

They compare with each other, have a type and are strings once a path yields them. Where one has a zone and the other
none, the other's is the session's, UTC, for functions that end in `_tz`; the others refuse, whatever is silent.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.functions.moments.calendar import DAY, EARLIEST_DAY, END_DAY, JULIAN, MILLENNIUM_DAY, SECOND, civil_of
from mz_dagster.functions.moments.moment_templates import standard_reading
from mz_dagster.functions.registry import SqlFailure

_CLOCKS = tuple(
    f"HH24:MI:SS{fraction}{zone}" for zones in (("TZH:TZM", "TZH"), ("",)) for fraction in (".US", "") for zone in zones
)
#: Those of ISO 8601, in the order in which PostgreSQL tries them.
_TEMPLATES = (
    "yyyy-mm-dd",
    *_CLOCKS,
    *(f"yyyy-mm-dd {clock}" for clock in _CLOCKS),
    *(f'yyyy-mm-dd"T"{clock}' for clock in _CLOCKS),
)
_NAMES = {
    "date": "date",
    "time": "time without time zone",
    "timetz": "time with time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}
#: 2000-01-01, from which PostgreSQL rounds.
_MILLENNIUM = MILLENNIUM_DAY * DAY
#: What follows PostgreSQL's last date, 5874897-12-31 and a few months, as days since 1970-01-01.
_END_OF_DATES = 2_147_483_494 - JULIAN


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, time or timestamp.

    Attributes:
        type: `date`, `time`, `timetz`, `timestamp` or `timestamptz`.
        shown: Microseconds since 1970-01-01, or since midnight, by the clock of its zone.
        offset: Seconds by which its zone is east of UTC.
    """

    type: str
    shown: int
    offset: int = 0

    @property
    def name(self) -> str:
        """The type's name, which `.type()` yields."""
        return _NAMES[self.type]

    def __str__(self) -> str:
        """Returns it in ISO 8601."""
        days, clock = divmod(self.shown, DAY)
        parts, behind = [], ""
        if not self.type.startswith("time") or self.type.startswith("timestamp"):
            year, month, day = civil_of(days)
            behind = " BC" if year <= 0 else ""
            parts.append(f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}")
        else:
            clock = self.shown
        if self.type != "date":
            seconds, fraction = divmod(clock, SECOND)
            text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            parts.append(f"{text}.{fraction:06}".rstrip("0") if fraction else text)
        if self.type.endswith("tz"):
            sign, minutes = "-" if self.offset < 0 else "+", abs(self.offset) // 60
            behind = f"{sign}{minutes // 60:02}:{minutes % 60:02}{behind}"
        return "T".join(parts) + behind


def moment_of(text: str, template: str | None) -> Moment:
    """Returns the moment that a text spells, by a template or in ISO 8601.

    Raises:
        UnknownSeparator: The template is none.
        SqlFailure: It spells none.

    Example:
        >>> str(moment_of("2024-02-29 12:30:00.50+2", None)), moment_of("29.2.2024", "dd.mm.yyyy").name
        ('2024-02-29T12:30:00.5+02:00', 'date')
    """
    if template is not None:
        return _read(text, template)
    for one in _TEMPLATES:
        try:
            return _read(text, one)
        except SqlFailure:
            continue
    raise SqlFailure("22031", f'datetime format is not recognized: "{text}"')


def _read(text: str, template: str) -> Moment:
    found = standard_reading(text, template)
    unit = 10 ** (6 - found.fraction_digits) if found.fraction_digits else 1
    if found.type in ("time", "timetz"):
        return Moment(found.type, (found.clock + unit // 2) // unit * unit, found.offset if found.type != "time" else 0)
    if found.type == "date":
        if not EARLIEST_DAY <= found.day < _END_OF_DATES:
            raise SqlFailure("22008", f'date out of range: "{text}"')
        return Moment("date", found.day * DAY)
    offset = found.offset if found.type == "timestamptz" else 0
    moment = found.day * DAY + found.clock - offset * SECOND
    if not EARLIEST_DAY * DAY <= moment < END_DAY * DAY:
        raise SqlFailure("22008", f"{found.type} out of range")
    size = (abs(moment - _MILLENNIUM) + unit // 2) // unit * unit
    rounded = _MILLENNIUM + (size if moment >= _MILLENNIUM else -size)
    return Moment(found.type, rounded + offset * SECOND, offset)


def order_of(left: Moment, right: Moment, *, in_zone: bool) -> int | None:
    """Returns less than 0 if `left` is earlier, more if it is later; None if they do not compare.

    Args:
        left: One.
        right: Another.
        in_zone: Whether one without a zone may be compared with one that has it.

    Raises:
        SqlFailure: It may not, and they are such.
    """
    are_times = [one.type in ("time", "timetz") for one in (left, right)]
    if are_times[0] != are_times[1]:
        return None
    zoned = [one.type.endswith("tz") for one in (left, right)]
    if zoned[0] != zoned[1] and not in_zone:
        plain, other = (left, right) if zoned[1] else (right, left)
        what = f"cannot convert value from {plain.type} to {other.type} without time zone usage"
        raise SqlFailure("0A000", what)
    first, second = ((each.shown - each.offset * SECOND, -each.offset * any(are_times)) for each in (left, right))
    return (first > second) - (first < second)
