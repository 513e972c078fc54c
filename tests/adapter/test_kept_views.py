"""What is maintained over a plain view reads the view's index: one state for all, whatever comes, goes and dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project, preview_changes
from mz_dagster.adapter import definition as definitions
from mz_dagster.adapter.effective_objects import effective_objects
from mz_dagster.adapter.rebuilding import rebuild
from mz_dagster.errors import DataError, ProgrammingError
from mz_dagster.operations.doctor import examine
from mz_dagster.plan import PIPELINE, optimize
from mz_dagster.plan.relation import Relation
from tests.adapter.test_serial_order import project_for_races
from tests.opened import opened
from tests.storage.crashing import crashing

pytestmark = pytest.mark.usefixtures("no_spark")

SUMS = "SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b"
#: Views over `sums`, by name, in which `{}` is for the view's suffix.
OVER = {
    "filtered": "SELECT b FROM sums{} WHERE n > 1",
    "joined": "SELECT t.a, x.s FROM t JOIN sums{} AS x ON x.b = t.b",
    "twice": "SELECT one.b, other.b AS c FROM sums{} AS one JOIN sums{} AS other ON one.n < other.n",
    "grouped": "SELECT n, count(*) AS groups, max(s) AS most FROM sums{} GROUP BY n",
    "asked": "SELECT a FROM t WHERE b IN (SELECT b FROM sums{} WHERE s > 3) OR a = (SELECT max(s) FROM sums{})",
    "through": "SELECT b, n FROM above{} WHERE b IS NOT NULL",
    "ranked": "SELECT b, rank() OVER (ORDER BY s) AS place FROM sums{}",
}


def tables(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer, b text)")
    connection.execute("INSERT INTO t VALUES (1, 'b1'), (2, 'b2'), (5, 'b2'), (7, NULL)")
    for suffix in ("", "_plain"):
        connection.execute(f"CREATE VIEW sums{suffix} AS {SUMS}")
        connection.execute(f"CREATE VIEW above{suffix} AS SELECT b, n FROM sums{suffix} WHERE n >= 1")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        tables(connection)
        yield connection


def rows(connection: Connection, sql: str) -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute(sql).fetchall())


def reads(connection: Connection, name: str) -> set[str]:
    """Returns the names of the collections that the plan of an object reads."""
    engine = connection.engine
    return {engine.names()[id] for id in engine.definitions.definition(engine.collection_of(name)).reads}


def write(connection: Connection, random: Random) -> None:
    a, b = random.randrange(6), random.randrange(3)
    connection.execute(
        random.choice([f"INSERT INTO t VALUES ({a}, 'b{b}'), ({a}, NULL)", f"DELETE FROM t WHERE a = {a}",
                       f"UPDATE t SET a = a + 1 WHERE b = 'b{b}'"])
    )  # fmt: skip


def is_healthy(root: Path) -> bool:
    found = examine(root)
    assert found.healthy, found.findings
    return True


@pytest.mark.parametrize("writes", [2, pytest.param(40, marks=pytest.mark.deep)])
def test_views_over_an_indexed_view_are_their_queries_at_every_time(
    connection: Connection, tmp_path: Path, writes: int
) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    for name, query in OVER.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query.replace('{}', '')}")
        assert reads(connection, name) in ({"sums_by_b"}, {"sums_by_b", "t"})
    random, times = Random(7), [connection.engine.catalog.read_ts("default")]
    for number in range(writes):
        write(connection, random)
        times.append(connection.engine.catalog.read_ts("default"))
        if number == 0:
            connection.execute("DROP INDEX sums_by_b")
    connection.close()
    with opened(tmp_path) as again:
        assert not again.engine.replan()
        for time in times:
            for name, query in OVER.items():
                expected = rows(again, f"{query.replace('{}', '_plain')} AS OF {time}")
                assert rows(again, f"SELECT * FROM {name} AS OF {time}") == expected, (name, time)
        write(again, random)
        assert rows(again, "SELECT * FROM grouped") == rows(again, OVER["grouped"].replace("{}", "_plain"))
    assert is_healthy(tmp_path)


def test_a_plan_names_the_index_and_keeps_no_state_of_its_own(connection: Connection) -> None:
    create = "CREATE MATERIALIZED VIEW m AS SELECT t.a, sums.s FROM t JOIN sums ON sums.b = t.b"
    before = connection.execute(f"EXPLAIN {create}").fetchall()
    assert any("Accumulate" in line for (line,) in before)
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    connection.execute(create)
    for explain in (f"EXPLAIN {create}", "EXPLAIN MATERIALIZED VIEW m"):
        lines = [line for (line,) in connection.execute(explain)]
        assert any("sums_by_b (index of sums)" in line for line in lines)
        assert not any("Accumulate" in line for line in lines)
        assert "writes per step: at most 1" in lines


def test_further_indexes_of_a_view_are_copies_and_checks_read_it(connection: Connection) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    connection.execute("CREATE INDEX sums_by_n ON sums (n)")
    connection.execute("CREATE CHECK few ON sums AS SELECT b FROM sums WHERE n > 100")
    assert reads(connection, "sums_by_n") == reads(connection, "few") == {"sums_by_b"}
    connection.execute("DROP INDEX sums_by_b")
    connection.execute("INSERT INTO t VALUES (4, 'b9')")
    assert rows(connection, "SELECT n, s FROM sums WHERE b = 'b9'") == {(1, 4): 1}


def test_a_query_that_is_subscribed_to_reads_the_index(connection: Connection) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    cursor = connection.cursor().execute("SUBSCRIBE (SELECT n FROM sums WHERE b = 'b2')")
    assert [row[1:] for row in cursor.fetchmany(10)] == [(1, 2)]
    (made,) = connection.engine.catalog.objects("materialized view")
    assert len(connection.engine.definitions.definition(made.id).indexes) == 1
    connection.execute("INSERT INTO t VALUES (4, 'b2')")
    assert {row[1:] for row in cursor.fetchmany(10)} == {(-1, 2), (1, 3)}
    cursor.close()
    connection.execute("DROP VIEW above CASCADE")
    connection.execute("DROP VIEW sums")


@pytest.mark.parametrize(
    ("catalog", "orders"),
    [
        ("sqlite", 9),
        pytest.param("postgresql", 12, marks=pytest.mark.deep),
        *(pytest.param(one, 1, marks=pytest.mark.deep) for one in ("sqlite", "postgresql")),
    ],
)
def test_what_was_shared_goes_with_its_last_reader(
    request: pytest.FixtureRequest, tmp_path: Path, catalog: str, orders: int
) -> None:
    drops = ("INDEX i", "INDEX j", "MATERIALIZED VIEW m", "MATERIALIZED VIEW n")
    with Connection(Engine(project_for_races(request, tmp_path, catalog)), Isolation.STRICT_SERIALIZABLE) as connection:
        tables(connection)
        for order in list(permutations(drops))[::orders]:
            connection.execute("CREATE INDEX i ON sums (b)")
            connection.execute("CREATE MATERIALIZED VIEW m AS SELECT b, n FROM sums")
            connection.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS c FROM sums")
            connection.execute("CREATE INDEX j ON sums (n)")
            for number, one in enumerate(order):
                connection.execute(f"DROP {one}")
                if {"INDEX i", "MATERIALIZED VIEW n"} == set(order[: number + 1]):
                    connection.execute("INSERT INTO t VALUES (1, 'b1')")
                    assert rows(connection, "SELECT * FROM m") == rows(connection, "SELECT b, n FROM sums_plain")
            left = {row.kind for row in connection.engine.catalog.objects()}
            assert left == {"table", "view"}, order
        connection.execute("CREATE INDEX i ON sums (b)")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT b, n FROM sums")
        connection.execute("DROP INDEX i")
        with pytest.raises(ProgrammingError, match='cannot drop "sums"'):
            connection.execute("DROP VIEW sums")
        connection.execute("CREATE INDEX i ON sums (n)")  # the name is free again, and another index
        assert rows(connection, "SELECT * FROM m") == rows(connection, "SELECT b, n FROM sums_plain")
        connection.execute("DROP VIEW sums CASCADE")
        assert {row.kind for row in connection.engine.catalog.objects()} == {"table", "view"}


def test_history_is_kept_as_long_as_a_reader_keeps_its_own(connection: Connection) -> None:
    connection.execute("CREATE INDEX i ON sums (b)")
    connection.execute("CREATE MATERIALIZED VIEW m WITH (RETAIN HISTORY = FOR '1 day') AS SELECT b, n FROM sums")
    engine, expected = connection.engine, {}
    for a in range(3):
        connection.execute(f"INSERT INTO t VALUES ({a}, 'b1')")
        time = engine.catalog.read_ts("default")
        expected[time] = rows(connection, "SELECT * FROM m")
    engine.compact(thorough=True)
    for time, found in expected.items():
        assert rows(connection, f"SELECT * FROM m AS OF {time}") == found
    since = {name: engine.catalog.collection(engine.collection_of(name)).since.only for name in ("i", "m")}
    assert since["i"] <= since["m"]


def test_tables_and_types_are_altered_under_it(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    connection.execute("CREATE TABLE r (id integer NOT NULL, m mood, spare text, size integer)")
    connection.execute("INSERT INTO r VALUES (1, 'good', 'x', 1), (2, 'bad', 'y', 2)")
    connection.execute("CREATE VIEW moods AS SELECT m, count(*) AS n, max(size) AS size FROM r GROUP BY m")
    connection.execute("CREATE INDEX moods_by_m ON moods (m)")
    connection.execute("CREATE MATERIALIZED VIEW felt AS SELECT m, n FROM moods WHERE m <> 'bad'")
    collection = connection.engine.collection_of("felt")
    for alteration in (
        "ALTER TABLE r DROP COLUMN spare", "ALTER TABLE r RENAME COLUMN size TO width",
        "ALTER TABLE r ADD COLUMN other integer DEFAULT 3", "ALTER TABLE r ALTER COLUMN id DROP NOT NULL",
        "ALTER TYPE mood RENAME VALUE 'good' TO 'fine'", "ALTER VIEW moods RENAME TO feelings",
    ):  # fmt: skip
        connection.execute(alteration)
        connection.execute("INSERT INTO r VALUES (3, 'bad')")
        assert len(rows(connection, "SELECT * FROM felt")) == 1, alteration
    assert connection.engine.collection_of("felt") == collection
    with pytest.raises(ProgrammingError, match="other objects depend on it"):
        connection.execute("ALTER TABLE r DROP COLUMN width")
    (shown,) = rows(connection, "SHOW CREATE MATERIALIZED VIEW felt")
    assert "feelings" in str(shown)
    with opened(tmp_path) as again:
        assert not again.engine.replan()
        assert rows(again, "SELECT * FROM felt") == {("fine", 1): 1}
        again.execute("ALTER TABLE r DROP COLUMN width CASCADE")
        assert rows(again, "SHOW MATERIALIZED VIEWS") == Counter()
    assert is_healthy(tmp_path)


def test_errors_of_the_view_are_those_of_all_that_read_its_index(connection: Connection) -> None:
    connection.execute("CREATE VIEW quotients AS SELECT a, 10 / a AS q FROM t")
    connection.execute("CREATE INDEX quotients_by_a ON quotients (a)")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM quotients")
    connection.execute("INSERT INTO t VALUES (0, 'zero')")
    with pytest.raises(DataError, match="division by zero"):
        connection.execute("SELECT * FROM m")
    connection.execute("DELETE FROM t WHERE a = 0")
    assert rows(connection, "SELECT * FROM m") == Counter({(1,): 1, (2,): 1, (5,): 1, (7,): 1})


@pytest.mark.parametrize(
    "spot",
    [
        pytest.param("append.inlined", marks=pytest.mark.deep),
        pytest.param("seal.in_transaction", marks=pytest.mark.deep),
        pytest.param("catalog.before_commit", marks=pytest.mark.deep),
        "seal.sealed",
    ],
)
def test_whoever_dies_leaves_it_whole(connection: Connection, tmp_path: Path, spot: str) -> None:
    (tmp_path / "mz.toml").write_text("[leases]\nduration = '3 s'\n")
    connection.execute("CREATE INDEX i ON sums (b)")
    for number, statement in enumerate(
        ("CREATE MATERIALIZED VIEW m AS SELECT b, n FROM sums WHERE n > 0", "INSERT INTO t VALUES (3, 'b3')",
         "SELECT * FROM m", "DROP INDEX i", "DELETE FROM t WHERE a = 5")
    ):  # fmt: skip
        with opened(tmp_path) as dying, crashing((spot, 1)):
            dying.execute(statement)
        with opened(tmp_path) as again:
            if number == 0:
                again.execute("DROP MATERIALIZED VIEW IF EXISTS m")
                again.execute(statement)
            assert rows(again, "SELECT * FROM m") == rows(again, "SELECT b, n FROM sums_plain")
    assert is_healthy(tmp_path)


def test_it_is_made_anew_with_the_index_that_is(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE INDEX i ON sums (b)")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT b, n FROM sums")
    connection.execute("CREATE MATERIALIZED VIEW over AS SELECT max(n) AS n FROM m")
    for dropped in (False, True):
        if dropped:
            index = str(connection.engine.collection_of("i"))
            connection.execute("DROP INDEX i")
        assert [one.name for one in rebuild(connection.engine, [index if dropped else "i"])] == ["i", "m", "over"]
        connection.execute("INSERT INTO t VALUES (3, 'b2')")
        assert rows(connection, "SELECT * FROM m") == rows(connection, "SELECT b, n FROM sums_plain")
        assert len(connection.engine.definitions.definition(connection.engine.collection_of("m")).indexes) == 1
    assert is_healthy(tmp_path)


def as_before(relation: Relation) -> Relation:
    """Plans as an older release did."""
    return optimize(relation, tuple(one for one in PIPELINE if one.name not in ("demand", "push_predicates")))


def test_another_release_makes_it_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, opened(tmp_path) as connection:
        patch.setattr(definitions, "optimize", as_before)
        tables(connection)
        connection.execute("CREATE INDEX i ON sums (b)")
        connection.execute("CREATE MATERIALIZED VIEW m AS SELECT t.a, x.s FROM t JOIN sums x ON x.b = t.b")
        connection.execute("DROP INDEX i")
    for kept in (tmp_path / ".mz" / "definitions").iterdir():
        kept.unlink()
    with opened(tmp_path) as connection:
        connection.execute("INSERT INTO t VALUES (3, 'b2')")
        expected = rows(connection, "SELECT t.a, x.s FROM t JOIN sums_plain x ON x.b = t.b")
        assert rows(connection, "SELECT * FROM m") == expected
        assert not connection.engine.replan()
    assert is_healthy(tmp_path)


# ---- of files


def files(root: Path, **texts: str | None) -> Project:
    (root / "assets").mkdir(exist_ok=True)
    (root / "mz.toml").touch()
    for name, text in texts.items():
        path = root / "assets" / f"{name}.sql"
        path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    return Project.load(root)


#: In the order of their names a view stands before the index that it reads.
FILES = {
    "a": "CREATE MATERIALIZED VIEW a AS SELECT t.x, v.n FROM t JOIN v ON v.x = t.x;",
    "b": "CREATE MATERIALIZED VIEW b AS SELECT max(n) AS n FROM w;",
    "i": "CREATE INDEX i ON v (x);",
    "t": "CREATE TABLE t (x integer, y integer);",
    "v": "CREATE VIEW v AS SELECT x, count(*) AS n FROM t GROUP BY x;",
    "w": "CREATE VIEW w AS SELECT n FROM v WHERE x > 0;",
}


def test_files_share_the_indexes_that_they_define(tmp_path: Path) -> None:
    project = files(tmp_path, **FILES)
    plan, cost = preview_changes(project)
    assert plan.created.index("i") < plan.created.index("a")
    assert {one.name: one.reads for one in cost.hydrations} == {"a": ("i", "t"), "b": ("i",), "i": ("t",)}
    assert {one.name: one.depends for one in effective_objects(project)}["a"] == ("i", "t", "v")
    with opened(tmp_path) as connection:
        connection.engine.apply()
        assert (reads(connection, "a"), reads(connection, "b")) == ({"t", "i"}, {"i"})
        connection.execute("INSERT INTO t VALUES (1, 2), (1, 3), (2, 4)")
        assert rows(connection, "SELECT * FROM a") == {(1, 2): 2, (2, 1): 1}
        assert not connection.engine.apply().changed
    assert {one.name: one.depends for one in effective_objects(project)}["b"] == ("i", "w")


def test_an_index_comes_and_goes_in_files_and_nothing_else_is_planned_anew(tmp_path: Path) -> None:
    files(tmp_path, **{**FILES, "i": ""})
    with opened(tmp_path) as connection:
        connection.engine.apply()
        connection.execute("INSERT INTO t VALUES (1, 2), (2, 4)")
        before = {name: connection.engine.collection_of(name) for name in "ab"}
        files(tmp_path, i=FILES["i"], c="CREATE MATERIALIZED VIEW c AS SELECT n FROM v;")
        assert connection.engine.apply().created == ("i", "c")
        assert (reads(connection, "a"), reads(connection, "c")) == ({"t"}, {"i"})
        # In other words, and under another name, each goes on with what it reads.
        files(
            tmp_path,
            a="CREATE MATERIALIZED VIEW a AS SELECT t.x, w.n FROM t JOIN v AS w ON w.x = t.x;",
            c="-- @renamed_from c\nCREATE MATERIALIZED VIEW d AS SELECT v.n FROM v;",
        )
        before["d"] = connection.engine.collection_of("c")
        plan = connection.engine.apply()
        assert {one.name: one.action.value for one in plan.changes if one.action.value != "keep"} == {
            "a": "reword", "d": "rename",
        }  # fmt: skip
        assert {name: connection.engine.collection_of(name) for name in before} == before
        assert (reads(connection, "a"), reads(connection, "d")) == ({"t"}, {"i"})
        connection.execute("CREATE MATERIALIZED VIEW mine AS SELECT x FROM v")
        files(tmp_path, i="")
        assert connection.engine.apply(drop=True).dropped == ("i",)
        connection.execute("INSERT INTO t VALUES (1, 7)")
        assert rows(connection, "SELECT * FROM d") == rows(connection, "SELECT n FROM v") == {(2,): 1, (1,): 1}
        assert rows(connection, "SELECT * FROM mine") == {(1,): 1, (2,): 1}
        assert not connection.engine.apply().changed
        assert not connection.engine.replan()
    with opened(tmp_path) as again:
        assert not again.engine.replan()
        assert rows(again, "SELECT * FROM d") == {(2,): 1, (1,): 1}
    assert is_healthy(tmp_path)


def test_what_changes_below_an_index_is_replaced_with_all_above(tmp_path: Path) -> None:
    files(tmp_path, **FILES)
    with opened(tmp_path) as connection:
        connection.engine.apply()
        connection.execute("INSERT INTO t VALUES (1, 2), (2, 4)")
        files(tmp_path, v="CREATE VIEW v AS SELECT x, count(*) + 10 AS n FROM t GROUP BY x;")
        assert set(connection.engine.apply().replaced) == {"v", "w", "i", "a", "b"}
        assert (reads(connection, "a"), reads(connection, "b")) == ({"t", "i"}, {"i"})
        assert rows(connection, "SELECT * FROM b") == {(11,): 1}
        files(tmp_path, i="CREATE INDEX i ON v (n);")  # the old one lives on for those that read it
        assert connection.engine.apply().replaced == ("i",)
        connection.execute("INSERT INTO t VALUES (1, 2)")
        assert rows(connection, "SELECT * FROM b") == {(12,): 1}
        connection.execute("ALTER TABLE t ADD COLUMN z integer")
        files(tmp_path, t="CREATE TABLE t (x integer, y integer, z integer);")
        assert not connection.engine.apply().changed
        assert rows(connection, "SELECT * FROM a") == {(1, 12): 2, (2, 11): 1}
    assert is_healthy(tmp_path)
