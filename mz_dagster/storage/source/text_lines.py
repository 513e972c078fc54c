"""Reads files as numbered lines, the ground under JSON and CSV.

A line ends with a line feed, or with a carriage return and a line feed; the last one may end without. Spark gives no
position within a text file, so the order of the scan is taken right at the scan (`monotonically_increasing_id`
grows within a block, and blocks have a start) and lines are numbered per file. Cost: one shuffle of the lines by
file, and one task numbers a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.catalog import Binding
from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.source.cells import is_text, relative_path, spark_path, with_tick

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_lines(spark: SparkSession, folder: Path, paths: Sequence[str], bindings: Sequence[Binding]) -> DataFrame:
    """Returns one row per line: its place (`mz_row` counts from 1), its text as `mz_line`, `mz_bad_bytes`."""
    scanned = (
        spark.read.option("lineSep", "\n")
        .text([spark_path(folder, path) for path in paths])
        .select(
            F.col("value"),
            relative_path(folder).alias("mz_path"),
            F.col("_metadata.file_block_start").alias("mz_block"),
            F.monotonically_increasing_id().alias("mz_scan"),
        )
    )
    numbered = scanned.select(
        F.when(is_text(F.col("value")), F.regexp_replace("value", r"\r\z", "")).otherwise(F.lit("")).alias("mz_line"),
        (~is_text(F.col("value"))).alias("mz_bad_bytes"),
        "mz_path",
        "mz_block",
        F.row_number()
        .over(Window.partitionBy("mz_path").orderBy("mz_block", "mz_scan"))
        .cast("bigint")
        .alias("mz_row"),
    )
    return with_tick(spark, numbered, bindings)
