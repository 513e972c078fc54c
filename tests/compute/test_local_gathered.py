"""Ordered aggregates in this process: after every step a state is what the aggregates are of the content."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from mz_dagster.compute.algebra.gathering import TOO_MANY_BYTES, TOO_MANY_ELEMENTS
from mz_dagster.compute.local import elements
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.gathered import gathered_updates
from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Gathered, ReadCollection, Staged
from mz_dagster.plan.relation import Aggregate, ColumnOrder
from mz_dagster.scalars.types import BYTEA, FLOAT8, INT4, INT8, TEXT, Column, RelationType, array_of
from tests.budgets import SetBudget
from tests.compute.contents import Row, at, is_error
from tests.compute.staged_reference import result
from tests.compute.test_local_staged import BY_F, BY_T, BY_X, INPUT, TIMES, Life, is_top, random_history


def array_agg(position: int, *order: ColumnOrder, filter: int | None = None) -> Aggregate:
    type_ = array_of(INPUT.columns[position].type)
    return Aggregate(AggregateFunction.ARRAY_AGG, (position,), type_, filter=filter, order=order)


def string_agg(value: int, separator: int, *order: ColumnOrder) -> Aggregate:
    return Aggregate(AggregateFunction.STRING_AGG, (value, separator), TEXT, order=order)


def node_of(group: tuple[int, ...], *aggregates: Aggregate, once: bool = False) -> Staged:
    results = [Column(f"r{i}", one.type) for i, one in enumerate(aggregates)]
    columns = (Column("level", INT4, False), Column("bucket", INT8, False), *INPUT.columns, *results)
    function = Gathered(tuple(aggregates))
    return Staged(ReadCollection(GlobalId("in"), INPUT), group, function, (1,), False, RelationType(columns), once)


AGGREGATES = (
    array_agg(1), array_agg(2, BY_X, filter=3), array_agg(4, BY_F, BY_T), string_agg(2, 2, BY_X), string_agg(2, 2),
)  # fmt: skip


@pytest.mark.parametrize("group", [(0,), (), (0, 3)])
@pytest.mark.parametrize("seed", range(6))
def test_the_state_is_what_is_gathered_after_every_step(group: tuple[int, ...], seed: int) -> None:
    node, source = node_of(group, *AGGREGATES), random.Random(seed)
    history, life = random_history(source, 60, grows=False), Life(node, source, gathered_updates)
    several = sorted({0, source.randrange(1, TIMES), source.randrange(1, TIMES), TIMES})
    for lower, upper in pairwise(several if seed % 2 else range(TIMES + 1)):
        life.step([one for one in history if lower <= one[1] < upper])
        for time in range(upper):
            state, whole = at(life.state, time), at(history, time)
            last = {row if is_error(row) else row[2:]: n for row, n in state.items() if is_top(node, row)}
            assert last == result(node, whole), f"the result at {time}"
            lowest = {row[2 : 2 + INPUT.arity]: n for row, n in state.items() if not is_error(row) and row[0] == 0}
            assert lowest == {row: n for row, n in whole.items() if not is_error(row)}


def test_groups_of_equal_results_are_told_apart() -> None:
    life = Life(node_of((0,), array_agg(2)), random.Random(1), gathered_updates)
    life.step([((group, None, "a", None, None), 3, 1) for group in (1, 2, None)])
    assert {row[2:] for row, _, _ in life.state if row[0] == 1} == {
        (group, None, None, None, None, ("a",)) for group in (1, 2, None)
    }


def test_bytes_are_gathered_as_texts_are() -> None:
    input_ = RelationType((Column("g", INT4), Column("b", BYTEA), Column("s", BYTEA)))
    one = Aggregate(AggregateFunction.STRING_AGG, (1, 2), BYTEA)
    columns = (Column("level", INT4, False), Column("bucket", INT8, False), *input_.columns, Column("r", BYTEA))
    node = Staged(
        ReadCollection(GlobalId("in"), input_), (0,), Gathered((one,)), (1,), False, RelationType(columns), True
    )
    life = Life(node, random.Random(1), gathered_updates)
    life.step([((1, b"\0a", b"-"), 3, 2), ((1, b"c", None), 3, 1), ((2, None, b"-"), 3, 1)])
    assert [(row[2:], diff) for row, _, diff in life.state] == [
        ((1, None, None, b"\0a-\0ac"), 1),
        ((2, None, None, None), 1),
    ]


def test_floats_are_gathered_in_their_order_and_both_zeros_are_kept() -> None:
    input_ = RelationType((Column("g", INT4), Column("x", FLOAT8), Column("n", INT4)))
    one = Aggregate(AggregateFunction.ARRAY_AGG, (1,), array_of(FLOAT8), order=(ColumnOrder(1, True, False),))
    other = Aggregate(AggregateFunction.ARRAY_AGG, (2,), array_of(INT4), order=(ColumnOrder(1, False, False),))
    columns = (
        *(Column("level", INT4, False), Column("bucket", INT8, False), *input_.columns),
        *(Column("r", one.type), Column("s", other.type)),
    )
    node = Staged(
        ReadCollection(GlobalId("in"), input_), (0,), Gathered((one, other)), (1,), False, RelationType(columns)
    )
    life = Life(node, random.Random(1), gathered_updates)
    values = [0.0, -0.0, math.nan, None, math.inf, -1.5, -math.inf]
    life.step([((1, value, number), 3, 1) for number, value in enumerate(values)])
    # The zeros are equal: the row's next column decides.
    assert [str(row[5:]) for row, _, _ in life.state if row[0] == 1] == [
        "((nan, inf, 0.0, -0.0, -1.5, -inf, None), (6, 5, 0, 1, 4, 2, 3))"
    ]
    life.step([((1, -0.0, 1), 4, -1)])
    assert {str(row[5]): diff for row, time, diff in life.state if row[0] == 1 and time == 4} == {
        "(nan, inf, 0.0, -1.5, -inf, None)": 1,
        "(nan, inf, 0.0, -0.0, -1.5, -inf, None)": -1,
    }


def test_what_runs_once_has_the_result_only() -> None:
    life = Life(node_of((0,), *AGGREGATES, once=True), random.Random(2), gathered_updates)
    life.step([(row, 0, diff) for row, _, diff in random_history(random.Random(2), 20, grows=True)])
    assert {row[0] for row, _, _ in life.state if not is_error(row)} == {1}


def test_what_postgresql_could_not_hold_is_an_error_of_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    row, other = (1, None, "ab", None, None), (2, None, "c", None, None)
    monkeypatch.setattr(elements, "MOST_ELEMENTS", 2)
    monkeypatch.setattr(elements, "MOST_BYTES", 8)
    for aggregate, error in ((array_agg(1), TOO_MANY_ELEMENTS), (string_agg(2, 2), TOO_MANY_BYTES)):
        node = node_of((0,), aggregate)
        life = Life(node, random.Random(1), gathered_updates)

        def told(time: int, node: Staged = node, life: Life = life) -> Counter[Row]:
            return Counter({row: n for row, n in at(life.state, time).items() if is_top(node, row)})

        life.step([(row, 3, 2), (other, 3, 1)])
        assert set(told(3).values()) == {1}
        assert len(told(3)) == 2
        life.step([(row, 4, 1)])
        assert [one for one in told(4) if is_error(one)] == [("error", error)]
        assert len(told(4)) == 2, "the other group is what it was"
        life.step([(row, 5, -1)])
        assert told(5) == told(3)
        # However many there are: none of them is made.
        life.step([(row, 6, 2**60)])
        assert told(6) == told(4)


def test_versions_with_many_elements_are_left_to_spark(set_budget: SetBudget) -> None:
    life = Life(node_of((0,), array_agg(1)), random.Random(1), gathered_updates)
    set_budget(versioned_rows=2)
    life.step([((1, None, "ab", None, None), 3, 2)])
    with pytest.raises(Declined, match="many rows"):
        life.step([((1, None, "ab", None, None), 4, 1)])
