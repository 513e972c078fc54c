"""`to_char` of timestamps and intervals: PostgreSQL 15's template patterns, with English names.

A template is patterns, each with modifiers (`FM` before it: no padding; `TH` behind it: an ordinal), quoted text, and
whatever else is copied. A pattern in lower case shows letters in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from mz_dagster.functions.function import Nullability
from mz_dagster.functions.moments.calendar import DAY, JULIAN, MINUTE, MONTHS, SECOND, WEEKDAYS, civil_of, days_of
from mz_dagster.functions.moments.interval import parts_of
from mz_dagster.functions.moments.interval_text import Span
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
#: 1970-01-01 as Python counts.
_ORDINAL = 719_163
#: In PostgreSQL's order: the first that fits is taken.
_UPPER = (
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3",
    "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM",
    "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ",
    "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
)  # fmt: skip
_PATTERNS = (*_UPPER, *(one.lower() for one in _UPPER if one == one.upper()))
#: Finds the patterns of a template, each with its modifiers, and the text between them.
TOKEN = re.compile(
    "(?P<prefix>FM|fm|TM|tm)?(?:(?P<pattern>" + "|".join(re.escape(one) for one in _PATTERNS) + ")(?P<suffix>TH|th|SP)?"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"?|\\(?=")(?P<escaped>")|(?P<other>.)|$)',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Clock:
    """What a template may show; of an interval there is no calendar.

    Attributes:
        year: Likewise month, day: of the calendar, or of the interval.
        microseconds: Since midnight, or those of the interval.
        day_number: Days since 1970-01-01; None for an interval.
        zone: The zone's name; empty for a timestamp without one.
    """

    year: int
    month: int
    day: int
    microseconds: int
    day_number: int | None
    zone: str = ""

    @property
    def days(self) -> int:
        """The day since 1970-01-01, of a moment only."""
        if self.day_number is None:
            raise SqlFailure("22007", "invalid format specification for an interval value")
        return self.day_number

    @property
    def iso(self) -> tuple[int, int, int]:
        """Year, week and day of ISO 8601."""
        found = date.fromordinal(self.days + _ORDINAL).isocalendar()
        return found.year, found.week, found.weekday

    @property
    def day_of_year(self) -> int:
        """Counted from 1; of an interval, about all its days."""
        if self.day_number is None:
            return (self.year * 12 + self.month) * 30 + self.day
        return self.day_number - days_of(self.year, 1, 1) + 1

    def units(self, size: int) -> int:
        """Returns how many units of that many microseconds the clock shows, towards zero."""
        whole = abs(self.microseconds) // size
        return whole if self.microseconds >= 0 else -whole

    def part(self, size: int, of: int) -> int:
        """Returns the units of which `of` make the next greater one."""
        value = self.units(size)
        return abs(value) % of * (1 if value >= 0 else -1)


@function(
    "to_char_timestamp",
    (Kind.TIMESTAMP, Kind.TEXT),
    Kind.TEXT,
    sql="to_char",
    says="A number, moment or interval as text, by a template.",
    example="to_char(timestamp '2002-04-20 17:31:12.66', 'HH12:MI:SS')",
    gives="05:31:12",
    nullability=Nullability.ALWAYS,
)
def timestamp_text(moment: int, template: str) -> str | None:
    """Returns a timestamp as a template shows it; NULL for an empty one.

    Example:
        >>> timestamp_text(0, "Dy DDth Mon YYYY, HH12:MI am")
        'Thu 01st Jan 1970, 12:00 am'
    """
    day, clock = divmod(moment, DAY)
    return _text(_Clock(*civil_of(day), clock, day), template)


@function(
    "to_char_timestamptz", (Kind.TIMESTAMPTZ, Kind.TEXT), Kind.TEXT, sql="to_char", nullability=Nullability.ALWAYS
)
def timestamptz_text(moment: int, template: str) -> str | None:
    """Returns a timestamp in UTC as a template shows it."""
    day, clock = divmod(moment, DAY)
    return _text(_Clock(*civil_of(day), clock, day, "UTC"), template)


@function(
    "to_char_interval",
    (Kind.INTERVAL, Kind.TEXT),
    Kind.TEXT,
    sql="to_char",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def interval_text(span: Span, template: str) -> str | None:
    """Returns an interval as a template shows it.

    Example:
        >>> interval_text((14, 3, 3_723_000_000), "YYYY-MM-DD HH24:MI:SS")
        '0001-02-03 01:02:03'
    """
    parts = parts_of(span)
    return _text(_Clock(parts["year"], parts["month"], parts["day"], span[2], None), template)


def _text(clock: _Clock, template: str) -> str | None:
    if not template:
        return None
    return "".join(part if isinstance(part, str) else _shown(clock, *part) for part in _parsed(template))


def _parsed(template: str) -> tuple[str | tuple[str, str, str], ...]:
    """Returns text to copy and patterns, each with its prefix and its suffix."""
    parts: list[str | tuple[str, str, str]] = []
    for found in TOKEN.finditer(template):
        if found["pattern"]:
            parts.append((found["pattern"], (found["prefix"] or "").upper(), found["suffix"] or ""))
        elif found["quoted"] is not None:
            parts.append(re.sub(r"\\(.)", r"\1", found["quoted"], flags=re.DOTALL))
        else:
            parts.append(found["escaped"] or found["other"] or "")
    return tuple(parts)


def _shown(clock: _Clock, pattern: str, prefix: str, suffix: str) -> str:
    key, fills = pattern.upper(), prefix != "FM"
    if key in _NUMBERS:
        value, width = _NUMBERS[key](clock), _WIDTHS.get(key, 0)
        if value is None:
            return ""
        width = width + (value < 0 and key not in _UNSIGNED) if fills and width else 0
        shown = f"{value:0{width}d}" if width else str(value)
        return shown + _ordinal(shown, suffix)
    if key in _FIXED:
        shown = _FIXED[key](clock)
        if key in ("TZH", "TZM", "OF"):
            return "+0" if key == "OF" and not fills else shown
        return shown + _ordinal(shown, suffix)
    name, width = _named(clock, key)
    if pattern == pattern.upper():
        name = name.upper()
    elif pattern == pattern.lower():
        name = name.lower()
    return name.ljust(width) if fills and not (prefix == "TM" and width > 4) else name


def _ordinal(shown: str, suffix: str) -> str:
    if suffix.upper() != "TH":
        return ""
    teen = len(shown) > 1 and shown[-2] == "1"
    ending = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(shown[-1], "th")
    return ending.upper() if suffix == "TH" else ending


def _named(clock: _Clock, key: str) -> tuple[str, int]:
    """Returns a name, and how wide its column is."""
    match key:
        case "A.M." | "P.M.":
            return ("p.m." if _remainder(clock.units(60 * MINUTE), 24) >= 12 else "a.m."), 0
        case "AM" | "PM":
            return ("pm" if _remainder(clock.units(60 * MINUTE), 24) >= 12 else "am"), 0
        case "A.D." | "B.C.":
            return ("a.d.", 0) if clock.days is not None else ("", 0)
        case "AD" | "BC":
            return ("ad", 0) if clock.days is not None else ("", 0)
        case "MONTH":
            return (MONTHS[clock.month - 1], 9) if clock.days is not None else ("", 0)
        case "MON":
            return (MONTHS[clock.month - 1][:3], 0) if clock.days is not None else ("", 0)
        case "DAY":
            return WEEKDAYS[clock.iso[2] % 7], 9
        case "DY":
            return WEEKDAYS[clock.iso[2] % 7][:3], 0
        case "RM":
            roman = _roman(clock)
            return roman, 4 if roman else 0
        case "TZ":
            return (clock.zone, 0) if clock.days is not None else ("", 0)
        case _:  # FX, which is for reading
            return "", 0


def _roman(clock: _Clock) -> str:
    if not clock.month and not clock.year:
        return ""
    if not clock.month:
        return _ROMAN[11] if clock.year >= 0 else _ROMAN[0]
    return _ROMAN[clock.month - 1] if clock.month > 0 else _ROMAN[12 + clock.month]


def _fraction(digits: int) -> Callable[[_Clock], str]:
    def shown(clock: _Clock) -> str:
        value = clock.part(1, SECOND)
        size = abs(value) // 10 ** (6 - digits) * (1 if value >= 0 else -1)
        return f"{size:0{digits}d}"

    return shown


def _century(clock: _Clock) -> int:
    if clock.day_number is None:
        return _quotient(clock.year, 100)
    return (clock.year - 1) // 100 + 1


def _quotient(value: int, of: int) -> int:
    """Returns a quotient, towards zero."""
    return abs(value) // of * (1 if value >= 0 else -1)


def _remainder(value: int, of: int) -> int:
    """Returns what a division leaves, with the number's sign."""
    return abs(value) % of * (1 if value >= 0 else -1)


def _zone_sign(clock: _Clock) -> str:
    return "+00" if clock.days is not None else ""


_NUMBERS: dict[str, Callable[[_Clock], int | None]] = {
    "HH24": lambda clock: clock.units(60 * MINUTE),
    "HH12": lambda clock: _remainder(clock.units(60 * MINUTE), 12) or 12,
    "HH": lambda clock: _remainder(clock.units(60 * MINUTE), 12) or 12,
    "MI": lambda clock: clock.part(MINUTE, 60),
    "SS": lambda clock: clock.part(SECOND, 60),
    "MM": lambda clock: clock.month,
    "DD": lambda clock: clock.day,
    "DDD": lambda clock: clock.day_of_year,
    "D": lambda clock: clock.iso[2] % 7 + 1,
    "ID": lambda clock: clock.iso[2],
    "IDDD": lambda clock: (clock.iso[1] - 1) * 7 + clock.iso[2],
    "WW": lambda clock: _quotient(clock.day_of_year - 1, 7) + 1,
    "IW": lambda clock: clock.iso[1],
    "W": lambda clock: _quotient(clock.day - 1, 7) + 1,
    "Q": lambda clock: _quotient(clock.month - 1, 3) + 1 if clock.month else None,
    "CC": _century,
    "YYYY": lambda clock: clock.year,
    "YYY": lambda clock: _remainder(clock.year, 1000),
    "YY": lambda clock: _remainder(clock.year, 100),
    "Y": lambda clock: _remainder(clock.year, 10),
    "IYYY": lambda clock: clock.iso[0],
    "IYY": lambda clock: clock.iso[0] % 1000,
    "IY": lambda clock: clock.iso[0] % 100,
    "I": lambda clock: clock.iso[0] % 10,
    "J": lambda clock: clock.days + JULIAN,
}
_WIDTHS = {
    **dict.fromkeys(("HH24", "HH12", "HH", "MI", "SS", "MM", "DD", "WW", "IW", "CC", "YY", "IY"), 2),
    **dict.fromkeys(("DDD", "IDDD", "YYY", "IYY"), 3),
    **dict.fromkeys(("YYYY", "IYYY"), 4),
}
#: Their columns have no room for a sign.
_UNSIGNED = frozenset(("DDD", "DD", "WW"))
_FIXED: dict[str, Callable[[_Clock], str]] = {
    **{f"FF{digits}": _fraction(digits) for digits in range(1, 7)},
    "MS": _fraction(3),
    "US": _fraction(6),
    "SSSS": lambda clock: str(clock.units(SECOND)),
    "SSSSS": lambda clock: str(clock.units(SECOND)),
    "Y,YYY": lambda clock: f"{_quotient(clock.year, 1000)},{_remainder(clock.year, 1000):03}",
    "TZH": _zone_sign,
    "TZM": lambda clock: "00" if clock.days is not None else "",
    "OF": _zone_sign,
}
