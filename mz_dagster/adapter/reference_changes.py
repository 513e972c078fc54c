"""What becomes of the foreign keys of tables: the difference between those that files declare and the catalog's.

Tables are created, renamed and altered first, and get their foreign keys behind all that, each by an `ALTER TABLE` as
in a session: so the rows that are there are held to it. What goes is dropped before all that, so that no table is kept
from being altered by a foreign key that its file does not declare any more. One that is declared otherwise is replaced
at once, unless its tables are altered: then it goes before, and comes behind.

A foreign key that a session has added stays. One of another name that is what a file declares gets that name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from mz_dagster.adapter.file_ids import file_id, name_of_file_id
from mz_dagster.adapter.file_references import FileReference
from mz_dagster.adapter.project_files import BadProjectFile, Fault, ProjectObject
from mz_dagster.adapter.table_constraints import foreign_keys_of
from mz_dagster.catalog import ObjectRow, stands_for
from mz_dagster.formalism import GlobalId
from mz_dagster.sql import AlterTable, parse
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.declared_keys import SELF, ForeignKey
from mz_dagster.sql.schemas import written


class ReferenceAction(Enum):
    """Says what becomes of a foreign key."""

    ADD = "add"
    REPLACE = "replace"
    RENAME = "rename"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class ReferenceChange:
    """What becomes of one foreign key of a table that the files define.

    Attributes:
        table: What the files call the table.
        name: The constraint's name; of one that is renamed the new one.
        action: What becomes of it.
        statement: What does that.
        path: The table's file.
        line: The line on which the foreign key stands; if none declares it, that of the table.
    """

    table: str
    name: str
    action: ReferenceAction
    statement: AlterTable
    path: Path
    line: int

    @property
    def is_first(self) -> bool:
        """True if it comes before tables are altered; else it comes behind."""
        return self.action is ReferenceAction.DROP


@dataclass(frozen=True, slots=True)
class StandingReferences:
    """The foreign keys that a catalog holds.

    Attributes:
        tables: Its tables, by what foreign keys tell them by.
    """

    tables: Mapping[str, ObjectRow]

    @classmethod
    def among(cls, rows: Iterable[ObjectRow]) -> StandingReferences:
        """Returns those of the tables among some objects."""
        return cls({stands_for(one): one for one in rows if one.kind == "table" and one.name is not None})

    def of(self, row: ObjectRow) -> Iterator[tuple[ForeignKey, ObjectRow]]:
        """Yields the foreign keys of an object, each with the table that it refers to; without that it is none."""
        for key in foreign_keys_of(row) if row.kind == "table" else ():
            parent = row if key.parent == SELF else self.tables.get(key.parent)
            if parent is not None and set(key.referenced) <= set(parent.relation_type.names):
                yield key, parent

    def to(self, ids: Collection[GlobalId]) -> Iterator[tuple[ObjectRow, ForeignKey, ObjectRow]]:
        """Yields those that refer to some tables, each between its two tables."""
        for child in self.tables.values():
            yield from ((child, key, parent) for key, parent in self.of(child) if parent.id in ids)


@dataclass(frozen=True, slots=True)
class ReferenceComparison:
    """Tells what becomes of the foreign keys of tables.

    Attributes:
        standing: Those of the catalog.
        existing: What the catalog holds, by what the files call it.
        altered: The names of the tables that are altered.
        faults: Why objects stay as they were applied last, by their names.
    """

    standing: StandingReferences
    existing: Mapping[str, ObjectRow]
    altered: Collection[str]
    faults: Mapping[str, Fault]

    def changes(self, tables: Iterable[ProjectObject]) -> tuple[tuple[ReferenceChange, ...], tuple[Fault, ...]]:
        """Returns what becomes of those of some tables, in the order in which it is done, and what cannot be done."""
        told = {stands_for(row): file_id(name) for name, row in self.existing.items() if row.kind == "table"}
        found = [each for one in tables for each in self._changes(one, told)]
        changes = sorted(
            (one for one in found if isinstance(one, ReferenceChange)), key=lambda change: not change.is_first
        )
        return tuple(changes), tuple(one for one in found if isinstance(one, Fault))

    def _changes(self, one: ProjectObject, told: Mapping[str, str]) -> Iterator[ReferenceChange | Fault]:
        """Yields what becomes of those of a table, given what files tell tables by, by what the catalog does."""
        row = self.existing.get(one.name)
        standing = () if row is None else self.standing.of(row)
        held = {key.name: replace(key, parent=told.get(key.parent, key.parent)) for key, _ in standing}
        declared = {each.name for each in one.references}
        left = {name: key for name, key in held.items() if key.is_of_files and name not in declared}
        for each in one.references:
            there = held.get(each.name)
            if each.error is not None or (there is not None and _said(there) == _said(each.key)):
                continue
            parent = one.name if each.key.parent == SELF else name_of_file_id(GlobalId(each.key.parent))
            like = next((name for name, key in left.items() if _said(key) == _said(each.key)), None)
            if there is not None and not there.is_of_files:
                yield _fault(
                    one,
                    each,
                    f'foreign key "{each.name}" is another in the catalog, where a session added it',
                    f"Choose another name, or drop it first: ALTER TABLE {_named(one)} DROP CONSTRAINT "
                    f"{quoted(each.name)}.",
                )
            elif parent in self.faults:
                error = self.faults[parent].error
                yield _fault(one, each, f'foreign key "{each.name}" waits for "{parent}": {error.message}', error.hint)
            elif there is None and like is not None:
                del left[like]
                yield _change(one, each, ReferenceAction.RENAME, f"RENAME CONSTRAINT {quoted(like)} TO")
            elif there is None:
                yield _change(one, each, ReferenceAction.ADD, "ADD")
            elif there.parent != each.key.parent or not {one.name, parent}.isdisjoint(self.altered):
                left[each.name] = there
                yield _change(one, each, ReferenceAction.ADD, "ADD")
            else:
                yield _change(one, each, ReferenceAction.REPLACE, f"DROP CONSTRAINT {quoted(each.name)}, ADD")
        for name in left:
            assert row is not None, "it holds them"
            text = f"ALTER TABLE {written(row.schema, str(row.name))} DROP CONSTRAINT {quoted(name)}"
            yield ReferenceChange(one.name, name, ReferenceAction.DROP, _parsed(text), one.path, one.line)


def _said(key: ForeignKey) -> ForeignKey:
    """Returns what is the same of foreign keys that hold the same."""
    return replace(key, name="", table=(), is_of_files=False, offset=0)


def _named(one: ProjectObject) -> str:
    return written(one.definition.schema, one.name)


def _fault(one: ProjectObject, reference: FileReference, message: str, hint: str | None) -> Fault:
    error = BadProjectFile(f'{one.path}:{reference.line}: {message} (in "{one.name}")', hint=hint)
    return Fault(None, error, one.path, reference.line, about=one.name)


def _change(one: ProjectObject, reference: FileReference, action: ReferenceAction, does: str) -> ReferenceChange:
    told = quoted(reference.name) if action is ReferenceAction.RENAME else reference.text
    statement = _parsed(f"ALTER TABLE {_named(one)} {does} {told}")
    actions = tuple(replace(each, is_of_files=each.kind == "add constraint") for each in statement.actions)
    return ReferenceChange(
        one.name, reference.name, action, replace(statement, actions=actions), one.path, reference.line
    )


def _parsed(text: str) -> AlterTable:
    (statement,) = parse(text)
    assert isinstance(statement, AlterTable)
    return statement
