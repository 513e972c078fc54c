"""Statements that read and write are as if each had happened alone: what others write meanwhile makes them read again.

Each test puts another session's statement exactly between what one has read and its seal, on both catalogs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.write_attempts import WriteContended
from mz_dagster.clock import ManualClock
from mz_dagster.sql.errors import QueryOfTwoTimelines
from tests.adapter.test_interleavings import once_before
from tests.postgres_server import Postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    settings = ""
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres_server")
        postgres = server.new_database()
        url = f"postgresql://{postgres.user}@/{postgres.database}?host={postgres.socket_dir}"
        settings = f"[catalog]\nurl = '{url}'\n"
    (tmp_path / "mz.toml").write_text(settings)
    (tmp_path / "assets").mkdir()
    return Project.load(tmp_path)


#: On PostgreSQL only in the deep run.
ON_SQLITE = pytest.mark.parametrize(
    "project", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True
)


@pytest.fixture
def engine(project: Project) -> Iterator[Engine]:
    with Engine(project) as opened:
        session = Session(opened)
        session.execute("CREATE TABLE a (n integer)")
        session.execute("CREATE TABLE b (n integer)")
        yield opened


@pytest.fixture
def once_before_the_seal(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets statements of another session happen once, after a write has read and before it takes effect."""

    def once(*statements: str) -> None:
        def other() -> None:
            for statement in statements:
                Session(engine).execute(statement)

        once_before(monkeypatch, engine.catalog, "fresh_batch", other)

    return once


def rows(engine: Engine, sql: str) -> list[Any]:
    return sorted(Session(engine).execute(sql).rows)


def test_an_insert_of_a_count_counts_what_another_inserts_meanwhile(
    engine: Engine, once_before_the_seal: Callable[..., None]
) -> None:
    once_before_the_seal("INSERT INTO a SELECT count(*) FROM a")
    Session(engine).execute("INSERT INTO a SELECT count(*) FROM a")
    assert rows(engine, "SELECT n FROM a") == [(0,), (1,)]


def test_crossed_deletes_leave_one_of_the_tables(engine: Engine, once_before_the_seal: Callable[..., None]) -> None:
    session = Session(engine)
    session.execute("INSERT INTO a VALUES (1)")
    session.execute("INSERT INTO b VALUES (1)")
    once_before_the_seal("DELETE FROM b USING a")
    deleted = session.execute("DELETE FROM a USING b")
    assert deleted.rowcount == 0
    assert (rows(engine, "SELECT n FROM a"), rows(engine, "SELECT n FROM b")) == ([(1,)], [])


@ON_SQLITE
def test_an_update_sets_what_a_subquery_finds_when_it_takes_effect(
    engine: Engine, once_before_the_seal: Callable[..., None]
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO a VALUES (0)")
    session.execute("INSERT INTO b VALUES (1)")
    once_before_the_seal("UPDATE b SET n = 2")
    session.execute("UPDATE a SET n = (SELECT max(n) FROM b)")
    assert rows(engine, "SELECT n FROM a") == [(2,)]


@ON_SQLITE
def test_what_a_plain_view_reads_is_read_by_the_write(
    engine: Engine, once_before_the_seal: Callable[..., None]
) -> None:
    session = Session(engine)
    session.execute("CREATE VIEW many AS SELECT count(*) AS n FROM b")
    once_before_the_seal("INSERT INTO b VALUES (7)")
    session.execute("INSERT INTO a SELECT n FROM many")
    assert rows(engine, "SELECT n FROM a") == [(1,)]


@ON_SQLITE
def test_a_write_to_what_a_view_is_computed_from_counts_as_one_to_the_view(
    engine: Engine, once_before_the_seal: Callable[..., None]
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO b VALUES (7)")
    session.execute("CREATE MATERIALIZED VIEW copied AS SELECT n FROM b WHERE n > 0")
    once_before_the_seal("INSERT INTO b VALUES (8)")
    session.execute("INSERT INTO a SELECT n FROM copied")
    assert rows(engine, "SELECT n FROM a") == [(7,), (8,)]


@ON_SQLITE
def test_what_returning_reads_is_read_by_the_write(engine: Engine, once_before_the_seal: Callable[..., None]) -> None:
    once_before_the_seal("INSERT INTO b VALUES (7)")
    result = Session(engine).execute("INSERT INTO a VALUES (1) RETURNING n, (SELECT count(*) FROM b)")
    assert result.rows == ((1, 1),)


@ON_SQLITE
def test_a_table_that_was_read_cannot_be_written_before_the_write_took_effect(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that got its timestamp before has to take a later one: the order of times is the order of effects."""
    other = Session(engine)
    session = Session(engine)
    session.execute("INSERT INTO a VALUES (0)")
    session.execute("SELECT n FROM b")  # so that it is closed up to now, and the next to read it need not do so
    once_before(
        monkeypatch,
        engine.catalog,
        "fresh_batch",  # of the INSERT of values, which has its timestamp by now
        lambda: session.execute("INSERT INTO a SELECT count(*) FROM b"),
    )
    other.execute("INSERT INTO b VALUES (1)")
    written = [time_of(engine, "a"), time_of(engine, "b")]
    assert written == sorted(written)
    assert rows(engine, "SELECT n FROM a") == [(0,), (0,)]


def time_of(engine: Engine, table: str) -> int:
    """Returns the last time at which a table was written."""
    (id,) = [engine.collection_of(table)]
    return max(batch.upper.only for batch in engine.catalog.batches(id))


@ON_SQLITE
def test_a_reader_who_closes_the_table_makes_a_write_no_longer_read_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO b VALUES (1)")
    session.execute("INSERT INTO a VALUES (1)")
    read: list[object] = []
    found_at = Peeks.found_at

    def counted(peeks: Peeks, *given: Any) -> Any:
        read.append(given)
        return found_at(peeks, *given)

    monkeypatch.setattr(Peeks, "found_at", counted)

    def close() -> None:
        later = engine.catalog.write_ts("default", engine.now("default"))
        engine.catalog.close_tables("default", later, [engine.collection_of("a"), engine.collection_of("b")])

    once_before(monkeypatch, engine.catalog, "fresh_batch", close)
    session.execute("INSERT INTO a SELECT n FROM b")
    assert len(read) == 1
    assert rows(engine, "SELECT n FROM a") == [(1,), (1,)]


@ON_SQLITE
def test_a_write_that_loses_until_its_deadline_is_a_serialization_failure(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "project", replace(engine.project, write_deadline_ms=300))
    session = Session(engine)
    other = Session(engine)
    seal = engine.catalog.seal
    busy = False

    def seal_after_another(*arguments: Any, **named: Any) -> Any:
        nonlocal busy
        if not busy:
            busy = True
            other.execute("INSERT INTO b VALUES (1)")
            busy = False
        return seal(*arguments, **named)

    monkeypatch.setattr(engine.catalog, "seal", seal_after_another)
    with pytest.raises(WriteContended, match="could not serialize access") as raised:
        session.execute("INSERT INTO a SELECT count(*) FROM b")
    assert raised.value.sqlstate == "40001"
    assert "mz.toml" in str(raised.value.hint)
    monkeypatch.undo()
    assert rows(engine, "SELECT n FROM a") == []


@pytest.mark.parametrize("each", [3, pytest.param(5, marks=pytest.mark.deep)])
def test_writes_that_read_one_another_from_many_sessions_count_without_gaps(
    project: Project, engine: Engine, each: int
) -> None:
    """Each session inserts how many rows there are, as often as it can: whatever the order, they are 0, 1, 2, ..."""
    start = Barrier(4)

    def count() -> None:
        with Engine(project) as own:
            session = Session(own)
            start.wait()
            for _ in range(each):
                session.execute("INSERT INTO a SELECT count(*) FROM a")

    with ThreadPoolExecutor() as pool:
        for one in [pool.submit(count) for _ in range(4)]:
            one.result()
    assert rows(engine, "SELECT n FROM a") == [(n,) for n in range(4 * each)]


@ON_SQLITE
def test_a_write_and_what_it_reads_are_of_one_timeline(engine: Engine) -> None:
    session = Session(engine)
    session.execute("CREATE TABLE far (n integer) IN TIMELINE other")
    session.execute("INSERT INTO far VALUES (1)")
    for statement in (
        "INSERT INTO a SELECT n FROM far",
        "INSERT INTO a VALUES ((SELECT count(*) FROM far))",
        "INSERT INTO a VALUES (1) RETURNING (SELECT count(*) FROM far)",
        "DELETE FROM a USING far",
        "UPDATE a SET n = (SELECT n FROM far)",
    ):
        with pytest.raises(QueryOfTwoTimelines):
            session.execute(statement)
    assert rows(engine, "SELECT n FROM a") == []
    session.execute("INSERT INTO far SELECT n + 1 FROM far")
    assert rows(engine, "SELECT n FROM far") == [(1,), (2,)]


def test_the_time_of_a_write_is_one_that_the_oracle_has_handed_out(project: Project) -> None:
    """What a statement was told to be now is before it takes effect, and never later than what anyone is told next."""
    clock = ManualClock(1_000_000)
    with Engine(project, clock=clock) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE b (n integer, at mz_timestamp)")
        session.execute("INSERT INTO b VALUES (1)")
        for statement in ("UPDATE b SET at = mz_now() RETURNING at", "INSERT INTO b VALUES (2, mz_now()) RETURNING at"):
            clock.advance(1000)
            ((told,),) = session.execute(statement).rows
            assert clock.now_ms() <= told < time_of(engine, "b") - 1
        clock.advance(1000)
        assert session.execute("UPDATE b SET at = mz_now() WHERE n = 7").rowcount == 0
        clock.advance(-2000)
        ((now,),) = session.execute("SELECT mz_now()").rows
        assert now >= clock.now_ms() + 2000


@ON_SQLITE
def test_a_view_that_changes_with_the_clock_is_right_when_the_write_takes_effect(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that become due between what was read and the write make it read again."""
    clock = ManualClock(1_000_000)
    with Engine(project, clock=clock) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE a (n bigint)")
        session.execute("CREATE TABLE b (n bigint)")
        session.execute("INSERT INTO b VALUES (1000010), (1005000)")
        session.execute("CREATE MATERIALIZED VIEW later AS SELECT n FROM b WHERE mz_now() < n")

        def pass_by() -> None:
            """Somebody reads the table, so that the time that was handed out for the write is gone, and time passes."""
            clock.advance(2000)
            engine.reach("default", engine.now("default"), frozenset({engine.collection_of("a")}))

        once_before(monkeypatch, engine.catalog, "fresh_batch", pass_by)
        session.execute("INSERT INTO a SELECT count(*) FROM later")
        assert rows(engine, "SELECT n FROM a") == [(1,)]
