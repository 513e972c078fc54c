"""The state of a temporal filter, summed over any split of time, is what the formalism says it is at every time.

Random histories: bounds that are absent, NULL, crossed, equal to the time of arrival or long past, negative diffs,
duplicates and retractions, many times in an interval, updates of the error part. The first column is the number of a
case, so that many small histories run in three Spark jobs for each shape of filter: the first interval (and, for half
of the cases, a hydration at its end), and two more, between which the state of some cases is compacted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mz_dagster.compute.algebra.frame import META, spark_schema
from mz_dagster.compute.local.temporal import temporal_updates as local_updates
from mz_dagster.compute.placement.supported import unsupported
from mz_dagster.compute.spark.state import FrameState
from mz_dagster.compute.spark.temporal import temporal_snapshot, temporal_updates
from mz_dagster.formalism import NATURAL, Antichain, Timeline, Tvc, Update, compact_updates
from mz_dagster.plan.physical import TemporalState
from mz_dagster.scalars.types import RelationType
from mz_dagster.storage.arrow_schema import update_table, without_error_data
from tests.compute.reference import valid
from tests.compute.temporal_shapes import BOUNDED, TEMPORAL_SHAPES, VALID, random_bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]
TIMES = 12
CASES = 80
#: The interval that is hydrated over, and the steps that follow.
FIRST, STEPS = (0, 4), ((4, 9), (9, TIMES))
TIMELINE = Timeline("t", NATURAL)


def random_history(source: random.Random) -> list[tuple[Row, int, int]]:
    """Returns updates of the input; an error is the row `("error", text)`."""
    history: list[tuple[Row, int, int]] = []
    for case in range(CASES):
        for _ in range(source.randrange(1, 7)):
            row: Row = (case, *random_bounds(source))
            history.append((row, source.randrange(TIMES), source.choice([-2, -1, 1, 1, 1, 2])))
            while source.random() < 0.5:  # a duplicate, or its retraction
                history.append((row, source.randrange(TIMES), source.choice([-1, 1])))
    for _ in range(4):
        history.append((("error", "22000 bad record"), source.randrange(TIMES), source.choice([-1, 1, 2])))
    return history


def frame_of(spark: SparkSession, type_: RelationType, updates: list[tuple[Row, int, int]]) -> DataFrame:
    names = [f"c{i}" for i in range(type_.arity)]
    cells = [
        ((None,) * type_.arity + (time, diff, row[1])) if row[0] == "error" else (*row, time, diff, None)
        for row, time, diff in updates
    ]
    return spark.createDataFrame(cells, spark_schema(type_, names))


def collected(frame: DataFrame) -> list[Update[Row, int]]:
    found = []
    for answer in frame.collect():
        *row, time, diff, error = answer
        found.append(Update(tuple(row) if error is None else ("error", error), time, diff))
    return found


def is_hydrated(row: Row) -> bool:
    """Tells the cases that begin by a hydration; errors, of no case, do not."""
    return bool(row[0] != "error" and row[0] % 2 == 1)


def table_of(type_: RelationType, updates: Iterable[tuple[Row, int, int]]) -> pa.Table:
    rows = [
        ((None,) * type_.arity, time, diff, row[1]) if row[0] == "error" else (row, time, diff, None)
        for row, time, diff in updates
    ]
    return update_table(type_.columns, rows).rename_columns([*(f"c{i}" for i in range(type_.arity)), *META])


def listed(table: pa.Table) -> list[Update[Row, int]]:
    found = []
    for cells in zip(*(column.to_pylist() for column in without_error_data(table).columns), strict=True):
        *row, time, diff, error = cells
        found.append(Update(tuple(row) if error is None else ("error", error), time, diff))
    return found


#: Returns a state's updates in an interval, of its input's there and its own before it.
Advance = Callable[[list[tuple[Row, int, int]], list[tuple[Row, int, int]], int, int], list[Update[Row, int]]]
#: Returns the updates of a state that begins, of its input's content at a time.
Begin = Callable[[list[tuple[Row, int, int]], int], list[Update[Row, int]]]


@pytest.mark.deep
@pytest.mark.parametrize("name", TEMPORAL_SHAPES)
def test_the_state_is_what_the_formalism_says_at_every_time(spark: SparkSession, name: str) -> None:
    node = TEMPORAL_SHAPES[name]

    def advance(
        changes: list[tuple[Row, int, int]], own: list[tuple[Row, int, int]], lower: int, upper: int
    ) -> list[Update[Row, int]]:
        state = FrameState(frame_of(spark, VALID, own))
        made = temporal_updates(frame_of(spark, BOUNDED, changes), state, node, lower, upper)
        assert made is not None
        return collected(made)

    def begin(content: list[tuple[Row, int, int]], as_of: int) -> list[Update[Row, int]]:
        return collected(temporal_snapshot(frame_of(spark, BOUNDED, content), node, as_of))

    hold(node, random.Random(name), advance, begin)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(one, marks=pytest.mark.deep) for one in range(2, 5))])
@pytest.mark.parametrize("name", TEMPORAL_SHAPES)
def test_so_it_is_if_few_updates_are_computed_in_this_process(name: str, seed: int) -> None:
    node = TEMPORAL_SHAPES[name]
    assert not unsupported(node)

    def advance(
        changes: list[tuple[Row, int, int]], own: list[tuple[Row, int, int]], lower: int, upper: int
    ) -> list[Update[Row, int]]:
        return listed(local_updates(table_of(BOUNDED, changes), table_of(VALID, own), node, lower, upper))

    def begin(content: list[tuple[Row, int, int]], as_of: int) -> list[Update[Row, int]]:
        return advance(content, [], as_of, as_of + 1)

    hold(node, random.Random(f"{name} {seed}"), advance, begin)


def hold(node: TemporalState, source: random.Random, advance: Advance, begin: Begin) -> None:
    """Holds a state, advanced over random histories, against the definition."""
    history = random_history(source)
    as_of = FIRST[1] - 1

    def changes(lower: int, upper: int, *, hydrated: bool | None = None) -> list[tuple[Row, int, int]]:
        return [
            one for one in history
            if lower <= one[1] < upper and (hydrated is None or is_hydrated(one[0]) == hydrated)
        ]  # fmt: skip

    content = [(row, as_of, d) for row, t, d in history if t <= as_of and is_hydrated(row)]
    state = advance(changes(*FIRST, hydrated=False), [], *FIRST) + begin(content, as_of)
    assert all(FIRST[0] <= one.time < FIRST[1] for one in state)
    check(node, history, state, range(as_of), lambda row: row[0] != "error" and not is_hydrated(row))
    check(node, history, state, range(as_of, as_of + 1))
    for lower, upper in STEPS:
        own = [(one.data, one.time, one.diff) for one in state if good(one.data)]
        fresh = advance(changes(lower, upper), own, lower, upper)
        assert all(lower <= one.time < upper for one in fresh)
        state += fresh
        check(node, history, state, range(lower - 1, upper))
        # The state of half of the cases is compacted, up to the last time before the next step.
        apart = [one for one in state if good(one.data) and one.data[0] % 4 < 2]
        state = [one for one in state if one not in apart]
        state += compact_updates(apart, Antichain.of(NATURAL, upper - 1))


def good(row: Row) -> bool:
    return bool(row[0] != "error")


def check(
    node: TemporalState,
    history: list[tuple[Row, int, int]],
    state: list[Update[Row, int]],
    times: range,
    about: Callable[[Row], bool] = lambda row: True,
) -> None:
    """Compares the state at some times with the definition, as far as it is `about` those rows."""
    given = Tvc.of_updates(TIMELINE, (Update(row, t, d) for row, t, d in history))
    found = Tvc.of_updates(TIMELINE, state)
    for time in times:
        expected = valid(node, Counter(given.read(time).multiplicities), time)
        actual = found.read(time).multiplicities
        rows = {row for row in {*expected, *actual} if about(row)}
        differing = {row: (expected.get(row), actual.get(row)) for row in rows if expected.get(row) != actual.get(row)}
        assert not differing, f"at {time}: row, wanted, found: {list(differing.items())[:5]}"


def test_what_falls_due_needs_no_input(spark: SparkSession) -> None:
    node = replace(TEMPORAL_SHAPES["an interval"], upper=())
    waiting = (1, 5, None, 9, None, 5, 9, False)
    own = FrameState(frame_of(spark, VALID, [(waiting, 2, 3)]))
    made = temporal_updates(None, own, node, 4, 20)
    assert made is not None
    due = (*waiting[:-1], True)
    assert sorted(map(str, collected(made))) == sorted(
        map(str, [Update(waiting, 5, -3), Update(due, 5, 3), Update(due, 9, -3)])
    )
