"""Queries of joins and subqueries, over the tables `t`, `u`, `v` (with a unique key `k`) and `z` (empty).

Fixed ones for each form and trap, and combinations: kinds of joins by conditions, kinds of subqueries by what ties them
to the outer row and by where they stand.
"""

from __future__ import annotations

import itertools
import random

_TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}
_CONDITIONS = (
    "t.a = u.a",
    "t.a = u.a AND t.b = u.x",
    "t.a = u.a AND t.b > 1",
    "t.a = u.a AND u.x > 1",
    "t.a = u.a AND t.c = 'x' AND u.c <> 'y'",
    "t.a < u.a",
    "t.b BETWEEN u.a AND u.x",
    "t.c >= u.c AND t.c < u.c || 'y'",
    "t.a <= u.x AND u.a < t.b + 1",
    "t.a = u.a AND t.b BETWEEN u.a AND u.x",
    "t.a = u.a OR t.b = u.x",
    "t.a IS NOT DISTINCT FROM u.a OR t.b = u.x AND t.a > 1 OR t.b = u.a",
    "t.a IN (u.a, u.x) AND t.b <> u.a",
    "t.a = u.a AND t.b <> u.x",
    "t.a + 1 = u.a",
    "t.a = u.a AND t.a = u.x",
    "t.b > 1",
    "u.x > 1",
    "true",
    "false",
    "NULL",
    "t.a IS NOT DISTINCT FROM u.a",
    "t.a + u.a = 3",
    "t.a = ANY (SELECT v.a FROM v WHERE v.k = u.x)",
    "EXISTS (SELECT 1 FROM v WHERE v.a = t.a) AND t.a = u.a",
)
_OUTER = tuple(
    f"SELECT t.*, u.* FROM t {kind} JOIN u ON {condition}"
    for kind, condition in itertools.product(("LEFT", "RIGHT", ""), _CONDITIONS)
)
#: PostgreSQL refuses a full join on most conditions: it is asked for what one is.
_FULL = tuple(
    (
        f"SELECT t.*, u.* FROM t FULL JOIN u ON {condition}",
        f"SELECT t.*, u.* FROM t LEFT JOIN u ON {condition} UNION ALL SELECT NULL, NULL, NULL, NULL, u.* FROM u "
        f"WHERE NOT EXISTS (SELECT 1 FROM t WHERE {condition})",
    )
    for condition in _CONDITIONS
)

_JOINS = (
    "SELECT t.b, u.x, v.k FROM t JOIN v ON t.a = v.a JOIN u ON u.x = v.k OR u.a = t.b AND u.c = t.c",
    *(f"SELECT * FROM t {kind} JOIN u USING (a)" for kind in ("", "LEFT", "RIGHT", "FULL")),
    *(f"SELECT * FROM t {kind} JOIN u USING (c, a)" for kind in ("", "LEFT", "RIGHT", "FULL")),
    *(f"SELECT a, t.a, v.a FROM t {kind} JOIN v USING (a)" for kind in ("", "LEFT", "RIGHT", "FULL")),
    *(f"SELECT * FROM t NATURAL {kind} JOIN u" for kind in ("", "LEFT", "RIGHT", "FULL", "INNER", "LEFT OUTER")),
    *(f"SELECT * FROM u NATURAL {kind} JOIN (SELECT k FROM v) w" for kind in ("", "LEFT", "FULL")),
    *(f"SELECT * FROM t {kind} JOIN z USING (a)" for kind in ("LEFT", "RIGHT", "FULL")),
    *(f"SELECT * FROM z {kind} JOIN t ON true" for kind in ("LEFT", "RIGHT", "FULL")),
    *(f"SELECT t.b, v.k FROM t {kind} JOIN v ON v.k = t.b" for kind in ("LEFT", "RIGHT", "FULL")),
    *(f"SELECT t.b, v.k FROM v {kind} JOIN t ON v.k < t.b" for kind in ("LEFT", "RIGHT")),
    "SELECT * FROM t FULL JOIN u USING (a) FULL JOIN v USING (a)",
    "SELECT * FROM t LEFT JOIN u USING (a) RIGHT JOIN v USING (a)",
    "SELECT * FROM t NATURAL JOIN u NATURAL LEFT JOIN v",
    "SELECT a, t.a, u.a FROM t FULL JOIN u USING (a) WHERE a IS NOT NULL AND t.a IS NULL",
    "SELECT t.a, u.x, v.k FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN v ON u.x = v.k",
    "SELECT t.a, u.x, v.k FROM t LEFT JOIN (u JOIN v ON u.x = v.k) ON t.a = u.a",
    "SELECT t.a, u.x, v.k FROM t LEFT JOIN u JOIN v ON u.x = v.k ON t.a = u.a",
    "SELECT t.a, u.x, v.k FROM t LEFT JOIN (u LEFT JOIN v ON u.x = v.k AND u.a > 0) ON t.a = u.a AND v.k IS NULL",
    "SELECT t.a, u.x, v.k FROM t RIGHT JOIN u ON t.a = u.a FULL JOIN v ON v.k = u.x AND t.b = v.a",
    "SELECT t.a, u.x, v.k FROM t, u FULL JOIN v ON u.x = v.k WHERE t.a = 1",
    "SELECT t.a, u.x, v.k FROM t CROSS JOIN u LEFT JOIN v ON u.x = v.k AND t.a = v.a",
    "SELECT t.a, w.n FROM t LEFT JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) w ON w.a = t.a",
    "SELECT t.a, w.n FROM t LEFT JOIN (SELECT a, 1 AS n FROM u) w ON w.a = t.a WHERE w.n IS NULL",
    "SELECT t.a, count(u.x), count(*) FROM t LEFT JOIN u ON u.a = t.a GROUP BY t.a",
    "SELECT j.a, j.x FROM (t JOIN u USING (a)) AS j",
    *(f"SELECT j.a, t.a, j.* FROM t {kind} JOIN u USING (a, c) AS j" for kind in ("", "LEFT", "RIGHT", "FULL")),
    "SELECT * FROM t JOIN u USING (a) AS j JOIN v ON j.a = v.a WHERE j.a > 0",
    "SELECT j.p, j.q FROM (t LEFT JOIN u USING (a, c)) AS j (p, q)",
    "SELECT * FROM ((t LEFT JOIN u USING (a)) FULL JOIN v ON v.k = b)",
    "SELECT p.a, q.a FROM t p LEFT JOIN t q ON p.a = q.b AND p.c = q.c",
    "SELECT t.a, u.a FROM t FULL JOIN u ON t.a = u.a WHERE coalesce(t.b, 0) > 0 OR u.x IS NULL",
    "SELECT DISTINCT t.a, u.x FROM t LEFT JOIN u ON t.a = u.a",
    "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a UNION ALL SELECT v.k FROM u RIGHT JOIN v ON v.k = u.x",
)

#: The latest row as of each, and the first one behind.
_AS_OF = tuple(
    query
    for compared, order in (("<=", "DESC"), ("<", "DESC"), (">=", "ASC"), (">", "ASC"))
    for query in (
        f"SELECT t.*, y.* FROM t LEFT JOIN LATERAL (SELECT u.x, u.c FROM u WHERE u.a = t.a AND u.x {compared} t.b "
        f"ORDER BY u.x {order}, u.c LIMIT 1) y ON true",
        f"SELECT t.a, t.b, (SELECT u.c FROM u WHERE u.x {compared} t.b ORDER BY u.x {order}, u.c DESC NULLS LAST "
        "LIMIT 1) FROM t",
        f"SELECT t.a, y.a FROM t JOIN LATERAL (SELECT u.a FROM u WHERE t.c = u.c AND t.b + 0.5 {_TURNED[compared]} u.x "
        f"ORDER BY u.x {order}, u.a LIMIT 1) y ON true",
        f"SELECT DISTINCT ON (v.k) v.k, u.x, u.c FROM v JOIN u ON u.a {compared} v.a "
        f"ORDER BY v.k, u.a {order}, u.x, u.c",
    )
)

#: What a subquery's rows may be tied to its outer row by.
_TIES = (
    "true",
    "u.a = t.a",
    "u.a = t.a AND u.x > 1",
    "u.a = t.a AND u.c = t.c",
    "u.a < t.a",
    "u.a = t.a OR u.x = t.b",
    "u.a IS NOT DISTINCT FROM t.a",
    "u.a + t.b = 3",
    "t.b > 1",
    "u.a = t.a AND t.b IS NOT NULL",
)
#: Tests of a row of t by a subquery.
_TESTS = (
    "EXISTS (SELECT 1 FROM u WHERE {tie})",
    "t.b IN (SELECT u.x FROM u WHERE {tie})",
    "t.b = ANY (SELECT u.x + 1 FROM u WHERE {tie})",
    "t.b < ANY (SELECT u.x FROM u WHERE {tie})",
    "t.b >= ALL (SELECT u.x FROM u WHERE {tie})",
    "t.b <> ALL (SELECT u.x FROM u WHERE {tie})",
    "t.b <> ANY (SELECT u.x FROM u WHERE {tie})",
    "(t.b, t.c) IN (SELECT u.x, u.c FROM u WHERE {tie})",
    "(SELECT count(*) FROM u WHERE {tie}) > 1",
    "(SELECT max(u.x) FROM u WHERE {tie}) = t.b",
)
#: Where a test may stand.
_PLACES = (
    "SELECT t.a, t.b FROM t WHERE {test}",
    "SELECT t.a, t.b FROM t WHERE NOT {test}",
    "SELECT t.a, {test} AS q FROM t",
    "SELECT t.a, t.b FROM t WHERE t.a = 1 OR {test}",
    "SELECT t.a, t.b FROM t WHERE t.b > 0 AND NOT (t.a = 2 OR {test})",
    "SELECT t.a FROM t WHERE ({test}) IS NULL",
)
_TESTED = tuple(
    place.format(test=test.format(tie=tie)) for place, test, tie in itertools.product(_PLACES, _TESTS, _TIES)
)

_VALUES = (
    # Scalar ones: none, one, several rows.
    "SELECT (SELECT 1), (SELECT NULL), (SELECT 'x')",
    "SELECT a, (SELECT x FROM z2) FROM t, (SELECT 1 AS one) w WHERE false",
    "SELECT a, (SELECT b FROM z) FROM t",
    "SELECT a, (SELECT x FROM u) FROM t",
    "SELECT a, (SELECT v.a FROM v WHERE v.k = t.b) FROM t",
    "SELECT a, (SELECT v.a FROM v WHERE v.k = t.b) + 1 AS n FROM t WHERE (SELECT v.c FROM v WHERE v.k = t.b) IS NULL",
    "SELECT a, (SELECT u.x FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, (SELECT DISTINCT u.a FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, (SELECT u.x FROM u WHERE u.a = t.a ORDER BY u.x DESC NULLS LAST LIMIT 1) FROM t",
    "SELECT a, (SELECT u.x FROM u WHERE u.a = t.a ORDER BY u.x LIMIT 1 OFFSET 1) FROM t",
    "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a), (SELECT sum(u.x) FROM u WHERE u.a < t.a) FROM t",
    "SELECT a, (SELECT count(*) + 1 FROM u WHERE u.a = t.a), coalesce((SELECT sum(x) FROM u WHERE u.a = "
    "t.a), -1) FROM t",
    "SELECT a, (SELECT CASE WHEN count(*) > 1 THEN max(u.x) ELSE t.b END FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, (SELECT t.b) AS o, (SELECT t.b WHERE t.a > 0) AS p FROM t",
    "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a HAVING count(*) > 1) FROM t",
    "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a GROUP BY u.a) FROM t",
    "SELECT a, (SELECT max(x) FROM (SELECT x FROM u WHERE u.a = t.a UNION ALL SELECT t.b) w) FROM t",
    "SELECT a, (SELECT count(*) FROM (SELECT x FROM u WHERE u.a = t.a EXCEPT SELECT t.b) w) FROM t",
    "SELECT a, (SELECT count(*) FROM (SELECT u.a FROM u INTERSECT SELECT t.a) w) FROM t",
    "SELECT a, (SELECT count(DISTINCT u.x) FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, (SELECT max(n) FROM (SELECT u.x, count(*) AS n FROM u WHERE u.a <> t.a GROUP BY u.x) w) FROM t",
    "SELECT a, (SELECT string_agg(u.c, ',' ORDER BY u.c) FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, (SELECT u.x + v.k FROM u, v WHERE u.a = t.a AND v.k = t.b ORDER BY u.x, v.k LIMIT 1) FROM t",
    "SELECT a, (SELECT w.n FROM (SELECT t.a * 2 AS n) w) FROM t",
    "SELECT a FROM t WHERE (SELECT count(*) FROM u WHERE u.a = t.a) = (SELECT count(*) FROM v WHERE v.a = t.a)",
    "SELECT a FROM t WHERE b = (SELECT max(b) FROM t x WHERE x.a = t.a)",
    "SELECT a FROM t WHERE b > (SELECT avg(x.b) FROM t x WHERE x.c = t.c)",
    "SELECT a FROM t WHERE (SELECT b FROM z) IS NULL",
    "SELECT a FROM t WHERE a = (SELECT b FROM z) OR b = 1",
    # Several rows where nobody asks for the value.
    "SELECT a, CASE WHEN (SELECT count(*) FROM u WHERE u.a = t.a) = 1 THEN (SELECT x FROM u WHERE u.a = t.a) END "
    "FROM t",
    "SELECT a, coalesce(b, (SELECT x FROM u WHERE u.a = t.a AND t.b IS NULL AND t.a = 9)) FROM t",
    "SELECT a FROM t WHERE n >= 0 OR (SELECT x FROM u WHERE u.a <> t.a) = 1",
    "SELECT w.a FROM (SELECT a, (SELECT x FROM u) AS x, (SELECT u.x FROM u WHERE u.a = t.a) AS y FROM t) w",
    "SELECT (SELECT x FROM u), (SELECT u.x FROM u WHERE u.a <> z.a) FROM z",
    "SELECT a, (SELECT CASE WHEN t.b > 9 THEN (SELECT x FROM u) ELSE max(v.k) END FROM v) FROM t",
    # Where they may stand.
    "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > (SELECT count(*) FROM u WHERE u.a = t.a)",
    "SELECT a, sum((SELECT count(*) FROM u WHERE u.a = t.a)) FROM t GROUP BY a",
    "SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.a = t.a) THEN 1 ELSE 0 END), count(*) FROM t",
    "SELECT count(*) FILTER (WHERE t.a IN (SELECT u.a FROM u)) FROM t",
    "SELECT (SELECT count(*) FROM u WHERE u.a = t.a) AS n, count(*) FROM t GROUP BY 1",
    "SELECT a, (SELECT max(u.x) FROM u WHERE u.a = t.a) FROM t GROUP BY a",
    "SELECT a FROM t GROUP BY a HAVING a IN (SELECT u.a FROM u)",
    "SELECT max(a), (SELECT max(x) FROM u) FROM t",
    "SELECT a, CASE WHEN a IN (SELECT u.a FROM u) THEN 'in' WHEN b IN (SELECT x FROM u) THEN 'b' END FROM t",
    "SELECT a, coalesce((SELECT v.a FROM v WHERE v.k = t.b), (SELECT v.a FROM v WHERE v.k = t.a), -1) FROM t",
    "SELECT * FROM (VALUES (1, (SELECT count(*) FROM u)), ((SELECT max(a) FROM t), 3)) w (p, q)",
    "SELECT a FROM t WHERE a BETWEEN (SELECT min(x) FROM u) AND (SELECT max(x) FROM u)",
    "SELECT DISTINCT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, row_number() OVER (ORDER BY t.b, t.a, t.c, t.n) FROM t WHERE a IN (SELECT u.a FROM u)",
    "SELECT a FROM t WHERE a IN (SELECT row_number() OVER (ORDER BY u.a) FROM u)",
    "SELECT a FROM t WHERE 1 = (SELECT row_number() OVER (ORDER BY u.x) FROM u WHERE u.a = t.a ORDER BY 1 LIMIT 1)",
    "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t ORDER BY (SELECT max(x) FROM u), a, b, c, t.n",
    # IN and EXISTS without FROM, over constants, over aggregates.
    "SELECT 1 IN (SELECT a FROM t), 9 IN (SELECT a FROM t), NULL IN (SELECT a FROM t), NULL IN (SELECT a FROM z)",
    "SELECT 1 NOT IN (SELECT a FROM t), 9 NOT IN (SELECT a FROM t WHERE a IS NOT NULL), NULL NOT IN (SELECT a FROM z)",
    "SELECT a IN (SELECT 1), a IN (SELECT NULL::int), a IN (SELECT b), a NOT IN (SELECT b WHERE b > 0) FROM t",
    "SELECT EXISTS (SELECT 1), EXISTS (SELECT 1 WHERE false), EXISTS (SELECT max(a) FROM z), NOT EXISTS "
    "(SELECT FROM z)",
    "SELECT EXISTS (TABLE t), EXISTS (VALUES (1)), 1 IN (VALUES (1), (2)), 3 IN (VALUES (1), (NULL))",
    "SELECT a FROM t WHERE EXISTS (SELECT max(x) FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a GROUP BY u.a HAVING count(*) > 1)",
    "SELECT a FROM t WHERE EXISTS (SELECT t.b FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a LIMIT 0)",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a OFFSET 1)",
    "SELECT a FROM t WHERE a IN (SELECT max(x) FROM u GROUP BY u.a)",
    "SELECT a FROM t WHERE a IN (SELECT max(x) FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE a IN (SELECT DISTINCT u.x FROM u WHERE u.a = t.b)",
    "SELECT a FROM t WHERE b IN (SELECT u.x FROM u WHERE u.a = t.a ORDER BY u.x DESC NULLS LAST LIMIT 2)",
    "SELECT a FROM t WHERE b NOT IN (SELECT u.x FROM u WHERE u.a = t.a UNION ALL SELECT v.a FROM v WHERE v.k = t.a)",
    "SELECT a FROM t WHERE b NOT IN (SELECT u.x FROM u UNION SELECT t.a)",
    "SELECT a FROM t WHERE a NOT IN (SELECT v.k FROM v)",
    "SELECT k FROM v WHERE k NOT IN (SELECT w.k FROM v w WHERE w.a = v.a AND w.k <> v.k)",
    "SELECT a, v.k IN (SELECT u.x FROM u) FROM v",
    "SELECT a FROM t WHERE (a, b) NOT IN (SELECT u.a, u.x FROM u WHERE u.c = t.c)",
    "SELECT (a, b) IN (SELECT u.a, u.x FROM u), (a, b) = ANY (SELECT u.a, u.x FROM u) FROM t",
    "SELECT (a, b) <> ALL (SELECT u.a, u.x FROM u), ROW(a, b) <> ANY (SELECT u.a, u.x FROM u) FROM t",
    "SELECT a FROM t WHERE a IN (SELECT v.a FROM v)",
    "SELECT v.a FROM v WHERE v.a IN (SELECT t.a FROM t)",
    "SELECT a FROM t WHERE a + 1 IN (SELECT u.x - 1 FROM u WHERE u.a + 1 = t.b)",
    "SELECT a FROM t WHERE 'x' IN (SELECT u.c FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE a = ALL (SELECT b FROM z) AND NOT a = ANY (SELECT b FROM z)",
    "SELECT a FROM t WHERE NOT a = ANY (SELECT x FROM u)",
    "SELECT coalesce(a IN (SELECT x FROM u), false), NOT (a IN (SELECT x FROM u) AND b IN (SELECT x FROM u)) FROM t",
    "SELECT a FROM t WHERE (EXISTS (SELECT 1 FROM u WHERE u.a = t.a)) = (b IN (SELECT x FROM u))",
    # Subqueries in what is tested.
    "SELECT a FROM t WHERE (SELECT max(x) FROM u WHERE u.a = t.a) IN (SELECT v.k FROM v)",
    "SELECT a FROM t WHERE (SELECT max(x) FROM u WHERE u.a = t.a) IN (SELECT v.a FROM v WHERE v.k = t.b)",
    # Several for the same arguments.
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.x <> t.b) AND NOT EXISTS "
    "(SELECT 1 FROM u WHERE u.a = t.a AND u.x <> t.b AND u.c = 'x')",
    "SELECT t.* FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.k > t.b) AND EXISTS (SELECT 1 FROM u WHERE u.x < t.b) "
    "AND NOT EXISTS (SELECT 1 FROM u WHERE u.a > t.b AND u.c = 'x') AND a IN (SELECT v.k FROM v)",
    "SELECT a FROM t WHERE a > ANY (SELECT u.x FROM u WHERE u.a <> t.a) AND EXISTS (SELECT 1 FROM v WHERE v.a < t.a)",
    # Several levels.
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND EXISTS (SELECT 1 FROM v WHERE v.k = u.x))",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.k = u.x AND v.a = t.a))",
    "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.k = u.x "
    "AND v.a = t.a))",
    "SELECT a FROM t WHERE a IN (SELECT u.a FROM u WHERE u.x NOT IN (SELECT v.a FROM v WHERE v.k <> t.b))",
    "SELECT a, (SELECT max((SELECT count(*) FROM v WHERE v.k = u.x AND v.a > t.a)) FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, (SELECT (SELECT (SELECT t.a + 1))) FROM t",
    "SELECT a, (SELECT count(*) FROM u WHERE u.x = (SELECT max(w.x) FROM u w WHERE w.a = u.a AND w.a = t.a)) FROM t",
    "SELECT a, (SELECT count(*) FROM u LEFT JOIN v ON v.k = u.x AND v.a = t.a WHERE u.a = t.a) FROM t",
    "SELECT a, (SELECT count(*) FROM u FULL JOIN v ON v.k = u.x AND t.b > 1) FROM t",
    "SELECT a, (SELECT count(v.k) FROM u LEFT JOIN v ON v.k < u.x + t.a) FROM t",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u LEFT JOIN v ON v.k = u.x WHERE u.a = t.a AND v.k IS NULL)",
    # Shadowing.
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t WHERE a = 1 AND b > 1)",
    "SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE a = b)",
    "SELECT a FROM t o WHERE EXISTS (SELECT 1 FROM t WHERE t.a = o.b AND o.a > a)",
    # WITH.
    "WITH w AS (SELECT a, x FROM u WHERE x > 0) SELECT a FROM t WHERE a IN (SELECT a FROM w) AND b NOT "
    "IN (SELECT x FROM w)",
    "SELECT a, (WITH w AS (SELECT x FROM u WHERE u.a = t.a) SELECT count(*) FROM w p, w q) FROM t",
    "SELECT a, (WITH w AS (SELECT t.b AS n) SELECT (SELECT max(u.x) FROM u WHERE u.a = w.n) FROM w) FROM t",
    "SELECT a FROM t WHERE EXISTS (WITH w AS (SELECT u.x FROM u WHERE u.a = t.a) "
    "SELECT 1 FROM v WHERE v.k IN (SELECT x FROM w WHERE w.x > v.a))",
)

_LATERAL = (
    "SELECT t.a, w.x FROM t, LATERAL (SELECT u.x FROM u WHERE u.a = t.a) w",
    "SELECT t.a, w.x FROM t CROSS JOIN LATERAL (SELECT u.x FROM u WHERE u.a < t.a) w",
    "SELECT t.a, w.x FROM t JOIN LATERAL (SELECT u.x FROM u WHERE u.a = t.a) w ON w.x > t.b",
    "SELECT t.a, w.x FROM t LEFT JOIN LATERAL (SELECT u.x FROM u WHERE u.a = t.a) w ON true",
    "SELECT t.a, w.x FROM t LEFT JOIN LATERAL (SELECT u.x FROM u WHERE u.a = t.a) w ON w.x > t.b",
    "SELECT t.a, w.x FROM t LEFT JOIN LATERAL (SELECT u.x FROM u WHERE u.a = t.a ORDER BY u.x, u.c LIMIT 1) w ON true",
    "SELECT t.a, w.x FROM t, LATERAL (SELECT u.x FROM u WHERE u.a = t.a ORDER BY u.x DESC NULLS LAST LIMIT 2) w",
    "SELECT t.a, w.x FROM t, LATERAL (SELECT u.x FROM u WHERE u.a >= t.a ORDER BY u.x OFFSET 1) w",
    "SELECT t.a, w.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) w",
    "SELECT t.a, w.n FROM t LEFT JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a HAVING "
    "count(*) > 1) w ON true",
    "SELECT t.a, w.x, w.n FROM t, LATERAL (SELECT u.x, count(*) AS n FROM u WHERE u.a = t.a GROUP BY u.x) w",
    "SELECT t.a, w.x FROM t, LATERAL (SELECT DISTINCT u.x FROM u WHERE u.a = t.a) w",
    "SELECT t.a, w.x FROM t, LATERAL (SELECT DISTINCT ON (u.a) u.x FROM u WHERE u.a <> t.a ORDER BY u.a, u.x, u.c) w",
    "SELECT t.a, w.x FROM t, LATERAL (SELECT u.x FROM u WHERE u.a = t.a UNION SELECT t.b) w",
    "SELECT t.a, w.x FROM t, LATERAL (SELECT u.x FROM u EXCEPT ALL SELECT t.b) w",
    "SELECT t.a, w.x FROM t, LATERAL (SELECT u.x FROM u WHERE u.a = t.a INTERSECT ALL SELECT v.a FROM v) w",
    "SELECT t.a, w.p FROM t, LATERAL (VALUES (t.a), (t.b + 1), (7)) w (p)",
    "SELECT t.a, w.r FROM t, LATERAL (SELECT rank() OVER (ORDER BY u.x) AS r FROM u WHERE u.a = t.a) w",
    "SELECT t.a, w.n, y.m FROM t, LATERAL (SELECT t.a + 1 AS n) w, LATERAL (SELECT w.n * t.b AS m) y",
    "SELECT t.a, u.x, w.n FROM t, u JOIN LATERAL (SELECT count(*) AS n FROM v WHERE v.k > u.x AND v.a = "
    "t.a) w ON w.n > 0",
    "SELECT t.a, w.x, w.k FROM t, LATERAL (SELECT u.x, y.k FROM u, LATERAL (SELECT v.k FROM v WHERE v.k "
    "= u.x AND v.a <> t.a) y) w",
    "SELECT t.a, w.x, w.k FROM t, LATERAL (SELECT u.x, v.k FROM u LEFT JOIN v ON v.k = u.x AND v.a = t.a "
    "WHERE u.a = t.a) w",
    "SELECT t.a FROM t WHERE EXISTS (SELECT 1 FROM u, LATERAL (SELECT v.a FROM v WHERE v.k = u.x LIMIT "
    "1) w WHERE w.a = t.a)",
    "SELECT t.a, (SELECT sum(w.n) FROM u, LATERAL (SELECT count(*) AS n FROM v WHERE v.k = u.x AND v.a = "
    "t.a) w) FROM t",
    "SELECT t.a, w.x FROM t RIGHT JOIN LATERAL (SELECT u.x FROM u) w ON w.x = t.a",
    "SELECT t.a, w.one FROM t, LATERAL (SELECT 1 AS one) w",
    "SELECT w.n FROM LATERAL (SELECT 1 AS n) w",
    "SELECT t.a, w.b FROM t, LATERAL (SELECT x.b FROM t x WHERE x.a = t.a AND x.n <> t.n) w",
    "SELECT t.a, w.x FROM t JOIN LATERAL (SELECT u.x FROM u WHERE u.a = t.a) w ON true LEFT JOIN v ON v.k = w.x",
    "SELECT t.a, w.x, v.k FROM (t LEFT JOIN v ON v.k = t.b) LEFT JOIN LATERAL (SELECT u.x FROM u WHERE "
    "u.a = v.k) w ON true",
)

FIXED = (*_JOINS, *_AS_OF, *(one for one in _VALUES if "z2" not in one and "SELECT FROM" not in one), *_LATERAL)


def queries(seed: int, tested: int) -> list[tuple[str, str]]:
    """Returns queries, each as it is and in PostgreSQL's own spelling: all fixed ones and `tested` combinations."""
    same = [*FIXED, *_OUTER, *random.Random(seed).sample(_TESTED, tested)]
    return [*((query, query) for query in same), *_FULL]


def combinations() -> int:
    """Returns how many combinations there are."""
    return len(_TESTED)
