"""What names denote in a session: first its own temporary objects, then what the catalog holds.

A temporary object has no name in the catalog, so nobody else sees it. The session knows it by its name, and keeps it by
a lease (`KEEPER`): it goes when the session is closed or, if its process has died, with the next sweep after that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.bound_tables import note_table
from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import KEEPER, NameTaken, NewObject, ObjectRow, UnknownObject
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.sql import Name
from mz_dagster.sql.errors import InvalidSchemaName, InvalidTableDefinition, UndefinedTable, WrongObjectKind
from mz_dagster.storage.append import BatchWriter

_TEMPORARY, _PUBLIC = "pg_temp", "public"


class Names:
    """What names denote in a session; a `Resolver` for its statements.

    May be used by several threads, as the cursors of one connection are.

    Args:
        engine: The project.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._temporary: dict[str, GlobalId] = {}
        self._lease: BatchWriter | None = None
        self._leasing = threading.Lock()

    def close(self) -> None:
        """Drops the session's temporary objects."""
        self._temporary.clear()
        with self._leasing:
            lease, self._lease = self._lease, None
        if lease is not None:
            lease.__exit__(None, None, None)
            self.engine.catalog.drop_unneeded()

    # ---- a resolver

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for now, or None."""
        row = self._temporary_row(name)
        if row is not None:
            found: Item | None = replace(self.engine.definitions.item(row.id, row.version), name=name[-1])
        else:
            found = None if name[:-1] == (_TEMPORARY,) else self.engine.definitions.resolve(name)
        if found is not None and found.kind == "table":
            note_table(found.id, found.version)
        return found

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return (*self._temporary, *self.engine.definitions.names())

    # ---- objects

    def find(self, name: Name) -> ObjectRow | None:
        """Returns the object that bears a name, or None."""
        row = self._temporary_row(name.parts)
        if row is None and name.parts[:-1] in ((), (_PUBLIC,)):
            row = self.engine.catalog.resolve_name(name.last)
        return row

    def object(self, name: Name, kind: str | None = None) -> ObjectRow:
        """Returns the object that bears a name.

        Args:
            name: The name.
            kind: What the object must be; None for anything.

        Raises:
            UndefinedTable: Nothing bears the name.
            WrongObjectKind: What bears it is of another kind.
        """
        row, position = self.find(name), name.offset + 1
        if row is None:
            raise UndefinedTable.named(str(name), self.names(), position, kind=kind or "relation")
        if kind is not None and row.kind != kind:
            raise WrongObjectKind(f'"{name}" is not a {kind}', hint=f"It is a {row.kind}.", position=position)
        if row.kind == "table":
            note_table(row.id, row.version)
        return row

    def table(self, name: Name) -> ObjectRow:
        """Returns the table that bears a name, which a statement writes.

        Raises:
            UndefinedTable: Nothing bears the name.
            WrongObjectKind: What bears it is no table.
        """
        row = self.object(name)
        if row.kind != "table":
            raise WrongObjectKind(
                f'cannot change "{name}"',
                detail=f"It is a {row.kind}.",
                hint="Only tables are written by INSERT, UPDATE, DELETE and COPY.",
                position=name.offset + 1,
            )
        return row

    def objects(self, kind: str | None = None) -> Iterator[ObjectRow]:
        """Yields all objects that have names for the session, of one kind if given."""
        for row in map(self.as_named, self.engine.catalog.objects(kind)):
            if row.name is not None:
                yield row

    def as_named(self, row: ObjectRow) -> ObjectRow:
        """Returns an object under the name that it has for the session, if it has one."""
        name = next((name for name, id in self._temporary.items() if id == row.id), row.name)
        return row if name == row.name else replace(row, name=name)

    # ---- temporary objects

    def is_temporary(self, id: GlobalId) -> bool:
        """Returns whether an object is one of the session's temporary ones."""
        return id in self._temporary.values()

    def check_free(self, name: Name, *, temporary: bool) -> None:
        """Returns if an object can be created under a name.

        Raises:
            NameTaken: The name denotes something already.
            InvalidSchemaName: There is no such schema.
            InvalidTableDefinition: Its schema is not for temporary objects.
        """
        schema = name.parts[:-1]
        if schema not in ((), (_PUBLIC,), (_TEMPORARY,)):
            raise InvalidSchemaName(
                f'schema "{".".join(schema)}" does not exist',
                hint='There is one schema, "public".',
                position=name.offset + 1,
            )
        if temporary and schema == (_PUBLIC,):
            raise InvalidTableDefinition(
                "cannot create temporary relation in non-temporary schema", position=name.offset + 1
            )
        if temporary:
            taken = self._temporary_row((name.last,)) is not None
        else:
            taken = self.engine.catalog.resolve_name(name.last) is not None
        if taken:
            raise NameTaken(name.last)

    def kept(self, new: Sequence[NewObject]) -> list[NewObject]:
        """Returns the rows that create a temporary object, of those that would create it under its name."""
        *arrangements, own = new
        options = {**own.options, KEEPER: self._keeper()}
        return [*arrangements, replace(own, name=None, created_as=own.name, options=options)]

    def adopt(self, name: str, id: GlobalId) -> None:
        """Has a name denote a temporary object in the session."""
        self._temporary[name] = id

    def rename(self, row: ObjectRow, name: str) -> None:
        """Gives an object another name.

        Raises:
            NameTaken: The name denotes something already.
        """
        if not self.is_temporary(row.id):
            self.engine.catalog.rename_object(row.id, name)
            return
        self.check_free(Name((name,)), temporary=True)
        self._temporary[name] = self._temporary.pop(str(row.name))

    def _keeper(self) -> int:
        with self._leasing:
            if self._lease is None:
                engine = self.engine
                self._lease = BatchWriter(engine.catalog, holder=engine.holder, ttl_ms=engine.project.lease_ms)
            return self._lease.id

    def _temporary_row(self, name: tuple[str, ...]) -> ObjectRow | None:
        if name[:-1] not in ((), (_TEMPORARY,)) or name[-1] not in self._temporary:
            return None
        try:
            row = self.engine.catalog.object(self._temporary[name[-1]])
        except UnknownObject:
            row = None
        if row is None or row.dropped:
            del self._temporary[name[-1]]
            return None
        return replace(row, name=name[-1])


@dataclass(frozen=True, slots=True)
class TargetFirst:
    """Resolves the name of a table that is written to that table, whatever else bears it; all others as before.

    Attributes:
        resolver: Answers all other names.
        table: The table.
        engine: The project.
    """

    resolver: Resolver
    table: ObjectRow
    engine: Engine

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        if name == (self.table.name,):
            return replace(self.engine.definitions.item(self.table.id, self.table.version), name=name[0])
        return self.resolver.resolve(name)

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self.resolver.names()
