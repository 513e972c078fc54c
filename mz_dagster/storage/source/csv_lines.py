r"""Reads CSV lines: RFC 4180, a header row first (`csv_header`), no line feeds within fields.

An empty field is NULL, `""` is the empty text; blanks belong to the field. Empty lines are skipped. A row all of whose
fields are NULL is, for the envelope `upsert`, the record whose key and value are null; other deletions cannot be
written in CSV.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.scalars.types import Column
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.source.cells import PLACE, cell, no_cell_faults
from mz_dagster.storage.source.faults import BAD_BYTES, EXTRA_DATA, ILL_QUOTED, UNTERMINATED

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


def cells_of_fields(lines: DataFrame, columns: Sequence[Column], header: Sequence[str]) -> DataFrame:
    """Returns the cells of lines whose fields stand in the order of `header`, without the header row itself.

    A field separator is a comma with an even number of quotes before it. Lines hold no line feed, so it can take the
    separators' place, and the line is split there.
    """
    line = F.col("mz_line")
    pieces = F.transform(
        F.split(line, '"', -1),
        lambda piece, i: F.when(i % 2 == 0, F.replace(piece, F.lit(","), F.lit("\n"))).otherwise(piece),
    )
    split = lines.where((F.col("mz_row") > 1) & (F.col("mz_bad_bytes") | (line != ""))).select(
        *PLACE,
        "mz_bad_bytes",
        (F.size(pieces) % 2 == 0).alias("mz_unterminated"),
        F.split(F.array_join(pieces, '"'), "\n", -1).alias("mz_fields"),
    )
    fields = F.col("mz_fields")
    count = F.size(fields)
    missing = F.element_at(F.lit(list(header)), F.least(count + 1, F.lit(len(header))))
    ill_quoted = F.filter(fields, _is_ill_quoted)
    malformed = (
        F.when(F.col("mz_bad_bytes"), F.lit(BAD_BYTES))
        .when(F.col("mz_unterminated"), F.lit(UNTERMINATED))
        .when(F.size(ill_quoted) > 0, F.lit(ILL_QUOTED))
        .when(count < len(header), F.concat(F.lit('22P04 missing data for column "'), missing, F.lit('"')))
        .when(count > len(header), F.lit(EXTRA_DATA))
    )
    cells = [
        (
            _content(F.get(fields, header.index(column.name))) if column.name in header else F.lit(None).cast("string")
        ).alias(cell(i))
        for i, column in enumerate(columns)
    ]
    all_null = F.forall(fields, lambda field: field == "") & (count == len(header))
    return split.select(
        *PLACE,
        malformed.alias("mz_malformed"),
        F.lit(None).cast("string").alias("mz_value_malformed"),
        all_null.alias("mz_null_key"),
        all_null.alias("mz_deleted"),
        *cells,
        no_cell_faults(),
    )


def _is_ill_quoted(field: SparkColumn) -> SparkColumn:
    inside = F.replace(F.substring(field, F.lit(2), F.length(field) - 2), F.lit('""'), F.lit(""))
    closed = field.endswith('"') & (F.length(field) >= 2) & ~inside.contains('"')
    return F.when(field.startswith('"'), ~closed).otherwise(field.contains('"'))


def _content(field: SparkColumn) -> SparkColumn:
    inside = F.replace(F.substring(field, F.lit(2), F.length(field) - 2), F.lit('""'), F.lit('"'))
    return F.when(field == "", F.lit(None).cast("string")).when(field.startswith('"'), inside).otherwise(field)
