"""Avro's object container files, which are read as the Parquet that they are written as.

Their types become Arrow's, and from there on all is as for Parquet: which declared columns hold them, what is out of
range, how Spark reads them, as a copy. Columns that are not declared are left out.

A file has no end of its own, so one that is cut between two blocks is one with fewer rows; one that is cut within a
block is refused, and so is a block that says that it has fewer records than it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from mz_dagster.errors import first_line
from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.absent_columns import absent_columns
from mz_dagster.storage.source.errors import SourceUnreadable

_PORTION_ROWS = 65_536
#: Avro's types that are Arrow's under another name.
_PLAIN = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "bytes": pa.binary(), "fixed": pa.binary(), "string": pa.string(), "enum": pa.string(),
}  # fmt: skip
_UTC, _LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
#: Avro's logical types, and what makes of a value the text that it is stored as, of those that are stored as text.
_LOGICAL: dict[str, tuple[pa.DataType, Callable[[Any], Any] | None]] = {
    "date": (pa.date32(), None),
    "timestamp-millis": (_UTC, None),
    "timestamp-micros": (_UTC, None),
    "local-timestamp-millis": (_LOCAL, None),
    "local-timestamp-micros": (_LOCAL, None),
    "time-millis": (pa.string(), str),
    "time-micros": (pa.string(), str),
    "uuid": (pa.string(), str),
}


def write_as_parquet(file: BinaryIO, path: str, columns: Sequence[Column], target: Any) -> None:
    """Writes the declared columns of a file as Parquet.

    Args:
        file: The file.
        path: What it is called.
        columns: Those declared.
        target: Where to.

    Raises:
        SourceUnreadable: It is damaged, or has a column of a type that Parquet is not read in.
    """
    with named_if_damaged(path):
        schema, batches = _read(file, path, columns)
        with pq.ParquetWriter(target, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)


def row_count(file: BinaryIO) -> int:
    """Returns how many rows a file says that it has, 0 if it is none: who reads it finds that out."""
    from fastavro import block_reader

    try:
        return sum(block.num_records for block in block_reader(file))
    except Exception:  # what the library raises over other bytes is any of Python's errors
        return 0


@contextmanager
def named_if_damaged(path: str) -> Iterator[None]:
    """Has what the library raises in the block be said of a file."""
    try:
        yield
    except SourceUnreadable:
        raise
    except Exception as error:  # as above
        why = first_line(error) or type(error).__name__
        raise _unreadable(path, f"It is damaged, or is none: {why}.") from error


def records_of(file: BinaryIO) -> tuple[Any, Iterator[Any]]:
    """Returns the schema of a file, and its records; raises whatever the library does, and if some are left."""
    from fastavro import block_reader

    blocks = block_reader(file)

    def records() -> Iterator[Any]:
        for block in blocks:
            yield from block
            left: BinaryIO = block.bytes_  # type: ignore[attr-defined]
            if left.read(1):
                raise ValueError(f"a block has more than the {block.num_records} records that it says")

    return blocks.writer_schema, records()


def _read(file: BinaryIO, path: str, columns: Sequence[Column]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    from fastavro.schema import expand_schema

    written, rows = records_of(file)
    whole: Any = expand_schema(written)  # names stand for nothing in it any more
    if not isinstance(whole, dict) or whole.get("type") != "record":
        raise _unreadable(path, "Its rows are no records.")
    absent_columns(columns, [one["name"] for one in whole["fields"]], "Avro", path)
    names = {column.name for column in columns}
    fields = {one["name"]: _field(one["type"], one["name"], path) for one in whole["fields"] if one["name"] in names}
    schema = pa.schema([(name, type_) for name, (type_, _) in fields.items()])

    def batches() -> Iterator[pa.RecordBatch]:
        while portion := list(islice(rows, _PORTION_ROWS)):
            arrays = []
            for name, (type_, stored) in fields.items():
                values = (row[name] for row in portion)
                arrays.append(pa.array([None if one is None else stored(one) for one in values], type_))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return schema, batches()


def _field(avro: Any, name: str, path: str) -> tuple[pa.DataType, Callable[[Any], Any]]:
    """Returns Arrow's type of a column, and what makes a value of Avro's one of that."""
    if isinstance(avro, list):
        others = [one for one in avro if one != "null"]
        if len(others) == 1:
            return _field(others[0], name, path)
    if isinstance(avro, str):
        avro = {"type": avro}
    if isinstance(avro, dict):
        logical, kind = avro.get("logicalType"), avro["type"]
        if logical in _LOGICAL:
            type_, stored = _LOGICAL[logical]
            return type_, stored or _same
        if logical == "decimal" and avro["precision"] <= 38:
            return pa.decimal128(avro["precision"], avro.get("scale", 0)), _same
        if logical != "decimal" and kind in _PLAIN:
            return _PLAIN[kind], _same
        if kind == "array":
            type_, of_item = _field(avro["items"], name, path)
            return pa.list_(type_), lambda some: [None if one is None else of_item(one) for one in some]
        if not isinstance(kind, str):
            return _field(kind, name, path)
    raise _unreadable(path, f'Its column "{name}" is of a type that no column has here.')


def _same(value: Any) -> Any:
    return value


def _unreadable(path: str, detail: str) -> SourceUnreadable:
    return SourceUnreadable(
        f'cannot read Avro file "{path}"',
        detail=detail,
        hint="Replace the file by one with the source's columns, or move it away.",
    )
