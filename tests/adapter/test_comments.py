"""COMMENT ON in a session: said, shown, changed, and taken along by ALTER TABLE."""

from __future__ import annotations

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error

SHOWN = "SELECT object_type, object_sub_id, comment FROM mz_internal.mz_comments"


def test_comments_are_shown_until_they_are_taken_back(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer, b text)")
    sparkless.execute("CREATE VIEW v AS SELECT a FROM t")
    for statement in ("TABLE t IS 'a table'", "COLUMN public.t.b IS 'a column'", "VIEW v IS 'it''s a view'"):
        sparkless.execute(f"COMMENT ON {statement}")
    every = [("table", None, "a table"), ("table", 2, "a column"), ("view", None, "it's a view")]
    assert sorted(sparkless.execute(SHOWN).fetchall(), key=str) == sorted(every, key=str)
    sparkless.execute("DROP VIEW v")
    sparkless.execute("COMMENT ON TABLE t IS NULL")
    sparkless.execute("ALTER TABLE t DROP COLUMN a")
    sparkless.execute("ALTER TABLE t RENAME COLUMN b TO c")
    assert sparkless.execute(SHOWN).fetchall() == [("table", 1, "a column")]
    sparkless.execute("COMMENT ON COLUMN t.c IS ''")
    assert sparkless.execute(SHOWN).fetchall() == []


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [("TABLE nothing IS 'x'", "42P01"), ("VIEW t IS 'x'", "42809"), ("COLUMN t.nothing IS 'x'", "42703")],
)
def test_a_comment_is_on_what_exists(sparkless: Connection, statement: str, sqlstate: str) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    with pytest.raises(Error) as caught:
        sparkless.execute(f"COMMENT ON {statement}")
    assert caught.value.sqlstate == sqlstate
