"""What was planned once is executed again without being parsed, bound or planned, as long as it means the same.

Whatever changes what a query means, in this session, in another or in another process, is changed between two
executions of it, and the second must say what one that was never executed before says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Isolation
from mz_dagster.adapter.access import InsufficientPrivilege
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.planned_queries import LookupPlan, PlannedQueries
from mz_dagster.adapter.sequence import insert, select
from mz_dagster.catalog import Catalog
from mz_dagster.errors import Error
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import INT2, INT4, INT8, TEXT
from mz_dagster.sql import parsed_texts
from tests.opened import opened

LOOKUP = "SELECT name FROM points WHERE id = ?"


@pytest.fixture
def points(sparkless: Connection) -> Connection:
    """A connection to a project with a table of points."""
    sparkless.execute("CREATE TABLE points (id integer PRIMARY KEY, name text NOT NULL)")
    sparkless.execute("INSERT INTO points VALUES (1, 'one'), (2, 'two')")
    return sparkless


def asked(connection: Connection, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    return connection.execute(sql, parameters).fetchall()


@contextmanager
def worked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yields what is done in the block of what is to be done once."""
    done: list[str] = []

    def noting(module: object, name: str) -> None:
        before: Callable[..., Any] = getattr(module, name)

        def noted(*arguments: Any, **named: Any) -> Any:
            done.append(name)
            return before(*arguments, **named)

        patched.setattr(module, name, noted)

    with monkeypatch.context() as patched:
        for module, name in ((parsed_texts, "split"), (parsed_texts, "parse_statement"), (select, "bind_query")):
            noting(module, name)
        noting(insert, "bind_insert_many")
        noting(Peeks, "planned")
        yield done


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT count(*) FROM points AS p JOIN points AS q ON p.id < q.id", ()),
        ("SELECT name FROM points WHERE id > ? ORDER BY 1", (1,)),
        ("SELECT name FROM points WHERE name = ?", ("two",)),
        (LOOKUP, (2,)),
    ],
)
def test_what_is_executed_again_is_neither_parsed_nor_bound_nor_planned(
    sql: str, parameters: tuple[object, ...], points: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked(points, sql, *parameters)
    with worked(monkeypatch) as done:
        assert asked(points, sql, *parameters) == first
    assert not done
    points.execute("INSERT INTO points VALUES (3, 'two')")
    with worked(monkeypatch) as done:
        again = asked(points, sql, *parameters)
    assert not done
    points.engine.planned_queries = PlannedQueries()
    assert asked(points, sql, *parameters) == again


def test_a_lookup_is_planned_once_for_all_values_of_its_types(
    points: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(points, LOOKUP, 1) == [("one",)]
    with worked(monkeypatch) as done:
        assert asked(points, LOOKUP, 2) == [("two",)]
        assert asked(points, LOOKUP, 7) == []
    assert not done
    for value, type_, expected in ((1, INT2, [("one",)]), (2**40, INT8, []), (2, INT8, [("two",)]), (None, INT4, [])):
        assert asked(points, LOOKUP, Literal(value, type_)) == expected
    with worked(monkeypatch) as done:
        assert asked(points, LOOKUP, Literal(2, INT2)) == [("two",)]
    assert not done
    assert asked(points, LOOKUP, "2") == [("two",)]


def test_what_is_computed_of_a_parameter_is_no_lookup(points: Connection) -> None:
    for sql, found in (
        ("SELECT name FROM points WHERE id = ? + 1", {0: "one", 1: "two"}),
        ("SELECT name FROM points WHERE id = -?", {-1: "one", -2: "two"}),
        ("SELECT name || ? FROM points WHERE id = 1", {"x": "onex", "y": "oney"}),
        ("SELECT name FROM points ORDER BY id LIMIT ?", {1: "one"}),
        ("SELECT name FROM points WHERE id = 1 AND ? = 1", {1: "one"}),
    ):
        for value, name in found.items():
            assert asked(points, sql, value) == [(name,)], (sql, value)


def test_several_parameters_stand_where_they_stood(points: Connection) -> None:
    sql = "SELECT id FROM points WHERE name = ? AND id = ?"
    for name, id, expected in (("one", 1, [(1,)]), ("two", 2, [(2,)]), ("two", 1, [])):
        assert asked(points, sql, Literal(name, TEXT), id) == expected
    same = Literal(2, INT4)
    assert asked(points, "SELECT id FROM points WHERE id = ? AND id = ?", same, same) == [(2,)]
    assert asked(points, "SELECT id FROM points WHERE id = ? AND id = ?", 1, 2) == []
    assert asked(points, "SELECT id FROM points WHERE id = ? AND id = ?", 2, 2) == [(2,)]


def test_another_process_defines_otherwise(points: Connection, tmp_path: Path) -> None:
    points.execute("CREATE VIEW named AS SELECT name FROM points")
    with opened(tmp_path) as other:
        whole = LOOKUP.replace("name", "*")
        for sql in (whole, "SELECT * FROM points WHERE id > ? - 1", "SELECT * FROM named LIMIT ?"):
            assert len(asked(points, sql, 1)[0]) in (1, 2)
        other.execute("ALTER TABLE points ADD COLUMN more integer DEFAULT 7")
        other.execute("DROP VIEW named")
        other.execute("CREATE VIEW named AS SELECT 'other' AS name")
        assert asked(points, whole, 1) == [(1, "one", 7)]
        assert asked(points, "SELECT * FROM points WHERE id > ? - 1", 2) == [(2, "two", 7)]
        assert asked(points, "SELECT * FROM named LIMIT ?", 1) == [("other",)]
        other.execute("DROP TABLE points")
        other.execute("CREATE TABLE points (id text PRIMARY KEY, name integer)")
        other.execute("INSERT INTO points VALUES ('1', 1)")
        with pytest.raises(Exception, match="text = integer"):
            asked(points, LOOKUP, 1)
        assert asked(points, LOOKUP, "1") == [(1,)]


def test_settings_change_what_a_text_means(points: Connection) -> None:
    points.execute("CREATE SCHEMA other")
    points.execute("CREATE TABLE other.points (id integer PRIMARY KEY, name text)")
    points.execute("INSERT INTO other.points VALUES (1, 'other')")
    moment = "SELECT name, timestamptz '2024-07-01 12:00'::text FROM points WHERE id = ?"
    assert asked(points, LOOKUP, 1) == [("one",)]
    assert asked(points, moment, 1) == [("one", "2024-07-01 12:00:00+00")]
    points.execute("SET search_path TO other")
    points.execute("SET timezone TO 'Europe/Berlin'")
    assert asked(points, LOOKUP, 1) == [("other",)]
    assert asked(points, moment, 1) == [("other", "2024-07-01 12:00:00+02")]
    points.execute("RESET ALL")
    assert asked(points, LOOKUP, 1) == [("one",)]


def test_what_only_the_session_knows_is_its_own(points: Connection) -> None:
    assert asked(points, LOOKUP, 1) == [("one",)]
    points.execute("CREATE TEMPORARY TABLE points (id integer, name text)")
    assert asked(points, LOOKUP, 1) == []
    points.execute("DISCARD TEMP")
    assert asked(points, LOOKUP, 1) == [("one",)]
    points.execute("BEGIN")
    points.execute("UPDATE points SET name = 'eins' WHERE id = 1")
    assert asked(points, LOOKUP, 1) == [("eins",)]
    points.execute("ROLLBACK")
    assert asked(points, LOOKUP, 1) == [("one",)]
    points.execute("BEGIN")
    points.execute("DROP TABLE points")
    with pytest.raises(Exception, match="does not exist"):
        asked(points, LOOKUP, 1)
    points.execute("ROLLBACK")


def test_what_the_clock_chance_and_the_catalogs_say_is_asked_each_time(points: Connection) -> None:
    for sql in ("SELECT now() FROM points", "SELECT random() FROM points WHERE id = 1"):
        assert asked(points, sql) != asked(points, sql)
    count = "SELECT count(*) FROM pg_class WHERE relname = 'later'"
    shown = "SELECT to_regclass('later') IS NULL"
    assert (asked(points, count), asked(points, shown)) == ([(0,)], [(True,)])
    points.execute("CREATE TABLE later (a integer)")
    assert (asked(points, count), asked(points, shown)) == ([(1,)], [(False,)])


def test_a_role_reads_what_it_may_read_now(points: Connection) -> None:
    points.execute("CREATE ROLE ann LOGIN")
    points.execute("GRANT SELECT ON points TO ann")
    role = points.engine.catalog.role("ann")
    with Connection(points.engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False, role=role) as hers:
        assert asked(points, LOOKUP, 1) == asked(hers, LOOKUP, 1) == [("one",)]
        points.execute("REVOKE SELECT ON points FROM ann")
        with pytest.raises(InsufficientPrivilege):
            asked(hers, LOOKUP, 1)
        assert asked(points, LOOKUP, 1) == [("one",)]


def test_memberships_are_looked_for_once_in_a_statement(points: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a catalog on PostgreSQL is asked for each time."""
    points.execute("CREATE ROLE ann LOGIN")
    points.execute("GRANT SELECT ON points TO ann")
    looked: list[int] = []
    held_roles = Catalog.held_roles

    def counted(catalog: Catalog, role: int) -> Any:
        looked.append(role)
        return held_roles(catalog, role)

    monkeypatch.setattr(Catalog, "held_roles", counted)
    role = points.engine.catalog.role("ann")
    with Connection(points.engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False, role=role) as hers:
        for sql in (LOOKUP, LOOKUP, "SELECT count(*) FROM points AS p, points AS q"):
            looked.clear()
            asked(hers, sql, *([1] if sql == LOOKUP else []))
            assert len(looked) == 1, sql


def test_an_index_is_read_once_it_is_there(points: Connection) -> None:
    points.execute("CREATE VIEW named AS SELECT name, count(*) AS n FROM points GROUP BY name")
    sql = "SELECT n FROM named WHERE name = ?"
    assert asked(points, sql, "one") == [(1,)]
    points.execute("CREATE INDEX by_name ON named (name)")
    assert asked(points, sql, "one") == [(1,)]
    points.execute("INSERT INTO points VALUES (3, 'one')")
    assert asked(points, sql, "one") == [(2,)]


def test_those_that_nobody_asks_for_go_first() -> None:
    kept = PlannedQueries(most=2)

    class Defined:
        mark, definitions = "a", 1

    state: Any = Defined()
    for name in "ab":
        kept.keep(name, state, name)
    assert kept.get("a", state, str) == "a"
    kept.keep("c", state, "c")
    assert [kept.get(name, state, str) for name in "abc"] == ["a", None, "c"]
    later: Any = type("Later", (), {"mark": "a", "definitions": 2})()
    assert kept.get("a", later, str) is None
    kept.keep("d", later, "d")
    kept.keep("a", state, "a")  # by somebody who was slow
    assert (kept.get("a", later, str), kept.get("d", later, str)) == (None, "d")


def test_a_lookup_that_is_unchanged_asks_the_catalog_nothing(
    points: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was committed, so what it said last is so now."""
    asked(points, LOOKUP, 1)
    asked(points, LOOKUP, 2)
    database = points.engine.catalog._database
    tried: list[str] = []
    before = type(database).read

    def noting(self: Any) -> Any:
        tried.append("read")
        return before(self)

    monkeypatch.setattr(type(database), "read", noting)
    assert asked(points, LOOKUP, 2) == [("two",)]
    assert not tried


def test_lookups_among_retractions_and_several_batches(points: Connection) -> None:
    """Each is what the same query is that no lookup answers."""
    everything = "SELECT id, name FROM points ORDER BY id"
    for sql in (
        "INSERT INTO points SELECT n, 'row ' || n FROM generate_series(10, 3000) AS g (n)",
        "DELETE FROM points WHERE id = 17",
        "UPDATE points SET name = 'changed' WHERE id IN (10, 2000)",
        "INSERT INTO points VALUES (17, 'again')",
    ):
        points.execute(sql)
        rows = dict(asked(points, everything))
        for id in (1, 10, 11, 17, 2_000, 3_000, 3_001):
            for _ in range(2):  # in memory from the second time on
                assert asked(points, LOOKUP, id) == ([(rows[id],)] if id in rows else [])


def test_only_what_a_column_is_compared_with_is_a_lookup(points: Connection) -> None:
    kinds = {
        LOOKUP: True,
        "SELECT id FROM points WHERE id = ? AND name = 'a'": True,
        "SELECT id FROM points WHERE id < ?": False,
        "SELECT id + 1 FROM points WHERE id = ?": False,
        "SELECT id FROM points WHERE id = ? OR id = 1": False,
    }
    found: dict[str, bool] = {}
    for sql in kinds:
        seen: list[LookupPlan | None] = []
        of = LookupPlan.of
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(LookupPlan, "of", lambda *given, of=of, seen=seen: seen.append(of(*given)) or seen[-1])
            asked(points, sql, 1)
        found[sql] = seen[-1] is not None
    assert found == kinds


def test_a_commit_of_another_process_is_seen(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    with Catalog.open(url) as one, Catalog.open(url) as other:
        assert one.roles() == one.roles() == ()
        other.create_role("ann", can_login=True, verifier=None)
        assert [role.name for role in one.roles()] == ["ann"]


INSERT = "INSERT INTO events VALUES (?, 'event')"


def test_an_insert_is_bound_once_for_all_values_of_its_types(
    points: Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    points.execute("CREATE TABLE events (id integer NOT NULL, name text)")
    points.execute(INSERT, (1,))
    with worked(monkeypatch) as done:
        points.execute(INSERT, (2,))
        with points.transaction():
            points.execute(INSERT, (3,))
    assert set(done) <= {"split", "parse_statement"}, "those of BEGIN and COMMIT"
    for value, type_ in ((4, INT2), (5, INT8), (6, INT2)):
        points.execute(INSERT, (Literal(value, type_),))
    points.execute(INSERT, ("7",))
    with pytest.raises(Exception, match="not-null"):
        points.execute(INSERT, (None,))
    with pytest.raises(Exception, match="out of range"):
        points.execute(INSERT, (2**40,))
    assert asked(points, "SELECT * FROM events ORDER BY 1") == [(n, "event") for n in range(1, 8)]
    with opened(tmp_path) as other:
        other.execute("ALTER TABLE events ADD COLUMN more text DEFAULT 'new'")
    points.execute(INSERT, (8,))
    assert asked(points, "SELECT * FROM events WHERE id > 6 ORDER BY 1") == [(7, "event", "new"), (8, "event", "new")]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ("id integer, name text, at timestamptz DEFAULT now()", 2),
        ("id integer, name text, n integer GENERATED ALWAYS AS IDENTITY", 2),
        ("id integer CHECK (id < 3), name text", 1),
        ("id integer PRIMARY KEY, name text", 1),
        ("id smallint, name varchar(3)", 0),
    ],
)
def test_a_table_that_makes_something_of_its_rows_is_asked_each_time(
    columns: str, rows: int, points: Connection
) -> None:
    points.execute(f"CREATE TABLE events ({columns})")
    for value in (1, 3, 1):
        with suppress(Error):
            points.execute(INSERT.replace("VALUES", "(id, name) VALUES"), (value,))
    found = asked(points, "SELECT count(*), count(DISTINCT e) FROM events AS e WHERE id = 1")
    expected = {"CHECK": [(2, 1)], "PRIMARY": [(1, 1)], "varchar": [(0, 0)]}
    assert found == next((what for word, what in expected.items() if word in columns), [(2, rows)])


def test_in_a_block_what_was_planned_is_planned(points: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(points, LOOKUP, 1) == [("one",)]
    with points.transaction():
        assert asked(points, LOOKUP, 2) == [("two",)]
        with worked(monkeypatch) as done:
            assert asked(points, LOOKUP, 1) == [("one",)]
        assert not done
        points.execute("INSERT INTO points VALUES (3, 'three')")
        assert asked(points, LOOKUP, 3) == [("three",)]
