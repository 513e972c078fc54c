"""ALTER of a name, of the history that is kept, of where a source or sink stands, and of a source's errors."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.dropping_errors import dropped_errors
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.rewriting_sinks import rewrite_sink
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.defined import named, refuse_in_block
from mz_dagster.adapter.sequence.unique_index import is_unique_index, rename_unique_index
from mz_dagster.adapter.unbinding import unbind_changed
from mz_dagster.errors import ProgrammingError
from mz_dagster.notices import tell
from mz_dagster.sql import AlterDropErrors, AlterRename, AlterReset, AlterRetainHistory
from mz_dagster.sql.errors import WrongObjectKind
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.source.table_source import TableSource

#: How many of the files are named that a source goes on without.
_MOST_NAMED = 10
#: The kinds of objects that PostgreSQL's ALTER TABLE renames.
_RELATIONS = ("table", "view", "materialized view", "index")


def rename(context: Context, statement: AlterRename, _: Sequence[object]) -> Result:
    """Gives an object another name.

    Raises:
        NameTaken: The new name denotes something already.
    """
    names = context.names
    found = names.find(statement.name)
    if found is None and statement.kind in ("index", "table") and is_unique_index(names, statement.name):
        rename_unique_index(context, statement)
        return Result(f"ALTER {statement.kind.upper()}")
    kind = (
        found.kind if statement.kind == "table" and found is not None and found.kind in _RELATIONS else statement.kind
    )
    row = named(names, statement.name, kind, statement.if_exists)
    if row is not None:
        if names.is_temporary(row.id):
            refuse_in_block(names, "ALTER ... RENAME of a temporary object", "Rename it before BEGIN.")
        if row.kind in ("schema", "type", "source"):
            refuse_in_block(names, f"ALTER {row.kind.upper()}")
        names.rename(row, statement.new_name)
    return Result(f"ALTER {statement.kind.upper()}")


def reset(context: Context, statement: AlterReset, _: Sequence[object]) -> Result:
    """Has a source go on from what there is now of what it reads, or a sink write anew all that it reads."""
    names = context.names
    row = named(names, statement.name, statement.kind, statement.if_exists)
    if row is not None and statement.kind == "sink":
        rewrite_sink(names.engine, row.id)
    elif row is not None:
        source = names.engine.definitions.source(row.id)
        if isinstance(source, TableSource):
            names.engine.bind(row.id, lambda _: source.reset())
        elif isinstance(source, FileSource):
            changed = unbind_changed(names.engine, row.id, source)
            detail = " ".join(f'"{path}": {said}' for path, said in list(changed.items())[:_MOST_NAMED])
            count = "1 file" if len(changed) == 1 else f"{len(changed)} files"
            tell(f'source "{statement.name}" goes on without {count} that it had not read yet', detail=detail or None)
        names.engine.catalog.note_polls({row.id: None})
    return Result(f"ALTER {statement.kind.upper()}")


def drop_errors(context: Context, statement: AlterDropErrors, _: Sequence[object]) -> Result:
    """Has a source go on without the records that it could not read, and tells which they are.

    Raises:
        WrongObjectKind: It is no source of files.
    """
    row = named(context.names, statement.name, "source", statement.if_exists)
    if row is not None:
        engine = context.names.engine
        if not isinstance(engine.definitions.source(row.id), FileSource):
            raise WrongObjectKind(
                f'errors of source "{statement.name}" cannot be dropped',
                detail="It is what its table says: an error goes with the row that makes it.",
                hint="Correct or delete the row in the table.",
                position=statement.name.offset + 1,
            )
        dropped = dropped_errors(engine, row.id)
        count = "1 error" if dropped.total == 1 else f"{dropped.total} errors"
        more = f" And {dropped.distinct - len(dropped.texts)} more." if dropped.distinct > len(dropped.texts) else ""
        detail = " ".join(f"{text.partition(' ')[2]}." for text in dropped.texts) + more
        tell(f'dropped {count} of source "{statement.name}"', detail=detail or None)
    return Result("ALTER SOURCE")


def alter_retain_history(context: Context, statement: AlterRetainHistory, _: Sequence[object]) -> Result:
    """Sets or resets how much history an object keeps."""
    names = context.names
    row = named(names, statement.name, statement.kind, statement.if_exists)
    if row is not None:
        if not row.has_collection:
            raise ProgrammingError(f'"{statement.name}" keeps no history of its own', hint="Alter what it reads.")
        names.engine.catalog.set_retention(row.id, statement.retain_history_ms)
    return Result(f"ALTER {statement.kind.upper()}")
