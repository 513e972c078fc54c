"""What this release plans otherwise than the one that made it, and its way on: made anew, with all that reads it.

A view's arrangements are on disk, with contents that its plan decides. A release that plans a view otherwise cannot
step it: what it would look up is not there. So the view gets a new GlobalId and hydrates anew from its inputs, and so
does everything that is computed from it, since their plans are bound to ids; the names move in one swap. Up to that
swap, what was hydrated is read as before, by whichever release; a view whose arrangements still fit keeps them.

A release never does this to what a newer one made: two of them at work on one project would take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.definition import Definition
from mz_dagster.catalog import COMMENTS, KEEPER, SCHEMA, Catalog, NewObject, ObjectRow, Ref, TypeAlteration
from mz_dagster.formalism import GlobalId

#: What is said of an object beside its definition.
_STAYING = (COMMENTS, SCHEMA, KEEPER)


@dataclass(frozen=True, slots=True)
class Replanned:
    """An object that is made anew, although its definition is as it was.

    Attributes:
        row: What it is in the catalog now.
        reason: Why, as a clause about it.
    """

    row: ObjectRow
    reason: str

    @property
    def name(self) -> str:
        """What to call it."""
        return self.row.name or self.row.created_as or str(self.row.id)


def to_replan(catalog: Catalog, definitions: CatalogDefinitions) -> tuple[Replanned, ...]:
    """Returns what is to be made anew, each object after those it reads.

    Cost: every view is planned, once in the life of `definitions`.
    """

    def reason_of(row: ObjectRow) -> str | None:
        return "this release plans its state otherwise" if definitions.is_planned_otherwise(row) else None

    return with_readers(catalog, reason_of)


def with_readers(catalog: Catalog, reason_of: Callable[[ObjectRow], str | None]) -> tuple[Replanned, ...]:
    """Returns the objects that there is a reason to make anew, with all that reads them, each after those it reads."""
    found: dict[GlobalId, Replanned] = {}
    for row in catalog.objects():  # in order of creation, so readers come after what they read
        if row.kind == "arrangement":
            continue
        read = sorted({found[id].name for id in row.dependencies.values() if id in found})
        if (reason := reason_of(row)) is not None:
            found[row.id] = Replanned(row, reason)
        elif read:
            found[row.id] = Replanned(row, f"it reads {', '.join(read)}")
    return tuple(found.values())


def replan(catalog: Catalog, definitions: CatalogDefinitions) -> tuple[tuple[Replanned, GlobalId], ...]:
    """Makes anew what this release plans otherwise, in one transaction; returns each with its new id.

    Raises:
        UnknownObject: Somebody else was faster, with some of it at least.
        SinceBehindInput: The inputs' histories became shorter meanwhile.
    """
    return recreate(catalog, definitions, to_replan(catalog, definitions))


def recreate(
    catalog: Catalog,
    definitions: CatalogDefinitions,
    objects: Sequence[Replanned],
    defined: Mapping[GlobalId, Definition] = MappingProxyType({}),
    altered: TypeAlteration | None = None,
) -> tuple[tuple[Replanned, GlobalId], ...]:
    """Gives objects new ids, in one transaction, with the names and the history that they had; they hydrate anew.

    Args:
        catalog: The catalog.
        definitions: What it holds, bound.
        objects: The objects and all that reads them, each after those it reads.
        defined: Their definitions, of those that are not defined as before.
        altered: A type that is given a value in the same transaction.

    Returns:
        Each with its new id.

    Raises:
        UnknownObject: Somebody else was faster, with some of it at least.
        SinceBehindInput: The inputs' histories became shorter meanwhile.
        TypeAltered: The type, or what depends on it, is not what the alteration was made up from.
    """
    retentions = {row.id: row.retention_ms for row in catalog.collections()}
    reads: dict[GlobalId, GlobalId | Ref] = {}
    fresh: list[NewObject] = []
    for one in objects:
        row = one.row
        made = definitions.new_objects(defined.get(row.id) or definitions.definition(row.id), fresh, reads)
        made = [replace(each, tags=row.tags) for each in made]
        kept = retentions.get(row.id, made[-1].retention_ms)  # else as defined: its row may be lost
        made[-1] = replace(
            made[-1],
            name=row.name,
            created_as=row.created_as,
            retention_ms=kept,
            is_bound_before=True,
            options={**made[-1].options, **{key: row.options[key] for key in _STAYING if key in row.options}},
            dependencies={**made[-1].dependencies, **_schema_of(row)},
        )
        fresh.extend(made)
        reads[row.id] = Ref(len(fresh) - 1)
    if not objects and altered is None:
        return ()
    rows = catalog.swap(fresh, [one.row.id for one in objects], altered=altered)
    places = [one.position for one in reads.values() if isinstance(one, Ref)]
    return tuple((one, rows[place].id) for one, place in zip(objects, places, strict=True))


def _schema_of(row: ObjectRow) -> dict[str, GlobalId]:
    """Returns the schema that an object is in, as what it depends on; nothing if that is always there."""
    return {name: id for name, id in row.dependencies.items() if name.startswith("schema ")}
