"""ALTER SOURCE ... ADD COLUMN: a source of files gets columns, under what reads it.

What reads the source is bound to the columns that it had, and reads on (`catalog.shapes`): nothing is read or hydrated
anew. The new columns are read of what is bound from then on; what was bound before has NULL there, be it read already
or not, so what the source consists of at a tick follows from its bindings as before.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.alter_in_place import BoundBefore, readers_of
from mz_dagster.adapter.definition import define
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.defined import named, refuse_in_block
from mz_dagster.catalog import Alteration, ObjectRow, Shape, Shapes, TableAltered, first_shape
from mz_dagster.sql import AlterSource, CreateSource, parse
from mz_dagster.sql.errors import WrongObjectKind
from mz_dagster.sql.source_changes import with_added_columns
from mz_dagster.storage.source import FileSource

#: How often an alteration is made up again, if others change at once what reads the source.
_ATTEMPTS = 5


def alter_source(context: Context, statement: AlterSource, _: Sequence[object]) -> Result:
    """Gives a source of files columns.

    Raises:
        WrongObjectKind: It is of a table.
        DuplicateColumn: It has one of them.
    """
    names = context.names
    row = named(names, statement.name, "source", statement.if_exists)
    if row is not None:
        refuse_in_block(names, "ALTER SOURCE")
        for attempt in range(_ATTEMPTS):
            try:
                _add(names, names.engine.catalog.object(row.id), statement)
                break
            except TableAltered:
                if attempt == _ATTEMPTS - 1:
                    raise
    return Result("ALTER SOURCE")


def _add(names: Names, row: ObjectRow, statement: AlterSource) -> None:
    engine = names.engine
    if not isinstance(engine.definitions.source(row.id), FileSource):
        raise WrongObjectKind(
            f'columns of source "{statement.name}" cannot be added',
            detail="It is of a table, whose columns it has from its first version on.",
            hint="Create another source of the table with them; or change its definition in the project's files.",
            position=statement.name.offset + 1,
        )
    (current,) = parse(row.sql)
    assert isinstance(current, CreateSource)
    text = with_added_columns(row.sql, current, statement)
    if text == row.sql:
        return
    (altered,) = parse(text)
    assert isinstance(altered, CreateSource)
    resolver = BoundBefore(engine.definitions.as_created(row), names)
    definition = define(altered, resolver, default_timeline=str(row.timeline), name=row.created_as)
    columns, keys = definition.relation_type.columns, definition.relation_type.keys
    before = row.shapes or first_shape(row.columns, row.keys)
    shape = Shape(columns, tuple(range(len(columns))), keys, len(columns))
    alteration = Alteration(
        row,
        text,
        columns,
        keys,
        Shapes((*before.stored, *columns[len(before.stored) :]), (*before.versions, shape)),
        {one.name: one.name for one in row.columns},
        frozenset(),
        row.comments,
        frozenset(one.id for one in readers_of(engine, row.id)),
        types=definition.dependencies,
    )
    engine.catalog.add_columns(row.id, alteration)
