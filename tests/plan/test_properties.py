"""What operators say of their input's columns holds, by the reference: of each operator, over many small contents.

- demand: what is not demanded may be anything.
- predicates: asked of the input's rows where that is let through, they leave the same rows.
- what is passed on is there in the input's rows, and an operator over columns elsewhere is the same operator.
- how many rows there are at most and at least (`row_count`).

That a row which is an error has no values is not in the reference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.properties import demanded, let_through, over, properties_of
from mz_dagster.plan.relation import (
    Aggregate,
    CatchErrors,
    ColumnOrder,
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    FrameBound,
    FrameUnit,
    Get,
    Join,
    Let,
    Map,
    Negate,
    OneInput,
    Projection,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
    WindowFrame,
    WindowFunction,
)
from mz_dagster.plan.rewriting import moved, reference
from mz_dagster.plan.row_count import at_least_one_row, at_most_one_row, with_default
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, INT8, MZ_TIMESTAMP, Column, RelationType, ScalarType, array_of
from tests.plan.reference import Row, Rows, rows_of

CASES = 200
INPUT = GlobalId("input")
_ARRAY = array_of(INT4)
_SHUFFLED = [
    Column("id", INT4, False),
    Column("a", INT4),
    Column("b", INT4),
    Column("f", BOOL),
    Column("n", INT8, False),
]
_ARRAYS = [Column("x", _ARRAY), Column("y", _ARRAY)]
#: What takes rows together only as often as they are there, for which a negative multiplicity is an error.
_COUNTING = (Reduce, TopK, Window)


class Case:
    """An operator over a collection, and what that has."""

    def __init__(self, kind: type[OneInput], seed: int) -> None:
        self.pick = pick = random.Random(seed)
        columns = (*pick.sample(_SHUFFLED, len(_SHUFFLED)), *_ARRAYS)
        keyed = pick.random() < 0.5
        self.place = {column.name: place for place, column in enumerate(columns)}
        keys = frozenset({frozenset({self.place["id"]})} if keyed else set[frozenset[int]]())
        self.type = RelationType(columns, keys)
        self.input = Get(INPUT, self.type)
        self.ids = pick.sample(range(9), 6) if keyed else [pick.randrange(2) for _ in range(6)]
        signs = [1] if keyed else [1, 1, 2] if kind in _COUNTING else [1, 2, -1]
        self.rows = [(self.row(id), pick.choice(signs)) for id in self.ids]
        self.operator = MAKERS[kind](self)

    def row(self, id: int) -> Row:
        cells = [self.cell(column) for column in self.type.columns]
        cells[self.place["id"]] = id
        return tuple(cells)

    def cell(self, column: Column) -> Any:
        """Returns any value of a column."""
        pick = self.pick
        if column.nullable and pick.random() < 0.2:
            return None
        if column.type == _ARRAY:
            return tuple(pick.choice([None, 1, 2]) for _ in range(pick.randrange(3)))
        return pick.random() < 0.6 if column.type == BOOL else pick.randrange(3)

    def some(self, most: int, columns: Sequence[int] | None = None) -> tuple[int, ...]:
        columns = range(self.type.arity) if columns is None else columns
        return tuple(self.pick.sample(columns, self.pick.randint(0, min(most, len(columns)))))

    def order(self, most: int = 2) -> tuple[ColumnOrder, ...]:
        flip = self.pick.random
        return tuple(ColumnOrder(one, flip() < 0.5, flip() < 0.5) for one in self.some(most))

    def column(self, name: str) -> Scalar:
        return reference(self.type, self.place[name])

    def predicate(self, relation_type: RelationType, columns: Sequence[int]) -> Scalar:
        """Returns a predicate that reads some of the columns and cannot fail."""
        one = reference(relation_type, self.pick.choice(columns))
        tests: list[Scalar] = [Call("is_null", (one,), BOOL, False)]
        if one.type in (INT4, INT8):
            name = "int4" if one.type == INT4 else "int8"
            tests = [Call(f"{test}_{name}", (one, Literal(1, one.type)), BOOL, True) for test in ("le", "eq", "ne")]
        tests += [one] if one.type == BOOL else []
        found = self.pick.choice(tests)
        if self.pick.random() < 0.3:
            return Call("or", (found, self.predicate(relation_type, columns)), BOOL)
        return found

    def changed(self, kept: frozenset[int]) -> Rows:
        """Returns the content with anything in the columns that are not kept: in all rows the same, or in each copy."""
        rows: Rows = Counter()
        same = [self.cell(one) for one in self.type.columns] if self.pick.random() < 0.5 else None
        for row, n in self.rows:
            for _ in range(abs(n)):
                others = same or [self.cell(one) for one in self.type.columns]
                cells = [cell if i in kept else other for i, (cell, other) in enumerate(zip(row, others, strict=True))]
                rows[tuple(cells)] += 1 if n > 0 else -1
        return rows

    @property
    def content(self) -> Rows:
        rows: Rows = Counter()
        for row, n in self.rows:
            rows[row] += n
        return rows

    def evaluated(self, relation: Relation, content: Rows, columns: Sequence[int] | None = None) -> Rows:
        """Returns the rows of a plan over a content, as far as the columns go."""
        found: Rows = Counter()
        for row, n in rows_of(relation, {INPUT: content}, now=1).items():
            found[row if columns is None else tuple(row[one] for one in columns)] += n
        return Counter({row: n for row, n in found.items() if n})


def _map(case: Case) -> Map:
    a, b = case.column("a"), case.column("b")
    last = Call("add_int4", (a, b), INT4)
    scalars: list[Scalar] = [last]
    for place in range(case.type.arity, case.type.arity + case.pick.randrange(3)):
        before = Map(case.input, tuple(scalars), tuple(f"m{i}" for i in range(len(scalars))))
        made = reference(before.relation_type, place)
        choices: list[Scalar] = [Call("add_int4", (made, a), INT4), If(case.column("f"), b, made), Literal(1, INT4), b]
        scalars.append(case.pick.choice(choices))
    return Map(case.input, tuple(scalars), tuple(f"m{i}" for i in range(len(scalars))))


def _temporal(case: Case) -> TemporalFilter:
    def bounds() -> tuple[Scalar, ...]:
        names = case.pick.sample("ab", case.pick.randrange(2))
        return tuple(Call("cast_int4_to_mz_timestamp", (case.column(name),), MZ_TIMESTAMP) for name in names)

    return TemporalFilter(case.input, bounds(), bounds())


def _reduce(case: Case) -> Reduce:
    a, b = case.place["a"], case.place["b"]
    all_ = [
        Aggregate(AggregateFunction.COUNT, (), INT8),
        Aggregate(AggregateFunction.SUM, (a,), INT8, filter=case.place["f"]),
        Aggregate(AggregateFunction.COUNT, (b,), INT8, True),
        Aggregate(AggregateFunction.ARRAY_AGG, (a,), _ARRAY, order=case.order()),
    ]
    aggregates = tuple(case.pick.sample(all_, case.pick.randrange(4)))
    return Reduce(case.input, case.some(2), aggregates, tuple(f"g{i}" for i in range(len(aggregates))))


def _top(case: Case) -> TopK:
    limit, offset = case.pick.choice([None, 0, 1, 2]), case.pick.choice([0, 0, 1])
    ties = limit is not None and not offset and case.pick.random() < 0.5
    return TopK(case.input, case.some(1), case.order(), limit, offset, ties=ties)


def _window(case: Case) -> Window:
    a, whole = case.place["a"], WindowFrame(FrameUnit.RANGE, FrameBound(True, preceding=True), FrameBound(True))
    all_ = [
        WindowFunction("row_number", (), INT8),
        WindowFunction("rank", (), INT8),
        WindowFunction("lag", (a,), INT4),
        WindowFunction("max", (a,), INT4, frame=whole),
    ]
    functions = tuple(case.pick.sample(all_, case.pick.randint(1, 2)))
    return Window(case.input, case.some(1), case.order(), functions, tuple(f"w{i}" for i in range(len(functions))))


MAKERS: dict[type[OneInput], Callable[[Case], OneInput]] = {
    Map: _map,
    Filter: lambda case: Filter(
        case.input, tuple(case.predicate(case.type, range(7)) for _ in range(case.pick.randint(1, 2)))
    ),
    Projection: lambda case: Projection(case.input, (*case.some(3), *case.some(3))),
    Negate: lambda case: Negate(case.input),
    Reduce: _reduce,
    TopK: _top,
    Threshold: lambda case: Threshold(case.input),
    Window: _window,
    TemporalFilter: _temporal,
    RepeatRow: lambda case: RepeatRow(case.input, case.place["n"]),
    CatchErrors: lambda case: CatchErrors(case.input),
    FlatMap: lambda case: FlatMap(case.input, case.pick.randint(1, 2), case.pick.random() < 0.5),
}
kinds = pytest.mark.parametrize("kind", get_args(OneInput), ids=lambda kind: kind.__name__)


def test_every_operator_is_tried() -> None:
    """An operator is in `OneInput`, with properties, or one of the few that each pass is about."""
    assert set(get_args(OneInput)) == set(MAKERS)
    assert set(get_args(Relation)) - set(MAKERS) == {Get, Constant, Join, Union, Let, DependentJoin}


@kinds
def test_what_is_not_demanded_may_be_anything(kind: type[OneInput]) -> None:
    tried = 0
    for seed in range(CASES):
        case = Case(kind, seed)
        own = properties_of(case.operator)
        first = len(own.passed) if own.made and case.pick.random() < 0.5 else 0
        columns = case.some(3, range(first, case.operator.relation_type.arity))
        needed = demanded(case.operator, columns)
        expected = case.evaluated(case.operator, case.content, columns)
        for _ in range(4):
            assert case.evaluated(case.operator, case.changed(needed), columns) == expected, (seed, case.operator)
        tried += len(needed) < case.type.arity and bool(expected)
    assert kind in (Threshold, CatchErrors) or tried > CASES / 4


@kinds
def test_a_predicate_that_is_let_through_leaves_the_same_rows(kind: type[OneInput]) -> None:
    tried = 0
    for seed in range(CASES):
        case = Case(kind, seed)
        operator, places = case.operator, let_through(case.operator)
        if not places:
            continue
        predicate = case.predicate(operator.relation_type, list(places))
        above = case.evaluated(Filter(operator, (predicate,)), case.content)
        below = Filter(case.input, (moved(predicate, places),))
        assert case.evaluated(replace(operator, input=below), case.content) == above, (seed, operator)
        tried += 0 < len(above) < len(case.evaluated(operator, case.content))
    assert kind is CatchErrors or tried > CASES / 10


@kinds
def test_columns_are_those_that_are_passed_on_and_those_that_are_made(kind: type[OneInput]) -> None:
    for seed in range(CASES):
        case = Case(kind, seed)
        own, columns = properties_of(case.operator), case.operator.relation_type.columns
        assert len(own.passed) + len(own.made) == len(columns)
        for here, there in zip(columns, own.passed, strict=False):
            assert (here.name, here.type) == (case.type.columns[there].name, case.type.columns[there].type)
        first = range(len(own.passed))
        found = case.evaluated(case.operator, case.content, first)
        assert found.keys() <= {tuple(row[one] for one in own.passed) for row, _ in case.rows}


@kinds
def test_an_operator_over_columns_elsewhere_is_the_same(kind: type[OneInput]) -> None:
    for seed in range(CASES):
        case = Case(kind, seed)
        operator, own = case.operator, properties_of(case.operator)
        added = case.pick.randrange(6)
        columns = (*case.type.columns[:added], Column("added", INT4), *case.type.columns[added:])
        places = {one: one + (one >= added) for one in range(case.type.arity)}
        elsewhere = over(operator, Get(INPUT, RelationType(columns)), places)
        passed = {column: place for place, column in enumerate(properties_of(elsewhere).passed)}
        kept = [passed[places[one]] for one in own.passed]
        kept += range(len(properties_of(elsewhere).passed), elsewhere.relation_type.arity)
        wide = Counter({(*row[:added], 7, *row[added:]): n for row, n in case.content.items()})
        assert case.evaluated(elsewhere, wide, kept) == case.evaluated(operator, case.content), (seed, operator)


@kinds
def test_there_are_as_many_rows_as_is_said(kind: type[OneInput]) -> None:
    said = Counter[str]()
    for seed in range(CASES):
        case = Case(kind, seed)
        rows = tuple(_literals(case.type, row) for row, _ in case.rows[: case.pick.randrange(3)])
        constant = Constant(rows, replace(case.type, keys=frozenset({frozenset()} if len(rows) < 2 else ())))
        some = replace(case.operator, input=constant)
        number = Literal(0, INT8)
        whole = Reduce(some, (), (Aggregate(AggregateFunction.COUNT, (), INT8),), ("n",))
        defaulted = with_default(whole, (number,), GlobalId("let:1"))
        for relation in (some, defaulted, Join((some, defaulted), ()), Projection(Join((some, constant), ()), ())):
            if kind in (Negate, RepeatRow) and relation is not some:
                continue  # which would count rows that are there fewer times than never
            found = sum(case.evaluated(relation, Counter()).values())
            assert found <= 1 or not at_most_one_row(relation), (seed, relation)
            assert found >= 1 or not at_least_one_row(relation), (seed, relation)
            said["most"] += at_most_one_row(relation)
            said["least"] += at_least_one_row(relation)
    assert kind in (Negate, RepeatRow) or min(said["most"], said["least"]) > CASES / 2


def _literals(relation_type: RelationType, row: Row) -> tuple[Literal, ...]:
    types: list[ScalarType] = [column.type for column in relation_type.columns]
    return tuple(Literal(cell, type_) for cell, type_ in zip(row, types, strict=True))
