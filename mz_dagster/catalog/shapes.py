"""Shapes: which columns a table, or a source, had when something was bound to it.

A table that others read is altered in place. Its collection only ever gains columns, behind those that it has: so a
column's place in it is the column's identity, and a plan that was made before reads on what it read. What SQL sees of
the collection is a *shape*, one more with each alteration:

    shape 0   a, b, c   at places 0, 1, 2
    shape 1   a, c, d   at places 0, 2, 3     b was dropped, d added

A reader keeps the number of the shape that it was bound to, under `BOUND_SHAPES` of its options. In a place whose
column was dropped every row has NULL, from the time of that alteration on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mz_dagster.formalism import GlobalId
from mz_dagster.scalars.types import Column, Enumeration, RelationType

ADDED_AT = "added_at"
"""The option of a source that says from which ticks on its last columns are read, of those that were added to it."""

BOUND_SHAPES = "shapes"
"""The option of an object that says to which shape of each table it was bound, if that was not the first."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What SQL sees of a table's collection.

    Attributes:
        columns: The table's columns; nullable unless no row ever had a NULL there.
        places: The place of each in the collection.
        keys: Sets of positions among the columns, each unique at every time.
        arity: How many columns the collection had.
    """

    columns: tuple[Column, ...]
    places: tuple[int, ...]
    keys: frozenset[frozenset[int]]
    arity: int

    @property
    def is_plain(self) -> bool:
        """True if the columns are the collection's, all and in their order."""
        return self.places == tuple(range(self.arity))


@dataclass(frozen=True, slots=True)
class Shapes:
    """A collection's columns, and the shapes that a table had over them.

    Attributes:
        stored: The collection's columns; their names are its own.
        versions: The shapes, from the first to the one of today.
    """

    stored: tuple[Column, ...]
    versions: tuple[Shape, ...]

    @property
    def version(self) -> int:
        """The number of today's shape."""
        return len(self.versions) - 1

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the columns of today."""
        return self.versions[-1].places

    def with_values(self, before: Enumeration, after: Enumeration) -> Shapes:
        """Returns the shapes in whose types an enumeration has the values of another in the place of its own."""

        def known(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            return RelationType(columns).with_values(before, after).columns

        versions = tuple(replace(one, columns=known(one.columns)) for one in self.versions)
        return Shapes(known(self.stored), versions)

    def stored_type(self, version: int) -> RelationType:
        """Returns the columns that the collection had at a shape, with what was known of them."""
        shape = self.versions[version]
        known = dict(zip(shape.places, shape.columns, strict=True))
        columns = (
            Column(known[i].name if i in known else one.name, one.type, known[i].nullable if i in known else True)
            for i, one in enumerate(self.stored[: shape.arity])
        )
        keys = frozenset(frozenset(shape.places[i] for i in key) for key in shape.keys)
        return RelationType(tuple(columns), keys)


def first_shape(columns: tuple[Column, ...], keys: frozenset[frozenset[int]]) -> Shapes:
    """Returns the shapes of a table that was never altered."""
    return Shapes(columns, (Shape(columns, tuple(range(len(columns))), keys, len(columns)),))


def free_name(name: str, stored: Iterable[Column], given_up: Collection[str] = ()) -> str:
    """Returns what a collection calls a column that is added to it: by its name, or by a number.

    What collections call those whose names no shard can have (`shard_names`) is left free.

    Args:
        name: The column's name.
        stored: The columns that the collection has.
        given_up: What its shard's table calls columns that the collection has not, of whatever types: an alteration
            was given up once the files were there. The column gets a number then, that none of them is called by.
    """
    taken = {one.name.lower() for one in stored}.union(one.lower() for one in given_up)
    number, found = 1, name
    while found.lower() in taken or found.lower().startswith("mz_") or (given_up and number == 1):
        number += 1
        found = f"column_{len(taken) + number}"
    return found


def bound_shapes(options: Mapping[str, Any]) -> dict[GlobalId, int]:
    """Returns to which shapes an object was bound, by the tables; of those that are not there it was the first."""
    return {GlobalId(id): int(version) for id, version in options.get(BOUND_SHAPES, {}).items()}
