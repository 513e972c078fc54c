"""Columns of what a client sends for a COPY in binary: those of a fixed size at once, others text by text.

What is wrong in any way, or out of range, is left to a look at each cell (`copying`), which says what and where.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from mz_dagster.functions.moments.calendar import DAY, FIRST_DAY, LAST_DAY, MILLENNIUM_DAY
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type

#: What follows the last row, or nothing does.
_END = struct.pack("!h", -1)
_LENGTH = struct.Struct("!i").unpack_from
#: How a cell of a fixed size stands there, to be read by NumPy.
_FIXED: Mapping[Kind, str] = {
    Kind.BOOL: ">u1",
    Kind.INT2: ">i2",
    Kind.INT4: ">i4",
    Kind.INT8: ">i8",
    Kind.FLOAT4: ">f4",
    Kind.FLOAT8: ">f8",
    Kind.DATE: ">i4",
    Kind.TIMESTAMP: ">i8",
    Kind.TIMESTAMPTZ: ">i8",
}

Cells = Sequence[bytes | None]
#: Returns the values of a column's cells; None if one of them has to be looked at by itself.
Reader = Callable[[Cells, Column], pa.Array | pa.ChunkedArray | None]


def binary_columns(data: bytes, at: int, columns: Sequence[Column], read: Reader) -> list[pa.Array] | None:
    """Returns columns in their stored form, of rows in binary; None if a cell has to be looked at by itself.

    Args:
        data: What was sent.
        at: Where the first row begins.
        columns: The columns.
        read: Reads those of other types.
    """
    forms = [None if one.type.label or one.type.modifier is not None else _FIXED.get(one.type.kind) for one in columns]
    cells = _cells(data, at, [-1 if one is None else np.dtype(one).itemsize for one in forms])
    found: list[pa.Array] = []
    for column, form, own in zip(columns, forms, cells or (), strict=cells is not None):
        values = read(own, column) if form is None else _fixed(own, form, column.type)
        if values is None:
            return None
        found.append(values)
    return found or None


def _cells(data: bytes, at: int, sizes: Sequence[int]) -> list[list[bytes | None]] | None:
    """Returns the cells by column; None if they are not there, or not of their sizes, of which -1 is any."""
    cells: list[list[bytes | None]] = [[] for _ in sizes]
    takers = [(one.append, size) for one, size in zip(cells, sizes, strict=True)]
    head = struct.pack("!h", len(sizes))
    try:
        while (count := data[at : at + 2]) == head:
            at += 2
            for take, size in takers:
                (length,) = _LENGTH(data, at)
                at += 4
                if length == -1:
                    take(None)
                    continue
                if length < 0 or size not in (-1, length):
                    return None
                take(data[at : at + length])
                at += length
    except struct.error:
        return None
    return cells if count == _END or at == len(data) else None


def _fixed(cells: Cells, form: str, type_: ScalarType) -> pa.Array | None:
    """Returns the values of cells of a fixed size, None if one is out of range."""
    nothing = bytes(np.dtype(form).itemsize)
    values = np.frombuffer(b"".join([nothing if one is None else one for one in cells]), form)
    mask = np.fromiter((one is None for one in cells), np.bool_, len(cells))
    own = arrow_type(type_)
    match type_.kind:
        case Kind.BOOL:
            return pa.array(values != 0, own, mask=mask)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ as kind:
            unit = 1 if kind is Kind.DATE else DAY
            low, high = (FIRST_DAY - MILLENNIUM_DAY) * unit, (LAST_DAY - MILLENNIUM_DAY + 1) * unit
            if len(values) and not low <= int(values.min()) <= int(values.max()) < high:
                return None
            numbers = values.astype(np.int64) + MILLENNIUM_DAY * unit
            return pa.array(numbers, pa.int64(), mask=mask).cast(f"int{own.bit_width}").cast(own)
        case Kind.FLOAT4 | Kind.FLOAT8:
            values = np.where(np.isnan(values), math.nan, values)
    return pa.array(values.astype(values.dtype.newbyteorder("=")), own, mask=mask)
