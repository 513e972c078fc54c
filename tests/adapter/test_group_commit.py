"""Writes that come while another is sealed are sealed together, and each is told how its own has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Isolation
from mz_dagster.adapter.cancelling import Cancellation, StatementCancelled
from mz_dagster.catalog import Catalog, Seal, UnknownObject
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.sql.errors import NullNotAllowed
from tests.opened import opened

COUNT = 12


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as made:
        made.execute("CREATE TABLE a (x integer NOT NULL)")
        made.execute("CREATE TABLE b (x integer)")
        yield made


class Sealing:
    """Holds the first seal up until so many others wait, and keeps how many collections each seal was of."""

    def __init__(self, connection: Connection, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine = connection.engine
        self.seals: list[int] = []
        self.refused: list[type[Error]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        seal = Catalog.seal
        entered = threading.Event()
        self.entered = entered

        def held(catalog: Catalog, seals: Sequence[Seal], **named: Any) -> Any:
            self.seals.append(len(seals))
            if len(self.seals) == 1:
                entered.set()
                waiting(self.engine.group_commit, count)
                self.meanwhile()
            elif self.refused:
                raise self.refused.pop()("it is refused")
            return seal(catalog, seals, **named)

        monkeypatch.setattr(Catalog, "seal", held)


def waiting(group_commit: Any, count: int) -> None:
    """Returns once so many wait; the thread that would seal them is kept from it until then."""
    until = threading.Event()
    while len(group_commit._waiting) < count:
        assert not until.wait(0.005)


@contextmanager
def held_back(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Keeps the thread that seals groups from beginning, until what is yielded is called."""
    group_commit = connection.engine.group_commit
    start = type(group_commit)._start
    may = threading.Event()
    monkeypatch.setattr(type(group_commit), "_start", lambda self: start(self) if may.is_set() else None)
    try:
        yield may.set
    finally:
        may.set()


def run(
    connection: Connection, statements: Sequence[str], monkeypatch: pytest.MonkeyPatch, sealing: Sealing
) -> list[Future[Any]]:
    """Executes statements at once: the first is being sealed while all others come."""
    first, *others = statements

    def execute(sql: str) -> Any:
        with Connection(connection.engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False) as own:
            return own.execute(sql).tag

    with held_back(connection, monkeypatch) as let_go, ThreadPoolExecutor(COUNT) as pool:
        meanwhile = sealing.meanwhile
        sealing.meanwhile = lambda: (meanwhile(), let_go())
        found = [pool.submit(execute, first)]
        assert sealing.entered.wait(30)
        found += [pool.submit(execute, sql) for sql in others]
    return found


def rows(connection: Connection, table: str) -> list[int]:
    return [x for (x,) in connection.execute(f"SELECT x FROM {table} ORDER BY 1").fetchall()]


def test_writes_that_wait_are_one_transaction(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sealing = Sealing(connection, COUNT - 1, monkeypatch)
    statements = [f"INSERT INTO {'ab'[n % 2]} VALUES ({n})" for n in range(COUNT)]
    found = run(connection, statements, monkeypatch, sealing)
    assert [one.result() for one in found] == ["INSERT 0 1"] * COUNT
    assert sealing.seals[:2] == [1, 2], "one alone, and then the batches of two tables together"
    assert len(sealing.seals) <= 3, "one that was lost to the first"
    assert rows(connection, "a") == list(range(0, COUNT, 2))
    assert rows(connection, "b") == list(range(1, COUNT, 2))


def test_each_fails_alone(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.execute("CREATE TABLE gone (x integer)")
    sealing = Sealing(connection, 4, monkeypatch)
    sealing.meanwhile = lambda: connection.execute("DROP TABLE gone")
    statements = [f"INSERT INTO {table} VALUES ({x})" for table, x in (("a", 1), ("a", 2), ("gone", 3), ("b", 4))]
    found = run(connection, [*statements, "INSERT INTO a VALUES (5)"], monkeypatch, sealing)
    for one in (0, 1, 3, 4):
        assert found[one].result() == "INSERT 0 1"
    with pytest.raises(UnknownObject):
        found[2].result()
    with pytest.raises(NullNotAllowed):
        connection.execute("INSERT INTO a VALUES (NULL)")
    assert (rows(connection, "a"), rows(connection, "b")) == ([1, 2, 5], [4])


def test_a_group_that_is_refused_is_sealed_one_by_one(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sealing = Sealing(connection, 3, monkeypatch)
    sealing.refused = [ProgrammingError, ProgrammingError]  # the group, and then the first of it
    found = run(connection, [f"INSERT INTO a VALUES ({n})" for n in range(4)], monkeypatch, sealing)
    failed = [n for n, one in enumerate(found) if one.exception() is not None]
    assert len(failed) == 1
    assert len(sealing.seals) >= 5
    assert rows(connection, "a") == sorted({0, 1, 2, 3} - set(failed))


def test_a_table_that_was_altered_is_bound_anew(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sealing = Sealing(connection, 1, monkeypatch)
    sealing.meanwhile = lambda: connection.execute("ALTER TABLE b ADD COLUMN y integer DEFAULT 7")
    found = run(connection, ["INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (2)"], monkeypatch, sealing)
    assert [one.result() for one in found] == ["INSERT 0 1"] * 2
    assert connection.execute("SELECT x, y FROM b").fetchall() == [(2, 7)]


def test_who_is_cancelled_while_waiting_has_written_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancellation = Cancellation()
    sealing = Sealing(connection, 1, monkeypatch)

    def withdrawn() -> None:
        cancellation.cancel()
        while connection.engine.group_commit._waiting:
            threading.Event().wait(0.005)

    sealing.meanwhile = withdrawn
    cancelled: list[Future[Any]] = []

    def write() -> Any:
        with Connection(connection.engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False) as own:
            return cancellation.execute(lambda: own.execute("INSERT INTO b VALUES (2)").tag)

    with held_back(connection, monkeypatch), ThreadPoolExecutor(2) as pool:
        first = pool.submit(connection.execute, "INSERT INTO a VALUES (1)")
        assert sealing.entered.wait(30)
        cancelled.append(pool.submit(write))
    assert first.result().tag == "INSERT 0 1"
    with pytest.raises(StatementCancelled):
        cancelled[0].result()
    assert (rows(connection, "a"), rows(connection, "b")) == ([1], [])


def test_what_reads_is_sealed_alone(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of one key do not both come to be there."""
    connection.execute("CREATE TABLE keyed (x integer PRIMARY KEY)")
    barrier = threading.Barrier(4)

    def insert(_: int) -> str:
        with Connection(connection.engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False) as own:
            barrier.wait()
            try:
                return own.execute("INSERT INTO keyed VALUES (1)").tag
            except Error as error:
                return error.sqlstate

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(insert, range(4))) == ["23505", "23505", "23505", "INSERT 0 1"]
    assert rows(connection, "keyed") == [1]
