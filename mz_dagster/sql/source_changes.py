"""What `ALTER SOURCE` makes of a source, and what it has to do so that the source is what another definition says."""

from __future__ import annotations

from mz_dagster.notices import tell
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import DuplicateColumn
from mz_dagster.sql.lexer import same_tokens
from mz_dagster.sql.source_columns import AlterSource
from mz_dagster.sql.source_statement import behind_column_list
from mz_dagster.sql.statement_parser import parse
from mz_dagster.sql.statements import ColumnDefinition, CreateSource, Files
from mz_dagster.sql.table_text import column_text


def with_added_columns(text: str, current: CreateSource, statement: AlterSource) -> str:
    """Returns the text of a CREATE SOURCE with the columns that are added to it.

    Args:
        text: Of the source, which states its columns.
        current: What it says.
        statement: What adds columns.

    Raises:
        DuplicateColumn: It has one of them, and IF NOT EXISTS is not said.
    """
    names = [one.name for one in current.columns]
    added = []
    for one in statement.columns:
        if one.column.name not in names:
            names.append(one.column.name)
            added.append(f", {column_text(one.column)}")
        elif one.if_not_exists:
            tell(f'column "{one.column.name}" of relation "{statement.name}" already exists, skipping')
        else:
            raise DuplicateColumn(
                f'column "{one.column.name}" of relation "{statement.name}" already exists',
                position=one.column.offset + 1,
            )
    behind = behind_column_list(text)
    return f"{text.removesuffix(behind).removesuffix(')')}{''.join(added)}){behind}"


def same_source(text: str, other: str) -> bool:
    """Returns whether two CREATE SOURCEs of files say the same but for names, however columns and keys are written.

    Example:
        >>> same_source(
        ...     "CREATE SOURCE s (a int, PRIMARY KEY (a), b text) FROM FILES (FOLDER 'x') FORMAT CSV ENVELOPE UPSERT",
        ...     "CREATE SOURCE s (a integer PRIMARY KEY, b text) FROM FILES (FOLDER 'x') FORMAT CSV ENVELOPE UPSERT",
        ... )
        True
    """
    one, another = _of_files(text), _of_files(other)
    return one is not None and another is not None and _added(one, another) == ()


def alteration_to_source(current: str, wanted: str) -> AlterSource | None:
    """Returns what adds the columns to a source of files that another definition has more; None if more differs.

    Example:
        >>> alteration_to_source(
        ...     "CREATE SOURCE s (a int) FROM FILES (FOLDER 'x') FORMAT CSV",
        ...     "CREATE SOURCE s (a int, b text) FROM FILES (FOLDER 'x') FORMAT CSV",
        ... ).text
        'ALTER SOURCE s ADD COLUMN b text'
    """
    now, then = _of_files(current), _of_files(wanted)
    added = None if now is None or then is None else _added(now, then)
    if then is None or not added or not all(one.nullable for one in added):
        return None
    actions = ", ".join(f"ADD COLUMN {column_text(one)}" for one in added)
    (statement,) = parse(f"ALTER SOURCE {'.'.join(map(quoted, then.name.parts))} {actions}")
    assert isinstance(statement, AlterSource)
    return statement


def _of_files(text: str) -> CreateSource | None:
    (statement,) = parse(text)
    return statement if isinstance(statement, CreateSource) and isinstance(statement.origin, Files) else None


def _added(now: CreateSource, then: CreateSource) -> tuple[ColumnDefinition, ...] | None:
    """Returns the columns that one source has behind those of another; None if they differ in more than names."""
    common, added = then.columns[: len(now.columns)], then.columns[len(now.columns) :]
    if [(one.name, one.type, one.nullable) for one in now.columns] != [
        (one.name, one.type, one.nullable) for one in common
    ]:
        return None
    is_same = now.key == then.key and same_tokens(behind_column_list(now.text), behind_column_list(then.text))
    return added if is_same else None
