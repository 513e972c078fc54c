"""Keys that tables declare, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A constraint: no two rows of a table are equal in these columns. Rows with a NULL there are never equal.

    Attributes:
        name: Of the constraint.
        columns: Their names.
        primary: Whether it is the primary key, whose columns are not NULL.
        offset: Where it is said.
        is_index: Whether it is an index, as CREATE UNIQUE INDEX makes one, and no constraint by its name.
    """

    name: str
    columns: tuple[str, ...]
    primary: bool
    offset: int = 0
    is_index: bool = False
