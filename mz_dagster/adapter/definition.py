"""A definition: what a CREATE statement says, bound and planned, before or after it has an id.

One function, `define`, serves the three places that need it: a session that creates an object, a
project's files, and the catalog, which stores the user's own text and binds it again when it is opened. What was
bound is what runs: an object's names are resolved to ids once, when it is created, and stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from mz_dagster.adapter import introspection
from mz_dagster.adapter.file_ids import file_id
from mz_dagster.catalog import ObjectRow, free_name
from mz_dagster.errors import NotSupportedError
from mz_dagster.formalism import GlobalId
from mz_dagster.garbage import without_collections
from mz_dagster.plan import lower_to_maintained_plan, optimize
from mz_dagster.plan.physical import MaintainedPlan, ReadCollection, TemporalState, collections_read
from mz_dagster.plan.reading_time import unmaintainable, with_position
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.plan.rewriting import with_collections
from mz_dagster.scalars.types import Column, Enumeration, RelationType, enum_of
from mz_dagster.sql import (
    ColumnDefinition,
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateType,
    CreateView,
    Delta,
    Files,
    Iceberg,
    bind_definition,
    parse,
)
from mz_dagster.sql.connection_statements import CreateConnection, CreateSecret
from mz_dagster.sql.constraints import check_definition
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import (
    InvalidTableDefinition,
    QueryOfTwoTimelines,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    UnsupportedForm,
    WrongObjectKind,
    suggestion,
)
from mz_dagster.sql.schemas import PUBLIC, last_of, schema_key
from mz_dagster.sql.statements import CheckOptions, Layout, Name
from mz_dagster.sql.type_names import looked_up
from mz_dagster.storage.iceberg_catalog import CatalogKind, IcebergCatalog
from mz_dagster.storage.object_store import OBJECT_STORES, S3, ObjectStore, Secret, Web
from mz_dagster.storage.sink.delta_columns import check_columns, check_partition
from mz_dagster.storage.sink.sink import SinkEnvelope
from mz_dagster.storage.source import RECORD_COLUMNS, Envelope

Definable = (
    CreateSource
    | CreateTable
    | CreateView
    | CreateMaterializedView
    | CreateIndex
    | CreateType
    | CreateSecret
    | CreateConnection
    | CreateSink
    | CreateCheck
)

#: Where a source's data comes from.
Origin = Files | Delta | Iceberg

#: What a secret or a connection stands for.
Means = Secret | ObjectStore | IcebergCatalog

_Connected = TypeVar("_Connected", bound=ObjectStore | IcebergCatalog)

#: The option of a connection that names another one.
_STORE = "s3 connection"

#: What no text holds.
_UNTEXTUAL = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class IntoDelta:
    """Where a sink writes, and in which form."""

    delta: Delta
    envelope: SinkEnvelope
    layout: Layout


@dataclass(frozen=True, slots=True)
class AboutObject:
    """What a check is about, and what its violations mean."""

    on: Item
    options: CheckOptions


@dataclass(frozen=True, slots=True)
class Definition:
    """One object's definition.

    Attributes:
        kind: `source`, `table`, `view`, `materialized view`, `index`, `type`, `schema`, `sink`, `check`,
            `connection` or `secret`.
        name: What the catalog calls it.
        text: The user's own SQL.
        relation_type: Its columns, keys and monotonicity; of an index, those of what it is on.
        timeline: Of its times; None for a plain view over constants.
        dependencies: The ids it reads, by the names it calls them.
        relation: The bound query of a view, a materialized view or a check, else None.
        plan: What maintains it, for a materialized view, a check and for an index that is a collection of its own; else
            None.
        origin: Where a source's data comes from.
        envelope: A source's envelope, `none` or `upsert`.
        sink: What a sink writes.
        check: What a check is about.
        on: For an index: what it is on; for a sink: what it writes.
        key: A source's key columns, or an index's columns, as positions.
        retain_history_ms: History kept, or None for the project's default.
        shapes: Which of their shapes the tables had that it was bound to, if not the first.
        values: `Item.values` of what it was bound to, where that was not 0.
        schema: The schema that it is in, as far as files say.
        means: What a secret or a connection stands for; of a source or sink, what leads to its table.
        indexes: The indexes of plain views that its plan reads instead of computing these.
    """

    kind: str
    name: str
    text: str
    relation_type: RelationType
    timeline: str | None
    dependencies: Mapping[str, GlobalId]
    relation: Relation | None = None
    plan: MaintainedPlan | None = None
    origin: Origin | None = None
    envelope: Envelope = "none"
    sink: IntoDelta | None = None
    check: AboutObject | None = None
    on: Item | None = None
    key: tuple[int, ...] = ()
    retain_history_ms: int | None = None
    shapes: Mapping[GlobalId, int] = field(default_factory=dict)
    values: Mapping[GlobalId, int] = field(default_factory=dict)
    schema: str = PUBLIC
    means: Means | None = None
    indexes: tuple[GlobalId, ...] = ()

    @property
    def is_temporal(self) -> bool:
        """True if its contents change as time goes on, although no input does."""
        return self.plan is not None and any(isinstance(one.plan, TemporalState) for one in self.plan.arrangements)

    @property
    def remembers(self) -> bool:
        """True for a source that remembers what its keys were told, so that what is told again is left out."""
        return isinstance(self.origin, Files) and self.origin.debezium

    @property
    def reads(self) -> frozenset[GlobalId]:
        """The collections of others that its plan reads."""
        if self.plan is None:
            return frozenset()
        plans = (*(one.plan for one in self.plan.arrangements), self.plan.output)
        own = {one.id for one in self.plan.arrangements}
        return frozenset(id for plan in plans for id in collections_read(plan) if id not in own)

    def item(self, id: GlobalId) -> Item:
        """Returns what the object's name stands for, once it has that id."""
        expansion = self.relation if self.kind == "view" else None
        name = last_of(self.schema, self.name)
        return Item(
            id, name, self.kind, self.relation_type, self.timeline, expansion, schema=self.schema, means=self.means
        )

    def under(self, ids: Mapping[GlobalId, GlobalId]) -> Definition:
        """Returns the same definition over objects that have other ids; `ids` has those by what they were."""
        if not ids:
            return self

        def item(one: Item) -> Item:
            expansion = one.expansion and with_collections(one.expansion, ids)
            return replace(one, id=ids.get(one.id, one.id), expansion=expansion)

        return replace(
            self,
            dependencies={name: ids.get(id, id) for name, id in self.dependencies.items()},
            relation=self.relation and with_collections(self.relation, ids),
            plan=self.plan and self.plan.over(ids),
            check=self.check and replace(self.check, on=item(self.check.on)),
            on=self.on and item(self.on),
            shapes={ids.get(id, id): version for id, version in self.shapes.items()},
            values={ids.get(id, id): number for id, number in self.values.items()},
            indexes=tuple(ids.get(id, id) for id in self.indexes),
        )

    def in_schema(self, schema: str) -> Definition:
        """Returns what defines an object of a schema, on which it depends, as a file does."""
        if schema == PUBLIC:
            return self
        own = {f"schema {schema}": file_id(schema_key(schema))}
        return replace(self, schema=schema, dependencies={**own, **self.dependencies})


def define_stored(row: ObjectRow, text: str, resolver: Resolver, default_timeline: str) -> Definition:
    """Returns what an object is, or would be, by a text of its definition; see `define`.

    Args:
        row: The object.
        text: The one that is stored, or one in its place.
        resolver: What names in it stand for.
        default_timeline: Where it is if it says nothing, and is stored without one.
    """
    (statement,) = parse(text)
    return define(
        statement,  # type: ignore[arg-type]  # only definitions are ever stored
        resolver,
        default_timeline=row.timeline or default_timeline,
        name=row.created_as,
        indexed=bool(row.options.get("copy", False)),
    )


def define(
    statement: Definable,
    resolver: Resolver,
    *,
    default_timeline: str,
    name: str | None = None,
    indexed: bool = False,
) -> Definition:
    """Returns what the statement defines.

    Args:
        statement: A parsed CREATE statement.
        resolver: Answers what the names in it stand for.
        default_timeline: Of a source or table that names none.
        name: The object's name, if it is not the statement's.
        indexed: For an index: whether what it is on has an index already, so that this one is a copy.

    Raises:
        ProgrammingError: It does not bind, with position.
        NotSupportedError: It uses what is not supported, with position and reason.
    """
    called = name or name_of(statement)
    noting = _VersionRecorder(resolver)
    with without_collections():
        definition = _defined(statement, noting, called, default_timeline, indexed)
    _check_names(definition)
    _check_dependencies(definition, statement.offset + 1)
    return replace(definition, shapes=noting.shapes, values=noting.values)


class _VersionRecorder:
    """A resolver that notes which shapes of tables it answers with, if not the first, and how many values of types."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.shapes: dict[GlobalId, int] = {}
        self.values: dict[GlobalId, int] = {}

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        item = self._resolver.resolve(name)
        if item is not None and item.version:
            self.shapes[item.id] = item.version
        if item is not None and item.values:
            self.values[item.id] = item.values
        return item

    def names(self) -> tuple[str, ...]:
        return self._resolver.names()


def _defined(statement: Definable, resolver: Resolver, called: str, default_timeline: str, indexed: bool) -> Definition:
    match statement:
        case CreateSource():
            columns, types = typed_columns(statement.columns, resolver)
            return _source(replace(statement, columns=columns), resolver, called, default_timeline, types)
        case CreateType():
            # What the catalog calls an object is what SQL writes, but for the quotes of one that is in no other schema.
            written = quoted(called) if called == statement.name.last else called
            values = Column("value", enum_of(Enumeration.of(written, statement.labels)))
            return Definition("type", called, statement.text, RelationType((values,)), None, {})
        case CreateSecret():
            means = Secret(called, statement.reference)
            return Definition("secret", called, statement.text, RelationType(()), None, {}, means=means)
        case CreateConnection():
            return _connection(statement, resolver, called)
        case CreateTable():
            assert not statement.references, "they are kept beside what defines a table"
            columns, types = typed_columns(statement.columns, resolver)
            statement = replace(statement, columns=columns)
            check_definition(statement)
            return Definition(
                "table",
                called,
                statement.text,
                _table_type(statement),
                statement.timeline or default_timeline,
                types,
                retain_history_ms=statement.retain_history_ms,
            )
        case CreateView() | CreateMaterializedView():
            return _view(statement, resolver, called, default_timeline)
        case CreateIndex():
            return _index(statement, resolver, called, indexed)
        case CreateSink():
            return _sink(statement, resolver, called)
        case CreateCheck():
            return _check(statement, resolver, called, default_timeline)


def _connection(statement: CreateConnection, resolver: Resolver, called: str) -> Definition:
    named: dict[str, Item] = {}
    options: list[tuple[str, str | Secret]] = []
    store: S3 | None = None
    for option, value in statement.options.items():
        if isinstance(value, str):
            options.append((option, value))
        elif option == _STORE:
            named[str(value)], store = _means(value, resolver, S3)
        else:
            named[str(value)], secret = _secret(value, resolver)
            options.append((option, secret))
    means: ObjectStore | IcebergCatalog
    if statement.kind == "iceberg catalog":
        type_ = cast(CatalogKind, statement.options["catalog type"])
        means = IcebergCatalog(called, type_, tuple(options), store)
    else:
        means = OBJECT_STORES[statement.kind](called, tuple(options))
    return Definition(
        "connection",
        called,
        statement.text,
        RelationType(()),
        None,
        {name: item.id for name, item in named.items()},
        means=means,
    )


def _secret(name: Name, resolver: Resolver) -> tuple[Item, Secret]:
    item = resolver.resolve(name.parts)
    if item is None or not isinstance(item.means, Secret):
        raise UndefinedObject(
            f'secret "{name}" does not exist',
            hint=f"CREATE SECRET {name} AS '${{VARIABLE}}' names a variable of the environment that has it.",
            position=name.offset + 1,
        )
    return item, item.means


def typed_columns(
    columns: Sequence[ColumnDefinition], resolver: Resolver
) -> tuple[tuple[ColumnDefinition, ...], dict[str, GlobalId]]:
    """Returns columns as declared with the enumerations that their types name, and these by their names.

    Raises:
        UndefinedType: A name stands for no type.
    """
    found: dict[str, GlobalId] = {}

    def resolve(parts: tuple[str, ...]) -> Item | None:
        item = resolver.resolve(parts)
        if item is not None and item.kind == "type":
            found[".".join(parts)] = item.id
        return item

    typed = (replace(one, type=looked_up(one.type, resolve, one.type_offset + 1)) for one in columns)
    return tuple(typed), found


def _table_type(statement: CreateTable) -> RelationType:
    """Returns a table's columns, with those keys that tell every row from all others."""
    columns = tuple(Column(one.name, one.type, one.nullable) for one in statement.columns)
    places = {one.name: i for i, one in enumerate(columns)}
    keys = (frozenset(places[name] for name in key.columns) for key in statement.keys)
    return RelationType(columns, frozenset(key for key in keys if not any(columns[i].nullable for i in key)))


def _check_names(definition: Definition) -> None:
    """Refuses names of columns that the catalog could not keep, or a source's records not bear."""
    for name in definition.relation_type.names:
        if _UNTEXTUAL.search(name):
            raise NotSupportedError(
                f'column {name!r} of "{definition.name}" has a character that no text holds',
                detail="U+0000 and halves of surrogate pairs are no text.",
                hint="Give it another name.",
            )
        if definition.kind == "source" and name.lower() in RECORD_COLUMNS:
            raise InvalidTableDefinition(
                f'column name "{name}" is reserved',
                detail="Records of sources have their places under such names.",
                hint="Give it another name.",
            )


def _check_dependencies(definition: Definition, position: int) -> None:
    """Refuses what reads the catalog's own relations, which have a content now and no history."""
    for name, id in sorted(definition.dependencies.items()):
        if introspection.by_id(id) is not None:
            raise NotSupportedError(
                f'"{definition.name}" cannot be defined over "{name}"',
                detail="The catalog's own relations say what is there now, and nothing of any other time.",
                hint="Query them with SELECT.",
                position=position,
            )


def means_of(origin: Origin, resolver: Resolver) -> tuple[dict[str, GlobalId], Means | None]:
    """Returns the connection that a table is reached by, by its name, and what it stands for; nothing without one."""
    if origin.connection is None:
        return {}, None
    if isinstance(origin, Delta | Files):
        uri = origin.uri if isinstance(origin, Delta) else origin.folder
        scheme = uri.partition("://")[0]
        kind = next(one for one in OBJECT_STORES.values() if scheme in one.schemes)
        item, means = _means(origin.connection, resolver, kind)
        if isinstance(means, Web) and not uri.startswith(f"{means.url}/"):
            raise InvalidTableDefinition(
                f'"{uri}" is not below the URL of connection "{origin.connection}"',
                detail=f"That is {means.url}.",
                hint="Name a file below it, or CREATE CONNECTION name TO HTTP (URL = '...').",
            )
        return {str(origin.connection): item.id}, means
    item, catalog = _means(origin.connection, resolver, IcebergCatalog)
    return {str(origin.connection): item.id}, catalog


def _means(name: Name, resolver: Resolver, kind: type[_Connected]) -> tuple[Item, _Connected]:
    """Returns a connection of a kind, and what it stands for."""
    item = resolver.resolve(name.parts)
    if item is None or not isinstance(item.means, kind):
        words = kind.words if issubclass(kind, ObjectStore) else "ICEBERG CATALOG"
        is_another = item is not None and isinstance(item.means, ObjectStore | IcebergCatalog)
        raise UndefinedObject(
            f'connection "{name}" does not lead to {words}' if is_another else f'connection "{name}" does not exist',
            hint=f"CREATE CONNECTION {'name' if is_another else name} TO {words} (...).",
            position=name.offset + 1,
        )
    return item, item.means


def _source(
    statement: CreateSource, resolver: Resolver, name: str, default_timeline: str, types: Mapping[str, GlobalId]
) -> Definition:
    if not statement.columns:
        raise InvalidTableDefinition(f'source "{name}" does not state its columns', position=statement.name.offset + 1)
    columns = tuple(Column(one.name, one.type, one.nullable) for one in statement.columns)
    names = [column.name for column in columns]
    key = tuple(names.index(part) for part in statement.key or ())
    upsert = statement.envelope == "upsert"
    keys = frozenset({frozenset(key)}) if upsert else frozenset()
    store, means = means_of(statement.origin, resolver)
    return Definition(
        "source",
        name,
        statement.text,
        RelationType(columns, keys, monotonic=not upsert and isinstance(statement.origin, Files)),
        statement.timeline or default_timeline,
        {**types, **store},
        means=means,
        origin=statement.origin,
        envelope="upsert" if upsert else "none",
        key=key,
        retain_history_ms=statement.retain_history_ms,
    )


def _view(
    statement: CreateView | CreateMaterializedView, resolver: Resolver, name: str, default_timeline: str
) -> Definition:
    bound = bind_definition(statement.query, statement.columns, resolver)
    if isinstance(statement, CreateView):
        return Definition(
            "view", name, statement.text, bound.relation_type, bound.timeline, bound.names, bound.relation
        )
    plan = maintained(bound.relation, bound.relation_type.names)
    return Definition(
        "materialized view",
        name,
        statement.text,
        plan.relation_type,
        bound.timeline or default_timeline,
        bound.names,
        bound.relation,
        plan,
        retain_history_ms=statement.retain_history_ms,
    )


def _check(statement: CreateCheck, resolver: Resolver, name: str, default_timeline: str) -> Definition:
    bound = bind_definition(statement.query, (), resolver)
    on = _checked_object(statement, resolver, tuple(bound.names))
    names = {str(statement.on): on.id, **bound.names} if statement.on is not None else bound.names
    timeline = bound.timeline or on.timeline
    if on.timeline not in (None, timeline):
        raise QueryOfTwoTimelines(
            f'check "{name}" is on timeline "{timeline}", and "{on.called}" on "{on.timeline}"',
            detail="Their times never compare.",
            hint="Let its query read what is on the timeline of the object that it is about.",
            position=statement.query.offset + 1,
        )
    plan = maintained(bound.relation, bound.relation_type.names)
    return Definition(
        "check",
        name,
        statement.text,
        plan.relation_type,
        timeline or default_timeline,
        names,
        bound.relation,
        plan,
        check=AboutObject(on, statement.options),
    )


def _checked_object(statement: CreateCheck, resolver: Resolver, read: Sequence[str]) -> Item:
    """Returns what a check is about: what it says, or the one object that its query reads."""
    position = (statement.on or statement.name).offset + 1
    if statement.on is not None:
        on = resolver.resolve(statement.on.parts)
        if on is None:
            raise UndefinedTable.named(str(statement.on), resolver.names(), position)
        found = [on]
    else:
        objects = {one.id: one for name in read if (one := resolver.resolve(tuple(name.split(".")))) is not None}
        found = [one for one in objects.values() if one.kind != "type"]
    if len(found) != 1:
        raise InvalidTableDefinition(
            f'check "{statement.name.last}" does not say what it is about',
            detail=f"Its query reads {', '.join(one.name for one in found) or 'nothing'}.",
            hint="Write ON and the object behind its name; for a query in a file: -- @check on orders",
            position=position,
        )
    (on,) = found
    if on.kind not in ("source", "table", "view", "materialized view"):
        raise WrongObjectKind(
            f'a check cannot be about "{on.called}"',
            detail=f"It is a {on.kind}.",
            hint="Check a source, a table, a view or a materialized view.",
            position=position,
        )
    return on


def _index(statement: CreateIndex, resolver: Resolver, name: str, indexed: bool) -> Definition:
    on = resolver.resolve(statement.on.parts)
    if on is None:
        raise UndefinedTable.named(str(statement.on), resolver.names(), statement.on.offset + 1)
    if on.kind in ("index", "introspection") or on.timeline is None:
        article = "an" if on.kind == "index" else "a"
        what = "relation of the system catalogs" if on.kind == "introspection" else on.kind
        raise WrongObjectKind(
            f'"{on.called}" cannot be indexed',
            detail=f"It is {article} {what}{' over constants' if on.timeline is None and on.kind == 'view' else ''}.",
            hint="Index a source, a table, a view or a materialized view.",
            position=statement.on.offset + 1,
        )
    key = _index_key(statement, on)
    indexes = _with_distinct_names(on)
    plan: MaintainedPlan | None = None
    if on.expansion is not None:
        relation = with_position(on.expansion, statement.on.offset + 1)
        plan = maintained(relation, on.relation_type.names)
    elif indexed:
        plan = MaintainedPlan((), ReadCollection(on.id, indexes, on.called), indexes)
    return Definition(
        "index",
        name,
        statement.text,
        indexes,
        on.timeline,
        {str(statement.on): on.id},
        plan=plan,
        on=on,
        key=key,
    )


def _with_distinct_names(on: Item) -> RelationType:
    """Returns the columns of a collection; one that was dropped keeps its name if none is called so by now."""
    if on.stored is None:
        return on.collection_type
    columns, shown = list(on.stored.columns), {*on.places}
    for place in range(len(columns)):
        if place not in shown:
            name, others = columns[place].name, [*columns[:place], *columns[place + 1 :]]
            if any(one.name == name for one in others):
                columns[place] = replace(columns[place], name=free_name(name, others))
    return replace(on.stored, columns=tuple(columns))


def _sink(statement: CreateSink, resolver: Resolver, name: str) -> Definition:
    on = resolver.resolve(statement.on.parts)
    if on is None:
        raise UndefinedTable.named(str(statement.on), resolver.names(), statement.on.offset + 1)
    if on.kind not in ("source", "materialized view"):
        raise WrongObjectKind(
            f'a sink cannot write "{on.called}"',
            detail=f"It is a {on.kind}.",
            hint=f"Write a materialized view: CREATE MATERIALIZED VIEW name AS SELECT * FROM {statement.on}.",
            position=statement.on.offset + 1,
        )
    check_columns(on.relation_type.columns, keeps_times=statement.envelope == "append changes")
    names = on.relation_type.names
    for column in (*statement.key, *statement.layout.partition):
        if column not in names:
            raise UndefinedColumn(f'column "{column}" of "{on.called}" does not exist', hint=suggestion(column, names))
    key = tuple(names.index(column) for column in statement.key)
    store, means = means_of(statement.delta, resolver)
    if key and not any(one <= set(key) for one in on.relation_type.keys):
        raise InvalidTableDefinition(
            f'"{on.called}" is not known to have the key ({", ".join(statement.key)})',
            detail="Several rows may have the same values there.",
            hint="Group by these columns, or leave KEY away: rows are then told apart by all of their columns.",
            position=statement.on.offset + 1,
        )
    if statement.envelope == "debezium" and not key:
        raise InvalidTableDefinition(
            "ENVELOPE DEBEZIUM requires a KEY",
            detail="The key says which row that goes and which that comes are one that changes.",
            hint="Write KEY (column, ...) before ENVELOPE.",
            position=statement.on.offset + 1,
        )
    if statement.layout.partition:
        check_partition(
            statement.layout.partition, on.relation_type.columns, are_nested=statement.envelope == "debezium"
        )
    return Definition(
        "sink",
        name,
        statement.text,
        on.relation_type,
        on.timeline,
        {str(statement.on): on.id, **store},
        means=means,
        sink=IntoDelta(statement.delta, statement.envelope, statement.layout),
        on=on,
        key=key,
    )


def maintained(relation: Relation, names: tuple[str, ...]) -> MaintainedPlan:
    """Returns the plan by which a query is maintained, with output columns called `names`.

    Raises:
        NotSupportedError: It needs the reader's time for more than to bound when rows are valid.
    """
    optimized = optimize(relation)
    refused = unmaintainable(optimized)
    if refused is not None:
        raise UnsupportedForm(
            refused.message,
            detail="What is maintained has a content at every time, so its reader's time is not known beforehand.",
            hint=refused.hint,
            position=refused.position,
        )
    return lower_to_maintained_plan(optimized, names)


def _index_key(statement: CreateIndex, on: Item) -> tuple[int, ...]:
    """Returns the columns asked for; by default those of the smallest unique key, else all."""
    names = on.relation_type.names
    for column in statement.columns:
        if column not in names:
            raise UndefinedColumn(f'column "{column}" of "{on.called}" does not exist', hint=suggestion(column, names))
    if statement.columns:
        return tuple(on.place(names.index(column)) for column in statement.columns)
    keys = sorted((len(key), sorted(key)) for key in on.relation_type.keys if key)
    return tuple(map(on.place, keys[0][1] if keys else range(on.relation_type.arity)))


def name_of(statement: Definable) -> str:
    """Returns the name that a definition gives its object; an index without one is named after its columns."""
    if isinstance(statement, CreateIndex):
        if statement.name is not None:
            return statement.name.last
        return "_".join((statement.on.last, *statement.columns, "idx"))
    return statement.name.last
