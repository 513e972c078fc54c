"""Values that nobody can foretell, yet the same whoever computes them: of a statement's seed and of a row's number."""

from __future__ import annotations

import hashlib
from uuid import UUID

from mz_dagster.functions.registry import function
from mz_dagster.scalars.types import Kind


@function("random_of_row", (Kind.TEXT, Kind.INT8), Kind.FLOAT8, internal=True)
def random_of_row(seed: str, number: int) -> float:
    """Returns a double of at least 0 and less than 1.

    Example:
        >>> 0 <= random_of_row("seed", 1) < 1, random_of_row("seed", 1) == random_of_row("seed", 2)
        (True, False)
    """
    return (int.from_bytes(_digest(seed, number)[:8]) >> 11) / 2**53


@function("uuid_of_row", (Kind.TEXT, Kind.INT8), Kind.UUID, internal=True)
def uuid_of_row(seed: str, number: int) -> str:
    """Returns a UUID of version 4.

    Example:
        >>> UUID(uuid_of_row("seed", 1)).version
        4
    """
    return str(UUID(bytes=_digest(seed, number)[:16], version=4))


def _digest(seed: str, number: int) -> bytes:
    return hashlib.blake2b(f"{seed} {number}".encode()).digest()
