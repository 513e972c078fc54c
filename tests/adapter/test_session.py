"""What a person at a session sees: statements in, exact rows out, at every time that can be read.

Each expected result is computed here in Python from the rows that were written, never read back from the engine. Most
of these tests start no Spark: an INSERT of rows and the read of a small collection need none.
"""

from __future__ import annotations

import itertools
import random
import re
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any

import pandas
import pytest

import mz_dagster
from mz_dagster import dbapi
from mz_dagster.adapter import Connection, Engine, Isolation, NoValidTimestamp, Project
from mz_dagster.errors import (
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
)
from mz_dagster.storage.read import read_at
from mz_dagster.storage.spark import SparkConfig

Row = tuple[Any, ...]


def rows(connection: Connection, sql: str, *parameters: object) -> list[Row]:
    """Returns a query's rows in an order that does not depend on the engine."""
    return ordered(connection.execute(sql, parameters).fetchall())


def ordered(found: Iterable[Row]) -> list[Row]:
    return sorted(found, key=repr)


def now(connection: Connection) -> int:
    """Returns the time of the last acknowledged write."""
    return connection.engine.catalog.read_ts("default")


# ---- tables


def test_written_rows_are_read_back(sparkless: Connection) -> None:
    execute = sparkless.execute
    assert execute("CREATE TABLE t (a integer NOT NULL, b text)").tag == "CREATE TABLE"
    assert rows(sparkless, "SELECT * FROM t") == []
    assert execute("INSERT INTO t VALUES (1, 'x'), (2, NULL)").tag == "INSERT 0 2"
    assert execute("INSERT INTO t (b, a) VALUES (?, ?)", ("it's", 3)).rowcount == 1
    assert execute("INSERT INTO t (a) VALUES (4)").rowcount == 1
    assert execute("INSERT INTO t SELECT * FROM t").rowcount == 4
    once: list[Row] = [(1, "x"), (2, None), (3, "it's"), (4, None)]
    assert rows(sparkless, "SELECT * FROM t") == ordered(once * 2)
    assert rows(sparkless, "SELECT b, a FROM t") == ordered([(b, a) for a, b in once * 2])
    assert rows(sparkless, "TABLE t") == ordered(once * 2)


def test_executemany_writes_each_set_of_parameters(sparkless: Connection) -> None:
    cursor = sparkless.execute("CREATE TABLE t (a integer)")
    cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (None,), (3,)])
    assert cursor.rowcount == 3
    assert rows(sparkless, "SELECT a FROM t") == ordered([(1,), (None,), (3,)])


VALUES: dict[str, list[object]] = {
    "boolean": [True, False, None],
    "smallint": [-(2**15), 2**15 - 1, None],
    "integer": [-(2**31), 2**31 - 1, None],
    "bigint": [-(2**63), 2**63 - 1, None],
    "real": [0.5, -0.0, None],
    "double precision": [1e300, float("inf"), 5e-324],
    "numeric(38, 2)": [Decimal("-12345678901234567890.12"), Decimal("0.00"), None],
    "text": ["", "\u00e9\U0001f600\n'\"\\", None],
    "date": [date(1, 1, 1), date(9999, 12, 31), None],
    "timestamp": [datetime(1600, 2, 29, 1, 2, 3, 456789), datetime(9999, 12, 31, 23, 59, 59, 999999), None],
    "timestamptz": [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2024, 2, 29, tzinfo=UTC), None],
}


def test_values_of_every_type_are_the_same_in_process_and_through_spark(connection: Connection) -> None:
    names = [f"c{i}" for i in range(len(VALUES))]
    declared = ", ".join(f"{name} {kind}" for name, kind in zip(names, VALUES, strict=True))
    connection.execute(f"CREATE TABLE t (k integer, {declared})")
    written = [(k, *values) for k, values in enumerate(zip(*VALUES.values(), strict=True))]
    connection.cursor().executemany(f"INSERT INTO t VALUES ({', '.join('?' * (len(names) + 1))})", written)
    assert rows(connection, "SELECT * FROM t") == ordered(written)
    assert rows(connection, "SELECT * FROM t WHERE k >= 0") == ordered(written)  # a filter runs on Spark
    connection.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {', '.join(names)} FROM t WHERE k < 2")
    assert rows(connection, "SELECT * FROM v") == ordered(row[1:] for row in written if row[0] < 2)


def test_parameters_are_values_and_never_sql(sparkless: Connection) -> None:
    text = "'); DROP TABLE t; --"
    sparkless.execute("CREATE TABLE t (a text)")
    sparkless.execute("INSERT INTO t VALUES (?)", (text,))
    assert rows(sparkless, "SELECT a FROM t") == [(text,)]
    with pytest.raises(ProgrammingError, match="1 values for 2 parameters") as caught:
        sparkless.execute("INSERT INTO t VALUES (?), (?)", ("x",))
    assert caught.value.hint == "Give one value for each ?."


def test_update_and_delete_do_what_they_say(connection: Connection) -> None:
    execute = connection.execute
    execute("CREATE TABLE t (a integer NOT NULL, b integer)")
    execute("INSERT INTO t VALUES (1, 10), (1, 10), (2, 20), (3, NULL)")
    assert execute("DELETE FROM t WHERE b = ?", (99,)).rowcount == 0
    assert execute("UPDATE t SET a = b, b = a WHERE b = 10").tag == "UPDATE 2"  # the old values on the right
    model: list[Row] = [(10, 1), (10, 1), (2, 20), (3, None)]
    assert rows(connection, "SELECT * FROM t") == ordered(model)
    before = now(connection)
    with pytest.raises(IntegrityError, match='null value in column "a" of relation "t"') as caught:
        execute("UPDATE t SET a = b WHERE a >= 2")
    assert caught.value.hint
    assert rows(connection, "SELECT * FROM t") == ordered(model)
    assert execute("DELETE FROM t WHERE b IS NULL OR b = 1").tag == "DELETE 3"
    assert rows(connection, "SELECT * FROM t") == [(2, 20)]
    assert rows(connection, f"SELECT * FROM t AS OF {before}") == ordered(model)
    assert execute("UPDATE t SET b = 0").rowcount == 1
    assert execute("DELETE FROM t").rowcount == 1
    assert execute("DELETE FROM t").rowcount == 0
    assert rows(connection, "SELECT * FROM t") == []


def test_writes_read_other_collections_as_they_are_now(connection: Connection) -> None:
    """What they read was written, or follows from what was written, after the last write to their own table."""
    execute = connection.execute
    execute("CREATE TABLE t (a integer NOT NULL, b integer)")
    execute("CREATE TABLE u (a integer, d integer)")
    execute("CREATE MATERIALIZED VIEW doubled AS SELECT a, d * 2 AS d FROM u")
    execute("INSERT INTO t VALUES (1, 10), (1, 10), (2, 20), (3, 30)")
    execute("INSERT INTO u VALUES (1, 100), (2, 200), (2, 200)")
    assert execute("UPDATE t SET b = t.b + x.d FROM doubled AS x WHERE x.a = t.a").rowcount == 3
    assert rows(connection, "SELECT * FROM t") == ordered([(1, 210), (1, 210), (2, 420), (3, 30)])
    execute("ALTER TABLE u RENAME TO v")
    execute("INSERT INTO v VALUES (3, 300)")  # the view is still of the same table
    assert execute("DELETE FROM t USING doubled AS x WHERE x.a = t.a AND x.d >= 400").rowcount == 2
    assert rows(connection, "SELECT * FROM t") == ordered([(1, 210), (1, 210)])


def test_a_null_where_none_may_be_is_refused_and_nothing_written(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer NOT NULL, b text)")
    with pytest.raises(IntegrityError, match='null value in column "a"'):
        sparkless.execute("INSERT INTO t VALUES (1, 'x'), (NULL, 'y')")
    with pytest.raises(IntegrityError):
        sparkless.execute("INSERT INTO t (b) VALUES ('z')")
    assert rows(sparkless, "SELECT * FROM t") == []


# ---- times


def test_every_readable_time_has_its_own_content(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    model: dict[int, list[Row]] = {}
    for n in range(6):
        sparkless.execute("INSERT INTO t VALUES (?)", (n,))
        model[now(sparkless)] = [(i,) for i in range(n + 1)]
        if n == 3:
            sparkless.execute("DELETE FROM t")
            model[now(sparkless)] = []
            sparkless.execute("INSERT INTO t VALUES (0), (1), (2), (3)")
            model[now(sparkless)] = model[max(time for time, content in model.items() if len(content) == 4)]
    for time, content in model.items():
        assert rows(sparkless, f"SELECT * FROM t AS OF {time}") == content
        assert rows(sparkless, "SELECT * FROM t AS OF ?", time) == content
    for earlier, later in itertools.pairwise(model):
        assert rows(sparkless, f"SELECT * FROM t AS OF {later - 1}") == model[earlier]
        assert rows(sparkless, f"SELECT * FROM t AS OF AT LEAST {earlier}") == model[max(model)]
    assert rows(sparkless, f"SELECT * FROM t AS OF {min(model) - 1}") == []


def test_a_time_to_come_is_waited_for(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS b FROM t")
    sparkless.execute("INSERT INTO t VALUES (1)")
    soon = sparkless.engine.now("default") + 300
    assert rows(sparkless, f"SELECT * FROM m AS OF {soon}") == [(2,)]
    assert sparkless.engine.now("default") >= soon
    sparkless.execute("INSERT INTO t VALUES (2)")  # is later than what was read
    assert rows(sparkless, f"SELECT * FROM m AS OF {soon}") == [(2,)]
    assert rows(sparkless, f"SELECT count(*) FROM m AS OF AT LEAST {soon}") == [(2,)]


def test_a_time_that_its_feed_has_not_told_is_waited_for_up_to_the_deadline(tmp_path: Path) -> None:
    def connected(deadline: str) -> Connection:
        feed = "[project]\ntimeline = 'feed'\n[timelines.feed]\nclock = 'clock'\n"
        (tmp_path / "mz.toml").write_text(f"{feed}[reads]\nas_of_deadline = '{deadline}'\n")
        return Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE)

    (tmp_path / "clock").write_text("1000")
    with connected("100 ms") as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("INSERT INTO t VALUES (1)")
        latest = connection.engine.catalog.read_ts("feed")
        begun = monotonic()
        with pytest.raises(NoValidTimestamp, match="not known yet"):
            connection.execute(f"SELECT * FROM t AS OF {latest + 1}")
        assert monotonic() - begun >= 0.1
    with connected("60 s") as connection:
        writer = threading.Timer(0.05, connection.execute, ["INSERT INTO t VALUES (2)"])
        writer.start()
        assert rows(connection, f"SELECT * FROM t AS OF AT LEAST {latest + 1}") == [(1,), (2,)]
        writer.join()


def test_a_time_that_cannot_be_read_is_refused_with_the_times_that_can(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    latest = now(sparkless)
    with pytest.raises(NoValidTimestamp, match=f"time {latest + 10**9} is not known yet") as caught:
        sparkless.execute(f"SELECT * FROM t AS OF {latest + 10**9}")
    found = re.search(r"\d+", str(caught.value.detail))
    assert found is not None
    assert latest <= int(found[0]) < latest + 10**9
    assert caught.value.hint
    sparkless.engine.catalog.set_retention(sparkless.engine.collection_of("t"), 0)
    sparkless.execute("INSERT INTO t VALUES (2)")
    assert list(sparkless.engine.compact())
    with pytest.raises(NoValidTimestamp, match="is forgotten") as caught:
        sparkless.execute(f"SELECT * FROM t AS OF {latest}")
    assert str(now(sparkless)) in str(caught.value)
    assert "RETAIN HISTORY" in str(caught.value.hint)
    assert rows(sparkless, f"SELECT * FROM t AS OF AT LEAST {latest}") == [(1,), (2,)]


def test_every_acknowledged_write_is_seen_by_every_later_read(
    sparkless: Connection, tmp_path: Path, spark_config: SparkConfig
) -> None:
    """Strict serializability, across connections of one folder: writes and reads take turns at random."""
    sparkless.execute("CREATE TABLE t (a integer)")
    chosen = random.Random(3)
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as second:
        both = (sparkless, second)
        for n in range(12):
            chosen.choice(both).execute("INSERT INTO t VALUES (?)", (n,))
            for reader in chosen.sample(both, 2):
                assert rows(reader, "SELECT a FROM t") == ordered((i,) for i in range(n + 1))
        assert second.execute("DELETE FROM t").rowcount == 12
        assert rows(sparkless, "SELECT a FROM t") == []


def test_a_view_is_as_fresh_as_its_isolation_says(
    connection: Connection, tmp_path: Path, spark_config: SparkConfig
) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a * 10 AS b FROM t")
    connection.execute("INSERT INTO t VALUES (2)")
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.SERIALIZABLE) as lazy:
        assert rows(lazy, "SELECT b FROM v") == [(10,)]  # the latest complete time; drives no step
        assert rows(lazy, "SELECT a FROM t") == [(1,), (2,)]
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as strict:
        assert rows(strict, "SELECT b FROM v") == [(10,), (20,)]
        assert rows(strict, f"SELECT b FROM v AS OF {now(strict)}") == [(10,), (20,)]


def test_a_serializable_read_of_tables_waits_for_no_poll_and_takes_nothing_of_the_past(
    sparkless: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparkless.execute("CREATE TABLE idle (a integer)")
    sparkless.execute("INSERT INTO idle VALUES (1)")
    sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM idle")
    assert rows(sparkless, "SELECT a FROM v") == [(1,)]
    sparkless.execute("CREATE TABLE busy (a integer)")
    sparkless.execute("INSERT INTO busy VALUES (2)")

    def step(*_: object, **__: object) -> None:
        raise AssertionError("it needs no step")

    with Connection(Engine(Project.load(tmp_path)), Isolation.SERIALIZABLE) as lazy:
        monkeypatch.setattr(Engine, "_step_to", step)
        assert rows(lazy, "SELECT a FROM idle") == [(1,)]
        for number in range(3, 6):
            sparkless.execute("INSERT INTO busy VALUES (?)", (number,))
            seen = ordered((1, one) for one in range(2, number + 1))
            assert rows(lazy, "SELECT idle.a, busy.a FROM idle, busy") == seen
        assert rows(lazy, "SELECT v.a, idle.a FROM v, idle") == [(1, 1)], "at the time of the view"


# ---- views


def test_a_view_is_its_query_at_every_time(connection: Connection) -> None:
    """Joins, a union, expressions and filters; hydrated over data and stepped; views over views, plain and not."""
    execute = connection.execute
    execute("CREATE TABLE people (id integer NOT NULL, name text, boss integer)")
    execute("CREATE TABLE wages (person integer NOT NULL, amount numeric(38, 2))")
    execute("INSERT INTO people VALUES (1, 'Ann', NULL), (2, 'Bob', 1), (3, 'Cyd', 1), (3, 'Cyd', 1)")
    execute("INSERT INTO wages VALUES (1, 10.50), (2, 7.25), (2, 1.00), (9, 99.00)")
    execute("CREATE VIEW paid AS SELECT p.id, p.name, p.boss, w.amount FROM people p JOIN wages w ON w.person = p.id")
    execute(
        "CREATE MATERIALIZED VIEW listed AS "
        "SELECT p.name || ' works for ' || b.name AS line, p.amount * 2 AS n "
        "FROM paid p JOIN people b ON b.id = p.boss "
        "UNION ALL SELECT upper(name), NULL FROM people WHERE boss IS NULL"
    )
    execute(
        "CREATE MATERIALIZED VIEW dear AS SELECT line, CASE WHEN n > 10 THEN 'dear' ELSE 'cheap' END AS c FROM listed"
    )
    people: list[Row] = [(1, "Ann", None), (2, "Bob", 1), (3, "Cyd", 1), (3, "Cyd", 1)]
    wages: list[Row] = [(1, Decimal("10.50")), (2, Decimal("7.25")), (2, Decimal("1.00")), (9, Decimal("99.00"))]

    def listed() -> list[Row]:
        return [
            (f"{name} works for {other[1]}", amount * 2)
            for id, name, boss in people
            for person, amount in wages
            for other in people
            if person == id and other[0] == boss
        ] + [(name.upper(), None) for _, name, boss in people if boss is None]

    def dear() -> list[Row]:
        return [(line, "dear" if n is not None and n > 10 else "cheap") for line, n in listed()]

    expected: dict[int, tuple[list[Row], list[Row]]] = {}

    def check() -> None:
        assert rows(connection, "SELECT * FROM dear") == ordered(dear())
        assert rows(connection, "SELECT * FROM listed") == ordered(listed())
        expected[now(connection)] = (listed(), dear())

    check()
    execute("INSERT INTO wages VALUES (3, 4.00)")
    wages.append((3, Decimal("4.00")))
    execute("INSERT INTO people VALUES (9, 'Dov', 2)")
    people.append((9, "Dov", 2))
    check()
    execute("UPDATE people SET boss = 9 WHERE id = 3")
    people[2:4] = [(3, "Cyd", 9)] * 2
    execute("DELETE FROM people WHERE name = 'Ann'")
    del people[0]
    check()
    for time, (one, other) in expected.items():
        assert rows(connection, f"SELECT * FROM listed AS OF {time}") == ordered(one)
        assert rows(connection, f"SELECT * FROM dear AS OF {time}") == ordered(other)
    found = connection.execute("SELECT line FROM dear WHERE c = 'cheap' ORDER BY line DESC LIMIT 1 OFFSET 1").fetchall()
    assert found == sorted(((line,) for line, c in dear() if c == "cheap"), reverse=True)[1:2]


def test_a_query_may_read_what_no_view_maintains(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer, b text)")
    connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (NULL, 'z')")
    pairs = [(a, c) for a, c in itertools.product((1, 2), repeat=2) if a <= c]
    assert rows(connection, "SELECT l.a, r.a FROM t l JOIN t r ON l.a <= r.a") == ordered(pairs)
    assert rows(connection, "SELECT 1 + 1, 'a' || 'b'") == [(2, "ab")]
    assert rows(connection, "VALUES (1, 'a'), (2, NULL)") == ordered([(1, "a"), (2, None)])


def test_indexes_hold_the_rows_of_what_they_are_on(connection: Connection) -> None:
    execute = connection.execute
    execute("CREATE TABLE t (a integer, b integer)")
    execute("INSERT INTO t VALUES (1, 2), (3, 4)")
    execute("CREATE VIEW sums AS SELECT a, a + b AS s FROM t WHERE b > 2")
    assert execute("CREATE INDEX t_by_b ON t (b)").tag == "CREATE INDEX"  # the shard's own order
    execute("CREATE INDEX ON t (a)")  # a copy
    execute("CREATE INDEX sums_by_s ON sums (s)")  # makes a plain view's rows durable
    on_t, on_sums = [("t_a_idx", "t", "a"), ("t_by_b", "t", "b")], [("sums_by_s", "sums", "s")]
    assert rows(connection, "SHOW INDEXES") == on_sums + on_t
    assert rows(connection, "SHOW INDEXES ON t") == on_t
    assert rows(connection, "SHOW INDEXES ON sums") == on_sums
    execute("INSERT INTO t VALUES (5, 6)")
    engine = connection.engine
    assert engine.collection_of("t_by_b") == engine.collection_of("t")
    poll = engine.poll("default")
    assert poll.tick is not None
    report = engine.step("default", poll.tick)
    assert not report.failures
    for name, expected in (("t_a_idx", [(1, 2), (3, 4), (5, 6)]), ("sums_by_s", [(3, 7), (5, 11)])):
        row = engine.catalog.collection(engine.collection_of(name))
        with read_at(engine.catalog, engine.shards, row, poll.tick, holder="test") as frame:
            data = [frame.column(column.name).to_pylist() for column in row.columns]
            assert ordered(zip(*data, strict=True)) == expected
    execute("DROP INDEX t_by_b, sums_by_s")
    assert rows(connection, "SHOW INDEXES") == [("t_a_idx", "t", "a")]
    assert rows(connection, "SELECT * FROM sums") == [(3, 7), (5, 11)]


# ---- names


def test_drop_forgets_names_and_only_what_nothing_needs(sparkless: Connection) -> None:
    execute = sparkless.execute
    execute("CREATE TABLE t (a integer)")
    execute("CREATE VIEW p AS SELECT a FROM t")
    execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM p")
    with pytest.raises(ProgrammingError, match='cannot drop "t" because other objects depend on it') as caught:
        execute("DROP TABLE t")
    assert "p, v" in str(caught.value.detail)
    assert "CASCADE" in str(caught.value.hint)
    with pytest.raises(ProgrammingError, match='"v" is not a table'):
        execute("DROP TABLE v")
    with pytest.raises(ProgrammingError, match='"w" does not exist'):
        execute("DROP TABLE w")
    assert execute("DROP TABLE IF EXISTS w").tag == "DROP TABLE"
    assert rows(sparkless, "SHOW OBJECTS") == [("p", "view"), ("t", "table"), ("v", "materialized view")]
    execute("DROP VIEW p CASCADE")
    assert rows(sparkless, "SHOW OBJECTS") == [("t", "table")]
    execute("INSERT INTO t VALUES (1)")
    old = sparkless.engine.collection_of("t")
    execute("DROP TABLE t")
    with pytest.raises(ProgrammingError, match='"t" does not exist'):
        execute("SELECT * FROM t")
    execute("CREATE TABLE t (b text)")
    assert sparkless.engine.collection_of("t") != old
    assert rows(sparkless, "SELECT * FROM t") == []


def test_a_name_is_given_once(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    with pytest.raises(ProgrammingError, match='"t"') as caught:
        sparkless.execute("CREATE VIEW t AS SELECT 1 AS a")
    assert caught.value.hint
    assert sparkless.execute("CREATE TABLE IF NOT EXISTS t (b text)").tag == "CREATE TABLE"
    assert [column[0] for column in sparkless.execute("SELECT * FROM t").description or ()] == ["a"]


def test_show_explain_and_introspection_need_no_data(sparkless: Connection) -> None:
    execute = sparkless.execute
    table = "CREATE TABLE t (a integer NOT NULL, b numeric(10, 2))"
    execute(table)
    execute("CREATE VIEW p AS SELECT a FROM t WHERE a > 1")
    execute("CREATE MATERIALIZED VIEW v AS SELECT p.a, t.b FROM p JOIN t ON t.a = p.a")
    assert rows(sparkless, "SHOW TABLES") == [("t", "table")]
    assert rows(sparkless, "SHOW VIEWS") == [("p", "view")]
    assert rows(sparkless, "SHOW MATERIALIZED VIEWS") == [("v", "materialized view")]
    assert rows(sparkless, "SHOW OBJECTS LIKE '_'") == [("p", "view"), ("t", "table"), ("v", "materialized view")]
    assert rows(sparkless, "SHOW COLUMNS FROM t") == [("a", "NO", "integer"), ("b", "YES", "numeric(10,2)")]
    assert rows(sparkless, "SHOW CREATE TABLE t") == [("t", table)]
    for explained in ("MATERIALIZED VIEW v", "SELECT p.a, t.b FROM p JOIN t ON t.a = p.a"):
        plan = "\n".join(line for (line,) in execute(f"EXPLAIN {explained}").fetchall())
        assert "DeltaJoin" in plan
        assert "bilinear" in plan
        assert "writes per step: at most 1" in plan
    execute("INSERT INTO t VALUES (1, 2.5), (3, 4)")
    frontiers: dict[str, int] = dict(rows(sparkless, "SELECT name, write_frontier FROM mz_internal.mz_frontiers"))
    assert frontiers.keys() == {"t", "v"}
    assert frontiers["t"] == now(sparkless) + 1
    assert rows(sparkless, "SELECT name, type FROM mz_objects") == [
        ("p", "view"), ("t", "table"), ("v", "materialized view"),
    ]  # fmt: skip
    assert rows(sparkless, "SELECT batches, updates, errors FROM mz_internal.mz_shards") == [(0, 0, 0), (1, 2, 0)]
    assert rows(sparkless, "SELECT * FROM mz_internal.mz_ticks") == []


# ---- errors as data


@pytest.mark.parametrize("cure", ["DELETE FROM t WHERE b = 0", "UPDATE t SET b = 5 WHERE b = 0"])
def test_a_row_that_fails_makes_reads_fail_until_it_is_cured(connection: Connection, cure: str) -> None:
    execute = connection.execute
    execute("CREATE TABLE t (a integer, b integer)")
    execute("CREATE TABLE u (a integer, c text)")
    execute("CREATE MATERIALIZED VIEW v AS SELECT a, 10 / b AS q FROM t")
    execute("CREATE MATERIALIZED VIEW joined AS SELECT v.q, u.c FROM v JOIN u ON u.a = v.a")
    execute("INSERT INTO u VALUES (1, 'one'), (2, 'two')")
    execute("INSERT INTO t VALUES (1, 2)")
    assert rows(connection, "SELECT * FROM joined") == [(5, "one")]
    good = now(connection)
    execute("INSERT INTO t VALUES (2, 0)")
    for name in ("v", "joined"):
        with pytest.raises(DataError, match="division by zero") as caught:
            execute(f"SELECT * FROM {name}")
        assert caught.value.sqlstate == "22012"
        assert "heals" in str(caught.value.hint)
    bad = now(connection)
    failures = rows(connection, "SELECT name FROM mz_internal.mz_frontiers WHERE failure IS NOT NULL")
    assert failures == [], "a bad row is data, and no failure of the step"
    execute(cure)
    healed = [(2, 2, "two")] if cure.startswith("UPDATE") else []
    assert rows(connection, "SELECT * FROM v") == ordered([(1, 5), *(row[:2] for row in healed)])
    assert rows(connection, "SELECT * FROM joined") == ordered([(5, "one"), *(row[1:] for row in healed)])
    # History is exact: the error is at the times it was there, and nowhere else.
    assert rows(connection, f"SELECT * FROM joined AS OF {good}") == [(5, "one")]
    with pytest.raises(DataError, match="division by zero"):
        execute(f"SELECT * FROM joined AS OF {bad}")


def test_an_error_of_a_query_is_the_querys_alone(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer, b text)")
    connection.execute("INSERT INTO t VALUES (0, 'x'), (1, '7')")
    for query, code in (("SELECT 1 / a FROM t", "22012"), ("SELECT b::integer FROM t", "22P02")):
        with pytest.raises(DataError) as caught:
            connection.execute(query)
        assert caught.value.sqlstate == code
    assert rows(connection, "SELECT 1 / a, b::integer FROM t WHERE a <> 0") == [(1, 7)]
    assert rows(connection, "SELECT a FROM t") == [(0,), (1,)]


# ---- PEP 249


def test_the_module_is_pep_249s() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    assert dbapi.Error is mz_dagster.Error
    assert issubclass(mz_dagster.DatabaseError, mz_dagster.Error)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError"):
        assert issubclass(getattr(mz_dagster, name), mz_dagster.DatabaseError)
    assert issubclass(mz_dagster.InterfaceError, mz_dagster.Error)
    assert not issubclass(mz_dagster.InterfaceError, mz_dagster.DatabaseError)


def test_type_codes_equal_the_objects_of_their_kind(sparkless: Connection) -> None:
    kinds = {
        dbapi.NUMBER: "smallint, integer, bigint, numeric, numeric(12, 2), real, double precision",
        dbapi.STRING: "text, varchar, varchar(3), char(3), uuid, jsonb",
        dbapi.BINARY: "bytea",
        dbapi.DATETIME: "date, time, timetz, timestamp, timestamptz, interval",
        None: "integer[], text[], boolean",
    }
    for number, (kind, types) in enumerate(kinds.items()):
        named = re.split(r", (?=[a-z])", types)
        columns = ", ".join(f"c{place} {one}" for place, one in enumerate(named))
        sparkless.execute(f"CREATE TABLE t{number} ({columns})")
        for column in sparkless.execute(f"SELECT * FROM t{number}").description or ():
            equal = [one for one in kinds if one is not None and column[1] == one]
            assert equal == ([] if kind is None else [kind]), column[1]


def test_what_is_made_of_ticks_is_in_utc(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (d date, h time, m timestamp, b bytea)")
    values = (
        dbapi.DateFromTicks(86399.5),
        dbapi.TimeFromTicks(86399.5),
        dbapi.TimestampFromTicks(0),
        dbapi.Binary(b"x"),
    )
    sparkless.execute("INSERT INTO t VALUES (?, ?, ?, ?)", values)
    expected = (dbapi.Date(1970, 1, 1), dbapi.Time(23, 59, 59, 500000), dbapi.Timestamp(1970, 1, 1), b"x")
    assert sparkless.execute("SELECT * FROM t").fetchall() == [expected]


def test_cursors_describe_and_fetch_as_pep_249_says(sparkless: Connection) -> None:
    cursor = sparkless.cursor()
    assert (cursor.description, cursor.rowcount, cursor.arraysize) == (None, -1, 1)
    cursor.execute("CREATE TABLE t (a integer NOT NULL, b numeric(38, 3))")
    assert (cursor.description, cursor.rowcount) == (None, -1)
    with pytest.raises(InterfaceError, match="returned no rows"):
        cursor.fetchone()
    cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)")
    assert (cursor.description, cursor.rowcount) == (None, 5)
    cursor.execute("SELECT a, b AS other FROM t ORDER BY a")
    assert cursor.rowcount == 5
    assert cursor.description == [
        ("a", "integer", None, None, None, None, False),
        ("other", "numeric(38,3)", None, None, None, 3, True),
    ]
    assert cursor.fetchone() == (1, Decimal("1.000"))
    assert cursor.fetchmany(0) == []
    assert [row[0] for row in cursor.fetchmany(2)] == [2, 3]
    assert [row[0] for row in cursor.fetchmany()] == [4]
    assert [row[0] for row in cursor.fetchall()] == [5]
    assert (cursor.fetchone(), cursor.fetchmany(3), cursor.fetchall()) == (None, [], [])
    cursor.execute("SELECT a FROM t ORDER BY a")
    assert [row[0] for row in cursor] == [1, 2, 3, 4, 5]
    with pytest.raises(Error):
        cursor.execute("SELECT nothing FROM t")
    with pytest.raises(InterfaceError):  # a statement that failed leaves no result of the one before
        cursor.fetchall()


def test_what_is_closed_stays_closed(sparkless: Connection) -> None:
    cursor = sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.commit()
    assert sparkless.autocommit
    sparkless.rollback()
    assert sparkless.execute("SELECT a FROM t").fetchall() == []
    cursor.close()
    with pytest.raises(InterfaceError, match="the cursor is closed"):
        cursor.execute("SELECT 1")
    with pytest.raises(InterfaceError):
        cursor.fetchall()
    other = sparkless.cursor()
    sparkless.close()
    sparkless.close()
    uses: list[Callable[[], object]] = [sparkless.cursor, sparkless.commit, lambda: other.execute("SELECT 1")]
    for use in uses:
        with pytest.raises(InterfaceError, match="the connection is closed") as caught:
            use()
        assert "mz_dagster.connect()" in str(caught.value.hint)


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads_a_connection_and_tells_its_errors(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    frame = pandas.read_sql("SELECT a, b FROM t WHERE a >= ? ORDER BY a", sparkless, params=(1,))  # type: ignore[call-overload]
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", None]}
    with pytest.raises(pandas.errors.DatabaseError, match='relation "nope" does not exist'):
        pandas.read_sql("SELECT * FROM nope", sparkless)  # type: ignore[call-overload]


def test_what_was_acknowledged_outlives_its_connection(tmp_path: Path) -> None:
    folder = tmp_path / "not there yet"
    with mz_dagster.connect(folder) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("INSERT INTO t VALUES (1)")
        time = now(connection)
    with mz_dagster.connect(str(folder), isolation="serializable") as connection:
        assert rows(connection, "SELECT a FROM t") == [(1,)]
        assert rows(connection, f"SELECT a FROM t AS OF {time - 1}") == []


# ---- refusals


@pytest.mark.parametrize(
    ("sql", "kind", "position"),
    [
        ("SELEC 1", ProgrammingError, 1),
        ("SELECT a FROM t WHERE", ProgrammingError, 22),
        ("SELECT nope FROM t", ProgrammingError, 8),
        ("SELECT a FROM nowhere", ProgrammingError, 15),
        ("INSERT INTO nowhere VALUES (1)", ProgrammingError, 13),
        ("INSERT INTO p VALUES (1)", ProgrammingError, 13),
        ("DELETE FROM v", ProgrammingError, 13),
        ("SELECT a FROM t WHERE random() < 1", NotSupportedError, 23),
        ("CREATE MATERIALIZED VIEW w AS SELECT random() FROM t", NotSupportedError, 38),
        ("CREATE MATERIALIZED VIEW w AS SELECT now()", NotSupportedError, 38),
        ("CREATE INDEX i ON mz_internal.mz_frontiers", ProgrammingError, 19),
        ("COPY t TO STDOUT", NotSupportedError, 1),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_position(
    sparkless: Connection, sql: str, kind: type[Error], position: int
) -> None:
    for created in (
        "TABLE t (a integer)",
        "VIEW p AS SELECT a FROM t",
        "MATERIALIZED VIEW v AS SELECT a FROM t",
    ):
        sparkless.execute(f"CREATE {created}")
    before = rows(sparkless, "SHOW OBJECTS")
    with pytest.raises(kind) as caught:
        sparkless.execute(sql)
    assert caught.value.position == position, caught.value
    assert f"at character {position}" in str(caught.value)
    assert rows(sparkless, "SHOW OBJECTS") == before


def test_several_statements_are_executed_one_by_one_up_to_the_first_error(sparkless: Connection) -> None:
    cursor = sparkless.execute("CREATE TABLE s (a integer); INSERT INTO s VALUES (1), (2);; SELECT a FROM s ORDER BY a")
    assert (cursor.tag, cursor.nextset(), cursor.tag, cursor.nextset()) == ("CREATE TABLE", True, "INSERT 0 2", True)
    assert (cursor.fetchall(), cursor.nextset()) == ([(1,), (2,)], None)
    for wrong, column, place in (
        ("SELCT 1", 1, "LINE 2: SELCT 1\n        ^"),
        ("SELECT b FROM s", 8, "LINE 2: SELECT b FROM s\n               ^"),
    ):
        with pytest.raises(ProgrammingError) as caught:
            sparkless.execute(f"INSERT INTO s VALUES (3);\n{wrong}\n; INSERT INTO s VALUES (4)")
        assert caught.value.__notes__ == [place]
        assert (caught.value.line, caught.value.column) == (2, column)
        assert str(caught.value).partition("\n")[0].endswith(f" at line 2, column {column}")
    assert rows(sparkless, "SELECT a FROM s") == [(1,), (2,), (3,), (3,)]


def test_parameters_are_those_of_one_statement(sparkless: Connection) -> None:
    for sql, count in (("SELECT ?; SELECT 2", 2), ("", 0), (" ; ", 0)):
        with pytest.raises(ProgrammingError, match=f"{count} statements where one is expected") as caught:
            sparkless.execute(sql, (1,) if sql else ())
        assert caught.value.hint
    assert rows(sparkless, "SELECT 1;") == [(1,)]


@pytest.mark.parametrize(
    ("query", "sqlstate"),
    [("SELECT 1 / 0", "22012"), ("SELECT a::smallint FROM t", "22003"), ("SELECT * FROM v", "22012")],
)
def test_an_error_of_the_data_has_the_sqlstate_of_the_data(sparkless: Connection, query: str, sqlstate: str) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / (a - 70000) AS b FROM t")
    sparkless.execute("INSERT INTO t VALUES (70000)")
    with pytest.raises(DataError) as caught:
        sparkless.execute(query)
    assert caught.value.sqlstate == sqlstate
    assert (caught.value.hint is None) == ("FROM" not in query)  # of constants alone no row can be corrected


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("UPDATE t SET b = b + ? WHERE a = ?", ("0.45", "1")),
        ("UPDATE t SET b = b + ? FROM u WHERE t.a = u.a AND u.x = ?", (100, 7)),
        ("UPDATE t SET b = ? FROM u WHERE t.a = u.a AND u.x = ? RETURNING t.*, ?", (8, 7, "r")),
        ("UPDATE t SET s = ?, (b, a) = (SELECT ?, ?) WHERE a = ?", ("q", 5, 6, 1)),
        ("DELETE FROM t USING u WHERE t.a = u.a AND u.x = ? RETURNING ?, t.a", (7, "r")),
        ("INSERT INTO t VALUES (?, DEFAULT, ?), (?, ?, DEFAULT) RETURNING ?, a, s", (10, "ten", 11, 12, "r")),
        ("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (a) DO UPDATE SET b = t.b + ? WHERE t.s = ?", (1, 2, "x", 5, "d")),
        ("WITH w AS (SELECT ? AS x) SELECT a, ? FROM t, w WHERE a = x + ? LIMIT ?", (0, "z", 1, 9)),
    ],
)
def test_parameters_stand_where_their_marks_do_in_every_part_of_a_statement(
    sparkless: Connection, sql: str, parameters: tuple[object, ...]
) -> None:
    found = []
    pieces = sql.split("?")
    literals = [*(f"'{one}'" if isinstance(one, str) else str(one) for one in parameters), ""]
    spelled = "".join(piece + literal for piece, literal in zip(pieces, literals, strict=True))
    for text, values in ((sql, parameters), (spelled, ())):
        for created in (
            "TABLE t (a integer, b numeric(10, 2), s text DEFAULT 'd', UNIQUE (a))",
            "TABLE u (a integer, x integer)",
        ):
            sparkless.execute(f"CREATE {created}")
        sparkless.execute("INSERT INTO t (a, b) VALUES (1, 1.5), (2, 2)")
        sparkless.execute("INSERT INTO u VALUES (1, 7), (1, 7), (2, 8)")
        cursor = sparkless.execute(text, values)
        returned = sorted(cursor.fetchall(), key=repr) if cursor.description else None
        found.append((cursor.tag, returned, rows(sparkless, "SELECT * FROM t")))
        for name in "tu":
            sparkless.execute(f"DROP TABLE {name}")
    assert found[0] == found[1]
