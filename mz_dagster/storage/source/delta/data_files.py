"""Reads single files of a Delta table: their rows, with how often they count."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from numpy.typing import NDArray

from mz_dagster.storage.parquet_file import open_parquet
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.local.cells import PORTION_ROWS
from mz_dagster.storage.source.local.parquet_rows import plain_values
from mz_dagster.storage.source.parquet_schema import check_rows, named_if_damaged
from mz_dagster.storage.table_place import TablePlace

#: The column of change data that says what became of a row, and what that does.
_CHANGE = "_change_type"
_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def file_rows(
    table: TablePlace, path: str, names: Collection[str], sides: Sequence[tuple[Sequence[bool] | None, int]]
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Yields a file's rows with their diffs, in portions, without those of diff 0.

    Args:
        table: Where it is.
        path: The file.
        names: The columns to read of those that it has, by physical names.
        sides: Which rows count, None for all, and how often. Those beyond the end of what is said count, too.

    Raises:
        FileNotFoundError: It is gone.
        SourceUnreadable: It is damaged.
    """
    first = 0
    for batch in _batches(table, path, names):
        diffs = np.zeros(batch.num_rows, np.int64)
        for kept, count in sides:
            counted = np.ones(batch.num_rows, np.bool_)
            if kept is not None:
                said = np.asarray(kept[first : first + batch.num_rows], np.bool_)
                counted[: len(said)] = said
            diffs += count * counted
        first += batch.num_rows
        if not diffs.all():
            batch, diffs = batch.filter(pa.array(diffs != 0)), diffs[diffs != 0]
        yield batch, diffs


def changed_rows(
    table: TablePlace, path: str, names: Collection[str], sign: int
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Yields the rows of a file that say themselves what became of them, with their diffs; see `file_rows`.

    Args:
        table: Where it is.
        path: The file.
        names: The columns to read of those that it has, by physical names.
        sign: +1 to do what they say, -1 to undo it.
    """
    for batch in _batches(table, path, [*names, _CHANGE]):
        yield batch, _signs(batch.column(_CHANGE), path, sign)


def _batches(table: TablePlace, path: str, names: Collection[str]) -> Iterator[pa.RecordBatch]:
    with (
        table.file(path) as opened,
        named_if_damaged(f"{table}/{path}", is_of_table=True),
        open_parquet(opened) as file,
    ):
        there, found = set(file.schema_arrow.names), 0
        for batch in file.iter_batches(PORTION_ROWS, columns=[one for one in names if one in there]):
            values = dict(zip(batch.schema.names, map(plain_values, batch.columns), strict=True))
            # Of no columns Arrow does not know how many rows they have.
            yield pa.RecordBatch.from_pydict(values or {"": pa.nulls(batch.num_rows)})
            found += batch.num_rows
        check_rows(file, found)


def row_count(table: TablePlace, path: str) -> int | None:
    """Returns how many rows a file says that it has, None if it cannot be read."""
    try:
        with table.file(path) as opened, named_if_damaged(path):
            return int(pq.read_metadata(opened).num_rows)
    except (OSError, DeltaError, SourceUnreadable):
        return None


def _signs(changes: pa.Array, path: str, sign: int) -> NDArray[np.int64]:
    """Returns the diffs of rows by what became of them."""
    encoded = changes.cast(pa.string()).dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if unknown := [one for one in words if one not in _SIGNS]:
        raise SourceUnreadable(
            f'change data file "{path}" has an unknown change "{unknown[0]}"',
            hint="Have the table written by a writer that keeps to Delta's protocol.",
        )
    signs = np.array([_SIGNS[one] * sign for one in words], np.int64)
    found: NDArray[np.int64] = signs[encoded.indices.to_numpy()]
    return found
