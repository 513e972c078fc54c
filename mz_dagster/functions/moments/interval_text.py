"""The text of intervals, read and written as PostgreSQL 15 does, `IntervalStyle` being `postgres`.

Owns the forms `1 year 2 mons 3 days 04:05:06.7`, `1-2 3 4:05`, `@ 1 hour ago`, those of ISO 8601 (`P1Y2M3DT4H`,
`P0001-02-03T04:05:06`), and the fields of an interval's type (`DAY TO SECOND`, and the digits of its seconds). A text
is read from its end, because a unit stands behind its number.
"""

from __future__ import annotations

import re
import string

from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.functions.registry import SqlFailure, pure

Span = tuple[int, int, int]

_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
_INT4, _INT8 = 2**31, 2**63
_SPACE = " \t\n\v\f\r"
_MAX_FIELDS, _MAX_LENGTH = 25, 256
#: Units behind which a digit begins a field of its own; behind other letters it belongs to a word that is none.
_BEFORE_DIGITS = frozenset(("d", "dec", "h", "m", "mon", "s", "y"))

#: Word -> unit; PostgreSQL looks at ten letters.
_UNITS = {
    word: unit
    for unit, words in {
        "microsecond": "us usec usecs usecond useconds microsecon",
        "millisecond": "ms msec msecs msecond mseconds millisecon",
        "second": "s sec secs second seconds",
        "minute": "m min mins minute minutes",
        "hour": "h hr hrs hour hours",
        "day": "d day days",
        "week": "w week weeks",
        "month": "mon mons month months",
        "year": "y yr yrs year years",
        "decade": "dec decs decade decades",
        "century": "c cent century centuries",
        "millennium": "mil mils millennia millennium",
        "ago": "ago",
    }.items()
    for word in words.split()
}
_MICROSECONDS = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": _MINUTE, "hour": _HOUR}
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_CLOCK = frozenset(("hour", "minute", "second", "millisecond", "microsecond"))
_ISO_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: The fields of an interval type -> what a number without a unit counts.
_LAST_FIELD = {"year to month": "month", "day to hour": "hour", "day to minute": "minute", "hour to minute": "minute"}
#: The fields of an interval type -> what of its clock is kept.
_KEPT = {
    **dict.fromkeys(("hour", "day to hour"), _HOUR),
    **dict.fromkeys(("minute", "day to minute", "hour to minute"), _MINUTE),
}


class _BadFormat(Exception):
    """Says that a text is no interval."""


class _Overflow(Exception):
    """Says that a field of an interval is too large."""


def interval_of(text: str, fields: str = "", precision: int | None = None) -> Span:
    """Returns the interval that `text` spells.

    Args:
        text: In any of PostgreSQL's forms.
        fields: Of the type: `year`, `day to second` and so on, in lower case; empty if it has none.
        precision: Digits of the seconds that are kept; None for all six.

    Example:
        >>> interval_of("1 year 2 mons -3 days 04:05"), interval_of("90", "day"), interval_of("P1W")
        ((14, -3, 14700000000), (0, 90, 0), (0, 7, 0))
    """
    try:
        try:
            parts = _decoded(text, fields)
        except _BadFormat:
            parts = _iso(text)
    except _BadFormat:
        raise SqlFailure("22007", f'invalid input syntax for type interval: "{text}"') from None
    except _Overflow:
        raise SqlFailure("22015", f'interval field value out of range: "{text}"') from None
    months = parts.years * 12 + parts.months
    if not -_INT4 <= months < _INT4:
        raise SqlFailure("22008", "interval out of range")
    return narrowed((months, parts.days, parts.microseconds), fields, precision)


@pure("cast_text_to_interval")
def interval_of_text(text: str) -> Span:
    """Returns the interval that `text` spells."""
    return interval_of(text)


def narrowed(span: Span, fields: str, precision: int | None) -> Span:
    """Returns the interval as its type's fields and digits of seconds leave it.

    Example:
        >>> narrowed((14, 3, 3_700_000_000), "year", None), narrowed((0, 3, 3_700_000_000), "day to hour", None)
        ((12, 0, 0), (0, 3, 3600000000))
    """
    months, days, clock = span
    if fields in ("year", "month", "year to month"):
        months, days, clock = (_towards_zero(months, 12) if fields == "year" else months), 0, 0
    elif fields == "day":
        clock = 0
    elif fields in _KEPT:
        clock = _towards_zero(clock, _KEPT[fields])
    if precision is not None and precision < 6:
        scale = 10 ** (6 - precision)
        size = (abs(clock) + scale // 2) // scale * scale
        clock = size if clock >= 0 else -size
        if not -_INT8 <= clock < _INT8:
            raise SqlFailure("22008", "interval out of range")
    return months, days, clock


@pure("cast_interval_to_text")
def text_of_interval(span: Span) -> str:
    """Returns the text of an interval.

    Example:
        >>> text_of_interval((14, -3, 14_706_500_000)), text_of_interval((0, 0, 0))
        ('1 year 2 mons -3 days +04:05:06.5', '00:00:00')
    """
    months, days, clock = span
    size = abs(months)
    years, rest = (size // 12, size % 12) if months >= 0 else (-(size // 12), -(size % 12))
    parts: list[str] = []
    negative = False
    for value, unit in ((years, "year"), (rest, "mon"), (days, "day")):
        if value:
            plus = "+" if negative and value > 0 else ""
            parts.append(f"{plus}{value} {unit}{'' if value == 1 else 's'}")
            negative = value < 0
    if clock or not parts:
        sign = "-" if clock < 0 else "+" if negative else ""
        parts.append(sign + clock_text(abs(clock)))
    return " ".join(parts)


def clock_text(microseconds: int) -> str:
    """Returns `HH:MM:SS` and the fraction as far as there is one, of a time that is not negative.

    Example:
        >>> clock_text(3_723_400_000)
        '01:02:03.4'
    """
    seconds, fraction = divmod(microseconds, _SECOND)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{fraction:06}".rstrip("0") if fraction else shown


class _Parts:
    """What has been read of an interval; what is added to it must fit."""

    def __init__(self) -> None:
        self.years = self.months = self.days = self.microseconds = 0

    def add(self, unit: str, whole: int, fraction: float) -> None:
        """Adds `whole + fraction` of a unit; the fraction goes to the smaller units."""
        if unit in _MICROSECONDS:
            scale = _MICROSECONDS[unit]
            self._add_microseconds(whole * scale)
            self._add_fraction(fraction, scale)
        elif unit == "day":
            self._add_days(_small(whole))
            self._add_fraction(fraction, _DAY)
        elif unit == "week":
            self._add_days(_small(_small(whole) * 7))
            self._add_fraction_of_days(fraction, 7)
        elif unit == "month":
            self.months = _small(self.months + _small(whole))
            self._add_fraction_of_days(fraction, 30)
        elif unit in _YEARS:
            self.years = _small(self.years + _small(_small(whole) * _YEARS[unit]))
            self.months = _small(self.months + round(fraction * _YEARS[unit] * 12))
        else:
            raise _BadFormat

    def _add_days(self, days: int) -> None:
        self.days = _small(self.days + days)

    def _add_microseconds(self, microseconds: int) -> None:
        self.microseconds = _large(self.microseconds + microseconds)

    def _add_fraction(self, fraction: float, scale: int) -> None:
        scaled = fraction * scale
        whole = int(scaled)
        rest = scaled - whole
        self._add_microseconds(whole + (rest > 0.5) - (rest < -0.5))

    def _add_fraction_of_days(self, fraction: float, days: int) -> None:
        scaled = fraction * days
        self._add_days(int(scaled))
        self._add_fraction(scaled - int(scaled), _DAY)

    def negate(self) -> None:
        """Turns the interval around."""
        self.years, self.months, self.days = _small(-self.years), _small(-self.months), _small(-self.days)
        self.microseconds = _large(-self.microseconds)


def _small(value: int) -> int:
    if not -_INT4 <= value < _INT4:
        raise _Overflow
    return value


def _large(value: int) -> int:
    if not -_INT8 <= value < _INT8:
        raise _Overflow
    return value


def _towards_zero(value: int, unit: int) -> int:
    return value - value % unit if value >= 0 else -(-value - -value % unit)


def _tokens(text: str) -> list[tuple[str, str]]:
    """Returns the fields of a text, each a kind (`time`, `number`, `signed`, `word`, `date`) and its letters."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign in _SPACE or (sign in string.punctuation and sign not in ".+-"):
            at += 1
            continue
        kind, pattern = _shape(text, at)
        matched = re.compile(pattern).match(text, at)
        if matched is None or len(found) == _MAX_FIELDS:
            raise _BadFormat
        field = re.sub(r"(?<=^[+-])[ \t\n\v\f\r]+", "", matched[0].lower())
        if kind == "signed" and field[1:2].isalpha():
            kind = "word"
        behind = text[matched.end() : matched.end() + 1]
        if kind == "word" and (
            behind in tuple("-/.") or (behind in tuple("+0123456789") and field not in _BEFORE_DIGITS)
        ):
            tail = re.compile(r"[-+/_.:A-Za-z0-9]*").match(text, matched.end())
            assert tail is not None
            kind, matched = "date", tail
        found.append((kind, field))
        at = matched.end()
    if sum(len(field) + 1 for _, field in found) > _MAX_LENGTH:
        raise _BadFormat
    return found


def _shape(text: str, at: int) -> tuple[str, str]:
    sign = text[at]
    if "0" <= sign <= "9":
        if re.compile("[0-9]+:").match(text, at):
            return "time", "[0-9]+:[0-9:.]*"
        return "number", r"[0-9]+(?:([-/.])(?:[0-9]+(?:\1[0-9\1]*)?|[A-Za-z0-9]*(?:\1[A-Za-z0-9]*)*))?"
    if sign == ".":
        return "number", r"\.[0-9]*"
    if sign in "+-":
        return "signed", r"[+-][ \t\n\v\f\r]*(?:[0-9.][0-9:.\-]*|[A-Za-z]+)"
    if sign.isascii() and sign.isalpha():
        return "word", "[A-Za-z]+"
    raise _BadFormat


def _decoded(text: str, fields: str) -> _Parts:
    parts = _Parts()
    seen: set[str] = set()
    unit = ""
    turned = False
    for kind, field in reversed(_tokens(text)):
        if kind == "word":
            unit = _UNITS.get(field[:10], "")
            if not unit:
                raise _BadFormat
            turned = turned or unit == "ago"
            continue
        if kind == "date":
            raise _BadFormat
        clock = _clock_of(kind, field, fields)
        if clock is not None:
            _see(seen, _CLOCK)
            parts.microseconds = clock
            unit = "day"
            continue
        unit = unit or _LAST_FIELD.get(fields, fields if fields and " " not in fields else "second")
        whole, fraction, unit = _number(field, unit)
        parts.add(unit, whole, fraction)
        _see(seen, {"second", "millisecond", "microsecond"} if unit == "second" and fraction else {unit})
        if unit == "hour":
            unit = "day"
    if not seen:
        raise _BadFormat
    if turned:
        parts.negate()
    return parts


def _see(seen: set[str], units: set[str] | frozenset[str]) -> None:
    """Notes units that were given; each may be only once."""
    if seen & units:
        raise _BadFormat
    seen |= units


def _clock_of(kind: str, field: str, fields: str) -> int | None:
    """Returns the microseconds of a field that is a clock, with a sign or without; None if it is none."""
    if kind == "time":
        return _clock(field, fields)
    if kind != "signed" or ":" not in field:
        return None
    try:
        clock = _clock(field[1:], fields)
    except (_BadFormat, _Overflow):
        return None
    return -clock if field[0] == "-" else clock


def _clock(field: str, fields: str) -> int:
    matched = re.fullmatch(r"([0-9]+):([0-9]*)(?::([0-9]*))?(?:\.([0-9]*))?", field)
    if matched is None:
        raise _BadFormat
    hours, minutes, seconds = (whole_number(one or "0") for one in matched.groups()[:3])
    fraction = matched[4]
    if matched[3] is None and (fraction is not None or fields == "minute to second"):
        hours, minutes, seconds = 0, _small(hours), minutes
    if hours >= _INT8 or minutes > 59 or seconds > 60:
        raise _Overflow
    micros = round(float(f"0.{fraction or 0}") * _SECOND)
    return _large(hours * _HOUR + minutes * _MINUTE + seconds * _SECOND + micros)


def _number(field: str, unit: str) -> tuple[int, float, str]:
    """Returns the whole and the fraction of a number, and its unit, which is the month for `years-months`."""
    matched = re.fullmatch(r"(?![+-]\.)([+-]?)([0-9]*)(\.[0-9]*)?|([+-]?)([0-9]+)-(-?[0-9]+|)(.*)", field)
    if matched is None:
        raise _BadFormat
    sign = -1 if field[0] == "-" else 1
    whole = sign * whole_number(matched[2] or matched[5] or "0")
    if not -_INT8 <= whole < _INT8:
        raise _Overflow
    if matched[5] is None:
        return whole, sign * float(f"0{matched[3] or ''}"), unit
    months = whole_number(matched[6] or "0")
    if not 0 <= months <= 11:
        raise _Overflow
    if matched[7]:
        raise _BadFormat
    return _large(whole * 12 + sign * months), 0.0, "month"


def _iso(text: str) -> _Parts:
    """Reads the forms of ISO 8601."""
    if len(text) < 2 or text[0] != "P":
        raise _BadFormat
    parts = _Parts()
    at, in_date, seen = 1, True, False
    while at < len(text):
        if text[at] == "T":
            in_date, seen, at = False, False, at + 1
            continue
        start = at
        whole, fraction, at = _iso_number(text, at)
        unit = text[at : at + 1]
        at += 1
        named = (
            {"Y": "year", "M": "month", "W": "week", "D": "day"}
            if in_date
            else {"H": "hour", "M": "minute", "S": "second"}
        ).get(unit)
        if named is not None:
            parts.add(named, whole, fraction)
            seen = True
            continue
        if unit not in (("", "T", "-") if in_date else ("", ":")):
            raise _BadFormat
        at -= 1
        width = len(re.match("-?([0-9]*)", text[start:])[1])  # type: ignore[index]
        if not seen and unit != ("-" if in_date else ":") and width == (8 if in_date else 6):
            units = ("year", "month", "day") if in_date else ("hour", "minute", "second")
            for name, value in zip(units, _pairs(whole), strict=True):
                parts.add(name, value, 0.0)
            parts.add("day" if in_date else "microsecond", 0, fraction)
        elif seen:
            raise _BadFormat
        else:
            at = _iso_fields(text, at, parts, whole, fraction, in_date=in_date)
        if not in_date:
            if at < len(text):
                raise _BadFormat
            return parts
        seen = False
    return parts


def _iso_fields(text: str, at: int, parts: _Parts, whole: int, fraction: float, *, in_date: bool) -> int:
    """Reads `years-months-days` or `hours:minutes:seconds`, whose first number is `whole` and `fraction`."""
    units = ("year", "month", "day") if in_date else ("hour", "minute", "second")
    separator = "-" if in_date else ":"
    parts.add(units[0], whole, fraction)
    for unit in units[1:]:
        if at == len(text) or (in_date and text[at] == "T"):
            return at
        if text[at] != separator:
            raise _BadFormat
        whole, fraction, at = _iso_number(text, at + 1)
        parts.add(unit, whole, fraction)
    if at < len(text) and not (in_date and text[at] == "T"):
        raise _BadFormat
    return at


def _iso_number(text: str, at: int) -> tuple[int, float, int]:
    matched = _ISO_NUMBER.match(text, at)
    if matched is None:
        raise _BadFormat
    value = float(matched[0])
    if not -1.0e15 <= value <= 1.0e15:
        raise _Overflow
    return int(value), value - int(value), matched.end()


def _pairs(digits: int) -> tuple[int, int, int]:
    """Returns the parts of `YYYYMMDD` or `HHMMSS`, each with the number's sign."""
    size, sign = abs(digits), -1 if digits < 0 else 1
    return sign * (size // 10_000), sign * (size // 100 % 100), sign * (size % 100)
