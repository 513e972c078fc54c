"""Dropped errors against their definition, in this process and by Spark: a loop over the ticks of random histories."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.envelope.dropped_errors import without_dropped, without_dropped_by_spark
from mz_dagster.storage.envelope.local import upserts
from mz_dagster.storage.shards import ERROR
from mz_dagster.storage.spark.local_rows import frame_of_rows
from mz_dagster.storage.spark_shards import update_schema as spark_schema
from tests.source.test_local_envelope import COLUMNS, prior, sums, table
from tests.source.test_upsert import KEY, Record, Row, State, histories, reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def told_once(records: list[Record]) -> list[Record]:
    """Returns records at even ticks whose errors name their places, as those of files do."""
    found = []
    for record in records:
        tick, path, block, row = record.place
        state = record.state
        if state is not None and state[2] is not None:
            state = (*state[:2], f"{state[2]} {record.key[0]} {record.place}")
        found.append(replace(record, place=(tick * 2, path, block, row), state=state))
    return found


def expected(state: State, records: list[Record], ticks: list[int]) -> Counter[Row]:
    """Returns the updates of histories in which errors end at some ticks; moves `state` on."""
    found: Counter[Row] = Counter()
    bounds = [0, *ticks, 1 << 62]
    for lower, upper in pairwise(bounds):
        for key, (v, w, error) in list(state.items()):
            if lower in ticks and error is not None:
                found[(*key, v, w, lower, error)] -= 1
                del state[key]
        found.update(reference(state, [one for one in records if lower <= one.place[0] < upper]))
    return Counter({row: diff for row, diff in found.items() if diff})


def test_any_split_into_intervals_has_the_errors_end_where_they_were_dropped() -> None:
    check(None, seeds=12)


def test_spark_has_the_same_errors_end(spark: SparkSession) -> None:
    check(spark, seeds=2)


def check(spark: SparkSession | None, seeds: int) -> None:
    ended = 0
    for seed in range(seeds):
        rng = random.Random(seed)
        records = told_once(histories(rng, 100))
        ticks = sorted(rng.sample(range(1, 60, 2), 3))
        whole = expected({}, records, ticks)
        ended += sum(1 for (*_, tick, _error), diff in whole.items() if diff < 0 and tick in ticks)
        cuts = [0, *sorted(rng.sample(range(1, 60), rng.randrange(3))), 60]
        held = update_schema(COLUMNS).empty_table()
        found: Counter[Row] = Counter()
        for lower, upper in pairwise(cuts):
            interval = [one for one in records if lower <= one.place[0] < upper]
            dropped = ticks[bisect_right(ticks, lower - 1) : bisect_right(ticks, upper - 1)]
            before = consolidated(held, lower - 1)
            states: State = {
                tuple(row[name] for name in KEY): (row["v"], row["w"], row[ERROR]) for row in before.to_pylist()
            }
            made = upserts(table(interval), prior(states) if lower else None, columns=COLUMNS, key=KEY)
            if dropped:
                errors = before.filter(before.column(ERROR).is_valid())
                if spark is None:
                    made = without_dropped(made, errors, dropped, lower)
                else:
                    schema = spark_schema(COLUMNS)
                    frame, before_it = (frame_of_rows(spark, one, schema) for one in (made, errors))
                    made = without_dropped_by_spark(frame, before_it, dropped, lower).toArrow().cast(made.schema)
            found.update(sums(made))  # adds, what is negative, too
            held = pa.concat_tables([held, made])
        assert {row: diff for row, diff in found.items() if diff} == dict(whole)
    assert ended > 50, "errors are dropped"
