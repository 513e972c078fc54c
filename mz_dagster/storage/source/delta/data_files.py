"""Reads single files of a table as updates: the declared columns, of which a file may lack some.

A column that a file does not have was added later, and is NULL in it; a partition column is what the log says. A value
that its declared type does not hold makes the row an error of the data, whose text depends on nothing but the row, so
that the row cancels it once it goes, whichever file it is in by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.arrow_schema import arrow_type, update_schema
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.faults import BAD_BYTES, null_in
from mz_dagster.storage.source.local.cells import PORTION_ROWS, positions, without
from mz_dagster.storage.source.local.decode import decoded
from mz_dagster.storage.source.local.parquet_rows import converted, plain_values, untextual
from mz_dagster.storage.source.parquet_schema import TEXTUAL, named_if_damaged
from mz_dagster.storage.table_place import TablePlace

#: The column of change data that says what became of a row, and what that does.
_CHANGE = "_change_type"
_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


class ReadColumn(NamedTuple):
    """A column as it is declared, by the name that the collection's shard has for it, and by that of the files."""

    declared: Column
    stored: Column
    physical: str


def file_updates(
    table: TablePlace,
    path: str,
    columns: Sequence[ReadColumn],
    partition: Mapping[str, pa.Scalar | str | None],
    tick: int,
    sign: int,
    *,
    kept: Sequence[bool] | None = None,
    holds_changes: bool = False,
    key: Collection[str] = (),
) -> Iterator[pa.Table]:
    """Yields the updates that a file's rows are, in portions.

    Args:
        table: Where it is.
        path: The file.
        columns: What to read.
        partition: The values of partition columns, by physical names: typed, or as the log spells them.
        tick: When they take effect.
        sign: +1 to add the rows, -1 to take them away.
        kept: Of a file with a deletion vector: which rows it still has; those beyond its end all.
        holds_changes: Whether the rows say themselves what became of them.
        key: The columns that rows with an error keep, unless one of them is at fault, by their declared names.

    Raises:
        FileNotFoundError: It is gone.
        SourceUnreadable: It is damaged.
    """
    with (
        table.file(path) as opened,
        named_if_damaged(f"{table}/{path}"),
        pq.ParquetFile(opened, page_checksum_verification=True, coerce_int96_timestamp_unit="us") as file,
    ):
        there = set(file.schema_arrow.names)
        wanted = [one.physical for one in columns if one.physical in there]
        first = 0
        for batch in file.iter_batches(PORTION_ROWS, columns=[*wanted, *([_CHANGE] if holds_changes else [])]):
            found = _updates(batch, columns, partition, tick, key)
            diffs = pa.repeat(pa.scalar(sign, pa.int64()), batch.num_rows)
            if holds_changes:
                diffs = _signs(batch.column(_CHANGE), path, sign)
            found = found.set_column(found.schema.get_field_index("mz_diff"), "mz_diff", diffs)
            if kept is not None:
                mask = [*kept[first : first + batch.num_rows]]
                found = found.filter(pa.array(mask + [True] * (batch.num_rows - len(mask)), pa.bool_()))
            first += batch.num_rows
            yield found


def _updates(
    batch: pa.RecordBatch,
    columns: Sequence[ReadColumn],
    partition: Mapping[str, pa.Scalar | str | None],
    tick: int,
    key: Collection[str],
) -> pa.Table:
    """Returns rows as insertions."""
    rows, names = batch.num_rows, set(batch.schema.names)
    values: list[pa.Array] = []
    faults: dict[int, str] = {}
    unkeyed: set[int] = set()
    for one in columns:
        if one.physical in partition:
            value = partition[one.physical]
            value = value if isinstance(value, pa.Scalar) else pa.scalar(value, pa.string())
            found = plain_values(pa.repeat(value, rows))
        elif one.physical in names:
            found = plain_values(batch.column(one.physical))
        else:
            found = pa.nulls(rows, arrow_type(one.declared.type))
        typed, of_column = _typed(found, one.declared)
        values.append(typed)
        for row, fault in of_column.items():
            faults.setdefault(row, f'{fault} (column "{one.declared.name}")')
        if one.declared.name in key:
            unkeyed |= of_column.keys()
    meta = [
        pa.repeat(pa.scalar(tick, pa.int64()), rows),
        pa.repeat(pa.scalar(1, pa.int64()), rows),
        pa.array(map(faults.get, range(rows)), pa.string()) if faults else pa.nulls(rows, pa.string()),
    ]
    data = [
        without(value, unkeyed if one.declared.name in key else faults)
        for one, value in zip(columns, values, strict=True)
    ]
    return pa.Table.from_arrays([*data, *meta], schema=update_schema([one.stored for one in columns]))


def _typed(found: pa.Array, column: Column) -> tuple[pa.Array, dict[int, str]]:
    """Returns values of a column's declared type, and what is wrong with those that are none, by row."""
    faults: dict[int, str] = dict.fromkeys(untextual(found), BAD_BYTES)
    found = without(found, faults)
    stored, kind = arrow_type(column.type), column.type.kind
    if found.type == stored and found.null_count == len(found):
        values = found
    elif kind in TEXTUAL or (pa.types.is_string(found.type) and kind is not Kind.TEXT):
        texts = found.cast(pa.string())
        values, wrong = decoded(texts, column.type)
        faults |= wrong
    else:
        if pa.types.is_date(found.type) and kind is Kind.TIMESTAMP:  # of before the column was widened
            found = found.cast(pa.timestamp("us"))
        values, wrong = converted(found, column.type)
        faults |= wrong
    if not column.nullable and found.null_count:
        for row in positions(found.is_null()):
            faults.setdefault(row, null_in(column.name))
    return values, faults


def _signs(changes: pa.Array, path: str, sign: int) -> pa.Array:
    """Returns the diffs of rows by what became of them."""
    encoded = changes.cast(pa.string()).dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if unknown := [one for one in words if one not in _SIGNS]:
        raise SourceUnreadable(
            f'change data file "{path}" has an unknown change "{unknown[0]}"',
            hint="Have the table written by a writer that keeps to Delta's protocol.",
        )
    signs = pa.array([_SIGNS[one] * sign for one in words], pa.int64())
    return pc.take(signs, encoded.indices)
