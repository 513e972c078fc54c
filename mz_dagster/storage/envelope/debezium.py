"""ENVELOPE DEBEZIUM: records that the connector tells again are left out, the others are those of an upsert.

What is told again is what `log_place` calls stale. What a key has been told is remembered in a collection beside
the source's own, with the key's columns and a text; both follow from the same bindings over the same interval, and are
sealed together, so a step that is killed or repeated leaves out the same records.

    fresh(records, known)    the records that are not stale, with what is remembered behind each (`mz_known`)
    memories(fresh)          the records of that collection, an upsert, too: the text is the new state of its key

State: a row for each key that ever was, deleted or not. Cost: one shuffle by key, in which the records of a key in an
interval are together. Spark decodes records once for each of the two collections, this process once for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.storage.envelope.log_place import STALE, remembered_one_by_one
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.late_pyspark import types as T
from mz_dagster.storage.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: By which records are ordered.
_PLACE = ("mz_timestamp", "mz_path", "mz_block", "mz_row")


def fresh(records: DataFrame, known: DataFrame | None, *, key: Sequence[str]) -> DataFrame:
    """Returns the records that are not stale, with what is remembered of their keys behind each as `mz_known`.

    Args:
        records: A record frame with `mz_place`, of any number of ticks.
        known: What is remembered before the interval, at least of the keys in `records`: the key's columns and
            `mz_known`, a row for each. None for nothing.
        key: The key's columns.
    """
    others = [name for name in records.columns if name not in _PLACE]
    whole = F.struct(*_PLACE, *(F.col(quoted(name)) for name in others)).alias("mz_record")
    keys = [F.col(quoted(name)).alias(f"mz_key_{i}") for i, name in enumerate(key)]
    history = records.select(*keys, whole, F.lit(None).cast("string").alias("mz_known"))
    if known is not None:
        nothing = F.lit(None).cast(history.schema["mz_record"].dataType).alias("mz_record")
        history = history.unionByName(known.select(*keys, nothing, "mz_known"))
    by_key = history.groupBy(*(f"mz_key_{i}" for i in range(len(key)))).agg(
        F.sort_array(F.collect_list("mz_record")).alias("mz_records"), F.max("mz_known").alias("mz_known")
    )
    judged = F.udf(remembered_one_by_one, T.ArrayType(T.StringType()), useArrow=True)
    behind = judged("mz_known", F.transform("mz_records", lambda one: one["mz_place"])).alias("mz_behind")
    told = by_key.select("mz_records", behind).select(
        F.explode(F.arrays_zip("mz_records", "mz_behind")).alias("mz_told")
    )
    record, known_behind = F.col("mz_told")["mz_records"], F.col("mz_told")["mz_behind"]
    return told.where(~F.equal_null(known_behind, F.lit(STALE))).select(
        *(record[name].alias(name) for name in (*_PLACE, *others)), known_behind.alias("mz_known")
    )


def memories(fresh_records: DataFrame, *, columns: Sequence[str], key: Sequence[str]) -> DataFrame:
    """Returns what is remembered behind records that are not stale, as the records of the collection that has it.

    Args:
        fresh_records: The records.
        columns: Of that collection: those of the key, and one for the text.
        key: The key's columns in the records.
    """
    return fresh_records.where("mz_known is not null").select(
        *(F.col(quoted(name)).alias(own) for name, own in zip((*key, "mz_known"), columns, strict=True)),
        *_PLACE,
        F.lit(False).alias("mz_deleted"),
        F.lit(None).cast("string").alias("mz_error"),
    )
