"""Queries over intervals, times and moments say what PostgreSQL 15 says; equal intervals count as equal everywhere."""

from __future__ import annotations

import pytest

from mz_dagster.plan import optimize
from mz_dagster.plan.transform import comparable_columns
from tests.postgres_server import Postgres
from tests.sql.against_postgres import differences, script, tables

#: Equal intervals of several representations, NULLs and duplicates.
_Q = (
    "(VALUES (1, '1 mon'::interval), (2, '30 days'), (3, '29 days 24:00'), (4, '45 days'), (5, NULL), (6, '-1 day'),"
    " (7, '1 year'), (8, '-24:00'), (9, '2 years'), (10, NULL), (11, '45 days')) AS q (i, v)"
)
#: Every moment three times, with an hour between.
_M = (
    "(SELECT id, e, e::timestamp + interval '1 hour' * a AS ts, e::timestamptz + interval '1 day' * b AS tz,"
    " time '10:00' + interval '7 hours' * a AS tm FROM t) AS m"
)

QUERIES = [
    # TPC-H's forms.
    "SELECT id FROM t WHERE e <= date '2020-01-31' - interval '29' day",
    "SELECT id FROM t WHERE e >= date '2019-01-02' + interval '1' year AND e < date '2020-01-02' + interval '3' month",
    "SELECT id, e < timestamp '2020-01-02 12:00', timestamp '2020-01-02 1:00' <= e, e >= timestamp '2020-01-02' FROM t",
    "SELECT id, e = timestamp '2020-01-02 12:00', e <> timestamptz '2020-01-02', e <= timestamptz '2020-01-02' FROM t",
    "SELECT id FROM t WHERE timestamptz '2020-01-02 00:00:01' > e OR e > timestamp '2020-01-03 23:59:59'",
    "SELECT e + interval '1' month, e - interval '1' year, interval '2' day + e FROM t",
    "SELECT extract(year FROM e + interval '400 days'), date_part('epoch', e), extract(epoch FROM ts) FROM " + _M,
    # Sums and differences.
    "SELECT ts - e, tz - e, ts - tz, ts - interval '1 mon 1 day 01:00', tm - time '12:00', e + tm FROM " + _M,
    "SELECT age(ts, e), justify_interval(ts - e), date_trunc('hour', ts - e), (ts - e) / 3, 1.5 * (ts - e) FROM " + _M,
    "SELECT tm, tm + interval '20 hours', tm::interval, (ts - e)::time, ts::time, tz::time FROM " + _M,
    "SELECT ts + '1 day', '2 days' + ts, tm - '01:00', ts < e + interval '1 hour', v IS NULL FROM " + _M + ", " + _Q,
    "SELECT make_interval(1, 2, 3, a, b), make_date(2020, 2, 1 + abs(a)), make_time(1, abs(a), 1.5) FROM t",
    "SELECT make_interval(days => a, hours => 1), make_interval(secs := 1.5), make_interval(), make_interval(1) FROM t",
    "SELECT (e, ts) OVERLAPS (tz, interval '1 day'), (ts, ts) OVERLAPS (ts, NULL::timestamp) FROM " + _M,
    "SELECT (e, NULL::timestamp) OVERLAPS (ts, ts), (ts, tz) OVERLAPS (e, e) FROM " + _M,
    "SELECT (tm, time '12:00') OVERLAPS (time '11:00', interval '2 hours') FROM " + _M,
    "SELECT date_bin('90 min', ts, timestamp '2020-01-01') FROM " + _M,
    "SELECT ts AT TIME ZONE 'europe/berlin', tz AT TIME ZONE 'America/New_York', e AT TIME ZONE 'UTC' FROM " + _M,
    "SELECT timezone('Asia/Kathmandu', tz), ts AT TIME ZONE interval '-02:30', timezone('utc', e) FROM " + _M,
    "SELECT ts AT TIME ZONE 'Europe/Nowhere' FROM " + _M,
    "SELECT ts AT TIME ZONE interval '1 day' FROM " + _M,
    # Equal intervals.
    "SELECT count(*) FROM " + _Q + " GROUP BY v",
    "SELECT justify_interval(v), count(*), min(i) FROM " + _Q + " GROUP BY v",
    "SELECT count(DISTINCT v), count(v) FROM " + _Q,
    "SELECT min(v), max(v), sum(v), avg(v) FROM " + _Q + " WHERE i NOT IN (1, 2, 3, 8)",
    "SELECT i > 4, justify_interval(min(v)), max(v), sum(v), avg(v) FROM " + _Q + " WHERE i > 3 GROUP BY i > 4",
    "SELECT sum(tm), avg(tm), min(tm), max(tm) FROM " + _M,
    "SELECT sum(v) FILTER (WHERE i < 3), min(v) FILTER (WHERE i = 4), avg(v) FILTER (WHERE i > 90) FROM " + _Q,
    "SELECT justify_interval(v) FROM (SELECT DISTINCT v FROM " + _Q + ") AS d",
    "SELECT DISTINCT ON (v) justify_interval(v), i FROM " + _Q + " ORDER BY v, i DESC",
    "SELECT i FROM " + _Q + " ORDER BY v DESC NULLS LAST, i",
    "SELECT i FROM (SELECT i FROM " + _Q + " ORDER BY v, i LIMIT 4) AS d",
    "SELECT i, rank() OVER (ORDER BY v), count(*) OVER (PARTITION BY v) FROM " + _Q,
    "SELECT i, justify_interval(min(v) OVER (ORDER BY i)), sum(v) OVER (ORDER BY i), lag(v) OVER (ORDER BY i) FROM "
    + _Q,
    "SELECT array_agg(i ORDER BY v, i) FROM " + _Q,
    "SELECT p.i, q.i FROM " + _Q + " JOIN " + _Q.replace(" q ", " p ") + " ON p.v = q.v",
    *(
        "SELECT p.v::text, q.v::text FROM (SELECT v FROM "
        + _Q
        + f") AS p {kind} JOIN (SELECT v FROM "
        + _Q
        + ") AS q ON p.v = q.v AND p.v::text < q.v::text"
        for kind in ("LEFT", "RIGHT", "FULL")
    ),
    "SELECT i FROM " + _Q + " WHERE v IN (SELECT w.v FROM " + _Q.replace(" q ", " w ") + " WHERE w.i = 2)",
    "SELECT i FROM " + _Q + " WHERE v = ANY (VALUES ('720:00'::interval)) OR v > ALL (SELECT interval '1 year')",
    "SELECT v, i > 6 FROM " + _Q + " WHERE i > 3 EXCEPT SELECT interval '360 days', true",
    "SELECT v FROM " + _Q + " WHERE i > 3 INTERSECT ALL (SELECT '24 mons' UNION ALL SELECT v FROM " + _Q + ")",
    "SELECT justify_interval(v) FROM (SELECT v FROM " + _Q + " EXCEPT SELECT interval '30 days') AS d",
    "SELECT justify_interval(v) FROM (SELECT v FROM " + _Q + " INTERSECT ALL SELECT interval '45 days') AS d",
    "SELECT i, v IS DISTINCT FROM interval '30 days', nullif(v, '30 days') IS NULL FROM " + _Q,
    "SELECT i, greatest(v, '40 days'), least(v, '30 days'), v BETWEEN '0' AND '35 days' FROM " + _Q,
    "SELECT CASE v WHEN '30 days' THEN 1 ELSE 2 END, coalesce(v, '0') FROM " + _Q,
    # Correlated: equal arguments are not the same.
    "SELECT i, (SELECT max(q.v::text || a::text) FROM t) FROM " + _Q,
    "SELECT i, (SELECT count(*) FROM t WHERE e + q.v > '2020-02-02') FROM " + _Q,
    "SELECT i FROM " + _Q + " WHERE EXISTS (SELECT 1 FROM v WHERE v.a = 1 AND q.v::text = '30 days')",
    "SELECT i, x FROM " + _Q + ", LATERAL (SELECT q.v::text AS x FROM z RIGHT JOIN (SELECT 1) AS o ON true) AS l",
    # Text.
    "SELECT to_char(ts, 'YYYY-MM-DD HH24:MI, FMDay'), to_char(v, 'HH24 \"h\"'), to_char(e, 'IW') FROM " + _Q + "," + _M,
    "SELECT v::text, 'in ' || v, concat(v, tm), v::text::interval = v FROM " + _Q + ", " + _M,
    "SELECT (c || ' days')::interval FROM t WHERE c = 'x'",
    # Literals.
    "SELECT interval '1' year, interval '1-2' year to month, interval '3 4:05:06.789' day to second(1)",
    "SELECT interval '90' minute, interval '90' day, interval '1.55' second(1), interval '2 3' day to hour",
    "SELECT '1 day'::interval, CAST('P1Y2M3DT4H' AS interval), interval '@ 1 hour ago', time '10:00 pm', '1:2'::time",
    "SELECT interval 'one day'",
    "SELECT time '25:00'",
    "SELECT interval '2147483648 days'",
    "SELECT date '2020-01-01' + '1'",
    "SELECT interval '1 day' + 1",
    "SELECT extract(dow FROM interval '1 day')",
    "SELECT date_trunc('week', interval '1 day')",
    "SELECT date_trunc('month'::varchar, timestamp '2024-05-06'), date_part('year'::text, date '2024-05-06')",
    "SELECT date_trunc(NULL, timestamp '2024-05-06'), date_part(NULL::text, date '2024-05-06')",
    "SELECT timezone('UTC'::varchar, timestamp '2024-05-06'), timezone(NULL::text, timestamptz '2024-05-06')",
    "SELECT date_trunc('day'::varchar, timestamptz '2024-05-06 23:00+00', 'Europe/Berlin'::varchar)",
    "SELECT date_trunc(NULL, timestamptz '2024-05-06 23:00+00', 'Europe/Berlin')",
    "SELECT date_trunc('nope'::varchar, timestamp '2024-05-06')",
    "SELECT + interval '1 day' * time '10:00'",
]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_times_and_intervals_are_those_of_postgres(postgres: Postgres, seed: int) -> None:
    data = tables(seed)
    postgres.run("DROP TABLE IF EXISTS t, v, z;" + script(data))
    for transformed in (comparable_columns, optimize):
        found = differences(postgres, data, QUERIES, transformed)
        assert not found, "\n".join(found)
