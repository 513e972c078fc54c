"""The state of a temporal filter, summed over any split of time, is what the formalism says it is at every time.

Random histories: bounds that are absent, NULL, crossed, equal to the time of arrival or long past, negative diffs,
duplicates and retractions, many times in an interval, updates of the error part. The first column is the number of a
case, so that many small histories run in three Spark jobs for each shape of filter: the first interval (and, for half
of the cases, a hydration at its end), and two more, between which the state of some cases is compacted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mz_dagster.compute.algebra.frame import META, spark_schema
from mz_dagster.compute.local.temporal import temporal_updates as local_updates
from mz_dagster.compute.placement.supported import unsupported
from mz_dagster.compute.spark.state import FrameState
from mz_dagster.compute.spark.temporal import temporal_snapshot, temporal_updates
from mz_dagster.formalism import NATURAL, Antichain, CollectionVersion, GlobalId, Timeline, Tvc, Update, compact_updates
from mz_dagster.plan.physical import ReadCollection, TemporalState
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar
from mz_dagster.scalars.types import BOOL, INT4, INT8, MZ_TIMESTAMP, Column, RelationType
from mz_dagster.storage.arrow_schema import update_table, without_error_data

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]
TIMES = 12
CASES = 80
#: The interval that is hydrated over, and the steps that follow.
FIRST, STEPS = (0, 4), ((4, 9), (9, TIMES))
LAST = 2**63 - 1
TIMELINE = Timeline("t", NATURAL)


class Failed(Exception):
    """Is the outcome of a bound that fails."""


@dataclass(frozen=True)
class Shape:
    """A filter: its bounds as a plan has them, and as Python reckons them from the row's four numbers."""

    lower: tuple[Scalar, ...]
    upper: tuple[Scalar, ...]
    bounds: Callable[[list[int | None]], tuple[list[int | None], list[int | None]]]


def column(position: int) -> ColumnRef:
    return ColumnRef(position, INT8)


def to_time(value: Scalar) -> Scalar:
    return Call("cast_int8_to_mz_timestamp", (value,), MZ_TIMESTAMP)


def step(value: Scalar) -> Scalar:
    return Call("step_mz_timestamp", (value,), MZ_TIMESTAMP)


def time_of(value: int | None) -> int | None:
    if value is not None and value < 0:
        raise Failed("22003 mz_timestamp out of range")
    return value


def after(value: int | None) -> int | None:
    if value == LAST:
        raise Failed("22003 step mz_timestamp overflow")
    return None if value is None else value + 1


SHAPES = {
    "an interval": Shape(
        (to_time(column(1)),),
        (to_time(column(3)),),
        lambda n: ([time_of(n[0])], [time_of(n[2])]),
    ),
    "several bounds": Shape(
        (to_time(column(1)), to_time(column(2))),
        (to_time(column(3)), step(to_time(column(4)))),
        lambda n: ([time_of(n[0]), time_of(n[1])], [time_of(n[2]), after(time_of(n[3]))]),
    ),
    "no end": Shape((step(to_time(column(1))),), (), lambda n: ([after(time_of(n[0]))], [])),
    "no beginning": Shape((), (to_time(column(3)),), lambda n: ([], [time_of(n[2])])),
}
INPUT = RelationType((Column("case", INT4), *(Column(f"n{i}", INT8) for i in range(4))))
STATE = RelationType((
    *INPUT.columns, Column("valid_from", MZ_TIMESTAMP), Column("valid_to", MZ_TIMESTAMP), Column("valid", BOOL),
))  # fmt: skip


def random_history(source: random.Random) -> list[tuple[Row, int, int]]:
    """Returns updates of the input; an error is the row `("error", text)`."""
    usual = [None, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 11, 12, 14, LAST]
    history: list[tuple[Row, int, int]] = []
    for case in range(CASES):
        for _ in range(source.randrange(1, 7)):
            numbers = [source.choice(usual) for _ in range(4)]
            if source.random() < 0.1:
                numbers[source.randrange(4)] = -1
            row: Row = (case, *numbers)
            history.append((row, source.randrange(TIMES), source.choice([-2, -1, 1, 1, 1, 2])))
            while source.random() < 0.5:  # a duplicate, or its retraction
                history.append((row, source.randrange(TIMES), source.choice([-1, 1])))
    for _ in range(4):
        history.append((("error", "22000 bad record"), source.randrange(TIMES), source.choice([-1, 1, 2])))
    return history


def state_at(shape: Shape, content: CollectionVersion[Row], time: int) -> CollectionVersion[Row]:
    """Returns what the state holds at a time at which the input's content is `content`: the definition."""
    found: list[Update[Row, int]] = []
    for row, diff in content.multiplicities.items():
        if row[0] == "error":
            found.append(Update(row, time, diff))
            continue
        try:
            lower, upper = shape.bounds(list(row[1:]))
        except Failed as error:
            found.append(Update(("error", str(error)), time, diff))
            continue
        if None in lower or None in upper:
            continue
        start = max([0, *(one for one in lower if one is not None)])
        end = min([one for one in upper if one is not None], default=None)
        if end is None or max(start, time) < end:
            found.append(Update((*row, start, end, start <= time), time, diff))
    return CollectionVersion.of().apply(found)


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


def node_of(shape: Shape) -> TemporalState:
    return TemporalState(ReadCollection(GlobalId("u1"), INPUT, "t"), shape.lower, shape.upper, STATE)


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "several bounds" else pytest.mark.deep) for one in SHAPES]
)
def test_the_state_is_what_the_formalism_says_at_every_time(spark: SparkSession, name: str) -> None:
    node = node_of(SHAPES[name])

    def advance(
        changes: list[tuple[Row, int, int]], own: list[tuple[Row, int, int]], lower: int, upper: int
    ) -> list[Update[Row, int]]:
        state = FrameState(frame_of(spark, STATE, own))
        made = temporal_updates(frame_of(spark, INPUT, changes), state, node, lower, upper)
        assert made is not None
        return collected(made)

    def begin(content: list[tuple[Row, int, int]], as_of: int) -> list[Update[Row, int]]:
        return collected(temporal_snapshot(frame_of(spark, INPUT, content), node, as_of))

    hold(SHAPES[name], random.Random(name), advance, begin)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(one, marks=pytest.mark.deep) for one in range(2, 5))])
@pytest.mark.parametrize("name", SHAPES)
def test_so_it_is_if_few_updates_are_computed_in_this_process(name: str, seed: int) -> None:
    node = node_of(SHAPES[name])
    assert not unsupported(node)

    def advance(
        changes: list[tuple[Row, int, int]], own: list[tuple[Row, int, int]], lower: int, upper: int
    ) -> list[Update[Row, int]]:
        return listed(local_updates(table_of(INPUT, changes), table_of(STATE, own), node, lower, upper))

    def begin(content: list[tuple[Row, int, int]], as_of: int) -> list[Update[Row, int]]:
        return advance(content, [], as_of, as_of + 1)

    hold(SHAPES[name], random.Random(f"{name} {seed}"), advance, begin)


def hold(shape: Shape, source: random.Random, advance: Advance, begin: Begin) -> None:
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
    check(shape, history, state, range(as_of), lambda row: row[0] != "error" and not is_hydrated(row))
    check(shape, history, state, range(as_of, as_of + 1))
    for lower, upper in STEPS:
        own = [(one.data, one.time, one.diff) for one in state if good(one.data)]
        fresh = advance(changes(lower, upper), own, lower, upper)
        assert all(lower <= one.time < upper for one in fresh)
        state += fresh
        check(shape, history, state, range(lower - 1, upper))
        # The state of half of the cases is compacted, up to the last time before the next step.
        apart = [one for one in state if good(one.data) and one.data[0] % 4 < 2]
        state = [one for one in state if one not in apart]
        state += compact_updates(apart, Antichain.of(NATURAL, upper - 1))


def good(row: Row) -> bool:
    return bool(row[0] != "error")


def check(
    shape: Shape,
    history: list[tuple[Row, int, int]],
    state: list[Update[Row, int]],
    times: range,
    about: Callable[[Row], bool] = lambda row: True,
) -> None:
    """Compares the state at some times with the definition, as far as it is `about` those rows."""
    given = Tvc.of_updates(TIMELINE, (Update(row, t, d) for row, t, d in history))
    found = Tvc.of_updates(TIMELINE, state)
    for time in times:
        expected = state_at(shape, given.read(time), time).multiplicities
        actual = found.read(time).multiplicities
        rows = {row for row in {*expected, *actual} if about(row)}
        differing = {row: (expected.get(row), actual.get(row)) for row in rows if expected.get(row) != actual.get(row)}
        assert not differing, f"at {time}: row, wanted, found: {list(differing.items())[:5]}"


def test_what_falls_due_needs_no_input(spark: SparkSession) -> None:
    node = TemporalState(ReadCollection(GlobalId("u1"), INPUT, "t"), SHAPES["an interval"].lower, (), STATE)
    waiting = (1, 5, None, 9, None, 5, 9, False)
    own = FrameState(frame_of(spark, STATE, [(waiting, 2, 3)]))
    made = temporal_updates(None, own, node, 4, 20)
    assert made is not None
    valid = (*waiting[:-1], True)
    assert sorted(map(str, collected(made))) == sorted(
        map(str, [Update(waiting, 5, -3), Update(valid, 5, 3), Update(valid, 9, -3)])
    )
