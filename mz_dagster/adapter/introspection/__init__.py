"""The catalog's own relations: the engine's state, as rows, in `mz_catalog` and `mz_internal`.

Those of PostgreSQL's system catalogs (`system_catalogs/`) are others of the kind.

Each shows the state at the moment of the query: it has no timeline and is readable at every time. Only a statement that
names one pays for it, and most ask the catalog alone; none starts Spark or makes a step. Its columns are declared
beside the function that fills it, and `docs/introspection.md` is made of that (`python -m docs.introspection`).

    of_objects   what there is, and what depends on what
    of_storage   what is stored and held: times, frontiers, batches, leases
    of_activity  what is going on in this process: sessions, steps; what sources wait for, and errors
"""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.adapter.introspection import of_activity, of_objects, of_storage
from mz_dagster.adapter.introspection.relation import IntrospectionRelation
from mz_dagster.adapter.system_catalogs import SYSTEM_RELATIONS, BuiltIn, SystemRelation
from mz_dagster.formalism import GlobalId

RELATIONS: tuple[IntrospectionRelation, ...] = (
    *of_objects.RELATIONS,
    *of_storage.RELATIONS,
    *of_activity.RELATIONS,
)


_EVERY: tuple[IntrospectionRelation | SystemRelation, ...] = (*RELATIONS, *SYSTEM_RELATIONS)
_BY_NAME: Mapping[tuple[str, ...], IntrospectionRelation | SystemRelation] = {
    **{(one.schema, one.name): one for one in _EVERY},
    **{(one.name,): one for one in _EVERY if one.schema != "information_schema"},
}
_BY_ID = {one.id: one for one in _EVERY}
_FIRST_ID = 12_500
"""The object id of the first of the engine's own."""
#: All of them, as the system catalogs tell of them.
BUILT_IN = (
    *(BuiltIn(one.schema, one.name, one.object_id, one.columns, one.is_view) for one in SYSTEM_RELATIONS),
    *(BuiltIn(one.schema, one.name, _FIRST_ID + n, one.columns, is_view=True) for n, one in enumerate(RELATIONS)),
)


def find(name: tuple[str, ...]) -> IntrospectionRelation | SystemRelation | None:
    """Returns the relation of that name, qualified with its schema or, if that is searched always, not; or None."""
    return _BY_NAME.get(name)


def by_id(id: GlobalId) -> IntrospectionRelation | SystemRelation | None:
    """Returns the relation of that id, or None."""
    return _BY_ID.get(id)
