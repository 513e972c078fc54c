"""The state of counts and sums is, at every time, what counting and adding up the input at that time gives.

The oracle is a time-varying collection: the input's version at each time, mapped by a plain loop over its rows, and
told as updates by the formalism. The operator must yield exactly these updates, however time is cut into intervals and
whatever has been compacted in between. Many small random cases, told apart by the first column of the key, run in one
Spark job.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from mz_dagster.compute.algebra.frame import ensure_exact, replan_while_running, spark_schema, spark_type
from mz_dagster.compute.spark.accumulate import accumulate_snapshot, accumulate_updates
from mz_dagster.compute.spark.state import FrameState
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.formalism import (
    NATURAL,
    Antichain,
    CollectionVersion,
    GlobalId,
    Timeline,
    Tvc,
    Update,
    compact_updates,
    consolidate,
)
from mz_dagster.plan.physical import Accumulate, ReadCollection
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import FLOAT8, INT4, INT8, TEXT, Column, RelationType, ScalarType, numeric
from tests.compute.reference import accumulated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMES = 12
TIMELINE = Timeline("test", NATURAL)

#: A row, or `("error", text)`.
Data = tuple[Any, ...]
Told = Update[Data, int]


def accumulation(key: Sequence[ScalarType], contributions: Sequence[ScalarType]) -> Accumulate:
    keys = tuple(Column(f"key_{i}", type_) for i, type_ in enumerate(key))
    values = tuple(Column(f"value_{i}", type_, False) for i, type_ in enumerate(contributions))
    below = RelationType((*keys, *values))
    state = RelationType((*keys, Column("n", INT8, False), *values))
    return Accumulate(ReadCollection(GlobalId("input"), below), len(key), state)


MIXED = accumulation([INT4, FLOAT8, TEXT, numeric(2)], [INT8, numeric(4)])
GLOBAL = accumulation([], [INT8, numeric(4)])
DISTINCT = accumulation([INT4, TEXT], [])


def expected(updates: Iterable[Told], node: Accumulate) -> frozenset[Told]:
    whole = Tvc.of_updates(TIMELINE, updates)

    def state(time: int) -> CollectionVersion[Data]:
        return CollectionVersion(accumulated(node, Counter(whole.read(time).multiplicities)))

    return Tvc(TIMELINE, lru_cache(None)(state)).updates(TIMES - 1)


def random_updates(source: random.Random, node: Accumulate, cases: int) -> list[Told]:
    """Returns a history with duplicates, few keys, NULLs, retractions that come too early, and errors."""
    choices: dict[ScalarType, list[Any]] = {
        TEXT: [None, "", "a", "A"],
        FLOAT8: [None, "NaN", 0.0, -0.0, 1.5],
        numeric(2): [None, Decimal("1.00"), Decimal("-0.01"), Decimal(10**36 - 1)],
    }
    sums: dict[ScalarType, list[Any]] = {
        INT8: [0, 0, 1, -1, 2**31 - 1, -(2**31)],
        numeric(4): [Decimal(0), Decimal("0.5"), Decimal("-0.0001"), Decimal(10**19 - 1).scaleb(-4)],
    }
    columns = node.input.relation_type.columns
    updates: list[Told] = []
    for case in range(cases):
        types = [column.type for column in columns[1 : node.key_arity]]
        keys = [(case, *(source.choice(choices[type_]) for type_ in types)) for _ in range(2)]
        for _ in range(source.randrange(14)):
            key = source.choice(keys)[: node.key_arity]
            row = (*key, *(source.choice(sums[column.type]) for column in columns[node.key_arity :]))
            updates.append(Update(row, source.randrange(TIMES), source.choice([-2, -1, 1, 1, 1, 2])))
            if source.random() < 0.5:  # a duplicate, or its retraction, maybe at the same time
                updates.append(Update(row, source.randrange(TIMES), source.choice([-1, 1, -updates[-1].diff])))
    for _ in range(6):
        error = ("error", f"22012 division by zero {source.randrange(2)}")
        updates.append(Update(error, source.randrange(TIMES), source.choice([-1, 1])))
    source.shuffle(updates)
    return updates


def frame(spark: SparkSession, type_: RelationType, updates: Iterable[Told], *, named: bool = False) -> DataFrame:
    """Returns updates as a frame. Data of errors means nothing, so they get some."""
    floats = [column.type is FLOAT8 for column in type_.columns]
    filler = [update.data for update in updates if update.data[:1] != ("error",)]
    cells = []
    for n, update in enumerate(updates):
        row, error = update.data, None
        if row[:1] == ("error",):
            row, error = filler[n % len(filler)] if filler else (None,) * type_.arity, row[1]
        data = (
            float(cell) if is_float and cell is not None else cell for cell, is_float in zip(row, floats, strict=True)
        )
        cells.append((*data, update.time, update.diff, error))
    return spark.createDataFrame(cells, spark_schema(type_, type_.names if named else None))


def told(found: DataFrame, arity: int) -> list[Told]:
    """Returns the updates of a frame: one of each row of data at a time, while errors may be several."""
    updates = []
    for *cells, time, diff, error in map(tuple, found.collect()):
        data = tuple("NaN" if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells)
        if error is not None:
            assert data == (None,) * arity
            data = ("error", error)
        updates.append(Update(data, time, diff))
    rows = [(update.data, update.time) for update in updates if update.data[:1] != ("error",)]
    assert len(rows) == len(set(rows)), "the data part is not consolidated"
    assert all(update.diff for update in updates)
    return updates


def run(
    spark: SparkSession,
    node: Accumulate,
    updates: Sequence[Told],
    edges: Sequence[int],
    *,
    hydrated: bool = False,
    compacting: bool = False,
) -> frozenset[Told]:
    """Returns what the operator makes of the updates, step by step.

    Args:
        spark: Where it runs.
        node: The operator.
        updates: Of its input.
        edges: Where the intervals begin and, the last of them, end.
        hydrated: Whether the first time is a snapshot instead.
        compacting: Whether the state is compacted before each step.
    """
    below = node.input.relation_type
    source = frame(spark, below, updates, named=True)

    def read(_: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
        time = sf.col("mz_timestamp")
        return source.where((time < upper) & (time >= (lower or 0)))

    arity = node.relation_type.arity
    history: list[Told] = []
    first = edges[0]
    if hydrated:
        history = told(Renderer(spark, read).snapshot(node, first), arity)
        first += 1
    for lower, upper in itertools.pairwise((first, *edges[1:])):
        held: Iterable[Told] = history
        if compacting:
            held = compact_updates(history, Antichain.of(NATURAL, max(0, lower - 1)))
        renderer = Renderer(spark, read, own=FrameState(frame(spark, node.relation_type, list(held))))
        found = renderer.updates(node, lower, upper, lambda _: False)
        assert found is not None
        news = told(found, arity)
        assert all(lower <= update.time < upper for update in news)
        history += news
    return consolidate(history)


def check_all(spark: SparkSession, node: Accumulate, seed: int, cases: int) -> None:
    source = random.Random(seed)
    updates = random_updates(source, node, cases)
    should = expected(updates, node)
    if node.key_arity:  # of many updates of one group hardly ever more are taken away than there are
        assert any(update.data[node.key_arity] < 0 for update in should if update.data[:1] != ("error",))
    assert run(spark, node, updates, [0, TIMES]) == should
    cuts = sorted(source.sample(range(1, TIMES), 2))
    assert run(spark, node, updates, [0, *cuts, TIMES], compacting=True) == should
    start, cut = sorted(source.sample(range(2, TIMES - 1), 2))
    since = Antichain.of(NATURAL, start)
    assert run(spark, node, updates, [start, cut + 1, TIMES], hydrated=True) == compact_updates(should, since)


@pytest.mark.deep
def test_the_state_tells_what_adding_up_each_version_of_the_input_does(spark: SparkSession) -> None:
    check_all(spark, MIXED, seed=3, cases=60)


@pytest.mark.deep
def test_without_a_key_there_is_one_group(spark: SparkSession) -> None:
    check_all(spark, GLOBAL, seed=5, cases=6)


@pytest.mark.deep
def test_without_sums_the_state_counts_rows(spark: SparkSession) -> None:
    check_all(spark, DISTINCT, seed=5, cases=30)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("node", [MIXED, GLOBAL, DISTINCT], ids=["mixed", "global", "distinct"])
def test_the_state_tells_what_adding_up_does_for_many_histories(
    spark: SparkSession, node: Accumulate, seed: int
) -> None:
    check_all(spark, node, seed=100 + seed, cases=150)


def test_a_long_history_of_great_sums_does_not_overflow(spark: SparkSession) -> None:
    """What the state held is added up in an order in which no more than one of its versions is ever in the sum."""
    ensure_exact(spark)
    node = accumulation([INT4], [INT8, numeric(0)])
    versions = [(1, 7, 2**63 - 100 + i, Decimal(10**38 - 100 + i)) for i in range(21)]
    history = [Update(row, time, 1) for time, row in enumerate(versions[:-1])]
    history += [Update(row, time + 1, -1) for time, row in enumerate(versions[:-2])]
    random.Random(1).shuffle(history)
    own = FrameState(frame(spark, node.relation_type, history).repartition(3))
    changes = frame(
        spark, node.input.relation_type, [Update((1, 1, Decimal(1)), 30, 1), Update((1, 0, Decimal(0)), 30, -1)]
    )
    found = told(accumulate_updates(changes, own, node), 4)
    assert consolidate(found) == {Update(versions[-2], 30, -1), Update(versions[-1], 30, 1)}


@pytest.mark.parametrize(
    ("value", "diff", "copies", "snapshot"),
    [
        ((2**31, Decimal(0)), 2**33, 1, False),
        ((2**31, Decimal(0)), 2**31, 4, True),
        ((0, Decimal(10**19)), 10**18, 11, False),
    ],
    ids=["product", "sum", "numeric"],
)
def test_overflow_raises(
    spark: SparkSession, value: tuple[int, Decimal], diff: int, copies: int, snapshot: bool
) -> None:
    ensure_exact(spark)
    node = accumulation([INT4], [INT8, numeric(0)])
    changes = frame(spark, node.input.relation_type, [Update((1, *value), time, diff) for time in range(copies)])
    empty = FrameState(frame(spark, node.relation_type, []))
    found = accumulate_snapshot(changes, node, 50) if snapshot else accumulate_updates(changes, empty, node)
    with pytest.raises(PySparkException, match=r"ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE"):
        found.collect()


class _Recording(FrameState):
    """Is a state that remembers for what it was asked."""

    def lookup(self, keys: DataFrame, positions: Sequence[int]) -> DataFrame:
        self.keys = keys
        return super().lookup(keys, positions)


def test_only_keys_of_which_something_changes_are_looked_up(spark: SparkSession) -> None:
    ensure_exact(spark)
    node = accumulation([INT4], [INT8])
    updates = [
        Update((1, 5), 3, 1), Update((1, 5), 3, -1), Update((2, 5), 3, 1), Update((2, 5), 4, -1),
        Update((3, 5), 3, 1), Update((3, 6), 3, -1),
    ]  # fmt: skip
    own = _Recording(frame(spark, node.relation_type, []))
    accumulate_updates(frame(spark, node.input.relation_type, updates), own, node)
    assert {row[0] for row in own.keys.collect()} == {2, 3}


def test_the_changes_are_shuffled_once_for_the_sums_and_the_lookup(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark runs two shuffles as one if they and all below them are equal but for the numbers of their columns."""
    ensure_exact(spark)
    replan_while_running(spark, True)  # then both are told in full
    # Of literals Spark would compute the filters, by which two shuffles may differ, before it plans.
    row = [
        sf.col("id").cast(spark_type(column.type)).alias(f"c{i}")
        for i, column in enumerate(MIXED.input.relation_type.columns)
    ]
    meta = [sf.col("id").alias("mz_timestamp"), sf.lit(1).cast("bigint").alias("mz_diff")]
    changes = (
        spark.range(9)
        .repartition(2)
        .select(*row, *meta, sf.when(sf.col("id") > 5, "22012 division by zero").alias("mz_error"))
    )
    own = FrameState(frame(spark, MIXED.relation_type, [Update((1, 0.5, "a", Decimal(1), 1, 1, Decimal(1)), 2, 1)]))
    accumulate_updates(changes, own, MIXED).explain()
    lines = [re.sub(r"#\d+L?|plan_id=\d+", "#", line) for line in capsys.readouterr().out.splitlines()]
    parts = []
    for start, line in enumerate(lines):
        depth = line.find("Exchange hashpartitioning(")
        if depth >= 0 and "mz_error" in line:
            # What is below it begins at its column, or to the right of that.
            below = [len(re.split(r"[+:]-", other, maxsplit=1)[0]) >= depth for other in lines[start + 1 :]]
            parts.append([one[depth:] for one in lines[start : start + 1 + below.index(False)]])
    assert len(parts) == 2
    assert len(parts[0]) > 2
    assert parts[0] == parts[1]
