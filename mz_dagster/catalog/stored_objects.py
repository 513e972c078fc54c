"""How objects are read of their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, select

from mz_dagster.catalog.codec import columns_of, keys_of, shapes_of
from mz_dagster.catalog.database import RowsOf
from mz_dagster.catalog.rows import ObjectRow
from mz_dagster.catalog.schema import DEPENDENCY, NAME, OBJECT
from mz_dagster.formalism import GlobalId

#: Built once: building a statement takes longer than running it.
_DEPENDENCIES = select(DEPENDENCY.c.dependant, DEPENDENCY.c.name, DEPENDENCY.c.dependency)
_DEPENDENCIES_OF = RowsOf(_DEPENDENCIES, DEPENDENCY.c.dependant)


def objects_query() -> Any:
    """Returns the query for everything that `object_of` needs but what objects depend on."""
    return select(OBJECT, NAME.c.name).outerjoin(NAME, NAME.c.object == OBJECT.c.id)


def dependencies_of(
    connection: Connection, ids: Iterable[GlobalId] | None = None
) -> dict[GlobalId, dict[str, GlobalId]]:
    """Returns what some objects, or all, depend on directly, by the names used; nothing of one that depends on none."""
    found: dict[GlobalId, dict[str, GlobalId]] = {}
    rows: Iterable[Any] = (
        connection.execute(_DEPENDENCIES).all() if ids is None else _DEPENDENCIES_OF.rows(connection, sorted(ids))
    )
    # Sorted here, because databases differ in how they order text.
    for dependant, name, dependency in sorted(map(tuple, rows)):
        found.setdefault(GlobalId(dependant), {})[name] = GlobalId(dependency)
    return found


def object_of(row: Any, dependencies: Mapping[str, GlobalId]) -> ObjectRow:
    """Returns the object in a row of `objects_query`, that depends on others by these names."""
    return ObjectRow(
        GlobalId(row.id),
        row.name,
        row.created_as,
        row.kind,
        row.sql,
        row.timeline,
        columns_of(row.column_types),
        keys_of(row.unique_keys),
        row.monotonic,
        dict(dependencies),
        None if row.owner is None else GlobalId(row.owner),
        json.loads(row.options),
        tuple(json.loads(row.tags)),
        row.has_collection,
        row.dropped,
        shapes_of(row.shapes),
    )
