"""ALTER TABLE: as it was or as it is to be, wherever its process is killed and whoever writes meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error, NotSupportedError
from mz_dagster.fail_point import VARIABLE
from tests.forks import forks
from tests.opened import opened

KILLS = {"append.before_reserve": False, "append.before_seal": False, "seal.in_transaction": False, "seal.sealed": True}


def alter(root: str, kill: str, in_block: bool) -> None:
    """Is the process: adds a column, and is killed."""
    with opened(Path(root)) as connection:
        if not in_block:
            os.environ[VARIABLE] = kill
            connection.execute("ALTER TABLE t ADD COLUMN b serial")
            return
        connection.execute("BEGIN")
        connection.execute("ALTER TABLE t ADD COLUMN b serial")
        os.environ[VARIABLE] = kill
        connection.execute("COMMIT")


def contents(connection: Connection) -> tuple[list[str], list[tuple[object, ...]]]:
    cursor = connection.execute("SELECT * FROM t")
    return [one[0] for one in cursor.description or ()], sorted(cursor.fetchall())


@pytest.mark.parametrize(
    ("settings", "in_block", "is_read"),
    [
        ("", False, False),
        pytest.param("[writes]\ninline_rows = 0\n", False, False, marks=pytest.mark.deep),
        ("", True, False),
        ("", True, True),
    ],
    ids=["inlined", "in files", "in a block", "under a view in a block"],
)
def test_a_table_whose_alteration_is_killed_is_as_before_or_as_behind(
    tmp_path: Path, settings: str, in_block: bool, is_read: bool
) -> None:
    (tmp_path / "mz.toml").write_text(settings)
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        if is_read:
            connection.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(a) AS a FROM t")
        kills = {one: done for one, done in KILLS.items() if one.startswith("seal.") or not in_block}
        for kill, is_done in kills.items():
            process = forks().Process(target=alter, args=(str(tmp_path), kill, in_block))
            process.start()
            process.join(60)
            assert process.exitcode == -9
            names, rows = contents(connection)
            assert names == (["a", "b"] if is_done else ["a"])
            assert [one[0] for one in rows] == [1, 2]
        assert sorted(one[1] for one in rows) == [1, 2]  # type: ignore[type-var]
        connection.execute("INSERT INTO t VALUES (3)")
        assert max(one[1] for one in contents(connection)[1]) == 3  # type: ignore[type-var]
        if is_read:
            assert connection.execute("TABLE m").fetchall() == [(6,)]


def test_no_write_is_lost_or_doubled_by_alterations_meanwhile(tmp_path: Path) -> None:
    with opened(tmp_path) as connection, opened(tmp_path) as other:
        connection.execute("CREATE TABLE t (a integer, n serial)")
        written: list[int] = []
        enough = threading.Event()

        def write() -> None:
            while not enough.is_set():
                number = len(written)
                other.execute("INSERT INTO t (a) VALUES (?)", (number,))
                written.append(number)

        writer = threading.Thread(target=write)
        writer.start()
        added = 0
        try:
            while added < 3 or (len(written) < 40 and added < 20):
                connection.execute(f"ALTER TABLE t ADD COLUMN c{added} integer DEFAULT {added}")
                added += 1
        finally:
            enough.set()
            writer.join()
        names, rows = contents(connection)
        assert names == ["a", "n", *(f"c{number}" for number in range(added))]
        assert [one[0] for one in rows] == written == list(range(len(written)))
        assert len({one[1] for one in rows}) == len(written)
        assert all(one[2:] == tuple(range(added)) for one in rows)


def test_a_time_before_an_alteration_is_refused_and_never_answered_empty(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    before = sparkless.engine.catalog.read_ts(sparkless.engine.project.timeline)
    assert sparkless.execute(f"SELECT a FROM t AS OF {before}").fetchall() == [(1,)]
    sparkless.execute("ALTER TABLE t RENAME COLUMN a TO b")
    assert sparkless.execute("SELECT b FROM t").fetchall() == [(1,)]
    with pytest.raises(Error, match="could not find a valid timestamp"):
        sparkless.execute(f"SELECT b FROM t AS OF {before}")


def test_a_file_that_says_what_a_table_was_altered_to_is_its_definition(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    file = tmp_path / "assets" / "t.sql"
    file.write_text("CREATE TABLE t (a int PRIMARY KEY);")
    with opened(tmp_path) as connection:
        connection.engine.apply()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("ALTER TABLE t ADD COLUMN b text DEFAULT 'x' CHECK (b <> '')")
        with pytest.raises(Error, match='the definition of table "t" changed'):
            connection.engine.apply()
        file.write_text("CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x' CHECK (b <> ''));")
        plan = connection.engine.apply()
        assert (plan.kept, plan.orphaned) == (("t",), ())
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, "x")]
        ((_, text),) = connection.execute("SHOW CREATE TABLE t").fetchall()
        assert text.startswith("CREATE TABLE t (\n    a integer NOT NULL,\n    b text DEFAULT 'x',\n")


def test_a_constraint_is_renamed(sparkless: Connection) -> None:
    sparkless.execute(
        "CREATE TABLE t (a integer PRIMARY KEY, b integer UNIQUE, CHECK (a < b)); INSERT INTO t VALUES (1, 2)"
    )
    sparkless.execute(
        "ALTER TABLE t RENAME CONSTRAINT t_check TO below; ALTER TABLE t RENAME CONSTRAINT t_b_key TO one"
    )
    for row, name in (("3, 2", "below"), ("0, 2", "one"), ("1, 9", "t_pkey")):
        with pytest.raises(Error, match=f'"{name}"'):
            sparkless.execute(f"INSERT INTO t VALUES ({row})")
    sparkless.execute("INSERT INTO t VALUES (0, 2) ON CONFLICT ON CONSTRAINT one DO UPDATE SET b = 5")
    assert sparkless.execute("SELECT * FROM t").fetchall() == [(1, 5)]
    sparkless.execute("ALTER TABLE t DROP CONSTRAINT below")
    sparkless.execute("INSERT INTO t VALUES (3, 2)")
    for wrong, message in (("x TO y", "does not exist"), ("one TO t_pkey", "already exists")):
        with pytest.raises(Error, match=message):
            sparkless.execute(f"ALTER TABLE t RENAME CONSTRAINT {wrong}")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE t ALTER COLUMN a TYPE text USING a || 'x'", "TYPE ... USING is not supported"),
        ("ALTER TABLE t DROP COLUMN a", "a table without columns is not supported"),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES t (a) ON DELETE SET DEFAULT", "SET DEFAULT is not supported"),
        ("ALTER VIEW v RENAME COLUMN a TO b", "RENAME of a part is not supported"),
    ],
)
def test_what_alter_does_not_do_is_refused_with_a_reason(sparkless: Connection, statement: str, message: str) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    with pytest.raises(NotSupportedError, match=message) as caught:
        sparkless.execute(statement)
    assert caught.value.detail or caught.value.hint
    assert caught.value.position is not None
