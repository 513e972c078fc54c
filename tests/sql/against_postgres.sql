-- One query a line; behind ||| PostgreSQL's spelling of what it does not have. Evaluated by tests/sql/test_against_postgres.py.
SELECT count(*) FROM t
SELECT count(*), count(a), count(DISTINCT a), sum(a), sum(s), sum(l), sum(d), avg(a), avg(s), round(avg(l), 3), avg(d), min(c), max(e) FROM t
SELECT count(*), count(a), count(DISTINCT a), sum(a), sum(s), sum(l), sum(d), avg(a), min(c), max(e) FROM z
SELECT variance(a), var_samp(s), var_pop(d), var_pop(a), variance(DISTINCT a), var_pop(DISTINCT d) FROM t
SELECT c, variance(a), var_samp(s), var_pop(d), var_pop(a), variance(DISTINCT a), var_pop(DISTINCT d) FROM t GROUP BY c
SELECT bool_and(f), bool_or(f), every(f), bool_and(a > 0), bool_or(DISTINCT f) FROM t
SELECT c, bool_and(f), bool_or(f), every(f), bool_and(a > 0) FROM t GROUP BY c
SELECT bool_and(f), every(f) FROM z
SELECT a, count(*) FILTER (WHERE f), sum(b) FILTER (WHERE b > 0), avg(DISTINCT b) FILTER (WHERE f), min(b) FILTER (WHERE NOT f) FROM t GROUP BY a
SELECT a + 1, count(*) FROM t GROUP BY a + 1
SELECT a + 1 AS a, count(*) FROM t GROUP BY a
SELECT a + 1 AS x, count(*) FROM t GROUP BY x
SELECT a + 1 AS x, count(*) FROM t GROUP BY 1
SELECT a + 1 + 2, b * 2 FROM t GROUP BY a + 1, (b)
SELECT a, b, count(*) FROM t GROUP BY (a, b)
SELECT 1 AS one FROM t HAVING true
SELECT 1 AS one FROM z HAVING true
SELECT 1 AS one FROM t HAVING false
SELECT count(*) FROM z HAVING count(*) = 0
SELECT count(*) FROM t GROUP BY ()
SELECT 1 AS one FROM z GROUP BY ()
SELECT count(*) FROM z GROUP BY a
SELECT a FROM t GROUP BY a HAVING count(*) > 1
SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 1 ORDER BY sum(b) DESC, a
SELECT a FROM t GROUP BY a ORDER BY count(*) DESC, a
SELECT sum(a) + count(*) * 2 - max(b) FROM t
SELECT CASE WHEN count(*) > 3 THEN c ELSE 'few' END FROM t GROUP BY c
SELECT a, string_agg(DISTINCT c, '-' ORDER BY c DESC) FILTER (WHERE f), count(DISTINCT d) FROM t GROUP BY a
SELECT string_agg(c, ',' ORDER BY id), string_agg(DISTINCT c, '-'), string_agg(c, '' ORDER BY c DESC, id) FROM t
SELECT a, string_agg(c, ',' ORDER BY id) FILTER (WHERE f), string_agg(c, c ORDER BY id DESC), string_agg(DISTINCT c, '+' ORDER BY c DESC) FROM t GROUP BY a
SELECT string_agg(c, NULL ORDER BY id) FROM t
SELECT string_agg(c, ',') FROM z
SELECT DISTINCT a FROM t
SELECT DISTINCT a, c FROM t ORDER BY a DESC, c
SELECT DISTINCT ON (a) a, id FROM t ORDER BY a, id DESC
SELECT DISTINCT ON (a) id, b FROM t ORDER BY a DESC, id
SELECT DISTINCT ON (a, f) id FROM t ORDER BY f, a, id LIMIT 3
SELECT DISTINCT ON (x) a + 1 AS x, id FROM t ORDER BY x, b NULLS FIRST, id
SELECT DISTINCT 'x', NULL FROM t
SELECT x.id FROM (SELECT DISTINCT ON (a) id FROM t ORDER BY a, id) x
SELECT a FROM t UNION SELECT k FROM v
SELECT a FROM t UNION ALL SELECT k FROM v
SELECT a FROM t INTERSECT SELECT k FROM v
SELECT a FROM t INTERSECT ALL SELECT k FROM v
SELECT a FROM t EXCEPT SELECT k FROM v
SELECT a FROM t EXCEPT ALL SELECT k FROM v
SELECT c, s FROM t EXCEPT ALL SELECT c, a FROM v
SELECT a FROM t UNION SELECT k FROM v INTERSECT SELECT a FROM v
SELECT a FROM t UNION SELECT d FROM t ORDER BY 1 DESC
SELECT a FROM t UNION SELECT l FROM t ORDER BY a NULLS FIRST LIMIT 3
(SELECT a FROM t ORDER BY id LIMIT 2) UNION ALL (SELECT k FROM v ORDER BY k, a, c OFFSET 6)
(SELECT NULL LIMIT 1) UNION ALL SELECT 1
SELECT x.a FROM (SELECT a FROM t ORDER BY id LIMIT 3 OFFSET 2) x
SELECT x.a FROM (SELECT a FROM t ORDER BY b DESC, id FETCH FIRST 4 ROWS ONLY) x
SELECT x.a FROM (SELECT a FROM t UNION ALL SELECT k FROM v ORDER BY a LIMIT 3) x
WITH q AS (SELECT a, id FROM t ORDER BY id LIMIT 5) SELECT q.a, count(*) FROM q GROUP BY q.a
(SELECT a, id FROM t ORDER BY id) LIMIT 3
SELECT count(*) FROM (SELECT 1 AS one FROM t LIMIT 3) x
SELECT t.a, count(*), sum(v.k) FROM t JOIN v ON t.a = v.a GROUP BY t.a
SELECT a, sum(k) FROM t JOIN v USING (a) GROUP BY a
SELECT sum(DISTINCT a), sum(DISTINCT d), avg(DISTINCT a), count(DISTINCT c) FROM t
SELECT min(a + b), max(d * 2), min(l), max(f::int) FROM t
SELECT id, row_number() OVER (ORDER BY id) FROM t
SELECT id, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w FROM t WINDOW w AS (PARTITION BY f ORDER BY a)
SELECT id, ntile(3) OVER (ORDER BY id), ntile(4) OVER (PARTITION BY a ORDER BY id) FROM t
SELECT id, lag(b) OVER (ORDER BY id), lead(b, 2) OVER (ORDER BY id), lag(b, 1, 99) OVER (PARTITION BY a ORDER BY id), lag(b, -1, 1.5) OVER (ORDER BY id), lead(c, a, '?') OVER (ORDER BY id) FROM t
SELECT id, first_value(b) OVER (PARTITION BY a ORDER BY id), last_value(b) OVER (PARTITION BY a ORDER BY id), nth_value(b, 2) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t
SELECT id, sum(b) OVER (ORDER BY a), count(*) OVER (ORDER BY a), avg(b) OVER (PARTITION BY f), min(b) OVER (ORDER BY id ROWS 2 PRECEDING), max(c) OVER () FROM t
SELECT id, sum(b) OVER (ORDER BY a ROWS BETWEEN CURRENT ROW AND CURRENT ROW), count(b) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM t
SELECT id, count(*) OVER (ORDER BY a DESC RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING), count(*) OVER (ORDER BY d RANGE 1.5 PRECEDING) FROM t
SELECT id, bool_and(f) OVER (ORDER BY a), bool_or(f) OVER (PARTITION BY b), every(f) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t
SELECT id, sum(b) FILTER (WHERE f) OVER (ORDER BY id), count(*) FILTER (WHERE a > 0) OVER (PARTITION BY c) FROM t
SELECT id, sum(b) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE GROUP), count(*) OVER (ORDER BY a EXCLUDE TIES), count(*) OVER (ORDER BY a EXCLUDE CURRENT ROW), count(*) OVER (ORDER BY a EXCLUDE NO OTHERS) FROM t
SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING), sum(b) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) FROM t
SELECT a, sum(sum(b)) OVER (ORDER BY a), rank() OVER (ORDER BY count(*) DESC), count(*) FROM t GROUP BY a
SELECT a, lag(a) OVER (ORDER BY a), max(b) FROM t GROUP BY a ORDER BY 2 NULLS FIRST
SELECT sum(count(*)) OVER () FROM t
SELECT id, string_agg(c, ',') OVER (ORDER BY id) FROM t
SELECT id, variance(b) OVER (ORDER BY id), var_pop(b) OVER (PARTITION BY f) FROM t
SELECT id, sum(a) OVER (w ORDER BY id), count(*) OVER w2 FROM t WINDOW w AS (PARTITION BY f), w2 AS (w ORDER BY id ROWS 1 PRECEDING)
SELECT x.id, x.r FROM (SELECT id, row_number() OVER (PARTITION BY a ORDER BY id) AS r FROM t) x WHERE x.r = 1
SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY id) = 1 ||| SELECT x.id FROM (SELECT id, row_number() OVER (PARTITION BY a ORDER BY id) AS r FROM t) x WHERE x.r = 1
SELECT a, count(*) FROM t GROUP BY a QUALIFY rank() OVER (ORDER BY count(*) DESC) = 1 ||| SELECT a, n FROM (SELECT a, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM t GROUP BY a) x WHERE r = 1
SELECT DISTINCT rank() OVER (ORDER BY a) FROM t
SELECT a, count(*) FROM t GROUP BY a OPTIONS (AGGREGATE INPUT GROUP SIZE = 10) ||| SELECT a, count(*) FROM t GROUP BY a
SELECT round(avg(d), 3), avg(d) * 2, avg(a) > 0 FROM t
SELECT a % 2 AS m, sum(b) FROM t GROUP BY m
SELECT upper(c), count(*) FROM t GROUP BY upper(c)
SELECT (a + 1) * 2, sum(d) FROM t GROUP BY a ORDER BY 1
SELECT NULL::int AS n, count(*) FROM t GROUP BY 1
SELECT f, a IS NULL, count(*) FROM t GROUP BY f, a IS NULL
SELECT count(*) FROM t, v
SELECT count(DISTINCT f), count(DISTINCT d), max(DISTINCT a), min(DISTINCT c) FROM t
SELECT array_agg(a ORDER BY id), array_agg(c ORDER BY c DESC NULLS LAST, id), array_agg(DISTINCT d) FROM t
SELECT a, array_agg(b ORDER BY id) FILTER (WHERE f), array_agg(DISTINCT c ORDER BY c DESC), array_agg(b + 1 ORDER BY id) FROM t GROUP BY a
SELECT array_agg(a) FROM z
SELECT id, array_agg(b) OVER (ORDER BY id ROWS 2 PRECEDING), array_agg(b) FILTER (WHERE f) OVER (ORDER BY id) FROM t
SELECT id, sum(a) OVER (w GROUPS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY a)
SELECT id, sum(a) OVER (PARTITION BY f ORDER BY a GROUPS UNBOUNDED PRECEDING) FROM t
SELECT id, lag(b) IGNORE NULLS OVER (ORDER BY id) FROM t ||| SELECT id, (SELECT y.b FROM t y WHERE y.id < x.id AND y.b IS NOT NULL ORDER BY y.id DESC LIMIT 1) FROM t x
SELECT id, lead(b, 2, -7) IGNORE NULLS OVER (ORDER BY id) FROM t ||| SELECT id, coalesce((SELECT y.b FROM t y WHERE y.id > x.id AND y.b IS NOT NULL ORDER BY y.id LIMIT 1 OFFSET 1), -7) FROM t x
SELECT id, first_value(b) IGNORE NULLS OVER (ORDER BY id) FROM t ||| SELECT id, (SELECT y.b FROM t y WHERE y.id <= x.id AND y.b IS NOT NULL ORDER BY y.id LIMIT 1) FROM t x
SELECT a FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 5) ORDER BY id LIMIT 2 ||| SELECT a FROM t ORDER BY id LIMIT 2
SELECT x.a FROM (SELECT DISTINCT ON (a) a, id FROM t OPTIONS (DISTINCT ON INPUT GROUP SIZE = 5, LIMIT INPUT GROUP SIZE 7) ORDER BY a, id) x ||| SELECT x.a FROM (SELECT DISTINCT ON (a) a, id FROM t ORDER BY a, id) x
SELECT f, g.n FROM (SELECT f, count(*) AS n FROM t GROUP BY f) g
SELECT a, count(*) + 0 * sum(b) AS n FROM t GROUP BY a HAVING sum(b) IS NOT NULL OR count(*) > 2
SELECT pg_catalog.sum(a) FILTER (WHERE f), pg_catalog.count(*) FROM t
SELECT sum(a) FILTER (WHERE NULL), count(*) FILTER (WHERE NULL), bool_and(NULL), max(NULL), count(NULL), string_agg(NULL, ',') FROM t
SELECT count(*) AS count, max(a) max FROM t GROUP BY ()
SELECT max(a), CASE WHEN max(b) > 0 THEN 'x' END FROM t GROUP BY f, c
SELECT e, count(*) FROM t GROUP BY e ORDER BY e DESC NULLS LAST
SELECT coalesce(c, '?') AS c, count(*) FROM t GROUP BY c
SELECT count(DISTINCT a) FILTER (WHERE f), count(DISTINCT c) FROM t GROUP BY b
SELECT avg(sum(a)) OVER (), min(sum(a)) OVER (ORDER BY c), c FROM t GROUP BY c
SELECT rank() OVER (PARTITION BY count(*) > 2 ORDER BY sum(a)) FROM t GROUP BY b
SELECT DISTINCT ON (count(*)) count(*), b FROM t GROUP BY b ORDER BY count(*), b
SELECT DISTINCT count(*) FROM t GROUP BY a ORDER BY 1
SELECT count(*) FROM t ORDER BY 1
SELECT (SELECT count(*) FROM v) FROM t GROUP BY ()
SELECT count(*), sum(1), max('x'::text)
SELECT DISTINCT 1, 'x'
SELECT count(*) FROM (VALUES (1), (2)) x (n)
SELECT row_number() OVER () AS r
SELECT DISTINCT ON (1) 1 AS one, 2
SELECT x.c1, count(*) FROM (SELECT a AS c1 FROM t) x GROUP BY x.c1
SELECT a, t.c, v.c, count(*) FROM t JOIN v USING (a) GROUP BY a, t.c, v.c
SELECT a, count(*) FROM t JOIN v USING (a) GROUP BY v.a, t.a, a
SELECT count(t.a), count(v.k) FROM t, v WHERE t.a = v.a GROUP BY t.a HAVING count(v.k) > 1
SELECT a AS b, sum(b) FROM t GROUP BY a
SELECT b AS a, count(*) FROM t GROUP BY a, b
SELECT max(a) AS a FROM t ORDER BY a
SELECT count(*) n FROM t GROUP BY a ORDER BY n, max(id)
SELECT - a FROM t GROUP BY - a ORDER BY - a
SELECT a FROM t GROUP BY a ORDER BY a + 1
SELECT CASE a WHEN 1 THEN 'one' ELSE max(c) END FROM t GROUP BY a
SELECT a BETWEEN 0 AND 2, count(*) FROM t GROUP BY a BETWEEN 0 AND 2
SELECT a IN (1, 2) AS x, count(*) FROM t GROUP BY x HAVING a IN (1, 2)
SELECT sum(x.n) FROM (SELECT count(*) AS n FROM t GROUP BY a) x
SELECT sum(x.n) FROM (SELECT count(*) AS n FROM z) x
SELECT x.n, y.n FROM (SELECT count(*) AS n FROM z) x, (SELECT sum(a) AS n FROM t) y
WITH x AS (SELECT a, count(*) AS n FROM t GROUP BY a), y AS (SELECT max(n) AS m FROM x) SELECT x.a FROM x, y WHERE x.n = y.m
SELECT a FROM t UNION SELECT max(k) FROM v ORDER BY a
SELECT count(*) FROM t UNION ALL SELECT count(*) FROM z
(SELECT a FROM t ORDER BY a NULLS FIRST, id LIMIT 2) EXCEPT SELECT NULL
SELECT a FROM t INTERSECT SELECT k FROM v EXCEPT SELECT 1
(VALUES (1), (2), (2)) EXCEPT ALL VALUES (2)
SELECT 1 EXCEPT SELECT 1 UNION SELECT 2
SELECT e - min(e) OVER () FROM t
SELECT sum(a) OVER (PARTITION BY f) + id FROM t ORDER BY id
SELECT id FROM t ORDER BY row_number() OVER (ORDER BY id DESC)
SELECT id, count(*) OVER (PARTITION BY a, a ORDER BY id), lag(id) OVER (PARTITION BY a ORDER BY id) - id FROM t
SELECT id, nth_value(c, s) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t WHERE s > 0
SELECT id, min(e) OVER (ORDER BY e), max(c) OVER (ORDER BY c), sum(l) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t
SELECT count(*) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY l RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING) FROM t
SELECT a, c, count(*), sum(b) FROM t GROUP BY ROLLUP (a, c)
SELECT a, c, f, count(*), grouping(a, c, f), grouping(f) FROM t GROUP BY CUBE (a, c, f)
SELECT a, c, count(*) FROM t GROUP BY GROUPING SETS ((a, c), (a), (a), ())
SELECT a, c, f, count(*) FROM t GROUP BY a, ROLLUP (c, f), GROUPING SETS (f, (a, f))
SELECT c IS NULL, count(*) FROM t WHERE a > 0 GROUP BY GROUPING SETS (ROLLUP (c IS NULL), CUBE (c IS NULL, a < 2))
SELECT a, c, f, count(*) FROM t GROUP BY DISTINCT a, ROLLUP (c, f), GROUPING SETS (f, (a, f))
SELECT coalesce(a, 0) + 1 IS NULL, coalesce(a, 0) * 2 + 1, count(*) FROM t GROUP BY GROUPING SETS (coalesce(a, 0), coalesce(a, 0) * 2)
SELECT a, b, c FROM t GROUP BY ROLLUP ((a, b), c)
SELECT a, count(*) FROM z GROUP BY ROLLUP (a)
SELECT a FROM z GROUP BY CUBE (a)
SELECT count(*), max(b) FROM z GROUP BY GROUPING SETS ((), (), (a))
SELECT a + 1, coalesce(c, 'all'), grouping(c) FROM t GROUP BY ROLLUP (a, c) HAVING grouping(c) = 0 OR count(*) > 2
SELECT a + b AS x, count(*) FROM t GROUP BY ROLLUP (1) ORDER BY grouping(a + b), 1 NULLS FIRST
SELECT a, c, sum(sum(b)) OVER (PARTITION BY grouping(a, c) ORDER BY a, c NULLS FIRST) FROM t GROUP BY ROLLUP (a, c)
SELECT grouping(a), grouping(a, a) FROM t GROUP BY a
SELECT a, (SELECT count(*) FROM v WHERE v.a = t.a) FROM t GROUP BY ROLLUP (a)
SELECT a, count(DISTINCT c), array_agg(b ORDER BY id) FROM t GROUP BY CUBE (a)
SELECT nullif(a, l), nullif(s, a), nullif(l, 7), nullif(a, d), nullif(e, '2020-01-02') FROM t
SELECT +a, - + b, + (+ d), + '5' AS five FROM t
SELECT +c FROM t
WITH r (x, y) AS (VALUES (1, 'one'), (2, NULL)) SELECT r.x, y FROM r
WITH r AS MATERIALIZED (VALUES (1), (2)) SELECT column1 + 1 FROM r UNION VALUES (9)
SELECT E'a\tb\'\x41\u0042' AS x, e'\\' AS y
SELECT c IS NULL, count(*) FROM t GROUP BY GROUPING SETS (ROLLUP (c IS NULL), CUBE (c IS NULL))
SELECT a, a AS y, sum(b) FROM t GROUP BY ROLLUP (a)
SELECT 1 AS x, a, sum(b) FROM t GROUP BY 1, ROLLUP (a)
SELECT a AS x, a AS y, count(*) FROM t GROUP BY x, y
WITH x AS (WITH y AS (SELECT a, id FROM t WHERE id < 9) SELECT a FROM y) SELECT x.a, count(*) FROM x GROUP BY x.a
WITH w AS (SELECT 1 AS one), x (m) AS (WITH y AS (SELECT max(id) AS n FROM t) SELECT n FROM y UNION ALL SELECT one FROM w) SELECT m + one FROM x, w
WITH c (f) AS (VALUES (42)) VALUES ((SELECT f FROM c)), (1)
SELECT id, s::float8 <> ALL (VALUES (30e0), (12e0), (34e0)) FROM t
SELECT id, s::float8 * -0.0 IN (VALUES (0e0), (12e0), (34e0)), (s::float8 * -1, a) IN (VALUES (0e0, 1), (-1e0, 2), (1e0, NULL)) FROM t
SELECT id, ARRAY[s::float8 * -1] IN (VALUES (ARRAY[0e0]), (ARRAY[1e0]), (ARRAY[-2e0, 1e0])) FROM t
WITH x AS (SELECT 1 AS n) (SELECT n FROM x UNION ALL SELECT 3) ORDER BY n DESC LIMIT 1
WITH x AS (SELECT 1 AS n) (SELECT n FROM x) UNION ALL (WITH x AS (SELECT n + 1 AS n FROM x) SELECT n FROM x)
WITH x AS (SELECT count(*) AS n FROM t) SELECT (WITH y AS (SELECT n + 1 AS m FROM x) SELECT m FROM y) FROM x
SELECT t.id FROM t WHERE t.id IN (WITH y AS (WITH z AS (SELECT id FROM t ORDER BY id LIMIT 3) SELECT id + 1 AS i FROM z) SELECT i FROM y)
SELECT -2147483648 AS a, -(2147483648) AS b, - -2147483648 AS c, -((2147483648)) AS d, -(-(2147483648)) AS e
SELECT -9223372036854775808 AS a, -(9223372036854775808) AS b, -9223372036854775809 AS c, - -9223372036854775808 AS d
SELECT -(2147483648) - id FROM t
SELECT '-1e-38'::numeric AS a, '1e-39'::numeric(10, 2) AS b, '0e-50'::numeric AS c, '{-1e-38, 2e-38}'::numeric[] AS d
SELECT generate_series(1, a) AS g, count(*), sum(b) FROM t GROUP BY 1
SELECT generate_series(1, a) + 1 AS g, generate_series(1, 2) AS h, count(*) FROM t GROUP BY 1
SELECT generate_series(1, 2), generate_series(1, 3) AS h, max(a) FROM t GROUP BY GROUPING SETS (1, h)
SELECT id, generate_series(1, generate_series(1, a)), generate_series(1, 4) FROM t
SELECT generate_series(1, generate_series(1, generate_series(1, 3))), generate_series(1, 4), generate_series(1, generate_series(5, 6))
SELECT nullif(generate_series(1, 3), 2), unnest(ARRAY[a, b]) FROM t
SELECT DISTINCT ON (generate_series(1, 2)) generate_series(1, 2), id FROM t ORDER BY generate_series(1, 2), id
SELECT a FROM t GROUP BY a, generate_series(1, a) HAVING count(*) > 1
SELECT id FROM t ORDER BY id LIMIT (SELECT count(*) / 2 FROM t) OFFSET (SELECT 1)
SELECT id FROM (SELECT id FROM t ORDER BY id OFFSET (SELECT 2.5) LIMIT (SELECT NULL::int)) AS s
SELECT a, b, id FROM t ORDER BY a, b OFFSET (SELECT 1) FETCH FIRST (SELECT 3) ROWS WITH TIES
SELECT id, x FROM t, LATERAL (SELECT k AS x FROM v ORDER BY k LIMIT abs(t.a) OFFSET abs(t.b)) AS s
SELECT id, (SELECT array_agg(x ORDER BY x) FROM (SELECT k AS x FROM v ORDER BY k LIMIT abs(t.a)) AS s) FROM t
(SELECT id FROM t ORDER BY id LIMIT (SELECT 1)) UNION ALL SELECT 9
SELECT DISTINCT a FROM t ORDER BY a LIMIT (SELECT 2)
SELECT (SELECT sum(t.a) FROM (VALUES (1)) AS i (x)) FROM t
SELECT b, (SELECT sum(t.a) + count(*) FROM v) FROM t GROUP BY b
SELECT b FROM t GROUP BY b HAVING EXISTS (SELECT 1 FROM v WHERE sum(t.a) > v.k)
SELECT b, (SELECT (SELECT max(t.a + v.k)) FROM v LIMIT 1), (SELECT count(*) FILTER (WHERE t.a > 1)) FROM t GROUP BY b
SELECT c, (SELECT string_agg(t.c, ',' ORDER BY t.id)) FROM t GROUP BY c ORDER BY (SELECT sum(t.a)), 1
SELECT a IN (SELECT sum(t.b) FROM v) FROM t GROUP BY a
SELECT (SELECT count(t.id)), (SELECT count(t.id) + count(v.k) FROM v) FROM t
SELECT a, (SELECT count(t.id) FILTER (WHERE v.k > 1) FROM v) FROM t GROUP BY a, id
SELECT count(t.*), (SELECT count(t.*)), count(DISTINCT t.*) FROM t
SELECT (t.*)::text, t.* = t.*, t.* IS NOT NULL, coalesce(v.*, NULL)::text FROM t JOIN v ON t.a = v.k
SELECT x.* IN (SELECT y.* FROM v AS y) FROM v AS x
SELECT row_to_json(i)::text, (i).x, to_jsonb(i.*)::text FROM v AS i (x, y)
SELECT (i).* FROM v AS i (x, y)
SELECT row_to_json(i)::text FROM (SELECT * FROM v) AS i (x, y)
SELECT (w).k, (t).id FROM t LEFT JOIN v AS w ON t.a = w.a
SELECT (i).a FROM v AS i (x)
SELECT DISTINCT ON (a) a, id, generate_series(1, 2) FROM t ORDER BY a, id
SELECT DISTINCT ON (a, b) b, generate_series(1, a) AS g, a FROM t ORDER BY a, b DESC, id
SELECT DISTINCT ON (a) a, max(b), generate_series(1, count(*)) FROM t GROUP BY a, c ORDER BY a, max(b), c LIMIT 4
