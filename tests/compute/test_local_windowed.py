"""Window functions on columns, in this process: PostgreSQL 15 is the referee, and a state goes through its steps.

The random functions, frames and rows are those of `test_windowed`, of which those are taken that are computed here.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.window_functions import Partitions, is_computed_here
from mz_dagster.compute.local.windowed import can_window, windowed_updates
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ReadCollection, Staged, Windowed
from mz_dagster.plan.relation import ColumnOrder, FrameBound, FrameUnit, WindowFrame, WindowFunction
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import INT4, INT8, TEXT, Column, RelationType, numeric
from mz_dagster.storage.arrow_schema import arrow_type
from tests.budgets import SetBudget
from tests.compute.reference import Content, Row, Update, at, is_error
from tests.compute.staged_reference import copies, groups, ordered
from tests.compute.test_local_staged import ARITY, BY_T, BY_X, INPUT, TIMES, Life, is_top, random_history
from tests.compute.test_windowed import (
    COLUMNS,
    NAMES,
    NUMBERS,
    ORDERABLE,
    RANKS,
    Case,
    in_postgres,
    load,
    normal,
    random_aggregate,
    random_frame,
    random_move,
    random_order,
    random_rows,
    random_value,
)
from tests.postgres_server import Postgres


def is_here(case: Case) -> bool:
    return is_computed_here(case.function, [Column(name, type_) for name, type_ in COLUMNS.items()])


def in_process(
    rows: Sequence[tuple[Row, int]], cases: Sequence[Case], order: Sequence[ColumnOrder]
) -> Counter[tuple[object, ...]]:
    """Returns id and results of every row."""
    single = [row for row, diff in rows for _ in range(diff)]
    types = list(COLUMNS.values())
    columns = [pa.array([row[i] for row in single], arrow_type(types[i])) for i in range(len(NAMES))]
    table = pa.table(dict(zip(NAMES, columns, strict=True)))
    coded = CodedRows(table, len(single))
    every = np.arange(len(single))
    partitions = Partitions.of(coded.columns[0], coded.sorted_by, order)
    found = [partitions.values(one.function, coded, every).to_pylist() for one in cases]
    ids = [single[place][-1] for place in partitions.order]
    given = [INT4, *(one.function.type for one in cases)]
    return Counter(
        tuple(normal(value, type_) for value, type_ in zip(row, given, strict=True))
        for row in zip(ids, *found, strict=True)
    )


def check(postgres: Postgres, rows: Sequence[tuple[Row, int]], cases: Sequence[Case], order: Sequence[ColumnOrder],
          *, ties: bool) -> None:  # fmt: skip
    cases = [one for one in cases if is_here(one)]
    assert cases
    found, wanted = in_process(rows, cases, order), in_postgres(postgres, cases, order, ties=ties)
    for i, one in enumerate(cases):
        ours, theirs = (Counter((row[0], row[i + 1]) for row in side.elements()) for side in (found, wanted))
        assert ours == theirs, (one, order, sorted((ours - theirs).items(), key=repr)[:5],
                                sorted((theirs - ours).items(), key=repr)[:5])  # fmt: skip


def exact_order(rng: random.Random, count: int) -> list[ColumnOrder]:
    return random_order(rng, rng.sample(ORDERABLE, count))


@pytest.mark.parametrize("seed", range(4))
def test_functions_that_see_no_ties_are_as_in_postgres(postgres: Postgres, seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, 5, 20)
    load(postgres, rows)
    order, cases = exact_order(rng, rng.randint(1, 2)), list(RANKS)
    for _ in range(40):
        frame, sql = random_frame(rng, order, [FrameUnit.RANGE, FrameUnit.GROUPS])
        cases.append(random_aggregate(rng, frame, sql, sees_order=False))
    check(postgres, rows, cases, order, ties=False)


@pytest.mark.parametrize("seed", range(4))
def test_functions_that_count_rows_are_as_in_postgres(postgres: Postgres, seed: int) -> None:
    rng = random.Random(50 + seed)
    rows = random_rows(rng, 5, 16)
    load(postgres, rows)
    order = exact_order(rng, seed % 3)
    cases = [*NUMBERS, *(random_move(rng) for _ in range(20))]
    for _ in range(20):
        frame, sql = random_frame(rng, order, [FrameUnit.ROWS])
        cases.append(random_aggregate(rng, frame, sql, sees_order=True))
        frame, sql = random_frame(rng, order, [FrameUnit.ROWS])
        cases.append(random_value(rng, frame, sql))
    # PostgreSQL is asked with an order without peers, so that peers are left out of nothing there.
    sees_peers = ("group", "ties")
    cases = [
        one for one in cases
        if one.function.frame is None or one.function.frame.exclusion.value not in sees_peers
    ]  # fmt: skip
    check(postgres, rows, cases, order, ties=True)


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


def recomputed(node: Staged, content: Content) -> Content:
    """Returns the last level's rows by the words of the functions."""
    assert isinstance(node.function, Windowed)
    found: Content = Counter()
    good = Counter({row: n for row, n in content.items() if not is_error(row)})
    for group in groups(node, good):
        rows = ordered(copies(group), node.function.order, ARITY)
        for place, row in enumerate(rows):
            seen = [one[1] for one in rows[max(place - 1, 0) : place + 1] if one[1] is not None]
            before = rows[place - 1][2] if place else None
            found[(*row, place + 1, before, sum(seen) if seen else None)] += 1
    return found


@pytest.mark.parametrize("group", [(0,), (), (0, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_the_state_is_the_windows_recomputed_after_every_step(group: tuple[int, ...], seed: int) -> None:
    node, source = node_of(group), random.Random(seed)
    assert can_window(node)
    history, life = random_history(source, 60, grows=False), Life(node, source, windowed_updates)
    several = sorted({0, source.randrange(1, TIMES), source.randrange(1, TIMES), TIMES})
    for lower, upper in pairwise(several if seed % 2 else range(TIMES + 1)):
        life.step([one for one in history if lower <= one[1] < upper])
        for time in range(upper):
            state, whole = at(life.state, time), at(history, time)
            last = {row[2:]: n for row, n in state.items() if not is_error(row) and is_top(node, row)}
            assert last == recomputed(node, whole), f"the result at {time}"
            lowest = {row[2 : 2 + ARITY]: n for row, n in state.items() if not is_error(row) and row[0] == 0}
            assert lowest == {row: n for row, n in whole.items() if not is_error(row)}
            assert {row: n for row, n in state.items() if is_error(row)} == {
                row: n for row, n in whole.items() if is_error(row)
            }


def test_what_runs_once_has_the_result_only() -> None:
    node = node_of((0,), once=True)
    history = random_history(random.Random(2), 20, grows=True)
    life = Life(node, random.Random(2), windowed_updates)
    life.step([(row, 0, diff) for row, _, diff in history])
    assert {row[0] for row, _, _ in life.state if not is_error(row)} == {1}


def row_of(group: int, number: str | None = None) -> Row:
    return (group, None if number is None else Decimal(number), None, None, None)


@pytest.mark.parametrize(
    ("changes", "functions", "told_by"),
    [
        ([(row_of(1), 3, -1)], FUNCTIONS, "negative"),
        ([(row_of(1, "9" * 36 + ".99"), 3, 2)], FUNCTIONS, "beyond its type"),
        ([(row_of(0), 3, 1)], (WindowFunction("ntile", (0,), INT4),), "ntile"),
        ([(row_of(0), 3, 1)], (WindowFunction("nth_value", (2, 0), TEXT, frame=ROWS_BEFORE),), "nth_value"),
    ],
)
def test_what_is_wrong_in_the_data_is_left_to_spark(
    changes: list[Update], functions: Sequence[WindowFunction], told_by: str
) -> None:
    with pytest.raises(Declined, match=told_by):
        Life(node_of((0,), functions), random.Random(1), windowed_updates).step(changes)


def test_versions_with_many_rows_are_left_to_spark(set_budget: SetBudget) -> None:
    set_budget(versioned_rows=2)
    with pytest.raises(Declined, match="many rows"):
        Life(node_of((0,)), random.Random(1), windowed_updates).step([(row_of(1), 3, 3)])


def test_distances_and_lists_are_not_computed_here() -> None:
    far = WindowFrame(FrameUnit.RANGE, FrameBound(False, Literal(2, INT8), preceding=True), FrameBound(True))
    assert not can_window(node_of((), [WindowFunction("count", (), INT8, frame=far)]))
    assert not can_window(node_of((), [WindowFunction("string_agg", (2, 2), TEXT, frame=ROWS_BEFORE)]))
