"""DROP: objects, all or none, with what is said to go with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mz_dagster.adapter.block_definitions import BlockDefinitions
from mz_dagster.adapter.catalog_definitions import called
from mz_dagster.adapter.declared_references import told
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.defined import named, refuse_in_block
from mz_dagster.adapter.sequence.unique_index import drop_unique_index, is_unique_index
from mz_dagster.adapter.table_references import Link, TableReferences, name_in_schema
from mz_dagster.catalog import ObjectRow, StillNeeded
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.notices import tell
from mz_dagster.sql import Drop
from mz_dagster.sql.errors import InvalidSchemaName, UndefinedObject, UndefinedTable
from mz_dagster.sql.schemas import BUILT_IN


class SchemaRequired(ProgrammingError):
    """A schema that is always there."""

    sqlstate = "2BP01"


class StillReferenced(ProgrammingError):
    """A table that others refer to."""

    sqlstate = "2BP01"

    def __init__(self, links: Sequence[Link]) -> None:
        super().__init__(
            f"cannot drop table {name_in_schema(links[0].parent)} because other objects depend on it",
            detail="\n".join(map(told, links)),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )


def drop(context: Context, statement: Drop, _: Sequence[object]) -> Result:
    """Drops objects, all or none.

    Raises:
        StillNeeded: Others depend on one of them, and CASCADE was not said.
    """
    names = context.names
    number = names.engine.catalog.number_of_references() if statement.kind in ("schema", "table") else None
    if statement.kind in ("schema", "source"):
        refuse_in_block(names, f"DROP {statement.kind.upper()}")
    if statement.kind == "schema":
        return Result(_drop_schemas(names, statement, number))
    unique = [one for one in statement.names if statement.kind == "index" and is_unique_index(names, one)]
    others = [one for one in statement.names if one not in unique]
    try:
        found = [named(names, name, statement.kind, statement.if_exists) for name in others]
    except UndefinedTable as error:
        if statement.kind != "index":
            raise
        raise UndefinedObject(error.message, hint=error.hint, position=error.position) from None
    for name in unique:
        drop_unique_index(context, statement, name)
    if statement.kind == "table":
        _let_go(names, [row for row in found if row is not None], cascade=statement.cascade)
    block = names.block()
    if block is not None:
        _drop_in_block(names, block, [row for row in found if row is not None], statement)
        return Result(f"DROP {statement.kind.upper()}")
    _drop_named(names, {row.id for row in found if row is not None}, statement, number)
    return Result(f"DROP {statement.kind.upper()}")


def _let_go(names: Names, rows: Sequence[ObjectRow], *, cascade: bool) -> None:
    """Returns if no other table refers to one of some that are dropped, or that is to be no more.

    Raises:
        StillReferenced: One does, and CASCADE was not said.
    """
    going = {row.id for row in rows}
    links = [one for one in TableReferences(names) if one.parent.id in going and one.child.id not in going]
    if links and not cascade:
        raise StillReferenced(links)
    _tell_listed([_told(one) for one in links])


def _drop_in_block(names: Names, block: BlockDefinitions, rows: Sequence[ObjectRow], statement: Drop) -> None:
    """Has objects with their indexes be dropped when the block that is open commits."""
    doomed = {row.id for row in rows}
    for row in rows:
        if names.is_temporary(row.id):
            refuse_in_block(names, "DROP of a temporary object", "Drop it before BEGIN.")
        if row.id in block.stand_ins:
            refuse_in_block(
                names,
                f'DROP TABLE of "{row.name}", which the transaction has altered under its views,',
                "ROLLBACK, and drop it with CASCADE.",
                detail="What is computed from it depends on it.",
            )
        left = [one for one in _readers(names, {row.id}) if one.id not in doomed and not block.is_gone(one.id)]
        others = [one for one in left if one.kind not in ("index", "arrangement")]
        if row.kind != "index" and others:
            if not statement.cascade:
                raise StillNeeded(str(row.name), tuple(called(names.as_named(one)) for one in others))
            while more := [one for one in _readers(names, {one.id for one in others}) if one not in others]:
                others += more
            for one in others:
                if names.is_temporary(one.id):
                    refuse_in_block(names, "DROP ... CASCADE of a temporary object", "Drop it before BEGIN.")
                if one.kind not in ("index", "arrangement") and not block.is_gone(one.id):
                    block.drop(one.id)
            left += others
        for one in left:  # indexes go with what they are on
            if (one.kind == "index" and not block.is_gone(one.id)) or one.id in block.named.values():
                block.drop(one.id)  # so that their names are free
        block.drop(row.id)
        _tell_cascade(names, [one for one in left if one.id not in doomed])


def _drop_named(names: Names, found: Collection[GlobalId], statement: Drop, references: int | None) -> None:
    """Drops objects, and tells what goes with them; `references` is `Catalog.number_of_references` before all that."""
    catalog = names.engine.catalog
    before = {one.id: one for one in catalog.objects()} if statement.cascade else {}
    links = [*TableReferences(names)] if statement.cascade else []
    gone = catalog.drop_objects(found, cascade=statement.cascade, references=references)
    ended = [one for one in links if one.parent.id in gone and one.child.id not in gone and one.parent.id not in found]
    _tell_cascade(names, [one for one in before.values() if one.id in gone and one.id not in found], ended)


def _tell_cascade(names: Names, gone: Sequence[ObjectRow], ended: Sequence[Link] = ()) -> None:
    """Tells what a DROP ... CASCADE drops besides; what belongs to something goes without saying."""
    of_others = ("index", "arrangement")
    listed = [f"drop cascades to {one.kind} {called(names.as_named(one))}" for one in gone if one.kind not in of_others]
    _tell_listed([*listed, *map(_told, ended)])


def _told(link: Link) -> str:
    return f"drop cascades to constraint {link.key.name} on table {name_in_schema(link.child)}"


def _tell_listed(listed: Sequence[str]) -> None:
    if len(listed) == 1:
        tell(listed[0])
    elif listed:
        tell(f"drop cascades to {len(listed)} other objects", detail="\n".join(listed))


def _readers(names: Names, read: Collection[GlobalId]) -> list[ObjectRow]:
    """Returns what depends on objects, indexes on them included."""
    return [one for one in names.engine.catalog.objects() if not set(read).isdisjoint(one.dependencies.values())]


def _drop_schemas(names: Names, statement: Drop, references: int | None) -> str:
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
        _drop_named(names, found, statement, references)
    except StillNeeded as error:
        raise StillNeeded(", ".join(one.last for one in statement.names), error.dependants) from None
    return "DROP SCHEMA"
