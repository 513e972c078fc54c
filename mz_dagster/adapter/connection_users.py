"""What uses a connection or a secret, and whether it would bind to another one in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.definition import Definition, define_stored
from mz_dagster.catalog import ObjectRow
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item, Resolver


class UsedOtherwise(ProgrammingError):
    """Something that uses a connection would not bind to it as it was to be; nothing was done."""

    sqlstate = "2BP01"


def check_users(
    rows: Sequence[ObjectRow], definitions: CatalogDefinitions, row: ObjectRow, definition: Definition
) -> None:
    """Returns if all that uses a connection or a secret binds to it as it is to be defined.

    Args:
        rows: The catalog's.
        definitions: What they stand for.
        row: The connection or secret.
        definition: What it is to be.

    Raises:
        UsedOtherwise: Something does not.
    """
    made = {row.id: definition}
    for user in _users(rows, row.id):
        resolver = _OverRedefined(definitions.as_created(user), made)
        try:
            made[user.id] = define_stored(user, user.sql, resolver, "")
        except Error as error:
            raise UsedOtherwise(
                f'cannot alter {row.kind} "{row.name}" because {user.kind} "{user.name}" would not bind to it: '
                f"{error.message}",
                detail=error.detail,
                hint="Create another one beside it, and what uses that; or drop what uses this one first.",
            ) from error


def _users(rows: Sequence[ObjectRow], id: GlobalId) -> list[ObjectRow]:
    """Returns the connections that name an object, and the sources and sinks that name it or these."""
    found = [row for row in rows if id in row.dependencies.values() and row.kind in ("connection", "source", "sink")]
    further = [one for row in found if row.kind == "connection" for one in _users(rows, row.id)]
    return [*{row.id: row for row in (*found, *further)}.values()]


@dataclass(frozen=True, slots=True)
class _OverRedefined:
    """Resolves names to what they stand for once some of it is redefined."""

    resolver: Resolver
    made: Mapping[GlobalId, Definition]

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        item = self.resolver.resolve(name)
        made = None if item is None else self.made.get(item.id)
        return item if item is None or made is None else replace(item, means=made.means)

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self.resolver.names()
