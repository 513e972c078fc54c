"""`CREATE TYPE ... AS ENUM`."""

from __future__ import annotations

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidName, UniqueViolation
from mz_dagster.sql.options import Common
from mz_dagster.sql.statements import CreateType

#: How many bytes a label of PostgreSQL's may have.
_MOST_BYTES = 63


def parse_create_type(cursor: TokenCursor, common: Common) -> CreateType:
    """Moves past what follows `CREATE TYPE`."""
    name = cursor.name()
    if not cursor.accepts("as", "enum"):
        raise cursor.refuse("this form of CREATE TYPE", "A type is a list of values.", "Write AS ENUM ('a', 'b').")
    cursor.expects_symbol("(")
    labels: list[str] = []
    while not cursor.accepts_symbol(")"):
        if labels:
            cursor.expects_symbol(",")
        position = cursor.current.start + 1
        label = parse_label(cursor)
        if label in labels:
            raise UniqueViolation(f'enum label "{label}" is used twice', position=position)
        labels.append(label)
    return CreateType(*common, name, tuple(labels))


def parse_label(cursor: TokenCursor) -> str:
    """Moves past the label of a value.

    Raises:
        InvalidName: PostgreSQL has no labels of that length.
    """
    position = cursor.current.start + 1
    label = cursor.string("a label")
    if len(label.encode()) > _MOST_BYTES:
        raise InvalidName(
            f'invalid enum label "{label}"', detail=f"Labels have {_MOST_BYTES} bytes or fewer.", position=position
        )
    return label
