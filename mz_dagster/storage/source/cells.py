"""The seam between the formats and the records: rows of undecoded cells with their places.

A format's reader yields a frame of these columns:

- `mz_timestamp`, `mz_path`, `mz_block`, `mz_row`: the tick, and the position within it;
- `mz_malformed`: why the record as a whole cannot be read, or NULL; then nothing else of it is known;
- `mz_value_malformed`: why its value cannot be read although its key can, or NULL;
- `mz_null_key`, `mz_deleted`: whether the key, or the value, is null as a whole;
- `mz_cell_<i>`: the i-th declared column's text, or a value that already has a physical type (Parquet);
- `mz_cell_faults`: for each declared column why its cell, which is not NULL, holds nothing that can be stored, or NULL;
  NULL as a whole if none has such a fault;
- `mz_place`, of changes that Debezium writes: where in a log the record stands (`log_place`), or NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.catalog import Binding
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.spark.globs import escaped_glob

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

PLACE = ("mz_timestamp", "mz_path", "mz_block", "mz_row")


def cell(position: int) -> str:
    """Returns the name of the i-th declared column's cell."""
    return f"mz_cell_{position}"


def no_cell_faults() -> SparkColumn:
    """Returns `mz_cell_faults` of a format whose cells have none."""
    return F.lit(None).cast("array<string>").alias("mz_cell_faults")


def is_text(value: SparkColumn) -> SparkColumn:
    """Returns whether bytes or a string that was not looked at are what a text can hold."""
    return F.is_valid_utf8(value) & ~F.contains(value, F.lit("\0"))


def spark_path(folder: Path, path: str) -> str:
    """Returns the path as Spark's readers want it: with its scheme, and no sign of it read as a glob."""
    return "file://" + escaped_glob(f"{folder}/{path}")


def relative_path(folder: Path) -> SparkColumn:
    """Returns the scanned row's path relative to `folder`; Spark hands out file paths percent-encoded."""
    encoded = F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")
    # In a path `+` stands for itself, but not for the decoder, which is one for forms.
    decoded = F.url_decode(F.replace(encoded, F.lit("+"), F.lit("%2B")))
    return F.substring(decoded, len(str(folder).rstrip("/")) + 2, 1 << 30)


def with_tick(spark: SparkSession, rows: DataFrame, bindings: Sequence[Binding]) -> DataFrame:
    """Returns `rows`, which have `mz_path`, with the tick of their file's binding as `mz_timestamp`.

    A join even for a single tick: a literal would be part of the code that Spark compiles, and make every step
    compile anew.
    """
    ticks = [(file.path, binding.tick) for binding in bindings for file in binding.files]
    bound = spark.createDataFrame(ticks, "mz_path string, mz_timestamp bigint")
    joined = rows.join(F.broadcast(bound), "mz_path", "left")
    # A row without a tick would be lost silently; that a path did not match is a bug of ours.
    unbound = F.raise_error(F.concat(F.lit("no binding for file "), F.col("mz_path"))).cast("bigint")
    return joined.withColumn("mz_timestamp", F.coalesce(F.col("mz_timestamp"), unbound))
