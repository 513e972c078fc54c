"""Texts of times made at random mean to us what they mean to PostgreSQL 15: of intervals, of templates, in zones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from mz_dagster.functions.moments.calendar import DAY, HOUR, MINUTE, civil_of, days_of
from mz_dagster.functions.moments.interval_text import clock_text, interval_of, text_of_interval
from mz_dagster.functions.moments.moment_templates import date_by_template, timestamptz_by_template
from mz_dagster.functions.moments.moment_text import (
    date_of_text,
    time_of_text,
    timestamp_of_text,
    timestamptz_of_text,
)
from mz_dagster.functions.moments.templates import interval_text, timestamp_text, timestamptz_text
from mz_dagster.functions.moments.zones import moment_of, reading
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from tests.postgres_server import Postgres

_FRAGMENTS = (
    "1", "2.5", "-3", "+4", "0.7", "day", "days", "hours", "mon", "years", "ago", "1:2", "-1:2:3.5", "1-2", "P", "T",
    "1Y", "2M", "sec", "ms", ".5", "@", "w", "4H", "-", "5M", "0.3", "century", "20200101", "2147483647", "99999999999",
)  # fmt: skip
_DATES = (
    "infinity", "-Infinity", "+infinity",
    "2020-02-29", "2/30/2021", "1/8/1999", "13/1/2020", "1-8-99", "99-1-8", "20200108", "990108", "2020.060",
    "2021.366", "January 8, 1999", "8 Jan 69", "08-Jan-1970", "1999-Jan-08", "Jan-08-99", "Sept 31 2020",
    "Mon Jan 6 2020", "J2451187", "julian 2451187.5", "y2020m1d8", "epoch", "2020 1 8", "8", "Foo", "0000-01-01",
)  # fmt: skip
_CLOCKS = (
    "04:05", "4:5:6.789", "040506", "0405", "040506.5", "4:05 PM", "12:00am", "13:00 am", "24:00", "23:59:60", "25:00",
    "4:60", "T04:05", "T040506-08", "allballs", "04:05:06.1234565", "1:2:", "59:59.5",
)  # fmt: skip
_OFFSETS = (
    "Z", "UTC", "gmt", "+01", "-0330", "+5:45", "+01:02:03", "+16", "-1:60", "Europe/Berlin", "america/NEW_YORK",
    "Asia/Nowhere", "zulu", "UTC dst", "dst", "+", "AD", "x", "at", "on", "Wed", "5", ".5", "(", "\u00e9",
)  # fmt: skip
#: Patterns of a template, and texts for them.
_READ = {
    "YYYY": ("2020", "99", "12020"), "YYY": ("020", "999"), "YY": ("20", "7"), "Y,YYY": ("2,020", "2020"),
    "MM": ("01", "13", "7"), "Mon": ("Jan", "sept"), "MONTH": ("may", "December"), "RM": ("viii", "X"),
    "DD": ("31", "5", "-1"), "DDD": ("060", "366"), "DAY": ("Monday", "Mon"), "D": ("1", "8"), "HH": ("12", "13"),
    "HH24": ("23", "24"), "MI": ("59", "60"), "SS": ("5", "60"), "MS": ("25", "025"), "US": ("123456", "1"),
    "FF3": ("1239", "9"), "SSSSS": ("86399", "3661"), "AM": ("am", "PM"), "b.c.": ("A.D.", "BC"), "CC": ("21", "20"),
    "J": ("2451187",), "Q": ("1", "x"), "W": ("2",), "WW": ("53",), "IYYY": ("2020",), "IW": ("53", "1"), "ID": ("7",),
    "IDDD": ("366",), "TZH": ("+01", "-5"), "TZM": ("30", "60"), "TZ": ("UTC",),
}  # fmt: skip
_READ_TOGETHER = (
    ("YYYY", "MM", "DD"), ("DD", "Mon", "YYYY"), ("YYYY", "MM", "DD", "HH24", "MI", "SS", "MS"), ("YYYY", "DDD"),
    ("MM", "DD", "YYYY", "HH", "MI", "AM"), ("IYYY", "IW", "ID"), ("IYYY", "IDDD"), ("CC", "YY", "MM", "DD"),
    ("YYYY", "WW"), ("YYYY", "MM", "W"), ("YYYY", "MM", "DD", "HH24", "TZH", "TZM"), ("YYYY", "MM", "DD", "SS", "FF3"),
)  # fmt: skip
_FIELDS = (
    "", "year", "month", "day", "hour", "minute", "second", "year to month", "day to hour", "day to minute",
    "day to second", "hour to minute", "hour to second", "minute to second",
)  # fmt: skip
_TEMPLATES = (
    "YYYY", "YYY", "YY", "Y", "Y,YYY", "IYYY", "IY", "MM", "MON", "Mon", "month", "Month", "RM", "DD", "DDD", "D", "ID",
    "IDDD", "W", "WW", "IW", "Q", "CC", "J", "HH", "HH12", "HH24", "MI", "SS", "MS", "US", "FF3", "SSSS", "AM", "p.m.",
    "AD", "b.c.", "Day", "DY", "TZ", "OF", "TZH", "FM", "TM", "TH", "th", "x", "\\", '"q"', ":",
)  # fmt: skip
_INTERVALS = (
    "0",
    "14 mons -3 days 04:05:06.789",
    "-14 mons -26:05:06.5",
    "100:00",
    "-11 mons",
    "2500 years",
    "45 days",
)
_ZONES = (
    "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "Europe/Dublin",
    "Pacific/Apia", "UTC",
)  # fmt: skip
#: Days on which a zone turns its clocks, or leaves a day out.
_TURNS = ((2021, 3, 28), (2021, 10, 31), (2021, 3, 14), (2021, 11, 7), (2050, 3, 27), (2011, 12, 30), (2021, 4, 4))


def outcome(compute: Callable[..., str | None], *arguments: object) -> str | None:
    """Returns what is computed, as PostgreSQL's answers are spelled."""
    try:
        found = compute(*arguments)
    except SqlFailure as failure:
        return f"!{failure}"
    return None if found is None else f"={found}"


def interval_shown(text: str, fields: str, digits: int | None) -> str:
    return text_of_interval(interval_of(text, fields, digits))


def shown(moment: int) -> str:
    day, clock = divmod(moment, DAY)
    year, month, day_of_month = civil_of(day)
    return f"{year:04}-{month:02}-{day_of_month:02} {clock_text(clock)}"


def text_of(kind: str, value: int) -> str:
    return str(PURE[f"cast_{kind}_to_text"](value))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def differing(postgres: Postgres, asked: dict[str, str | None]) -> list[str]:
    theirs = postgres.attempt(list(asked))
    pairs = zip(asked.items(), theirs, strict=True)
    return [f"{sql}: {mine!r}, PostgreSQL {other!r}" for (sql, mine), other in pairs if mine != other]


def test_texts_are_the_moments_they_are_to_postgres(postgres: Postgres) -> None:
    pick = random.Random(7)
    asked: dict[str, str | None] = {}
    for _ in range(700):
        parts = [pick.choice(_DATES), *(pick.choice(few) for few in (_CLOCKS, _OFFSETS) if pick.random() < 0.6)]
        if pick.random() < 0.15:
            pick.shuffle(parts)
        text = pick.choice([" ", " ", " ", ", ", "T", "", "-"]).join(parts)
        asked[f"date {quoted(text)}"] = outcome(lambda one: text_of("date", date_of_text(one)), text)
        asked[f"timestamp {quoted(text)}"] = outcome(lambda one: text_of("timestamp", timestamp_of_text(one)), text)
        asked[f"timestamptz {quoted(text)}"] = outcome(
            lambda one: text_of("timestamptz", timestamptz_of_text(one)), text
        )
        asked[f"time {quoted(text)}"] = outcome(lambda one: clock_text(time_of_text(one)), text)
    # Here years end with 9999, 24:00 is no time, and POSIX's rules are no zone.
    narrower = re.compile("'=[0-9]{5,}-|'=24:00|'!0A000 the time zone")
    unlike = [one for one in differing(postgres, asked) if not narrower.search(one)]
    assert not unlike
    assert sum(mine is not None and mine.startswith("=") for mine in asked.values()) > 500


def test_texts_are_by_templates_what_they_are_to_postgres(postgres: Postgres) -> None:
    pick = random.Random(7)
    asked: dict[str, str | None] = {}
    for _ in range(900):
        some = [pick.choice(list(_READ)) for _ in range(pick.randint(1, 4))]
        patterns = pick.choice(_READ_TOGETHER) if pick.random() < 0.5 else some
        between = pick.choice(["", "-", " ", "/", '"x"', ", "])
        spelled = pick.choice([between.replace('"', ""), between.replace('"', ""), " ", "--"])
        template = pick.choice(["", "", "", "FX"]) + between.join(
            pick.choice(["", "", "", "FM"]) + one + pick.choice(["", "", "", "TH"]) for one in patterns
        )
        text = spelled.join(pick.choice(_READ[one]) + pick.choice(["", "", "", " ", "th"]) for one in patterns)
        called = f"({quoted(text)}, {quoted(template)})"
        asked[f"to_date{called}"] = outcome(lambda *two: shown(date_by_template(*two) * DAY)[:10], text, template)
        asked[f"to_timestamp{called}"] = outcome(
            lambda *two: f"{shown(timestamptz_by_template(*two))}+00", text, template
        )
    # What names no year is of 1 BC to PostgreSQL.
    narrower = re.compile("'=[0-9]{5,}-| BC'$")
    unlike = [one for one in differing(postgres, asked) if not narrower.search(one)]
    assert not unlike
    assert sum(mine is not None and mine.startswith("=") for mine in asked.values()) > 100


def test_texts_that_postgres_reads_and_we_refuse() -> None:
    for text in ("now", "today 10:00", "tomorrow", "yesterday UTC"):
        refused = outcome(lambda one: shown(timestamp_of_text(one)), text)
        assert refused is not None
        assert refused.startswith('!0A000 timestamp "')
    for zone in ("PST", "cet", "EST+5"):
        refused = outcome(lambda one: shown(timestamptz_of_text(one)), f"2020-01-01 10:00 {zone}")
        assert refused == f'!0A000 the time zone "{zone.lower()}" is not supported'
    for text in ("2020-01-01 BC", "10000-01-01", "J0"):
        assert outcome(lambda one: shown(date_of_text(one) * DAY), text) == f'!22008 date out of range: "{text}"'


def test_texts_are_the_intervals_they_are_to_postgres(postgres: Postgres) -> None:
    pick = random.Random(7)
    asked: dict[str, str | None] = {}
    for number in range(900):
        text = "".join(pick.choice(_FRAGMENTS) + pick.choice([" ", " ", ""]) for _ in range(pick.randint(1, 5)))
        fields, digits = (pick.choice(_FIELDS), None) if number % 2 else ("", pick.choice([None, 0, 2, 5]))
        type_ = fields if digits is None else f"second({digits})"
        fields = fields if digits is None else "second"
        asked[f"interval {quoted(text)} {type_}"] = outcome(interval_shown, text, fields, digits)
    assert not differing(postgres, asked)


def test_templates_show_what_they_show_in_postgres(postgres: Postgres) -> None:
    pick = random.Random(7)
    asked: dict[str, str | None] = {}
    for _ in range(300):
        template = "".join(pick.choice(_TEMPLATES) + pick.choice([" ", "", "-"]) for _ in range(pick.randint(1, 5)))
        moment = days_of(pick.randint(1, 9999), pick.randint(1, 12), pick.randint(1, 28)) * DAY + pick.randrange(DAY)
        for type_, show in (("timestamp", timestamp_text), ("timestamptz", timestamptz_text)):
            asked[f"to_char({type_} '{shown(moment)}', {quoted(template)})"] = outcome(show, moment, template)
        span = pick.choice(_INTERVALS)
        mine = outcome(interval_text, interval_of(span), template)
        # PostgreSQL makes up a calendar's fields for some.
        if mine is None or not mine.startswith("!22007"):
            asked[f"to_char(interval '{span}', {quoted(template)})"] = mine
    assert not differing(postgres, asked)


def test_clocks_of_zones_show_what_they_show_in_postgres(postgres: Postgres) -> None:
    pick = random.Random(7)
    moments = [
        days_of(*turn) * DAY + hour * HOUR + minute * MINUTE
        for turn in _TURNS
        for hour in range(5)
        for minute in (0, 30)
    ]
    moments += [
        days_of(pick.randint(1900, 2200), pick.randint(1, 12), 5) * DAY + pick.randrange(DAY) for _ in range(60)
    ]
    asked: dict[str, str | None] = {}
    for zone in _ZONES:
        for moment in moments:
            text = shown(moment)
            asked[f"timestamptz '{text}+00' AT TIME ZONE '{zone}'"] = f"={shown(reading(zone, moment))}"
            asked[f"timestamp '{text}' AT TIME ZONE '{zone}'"] = f"={shown(moment_of(zone, moment))}+00"
    assert not differing(postgres, asked)
