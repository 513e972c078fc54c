"""Rows as words of 64 bits, and hashes of these: what tells most rows apart, many at once, without Arrow's grouping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.storage.row_numbers import numbered, whole

Words = NDArray[np.uint64]

#: Odd, and its bits look random: 2^64 over the golden ratio.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
#: How many rows are hashed at once, which the processor's cache holds.
AT_ONCE = 65_536
#: Texts of up to so many bytes are words themselves, longer ones are numbered.
_SHORT = 32
#: By how many of a word's bytes count, its bits that do: the first bytes are the low ones.
_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def hashed(words: Sequence[Words]) -> Words:
    """Returns a hash of each row's words, of at least one column; its upper bits depend on all of them.

    Example:
        >>> one, other, same = hashed([np.array([1, 2, 1], np.uint64), np.array([0, 0, 0], np.uint64)])
        >>> bool(one == same != other)
        True
    """
    found = np.empty(len(words[0]), np.uint64)
    for begin in range(0, len(found), AT_ONCE):
        some = found[begin : begin + AT_ONCE]
        some[:] = _FACTOR
        for word in words:
            some ^= word[begin : begin + AT_ONCE]
            some *= _FACTOR
            some ^= some >> _HALF
        some *= _FACTOR
    return found


def words_of(column: pa.ChunkedArray, *, has_nulls: bool) -> list[Words]:
    """Returns words that are equal in two rows if and only if the column is, by its bits.

    Within arrays and structs all NaNs are one, as they are in a collection.

    Args:
        column: The column; or a part of it, if it is of a fixed size: parts of one have the same words.
        has_nulls: Whether the column, of which this may be a part, has NULLs.
    """
    type_ = column.type
    found: list[Words] | None
    if pa.types.is_null(type_):
        return []
    if pa.types.is_decimal128(type_):
        found = _of_decimals(column)
    elif pa.types.is_boolean(type_):
        found = [_of_fixed(column.cast(pa.uint8()))]
    elif pa.types.is_primitive(type_) and type_.bit_width in (8, 16, 32, 64):
        found = [_of_fixed(column)]
    else:
        found = _of_texts(column) if pa.types.is_string(type_) or pa.types.is_binary(type_) else None
    if found is None:  # NULL has a number, too
        return [numbered([whole(column)], len(column))[0].astype(np.uint64)]
    if has_nulls:
        valid = column.is_valid().to_numpy()
        for word in found:
            word *= valid
        found.append(valid.astype(np.uint64))
    return found


def _of_fixed(column: pa.ChunkedArray) -> Words:
    found, begin = np.empty(len(column), np.uint64), 0
    for chunk in column.chunks:
        found[begin : begin + len(chunk)] = _values(chunk, np.dtype(f"u{column.type.bit_width // 8}"), 1)
        begin += len(chunk)
    return found


def _of_decimals(column: pa.ChunkedArray) -> list[Words]:
    pairs = np.concatenate([_values(chunk, np.dtype(np.uint64), 2).reshape(-1, 2) for chunk in column.chunks])
    return [np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])]


def _values(chunk: pa.Array, dtype: np.dtype[Any], each: int) -> NDArray[Any]:
    """Returns what an array holds, where it is NULL, too: so many of a type for each value."""
    found = np.frombuffer(chunk.buffers()[1], dtype) if len(chunk) else np.empty(0, dtype)
    return found[each * chunk.offset : each * (chunk.offset + len(chunk))]


def _of_texts(column: pa.ChunkedArray) -> list[Words] | None:
    """Returns texts as their bytes, eight in a word, and their lengths; None if one of them is too long for that."""
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    longest = int(lengths.max(initial=0))
    if longest > _SHORT:
        return None
    found = [np.empty(len(column), np.uint64) for _ in range(-(-longest // 8))]
    begin = 0
    for chunk in column.chunks:
        rows = slice(begin, begin + len(chunk))
        begin += len(chunk)
        starts = _values(chunk, np.dtype(np.int32), 1).astype(np.int64)
        data = chunk.buffers()[2] if len(chunk) else None
        held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        padded = np.concatenate([held, np.zeros(_SHORT + 8, np.uint8)])
        eights = np.ndarray((len(padded) - 7,), np.uint64, padded, 0, (1,))
        for place, word in enumerate(found):
            left = np.clip(lengths[rows] - 8 * place, 0, 8)
            word[rows] = eights[starts + 8 * place] & _LOW_BYTES[left]
    return [*found, lengths.astype(np.uint64)]
