"""What is locked by FOR UPDATE and its like, and by LOCK TABLE, nobody changes before who locked it has committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn

Client = psycopg.Connection[tuple[Any, ...]]
NEXT = "SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"

#: What two clients say, one after the other, by the number of who says it; PostgreSQL answers the same.
STORY = [
    (0, "BEGIN"),
    (1, "BEGIN"),
    (0, "SELECT id FROM jobs ORDER BY id FOR UPDATE"),
    (1, "SELECT id FROM jobs AS j ORDER BY id FOR NO KEY UPDATE OF j SKIP LOCKED"),
    (1, "SELECT count(*) FROM (SELECT id FROM jobs, other FOR SHARE OF other NOWAIT) AS x"),
    (1, "SELECT id FROM jobs FOR KEY SHARE OF jobs NOWAIT"),
    (1, "ROLLBACK"),
    (0, "COMMIT"),
    (1, "BEGIN"),
    (0, "BEGIN"),
    (1, "LOCK TABLE ONLY jobs, other IN SHARE MODE"),
    (0, "LOCK jobs IN SHARE MODE NOWAIT"),
    (0, "SELECT id FROM jobs ORDER BY id FOR SHARE"),
    (1, "SELECT id FROM jobs ORDER BY id FOR SHARE NOWAIT"),
    (0, "LOCK TABLE other IN ACCESS EXCLUSIVE MODE NOWAIT"),
    (0, "ROLLBACK"),
    (1, "COMMIT"),
    (0, "LOCK TABLE jobs"),
    (0, "LOCK TABLE jobs IN NO MODE"),
    (0, "SELECT DISTINCT done FROM jobs FOR UPDATE"),
    (0, "SELECT done FROM jobs GROUP BY done FOR SHARE"),
    (0, "SELECT id FROM jobs UNION SELECT 1 FOR UPDATE"),
    (0, "SELECT id FROM jobs WHERE done IS DISTINCT FROM true ORDER BY id FOR UPDATE"),
    (0, "SELECT 1 FROM jobs AS j FOR UPDATE OF jobs"),
    (0, "SELECT substring('abc' FROM 1 FOR 2), substring('abc' FOR id) FROM jobs ORDER BY id"),
    (0, "UPDATE jobs SET done = true FOR UPDATE"),
    (0, "BEGIN READ ONLY"),
    (0, "SELECT 1 FROM jobs FOR UPDATE"),
    (0, "ROLLBACK"),
    (0, "UPDATE jobs SET done = true WHERE id = (SELECT min(id) FROM (SELECT id FROM jobs FOR UPDATE) x) RETURNING id"),
    (
        0,
        "WITH x AS (SELECT id FROM jobs WHERE done FOR UPDATE SKIP LOCKED) DELETE FROM jobs j USING x WHERE x.id = 1",
    ),
]


def said(client: Client, statement: str) -> object:
    try:
        found = client.execute(statement.encode())
        return found.fetchall() if found.description else found.statusmessage
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary if error.sqlstate != "42601" else ""


@pytest.fixture
def clients(served: Server, postgres: Postgres) -> Iterator[dict[str, list[Client]]]:
    """Two clients of each server, and two tables."""
    with ExitStack() as opened:
        found = {
            "ours": [opened.enter_context(psycopg.connect(dsn(served), autocommit=True)) for _ in range(2)],
            "theirs": [opened.enter_context(postgres.connect()) for _ in range(2)],
        }
        for one, *_ in found.values():
            one.execute("DROP TABLE IF EXISTS jobs, other")
            one.execute("CREATE TABLE jobs (id integer, done boolean)")
            one.execute("CREATE TABLE other (id integer)")
            one.execute("INSERT INTO jobs VALUES (1, false), (2, false)")
        yield found
        for pair in found.values():
            for one in pair:
                one.execute("ROLLBACK")
            pair[0].execute("DROP TABLE jobs, other")


def test_locks_are_answered_as_by_postgres(clients: dict[str, list[Client]]) -> None:
    ours, theirs = ([(one, said(of[who], one)) for who, one in STORY] for of in clients.values())
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.parametrize("lock", ["SELECT 1 FROM jobs FOR SHARE", "LOCK TABLE jobs IN SHARE ROW EXCLUSIVE MODE", NEXT])
@pytest.mark.parametrize("writes", [True, False])
def test_who_has_locked_what_another_wrote_does_not_commit(
    clients: dict[str, list[Client]], lock: str, writes: bool
) -> None:
    one, other = clients["ours"]
    one.execute("BEGIN")
    one.execute(lock.encode())
    if writes:
        one.execute("INSERT INTO other VALUES (1)")
    other.execute("INSERT INTO jobs VALUES (3, false)")
    assert said(one, "COMMIT") == ("40001", "could not serialize access due to concurrent update")
    assert said(one, "TABLE other") == []
    for _ in range(2):
        one.execute("BEGIN")
        one.execute(lock.encode())
        assert said(one, "COMMIT") == "COMMIT"
    one.execute("BEGIN")
    one.execute("LOCK TABLE jobs IN ROW EXCLUSIVE MODE")
    other.execute("INSERT INTO jobs VALUES (4, false)")
    assert said(one, "COMMIT") == "COMMIT"


def test_no_job_is_handed_to_two_workers(clients: dict[str, list[Client]]) -> None:
    one, other = clients["ours"]
    for worker in (one, other):
        worker.execute("BEGIN")
    assert said(other, "TABLE other") == []  # its time is before what the first does
    assert said(one, NEXT) == [(1,)]
    assert said(other, NEXT) == []
    other.execute("SAVEPOINT before")
    assert said(other, f"UPDATE jobs SET done = true WHERE id = ({NEXT})") == (
        "40001",
        "could not serialize access due to concurrent update",
    )
    other.execute("ROLLBACK TO before")
    one.execute("UPDATE jobs SET done = true WHERE id = 1")
    one.execute("COMMIT")
    assert said(other, NEXT) == ("40001", "could not serialize access due to concurrent update")
    other.execute("ROLLBACK")
    other.execute("BEGIN")
    assert said(other, NEXT) == [(2,)]
    other.execute("ROLLBACK")
    assert said(one, NEXT) == [(2,)]


def test_only_rows_of_tables_that_are_now_are_locked(clients: dict[str, list[Client]]) -> None:
    one, _ = clients["ours"]
    one.execute("CREATE VIEW open_jobs AS SELECT id FROM jobs WHERE NOT done")
    assert said(one, "SELECT id FROM open_jobs FOR UPDATE") == (
        "0A000",
        'FOR UPDATE of view "open_jobs" is not supported',
    )
    assert said(one, "SELECT j.id FROM jobs AS j JOIN open_jobs USING (id) ORDER BY 1 FOR UPDATE OF j") == [(1,), (2,)]
    one.execute("DROP VIEW open_jobs")
    locking_view = said(one, "CREATE VIEW locking AS SELECT id FROM jobs FOR UPDATE")
    assert locking_view == ("0A000", "a row lock here is not supported")
    found = said(one, "SELECT id FROM jobs FOR UPDATE AS OF 1")
    assert isinstance(found, tuple)
    assert found[0] in ("42601", "0A000")
