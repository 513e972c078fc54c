"""What joins look up whole is kept from step to step, as long as it is what it was."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.errors import DatabaseError
from mz_dagster.storage.kept_tables import KeptTable, KeptTables
from tests.sparkless import refused

QUERIES = {
    "named": "SELECT u.name, t.v FROM t JOIN u ON t.k = u.k WHERE u.name <> 'c'",
    "sums": "SELECT u.name, count(*) AS n, sum(t.v) AS total FROM t JOIN u ON t.k = u.k GROUP BY u.name",
    "twice": "SELECT t.v, u.name, w.name AS other FROM t JOIN u ON t.k = u.k JOIN u AS w ON t.v = w.k",
}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    (tmp_path / "mz.toml").write_text("[writes]\ninline_rows = 0\n")
    with (
        Engine(Project.load(tmp_path), session=refused) as engine,
        Connection(engine, Isolation.STRICT_SERIALIZABLE) as opened,
    ):
        opened.execute("CREATE TABLE t (k integer, v integer)")
        opened.execute("CREATE TABLE u (k integer, name text)")
        opened.execute(f"INSERT INTO u VALUES {', '.join(f'({n}, chr({97 + n % 5}))' for n in range(20))}")
        opened.execute(f"INSERT INTO t VALUES {', '.join(f'({n % 25}, {n % 9})' for n in range(60))}")
        yield opened


@pytest.fixture
def read_whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that steps read from their beginning, in order."""
    found: list[str] = []
    read_table = StepReads.read_table

    def noted(self: StepReads, id: Any, lower: int | None, *rest: Any) -> pa.Table:
        if lower is None:
            found.append(self._rows[id].columns[-1].name)
        return read_table(self, id, lower, *rest)

    monkeypatch.setattr(StepReads, "read_table", noted)
    return found


def maintained(connection: Connection) -> None:
    for name, query in QUERIES.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")


def check(connection: Connection) -> None:
    for name, query in QUERIES.items():
        held, asked = (sorted(connection.execute(text).fetchall()) for text in (f"SELECT * FROM {name}", query))
        assert held == asked, name


@pytest.mark.deep
def test_what_did_not_change_is_not_read_again(connection: Connection, read_whole: list[str]) -> None:
    maintained(connection)
    connection.execute("INSERT INTO t VALUES (3, 4)")
    check(connection)
    assert "name" in read_whole
    for change in ("INSERT INTO t VALUES (4, 4)", "DELETE FROM t WHERE k = 3"):
        read_whole.clear()
        connection.execute(change)
        check(connection)
        assert "name" not in read_whole
    connection.execute("UPDATE u SET name = 'z' WHERE k = 4")
    check(connection)
    read_whole.clear()
    connection.execute("INSERT INTO t VALUES (4, 5)")
    check(connection)
    assert "name" not in read_whole, "what came since is added"


@pytest.mark.deep
def test_what_cancels_is_summed_once_there_is_much_of_it(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    keep = KeptTables.keep

    def noted(self: KeptTables, key: Any, made: KeptTable) -> None:
        sizes.append(made.table.num_rows)
        keep(self, key, made)

    monkeypatch.setattr(KeptTables, "keep", noted)
    connection.execute("CREATE MATERIALIZED VIEW named AS SELECT t.v, u.name FROM t JOIN u ON t.k = u.k")
    for n in range(12):
        connection.execute(f"UPDATE u SET name = '{'xyz'[n % 3]}' WHERE k < 9")
        connection.execute("INSERT INTO t VALUES (3, 4)")
        held, asked = (
            sorted(connection.execute(text).fetchall())
            for text in ("SELECT * FROM named", "SELECT t.v, u.name FROM t JOIN u ON t.k = u.k")
        )
        assert held == asked
    assert len(sizes) > 9
    assert max(sizes) < 250, "else there would be 18 updates more of u after each of twelve"
    assert sorted(sizes) != sizes


def test_views_are_right_while_both_sides_change(connection: Connection) -> None:
    maintained(connection)
    dice = random.Random(11)
    for _ in range(5):
        connection.execute("BEGIN")
        for _ in range(dice.randint(1, 3)):
            k, name = dice.randrange(25), dice.choice("abc")
            connection.execute(
                dice.choice(
                    [
                        f"INSERT INTO t VALUES ({k}, {dice.randrange(9)})",
                        f"DELETE FROM t WHERE k = {k}",
                        f"UPDATE u SET name = '{name}' WHERE k = {k}",
                        f"DELETE FROM u WHERE k = {k}",
                        f"INSERT INTO u VALUES ({k}, '{name}')",
                    ]
                )
            )
        connection.execute("COMMIT")
        check(connection)


def test_a_file_that_is_gone_is_told_though_what_it_held_is_kept(connection: Connection) -> None:
    maintained(connection)
    connection.execute("INSERT INTO t VALUES (3, 4)")
    check(connection)
    catalog = connection.engine.catalog
    row = catalog.collection(next(one.id for one in catalog.objects("table") if one.name == "u"))
    for file in connection.engine.shards.path(row).rglob("*.parquet"):
        file.unlink()
    connection.execute("INSERT INTO t VALUES (4, 4)")
    with pytest.raises(DatabaseError, match=r"lost|gone|missing|removed"):
        connection.execute("SELECT * FROM named").fetchall()


def test_kept_tables_are_of_their_files_and_within_the_limit() -> None:
    table = pa.table({"a": pa.array(range(100), pa.int64())})
    kept = KeptTables(table.nbytes * 8 * 16)  # room for 16 of these
    one = KeptTable(("f",), table, 4, 5, 0)
    kept.keep("x", one)
    assert kept.find("x", ("f",)) is one
    assert kept.find("x", ("f", "g")) is one, "more came since"
    assert kept.find("x", ("g", "f")) is None
    for n in range(15):
        kept.keep(n, one)
    assert kept.find("x", ("f",)) is one
    kept.keep("last", one)
    assert kept.find(0, ("f",)) is None, "it was used least lately"
    assert kept.find("x", ("f",)) is one
    kept.keep("x", KeptTable(("f",), pa.concat_tables([table] * 3), 4, 5, 0))
    assert kept.find("x", ("f",)) is None, "it would take more than an eighth of the room"
    assert kept.find(1, ("f",)) is one
    nothing = KeptTables(0)
    nothing.keep("x", one)
    assert nothing.find("x", ("f",)) is None


def test_a_column_that_came_anew_has_its_own_values(connection: Connection) -> None:
    connection.execute("CREATE MATERIALIZED VIEW holds AS SELECT k FROM u")
    for name in ("first", "second"):
        connection.execute("CREATE MATERIALIZED VIEW named AS SELECT t.v, u.name FROM t JOIN u ON t.k = u.k")
        connection.execute("INSERT INTO t VALUES (3, 4)")
        found = connection.execute("SELECT DISTINCT name FROM named WHERE v = 4").fetchall()
        assert (("second",) in found) == (name == "second")
        connection.execute("DROP MATERIALIZED VIEW named")
        connection.execute("ALTER TABLE u DROP COLUMN name")
        connection.execute("ALTER TABLE u ADD COLUMN name text DEFAULT 'second'")
