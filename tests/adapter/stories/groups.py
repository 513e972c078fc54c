"""Views of groups: extremes, first rows and gathered values."""

from tests.adapter.stories import Story

_TWO = (
    "SELECT g.k, x.v FROM (SELECT DISTINCT k FROM t) AS g,"
    " LATERAL (SELECT v FROM t WHERE t.k = g.k ORDER BY v NULLS LAST LIMIT 2) AS x"
)

GROUPS = Story(
    table="CREATE TABLE t (k text, v int, s text)",
    views={
        "extremes": "SELECT k, min(v) AS low, max(v) AS high, max(s) AS last FROM t GROUP BY k",
        "best": "SELECT DISTINCT ON (k) k, v, s FROM t ORDER BY k, v DESC NULLS LAST, s",
        "two": _TWO,
        "in_order": "SELECT k, array_agg(v) AS vs, string_agg(s, '-') AS ss"
        " FROM (SELECT * FROM t ORDER BY v DESC, s, k) AS x WHERE v IS DISTINCT FROM 0 GROUP BY k",
        "windows_in_order": "SELECT v, lag(v) OVER () AS l, last_value(s) OVER () AS e, rank() OVER () AS r"
        " FROM (SELECT v, s FROM t ORDER BY s, v, k) AS x",
        "first_in_order": "SELECT k, v FROM (SELECT k, v FROM t ORDER BY s DESC, v, k) AS x LIMIT 3",
        "common_in_order": "WITH x AS (SELECT v, s FROM t ORDER BY v, s LIMIT 4) SELECT jsonb_agg(s)::text AS ss,"
        " array_agg(v) AS vs, ARRAY(SELECT v FROM (SELECT v FROM t ORDER BY v DESC) AS y) AS ws FROM x",
        "lists": "SELECT k, array_agg(v ORDER BY v) AS vs, string_agg(s, '-' ORDER BY s DESC) AS ss FROM t GROUP BY k",
    },
    writes=(
        "INSERT INTO t VALUES ('a', 1, 'x'), ('a', 2, 'y'), ('a', 2, 'y'), ('b', NULL, NULL), (NULL, 7, 'z')",
        "INSERT INTO t VALUES ('c', 2, ''), ('b', 9, 'é'), (NULL, NULL, 'é')",
        "DELETE FROM t WHERE v = 2",
        "UPDATE t SET v = 3 WHERE k = 'b'",
        "INSERT INTO t VALUES ('a', 0, NULL), ('a', NULL, ''), ('c', NULL, NULL)",
        "DELETE FROM t WHERE v = 7",
        "UPDATE t SET v = 3, s = 'x' WHERE k = 'a' OR k IS NULL",
    ),
    asked=(
        f"{_TWO} ORDER BY k, v",
        "SELECT string_agg(k, '') FROM (SELECT k FROM t ORDER BY v, s, k) AS x",
        "SELECT k, row_number() OVER () FROM (SELECT k FROM t ORDER BY s NULLS FIRST, v, k) AS x",
    ),
)
