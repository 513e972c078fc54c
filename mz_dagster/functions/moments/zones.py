"""Time zones by their IANA names: between moments and the readings of their clocks.

The rules are those of the machine's time zone database, or of the package tzdata, as Python finds them; PostgreSQL on
the same machine has the same. A reading that a clock shows twice is the later moment, and one that it leaves out is
taken by the offset before: both are the smaller of the two offsets there are.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from mz_dagster.functions.moments.calendar import AFTER, BEFORE, DAY, SECOND, checked_moment, later
from mz_dagster.functions.moments.interval_text import Span, text_of_interval
from mz_dagster.functions.moments.moment import text_of_timestamp
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

_UTC = ("UTC", "UCT", "GMT", "Zulu", "Universal", "Greenwich")
#: Names of UTC; the longer ones are what a JVM calls it on many machines.
NAMES_OF_UTC = (*_UTC, *(f"Etc/{one}" for one in _UTC))
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
#: The names of zones by themselves in lower case, once one was looked up.
_ZONES: dict[str, str] = {}


def zone_named(text: str) -> str | None:
    """Returns the name of the zone that `text` names in any case; None if there is none.

    Example:
        >>> zone_named("europe/BERLIN"), zone_named("Europe/Nowhere")
        ('Europe/Berlin', None)
    """
    if not _ZONES:
        _ZONES.update({name.lower(): name for name in available_timezones()})
    return _ZONES.get(text.lower())


def zone_of_hours(text: str) -> str | None:
    """Returns the name of the zone that is so many whole hours ahead of UTC; None if `text` is no such number.

    Example:
        >>> zone_of_hours("2"), zone_of_hours("-8.0"), zone_of_hours("0"), zone_of_hours("5.5")
        ('Etc/GMT-2', 'Etc/GMT+8', 'UTC', None)
    """
    try:
        hours = float(text)
    except ValueError:
        return None
    if not hours.is_integer():
        return None
    return f"Etc/GMT{-int(hours):+}" if hours else "UTC"


@function("timezone_text_timestamptz", (Kind.TEXT, Kind.TIMESTAMPTZ), Kind.TIMESTAMP, sql="timezone", fallible=True)
def reading(zone: str, moment: int) -> int:
    """Returns what the clocks of a zone show at a moment.

    Example:
        >>> reading("Europe/Berlin", 0) == 3600 * SECOND
        True
    """
    try:
        local = (_EPOCH.replace(tzinfo=UTC) + moment * _MICROSECOND).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    except OverflowError:
        raise SqlFailure("22008", "timestamp out of range") from None
    return checked_moment((local - _EPOCH) // _MICROSECOND)


@function("timezone_text_timestamp", (Kind.TEXT, Kind.TIMESTAMP), Kind.TIMESTAMPTZ, sql="timezone", fallible=True)
def moment_of(zone: str, shown: int) -> int:
    """Returns the moment at which the clocks of a zone show a reading.

    Example:
        >>> moment_of("Europe/Berlin", 3600 * SECOND)
        0
    """
    local = (_EPOCH + shown * _MICROSECOND).replace(tzinfo=ZoneInfo(zone))
    try:
        offset = min(local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    except OverflowError:
        raise SqlFailure("22008", "timestamp out of range") from None
    return checked_moment(shown - offset // _MICROSECOND)


@function(
    "timezone_interval_timestamptz", (Kind.INTERVAL, Kind.TIMESTAMPTZ), Kind.TIMESTAMP, sql="timezone", fallible=True
)
def shifted_reading(zone: Span, moment: int) -> int:
    """Returns what clocks with an offset from UTC show at a moment."""
    return checked_moment(moment + offset_of(zone))


@function(
    "timezone_interval_timestamp", (Kind.INTERVAL, Kind.TIMESTAMP), Kind.TIMESTAMPTZ, sql="timezone", fallible=True
)
def shifted_moment(zone: Span, shown: int) -> int:
    """Returns the moment at which clocks with an offset from UTC show a reading."""
    return checked_moment(shown - offset_of(zone))


def offset_of(zone: Span) -> int:
    """Returns the microseconds of an offset, whose fraction of a second does not count."""
    if zone[0] or zone[1]:
        raise SqlFailure("22023", f'interval time zone "{text_of_interval(zone)}" must not include months or days')
    whole = abs(zone[2]) // SECOND * SECOND
    return whole if zone[2] >= 0 else -whole


@function("text_of_timestamptz_in_zone", (Kind.TEXT, Kind.TIMESTAMPTZ), Kind.TEXT, internal=True)
def text_of_timestamptz_in_zone(zone: str, moment: int) -> str:
    """Returns the text of a timestamp as the clocks of a zone show it, with their offset from UTC.

    Example:
        >>> text_of_timestamptz_in_zone("Asia/Kolkata", 0)
        '1970-01-01 05:30:00+05:30'
    """
    if moment in (BEFORE * DAY, AFTER * DAY):
        return "infinity" if moment > 0 else "-infinity"
    shown = reading(zone, moment)
    minutes, seconds = divmod(abs(shown - moment) // SECOND, 60)
    parts = [f"{minutes // 60:02}", f"{minutes % 60:02}", f"{seconds:02}"]
    while len(parts) > 1 and parts[-1] == "00":
        parts.pop()
    return f"{text_of_timestamp(shown)}{'-' if shown < moment else '+'}{':'.join(parts)}"


@function(
    "add_timestamptz_interval_in_zone",
    (Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL),
    Kind.TIMESTAMPTZ,
    fallible=True,
    internal=True,
)
def later_in_zone(zone: str, moment: int, span: Span) -> int:
    """Returns a timestamp plus an interval: months and days by the clocks of a zone, then microseconds.

    Example:
        >>> later_in_zone("Europe/Berlin", 7_340_400 * SECOND, (0, 1, 0)) // SECOND - 7_340_400
        86400
    """
    months, days, microseconds = span
    if moment in (BEFORE * DAY, AFTER * DAY):
        return moment
    for by in ((months, 0), (0, days)):
        if any(by):
            moment = moment_of(zone, later(reading(zone, moment), *by, 0))
    return checked_moment(moment + microseconds)


@function(
    "date_trunc_in_zone",
    (Kind.TEXT, Kind.INT8, Kind.TIMESTAMPTZ),
    Kind.TIMESTAMPTZ,
    fallible=True,
    internal=True,
)
def truncated_in_zone(zone: str, unit: int, moment: int) -> int:
    """Returns the beginning of a timestamp's hour, minute and so on, by the clocks of a zone.

    Args:
        zone: Its name.
        unit: Microseconds of an hour, minute and so on.
        moment: The timestamp.
    """
    return moment if moment in (BEFORE * DAY, AFTER * DAY) else moment - reading(zone, moment) % unit
