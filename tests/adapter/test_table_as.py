"""CREATE TABLE AS: nothing or all of it at one time, wherever its process is killed, and whoever writes meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.catalog import NameTaken
from mz_dagster.fail_point import VARIABLE
from mz_dagster.storage.sweep import sweep
from tests.forks import forks
from tests.opened import opened

#: Where a process is killed that creates a table, and whether the table is there.
KILLS = {
    "catalog.before_commit:2": False,
    "append.before_reserve": False,
    "append.inlined": False,
    "append.reserved": False,
    "append.written": False,
    "append.before_seal": False,
    "seal.in_transaction": False,
    "seal.sealed": True,
}
NOTHING_INLINED = "[writes]\ninline_rows = 0\n"


def create(root: str, kill: str) -> None:
    """Is the process: creates a table, and is killed."""
    with opened(Path(root)) as connection:
        os.environ[VARIABLE] = kill
        connection.execute("CREATE TABLE made AS SELECT a, a + 1 AS b FROM s")


@pytest.mark.parametrize(
    "settings", ["", pytest.param(NOTHING_INLINED, marks=pytest.mark.deep)], ids=["inlined", "in files"]
)
def test_a_table_whose_maker_is_killed_is_there_whole_or_not_at_all(tmp_path: Path, settings: str) -> None:
    (tmp_path / "mz.toml").write_text(settings)
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE s (a integer)")
        connection.execute("INSERT INTO s VALUES (1), (2), (2)")
        elsewhere = ("append.inlined",) if settings else ("append.reserved", "append.written")
        for kill, is_there in KILLS.items():
            if kill in elsewhere:
                continue
            process = forks().Process(target=create, args=(str(tmp_path), kill))
            process.start()
            process.join(60)
            assert process.exitcode == -9
            tables = [name for name, _ in connection.execute("SHOW TABLES").fetchall()]
            assert tables == (["made", "s"] if is_there else ["s"]), kill
            if is_there:
                assert sorted(connection.execute("SELECT a, b FROM made").fetchall()) == [(1, 2), (2, 3), (2, 3)]
                connection.execute("DROP TABLE made")
            connection.execute("CREATE TABLE made AS SELECT a FROM s")
            connection.execute("DROP TABLE made")


def test_what_a_killed_maker_left_is_swept_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE s (a integer)")
        process = forks().Process(target=create, args=(str(tmp_path), "append.before_seal"))
        process.start()
        process.join(60)
        assert process.exitcode == -9
        engine = connection.engine
        (left,) = (one for one in engine.catalog.objects("table") if one.name is None)
        assert left.created_as == "made"
        assert engine.catalog.drop_unneeded() == (left.id,)
        sweep(engine.catalog, engine.shards)
        assert [one.name for one in engine.catalog.objects("table")] == ["s"]


def test_a_table_holds_what_its_query_returned_at_one_time_whoever_writes(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text('[writes]\ndeadline = "2 min"\n')
    with opened(tmp_path) as connection, opened(tmp_path) as other:
        connection.execute("CREATE TABLE s (a integer)")
        connection.execute("INSERT INTO s VALUES (0)")
        done = threading.Event()

        def write() -> None:
            while not done.wait(0.1):  # at every time the table has one row
                other.execute("UPDATE s SET a = a + 1")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(3):
                connection.execute(f"CREATE TABLE t{number} AS SELECT (SELECT a FROM s) AS x, a AS y FROM s")
        finally:
            done.set()
            writer.join()
        for number in range(3):
            ((x, y),) = connection.execute(f"SELECT x, y FROM t{number}").fetchall()
            assert x == y


def test_of_two_that_create_one_table_one_is_told_that_its_name_is_taken(tmp_path: Path) -> None:
    with opened(tmp_path) as connection, opened(tmp_path) as other:
        connection.execute("CREATE TABLE s (a integer)")
        outcomes: list[str] = []

        def make(one: Connection, barrier: threading.Barrier) -> None:
            barrier.wait()
            try:
                one.execute("CREATE TABLE made AS SELECT a FROM s")
                outcomes.append("made")
            except NameTaken:
                outcomes.append("taken")

        barrier = threading.Barrier(2)
        threads = [threading.Thread(target=make, args=(one, barrier)) for one in (connection, other)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert sorted(outcomes) == ["made", "taken"]
        assert [one.created_as for one in connection.engine.catalog.objects("table")] == ["s", "made"]
