"""Views of columns and casts of types with parentheses: seconds of few digits, fields of intervals, few digits."""

from tests.adapter.stories import Story

MODIFIERS = Story(
    table="CREATE TABLE modified (id integer NOT NULL, ts timestamp, t3 timestamp(3), z0 timestamptz(0), c2 time(2),"
    " i interval, d interval day to second(1), m interval year to month, n numeric(30, 10), n5 numeric(5, 2),"
    " ns numeric(5, 1)[], nss numeric(5, 1)[][], tss timestamp(0)[], vs varchar(3)[])",
    views={
        "modified_casts": "SELECT id, ts::timestamp(0) AS a, ts::timestamp(4) AS b, ts::timestamptz(1) AS c,"
        " ts::time(1) AS d, i::interval(0) AS e, i::interval year AS f, i::interval month AS g, i::interval day AS h,"
        " i::interval hour AS j, i::interval minute AS k, i::interval second(3) AS l, n::numeric(20, 3) AS m,"
        " n::numeric(16)::text AS o, n5::numeric(8, 1) AS p FROM modified",
        "modified_in_ten": "SELECT id, (n / 10)::numeric(4, 2) AS n FROM modified WHERE n BETWEEN -990 AND 990",
        "modified_groups": "SELECT t3::timestamp(0) AS s, count(*) AS k, max(c2) AS c, sum(n5) * 1000 AS n,"
        " min(t3) AS f FROM modified GROUP BY 1",
        "modified_arrays": "SELECT id, ARRAY[n5, n]::numeric(30, 1)[] AS a, ARRAY[ts, t3]::timestamp(0)[] AS b,"
        " ARRAY[[i], [d]]::interval day to minute[] AS c, array_append(ns, 1234.5)::numeric(5, 1)[] AS e,"
        " ns::numeric(4, 0)[] AS f, nss::text AS j,"
        " ARRAY[c2]::time(1)[] AS k, vs::varchar(2)[] AS l, ts::text::timestamp(0) = ANY (tss) AS m, tss AS n"
        " FROM modified",
        "modified_joined": "SELECT x.id AS x, y.id AS y FROM modified x JOIN modified y ON x.t3 = y.ts::timestamp(3)",
        "modified_either": "SELECT t3 FROM modified UNION ALL SELECT ts FROM modified",
        "modified_or": "SELECT id, coalesce(t3, ts) AS t, CASE WHEN id > 2 THEN n5 ELSE 123456.5 END AS n,"
        " t3 + i AS p FROM modified",
    },
    writes=(
        "INSERT INTO modified SELECT id, ts, ts, ts AT TIME ZONE 'UTC', ts::time, i, i, i, n, n5 FROM (VALUES"
        " (1, timestamp '2020-01-01 00:00:00.123500', interval '1 year 2 mons 3 days 04:05:06.75', 1.005, 1.005),"
        " (2, timestamp '1999-12-31 23:59:59.499999', interval '-1 year -2 mons -3 days -04:05:06.75', -12.5,"
        " -999.994),"
        " (3, timestamp '1960-02-29 12:30:30.5005', interval '90 days 25:00:00.05', 0, NULL),"
        " (4, NULL, NULL, NULL, 0)) AS v (id, ts, i, n, n5)",
        "INSERT INTO modified VALUES (5, '2020-01-01 00:00:00.1235', '2020-01-01 00:00:00.1235',"
        " '2020-01-01 00:00:00.5', '10:00:00.125', '1 mon', '1 day 00:00:00.15', '14 months 2 days', 7e10, 999.99),"
        " (6, 'infinity', 'infinity', '-infinity', '00:00', '0', '0', '0', 4e15, 0.005)",
        "UPDATE modified SET t3 = t3 + interval '00:00:00.0006', c2 = '10:00:00.985', d = d * 1.05, n5 = n5 / 3"
        " WHERE id < 4",
        "UPDATE modified SET ns = ARRAY[n5, NULL, 0.05], nss = ARRAY[[n5, 1], [2, 3.25]], tss = ARRAY[t3, ts],"
        " vs = ARRAY['abc', 'ab   ']",
        "INSERT INTO modified (id, ns, nss, tss, vs) VALUES (7, '{}', '{{1.25}}', '{2020-01-01 00:00:00.5}',"
        " '{ab,NULL}'), (8, '{-99.96,NULL}', NULL, '{infinity}', '{}')",
        "UPDATE modified SET z0 = z0 + interval '0.5 seconds', m = interval '1 year 5 days' WHERE id = 5",
        "DELETE FROM modified WHERE id = 6",
    ),
    asked=("SELECT id, t3, z0, c2, d, m, n5 FROM modified ORDER BY id",),
)
