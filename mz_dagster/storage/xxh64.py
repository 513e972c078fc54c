"""XXH64 of many short values at once: integers of four and eight bytes, and numbers in as few bytes as hold them.

The xxhash package hashes one value a call, which takes as long as sixty of these. What is longer than eight bytes is
left to it. The constants and steps are those of the specification (xxHash fast digest algorithm, version 0.1.1).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_P1, _P2, _P3, _P4, _P5 = map(np.uint64, _PRIMES)


def of_integers(values: NDArray[np.int64], width: int, seeds: Words) -> Words:
    """Returns the hash of each integer, whose bytes are little-endian.

    Args:
        values: The integers.
        width: How many bytes each has, 4 or 8.
        seeds: The seed for each.

    Example:
        >>> from xxhash import xxh64_intdigest
        >>> found = of_integers(np.array([-7]), 4, np.array([42], np.uint64))
        >>> int(found[0]) == xxh64_intdigest((-7).to_bytes(4, "little", signed=True), 42)
        True
    """
    return _hashed(values.astype(np.uint64), width, seeds)


def of_least_bytes(values: NDArray[np.int64], seeds: Words) -> Words:
    """Returns the hash of each integer, whose bytes are the shortest big-endian two's complement.

    Example:
        >>> from xxhash import xxh64_intdigest
        >>> found = of_least_bytes(np.array([-129]), np.array([1], np.uint64))
        >>> int(found[0]) == xxh64_intdigest((-129).to_bytes(2, "big", signed=True), 1)
        True
    """
    magnitudes = np.where(values < 0, ~values, values)
    widths = 1 + sum((magnitudes >= 1 << 8 * one - 1).astype(np.int64) for one in range(1, 8))
    found = np.empty(len(values), np.uint64)
    for width in np.unique(widths).tolist():
        chosen = widths == width
        # The first byte is that of the highest value.
        words = (values[chosen].astype(np.uint64) << np.uint64(64 - 8 * width)).byteswap()
        found[chosen] = _hashed(words, width, seeds[chosen])
    return found


def _hashed(words: Words, width: int, seeds: Words) -> Words:
    """Returns the hash of the lowest bytes of each word, the lowest first."""
    found = seeds + _P5 + np.uint64(width)
    if width == 8:
        found ^= _rotated(words * _P2, 31) * _P1
        return _mixed(_rotated(found, 27) * _P1 + _P4)
    if width >= 4:
        found ^= (words & np.uint64(0xFFFFFFFF)) * _P1
        found = _rotated(found, 23) * _P2 + _P3
        words = words >> np.uint64(32)
    for place in range(width % 4):
        found ^= (words >> np.uint64(8 * place) & np.uint64(0xFF)) * _P5
        found = _rotated(found, 11) * _P1
    return _mixed(found)


def _mixed(found: Words) -> Words:
    found ^= found >> np.uint64(33)
    found *= _P2
    found ^= found >> np.uint64(29)
    found *= _P3
    return found ^ (found >> np.uint64(32))


def _rotated(words: Words, by: int) -> Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))
