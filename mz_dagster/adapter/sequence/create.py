"""CREATE of an object: bound, held against limits, kept in the catalog, and hydrated if it is maintained."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from mz_dagster.adapter.alter_in_place import readers_of
from mz_dagster.adapter.block_definitions import BlockDefinitions
from mz_dagster.adapter.catalog_definitions import called
from mz_dagster.adapter.declared_references import DeclaringTable
from mz_dagster.adapter.definition import Definable, Definition, define, name_of
from mz_dagster.adapter.definition_cache import RecordingResolver
from mz_dagster.adapter.engine import Engine, ObjectRecreated, TimeNotReached
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.plan_limit import ensure_within_limit
from mz_dagster.adapter.query_indexes import QueryIndexes
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.defined import refuse_in_block
from mz_dagster.adapter.stated_columns import stated
from mz_dagster.catalog import COMMENTS, REFERENCES, SCHEMA, NameTaken, ObjectRow, StillNeeded, UnknownObject
from mz_dagster.compute import Progress
from mz_dagster.functions import UTC
from mz_dagster.notices import tell
from mz_dagster.scalars.types import Column
from mz_dagster.sql import (
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateType,
    CreateView,
    Name,
)
from mz_dagster.sql.connection_statements import CreateConnection, CreateSecret
from mz_dagster.sql.declared_keys import ForeignKey
from mz_dagster.sql.definition_zone import check_definition_in
from mz_dagster.sql.errors import DuplicateObject, InvalidTableDefinition, UnsupportedForm
from mz_dagster.sql.schemas import PUBLIC
from mz_dagster.sql.table_text import without_foreign_keys

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


def create(context: Context, statement: Definable, _: Sequence[object]) -> Result:
    """Creates an object, and hydrates it if it is maintained."""
    if context.variables.zone != UTC and isinstance(
        statement, CreateCheck | CreateTable | CreateView | CreateMaterializedView
    ):
        check_definition_in(context.variables.zone, statement, context.names)
    return Result(_created(context.names, statement, context.progress))


def _created(names: Names, statement: Definable, progress: Progress) -> str:
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
        statement, _ = stated(statement, names, engine.project)
    target = names.target(qualified)
    key = name if temporary else target.key
    indexed = isinstance(statement, CreateIndex) and _has_index(names, statement)
    references: tuple[ForeignKey, ...] = ()
    if isinstance(statement, CreateTable):
        references, statement = statement.references, without_foreign_keys(statement)
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
    if block is not None and block.stand_ins:
        _check_over_no_altered(names, block, definition)
    planned = QueryIndexes(engine).over(definition, statement, names)
    ensure_within_limit(planned, engine.project)
    if definition.timeline is not None:
        engine.catalog.declare_timeline(definition.timeline)
    new = engine.definitions.new_objects(planned)
    if references:
        assert isinstance(statement, CreateTable), "tables have them"
        declaring = DeclaringTable(
            name, target.schema, definition.relation_type, statement.keys, definition.timeline, temporary
        )
        kept = [one.as_json() for one in declaring.bound(names, references)]
        new = [replace(one, options={**one.options, REFERENCES: kept}) for one in new]
    new = new if temporary else target.of(new)
    hidden = temporary or block is not None
    made = engine.catalog.create_objects(names.kept(new) if hidden else new)[-1]
    engine.definitions.adopt(made, definition, recording)
    if temporary:
        names.adopt(name, made.id)
    elif block is not None:
        block.create(target.key, made.id)
    waits = not isinstance(statement, CreateMaterializedView) or statement.with_data
    is_filled = definition.plan is not None or definition.sink is not None
    if is_filled and made.timeline is not None and waits:
        _hydrate(engine, made, progress)
    return tag


def _check_over_no_altered(names: Names, block: BlockDefinitions, definition: Definition) -> None:
    """Returns if what is about to be created is computed from no table that the block has altered under its views.

    An index of such a table is created over it when the block commits.
    """
    altered = [*block.stand_ins, *(one.table.id for one in block.stand_ins.values())]
    if definition.on is not None and definition.on.id in block.stand_ins:
        return
    readers = {row.id for id in altered for row in readers_of(names.engine, id)}
    if not readers.union(altered).isdisjoint(definition.dependencies.values()):
        refuse_in_block(
            names,
            f"CREATE {definition.kind.upper()} over a table that the transaction has altered under its views",
            "Execute it behind COMMIT, or the ALTER TABLE before BEGIN.",
            detail="The table gets its new shape with the commit.",
        )


def _replace_view(names: Names, statement: CreateView) -> str:
    """Puts another view in the place of one that nothing reads; returns the command tag.

    Raises:
        WrongObjectKind: What bears the name is no view.
        InvalidTableDefinition: The view would not begin with the columns that it has.
        UnsupportedForm: Something reads the view.
    """
    engine, position = names.engine, statement.name.offset + 1
    refuse_in_block(names, "CREATE OR REPLACE VIEW of a view that there is")
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
    if len(own.parts) > 1 or (on is not None and names.is_temporary(on.id)):
        return own
    if on is None:  # of which its definition tells
        return Name((PUBLIC, name), own.offset)
    return Name((on.schema, name), own.offset)


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
    except BaseException as given_up:
        if isinstance(given_up, Exception) and not isinstance(given_up, TimeNotReached):
            raise
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
