"""What is sent of results and errors: descriptions of columns, cells, and errors with their fields."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from pygwire import messages

from mz_dagster.errors import Error, IntegrityError, ProgrammingError
from mz_dagster.functions.cell_text import cell_text
from mz_dagster.notices import Notice
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.wire.types import binary_of, wire_type

_LENGTH = struct.Struct("!i").pack
_NULL = _LENGTH(-1)
#: The fields of an error that hold the names of what is to blame.
_BLAMED = {"schema": "s", "table": "t", "column": "c", "constraint": "n"}


class ProtocolViolation(ProgrammingError):
    """What no client of the protocol sends."""

    sqlstate = "08P01"


def cell(value: Any, type_: ScalarType, binary: bool, zone: ZoneInfo) -> bytes:
    """Returns a cell as it is sent."""
    return binary_of(value, type_) if binary else cell_text(value, type_, zone).encode()


#: Of what a text is what `str` makes of it.
_PLAIN = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.TEXT, Kind.VARCHAR, Kind.JSON, Kind.JSONB, Kind.ENUM)


def cell_encoder(type_: ScalarType, binary: bool, zone: ZoneInfo) -> Callable[[Any], bytes]:
    """Returns what makes of a cell that is not NULL what is sent; see `cell`."""
    if not binary and (not type_.label or type_.kind is Kind.TEXT) and type_.kind in _PLAIN:
        return lambda value: str(value).encode()
    return lambda value: cell(value, type_, binary, zone)


def data_rows(rows: Iterable[Sequence[Any]], encoders: Sequence[Callable[[Any], bytes]]) -> Iterator[bytes]:
    """Yields a DataRow message for each row, as pygwire has it, which looks at each more closely than many take."""
    count = struct.pack("!h", len(encoders))
    for row in rows:
        parts = [count]
        for value, encode in zip(row, encoders, strict=True):
            if value is None:
                parts.append(_NULL)
            else:
                data = encode(value)
                parts += _LENGTH(len(data)), data
        body = b"".join(parts)
        yield b"D" + _LENGTH(len(body) + 4) + body


def copy_data(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields a CopyData message for each line."""
    for line in lines:
        yield b"d" + _LENGTH(len(line) + 4) + line


def spread(formats: Sequence[int], count: int, what: str) -> Sequence[int]:
    """Returns a format for each of so many cells: none means text, one is for all."""
    if len(formats) not in (0, 1, count):
        raise ProtocolViolation(f"{len(formats)} formats for {count} {what}")
    if any(one not in (0, 1) for one in formats):
        raise ProtocolViolation("a format is 0, text, or 1, binary")
    return formats if len(formats) == count else [formats[0] if formats else 0] * count


def description(columns: Sequence[Column], formats: Sequence[int]) -> messages.RowDescription:
    """Returns what is told of a result's columns, in the formats that they are sent in."""
    fields = []
    for one, format in zip(columns, spread(formats, len(columns), "columns"), strict=True):
        type_ = wire_type(one.type)
        fields.append(
            messages.FieldDescription(
                name=one.name,
                type_oid=type_.id,
                type_size=type_.size,
                type_modifier=type_.modifier,
                format_code=format,
            )
        )
    return messages.RowDescription(fields=fields)


def error_response(error: Error, text: str, severity: str = "ERROR") -> messages.ErrorResponse:
    """Returns what is told of an error; its position only if there is a text that it is in."""
    fields = {"S": severity, "V": severity, "C": error.sqlstate, "M": error.message}
    for key, value in (("D", error.detail), ("H", error.hint), ("W", error.context)):
        if value:
            fields[key] = value
    if error.position is not None and text:
        fields["P"] = str(error.position)
    if isinstance(error, IntegrityError):
        fields |= {_BLAMED[kind]: name for kind, name in error.blamed.items()}
    return messages.ErrorResponse(fields={key: value.replace("\0", "") for key, value in fields.items()})


def notice_response(notice: Notice) -> messages.NoticeResponse:
    """Returns what is told of a notice."""
    fields = {"S": notice.severity, "V": notice.severity, "C": notice.sqlstate, "M": notice.message}
    if notice.detail:
        fields["D"] = notice.detail
    return messages.NoticeResponse(fields={key: value.replace("\0", "") for key, value in fields.items()})
