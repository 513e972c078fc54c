"""Sums of floats become accumulations of their digits: in groups and without, distinct, filtered, beside others."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan import lower_to_maintained_plan, lower_to_snapshot_plan
from mz_dagster.plan.physical import Accumulate, Staged
from mz_dagster.plan.relation import Aggregate, Get, Reduce
from mz_dagster.scalars.types import BOOL, FLOAT4, FLOAT8, INT4, INT8, TEXT, Column, RelationType
from tests.plan.reference import Rows, maintained_rows, rows_of, snapshot_rows

ROWS = RelationType((Column("g", INT4), Column("x", FLOAT8), Column("y", FLOAT4), Column("f", BOOL)))
SUM, COUNT, EXACT_SUM = AggregateFunction.SUM, AggregateFunction.COUNT, AggregateFunction.EXACT_SUM
AGGREGATES = (
    Aggregate(SUM, (1,), FLOAT8),
    Aggregate(COUNT, (1,), INT8),
    Aggregate(SUM, (1,), FLOAT8, distinct=True),
    Aggregate(SUM, (2,), FLOAT4, filter=3),
    Aggregate(SUM, (1,), FLOAT8, filter=3),
    Aggregate(EXACT_SUM, (1,), TEXT),
    Aggregate(EXACT_SUM, (1, 1), TEXT, filter=3),
    Aggregate(EXACT_SUM, (2, 2), TEXT),
    Aggregate(EXACT_SUM, (1, 1), TEXT, distinct=True),
)
VALUES = (None, 0.1, 0.2, 0.3, -0.1, 1e300, -1e300, 1e16, 1.0, 5e-324, math.inf, -1e-300)


def reduction(key: tuple[int, ...]) -> Reduce:
    get = Get(GlobalId("r"), ROWS, "r")
    return Reduce(get, key, AGGREGATES, tuple(f"a{i}" for i in range(len(AGGREGATES))))


@pytest.mark.parametrize("key", [(0,), ()])
@pytest.mark.parametrize("seed", range(20))
def test_float_sums_are_exact_however_they_are_planned(key: tuple[int, ...], seed: int) -> None:
    pick = random.Random(seed)
    rows: Rows = Counter()
    for _ in range(pick.randrange(12)):
        # Exact in single precision, too, so that sums of both are the same.
        y = pick.choice([None, 0.5, -2.0, 1024.25])
        row = (pick.choice([None, 1, 2]), pick.choice(VALUES), y, pick.choice([None, True, False]))
        rows[row] += pick.randint(1, 3)
    relation, data = reduction(key), {"r": rows}
    expected = rows_of(relation, data)
    assert snapshot_rows(lower_to_snapshot_plan(relation), data) == expected
    assert maintained_rows(lower_to_maintained_plan(relation, relation.relation_type.names), data) == expected


def test_equal_sums_share_their_state() -> None:
    get = Get(GlobalId("r"), ROWS, "r")
    plan = lower_to_maintained_plan(Reduce(get, (0,), (AGGREGATES[0], AGGREGATES[0]), ("a", "b")), ("g", "a", "b"))
    kinds = [type(one.plan) for one in plan.arrangements]
    assert kinds == [Accumulate, Staged]


def test_all_sums_share_one_state_and_distinct_ones_of_one_argument_another() -> None:
    get = Get(GlobalId("r"), ROWS, "r")
    factors = ((1,), (1, 1), (1, 2), (2, 2))
    plain = [Aggregate(EXACT_SUM, one, TEXT) for one in factors]
    distinct = [Aggregate(EXACT_SUM, one, TEXT, distinct=True) for one in factors[:2]]
    relation = Reduce(get, (0,), (*plain, *distinct, AGGREGATES[0]), tuple(f"a{i}" for i in range(7)))
    plan = lower_to_maintained_plan(relation, relation.relation_type.names)
    kinds = [type(one.plan) for one in plan.arrangements]
    assert kinds == [Accumulate, Staged, Accumulate, Accumulate, Staged]
