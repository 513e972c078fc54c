"""Whether a foreign key can be: its columns compare with those of a key of the table that it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.functions import type_name
from mz_dagster.plan.relation import Constant
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.types import RelationType
from mz_dagster.sql import Name
from mz_dagster.sql.constraints import bind_matching
from mz_dagster.sql.declared_keys import ForeignKey, UniqueKey
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    InvalidForeignKey,
    UndefinedColumn,
    UndefinedObject,
    UnsupportedForm,
    WrongObjectKind,
    suggestion,
)


@dataclass(frozen=True, slots=True)
class ReferencedTable:
    """A table that rows of another are to refer to.

    Attributes:
        name: What messages call it.
        columns: Its columns.
        keys: Its keys.
    """

    name: str
    columns: RelationType
    keys: Sequence[UniqueKey]


def check_can_be_referenced(key: ForeignKey, kind: str, timelines: tuple[str | None, str | None]) -> None:
    """Returns if what a foreign key names is a table that another can refer to.

    Args:
        key: The foreign key.
        kind: What it names.
        timelines: That of its own table, and that of the other.

    Raises:
        WrongObjectKind: It is no table.
        UnsupportedForm: It is on another timeline.
    """
    name, position = Name(key.table, key.offset), key.offset + 1
    if kind != "table":
        raise WrongObjectKind(
            f'referenced relation "{name}" is not a table', hint=f"It is a {kind}.", position=position
        )
    if timelines[0] != timelines[1]:
        raise UnsupportedForm(
            f'a foreign key to "{name}" is not supported, which is on another timeline',
            detail="Times of different timelines never compare.",
            position=position,
        )


def referring_to(key: ForeignKey, columns: RelationType, parent: str, table: ReferencedTable) -> ForeignKey:
    """Returns a foreign key that knows which columns of which table it refers to.

    Args:
        key: The foreign key, as it was declared.
        columns: The columns of its own table.
        parent: What it is to tell the other table by.
        table: That table.

    Raises:
        UndefinedColumn: A column is none of that table's.
        UndefinedObject: That table has no primary key, and no columns are named.
        InvalidForeignKey: The columns that are referred to are no key of their table.
        DatatypeMismatch: Columns do not compare.
    """
    position = key.offset + 1
    referenced = key.referenced
    if not referenced:
        primary = next((one for one in table.keys if one.primary), None)
        if primary is None:
            raise UndefinedObject(f'there is no primary key for referenced table "{table.name}"', position=position)
        referenced = primary.columns
    for one in referenced:
        if one not in table.columns.names:
            raise UndefinedColumn(
                f'column "{one}" referenced in foreign key constraint does not exist',
                hint=suggestion(one, table.columns.names),
                position=position,
            )
    if len(referenced) != len(key.columns):
        raise InvalidForeignKey(
            "number of referencing and referenced columns for foreign key disagree", position=position
        )
    if not any(set(one.columns) == set(referenced) for one in table.keys):
        raise InvalidForeignKey(
            f'there is no unique constraint matching given keys for referenced table "{table.name}"',
            hint=f"Let {table.name} have UNIQUE ({', '.join(referenced)}).",
            position=position,
        )
    for own, other in zip(key.columns, referenced, strict=True):
        check_types(key, columns, own, table.columns, other)
    return replace(key, parent=parent, referenced=referenced)


def check_types(key: ForeignKey, columns: RelationType, own: str, others: RelationType, other: str) -> None:
    """Returns if a column compares with one of the table that it refers to; raises DatatypeMismatch if not."""
    ours, theirs = (of.columns[of.names.index(name)] for of, name in ((columns, own), (others, other)))
    try:
        bind_matching((other,), (), (ours,), _Referenced(others), whole=False)
    except ProgrammingError as error:
        raise DatatypeMismatch(
            f'foreign key constraint "{key.name}" cannot be implemented',
            detail=f'Key columns "{own}" and "{other}" are of incompatible types: {type_name(ours.type)} and '
            f"{type_name(theirs.type)}.",
            position=key.offset + 1,
        ) from error


@dataclass(frozen=True, slots=True)
class _Referenced:
    """Resolves any name to an empty relation of some columns."""

    columns: RelationType

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns the relation."""
        return Item(GlobalId("referenced"), name[-1], "view", self.columns, None, Constant((), self.columns))

    def names(self) -> tuple[str, ...]:
        """Returns no names."""
        return ()
