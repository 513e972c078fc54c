"""What names denote in a session: first its own temporary objects, then what the catalog holds.

A temporary object has no name in the catalog, so nobody else sees it. The session knows it by its name, and keeps it by
a lease (`KEEPER`): it goes when the session is closed or, if its process has died, with the next sweep after that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mz_dagster.adapter import introspection
from mz_dagster.adapter.access import Access, owner_name
from mz_dagster.adapter.block_definitions import BlockDefinitions
from mz_dagster.adapter.bound_tables import note_table
from mz_dagster.adapter.create_sql import create_sql
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.inspection import Inspection
from mz_dagster.adapter.kept_statements import KeptCursor, KeptStatement
from mz_dagster.adapter.system_catalogs import Facts, made, refused
from mz_dagster.adapter.table_constraints import has_unique_index
from mz_dagster.catalog import KEEPER, SCHEMA, NameTaken, NewObject, ObjectRow, Shapes, UnknownObject
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.sql import Name
from mz_dagster.sql.errors import InvalidSchemaName, InvalidTableDefinition, UndefinedTable, WrongObjectKind
from mz_dagster.sql.schemas import PUBLIC, key_of, names_in, schema_key
from mz_dagster.storage.append import BatchWriter

_TEMPORARY = "pg_temp"


@dataclass(frozen=True, slots=True)
class Target:
    """Where an object is created.

    Attributes:
        key: What the catalog will call it.
        schema: The schema.
        schema_id: Its id; None of one that is always there.
    """

    key: str
    schema: str
    schema_id: GlobalId | None

    def of(self, new: Sequence[NewObject]) -> list[NewObject]:
        """Returns the rows that create an object in the schema, of those that would create it."""
        if self.schema_id is None:
            return list(new)
        *arrangements, own = new
        reads = {**own.dependencies, f"schema {self.schema}": self.schema_id}
        return [*arrangements, replace(own, dependencies=reads, options={**own.options, SCHEMA: self.schema})]


class Names:
    """What names denote in a session; a `Resolver` for its statements.

    May be used by several threads, as the cursors of one connection are.

    Args:
        engine: The project.

    Attributes:
        session: The session's number among those that are open in this process, if it has one.
        access: What the session may do.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.session: int | None = None
        self.access = Access()
        self.search_path: Callable[[], str] = lambda: PUBLIC
        self.block: Callable[[], BlockDefinitions | None] = lambda: None
        self.kept_statements: Callable[[], Iterable[KeptStatement]] = tuple
        self.kept_cursors: Callable[[], Iterable[KeptCursor]] = tuple
        self._temporary: dict[str, GlobalId] = {}
        self._lease: BatchWriter | None = None
        self._leasing = threading.Lock()
        self._facts: tuple[object, Facts] | None = None
        self._held: dict[int, Set[int]] | None = None

    def close(self) -> None:
        """Drops the session's temporary objects."""
        self._temporary.clear()
        with self._leasing:
            lease, self._lease = self._lease, None
        if lease is not None:
            lease.__exit__(None, None, None)
            self.engine.catalog.drop_unneeded()

    @property
    def is_shared(self) -> bool:
        """Whether names denote in it what they do in every session with its search path."""
        return not self._own and not self.block()

    def reading(self, zone: str) -> Hashable:
        """Returns by what names and literals are read in a time zone, and for whom."""
        role = self.access.role
        return zone, self.path(), role and (role.id, self.access.held_roles(role.id))

    @contextmanager
    def in_statement(self) -> Iterator[None]:
        """Has memberships of roles be looked for once in the block, in which a statement is executed."""
        before, self._held = self._held, {}
        try:
            yield
        finally:
            self._held = before

    def held_roles(self, role: int) -> Set[int]:
        """Returns the roles by whose privileges a role acts now, see `Catalog.held_roles`."""
        known = {} if self._held is None else self._held
        if role not in known:
            known[role] = self.engine.catalog.held_roles(role)
        return known[role]

    # ---- a resolver

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for now, or None."""
        name = self._here(name)
        row = self._temporary_row(name)
        if row is not None:
            found: Item | None = replace(self.engine.definitions.item(row.id, row.version, row.values), name=name[-1])
        else:
            found = None if name[:-1] == (_TEMPORARY,) else self._resolved(name)
        if found is not None and not self.access.is_owner:
            self._check_readable(found)
        if found is not None and found.kind == "table":
            note_table(found.id, found.version)
        if found is None and (error := refused(name)) is not None:
            raise error
        return found

    def _here(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """Returns a name without that of the database, which is the project's, if it says it."""
        return name[1:] if len(name) == 3 and name[0] == self.engine.project.name else name

    def _check_readable(self, item: Item) -> None:
        """Returns if the session may read what a name stands for; raises `InsufficientPrivilege` if it may not."""
        if introspection.by_id(item.id) is not None:
            self.access.check_built_in(item.name)
        elif not self.is_temporary(item.id) and item.kind not in ("schema", "type", "connection", "secret"):
            catalog = self.engine.catalog
            self.access.check(catalog.state().object(item.id) or catalog.object(item.id), "r")

    def _resolved(self, name: tuple[str, ...]) -> Item | None:
        if len(name) == 1 and PUBLIC not in self.path() and (own := introspection.find(name)) is not None:
            return own.item()  # the system catalogs are searched, whatever the path says
        for schema in () if len(name) > 1 else self.path():
            found = self._item((name if schema == PUBLIC else (schema, *name)), key_of(schema, name[-1]))
            if found is not None:
                return found
        return self._item(name, key_of(name[0], name[-1]) if len(name) == 2 else None) if len(name) > 1 else None

    def _item(self, name: tuple[str, ...], key: str | None) -> Item | None:
        """Returns what a name with its schema stands for, if the block that is open has not dropped it."""
        definitions, block = self.engine.definitions, self.block()
        if block is not None and key in block.named:
            row = self.engine.catalog.object(block.named[key])
            return replace(definitions.item(row.id, row.version, row.values), name=name[-1])
        found = definitions.resolve(name)
        return None if found is None or (block is not None and block.is_hidden(found.id)) else found

    def path(self) -> tuple[str, ...]:
        """Returns the schemas in which a name that does not say its own is looked for, in order."""
        return names_in(self.search_path())

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return (*self._own, *self.engine.definitions.names())

    def facts(self, settings: Mapping[str, str], user: str) -> Facts:
        """Returns what the system catalogs say now."""
        block, roles = self.block(), self.engine.catalog.roles()
        defined = None if block is None else block.saved()
        key = self.engine.catalog.state(), dict(settings), user, dict(self._own), defined, roles
        known = self._facts
        if known is None or known[0] != key:
            catalog, database = self.engine.catalog, self.engine.project.name
            known = self._facts = (
                key,
                Facts(catalog, database, self, settings, user, introspection.BUILT_IN, made, owner_name(), roles),
            )
        return known[1]

    @property
    def inspection(self) -> Inspection:
        """The project, to be looked at."""
        return Inspection(self.engine)

    def indexed(self, row: ObjectRow) -> tuple[GlobalId, Shapes | None]:
        """Returns what an index is on, and of which shapes the places of its key are, if not of that one's own."""
        return self.in_place_of(self.inspection.indexed(row.id))

    def in_place_of(self, id: GlobalId) -> tuple[GlobalId, Shapes | None]:
        """Returns what stands in for a table in the block, and the shapes that this is to have; or the id, and None."""
        block = self.block()
        standing = None if block is None else block.standing_for(id)
        return (id, None) if standing is None else (standing[0], standing[1].alteration.shapes)

    def definition_text(self, row: ObjectRow) -> str:
        """Returns the statement that would create an object anew."""
        return create_sql(self.engine, row, self.named)

    # ---- objects

    def find(self, name: Name) -> ObjectRow | None:
        """Returns the object that bears a name, or None."""
        parts = self._here(name.parts)
        row = self._temporary_row(parts)
        if row is not None:
            return row
        for schema in parts[:-1] or self.path() if len(parts) < 3 else ():
            row = self._named(key_of(schema, name.last))
            if row is not None and row.schema == schema and row.kind != "schema":
                return row
        return None

    def with_unique_index(self, name: Name) -> ObjectRow | None:
        """Returns the table of a unique index that bears a name; None if none does."""
        parts = self._here(name.parts)
        temporary = parts[:-1] in ((), (_TEMPORARY,))
        schemas = (*([None] if temporary else ()), *(parts[:-1] or self.path()))
        tables = [one for one in self.objects("table") if has_unique_index(one.sql, name.last)]
        for schema in schemas:
            for one in tables:
                if schema is None if self.is_temporary(one.id) else schema == one.schema:
                    return one
        return None

    def _named(self, key: str) -> ObjectRow | None:
        """Returns the object that the catalog knows by a key, or will when the block that is open commits."""
        block = self.block()
        if block is not None and key in block.named:
            return replace(self.engine.catalog.object(block.named[key]), name=key)
        row = self.engine.catalog.resolve_name(key)
        return None if row is None or (block is not None and block.is_hidden(row.id)) else row

    def schema(self, name: Name) -> ObjectRow:
        """Returns a schema that was created.

        Raises:
            InvalidSchemaName: There is none of the name.
        """
        row = self._named(schema_key(name.last))
        if row is None or row.kind != "schema":
            raise InvalidSchemaName(
                f'schema "{name.last}" does not exist',
                hint="SHOW SCHEMAS lists those there are; CREATE SCHEMA makes one.",
                position=name.offset + 1,
            )
        return row

    def schemas(self) -> Iterator[ObjectRow]:
        """Yields the schemas that were created, each under the name that it has for the session."""
        for row in map(self.as_named, self.engine.catalog.objects("schema")):
            if row.name is not None:
                yield row

    def is_schema(self, name: str) -> bool:
        """Returns whether a schema of a name was created."""
        row = self._named(schema_key(name))
        return row is not None and row.kind == "schema"

    def target(self, name: Name) -> Target:
        """Returns where an object of a name is created: in its schema, or in the first one of the search path.

        Raises:
            InvalidSchemaName: There is no such schema.
        """
        parts = self._here(name.parts)
        if len(parts) > 1:
            schema = parts[0]
        else:
            found = (one for one in self.path() if one == PUBLIC or self.is_schema(one))
            schema = next(found, "")
            if not schema:
                raise InvalidSchemaName(
                    "no schema has been selected to create in",
                    hint="SET search_path to one that there is, or qualify the name.",
                    position=name.offset + 1,
                )
        if schema in (PUBLIC, _TEMPORARY):
            return Target(name.last, PUBLIC, None)
        return Target(key_of(schema, name.last), schema, self.schema(Name((schema,), name.offset)).id)

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

    def readable(self, name: Name) -> ObjectRow:
        """Returns the object that bears a name, which the session may read; raises as `object`, and if it may not."""
        row = self.object(name)
        if not self.is_temporary(row.id):
            self.access.check(row, "r")
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
        return (row for row in self.named(self.engine.catalog.objects(kind)) if row.kind != "schema")

    def named(self, rows: Iterable[ObjectRow | None]) -> Iterator[ObjectRow]:
        """Yields those of some objects that are there and have names for the session, each under that."""
        block = self.block()
        for row in (self.as_named(one) for one in rows if one is not None):
            if row.name is not None and not (block is not None and block.is_gone(row.id)):
                yield row

    def as_named(self, row: ObjectRow) -> ObjectRow:
        """Returns an object under the name that it has for the session, if it has one."""
        block = self.block()
        own = {**self._own, **({} if block is None else block.named)}
        name = next((name for name, id in own.items() if id == row.id), row.name)
        return row if name == row.name else replace(row, name=name)

    # ---- temporary objects

    def is_temporary(self, id: GlobalId) -> bool:
        """Returns whether an object is one of the session's temporary ones."""
        return id in self._own.values()

    @property
    def _own(self) -> Mapping[str, GlobalId]:
        """The session's temporary objects by name, those of the block that is open among them."""
        block = self.block()
        return self._temporary if block is None or not block.temporary else {**self._temporary, **block.temporary}

    def check_free(self, name: Name, *, temporary: bool) -> None:
        """Returns if an object can be created under a name.

        Raises:
            NameTaken: The name denotes something already.
            InvalidSchemaName: There is no such schema.
            InvalidTableDefinition: Its schema is not for temporary objects.
        """
        schema = self._here(name.parts)[:-1]
        target = self.target(name)
        if temporary and schema not in ((), (_TEMPORARY,)):
            raise InvalidTableDefinition(
                "cannot create temporary relation in non-temporary schema", position=name.offset + 1
            )
        if (self._temporary_row((name.last,)) if temporary else self._named(target.key)) is not None:
            raise NameTaken(str(name))
        within = _TEMPORARY if temporary else target.schema
        if self.with_unique_index(Name((within, name.last), name.offset)) is not None:
            raise NameTaken(str(name))

    def kept(self, new: Sequence[NewObject]) -> list[NewObject]:
        """Returns the rows that create a temporary object, of those that would create it under its name."""
        *arrangements, own = new
        options = {**own.options, KEEPER: self._keeper()}
        return [*arrangements, replace(own, name=None, created_as=own.name, options=options)]

    def adopt(self, name: str, id: GlobalId) -> None:
        """Has a name denote a temporary object in the session; in a block from its commit on."""
        block = self.block()
        if block is None:
            self._temporary[name] = id
        else:
            block.create_temporary(name, id, self._temporary.__setitem__)

    def follow(self, old: GlobalId, new: GlobalId) -> None:
        """Has the session's name of a temporary object denote what was made in its place; others have none here."""
        self._temporary |= {name: new for name, id in self._temporary.items() if id == old}

    def rename(self, row: ObjectRow, name: str) -> None:
        """Gives an object another name.

        Raises:
            NameTaken: The name denotes something already.
        """
        key, block = key_of(row.schema, name), self.block()
        if not self.is_temporary(row.id):
            if block is None:
                self.engine.catalog.rename_object(row.id, key)
            elif self._named(key) is not None:
                raise NameTaken(name)
            else:
                block.rename(row.id, str(row.name), key)
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
        own = self._own
        if name[:-1] not in ((), (_TEMPORARY,)) or name[-1] not in own:
            return None
        try:
            row = self.engine.catalog.object(own[name[-1]])
        except UnknownObject:
            row = None
        if row is None or row.dropped:
            self._temporary.pop(name[-1], None)
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
        if name == (self.table.name,) or (len(name) == 2 and key_of(*name) == self.table.name):
            return replace(
                self.engine.definitions.item(self.table.id, self.table.version, self.table.values), name=name[-1]
            )
        return self.resolver.resolve(name)

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self.resolver.names()
