"""ALTER TABLE under views and indexes: they go on, without being hydrated anew, and say what they said."""

from __future__ import annotations

import os
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.adapter.alter_in_place import ColumnRead
from mz_dagster.budget import Budget
from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from mz_dagster.sql.errors import NullNotAllowed, UndefinedColumn, UniqueViolation, UnsupportedForm
from mz_dagster.storage.compact import Merge, compact
from tests.budgets import SetBudget
from tests.forks import forks
from tests.opened import opened

READERS = (
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b",
    "CREATE INDEX i ON t (a)",
    "CREATE INDEX copy ON t (b)",
    "CREATE MATERIALIZED VIEW w AS SELECT v.a, m.n FROM v JOIN m USING (b)",
    "CREATE MATERIALIZED VIEW few AS SELECT a FROM t",
)


@pytest.fixture
def read(sparkless: Connection) -> Connection:
    """A table with rows, and everything that may read one."""
    sparkless.execute("CREATE TABLE t (a integer NOT NULL, b text, c integer)")
    sparkless.execute("INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20)")
    for one in READERS:
        sparkless.execute(one)
    return sparkless


def rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(query).fetchall(), key=repr)


def ids(connection: Connection) -> dict[str | None, str]:
    return {one.name: str(one.id) for one in connection.engine.catalog.objects() if one.kind != "arrangement"}


def names(connection: Connection, query: str) -> list[str]:
    return [one[0] for one in connection.execute(query).description or ()]


def test_readers_go_on_as_they_are_when_a_column_is_added(read: Connection) -> None:
    before, uppers = ids(read), {one.id: one.since for one in read.engine.catalog.collections()}
    read.execute("ALTER TABLE t ADD COLUMN d integer DEFAULT 7")
    assert ids(read) == before
    assert {one.id: one.since for one in read.engine.catalog.collections()} == uppers
    assert rows(read, "SELECT * FROM t") == [(1, "x", 10, 7), (2, "y", 20, 7)]
    read.execute("INSERT INTO t VALUES (3, 'x', 30, 1)")
    assert rows(read, "SELECT * FROM t") == [(1, "x", 10, 7), (2, "y", 20, 7), (3, "x", 30, 1)]
    assert rows(read, "SELECT * FROM v") == [(1, "x", 10), (2, "y", 20), (3, "x", 30)]
    assert rows(read, "SELECT * FROM m") == [("x", 2, 4), ("y", 1, 2)]
    assert rows(read, "SELECT * FROM w") == [(1, 2), (2, 1), (3, 2)]
    assert rows(read, "SELECT c, d FROM t WHERE a = 3") == [(30, 1)]
    read.execute("CREATE MATERIALIZED VIEW over_d AS SELECT d, count(*) FROM t GROUP BY d")
    read.execute("CREATE INDEX i_d ON t (d)")
    assert rows(read, "SELECT * FROM over_d") == [(1, 1), (7, 2)]
    read.execute("UPDATE t SET d = 7 WHERE a = 3")
    assert rows(read, "SELECT * FROM over_d") == [(7, 3)]
    assert rows(read, "SELECT a FROM t WHERE d = 7") == [(1,), (2,), (3,)]


def test_readers_say_the_old_name_of_a_column_that_is_renamed(read: Connection) -> None:
    before = ids(read)
    read.execute("ALTER TABLE t RENAME COLUMN b TO bb")
    read.execute("INSERT INTO t (a, bb) VALUES (3, 'y')")
    assert ids(read) == before
    assert names(read, "SELECT * FROM v") == ["a", "b", "c"]
    assert rows(read, "SELECT * FROM m") == [("x", 1, 1), ("y", 2, 5)]
    assert rows(read, "SELECT a FROM t WHERE bb = 'y'") == [(2,), (3,)]
    with pytest.raises(UndefinedColumn):
        read.execute("SELECT b FROM t")
    assert rows(read, "SHOW INDEXES ON t") == [("copy", "t", "bb"), ("i", "t", "a")]


def test_a_view_that_is_shown_says_new_names_and_means_what_it_meant(read: Connection) -> None:
    for number, (query, _) in enumerate(SHOWN):
        read.execute(f"CREATE VIEW v{number} AS {query}")
    read.execute("CREATE INDEX of_two ON t (c, b)")
    read.execute("ALTER TABLE t ADD COLUMN d integer")
    read.execute("ALTER TABLE t RENAME COLUMN b TO bb")
    for number, (_, shown) in enumerate(SHOWN):
        ((_, text),) = read.execute(f"SHOW CREATE VIEW v{number}").fetchall()
        assert text == f"CREATE VIEW v{number} AS {shown}"
        expected = names(read, f"SELECT * FROM v{number}"), rows(read, f"SELECT * FROM v{number}")
        read.execute(text.replace(f"v{number}", f"again{number}", 1))
        assert (names(read, f"SELECT * FROM again{number}"), rows(read, f"SELECT * FROM again{number}")) == expected
    assert rows(read, "SHOW CREATE INDEX of_two") == [("of_two", "CREATE INDEX of_two ON t (c, bb)")]


SHOWN = (
    ("SELECT a FROM t", "SELECT a FROM t"),
    ("SELECT b FROM t", "SELECT bb AS b FROM t"),
    ("SELECT t.b, a FROM t WHERE b = 'x'", "SELECT t.bb AS b, a FROM t WHERE bb = 'x'"),
    ("SELECT b AS z, count(*) FROM t GROUP BY b", "SELECT bb AS z, count(*) FROM t GROUP BY bb"),
    ("SELECT upper(b) FROM t AS q", "SELECT upper(bb) FROM t AS q"),
    ("SELECT * FROM t", "SELECT * FROM (SELECT a, bb AS b, c FROM t) AS t"),
    ("SELECT b, n FROM t JOIN m USING (b)", "SELECT b, n FROM (SELECT a, bb AS b, c FROM t) AS t JOIN m USING (b)"),
    ("SELECT m.b FROM m, t WHERE m.b = t.b", "SELECT m.b FROM m, (SELECT a, bb AS b, c FROM t) AS t WHERE m.b = t.b"),
)


def test_what_reads_a_dropped_column_is_named_and_the_rest_goes_on(read: Connection) -> None:
    with pytest.raises(ColumnRead) as caught:
        read.execute("ALTER TABLE t DROP COLUMN c")
    assert caught.value.message == 'cannot drop column "c" of table "t" because other objects depend on it'
    assert caught.value.detail == 'View "v" depends on it.'
    assert caught.value.hint == "Use DROP ... CASCADE to drop the dependent objects too."
    assert caught.value.sqlstate == "2BP01"
    read.execute("DROP MATERIALIZED VIEW w")
    read.execute("DROP VIEW v")
    before = ids(read)
    read.execute("ALTER TABLE t DROP COLUMN c")
    assert ids(read) == before
    read.execute("INSERT INTO t VALUES (3, 'x')")
    read.execute("DELETE FROM t WHERE a = 1")
    read.execute("UPDATE t SET b = 'z' WHERE a = 2")
    assert rows(read, "SELECT * FROM t") == [(2, "z"), (3, "x")]
    assert rows(read, "SELECT * FROM m") == [("x", 1, 3), ("z", 1, 2)]
    assert rows(read, "SELECT a FROM t WHERE b = 'z'") == [(2,)]
    read.execute("ALTER TABLE t ADD COLUMN c text")
    assert rows(read, "SELECT * FROM t") == [(2, "z", None), (3, "x", None)]


def test_what_compares_with_nan_or_has_one_goes_on(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (d float8, b text)")
    for number, query in enumerate(
        (
            "SELECT d FROM t WHERE d <> 'NaN'",
            "SELECT d FROM t WHERE d = ANY ('{1,NaN}'::float8[])",
            "SELECT d FROM t UNION ALL VALUES ('NaN'::float8), (1)",
        )
    ):
        sparkless.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
    before = ids(sparkless)
    sparkless.execute("ALTER TABLE t DROP COLUMN b")
    assert ids(sparkless) == before


def test_cascade_drops_what_reads_the_column_and_an_index_goes_with_it(read: Connection) -> None:
    with pytest.raises(ColumnRead) as caught:
        read.execute("ALTER TABLE t DROP COLUMN b")
    assert caught.value.dependants == ("v", "m", "w")
    read.execute("ALTER TABLE t DROP COLUMN b CASCADE")
    assert set(ids(read)) == {"t", "i", "few"}
    read.execute("INSERT INTO t VALUES (3, 30)")
    assert rows(read, "SELECT * FROM few") == [(1,), (2,), (3,)]


def test_a_column_that_is_called_as_a_dropped_one_was_is_indexed(read: Connection) -> None:
    read.execute("ALTER TABLE t DROP COLUMN b CASCADE")
    read.execute("ALTER TABLE t ADD COLUMN b integer DEFAULT 5")
    read.execute("CREATE INDEX of_b ON t (b, a)")
    read.execute("INSERT INTO t VALUES (3, 30, 6)")
    assert rows(read, "SHOW INDEXES ON t") == [("i", "t", "a"), ("of_b", "t", "b, a")]
    assert rows(read, "SELECT * FROM t WHERE b = 5 AND a = 2") == [(2, 20, 5)]
    of_b = next(one for one in read.engine.catalog.objects("index") if one.name == "of_b")
    read.engine.reach("default", read.engine.catalog.read_ts("default"), frozenset({of_b.id}), deadline_s=60)
    assert read.engine.catalog.live_batch_counts()[of_b.id][1].rows == 3


def test_rows_that_differ_in_a_dropped_column_alone_are_as_many_as_they_were(read: Connection) -> None:
    read.execute("DROP MATERIALIZED VIEW w")
    read.execute("DROP VIEW v")
    read.execute("INSERT INTO t VALUES (1, 'x', 11), (1, 'x', 10)")
    read.execute("ALTER TABLE t DROP COLUMN c")
    assert rows(read, "SELECT * FROM t") == [(1, "x"), (1, "x"), (1, "x"), (2, "y")]
    assert rows(read, "SELECT * FROM m") == [("x", 3, 3), ("y", 1, 2)]
    read.execute("DELETE FROM t WHERE a = 1")
    assert rows(read, "SELECT * FROM m") == [("y", 1, 2)]


def test_defaults_and_constraints_change_under_readers(read: Connection) -> None:
    before = ids(read)
    read.execute("ALTER TABLE t ALTER c SET DEFAULT 5")
    read.execute("INSERT INTO t (a, b) VALUES (3, 'z')")
    read.execute("ALTER TABLE t ADD CONSTRAINT one UNIQUE (a)")
    with pytest.raises(UniqueViolation):
        read.execute("INSERT INTO t VALUES (3, 'q', 1)")
    read.execute("ALTER TABLE t ALTER b SET NOT NULL, ADD CONSTRAINT t_c_check CHECK (c > 0)")
    with pytest.raises(NullNotAllowed):
        read.execute("INSERT INTO t VALUES (4, NULL, 1)")
    with pytest.raises(Error, match="violates check constraint"):
        read.execute("INSERT INTO t VALUES (4, 'z', 0)")
    with pytest.raises(UniqueViolation):
        read.execute("ALTER TABLE t ADD CONSTRAINT two UNIQUE (c), ALTER c SET DEFAULT 1, ADD d int DEFAULT 1 UNIQUE")
    with pytest.raises(Error, match="violates check constraint"):
        read.execute("ALTER TABLE t DROP CONSTRAINT t_c_check, ADD CONSTRAINT t_c_check CHECK (c > 100)")
    with pytest.raises(UniqueViolation):
        read.execute("ALTER TABLE t ADD e int DEFAULT 1, DROP CONSTRAINT one, ADD CONSTRAINT one UNIQUE (e)")
    read.execute("ALTER TABLE t DROP CONSTRAINT one, ALTER b DROP NOT NULL, ADD id serial PRIMARY KEY")
    read.execute("INSERT INTO t VALUES (3, NULL, 1)")
    assert rows(read, "SELECT id FROM t") == [(1,), (2,), (3,), (4,)]
    assert rows(read, "SELECT * FROM m") == [("x", 1, 1), ("y", 1, 2), ("z", 1, 3), (None, 1, 3)]
    assert ids(read) == before


def test_what_is_planned_by_a_constraint_keeps_it(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer PRIMARY KEY, b integer NOT NULL, c integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT DISTINCT a, c FROM t")
    sparkless.execute("CREATE MATERIALIZED VIEW n AS SELECT count(b) AS n FROM t")
    for action in ("DROP CONSTRAINT t_pkey", "ALTER b DROP NOT NULL"):
        with pytest.raises(ColumnRead, match='cannot alter table "t" because other objects depend on it'):
            sparkless.execute(f"ALTER TABLE t {action}")
    sparkless.execute("DROP MATERIALIZED VIEW n")
    sparkless.execute("ALTER TABLE t ALTER b DROP NOT NULL")
    sparkless.execute("INSERT INTO t VALUES (1, NULL, 2)")
    assert rows(sparkless, "SELECT * FROM t WHERE b IS NULL") == [(1, None, 2)]


def test_views_over_a_view_of_before_see_what_it_sees(read: Connection) -> None:
    read.execute("CREATE TABLE other (a integer, b text)")
    read.execute("CREATE VIEW plain AS SELECT * FROM other")
    read.execute("ALTER TABLE other ADD COLUMN c integer DEFAULT 7, DROP COLUMN b CASCADE")
    read.execute("CREATE VIEW plain AS SELECT * FROM other")
    read.execute("ALTER TABLE other ADD COLUMN d integer")
    read.execute("CREATE VIEW again AS SELECT c FROM plain")
    read.execute("CREATE MATERIALIZED VIEW counted AS SELECT c, count(*) AS n FROM again GROUP BY c")
    read.execute("CREATE INDEX ON plain (a)")
    read.execute("INSERT INTO other VALUES (1, 2, 3), (2, 2, 3)")
    assert rows(read, "SELECT * FROM counted") == [(2, 2)]
    assert rows(read, "SELECT * FROM plain") == [(1, 2), (2, 2)]


def test_a_column_that_is_read_keeps_its_type(read: Connection) -> None:
    with pytest.raises(UnsupportedForm, match='cannot alter type of column "a", because "t" is read'):
        read.execute("ALTER TABLE t ALTER a TYPE bigint")
    read.execute("CREATE TABLE alone (a smallint, b varchar(3))")
    read.execute("INSERT INTO alone VALUES (1, 'abc')")
    read.execute('ALTER TABLE alone ALTER a TYPE bigint USING "a"::bigint, ALTER COLUMN b SET DATA TYPE text')
    read.execute("INSERT INTO alone VALUES (5000000000, 'abcdef')")
    assert rows(read, "SELECT * FROM alone") == [(1, "abc"), (5000000000, "abcdef")]
    with pytest.raises(Error, match="integer out of range"):
        read.execute("ALTER TABLE alone ALTER a TYPE integer")
    for using in ("a + 1", "a::bigint + 1", "b::bigint", "a::integer", "'a'::bigint"):
        with pytest.raises(UnsupportedForm, match="USING is not supported"):
            read.execute(f"ALTER TABLE alone ALTER a TYPE bigint USING {using}")


def test_an_altered_table_is_read_by_both_engines_from_files_and_at_earlier_times(
    connection: Connection, set_budget: SetBudget
) -> None:
    set_budget(inlined_rows=0)
    connection.execute("CREATE TABLE t (a integer, b numeric(10,2), c integer)")
    connection.execute("INSERT INTO t VALUES (1, 1.5, 10), (2, 2.5, 20)")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT a, sum(b) AS s FROM t GROUP BY a")
    before = connection.engine.catalog.read_ts(connection.engine.project.timeline)
    connection.execute("ALTER TABLE t DROP COLUMN c, ADD d numeric(10,2) DEFAULT 0.25, ADD e text")
    quarter = Decimal("0.25")
    for here in (True, False):
        set_budget(Budget.here_alone() if here else Budget.spark_alone())
        connection.execute(f"SET engine = {'local' if here else 'spark'}")
        connection.execute("INSERT INTO t VALUES (3, 3.5, 1, 'e')")
        assert rows(connection, "SELECT a, d, e FROM t WHERE a < 3") == [(1, quarter, None), (2, quarter, None)]
        assert rows(connection, f"SELECT a, d FROM t AS OF {before}") == [(1, None), (2, None)]
    assert rows(connection, "SELECT * FROM m") == [(1, Decimal("1.50")), (2, Decimal("2.50")), (3, Decimal("7.00"))]
    connection.engine.compact()
    assert len(rows(connection, "SELECT * FROM t")) == 4


@pytest.mark.deep
def test_both_engines_go_on_with_the_values_of_a_type(connection: Connection, set_budget: SetBudget) -> None:
    set_budget(inlined_rows=0)
    for one in (
        "CREATE TYPE size AS ENUM ('s', 'l')",
        "CREATE TABLE shirts (z size, t text)",
        "INSERT INTO shirts VALUES ('l', 's'), ('s', 'm')",
        "CREATE MATERIALIZED VIEW counted AS SELECT z, count(*) AS n FROM shirts GROUP BY z",
        "CREATE MATERIALIZED VIEW read AS SELECT t::size AS z FROM shirts",
        "CREATE TABLE coats (z size)",
        "INSERT INTO coats VALUES ('s'), ('l')",
        "CREATE MATERIALIZED VIEW texts AS SELECT z::text AS t, z::text::size AS z FROM coats",
        "ALTER TYPE size ADD VALUE 'm' BEFORE 'l'",
    ):
        connection.execute(one)
    for here, added in ((True, "x"), (False, "y")):
        set_budget(Budget.here_alone() if here else Budget.spark_alone())
        connection.execute(f"SET engine = {'local' if here else 'spark'}")
        connection.execute(f"ALTER TYPE size ADD VALUE '{added}' AFTER 's'")
        connection.execute(f"INSERT INTO shirts VALUES ('{added}', '{added}')")
        sizes = ["s", "x", "m", "l"] if here else ["s", "y", "x", "m", "l"]
        assert rows(connection, "SELECT rank() OVER (ORDER BY z), z FROM counted") == [
            (number, z) for number, z in enumerate((one for one in sizes if one != "m"), 1)
        ]
        assert rows(connection, "SELECT z FROM read WHERE z < 'l'") == sorted((z,) for z in sizes if z != "l")
        assert rows(connection, f"SELECT n FROM counted WHERE z = '{added}'") == [(1,)]
        connection.execute(f"ALTER TYPE size RENAME VALUE 'l' TO 'l{added}'")
        assert rows(connection, "SELECT * FROM texts") == [(f"l{added}", f"l{added}"), ("s", "s")]
        connection.execute(f"ALTER TYPE size RENAME VALUE 'l{added}' TO 'l'")


def alter(root: str, kill: str) -> None:
    """Is the process: adds a column, and is killed."""
    with opened(Path(root)) as connection:
        os.environ[VARIABLE] = kill
        connection.execute("ALTER TABLE t ADD COLUMN b serial")


def test_an_alteration_that_is_killed_leaves_the_table_as_before_or_as_behind(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(a) AS s FROM t")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        for kill, is_done in {"append.before_seal": False, "seal.in_transaction": False, "seal.sealed": True}.items():
            process = forks().Process(target=alter, args=(str(tmp_path), kill))
            process.start()
            process.join(60)
            assert process.exitcode == -9
            assert names(connection, "SELECT * FROM t") == (["a", "b"] if is_done else ["a"])
            assert rows(connection, "SELECT a FROM t") == [(1,), (2,)]
            assert rows(connection, "SELECT * FROM m") == [(3,)]
        connection.execute("INSERT INTO t VALUES (3)")
        assert rows(connection, "SELECT b FROM t") == [(1,), (2,), (3,)]
        assert rows(connection, "SELECT * FROM m") == [(6,)]


@pytest.mark.parametrize("inlined", [True, False])
def test_a_merge_that_began_before_a_column_came_keeps_what_is_in_it(tmp_path: Path, inlined: bool) -> None:
    if not inlined:
        (tmp_path / "mz.toml").write_text("[writes]\ninline_rows = 0\n")
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        catalog = connection.engine.catalog
        before = catalog.collection(next(row.id for row in catalog.objects("table") if row.name == "t"))
        connection.execute("ALTER TABLE t ADD COLUMN b integer DEFAULT 6")
        assert len(catalog.collection(before.id).columns) > len(before.columns), "it was altered in place"
        merge = compact(catalog, connection.engine.shards, before, holder="test", least_parts=1)
        assert isinstance(merge, Merge)
        assert sorted(connection.execute("SELECT * FROM t").fetchall()) == [(1, 6), (2, 6)]


def test_writers_and_readers_meanwhile_are_before_an_alteration_or_behind_it(tmp_path: Path) -> None:
    with opened(tmp_path) as connection, opened(tmp_path) as other, opened(tmp_path) as third:
        connection.execute("CREATE TABLE t (a integer, gone integer)")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(a) AS s FROM t")
        written: list[int] = []
        enough = threading.Event()
        wrong: list[object] = []

        def write() -> None:
            while not enough.is_set():
                other.execute("INSERT INTO t (a) VALUES (?)", (len(written),))
                written.append(len(written))

        def read() -> None:
            while not enough.is_set():
                ((one,),) = third.execute("SELECT count(*) FROM t WHERE kept IS NULL").fetchall()
                ((n, s),) = third.execute("SELECT * FROM m").fetchall()
                wrong.extend([(one, n, s)] if one or s not in (None, n * (n - 1) // 2) else [])

        connection.execute("ALTER TABLE t ADD COLUMN kept integer DEFAULT 1")
        threads = [threading.Thread(target=one) for one in (write, read)]
        for one in threads:
            one.start()
        added = 0
        try:
            while added < 3 or (len(written) < 30 and added < 15):
                connection.execute(f"ALTER TABLE t ADD COLUMN c{added} integer DEFAULT {added}")
                connection.execute("ALTER TABLE t DROP COLUMN gone, ADD COLUMN gone integer")
                added += 1
        finally:
            enough.set()
            for one in threads:
                one.join()
        assert not wrong
        expected = [(n, *range(added)) for n in range(len(written))]
        listed = ", ".join(f"c{n}" for n in range(added))
        assert sorted(connection.execute(f"SELECT a, {listed} FROM t").fetchall()) == expected
        assert rows(connection, "SELECT n FROM m") == [(len(written),)]


def test_a_project_that_is_opened_again_knows_its_altered_tables(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer, b integer)")
        connection.execute("INSERT INTO t VALUES (1, 2)")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT a, sum(b) AS s FROM t GROUP BY a")
        connection.execute("ALTER TABLE t RENAME b TO c")
        connection.execute("CREATE MATERIALIZED VIEW n AS SELECT a, sum(c) AS s FROM t GROUP BY a")
        connection.execute("ALTER TABLE t ADD d integer")
        before = ids(connection)
    with opened(tmp_path) as connection:
        connection.execute("INSERT INTO t VALUES (1, 3, 4)")
        assert rows(connection, "SELECT * FROM m") == rows(connection, "SELECT * FROM n") == [(1, 5)]
        assert ids(connection) == before
        assert rows(connection, "SELECT * FROM t") == [(1, 2, None), (1, 3, 4)]
