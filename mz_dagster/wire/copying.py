"""COPY's formats as clients write and read them, by PostgreSQL's documentation of COPY: text, CSV and binary."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from mz_dagster.adapter.copy_lines import CopyLines
from mz_dagster.functions.cell_text import cell_text
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.sql import ClientFormat
from mz_dagster.sql.errors import InvalidParameterValue, UnsupportedForm
from mz_dagster.storage.copy_csv import (
    Record,
    csv_records,
    spelled_values,
    stored_columns,
    stored_plainly,
    text_records,
)
from mz_dagster.storage.copy_errors import BadCopyFormat, NotUtf8
from mz_dagster.wire.binary_columns import binary_columns
from mz_dagster.wire.types import binary_of, parameter_of, unsized

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEAD = _SIGNATURE + struct.pack("!ii", 0, 0)
_END = struct.pack("!h", -1)


# ---- to a client


class Encoder:
    """Writes rows in a format.

    Args:
        format: Which.
        columns: The rows' columns.
        zone: The session's time zone.

    Raises:
        UndefinedColumn: FORCE_QUOTE names a column that there is none of.
    """

    def __init__(self, format: ClientFormat, columns: Sequence[Column], zone: ZoneInfo) -> None:
        self._lines = CopyLines(format, columns, zone)
        self._is_binary = format.kind == "binary"
        self._columns = columns
        self._head = _HEAD

    def header(self) -> bytes:
        """Returns the line with the columns' names, if there is to be one."""
        return self._lines.header()

    def row(self, cells: Sequence[Any]) -> bytes:
        """Returns one row."""
        if not self._is_binary:
            return self._lines.row(cells)
        return self._started() + struct.pack("!h", len(cells)) + b"".join(map(_binary, cells, self._columns))

    def end(self) -> bytes:
        """Returns what comes behind the rows."""
        return self._started() + _END if self._is_binary else b""

    def _started(self) -> bytes:
        """Returns what binary rows begin with, once: it comes with the first row, as clients expect it."""
        head, self._head = self._head, b""
        return head


def _binary(cell: Any, column: Column) -> bytes:
    if cell is None:
        return struct.pack("!i", -1)
    data = binary_of(cell, column.type)
    return struct.pack("!i", len(data)) + data


# ---- from a client


def received(data: bytes, format: ClientFormat, columns: Sequence[Column]) -> list[pa.Array]:
    """Returns the columns of rows that a client has sent, in their stored form.

    Raises:
        BadCopyFormat: They are not written in that format.
        BadCopyValue: A cell is no value of its column.
    """
    found: list[pa.Array] | None = None
    if format.kind != "binary":
        is_csv = format.kind == "csv"
        found = stored_plainly(
            data.removesuffix(b"\\.\n") if is_csv else data,
            columns,
            format.header,
            delimiter=format.delimiter,
            null=format.null,
            quote=format.quote if is_csv else None,
            escape=format.escape if is_csv else "\\",
        )
    elif data.startswith(_HEAD):
        found = binary_columns(data, len(_HEAD), columns, _read_cells)
    return stored_columns(records(data, format, columns), columns, format.header) if found is None else found


def records(data: bytes, format: ClientFormat, columns: Sequence[Column]) -> Iterator[Record]:
    """Returns the records that a client has sent.

    Raises:
        BadCopyFormat: They are not written in that format.
    """
    if format.kind == "binary":
        return _binary_records(data, columns)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotUtf8(
            "what was sent is not UTF-8", detail=f"Line {line} has a byte that is none of a character.",
            hint="Nothing was written.",
        ) from error  # fmt: skip
    if format.kind == "text":
        return text_records(text, delimiter=format.delimiter, null=format.null)
    return csv_records(
        text.removesuffix("\\.\n"),
        delimiter=format.delimiter,
        quote=format.quote,
        escape=format.escape,
        null=format.null,
    )


def _read_cells(cells: Sequence[bytes | None], column: Column) -> pa.Array | pa.ChunkedArray | None:
    """Returns the values of a column's cells in binary; None if one of them is none."""
    try:
        if column.type.kind is Kind.BYTEA:
            return pa.array(cells, pa.binary())
        if column.type.kind in (Kind.TEXT, Kind.VARCHAR):
            return spelled_values(pa.array(cells, pa.binary()).cast(pa.string()), column)
        return spelled_values(pa.array([_spelled(one, column, 0) for one in cells], pa.string()), column)
    except (BadCopyFormat, UnsupportedForm, pa.ArrowInvalid):
        return None


def _binary_records(data: bytes, columns: Sequence[Column]) -> Iterator[Record]:
    if not data.startswith(_SIGNATURE):
        raise BadCopyFormat("COPY file signature not recognized", hint="Is it written in the binary format?")
    reader = _Reader(data, len(_SIGNATURE))
    (flags,), (extension,) = reader.take("!i"), reader.take("!i")
    if flags & 0x7FFF0000:
        raise BadCopyFormat("unrecognized critical flags in COPY file header", hint="Write it without.")
    reader.skip(extension)
    number = 0
    while not reader.is_at_end:  # the trailer may be missing, as in what ADBC sends
        number += 1
        (count,) = reader.take("!h")
        if count == -1:
            return
        if count != len(columns):
            raise BadCopyFormat(
                f"row field count is {count}, expected {len(columns)}", detail=f"It is row {number}.",
                hint="Nothing was written.",
            )  # fmt: skip
        yield number, [_spelled(reader.cell(), column, number) for column in columns]


def _spelled(data: bytes | None, column: Column, number: int) -> str | None:
    if data is None:
        return None
    type_ = unsized(column.type)
    try:
        value = parameter_of(data, type_, binary=True)
    except InvalidParameterValue as error:
        raise BadCopyFormat(
            error.message, detail=f'It is row {number}, column "{column.name}".', hint="Nothing was written."
        ) from error
    return cell_text(value.value, value.type) if isinstance(value, Literal) else str(value)


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self._at == len(self._data)

    def take(self, form: str) -> tuple[Any, ...]:
        try:
            found = struct.unpack_from(form, self._data, self._at)
        except struct.error as error:
            raise BadCopyFormat("unexpected EOF in COPY data", hint="Nothing was written.") from error
        self._at += struct.calcsize(form)
        return found

    def skip(self, size: int) -> None:
        if size < 0 or self._at + size > len(self._data):
            raise BadCopyFormat("invalid COPY file header (wrong length)", hint="Nothing was written.")
        self._at += size

    def cell(self) -> bytes | None:
        (size,) = self.take("!i")
        if size == -1:
            return None
        start = self._at
        self.skip(size)
        return self._data[start : self._at]
