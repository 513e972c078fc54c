"""Catalogs of one process compile each statement once."""

from __future__ import annotations

from pathlib import Path

from mz_dagster.catalog.compiled_statements import COMPILED_STATEMENTS
from tests.opened import Connect

STATEMENTS = (
    "CREATE TABLE t (a integer)",
    "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t",
    "INSERT INTO t VALUES (1), (2)",
    "SELECT n FROM v",
)


def test_a_second_project_compiles_nothing_that_the_first_has_compiled(connect: Connect, tmp_path: Path) -> None:
    known = []
    for name in ("one", "other"):
        connection = connect(tmp_path / name)
        for statement in STATEMENTS:
            connection.execute(statement)
        assert connection.execute("SELECT n FROM v").fetchall() == [(2,)]
        known.append(len(COMPILED_STATEMENTS))
    first, second = known
    assert 50 < first == second
