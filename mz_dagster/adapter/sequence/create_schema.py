"""CREATE SCHEMA."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.catalog import NameTaken, NewObject
from mz_dagster.notices import tell
from mz_dagster.sql import CreateSchema
from mz_dagster.sql.errors import DuplicateSchema, ReservedName
from mz_dagster.sql.schemas import BUILT_IN, schema_key


def create_schema(context: Context, statement: CreateSchema, _: Sequence[object]) -> Result:
    """Creates a schema.

    Raises:
        DuplicateSchema: There is one of the name already.
        ReservedName: The name is not a user's.
    """
    names = context.names
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
    return Result("CREATE SCHEMA")
