"""Texts of times made at random mean to us what they mean to PostgreSQL 15: of intervals, of templates, in zones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from mz_dagster.plan.functions.pure import SqlFailure
from mz_dagster.plan.functions.pure.calendar import DAY, HOUR, MINUTE, civil_of, days_of
from mz_dagster.plan.functions.pure.interval_text import clock_text, interval_of, text_of_interval
from mz_dagster.plan.functions.pure.templates import interval_text, timestamp_text, timestamptz_text
from mz_dagster.plan.functions.pure.zones import moment_of, reading
from tests.postgres_server import Postgres, running_postgres

_FRAGMENTS = (
    "1", "2.5", "-3", "+4", "0.7", "day", "days", "hours", "mon", "years", "ago", "1:2", "-1:2:3.5", "1-2", "P", "T",
    "1Y", "2M", "sec", "ms", ".5", "@", "w", "4H", "-", "5M", "0.3", "century", "20200101", "2147483647", "99999999999",
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


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


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


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def differing(postgres: Postgres, asked: dict[str, str | None]) -> list[str]:
    theirs = postgres.attempt(list(asked))
    pairs = zip(asked.items(), theirs, strict=True)
    return [f"{sql}: {mine!r}, PostgreSQL {other!r}" for (sql, mine), other in pairs if mine != other]


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
