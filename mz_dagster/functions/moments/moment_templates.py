"""`to_date` and `to_timestamp`: texts read by PostgreSQL 15's template patterns, with English names.

A template is read as `to_char` does (`templates`). A pattern of digits takes as many as it has letters if another
number follows at once, else all there are. Unless the template says `FX`, spaces around fields do not matter, and a
separator matches one of any kind, or nothing. What the fields mean together is told at the end.

SQL/JSON paths read strictly (`standard_reading`): as with `FX`, each separator and quoted character matches itself
only, template and text end together, and the template's patterns tell the type.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mz_dagster.functions.moments.calendar import (
    DAY,
    FIRST_DAY,
    HOUR,
    JULIAN,
    LAST_DAY,
    MILLENNIUM_DAY,
    MINUTE,
    MONTHS,
    SECOND,
    WEEKDAYS,
    checked_moment,
    civil_of,
    days_in,
    days_of,
)
from mz_dagster.functions.moments.templates import TOKEN
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

_SPACES = " \t\n\v\f\r"
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_THOUSANDS = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+),[ \t\n\v\f\r]*([+-]?[0-9]{1,3})")
#: 2000-01-01, from which PostgreSQL rounds.
_MILLENNIUM = MILLENNIUM_DAY * DAY
_INT4 = 2**31

_MONTHS = tuple(one.lower() for one in MONTHS)
_DAYS = tuple(one.lower() for one in WEEKDAYS)
#: Pattern -> the field, what is searched for, in this order, and the value of the first.
_WORDS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "MONTH": ("month", _MONTHS, 1),
    "MON": ("month", tuple(one[:3] for one in _MONTHS), 1),
    "RM": ("month", ("xii", "xi", "x", "ix", "viii", "vii", "vi", "v", "iv", "iii", "ii", "i"), 12),
    "DAY": ("weekday", _DAYS, 0),
    "DY": ("weekday", tuple(one[:3] for one in _DAYS), 0),
    **dict.fromkeys(("AM", "PM"), ("afternoon", ("am", "pm"), 0)),
    **dict.fromkeys(("A.M.", "P.M."), ("afternoon", ("a.m.", "p.m."), 0)),
    **dict.fromkeys(("AD", "BC"), ("before_christ", ("ad", "bc"), 0)),
    **dict.fromkeys(("A.D.", "B.C."), ("before_christ", ("a.d.", "b.c."), 0)),
}
#: Pattern of digits -> the field, and how many digits.
_DIGITS = {
    **dict.fromkeys(("HH", "HH12", "HH24"), ("hour", 2)),
    "MI": ("minute", 2), "SS": ("second", 2), "SSSS": ("second_of_day", 4), "SSSSS": ("second_of_day", 5),
    "MS": ("millis", 3), "US": ("micros", 6), **{f"FF{i}": ("micros", i) for i in range(1, 7)},
    "TZH": ("zone_hours", 2), "TZM": ("zone_minutes", 2), "MM": ("month", 2), "DDD": ("day_of_year", 3),
    "IDDD": ("day_of_year", 3), "DD": ("day", 2), "D": ("weekday", 1), "ID": ("weekday", 1), "WW": ("week", 2),
    "IW": ("week", 2), "W": ("week_of_month", 1), "Q": ("", 1), "CC": ("century", 2), "J": ("julian", 1),
    **{prefix + "Y" * i: ("year", i + len(prefix)) for i in range(1, 5) for prefix in ("", "I") if i + len(prefix) < 5},
    "I": ("year", 1),
}  # fmt: skip
_ISO_WEEKS = frozenset(("IYYY", "IYY", "IY", "I", "IDDD", "ID", "IW"))
_GREGORIAN = frozenset(
    ("Y,YYY", "YYYY", "YYY", "YY", "Y", "MONTH", "MON", "RM", "MM", "DDD", "DD", "D", "WW", "W")
)  # fmt: skip
_STANDARD_SEPARATORS = "-./,':; "
_OF_ZONES = frozenset(("TZ", "OF", "TZH", "TZM"))
_OF_CLOCKS = frozenset((
    "A.M.", "P.M.", "AM", "PM", "HH", "HH12", "HH24", "MI", "SS", "SSSS", "SSSSS", "MS", "US",
    *(f"FF{i}" for i in range(1, 7)),
))  # fmt: skip
#: Patterns that are no digits to the field before them.
_NO_DIGITS = frozenset((*_WORDS, "TZH", "TZ", "OF", "FX"))


class _Node(NamedTuple):
    """A part of a template.

    Attributes:
        kind: `pattern`, or of one character: `text`, `space`, `separator`.
        shown: The pattern as written, or the character.
        fills: Whether digits need not be as many as the pattern's letters.
        is_ordinal: Whether `TH` follows.
    """

    kind: str
    shown: str
    fills: bool = False
    is_ordinal: bool = False

    @property
    def key(self) -> str:
        return self.shown.upper()


@function(
    "to_date_text_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.DATE,
    sql="to_date",
    says="The date that a text spells by a template.",
    example="to_date('05 Dec 2000', 'DD Mon YYYY')",
    gives="2000-12-05",
    fallible=True,
)
def date_by_template(text: str, template: str) -> int:
    """Returns the date that `text` spells by a template.

    Example:
        >>> date_by_template("2 Jan 1970", "DD Mon YYYY")
        1
    """
    day = _Reading(text, template).moment()[0]
    if not FIRST_DAY <= day <= LAST_DAY:
        raise SqlFailure("22008", f'date out of range: "{text}"')
    return day


@function("to_timestamp_text_text", (Kind.TEXT, Kind.TEXT), Kind.TIMESTAMPTZ, sql="to_timestamp", fallible=True)
def timestamptz_by_template(text: str, template: str) -> int:
    """Returns the timestamp that `text` spells by a template, in UTC if that has no zone.

    Example:
        >>> timestamptz_by_template("01/01/1970 12:00:01 AM", "MM/DD/YYYY HH:MI:SS AM")
        1000000
    """
    reading = _Reading(text, template)
    day, clock = reading.moment()
    moment = checked_moment(day * DAY + clock - reading.zone() * SECOND)
    if 0 < reading.fraction_digits < 6:
        unit, shift = 10 ** (6 - reading.fraction_digits), moment - _MILLENNIUM
        size = (abs(shift) + unit // 2) // unit * unit
        moment = checked_moment(_MILLENNIUM + (size if shift >= 0 else -size))
    return moment


class StandardReading(NamedTuple):
    """What a text says by a template that is read strictly.

    Attributes:
        type: `date`, `time`, `timetz`, `timestamp` or `timestamptz`.
        day: Since 1970-01-01.
        clock: Microseconds since midnight, as shown.
        offset: Seconds by which the zone is east of UTC.
        fraction_digits: The digits that `FF` says a second's fraction has; 0 if there is none.
    """

    type: str
    day: int
    clock: int
    offset: int
    fraction_digits: int


class UnknownSeparator(SqlFailure):
    """A character that no template of the standard has: wrong whatever the text is."""


def standard_reading(text: str, template: str) -> StandardReading:
    """Returns what `text` says by a template of the SQL standard.

    Raises:
        UnknownSeparator: The template is none.
        SqlFailure: The text is not as it says.

    Example:
        >>> standard_reading("12:30 +2", "HH24:MI TZH")
        StandardReading(type='timetz', day=-719528, clock=45000000000, offset=7200, fraction_digits=0)
    """
    if not template:
        raise SqlFailure("22007", "datetime format is not dated and not timed")
    reading = _Reading(text, template, strictly=True)
    day, clock = reading.moment()
    return StandardReading(_type_of(template), day, clock, reading.zone(), reading.fraction_digits)


def _type_of(template: str) -> str:
    keys = {found["pattern"].upper() for found in TOKEN.finditer(template) if found["pattern"]}
    is_zoned = not keys.isdisjoint(_OF_ZONES)
    is_timed = not keys.isdisjoint(_OF_CLOCKS)
    is_dated = not keys <= _OF_ZONES | _OF_CLOCKS | {"FX"}
    if is_timed:
        return ("timestamp" if is_dated else "time") + ("tz" if is_zoned else "")
    if is_dated and not is_zoned:
        return "date"
    what = "zoned but not timed" if is_dated else "not dated and not timed"
    raise SqlFailure("22007", f"datetime format is {what}")


def _nodes_of(template: str, *, strictly: bool = False) -> list[_Node]:
    nodes: list[_Node] = []
    for found in TOKEN.finditer(template):
        if strictly and (one := "\\" if found["escaped"] else found["other"]) and one not in _STANDARD_SEPARATORS:
            raise UnknownSeparator("22007", f'invalid datetime format separator: "{one}"')
        if found["pattern"]:
            fills, is_ordinal = (found["prefix"] or "").upper() == "FM", (found["suffix"] or "").upper() == "TH"
            nodes.append(_Node("pattern", found["pattern"], fills, is_ordinal))
        elif found["quoted"] is not None:
            nodes += [_Node("text", one) for one in re.sub(r"\\(.)", r"\1", found["quoted"], flags=re.DOTALL)]
        elif one := found["escaped"] or found["other"]:
            if " " < one < "\x7f" and not one.isalnum():
                nodes.append(_Node("separator", one))
            else:
                nodes.append(_Node("space" if one in _SPACES else "text", one))
    return nodes


class _Reading:
    """What a text says by a template: fields by name, nothing being 0.

    Attributes:
        fraction_digits: The digits that `FF` says a second's fraction has; 0 if there is none.
    """

    def __init__(self, text: str, template: str, *, strictly: bool = False) -> None:
        self.fraction_digits = 0
        self._text, self._at = text, 0
        self._fields: dict[str, int] = {}
        self._year_digits = self._zone_sign = 0
        self._in_iso_weeks: bool | None = None
        self._has_half_days = False
        self._is_exact = self._is_strict = strictly
        # How many spaces and separators were skipped that the template does not have.
        self._skipped = 0
        nodes = _nodes_of(template, strictly=strictly)
        for i, node in enumerate(nodes):
            if self._at == len(text):
                if strictly:
                    raise SqlFailure("22007", "input string is too short for datetime format")
                break
            if not self._is_exact and node.key != "FX" and (node.kind == "pattern" or i == 0):
                self._skip_spaces()
            if node.kind == "pattern":
                self._take(node, i + 1 == len(nodes) or not _may_be_digits(nodes[i + 1]))
                if not self._is_exact:
                    self._skipped = 0
                    self._skip_spaces()
            else:
                self._pass(node)
        if strictly and text[self._at :].strip(_SPACES):
            raise SqlFailure("22007", "trailing characters remain in input string after datetime format")

    def __getitem__(self, name: str) -> int:
        return self._fields.get(name, 0)

    def _skip_spaces(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in _SPACES:
            self._at += 1
            self._skipped += 1

    def _pass(self, node: _Node) -> None:
        """Moves past what stands for a character of the template, whichever it is."""
        if self._is_strict and self._text[self._at] != node.shown:
            what = "character" if node.kind == "text" else "separator"
            raise SqlFailure("22007", f'unmatched format {what} "{node.shown}"')
        if self._is_exact:
            self._at += 1
        elif node.kind == "text":
            if self._skipped > 0:
                self._skipped -= 1
            else:
                self._at += 1
        else:
            here = self._text[self._at]
            if here in _SPACES or (" " < here < "\x7f" and not here.isalnum()):
                self._at += 1
            else:
                self._skipped -= 1

    def _put(self, name: str, value: int, node: _Node) -> None:
        if self[name] not in (0, value):
            raise SqlFailure("22007", f'conflicting values for "{node.shown}" field in formatting string')
        self._fields[name] = value

    def _take(self, node: _Node, is_last_digit: bool) -> None:
        """Takes in the field of a pattern."""
        key = node.key
        if key in _ISO_WEEKS or key in _GREGORIAN:
            if self._in_iso_weeks not in (None, key in _ISO_WEEKS):
                raise SqlFailure("22007", "invalid combination of date conventions")
            self._in_iso_weeks = key in _ISO_WEEKS
        if key == "FX":
            self._is_exact = True
        elif key in ("TZ", "OF"):
            raise SqlFailure("0A000", f'formatting field "{node.shown}" is only supported in to_char')
        elif key in _WORDS:
            self._word(node)
        elif key == "Y,YYY":
            self._thousands(node)
        else:
            self._digits(node, is_last_digit)
        if node.is_ordinal and key not in _WORDS and key not in ("TZH", "TZM"):
            self._at = min(self._at + 2, len(self._text))

    def _word(self, node: _Node) -> None:
        name, words, first = _WORDS[node.key]
        rest = self._text[self._at :].lower()
        found = next((word for word in words if rest.startswith(word)), None)
        if found is None:
            shown = re.split(f"[{_SPACES}]", self._text[self._at :])[0]
            raise SqlFailure("22007", f'invalid value "{shown}" for "{node.shown}"')
        self._at += len(found)
        index = words.index(found)
        self._put(name, first - index if node.key == "RM" else first + index, node)
        if name == "weekday":
            self._fields[name] += 1
        elif name == "afternoon":
            self._has_half_days = True

    def _thousands(self, node: _Node) -> None:
        found = _THOUSANDS.match(self._text, self._at)
        if found is None:
            raise SqlFailure("22007", 'invalid input string for "Y,YYY"')
        self._put("year", int(found[1]) * 1000 + int(found[2]), node)
        self._year_digits, self._at = 4, found.end()

    def _digits(self, node: _Node, is_last_digit: bool) -> None:
        key = node.key
        name, width = _DIGITS[key]
        if key == "TZH":
            self._sign_of_zone()
        elif key == "TZM":
            self._zone_sign = self._zone_sign or 1
        value, length = self._integer(node, width, is_last_digit)
        if name:
            self._put(name, value, node)
        match key:
            case "HH" | "HH12":
                self._has_half_days = True
            case "MS":
                self._fields[name] *= {1: 100, 2: 10}.get(length, 1)
            case "ID":
                # From Monday in the text, and from Sunday here.
                self._fields[name] = value + 1 if value < 7 else 1
            case _ if name == "micros":
                self._fields[name] *= 10 ** max(0, 6 - length)
                self.fraction_digits = width if key != "US" else self.fraction_digits
            case _ if name == "year":
                self._year_digits = width
                if width < 4 and length < 4:
                    self._fields[name] = _full_year(value)

    def _sign_of_zone(self) -> None:
        here = self._text[self._at : self._at + 1]
        if here in ("+", "-", " "):
            self._zone_sign = -1 if here == "-" else 1
            self._at += 1
        else:
            self._zone_sign = -1 if self._skipped > 0 and self._text[self._at - 1] == "-" else 1

    def _integer(self, node: _Node, width: int, is_last_digit: bool) -> tuple[int, int]:
        """Takes in an integer, and returns it with how many characters it took, spaces before it included."""
        start = self._at
        self._skip_only_spaces()
        remaining = len(self._text) - self._at
        copied = self._text[self._at : self._at + width]
        if node.fills or node.is_ordinal or is_last_digit:
            found = _INTEGER.match(self._text, start)
            self._at = start if found is None else found.end()
        else:
            if remaining < width:
                raise SqlFailure("22007", f'source string too short for "{node.shown}" formatting field')
            found = _INTEGER.match(copied)
            used = 0 if found is None else found.end()
            if 0 < used < width:
                raise SqlFailure("22007", f'invalid value "{copied}" for "{node.shown}"')
            self._at += used
        if self._at == start:
            raise SqlFailure("22007", f'invalid value "{copied}" for "{node.shown}"')
        value = 0 if found is None else int(found[1])
        if not -_INT4 <= value < _INT4:
            raise SqlFailure("22008", f'value for "{node.shown}" in source string is out of range')
        return value, self._at - start

    def _skip_only_spaces(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in _SPACES:
            self._at += 1

    def zone(self) -> int:
        """Returns the seconds by which the zone is east of UTC."""
        return self._zone_sign * (self["zone_hours"] * 3600 + self["zone_minutes"] * 60)

    def moment(self) -> tuple[int, int]:
        """Returns the day since 1970-01-01 and the microseconds of the clock."""
        hour, minute, second = self._clock()
        day = self._day()
        micros = self["millis"] * 1000 + self["micros"]
        in_day = 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= micros < SECOND
        if not in_day:
            raise self._out_of_range()
        if self._zone_sign and not (0 <= self["zone_hours"] <= 15 and 0 <= self["zone_minutes"] < 60):
            raise SqlFailure("22009", f'time zone displacement out of range: "{self._text}"')
        return day, hour * HOUR + minute * MINUTE + second * SECOND + micros

    def _out_of_range(self) -> SqlFailure:
        return SqlFailure("22008", f'date/time field value out of range: "{self._text}"')

    def _clock(self) -> tuple[int, int, int]:
        sign, seconds = (-1 if self["second_of_day"] < 0 else 1), abs(self["second_of_day"])
        hour, minute, second = sign * (seconds // 3600), sign * (seconds // 60 % 60), sign * (seconds % 60)
        hour, minute, second = self["hour"] or hour, self["minute"] or minute, self["second"] or second
        if self._has_half_days:
            if not 1 <= hour <= 12:
                raise SqlFailure("22007", f'hour "{hour}" is invalid for the 12-hour clock')
            hour = hour % 12 + 12 * self["afternoon"]
        return hour, minute, second

    def _year(self) -> int | None:
        """Returns the year, the one before 1 being 0; None if there is none."""
        year, century, before_christ = self["year"], self["century"], self["before_christ"]
        if before_christ:
            century = -century
        if year and not (century and self._year_digits <= 2):
            year = -year if before_christ else year
            return year + (year < 0)
        if not century:
            return None
        year = abs(year) % 100 * (1 if year >= 0 else -1)
        if not self["year"]:
            return century * 100 + 1 - (100 if century >= 0 else 0)
        if not year:
            return century * 100 + (century < 0)
        return (century - 1) * 100 + year if century > 0 else (century + 1) * 100 - year + 1

    def _day(self) -> int:
        found_year = self._year()
        year, month, day = found_year or 0, 1, 1
        has_year, has_month, has_day = found_year is not None, False, False
        day_of_year = self["day_of_year"]
        if self["julian"]:
            (year, month, day), has_year, has_month, has_day = civil_of(self["julian"] - JULIAN), True, True, True
        if self["week"] and self._in_iso_weeks:
            weekday = self["weekday"]
            first = _iso_week(year, self["week"])
            after = (weekday - 2 if weekday > 1 else 6) if weekday else 0
            (year, month, day), has_year, has_month, has_day = civil_of(first + after), True, True, True
        elif self["week"]:
            day_of_year = (self["week"] - 1) * 7 + 1
        day_of_month = (self["week_of_month"] - 1) * 7 + 1 if self["week_of_month"] else self["day"]
        if day_of_month:
            day, has_day = day_of_month, True
        if self["month"]:
            month, has_month = self["month"], True
        if day_of_year and (month <= 1 or day <= 1):
            if not year and not self["before_christ"]:
                raise SqlFailure("22007", "cannot calculate day of year without year information")
            if self._in_iso_weeks:
                (year, month, day), has_year = civil_of(_iso_week(year, 1) - 1 + day_of_year), True
            else:
                month, day = _month_and_day(year, month, day, day_of_year)
            has_month = has_day = True
        wrong = (has_month and not 1 <= month <= 12) or (has_day and not 1 <= day <= 31)
        if wrong or (has_year and has_month and has_day and day > days_in(year, month)):
            raise self._out_of_range()
        return days_of(year, month, day)


def _may_be_digits(node: _Node) -> bool:
    """Tells whether a number right before this part of a template must not take its digits."""
    if node.kind == "pattern":
        return node.key not in _NO_DIGITS
    return node.shown.isascii() and node.shown.isdigit()


def _full_year(year: int) -> int:
    """Returns the year nearest to 2020 of which the last digits are given."""
    if year < 70 or 100 <= year < 520:
        return year + 2000
    if year < 100:
        return year + 1900
    return year + 1000 if year < 1000 else year


def _iso_week(year: int, week: int) -> int:
    """Returns the Monday of a week of ISO 8601: the first has the 4th of January."""
    fourth = days_of(year, 1, 4)
    return fourth - (fourth + 3) % 7 + (week - 1) * 7


def _month_and_day(year: int, month: int, day: int, day_of_year: int) -> tuple[int, int]:
    """Returns what a day of the year says about month and day, as far as these are not known."""
    found, before = 1, 0
    while found <= 12 and day_of_year > before + days_in(year, found):
        before += days_in(year, found)
        found += 1
    return (found if month <= 1 else month), (day_of_year - before if day <= 1 else day)
