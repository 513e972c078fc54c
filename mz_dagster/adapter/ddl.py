"""CREATE, DROP and ALTER in a session."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from mz_dagster.adapter.alter_means import alter_means
from mz_dagster.adapter.alter_type import alter_values
from mz_dagster.adapter.block_definitions import ActiveTransaction, BlockDefinitions
from mz_dagster.adapter.catalog_definitions import called
from mz_dagster.adapter.definition import Definable, define, name_of
from mz_dagster.adapter.definition_cache import RecordingResolver
from mz_dagster.adapter.engine import Engine, ObjectRecreated, TimeNotReached
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.origins import declared_columns
from mz_dagster.adapter.plan_limit import ensure_within_limit
from mz_dagster.adapter.query_indexes import QueryIndexes
from mz_dagster.adapter.rewriting_sinks import rewrite_sink
from mz_dagster.catalog import COMMENTS, SCHEMA, NameTaken, NewObject, ObjectRow, StillNeeded, UnknownObject
from mz_dagster.compute import Progress, quiet
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.notices import tell
from mz_dagster.scalars.types import Column
from mz_dagster.sql import (
    AlterRename,
    AlterReset,
    AlterRetainHistory,
    AlterType,
    Comment,
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateType,
    CreateView,
    Drop,
    Name,
    parse,
)
from mz_dagster.sql.connection_statements import AlterMeans, CreateConnection, CreateSecret
from mz_dagster.sql.errors import (
    DuplicateObject,
    DuplicateSchema,
    InvalidSchemaName,
    InvalidTableDefinition,
    ReservedName,
    UndefinedColumn,
    UndefinedTable,
    UndefinedType,
    UnsupportedForm,
    WrongObjectKind,
    suggestion,
)
from mz_dagster.sql.schemas import BUILT_IN, schema_key
from mz_dagster.sql.source_statement import with_declared_columns
from mz_dagster.storage.source.table_source import TableSource

_TAGS = {
    CreateCheck: "CREATE CHECK",
    CreateSink: "CREATE SINK",
    CreateSource: "CREATE SOURCE",
    CreateTable: "CREATE TABLE",
    CreateView: "CREATE VIEW",
    CreateMaterializedView: "CREATE MATERIALIZED VIEW",
    CreateIndex: "CREATE INDEX",
    CreateType: "CREATE TYPE",
    CreateSecret: "CREATE SECRET",
    CreateConnection: "CREATE CONNECTION",
}


#: The kinds of objects that PostgreSQL's ALTER TABLE renames.
_RELATIONS = ("table", "view", "materialized view", "index")


class SchemaRequired(ProgrammingError):
    """A schema that is always there."""

    sqlstate = "2BP01"


def create(names: Names, statement: Definable, progress: Progress = quiet) -> str:
    """Creates an object and, if it is maintained, hydrates it; returns the command tag.

    A view that is created WITH NO DATA is hydrated by the next step, or by who reads it first. What is defined over
    temporary objects is temporary, too.

    An object whose hydration fails exists all the same, and the next step tries again. One whose hydration takes longer
    than `hydration.deadline`, or is interrupted, is dropped again.

    Args:
        names: What names denote in the session.
        statement: What to create.
        progress: Receives lines that read as the story of its hydration.

    Raises:
        NameTaken: The name denotes something already, and IF NOT EXISTS was not said.
        NotReached: It was not hydrated by the deadline, and nothing is left of it.
        PlanTooLarge: Spark would have too much to plan for it.
        UnsupportedForm: It is a materialized view for all over what is one session's own.
    """
    engine = names.engine
    tag = _TAGS[type(statement)]
    name = name_of(statement)
    temporary = isinstance(statement, CreateTable | CreateView | CreateMaterializedView) and statement.temporary
    qualified = _qualified(names, statement, name)
    block = names.block()
    if temporary:
        _refuse_in_block(names, f"{tag} of a temporary object", "Create it before BEGIN.")
    try:
        names.check_free(qualified, temporary=temporary)
    except NameTaken:
        if isinstance(statement, CreateView) and statement.replaces:
            return _replace_view(names, statement)
        if statement.if_not_exists:
            is_type = isinstance(statement, CreateType)
            what = "type" if is_type else "relation"
            tell(f'{what} "{name}" already exists, skipping', "42710" if is_type else "42P07")
            return tag
        if isinstance(statement, CreateType):
            raise DuplicateObject(f'type "{name}" already exists', position=qualified.offset + 1) from None
        raise
    if isinstance(statement, CreateSource) and not statement.columns:
        (stated,) = parse(with_declared_columns(statement.text, declared_columns(statement, names, engine.project)))
        assert isinstance(stated, CreateSource)
        statement = stated
    target = names.target(qualified)
    key = name if temporary else target.key
    indexed = isinstance(statement, CreateIndex) and _has_index(names, statement)
    recording = RecordingResolver(names)
    definition = define(statement, recording, default_timeline=engine.project.timeline, name=key, indexed=indexed)
    if any(map(names.is_temporary, definition.dependencies.values())) and not temporary:
        if isinstance(statement, CreateMaterializedView):
            raise UnsupportedForm(
                "materialized views must not use temporary tables or views",
                hint="Create it as a TEMPORARY one.",
                position=statement.offset + 1,
            )
        temporary = True
        names.check_free(Name((name,), qualified.offset), temporary=True)
    planned = QueryIndexes(engine).over(definition, statement, names)
    ensure_within_limit(planned, engine.project)
    if definition.timeline is not None:
        engine.catalog.declare_timeline(definition.timeline)
    new = engine.definitions.new_objects(planned)
    new = new if temporary else target.of(new)
    hidden = temporary or block is not None
    created = engine.catalog.create_objects(names.kept(new) if hidden else new)[-1]
    engine.definitions.adopt(created, definition, recording)
    if temporary:
        names.adopt(name, created.id)
    elif block is not None:
        block.create(target.key, created.id)
    waits = not isinstance(statement, CreateMaterializedView) or statement.with_data
    is_filled = definition.plan is not None or definition.sink is not None
    if is_filled and created.timeline is not None and waits:
        _hydrate(engine, created, progress)
    return tag


def _refuse_in_block(names: Names, what: str, hint: str = "Execute it before BEGIN, or commit first.") -> None:
    """Raises ActiveTransaction if a transaction block is open."""
    if names.block() is not None:
        raise ActiveTransaction(
            f"{what} cannot run inside a transaction block",
            detail="Others would see what it defines before the transaction commits.",
            hint=hint,
        )


def _replace_view(names: Names, statement: CreateView) -> str:
    """Puts another view in the place of one that nothing reads; returns the command tag.

    Raises:
        WrongObjectKind: What bears the name is no view.
        InvalidTableDefinition: The view would not begin with the columns that it has.
        UnsupportedForm: Something reads the view.
    """
    engine, position = names.engine, statement.name.offset + 1
    _refuse_in_block(names, "CREATE OR REPLACE VIEW of a view that there is")
    old = names.object(statement.name, "view")
    temporary = names.is_temporary(old.id)
    definition = define(statement, names, default_timeline=engine.project.timeline, name=str(old.name))
    if any(map(names.is_temporary, definition.dependencies.values())) and not temporary:
        raise UnsupportedForm(
            "a view for all must not use temporary tables or views", hint="Create a TEMPORARY one.", position=position
        )
    _check_begins_alike(old.relation_type.columns, definition.relation_type.columns, position)
    readers = sorted(called(row) for row in engine.catalog.objects() if old.id in row.dependencies.values())
    if readers:
        raise UnsupportedForm(
            f'view "{statement.name}" cannot be replaced, because others read it',
            detail=f"What reads it is bound to what it was: {', '.join(readers)}.",
            hint="Drop those first; or change the project's files and apply them, which replaces all that reads it.",
            position=position,
        )
    new = engine.definitions.new_objects(definition)
    if temporary:
        names.adopt(str(old.name), engine.catalog.create_objects(names.kept(new))[-1].id)
        engine.catalog.drop_object(old.id)
        return "CREATE VIEW"
    (own,) = new
    options = {**own.options, **{key: old.options[key] for key in (COMMENTS, SCHEMA) if key in old.options}}
    kept = {name: id for name, id in old.dependencies.items() if name.startswith("schema ")}
    engine.catalog.swap(
        [replace(own, name=old.name, options=options, dependencies={**kept, **own.dependencies})], [old.id]
    )
    return "CREATE VIEW"


def _check_begins_alike(old: Sequence[Column], new: Sequence[Column], position: int) -> None:
    """Raises InvalidTableDefinition unless the new columns begin with the old ones."""
    if len(new) < len(old):
        raise InvalidTableDefinition("cannot drop columns from view", position=position)
    for one, other in zip(old, new, strict=False):
        if one.name != other.name:
            raise InvalidTableDefinition(
                f'cannot change name of view column "{one.name}" to "{other.name}"',
                hint="Drop the view, and create it.",
                position=position,
            )
        if one.type != other.type:
            raise InvalidTableDefinition(
                f'cannot change data type of view column "{one.name}" from {one.type} to {other.type}',
                position=position,
            )


def _qualified(names: Names, statement: Definable, name: str) -> Name:
    """Returns the name under which an object is created; an index is in the schema of what it is on."""
    if not isinstance(statement, CreateIndex):
        return statement.name
    own = statement.name or Name((name,), statement.on.offset)
    on = names.find(statement.on)
    if on is None or len(own.parts) > 1 or names.is_temporary(on.id):
        return own
    return Name((on.schema, name), own.offset)


def create_schema(names: Names, statement: CreateSchema) -> str:
    """Creates a schema; returns the command tag.

    Raises:
        DuplicateSchema: There is one of the name already.
        ReservedName: The name is not a user's.
    """
    name = statement.name.last
    if name.startswith("pg_"):
        raise ReservedName(
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
            position=statement.name.offset + 1,
        )
    new, block = NewObject(schema_key(name), "schema", statement.text, None, (), has_collection=False), names.block()
    try:
        if name in BUILT_IN or names.is_schema(name):
            raise NameTaken(name)
        if block is None:
            names.engine.catalog.create_object(new)
        else:
            (made,) = names.engine.catalog.create_objects(names.kept([new]))
            block.create(schema_key(name), made.id)
    except NameTaken:
        if not statement.if_not_exists:
            raise DuplicateSchema(f'schema "{name}" already exists', position=statement.name.offset + 1) from None
        tell(f'schema "{name}" already exists, skipping', "42P06")
    return "CREATE SCHEMA"


def _hydrate(engine: Engine, created: ObjectRow, progress: Progress) -> None:
    """Makes what was created readable, or drops it; it may be made anew meanwhile, with what it reads."""
    timeline, id = str(created.timeline), created.id
    deadline_s = engine.project.hydration_deadline_ms / 1000

    def reach() -> None:
        time = engine.catalog.read_ts(timeline)
        engine.reach(timeline, time, frozenset({id}), deadline_s=deadline_s, progress=progress)

    try:
        try:
            reach()
        except ObjectRecreated:
            id = engine.collection_of(str(created.name))
            reach()
    except (KeyboardInterrupt, TimeNotReached) as given_up:
        with suppress(StillNeeded, UnknownObject):  # somebody has built on it, or dropped it
            engine.catalog.drop_object(id)
        if isinstance(given_up, TimeNotReached):
            raise TimeNotReached(
                f'"{created.name}" was not hydrated by its deadline, and is not created',
                detail=f"{given_up.message[:1].upper()}{given_up.message[1:]}.",
                hint='Give it longer with "hydration.deadline" in mz.toml; or define it in a file of the project, '
                "whose runs have no deadline.",
            ) from given_up
        raise


def _has_index(names: Names, statement: CreateIndex) -> bool:
    """True if an index is the own order of what is to be indexed, so that a further one is a copy."""
    on = names.resolve(statement.on.parts)
    return on is not None and any(
        row.kind == "index" and not row.has_collection and on.id in row.dependencies.values()
        for row in names.engine.catalog.objects("index")
    )


def drop(names: Names, statement: Drop) -> str:
    """Drops objects, all or none; returns the command tag.

    Raises:
        StillNeeded: Others depend on one of them, and CASCADE was not said.
    """
    if statement.kind in ("schema", "type", "source"):
        _refuse_in_block(names, f"DROP {statement.kind.upper()}")
    if statement.kind == "schema":
        return _drop_schemas(names, statement)
    found = [_named(names, name, statement.kind, statement.if_exists) for name in statement.names]
    block = names.block()
    if block is not None:
        _drop_in_block(names, block, [row for row in found if row is not None], statement)
        return f"DROP {statement.kind.upper()}"
    _drop_named(names, {row.id for row in found if row is not None}, statement)
    return f"DROP {statement.kind.upper()}"


def _drop_in_block(names: Names, block: BlockDefinitions, rows: Sequence[ObjectRow], statement: Drop) -> None:
    """Has objects with their indexes be dropped when the block that is open commits."""
    doomed = {row.id for row in rows}
    for row in rows:
        if names.is_temporary(row.id):
            _refuse_in_block(names, "DROP of a temporary object", "Drop it before BEGIN.")
        left = [one for one in _readers(names, {row.id}) if one.id not in doomed and not block.is_gone(one.id)]
        others = [one for one in left if one.kind not in ("index", "arrangement")]
        if row.kind != "index" and others:
            if not statement.cascade:
                raise StillNeeded(str(row.name), tuple(called(names.as_named(one)) for one in others))
            while more := [one for one in _readers(names, {one.id for one in others}) if one not in others]:
                others += more
            for one in others:
                if names.is_temporary(one.id):
                    _refuse_in_block(names, "DROP ... CASCADE of a temporary object", "Drop it before BEGIN.")
                if one.kind not in ("index", "arrangement") and not block.is_gone(one.id):
                    block.drop(one.id)
            left += others
        for one in left:  # indexes go with what they are on
            if one.id in block.named.values():
                block.drop(one.id)
        block.drop(row.id)
        _tell_cascade(names, [one for one in left if one.id not in doomed])


def _drop_named(names: Names, found: Collection[GlobalId], statement: Drop) -> None:
    """Drops objects, and tells what goes with them."""
    catalog = names.engine.catalog
    before = {one.id: one for one in catalog.objects()} if statement.cascade else {}
    gone = catalog.drop_objects(found, cascade=statement.cascade)
    _tell_cascade(names, [one for one in before.values() if one.id in gone and one.id not in found])


def _tell_cascade(names: Names, gone: Sequence[ObjectRow]) -> None:
    """Tells what a DROP ... CASCADE drops besides; what belongs to something goes without saying."""
    of_others = ("index", "arrangement")
    listed = [f"drop cascades to {one.kind} {called(names.as_named(one))}" for one in gone if one.kind not in of_others]
    if len(listed) == 1:
        tell(listed[0])
    elif listed:
        tell(f"drop cascades to {len(listed)} other objects", detail="\n".join(listed))


def _readers(names: Names, read: Collection[GlobalId]) -> list[ObjectRow]:
    """Returns what depends on objects, indexes on them included."""
    return [one for one in names.engine.catalog.objects() if not set(read).isdisjoint(one.dependencies.values())]


def _drop_schemas(names: Names, statement: Drop) -> str:
    found = set()
    for name in statement.names:
        if name.last in BUILT_IN:
            raise SchemaRequired(
                f"cannot drop schema {name.last} because it is required by the database system",
                position=name.offset + 1,
            )
        try:
            found.add(names.schema(name).id)
        except InvalidSchemaName:
            if not statement.if_exists:
                raise
            tell(f'schema "{name.last}" does not exist, skipping')
    try:
        _drop_named(names, found, statement)
    except StillNeeded as error:
        raise StillNeeded(", ".join(one.last for one in statement.names), error.dependants) from None
    return "DROP SCHEMA"


def alter(names: Names, statement: AlterRename | AlterReset | AlterType | AlterMeans | AlterRetainHistory) -> str:
    """Alters what is no table, or a table's name or history; returns the command tag."""
    match statement:
        case AlterRename():
            return _rename(names, statement)
        case AlterReset():
            return _reset(names, statement)
        case AlterType():
            return _alter_type(names, statement)
        case AlterMeans():
            return alter_means(names, statement)
        case AlterRetainHistory():
            return _alter_retain_history(names, statement)


def _rename(names: Names, statement: AlterRename) -> str:
    """Gives an object another name; returns the command tag.

    Raises:
        NameTaken: The new name denotes something already.
    """
    found = names.find(statement.name)
    kind = (
        found.kind if statement.kind == "table" and found is not None and found.kind in _RELATIONS else statement.kind
    )
    row = _named(names, statement.name, kind, statement.if_exists)
    if row is not None:
        if names.is_temporary(row.id):
            _refuse_in_block(names, "ALTER ... RENAME of a temporary object", "Rename it before BEGIN.")
        if row.kind in ("schema", "type", "source"):
            _refuse_in_block(names, f"ALTER {row.kind.upper()}")
        names.rename(row, statement.new_name)
    return f"ALTER {statement.kind.upper()}"


def _reset(names: Names, statement: AlterReset) -> str:
    """Has a source go on from the newest version of what it reads, or a sink write anew all that it reads.

    Raises:
        WrongObjectKind: It is no source of a table.
    """
    row = _named(names, statement.name, statement.kind, statement.if_exists)
    if row is not None and statement.kind == "sink":
        rewrite_sink(names.engine, row.id)
    elif row is not None:
        source = names.engine.definitions.source(row.id)
        if not isinstance(source, TableSource):
            raise WrongObjectKind(
                f'source "{statement.name}" cannot be reset',
                detail="It has read files one by one, and each is still what it was or it is not.",
                hint="Put files back that are gone or changed, or drop the source and create it anew.",
                position=statement.name.offset + 1,
            )
        names.engine.reset(row.id, source)
    return f"ALTER {statement.kind.upper()}"


def _alter_type(names: Names, statement: AlterType) -> str:
    """Gives a type another value, or a value another label; returns the command tag.

    Raises:
        UndefinedType: There is no such type.
    """
    row = _named(names, statement.name, "type", if_exists=False)
    assert row is not None
    for old, new in alter_values(names.engine, row, statement).items():
        names.follow(old, new)
    return "ALTER TYPE"


def _alter_retain_history(names: Names, statement: AlterRetainHistory) -> str:
    """Sets or resets how much history an object keeps; returns the command tag."""
    row = _named(names, statement.name, statement.kind, statement.if_exists)
    if row is not None:
        if not row.has_collection:
            raise ProgrammingError(
                f'"{statement.name}" keeps no history of its own',
                hint="Alter what it reads.",
            )
        names.engine.catalog.set_retention(row.id, statement.retain_history_ms)
    return f"ALTER {statement.kind.upper()}"


def comment(names: Names, statement: Comment) -> str:
    """Says something of an object or a column; returns the command tag.

    Raises:
        UndefinedColumn: There is no such column.
    """
    row = names.object(statement.name, None if statement.column is not None else statement.kind)
    block = names.block()
    if block is not None and not block.has_made(row.id):
        _refuse_in_block(names, "COMMENT on what was there before")
    if statement.column is not None and (statement.column not in row.relation_type.names or row.kind == "index"):
        raise UndefinedColumn(
            f'column "{statement.column}" of relation "{row.name}" does not exist',
            hint=suggestion(statement.column, row.relation_type.names),
            position=statement.name.offset + 1,
        )
    names.engine.catalog.set_comment(row.id, statement.column or "", statement.comment or None)
    return "COMMENT"


def _named(names: Names, name: Name, kind: str, if_exists: bool) -> ObjectRow | None:
    try:
        return names.object(name, kind)
    except UndefinedTable:
        if if_exists:
            tell(f'{kind} "{name.last}" does not exist, skipping')
            return None
        if kind == "type":
            raise UndefinedType(f'type "{name}" does not exist', position=name.offset + 1) from None
        raise
