"""Temporary objects: a session's own, seen by it alone, and gone with it, however it ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Project
from mz_dagster.adapter.project_files import load_project
from mz_dagster.catalog import lease_liveness
from mz_dagster.errors import NotSupportedError
from mz_dagster.sql.errors import UndefinedTable
from mz_dagster.storage.sweep import sweep
from tests.forks import forks
from tests.opened import opened


def vanish(root: str) -> None:
    """Is a process that dies with temporary objects."""
    connection = opened(Path(root))
    connection.execute("CREATE TEMP TABLE t AS SELECT 1 AS a")
    connection.execute("CREATE TEMP VIEW v AS SELECT a FROM t")

    os._exit(9)


def shown(connection: Connection) -> list[str]:
    return [name for name, _ in connection.execute("SHOW OBJECTS").fetchall()]


def test_temporary_objects_are_seen_by_their_session_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as other:
        one.execute("CREATE TABLE p (a integer)")
        for connection, value in ((one, 1), (other, 2)):
            connection.execute("CREATE TEMP TABLE t (a integer)")
            connection.execute("INSERT INTO t VALUES (?)", (value,))
            connection.execute("CREATE INDEX t_a ON t (a)")
        one.execute("CREATE TEMP VIEW v AS SELECT a FROM t")
        assert (shown(one), shown(other)) == (["p", "t", "t_a", "v"], ["p", "t", "t_a"])
        assert one.execute("SELECT a FROM v").fetchall() == [(1,)]
        assert other.execute("SELECT a FROM t WHERE a = 2").fetchall() == [(2,)]
        with pytest.raises(UndefinedTable):
            other.execute("SELECT a FROM v")
        assert one.execute("SHOW CREATE TABLE t").fetchall() == [("t", "CREATE TEMP TABLE t (a integer)")]
        with pytest.raises(NotSupportedError, match="must not use temporary"):
            one.execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
        engine = other.engine
        one.close()
        assert [row.created_as for row in engine.catalog.objects()] == ["p", "t", "t_a"]
        other.execute("DROP TABLE t")
        assert [row.created_as for row in engine.catalog.objects()] == ["p"]


def test_a_temporary_view_blocks_the_drop_of_what_it_reads_as_any_view(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as other:
        one.execute("CREATE TABLE p (a integer)")
        other.execute("CREATE TEMP VIEW v AS SELECT a FROM p")
        with pytest.raises(Exception, match='"p"') as caught:
            one.execute("DROP TABLE p")
        assert caught.value.sqlstate == "2BP01"  # type: ignore[attr-defined]
        one.execute("DROP TABLE p CASCADE")
        with pytest.raises(UndefinedTable):
            other.execute("SELECT a FROM v")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_temporary_objects_of_a_process_that_died_are_swept_at_once_or_when_its_lease_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE p (a integer)")
        process = forks().Process(target=vanish, args=(str(tmp_path),))
        process.start()
        process.join(60)
        assert process.exitcode == 9
        engine = connection.engine
        if elsewhere:  # of what runs on another machine nobody knows
            monkeypatch.setattr(lease_liveness, "is_dead", lambda _: False)
            sweep(engine.catalog, engine.shards)
            assert [row.created_as for row in engine.catalog.objects()] == ["p", "t", "v"]
            later = engine.clock.now_ms() + 3_600_000
            monkeypatch.setattr(engine.catalog, "_now_ms", lambda: later)
        sweep(engine.catalog, engine.shards)
        assert [row.created_as for row in engine.catalog.objects()] == ["p"]


def test_a_project_file_defines_no_temporary_object(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.sql").write_text("CREATE TEMP TABLE t (a integer);\nCREATE TABLE p (a integer);\n")
    files = load_project(Project.load(tmp_path))
    assert [one.name for one in files.objects] == ["p"]
    assert [one.error.message.endswith("t.sql:1: a temporary object is a session's own") for one in files.faults] == [
        True
    ]


def test_the_schema_of_temporary_objects_is_told_once_there_is_one(sparkless: Connection) -> None:
    assert sparkless.execute("SELECT pg_my_temp_schema()").fetchall() == [(0,)]
    sparkless.execute("CREATE TEMP TABLE mine (a integer)")
    mine = "SELECT relname, nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
    found = sparkless.execute(f"{mine} WHERE n.oid = pg_my_temp_schema()").fetchall()
    assert found == [("mine", "pg_temp_1")]
