"""The updates of a plan, summed over any split of time, are the plan's content recomputed from scratch.

The plans and the histories are those of `shapes`, over which `test_operators` holds this process to the same. Many
small random cases run in one Spark job for each plan, of a state for each of its steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as sf

from mz_dagster.compute.algebra.frame import META, positional, spark_schema
from mz_dagster.compute.spark.consolidate import consolidate
from mz_dagster.compute.spark.state import FrameState
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ConstantRows, Physical, StateOperator
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.types import INT4, RelationType
from tests.compute.contents import Row, Update, at
from tests.compute.reference import Known
from tests.compute.shapes import (
    CASES,
    LOOKED_UP,
    ONCE,
    SHAPES,
    TIMES,
    TYPES,
    A,
    F,
    check_content,
    column,
    compacted,
    get,
    join,
    number,
    random_histories,
    random_split,
    stored,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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

    def known(self, time: int, first: int) -> Known:
        return Known(self.updates, time, first)


def frame_of(spark: SparkSession, type_: RelationType, updates: Sequence[Update]) -> DataFrame:
    cells = [(*row, time, diff, error) for row, time, diff, error in stored(updates, type_.arity)]
    return spark.createDataFrame(cells, spark_schema(type_, positional(type_.arity)))


def random_world(spark: SparkSession, seed: int, cases: int = CASES) -> World:
    updates = random_histories(seed, cases)
    frames = {id: frame_of(spark, type_, updates[id]).toDF(*type_.names, *META) for id, type_ in TYPES.items()}
    return World(updates, frames)


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


def check(spark: SparkSession, node: Physical, world: World, seed: int, *ways: str) -> None:
    """Checks the updates of a node, in all or some of the ways in which they may begin."""
    if isinstance(node, StateOperator):
        check_state(spark, node, world, seed)
        return
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
            check_content(node, at(mine, time), world.known(time, as_of or 0))


def check_state(spark: SparkSession, node: StateOperator, world: World, seed: int) -> None:
    """Checks the updates of a state, which is hydrated or begins with nothing, and of which times may be compacted."""
    source = random.Random(seed)
    first, found = 0, list[Update]()
    if seed % 3:
        first = source.randrange(TIMES - 1)
        found = in_frame(Renderer(spark, world.read).snapshot(node, first), node)
        assert {time for _, time, _ in found} <= {first}
    for lower, upper in random_split(source, first + 1 if seed % 3 else 0):
        held = compacted(found, source.randrange(max(1, lower)))
        own = FrameState(frame_of(spark, node.relation_type, held))
        made = Renderer(spark, world.read, own=own).updates(node, lower, upper, world.is_empty)
        new = [] if made is None else in_frame(made, node)
        assert all(lower <= time < upper for _, time, _ in new)
        found += new
    for time in range(first, TIMES):
        check_content(node, at(found, time), world.known(time, first))


def in_frame(frame: DataFrame, node: Physical) -> list[Update]:
    """Returns the updates of a frame."""
    return [update for _, update in collected(frame.select("*", sf.lit("")), node.relation_type.arity)]


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


#: Of states, one of each kind; all others are deep.
STATES = ("counts and sums", "valid in several bounds")


def is_deep(shape: str) -> bool:
    return shape in COMBINED or (shape not in STATES and isinstance(SHAPES[shape](), StateOperator))


@pytest.mark.parametrize("shape", [pytest.param(one, marks=pytest.mark.deep if is_deep(one) else ()) for one in SHAPES])
def test_updates_sum_to_the_recomputed_content(spark: SparkSession, world: World, shape: str) -> None:
    seed = len(shape)
    check(spark, SHAPES[shape](), world, seed, "hydrated" if seed % 3 else "from the first time")


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_updates_sum_to_the_recomputed_content_for_many_histories(spark: SparkSession, seed: int) -> None:
    histories = random_world(spark, seed=100 + seed)
    for shape in (*SHAPES.values(), *LOOKED_UP.values()):
        check(spark, shape(), histories, seed)


@pytest.mark.deep
@pytest.mark.parametrize("shape", LOOKED_UP)
def test_histories_are_looked_up(spark: SparkSession, world: World, shape: str) -> None:
    check(spark, LOOKED_UP[shape](), world, len(shape))


@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=() if one.startswith("sums, extremes") else pytest.mark.deep) for one in ONCE]
)
def test_what_is_computed_once_is_the_recomputed_content(spark: SparkSession, world: World, shape: str) -> None:
    node, as_of = ONCE[shape](), TIMES - 2
    found = in_frame(Renderer(spark, world.read).snapshot(node, as_of), node)
    check_content(node, at(found, as_of), world.known(as_of, as_of))


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
