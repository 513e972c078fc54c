"""A strict serializable read sees what lies in the folders of the sources that it is computed from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import BadSettings, Connection, Engine, Poll, Project
from mz_dagster.errors import OperationalError
from tests.errors import says_what_to_do
from tests.opened import opened

YEAR_2001 = (10**9, 10**9)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A source `s` with one file, `v` over it, and a table `t`."""
    (tmp_path / "s").mkdir()
    drop(tmp_path, 1)
    with opened(tmp_path) as connection:
        connection.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER 's') FORMAT CSV")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a + 1 AS b FROM s")
        connection.execute("CREATE TABLE t (a bigint)")
        yield connection


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[Poll]:
    """What each poll found, whoever made it."""
    made: list[Poll] = []
    poll = Engine.poll

    def noted(engine: Engine, timeline: str) -> Poll:
        made.append(poll(engine, timeline))
        return made[-1]

    monkeypatch.setattr(Engine, "poll", noted)
    return made


def drop(root: Path, *numbers: int) -> None:
    (root / "s" / f"{numbers[0]}.csv").write_text("a\n" + "".join(f"{one}\n" for one in numbers))


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(sql).fetchall())


def test_a_read_sees_the_files_that_lie_there(connection: Connection, tmp_path: Path) -> None:
    assert rows(connection, "SELECT a FROM s") == [(1,)]
    drop(tmp_path, 2, 3)
    assert rows(connection, "SELECT b FROM v") == [(2,), (3,), (4,)]
    drop(tmp_path, 4)
    connection.execute("INSERT INTO t SELECT count(*) FROM v")
    assert rows(connection, "SELECT a FROM t") == [(4,)]
    connection.execute("UPDATE t SET a = (SELECT sum(a) FROM s)")
    assert rows(connection, "SELECT a FROM t") == [(10,)]


def test_where_the_settings_say_so_only_runs_poll(connection: Connection, tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("[reads]\npoll = false\n")
    with opened(tmp_path) as other:
        assert rows(other, "SELECT a FROM s") == []
        assert other.engine.poll("default").files == 1
        assert rows(other, "SELECT a FROM s") == [(1,)]
    (tmp_path / "mz.toml").write_text("[reads]\npoll = 'never'\n")
    with pytest.raises(BadSettings, match=r'"reads.poll" in .* must be true or false'):
        Project.load(tmp_path)


def test_serializable_reads_and_those_of_the_past_do_not_poll(connection: Connection, polls: list[Poll]) -> None:
    (time,) = connection.execute("SELECT mz_now()").fetchone() or ()
    assert rows(connection, f"SELECT a FROM s AS OF {time}") == []
    connection.execute("SET transaction_isolation = 'serializable'")
    assert rows(connection, "SELECT a FROM s") == []
    assert not polls


def test_a_transaction_sees_what_lay_there_at_its_first_read(connection: Connection, tmp_path: Path) -> None:
    with connection.transaction():
        assert rows(connection, "SELECT a FROM s") == [(1,)]
        drop(tmp_path, 2)
        assert rows(connection, "SELECT b FROM v") == [(2,)]
    assert rows(connection, "SELECT b FROM v") == [(2,), (3,)]


def test_nothing_is_polled_where_nothing_can_have_arrived(
    connection: Connection, tmp_path: Path, polls: list[Poll]
) -> None:
    assert rows(connection, "SELECT a FROM t") == []
    assert not polls, "a table is computed from no source"
    os.utime(tmp_path / "s", YEAR_2001)
    for _ in range(2):
        assert rows(connection, "SELECT b FROM v") == [(2,)]
    assert len(polls) == 1, "the folder was as it is for long"
    drop(tmp_path, 2)
    for number in (2, 3):
        assert rows(connection, "SELECT b FROM v") == [(2,), (3,)]
        assert len(polls) == number, "another file may come within the same tick of the file system's clock"


def test_folders_within_folders_are_always_polled(connection: Connection, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    connection.execute("CREATE SOURCE d (a integer) FROM FILES (FOLDER 'deep', PATTERN '*/*') FORMAT CSV")
    os.utime(tmp_path / "deep", YEAR_2001)
    assert rows(connection, "SELECT a FROM d") == []
    (tmp_path / "deep" / "er" / "1.csv").write_text("a\n7\n")
    assert rows(connection, "SELECT a FROM d") == [(7,)]


def test_a_read_polls_again_if_another_process_was_first(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, others = Engine._mint, 1

    def mint_late(engine: Engine, *args: object) -> Poll:  # after the folders were listed
        nonlocal others
        if engine is connection.engine and others:
            others -= 1
            drop(tmp_path, 2)
            with opened(tmp_path) as other:
                assert other.engine.poll("default").files == 2
            drop(tmp_path, 3)
        return sync(engine, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "_mint", mint_late)
    assert rows(connection, "SELECT a FROM s") == [(1,), (2,), (3,)]


def test_a_source_that_cannot_be_polled_is_not_read_as_it_was(connection: Connection, tmp_path: Path) -> None:
    assert rows(connection, "SELECT a FROM s") == [(1,)]
    (tmp_path / "s" / "2.csv").write_text("b\n2\n")
    with pytest.raises(OperationalError) as caught:
        connection.execute("SELECT b FROM v")
    says_what_to_do(caught.value, '"s" could not be polled', "2.csv")
    assert rows(connection, "SELECT a FROM t") == []
    (tmp_path / "s" / "2.csv").unlink()
    assert rows(connection, "SELECT b FROM v") == [(2,)]
