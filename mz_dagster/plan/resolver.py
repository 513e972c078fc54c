"""The protocol by which the binder turns names into things.

The binder sees neither catalog nor session, only a `Resolver`. The catalog's resolver answers from durable
names; a maintained object's own resolver answers from the ids it was created with, so that rebinding a
name later never changes what an existing object reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Get, Projection, Relation
from mz_dagster.scalars.types import RelationType


@dataclass(frozen=True, slots=True)
class Item:
    """What a name stands for.

    Attributes:
        id: Its GlobalId.
        name: Its unqualified name.
        kind: `source`, `table`, `view`, `materialized view` or `introspection`.
        relation_type: Columns, keys, monotonicity.
        timeline: The timeline of its times; None for a view over constants only.
        expansion: For a plain view, the bound plan that stands in its place; else None.
        stored: Of a table that was altered: the columns of its collection, if they are not its own.
        places: The places of its columns among those.
        version: How often it had been altered in place.
        values: The number of the last time that a type it depends on, or it itself, had been given a value; 0 if none
            had.
        schema: The schema that it is in.
        means: What a connection or a secret stands for.
        hidden: How many of its last columns can be named and are not shown by `*`.
    """

    id: GlobalId
    name: str
    kind: str
    relation_type: RelationType
    timeline: str | None
    expansion: Relation | None = None
    stored: RelationType | None = None
    places: tuple[int, ...] = ()
    version: int = 0
    schema: str = "public"
    values: int = 0
    means: object = None
    hidden: int = 0

    @property
    def called(self) -> str:
        """What people are told: its name, with its schema if that is another than `public`."""
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"

    def relation(self) -> Relation:
        """Returns the plan that reads it; a plain view is its own plan."""
        if self.expansion is not None:
            return self.expansion
        if self.stored is not None:
            return Projection(Get(self.id, self.stored, self.called), self.places)
        return Get(self.id, self.relation_type, self.called)

    def contents(self) -> Relation:
        """Returns the plan that reads what is stored of it: a table's with columns that were dropped, NULL by now."""
        return self.expansion or Get(self.id, self.collection_type, self.called)

    @property
    def collection_type(self) -> RelationType:
        """The columns of its collection."""
        return self.relation_type if self.stored is None else self.stored

    def place(self, column: int) -> int:
        """Returns the place of a column in its collection."""
        return column if self.stored is None else self.places[column]


class Resolver(Protocol):
    """Answers what a name stands for."""

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns the item called `name` (its parts, folded as SQL folds them), or None."""
        ...

    def names(self) -> tuple[str, ...]:
        """Returns all names that would resolve, for suggestions in errors."""
        ...
