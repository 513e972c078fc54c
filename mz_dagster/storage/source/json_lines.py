"""Reads JSON lines.

For the envelope `none` a line is the row, as an object. For `upsert` it is `{"key": {...}, "value": {...}}`: the key's
columns are taken from `key`, the others from `value`, and a `value` of null deletes. A `key` of null is the NULL
key. Both members must be there: a record cut short must not delete. Unknown members are ignored, a missing column
is NULL, of a repeated member the last counts.

For `debezium` a line is a change, see `json_record.debezium_reader`.

Lines are read in Python (`json_record`): Spark's parser reads numbers through a double, takes `{"a": 1} junk` for
`{"a": 1}` and half of a surrogate pair for a question mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from mz_dagster.scalars.types import Column
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.late_pyspark import types as T
from mz_dagster.storage.source import json_record
from mz_dagster.storage.source.cells import PLACE, cell
from mz_dagster.storage.source.faults import BAD_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def cells_of_json(
    lines: DataFrame, columns: Sequence[Column], key: Sequence[str] | None, *, debezium: bool = False
) -> DataFrame:
    """Returns the cells of lines that are rows; with `key`, a key with its value, or a change that Debezium writes."""
    names = [column.name for column in columns]
    forms = [json_record.form_of(column.type) for column in columns]
    reader = json_record.reader(names, forms, key, debezium=debezium)
    kept = lines.where(F.col("mz_bad_bytes") | (F.btrim("mz_line", F.lit(" \t\r")) != ""))
    # Told apart from bad bytes in Spark: a worker is sent the text alone.
    read = kept.withColumn("mz_record", F.udf(reader, _record(), useArrow=True)("mz_line"))
    record = F.col("mz_record")
    if debezium:
        read = read.where(~F.equal_null(record["mz_malformed"], F.lit(json_record.NO_RECORD)))
    return read.select(
        *PLACE,
        F.when(F.col("mz_bad_bytes"), F.lit(BAD_BYTES)).otherwise(record["mz_malformed"]).alias("mz_malformed"),
        *(record[name].alias(name) for name in _record().names[1:4]),
        *((record["mz_place"].alias("mz_place"),) if debezium else ()),
        *(F.get(record["mz_cells"], F.lit(i)).alias(cell(i)) for i in range(len(columns))),
        record["mz_cell_faults"].alias("mz_cell_faults"),
    )


@cache
def _record() -> T.StructType:
    return T.StructType(
        [
            T.StructField("mz_malformed", T.StringType()),
            T.StructField("mz_value_malformed", T.StringType()),
            T.StructField("mz_null_key", T.BooleanType()),
            T.StructField("mz_deleted", T.BooleanType()),
            T.StructField("mz_cells", T.ArrayType(T.StringType())),
            T.StructField("mz_cell_faults", T.ArrayType(T.StringType())),
            T.StructField("mz_place", T.StringType()),
        ]
    )
