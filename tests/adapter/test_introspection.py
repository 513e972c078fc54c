"""The catalog's own relations: each says what is so, any query reads them, and subscriptions tell what changes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs import introspection as documented
from mz_dagster.adapter import Connection, Cursor
from mz_dagster.adapter.introspection import RELATIONS
from mz_dagster.errors import Error, NotSupportedError
from tests.opened import opened

pytestmark = pytest.mark.usefixtures("no_spark")

Row = tuple[Any, ...]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        yield connection


def rows(connection: Connection, sql: str) -> list[Row]:
    return connection.execute(sql).fetchall()


def test_the_page_is_what_the_relations_are() -> None:
    assert documented.PAGE.read_text(encoding="utf-8") == documented.page(), "run: python -m docs.introspection"


def test_every_relation_can_be_read(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer PRIMARY KEY, b integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    connection.execute("CREATE INDEX i ON v (n)")
    connection.execute("CREATE CHECK c ON t BLOCKING AS SELECT a FROM t WHERE b IS NULL")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    rows(connection, "SELECT * FROM v")
    for one in RELATIONS:
        cursor = connection.execute(f"SELECT * FROM {one.schema}.{one.name}")
        assert [column[0] for column in cursor.description or ()] == [column.name for column in one.columns]
        for row in cursor.fetchall():
            lost = [column.name for cell, column in zip(row, one.columns, strict=True) if cell is None]
            assert set(lost) <= {column.name for column in one.columns if column.nullable}, (one.name, row)


def test_what_depends_on_what_and_what_it_holds(connection: Connection) -> None:
    connection.execute("CREATE SCHEMA s")
    connection.execute("CREATE TABLE t (a integer, b integer)")
    connection.execute("CREATE VIEW s.p AS SELECT a, b FROM t WHERE a > 0")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT b, min(a) AS least FROM s.p GROUP BY b")
    connection.execute("CREATE INDEX i ON v (least)")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 3)")
    assert rows(connection, "SELECT b FROM v ORDER BY b") == [(1,), (3,)]
    named = """
        SELECT o.name, r.name FROM mz_internal.mz_object_dependencies d
        JOIN mz_objects o ON o.id = d.object_id JOIN mz_objects r ON r.id = d.referenced_object_id
        WHERE o.type IN ('view', 'materialized view') AND r.name IS NOT NULL ORDER BY 1, 2"""
    assert rows(connection, named) == [("s.p", "t"), ("v", "s.p")]
    computed = """
        SELECT o.name FROM mz_internal.mz_compute_dependencies d JOIN mz_objects o ON o.id = d.object_id
        JOIN mz_objects r ON r.id = d.dependency_id WHERE r.name = 't' AND o.type = 'materialized view'"""
    assert rows(connection, computed) == [("v",)]
    assert rows(connection, "SELECT name, schema FROM mz_views") == [("p", "s")]
    index = """
        SELECT i.name, c.index_position, c.on_position, c.name FROM mz_indexes i
        JOIN mz_index_columns c ON c.index_id = i.id"""
    assert rows(connection, index) == [("i", 1, 2, "least")]
    arranged = """
        SELECT o.name, a.key, a.records, a.size > 0 FROM mz_internal.mz_arrangement_sizes a
        JOIN mz_objects o ON o.id = a.served_id WHERE a.type = 'arrangement'"""
    ((name, key, records, has_bytes),) = rows(connection, arranged)
    assert (name, key, has_bytes) == ("v", "level, bucket, b", True)
    assert records >= 2
    batches = """
        SELECT sum(updates) FROM mz_internal.mz_batches b JOIN mz_objects o ON o.id = b.object_id WHERE o.name = 't'"""
    assert rows(connection, batches) == [(3,)]
    assert rows(connection, "SELECT DISTINCT lag FROM mz_internal.mz_oracle_lag") == [(0,)]
    connection.execute("INSERT INTO t VALUES (9, 9)")
    behind = rows(connection, "SELECT name FROM mz_internal.mz_oracle_lag WHERE lag > 0 AND name IS NOT NULL")
    assert behind == [("v",)]


def test_steps_say_what_each_operator_cost(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer, b integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 3)")
    rows(connection, "SELECT * FROM v")
    cost = """
        SELECT c.name, s.operator, s.engine, s.rows_out, s.duration_ms >= 0 FROM mz_internal.mz_step_operators s
        JOIN mz_internal.mz_step_collections c USING (step_id, object_id) WHERE c.rows_written > 0
        ORDER BY s.position"""
    found = rows(connection, cost)
    assert ("Read t", 3) in [(row[1], row[3]) for row in found]
    assert any(row[1].startswith("Accumulate") for row in found)
    assert {row[2] for row in found} == {"this process"}
    ((failed, advanced),) = rows(connection, "SELECT sum(failed), sum(advanced) FROM mz_internal.mz_steps")
    assert (failed, advanced > 0) == (0, True)


def test_sessions_and_transactions_are_those_of_the_process(connection: Connection) -> None:
    other = Connection(connection.engine, connection._variables.isolation, owns_engine=False)
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("SET application_name = 'books'")
    assert rows(other, "SELECT application_name, client_ip FROM mz_internal.mz_sessions ORDER BY id") == [
        ("books", None),
        ("", None),
    ]
    other.execute("BEGIN")
    other.execute("INSERT INTO t VALUES (1)")
    state = "SELECT session_id, state, isolation, tables_written, read_timestamp FROM mz_internal.mz_transactions"
    ((session, *told),) = rows(connection, state)
    assert told == ["open", "strict serializable", 1, None]
    with pytest.raises(Error):
        other.execute("SELECT 1 / 0")
    assert rows(connection, "SELECT state FROM mz_internal.mz_transactions") == [("failed",)]
    other.close()
    assert rows(connection, state) == []
    assert rows(connection, f"SELECT count(*) FROM mz_internal.mz_sessions WHERE id = {session}") == [(0,)]


def test_subscriptions_are_told_until_they_end(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    cursor = connection.cursor().execute("SUBSCRIBE TO t")
    cursor.fetchmany(1, wait_s=0.1)
    told = "SELECT o.name, s.frontier > 0 FROM mz_internal.mz_subscriptions s JOIN mz_objects o ON o.id = s.object_id"
    assert rows(connection, told) == [("t", True)]
    assert len(rows(connection, "SELECT * FROM mz_internal.mz_capabilities WHERE holder LIKE 'SUBSCRIBE%'")) == 1
    cursor.close()
    assert rows(connection, told) == []


def test_errors_are_counted_by_view_until_they_are_mended(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / a AS x FROM t")
    connection.execute("INSERT INTO t VALUES (0), (0), (1)")
    with pytest.raises(Error, match="division by zero"):
        rows(connection, "SELECT * FROM v")
    told = "SELECT name, code, message, count FROM mz_internal.mz_errors"
    assert rows(connection, told) == [("v", "22012", "division by zero", 2)]
    connection.execute("DELETE FROM t WHERE a = 0")
    assert rows(connection, "SELECT * FROM v") == [(1,)]
    assert rows(connection, told) == []


def test_sources_tell_what_they_have_and_have_not_read(tmp_path: Path) -> None:
    with opened(tmp_path / "project") as connection:
        folder = connection.engine.project.root / "in"
        folder.mkdir()
        (folder / "1.json").write_text('{"a": 1}\n')
        connection.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER = 'in', PATTERN = '*.json') FORMAT JSON")
        told = "SELECT bindings_read, bindings_unread, waiting, failure FROM mz_internal.mz_source_statistics"
        assert rows(connection, told) == [(0, 0, 1, None)]
        assert rows(connection, "SELECT a FROM s") == [(1,)]
        (folder / "2.json").write_text('{"a": 2}\n')
        assert rows(connection, told) == [(1, 0, 1, None)]
        connection.engine.poll("default")
        assert rows(connection, told) == [(1, 1, 0, None)]
        (folder / "1.json").write_text('{"a": 3}\n')
        ((_, _, waiting, failure),) = rows(connection, told)
        assert waiting is None
        assert "1.json" in failure


# ---- subscriptions


def told(cursor: Cursor, wait_s: float = 5.0) -> list[Row]:
    return cursor.fetchmany(1000, wait_s=wait_s)


def test_what_was_told_is_what_the_query_returns(connection: Connection) -> None:
    query = "SELECT o.name, t.a FROM mz_objects o LEFT JOIN t ON t.b = o.name"
    connection.execute("CREATE TABLE t (a integer, b text)")
    cursor = connection.cursor().execute(f"SUBSCRIBE ({query}) WITH (PROGRESS)")
    found, times = Counter[Row](), []
    for statement in ("INSERT INTO t VALUES (1, 't')", "CREATE TABLE u (a integer)", "DROP TABLE u"):
        connection.execute(statement)
        for time, is_progress, diff, *row in told(cursor):
            times.append(time)
            if not is_progress:
                found[tuple(row)] += diff
        assert +found == Counter(rows(connection, query)), statement
        assert not -found
    assert times == sorted(times)
    assert connection.engine.catalog.read_ts("default") >= times[-1] - 1
    cursor.close()


def test_forms_of_such_a_subscription(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    cursor = connection.cursor().execute("SUBSCRIBE mz_tables ENVELOPE UPSERT (KEY (id)) WITH (SNAPSHOT = false)")
    assert told(cursor, 0.5) == []
    connection.execute("CREATE TABLE u (a integer)")
    (row,) = told(cursor)
    assert (row[1], row[3]) == ("upsert", "u")
    cursor.close()
    with pytest.raises(NotSupportedError, match="no AS OF"):
        connection.execute("SUBSCRIBE mz_tables AS OF 5")
    last = connection.engine.catalog.read_ts("default")
    assert connection.execute(f"SUBSCRIBE mz_tables UP TO {last}").fetchall() == []
    catalogs = connection.cursor().execute("SUBSCRIBE (SELECT oid::regclass FROM pg_class WHERE relname = 't')")
    assert [row[1:] for row in told(catalogs)] == [(1, "t")]
    catalogs.close()


def test_such_a_subscription_can_be_closed_from_elsewhere(connection: Connection) -> None:
    cursor = connection.cursor().execute("SUBSCRIBE mz_tables")
    threading.Timer(0.2, cursor._results[0].stream.close).start()  # type: ignore[union-attr]
    assert cursor.fetchall() == []
