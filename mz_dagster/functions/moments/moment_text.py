"""The text of dates, timestamps and times, read as PostgreSQL 15 does with `DateStyle` "ISO, MDY" in UTC.

Owns the forms `2020-01-08`, `1/8/2020`, `January 8, 2020`, `08-Jan-2020`, `20200108`, `2020.008`, `J2458857`,
`y2020m01d08`, `epoch`, each with a time (`04:05:06.7`, `040506`, `4:05 PM`, `allballs`) and a zone (`Z`, `UTC`, `+01`,
`-03:30`, `Europe/Berlin`) around it. A text is cut into fields; what a number means is told by the fields before it.
Narrower than PostgreSQL: years 1 to 9999, times before 24:00:00, no word for the present, and of the
abbreviations of zones those of UTC only.
"""

from __future__ import annotations

import re
import string

from mz_dagster.functions.moments.calendar import (
    AFTER,
    BEFORE,
    DAY,
    FIRST_DAY,
    HOUR,
    JULIAN,
    LAST_DAY,
    MINUTE,
    MONTHS,
    SECOND,
    checked_moment,
    civil_of,
    days_in,
    days_of,
)
from mz_dagster.functions.moments.zones import NAMES_OF_UTC, moment_of, zone_named
from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.functions.registry import SqlFailure, function, pure
from mz_dagster.scalars.types import Kind
from mz_dagster.scalars.values import ZonedTime


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MAX_FIELDS = 25
_INT4 = 2**31 - 1
_MONTHS = {word: n for n, name in enumerate(MONTHS, 1) for word in (name.lower(), name[:3].lower())} | {"sept": 9}
_WEEKDAYS = _words(
    "sun sunday mon monday tue tues tuesday wed weds wednesday thu thur thurs thursday fri friday sat saturday"
)
#: What a word says that the number behind it counts.
_LABELS = {
    "y": "year", "m": "month", "d": "day", "h": "hour", "mm": "minute", "s": "second",
    "j": "julian", "jd": "julian", "julian": "julian", **dict.fromkeys(("dow", "doy", "isodow", "isoyear"), "none"),
}  # fmt: skip
_PRESENT = frozenset(("now", "today", "tomorrow", "yesterday"))
_INFINITIES = frozenset(("infinity", "-infinity"))
_UTC = frozenset(("utc", "uct", "ut", "gmt", "z", "zulu"))
#: The words that a digit or a plus sign may follow as a field of its own.
_KEYWORDS = {
    *_MONTHS, *_WEEKDAYS, *_LABELS, *_PRESENT, *_INFINITIES,
    "ad", "allballs", "am", "at", "bc", "dst", "epoch", "on", "pm", "t",
}  # fmt: skip
#: PostgreSQL's abbreviations of other zones.
_ABBREVIATIONS = _words(
    """acdt acsst acst act acwst adt aedt aesst aest aft akdt akst almst almt amst amt anast anat arst art ast awsst
    awst azost azot azst azt bdst bdt bnt bort bot bra brst brt bst btt cadt cast cct cdt cest cet cetdst chadt chast
    chut ckt clst clt cot cst cxt davt ddut easst east eat edt eest eet eetdst egst egt est fet fjst fjt fkst fkt fnst
    fnt galt gamt gest get gft gilt gyt hkt hst ict idt iot irkst irkt irt ist jayt jst kdt kgst kgt kost krast krat kst
    lhdt lhst ligt lint lkt magst magt mart mawt mdt mest mesz met metdst mez mht mmt mpt msd msk mst mut mvt myt ndt
    nft novst novt npt nst nut nzdt nzst nzt omsst omst pdt pet petst pett pgt phot pht pkst pkt pmdt pmst pont pst pwt
    pyst pyt ret sadt sast sct sgt taht tft tjt tkt tmt tot truk tvt ulast ulat uyst uyt uzst uzt vet vlast vlat volt
    vut wadt wakt wast wat wdt west wet wetdst wft wgst wgt xjt yakst yakt yapt yekst yekt"""
)

#: The form that most texts have, read ten times as fast; days that a month may not have are left to the fields.
_ISO = re.compile(
    "([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    r"(?:[ T]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?"
    "(Z|[+-](?:0[0-9]|1[0-5])(?::[0-5][0-9])?)?)?"
)
_TOKEN = re.compile(
    r"""[ \t\n\v\f\r]+
    | (?P<time> [0-9]+ : [0-9:.]*)
    | (?P<date> [0-9]+ (?: - (?: [0-9]+ (?: - [0-9-]* )? | [0-9a-z-]* )
                         | / (?: [0-9]+ (?: / [0-9/]* )? | [0-9a-z/]* )
                         | \. (?: [0-9]+ \. [0-9.]* | (?![0-9]) [0-9a-z.]* ) ) )
    | (?P<number> [0-9]+ (?: \. [0-9]+ )? | \. [0-9]* )
    | (?P<word> [a-z]+ )
    | (?P<zone> [+-] [ \t\n\v\f\r]* [0-9] [0-9:.-]* )
    | (?P<signed> [+-] [ \t\n\v\f\r]* [a-z]+ )
    """,
    re.VERBOSE,
)
_WORDS_REST = re.compile(r"[-+/_.:a-z0-9]*")
_ZONE = re.compile("([+-])([+-]?[0-9]+|)(?::([+-]?[0-9]+|)(?::([+-]?[0-9]+|))?)?")
_CLOCK = re.compile(r"([0-9]+):([0-9]*)(?::([0-9]*))?(?:\.([0-9]*))?")
_DATE_PART = re.compile("[0-9]+|[a-z]+")
#: A zone by the rules of POSIX, `EST5EDT`.
_POSIX_ZONE = re.compile(
    "[^-+,0-9]+{offset}(?:[^-+,0-9]+(?:{offset})?)?".replace(
        "{offset}", "[-+]?0*(?:16[0-7]|1[0-5][0-9]|[0-9]{1,2})(?::[0-5]?[0-9](?::(?:[0-5]?[0-9]|60))?)?(?![0-9:])"
    )
)
#: Zones that never had another offset.
_FIXED_ZONE = re.compile("etc/.*|universal|greenwich|gmt[-+]?0")
_PUNCTUATION = frozenset(string.punctuation) - frozenset("+-.")

# What is known already, as bits.
_YEAR, _MONTH, _DAY, _HOUR, _MINUTE, _SECOND, _FRACTION = (1 << bit for bit in range(7))
_OFFSET, _SUMMER, _HALF, _ERA, _WEEKDAY, _YEARDAY, _RESERVED = (1 << bit for bit in range(7, 14))
_DATE, _TIME = _YEAR | _MONTH | _DAY, _HOUR | _MINUTE | _SECOND | _FRACTION
_LABELLED = {"year": _YEAR, "month": _MONTH, "day": _DAY, "hour": _HOUR, "minute": _MINUTE, "second": _SECOND}


class _Unreadable(Exception):
    """Says why a text is not read: PostgreSQL's code, and its message with `{type}` and `{text}`."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(sqlstate, message)
        self.sqlstate, self.message = sqlstate, message


_BAD_FORMAT = ("22007", 'invalid input syntax for type {type}: "{text}"')
_OUT_OF_RANGE = ("22008", 'date/time field value out of range: "{text}"')
_ZONE_OUT_OF_RANGE = ("22009", 'time zone displacement out of range: "{text}"')


@pure("cast_text_to_date")
def date_of_text(text: str) -> int:
    """Returns the date that `text` spells; its time and its zone are ignored.

    Example:
        >>> date_of_text("1/2/1970"), date_of_text("Jan 2, 1970 04:05 PM"), date_of_text("19700102")
        (1, 1, 1)
    """
    if (known := _iso(text)) is not None:
        return known[0]
    try:
        found = _Moment(text, 129, clock_only=False)
        if found.is_epoch:
            return 0
        if found.infinity:
            return AFTER if found.infinity == "infinity" else BEFORE
        day = found.day_number
    except _Unreadable as why:
        raise _failure(why, "date", text) from None
    if not FIRST_DAY <= day <= LAST_DAY:
        raise SqlFailure("22008", f'date out of range: "{text}"')
    return day


@pure("cast_text_to_timestamp")
def timestamp_of_text(text: str) -> int:
    """Returns the timestamp that `text` spells; its zone is ignored.

    Example:
        >>> timestamp_of_text("08-Jan-1970 00:00:01.5 -03:00") - 7 * DAY
        1500000
    """
    return _moment(text, "timestamp", zoned=False)


@pure("cast_text_to_timestamptz")
def timestamptz_of_text(text: str) -> int:
    """Returns the timestamp that `text` spells, in UTC if it names no zone.

    Example:
        >>> timestamptz_of_text("1970-01-01 01:00 +01:30") // MINUTE
        -30
    """
    return _moment(text, "timestamp with time zone", zoned=True)


@function("timestamptz_of_text_in_zone", (Kind.TEXT, Kind.TEXT), Kind.TIMESTAMPTZ, fallible=True, internal=True)
def timestamptz_of_text_in_zone(zone: str, text: str) -> int:
    """Returns the timestamp that `text` spells, in a zone of this name if it names none.

    Example:
        >>> [timestamptz_of_text_in_zone("Europe/Berlin", one) // HOUR for one in ("1970-01-01", "1970-01-01 00:00 Z")]
        [-1, 0]
    """
    return _moment(text, "timestamp with time zone", zoned=True, default=zone)


def _iso(text: str) -> tuple[int, int, int, bool] | None:
    """Returns day, microseconds, seconds east of UTC, and whether these are said, of a common text; None for others."""
    found = _ISO.fullmatch(text)
    if found is None or found[1] == "0000":
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    clock = 0
    if hour is not None:
        clock = (
            int(hour) * HOUR + int(minute) * MINUTE + int(second or 0) * SECOND + int((fraction or "").ljust(6, "0"))
        )
    offset = 0
    if zone is not None and zone != "Z":
        offset = int(zone[1:3]) * 3600 + int(zone[4:] or 0) * 60
    offset = -offset if zone and zone[0] == "-" else offset
    return days_of(int(year), int(month), int(day)), clock, offset, zone is not None


def _moment(text: str, type_: str, *, zoned: bool, default: str | None = None) -> int:
    zone_name = None
    if (known := _iso(text)) is not None:
        day, clock, offset, names_zone = known
    else:
        try:
            found = _Moment(text, 153, clock_only=False)
            if found.is_epoch:
                return 0
            if found.infinity:
                return (AFTER if found.infinity == "infinity" else BEFORE) * DAY
            day, clock, offset, zone_name = found.day_number, found.clock, found.offset, found.zone_name
            names_zone = found.names_zone
        except _Unreadable as why:
            raise _failure(why, type_, text) from None
    moment = day * DAY + clock - (offset * SECOND if zoned else 0)
    zone_name = zone_name if names_zone else default
    try:
        checked_moment(moment)
        return moment_of(zone_name, moment) if zoned and zone_name is not None else moment
    except SqlFailure:
        raise SqlFailure("22008", f'timestamp out of range: "{text}"') from None


@pure("cast_text_to_time")
def time_of_text(text: str) -> int:
    """Returns the time that `text` spells; a date before it and its zone are ignored.

    Example:
        >>> time_of_text("01:02:03.5"), time_of_text("12:30 am"), time_of_text("010203")
        (3723500000, 1800000000, 3723000000)
    """
    try:
        return _Moment(text, 129, clock_only=True).clock
    except _Unreadable as why:
        raise _failure(why, "time", text) from None


def timetz_of_text(text: str, default: str | None = None) -> int:
    """Returns the code of the time with a zone that `text` spells; a zone by its name has the offset of the date.

    Args:
        text: The text.
        default: The zone of a text that names none, None for UTC.

    Raises:
        SqlFailure: It spells none; or it names no zone, and `default` has no one offset.
    """
    try:
        found = _Moment(text, 129, clock_only=True)
    except _Unreadable as why:
        raise _failure(why, "time with time zone", text) from None
    zone = found.zone_name if found.names_zone else default
    if zone is None:
        return ZonedTime(found.clock, found.offset).code
    if not found.names_zone and not is_fixed(zone):
        raise SqlFailure("0A000", f'the offset of "{text}" depends on the day in the session\'s time zone')
    shown = (found.day_number if found.has_date else 0) * DAY + found.clock
    return ZonedTime(found.clock, (shown - moment_of(zone, shown)) // SECOND).code


def is_fixed(zone: str) -> bool:
    """Returns whether a zone never had another offset."""
    return zone in NAMES_OF_UTC or _FIXED_ZONE.fullmatch(zone.lower()) is not None


def _failure(why: _Unreadable, type_: str, text: str) -> SqlFailure:
    return SqlFailure(why.sqlstate, why.message.format(type=type_, text=text))


def _fields_of(text: str, size: int) -> list[tuple[str, str]]:
    """Returns the fields, each with what it looks like: `time`, `date`, `number`, `word` or `zone`."""
    if not text.isascii():
        raise _Unreadable(*_BAD_FORMAT)
    text, at = text.lower(), 0
    fields: list[tuple[str, str]] = []
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            if text[at] not in _PUNCTUATION:
                raise _Unreadable(*_BAD_FORMAT)
            at += 1
            continue
        at = found.end()
        kind, field = found.lastgroup, found[0]
        if kind is None:
            continue
        if kind == "word":
            follower = text[at : at + 1]
            if follower in ("-", "/", ".") or ((follower == "+" or follower.isdigit()) and field not in _KEYWORDS):
                rest = _WORDS_REST.match(text, at)
                assert rest is not None
                kind, field, at = "date", field + rest[0], rest.end()
        elif kind in ("zone", "signed"):
            kind, field = ("zone" if kind == "zone" else "word"), field[0] + field[1:].lstrip(" \t\n\v\f\r")
        fields.append((kind, field))
    if len(fields) > _MAX_FIELDS or sum(len(field) + 1 for _, field in fields) > size:
        raise _Unreadable(*_BAD_FORMAT)
    return fields


class _Moment:
    """What the fields of a text say.

    Attributes:
        offset: Seconds east of UTC.
        zone_name: The zone whose rules tell the offset, or None.
        is_epoch: Whether the text is `epoch`.
        infinity: `infinity` or `-infinity` if the text is, else empty.
    """

    def __init__(self, text: str, size: int, *, clock_only: bool) -> None:
        self.year = self.month = self.day = self.year_day = 0
        self.hour = self.minute = self.second = self.micros = 0
        self.offset, self.is_epoch = 0, False
        self.zone_name: str | None = None
        self._known, self._label = 0, ""
        self._text_month = self._short_year = self._is_julian = self._before_christ = False
        self._half = self.infinity = self._refusal = ""
        self._clock_only = clock_only
        # Where only a time is wanted, a bare number is never one of a date.
        self._taken = _DATE if clock_only else 0
        fields = _fields_of(text, size)
        for i, (kind, field) in enumerate(fields):
            new = self._read(kind, field, i, fields)
            if new & self._known:
                raise _Unreadable(*_BAD_FORMAT)
            self._known |= new
        self._check()
        if self._refusal:
            raise _Unreadable("0A000", self._refusal)

    @property
    def day_number(self) -> int:
        """Days since 1970-01-01."""
        return days_of(self.year, self.month, self.day)

    @property
    def names_zone(self) -> bool:
        """Whether the text says a zone or an offset."""
        return bool(self._known & _OFFSET)

    @property
    def has_date(self) -> bool:
        """Whether the text says a day."""
        return self._known & _DATE == _DATE

    @property
    def _zone_changes(self) -> bool:
        """Whether the offset depends on the date."""
        return self.zone_name is not None and _FIXED_ZONE.fullmatch(self.zone_name.lower()) is None

    @property
    def clock(self) -> int:
        """Microseconds since midnight."""
        return self.hour * HOUR + self.minute * MINUTE + self.second * SECOND + self.micros

    def _read(self, kind: str, field: str, i: int, fields: list[tuple[str, str]]) -> int:
        """Takes in a field and returns the bits of what it says."""
        match kind:
            case "date":
                return self._date_or_zone(field, i, fields)
            case "time":
                if self._label not in ("", "time") and not self._clock_only:
                    raise _Unreadable(*_BAD_FORMAT)
                self._label = ""
                return self._colons(field)
            case "zone":
                self.offset = _offset(field)
                return _OFFSET
            case "number" if self._label:
                return self._labelled(field)
            case "number":
                return self._number(field, i, fields)
            case _:
                return self._word(field, [kind for kind, _ in fields[i + 1 :]])

    def _date_or_zone(self, field: str, i: int, fields: list[tuple[str, str]]) -> int:
        if self._clock_only:
            if i == 0 and len(fields) >= 2 and (fields[-1][0] == "date" or fields[1][0] == "time"):
                return self._date(field)
        elif self._label == "julian":
            digits = re.match("[0-9]*", field)
            assert digits is not None
            self._set_julian(_integer(digits[0]))
            self.offset, self._label = _offset(field[digits.end() :]), ""
            return _DATE | _TIME | _OFFSET
        elif not self._label and self._known & (_MONTH | _DAY) != _MONTH | _DAY:
            return self._date(field)
        if not field[0].isdigit() and (self._clock_only or not self._label):
            return self._zone_name(field, ("22023", f'time zone "{field}" not recognized'))
        # Digits of a time, and an offset.
        if self._label not in ("", "time") and not self._clock_only:
            raise _Unreadable(*_BAD_FORMAT)
        self._label = ""
        digits_, sign, offset = field.partition("-")
        if self._known & _TIME == _TIME or not sign:
            raise _Unreadable(*_BAD_FORMAT)
        self.offset = _offset(sign + offset)
        return self._run_together(digits_, self._known | self._taken) | _OFFSET

    def _zone_name(self, field: str, unknown: tuple[str, str]) -> int:
        """Takes in the name of a zone; `unknown` is the error if there is none."""
        self.offset, self.zone_name = 0, zone_named(field)
        if self.zone_name is None and not _POSIX_ZONE.fullmatch(field):
            raise _Unreadable(*unknown)
        if self.zone_name is None:
            self._refusal = f'the time zone "{field}" is not supported'
        return _OFFSET

    def _date(self, field: str) -> int:
        """Takes in a date of several parts."""
        parts = _parts_of(field)
        known, new, has_text_month = self._known, 0, False
        for part in parts:
            if part.isalpha():
                if part not in _MONTHS or (known | new) & _MONTH:
                    raise _Unreadable(*_BAD_FORMAT)
                self.month, has_text_month = _MONTHS[part], True
                new |= _MONTH
        for part in parts:
            if not part.isalpha():
                said = self._date_part(part, known | new, text_month=has_text_month)
                if (known | new) & said:
                    raise _Unreadable(*_BAD_FORMAT)
                new |= said
        if (known | new) & ~(_YEARDAY | _OFFSET) != _DATE:
            raise _Unreadable(*_BAD_FORMAT)
        return new

    def _date_part(self, digits: str, known: int, *, text_month: bool) -> int:
        """Takes in a number of a date, by what is known."""
        whole, point, fraction = digits.partition(".")
        if not whole:
            raise _Unreadable(*_BAD_FORMAT)
        value, length = _integer(whole), len(digits)
        if point:
            if len(whole) > 2:
                return self._run_together(digits, known | _DATE)
            self.micros = _micros(fraction)
        date = known & _DATE
        if length == 3 and date == _YEAR and 1 <= value <= 366:
            self.year_day = value
            return _YEARDAY | _MONTH | _DAY
        # Month, day and year are their order, unless a long number must be the year.
        if date == _YEAR | _MONTH and text_month and length >= 3 and self._short_year:
            self.day, self.year, self._short_year = self.year, value, False
            return _DAY
        if date in (0, _MONTH) and length >= 3 and (date == 0 or text_month):
            part = _YEAR
        elif date in (0, _YEAR, _DAY):
            part = _MONTH
        elif date in (_MONTH, _YEAR | _MONTH):
            part = _DAY
        elif date == _MONTH | _DAY:
            part = _YEAR
        elif date == _DATE:
            return self._run_together(digits, known)
        else:
            raise _Unreadable(*_BAD_FORMAT)
        self._set(part, value)
        if part == _YEAR:
            self._short_year = length <= 2
        return part

    def _set(self, part: int, value: int) -> None:
        if part == _YEAR:
            self.year = value
        elif part == _MONTH:
            self.month = value
        else:
            self.day = value

    def _run_together(self, digits: str, known: int) -> int:
        """Takes in digits that are a date, `[YY]YYMMDD`, or a time, `HHMM[SS]`."""
        whole, point, fraction = digits.partition(".")
        if point:
            self.micros = _micros(fraction)
        elif known & _DATE != _DATE and len(whole) >= 6:
            self.year, self.month, self.day = _integer(whole[:-4]), int(whole[-4:-2]), int(whole[-2:])
            self._short_year = self._short_year or len(whole) == 6
            return _DATE
        if known & _TIME == _TIME or len(whole) not in (4, 6):
            raise _Unreadable(*_BAD_FORMAT)
        self.hour, self.minute, self.second = int(whole[:2]), int(whole[2:4]), int(whole[4:] or 0)
        return _TIME

    def _colons(self, field: str) -> int:
        """Takes in a time with colons; `MM:SS.sss` has no hours."""
        found = _CLOCK.fullmatch(field)
        if found is None:
            raise _Unreadable(*_BAD_FORMAT)
        first, second = _integer(found[1]), _integer(found[2])
        self.micros = _micros(found[4] or "")
        if found[3] is None and found[4] is not None:
            self.hour, self.minute, self.second = 0, first, second
        else:
            self.hour, self.minute, self.second = first, second, _integer(found[3] or "")
        if self.minute > 59 or self.second > 60 or (self.clock > DAY and not self._clock_only):
            raise _Unreadable(*_OUT_OF_RANGE)
        return _TIME

    def _labelled(self, field: str) -> int:
        """Takes in a number behind a word that says what it counts."""
        label, self._label = self._label, ""
        whole, point, fraction = field.partition(".")
        value = _integer(whole)
        if label == "none" or (point and label not in ("julian", "time", "second")):
            raise _Unreadable(*_BAD_FORMAT)
        self.is_epoch, self.infinity = False, ""
        match label:
            case "time":
                if self._run_together(field, self._known | _DATE) != _TIME:
                    raise _Unreadable(*_BAD_FORMAT)
                return _TIME
            case "julian":
                self._set_julian(value)
                if not point:
                    return _DATE
                clock = int(float(f"0.{fraction or 0}") * DAY)
                self.hour, clock = divmod(clock, HOUR)
                self.minute, clock = divmod(clock, MINUTE)
                self.second, self.micros = divmod(clock, SECOND)
                return _DATE | _TIME
            case "month" if self._known & _MONTH and self._known & _HOUR:
                # `m` behind hours counts minutes.
                label = "minute"
        setattr(self, label, value)
        if point:
            self.micros = _micros(fraction)
            return _SECOND | _FRACTION
        return _LABELLED[label]

    def _set_julian(self, number: int) -> None:
        self.year, self.month, self.day = civil_of(number - JULIAN)
        self._is_julian = True

    def _number(self, field: str, i: int, fields: list[tuple[str, str]]) -> int:
        whole, point, _ = field.partition(".")
        if self._clock_only:
            if point and i == 0 and len(fields) >= 2 and fields[-1][0] == "date":
                return self._date(field)
            if point and len(whole) <= 2:
                raise _Unreadable(*_BAD_FORMAT)
            if point or len(field) > 4:
                return self._run_together(field, self._known | _DATE)
            return self._date_part(field, self._known | _DATE, text_month=False)
        if point and not self._known & _DATE:
            return self._date(field)
        if point and len(whole) > 2:
            return self._run_together(field, self._known)
        if len(field) >= 6 and not (self._known & _DATE and self._known & _TIME):
            return self._run_together(field, self._known)
        return self._date_part(field, self._known, text_month=self._text_month)

    def _word(self, word: str, following: list[str]) -> int:
        if word in _UTC:
            self.offset = 0
            return _OFFSET
        if word in _ABBREVIATIONS:
            self._refusal = f'the time zone "{word}" is not supported'
            return _OFFSET
        if word in ("at", "on"):
            return 0
        if word in _LABELS:
            self._label = _LABELS[word]
            return 0
        match word:
            case "t":
                dated = self._clock_only or self._known & _DATE == _DATE
                if not dated or not following or following[0] not in ("number", "time", "date"):
                    raise _Unreadable(*_BAD_FORMAT)
                self._label = "time"
                return 0
            case "am" | "pm":
                self._half = word
                return _HALF
            case "ad" | "bc":
                self._before_christ = word == "bc"
                return _ERA
            case "dst":
                self.offset += 3600
                return _SUMMER
            case "allballs":
                self.is_epoch, self.infinity = False, ""
                self.hour = self.minute = self.second = self.micros = self.offset = 0
                return _TIME | _OFFSET
        if self._clock_only and word in _KEYWORDS and word != "now":
            raise _Unreadable(*_BAD_FORMAT)
        if word == "epoch":
            self.is_epoch = True
            return _RESERVED
        if word in _INFINITIES:
            self.infinity = word
            return _RESERVED
        if word in _PRESENT:
            self._refusal = f'{{type}} "{word}" is not supported'
            self.is_epoch, self.infinity = False, ""
            # Any date will do.
            self.year, self.month, self.day = 1970, 1, 1
            return _TIME if self._clock_only else _DATE | _TIME | _OFFSET if word == "now" else _DATE
        if word in _WEEKDAYS:
            return _WEEKDAY
        if word in _MONTHS:
            said = _MONTH
            if self._known & _MONTH and not self._text_month and not self._known & _DAY and 1 <= self.month <= 31:
                # The number before it, taken for a month, is the day.
                self.day, said = self.month, _DAY
            self.month, self._text_month = _MONTHS[word], True
            return said
        if word in _KEYWORDS:
            raise _Unreadable(*_BAD_FORMAT)
        return self._zone_name(word, _BAD_FORMAT)

    def _check(self) -> None:
        """Checks what could not be until all was read, and finishes the year and the hour."""
        self._check_date()
        if self._half and self.hour > 12:
            raise _Unreadable(*_OUT_OF_RANGE)
        if self._half == "am" and self.hour == 12:
            self.hour = 0
        elif self._half == "pm" and self.hour != 12:
            self.hour += 12
        if self.is_epoch or self.infinity:
            return
        if self._clock_only and (self.minute > 59 or self.second > 60 or self.clock > DAY):
            raise _Unreadable(*_OUT_OF_RANGE)
        needed = _TIME if self._clock_only else _DATE
        if self._known & needed != needed:
            raise _Unreadable(*_BAD_FORMAT)
        if self._known & _SUMMER and (self.zone_name is not None or not self._known & _OFFSET):
            raise _Unreadable(*_BAD_FORMAT)
        if self._clock_only and self._known & _DATE != _DATE and self._zone_changes:
            raise _Unreadable(*_BAD_FORMAT)
        if self._clock_only and self.clock == DAY:
            raise _Unreadable(*_OUT_OF_RANGE)

    def _check_date(self) -> None:
        known = self._known
        if known & _YEAR and not self._is_julian:
            if self._short_year and self.year < 100 and not self._before_christ:
                self.year += 2000 if self.year < 70 else 1900
            if self.year <= 0:
                raise _Unreadable(*_OUT_OF_RANGE)
            if self._before_christ:
                self.year = 1 - self.year
        if known & _YEARDAY:
            day = days_of(self.year, 1, 1) + self.year_day - 1
            self.year, self.month, self.day = civil_of(day)
        wrong_month = known & _MONTH and not 1 <= self.month <= 12
        wrong_day = known & _DAY and not 1 <= self.day <= 31
        if wrong_month or wrong_day or (known & _DATE == _DATE and self.day > days_in(self.year, self.month)):
            raise _Unreadable(*_OUT_OF_RANGE)


def _parts_of(field: str) -> list[str]:
    """Returns the parts of a date, which are letters or digits; any one character behind a part separates."""
    parts, at = [], 0
    while at < len(field):
        while at < len(field) and not field[at].isalnum():
            at += 1
        found = _DATE_PART.match(field, at)
        if found is None:
            raise _Unreadable(*_BAD_FORMAT)
        parts.append(found[0])
        at = found.end() + 1
    return parts


def _offset(field: str) -> int:
    """Returns the seconds of `+HH[[:]MM[:SS]]`."""
    found = _ZONE.match(field)
    if found is None:
        raise _Unreadable(*_BAD_FORMAT)
    hours, minutes, seconds = (int(found[i] or 0) for i in (2, 3, 4))
    if found[3] is None and found.end() == len(field) and len(field) > 3:
        hours, minutes = divmod(hours, 100)
    if not (0 <= hours <= 15 and 0 <= minutes <= 59 and 0 <= seconds <= 59):
        raise _Unreadable(*_ZONE_OUT_OF_RANGE)
    if found.end() != len(field):
        raise _Unreadable(*_BAD_FORMAT)
    size = hours * 3600 + minutes * 60 + seconds
    return size if found[1] == "+" else -size


def _integer(digits: str) -> int:
    value = whole_number(digits or "0")
    if value > _INT4:
        raise _Unreadable(*_OUT_OF_RANGE)
    return value


def _micros(fraction: str) -> int:
    """Returns the microseconds of a fraction's digits, through a double as PostgreSQL does it."""
    return round(float(f"0.{fraction or 0}") * SECOND)
