"""Which of the declared columns a file does not have: they are NULL in all of its rows.

So a column that writers began to write can be declared, and files from before are read as they are. A file that lacks a
column and has one that is not declared is refused: it may be the same one, under a new name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.errors import SourceUnreadable


def absent_columns(
    columns: Sequence[Column], found: Sequence[str], called: str, path: str, of: str = "It"
) -> frozenset[str]:
    """Returns the names of the declared columns that a file does not have.

    Args:
        columns: The declared ones.
        found: The names that the file has.
        called: What its format is called.
        path: The file.
        of: What of the file has the names.

    Raises:
        SourceUnreadable: One that it lacks is never NULL, or may be one that it has under another name.
    """
    absent = [column for column in columns if column.name not in found]
    if not absent:
        return frozenset()
    declared = {column.name for column in columns}
    undeclared = [name for name in found if name not in declared]
    never = [column.name for column in absent if not column.nullable]
    lacks = f"{of} lacks {listed(column.name for column in absent)}"
    hint = "Replace the file by one with the source's columns, or move it away."
    if undeclared:
        detail = f"{lacks}, and has {listed(undeclared, 'the undeclared column')}."
        hint += (
            " If writers have another column now, declare it, too: the columns that a file lacks are NULL in its rows, "
            "if it has no undeclared ones, which may be the same under another name."
        )
    elif never:
        detail = f"{lacks}; {listed(never)} must have a value."
    elif len(absent) == len(columns):
        detail = f"{lacks}: all of the source's."
    else:
        return frozenset(column.name for column in absent)
    raise SourceUnreadable(f'cannot read {called} file "{path}"', detail=detail, hint=hint)


def listed(names: Iterable[str], what: str = "column") -> str:
    """Returns names as a sentence has them.

    Example:
        >>> listed(["a"]), listed(["a", "b"], "the undeclared column")
        ('column "a"', 'the undeclared columns "a", "b"')
    """
    quoted = [f'"{name}"' for name in names]
    shown = ", ".join(quoted[:20]) + ", ..." * (len(quoted) > 20)
    return f"{what}{'s' * (len(quoted) > 1)} {shown}"
