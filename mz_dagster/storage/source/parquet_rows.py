"""Reads Parquet rows: columns by name, in the types the file holds them in.

A row all of whose declared columns are NULL is, for the envelope `upsert`, the record whose key and value are null;
other deletions cannot be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.catalog import Binding
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.source.cells import PLACE, cell, is_text, relative_path, spark_path, with_tick
from mz_dagster.storage.source.faults import BAD_BYTES, MOMENTS
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_RANGED = {Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC}


def cells_of_parquet(
    spark: SparkSession,
    folder: Path,
    paths: Sequence[str],
    bindings: Sequence[Binding],
    schema: Sequence[tuple[str, str]],
) -> DataFrame:
    """Returns the cells of files that all have `schema`; `mz_row` is the row's number in its file, from 1."""
    declared = ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in schema)
    scanned = (
        spark.read.schema(declared)
        .parquet(*[spark_path(folder, path) for path in paths])
        .select(
            *(F.col(f"`{name.replace('`', '``')}`").alias(cell(i)) for i, (name, _) in enumerate(schema)),
            relative_path(folder).alias("mz_path"),
            F.col("_metadata.file_block_start").alias("mz_block"),
            (F.col("_metadata.row_index") + 1).alias("mz_row"),
        )
    )
    all_null = reduce(and_, (F.col(cell(i)).isNull() for i in range(len(schema))))
    return with_tick(spark, scanned, bindings).select(
        *PLACE,
        F.lit(None).cast("string").alias("mz_malformed"),
        F.lit(None).cast("string").alias("mz_value_malformed"),
        all_null.alias("mz_null_key"),
        all_null.alias("mz_deleted"),
        *(cell(i) for i in range(len(schema))),
        _cell_faults(schema),
    )


def _cell_faults(schema: Sequence[tuple[str, str]]) -> SparkColumn:
    """Returns which strings are no text: a writer need not check them, and Spark's reader does not."""
    faults = []
    for i, (_, type_) in enumerate(schema):
        value = F.col(cell(i))
        if type_ == "string":
            fault = ~is_text(value)
        elif type_ == "array<string>":
            fault = F.exists(value, lambda one: ~is_text(one))
        else:
            fault = F.lit(False)
        faults.append(F.when(fault, F.lit(BAD_BYTES)))
    return F.array(*faults).alias("mz_cell_faults")


def convert(value: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns a value of an accepted physical type as one of `type_`; NULL if it is out of range."""
    if type_.kind is Kind.MZ_TIMESTAMP:
        return F.when(value >= 0, value.cast("bigint"))
    if type_.kind in MOMENTS:
        moment = value.cast(spark_type(type_))
        return F.when(F.year(moment).between(1, 9999), moment)
    return value.try_cast(spark_type(type_)) if type_.kind in _RANGED else value.cast(spark_type(type_))
