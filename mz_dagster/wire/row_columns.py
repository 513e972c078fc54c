"""DataRow messages of rows in columns: each column becomes texts, or PostgreSQL's binary, by one kernel of Arrow.

Each message is as `answers.data_rows` makes it of the row. A kernel is there for types of which Arrow's text is
PostgreSQL's, or nearly so; of other columns, and of what a kernel does not vouch for, each distinct cell is written by
itself. Memory: a few forms of as many rows as are sent at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.adapter.result import user_rows
from mz_dagster.compute import StoredRows
from mz_dagster.compute.snapshot.stored_rows import AT_ONCE, python_form
from mz_dagster.functions.moments.calendar import DAY, FIRST_DAY, LAST_DAY, MILLENNIUM_DAY
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.numerics import halves
from mz_dagster.storage.row_numbers import whole
from mz_dagster.wire.answers import cell_encoder, data_rows

#: How many rows are made messages of at once at most, and of about how many bytes.
_MOST_ROWS = 8 * AT_ONCE
_BYTES = 1 << 18
#: What takes more bytes may become more than Arrow holds in one piece: some rows are much longer than most.
_PIECE = 1 << 29
_NOTHING = pa.scalar(b"", pa.binary())
#: Numerics of more digits after the point Arrow may write with an exponent.
_PLAIN_DIGITS = 6
#: Numerics of so many digits after the point, and so many groups of four, are written in binary at once.
_SCALE, _GROUPS = 16, 5
_MOST = 2**63 - 1

Form = Callable[[pa.Array], pa.Array | None]


def row_messages(
    rows: StoredRows, columns: Sequence[Column], formats: Sequence[int], zone: ZoneInfo
) -> Iterator[bytes]:
    """Yields the DataRow messages of rows, some at a time.

    Args:
        rows: The rows.
        columns: What they are to who reads them.
        formats: For each column 0, text, or 1, binary.
        zone: By which clocks moments are shown.
    """
    at_once = max(1, min(_MOST_ROWS, _BYTES * len(rows) // max(1, rows.table.nbytes)))
    encoders = [cell_encoder(one.type, form == 1, zone) for one, form in zip(columns, formats, strict=True)]
    for start in range(0, len(rows), at_once):
        part = StoredRows(rows.table.slice(start, at_once), rows.columns)
        if part.table.nbytes <= _PIECE:
            yield _messages(part, columns, formats, zone)
        else:
            yield from data_rows(user_rows(part, columns), encoders)


def _messages(rows: StoredRows, columns: Sequence[Column], formats: Sequence[int], zone: ZoneInfo) -> bytes:
    parts = [pa.scalar(len(columns).to_bytes(2, "big"), pa.binary())]
    size = np.full(len(rows), 6, np.int64)  # of the length itself, and of how many cells there are
    for place, (column, format) in enumerate(zip(columns, formats, strict=True)):
        cells = _encoded(whole(rows.table.column(place)), column, binary=format == 1, zone=zone).cast(pa.binary())
        lengths = pc.binary_length(cells).fill_null(-1).to_numpy(zero_copy_only=False)
        size += 4 + np.maximum(lengths, 0)
        parts += [_fixed(lengths, ">i4"), cells.fill_null(_NOTHING)]
    head = pc.binary_join_element_wise(pa.scalar(b"D", pa.binary()), _fixed(size, ">i4"), _NOTHING)
    return _joined(pc.binary_join_element_wise(head, *parts, _NOTHING))


def _joined(pieces: pa.Array) -> bytes:
    """Returns the bytes of pieces, one behind the other."""
    ends = np.frombuffer(pieces.buffers()[1], np.int32)[pieces.offset : pieces.offset + len(pieces) + 1]
    return memoryview(pieces.buffers()[2])[ends[0] : ends[-1]].tobytes()


def _fixed(values: np.ndarray[tuple[int], np.dtype[np.int64]], form: str) -> pa.Array:
    """Returns numbers as bytes of a fixed size."""
    width = np.dtype(form).itemsize
    data = pa.py_buffer(values.astype(form).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, data]).cast(pa.binary())


def _encoded(values: pa.Array, column: Column, *, binary: bool, zone: ZoneInfo) -> pa.Array:
    """Returns the cells of a column as they are sent, as texts or bytes; NULL for NULL."""
    is_other = column.type.label and column.type.kind is not Kind.TEXT
    kernel = None if is_other else (_BINARY if binary else _TEXT).get(column.type.kind)
    if column.type.kind is Kind.TIMESTAMPTZ and not binary and zone.key != "UTC":
        kernel = None
    found = None if kernel is None else kernel(values)
    return _one_by_one(values, column, binary=binary, zone=zone) if found is None else found


def _one_by_one(values: pa.Array, column: Column, *, binary: bool, zone: ZoneInfo) -> pa.Array:
    """Returns what `_encoded` does, after a look at each distinct cell."""
    encode = cell_encoder(column.type, binary, zone)
    indices = None
    if not (pa.types.is_nested(values.type) or pa.types.is_floating(values.type)):  # whose zeros differ
        encoded = values.dictionary_encode()
        values, indices = encoded.dictionary, encoded.indices
    rows = user_rows([(one,) for one in python_form(pa.chunked_array([values]), column.type)], [column])
    found = pa.array([None if cell is None else encode(cell) for (cell,) in rows], pa.binary())
    return found if indices is None else found.take(indices)


# ---- kernels: None for what they do not vouch for


def _same(values: pa.Array) -> pa.Array:
    return values


def _as_text(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _numeric_text(values: pa.Array) -> pa.Array | None:
    return values.cast(pa.string()) if values.type.scale <= _PLAIN_DIGITS else None


def _bool_text(values: pa.Array) -> pa.Array:
    return pc.if_else(values, "t", "f")


def _date_text(values: pa.Array) -> pa.Array | None:
    return values.cast(pa.string()) if _are_in(values, pa.int32(), 1) else None


def _timestamp_text(values: pa.Array) -> pa.Array | None:
    if not _are_in(values, pa.int64(), DAY):
        return None
    shown = values.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string())  # of UTC, with six digits behind a point
    return pc.utf8_rtrim(pc.utf8_rtrim(shown, characters="0"), characters=".")


def _timestamptz_text(values: pa.Array) -> pa.Array | None:
    shown = _timestamp_text(values)
    return None if shown is None else pc.binary_join_element_wise(shown, "+00", "")


def _are_in(values: pa.Array, number: pa.DataType, unit: int) -> bool:
    """Returns whether all of some moments are of years that have four digits, and none is infinite."""
    ends = pc.min_max(values.cast(number)).as_py()
    return ends["min"] is None or (FIRST_DAY * unit <= ends["min"] and ends["max"] < (LAST_DAY + 1) * unit)


def _number_bytes(form: str) -> Form:
    def encoded(values: pa.Array) -> pa.Array:
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        return _known(_fixed(numbers, form), values)

    return encoded


def _numeric_bytes(values: pa.Array) -> pa.Array | None:
    """Returns numerics as `types.binary_of` does, of the digits to the base 10,000 that 64 bits hold."""
    scale = values.type.scale
    if scale > _SCALE:
        return None
    known = values.fill_null(Decimal(0))
    numbers, upper = halves(known)
    behind = -(-scale // 4)
    shifted = 10 ** (4 * behind - scale)  # to whole groups behind the point
    most = _MOST // shifted
    if (upper != numbers >> 63).any() or (numbers > most).any() or (numbers < -most).any():
        return None
    left = abs(numbers) * shifted
    groups = np.empty((len(left), _GROUPS), np.int64)  # the greatest first
    for place in reversed(range(_GROUPS)):
        left, groups[:, place] = np.divmod(left, 10_000)
    is_digit = groups != 0
    is_zero = ~is_digit.any(axis=1)
    first = np.where(is_zero, 0, is_digit.argmax(axis=1))
    last = np.where(is_zero, 0, _GROUPS - is_digit[:, ::-1].argmax(axis=1))
    weights = np.where(is_zero, 0, _GROUPS - behind - 1 - first)
    head = np.empty((len(left), 4), ">i2")
    head[:, 0], head[:, 1], head[:, 3] = last - first, weights, scale
    head[:, 2] = np.where(numbers < 0, 0x4000, 0)
    body = np.concatenate(
        [
            head.view(np.uint8).reshape(len(left), 8),
            groups.astype(">i2").view(np.uint8).reshape(len(left), 2 * _GROUPS),
        ],
        axis=1,
    )
    places = np.arange(body.shape[1])
    is_sent = (places < 8) | ((places >= 8 + 2 * first[:, None]) & (places < 8 + 2 * last[:, None]))
    ends = np.concatenate([[0], np.cumsum(8 + 2 * (last - first))]).astype(np.int32)
    data = pa.py_buffer(body[is_sent].tobytes())
    found = pa.Array.from_buffers(pa.binary(), len(left), [None, pa.py_buffer(ends.tobytes()), data])
    return _known(found, values)


def _bool_bytes(values: pa.Array) -> pa.Array:
    return pc.if_else(values, pa.scalar(b"\x01"), pa.scalar(b"\x00"))


def _moment_bytes(number: pa.DataType, form: str, unit: int) -> Form:
    def encoded(values: pa.Array) -> pa.Array | None:
        if not _are_in(values, number, unit):
            return None
        numbers = values.cast(number).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return _known(_fixed(numbers - MILLENNIUM_DAY * unit, form), values)

    return encoded


def _uuid_bytes(values: pa.Array) -> pa.Array:
    plain = pc.replace_substring(values, "-", "").fill_null("0" * 32).to_pylist()
    data = pa.py_buffer(bytes.fromhex("".join(plain)))
    found = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(values), [None, data])
    return _known(found.cast(pa.binary()), values)


def _known(found: pa.Array, values: pa.Array) -> pa.Array:
    """Returns cells with NULL where a value is."""
    return pc.if_else(values.is_valid(), found, pa.scalar(None, found.type)) if values.null_count else found


_TEXT: dict[Kind, Form] = {
    Kind.BOOL: _bool_text,
    Kind.INT2: _as_text,
    Kind.INT4: _as_text,
    Kind.INT8: _as_text,
    Kind.MZ_TIMESTAMP: _as_text,
    Kind.NUMERIC: _numeric_text,
    Kind.TEXT: _same,
    Kind.VARCHAR: _same,
    Kind.JSON: _same,
    Kind.JSONB: _same,
    Kind.UUID: _same,
    Kind.DATE: _date_text,
    Kind.TIMESTAMP: _timestamp_text,
    Kind.TIMESTAMPTZ: _timestamptz_text,
}
_BINARY: dict[Kind, Form] = {
    Kind.BOOL: _bool_bytes,
    Kind.INT2: _number_bytes(">i2"),
    Kind.INT4: _number_bytes(">i4"),
    Kind.INT8: _number_bytes(">i8"),
    Kind.MZ_TIMESTAMP: _number_bytes(">i8"),
    Kind.FLOAT4: _number_bytes(">f4"),
    Kind.FLOAT8: _number_bytes(">f8"),
    Kind.NUMERIC: _numeric_bytes,
    Kind.TEXT: _same,
    Kind.VARCHAR: _same,
    Kind.JSON: _same,
    Kind.BYTEA: _same,
    Kind.UUID: _uuid_bytes,
    Kind.DATE: _moment_bytes(pa.int32(), ">i4", 1),
    Kind.TIMESTAMP: _moment_bytes(pa.int64(), ">i8", DAY),
    Kind.TIMESTAMPTZ: _moment_bytes(pa.int64(), ">i8", DAY),
}
