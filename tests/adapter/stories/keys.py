"""Views that group, join and order by values of every kind that nests or has several representations."""

from tests.adapter.stories import Story

_ALL = "f, i, j, a, d"
_SAME = " AND ".join(f"x.{one} IS NOT DISTINCT FROM y.{one}" for one in _ALL.split(", "))

KEYS = Story(
    table="CREATE TABLE keyed (k integer, n integer NOT NULL, f real, i interval, j jsonb, a integer[],"
    " d double precision[], b smallint)",
    views={
        "keyed_groups": f"SELECT {_ALL}, count(*) AS c, sum(n) AS s FROM keyed GROUP BY {_ALL}",
        "keyed_rows": f"SELECT DISTINCT {_ALL} FROM keyed",
        "keyed_counts": "SELECT k, count(DISTINCT f) AS f, count(DISTINCT i) AS i, count(DISTINCT j) AS j,"
        " count(DISTINCT a) AS a, count(DISTINCT d) FILTER (WHERE n > 2) AS d FROM keyed GROUP BY k",
        "keyed_extremes": "SELECT k, min(f) AS lo, max(f) AS hi, min(i) AS early, max(i) AS late FROM keyed GROUP BY k",
        "keyed_firsts": "SELECT DISTINCT ON (a, f) a, f, i, n FROM keyed ORDER BY a, f, i DESC, n",
        "keyed_lists": "SELECT k, array_agg(n ORDER BY d DESC, a, j, i, n) AS l,"
        " string_agg(a::text, '-' ORDER BY f, n) AS t FROM keyed GROUP BY k",
        "keyed_lists_of_keys": "SELECT d, j, array_agg(i ORDER BY n) AS l FROM keyed GROUP BY d, j",
        "keyed_bits": "SELECT i, bit_and(b) AS x, bit_or(n) AS y, bit_xor(n) AS z, bool_or(n > 3) AS w"
        " FROM keyed GROUP BY i",
        "keyed_bits_of_all": "SELECT bit_and(b) AS x, bit_or(b) AS y, bit_xor(b) AS z FROM keyed",
        "keyed_pairs": f"SELECT x.n, y.n AS m FROM keyed x JOIN keyed y ON {_SAME}",
        "keyed_partners": "SELECT x.n, y.n AS m FROM keyed x FULL JOIN (SELECT * FROM keyed WHERE n > 2) y"
        " ON x.a = y.a AND x.i = y.i",
        "keyed_among": "SELECT n, (f, d) IN (SELECT f, d FROM keyed WHERE n > 2) AS x,"
        " EXISTS (SELECT 1 FROM keyed y WHERE y.j = x.j AND y.n <> x.n) AS y FROM keyed x",
        "keyed_rest": f"SELECT {_ALL} FROM keyed EXCEPT ALL SELECT {_ALL} FROM keyed WHERE n > 2",
        "keyed_places": "SELECT n, row_number() OVER (PARTITION BY a ORDER BY d, i, n) AS r,"
        " dense_rank() OVER (PARTITION BY k ORDER BY f) AS e, lag(d) OVER (PARTITION BY j ORDER BY n) AS l FROM keyed",
        "keyed_frames": "SELECT n, min(f) OVER w AS lo, max(f) OVER w AS hi, sum(f) OVER w AS s, array_agg(i) OVER w"
        " AS l, string_agg(a::text, ',') OVER w AS t FROM keyed WINDOW w AS (PARTITION BY k ORDER BY n)",
        "keyed_ranges": "SELECT n, count(*) OVER"
        " (PARTITION BY k ORDER BY f RANGE BETWEEN 1 PRECEDING AND 0.5 FOLLOWING) AS c,"
        " sum(n) OVER (ORDER BY n RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s FROM keyed",
        "keyed_nearest": "SELECT x.a, y.n FROM (SELECT DISTINCT a FROM keyed) x, LATERAL"
        " (SELECT n FROM keyed y WHERE y.a = x.a ORDER BY f DESC, n LIMIT 1) y",
        "keyed_elements": "SELECT e, count(*) AS c FROM keyed, unnest(d) e GROUP BY e",
        "keyed_sums": "SELECT x.n, y.n AS m, z.n AS o FROM keyed x, keyed y, keyed z"
        " WHERE z.n = x.n + y.n AND x.a = z.a AND x.n < 9",
    },
    writes=(
        "INSERT INTO keyed VALUES (1, 1, '0', '1 mon', '{\"a\": 1}', '{1,2}', '{0,NULL}', 6),"
        " (1, 2, '-0', '1 day', '[1]', '{1,NULL}', '{0,1}', 3), (2, 3, 'NaN', '2 days', 'null', '{}', '{NaN}', NULL),"
        " (2, 4, '1.5', NULL, NULL, NULL, NULL, 5), (NULL, 5, NULL, '1 mon', '{\"a\": 1}', '{1,2}', '{0,NULL}', 7)",
        "INSERT INTO keyed SELECT k, n + 5, f, i, j, a, d, b FROM keyed WHERE n <> 4",
        "UPDATE keyed SET f = 'Infinity', a = '{NULL}', d = '{}' WHERE n IN (2, 4)",
        "DELETE FROM keyed WHERE n IN (1, 3, 8)",
        "UPDATE keyed SET i = '-1 day', j = '\"x\"', k = 1 WHERE n IN (5, 10)",
    ),
)
