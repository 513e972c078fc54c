"""Queries by name, over the project of `tests/sql/project.py`: the cases of the golden plans and of the reference."""

QUERIES = {
    "share_subplans": "WITH q (p, q) AS (SELECT t.a, v.k FROM t JOIN v ON t.b = v.a) SELECT x.p, y.q FROM q x, q y "
    "WHERE x.q = y.p AND x.p > 0 UNION ALL SELECT a, b FROM (SELECT a, b, c FROM t WHERE f) z",
    "fold_constants": "SELECT a, 1 + 2 AS n FROM t WHERE 1 < 2 AND (f OR false) UNION ALL SELECT a, 4 FROM t "
    "WHERE 1 = 2 UNION ALL VALUES (1, 2), (3, -4)",
    "fuse_filters": "SELECT y.a FROM (SELECT a, b, f FROM t WHERE b > 0 AND f) y WHERE y.b > 0 AND y.a < 9",
    "fuse_maps": "SELECT y.m, y.n, v.k FROM (SELECT t.a + 1 AS m, t.a * 2 AS n FROM t JOIN u ON t.a = u.a) y, v",
    "fuse_projects": "SELECT y.b, y.a FROM (SELECT c, b, a FROM t) y",
    "flatten_joins": "SELECT y.m, v.k FROM (SELECT t.a + 1 AS m, u.x AS s FROM t JOIN u ON t.a = u.a WHERE t.b <> 0) y "
    "JOIN v ON y.m = v.a",
    "flatten_unions": "SELECT a FROM t UNION ALL (SELECT b FROM t UNION ALL SELECT a FROM v)",
    "push_predicates": "SELECT y.p FROM (SELECT t.a AS p, v.k AS q FROM t, v UNION ALL SELECT a, b FROM t) y "
    "WHERE y.p > 1 AND y.q < 5 AND y.p <> y.q",
    "join_equivalences": "SELECT t.a FROM t, u, v WHERE t.a = u.a AND u.a = v.k AND t.b = v.a AND v.k > 0",
    "join_equivalences_fallible": "SELECT t.a FROM t, v WHERE t.a + 1 = v.k",
    "split_disjunctions": "SELECT t.a FROM t, v WHERE (t.a = v.k AND t.b = 1 AND v.a > 2) OR (t.a = v.k AND t.b = 2)",
    "disjunctive_joins": "SELECT t.a, v.k FROM t JOIN v ON t.a = v.k OR t.b = v.a AND t.f",
    "lift_single_rows": "SELECT t.b, count(*) AS n, max(m.k) AS k FROM t, (SELECT max(k) AS k FROM v) m WHERE t.f "
    "GROUP BY t.b",
    "as_of_joins": "SELECT t.a, y.x, z.k FROM t LEFT JOIN LATERAL (SELECT u.x, u.ts FROM u WHERE u.x = t.c "
    "AND u.a <= t.b ORDER BY u.a DESC, u.ts LIMIT 1) y ON true JOIN LATERAL (SELECT v.k FROM v WHERE v.a >= t.b "
    "ORDER BY v.a LIMIT 1) z ON true",
    "as_of_subquery": "SELECT a, (SELECT u.a FROM u WHERE u.x = t.c AND u.a < t.b ORDER BY u.a DESC LIMIT 1) AS l "
    "FROM t WHERE a > 0",
    "as_of_distinct": "SELECT DISTINCT ON (t.a) t.a, u.a AS m, u.x FROM t JOIN u ON u.x = t.c AND t.b < u.a "
    "ORDER BY t.a, u.a, u.x DESC",
    "limited_windows": "SELECT a, b, n FROM (SELECT a, b, rank() OVER (PARTITION BY b ORDER BY a DESC) AS n FROM t) y "
    "WHERE n <= 2",
    "merge_totals": "SELECT (SELECT count(*) FROM t WHERE b = 1) AS x, (SELECT sum(a) FROM t WHERE b > 1 AND f) AS y, "
    "v.k FROM v",
    "distinct_where": "SELECT p.x, q.y FROM (SELECT count(DISTINCT a) AS x FROM t WHERE b = 1) p, "
    "(SELECT count(DISTINCT a) AS y FROM t) q",
    "sums_of_sums": "SELECT k, sum(s) AS s, sum(n) AS n, min(m) AS m FROM (SELECT b AS k, sum(a) AS s, count(f) AS n, "
    "min(c) AS m FROM t GROUP BY b, f UNION ALL SELECT a, sum(k), count(*), NULL FROM v GROUP BY a) y GROUP BY k",
    "null_rejection": "SELECT t.a, u.x FROM t LEFT JOIN v ON t.b = v.a JOIN u ON u.a = v.k",
    "numeric_key": "SELECT t.a, v.k FROM t LEFT JOIN v ON t.d = v.k",
    "demand": "SELECT u.x FROM t JOIN u USING (a) WHERE t.b > 0",
    "using": "SELECT * FROM t JOIN v USING (a)",
    "arrangement": "SELECT y.n, u.x FROM (SELECT t.a AS n FROM t JOIN v ON t.b = v.a UNION ALL SELECT k FROM v) y "
    "JOIN u ON u.a = y.n",
    "cross": "SELECT t.a, v.k FROM t, v",
    "self_join": "SELECT x.a, y.b FROM t x, t y WHERE x.a = y.b",
    "case": "SELECT CASE WHEN b > 1 THEN a WHEN b IS NULL THEN -1 ELSE b END AS n, coalesce(b, a) AS m FROM t WHERE "
    "NOT (b = 3) OR b IS NULL",
    "constant": "SELECT 1 AS one, 'x' || 'y' AS s",
    "empty": "SELECT t.a FROM t JOIN v ON t.a = v.k WHERE false",
    "reduce_elision": "SELECT y.a, y.b, count(*) AS n, sum(y.b) AS s FROM (SELECT DISTINCT a, b FROM t) y "
    "GROUP BY y.a, y.b",
    "reduce": "SELECT b, count(*) AS n, count(c) AS m, sum(d) AS s, min(a) AS lo, max(a) AS hi, "
    "string_agg(c, ',' ORDER BY a) AS l, count(DISTINCT c) AS k FROM t GROUP BY b",
    "comparable_columns": "SELECT e - timestamp '2020-01-01' AS v, count(*) AS n FROM t GROUP BY 1",
    "distinct_filtered": "SELECT b, string_agg(DISTINCT c, '-' ORDER BY c) FILTER (WHERE f) AS l, "
    "count(DISTINCT d) AS n FROM t GROUP BY b",
    "reduce_all": "SELECT count(*) AS n, max(b) AS m FROM t WHERE f",
    "having": "SELECT b, count(*) AS n FROM t GROUP BY b HAVING b > 0 AND count(*) > 1",
    "top_k": "SELECT y.a, y.b FROM (SELECT a, b FROM t ORDER BY b DESC NULLS LAST, a LIMIT 2) y",
    "distinct_on": "SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a",
    "monotonic": "SELECT x, max(a) AS m FROM u GROUP BY x",
    "except": "SELECT b FROM t EXCEPT ALL SELECT k FROM v",
    "full_joins": "SELECT t.a, v.k, u.x FROM t FULL JOIN v ON t.b = v.k FULL JOIN u ON v.a = u.a",
    "left_join": "SELECT t.a, v.k FROM t LEFT JOIN v ON t.b = v.k",
    "window": "SELECT a, b, rank() OVER (PARTITION BY b ORDER BY c) AS r FROM t",
    "view": "SELECT seen.m, v.k FROM seen JOIN v ON v.a = seen.m WHERE seen.s = 'x'",
    "scalar_subquery": "SELECT a, (SELECT x FROM u WHERE u.a > 7) AS x FROM t",
    "constant_bound": "SELECT a FROM t WHERE f OR EXISTS (SELECT 1 FROM v WHERE v.a = t.b AND v.k BETWEEN 1 AND 1 + 3)",
}
#: Queries that name mz_now(), whose rows change as time goes by.
TIMED = {
    "temporal_filters": "SELECT t.a, v.k FROM t JOIN v ON t.b = v.a "
    "WHERE mz_now() >= t.a AND mz_now() < v.k AND NOT mz_now() > t.e",
}
VIEWS = {"seen": "SELECT t.a AS m, t.b + 1 AS n, u.x AS s FROM t JOIN u ON u.a = t.a WHERE t.f"}
