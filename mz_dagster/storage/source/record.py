"""Assembles the records of bound files from their cells.

A record frame has, per record:

- the declared columns, typed, under the names that a shard has for them. Of a record with an error or a deletion only
  the key's columns are kept;
- `mz_timestamp`, `mz_path`, `mz_block`, `mz_row`: the tick, and the order within the tick;
- `mz_deleted`: the record deletes its key;
- `mz_error`: why it is malformed, `<SQLSTATE> <message> (file "...", line n, column "...")`, or NULL;
- `mz_place`, of changes that Debezium writes: where in a log it stands (`log_place`), or NULL.

A malformed record is data. With the envelope `upsert` it takes the place of its key's row, until the next record of
that key. If the key itself cannot be decoded, is null or has a NULL column, the error stands under the NULL key (all of
the key's columns are NULL) until a record comes whose key and value are null. With the envelope `none` an error stays
until errors are dropped (`envelope.dropped_errors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

from mz_dagster.catalog import Binding, in_shard, shard_names
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.late_pyspark import types as T
from mz_dagster.storage.source.cells import PLACE, cell
from mz_dagster.storage.source.csv_header import read_header
from mz_dagster.storage.source.csv_lines import cells_of_fields
from mz_dagster.storage.source.decode import decode, why_not
from mz_dagster.storage.source.described import Described, is_typed, unit_of
from mz_dagster.storage.source.faults import NULL_KEY, null_in, out_of_range
from mz_dagster.storage.source.json_lines import cells_of_json
from mz_dagster.storage.source.parquet_rows import cells_of_parquet, convert
from mz_dagster.storage.source.parquet_schema import read_schema
from mz_dagster.storage.source.partition_folders import partition_texts
from mz_dagster.storage.source.text_lines import read_lines
from mz_dagster.storage.spark.schema import quoted, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession


def read_records(spark: SparkSession, source: Described, bindings: Sequence[Binding]) -> DataFrame:
    """Returns the record frame of the bindings' files; lazy, but for the headers and schemas of the files."""
    bindings = [binding for binding in bindings if binding.files]
    frames = [
        _records(_named(_with_partition(spark, cells, source, bindings), source), source)
        for cells in _cells(spark, source, bindings)
    ]
    if not frames:
        return spark.createDataFrame([], record_schema(source))
    return reduce(lambda whole, one: whole.unionByName(one), frames)


def with_all_columns(records: DataFrame, source: Described) -> DataFrame:
    """Returns records with all columns of a source, NULL in those that they lack."""
    schema = record_schema(source)
    there = set(records.columns)
    return records.select(
        *(
            F.col(quoted(one.name)) if one.name in there else F.lit(None).cast(one.dataType).alias(one.name)
            for one in schema
        )
    )


def record_schema(source: Described) -> T.StructType:
    """Returns the schema of a frame of a source's records."""
    schema = T.StructType([T.StructField(column.name, spark_type(column.type)) for column in in_shard(source.columns)])
    schema.add("mz_timestamp", T.LongType()).add("mz_path", T.StringType())
    schema.add("mz_block", T.LongType()).add("mz_row", T.LongType())
    schema.add("mz_deleted", T.BooleanType()).add("mz_error", T.StringType())
    return schema.add("mz_place", T.StringType()) if source.debezium else schema


def _cells(spark: SparkSession, source: Described, bindings: Sequence[Binding]) -> list[DataFrame]:
    """Returns one frame of cells per group of files that are laid out alike."""
    folder, columns = source.place.folder, source.file_columns
    assert folder is not None, "Spark finds the files there"
    files = [file for binding in bindings for file in binding.files if file.size > 0]
    paths = [file.path for file in files]
    if not paths:
        return []
    if source.format == "json":
        lines = read_lines(spark, folder, paths, bindings)
        return [cells_of_json(lines, columns, source.key, debezium=source.debezium)]
    if source.format == "csv":
        headers = {path: read_header(folder, path, columns) for path in paths}
        return [
            cells_of_fields(read_lines(spark, folder, list(group), bindings), columns, header)
            for header, group in groupby(sorted(paths, key=headers.__getitem__), headers.__getitem__)
        ]
    schemas = {path: read_schema(folder, path, columns) for path in paths}
    return [
        cells_of_parquet(spark, folder, list(group), bindings, schema, columns)
        for schema, group in groupby(sorted(paths, key=schemas.__getitem__), schemas.__getitem__)
    ]


def _with_partition(spark: SparkSession, cells: DataFrame, source: Described, bindings: Sequence[Binding]) -> DataFrame:
    """Returns cells of the declared columns, of those of the columns that files have."""
    names = [column.name for column in source.columns]
    if not source.partition:
        return cells
    said = {name: f"mz_said_{i}" for i, name in enumerate(source.partition)}
    texts = [
        (file.path, *partition_texts(file.path, source.partition)) for binding in bindings for file in binding.files
    ]
    schema = T.StructType([T.StructField(one, T.StringType()) for one in ("mz_path", *said.values())])
    joined = cells.join(F.broadcast(spark.createDataFrame(texts, schema)), "mz_path", "left")
    place = {column.name: i for i, column in enumerate(source.file_columns)}
    own = F.col("mz_cell_faults")
    nothing = F.lit(None).cast("string")
    faults = F.array(*(F.get(own, F.lit(place[name])) if name in place else nothing for name in names))
    return joined.select(
        *PLACE,
        "mz_malformed",
        "mz_value_malformed",
        "mz_null_key",
        "mz_deleted",
        *(("mz_place",) if source.debezium else ()),
        *(F.col(cell(place[name]) if name in place else said[name]).alias(cell(i)) for i, name in enumerate(names)),
        F.when(own.isNotNull(), faults).alias("mz_cell_faults"),
    )


def _named(cells: DataFrame, source: Described) -> DataFrame:
    """Returns cells with the paths of the files that they are of, if those are copies."""
    if not source.copies:
        return cells
    path = F.col("mz_path")
    return cells.withColumn("mz_path", F.substring(path, F.lit(1), F.length(path) - len(source.copies)))


def _records(cells: DataFrame, source: Described) -> DataFrame:
    columns, key = source.columns, source.key or ()
    upsert = source.key is not None
    typed = [is_typed(source, column) for column in columns]
    # Values and what is told from them stand in projections of their own: Spark then computes each value once, and does
    # not copy its expression to every place that asks whether it is NULL.
    decoded = cells.select(
        "*",
        *(
            (convert if typed[i] else decode)(F.col(cell(i)), column.type).alias(f"mz_value_{i}")
            for i, column in enumerate(columns)
        ),
    )
    faults = []
    for i, column in enumerate(columns):
        content, value = F.col(cell(i)), F.col(f"mz_value_{i}")
        why = F.lit(out_of_range(column.type)) if typed[i] else why_not(content, column.type)
        fault = F.when(content.isNotNull() & value.isNull(), why)
        if not column.nullable or column.name in key:
            fault = fault.when(content.isNull(), F.lit(null_in(column.name)))
        faults.append(F.coalesce(F.get("mz_cell_faults", F.lit(i)), fault).alias(f"mz_fault_{i}"))
    found = decoded.select(
        *PLACE,
        "mz_malformed",
        "mz_value_malformed",
        *(f"mz_value_{i}" for i in range(len(columns))),
        *faults,
        (F.col("mz_null_key") & F.lit(upsert)).alias("mz_null_key"),
        (F.col("mz_deleted") & F.lit(upsert)).alias("mz_deleted"),
        *(("mz_place",) if source.debezium else ()),
    )
    in_key = [i for i, column in enumerate(columns) if column.name in key]
    in_value = [i for i, column in enumerate(columns) if column.name not in key]
    deleted, null_key = F.col("mz_deleted"), F.col("mz_null_key")
    keyed_fault = {i: F.when(~null_key, F.col(f"mz_fault_{i}")) for i in in_key}
    value_fault = {i: F.when(~deleted, F.col(f"mz_fault_{i}")) for i in in_value}
    judged = found.select(
        "*",
        _first(
            F.col("mz_malformed"),
            F.when(null_key & ~deleted, F.lit(NULL_KEY)),
            *keyed_fault.values(),
        ).alias("mz_key_fault"),
        _first(F.col("mz_value_malformed"), *value_fault.values()).alias("mz_value_fault"),
    )
    message = F.coalesce(F.col("mz_key_fault"), F.col("mz_value_fault"))
    whole = F.coalesce(F.col("mz_malformed").isNotNull() | (null_key & ~deleted), F.lit(False)) | (
        F.col("mz_key_fault").isNull() & F.col("mz_value_malformed").isNotNull()
    )
    at_column = F.when(whole, F.lit("")).otherwise(
        _first(
            *(
                F.when(fault.isNotNull(), F.lit(f', column "{columns[i].name}"'))
                for i, fault in {**keyed_fault, **value_fault}.items()
            ),
        )
    )
    unit = F.lit(f'", {unit_of(source)} ')
    error = F.concat(
        message, F.lit(' (file "'), F.col("mz_path"), unit, F.col("mz_row").cast("string"), at_column, F.lit(")")
    )
    keyed, sound = F.col("mz_key_fault").isNull(), message.isNull() & ~deleted
    return judged.select(
        *(
            F.when(keyed if i in in_key else sound, F.col(f"mz_value_{i}")).alias(name)
            for i, name in enumerate(shard_names([column.name for column in columns]))
        ),
        *PLACE,
        (deleted & message.isNull()).alias("mz_deleted"),
        F.when(message.isNotNull(), error).alias("mz_error"),
        *((F.when(keyed, F.col("mz_place")).alias("mz_place"),) if source.debezium else ()),
    )


def _first(*faults: SparkColumn) -> SparkColumn:
    return F.coalesce(*faults, F.lit(None).cast("string"))
