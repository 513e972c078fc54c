"""Views of intervals and times: equal intervals, an order, sums and differences; validity without an end."""

from tests.adapter.stories import Story

TIMES = Story(
    table="CREATE TABLE calls (id integer NOT NULL, began timestamp, ended timestamp, plan interval, alarm time)",
    views={
        "spent": "SELECT justify_interval(plan) AS plan, count(*) AS n, max(ended - began) AS hi,"
        " sum(ended - began) AS spent FROM calls GROUP BY plan",
    },
    writes=(
        "INSERT INTO calls VALUES (1, '2020-01-31 10:00', '2020-02-01 12:00:00.5', '1 mon', '10:00'),"
        " (2, '2020-01-01', '2020-03-15', '30 days', '23:59:59.999999'), (3, NULL, NULL, NULL, NULL),"
        " (4, '2019-12-31 23:00', '2020-12-31', '720:00', '00:00'), (5, '2020-05-01', '2020-04-01', '1 year', '12:00')",
        "UPDATE calls SET plan = plan + interval '1 day', alarm = alarm + interval '13 hours' WHERE id IN (1, 3, 4)",
    ),
    asked=(
        "SELECT a.id, b.id AS other, a.began + a.plan AS due, extract(epoch FROM a.ended - b.began) AS gap,"
        " b.alarm + (a.ended - a.began) AS alarm, b.plan::text AS plan"
        " FROM calls a JOIN calls b ON a.plan = b.plan AND a.ended > b.began + interval '1 mon 1 day' ORDER BY 1, 2",
        "SELECT id, plan, alarm FROM calls WHERE plan IS NOT NULL ORDER BY plan DESC, id",
    ),
)

#: A query of what is valid when: infinite bounds in keys, joins, aggregates, windows, arrays and texts.
VALIDITY = Story(
    table="CREATE TABLE prices (item integer, since date, until date, seen timestamp, told timestamptz)",
    views={
        "bounds": "SELECT item, min(since) AS lo, max(until) AS hi, max(seen) AS seen, min(told) AS told,"
        " count(DISTINCT until) AS n FROM prices GROUP BY item",
        "by_end": "SELECT until, count(*) AS n, array_agg(since ORDER BY since, item) AS since,"
        " string_agg(seen::text, ',' ORDER BY seen, item) AS seen FROM prices GROUP BY until",
        "meeting": "SELECT a.item, b.item AS other, greatest(a.since, b.since) AS lo, least(a.until, b.until) AS hi"
        " FROM prices a JOIN prices b ON a.since < b.until AND b.since < a.until AND a.item < b.item",
        "same": "SELECT a.item, b.item AS other FROM prices a JOIN prices b ON a.until = b.until AND a.seen = b.seen",
        "reckoned": "SELECT item, until + 1 AS later, since - interval '1 mon' AS earlier, isfinite(seen) AS finite,"
        " date_trunc('month', told) AS month, extract(day FROM until) AS day, seen::date AS day_seen,"
        " to_jsonb(until) AS until, until - CASE WHEN isfinite(since) THEN 1 ELSE 0 END AS before FROM prices",
        "ranked": "SELECT item, until, rank() OVER (PARTITION BY item ORDER BY until DESC) AS nth,"
        " lead(since) OVER (PARTITION BY item ORDER BY since, until) AS next,"
        " count(*) OVER (ORDER BY seen RANGE BETWEEN interval '1 day' PRECEDING AND interval '1 day' FOLLOWING) AS near"
        " FROM prices",
    },
    writes=(
        "INSERT INTO prices VALUES (1, '-infinity', '2020-01-01', '2020-01-01', '-infinity'),"
        " (1, '2020-01-01', 'infinity', 'infinity', '2020-01-01 00:00+00'),"
        " (2, '0001-02-01', '9999-12-30', '9999-12-31 23:59:59.999999', 'infinity'),"
        " (3, '-infinity', 'infinity', '-infinity', NULL), (4, NULL, NULL, NULL, NULL)",
        "UPDATE prices SET until = 'infinity', seen = 'infinity' WHERE item = 2",
        "DELETE FROM prices WHERE until = 'infinity' AND item = 1",
        "INSERT INTO prices SELECT item + 10, until, until, seen, told FROM prices WHERE until > '9000-01-01'",
    ),
    asked=(
        "SELECT * FROM prices WHERE until = 'infinity' OR since = '-infinity' ORDER BY until DESC, since, seen, item",
        "SELECT item FROM prices WHERE until >= timestamp '9999-12-31 12:00' ORDER BY item",
        "SELECT item, until::timestamp, seen::date, told::timestamp FROM prices ORDER BY told, seen NULLS FIRST, item",
        "SELECT count(*) FROM prices WHERE (since, until) = ('-infinity', 'infinity')",
    ),
)
