"""Time zones by their IANA names: between moments and the readings of their clocks.

The rules are those of the machine's time zone database, or of the package tzdata, as Python finds them; PostgreSQL on
the same machine has the same. A reading that a clock shows twice is the later moment, and one that it leaves out is
taken by the offset before: both are the smaller of the two offsets there are.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from mz_dagster.functions.moments.calendar import SECOND, checked_moment
from mz_dagster.functions.moments.interval_text import Span, text_of_interval
from mz_dagster.functions.registry import SqlFailure, pure

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


@pure("timezone_text_timestamptz")
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


@pure("timezone_text_timestamp")
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


@pure("timezone_interval_timestamptz")
def shifted_reading(zone: Span, moment: int) -> int:
    """Returns what clocks with an offset from UTC show at a moment."""
    return checked_moment(moment + _offset(zone))


@pure("timezone_interval_timestamp")
def shifted_moment(zone: Span, shown: int) -> int:
    """Returns the moment at which clocks with an offset from UTC show a reading."""
    return checked_moment(shown - _offset(zone))


def _offset(zone: Span) -> int:
    """Returns the microseconds of an offset, whose fraction of a second does not count."""
    if zone[0] or zone[1]:
        raise SqlFailure("22023", f'interval time zone "{text_of_interval(zone)}" must not include months or days')
    whole = abs(zone[2]) // SECOND * SECOND
    return whole if zone[2] >= 0 else -whole
