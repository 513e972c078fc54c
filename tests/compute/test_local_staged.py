"""Tournaments held in this process have the updates that their definition gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mz_dagster.compute.local import bucket_pruning
from mz_dagster.compute.local import staged as staged_module
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.gathered import gathered_updates
from mz_dagster.compute.local.staged import staged_updates
from mz_dagster.compute.local.tournament import KERNELS, changed_levels
from mz_dagster.compute.local.windowed import windowed_updates
from mz_dagster.formalism import GlobalId
from mz_dagster.formalism import Update as Told
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Extremes, Gathered, ReadCollection, Staged, StageFunction, TopRows, Windowed
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.scalars.types import BOOL, DATE, INT4, INT8, TEXT, Column, RelationType, numeric
from mz_dagster.storage.shards import MultiplicityOverflow
from tests.budgets import SetBudget
from tests.compute.contents import Row, Update, at, exact, is_error
from tests.compute.staged_reference import NEGATIVE, check_levels, identical, never_retracted, result
from tests.compute.staged_shapes import STAGED_SHAPES, random_updates
from tests.compute.staged_shapes import TIMES as LATEST
from tests.compute.test_local_accumulate import table, told

TIMES = 8
INPUT = RelationType(
    (Column("g", INT4), Column("x", numeric(2)), Column("t", TEXT), Column("f", BOOL), Column("d", DATE))
)
ARITY = INPUT.arity
BY_X = ColumnOrder(1, descending=True, nulls_first=False)
BY_T = ColumnOrder(2, descending=False, nulls_first=True)
BY_F = ColumnOrder(3, descending=True, nulls_first=True)
MIN, MAX = AggregateFunction.MIN, AggregateFunction.MAX
#: What advances a state, where it is no tournament.
ADVANCED: dict[type, Callable[..., pa.Table]] = {Gathered: gathered_updates, Windowed: windowed_updates}


def staged(function: StageFunction, *buckets: int, group: tuple[int, ...] = (0,), monotonic: bool = False) -> Staged:
    columns = (Column("level", INT4, False), Column("bucket", INT8, False), *INPUT.columns)
    return Staged(ReadCollection(GlobalId("in"), INPUT), group, function, buckets, monotonic, RelationType(columns))


NODES = {
    "top rows": staged(TopRows((BY_X, BY_T), 2, 1), 1),
    "top rows in two stages": staged(TopRows((BY_X, BY_T), 2, 1), 4, 1),
    "top rows in three stages": staged(TopRows((BY_F, BY_X), 3), 16, 4, 1, group=()),
    "top rows with ties": staged(TopRows((BY_X,), 2, ties=True), 1),
    "top rows with ties in stages": staged(TopRows((BY_T, BY_F), 2, ties=True), 8, 2, 1, group=()),
    "monotonic top rows with ties": staged(TopRows((BY_T,), 1, ties=True), 1, monotonic=True),
    "no rows": staged(TopRows((BY_X,), 0), 4, 1),
    "all rows but the first": staged(TopRows((BY_X,), None, 1), 1),
    "each row once": staged(TopRows((), 1), 1, group=(0, 1, 2, 3, 4)),
    "extremes": staged(Extremes((MIN, MAX, MIN, MAX)), 1),
    "extremes in three stages": staged(Extremes((MAX, MIN, MAX, MIN, MAX)), 16, 4, 1, group=()),
    "an extreme in two stages": staged(Extremes((MAX,)), 8, 1, group=(0, 2, 3, 4)),
    "an extreme of few groups": staged(Extremes((MIN,)), 8, 4, 1, group=(0, 3, 2, 4)),
    "monotonic top rows": staged(TopRows((BY_T,), 3), 1, monotonic=True),
    "monotonic rows, each once": staged(TopRows((), 1), 1, group=(0, 1, 2, 3, 4), monotonic=True),
    "monotonic rows, each twice": staged(TopRows((), 2), 1, group=(0, 1, 2, 3, 4), monotonic=True),
    "monotonic extremes": staged(Extremes((MIN, MAX, MIN, MAX)), 1, monotonic=True),
}


def random_history(source: random.Random, updates: int, *, grows: bool) -> list[Update]:
    """Returns updates after which no row but those of errors has a negative multiplicity."""
    found: list[Update] = []
    held: Counter[Row] = Counter()
    for number in range(updates):
        time = TIMES * number // updates
        if source.random() < 0.1:
            found.append((("error", f"22000 bad record {source.randrange(2)}"), time, source.choice([-1, 1])))
        elif not grows and held and source.random() < 0.5:
            row = source.choice(sorted(held, key=str))
            diff = source.randrange(held[row]) + 1
            held[row] -= diff
            held = +held
            found.append((row, time, -diff))
        else:
            row = (
                source.choice([None, 1, 2]),
                source.choice([None, Decimal("-0.50"), Decimal("0.00"), Decimal("12.25"), Decimal("3.00")]),
                source.choice([None, "", "a", "B", "é", "\U0001f600", "\uffff"]),
                source.choice([None, True, False]),
                source.choice([None, date(1969, 1, 1), date(2024, 2, 29)]),
            )
            diff = source.choice([1, 1, 2])
            held[row] += diff
            found.append((row, time, diff))
    source.shuffle(found)
    return found


def updates_of(updates: list[Update]) -> list[Told[Row, int]]:
    return [Told(row, time, diff) for row, time, diff in updates]


class Life:
    """Is a tournament through its steps: its state, each step's lookups being checked to be enough."""

    def __init__(self, node: Staged, source: random.Random, advanced: Callable[..., pa.Table] = staged_updates) -> None:
        self._node = node
        self._source = source
        self._advanced = advanced
        self.state: list[Update] = []

    def step(self, changes: list[Update]) -> None:
        given = table(self._node.input.relation_type.columns, updates_of(changes))
        updates = self._advanced(given, self._node, self.lookup)
        found = told(updates)
        good = updates.filter(pc.is_null(updates.column("mz_error")))
        assert len(good) == sum(not is_error(one.data) for one in found), "each row once, and none that cancel"
        self.state += [(one.data, one.time, one.diff) for one in found]

    def lookup(self, keys: object) -> pa.Table:
        assert isinstance(keys, dict)
        wanted = {identical(exact(row)) for row in zip(*(keys[position].to_pylist() for position in keys), strict=True)}
        rows = [one for one in self.state if is_error(one[0]) or identical(tuple(one[0][p] for p in keys)) in wanted]
        # A lookup may find more than was asked for.
        rows += [one for one in self.state if one not in rows and self._source.random() < 0.5]
        return table(self._node.relation_type.columns, updates_of(rows))


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize(
    ("seed", "spared"),
    [
        (0, False),
        (1, True),
        *(
            pytest.param(seed, spared, marks=pytest.mark.deep)
            for seed in range(12)
            for spared in (False, True)
            if seed > 1 or seed != spared
        ),
    ],
)
def test_the_state_is_the_tournament_recomputed_after_every_step(
    name: str, seed: int, spared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_pruning, "_MANY_BUCKETS", 0 if spared else 10**9)
    node, source = NODES[name], random.Random(seed)
    history = random_history(source, 60, grows=node.monotonic)
    life = Life(node, source)
    # Each time by itself, whose changes are worked out at once, or several together.
    several = sorted({0, source.randrange(1, TIMES), source.randrange(1, TIMES), TIMES})
    cuts = several if seed % 2 else range(TIMES + 1)
    for lower, upper in pairwise(cuts):
        life.step([one for one in history if lower <= one[1] < upper])
        for time in range(upper):
            state, whole = at(life.state, time), at(history, time)
            last = {row if is_error(row) else row[2:]: n for row, n in state.items() if is_top(node, row)}
            assert last == result(node, whole), f"the result at {time}"
            if not node.monotonic:
                lowest = {row[2:]: n for row, n in state.items() if not is_error(row) and row[0] == 0}
                assert lowest == {row: n for row, n in whole.items() if not is_error(row)}
                check_levels(node, state, ARITY)


@pytest.mark.parametrize("name", [name for name in NODES if "extreme" in name])
@pytest.mark.parametrize("seed", [0, 1])
def test_what_has_no_kernel_is_computed_by_its_algebra(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in list(KERNELS):
        monkeypatch.delitem(KERNELS, one)
    test_the_state_is_the_tournament_recomputed_after_every_step(name, seed, False, monkeypatch)


@pytest.mark.parametrize("name", [name for name in NODES if name != "monotonic rows, each once"])
def test_changes_at_one_time_are_worked_out_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the updates that come of going through the places one by one."""
    node, source = NODES[name], random.Random(3)
    history = random_history(source, 60, grows=node.monotonic)
    lives = Life(node, random.Random(1)), Life(node, random.Random(1))
    asked: list[int] = []

    def counted(*of: Any) -> Any:
        asked.append(1)
        return changed_levels(*of)

    monkeypatch.setattr(staged_module, "changed_levels", counted)
    for time in range(TIMES):
        changes = [one for one in history if one[1] == time]
        monkeypatch.setattr(staged_module, "_are_small", lambda *_: True)
        lives[0].step(changes)
        count = len(asked)
        monkeypatch.setattr(staged_module, "_are_small", lambda *_: False)
        lives[1].step(changes)
        assert len(asked) == count
        assert Counter(lives[0].state) == Counter(lives[1].state)
    assert asked


def is_top(node: Staged, row: Row) -> bool:
    return is_error(row) or row[0] == node.last_level


def updates(*rows: tuple[int, int]) -> pa.Table:
    """Returns changes of rows that have nothing but a group, each `(group, diff)`, at time 3."""
    return table(INPUT.columns, [Told((group, None, None, None, None), 3, diff) for group, diff in rows])


def nothing(node: Staged) -> pa.Table:
    return table(node.relation_type.columns, [])


@pytest.mark.parametrize("name", ["extremes", "monotonic extremes"])
def test_a_retraction_in_the_same_time_as_what_it_retracts_is_none(name: str) -> None:
    node = NODES[name]
    assert not staged_updates(updates((1, -1), (1, 1)), node, lambda _: nothing(node)).num_rows


@pytest.mark.deep
@pytest.mark.parametrize("name", STAGED_SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_the_state_is_the_tournament_recomputed_whatever_the_data_are(name: str, seed: int) -> None:
    """Of floats of all kinds, negative multiplicities and retractions of what never retracts, in any intervals."""
    node, source = STAGED_SHAPES[name], random.Random(seed)
    history = random_updates(source, range(12 if node.group else 1), errors=3)
    life = Life(node, source, ADVANCED.get(type(node.function), staged_updates))
    cuts = sorted({0, *(source.randrange(1, LATEST) for _ in range(3 if seed else LATEST)), LATEST})
    for lower, upper in pairwise(cuts):
        life.step([one for one in history if lower <= one[1] < upper])
        for time in range(upper):
            whole = never_retracted(history, 0, time) if node.monotonic else at(history, time)
            state = at(life.state, time)
            last = {row if is_error(row) else row[2:]: n for row, n in state.items() if is_top(node, row)}
            assert last == result(node, whole), f"the result at {time}"


@pytest.mark.parametrize("name", ["top rows in two stages", "an extreme in two stages"])
def test_a_row_that_is_not_there_is_an_error_of_a_bucket_that_is_spared(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_pruning, "_MANY_BUCKETS", 0)
    node = NODES[name]
    life = Life(node, random.Random(1))
    life.step([((1, Decimal(2), None, None, None), 1, 1), ((1, Decimal(1), None, None, None), 1, 1)])
    life.step([((1, Decimal(1), None, None, None), 2, -2)])
    life.step([((1, Decimal(0), None, None, None), 3, -1)])
    assert [one for one in life.state if is_error(one[0])] == [(NEGATIVE, 2, 1), (NEGATIVE, 3, 1)]


def test_few_rows_of_a_large_group_are_looked_at() -> None:
    """What changes are not its first rows, so their buckets are not opened."""
    node = staged(TopRows((BY_X,), 1), 8, 1)
    life = Life(node, random.Random(1))
    rows = [((1, Decimal(number), None, None, None), 1, 1) for number in range(200)]
    life.step(rows)
    asked: list[set[int]] = []

    def lookup(keys: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        asked.append(set(keys))
        return life.lookup(keys)

    staged_updates(table(INPUT.columns, updates_of([(row, 2, -1) for row, *_ in rows[:50]])), node, lookup)
    assert asked == [{0, 1, 2}, {0, *range(2, 7)}]


def test_diffs_whose_sum_is_out_of_range_are_told_here() -> None:
    node = NODES["top rows"]
    staged_updates(updates((1, 2**61), (1, 2**61)), node, lambda _: nothing(node))
    with pytest.raises(MultiplicityOverflow, match="out of range"):
        staged_updates(updates((1, 2**62), (1, 2**62)), node, lambda _: nothing(node))


def test_versions_with_many_rows_are_left_to_spark(set_budget: SetBudget) -> None:
    set_budget(versioned_rows=2)
    node = NODES["top rows"]
    staged_updates(updates((1, 1), (2, 1)), node, lambda _: nothing(node))
    state = table(node.relation_type.columns, [Told((0, 0, 1, None, None, True, None), 1, 1)])
    with pytest.raises(Declined, match="many rows"):
        staged_updates(updates((1, 1), (2, 1)), node, lambda _: state)


def test_lookups_ask_for_each_level_of_each_bucket() -> None:
    node = NODES["top rows in three stages"]
    asked: list[object] = []

    def lookup(keys: object) -> pa.Table:
        asked.append(keys)
        return nothing(node)

    staged_updates(updates((1, 1)), node, lookup)
    [keys] = asked
    assert isinstance(keys, dict)
    levels, buckets = keys[0].to_pylist(), keys[1].to_pylist()
    assert levels == [0, 1, 2]
    assert [one < n for one, n in zip(buckets, node.buckets, strict=True)] == [True] * 3
    assert buckets[1] == buckets[0] % 4
    assert buckets[2] == 0
    # Errors alone ask for nothing.
    assert not staged_updates(updates((1, 1)).slice(0, 0), node, lookup).num_rows
    assert len(asked) == 1
