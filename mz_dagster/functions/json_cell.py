"""Cells as PostgreSQL's `to_json` writes them, and rows as its `row_to_json` does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Any
from zoneinfo import ZoneInfo

from mz_dagster.functions.arrays.dimensions import nested_json
from mz_dagster.functions.cell_text import cell_text
from mz_dagster.functions.jsonb.json_text import number
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import dimensioned_of

_HOURS_ALONE = re.compile(r"T.*[+-]\d\d$")
_NUMBERS = {
    Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.UNCONSTRAINED, Kind.MZ_TIMESTAMP,
}  # fmt: skip


def json_row(cells: Sequence[Any], columns: Sequence[Column], zone: ZoneInfo | None = None) -> str:
    """Returns a row as the text of a JSON object on one line.

    Example:
        >>> from mz_dagster.scalars.types import BOOL, TEXT
        >>> json_row((True, "a"), (Column("x", BOOL), Column("y", TEXT)))
        '{"x":true,"y":"a"}'
    """
    return _object(cells, [(one.name, one.type) for one in columns], zone)


def _object(cells: Sequence[Any], fields: Sequence[tuple[str, ScalarType]], zone: ZoneInfo | None) -> str:
    members = zip(cells, fields, strict=True)
    shown = [f"{encode_basestring(name)}:{json_cell(cell, type_, zone)}" for cell, (name, type_) in members]
    return "{" + ",".join(shown) + "}"


def json_cell(value: Any, type_: ScalarType, zone: ZoneInfo | None = None) -> str:
    r"""Returns the JSON of a cell in its Python form; timestamps with a zone are of `zone`, None for their own.

    Example:
        >>> from datetime import datetime
        >>> from mz_dagster.scalars.types import TIMESTAMP, array_of
        >>> json_cell([datetime(2020, 1, 1), None], array_of(TIMESTAMP))
        '["2020-01-01T00:00:00",null]'
    """
    if value is None:
        return "null"
    kind = type_.kind
    if kind is Kind.BOOL:
        return "true" if value else "false"
    if type_.element is not None:
        return "[" + ",".join([json_cell(one, type_.element, zone) for one in value]) + "]"
    if kind is Kind.DIMENSIONED:
        elements, lengths, _ = dimensioned_of(value)
        return nested_json([json_cell(one, type_.parts[0].parts[0], zone) for one in elements], lengths)
    if kind is Kind.RECORD:
        return _object(value, type_.fields, zone)
    if kind in (Kind.JSON, Kind.JSONB):
        return str(value).replace("\n", " ").replace("\r", " ")  # only between tokens; in strings they are escaped
    text = cell_text(value, type_, zone)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        text = text.replace(" ", "T")
        if _HOURS_ALONE.search(text):
            text += ":00"
    return number(text) if kind in _NUMBERS else encode_basestring(text)
