"""What is sent of results and errors: descriptions of columns, cells, and errors with their fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from pygwire import messages

from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.functions.cell_text import cell_text
from mz_dagster.notices import Notice
from mz_dagster.scalars.types import Column, ScalarType
from mz_dagster.wire.types import binary_of, wire_type


class ProtocolViolation(ProgrammingError):
    """What no client of the protocol sends."""

    sqlstate = "08P01"


def cell(value: Any, type_: ScalarType, binary: bool, zone: ZoneInfo) -> bytes:
    """Returns a cell as it is sent."""
    return binary_of(value, type_) if binary else cell_text(value, type_, zone).encode()


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
    for key, value in (("D", error.detail), ("H", error.hint)):
        if value:
            fields[key] = value
    if error.position is not None and text:
        fields["P"] = str(error.position)
    return messages.ErrorResponse(fields={key: value.replace("\0", "") for key, value in fields.items()})


def notice_response(notice: Notice) -> messages.NoticeResponse:
    """Returns what is told of a notice."""
    fields = {"S": notice.severity, "V": notice.severity, "C": notice.sqlstate, "M": notice.message}
    if notice.detail:
        fields["D"] = notice.detail
    return messages.NoticeResponse(fields={key: value.replace("\0", "") for key, value in fields.items()})
