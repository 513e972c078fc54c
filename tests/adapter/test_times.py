"""Intervals and times in maintained views: every step leaves what PostgreSQL says of the rows that are there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time
from typing import Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.plan.functions.pure.interval_text import text_of_interval
from mz_dagster.plan.values import Interval
from tests.postgres_server import Postgres, running_postgres

_CREATE = "CREATE TABLE calls (id integer NOT NULL, began timestamp, ended timestamp, plan interval, alarm time)"
_SPENT = (
    "SELECT justify_interval(plan) AS plan, count(*) AS n, max(ended - began) AS hi, sum(ended - began) AS spent"
    " FROM calls GROUP BY plan"
)
_LATE = (
    "SELECT a.id, b.id AS other, a.began + a.plan AS due, extract(epoch FROM a.ended - b.began) AS gap,"
    " b.alarm + (a.ended - a.began) AS alarm, b.plan::text AS plan"
    " FROM calls a JOIN calls b ON a.plan = b.plan AND a.ended > b.began + interval '1 mon 1 day'"
)
#: Each batch is one step.
_BATCHES = [
    "INSERT INTO calls VALUES (1, '2020-01-31 10:00', '2020-02-01 12:00:00.5', '1 mon', '10:00'),"
    " (2, '2020-01-01', '2020-03-15', '30 days', '23:59:59.999999'), (3, NULL, NULL, NULL, NULL),"
    " (4, '2019-12-31 23:00', '2020-12-31', '720:00', '00:00'), (5, '2020-05-01', '2020-04-01', '1 year', '12:00')",
    "UPDATE calls SET plan = plan + interval '1 day', alarm = alarm + interval '13 hours' WHERE id IN (1, 3, 4)",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def theirs(postgres: Postgres, query: str) -> list[str]:
    return sorted(postgres.run(f"SET intervalstyle = postgres; {query};").splitlines())


def ours(connection: Connection, query: str) -> list[str]:
    return sorted("|".join(map(shown, row)) for row in connection.execute(query).fetchall())


def shown(cell: Any) -> str:
    match cell:
        case None:
            return ""
        case Interval():
            return text_of_interval(cell)
        case datetime() | time():
            text = cell.isoformat(*((" ",) if isinstance(cell, datetime) else ()))
            return text.rstrip("0") if "." in text else text
        case _:
            return str(cell)


def test_a_view_of_intervals_is_that_of_postgres_after_every_step(connection: Connection, postgres: Postgres) -> None:
    connection.execute(_CREATE)
    postgres.run(f"{_CREATE};")
    connection.execute(f"CREATE MATERIALIZED VIEW spent AS {_SPENT}")
    for batch in _BATCHES:
        connection.execute(batch)
        postgres.run(f"{batch};")
        assert ours(connection, "SELECT * FROM spent") == theirs(postgres, _SPENT)
    assert ours(connection, _LATE) == theirs(postgres, _LATE)
    query = "SELECT id, plan, alarm FROM calls WHERE plan IS NOT NULL ORDER BY plan DESC, id"
    found = connection.execute(query).fetchall()
    assert ["|".join(map(shown, row)) for row in found] == postgres.run(f"{query};").splitlines()


def test_a_row_leaves_when_its_interval_is_over(connection: Connection) -> None:
    connection.execute("CREATE TABLE leases (id integer, until timestamp)")
    connection.execute(
        "CREATE MATERIALIZED VIEW held AS SELECT id FROM leases WHERE mz_now() <= until + INTERVAL '1 mon 1 hour'"
    )
    moment = datetime(2100, 1, 31)
    connection.execute("INSERT INTO leases VALUES (1, ?), (2, ?)", (moment, datetime(2020, 1, 31)))
    assert connection.execute("SELECT id FROM held").fetchall() == [(1,)]
