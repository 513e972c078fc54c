"""ALTER CONNECTION and ALTER SECRET: what leads to data outside leads there in another way from then on.

Sources and sinks that use it go on with what they have read and written: in the catalog it has another definition, and
all that depends on it is bound anew, from one transaction on, in every process. A source is polled over the new way,
and a sink writes over it, the next time that they are. If there is something else behind it than was read, the source
finds out, as it does otherwise: files are known by their hashes or entity tags, and tables by their ids.

The new definition is held to the rules of CREATE. What uses it has to bind to it as well; a source whose files are not
below the URL any more for example would not, and then nothing is altered.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.block_definitions import NoPartOfBlock
from mz_dagster.adapter.connection_users import check_users
from mz_dagster.adapter.create_sql import create_sql
from mz_dagster.adapter.definition import define
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.catalog import ObjectRow, Redefinition
from mz_dagster.notices import tell
from mz_dagster.sql import parse
from mz_dagster.sql.connection_statements import (
    AlterConnection,
    AlterMeans,
    AlterSecret,
    CreateConnection,
    CreateSecret,
    altered_text,
    secret_text,
)
from mz_dagster.sql.errors import UndefinedTable


def alter_means(context: Context, statement: AlterMeans, _: Sequence[object]) -> Result:
    """Gives a connection other options, or has a secret be somewhere else.

    Raises:
        InvalidTableDefinition: It would be none that CREATE CONNECTION makes.
        UsedOtherwise: Something that uses it would not bind any more.
        Redefined: Somebody else altered it meanwhile.
    """
    names = context.names
    kind = "connection" if isinstance(statement, AlterConnection) else "secret"
    row = _named(names, statement, kind)
    if row is not None:
        (created,) = parse(create_sql(names.engine, row))  # under the names of today, which the statement says, too
        if isinstance(statement, AlterConnection):
            assert isinstance(created, CreateConnection)
            text = altered_text(created, statement)
        else:
            assert isinstance(created, CreateSecret)
            assert isinstance(statement, AlterSecret)
            text = secret_text(created.name, statement.reference)
        _alter(names, row, text)
    return Result(f"ALTER {kind.upper()}")


def _named(names: Names, statement: AlterMeans, kind: str) -> ObjectRow | None:
    if names.block() is not None:
        raise NoPartOfBlock(
            f"ALTER {kind.upper()} cannot run inside a transaction block",
            hint="Execute it before BEGIN, or commit first.",
        )
    try:
        return names.object(statement.name, kind)
    except UndefinedTable:
        if statement.if_exists:
            tell(f'{kind} "{statement.name}" does not exist, skipping')
            return None
        raise


def _alter(names: Names, row: ObjectRow, text: str) -> None:
    """Gives an object another definition, if all that uses it binds to that."""
    engine, name = names.engine, str(row.name)
    (statement,) = parse(text)
    definition = define(
        statement,  # type: ignore[arg-type]  # it creates what the row is
        names,
        default_timeline=engine.project.timeline,
        name=name,
    )
    check_users(engine.catalog.objects(), engine.definitions, row, definition)
    kept = {known: id for known, id in row.dependencies.items() if known.startswith("schema ")}
    other = Redefinition(name, text, {**kept, **definition.dependencies}, row.options, before=row.sql)
    engine.catalog.swap((), (), {row.id: other})
    engine.definitions.forget(row.id)
