"""The protocol by which the binder turns names into things.

The binder sees neither catalog nor session, only a `Resolver`. The catalog's resolver answers from durable
names; a maintained object's own resolver answers from the ids it was created with, so that rebinding a
name later never changes what an existing object reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Relation
from mz_dagster.scalars.types import RelationType


@dataclass(frozen=True, slots=True)
class Item:
    """Is what a name stands for.

    Attributes:
        id: Its GlobalId.
        name: Its unqualified name.
        kind: `source`, `table`, `view`, `materialized view` or `introspection`.
        relation_type: Columns, keys, monotonicity.
        timeline: The timeline of its times; None for a view over constants only.
        expansion: For a plain view, the bound plan that stands in its place; else None.
    """

    id: GlobalId
    name: str
    kind: str
    relation_type: RelationType
    timeline: str | None
    expansion: Relation | None = None


class Resolver(Protocol):
    """Answers what a name stands for."""

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns the item called `name` (its parts, folded as SQL folds them), or None."""
        ...

    def names(self) -> tuple[str, ...]:
        """Returns all names that would resolve, for suggestions in errors."""
        ...
