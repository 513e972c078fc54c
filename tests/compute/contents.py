"""Contents and updates as tests reckon with them: a `Counter` of rows, and rows that equal only what has their bits."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from typing import Any

Row = tuple[Any, ...]
Content = Counter[Row]
#: `(row or ("error", text), time, diff)`.
Update = tuple[Row, int, int]


class Exact(float):
    """Is a float that equals only what has its bits, NaN included: two zeros are two rows."""

    def __hash__(self) -> int:
        return hash(struct.pack("d", self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and struct.pack("d", self) == struct.pack("d", other)


def exact(row: Row) -> Row:
    return tuple(map(exact_cell, row))


def exact_cell(cell: Any) -> Any:
    """Returns a cell that equals only what has its bits; of an array, an interval or a record a tuple."""
    if isinstance(cell, float):
        return Exact(cell)
    if isinstance(cell, dict):
        return exact(tuple(cell.values()))
    return exact(tuple(cell)) if isinstance(cell, list | tuple) else cell


def at(updates: Sequence[Update], time: int) -> Content:
    """Returns the content that updates up to `time` sum to."""
    content: Content = Counter()
    for row, t, diff in updates:
        if t <= time:
            content[exact(row)] += diff
    return clean(content)


def clean(content: Content) -> Content:
    return Counter({row: n for row, n in content.items() if n})


def is_error(row: Row) -> bool:
    return len(row) == 2 and row[0] == "error"
