"""SET TIME ZONE: what a session reads and writes goes by its zone as in PostgreSQL; what is defined goes by none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import DatabaseError, NotSupportedError
from tests.opened import opened
from tests.postgres_server import Postgres

TABLE = "CREATE TABLE t (i integer, z timestamptz, s timestamp, d date, c text, p interval)"
#: Around changes of clocks in Europe, America and Australia, when a zone had seconds, and without end.
ROWS = (
    "(1, '2020-03-29 00:30+00', '2020-03-29 02:30', '2020-03-29', '2020-07-01 12:00', '1 day')",
    "(2, '2020-10-25 00:30+00', '2020-10-25 02:30', '2020-10-25', '2020-01-01 12:00-05', '1 month 1 hour')",
    "(3, '2020-03-08 06:59:59.5+00', '2020-03-08 02:00', '2020-11-01', 'Jul 4, 2020 3:30 PM', '-25 hours')",
    "(4, '1850-01-01 00:00+00', '1850-01-01', '1850-01-01', '1850-01-01', '200 years')",
    "(5, '2020-04-04 15:10:00+00', '2020-04-05 01:45', '2020-10-04', '2020-10-04 02:15', '-1 month -1 day')",
    "(6, NULL, NULL, NULL, NULL, NULL)",
)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")
QUERIES = (
    "SELECT i, z::text, z::timestamp::text, z::date::text, z::time::text FROM t",
    "SELECT i, c::timestamptz::text, s::timestamptz::text, d::timestamptz::text FROM t",
    "SELECT i, extract(hour FROM z), extract(epoch FROM z), extract(isodow FROM z), date_part('minute', z) FROM t",
    "SELECT i, date_trunc('day', z)::text, date_trunc('hour', z)::text, date_trunc('month', z)::text,"
    " date_trunc('minute', z)::text, date_trunc('week', z)::text FROM t",
    "SELECT i, to_char(z, 'YYYY-MM-DD HH24:MI:SS') FROM t",
    "SELECT i, (z + p)::text, (z - p)::text, (p + z)::text, (z + interval '36 hours')::text FROM t",
    "SELECT i, (z - timestamptz '2020-01-01')::text, age(z, timestamptz '2020-02-29')::text FROM t",
    "SELECT timestamptz '2020-07-01 12:00'::text, timestamptz '2020-07-01 12:00 UTC'::text,"
    " '2020-07-01 12:00 Asia/Tokyo'::timestamptz::text, '2020-07-01'::timestamptz(0)::text",
    "SELECT i FROM t WHERE z > '2020-03-29 01:00'",
    "SELECT i FROM t WHERE z = s OR z >= d",
    "SELECT x.i, y.i FROM t x JOIN t y ON x.z < y.s",
    "SELECT make_timestamptz(2020, 7, 1, 12, 0, 0)::text, to_timestamp(0)::text,"
    " to_timestamp('2020-07-01 12', 'YYYY-MM-DD HH24')::text",
    "SELECT z::date::text, count(*), min(z)::text, string_agg(z::text, ',' ORDER BY i) FROM t GROUP BY z::date",
    "SELECT concat('at ', z), 'at ' || z, coalesce(z, timestamptz '2020-01-01')::text, greatest(z, s)::text FROM t",
    "SELECT i, z, z AT TIME ZONE 'UTC', s AT TIME ZONE 'America/New_York' FROM t",
    "SELECT array_agg(z ORDER BY i) FROM t",
    "SELECT '{2020-01-01, 2020-07-01 00:00+00}'::timestamptz[]",
    "SELECT current_date = now()::date, localtimestamp = now()::timestamp, current_timestamp = now()",
)


@pytest.fixture
def referee(postgres: Postgres) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with postgres.new_database().connect() as connection:
        yield connection


@pytest.mark.deep
def test_a_session_in_a_zone_says_what_postgres_says(
    sparkless: Connection, referee: psycopg.Connection[tuple[Any, ...]]
) -> None:
    for statement in (TABLE, f"INSERT INTO t VALUES {', '.join(ROWS)}"):
        sparkless.execute(statement)
        referee.execute(statement.encode())
    for zone in ZONES:
        sparkless.execute(f"SET TIME ZONE '{zone}'")
        referee.execute(f"SET TIME ZONE '{zone}'".encode())
        assert sparkless.execute("SHOW TIME ZONE").fetchall() == [(zone,)]
        for query in QUERIES:
            found, expected = (shown(one.execute(query).fetchall()) for one in (sparkless, referee))
            assert found == expected, f"{zone}: {query}"


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(str([one.isoformat() if isinstance(one, datetime) else str(one) for one in row]) for row in rows)


def test_what_a_session_writes_goes_by_its_zone(
    sparkless: Connection, referee: psycopg.Connection[tuple[Any, ...]], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("9,2020-07-01 12:00\n10,2020-07-01 12:00Z\n")
    for execute in (sparkless.execute, lambda text: referee.execute(text.encode())):
        for statement in (
            TABLE,
            "SET timezone = 'Europe/Berlin'",
            "INSERT INTO t (i, z, s) VALUES (1, '2020-07-01 12:00', timestamptz '2020-07-01 12:00')",
            "INSERT INTO t (i, z, d) SELECT 2, c::timestamptz, z FROM (VALUES ('2020-01-01', timestamptz '2020-01-01'))"
            " AS v (c, z)",
            "UPDATE t SET z = '2020-08-01 00:00', s = z WHERE z = '2020-07-01 12:00'",
            "INSERT INTO t (i, z) VALUES (3, '2020-09-01')",
            "DELETE FROM t WHERE z = '2020-09-01 00:00'",
        ):
            execute(statement)
    query = "SELECT i, z::text, s::text, d::text FROM t ORDER BY i"
    assert sparkless.execute(query).fetchall() == referee.execute(query.encode()).fetchall()
    sparkless.execute(f"COPY t (i, z) FROM '{tmp_path / 't.csv'}' (FORMAT CSV)")
    returned = sparkless.execute("UPDATE t SET i = -i WHERE i > 8 RETURNING i, z").fetchall()
    berlin = ZoneInfo("Europe/Berlin")
    assert sorted(returned) == [
        (-10, datetime(2020, 7, 1, 14, tzinfo=berlin)),
        (-9, datetime(2020, 7, 1, 12, tzinfo=berlin)),
    ]
    assert {one.tzinfo for _, one in returned} == {berlin}
    sparkless.execute("RESET timezone")
    ((found,),) = sparkless.execute("SELECT z::text FROM t WHERE i = -9").fetchall()
    assert found == "2020-07-01 10:00:00+00"


def test_a_definition_is_the_same_in_all_sessions(sparkless: Connection) -> None:
    sparkless.execute(TABLE)
    sparkless.execute("INSERT INTO t (i, z) VALUES (1, '2020-07-01 23:00 UTC')")
    sparkless.execute("CREATE VIEW by_day AS SELECT z::date AS d, z::text AS t FROM t")
    sparkless.execute("SET TIME ZONE 'Europe/Berlin'")
    assert sparkless.execute("SELECT d::text, t FROM by_day").fetchall() == [("2020-07-01", "2020-07-01 23:00:00+00")]
    for statement in (
        "CREATE VIEW v AS SELECT z::date AS d FROM t",
        "CREATE MATERIALIZED VIEW v AS SELECT i FROM t WHERE z > '2020-01-01'",
        "CREATE MATERIALIZED VIEW v AS SELECT date_trunc('day', z) AS d, count(*) AS n FROM t GROUP BY 1",
        "CREATE TABLE u (a timestamptz DEFAULT '2020-01-01')",
        "CREATE TABLE u (a timestamptz CHECK (extract(hour FROM a) < 12))",
    ):
        with pytest.raises(NotSupportedError, match="depends on the session's time zone") as caught:
            sparkless.execute(statement)
        assert "AT TIME ZONE" in str(caught.value.hint)
        assert caught.value.position is not None
    sparkless.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT (z AT TIME ZONE 'Europe/Berlin')::date AS d FROM t"
        " WHERE z > '2020-01-01Z'"
    )
    assert sparkless.execute("SELECT d::text FROM v").fetchall() == [("2020-07-02",)]
    sparkless.execute("SET TIME ZONE DEFAULT")
    sparkless.execute("CREATE TABLE u (a timestamptz DEFAULT '2020-01-01', b integer)")
    sparkless.execute("SET TIME ZONE 'Europe/Berlin'")
    sparkless.execute("INSERT INTO u (b) VALUES (1)")
    with pytest.raises(NotSupportedError, match="another time zone"):
        sparkless.execute("INSERT INTO u VALUES (DEFAULT, 2)")
    assert sparkless.execute("SELECT a::text FROM u").fetchall() == [("2020-01-01 01:00:00+01",)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT extract(timezone FROM z) FROM t",
        "SELECT to_char(z, 'HH24 TZ') FROM t",
        "SELECT to_jsonb(z) FROM t",
        "SELECT array_agg(z)::text FROM t",
        "SELECT ROW(z, 1)::text FROM t",
        "SELECT g FROM generate_series(timestamptz '2020-03-28', timestamptz '2020-03-31', interval '1 day') AS g",
        "SELECT jsonb_path_exists_tz(to_jsonb(z::text), '$.datetime() < \"2020-01-01\".datetime()') FROM t",
        "SELECT * FROM jsonb_path_query_tz('\"10:30:00\"', '$.datetime()')",
        "SELECT count(*) OVER (ORDER BY z RANGE BETWEEN interval '1 day' PRECEDING AND CURRENT ROW) FROM t",
    ],
)
def test_what_has_no_form_in_another_zone_is_refused_there_alone(sparkless: Connection, query: str) -> None:
    sparkless.execute(TABLE)
    sparkless.execute("SET TIME ZONE 'Asia/Kolkata'")
    with pytest.raises(NotSupportedError, match="in a session in another zone") as caught:
        sparkless.execute(query)
    assert "SET TIME ZONE 'UTC'" in str(caught.value.hint)


def test_no_other_session_and_no_other_statement_sees_the_zone(sparkless: Connection, tmp_path: Path) -> None:
    sparkless.execute("SET SESSION TIME ZONE 'asia/kolkata'")
    assert sparkless.execute("SELECT current_setting('timezone')").fetchall() == [("Asia/Kolkata",)]
    with pytest.raises(DatabaseError):
        sparkless.execute("SELECT timestamptz 'no time'")
    with opened(tmp_path) as other:
        assert other.execute("SELECT timestamptz '2020-01-01'::text").fetchall() == [("2020-01-01 00:00:00+00",)]
    assert sparkless.execute("SELECT timestamptz '2020-01-01'::text").fetchall() == [("2020-01-01 00:00:00+05:30",)]
    for zone in ("Nowhere/Land", "EST5EDT", "CET"):
        with pytest.raises(DatabaseError, match="invalid value for parameter"):
            sparkless.execute(f"SET TIME ZONE '{zone}'")


def test_spark_computes_by_the_zone_too(connection: Connection) -> None:
    connection.execute(TABLE)
    connection.execute(f"INSERT INTO t VALUES {', '.join(ROWS)}")
    connection.execute("SET TIME ZONE 'Europe/Berlin'")
    query = (
        "SELECT i, z::text, (z + p)::text, date_trunc('hour', z)::text, c::timestamptz::text, z::date FROM t ORDER BY i"
    )
    here = connection.execute(query).fetchall()
    connection.execute("SET engine = spark")
    assert connection.execute(query).fetchall() == here
