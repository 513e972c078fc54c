"""What the functions and operators of moments and intervals are for, each with an example."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.function import Description

DESCRIPTIONS: Mapping[str, Description] = {
    "age": Description(
        "What lies between two moments, in years, months, days and a time.",
        "age(timestamp '2001-04-10', timestamp '1957-06-13')",
        "43 years 9 mons 27 days",
    ),
    "date_bin": Description(
        "The beginning of the interval, counted from an origin, that a moment is in.",
        "date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01')",
        "2020-02-11 15:30:00",
    ),
    "isfinite": Description("Whether a moment or interval is finite.", "isfinite(date '2001-02-16')", "true"),
    "justify_days": Description(
        "An interval with 30 days as a month.", "justify_days(interval '35 days')", "1 mon 5 days"
    ),
    "justify_hours": Description(
        "An interval with 24 hours as a day.", "justify_hours(interval '27 hours')", "1 day 03:00:00"
    ),
    "justify_interval": Description(
        "An interval with both, and one sign.", "justify_interval(interval '1 mon -1 hour')", "29 days 23:00:00"
    ),
    "make_date": Description("The date of a year, month and day.", "make_date(2013, 7, 15)", "2013-07-15"),
    "make_time": Description("The time of an hour, minute and seconds.", "make_time(8, 15, 23.5)", "08:15:23.5"),
    "make_interval": Description(
        "The interval of years, months, weeks, days, hours, minutes and seconds, each by its name.",
        "make_interval(days => 10)",
        "10 days",
    ),
    "make_timestamp": Description(
        "The timestamp of a year, month, day, hour, minute and seconds.",
        "make_timestamp(2013, 7, 15, 8, 15, 23.5)",
        "2013-07-15 08:15:23.5",
    ),
    "make_timestamptz": Description(
        "Likewise with a time zone.", "make_timestamptz(2013, 7, 15, 8, 15, 23.5)", "2013-07-15 08:15:23.5+00"
    ),
    "timezone": Description(
        "A moment in a time zone, or the instant that it is there: `AT TIME ZONE`.",
        "timezone('Europe/Berlin', timestamptz '2024-07-01 12:00+00')",
        "2024-07-01 14:00:00",
    ),
    "to_char": Description(
        "A number, moment or interval as text, by a template.",
        "to_char(timestamp '2002-04-20 17:31:12.66', 'HH12:MI:SS')",
        "05:31:12",
    ),
    "to_date": Description(
        "The date that a text spells by a template.", "to_date('05 Dec 2000', 'DD Mon YYYY')", "2000-12-05"
    ),
    "to_timestamp": Description(
        "The instant that a text spells by a template, or of seconds since 1970.",
        "to_timestamp('05 Dec 2000', 'DD Mon YYYY')",
        "2000-12-05 00:00:00+00",
    ),
}
