"""Days and dates of the proleptic Gregorian calendar, also beyond the years that values may have.

Sums with intervals pass through years that no value has: months are added first, then days. PostgreSQL's own range,
4713 BC to 294276, bounds what they may pass through.
"""

from __future__ import annotations

from mz_dagster.functions.registry import SqlFailure

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
#: 0001-01-01 and 9999-12-31, as days since 1970-01-01.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
#: 2000-01-01, from which PostgreSQL counts days and moments, and so rounds away; as days since 1970-01-01.
MILLENNIUM_DAY = 10_957
#: What stands for the infinite days.
BEFORE, AFTER = FIRST_DAY - 1, LAST_DAY + 1
#: 1970-01-01 as a Julian day.
JULIAN = 2_440_588
#: PostgreSQL's first day, 4714-11-24 BC, and the day behind its last, as days since 1970-01-01.
EARLIEST_DAY, END_DAY = -JULIAN, 106_751_983
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_OUT_OF_RANGE = ("22008", "timestamp out of range")


def civil_of(days: int) -> tuple[int, int, int]:
    """Returns year, month and day of a day since 1970-01-01; the year before 1 is 0.

    Example:
        >>> civil_of(0), civil_of(-1), civil_of(11016)
        ((1970, 1, 1), (1969, 12, 31), (2000, 2, 29))
    """
    # Years begin in March, so that the leap day is a year's last; 400 years have 146,097 days.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year + (month <= 2), month, day + 1


def days_of(year: int, month: int, day: int) -> int:
    """Returns the days since 1970-01-01 of a date.

    Example:
        >>> days_of(2000, 2, 29), days_of(1, 1, 1)
        (11016, -719162)
    """
    year -= month <= 2
    era, year = divmod(year, 400)
    month = month - 3 if month > 2 else month + 9
    return era * 146_097 + year * 365 + year // 4 - year // 100 + (153 * month + 2) // 5 + day - 1 - 719_468


def days_in(year: int, month: int) -> int:
    """Returns how many days a month has.

    Example:
        >>> days_in(2000, 2), days_in(1900, 2)
        (29, 28)
    """
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def checked_moment(microseconds: int) -> int:
    """Returns a timestamp, which must be of the years 1 to 9999."""
    if not FIRST_DAY * DAY <= microseconds < (LAST_DAY + 1) * DAY:
        raise SqlFailure(*_OUT_OF_RANGE)
    return microseconds


def later(moment: int, months: int, days: int, microseconds: int) -> int:
    """Returns a timestamp so many months, then days, then microseconds later; a month's last day is its latest.

    Example:
        >>> later(days_of(2020, 1, 31) * DAY, 1, 0, 0) == days_of(2020, 2, 29) * DAY
        True
    """
    day, clock = divmod(moment, DAY)
    if months:
        year, month, day_of_month = civil_of(day)
        year, month = divmod(year * 12 + month - 1 + months, 12)
        day = _passable(days_of(year, month + 1, min(day_of_month, days_in(year, month + 1))))
    day = _passable(day + days)
    return checked_moment(day * DAY + clock + microseconds)


def _passable(day: int) -> int:
    if not EARLIEST_DAY <= day < END_DAY:
        raise SqlFailure(*_OUT_OF_RANGE)
    return day
