"""Values of the clock, the session and of chance: what a statement knows, and no definition does."""

from __future__ import annotations

import getpass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import mz_dagster
from mz_dagster.adapter import Connection
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.dbapi import NotSupportedError, ProgrammingError

FUNCTIONS = (
    "now()", "current_timestamp", "current_date", "localtimestamp", "localtime", "transaction_timestamp()",
    "current_user", "session_user", "user", "current_schema", "current_schema()", "current_catalog",
    "current_database()", "version()", "current_setting('timezone')", "random()", "gen_random_uuid()",
)  # fmt: skip


def test_a_statement_tells_who_and_where_and_when_it_is(sparkless: Connection, tmp_path: Path) -> None:
    before = datetime.fromtimestamp(SYSTEM_CLOCK.now_ms() / 1000, UTC) - timedelta(milliseconds=1)
    row = sparkless.execute(
        "SELECT current_user, session_user, user, current_role, current_schema, current_schema(), current_database(), "
        "current_catalog, version(), now(), current_timestamp, localtimestamp, current_date, localtime"
    ).fetchone()
    assert row is not None
    assert row[:4] == (getpass.getuser(),) * 4
    assert row[4:8] == ("public", "public", tmp_path.name, tmp_path.name)
    assert row[8] == f"PostgreSQL 15.0 (mz_dagster {mz_dagster.__version__})"
    assert before <= row[9] == row[10] == row[11].replace(tzinfo=UTC)
    assert (row[12], row[13]) == (row[9].date(), row[11].time())


def test_the_columns_of_such_values_are_named_as_in_postgres(sparkless: Connection) -> None:
    described = sparkless.execute(
        "SELECT now(), current_date, user, current_schema, random(), pg_typeof(1)"
    ).description
    assert described is not None
    assert [one[0] for one in described] == ["now", "current_date", "user", "current_schema", "random", "pg_typeof"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_definition_is_told_what_to_say_instead(sparkless: Connection, function: str) -> None:
    with pytest.raises(NotSupportedError, match="in a definition") as caught:
        sparkless.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {function} AS a")
    assert caught.value.position == 38
    assert caught.value.hint


def test_chance_is_another_value_in_each_row(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t SELECT generate_series(1, 50)")
    every = sparkless.execute("SELECT random() AS r, gen_random_uuid() AS u, random() AS s FROM t").fetchall()
    assert all(0 <= r < 1 and u.version == 4 and r != s for r, u, s in every)
    assert len({one[0] for one in every}) == len({one[1] for one in every}) == 50
    samples = {tuple(sparkless.execute("SELECT a FROM t ORDER BY random() LIMIT 20").fetchall()) for _ in range(3)}
    assert len(samples) == 3
    for refused in ("SELECT a FROM t WHERE random() < 0.1", "UPDATE t SET a = floor(random() * 6)"):
        with pytest.raises(NotSupportedError, match="over rows") as caught:
            sparkless.execute(refused)
        assert caught.value.hint
    sparkless.execute("CREATE TABLE s AS SELECT a, gen_random_uuid() AS id FROM t")
    assert sparkless.execute("SELECT count(DISTINCT id) FROM s").fetchall() == [(50,)]


def test_spark_and_this_process_agree_on_chance(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t VALUES (1), (2), (3)")
    connection.execute("SET engine = spark")
    found = connection.execute("SELECT random() AS r, gen_random_uuid() AS u FROM t").fetchall()
    assert len(set(found)) == 3
    assert all(0 <= r < 1 and u.version == 4 for r, u in found)


def test_a_default_of_chance_is_another_value_in_each_row_however_it_is_written(sparkless: Connection) -> None:
    sparkless.execute(
        "CREATE TABLE t (a integer, id uuid NOT NULL DEFAULT gen_random_uuid(), "
        "name text DEFAULT 'n' || left(gen_random_uuid()::text, 8), at timestamp DEFAULT now(), who text DEFAULT user)"
    )
    sparkless.execute("INSERT INTO t (a) VALUES (1), (2)")
    sparkless.execute("INSERT INTO t (a, id) VALUES (3, DEFAULT), (4, DEFAULT)")
    sparkless.execute("INSERT INTO t (a) SELECT generate_series(5, 6)")
    sparkless.cursor().executemany("INSERT INTO t (a) VALUES (?)", [(7,), (8,)])
    assert sparkless.execute("SELECT count(*), count(DISTINCT id), count(DISTINCT name) FROM t").fetchall() == [
        (8,) * 3
    ]
    before = set(sparkless.execute("SELECT id FROM t").fetchall())
    sparkless.execute("UPDATE t SET id = DEFAULT WHERE a < 5")
    after = set(sparkless.execute("SELECT id FROM t").fetchall())
    assert (len(after), len(after & before)) == (8, 4)
    sparkless.execute("ALTER TABLE t ADD COLUMN more double precision DEFAULT random()")
    assert len(set(sparkless.execute("SELECT more FROM t").fetchall())) == 8
    today = sparkless.execute("SELECT count(*) FROM t WHERE at <= now() AND who = user").fetchall()
    assert today == [(8,)]


def test_clock_values_are_parameters_of_writes(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a date, b timestamptz)")
    sparkless.execute("INSERT INTO t VALUES (current_date, now()), ('2020-01-01', '2020-01-01')")
    sparkless.execute("UPDATE t SET b = now() - interval '1 day' WHERE a < current_date")
    assert sparkless.execute("SELECT count(*) FROM t WHERE b > now() - interval '2 days'").fetchall() == [(2,)]
    sparkless.execute("DELETE FROM t WHERE b < now() - interval '1 hour'")
    ((found,),) = sparkless.execute("SELECT a FROM t").fetchall()
    assert isinstance(found, date)


def test_pg_typeof_names_types_as_postgres_does_even_in_a_view(sparkless: Connection) -> None:
    row = sparkless.execute("SELECT pg_typeof('a'), pg_typeof(1.5), pg_typeof(now()), pg_typeof(ARRAY[1])").fetchone()
    assert row == ("unknown", "numeric", "timestamp with time zone", "integer[]")
    sparkless.execute("CREATE TABLE t (a varchar(3))")
    sparkless.execute("INSERT INTO t VALUES ('x')")
    sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT pg_typeof(a) AS t FROM t")
    assert sparkless.execute("SELECT t FROM v").fetchall() == [("character varying",)]


def test_settings_are_shown_and_set_to_what_they_are(sparkless: Connection) -> None:
    assert sparkless.execute("SHOW timezone").fetchall() == [("UTC",)]
    assert sparkless.execute("SHOW TIME ZONE").fetchall() == [("UTC",)]
    assert sparkless.execute("SHOW TRANSACTION ISOLATION LEVEL").fetchall() == [("strict serializable",)]
    every = sparkless.execute("SELECT name, setting FROM pg_settings").fetchall()
    assert {("search_path", "public"), ("DateStyle", "ISO, MDY"), ("engine", "auto"), ("max_index_keys", "32")} <= set(
        every
    )
    for statement in ("SET client_encoding = 'utf-8'", "SET SESSION datestyle TO ISO, MDY", "RESET timezone",
                      "SET TIME ZONE LOCAL", "SET TIME ZONE DEFAULT", "SET search_path TO DEFAULT"):  # fmt: skip
        sparkless.execute(statement)
    for statement in ("SHOW nothing", "SET nothing = 1", "RESET nothing", "SELECT current_setting('nothing')"):
        with pytest.raises(ProgrammingError, match="unrecognized configuration parameter") as unknown:
            sparkless.execute(statement)
        assert "SHOW ALL" in str(unknown.value.hint)
    with pytest.raises(NotSupportedError, match="is always"):
        sparkless.execute("SET client_encoding = latin1")
    with pytest.raises(NotSupportedError):
        sparkless.execute("SET ROLE somebody")
    assert sparkless.execute("SELECT current_setting('nothing', true)").fetchall() == [(None,)]


def test_a_parameter_may_be_cast_where_it_stands(sparkless: Connection) -> None:
    found = sparkless.execute("SELECT ?::integer[], 1 = ANY(?::int[]), ?::date", ("{1}", "{1,2}", "2020-01-02"))
    assert found.fetchall() == [([1], True, date(2020, 1, 2))]
    with pytest.raises(ProgrammingError, match='type "nope" does not exist') as unknown:
        sparkless.execute("SELECT ?::nope", (1,))
    assert unknown.value.position == 11
