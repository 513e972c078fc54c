"""Tables that have no name until their rows are sealed, so that there is nothing of them, or all.

Whoever makes one holds a lease on it: what never got its name is dropped by the maker, if it can, or by the next sweep
once the lease has run out. A temporary table has no name in the catalog at all; its maker drops it by its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from mz_dagster.adapter.definition import Definition, define
from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import KEEPER, NewObject, ObjectRow
from mz_dagster.errors import OperationalError
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.sql import CreateTable, parse
from mz_dagster.sql.schemas import PUBLIC
from mz_dagster.storage.append import BatchWriter


def definition_of(text: str, default_timeline: str, types: Resolver) -> Definition:
    """Returns the definition of a table.

    Args:
        text: Its CREATE TABLE, as `table_text` writes it: what is of `public` has no schema in it.
        default_timeline: The timeline of one that does not name another.
        types: Resolves the names of types.
    """
    (table,) = parse(text)
    assert isinstance(table, CreateTable)
    return define(table, _PublicFirst(types), default_timeline=default_timeline)


@dataclass(frozen=True, slots=True)
class _PublicFirst:
    """Resolves names without a schema in `public` whatever the session's path, and then as others."""

    others: Resolver

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        found = self.others.resolve((PUBLIC, *name)) if len(name) == 1 else None
        return self.others.resolve(name) if found is None else found

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self.others.names()


@contextmanager
def hidden_table(engine: Engine, new: NewObject) -> Iterator[ObjectRow]:
    """Creates a table that the block fills and gives its name to; if the block fails, there is none.

    Args:
        engine: The project.
        new: The table. Without a name it is temporary, and its session keeps it: see `Names.kept`.
    """
    made: ObjectRow | None = None
    try:
        with BatchWriter(engine.catalog, holder=engine.holder, ttl_ms=engine.project.lease_ms) as keeper:
            hidden = new
            if new.name is not None:
                hidden = replace(new, name=None, created_as=new.name, options={**new.options, KEEPER: keeper.id})
            made = engine.catalog.create_object(hidden)
            yield made
    except BaseException:
        with suppress(OperationalError):  # a sweep does it, too
            if new.name is None and made is not None:
                engine.catalog.drop_object(made.id)
            engine.catalog.drop_unneeded()
        raise
