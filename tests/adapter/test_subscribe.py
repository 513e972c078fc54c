"""SUBSCRIBE: what it has told up to a time is exactly its object or query at that time."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Cursor
from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.catalog import UnknownObject
from mz_dagster.errors import Error
from tests.forks import forks
from tests.opened import opened

pytestmark = pytest.mark.usefixtures("no_spark")

Row = tuple[Any, ...]

QUERY = "SELECT b, count(*) AS n, max(a) AS m FROM t GROUP BY b"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer, b text, x numeric)")
        connection.execute("INSERT INTO t VALUES (1, 'x', 1.50), (2, 'y', NULL), (2, 'y', NULL)")
        yield connection


def told(cursor: Cursor, *, wait_s: float = 5.0) -> list[Row]:
    """Returns all rows that have come by now."""
    rows = cursor.fetchmany(10_000, wait_s=wait_s)
    while some := cursor.fetchmany(10_000, wait_s=0.0):
        rows += some
    return rows


def subscribed(connection: Connection, statement: str) -> Cursor:
    return connection.cursor().execute(statement)


def written(connection: Connection, sql: str) -> int:
    """Executes a write, and returns its time."""
    connection.execute(sql)
    return connection.engine.catalog.read_ts("default")


def test_a_table_is_told_as_it_is_and_then_what_changes(connection: Connection) -> None:
    cursor = subscribed(connection, "SUBSCRIBE TO t")
    assert [one[0] for one in cursor.description or ()] == ["mz_timestamp", "mz_diff", "a", "b", "x"]
    begun = connection.engine.catalog.read_ts("default")
    assert sorted(map(str, told(cursor))) == [f"({begun}, 1, 1, 'x', Decimal('1.50'))", f"({begun}, 2, 2, 'y', None)"]
    assert told(cursor, wait_s=0.0) == []
    time = written(connection, "UPDATE t SET b = 'z' WHERE a = 1")
    assert [row[:4] for row in told(cursor)] == [(time, -1, 1, "x"), (time, 1, 1, "z")]


@pytest.mark.parametrize(
    "target", ["v", f"({QUERY})", *(pytest.param(one, marks=pytest.mark.deep) for one in ("t", "plain"))]
)
def test_what_was_told_up_to_a_time_is_its_query_then(connection: Connection, tmp_path: Path, target: str) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    connection.execute("CREATE VIEW plain AS SELECT a, b FROM t WHERE a > 2")
    query = target.strip("()") if target.startswith("(") else f"SELECT * FROM {target}"
    random, kept, complete = Random(4), Counter[Row](), 0
    cursor = subscribed(connection, f"SUBSCRIBE {target} WITH (PROGRESS)")
    with opened(tmp_path) as other:
        for _ in range(12):
            for _ in range(random.randrange(1, 4)):
                a = random.randrange(6)
                time = written(
                    other,
                    random.choice([f"INSERT INTO t VALUES ({a}, 'b{a % 3}', {a})", f"DELETE FROM t WHERE a = {a}",
                                   f"UPDATE t SET b = 'c' WHERE a = {a}"]),
                )  # fmt: skip
            while complete <= time:
                for mz_timestamp, is_progress, diff, *row in cursor.fetchmany(10_000):
                    assert mz_timestamp >= complete, "nothing comes late"
                    if is_progress:
                        complete = mz_timestamp
                    else:
                        kept[tuple(row)] += diff
            assert +kept == Counter(other.execute(f"{query} AS OF {time}").fetchall())
            assert not -kept


def test_it_begins_and_ends_where_it_is_told_to(connection: Connection) -> None:
    first = connection.engine.catalog.read_ts("default")
    times = [written(connection, f"INSERT INTO t VALUES ({n}, 'n', 0)") for n in (3, 4, 5)]
    held = f"AS OF {first} UP TO {times[2]}"
    rows = subscribed(connection, f"SUBSCRIBE t {held}").fetchall()
    assert [(row[0], row[2]) for row in rows] == [(first, 1), (first, 2), (times[0], 3), (times[1], 4)]
    rows = subscribed(
        connection, f"SUBSCRIBE (SELECT a FROM t WHERE b = 'n') WITH (SNAPSHOT = false) {held}"
    ).fetchall()
    assert rows == [(times[0], 1, 3), (times[1], 1, 4)]
    ((_, *one),) = subscribed(connection, "SUBSCRIBE (SELECT 1 AS one)").fetchall()
    assert one == [1, 1], "what never changes has been told"
    later = connection.engine.clock.now_ms() + 300
    assert len(subscribed(connection, f"SUBSCRIBE t UP TO {later}").fetchall()) == 5, "it ends when that time has come"


def test_envelopes_tell_what_becomes_of_a_key(connection: Connection) -> None:
    connection.execute("CREATE TABLE k (a integer PRIMARY KEY, b text)")
    connection.execute("INSERT INTO k VALUES (1, 'x'), (2, 'y')")
    upserts = subscribed(connection, "SUBSCRIBE k ENVELOPE UPSERT (KEY (a)) WITH (SNAPSHOT = false)")
    changes = subscribed(connection, "SUBSCRIBE k ENVELOPE DEBEZIUM (KEY (a)) WITH (SNAPSHOT = false, PROGRESS)")
    names = ["mz_timestamp", "mz_progressed", "mz_state", "a", "before_b", "after_b"]
    assert [one[0] for one in changes.description or ()] == names
    with connection.transaction():
        connection.execute("UPDATE k SET b = 'z' WHERE a = 1")
        connection.execute("DELETE FROM k WHERE a = 2")
        connection.execute("INSERT INTO k VALUES (3, NULL)")
    assert {row[1:] for row in told(upserts)} == {("upsert", 1, "z"), ("delete", 2, None), ("upsert", 3, None)}
    assert {row[2:] for row in told(changes) if not row[1]} == {
        ("upsert", 1, "x", "z"), ("delete", 2, "y", None), ("insert", 3, None, None),
    }  # fmt: skip
    connection.execute("INSERT INTO t VALUES (2, 'other', 0)")
    violated = subscribed(connection, "SUBSCRIBE t ENVELOPE UPSERT (KEY (a))")
    assert {row[1:] for row in told(violated)} == {("upsert", 1, "x", 1.5), ("key_violation", 2, None, None)}


def test_rows_of_one_time_come_in_the_order_asked_for(connection: Connection) -> None:
    cursor = subscribed(connection, "SUBSCRIBE t WITHIN TIMESTAMP ORDER BY x DESC NULLS LAST, a DESC")
    assert [row[2] for row in told(cursor)] == [1, 2]
    connection.execute("INSERT INTO t VALUES (7, 'm', 2), (9, 'm', 2), (8, 'm', 3), (6, 'm', NULL)")
    assert [row[2] for row in told(cursor)] == [8, 9, 7, 6]


def test_an_error_of_the_data_ends_it(connection: Connection) -> None:
    cursor = subscribed(connection, "SUBSCRIBE (SELECT 1 / a AS q FROM t)")
    assert {row[1:] for row in told(cursor)} == {(2, 0), (1, 1)}
    connection.execute("INSERT INTO t VALUES (0, 'zero', 0)")
    with pytest.raises(Error) as caught:
        cursor.fetchmany(10)
    assert caught.value.sqlstate == "22012"
    assert cursor.fetchmany(10) == []


def test_what_is_dropped_is_told_no_more(connection: Connection) -> None:
    cursor = subscribed(connection, "SUBSCRIBE t")
    told(cursor)
    connection.execute("DROP TABLE t")
    with pytest.raises(UnknownObject):
        cursor.fetchmany(1)


def leftovers(connection: Connection) -> tuple[int, int]:
    """Returns how many objects there are that have no name, and how many capabilities."""
    catalog = connection.engine.catalog
    unnamed = [one for one in catalog.objects("materialized view") if one.name is None]
    return len(unnamed), sum("SUBSCRIBE" in one.holder for one in catalog.capabilities())


def test_it_leaves_nothing_behind(connection: Connection) -> None:
    cursors = [subscribed(connection, f"SUBSCRIBE {one}") for one in ("t", f"({QUERY})")]
    assert leftovers(connection) == (1, 2)
    cursors[0].close()
    cursors[1].execute("SELECT 1")
    assert leftovers(connection) == (0, 0)
    for statement in (
        f"SUBSCRIBE ({QUERY}) ENVELOPE UPSERT (KEY (nothing))",
        "SUBSCRIBE t WITHIN TIMESTAMP ORDER BY nothing",
        "SUBSCRIBE t UP TO 1",
        "SUBSCRIBE nothing",
    ):
        with pytest.raises(Error):
            connection.execute(statement)
    assert leftovers(connection) == (0, 0)


def listen(root: str, there: str) -> None:
    """Is the process: listens until it is killed."""
    with opened(Path(root)) as connection:
        cursor = subscribed(connection, f"SUBSCRIBE ({QUERY})")
        told(cursor)
        Path(there).touch()
        cursor.fetchall()


def test_what_a_killed_listener_maintained_is_swept(connection: Connection, tmp_path: Path) -> None:
    there = tmp_path / "there"
    process = forks().Process(target=listen, args=(str(tmp_path), str(there)))
    process.start()
    waiting = threading.Event()
    while not there.exists() and process.is_alive():
        waiting.wait(0.02)
    assert leftovers(connection) == (1, 1)
    process.kill()
    process.join(60)
    connection.engine.catalog.drop_unneeded()
    assert leftovers(connection)[0] == 0


def test_history_goes_as_it_is_told(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mz_dagster.adapter.subscriptions._MOVE_S", 0.0)
    cursor = subscribed(connection, "SUBSCRIBE t")
    for n in range(3):
        connection.execute(f"INSERT INTO t VALUES ({n}, 'n', 0)")
        told(cursor)
    (capability,) = (one for one in connection.engine.catalog.capabilities() if "SUBSCRIBE" in one.holder)
    assert capability.frontier.only == connection.engine.catalog.read_ts("default")


def test_others_listen_while_an_event_loop_goes_on(connection: Connection, tmp_path: Path) -> None:
    async def first_three() -> list[Row]:
        cursor, found, beats = subscribed(connection, "SUBSCRIBE (SELECT a FROM t WHERE b = 'later')"), [], 0

        async def write() -> None:
            for n in range(3):
                await asyncio.sleep(0.05)
                await asyncio.to_thread(other.execute, f"INSERT INTO t VALUES ({n}, 'later', 0)")

        task = asyncio.create_task(write())
        async for row in cursor:
            found.append(row)
            beats += 1
            if beats == 3:
                break
        await task
        cursor.close()
        return found

    with opened(tmp_path) as other:
        assert [row[1:] for row in asyncio.run(first_three())] == [(1, 0), (1, 1), (1, 2)]


def test_in_a_transaction_it_begins_at_the_time_of_that(connection: Connection, tmp_path: Path) -> None:
    with opened(tmp_path) as other, connection.transaction():
        connection.execute("SELECT count(*) FROM t")
        begun = connection.engine.catalog.read_ts("default")
        time = written(other, "INSERT INTO t VALUES (5, 'later', 0)")
        rows = told(subscribed(connection, f"SUBSCRIBE t UP TO {time + 1}"))
        assert [row[0] for row in rows] == [begun, begun, time]
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (6, 'own', 0)")
    with pytest.raises(ActiveTransaction):
        connection.execute("SUBSCRIBE t")
    connection.execute("ROLLBACK")
