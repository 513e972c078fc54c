"""Aggregates of aggregates are those of the rows, where that is the same."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mz_dagster.formalism import GlobalId
from tests.plan.reference import Rows, maintained_rows, rows_of
from tests.plan.test_sharing import maintained
from tests.sql.project import bind

_INNER = (
    "SELECT t.b AS a, v.a AS b, sum(v.k) AS s, count(v.a) AS n, count(*) AS m, min(v.k) AS l, max(t.a) AS g "
    "FROM t, v GROUP BY t.b, v.a"
)

#: What is selected, and how many states it has.
QUERIES = {
    f"SELECT b, sum(s) FROM ({_INNER}) y GROUP BY b": 1,
    f"SELECT b, sum(n), sum(m), sum(n) FROM ({_INNER}) y WHERE b > 1 GROUP BY b": 1,
    f"SELECT sum(s), sum(n) FROM ({_INNER}) y": 1,
    f"SELECT b, min(l), max(g) FROM ({_INNER}) y GROUP BY b": 1,
    f"SELECT b + 1, sum(s), sum(m) FROM ({_INNER}) y GROUP BY ROLLUP (b + 1)": 1,
    "SELECT k, sum(s) FROM (SELECT b AS k, sum(a) AS s FROM t GROUP BY b UNION ALL SELECT a, sum(k) FROM v GROUP BY a "
    "UNION ALL SELECT k, 7 FROM v) y GROUP BY k": 1,
    "SELECT b, sum(s) FROM (SELECT a, b, sum(s) AS s FROM (SELECT t.b AS a, v.a AS b, f, sum(k) AS s FROM t, v "
    "GROUP BY t.b, v.a, f) x GROUP BY a, b) y GROUP BY b": 1,
    f"SELECT DISTINCT b FROM ({_INNER}) y": 1,
    # A value of a row is made of another of the same row.
    "SELECT sum(c) FROM (SELECT DISTINCT f, count(*)::numeric AS c FROM t GROUP BY b, f) y": 3,
    "SELECT b, '0'::real + 0::real FROM t INTERSECT SELECT k, 0::real + 0::real FROM v": 3,
    # These need the groups.
    f"SELECT b, count(*) FROM ({_INNER}) y GROUP BY b": 2,
    f"SELECT b, sum(s) FROM ({_INNER}) y WHERE m > 1 GROUP BY b": 2,
    f"SELECT m, sum(s) FROM ({_INNER}) y GROUP BY m": 2,
    f"SELECT b, max(s) FROM ({_INNER}) y GROUP BY b": 2,
    f"SELECT b, sum(s + m) FROM ({_INNER}) y GROUP BY b": 2,
    f"SELECT b, sum(a) FROM ({_INNER}) y GROUP BY b": 2,
    f"SELECT b, sum(DISTINCT s) FROM ({_INNER}) y GROUP BY b": 3,
    "SELECT a, sum(n) FROM (SELECT t.b AS a, count(DISTINCT v.a) AS n FROM t, v GROUP BY t.b, t.f) y GROUP BY a": 3,
}


def _data(seed: int) -> dict[str, Rows]:
    dice = random.Random(seed)
    rows = ((a, dice.choice([None, 1, 2, 3]), None, None, None, None) for a in range(dice.randrange(7)))
    others = ((k, dice.choice([None, 1, 2]), None) for k in range(dice.randrange(4)))
    return {GlobalId("u1"): Counter(rows), GlobalId("u3"): Counter(others)}


@pytest.mark.parametrize("query", QUERIES)
def test_sums_of_sums_are_what_they_were(query: str) -> None:
    relation, plan = bind(query).relation, maintained(query)
    assert len(plan.arrangements) == QUERIES[query]
    found = set()
    for seed in range(40):
        expected = rows_of(relation, _data(seed))
        assert maintained_rows(plan, _data(seed)) == expected
        found.add(frozenset(expected.items()))
    assert len(found) >= 4
