"""Totals of one input side by side are one state, with what each of them was."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.plan import optimize
from mz_dagster.plan.relation import Join
from mz_dagster.plan.rewriting import nodes_of
from mz_dagster.plan.transform import merge_totals
from tests.plan.reference import Rows, maintained_rows, rows_of
from tests.plan.test_sharing import maintained
from tests.sql.project import bind

#: What is selected, and how many states it has.
MERGED = {
    "SELECT (SELECT count(*) FROM t WHERE b = 1) AS x, (SELECT sum(a) FROM t WHERE b > 1) AS y": 1,
    "SELECT (SELECT count(*) FROM t) AS x, (SELECT count(b) FROM t WHERE a > 2) AS y, (SELECT count(*) FROM t) AS z": 1,
    "SELECT (SELECT coalesce(sum(b), 7) FROM t WHERE a < 2 AND b < 3) AS x, (SELECT sum(b) FROM t WHERE a > 1) AS y": 1,
    # The join of both is kept, as the greatest value is a tournament of its own.
    "SELECT x, y, z FROM (SELECT count(*) AS x, max(b) AS y FROM t WHERE a > 1) AS p, "
    "(SELECT min(b) AS z FROM t WHERE a <= 1) AS q": 2,
    "SELECT x, y FROM (SELECT count(DISTINCT b) AS x FROM t WHERE a > 1) AS p, "
    "(SELECT count(DISTINCT b) AS y, sum(DISTINCT b) AS z FROM t WHERE a <= 2) AS q": 2,
    # What can fail is computed where the filter before it has passed.
    "SELECT x, y FROM (SELECT sum(2147483645 + b) AS x FROM t WHERE b < 3) AS p, "
    "(SELECT count(*) AS y FROM t WHERE b = 3) AS q": 1,
    # Beside what is looked up.
    "SELECT v.k, (SELECT count(*) FROM t WHERE b = 1) AS x, (SELECT sum(b) FROM t WHERE a = 1) AS y, t.a "
    "FROM t JOIN v ON t.b = v.k": 1,
    # Of a join, which is kept no more.
    "SELECT (SELECT count(*) FROM t JOIN v ON t.b = v.k WHERE t.a > 1) AS x, "
    "(SELECT count(*) FROM t JOIN v ON t.b = v.k WHERE t.a <= 1) AS y": 1,
}
#: These stay apart: a list is none that is merged, nor is what reads something else, or is compared.
APART = (
    "SELECT (SELECT array_agg(a) FROM t WHERE b = 1) AS x, (SELECT array_agg(a) FROM t WHERE b = 2) AS y",
    "SELECT (SELECT count(*) FROM t WHERE b = 1) AS x, (SELECT count(*) FROM v WHERE a = 1) AS y",
    "SELECT x FROM (SELECT count(*) AS x FROM t WHERE b = 1) p, (SELECT count(*) AS y FROM t WHERE b = 2) q "
    "WHERE x = y",
)


def _data(seed: int) -> dict[str, Rows]:
    dice = random.Random(seed)
    rows = ((a, dice.choice([None, 1, 2, 3]), None, None, None, None) for a in range(dice.randrange(6)))
    others = ((k, dice.choice([None, 1]), None) for k in range(dice.randrange(4)))
    return {GlobalId("u1"): Counter(rows), GlobalId("u3"): Counter(others)}


@pytest.mark.parametrize("query", [*MERGED, *APART])
def test_merged_totals_are_what_they_were(query: str) -> None:
    relation, plan = bind(query).relation, maintained(query)
    if query in MERGED:
        assert len(plan.arrangements) == MERGED[query]
    found = set()
    for seed in range(40):
        expected = rows_of(relation, _data(seed))
        assert maintained_rows(plan, _data(seed)) == expected
        found.add(tuple(expected.elements()))
    assert len(found) >= 4


@pytest.mark.parametrize("query", APART)
def test_what_may_fail_or_reads_something_else_stays_apart(query: str) -> None:
    relation = optimize(bind(query).relation)
    assert merge_totals(relation) == relation
    (join,) = [one for one in nodes_of(relation) if isinstance(one, Join)]
    assert len(join.inputs) == 2
