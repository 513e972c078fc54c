"""What the system catalogs know: the objects that a session can name, each with its object id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from mz_dagster.adapter.activity import Activity
from mz_dagster.adapter.kept_statements import KeptCursor, KeptStatement
from mz_dagster.adapter.table_constraints import constraints_of, foreign_keys_of
from mz_dagster.catalog import (
    EVERYBODY,
    LETTERS,
    BatchStats,
    Catalog,
    CollectionRow,
    ObjectRow,
    RoleRow,
    Shapes,
    stands_for,
)
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.functions.catalog.catalog_functions import interval_modifier
from mz_dagster.plan.sequence import SequenceDefinition
from mz_dagster.scalars.type_ids import type_id
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.sql import CreateCheck, CreateMaterializedView, CreateView, TableConstraints, parse
from mz_dagster.sql.catalog_facts import CatalogLookup
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.declared_keys import SELF, ForeignKey, UniqueKey
from mz_dagster.sql.schemas import PUBLIC, last_of, names_in
from mz_dagster.sql.statements import Identity

FIRST_ID = 16384
"""PostgreSQL's first object id of what users create."""
IDS = 1024
"""How many object ids an object of the catalog has."""
_FIRST_SEQUENCE, _FIRST_FOREIGN_KEY, _ROW_TYPE = 256, 768, 1022
OWNER_ID = 10
"""The object id of the project's owner, as PostgreSQL's first superuser."""
#: Object ids of the schemas that are always there.
PG_CATALOG_ID, PUBLIC_ID, TEMPORARY_ID = 11, 2200, 13_003
SYSTEM_SCHEMAS: Mapping[str, int] = {
    "pg_catalog": PG_CATALOG_ID,
    "information_schema": 13_000,
    "mz_catalog": 13_001,
    "mz_internal": 13_002,
}
TEMPORARY_SCHEMA = "pg_temp_1"
_RELKINDS = {"table": "r", "source": "r", "view": "v", "materialized view": "m", "check": "m", "index": "i"}


@dataclass(frozen=True, slots=True)
class Key:
    """A PRIMARY KEY or UNIQUE constraint, and the index by which PostgreSQL would have it; or a unique index alone.

    Attributes:
        id: The object id of both.
        name: The name of both.
        columns: The numbers of its columns.
        primary: Whether it is the primary key.
        is_index: Whether it is an index alone.
    """

    id: int
    name: str
    columns: tuple[int, ...]
    primary: bool
    is_index: bool


@dataclass(frozen=True, slots=True)
class OwnForeignKey:
    """A foreign key of a table.

    Attributes:
        id: Its object id.
        key: What it says.
        columns: The numbers of its columns.
        parent: The table that it refers to.
        referenced: The numbers of that table's columns.
    """

    id: int
    key: ForeignKey
    columns: tuple[int, ...]
    parent: CatalogEntry
    referenced: tuple[int, ...]

    @property
    def index(self) -> Key | None:
        """The key of the other table that it refers to; None if that is gone."""
        return next((one for one in self.parent.keys if set(one.columns) == set(self.referenced)), None)


@dataclass(frozen=True, slots=True)
class OwnedSequence:
    """The sequence of a column that generates its values.

    Attributes:
        id: Its object id.
        name: Its name.
        column: The number of its column.
        type: The column's type.
        identity: How the column generates its values.
    """

    id: int
    name: str
    column: int
    type: ScalarType
    identity: Identity

    @property
    def definition(self) -> SequenceDefinition:
        """Which numbers it has."""
        return self.identity.sequence


@dataclass(frozen=True)
class CatalogEntry:
    """A relation, or an index, that can be named.

    Attributes:
        facts: The catalogs that it is in.
        row: What the catalog says of it.
        name: Its name in its schema.
        schema: Its schema.
        schema_id: The schema's object id.
    """

    facts: Facts
    row: ObjectRow
    name: str
    schema: str
    schema_id: int

    @cached_property
    def id(self) -> int:
        """Its object id."""
        return object_id(self.row.id)

    @property
    def row_type(self) -> int:
        """The object id of the type of its rows; that of arrays of them is the next one."""
        return self.id + _ROW_TYPE

    @property
    def kind(self) -> str:
        """Its `pg_class.relkind`."""
        return _RELKINDS[self.row.kind]

    @property
    def is_temporary(self) -> bool:
        """Whether it is the session's own."""
        return self.schema == TEMPORARY_SCHEMA

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns; an index has those of its key."""
        if self.row.kind != "index":
            return self.row.columns
        on = self.indexed
        return tuple(on.row.columns[number - 1] for number in self.key)

    @cached_property
    def constraints(self) -> TableConstraints | None:
        """What a table demands of its rows."""
        return constraints_of(self.row.sql) if self.row.kind == "table" else None

    def number(self, column: str) -> int:
        """Returns the number of a column, from 1 on."""
        return self.row.relation_type.names.index(column) + 1

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """A table's keys and unique indexes, in the order in which they were declared."""
        declared: Sequence[UniqueKey] = () if self.constraints is None else self.constraints.keys
        return tuple(
            Key(
                self._own_id(1 + i, _FIRST_SEQUENCE),
                one.name,
                tuple(map(self.number, one.columns)),
                one.primary,
                one.is_index,
            )
            for i, one in enumerate(declared)
        )

    @property
    def key_constraints(self) -> tuple[Key, ...]:
        """Those of its keys that are constraints."""
        return tuple(one for one in self.keys if not one.is_index)

    @cached_property
    def foreign_keys(self) -> tuple[OwnForeignKey, ...]:
        """The foreign keys of a table whose other tables are there."""
        found = []
        for place, key in enumerate(foreign_keys_of(self.row) if self.row.kind == "table" else ()):
            parent = self if key.parent == SELF else self.facts.standing.get(key.parent)
            if parent is not None and set(key.referenced) <= set(parent.row.relation_type.names):
                found.append(
                    OwnForeignKey(
                        self._own_id(_FIRST_FOREIGN_KEY + place, _ROW_TYPE),
                        key,
                        tuple(map(self.number, key.columns)),
                        parent,
                        tuple(map(parent.number, key.referenced)),
                    )
                )
        return tuple(found)

    @cached_property
    def sequences(self) -> tuple[OwnedSequence, ...]:
        """The sequences of a table's columns."""
        found = {} if self.constraints is None else self.constraints.identities
        numbered = ((self.number(column), column, identity) for column, identity in found.items())
        return tuple(
            OwnedSequence(
                self._own_id(_FIRST_SEQUENCE + number, _ROW_TYPE),
                f"{self.name}_{column}_seq",
                number,
                self.row.columns[number - 1].type,
                identity,
            )
            for number, column, identity in sorted(numbered)
        )

    @property
    def own(self) -> Iterator[tuple[int, str]]:
        """Object ids and names of the indexes of its keys and of the sequences of its columns."""
        yield from ((one.id, one.name) for one in self.keys)
        yield from ((one.id, one.name) for one in self.sequences)

    def _own_id(self, place: int, end: int) -> int:
        if place >= end:
            raise InternalError(f'"{self.name}" has more keys or generated columns than there are object ids for')
        return self.id + place

    @cached_property
    def _indexed(self) -> tuple[CatalogEntry, Shapes | None]:
        id, shapes = self.facts.names.indexed(self.row)
        return self.facts.by_global_id[id], shapes

    @property
    def indexed(self) -> CatalogEntry:
        """What an index is on."""
        return self._indexed[0]

    @cached_property
    def key(self) -> tuple[int, ...]:
        """The numbers of the columns of an index."""
        on, shapes = self._indexed
        places = on.row.places if shapes is None else shapes.places
        return tuple(places.index(one) + 1 for one in self.row.options["key"] if one in places)

    @cached_property
    def query(self) -> str:
        """The text of a view's query, under the names of today."""
        (statement,) = parse(self.facts.names.definition_text(self.row))
        assert isinstance(statement, CreateView | CreateMaterializedView | CreateCheck)
        return statement.query.text.strip().rstrip(";")

    @property
    def definition(self) -> str:
        """The text of a view's query as PostgreSQL's catalogs show one."""
        return f" {self.query};"

    @property
    def has_index(self) -> bool:
        """Whether a relation has an index, be it that of a key."""
        return bool(self.keys) or self.id in self.facts.indexed

    def default(self, column: str) -> str | None:
        """Returns the text of a column's default, None if it has none."""
        if self.constraints is None:
            return None
        identity = self.constraints.identities.get(column)
        if identity is not None and identity.generated == "serial":
            sequence = next(one for one in self.sequences if one.column == self.number(column))
            text = self.facts.relation_text(self.schema, sequence.name).replace("'", "''")
            return f"nextval('{text}'::regclass)"
        computed = self.constraints.computed.get(column)
        found = self.constraints.defaults.get(column) if computed is None else computed
        return None if found is None else found.text.strip()


def object_id(id: GlobalId) -> int:
    """Returns the object id of an object of the catalog.

    Example:
        >>> object_id(GlobalId("u2"))
        18432
    """
    found = FIRST_ID + int(id[1:]) * IDS
    if found >= 1 << 31:
        raise InternalError("the catalog has had more objects than there are object ids")
    return found


def role_id(number: int) -> int:
    """Returns the object id of a role."""
    return FIRST_ID + number


def type_modifier(type_: ScalarType) -> int:
    """Returns PostgreSQL's modifier of a type; -1 if it has none.

    Example:
        >>> from mz_dagster.scalars.types import numeric
        >>> type_modifier(numeric(2)), type_modifier(ScalarType(Kind.VARCHAR, length=10))
        (2490374, 14)
    """
    if type_.array_element is not None:
        return -1 if type_.label else type_modifier(type_.array_element)
    if type_.length:
        return type_.length + 4
    modifier = type_.modifier
    if type_.kind is Kind.NUMERIC:
        precision = 38 if modifier is None or modifier.precision is None else modifier.precision
        return (precision << 16 | type_.scale) + 4
    if modifier is None:
        return -1
    if type_.kind is Kind.INTERVAL:
        return interval_modifier(modifier.fields, modifier.precision)
    return -1 if modifier.precision is None else modifier.precision


@dataclass(frozen=True)
class Role:
    """Somebody who may connect, or a set of privileges.

    Attributes:
        id: The object id.
        name: The name.
        is_superuser: Whether everything is allowed.
        can_login: Whether it may connect.
        groups: The object ids of the roles that it is a member of by a grant of its own.
    """

    id: int
    name: str
    is_superuser: bool
    can_login: bool = True
    groups: tuple[int, ...] = ()


def _role(row: RoleRow) -> Role:
    groups = tuple(map(role_id, sorted(row.groups)))
    return Role(role_id(row.id), row.name, is_superuser=False, can_login=row.can_login, groups=groups)


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A relation that is always there.

    Attributes:
        schema: Its schema.
        name: Its name.
        id: Its object id.
        columns: Its columns.
        is_view: Whether it is a view.
    """

    schema: str
    name: str
    id: int
    columns: tuple[Column, ...]
    is_view: bool


class Inspected(Protocol):
    """An opened project, as introspection looks at it."""

    @property
    def activity(self) -> Activity:
        """What this process does with it."""
        ...

    def errors(self, row: CollectionRow) -> Mapping[str, int]:
        """Returns how often each error is in a collection, at the latest time at which it is complete."""
        ...

    def waiting(self, source: GlobalId) -> int | str:
        """Returns how many files or offsets a source has that are not bound; or why nobody knows, in one line."""
        ...

    def sink_versions(self) -> Iterator[tuple[str | int | None, ...]]:
        """Yields of each sink its id, name, timeline and place, and the versions that it has, with their times."""
        ...

    def indexed(self, index: GlobalId) -> GlobalId:
        """Returns what an index is on."""
        ...


class SessionNames(Protocol):
    """The objects that a session can name."""

    @property
    def inspection(self) -> Inspected:
        """The project that they are of."""
        ...

    def objects(self) -> Iterator[ObjectRow]:
        """Yields them."""
        ...

    def schemas(self) -> Iterator[ObjectRow]:
        """Yields the schemas that were created, under their names."""
        ...

    def is_temporary(self, id: GlobalId) -> bool:
        """Returns whether one is the session's own."""
        ...

    def indexed(self, row: ObjectRow) -> tuple[GlobalId, Shapes | None]:
        """Returns what an index is on, and of which shapes the places of its key are, if not of that one's own."""
        ...

    def in_place_of(self, id: GlobalId) -> tuple[GlobalId, Shapes | None]:
        """Returns what stands in for a table in the block, and the shapes that this is to have; or the id, and None."""
        ...

    def definition_text(self, row: ObjectRow) -> str:
        """Returns the statement that would create one anew."""
        ...

    @property
    def kept_statements(self) -> Callable[[], Iterable[KeptStatement]]:
        """What yields the session's prepared statements."""
        ...

    @property
    def kept_cursors(self) -> Callable[[], Iterable[KeptCursor]]:
        """What yields the session's cursors."""
        ...


class FactsOnDemand:
    """The system catalogs as they are when a statement first asks of them, which most never do.

    Args:
        read: Reads the whole catalog.
    """

    def __init__(self, read: Callable[[], Facts]) -> None:
        self._read = read

    def anew(self) -> FactsOnDemand:
        """Returns those of another moment, when they are first asked."""
        return FactsOnDemand(self._read)

    @cached_property
    def found(self) -> Facts:
        """What they say."""
        return self._read()

    def lookup(self, name: str) -> CatalogLookup:
        """Returns one of the lookups, by its name."""
        return self.found.lookup(name)


class Facts:
    """The system catalogs at one moment, for one session.

    Args:
        catalog: The catalog.
        database: The project's name.
        names: The objects that the session can name.
        settings: Its settings.
        user: Who asks.
        built_in: The relations that are always there.
        made: Makes a lookup.
        owner: Whose the project is, by name.
        roles: The other roles.
    """

    def __init__(
        self,
        catalog: Catalog,
        database: str,
        names: SessionNames,
        settings: Mapping[str, str],
        user: str,
        built_in: Sequence[BuiltIn],
        made: Callable[[Facts, str], CatalogLookup],
        owner: str,
        roles: Sequence[RoleRow],
    ) -> None:
        self._made = made
        self._roles = (
            Role(OWNER_ID, owner, is_superuser=True),
            *(_role(one) for one in roles),
        )
        self.names = names
        self.built_in = built_in
        self.catalog = catalog
        self.database = database
        self.settings = settings
        self.user: str = user

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The schemas in which a name that does not say its own is looked for."""
        return names_in(self.settings["search_path"])

    @property
    def inspection(self) -> Inspected:
        """The project, to be looked at."""
        return self.names.inspection

    @property
    def owner(self) -> Role:
        """Whose the project is, and everything in it."""
        return self.roles[0]

    @cached_property
    def row_counts(self) -> Mapping[GlobalId, int]:
        """How many updates are stored of each collection that has any."""
        return {id: stats.rows for id, (_, stats) in self._stored.items()}

    @cached_property
    def sizes(self) -> Mapping[GlobalId, int]:
        """How many bytes are stored of each collection that has any."""
        return {id: stats.bytes for id, (_, stats) in self._stored.items()}

    @cached_property
    def _stored(self) -> Mapping[GlobalId, tuple[int, BatchStats]]:
        return self.catalog.live_batch_counts()

    @cached_property
    def last_numbers(self) -> Mapping[tuple[GlobalId, str], int | None]:
        """The last number that each column's sequence has handed out, None if none."""
        return self.catalog.last_numbers()

    @property
    def roles(self) -> tuple[Role, ...]:
        """Who there is; the owner is the first."""
        return self._roles

    def held_roles(self, role: Role) -> frozenset[int]:
        """Returns the object ids of the roles by whose privileges a role acts, but for everybody's."""
        if role.is_superuser:
            return frozenset({role.id})
        return frozenset(role_id(one) for one in self.catalog.held_roles(role.id - FIRST_ID) if one != EVERYBODY)

    def granted(self, one: CatalogEntry) -> Mapping[int, str]:
        """Returns the letters of the privileges on an object, by the object ids of roles; that of all is 0."""
        if one.kind == "i" or not one.row.privileges:
            return {}
        others = {role and role_id(role): letters for role, letters in one.row.privileges.items()}
        return {OWNER_ID: LETTERS, **others}

    @cached_property
    def schemas(self) -> Mapping[str, int]:
        """The object ids of all schemas by their names."""
        made = {names_in(str(one.name))[0]: object_id(one.id) for one in self.names.schemas()}
        return {PUBLIC: PUBLIC_ID, TEMPORARY_SCHEMA: TEMPORARY_ID, **SYSTEM_SCHEMAS, **made}

    @cached_property
    def described(self) -> tuple[CatalogEntry, ...]:
        """What was created and can be named, in the order of creation."""
        return tuple(self._described(*_RELKINDS))

    def _described(self, *kinds: str) -> Iterator[CatalogEntry]:
        for row in self.names.objects():
            if row.kind not in kinds:
                continue
            if self.names.is_temporary(row.id):
                yield CatalogEntry(self, row, str(row.name), TEMPORARY_SCHEMA, TEMPORARY_ID)
            else:
                yield CatalogEntry(self, row, last_of(row.schema, str(row.name)), row.schema, self.schemas[row.schema])

    @cached_property
    def by_global_id(self) -> Mapping[GlobalId, CatalogEntry]:
        """The same by their ids in the catalog."""
        return {one.row.id: one for one in self.described}

    @cached_property
    def standing(self) -> Mapping[str, CatalogEntry]:
        """The tables by what foreign keys tell them by."""
        return {stands_for(one.row): one for one in self.described if one.row.kind == "table"}

    @cached_property
    def relations(self) -> tuple[CatalogEntry, ...]:
        """Those that have columns of their own: all but indexes."""
        return tuple(one for one in self.described if one.row.kind != "index")

    @cached_property
    def indexes(self) -> tuple[CatalogEntry, ...]:
        """Those that CREATE INDEX made."""
        return tuple(one for one in self.described if one.row.kind == "index")

    @cached_property
    def indexed(self) -> frozenset[int]:
        """The object ids of what those are on."""
        return frozenset(one.indexed.id for one in self.indexes)

    @cached_property
    def enumerations(self) -> tuple[CatalogEntry, ...]:
        """The types that CREATE TYPE ... AS ENUM made."""
        return tuple(one for one in self._described("type"))

    @cached_property
    def _enumeration_ids(self) -> Mapping[str, int]:
        return {str(one.row.columns[0].type.enumeration.name): one.id for one in self.enumerations}  # type: ignore[union-attr]

    def type_id(self, type_: ScalarType) -> int:
        """Returns the object id of a type; that of arrays of an enumeration is the next one behind its own."""
        element = type_.array_element or type_
        if element.enumeration is None:
            return type_id(type_)
        return self._enumeration_ids[element.enumeration.name] + (element is not type_)

    @cached_property
    def _visible(self) -> Mapping[str, str]:
        """Of each name that may stand without its schema, that schema."""
        found: dict[str, str] = {}
        schemas = (TEMPORARY_SCHEMA, *self.path)
        searched = [one for one in self.described if one.schema in schemas]
        for one in sorted(searched, key=lambda one: schemas.index(one.schema)):
            for name in (one.name, *(own for _, own in one.own)):
                found.setdefault(name, one.schema)
        return found

    def is_visible(self, schema: str, name: str) -> bool:
        """Returns whether a relation is found by its name alone."""
        return schema == "pg_catalog" or self._visible.get(name) == schema

    @cached_property
    def _lookups(self) -> dict[str, CatalogLookup]:
        return {}

    def lookup(self, name: str) -> CatalogLookup:
        """Returns one of the lookups, by its name."""
        if name not in self._lookups:
            self._lookups[name] = self._made(self, name)
        return self._lookups[name]

    def relation_text(self, schema: str, name: str) -> str:
        """Returns what a `regclass` shows: the name, with its schema if that is needed."""
        return quoted(name) if self.is_visible(schema, name) else f"{quoted(schema)}.{quoted(name)}"
