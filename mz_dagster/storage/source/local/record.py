"""Assembles the records of bound files from their cells, in this process: the table of what `source.record` describes.

Rows without a fault are not looked at one by one; those with one are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from mz_dagster.catalog import in_shard
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.source.csv_header import read_header
from mz_dagster.storage.source.described import Described, is_typed, unit_of
from mz_dagster.storage.source.faults import NULL_KEY, null_in
from mz_dagster.storage.source.local.cells import Cells, positions, without
from mz_dagster.storage.source.local.csv_lines import cells_of_csv
from mz_dagster.storage.source.local.decode import decoded
from mz_dagster.storage.source.local.json_lines import cells_of_json
from mz_dagster.storage.source.local.parquet_rows import cells_of_parquet, converted
from mz_dagster.storage.source.parquet_schema import read_schema
from mz_dagster.storage.source.partition_folders import partition_texts

#: The folder of files whose content is at hand.
_NOWHERE = Path()


def record_schema(source: Described) -> pa.Schema:
    """Returns the schema of a table of a source's records."""
    data = [(column.name, arrow_type(column.type)) for column in in_shard(source.columns)]
    place = [("mz_timestamp", pa.int64()), ("mz_path", pa.string()), ("mz_row", pa.int64())]
    said = [("mz_place", pa.string())] if source.debezium else []
    return pa.schema([*data, *place, ("mz_deleted", pa.bool_()), ("mz_error", pa.string()), *said])


def record_portions(source: Described, files: Iterable[tuple[int, str, Iterator[bytes] | Path]]) -> Iterator[pa.Table]:
    """Yields the records of files, in their order, some at a time.

    Args:
        source: What they are files of.
        files: Tick, path and content of each, by tick and path: of a file of lines in pieces of whole ones; of a large
            one of Parquet the folder that it is in.

    Raises:
        SourceUnreadable: A file is not of the source's format and columns.
    """
    schema = record_schema(source)
    for tick, path, content in files:
        for cells in _with_partition(source, path, _cells(source, path, content)):
            yield pa.Table.from_arrays(_records(source, cells, tick, path), schema=schema)


def _with_partition(source: Described, path: str, cells: Iterator[Cells]) -> Iterator[Cells]:
    """Yields cells of the declared columns, of those of the columns that files have."""
    if not source.partition:
        yield from cells
        return
    texts = dict(zip(source.partition, partition_texts(path, source.partition), strict=True))
    names = [column.name for column in source.columns]
    for one in cells:
        said = {name: pa.repeat(pa.scalar(text, pa.string()), len(one.numbers)) for name, text in texts.items()}
        own, own_faults = iter(one.columns), iter(one.faults)
        columns = [said[name] if name in said else next(own) for name in names]
        faults = [{} if name in said else next(own_faults) for name in names] if one.faults else ()
        yield replace(one, columns=columns, faults=faults)


def _cells(source: Described, path: str, pieces: Iterator[bytes] | Path) -> Iterator[Cells]:
    columns = source.file_columns
    if isinstance(pieces, Path):
        read_schema(pieces, path, columns)
        yield from cells_of_parquet(pieces, path, columns)
        return
    first = next(pieces, b"")
    if not first:
        return
    pieces = chain([first], pieces)
    if source.format == "json":
        yield from cells_of_json(pieces, columns, source.key, debezium=source.debezium)
    elif source.format == "csv":
        yield from cells_of_csv(pieces, columns, read_header(_NOWHERE, path, columns, first))
    else:
        read_schema(_NOWHERE, path, columns, first)
        yield from cells_of_parquet(b"".join(pieces), path, columns)


def _records(source: Described, cells: Cells, tick: int, path: str) -> list[pa.Array]:
    columns, key = source.columns, source.key
    rows = len(cells.numbers)
    null_keys, deleted = (frozenset(), frozenset()) if key is None else (cells.null_keys, cells.deleted)
    values, faults = zip(*(_typed(source, cells, i) for i in range(len(columns))), strict=True)
    errors: dict[int, str] = {}
    unkeyed: set[int] = set()
    for row in {*cells.malformed, *cells.value_malformed, *null_keys, *chain.from_iterable(faults)}:
        of_key, of_value = _faults_of(source, cells, faults, row, null_keys, deleted)
        if of_key is not None:
            unkeyed.add(row)
        if (fault := of_key or of_value) is not None:
            column = "" if fault.column is None else f', column "{columns[fault.column].name}"'
            errors[row] = f'{fault.message} (file "{path}", {unit_of(source)} {cells.numbers[row]}{column})'
    gone = {*errors, *deleted}
    data = [
        without(value, unkeyed if key is not None and column.name in key else gone)
        for column, value in zip(columns, values, strict=True)
    ]
    said = [pa.array([None if row in unkeyed else cells.places.get(row) for row in range(rows)], pa.string())]
    return [
        *data,
        pa.repeat(pa.scalar(tick, pa.int64()), rows),
        pa.repeat(path, rows),
        pa.array(cells.numbers, pa.int64()),
        pa.array(map((gone - errors.keys()).__contains__, range(rows)), pa.bool_()),
        pa.array(map(errors.get, range(rows)), pa.string()),
        *(said if source.debezium else ()),
    ]


def _typed(source: Described, cells: Cells, i: int) -> tuple[pa.Array, Mapping[int, str]]:
    """Returns the values of a declared column and what is wrong with its cells, by row."""
    column, found = source.columns[i], cells.columns[i]
    has_type = is_typed(source, column)
    texts = found if has_type else found.cast(pa.string())
    values, undecoded = converted(found, column.type) if has_type else decoded(texts, column.type)
    faults = dict(undecoded)
    if found.null_count and (not column.nullable or column.name in (source.key or ())):
        faults.update(dict.fromkeys(positions(found.is_null()), null_in(column.name)))
    if cells.faults:
        faults.update(cells.faults[i])
    return values, faults


class _Fault(NamedTuple):
    """What is wrong with a record, and the column where it is, None if it is the whole."""

    message: str
    column: int | None = None


def _faults_of(
    source: Described,
    cells: Cells,
    faults: Sequence[Mapping[int, str]],
    row: int,
    null_keys: Collection[int],
    deleted: Collection[int],
) -> tuple[_Fault | None, _Fault | None]:
    """Returns the first fault of a record's key, and that of its value."""
    key = source.key or ()
    of_key = of_value = None
    if row in cells.malformed:
        return _Fault(cells.malformed[row]), None
    if row in null_keys:
        if row not in deleted:
            return _Fault(NULL_KEY), None
    else:
        of_key = _first(faults, row, [i for i, column in enumerate(source.columns) if column.name in key])
    if row in cells.value_malformed:
        of_value = _Fault(cells.value_malformed[row])
    elif row not in deleted:
        of_value = _first(faults, row, [i for i, column in enumerate(source.columns) if column.name not in key])
    return of_key, of_value


def _first(faults: Sequence[Mapping[int, str]], row: int, columns: Iterable[int]) -> _Fault | None:
    return next((_Fault(faults[i][row], i) for i in columns if row in faults[i]), None)
