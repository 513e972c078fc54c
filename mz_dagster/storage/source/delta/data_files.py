"""Reads single files of a Delta table as updates.

A column that a file does not have was added later, and is NULL in it; a partition column is what the log says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.local.cells import PORTION_ROWS
from mz_dagster.storage.source.parquet_schema import named_if_damaged
from mz_dagster.storage.source.table_rows import ReadColumn, row_updates
from mz_dagster.storage.table_place import TablePlace

#: The column of change data that says what became of a row, and what that does.
_CHANGE = "_change_type"
_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


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
    constants = {
        name: one if isinstance(one, pa.Scalar) else pa.scalar(one, pa.string()) for name, one in partition.items()
    }
    with (
        table.file(path) as opened,
        named_if_damaged(f"{table}/{path}"),
        pq.ParquetFile(opened, page_checksum_verification=True, coerce_int96_timestamp_unit="us") as file,
    ):
        there = set(file.schema_arrow.names)
        wanted = [one.physical for one in columns if one.physical in there]
        first = 0
        for batch in file.iter_batches(PORTION_ROWS, columns=[*wanted, *([_CHANGE] if holds_changes else [])]):
            found = row_updates(batch, columns, constants, tick, key)
            diffs = pa.repeat(pa.scalar(sign, pa.int64()), batch.num_rows)
            if holds_changes:
                diffs = _signs(batch.column(_CHANGE), path, sign)
            found = found.set_column(found.schema.get_field_index("mz_diff"), "mz_diff", diffs)
            if kept is not None:
                mask = [*kept[first : first + batch.num_rows]]
                found = found.filter(pa.array(mask + [True] * (batch.num_rows - len(mask)), pa.bool_()))
            first += batch.num_rows
            yield found


def row_count(table: TablePlace, path: str) -> int | None:
    """Returns how many rows a file says that it has, None if it cannot be read."""
    try:
        with table.file(path) as opened, named_if_damaged(path):
            return int(pq.read_metadata(opened).num_rows)
    except (OSError, DeltaError, SourceUnreadable):
        return None


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
