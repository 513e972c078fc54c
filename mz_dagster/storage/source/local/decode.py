"""Turns the texts of a column's cells into values of its declared type, in this process.

Accepts what `source.decode` has Spark accept, and says the same of what it does not: its docstring states the rules.
Most columns are plain, and Arrow reads them as they stand (`_plainly`): a text of such a form that it means the same to
Arrow and to PostgreSQL. If one is not, each distinct text of the column is read by itself (`input_functions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.plain_cells import stored_cells
from mz_dagster.storage.source.input_functions import DAYS_END, FIRST_DAY, reader_of

_DAY = 86_400_000_000

#: Forms of texts that mean the same to Arrow.
_ISO_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ISO_SECONDS = rf"{_ISO_DATE}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}"
_ISO_OFFSET = "(Z|[+-](0[0-9]|1[0-5])(:[0-5][0-9])?)"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
#: How often Arrow's regular expressions repeat something at most.
_MOST_REPEATED = 1000


def decoded(texts: pa.Array, type_: ScalarType) -> tuple[pa.Array, Mapping[int, str]]:
    """Returns the values of texts, NULL for NULL and for what cannot be decoded, and why that cannot, by position.

    Args:
        texts: Of Arrow's type `string`.
        type_: The declared type.
    """
    plain, others = decoded_plainly(texts, type_)
    if plain is not None and others is None:
        return plain, {}
    found, faults = _one_by_one(others, type_)
    return found if plain is None else pc.coalesce(plain, found), faults


def decoded_plainly(texts: pa.Array, type_: ScalarType) -> tuple[pa.Array | None, pa.Array | None]:
    """Returns the values of texts of such a form that Arrow reads them as PostgreSQL does, and the other texts.

    Each is NULL where the other one is not, and None if it would be everywhere.
    """
    if type_.kind is Kind.TEXT:
        return texts, None
    pattern = _plain_form(type_)
    if pattern is not None:
        is_plain = pc.match_substring_regex(texts, f"^({pattern})$")
        has_others = pc.all(is_plain).as_py() is False
        nothing = pa.scalar(None, pa.string())
        plain = _plainly(pc.if_else(is_plain, texts, nothing) if has_others else texts, type_)
        if plain is not None:
            return plain, pc.if_else(is_plain, nothing, texts) if has_others else None
    return None, texts


def _one_by_one(texts: pa.Array, type_: ScalarType) -> tuple[pa.Array, Mapping[int, str]]:
    """Returns what `decoded` does, after a look at each distinct text."""
    encoded = texts.dictionary_encode()
    read = reader_of(type_)
    values: list[Any] = []
    faults: dict[int, str] = {}
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            values.append(read(text))
        except SqlFailure as failure:
            values.append(None)
            faults[number] = str(failure)
    found = stored_cells(values, type_).take(encoded.indices)
    if not faults:
        return found, {}
    numbers = enumerate(encoded.indices.to_pylist())
    return found, {position: faults[number] for position, number in numbers if number in faults}


def _plain_form(type_: ScalarType) -> str | None:
    """Returns the form of texts that Arrow reads as PostgreSQL does, as a regular expression; None if there is none.

    What a modifier would round or refuse is not of that form.
    """
    precision = None if type_.modifier is None else type_.modifier.precision
    match type_.kind:
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return "-?[0-9]{1,18}"
        case Kind.MZ_TIMESTAMP:
            return "[0-9]{1,18}"
        case Kind.NUMERIC if (whole := (38 if precision is None else precision) - type_.scale) > 0:
            return f"-?[0-9]{{1,{min(18, whole)}}}{_fraction(type_.scale)}"
        # So few digits neither overflow nor vanish.
        case Kind.FLOAT4:
            return r"-?[0-9]{1,15}(\.[0-9]{1,20})?([eE][+-]?0?[0-9])?"
        case Kind.FLOAT8:
            return r"-?[0-9]{1,15}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?"
        case Kind.DATE:
            return _ISO_DATE
        case Kind.TIMESTAMP:
            return _ISO_SECONDS + _fraction(6 if precision is None else precision)
        case Kind.TIMESTAMPTZ:
            return _ISO_SECONDS + _fraction(6 if precision is None else precision) + _ISO_OFFSET
        case Kind.UUID:
            return _UUID
        case Kind.VARCHAR | Kind.CHAR:
            return f"(?s).{{0,{type_.length}}}" if (type_.length or 0) <= _MOST_REPEATED else None
        case _:
            return None


def _fraction(digits: int) -> str:
    return rf"(\.[0-9]{{1,{digits}}})?" if digits else ""


def _plainly(texts: pa.Array, type_: ScalarType) -> pa.Array | None:
    """Returns the values of texts of the plain form, None if one of them has none."""
    match type_.kind:
        case Kind.VARCHAR:
            return texts
        case Kind.CHAR:
            return pc.utf8_rtrim(texts, characters=" ")
        case kind:
            try:
                found = texts.cast(arrow_type(type_))
            except pa.ArrowInvalid:  # a month has no such day, or a number is out of range
                return None
            return _in_range(found) if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else found


def _in_range(moments: pa.Array) -> pa.Array | None:
    """Returns moments, None if one is of a year that SQL does not have here."""
    is_date = pa.types.is_date(moments.type)
    bounds = pc.min_max(moments.cast(pa.int32() if is_date else pa.int64())).as_py()
    unit = 1 if is_date else _DAY
    is_in = bounds["min"] is None or (FIRST_DAY * unit <= bounds["min"] and bounds["max"] < DAYS_END * unit)
    return moments if is_in else None
