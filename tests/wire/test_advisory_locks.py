"""Advisory locks are taken, waited for and given back as PostgreSQL's, among the clients of a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.postgres_server import Postgres
from tests.wire.conftest import dsn

Client = psycopg.Connection[tuple[Any, ...]]
HELD = (
    "SELECT locktype, classid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' "
    "ORDER BY classid, objid, objsubid"
)

#: What two clients say, one after the other, by the number of who says it.
STORIES = {
    "one after the other": [
        (0, "SELECT pg_try_advisory_lock(7)"),
        (1, "SELECT pg_try_advisory_lock(7) AS mine"),
        (0, "SELECT pg_try_advisory_lock(7)"),
        (0, "SELECT pg_advisory_unlock(7)"),
        (1, "SELECT pg_try_advisory_lock(7)"),
        (0, "SELECT pg_advisory_unlock(7)"),
        (0, "SELECT pg_advisory_unlock(7)"),
        (1, "SELECT pg_catalog.pg_try_advisory_lock(7)"),
        (0, "SELECT pg_try_advisory_lock(7)"),
    ],
    "shared": [
        (0, "SELECT pg_advisory_lock_shared(7)"),
        (1, "SELECT pg_try_advisory_lock_shared(7)"),
        (0, "SELECT pg_try_advisory_lock(7)"),
        (1, "SELECT pg_advisory_unlock(7)"),
        (1, "SELECT pg_advisory_unlock_shared(7)"),
        (0, "SELECT pg_try_advisory_lock(7)"),
        (1, "SELECT pg_try_advisory_lock_shared(7)"),
    ],
    "until the transaction ends": [
        (0, "BEGIN"),
        (0, "SELECT pg_advisory_xact_lock(1, -2)"),
        (1, "SELECT pg_try_advisory_xact_lock(1, -2)"),
        (0, "SELECT pg_advisory_unlock(1, -2)"),
        (0, "COMMIT"),
        (1, "SELECT pg_try_advisory_xact_lock(1, -2)"),
        (0, "SELECT pg_try_advisory_xact_lock_shared(1, -2)"),
        (1, "BEGIN"),
        (1, "SELECT pg_try_advisory_lock(8)"),
        (1, "SELECT pg_advisory_xact_lock_shared(9)"),
        (1, "ROLLBACK"),
        (0, "SELECT pg_try_advisory_lock(8)"),
        (0, "SELECT pg_try_advisory_lock(9)"),
    ],
    "all at once": [
        (0, "SELECT pg_advisory_lock(n) FROM generate_series(1, 3) AS s (n)"),
        (0, "SELECT pg_try_advisory_lock(NULL)"),
        (1, "SELECT pg_try_advisory_lock(2)"),
        (0, "SELECT pg_advisory_unlock_all()"),
        (1, "SELECT pg_try_advisory_lock(2)"),
        (1, "DISCARD ALL"),
        (0, "SELECT pg_try_advisory_lock(2)"),
    ],
    "two numbers are another lock than one": [
        (0, "SELECT pg_advisory_lock(0, 5)"),
        (1, "SELECT pg_try_advisory_lock(5)"),
        (1, "SELECT pg_try_advisory_lock(0, 5)"),
        (0, "SELECT pg_advisory_lock(-8589934590)"),
        (0, HELD),
    ],
}


@pytest.fixture(params=["ours", "theirs"])
def open_client(request: pytest.FixtureRequest, served: Server, postgres: Postgres) -> Iterator[Callable[[], Client]]:
    """What connects to a server that is ours, or PostgreSQL's."""
    with ExitStack() as opened:

        def opens() -> Client:
            if request.param == "theirs":
                return opened.enter_context(postgres.connect())
            return opened.enter_context(psycopg.connect(dsn(served), autocommit=True))

        yield opens


def said(client: Client, statement: str) -> object:
    told: list[str] = []
    client.add_notice_handler(lambda one: told.append(f"{one.severity} {one.sqlstate} {one.message_primary}"))
    try:
        found = client.execute(statement.encode())
        names = [one.name for one in found.description or ()]
        return names, found.fetchall() if names else found.statusmessage, told[-1:]
    except psycopg.Error as error:
        return error.sqlstate


@pytest.mark.parametrize("story", STORIES)
def test_locks_are_had_and_refused_as_by_postgres(served: Server, postgres: Postgres, story: str) -> None:
    found = []
    with ExitStack() as opened:
        ours: list[Client] = [opened.enter_context(psycopg.connect(dsn(served), autocommit=True)) for _ in range(2)]
        theirs: list[Client] = [opened.enter_context(postgres.connect()) for _ in range(2)]
        for clients in (ours, theirs):
            found.append([(statement, said(clients[who], statement)) for who, statement in STORIES[story]])
    assert found[0] == found[1]


def test_who_waits_has_the_lock_once_its_holder_is_gone(open_client: Callable[[], Client]) -> None:
    first, second, third = open_client(), open_client(), open_client()
    first.execute("SELECT pg_advisory_lock(11)")
    waiting = threading.Thread(target=lambda: second.execute("SELECT pg_advisory_lock(11)"))
    waiting.start()
    asked = "SELECT count(*) FROM pg_locks WHERE objid = 11 AND NOT granted"
    while third.execute(asked).fetchone() != (1,):
        time.sleep(0.01)
    first.close()
    waiting.join(30)
    assert not waiting.is_alive()
    assert third.execute("SELECT pg_try_advisory_lock(11)").fetchone() == (False,)
    third.execute("SET statement_timeout = 200")
    with pytest.raises(psycopg.errors.QueryCanceled):
        third.execute("SELECT pg_advisory_lock(11)")
    second.execute("SELECT pg_advisory_unlock(11)")
    assert third.execute("SELECT pg_try_advisory_lock(11)").fetchone() == (True,)


def test_two_that_wait_for_each_other_are_told(open_client: Callable[[], Client]) -> None:
    both = (open_client(), open_client())
    for number, one in enumerate(both):
        one.execute("SELECT pg_advisory_lock(%s)", [number])
    told: list[object] = []
    waiting = [
        threading.Thread(
            target=lambda one, number: told.append(said(one, f"SELECT pg_advisory_lock({number})")), args=it
        )
        for it in ((both[0], 1), (both[1], 0))
    ]
    for thread in waiting:
        thread.start()
    while not told:
        time.sleep(0.01)
    assert told == ["40P01"]
    for client in both:
        client.close()
    for thread in waiting:
        thread.join(30)


def test_a_lock_is_no_expression(served: Server) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as client:
        for statement in (
            "SELECT pg_advisory_lock(1), 2",
            "SELECT 1 WHERE pg_try_advisory_lock(1)",
            "SELECT pg_advisory_unlock_all(1)",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="only item"):
                client.execute(statement)
        prepared = client.execute("SELECT pg_try_advisory_lock(%s)", [2**40], prepare=True)
        assert prepared.fetchall() == [(True,)]
