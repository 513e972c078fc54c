"""What another process does in the middle of a command: each test puts it exactly between two of its steps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog import CatalogBusy, UnknownObject
from mz_dagster.compute.step.stepper import StepLost
from mz_dagster.errors import ProgrammingError
from mz_dagster.storage.compact import compact
from mz_dagster.storage.read import ReadBeforeSince
from mz_dagster.storage.shards import BatchIncomplete
from tests.budgets import SetBudget
from tests.postgres_server import Postgres


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "mz.toml").write_text("[retention]\nkeep = '0 ms'\n")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.sql").write_text("CREATE TABLE t (a integer);", encoding="utf-8")
    return Project.load(tmp_path)


@pytest.fixture
def engine(project: Project) -> Any:
    with Engine(project) as opened:
        opened.apply()
        yield opened


def once_before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Callable[[], object]) -> None:
    """Lets `other` happen before the first call of a method."""
    original = getattr(owner, name)
    pending = [other]

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if pending:
            pending.pop()()
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, wrapped)


@pytest.fixture(params=["listed", "lease"])
def once_before_it_reads(
    request: pytest.FixtureRequest, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], object]], None]:
    """Lets something happen before a read of the session lists what it reads: at once, or under a lease.

    It takes a lease if the first list was of batches that are swept.
    """

    def swept() -> None:
        raise BatchIncomplete("t", 1, 1, None)

    def once(other: Callable[[], object]) -> None:
        if request.param == "lease":
            once_before(monkeypatch, engine.shards, "files", swept)
        once_before(monkeypatch, engine.catalog, request.param, other)

    return once


def write_and_forget(engine: Engine) -> None:
    """Inserts a row, and merges all history before it away."""
    Session(engine).execute("INSERT INTO t VALUES (2)")
    engine.catalog.allow_compaction("default", retention_ms=0)
    row = engine.catalog.collection(engine.collection_of("t"))
    compact(engine.catalog, engine.shards, row, holder="other", least_parts=1)


def test_a_read_whose_time_is_forgotten_under_it_reads_at_a_later_one(
    engine: Engine, once_before_it_reads: Callable[[Callable[[], object]], None]
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO t VALUES (1)")
    once_before_it_reads(lambda: write_and_forget(engine))
    assert sorted(session.execute("SELECT * FROM t").rows) == [(1,), (2,)]


def test_a_read_at_a_given_time_that_is_forgotten_under_it_is_refused(
    engine: Engine, once_before_it_reads: Callable[[Callable[[], object]], None]
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO t VALUES (1)")
    time = engine.catalog.read_ts("default")
    once_before_it_reads(lambda: write_and_forget(engine))
    with pytest.raises(ReadBeforeSince):
        session.execute(f"SELECT * FROM t AS OF {time}")


def test_a_read_of_what_is_dropped_under_it_is_an_error_and_not_empty(
    engine: Engine, once_before_it_reads: Callable[[Callable[[], object]], None]
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO t VALUES (1)")
    id = engine.collection_of("t")
    once_before_it_reads(lambda: engine.catalog.drop_object(id))
    with pytest.raises(ProgrammingError, match="was dropped"):
        session.execute("SELECT * FROM t")


def test_a_read_of_what_is_dropped_before_it_is_reached_says_so(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO t VALUES (1)")
    id = engine.collection_of("t")
    engine.catalog.apply_write("default", engine.catalog.write_ts("default", 0))  # a time to be reached
    once_before(monkeypatch, engine, "reach", lambda: engine.catalog.drop_object(id))
    with pytest.raises(UnknownObject, match="was dropped"):
        session.execute("SELECT * FROM t")


def test_a_delete_whose_table_is_written_and_compacted_under_it_sees_all_rows(
    engine: Engine, once_before_it_reads: Callable[[Callable[[], object]], None]
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO t VALUES (1)")
    once_before_it_reads(lambda: write_and_forget(engine))
    assert session.execute("DELETE FROM t").rowcount == 2
    assert session.execute("SELECT * FROM t").rows == ()


def test_a_delete_from_a_table_that_is_dropped_under_it_says_so(
    engine: Engine, once_before_it_reads: Callable[[Callable[[], object]], None]
) -> None:
    session = Session(engine)
    session.execute("INSERT INTO t VALUES (1)")
    id = engine.collection_of("t")
    once_before_it_reads(lambda: engine.catalog.drop_object(id))
    with pytest.raises(UnknownObject, match="was dropped"):
        session.execute("DELETE FROM t")


def test_an_insert_into_a_table_that_is_dropped_under_it_says_so(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = engine.collection_of("t")
    once_before(monkeypatch, engine.catalog, "write_ts", lambda: engine.catalog.drop_object(id))
    with pytest.raises(UnknownObject, match="was dropped"):
        Session(engine).execute("INSERT INTO t VALUES (1)")


def test_a_write_that_is_sealed_succeeds_though_its_lease_cannot_be_given_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget
) -> None:
    set_budget(inlined_rows=0)  # else it needs no lease

    def busy(_: object) -> None:
        raise CatalogBusy("the catalog is busy")

    monkeypatch.setattr(engine.catalog, "retire_writer", busy)
    session = Session(engine)
    session.execute("INSERT INTO t VALUES (1)")  # to be told that it failed would make the caller do it twice
    assert session.execute("SELECT * FROM t").rows == ((1,),)


def test_a_step_from_which_an_object_is_dropped_can_be_run_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(engine)
    session.execute("CREATE TABLE other (a integer)")
    id = engine.collection_of("other")
    tick = engine.catalog.write_ts("default", engine.now("default"))
    engine.catalog.apply_write("default", tick)
    once_before(monkeypatch, engine.stepper, "run", lambda: engine.catalog.drop_object(id))
    with pytest.raises(StepLost):
        engine.step("default", tick)
    engine.step("default", tick)
    assert engine.catalog.collection(engine.collection_of("t")).upper.only == tick + 1


def test_a_read_goes_on_when_something_else_is_dropped_under_its_step(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(engine)
    session.execute("CREATE TABLE other (a integer)")
    session.execute("INSERT INTO t VALUES (1)")
    engine.catalog.apply_write("default", engine.catalog.write_ts("default", 0))
    id = engine.collection_of("other")
    once_before(monkeypatch, engine.stepper, "run", lambda: engine.catalog.drop_object(id))
    assert session.execute("SELECT * FROM t").rows == ((1,),)


def test_a_merge_of_what_is_dropped_under_it_is_a_lost_race(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(engine)
    for n in range(4):
        session.execute("INSERT INTO t VALUES (?)", (n,))
    id = engine.collection_of("t")
    once_before(monkeypatch, engine.catalog, "fresh_batch", lambda: engine.catalog.drop_object(id))
    assert not [line for line in engine.compact() if "merged" in line]


def test_history_to_retain_is_declared_with_the_object_in_one_transaction(project: Project) -> None:
    (project.assets / "k.sql").write_text("CREATE TABLE k (a integer) WITH (RETAIN HISTORY FOR '1 hour');")
    with Engine(project) as engine:
        engine.apply()
        assert engine.catalog.collection(engine.collection_of("k")).retention_ms == 3_600_000


def test_processes_that_share_a_catalog_on_postgresql_lose_and_double_nothing(
    tmp_path: Path, postgres: Postgres
) -> None:
    url = f"postgresql://{postgres.user}@/{postgres.database}?host={postgres.socket_dir}"
    (tmp_path / "mz.toml").write_text(f"[catalog]\nurl = '{url}'\n[retention]\nkeep = '0 ms'\n")
    project = Project.load(tmp_path)
    with Engine(project) as engine:
        Session(engine).execute("CREATE TABLE t (a integer)")

    def write(first: int) -> None:
        with Engine(project) as engine:
            for n in range(first, first + 8):
                Session(engine).execute("INSERT INTO t VALUES (?)", (n,))

    def compact_often() -> None:
        with Engine(project) as engine:
            for _ in range(6):
                list(engine.compact())

    def read() -> None:
        seen: set[Any] = set()
        with Engine(project) as engine:
            for _ in range(12):
                found = Session(engine).execute("SELECT * FROM t").rows
                assert len(set(found)) == len(found)
                assert seen <= set(found)
                seen = set(found)

    with ThreadPoolExecutor() as pool:
        started = [pool.submit(write, 0), pool.submit(write, 8), pool.submit(compact_often), pool.submit(read)]
        for one in started:
            one.result()
    with Engine(project) as engine:
        assert sorted(Session(engine).execute("SELECT * FROM t").rows) == [(n,) for n in range(16)]
