"""Reads Parquet rows: columns by name, in the types the file holds them in.

A row all of whose declared columns are NULL is, for the envelope `upsert`, the record whose key and value are null;
other deletions cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.catalog import Binding
from mz_dagster.scalars.types import INT4, Column, Kind, ScalarType, array_of
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.source.cells import PLACE, cell, is_text, relative_path, spark_path, with_tick
from mz_dagster.storage.source.faults import BAD_BYTES, MOMENTS, out_of_range
from mz_dagster.storage.source.parquet_schema import dimensions_of
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
    columns: Sequence[Column],
) -> DataFrame:
    """Returns the cells of files that all have `schema`; `mz_row` is the row's number in its file, from 1.

    Lists in lists of a column of arrays of dimensions are such a one in its cell.
    """
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
    cells = with_tick(spark, scanned, bindings).select(
        *PLACE,
        F.lit(None).cast("string").alias("mz_malformed"),
        F.lit(None).cast("string").alias("mz_value_malformed"),
        all_null.alias("mz_null_key"),
        all_null.alias("mz_deleted"),
        *(cell(i) for i in range(len(schema))),
        _cell_faults(schema, columns),
    )
    for i, (column, (_, type_)) in enumerate(zip(columns, schema, strict=True)):
        if column.type.kind is Kind.DIMENSIONED:
            cells = cells.withColumn(cell(i), _dimensioned(F.col(cell(i)), column.type, dimensions_of(type_)))
    return cells


def _cell_faults(schema: Sequence[tuple[str, str]], columns: Sequence[Column]) -> SparkColumn:
    """Returns which cells hold strings that are no text or moments that SQL has not, and which lists differ.

    Neither writers nor Spark's reader check that.
    """
    faults = []
    for i, ((_, type_), column) in enumerate(zip(schema, columns, strict=True)):
        value = F.col(cell(i))
        depth = dimensions_of(type_)
        is_string = type_.removeprefix("array<" * depth).removesuffix(">" * depth) == "string"
        fault = F.when(_holds(value, depth, _is_untextual) if is_string else F.lit(False), F.lit(BAD_BYTES))
        if column.type.kind is Kind.DIMENSIONED:
            uneven = value.isNotNull() & _dimensioned(value, column.type, depth).isNull()
            fault = fault.when(uneven, F.lit(out_of_range(column.type)))
        element = column.type.array_element
        if element is not None and element.kind in MOMENTS:
            fault = fault.when(_holds(value, depth, _is_beyond_years), F.lit(out_of_range(element)))
        faults.append(fault)
    return F.array(*faults).alias("mz_cell_faults")


def _holds(value: SparkColumn, depth: int, found: Callable[[SparkColumn], SparkColumn]) -> SparkColumn:
    """Returns whether something is found of a value, or of one in so many lists in one another."""
    return F.exists(value, lambda one: _holds(one, depth - 1, found)) if depth else found(value)


def _is_untextual(value: SparkColumn) -> SparkColumn:
    return ~is_text(value)


def _is_beyond_years(value: SparkColumn) -> SparkColumn:
    return ~F.year(value).between(1, 9999)


def convert(value: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns a value of an accepted physical type as one of `type_`; NULL if it is out of range."""
    if type_.kind is Kind.DIMENSIONED:
        return value  # the cell is one
    if type_.kind is Kind.MZ_TIMESTAMP:
        return F.when(value >= 0, value.cast("bigint"))
    if type_.kind in MOMENTS:
        moment = value.cast(spark_type(type_))
        return F.when(F.year(moment).between(1, 9999), moment)
    return value.try_cast(spark_type(type_)) if type_.kind in _RANGED else value.cast(spark_type(type_))


def _have_length(lists: SparkColumn, length: SparkColumn) -> SparkColumn:
    """Returns whether each list of lists has a length."""
    return F.forall(lists, lambda one: F.equal_null(F.size(one), length))


def _dimensioned(value: SparkColumn, type_: ScalarType, depth: int) -> SparkColumn:
    """Returns lists in so many lists as an array of dimensions; NULL if lists beside each other differ in length."""
    lengths, is_even = [F.size(value)], F.lit(True)
    for _ in range(depth - 1):
        length = F.coalesce(F.size(F.get(value, F.lit(0))), F.lit(0))
        is_even &= F.coalesce(_have_length(value, length), F.lit(False))
        lengths.append(length)
        value = F.flatten(value)
    some = F.size(value) > 0
    numbers = spark_type(array_of(INT4))
    parts = (
        value.cast(spark_type(type_.fields[0][1])),
        F.when(some, F.array(*lengths)).otherwise(F.array()).cast(numbers),
        F.when(some, F.array(*(F.lit(1) for _ in lengths))).otherwise(F.array()).cast(numbers),
    )
    is_array = is_even & value.isNotNull()
    # As parts that may be NULL, as the type says: Spark would hand out a NULL whose parts are never NULL wrongly.
    found = F.struct(*(F.when(is_array, one).alias(f"f{i}") for i, one in enumerate(parts, 1)))
    return F.when(is_array, found)
