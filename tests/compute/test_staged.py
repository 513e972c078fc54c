"""A tournament's updates, summed over any split of time, are the tournament recomputed from scratch.

Random histories with duplicates, NULLs, negative multiplicities, many times in an interval, floats of all kinds and
updates of the error part. The state is a pTVC, which checks each interval's times, and is compacted between steps. The
first column of the group is the number of a case, so many small random cases run in one Spark job for each shape.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as sf

from mz_dagster.compute.algebra.frame import DIFF, META, positional, spark_schema
from mz_dagster.compute.algebra.gathering import TOO_MANY_ELEMENTS
from mz_dagster.compute.lookups.lookup_keys import fetched, key_schema
from mz_dagster.compute.spark.staged import staged_updates
from mz_dagster.compute.spark.state import FrameState, OwnState
from mz_dagster.compute.spark.tournament.extremes import KERNELS, extreme
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.errors import InternalError
from mz_dagster.formalism import NATURAL, Antichain, GlobalId, Ptvc, Timeline, consolidate
from mz_dagster.formalism import Update as FormalUpdate
from mz_dagster.functions.errors import RETRACTION
from mz_dagster.plan.physical import (
    Gathered,
    Linear,
    MapFilterProject,
    ReadCollection,
    Staged,
    TopRows,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, DATE, INT4, INT8, TEXT, Column, RelationType
from tests.compute.contents import Content, Row, Update, at, exact, is_error
from tests.compute.staged_reference import check_levels, never_retracted, result
from tests.compute.staged_shapes import (
    ARITY,
    BIT_AND,
    BIT_XOR,
    BY_T,
    BY_X,
    GATHERED,
    INPUT,
    MAX,
    MIN,
    PLACE,
    STAGED_SHAPES,
    TIMES,
    array_agg,
    random_updates,
    staged,
    string_agg,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = 24
TIMELINE = Timeline("t", NATURAL)


def frontier(time: int) -> Antichain[int]:
    return Antichain.of(TIMELINE, time)


def frame_of(spark: SparkSession, relation_type: RelationType, updates: Sequence[Update]) -> DataFrame:
    cells = [
        (*(None,) * relation_type.arity, time, diff, row[1])
        if is_error(row)
        else (*(list(cell) if isinstance(cell, tuple) else cell for cell in row), time, diff, None)
        for row, time, diff in updates
    ]
    return spark.createDataFrame(cells, spark_schema(relation_type))


def hashable(cell: Any) -> Any:
    return exact(tuple(cell)) if isinstance(cell, list) else cell


class WholeState(FrameState):
    """Is a state that is little."""

    is_whole = True

    def lookup(self, keys: DataFrame, positions: Sequence[int]) -> DataFrame:
        return self.before()


class FetchingState(FrameState):
    """Is a state whose lookups begin with their keys.

    Attributes:
        found: The keys by which it was looked up.
    """

    prunes = True

    def __init__(self, frame: DataFrame, found: list[pa.Table]) -> None:
        super().__init__(frame)
        self.found = found

    def fetched(self, frame: DataFrame, columns: Sequence[Column]) -> pa.Table | None:
        return fetched(frame, columns)

    def find(self, keys: pa.Table, positions: Sequence[int]) -> DataFrame:
        self.found.append(keys)
        own = key_schema([PLACE[position] for position in positions])
        return self.lookup(self._frame.sparkSession.createDataFrame(keys, own), positions)


class Life:
    """Is one state operator through its steps, over two sets of cases: some begin with the first time, others hydrated.

    They share all later steps, so that one job does for both.

    Args:
        spark: Where.
        node: The operator.
        seed: Of its history.
        state: Makes its state of a frame.
        changed: Which part of all changes comes after the beginning.
    """

    def __init__(
        self,
        spark: SparkSession,
        node: Staged,
        seed: int,
        state: Callable[[DataFrame], OwnState] = FrameState,
        changed: float = 1.0,
    ) -> None:
        source = random.Random(seed)
        self._own = state
        names = INPUT.with_names(positional(ARITY))
        self._spark = spark
        self._node = replace(node, input=ReadCollection(GlobalId("in"), names, "in"))
        # Without a group there is one case, which begins one way.
        ways = (True, True) if node.group else (seed % 2 == 0, seed % 2 == 1)
        self._first = random_updates(source, range(CASES // 2), errors=4) if ways[0] else []
        self._hydrated = random_updates(source, range(CASES // 2, CASES), errors=0) if ways[1] else []
        self._hydrated_at = source.randrange(2, TIMES - 3)
        if changed < 1:
            for updates in (self._first, self._hydrated):
                updates[:] = [one for one in updates if one[1] <= self._hydrated_at or source.random() < changed]
        self._cuts = sorted({source.randrange(self._hydrated_at + 2, TIMES), TIMES})
        self._arity = node.relation_type.arity
        self._state: Ptvc[Row, int] = Ptvc.begin(TIMELINE)

    def run(self) -> None:
        """Goes through all steps and checks the state at all times."""
        self._begin()
        for upper in self._cuts:
            self._step(upper)
            for time in range(self._state.since.only, upper):
                self._check(time, [(self._first, 0), (self._hydrated, self._hydrated_at)])
            self._state = self._state.compact(frontier(upper - 1))

    def _begin(self) -> None:
        upper = self._hydrated_at + 1
        first = self._updates(self._first, 0, upper, [])
        hydrated = self._renderer(self._hydrated, []).snapshot(self._node, self._hydrated_at)
        whole = first.select("*", sf.lit(True).alias("tag")).unionAll(hydrated.select("*", sf.lit(False).alias("tag")))
        answers = whole.collect()
        self._append(upper, self._collected([answer[:-1] for answer in answers if answer[-1]]))
        for time in range(upper):
            self._check(time, [(self._first, 0)])
        compacted = self._state.compact(frontier(self._hydrated_at))
        found = [FormalUpdate(*one) for one in self._collected([one[:-1] for one in answers if not one[-1]])]
        self._state = Ptvc(TIMELINE, consolidate([*compacted.updates, *found]), compacted.since, compacted.upper)

    def _step(self, upper: int) -> None:
        before = [(one.data, one.time, one.diff) for one in self._state.updates]
        found = self._updates([*self._first, *self._hydrated], self._state.upper.only, upper, before)
        self._append(upper, self._collected(found.collect()))

    def _append(self, upper: int, updates: Sequence[Update]) -> None:
        # The pTVC refuses times outside of the interval.
        self._state = self._state.append(frontier(upper), [FormalUpdate(*one) for one in updates])

    def _renderer(self, updates: Sequence[Update], before: Sequence[Update]) -> Renderer:
        def read(_: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
            return frame_of(self._spark, INPUT, [one for one in updates if (lower or 0) <= one[1] < upper])

        own = self._own(frame_of(self._spark, self._node.relation_type, before))
        return Renderer(self._spark, read, own=own)

    def _updates(self, updates: Sequence[Update], lower: int, upper: int, before: Sequence[Update]) -> DataFrame:
        found = self._renderer(updates, before).updates(self._node, lower, upper, lambda _: False)
        assert found is not None
        return found

    def _collected(self, answers: Sequence[Sequence[Any]]) -> list[Update]:
        found: list[Update] = []
        for *cells, time, diff, error in answers:
            assert error is None or cells == [None] * self._arity, "an update of the error part carries data"
            row = exact(tuple(hashable(cell) for cell in cells)) if error is None else ("error", error)
            found.append((row, time, diff))
        return found

    def _check(self, time: int, inputs: Sequence[tuple[Sequence[Update], int]]) -> None:
        state: Content = Counter(dict(self._state.read(time).multiplicities))
        expected: Content = Counter()
        for updates, hydrated_at in inputs:
            content = at(updates, time)
            if self._node.monotonic:
                content = never_retracted(updates, hydrated_at, time)
            for row, n in result(self._node, content).items():
                expected[row] += n
        last = self._node.last_level
        top = {row if is_error(row) else row[2:]: n for row, n in state.items() if is_error(row) or row[0] == last}
        assert top == {row: n for row, n in expected.items() if n}, f"the result at {time}"
        if self._node.monotonic:
            assert all(is_error(row) or row[0] == last for row in state)
            return
        whole = [update for updates, _ in inputs for update in updates]
        lowest = {row[2 : 2 + ARITY]: n for row, n in state.items() if not is_error(row) and row[0] == 0}
        assert lowest == {row: n for row, n in at(whole, time).items() if not is_error(row)}, f"the input at {time}"
        check_levels(self._node, state, ARITY)


@pytest.mark.deep
@pytest.mark.parametrize("shape", ["extremes in two stages", "monotonic first row"])
def test_the_state_is_the_tournament_recomputed(spark: SparkSession, shape: str) -> None:
    Life(spark, STAGED_SHAPES[shape], seed=len(shape)).run()


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2))
def test_first_rows_of_a_little_state_are_those_recomputed(spark: SparkSession, seed: int) -> None:
    Life(spark, STAGED_SHAPES["top rows in two stages"], seed, WholeState).run()


@pytest.mark.deep
def test_buckets_whose_first_rows_do_not_change_are_spared(spark: SparkSession) -> None:
    found: list[pa.Table] = []
    node = staged(TopRows((BY_X, BY_T), 4), 8, 1, group=())
    Life(spark, node, 0, lambda frame: FetchingState(frame, found), changed=0.02).run()
    assert found, "some steps spare buckets"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(40))
def test_buckets_are_spared_in_many_histories(spark: SparkSession, seed: int) -> None:
    node = staged(TopRows((BY_X, BY_T), seed % 7), *((16, 4, 1), (8, 1), (1,))[seed % 3], group=())
    Life(spark, node, 1000 + seed, lambda frame: FetchingState(frame, []), changed=0.01 * (1 + seed % 5)).run()


@pytest.mark.deep
@pytest.mark.parametrize("shape", STAGED_SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_the_state_is_the_tournament_recomputed_for_many_histories(spark: SparkSession, shape: str, seed: int) -> None:
    Life(spark, STAGED_SHAPES[shape], seed=100 + seed).run()


@pytest.mark.deep
@pytest.mark.parametrize("shape", [one for one in STAGED_SHAPES if "extreme" in one or "bits" in one])
def test_what_has_no_kernel_is_computed_by_its_algebra(
    spark: SparkSession, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in list(KERNELS):
        monkeypatch.delitem(KERNELS, one)
    Life(spark, STAGED_SHAPES[shape], seed=7).run()


def test_workers_compute_what_has_no_kernel(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group, and of the frames of a window."""
    days = [date(2024, 2, 29), None, date(1969, 1, 1)]
    rows = [(1, n, 6 - n, days[n], 2 - n % 2) for n in range(3)]
    frame = spark.createDataFrame(rows, f"g int, n int, i int, d date, {DIFF} bigint")
    window = Window.partitionBy("g").orderBy("n")

    def found() -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        wanted = [(BIT_XOR, "i", INT4), (BIT_AND, "i", INT4), (MAX, "d", DATE), (MIN, "d", DATE)]
        whole = frame.groupBy().agg(*(extreme(one, sf.col(name), type_) for one, name, type_ in wanted))
        until = frame.select(*(extreme(one, sf.col(name), type_, window) for one, name, type_ in wanted))
        return sorted(map(tuple, whole.collect())), sorted(map(tuple, until.collect()), key=repr)

    by_kernels = found()
    assert by_kernels[0] == [(5, 4, days[0], days[2])]
    for one in list(KERNELS):
        monkeypatch.delitem(KERNELS, one)
    assert found() == by_kernels


def plan_of(frame: DataFrame) -> str:
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        frame.explain()
    return written.getvalue()


def test_a_filter_for_the_last_level_leaves_one_chain_of_stages(spark: SparkSession) -> None:
    node = STAGED_SHAPES["top rows in two stages"]
    level = Call("eq_int4", (ColumnRef(0, INT4), Literal(node.last_level, INT4)), BOOL, False)
    arity = node.relation_type.arity
    above = Linear(node, MapFilterProject(arity, (("filter", level),), tuple(range(arity))), node.relation_type)
    rows: list[Update] = [((1, 1.5, 2.5, "a", None), 3, 1)]
    renderer = Renderer(spark, lambda *_: frame_of(spark, INPUT, rows).toDF(*INPUT.names, *META))
    everything, result_only = plan_of(renderer.snapshot(node, 5)), plan_of(renderer.snapshot(above, 5))
    assert everything.count("Window [") == 3
    assert everything.count("Union") == 1
    assert result_only.count("Window [") == 2
    assert "Union" not in result_only


@pytest.mark.parametrize(
    "node",
    [
        staged(TopRows((), 2, 1), 1, monotonic=True),
        staged(GATHERED, 1, monotonic=True),
        staged(GATHERED, 4, 1),
    ],
)
def test_what_winners_or_buckets_cannot_tell_is_refused(spark: SparkSession, node: Staged) -> None:
    empty = frame_of(spark, node.relation_type, [])
    with pytest.raises(InternalError):
        staged_updates(frame_of(spark, INPUT, []), FrameState(empty), node)


def test_a_result_that_is_too_large_is_an_error_of_the_data(spark: SparkSession) -> None:
    node = staged(Gathered((array_agg(2), string_agg(3, 3))), 1)
    many: Row = (1, 1.5, 2.5, "ab", None)
    few: Row = (2, 1.5, 2.5, "ab", None)
    changes = frame_of(spark, INPUT, [(many, 3, 2**31), (few, 3, 2)])
    found = staged_updates(changes, FrameState(frame_of(spark, node.relation_type, [])), node).collect()
    assert [(row["mz_timestamp"], row["mz_diff"]) for row in found if row["mz_error"] == TOO_MANY_ELEMENTS] == [(3, 1)]
    assert [row["c8"] for row in found if row["c0"] == 1 and row["mz_error"] is None] == ["ababab"]


def test_a_row_of_what_only_grows_is_there_from_the_first_of_its_times(spark: SparkSession) -> None:
    input_ = RelationType((Column("c0", INT4), Column("c1", TEXT)))
    columns = (Column("level", INT4, False), Column("bucket", INT8, False), *input_.columns)
    below = ReadCollection(GlobalId("in"), input_, "in")
    node = Staged(below, (0, 1), TopRows((), 1), (1,), True, RelationType(columns))
    failed: Row = ("error", "22000 bad record")
    new: list[Update] = [
        ((5, "before"), 3, 1),
        ((6, None), 4, 2),
        ((6, None), 3, 1),
        ((7, "x"), 3, 1),
        ((7, "x"), 5, -1),
        ((8, ""), 4, 1),
        ((8, ""), 4, -1),
        (failed, 4, 2),
        (failed, 5, -1),
    ]
    own = FrameState(frame_of(spark, node.relation_type, [((1, 0, 5, "before"), 1, 1)]))
    found = Renderer(spark, lambda *_: frame_of(spark, input_, new), own=own).updates(node, 2, 6, lambda _: False)
    assert found is not None
    assert Counter(map(tuple, found.collect())) == Counter(
        [
            (1, 0, 6, None, 3, 1, None),
            (1, 0, 7, "x", 3, 1, None),
            (None, None, None, None, 5, 1, RETRACTION),
            (None, None, None, None, 4, 2, failed[1]),
            (None, None, None, None, 5, -1, failed[1]),
        ]
    )
