"""What statements tell beside their results is kept by cursors, and printed by the command line."""

from __future__ import annotations

import pytest

import mz_dagster.dbapi
from mz_dagster.adapter import Connection, Session
from mz_dagster.cli.output import Output
from mz_dagster.cli.statements import Progress, execute


def test_cursors_keep_what_their_statement_told(sparkless: Connection) -> None:
    cursor = sparkless.cursor()
    cursor.execute("DROP TABLE IF EXISTS one; DROP VIEW IF EXISTS two")
    told = ['NOTICE:  table "one" does not exist, skipping', 'NOTICE:  view "two" does not exist, skipping']
    assert [str(value) for _, value in cursor.messages] == told
    assert all(kind is mz_dagster.dbapi.Warning and isinstance(value, kind) for kind, value in sparkless.messages)
    cursor.execute("SELECT 1")
    assert (cursor.messages, sparkless.messages) == ([], [])
    with pytest.raises(mz_dagster.Error):
        cursor.execute("COMMIT; SELECT 1 / 0")
    assert [str(value) for _, value in cursor.messages] == ["WARNING:  there is no transaction in progress"]


def test_foreign_keys_go_with_the_schema_of_what_they_refer_to_and_that_is_told(sparkless: Connection) -> None:
    cursor = sparkless.cursor()
    cursor.execute(
        "CREATE SCHEMA s; CREATE TABLE s.p (id integer PRIMARY KEY); CREATE TABLE c (p integer REFERENCES s.p)"
    )
    cursor.execute("DROP SCHEMA s CASCADE")
    assert [str(value) for _, value in cursor.messages] == [
        "NOTICE:  drop cascades to 2 other objects\n"
        "DETAIL:  drop cascades to table s.p\ndrop cascades to constraint c_p_fkey on table c"
    ]


def test_the_command_line_prints_what_statements_tell(
    sparkless: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    views = "CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a FROM t"
    text = f"CREATE TABLE t (a int); {views}; DROP TABLE t CASCADE"
    execute(Session(sparkless.engine), text, Progress(), Output())
    lines = ["NOTICE:  drop cascades to 2 other objects", "DETAIL:  drop cascades to view v", "drop cascades to view w"]
    assert capsys.readouterr().err.splitlines() == lines
