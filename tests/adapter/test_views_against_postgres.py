"""Views of every type and kind of aggregate: at every time what PostgreSQL says of the rows that were there then.

All stories are told in one project. Their writes lie in one interval, which one step covers; each of its times is read
by itself afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import psycopg
import pytest
from psycopg.abc import Buffer
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from psycopg.types.string import TextLoader

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget, EngineSetting, engine_of
from mz_dagster.errors import DataError
from mz_dagster.functions.moments.interval_text import text_of_interval
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY, Infinity
from mz_dagster.scalars.values import Interval
from tests.adapter.stories import Story
from tests.adapter.stories.enums import ENUMS
from tests.adapter.stories.groups import GROUPS
from tests.adapter.stories.jsonb import JSON, JSONB
from tests.adapter.stories.keys import KEYS
from tests.adapter.stories.modifiers import MODIFIERS
from tests.adapter.stories.representations import REPRESENTATIONS
from tests.adapter.stories.statistics import ALL_STATISTICS, STATISTICS
from tests.adapter.stories.strings import STRINGS
from tests.adapter.stories.times import TIMES, VALIDITY
from tests.adapter.stories.unconstrained import UNCONSTRAINED
from tests.budgets import SetBudget
from tests.postgres_server import Postgres
from tests.sparkless import refuse_spark

STORIES = (ENUMS, GROUPS, JSON, JSONB, KEYS, MODIFIERS, REPRESENTATIONS, STATISTICS, STRINGS, TIMES, VALIDITY)

Row = tuple[Any, ...]


class _Dates(DateLoader):
    """Reads what is infinite, too."""

    def load(self, data: Buffer) -> Any:
        return infinity_of_text(data) or super().load(data)


class _Timestamps(TimestampLoader):
    def load(self, data: Buffer) -> Any:
        return infinity_of_text(data) or super().load(data)


class _TimestampsInUtc(TimestamptzLoader):
    def load(self, data: Buffer) -> Any:
        return infinity_of_text(data) or super().load(data)


def infinity_of_text(data: Buffer) -> Infinity | None:
    return {b"infinity": INFINITY, b"-infinity": NEGATIVE_INFINITY}.get(bytes(data))


@pytest.fixture
def referee(postgres: Postgres) -> Iterator[psycopg.Connection[Row]]:
    with postgres.new_database().connect() as connection:
        for name, loader in (("date", _Dates), ("timestamp", _Timestamps), ("timestamptz", _TimestampsInUtc)):
            connection.adapters.register_loader(name, loader)
        connection.adapters.register_loader("json", TextLoader)
        yield connection


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("stories", "before", "budget"),
    [
        pytest.param((JSON, JSONB, TIMES, VALIDITY), 0, Budget(), id="some"),
        pytest.param((ENUMS, KEYS, MODIFIERS, REPRESENTATIONS), 0, None, id="local"),
        pytest.param(STORIES, 0, Budget(), id="all", marks=pytest.mark.deep),
        pytest.param(STORIES, 1, Budget(), id="hydrated", marks=pytest.mark.deep),
        pytest.param(
            (MODIFIERS, REPRESENTATIONS), 1, Budget(evaluated_updates=0), id="representations", marks=pytest.mark.deep
        ),
        *(
            pytest.param(STORIES, before, budget, id=f"{name}, {before}", marks=pytest.mark.deep)
            for name, budget in (("by spark", Budget.spark_alone()), ("local", None))
            for before in (0, 1)
        ),
        *(
            pytest.param((UNCONSTRAINED,), 1, budget, id=f"unconstrained {name}", marks=pytest.mark.deep)
            for name, budget in (("by spark", Budget.spark_alone()), ("by both", Budget()))
        ),
        pytest.param((ENUMS,), 1, Budget.spark_alone(), id="enums by spark", marks=pytest.mark.deep),
        pytest.param((ALL_STATISTICS,), 1, Budget(), id="statistics", marks=pytest.mark.deep),
    ],
)
def test_views_are_those_of_postgres_at_every_time(
    connection: Connection,
    referee: psycopg.Connection[Row],
    stories: Sequence[Story],
    before: int,
    budget: Budget | None,
    set_budget: SetBudget,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tells the stories, the first `before` writes of each before its views are there.

    Without a budget, this process computes all of it.
    """
    tried: list[str] = []
    if budget is None:
        tried = refuse_spark(monkeypatch)
        connection.execute("SET engine = local")
    else:
        set_budget(budget)

    def write(statement: str) -> None:
        connection.execute(statement)
        referee.execute(statement.encode())

    for story in stories:
        for statement in (story.table, *story.writes[:before]):
            write(statement)
        for name, query in story.views.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    expected: list[tuple[int, str, list[Row]]] = []
    for statements in zip_longest(*(story.writes[before:] for story in stories)):
        for story, statement in zip(stories, statements, strict=True):
            if statement is not None:
                write(statement)
                now = connection.engine.catalog.read_ts("default")
                expected += [(now, name, asked(referee, query)) for name, query in story.views.items()]
    poll = connection.engine.poll("default")
    assert poll.tick is not None, poll.reason
    with engine_of(EngineSetting.LOCAL if budget is None else EngineSetting.AUTO):
        assert not connection.engine.step("default", poll.tick).failures
    for now, name, rows in expected:
        found = asked(connection, f"SELECT * FROM {name} AS OF {now}")
        assert sorted(found, key=repr) == sorted(rows, key=repr), f"{name} at {now}"
    for story in stories:
        for query in story.asked:
            assert asked(connection, query) == asked(referee, query), query
    assert not tried


def test_a_string_that_is_too_long_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (c char(3), v varchar(5))")
    connection.execute("INSERT INTO s VALUES ('a\t', 'a\t')")
    with pytest.raises(DataError, match=r"value too long for type character\(3\)"):
        connection.execute("INSERT INTO s SELECT 'ab' || v FROM s")


def test_a_row_leaves_when_its_interval_is_over(connection: Connection) -> None:
    connection.execute("CREATE TABLE leases (id integer, until timestamp)")
    connection.execute(
        "CREATE MATERIALIZED VIEW held AS SELECT id FROM leases WHERE mz_now() <= until + INTERVAL '1 mon 1 hour'"
    )
    connection.execute("INSERT INTO leases VALUES (1, ?), (2, ?)", (datetime(2100, 1, 31), datetime(2020, 1, 31)))
    assert connection.execute("SELECT id FROM held").fetchall() == [(1,)]


def test_a_row_that_is_valid_for_ever_never_leaves(connection: Connection) -> None:
    connection.execute("CREATE TABLE offers (id integer, since date, until date)")
    connection.execute(
        "CREATE MATERIALIZED VIEW on_offer AS SELECT id FROM offers WHERE mz_now() >= since AND mz_now() < until"
    )
    connection.execute(
        "INSERT INTO offers VALUES (1, '-infinity', 'infinity'), (2, '2020-01-01', 'infinity'),"
        " (3, '-infinity', '2020-01-01'), (4, 'infinity', 'infinity')"
    )
    assert connection.execute("SELECT id FROM on_offer ORDER BY id").fetchall() == [(1,), (2,)]


def asked(connection: Connection | psycopg.Connection[Row], query: str) -> list[Row]:
    """Returns a query's rows, of equal spelling where they are equal."""
    return [tuple(map(spelled, row)) for row in connection.execute(query).fetchall()]


def spelled(cell: Any) -> Any:
    """Returns a cell as both engines have it; a number that is no integer has eleven digits."""
    match cell:
        case None | bool() | int() | bytes():
            return cell
        case float() | Decimal() if cell != 0 and math.isfinite(cell):
            return f"{Decimal(cell):.11g}".rstrip("0")
        case float() | Decimal():
            return str(float(cell) + 0.0)
        case Interval():  # a tuple, too
            return text_of_interval(cell)
        case list() | tuple():
            return [spelled(one) for one in cell]
        case datetime() | time():
            return cell.isoformat()
        case _:
            return str(cell)
