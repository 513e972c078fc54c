"""`CREATE TYPE ... AS ENUM`, and `ALTER TYPE ... ADD VALUE | RENAME VALUE`."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.sql.cursor import TokenCursor, quoted
from mz_dagster.sql.errors import InvalidName, UniqueViolation
from mz_dagster.sql.options import Common
from mz_dagster.sql.statements import AlterType, CreateType, Name

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


def parse_alter_type(cursor: TokenCursor, common: Common) -> AlterType:
    """Moves past what follows `ALTER TYPE`."""
    name = cursor.name()
    if cursor.accepts("rename", "value"):
        label = cursor.string("a label")
        cursor.expects("to")
        return AlterType(*common, name, label, new_label=parse_label(cursor))
    if not cursor.accepts("add", "value"):
        raise cursor.refuse(
            "this form of ALTER TYPE",
            "A type is known by its name.",
            "ADD VALUE and RENAME VALUE alter values. For another name, create a type, add a column of it, and UPDATE "
            "that by old::text::new.",
        )
    if_not_exists = cursor.accepts("if", "not", "exists")
    label = parse_label(cursor)
    comes_before = cursor.accepts("before")
    neighbour = cursor.string("a label") if comes_before or cursor.accepts("after") else None
    return AlterType(*common, name, label, if_not_exists, neighbour, comes_before)


def type_text(name: Name, labels: Sequence[str]) -> str:
    """Returns the statement that creates a type.

    Example:
        >>> type_text(Name(("sh", "mood")), ["sad", "it's ok"])
        "CREATE TYPE sh.mood AS ENUM ('sad', 'it''s ok')"
    """
    written = ", ".join(label_text(one) for one in labels)
    return f"CREATE TYPE {'.'.join(map(quoted, name.parts))} AS ENUM ({written})"


def label_text(label: str) -> str:
    """Returns a label as SQL writes it."""
    return "'" + label.replace("'", "''") + "'"


def added_values(name: str, before: Sequence[str], after: Sequence[str]) -> list[str] | None:
    """Returns the statements that give a type the labels that it lacks; None if it has others, or another order.

    Args:
        name: The type, as SQL writes it.
        before: Its labels.
        after: Those that it is to have.

    Example:
        >>> added_values("mood", ["sad", "happy"], ["bad", "sad", "ok", "happy"])
        ["ALTER TYPE mood ADD VALUE 'bad' BEFORE 'sad'", "ALTER TYPE mood ADD VALUE 'ok' AFTER 'sad'"]
    """
    if [one for one in after if one in set(before)] != list(before):
        return None
    found = []
    for at, label in enumerate(after):
        if label not in before:
            place = (
                f" AFTER {label_text(after[at - 1])}" if at else f" BEFORE {label_text(before[0])}" if before else ""
            )
            found.append(f"ALTER TYPE {name} ADD VALUE {label_text(label)}{place}")
    return found
