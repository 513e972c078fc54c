"""A join that looks a collection up scattered, by what is made of it, keeps what a filtered input leaves of it."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.plan import collections_read, optimize
from mz_dagster.plan.physical import Arrangement, DeltaJoin, MaintainedPlan
from tests.plan.reference import Rows, maintained_rows, rows_of
from tests.plan.test_sharing import maintained
from tests.sql.project import bind

T, V = GlobalId("u1"), GlobalId("u3")
NOT_LAST = "SELECT t.a, t.d FROM t, v WHERE v.k = t.b AND {} AND t.a < (SELECT max(x.a) FROM t x WHERE x.b = v.k)"


def kept(plan: MaintainedPlan) -> list[Arrangement]:
    """Those of the arrangements that are a join of both tables, and nothing else."""
    return [
        one for one in plan.arrangements if isinstance(one.plan, DeltaJoin) and collections_read(one.plan) == {T, V}
    ]


def data(seed: int) -> dict[str, Rows]:
    dice = random.Random(seed)

    def number() -> Decimal | None:
        return dice.choice([None, Decimal(dice.randrange(400)) / 100])

    t = Counter((a, dice.choice([None, 1, 2, 3]), None, number(), None, None) for a in range(dice.randrange(20)))
    v = Counter((k, dice.choice([None, 7, 7, 8]), None) for k in range(4))
    return {T: t, V: v}


@pytest.mark.parametrize(
    "query",
    [
        NOT_LAST.format("v.a = 7"),
        NOT_LAST.format("7 = v.a AND t.a > 3"),
        "SELECT t.a, y.a FROM t, v, t y WHERE v.k = t.b AND y.b = t.b AND v.a = 7 AND y.a > t.a",
        "SELECT t.a, n FROM t, v, (SELECT b, count(*) AS n FROM t GROUP BY b) c "
        "WHERE v.k = t.b AND c.b = v.k AND v.a = 7",
    ],
)
def test_what_the_filter_leaves_is_kept_by_what_it_is_looked_up_by(query: str) -> None:
    plan = maintained(query)
    (one,) = kept(plan)
    assert [one.relation_type.names[position] for position in one.key] == ["b"]
    plans = [other.plan for other in plan.arrangements] + [plan.output]
    (reader,) = [other for other in plans if one.id in collections_read(other)]
    assert V not in collections_read(reader), "it is not joined twice"
    relation = optimize(bind(query).relation)
    expected = [rows_of(relation, data(seed)) for seed in range(40)]
    assert [maintained_rows(plan, data(seed)) for seed in range(40)] == expected
    assert sum(map(bool, expected)) > 10


@pytest.mark.parametrize(
    "query",
    [
        # Nothing says that few rows are left.
        NOT_LAST.format("v.a > 7"),
        NOT_LAST.format("v.a = v.k"),
        NOT_LAST.format("t.c = 'x'"),
        # What is joined by no key of its own makes more rows than there were.
        "SELECT t.a FROM t, v WHERE v.a = t.b AND v.g = 7 AND t.a < (SELECT max(x.a) FROM t x WHERE x.b = v.a)",
        # By its key it is looked up where its rows lie.
        "SELECT t.a FROM t, v WHERE v.k = t.a AND v.a = 7 AND t.a < (SELECT max(x.a) FROM t x WHERE x.a = v.k)",
        # Nothing looks it up whenever it changes itself.
        "SELECT t.a FROM t, v WHERE v.k = t.b AND v.a = 7 AND t.d < (SELECT count(*) FROM u WHERE u.a = v.k)",
    ],
)
def test_elsewhere_nothing_is_kept(query: str) -> None:
    assert not kept(maintained(query))
