"""Tournaments of every function, with and without stages and groups, and random updates of what they read."""

from __future__ import annotations

import random

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Extremes, Gathered, ReadCollection, Staged, StageFunction, TopRows, Windowed
from mz_dagster.plan.relation import Aggregate, ColumnOrder, WindowFunction
from mz_dagster.scalars.types import BOOL, FLOAT8, INT4, INT8, TEXT, Column, RelationType, array_of
from tests.compute.contents import Row, Update

TIMES = 12

INPUT = RelationType(
    (Column("case", INT4), Column("g", FLOAT8), Column("x", FLOAT8), Column("t", TEXT), Column("f", BOOL))
)
ARITY = INPUT.arity
PLACE = (Column("level", INT4, False), Column("bucket", INT8, False))
BY_X = ColumnOrder(2, descending=True, nulls_first=False)
BY_T = ColumnOrder(3, descending=False, nulls_first=True)
BY_F = ColumnOrder(4, descending=True, nulls_first=True)


def staged(function: StageFunction, *buckets: int, group: tuple[int, ...] = (0, 1), monotonic: bool = False) -> Staged:
    """Returns a tournament over the collection `in`."""
    results: list[Column] = []
    if isinstance(function, Gathered):
        results = [Column(f"r{i}", one.type) for i, one in enumerate(function.aggregates)]
    if isinstance(function, Windowed):
        results = [Column(f"r{i}", one.type) for i, one in enumerate(function.functions)]
    columns = (*PLACE, *INPUT.columns, *results)
    below = ReadCollection(GlobalId("in"), INPUT, "in")
    return Staged(below, group, function, buckets, monotonic, RelationType(columns))


def array_agg(position: int, *order: ColumnOrder, filter: int | None = None) -> Aggregate:
    type_ = array_of(INPUT.columns[position].type)
    return Aggregate(AggregateFunction.ARRAY_AGG, (position,), type_, filter=filter, order=order)


def string_agg(value: int, separator: int, *order: ColumnOrder) -> Aggregate:
    return Aggregate(AggregateFunction.STRING_AGG, (value, separator), TEXT, order=order)


MIN, MAX = AggregateFunction.MIN, AggregateFunction.MAX
BIT_AND, BIT_OR, BIT_XOR = AggregateFunction.BIT_AND, AggregateFunction.BIT_OR, AggregateFunction.BIT_XOR
GATHERED = Gathered(
    (array_agg(2), array_agg(3, BY_X, filter=4), array_agg(2, BY_F, BY_T), string_agg(3, 3, BY_X), string_agg(3, 3))
)
#: By what they are. The first column, the number of a case, is in each group, or there is one group of everything.
STAGED_SHAPES = {
    "top rows in two stages": staged(TopRows((BY_X, BY_T), 2, 1), 4, 1),
    "extremes in two stages": staged(Extremes((MAX, MIN, MAX)), 4, 1),
    "bits of one group": staged(Extremes((BIT_XOR, MIN, MAX, MIN, MAX)), 4, 1, group=()),
    "gathered": staged(GATHERED, 1),
    "row numbers": staged(Windowed((BY_F, BY_T), (WindowFunction("row_number", (), INT8, False),)), 1),
    "windows of one group": staged(
        Windowed((BY_X,), (WindowFunction("lag", (3,), TEXT), WindowFunction("row_number", (), INT8, False))),
        1,
        group=(),
    ),
    "monotonic top rows": staged(TopRows((BY_T,), 3), 1, monotonic=True),
    "monotonic first row": staged(TopRows((BY_T,), 1), 1, monotonic=True),
    "monotonic extremes": staged(Extremes((MIN, MAX, MIN)), 1, monotonic=True),
    "top rows in three stages": staged(TopRows((BY_F, BY_X), 3, 2), 16, 4, 1),
    "top rows with ties": staged(TopRows((BY_X,), 2, ties=True), 1),
    "top rows with ties in stages": staged(TopRows((BY_T, BY_F), 2, ties=True), 8, 2, 1, group=()),
    "monotonic top rows with ties": staged(TopRows((BY_T,), 1, ties=True), 1, monotonic=True),
    "top rows in one stage": staged(TopRows((), 1), 1),
    "top rows without a limit": staged(TopRows((BY_X,), None, 2), 1),
    "one group": staged(TopRows((BY_X,), 5), 4, 1, group=()),
    "extremes of one group": staged(Extremes((MIN, MAX, MIN, MAX, MAX)), 4, 1, group=()),
    "gathered from one group": staged(Gathered((array_agg(3, BY_X),)), 1, group=()),
    "no rows": staged(TopRows((BY_X,), 0), 4, 1),
    "all rows": staged(TopRows((BY_X,), None), 4, 1),
    "extremes in one stage": staged(Extremes((MIN, MAX, MIN)), 1),
    "extremes in three stages": staged(Extremes((MIN, MAX, MIN)), 16, 4, 1),
    "bits in three stages": staged(Extremes((BIT_AND, MIN, MAX, MIN, MAX)), 16, 4, 1, group=()),
    "bits in one stage": staged(Extremes((BIT_OR, MIN, MAX, MIN, MAX)), 1, group=()),
    "monotonic bits": staged(Extremes((BIT_XOR, MIN, MAX, MIN, MAX)), 1, group=(), monotonic=True),
    "monotonic bits without XOR": staged(Extremes((BIT_OR, MIN, MAX, MIN, MAX)), 1, group=(), monotonic=True),
    "monotonic first of all": staged(TopRows((BY_F, BY_X), 1), 1, group=(), monotonic=True),
    "monotonic rows, each once": staged(TopRows((), 1), 1, group=(0, 1, 2, 3, 4), monotonic=True),
}


def random_updates(source: random.Random, cases: range, errors: int) -> list[Update]:
    """Returns updates with duplicates, NULLs, floats of all kinds, negative multiplicities and errors."""
    found: list[Update] = []
    for case in cases:
        rows: list[Row] = []
        for _ in range(source.randrange(12)):
            if rows and source.random() < 0.4:
                row = source.choice(rows)
            else:
                g = source.choice([None, 0.0, -0.0, float("nan"), 1.5, 1.5, 1.5])
                x = source.choice([None, 0.0, -0.0, float("nan"), 1.5, float("-inf"), 2.5])
                row = (case, g, x, source.choice([None, "", "a", "B", "é", "ab"]), source.choice([None, True, False]))
            rows.append(row)
            found.append((row, source.randrange(TIMES), source.choice([-2, -1, -1, 1, 1, 1, 2])))
    for _ in range(errors):
        error = ("error", f"22000 bad record {source.randrange(2)}")
        found.append((error, source.randrange(TIMES), source.choice([-1, 1])))
    return found
