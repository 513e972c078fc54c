"""Plans of views whose states are on disk are the same from release to release, unless one says otherwise.

A project whose views are planned otherwise than they were hydrates them anew, whatever their size. So a digest here
that is another is a line in the changelog, or a mistake: of a field that has come to a node, or to a type.
"""

from __future__ import annotations

import pytest

from mz_dagster.adapter.plan_digest import is_planned_as, plan_digest
from tests.plan.test_sharing import maintained

#: What is selected, and the beginning of its digest, that of the arrangements.
QUERIES = {
    "SELECT b, count(*), sum(a), sum(d) FROM t GROUP BY b": "183db466408d6d4a",
    "SELECT b, count(DISTINCT a), min(c), max(e) FROM t GROUP BY b": "128c33d62fd3ded5",
    "SELECT DISTINCT c FROM t": "9ad3e04bce10574c",
    "SELECT a FROM (SELECT a, d FROM t ORDER BY d LIMIT 3) AS y": "9ae4e64fbb9cc8ed",
    "SELECT b, array_agg(a ORDER BY d), rank() OVER (ORDER BY b) FROM t GROUP BY b": "9a39224ccb808608",
    "SELECT t.c, count(*) FROM t JOIN v ON t.b = v.k LEFT JOIN u ON u.a = t.a GROUP BY t.c": "49795d6e70394b08",
    "SELECT a, b FROM t INTERSECT SELECT k, a FROM v": "6862859b8db43004",
}


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_kept_is_planned_as_it_was(query: str) -> None:
    plan = maintained(query)
    assert plan.arrangements
    assert plan_digest(plan)[:16] == QUERIES[query]


def test_a_digest_is_of_what_the_view_makes_of_its_arrangements_too() -> None:
    first, second = (plan_digest(maintained(f"SELECT b, count(*) + {one} FROM t GROUP BY b")) for one in (1, 2))
    assert len(first) == 128
    assert first[:64] == second[:64]
    assert first[64:] != second[64:]
    kept = maintained("SELECT b, count(*) + 1 FROM t GROUP BY b")
    assert [is_planned_as(kept, one) for one in (first, first[:64], second, second[64:])] == [True, True, False, False]
