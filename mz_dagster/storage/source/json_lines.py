r"""Reads JSON lines.

For the envelope `none` a line is the row, as an object. For `upsert` it is `{"key": {...}, "value": {...}}`: the key's
columns are taken from `key`, the others from `value`, and a `value` of null deletes. A `key` of null is the NULL
key. Both members must be there: a record cut short must not delete. Unknown members are ignored, a missing column
is NULL, of a repeated member the last counts.

Spark's parser reads numbers through a double, and takes `{"a": 1} junk` for `{"a": 1}`. Hence two rewritings of each
line before it is parsed: numbers outside strings become marked strings, so that all their digits arrive; and the line
is put into an array before an end mark, which is only found again if the line was exactly one value.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from mz_dagster.plan.types import Column, Kind
from mz_dagster.storage.source.cells import PLACE, cell
from mz_dagster.storage.source.decode import shown
from mz_dagster.storage.source.in_python import member
from mz_dagster.storage.source.text_lines import BAD_BYTES

_STRICT = {"mode": "PERMISSIVE", "allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
#: A noncharacter: no text interchanged holds it. Marks what was a number.
_NUMBER_MARK = "\uffff"
_NUMBER = r"(?<![\w.+\-])(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?)(?![\w.+\-])"
_END = "mz_end"


def cells_of_rows(lines: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Returns the cells of lines that are rows."""
    document = T.StructType([T.StructField(column.name, T.StringType()) for column in columns])
    parsed = _parse(lines, document)
    row = F.col("mz_document")
    return parsed.select(
        *PLACE,
        _malformed(row, "object").alias("mz_malformed"),
        F.lit(None).cast("string").alias("mz_value_malformed"),
        F.lit(False).alias("mz_null_key"),
        F.lit(False).alias("mz_deleted"),
        *(_cell(row, column).alias(cell(i)) for i, column in enumerate(columns)),
    )


def cells_of_upserts(lines: DataFrame, columns: Sequence[Column], key: Sequence[str]) -> DataFrame:
    """Returns the cells of lines that are a key with its value."""
    of_key = T.StructType([T.StructField(c.name, T.StringType()) for c in columns if c.name in key])
    of_value = T.StructType([T.StructField(c.name, T.StringType()) for c in columns if c.name not in key])
    if not of_value.fields:
        of_value.add("mz_nothing", T.StringType())
    document = T.StructType([T.StructField("key", of_key), T.StructField("value", of_value)])
    parsed = _parse(lines, document)
    record = F.col("mz_document")
    keyed, valued = record.getField("key"), record.getField("value")
    # Only where a member did not come out as an object: is it null, absent, or something else?
    both = F.from_json(F.col("mz_rewritten"), "array<struct<key: string, value: string>>", _STRICT)
    raw = F.try_element_at(both, F.lit(1))
    members = F.json_object_keys("mz_line")
    has_key = F.coalesce(F.array_contains(members, "key"), F.lit(False))
    has_value = F.coalesce(F.array_contains(members, "value"), F.lit(False))
    key_fault = F.when(
        keyed.isNull(),
        F.when(~has_key, F.lit('22P02 record has no member "key"')).when(
            raw.getField("key").isNotNull(), F.lit('22P02 member "key" is not an object')
        ),
    )
    value_fault = F.when(
        valued.isNull(),
        F.when(~has_value, F.lit('22P02 record has no member "value"')).when(
            raw.getField("value").isNotNull(), F.lit('22P02 member "value" is not an object')
        ),
    )
    staged = parsed.select(
        *PLACE,
        F.coalesce(_malformed(record, "object"), key_fault).alias("mz_malformed"),
        value_fault.alias("mz_value_malformed"),
        keyed.isNull().alias("mz_null_key"),
        valued.isNull().alias("mz_no_value"),
        *(
            (_cell(keyed, column, "key") if column.name in key else _cell(valued, column, "value")).alias(cell(i))
            for i, column in enumerate(columns)
        ),
    )
    return staged.withColumn("mz_deleted", F.col("mz_no_value") & F.col("mz_value_malformed").isNull()).drop(
        "mz_no_value"
    )


def _cell(row: SparkColumn, column: Column, *path: str) -> SparkColumn:
    """Returns the text of a column's member of `row`, which stands at `path` in the line.

    Of a jsonb it is JSON, in which a string has its quotes; of any other type a string is its text.
    """
    if column.type.kind is Kind.JSONB:
        return F.when(row.isNotNull(), member(F.col("mz_line"), *path, column.name))
    return _text(row.getField(column.name))


def _parse(lines: DataFrame, document: T.StructType) -> DataFrame:
    """Returns the lines that are not blank, with `mz_document`: NULL if the line is not exactly one object."""
    kept = lines.where(F.col("mz_bad_bytes") | (F.btrim("mz_line", F.lit(" \t\r")) != ""))
    element = T.StructType([*document.fields, T.StructField(_END, T.StringType())])
    end = F.xxhash64("mz_line").cast("string")
    rewritten = F.concat(F.lit("["), _mark_numbers(F.col("mz_line")), F.lit(f',{{"{_END}":"'), end, F.lit('"}]'))
    parsed = kept.withColumn("mz_rewritten", rewritten).withColumn(
        "mz_elements", F.from_json(F.col("mz_rewritten"), T.ArrayType(element), _STRICT)
    )
    elements = F.col("mz_elements")
    whole = (F.size(elements) == 2) & (F.try_element_at(elements, F.lit(2)).getField(_END) == end)
    return parsed.withColumn("mz_document", F.when(whole, F.try_element_at(elements, F.lit(1))))


def _mark_numbers(line: SparkColumn) -> SparkColumn:
    r"""Returns the line with `"\uffff" + digits` as a string for every number outside strings.

    A line feed cannot occur in a line, so it serves to hide escaped backslashes and quotes: what quotes remain are
    those that open and close strings, and every other piece between them lies outside.
    """
    hidden = F.replace(F.replace(line, F.lit("\\\\"), F.lit("\n0")), F.lit('\\"'), F.lit("\n1"))
    marked = F.transform(
        F.split(hidden, '"', -1),
        lambda piece, i: F.when(i % 2 == 0, F.regexp_replace(piece, _NUMBER, f'"{_NUMBER_MARK}$1"')).otherwise(piece),
    )
    joined = F.array_join(marked, '"')
    return F.replace(F.replace(joined, F.lit("\n1"), F.lit('\\"')), F.lit("\n0"), F.lit("\\\\"))


def _text(value: SparkColumn) -> SparkColumn:
    """Returns a parsed string as it stood in the line: numbers bare again, also those within a nested value."""
    bare = F.when(value.startswith(_NUMBER_MARK), F.substring(value, 2, 1 << 30))
    nested = F.regexp_replace(value, f'"{_NUMBER_MARK}([^"]*)"', "$1")
    return bare.otherwise(nested)


def _malformed(document: SparkColumn, wanted: str) -> SparkColumn:
    syntax = F.concat(F.lit("22P02 invalid input syntax for type json: "), shown(F.col("mz_line")))
    return F.when(F.col("mz_bad_bytes"), F.lit(BAD_BYTES)).when(document.isNull(), syntax)
