"""Operators of this process over columns of every kind that nests, has several representations or signed zeros.

Random histories go through a state's steps, one or several times in each; after every one the state is what is
recomputed from scratch.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.compute.local import bucket_pruning
from mz_dagster.compute.local.accumulate import accumulate_updates
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.gathered import gathered_updates
from mz_dagster.compute.local.join import join_updates
from mz_dagster.compute.local.staged import staged_updates
from mz_dagster.compute.local.windowed import windowed_updates
from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import (
    Accumulate,
    DeltaJoin,
    Extremes,
    Gathered,
    ReadCollection,
    Staged,
    StageFunction,
    TopRows,
    Windowed,
)
from mz_dagster.plan.relation import Aggregate, ColumnOrder, WindowFunction
from mz_dagster.scalars.scalar import ColumnRef
from mz_dagster.scalars.types import (
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    Column,
    RelationType,
    ScalarType,
    array_of,
    dimensioned,
    record_of,
)
from mz_dagster.scalars.values import Dimensioned, Interval
from mz_dagster.storage.arrow_schema import arrow_type, update_table
from mz_dagster.storage.row_numbers import numbered
from tests.compute.contents import Row, Update, at, exact, exact_cell
from tests.compute.staged_reference import identical, ordered, result
from tests.compute.test_local_accumulate import table, told
from tests.compute.test_local_staged import TIMES, Life, is_top, updates_of

_NAN = math.nan
PAIR = record_of([("a", INT4), ("x", FLOAT8)])
#: Some values of each type, NULL aside.
VALUES: dict[ScalarType, list[Any]] = {
    FLOAT4: [-0.0, 0.0, _NAN, 1.5, -math.inf],
    FLOAT8: [-0.0, 0.0, _NAN, 1.5, -math.inf],
    INTERVAL: [Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 0, -1), Interval(-1, 2, 3)],
    JSONB: ['{"a": 1}', "[1]", "null", '"é"'],
    array_of(INT4): [(), (1,), (1, None), (None, 1), (1, 2)],
    array_of(TEXT): [(), ("",), ("a", "é"), ("a", None)],
    array_of(FLOAT8): [(0.0,), (-0.0,), (_NAN, 1.0), (0.0, -0.0), (-0.0, 0.0), (None,)],
    dimensioned(FLOAT8): [
        Dimensioned(),
        Dimensioned((0.0, -0.0), (1, 2), (1, 1)),
        Dimensioned((0.0, 0.0), (1, 2), (1, 1)),
        Dimensioned((0.0, 0.0), (2,), (1,)),
        Dimensioned((0.0, 0.0), (2,), (0,)),
        Dimensioned((_NAN, None), (2, 1), (1, 1)),
    ],
    array_of(PAIR): [(), ((1, -0.0),), ((1, 0.0),), ((1, None), None), (None, (1, 0.0))],
    PAIR: [(1, -0.0), (1, 0.0), (None, _NAN), (2, None)],
}


@dataclass(frozen=True)
class Node:
    """Makes operators over a group `g` and a column `x` of one type, and a number.

    Attributes:
        type: Of both.
    """

    type: ScalarType

    @property
    def input(self) -> RelationType:
        return RelationType((Column("g", self.type), Column("x", self.type), Column("n", INT4)))

    def staged(
        self,
        function: StageFunction,
        *buckets: int,
        group: tuple[int, ...] = (0,),
        results: tuple[ScalarType, ...] = (),
    ) -> Staged:
        extra = (Column(f"r{i}", one) for i, one in enumerate(results))
        columns = (Column("level", INT4, False), Column("bucket", INT8, False), *self.input.columns, *extra)
        read = ReadCollection(GlobalId("in"), self.input)
        return Staged(read, group, function, buckets, False, RelationType(columns))

    def history(self, source: random.Random, updates: int) -> list[Update]:
        """Returns updates after which no row has a negative multiplicity."""
        found: list[Update] = []
        held: Counter[Row] = Counter()
        for number in range(updates):
            time = TIMES * number // updates
            if held and source.random() < 0.4:
                row = source.choice(sorted(held, key=repr))
                diff = -held.pop(row)
            else:
                g, x = (source.choice([None, *VALUES[self.type]]) for _ in range(2))
                row, diff = exact((g, x, source.randrange(3))), source.choice([1, 2])
                held[row] += diff
            found.append((row, time, diff))
        return found


def stories(node: Node) -> dict[str, tuple[Staged, Any]]:
    by_x = ColumnOrder(1, descending=True, nulls_first=True)
    lists = (
        Aggregate(AggregateFunction.ARRAY_AGG, (2,), array_of(INT4), order=(by_x,)),
        Aggregate(AggregateFunction.ARRAY_AGG, (2,), array_of(INT4)),
    )
    numbers = (WindowFunction("row_number", (), INT8, False),)
    least = (AggregateFunction.MIN, AggregateFunction.MAX)
    return {
        "first rows": (node.staged(TopRows((by_x,), 2, 1), 1), staged_updates),
        "first rows in stages": (node.staged(TopRows((by_x,), 2), 4, 2, 1), staged_updates),
        "rows once": (node.staged(TopRows((), 1), 1, group=(0, 1, 2)), staged_updates),
        "extremes": (node.staged(Extremes(least), 4, 1), staged_updates),
        "lists": (node.staged(Gathered(lists), 1, results=(array_of(INT4),) * 2), gathered_updates),
        "places": (node.staged(Windowed((by_x,), numbers), 1, results=(INT8,)), windowed_updates),
    }


@pytest.mark.parametrize("histories", [1, pytest.param(8, marks=pytest.mark.deep)])
@pytest.mark.parametrize("story", [*stories(Node(FLOAT8))])
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_the_state_is_recomputed_after_every_step(
    type_: ScalarType, story: str, histories: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_pruning, "_MANY_BUCKETS", 0)
    node, advanced = stories(Node(type_))[story]
    for seed in range(histories):
        source = random.Random(seed)
        history = Node(type_).history(source, 40)
        life = Life(node, source, advanced)
        for lower, upper in pairwise(range(TIMES + 1) if seed else (0, 3, TIMES)):
            life.step([one for one in history if lower <= one[1] < upper])
            for time in range(lower, upper):
                state = at(life.state, time)
                found = {row[2:]: n for row, n in state.items() if is_top(node, row)}
                assert found == result(node, at(history, time)), f"the result at {time}"


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_rows_are_counted_by_keys_of_every_kind(type_: ScalarType) -> None:
    columns = Node(type_).input.columns
    state_type = RelationType((*columns[:2], Column("c", INT8), Column("n", INT8)))
    node = Accumulate(ReadCollection(GlobalId("in"), RelationType(columns)), 2, state_type)
    source = random.Random(4)
    # Keys have one form for all equal values, as the plan gives them.
    history = [((*map(_unsigned, row[:2]), row[2]), time, diff) for row, time, diff in Node(type_).history(source, 60)]
    state: list[Update] = []
    for time in range(TIMES):
        changes = table(columns, updates_of([one for one in history if one[1] == time]))
        made = told(accumulate_updates(changes, table(node.relation_type.columns, updates_of(state)), node))
        state += [(exact(one.data), one.time, one.diff) for one in made]
        wanted: Counter[Row] = Counter()
        sums: dict[Row, list[int]] = {}
        for row, count in at(history, time).items():
            total = sums.setdefault(row[:2], [0, 0])
            total[0] += count
            total[1] += count * row[2]
        wanted.update({(*key, *total): 1 for key, total in sums.items()})
        assert at(state, time) == wanted


def _unsigned(cell: Any) -> Any:
    if isinstance(cell, tuple):
        return tuple(map(_unsigned, cell))
    return exact_cell(cell + 0.0) if isinstance(cell, float) else cell


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_rows_are_joined_by_values_of_every_kind(type_: ScalarType) -> None:
    read = ReadCollection(GlobalId("in"), RelationType((Column("c0", type_), Column("c1", INT4))))
    columns = read.relation_type.columns * 2
    values = [*map(_unsigned, VALUES[type_]), None]
    rows = [((value, n), 1, 1) for n, value in enumerate(values)]
    both = table(read.relation_type.columns, updates_of(rows))
    for null_safe in (frozenset[int](), frozenset({0})):
        node = DeltaJoin(
            (read, read), ((ColumnRef(0, type_), ColumnRef(2, type_)),), (), RelationType(columns), null_safe
        )
        found = join_updates(node, [both, both], frozenset({1}), lambda *_: both)
        pairs = {(n, m) for n, one in enumerate(values) for m, other in enumerate(values)
                 if repr(one) == repr(other) and (null_safe or one is not None)}  # fmt: skip
        assert set(zip(found.column("c1").to_pylist(), found.column("c3").to_pylist(), strict=True)) == pairs


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_codes_have_the_order_of_the_values(type_: ScalarType) -> None:
    cells = [None, *VALUES[type_]] * 2
    column = update_table([Column("x", type_)], [((cell,), 0, 1) for cell in cells]).column("x")
    assert column.type == arrow_type(type_)
    rows = CodedRows(pa.table({"x": column}), len(cells))
    wanted = ordered([exact((cell,)) for cell in cells], [], 1)
    order = sorted(range(len(cells)), key=lambda n: tuple(int(codes[n]) for codes in rows.sorted_by))
    assert [exact((cells[n],)) for n in order] == wanted
    found = rows.decoded(0, rows.columns[0])
    assert [exact_cell(one) for one in found.to_pylist()] == [exact_cell(one) for one in column.to_pylist()]
    for signs, told_apart in ((True, exact_cell), (False, lambda cell: identical(exact_cell(cell)))):
        numbers, _ = numbered([column.combine_chunks()], len(cells), signs=signs)
        kinds = [told_apart(cell) for cell in cells]
        for i in range(len(cells)):
            assert [numbers[i] == one for one in numbers] == [kinds[i] == one for one in kinds]
