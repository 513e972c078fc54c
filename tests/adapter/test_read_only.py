"""A project that cannot be written: reads work, and what would write says in one line what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project

#: Runs each statement in a connection of its own, and prints what came of it.
PROGRAM = """
import json, sys
import mz_dagster
from mz_dagster.errors import one_line

root, *statements = sys.argv[1:]
for statement in statements:
    try:
        with mz_dagster.connect(root) as connection:
            print(json.dumps(connection.execute(statement).fetchall()))
    except mz_dagster.Error as error:
        print(json.dumps(f"{error.sqlstate} {one_line(error)}"))
"""
#: Even root may not write what nobody may.
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A project whose folders cannot be written: a table in a file, a view that is as far, and one that is behind."""
    root = tmp_path / "a project"
    root.mkdir()
    (root / "mz.toml").write_text('[project]\nname = "p"\n[writes]\ninline_rows = 2\n')
    with Connection(Engine(Project.load(root)), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        for name in ("v", "behind"):
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a, count(*) AS n FROM t GROUP BY a")
        connection.execute("INSERT INTO t VALUES (1), (2), (2)")
        connection.execute("SELECT * FROM v")
    everything = [root, *root.rglob("*")]
    for path in everything:
        path.chmod(path.stat().st_mode & 0o555)
    yield root
    for path in everything:
        path.chmod(path.stat().st_mode | 0o200)


def ran(root: Path, *statements: str) -> list[object]:
    command = [*AS_ANYBODY, sys.executable, "-c", PROGRAM, str(root), *statements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_cannot_be_written_can_be_read(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    table, view, joined, constant, behind, insert, create = ran(
        root,
        "SELECT a FROM t ORDER BY a",
        "SELECT * FROM v ORDER BY a",
        "SELECT t.a, n FROM t JOIN v ON t.a = v.a ORDER BY 1",
        "SELECT 1 + 1",
        "SELECT * FROM behind",
        "INSERT INTO t VALUES (3)",
        "CREATE VIEW w AS SELECT 1 AS one",
    )
    assert table == [[1], [2], [2]]
    assert view == [[1, 1], [2, 2]]
    assert joined == [[1, 1], [2, 2], [2, 2]]
    assert constant == [[2]]
    assert str(behind).startswith('25006 "behind" is not computed up to')
    assert "AS OF" in str(behind)
    for refused in (insert, create):
        assert str(refused).startswith("25006 the project is read-only: its catalog")
        assert "Give this user the right" in str(refused)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
