"""Functions of the system catalogs. None has a SQL name: what they say depends on the catalog, which a binder knows."""

from __future__ import annotations

from mz_dagster.functions.function import Function, Nullability
from mz_dagster.scalars.types import Kind

INTERNAL = (
    # The element of a second array at the place of a value in a first one, whose elements are in order; NULL if none.
    Function("looked_up", (), None, nullability=Nullability.ALWAYS),
    # What a type is called, by its object id and its modifier; -2 stands for no modifier.
    Function("formatted_type", (Kind.INT8, Kind.INT8), Kind.TEXT),
    Function("pretty_size", (Kind.INT8,), Kind.TEXT),
)
