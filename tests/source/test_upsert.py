"""The upsert envelope against its definition, written down as a loop over a dict.

Many random histories go through Spark in one job: each has a salt of its own in the key, so they cannot meet.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from mz_dagster.storage.envelope import none, upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("salt", "k", "l", "v", "w")
KEY = ("salt", "k", "l")
RECORDS = T.StructType(
    [
        T.StructField("salt", T.IntegerType()),
        T.StructField("k", T.IntegerType()),
        T.StructField("l", T.StringType()),
        T.StructField("v", T.StringType()),
        T.StructField("w", T.DoubleType()),
        T.StructField("mz_timestamp", T.LongType()),
        T.StructField("mz_path", T.StringType()),
        T.StructField("mz_block", T.LongType()),
        T.StructField("mz_row", T.LongType()),
        T.StructField("mz_deleted", T.BooleanType()),
        T.StructField("mz_error", T.StringType()),
    ]
)
PRIOR = T.StructType([*RECORDS.fields[:5], RECORDS["mz_error"]])


@dataclass(frozen=True)
class Record:
    key: tuple[int, int | None, str | None]
    place: tuple[int, str, int, int]
    state: tuple[str | None, float | None, str | None] | None

    def as_row(self) -> tuple[object, ...]:
        v, w, error = self.state or (None, None, None)
        return (*self.key, v, w, *self.place, self.state is None, error)


Row = tuple[object, ...]
State = dict[tuple[int, int | None, str | None], tuple[str | None, float | None, str | None]]


def reference(state: State, records: Iterable[Record]) -> Counter[Row]:
    """Returns the sums of the updates, and moves `state` on: at each tick the difference of before and after."""
    sums: Counter[Row] = Counter()
    by_tick: dict[int, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.place):
        by_tick.setdefault(record.place[0], []).append(record)
    for tick, at_tick in by_tick.items():
        before = dict(state)
        for record in at_tick:
            if record.state is None:
                state.pop(record.key, None)
            else:
                state[record.key] = record.state
        for side, diff in ((before, -1), (state, 1)):
            for key, (v, w, error) in side.items():
                sums[(*key, v, w, tick, error)] += diff
    return Counter({row: diff for row, diff in sums.items() if diff})


def histories(rng: random.Random, count: int) -> list[Record]:
    """Returns random records of `count` independent histories: few keys, NULLs, errors, deletions, repetitions."""
    found = []
    for salt in range(count):
        ticks = rng.choice([1, 3, 30])
        for n in range(rng.randrange(1, 25)):
            key = (salt, rng.choice([None, 1, 2]), rng.choice([None, "", "x"]))
            if rng.random() < 0.2:
                key = (salt, None, None)
            state = rng.choice(
                [
                    None,
                    ("a", 1.0, None),
                    ("a", None, None),
                    (None, None, None),
                    (None, None, "22P02 bad"),
                    (None, None, "22P02 worse"),
                ]
            )
            place = (rng.randrange(ticks), rng.choice(["a", "b/é", "Z"]), rng.choice([0, 7]), n)
            found.append(Record(key, place, state))
    rng.shuffle(found)
    return found


def frame(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    return spark.createDataFrame([record.as_row() for record in records], RECORDS)


def prior(spark: SparkSession, state: State) -> DataFrame:
    return spark.createDataFrame([(*key, *values) for key, values in state.items()], PRIOR)


def sums(updates: DataFrame) -> Counter[Row]:
    """Returns the updates summed; an update that another of the same tick undoes would vanish, so none may be there."""
    assert updates.columns == [*COLUMNS, "mz_timestamp", "mz_diff", "mz_error"]
    found: Counter[Row] = Counter()
    for row in updates.collect():
        key = (*(row[name] for name in (*COLUMNS, "mz_timestamp")), row["mz_error"])
        assert key not in found, f"two updates of one row at one time: {key}"
        found[key] = row["mz_diff"]
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_updates_are_the_differences_of_the_states(spark: SparkSession, seed: int) -> None:
    records = histories(random.Random(seed), 300)
    expected = reference({}, records)
    assert {1, -1} == set(expected.values())
    assert any(row[1] is None and row[2] is None for row in expected)
    assert sums(upsert.updates(frame(spark, records), None, columns=COLUMNS, key=KEY)) == expected


@pytest.mark.parametrize("seed", [3])
def test_any_split_into_intervals_gives_the_same_updates(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    records = histories(rng, 300)
    whole = reference({}, records)
    cuts = [0, *sorted(rng.sample(range(1, 30), 3)), 30]
    state: State = {}
    parts: Counter[Row] = Counter()
    for lower, upper in pairwise(cuts):
        interval = [record for record in records if lower <= record.place[0] < upper]
        batch = frame(spark, interval)
        before = upsert.restrict_to(prior(spark, state), upsert.touched_keys(batch, key=KEY), key=KEY)
        found = sums(upsert.updates(batch, before, columns=COLUMNS, key=KEY))
        assert found == reference(state, interval)
        parts += Counter({row: diff + 2 for row, diff in found.items()})
    assert Counter({row: shifted - 2 for row, shifted in parts.items()}) == whole


def test_prior_rows_of_untouched_keys_make_no_updates(spark: SparkSession) -> None:
    state: State = {(0, 1, "x"): ("a", 1.0, None), (0, None, None): (None, None, "22P02 bad")}
    records = [Record((0, 2, "x"), (5, "a", 0, 0), None), Record((0, 1, "x"), (5, "a", 0, 1), ("a", 1.0, None))]
    assert sums(upsert.updates(frame(spark, records), prior(spark, state), columns=COLUMNS, key=KEY)) == Counter()


def test_touched_keys_meet_prior_rows_null_safely(spark: SparkSession) -> None:
    state: State = {
        (0, None, None): ("a", None, None),
        (0, None, ""): ("b", None, None),
        (0, 1, None): ("c", None, None),
    }
    records = frame(spark, [Record((0, None, None), (1, "a", 0, i), None) for i in range(3)])
    keys = upsert.touched_keys(records, key=KEY)
    assert [tuple(row) for row in keys.collect()] == [(0, None, None)]
    assert [row["v"] for row in upsert.restrict_to(prior(spark, state), keys, key=KEY).collect()] == ["a"]


def test_one_shuffle_serves_all_of_upsert(spark: SparkSession) -> None:
    records = frame(spark, [Record((0, 1, "x"), (1, "a", 0, 0), ("a", 1.0, None))])
    updates = upsert.updates(records, prior(spark, {}), columns=COLUMNS, key=KEY)
    printed = io.StringIO()
    with redirect_stdout(printed):
        updates.explain()
    plan = printed.getvalue()
    assert plan.count("Exchange hashpartitioning") == 1, plan


def test_none_asserts_every_record_once_more(spark: SparkSession) -> None:
    twice = [Record((0, 1, "x"), (5, "a", 0, i), ("a", 1.0, None)) for i in range(2)]
    broken = Record((0, None, None), (6, "a", 0, 0), (None, None, "22P02 bad"))
    found = none.updates(frame(spark, [*twice, broken]), columns=COLUMNS)
    assert found.columns == [*COLUMNS, "mz_timestamp", "mz_diff", "mz_error"]
    rows = found.groupBy("v", "mz_timestamp", "mz_error").agg(F.sum("mz_diff").alias("n")).collect()
    assert {tuple(row) for row in rows} == {("a", 5, None, 2), (None, 6, "22P02 bad", 1)}


def test_a_zero_that_changes_its_sign_is_a_change(spark: SparkSession) -> None:
    key = (1, 1, "x")
    found = [Record(key, (tick, "f", 0, 0), ("v", w, None)) for tick, w in ((1, 0.0), (2, -0.0), (3, -0.0), (4, 1.0))]
    records = spark.createDataFrame([record.as_row() for record in found], RECORDS)
    updates = upsert.updates(records, None, columns=COLUMNS, key=KEY).collect()
    assert sorted((row.mz_timestamp, str(row.w), row.mz_diff) for row in updates) == [
        (1, "0.0", 1),
        (2, "-0.0", 1),
        (2, "0.0", -1),
        (4, "-0.0", -1),
        (4, "1.0", 1),
    ]


def test_keys_that_differ_in_the_sign_of_a_zero_are_one_key(spark: SparkSession) -> None:
    found = [Record((1, tick, "x"), (tick, "f", 0, 0), (f"{tick}", w, None)) for tick, w in ((2, -0.0), (3, 0.0))]
    records = spark.createDataFrame([record.as_row() for record in found], RECORDS)
    before = spark.createDataFrame([(1, 1, "x", "1", 0.0, None), (1, 1, "x", "9", 9.0, None)], PRIOR)
    asked = upsert.restrict_to(before, upsert.touched_keys(records, key=("w",)), key=("w",))
    updates = upsert.updates(records, asked, columns=COLUMNS, key=("w",)).collect()
    assert sorted((row.mz_timestamp, row.v, str(row.w), row.mz_diff) for row in updates) == [
        (2, "1", "0.0", -1),
        (2, "2", "-0.0", 1),
        (3, "2", "-0.0", -1),
        (3, "3", "0.0", 1),
    ]
