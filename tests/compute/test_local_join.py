"""A join over few updates in this process has the updates that the definition of a join of histories gives."""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.budget import budget, budget_of
from mz_dagster.compute.algebra.delta_terms import meeting_terms
from mz_dagster.compute.local import ranges
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.compute.local.join import Sought, join_updates
from mz_dagster.formalism import GlobalId
from mz_dagster.functions.casts import short_name
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.numbers.unconstrained import of_text
from mz_dagster.functions.plain import to_plain
from mz_dagster.plan.bounding import Comparison, leading_comparisons
from mz_dagster.plan.physical import DeltaJoin, ReadCollection
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, columns_of
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    TIME,
    TIMESTAMP,
    UNCONSTRAINED,
    UUID,
    Column,
    Kind,
    RelationType,
    ScalarType,
    array_of,
    numeric,
)
from mz_dagster.scalars.values import Interval
from mz_dagster.storage.arrow_schema import update_table
from mz_dagster.storage.plain_cells import stored_cells
from mz_dagster.storage.row_numbers import whole
from mz_dagster.storage.shards import MultiplicityOverflow
from tests.budgets import SetBudget
from tests.compute.test_lookup_keys import TYPES, VALUES

TIMES = 5
ERROR = "22012 division by zero"
#: Data, time, diff, error.
Told = tuple[tuple[Any, ...], int, int, str | None]

#: Two columns an input, whose values are few.
INPUT = (Column("c0", INT4), Column("c1", TEXT))
CELLS = (st.sampled_from([None, 1, 2]), st.sampled_from([None, "", "é"]))


def join(inputs: int, equal: Sequence[Sequence[int]], null_safe: frozenset[int] = frozenset()) -> DeltaJoin:
    """Returns a join of inputs of two columns by classes of columns, whose positions count all that come before."""
    reads = tuple(ReadCollection(GlobalId(f"u{i}"), RelationType(INPUT)) for i in range(inputs))
    columns = INPUT * inputs
    classes = tuple(tuple(ColumnRef(position, columns[position].type) for position in one) for one in equal)
    return DeltaJoin(reads, classes, (), RelationType(columns), null_safe)


JOINS = {
    "two inputs": join(2, [(0, 2)]),
    "by two columns": join(2, [(0, 2), (1, 3)]),
    "NULL equals NULL": join(2, [(0, 2), (1, 3)], frozenset({1})),
    "a chain": join(3, [(0, 2), (3, 5)]),
    "one class of three": join(3, [(0, 2, 4)]),
    "two columns of one input": join(2, [(1, 3), (0, 2)]),
    "without a condition": join(2, []),
}
#: Beside a column, by which nothing may be found.
OR_EMPTY = (Call("coalesce", (ColumnRef(place, TEXT), Literal("", TEXT)), TEXT, False) for place in (1, 3, 5))
BY_COLUMN = join(3, [(0, 2, 4)])
JOINS["by what is computed"] = replace(BY_COLUMN, equivalences=(*BY_COLUMN.equivalences, tuple(OR_EMPTY)))
UPDATES = st.lists(
    st.one_of(
        st.tuples(st.tuples(*CELLS), st.integers(0, TIMES - 1), st.sampled_from([-1, 1, 2]), st.none()),
        st.tuples(st.just((None, None)), st.integers(0, TIMES - 1), st.sampled_from([-1, 1]), st.just(ERROR)),
    ),
    max_size=5,
)


def defined(node: DeltaJoin, histories: Sequence[Sequence[Told]], lower: int) -> Counter[Told]:
    """Returns the updates of the join from `lower`: each combination of rows that match, at the last of its times."""
    found: Counter[Told] = Counter()
    arity = node.relation_type.arity
    for history in histories:
        for _, time, diff, error in history:
            if error is not None:
                found[(None,) * arity, time, 0, error] += diff
    for chosen in product(*([one for one in history if one[3] is None] for history in histories)):
        row = tuple(cell for data, *_ in chosen for cell in data)
        if matches(node, row):
            found[row, max(time for _, time, _, _ in chosen), 0, None] += prod(diff for _, _, diff, _ in chosen)
    return Counter({told: diff for told, diff in found.items() if diff and told[1] >= lower})


def matches(node: DeltaJoin, row: tuple[Any, ...]) -> bool:
    for number, equivalence in enumerate(node.equivalences):
        values = {
            row[scalar.position] if isinstance(scalar, ColumnRef) else row[min(columns_of(scalar))] or ""
            for scalar in equivalence
        }
        if len(values) > 1 or (values == {None} and number not in node.null_safe):
            return False
    return True


def made(
    node: DeltaJoin,
    histories: Sequence[Sequence[Told]],
    lower: int,
    compared: Sequence[Comparison] = (),
    *,
    is_whole: bool = False,
) -> Counter[Told]:
    """Returns what the join makes; if lookups find all, what it makes once their keys are in order."""
    tables = [update_table(INPUT, history) for history in histories]

    def lookup(_: int, j: int, sought: Sought) -> pa.Table:
        found = tables[j]
        if is_whole:
            return found
        for k, values in sought.columns.items():  # as a lookup by keys does: a superset, one column at a time
            found = found.filter(pc.is_in(found.column(f"c{k}"), values.combine_chunks()))
        for scalar, values in sought.computed:
            columns = [whole(one) for one in found.columns]
            outcome = evaluated(scalar, RowBatch(len(found), columns.__getitem__))
            found = found.filter(pc.is_in(outcome.array(len(found)), values.combine_chunks()))
        return found

    changes = [one.filter(pc.greater_equal(one.column("mz_timestamp"), lower)) for one in tables]
    spans = [(min(one), max(one)) if (one := [time for _, time, _, _ in history]) else None for history in histories]
    with budget_of(replace(budget(), sorted_rows=0)):
        for _ in range(3 if is_whole else 1):
            table = join_updates(node, changes, meeting_terms(spans), lookup, compared)
    assert table.column_names[:-3] == [f"c{k}" for k in range(node.relation_type.arity)]
    found: Counter[Told] = Counter()
    for *row, time, diff, error in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[tuple(row), time, 0, error] += diff
    return Counter({told: diff for told, diff in found.items() if diff})


@pytest.mark.parametrize("name", JOINS)
@given(data=st.data(), lower=st.integers(0, TIMES), is_whole=st.booleans())
def test_the_updates_are_those_of_the_definition(name: str, data: st.DataObject, lower: int, is_whole: bool) -> None:
    node = JOINS[name]
    histories = [data.draw(UPDATES) for _ in node.inputs]
    try:
        found = made(node, histories, lower, is_whole=is_whole)
    except Declined:  # only then
        assert node.null_safe
        assert any({None} <= {data[1] for data, *_ in history} for history in histories)
        return
    assert found == defined(node, histories, lower)


C0, C2, C4 = (ColumnRef(position, INT4) for position in (0, 2, 4))
C1, C3, C5 = (ColumnRef(position, TEXT) for position in (1, 3, 5))


def after(column: ColumnRef) -> Call:
    """Returns the number behind a column's."""
    return Call("add_int4", (column, Literal(1, INT4)), INT4)


NEXT = after(C2)
#: Which fails for 1.
RISKY = Call("divide_int4", (Literal(2, INT4), Call("subtract_int4", (C2, Literal(1, INT4)), INT4)), INT4)
TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
COMPARISONS = [
    *(Comparison(C0, operation, other) for operation in TURNED for other in (C2, NEXT, C4)),
    *(Comparison(after(C0), operation, other) for operation in ("lt", "ge") for other in (C2, NEXT, C4)),
    *(Comparison(C2, operation, other) for operation in ("eq", "lt", "ge") for other in (C0, C4)),
    *(Comparison(C1, operation, other) for operation in ("eq", "lt", "ge") for other in (C3, C5)),
    Comparison(C4, "le", C0),
]


def both_ways(compared: Sequence[Comparison]) -> list[Comparison]:
    return [*compared, *(Comparison(one.other, TURNED[one.operation], one.scalar) for one in compared)]


COMPARES = {"eq": operator.eq, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


def passes(told: Told, one: Comparison) -> bool:
    data, _, _, error = told
    if error:
        return True
    value, other = compiled(one.scalar)(data), compiled(one.other)(data)
    return value is not None and other is not None and COMPARES[one.operation](value, other)


@pytest.mark.parametrize("name", ["two inputs", "by two columns", "NULL equals NULL", "a chain", "without a condition"])
@pytest.mark.parametrize("pairs_per_row", [0, 4])
@given(
    data=st.data(),
    lower=st.integers(0, TIMES),
    compared=st.lists(st.sampled_from(COMPARISONS), min_size=1, max_size=3),
)
def test_of_what_is_compared_the_updates_that_pass_are_those_of_the_definition(
    name: str, pairs_per_row: int, data: st.DataObject, lower: int, compared: list[Comparison]
) -> None:
    node = JOINS[name]
    positions = range(2 * len(node.inputs))
    compared = both_ways([one for one in compared if columns_of(one.scalar) | columns_of(one.other) <= set(positions)])
    histories = [data.draw(UPDATES) for _ in node.inputs]
    with budget_of(replace(budget(), pairs_per_row=pairs_per_row)):
        found, wanted = made(node, histories, lower, compared), defined(node, histories, lower)
    left = {told: diff for told, diff in found.items() if all(passes(told, one) for one in compared)}
    assert left == {told: diff for told, diff in wanted.items() if all(passes(told, one) for one in compared)}


@pytest.mark.parametrize("one", [one for one in COMPARISONS if not {C4, C5} & {one.scalar, one.other}])
def test_of_what_is_compared_once_nothing_else_is_made(one: Comparison) -> None:
    rows: list[Told] = [((value, ""), 0, 1, None) for value in (None, 3, 1, 2, 2)]
    node = JOINS["without a condition"]
    wanted = defined(node, [rows, rows], 0)
    assert made(node, [rows, rows], 0, [one]) == {told: diff for told, diff in wanted.items() if passes(told, one)}


def test_where_what_is_compared_with_fails_every_row_is_joined() -> None:
    rows: list[list[Told]] = [[((0, ""), 0, 1, None), ((2, ""), 0, 1, None)], [((1, ""), 0, 1, None)]]
    found = made(JOINS["without a condition"], rows, 0, [Comparison(C0, "lt", RISKY)])
    assert len(found) == 2


#: What 5,000 rows, each beside the next, are compared by, and how many pairs pass.
MANY = {
    "a column within a range": ([Comparison(C0, "ge", C2), Comparison(C0, "le", NEXT)], 9_999),
    "what is computed within a range": ([Comparison(after(C0), "ge", C2), Comparison(after(C0), "lt", NEXT)], 4_999),
    "intervals that overlap": ([Comparison(C0, "lt", NEXT), Comparison(C2, "lt", after(C0))], 5_000),
    "intervals that touch": ([Comparison(C0, "le", NEXT), Comparison(C2, "le", after(C0))], 14_998),
    "texts": ([Comparison(C1, "ge", C3), Comparison(C1, "le", C3)], 5_000),
}


@pytest.mark.parametrize("case", MANY)
@pytest.mark.parametrize("by", ["no key", "a key"])
def test_a_join_by_ranges_makes_no_more_than_its_matches(case: str, by: str) -> None:
    compared, count = MANY[case]
    if by == "a key":
        node = replace(join(2, []), equivalences=((parity(C0), parity(C2)),))
        count = {9_999: 5_000, 14_998: 5_000, 4_999: 0}.get(count, count)
    else:
        node = JOINS["without a condition"]
    numbers = update_table(INPUT, [((n, f"{n:05}"), 0, 1, None) for n in range(5_000)])
    with budget_of(replace(budget(), joined_rows=15_000)):
        meeting = meeting_terms([(0, 0), (0, 0)])
        table = join_updates(node, [numbers] * 2, meeting, lambda *_: numbers, both_ways(compared))
    assert len(table) == count


def parity(column: ColumnRef) -> Call:
    return Call("modulo_int4", (column, Literal(2, INT4)), INT4)


def values_of(type_: ScalarType) -> list[Any]:
    """Returns values of a type, in whatever order, NULL and some that are equal included."""
    match type_.kind:
        case Kind.FLOAT8:
            return [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 5e-324, -5e-324]
        case Kind.NUMERIC:
            return [None, *(Decimal(n).scaleb(-type_.scale) for n in (0, 7, -7, 100, 10**30, -(10**30)))]
        case Kind.UNCONSTRAINED:
            return [None, *map(of_text, ("0", "-1", "1.0", "1.00", "10", "-10", "1e-20", "NaN", "Infinity"))]
        case Kind.INTERVAL:
            return [None, Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 29, 86_400_000_001), Interval(-1, 0, 0)]
        case Kind.BYTEA:
            return [None, b"", b"\0", b"a", b"\xff", b"ab"]
        case Kind.TIME:
            return [None, dt.time(), dt.time(23, 59, 59, 999_999), dt.time(12)]
        case Kind.CHAR | Kind.VARCHAR | Kind.TEXT:
            return [None, "", "a", "B", "ab", "é", "\U0001f600", "\uffff"]
    return [None, *map(VALUES[type_], range(6))]


#: Kinds that are compared, each with itself; numerics with one of another scale.
COMPARED_TYPES = [
    *((type_, type_) for type_ in (INT4, INT8, DATE, TIMESTAMP, UUID, TEXT, FLOAT8, numeric(2), BYTEA, TIME, INTERVAL)),
    (numeric(0), numeric(9)),
    (UNCONSTRAINED, UNCONSTRAINED),
    (ScalarType(Kind.CHAR), ScalarType(Kind.CHAR)),
]


@pytest.mark.parametrize(("one", "other"), COMPARED_TYPES, ids=str)
@pytest.mark.parametrize("operation", TURNED)
def test_values_of_each_kind_are_paired_as_they_compare(one: ScalarType, other: ScalarType, operation: str) -> None:
    left, right = ColumnRef(0, one), ColumnRef(1, other)
    call = Call(f"{operation}_{short_name(one.kind)}", (left, right), BOOL)
    compared = leading_comparisons([("filter", call)], 2)
    assert compared
    plain = [[to_plain(cell, type_) for cell in values_of(type_)] for type_ in (one, other)]
    stored = [stored_cells(cells, type_) for cells, type_ in zip(plain, (one, other), strict=True)]
    first, second = (
        ranges.Side(RowBatch(len(cells), {place: cells}.__getitem__), frozenset({place}))
        for place, cells in enumerate(stored)
    )
    found = ranges.compared_pairs(first, second, compared, None, 1_000)
    assert found is not None
    evaluate = compiled(call)
    wanted = [(m, n) for m, a in enumerate(plain[0]) for n, b in enumerate(plain[1]) if evaluate({0: a, 1: b})]
    assert sorted(zip(*(numbers.tolist() for numbers in found), strict=True)) == wanted


@given(data=st.data(), lower=st.integers(0, TIMES), is_whole=st.booleans())
def test_the_updates_are_the_same_if_few_times_are_joined_at_once(
    data: st.DataObject, lower: int, is_whole: bool
) -> None:
    node = JOINS["one class of three"]
    histories = [data.draw(UPDATES) for _ in node.inputs]
    with budget_of(replace(budget(), joined_at_once=0)):
        found = made(node, histories, lower, is_whole=is_whole)
    assert found == defined(node, histories, lower)


def test_rows_that_are_replaced_again_and_again_are_few(set_budget: SetBudget) -> None:
    set_budget(joined_rows=100)
    node = JOINS["one class of three"]
    history: list[Told] = [((1, text), time, diff, None) for time in range(1, 20)
                           for text, diff in ((str(time), 1), (str(time - 1), -1)) if time > 1 or diff > 0]  # fmt: skip
    assert made(node, [history] * 3, 2) == defined(node, [history] * 3, 2)


def test_all_orders_of_lookups_make_the_same() -> None:
    rows: list[Told] = [((n % 3, "x" * (n % 2)), n % TIMES, 1, None) for n in range(12)]
    histories: list[list[Told]] = [rows[:5], rows[4:9], rows[7:]]
    node = JOINS["a chain"]
    turned = DeltaJoin(node.inputs, node.equivalences, ((2, 1), (2, 0), (0, 1)), node.relation_type)
    assert made(turned, histories, 2) == made(node, histories, 2) == defined(node, histories, 2)


@pytest.mark.parametrize("type_", TYPES)
def test_keys_of_every_kind_are_equal_where_their_values_are(type_: ScalarType) -> None:
    read = ReadCollection(GlobalId("u"), RelationType((Column("c0", type_),)))
    columns = read.relation_type.columns * 2
    node = DeltaJoin((read, read), ((ColumnRef(0, type_), ColumnRef(1, type_)),), (), RelationType(columns))
    values = [VALUES[type_](n) for n in range(5)]
    tables = [update_table(read.relation_type.columns, [((one,), 1, 1) for one in given]) for given in
              ([*values, None], [*values[1:], *values[:2], None])]  # fmt: skip
    with budget_of(replace(budget(), sorted_rows=0)):
        for _ in range(3):  # from the second time on the keys are in order
            found = join_updates(node, tables, frozenset({1}), lambda _, j, *__: tables[j])
            assert found.num_rows == sum(one == other for one in values for other in [*values[1:], *values[:2]])
            assert found.column("c0").to_pylist() == found.column("c1").to_pylist()


@pytest.mark.parametrize(
    ("type_", "value"),
    [(array_of(INT4), [1, None]), (INTERVAL, Interval(1, 2, 3)), (JSONB, '{"a": [1]}'), (FLOAT8, -0.0)],
    ids=lambda one: str(one)[:12],
)
def test_rows_of_every_kind_are_joined(type_: ScalarType, value: Any) -> None:
    read = ReadCollection(GlobalId("u"), RelationType((Column("c0", INT4), Column("c1", type_))))
    columns = read.relation_type.columns * 2
    node = DeltaJoin((read, read), ((ColumnRef(0, INT4), ColumnRef(2, INT4)),), (), RelationType(columns))
    table = update_table(read.relation_type.columns, [((1, value), 1, 1), ((2, None), 1, 1)])
    found = join_updates(node, [table, table], frozenset({1}), lambda *_: table)
    stored = table.column("c1").to_pylist()
    assert sorted(found.column("c0").to_pylist()) == [1, 2]
    for column in ("c1", "c3"):
        assert dict(zip(found.column("c0").to_pylist(), found.column(column).to_pylist(), strict=True)) == {
            1: stored[0],
            2: stored[1],
        }


def test_many_pairs_are_left_to_spark_before_they_are_there(set_budget: SetBudget) -> None:
    set_budget(joined_rows=12)
    history: list[Told] = [((1, "a"), time % TIMES, 1, None) for time in range(4)]
    with pytest.raises(Declined, match="too many"):
        made(JOINS["two inputs"], [history, history], 0)
    assert made(JOINS["two inputs"], [history, history[:3]], 0) == defined(
        JOINS["two inputs"], [history, history[:3]], 0
    )


def test_a_diff_out_of_range_is_told_here() -> None:
    history: list[Told] = [((1, "a"), 3, 2**40, None)]
    with pytest.raises(MultiplicityOverflow, match="out of range"):
        made(JOINS["two inputs"], [history, history], 0)
