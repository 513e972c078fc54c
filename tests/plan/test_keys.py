"""The unique keys that a plan claims are unique in its rows, whatever the data: elisions and join orders rely on it."""

import pytest
from hypothesis import given, settings

from mz_dagster.plan import optimize
from tests.plan.reference import Rows, rows_of
from tests.plan.test_transforms import collections, same
from tests.sql.project import bind

#: Queries over `t` with the unique key a, `v` with the unique key k, and `u` without one; and the keys they must have.
KEYED: dict[str, set[tuple[int, ...]]] = {
    "SELECT t.a, t.b, v.k, v.a FROM t LEFT JOIN v ON t.b = v.k": {(0,)},
    "SELECT t.a, t.b, v.k, v.a FROM t LEFT JOIN v ON t.b = v.a": {(0, 2)},
    "SELECT t.a, t.b, v.k, v.a FROM t RIGHT JOIN v ON t.a = v.a": {(2,)},
    "SELECT t.a, t.b, v.k, v.a FROM t FULL JOIN v ON t.a = v.k": {(0, 2)},
    "SELECT t.a, t.b, v.k, v.a FROM t FULL JOIN v ON t.b < v.a": {(0, 2)},
    "SELECT t.a, x.k FROM t LEFT JOIN LATERAL (SELECT k FROM v WHERE v.a = t.b ORDER BY k LIMIT 1) x ON true": {(0,)},
    "SELECT t.a, t.b, v.k FROM t LEFT JOIN v ON t.b = v.k LEFT JOIN v w ON v.a = w.k": {(0,)},
    "SELECT t.a, (SELECT max(v.k) FROM v WHERE v.a = t.b) AS m FROM t": {(0,)},
    "SELECT t.a, t.b IN (SELECT v.a FROM v) AS found FROM t": {(0,)},
    "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.a = t.b)": {(0,)},
    "SELECT count(*) AS n, max(t.b) AS m FROM t": {()},
}


@pytest.mark.parametrize("query", KEYED)
def test_claimed_keys_are_unique(query: str) -> None:
    relation = bind(query).relation
    plans = (relation, optimize(relation))
    for plan in plans:
        claimed = {tuple(sorted(key)) for key in plan.relation_type.keys}
        assert claimed >= KEYED[query]

    @settings(max_examples=33, deadline=None)
    @given(collections)
    def check(data: dict[str, Rows]) -> None:
        found = [rows_of(plan, data) for plan in plans]
        assert same(*found)
        rows = [row for row, n in found[0].items() for _ in range(n)]
        for key in relation.relation_type.keys:
            cells = [tuple(row[position] for position in sorted(key)) for row in rows]
            assert len(set(cells)) == len(cells), sorted(key)

    check()
