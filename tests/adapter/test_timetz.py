"""Times with a zone are PostgreSQL's: in tables, keys, views, json, sessions in other zones; without Spark."""

from __future__ import annotations

from datetime import time, timedelta, timezone
from pathlib import Path

import psycopg
import pytest

import mz_dagster
from mz_dagster.errors import Error
from tests.opened import Connect
from tests.postgres_server import Postgres

SCRIPT = (
    "CREATE TABLE t (a timetz PRIMARY KEY, b timetz(1) DEFAULT '10:00+02', c time with time zone[])",
    "INSERT INTO t (a) VALUES ('10:00+02'), ('08:00+00'), ('23:59:59.99-15:59')",
    "INSERT INTO t VALUES ('10:00 +02')",
    "INSERT INTO t VALUES ('09:00+01', '09:00:00.26+01', '{10:00+02,NULL,08:00+00}')",
    "INSERT INTO t (a) VALUES ('nix')",
    "UPDATE t SET b = b + interval '90 minutes' WHERE a = '08:00+00'",
    "CREATE VIEW v AS SELECT a, extract(hour FROM a) AS h, a::time AS clock, a > '08:30+00' AS later FROM t",
)
QUERIES = (
    "SELECT * FROM t ORDER BY a",
    "SELECT * FROM v ORDER BY a DESC",
    "SELECT min(a), max(a), count(DISTINCT a), count(DISTINCT a AT TIME ZONE 'UTC') FROM t",
    "SELECT a, count(*) FROM t GROUP BY a ORDER BY a",
    "SELECT x.a, y.b FROM t x JOIN t y ON x.a = y.b ORDER BY 1, 2",
    "SELECT a FROM t WHERE a = '10:00+02' OR a IN ('09:00+01', '23:00+00') ORDER BY 1",
    "SELECT a FROM t WHERE a = ANY (SELECT unnest(c) FROM t)",
    "SELECT array_agg(a ORDER BY a)::text, string_agg(a::text, ',' ORDER BY a) FROM t",
    "SELECT to_json(a)::text, jsonb_build_array(b)::text, row_to_json(t)::text FROM t ORDER BY a",
    "SELECT pg_typeof(a)::text, a::text, ROW(a)::text FROM t ORDER BY a",
    "SELECT date '2024-05-05' + a, a + interval '25 hours', a - interval '1 s' FROM t ORDER BY a",
    "SELECT rank() OVER (ORDER BY a), lag(a) OVER (ORDER BY a) FROM t ORDER BY 1",
    "SELECT a AT TIME ZONE interval '-03:30', timezone('UTC', a) FROM t ORDER BY a",
    "SELECT extract(timezone FROM timetz '10:00-03:30'), date_part('epoch', timetz '10:00-03:30')",
    "SELECT time '10:00'::timetz, timestamptz '2024-07-01 10:00+02'::timetz, timetz '10:00+02'::time",
    "SELECT '10:00:00.56+02'::timetz(1), time(0) with time zone '10:00:00.56+02'",
    "SELECT (timetz '10:00+02', timetz '12:00+02') OVERLAPS (timetz '09:30+01', timetz '23:00+00')",
    "SELECT timetz '10:00+02' - timetz '09:00+02'",
    "SELECT date_trunc('hour', timetz '10:30+02')",
    "SELECT sum(a) FROM t",
    "SELECT timetz '10:00+02' = time '08:00'",
    "SELECT a::date FROM t",
    "SELECT current_time IS NOT NULL, pg_typeof(current_time(2))::text",
    "SELECT timetz '10:00+02' AT TIME ZONE 'Europe/Nowhere'",
    "SELECT extract(timezone_hour FROM current_time), current_time AT TIME ZONE 'Asia/Kolkata' = current_time",
    "SET TIME ZONE 'Asia/Kolkata'",
    "SELECT timestamptz '2024-07-01 10:00+02'::timetz, timetz '10:00+02', a FROM t ORDER BY a",
    "RESET TIME ZONE",
)


def test_times_with_a_zone_are_those_of_postgres(postgres: Postgres, tmp_path: Path, connect: Connect) -> None:
    connection = connect(tmp_path)
    different = []
    with postgres.new_database().connect() as theirs:
        theirs.execute("SET TIME ZONE 'UTC'")

        def told(connection: psycopg.Connection[tuple[object, ...]] | mz_dagster.Connection, text: str) -> object:
            try:
                cursor = connection.execute(text)
                return cursor.fetchall() if cursor.description else None
            except (Error, psycopg.Error) as error:
                return error.sqlstate

        for statement in (*SCRIPT, *QUERIES):
            ours, wanted = told(connection, statement), told(theirs, statement)
            if repr(ours) != repr(wanted):
                different.append(f"{statement}: {ours}, in PostgreSQL {wanted}")
    assert not different, "\n".join(different)
    assert connection.execute("SELECT c FROM t WHERE c IS NOT NULL").fetch_arrow_table().to_pylist() == [
        {"c": ["10:00:00+02", None, "08:00:00+00"]}
    ]
    berlin = time(10, tzinfo=timezone(timedelta(hours=2)))
    assert connection.execute("SELECT a FROM t WHERE a = ?", (berlin,)).fetchall() == [(berlin,)]


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("CREATE VIEW v AS SELECT a AT TIME ZONE 'Europe/Berlin' AS a FROM t", "Write an offset"),
        ("CREATE VIEW v AS SELECT current_time AS a", "Keep the time in a column"),
        ("SET TIME ZONE 'Asia/Kolkata'; SELECT b::timetz FROM t", "write a literal with its offset"),
    ],
)
def test_what_depends_on_the_day_is_refused(tmp_path: Path, connect: Connect, statement: str, hint: str) -> None:
    connection = connect(tmp_path)
    connection.execute("CREATE TABLE t (a timetz, b time)")
    with pytest.raises(Error) as found:
        connection.execute(statement)
    assert found.value.sqlstate == "0A000"
    assert found.value.hint is not None
    assert hint in found.value.hint
