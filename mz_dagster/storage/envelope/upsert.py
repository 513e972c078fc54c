"""ENVELOPE UPSERT: a record is the new state of its key.

Let `s(k, t)` be what the last record of key `k` at a tick at most `t` says: a row, an error, or nothing (a deletion, or
no record at all). The collection at `t` is the multiset of all `s(k, t)`, and the updates of a tick are its difference:
retract `s(k, t-)`, assert `s(k, t)`, nothing where the two are equal. Hence a deletion of an unknown key is harmless, a
record that repeats its key's state is no update, and an error is healed by the next record of its key.

The NULL key is a key like any other: it holds the last record whose own key could not be told.

State: none but the collection itself. The keys' prior states come from the source's own shard as of `lower - 1`.
Cost: one shuffle of records and prior rows by key, one sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

#: Before every tick.
_PRIOR = -(1 << 63)


def touched_keys(records: DataFrame, *, key: Sequence[str]) -> DataFrame:
    """Returns the distinct keys of `records`, the NULL key included."""
    return records.select(*(F.col(quoted(name)) for name in key)).distinct()


def restrict_to(rows: DataFrame, keys: DataFrame, *, key: Sequence[str]) -> DataFrame:
    """Returns the rows whose key is among `keys`; NULL meets NULL."""
    same = [F.equal_null(rows[quoted(name)], keys[quoted(name)]) for name in key]
    return rows.join(keys, same, "left_semi")


def updates(records: DataFrame, prior: DataFrame | None, *, columns: Sequence[str], key: Sequence[str]) -> DataFrame:
    """Returns the updates that the records of an interval make.

    Args:
        records: A record frame, of any number of ticks.
        prior: The consolidated state before the interval, at least of the keys in `records`: the data columns and
            `mz_error`. At most one row per key. None before the first load.
        columns: The data columns, in order.
        key: Those that are the key.
    """
    data = [F.col(quoted(name)) for name in columns]
    state = F.struct(*data, F.col("mz_error").alias("mz_error"))
    place = ("mz_timestamp", "mz_path", "mz_block", "mz_row")
    keys = [F.col(quoted(name)).alias(f"mz_key_{i}") for i, name in enumerate(key)]
    history = records.select(*keys, *place, F.when(~F.col("mz_deleted"), state).alias("mz_state"))
    if prior is not None:
        before = prior.select(
            *keys,
            F.lit(_PRIOR).alias("mz_timestamp"),
            F.lit("").alias("mz_path"),
            F.lit(0).cast("bigint").alias("mz_block"),
            F.lit(0).cast("bigint").alias("mz_row"),
            state.alias("mz_state"),
        )
        history = history.unionByName(before)
    # One window for both questions, so that one shuffle and one sort serve them.
    by_key = Window.partitionBy(*(f"mz_key_{i}" for i in range(len(key)))).orderBy(*place)
    next_tick = F.lead("mz_timestamp").over(by_key)
    last = history.select("*", next_tick.alias("mz_next")).where(
        F.col("mz_next").isNull() | (F.col("mz_next") != F.col("mz_timestamp"))
    )
    changed = last.select("*", F.lag("mz_state").over(by_key).alias("mz_old")).where(
        (F.col("mz_timestamp") != _PRIOR) & ~_same(F.col("mz_old"), F.col("mz_state"))
    )
    pair = F.array(_update(F.col("mz_old"), -1), _update(F.col("mz_state"), 1))
    emitted = changed.select("mz_timestamp", F.explode(pair).alias("mz_update")).where("mz_update.state is not null")
    row = F.col("mz_update").getField("state")
    return emitted.select(
        *(row.getField(name).alias(name) for name in columns),
        "mz_timestamp",
        F.col("mz_update").getField("diff").alias("mz_diff"),
        row.getField("mz_error").alias("mz_error"),
    )


def _same(left: SparkColumn, right: SparkColumn) -> SparkColumn:
    """Returns whether two states are the same row; Spark takes 0.0 and -0.0 for equal, whose texts differ."""
    return F.equal_null(left, right) & F.equal_null(left.cast("string"), right.cast("string"))


def _update(state: SparkColumn, diff: int) -> SparkColumn:
    return F.struct(state.alias("state"), F.lit(diff).cast("bigint").alias("diff"))
