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
    asked=(f"{_TWO} ORDER BY k, v",),
)
