"""Window functions in this process: a state goes through its steps. What functions say is `test_windowed`'s."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.window_reach import near
from mz_dagster.compute.local.windowed import windowed_updates
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ReadCollection, Staged, Windowed
from mz_dagster.plan.relation import FrameBound, FrameExclusion, FrameUnit, WindowFrame, WindowFunction
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import INT4, INT8, TEXT, Column, RelationType, numeric
from tests.budgets import SetBudget
from tests.compute.contents import Row, Update, at, is_error
from tests.compute.staged_reference import result
from tests.compute.test_local_staged import ARITY, BY_T, BY_X, INPUT, TIMES, Life, is_top, random_history

ROWS_BEFORE = WindowFrame(
    FrameUnit.ROWS, FrameBound(False, Literal(1, INT8), preceding=True), FrameBound(False, Literal(0, INT8))
)
FUNCTIONS = (
    WindowFunction("row_number", (), INT8, False),
    WindowFunction("lag", (2,), TEXT),
    WindowFunction("sum", (1,), numeric(2), frame=ROWS_BEFORE),
)


def node_of(group: tuple[int, ...], functions: Sequence[WindowFunction] = FUNCTIONS, *, once: bool = False) -> Staged:
    results = [Column(f"r{i}", one.type) for i, one in enumerate(functions)]
    columns = (Column("level", INT4, False), Column("bucket", INT8, False), *INPUT.columns, *results)
    function = Windowed((BY_X, BY_T), tuple(functions))
    return Staged(ReadCollection(GlobalId("in"), INPUT), group, function, (1,), False, RelationType(columns), once)


@pytest.mark.parametrize("group", [(0,), (), (0, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_the_state_is_the_windows_recomputed_after_every_step(group: tuple[int, ...], seed: int) -> None:
    node, source = node_of(group), random.Random(seed)
    history, life = random_history(source, 60, grows=False), Life(node, source, windowed_updates)
    several = sorted({0, source.randrange(1, TIMES), source.randrange(1, TIMES), TIMES})
    for lower, upper in pairwise(several if seed % 2 else range(TIMES + 1)):
        life.step([one for one in history if lower <= one[1] < upper])
        for time in range(upper):
            state, whole = at(life.state, time), at(history, time)
            last = {row if is_error(row) else row[2:]: n for row, n in state.items() if is_top(node, row)}
            assert last == result(node, whole), f"the result at {time}"
            lowest = {row[2 : 2 + ARITY]: n for row, n in state.items() if not is_error(row) and row[0] == 0}
            assert lowest == {row: n for row, n in whole.items() if not is_error(row)}


def test_what_runs_once_has_the_result_only() -> None:
    node = node_of((0,), once=True)
    history = random_history(random.Random(2), 20, grows=True)
    life = Life(node, random.Random(2), windowed_updates)
    life.step([(row, 0, diff) for row, _, diff in history])
    assert {row[0] for row, _, _ in life.state if not is_error(row)} == {1}


def row_of(group: int, number: str | None = None) -> Row:
    return (group, None if number is None else Decimal(number), None, None, None)


@pytest.mark.parametrize(
    ("change", "functions", "error"),
    [
        ((row_of(1), 3, -1), FUNCTIONS, "XX001 a row has a negative multiplicity"),
        ((row_of(1, "9" * 36 + ".99"), 3, 2), FUNCTIONS, "22003 numeric field overflow"),
        (
            (row_of(0), 3, 1),
            (WindowFunction("ntile", (0,), INT4),),
            "22014 argument of ntile must be greater than zero",
        ),
        (
            (row_of(0), 3, 1),
            (WindowFunction("nth_value", (2, 0), TEXT, frame=ROWS_BEFORE),),
            "22016 argument of nth_value must be greater than zero",
        ),
    ],
)
def test_what_is_wrong_in_the_data_is_an_error_that_goes_with_it(
    change: Update, functions: Sequence[WindowFunction], error: str
) -> None:
    life = Life(node_of((0,), functions), random.Random(1), windowed_updates)
    life.step([change])
    assert at(life.state, 3)["error", error] == 1
    life.step([(change[0], 4, -change[2])])
    assert not at(life.state, 4)


def test_versions_with_many_rows_are_left_to_spark(set_budget: SetBudget) -> None:
    set_budget(versioned_rows=2)
    with pytest.raises(Declined, match="many rows"):
        Life(node_of((0,)), random.Random(1), windowed_updates).step([(row_of(1), 3, 3)])


CURRENT = WindowFrame(FrameUnit.ROWS, FrameBound(False, Literal(0, INT8)), FrameBound(False, Literal(0, INT8)))
NEAR = tuple(
    WindowFrame(FrameUnit.ROWS, FrameBound(False, Literal(3, INT8), preceding=True), end, exclusion)
    for end in (FrameBound(False, Literal(1, INT8), preceding=True), FrameBound(False, Literal(2, INT8)))
    for exclusion in (FrameExclusion.NO_OTHERS, FrameExclusion.CURRENT_ROW)
)
#: Functions that see so few rows away, and by what they are partitioned.
SEEN: tuple[tuple[tuple[int, ...], tuple[WindowFunction, ...]], ...] = (
    ((0,), (WindowFunction("lag", (2,), TEXT),)),
    ((), (WindowFunction("lead", (2, 0), TEXT), WindowFunction("lag", (1, 0, 1), numeric(2)))),
    ((0,), tuple(WindowFunction("sum", (1,), numeric(2), frame=one) for one in NEAR)),
    ((), (WindowFunction("nth_value", (2, 0), TEXT, frame=NEAR[0]), WindowFunction("lead", (2,), TEXT))),
    ((0,), (WindowFunction("count", (1,), INT8, frame=CURRENT),)),
)


def random_row(source: random.Random) -> Row:
    number = source.choice([None, *(Decimal(one) for one in range(40))])
    return (source.choice([1, 1, 2]), number, source.choice([None, "a", "b"]), None, None)


@pytest.mark.parametrize(("group", "functions"), SEEN)
def test_of_a_large_partition_rows_near_a_change_are_looked_at(
    group: tuple[int, ...], functions: Sequence[WindowFunction], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[int, int]] = []

    def counted(changes: pa.Table, state: pa.Table, node: Staged) -> pa.Table:
        found = near(changes, state, node)
        kept.append((len(found), len(state)))
        return found

    monkeypatch.setattr("mz_dagster.compute.local.windowed.near", counted)
    source = random.Random(1)
    node = node_of(group, functions)
    history: list[Update] = [(random_row(source), 0, source.choice([1, 1, 2])) for _ in range(140)]
    life = Life(node, source, windowed_updates)
    life.step(history)
    for time in range(1, 13):
        row = source.choice(history)[0] if source.random() < 0.5 else random_row(source)
        own = [(row, time, -at(history, time)[row] or 1)]
        if time % 3 == 0:
            own.append((random_row(source), time, 1))
        life.step(own)
        history += own
        state = at(life.state, time)
        last = {row[2:]: n for row, n in state.items() if is_top(node, row)}
        assert last == result(node, at(history, time)), f"the result at {time}"
    assert sum(looked_at for looked_at, _ in kept[1:]) < 0.7 * sum(held for _, held in kept[1:])
