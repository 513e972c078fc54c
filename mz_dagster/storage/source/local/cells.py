"""The seam between the formats and the records, in this process: portions of rows of undecoded cells.

What `source.cells` says of the columns of a frame is said here of the fields of `Cells`. What few rows have, a fault or
a deletion, is by the row's position in the portion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget

#: How many lines a portion has at most.
PORTION_ROWS = 65_536
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Some rows of one file, in their order.

    Attributes:
        numbers: Of the lines or rows in the file, from 1.
        columns: For each declared column its cells: texts, or values of a physical type (Parquet).
        malformed: Why rows cannot be read as a whole.
        value_malformed: Why their values cannot be read although their keys can.
        null_keys: The rows whose key is null as a whole.
        deleted: The rows whose value is null as a whole.
        faults: For each declared column why cells hold nothing that can be stored; may be shorter than `columns`.
        places: Where in a log rows stand, of those that say so (`log_place`).
    """

    numbers: Sequence[int]
    columns: Sequence[pa.Array]
    malformed: Mapping[int, str] = field(default_factory=dict)
    value_malformed: Mapping[int, str] = field(default_factory=dict)
    null_keys: Collection[int] = frozenset()
    deleted: Collection[int] = frozenset()
    faults: Sequence[Mapping[int, str]] = ()
    places: Mapping[int, str] = field(default_factory=dict)


def text_lines(pieces: Iterable[bytes]) -> Iterator[tuple[int, str | None]]:
    """Yields the lines of a file with their numbers, from 1; None for one that is no text.

    A line ends with a line feed, or with a carriage return and a line feed; the last one may end without.

    Args:
        pieces: What the file holds, each of whole lines.
    """
    number = 0
    for place, piece in enumerate(pieces):
        for line in _lines(piece if place else piece.removeprefix(_BYTE_ORDER_MARK)):
            number += 1
            yield number, line


def line_portions(lines: Iterable[tuple[int, str | None]]) -> Iterator[list[tuple[int, str | None]]]:
    """Yields lines some at a time: as many as a portion has, or fewer if they are long."""
    most, portion, size = budget().text_bytes, list[tuple[int, str | None]](), 0
    for one in lines:
        portion.append(one)
        size += len(one[1] or "")
        if size >= most or len(portion) == PORTION_ROWS:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _lines(piece: bytes) -> Iterator[str | None]:
    if not piece:
        return
    piece = piece.removesuffix(b"\n")
    try:
        whole: str | None = None if b"\0" in piece else piece.decode()
    except UnicodeDecodeError:
        whole = None
    if whole is not None:
        for line in whole.split("\n"):
            yield line.removesuffix("\r")
        return
    for raw in piece.split(b"\n"):
        try:
            text = None if b"\0" in raw else raw.decode()
        except UnicodeDecodeError:
            text = None
        yield None if text is None else text.removesuffix("\r")


def texts(columns: Sequence[Sequence[str | None]]) -> list[pa.Array]:
    """Returns columns of texts as Arrow's."""
    return [pa.array(one, pa.string()) for one in columns]


def positions(found: pa.Array) -> list[int]:
    """Returns where something is true."""
    return [row for row, is_true in enumerate(found.to_pylist()) if is_true] if pc.any(found).as_py() else []


def without(values: pa.Array, rows: Collection[int]) -> pa.Array:
    """Returns values, NULL in some rows."""
    if not rows:
        return values
    return values.take(pa.array([None if row in rows else row for row in range(len(values))], pa.int64()))
