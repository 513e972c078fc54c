"""The hash by which rows are laid out in buckets, in this process: what Spark's `xxhash64` makes of the same key.

It is XXH64 over each column's bytes, the hash so far being the seed of the next; NULL leaves it as it is. Which bytes
those are is Spark's business (`XxHash64Function`): integers of up to 32 bits, booleans and days have 4, longer ones and
moments 8, little-endian; texts are UTF-8; a numeric is the shortest big-endian two's complement of its digits, since
none is stored with a precision of 18 or less; floats are their bits, those of 0.0 and of one NaN for all that equal
them. Arrays, records and intervals are their elements, one after the other. A test holds it against Spark's own.

Where equal values of a kind have several representations, the hash is one of these: keys are looked up and grouped by
the one that stands for all equal ones (`plan.representations`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh64_intdigest

from mz_dagster.scalars.types import INT4, INT8, Kind, ScalarType
from mz_dagster.storage.numerics import halves
from mz_dagster.storage.plain_cells import moments_as_numbers, plain_cells
from mz_dagster.storage.row_numbers import floats_as_bits, whole
from mz_dagster.storage.xxh64 import of_integers, of_least_bytes

_SEED = 42
_BYTES = {
    **dict.fromkeys((Kind.BOOL, Kind.INT2, Kind.INT4, Kind.DATE), 4),
    **dict.fromkeys((Kind.INT8, Kind.MZ_TIMESTAMP, Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 8),
}
_FLOATS = {Kind.FLOAT4: "<f", Kind.FLOAT8: "<d"}
#: How many bytes are hashed of what is an integer, or the bits of a float.
_WIDTHS = {**_BYTES, Kind.FLOAT4: 4, Kind.FLOAT8: 8}
#: Months, days and microseconds.
_INTERVAL = (INT4, INT4, INT8)


def key_hash(values: Sequence[Any], types: Sequence[ScalarType], seed: int = _SEED) -> int:
    """Returns the hash of a key as an unsigned number; modulo a power of two it is that of `hash_modulo`.

    Args:
        values: The cells in their plain form (`functions.plain`): days, microseconds; None for NULL.
        types: Of the columns.
        seed: The hash of what comes before them.

    Example:
        >>> from mz_dagster.scalars.types import INT8, TEXT
        >>> key_hash([7, None], [INT8, TEXT]) == key_hash([None, 7], [TEXT, INT8])
        True
    """
    found = seed
    for value, type_ in zip(values, types, strict=True):
        if value is None:
            continue
        if type_.element is not None:
            found = key_hash(value, [type_.element] * len(value), found)
        elif type_.is_composite:
            found = key_hash(value, type_.parts, found)
        elif type_.kind is Kind.INTERVAL:
            found = key_hash(value, _INTERVAL, found)
        else:
            found = xxh64_intdigest(_hashed_bytes(value, type_), found)
    return found


def key_hashes(columns: Sequence[pa.ChunkedArray], types: Sequence[ScalarType]) -> NDArray[np.uint64]:
    """Returns the hash of each row of some columns, as `key_hash` has it.

    Args:
        columns: Stored values, as many in each.
        types: Of the columns.

    Example:
        >>> from mz_dagster.scalars.types import INT8
        >>> found = key_hashes([pa.chunked_array([[7, None]])], [INT8])
        >>> found.tolist() == [key_hash([7], [INT8]), key_hash([None], [INT8])]
        True
    """
    found = np.full(len(columns[0]) if columns else 0, _SEED, np.uint64)
    for values, type_ in zip(columns, types, strict=True):
        array = whole(values)
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        if (integers := _as_integers(array, type_, valid)) is not None:
            seeds, width = found[valid], _WIDTHS.get(type_.kind)
            own = integers[valid]
            found[valid] = of_least_bytes(own, seeds) if width is None else of_integers(own, width, seeds)
        elif pa.types.is_nested(array.type):
            cells = plain_cells(array, type_)
            found[:] = [key_hash((cell,), (type_,), seed) for cell, seed in zip(cells, found.tolist(), strict=True)]
        else:
            coded = array.drop_null().dictionary_encode()
            parts = _all_hashed_bytes(coded.dictionary, type_)
            codes = coded.indices.to_numpy().tolist()
            found[valid] = np.array(
                [xxh64_intdigest(parts[code], seed) for code, seed in zip(codes, found[valid].tolist(), strict=True)],
                np.uint64,
            )
    return found


def _as_integers(values: pa.Array, type_: ScalarType, valid: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Returns the integers that are hashed of stored values, or bits, whatever NULL is; None if not all are such."""
    if type_.kind is Kind.NUMERIC and pa.types.is_decimal128(values.type):
        low, high = halves(values)
        return low if bool(np.all((high == low >> 63)[valid])) else None
    if type_.kind not in _WIDTHS:
        return None
    numbers = floats_as_bits(moments_as_numbers(values), signs=False)
    if not (pa.types.is_integer(numbers.type) or pa.types.is_boolean(numbers.type)):
        return None
    found: NDArray[np.int64] = numbers.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _all_hashed_bytes(values: pa.Array, type_: ScalarType) -> list[bytes]:
    if pa.types.is_string(values.type):
        found: list[bytes] = values.cast(pa.binary()).to_pylist()
        return found
    return [_hashed_bytes(cell, type_) for cell in plain_cells(values, type_)]


def _hashed_bytes(value: Any, type_: ScalarType) -> bytes:
    if type_.kind in _BYTES:
        return int(value).to_bytes(_BYTES[type_.kind], "little", signed=True)
    if type_.kind in _FLOATS:
        return struct.pack(_FLOATS[type_.kind], math.nan if value != value else value + 0.0)
    if type_.kind is Kind.BYTEA:
        return bytes(value)
    if type_.kind is Kind.NUMERIC:
        digits = unscaled(value, type_.scale)
        assert digits is not None, "a stored numeric has its column's scale"
        # As many bytes as hold its bits and one for the sign; of a negative number, those of its complement.
        return digits.to_bytes((digits if digits >= 0 else ~digits).bit_length() // 8 + 1, "big", signed=True)
    return str(value).encode()


def unscaled(value: Decimal, scale: int) -> int | None:
    """Returns the integer that a numeric is stored as at `scale`; None if it has more decimals.

    Example:
        >>> unscaled(Decimal("-1.5"), 2), unscaled(Decimal("1.005"), 2)
        (-150, None)
    """
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a numeric is a number"
    whole = int("".join(map(str, digits)))
    shift: int = exponent + scale
    if shift >= 0:
        whole *= int(10**shift)
    else:
        whole, rest = divmod(whole, int(10**-shift))
        if rest:
            return None
    return -whole if sign else whole
