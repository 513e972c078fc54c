"""The updates of a plan, summed over any split of time, are the plan's content recomputed from scratch.

Random histories with duplicates, NULL keys, negative multiplicities, many times in an interval, and updates of the
error part. Every collection's first column is the number of a case, by which everything is joined: so many small
random cases run in one Spark job for each shape of plan.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

from mz_dagster.compute.algebra.frame import spark_schema
from mz_dagster.compute.spark.consolidate import consolidate
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Catch,
    ConstantRows,
    DeltaJoin,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    UnionAll,
    Unnest,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, FLOAT8, INT4, INT8, TEXT, Column, RelationType, ScalarType, array_of
from tests.compute.reference import Content, Row, Update, at, evaluate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMES = 12
CASES = 25


def relation(*columns: tuple[str, ScalarType]) -> RelationType:
    return RelationType(tuple(Column(name, type_) for name, type_ in columns))


A = relation(("case", INT4), ("x", INT4), ("a", INT4))
B = relation(("case", INT4), ("x", INT4), ("y", INT4))
C = relation(("case", INT4), ("y", INT4), ("c", INT4))
F = relation(("case", INT4), ("x", FLOAT8), ("t", TEXT))
G = relation(("case", INT4), ("p", array_of(INT4)), ("q", array_of(TEXT)))
R = relation(("case", INT4), ("times", INT8), ("x", INT4))
TYPES = {GlobalId("a"): A, GlobalId("b"): B, GlobalId("c"): C, GlobalId("f"): F, GlobalId("empty"): A, GlobalId("r"): R,
         GlobalId("g"): G}  # fmt: skip


def get(name: str) -> ReadCollection:
    return ReadCollection(GlobalId(name), TYPES[GlobalId(name)], name)


def column(position: int, type_: ScalarType = INT4) -> ColumnRef:
    return ColumnRef(position, type_)


def number(value: int) -> Literal:
    return Literal(value, INT4)


def call(function: str, *arguments: Scalar, type_: ScalarType = INT4) -> Call:
    return Call(function, arguments, type_)


def joined(*inputs: Physical) -> RelationType:
    return RelationType(tuple(c for one in inputs for c in one.relation_type.columns))


def join(
    inputs: Sequence[Physical],
    *equivalences: Sequence[Scalar],
    orders: tuple[tuple[int, ...], ...] | None = None,
    null_safe: tuple[int, ...] = (),
) -> DeltaJoin:
    count = len(inputs)
    usual = tuple(tuple(j for j in range(count) if j != i) for i in range(count))
    classes = tuple(tuple(e) for e in equivalences)
    return DeltaJoin(tuple(inputs), classes, orders or usual, joined(*inputs), frozenset(null_safe))


def mapped(node: Physical, steps: Sequence[tuple[str, Scalar]], projection: Sequence[int]) -> Linear:
    types = [c.type for c in node.relation_type.columns] + [s.type for kind, s in steps if kind == "map"]
    result = relation(*((f"m{i}", types[p]) for i, p in enumerate(projection)))
    return Linear(node, MapFilterProject(node.relation_type.arity, tuple(steps), tuple(projection)), result)


def _fallible_linear() -> Physical:
    quotient = call("divide_int4", number(6), column(1))
    return mapped(
        get("a"),
        [
            ("filter", call("lt_int4", column(2), number(3), type_=BOOL)),
            ("map", quotient),
            ("filter", call("lt_int4", column(3), number(6), type_=BOOL)),
            ("map", call("divide_int4", column(3), column(2))),
        ],
        [0, 4, 3, 2],
    )


def _plain_linear() -> Physical:
    steps = [
        ("filter", call("eq_int4", column(1), number(1), type_=BOOL)),
        ("map", call("add_int4", column(1), column(2))),
    ]
    return mapped(get("a"), steps, [0, 3, 3])


def _three_way() -> Physical:
    # The columns: a.case a.x a.a | b.case b.x b.y | c.case c.y c.c
    inputs = [get("a"), get("b"), get("c")]
    return join(
        inputs,
        [column(0), column(3), column(6)],
        [column(1), column(4)],
        [column(5), column(7)],
        orders=((1, 2), (2, 0), (1, 0)),
    )


def _same_class() -> Physical:
    inputs = [get("a"), get("b"), get("a")]
    return join(inputs, [column(0), column(3), column(6)], [column(1), column(4), column(7), column(8)])


def _spanning() -> Physical:
    inputs = [get("a"), get("b"), get("c")]
    ratio = call("divide_int4", column(2), column(5))
    total = call("add_int4", column(1), column(4))
    return join(inputs, [column(0), column(3), column(6)], [total, column(7)], [ratio, column(8)])


def _fallible_keys() -> Physical:
    inputs = [get("a"), get("b")]
    key = call("divide_int4", number(6), column(1))
    return join(inputs, [column(0), column(3)], [key, column(4)])


def _with_constant() -> Physical:
    inputs = [get("a"), get("b")]
    return join(inputs, [column(0), column(3)], [column(1), number(1), column(5)])


def _over_linear() -> Physical:
    rows = ConstantRows(
        tuple((number(case), number(x), Literal(None, INT4)) for case in range(CASES) for x in (0, 1, 1)), A
    )
    subtracted = UnionAll((get("a"), NegateAll(get("empty"), A), NegateAll(_plain_linear(), A), rows), A)
    inputs = [subtracted, _fallible_linear()]
    return join(inputs, [column(0), column(3)], [column(1), column(4)])


def _floats() -> Physical:
    inputs = [get("f"), get("f")]
    return join(inputs, [column(0), column(3)], [column(1, FLOAT8), column(4, FLOAT8)])


def _texts() -> Physical:
    inputs = [get("f"), get("a"), get("f")]
    return join(inputs, [column(0), column(3), column(6)], [column(2, TEXT), column(8, TEXT)])


def _null_safe() -> Physical:
    inputs = [get("a"), get("b"), get("c")]
    return join(
        inputs, [column(0), column(3), column(6)], [column(1), column(4)], [column(5), column(7)], null_safe=(1,)
    )


def _null_safe_throughout() -> Physical:
    inputs = [get("a"), get("b"), get("a")]
    # One class within and across inputs, one with a constant NULL.
    return join(
        inputs,
        [column(0), column(3), column(6)],
        [column(1), column(4), column(7), column(8)],
        [column(2), Literal(None, INT4)],
        null_safe=(1, 2),
    )


def _null_safe_floats() -> Physical:
    inputs = [get("f"), get("f")]
    classes = [column(1, FLOAT8), column(4, FLOAT8)], [column(2, TEXT), column(5, TEXT)]
    return join(inputs, [column(0), column(3)], *classes, null_safe=(1, 2))


def _null_safe_keys_that_fail() -> Physical:
    inputs = [get("a"), get("b")]
    key = call("divide_int4", number(6), column(1))
    return join(inputs, [column(0), column(3)], [key, column(4)], null_safe=(1,))


def _null_safe_spanning() -> Physical:
    inputs = [get("a"), get("b"), get("c")]
    ratio = call("divide_int4", column(2), column(5))
    total = call("add_int4", column(1), column(4))
    return join(inputs, [column(0), column(3), column(6)], [total, column(7)], [ratio, column(8)], null_safe=(1, 2))


def _repeated() -> Physical:
    repeated = Repeat(get("r"), 1, relation(("case", INT4), ("x", INT4)))
    return join([get("a"), repeated], [column(0), column(3)], [column(1), column(4)])


def _series_that_fails() -> Physical:
    # Steps of 0 fail.
    series = call("generate_series_int4", number(0), column(1), column(2), type_=array_of(INT4))
    made = mapped(get("a"), [("map", series)], [0, 1, 3])
    return Unnest(made, 1, True, relation(("case", INT4), ("x", INT4), ("element", INT4), ("ordinality", INT8)))


def _caught() -> Physical:
    below = _fallible_linear()
    return Catch(below, RelationType((*below.relation_type.columns, Column("error", TEXT))))


def _caught_and_joined() -> Physical:
    caught = _caught()
    errors = [("filter", call("is_not_null", column(4, TEXT), type_=BOOL))]
    few = mapped(get("b"), [("filter", call("lt_int4", column(0), number(3), type_=BOOL))], [0, 1])
    return join([few, mapped(caught, errors, [4])])


def _unnested_and_joined() -> Physical:
    elements = Unnest(get("g"), 2, False, relation(("case", INT4), ("x", INT4), ("t", TEXT)))
    return join([get("a"), elements], [column(0), column(3)], [column(1), column(4)])


def _cross() -> Physical:
    few = ConstantRows(((number(1), Literal(None, INT4), number(2)),), A)
    return join([few, mapped(get("a"), [("filter", call("lt_int4", column(0), number(3), type_=BOOL))], [1])])


SHAPES: dict[str, Callable[[], Physical]] = {
    "read": lambda: get("a"),
    "fallible linear": _fallible_linear,
    "plain linear": _plain_linear,
    "union and negation": lambda: UnionAll((get("a"), NegateAll(_plain_linear(), A), get("b")), A),
    "three ways": _three_way,
    "one class of four": _same_class,
    "scalars over several inputs": _spanning,
    "keys that fail": _fallible_keys,
    "a constant among the equal": _with_constant,
    "linear inputs and constants": _over_linear,
    "floating-point keys": _floats,
    "text keys": _texts,
    "no equivalence": _cross,
    "rows repeated": lambda: Repeat(get("r"), 1, relation(("case", INT4), ("x", INT4))),
    "rows repeated and joined": _repeated,
    "errors as rows": _caught,
    "errors as rows, joined": _caught_and_joined,
    "elements side by side": lambda: Unnest(
        get("g"), 2, True, relation(("case", INT4), ("x", INT4), ("t", TEXT), ("ordinality", INT8))
    ),
    "elements of a series that fails": _series_that_fails,
    "elements joined": _unnested_and_joined,
    "NULL equals NULL in one class": _null_safe,
    "NULL equals NULL, a constant too": _null_safe_throughout,
    "NULL equals NULL, floats and texts": _null_safe_floats,
    "NULL equals NULL, keys that fail": _null_safe_keys_that_fail,
    "NULL equals NULL, scalars over several inputs": _null_safe_spanning,
}


@dataclass(frozen=True)
class World:
    """Random histories of all collections, and a frame for each."""

    updates: dict[GlobalId, list[Update]]
    frames: dict[GlobalId, DataFrame]

    def read(self, id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
        frame = self.frames[id].where(sf.col("mz_timestamp") < upper)
        return frame if lower is None else frame.where(sf.col("mz_timestamp") >= lower)

    def is_empty(self, id: GlobalId) -> bool:
        return not self.updates[id]

    def content(self, node: Physical, time: int) -> Content:
        return evaluate(node, {id: at(updates, time) for id, updates in self.updates.items()})


def _value(source: random.Random, type_: ScalarType) -> Any:
    if type_ is FLOAT8:
        return source.choice([None, 0.0, -0.0, float("nan"), 1.5])
    if type_ is TEXT:
        return source.choice([None, "", "a", "A", "é"])
    if type_.element is not None:
        elements = [_value(source, type_.element) for _ in range(source.randrange(4))]
        return source.choice([None, tuple(elements), tuple(elements)])
    if type_ is INT8:
        return source.choice([-2, -1, 0, 1, 2])
    return source.choice([None, 0, 1, 1, 2, 3])


def _stored(row: Row) -> Row:
    return tuple(list(cell) if isinstance(cell, tuple) else cell for cell in row)


def random_histories(seed: int, cases: int = CASES) -> dict[GlobalId, list[Update]]:
    """Returns random updates of all collections."""
    source = random.Random(seed)
    updates: dict[GlobalId, list[Update]] = {}
    for id, type_ in TYPES.items():
        own = updates[id] = []
        for case in range(cases) if id != "empty" else ():
            for _ in range(source.randrange(8)):
                row: Row = (case, *(_value(source, c.type) for c in type_.columns[1:]))
                own.append((row, source.randrange(TIMES), source.choice([-2, -1, 1, 1, 1, 2])))
                if source.random() < 0.3:  # a duplicate, or its retraction
                    own.append((row, source.randrange(TIMES), source.choice([-1, 1])))
        for _ in range(3 if own else 0):
            own.append(
                (("error", f"22000 bad record {source.randrange(2)}"), source.randrange(TIMES), source.choice([-1, 1]))
            )
    return updates


def stored(updates: Sequence[Update], arity: int) -> list[tuple[Row, int, int, str | None]]:
    """Returns updates as they are stored: data, time, diff and error."""
    return [
        ((None,) * arity, time, diff, row[1]) if row[0] == "error" else (_stored(row), time, diff, None)
        for row, time, diff in updates
    ]


def random_world(spark: SparkSession, seed: int, cases: int = CASES) -> World:
    updates = random_histories(seed, cases)
    frames: dict[GlobalId, DataFrame] = {}
    for id, type_ in TYPES.items():
        cells = [(*row, time, diff, error) for row, time, diff, error in stored(updates[id], type_.arity)]
        frames[id] = spark.createDataFrame(cells, spark_schema(type_, type_.names))
    return World(updates, frames)


def random_split(source: random.Random, first: int) -> list[tuple[int, int]]:
    """Returns intervals that together are [first, TIMES)."""
    inner = range(first + 1, TIMES)
    cuts = sorted(source.sample(inner, source.randrange(min(3, len(inner) + 1))))
    edges = [first, *cuts, TIMES]
    return list(itertools.pairwise(edges))


def collected(frame: DataFrame, arity: int) -> list[tuple[str, Update]]:
    """Returns `(tag, update)` of a frame whose last column is a tag."""
    found = []
    for answer in frame.collect():
        cells = list(answer)
        time, diff, error, tag = cells[arity:]
        row: Row = tuple(cells[:arity])
        if error is not None:
            assert row == (None,) * arity, "an update of the error part carries data"
            row = ("error", error)
        found.append((tag, (row, time, diff)))
    return found


def spelled(content: Content) -> dict[str, int]:
    """Returns the content by its rows' spelling, in which NaN equals NaN and -0.0 differs from 0.0."""
    total: dict[str, int] = {}
    for row, n in content.items():
        total[repr(row)] = total.get(repr(row), 0) + n
    return {row: n for row, n in total.items() if n}


def check(spark: SparkSession, node: Physical, world: World, seed: int, *ways: str) -> None:
    """Checks the updates of a node, in all or some of the ways in which they may begin."""
    source = random.Random(seed)
    renderer = Renderer(spark, world.read, is_small=lambda id: seed % 2 == 0)
    arity = node.relation_type.arity
    hydrated_at = source.randrange(TIMES - 1)
    runs = {"from the first time": (0, None), "hydrated": (hydrated_at + 1, hydrated_at)}
    frames: list[DataFrame] = []
    for tag in ways or tuple(runs):
        first, as_of = runs[tag]
        parts = [renderer.updates(node, lower, upper, world.is_empty) for lower, upper in random_split(source, first)]
        if as_of is not None:
            parts.append(renderer.snapshot(node, as_of))
        for part in parts:
            if part is not None:
                # The split must not show: every update stands in its interval.
                frames.append(part.select("*", sf.lit(tag).alias("tag")))
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    answers = collected(whole, arity)
    for tag in ways or tuple(runs):
        _, as_of = runs[tag]
        mine = [update for answered, update in answers if answered == tag]
        assert all(time >= (as_of or 0) for _, time, _ in mine)
        for time in range(as_of or 0, TIMES):
            assert spelled(at(mine, time)) == spelled(world.content(node, time)), f"{tag}, time {time}, seed {seed}"


@pytest.fixture(scope="module")
def world(spark: SparkSession) -> World:
    return random_world(spark, seed=7)


#: Their traits are those of other shapes, too; deep.
COMBINED = (
    "one class of four",
    "scalars over several inputs",
    "NULL equals NULL in one class",
    "NULL equals NULL, scalars over several inputs",
    "NULL equals NULL, a constant too",
    "NULL equals NULL, keys that fail",
    "errors as rows, joined",
    "rows repeated and joined",
    "text keys",
    "elements joined",
    "union and negation",
    "linear inputs and constants",
    "no equivalence",
    "errors as rows",
    "NULL equals NULL in one class",
)


@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=pytest.mark.deep if one in COMBINED else ()) for one in SHAPES]
)
def test_updates_sum_to_the_recomputed_content(spark: SparkSession, world: World, shape: str) -> None:
    seed = len(shape)
    check(spark, SHAPES[shape](), world, seed, "hydrated" if seed % 3 else "from the first time")


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_updates_sum_to_the_recomputed_content_for_many_histories(spark: SparkSession, seed: int) -> None:
    histories = random_world(spark, seed=100 + seed)
    for shape in SHAPES.values():
        check(spark, shape(), histories, seed)


def test_constants_are_updates_of_the_first_time_only(spark: SparkSession, world: World) -> None:
    rows = ConstantRows(((number(1), number(2), Literal(None, INT4)),), A)
    renderer = Renderer(spark, world.read)
    first = renderer.updates(rows, 0, 5, world.is_empty)
    assert first is not None
    assert [tuple(row) for row in first.collect()] == [(1, 2, None, 0, 1, None)]
    assert renderer.updates(rows, 1, 5, world.is_empty) is None
    assert [tuple(row) for row in renderer.snapshot(rows, 7).collect()] == [(1, 2, None, 7, 1, None)]


def test_what_is_provably_empty_is_not_planned(spark: SparkSession) -> None:
    read: list[tuple[GlobalId, int | None]] = []
    empty = spark.createDataFrame([], spark_schema(A, A.names))

    def reading(id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
        read.append((id, lower))
        return empty

    renderer = Renderer(spark, reading)
    node = join([get("a"), get("b"), get("c")], [column(0), column(3), column(6)])
    assert renderer.updates(node, 3, 4, lambda id: True) is None
    assert read == []
    # Only a has updates: one term, which looks up the two others.
    assert renderer.updates(node, 3, 4, lambda id: id != "a") is not None
    assert sorted(read, key=repr) == [("a", 3), ("b", None), ("c", None)]
    assert renderer.updates(node, 4, 4, lambda id: False) is None


def test_consolidation_sums_equal_updates_and_keeps_what_differs(spark: SparkSession) -> None:
    nan = float("nan")
    rows = [
        (1, 0.0, "a", 3, 1, None), (1, -0.0, "a", 3, 1, None), (1, 0.0, "a", 3, 1, None), (1, -0.0, "a", 4, -1, None),
        (2, nan, None, 3, 1, None), (2, nan, None, 3, 1, None), (3, 1.5, "a", 3, 1, None), (3, 1.5, "a", 3, -1, None),
        (None, None, None, 3, 2, "22012 division by zero"), (None, None, None, 3, -1, "22012 division by zero"),
        (None, None, None, 3, 1, None), (None, None, None, 3, -2, None),
    ]  # fmt: skip
    frame = spark.createDataFrame(rows, spark_schema(F, F.names))
    found = sorted(repr(tuple(row)) for row in consolidate(frame, F.columns).collect())
    expected = [
        (1, 0.0, "a", 3, 2, None), (1, -0.0, "a", 3, 1, None), (1, -0.0, "a", 4, -1, None), (2, nan, None, 3, 2, None),
        (None, None, None, 3, 1, "22012 division by zero"), (None, None, None, 3, -1, None),
    ]  # fmt: skip
    assert found == sorted(repr(row) for row in expected)
