"""What a change of a project's files comes to: the difference between the files and the catalog, as plain data.

One function finds it, `plan_changes`; `mz-dagster plan` shows what it returns and `apply` carries it out, so that they
cannot disagree. It reads no file, no catalog and no clock: it compares what was loaded.

What the files define is compared with what bears the same name. A definition is the same if its tokens are (white space
and comments do not count) and if what it reads was kept; else it is replaced, and so is everything that reads it. What
the files once defined and no longer do is orphaned. What sessions made stays theirs: it is never dropped, and what it
reads is not taken from it. What the files say of an object and cannot be used is its fault, and that of what reads it:
these stay as they were applied last, with what they read, which lives on for them. What this release plans otherwise
than the one that made it is told beside all that; see `replanning`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions, called, reads_indexes
from mz_dagster.adapter.connection_users import UsedOtherwise, check_users
from mz_dagster.adapter.definition import Definition
from mz_dagster.adapter.equivalence import are_equivalent, named_as
from mz_dagster.adapter.file_ids import file_id, name_of_file_id
from mz_dagster.adapter.file_indexes import FileIndexes, with_indexes_first
from mz_dagster.adapter.project_files import BadProjectFile, Fault, ProjectFiles, ProjectObject
from mz_dagster.adapter.reference_changes import (
    ReferenceAction,
    ReferenceChange,
    ReferenceComparison,
    StandingReferences,
)
from mz_dagster.adapter.replanning import Replanned
from mz_dagster.catalog import ObjectRow, in_shard
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.sql import AlterSource, AlterTable, AlterType, parse, same_tokens
from mz_dagster.sql.connection_statements import CreateConnection, CreateSecret, connection_text
from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.schemas import written
from mz_dagster.sql.source_changes import same_source
from mz_dagster.sql.table_changes import alteration_to
from mz_dagster.sql.table_text import same_table
from mz_dagster.sql.type_statements import added_values

FROM_FILES = "project file"
"""The tag of every object that applying a project has created."""

NONE_REFUSED: Mapping[str, BadProjectFile] = {}
"""Of no object it is known already why it is not what files say."""

_NONE_GROWN: Mapping[str, AlterSource] = {}
#: How the error of a name that nothing bears begins (`UndefinedTable`), behind its file and line.
_MISSING = re.compile(r'relation "([^"]+)" does not exist')
#: Kinds of what has nothing but what its query gives, so that one becomes the other and loses nothing.
_COMPUTED = frozenset({"view", "materialized view"})


class Action(Enum):
    """Says what becomes of an object that the files define."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    RENAME = "rename"
    REWORD = "reword"
    ALTER = "alter"


class OrphanStillRead(ProgrammingError):
    """Something made in a session reads, or a table refers to, what no file defines any more: it is not dropped."""

    sqlstate = "2BP01"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one object that the files define.

    Attributes:
        object: The object, as the files define it.
        action: What becomes of it.
        reason: Why, as a clause about it.
        old: What bears its name in the catalog now, or None.
        held_by: The names of what sessions made that reads `old`, which therefore lives on for them, without a name.
        alterations: What makes of a table, a type, or a source of which files are gone, what the project's file says; a
            connection or a secret needs none.
    """

    object: ProjectObject
    action: Action
    reason: str
    old: ObjectRow | None = None
    held_by: tuple[str, ...] = ()
    alterations: tuple[AlterSource | AlterTable | AlterType, ...] = ()

    @property
    def stays(self) -> bool:
        """True if what is there goes on, with its contents, under whatever name and text."""
        return self.action not in (Action.CREATE, Action.REPLACE)

    @property
    def name(self) -> str:
        """The object's name."""
        return self.object.name

    @property
    def has_collection(self) -> bool:
        """True if the object has contents, so that it hydrates."""
        definition = self.object.definition
        return definition.plan is not None or definition.kind in ("source", "table")


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The difference between a project's files and a catalog.

    Attributes:
        changes: What becomes of each object that the files define, each after those it reads.
        orphans: What the files once defined and do not define any more, each before those it reads.
        drops: Whether the orphans are dropped; else they are left alone, but for checks: one goes with its line.
        outside: The names of what the files never defined, sorted.
        replanned: What is made anew although its definition is as it was, whoever made it, each after those it reads.
        faults: Why the rest of what the files say is not carried out; those that wait for others last.
        missed: What the files do not define any more, but what is as it was applied last still reads, with the names of
            that.
        read_elsewhere: Those of the orphans that sessions made readers of.
        references: What becomes of foreign keys, in the order in which it is done: before all changes what goes, and
            behind them the rest.
    """

    changes: tuple[Change, ...]
    orphans: tuple[ObjectRow, ...]
    drops: bool
    outside: tuple[str, ...]
    replanned: tuple[Replanned, ...] = ()
    faults: tuple[Fault, ...] = ()
    missed: tuple[tuple[ObjectRow, tuple[str, ...]], ...] = ()
    read_elsewhere: frozenset[GlobalId] = frozenset()
    references: tuple[ReferenceChange, ...] = ()

    def names(self, action: Action) -> tuple[str, ...]:
        """Returns the names of the objects of which this becomes."""
        return tuple(one.name for one in self.changes if one.action is action)

    @property
    def created(self) -> tuple[str, ...]:
        """What is new, by name."""
        return self.names(Action.CREATE)

    @property
    def replaced(self) -> tuple[str, ...]:
        """What changed, or reads what changed, by name; what of it has contents hydrates anew."""
        return self.names(Action.REPLACE)

    @property
    def kept(self) -> tuple[str, ...]:
        """What is as it was, by name."""
        return self.names(Action.KEEP)

    @property
    def going(self) -> tuple[ObjectRow, ...]:
        """What is dropped because the files no longer define it."""
        read = {id for one in self.orphans for id in one.dependencies.values()} | self.read_elsewhere
        return tuple(row for row in self.orphans if self.drops or (row.kind == "check" and row.id not in read))

    @property
    def dropped(self) -> tuple[str, ...]:
        """What is dropped because the files no longer define it, by name."""
        return tuple(str(row.name) for row in self.going)

    @property
    def orphaned(self) -> tuple[str, ...]:
        """What the files no longer define and is left alone, by name."""
        return tuple(str(row.name) for row in self.orphans if row not in self.going)

    @property
    def changed(self) -> bool:
        """True if carrying it out changes the catalog."""
        others = any(self.names(one) for one in (Action.RENAME, Action.REWORD, Action.ALTER))
        return bool(self.created or self.replaced or self.dropped or self.replanned or self.references or others)


def plan_changes(
    files: ProjectFiles,
    rows: Sequence[ObjectRow],
    definitions: CatalogDefinitions | None = None,
    *,
    drop: bool = False,
    refused: Mapping[str, BadProjectFile] = NONE_REFUSED,
    grown: Mapping[str, AlterSource] = _NONE_GROWN,
) -> ChangePlan:
    """Returns what it takes to make a catalog hold what the files define.

    A table that was changed so that values would be lost, and an object that bears the name of one of another kind, are
    faults, too. What computes what it did, under another name (`@renamed_from`) or in other words, goes on.

    Args:
        files: What the files define.
        rows: What the catalog holds, in order of creation; nothing dropped.
        definitions: The same, bound; without it whatever has another text is taken to compute something else.
        drop: Whether to drop what the files no longer define.
        refused: Why objects are not replaced for which that is known already, by name.
        grown: What adds columns to sources that are not replaced, by name.

    Raises:
        OrphanStillRead: Something made in a session reads what is to be dropped, or a table that stays refers to it.
    """
    known = {one.name for one in files.objects}
    existing = {row.name: row for row in rows if row.name is not None}
    existing = {
        name: row
        for name, row in existing.items()
        if row.kind != "schema" or name in known or FROM_FILES in row.tags  # those of sessions are nobody's concern
    }
    for new, old in _renamed(files, existing).items():
        existing[new] = existing.pop(old)
    faults = _all_faults(files, existing, refused)
    defined = {one.name for one in files.objects} - faults.keys()
    standing = [row.id for name, row in existing.items() if name in faults]
    keys = StandingReferences.among(rows)
    needed = _inputs(standing, {row.id: row for row in rows}, keys)
    # Of what is wrong nobody knows what the files check.
    needed |= {row.id for row in rows if row.kind == "check" and not needed.isdisjoint(row.dependencies.values())}
    gone = [row for name, row in existing.items() if name not in defined | faults.keys() and FROM_FILES in row.tags]
    orphans = [row for row in gone if row.id not in needed]
    inside = defined | {str(row.name) for row in orphans}
    comparing = _Comparison(definitions, rows, grown)
    indexes = FileIndexes(files)
    changes: list[Change] = []
    for one in with_indexes_first(files.objects):
        if one.name in faults:
            continue
        row = existing.get(one.name)
        change = Change(one, Action.CREATE, "it is new") if row is None else comparing.change(one, row)
        if change.action is Action.CREATE:
            like = next((old for old in gone if _differs_in_name_alone(one, old)), None)
            if like is not None:
                advice = f'write "-- @renamed_from {like.name}" above it, and it goes on with the data of that'
                change = replace(change, reason=f'it is new; but for its name it is "{like.name}": {advice}')
        if change.action is Action.REPLACE and row is not None:
            change = replace(change, held_by=_readers_outside(row.id, rows, inside))
        if change.stays and row is not None:
            change = replace(change, object=comparing.as_planned(change.object, row))
        else:
            change = replace(change, object=indexes.over(change.object))
        indexes.note(one)
        comparing.note(change)
        changes.append(change)
    if drop:
        for row in (one for one in orphans if one.kind != "index"):  # which lives on for those that read it
            _check_droppable(row, _readers_outside(row.id, rows, inside))
    altered = [one.name for one in changes if one.action is Action.ALTER]
    tables = (one.object for one in changes if one.object.definition.kind == "table")
    references, unmade = ReferenceComparison(keys, existing, altered, faults).changes(tables)
    if drop:
        ending = {(existing[one.table].id, one.name) for one in references if one.action is ReferenceAction.DROP}
        _check_unreferenced({one.id for one in orphans}, keys, ending)
    nameless = (*(_with_advice(one, existing) for one in files.faults if one.name is None), *unmade)
    return ChangePlan(
        tuple(changes),
        tuple(reversed(orphans)),
        drop,
        tuple(sorted(name for name, row in existing.items() if _is_outside(row, name, inside | faults.keys()))),
        faults=tuple(sorted((*nameless, *faults.values()), key=lambda one: one.waits_for is not None)),
        missed=tuple((row, _readers_among(row, rows, faults, keys)) for row in gone if row.id in needed),
        read_elsewhere=frozenset(row.id for row in orphans if _readers_outside(row.id, rows, inside)),
        references=references,
    )


def _renamed(files: ProjectFiles, existing: Mapping[str, ObjectRow]) -> dict[str, str]:
    """Returns the names that objects of the catalog had, by those that the files give them."""
    defined = {one.name for one in files.objects} | {one.name for one in files.faults if one.name is not None}
    found: dict[str, str] = {}
    for one in files.objects:
        old = one.annotations.renamed_from
        if old is not None and one.name not in existing and old in existing and old not in defined:
            found.setdefault(one.name, old) if old not in found.values() else None
    return found


def _readers_among(
    row: ObjectRow, rows: Sequence[ObjectRow], faults: Mapping[str, Fault], references: StandingReferences
) -> tuple[str, ...]:
    reached, size = {row.id}, 0
    while size < len(reached):  # tables refer to each other in any order
        size = len(reached)
        reached |= {one.id for one in rows if not reached.isdisjoint(_read_by(one, references))}
    return tuple(str(one.name) for one in rows if one.id in reached - {row.id} and one.name in faults)


class _Comparison:
    """Tells what becomes of the files' objects one after the other, each after those it reads."""

    def __init__(
        self, definitions: CatalogDefinitions | None, rows: Sequence[ObjectRow], grown: Mapping[str, AlterSource]
    ) -> None:
        self._grown = grown
        self._definitions = definitions
        self._rows = rows
        self._stored = {row.id: in_shard(row.shapes.stored) for row in rows if row.shapes is not None}
        self._kept: dict[str, GlobalId] = {}
        self._fresh: set[str] = set()
        #: Tables and sources that have other columns than those that what reads them was bound to.
        self._altered: set[str] = set()

    def note(self, change: Change) -> None:
        """Notes what becomes of an object."""
        if change.stays and change.old is not None:
            self._kept[change.name] = change.old.id
            if change.old.kind in ("source", "table") and (change.action is Action.ALTER or change.old.version):
                self._altered.add(change.name)
        else:
            self._fresh.add(change.name)

    def change(self, one: ProjectObject, row: ObjectRow) -> Change:
        """Returns what becomes of an object that is there."""
        is_renamed = row.name != one.name
        if row.kind == one.definition.kind == "schema":
            return Change(one, Action.KEEP, "it is as it was", row)
        alterations: tuple[AlterSource | AlterTable | AlterType, ...] = ()
        if not _is_same(one, row) and (not is_renamed or row.kind == "table"):
            is_grown = one.name in self._grown and self._fresh.isdisjoint(one.depends)
            alterations = (self._grown[one.name],) if is_grown else _alterations(one, row)
        if alterations:
            told = "; ".join(each.text for each in alterations)
            if row.kind == "source":
                told += ". What it has read has NULL there, and is not read again, since files of it cannot be found"
            was = f'it was "{row.name}", and ' if is_renamed else ""
            return Change(one, Action.ALTER, f"{was}its definition changed: {told}", row, (), alterations)
        reason = _difference(one, row, self._kept, self._fresh)
        if reason is not None and row.kind in ("connection", "secret"):
            return self._led_elsewhere(one, row, reason)
        if reason is None and self._altered.intersection(one.depends) and not self._is_bound_alike(one, row):
            reason = f"it reads {', '.join(sorted(self._altered.intersection(one.depends)))}, which has other columns"
        if reason is None and not is_renamed:
            return Change(one, Action.KEEP, "it is as it was", row)
        if reason is None or self._is_alike(one, row):
            if is_renamed:
                return Change(one, Action.RENAME, f'it was "{row.name}", and is computed as it was', row)
            return Change(one, Action.REWORD, "its text changed, and not what it computes", row)
        return Change(one, Action.REPLACE, reason, row)

    def _led_elsewhere(self, one: ProjectObject, row: ObjectRow, reason: str) -> Change:
        """Returns what becomes of a connection or a secret that is another one now."""
        (was,), (now,) = parse(row.sql), parse(one.definition.text)
        names = {name: id for name, id in row.dependencies.items() if not name.startswith("schema ")}
        uses = {name: self._kept.get(name) for name in one.definition.dependencies if not name.startswith("schema ")}
        if isinstance(was, CreateConnection) and isinstance(now, CreateConnection):
            if was.kind != now.kind:
                why = f"{reason}: it led to {was.kind.upper()}, and leads to {now.kind.upper()}"
                return Change(one, Action.REPLACE, why, row)
            is_same = connection_text(was) == connection_text(now) and names == uses
        else:
            is_same = isinstance(was, CreateSecret) and isinstance(now, CreateSecret) and was.reference == now.reference
        if is_same:
            return Change(one, Action.REWORD, "its text changed, and not where it leads", row)
        try:
            if self._definitions is not None:
                check_users(self._rows, self._definitions, row, one.definition)
        except UsedOtherwise as error:
            return Change(one, Action.REPLACE, f"{reason}: {error.message}", row)
        return Change(one, Action.ALTER, f"{reason}: what uses it goes on, and takes that way from now on", row)

    def as_planned(self, one: ProjectObject, row: ObjectRow) -> ProjectObject:
        """Returns an object that stays, planned as the catalog's is, which reads the indexes that it began with."""
        if self._definitions is None or not reads_indexes(row):
            return one
        names = {id: file_id(name) for name, id in self._kept.items()}
        try:
            stored = self._definitions.definition_of(row)
        except Error:
            return one
        indexes = tuple(sorted(names.get(id, id) for id in stored.indexes))
        definition = replace(one.definition, plan=stored.plan and stored.plan.over(names), indexes=indexes)
        return replace(one, definition=definition)

    def _is_alike(self, one: ProjectObject, row: ObjectRow) -> bool:
        """Returns whether an object computes what the catalog's does, from the same."""
        if self._definitions is None or not self._fresh.isdisjoint(one.depends):
            return False
        try:
            stored = self._definitions.bound_definition_of(row)
        except Error:
            return False
        ids = {file_id(name): id for name, id in self._kept.items()}
        return are_equivalent(one.definition, stored, ids, self._stored)

    def _is_bound_alike(self, one: ProjectObject, row: ObjectRow) -> bool:
        """Returns whether a text means what it did when its tables had other columns."""
        if one.definition.kind == "index":
            return True
        here, there = one.definition.relation_type, row.relation_type
        if [(column.name, column.type) for column in here.columns] != [
            (column.name, column.type) for column in there.columns
        ]:
            return False
        return not _has_star(row.sql) or self._is_alike(one, row)


def _has_star(text: str) -> bool:
    """Returns whether a text may name columns without saying them."""
    return any(
        token.is_word("natural")
        or (token.is_symbol("*") and (before.is_word("select", "distinct") or before.is_symbol(",", ".")))
        for before, token in pairwise(tokens_of(text))
    )


def _alterations(one: ProjectObject, row: ObjectRow) -> tuple[AlterTable | AlterType, ...]:
    """Returns what makes a table or type what a file says; nothing if values would be lost, or it is another kind."""
    if (row.timeline, row.kind, row.schema) != (one.definition.timeline, one.definition.kind, one.definition.schema):
        return ()
    if row.kind == "type":
        texts = added_values(written(row.schema, one.name), _labels(row), _labels(one.definition)) or ()
        return tuple(each for text in texts for each in parse(text) if isinstance(each, AlterType))
    alteration = alteration_to(row.sql, one.definition.text) if row.kind == "table" else None
    return () if alteration is None else (alteration,)


def _differs_in_name_alone(one: ProjectObject, row: ObjectRow) -> bool:
    return row.kind == one.definition.kind != "schema" and _is_same(one, row)


def _is_outside(row: ObjectRow, name: str, inside: Collection[str]) -> bool:
    return name not in inside and FROM_FILES not in row.tags


def _all_faults(
    files: ProjectFiles, existing: Mapping[str, ObjectRow], refused: Mapping[str, BadProjectFile]
) -> dict[str, Fault]:
    """Returns the faults of objects by their names: of the files, of what cannot become what they say, and of readers.

    What came from the files and is defined by none that can be read waits for those that cannot.
    """
    faults = {one.name: _with_advice(one, existing) for one in files.faults if one.name is not None}
    hiding = next((one for one in files.faults if one.hides), None)
    if hiding is not None:
        defined = {one.name for one in files.objects}
        for name, row in existing.items():
            if FROM_FILES in row.tags and name not in defined and name not in faults:
                faults[name] = hiding.of_reader(name, hiding.path, hiding.line)
    for one in files.objects:
        held = existing.get(one.name)
        cause = next((faults[name] for name in one.depends if name in faults), None)
        if cause is not None:
            faults[one.name] = cause.of_reader(one.name, one.path, one.line)
        elif (
            (error := refused.get(one.name)) is not None
            or (held is not None and (error := _irreplaceable(one, held, existing.values())) is not None)
            or ((error := one.uncreatable) is not None and (held is None or not _is_same(one, held)))
        ):
            faults[one.name] = Fault(one.name, error, one.path, one.line)
    return faults


def _with_advice(fault: Fault, existing: Mapping[str, ObjectRow]) -> Fault:
    """Returns a fault, with what to do if what it misses is there, but was made in a session."""
    missing = _MISSING.search(fault.error.message)
    row = None if missing is None else existing.get(missing[1])
    if row is None or FROM_FILES in row.tags:
        return fault
    hint = (
        f'The {row.kind} "{row.name}" was made in a session, and files read what files define. Write its definition in '
        f"one, too, which SHOW CREATE {row.kind.upper()} shows: what it holds is kept."
    )
    error = BadProjectFile(fault.error.message, detail=fault.error.detail, hint=hint, position=fault.error.position)
    return replace(fault, error=error)


def _read_by(row: ObjectRow, references: StandingReferences) -> list[GlobalId]:
    """Returns what an object reads, and the tables that it refers to."""
    return [*row.dependencies.values(), *(parent.id for _, parent in references.of(row))]


def _inputs(
    ids: Collection[GlobalId], rows: Mapping[GlobalId, ObjectRow], references: StandingReferences
) -> set[GlobalId]:
    """Returns what these read or refer to, directly or not, and themselves."""
    reached: set[GlobalId] = set()
    pending = list(ids)
    while pending:
        id = pending.pop()
        if id in rows and id not in reached:
            reached.add(id)
            pending += _read_by(rows[id], references)
    return reached


def _difference(one: ProjectObject, row: ObjectRow, kept: Mapping[str, GlobalId], fresh: Collection[str]) -> str | None:
    """Returns how a definition differs from what the catalog holds, as a clause; None if it does not."""
    changed = sorted(
        name
        for name, id in one.definition.dependencies.items()
        if name_of_file_id(id) in fresh or row.dependencies.get(name) != kept.get(name_of_file_id(id), id)
    )
    return _own_difference(one, row) or (f"it reads {', '.join(changed)}" if changed else None)


def _own_difference(one: ProjectObject, row: ObjectRow) -> str | None:
    """Returns how a definition differs from what the catalog holds, whatever became of what it reads."""
    definition = one.definition
    if row.kind != definition.kind:
        return f"it was a {row.kind} and is a {definition.kind}"
    if not _is_same(one, row):
        return "its definition changed"
    if row.timeline != definition.timeline:
        return f"its timeline was {row.timeline} and is {definition.timeline}"
    return None


def _is_same(one: ProjectObject, row: ObjectRow) -> bool:
    """Returns whether the catalog's text of an object says what the file's does."""
    text, stored = one.definition.text, row.sql
    if stored == text or same_tokens(stored, text):
        return True
    if one.definition.kind != row.kind:
        return False
    try:
        stored = named_as(stored, written(one.definition.schema, one.name))
    except Error:  # what the catalog has is damaged
        return False
    return same_tokens(stored, named_as(text, written(one.definition.schema, one.name))) or (
        (row.kind == "table" and same_table(stored, text))
        or (row.kind == "source" and row.version > 0 and same_source(stored, text))
    )


def _readers_outside(id: GlobalId, rows: Sequence[ObjectRow], inside: Collection[str]) -> tuple[str, ...]:
    """Returns the names of what reads an object, directly or not, and was made in sessions; indexes go with it."""
    reached = {id}
    for row in rows:  # in order of creation, so readers come after what they read
        if not reached.isdisjoint(row.dependencies.values()):
            reached.add(row.id)
    found = (row.name for row in rows if row.id in reached and row.id != id and row.kind != "index")
    return tuple(sorted(name for name in found if name is not None and name not in inside))


def _irreplaceable(one: ProjectObject, row: ObjectRow, rows: Iterable[ObjectRow]) -> BadProjectFile | None:
    """Returns why the object in the catalog, which holds `rows`, cannot become what a file says; None if it can."""
    kinds = {row.kind, one.definition.kind}
    if len(kinds) > 1 and not kinds <= _COMPUTED:
        return BadProjectFile(
            f'{one.path}:{one.line}: "{one.name}" is a {row.kind} in the catalog, and a {one.definition.kind} here',
            hint=f"Choose another name, or drop it first: DROP {row.kind.upper()} {one.name}.",
        )
    is_same = row.name == one.name and _labels(row) == _labels(one.definition) if row.kind == "type" else True
    if not is_same and (row.name != one.name or not _alterations(one, row)):
        tables = sorted(
            str(each.name) for each in rows if each.kind == "table" and row.id in each.dependencies.values()
        )
        if tables:
            return BadProjectFile(
                f'{one.path}:{one.line}: type "{row.name}" cannot change, because tables have columns of it',
                detail=f"Its values are {_listed(_labels(row))}, and their rows exist nowhere else: "
                f"{', '.join(tables)}.",
                hint="Values may be added anywhere among those that it has, and ALTER TYPE ... RENAME VALUE in a "
                "session gives one another label. Else change it back, and define a type of another name beside it; "
                "add a column of that to the table, and UPDATE it by old::text::new.",
            )
    if row.kind == "table" and _own_difference(one, row) is not None and not _alterations(one, row):
        return BadProjectFile(
            f'{one.path}:{one.line}: the definition of table "{one.name}" changed',
            detail="Its rows exist nowhere else, so it is not replaced; columns are added behind those that it has, "
            "and defaults and constraints change.",
            hint="Say what becomes of a column in a session, with ALTER TABLE ... DROP or RENAME COLUMN, or change it "
            "back.",
        )
    return None


def _labels(type_: ObjectRow | Definition) -> tuple[str, ...]:
    """Returns the labels of a type's values."""
    enumeration = type_.relation_type.columns[0].type.enumeration
    return () if enumeration is None else enumeration.labels


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(f"'{one}'" for one in labels)


def _check_droppable(row: ObjectRow, readers: Sequence[str]) -> None:
    if readers:
        raise OrphanStillRead(
            f'{row.kind} "{called(row)}" is not dropped: what sessions made reads it',
            detail=f"No file defines it any more; it is read by {', '.join(readers)}.",
            hint=f'Drop those first, or everything at once: mz-dagster sql -c "DROP {row.kind.upper()} {called(row)} '
            'CASCADE". Without --drop it is left alone.',
        )


def _check_unreferenced(
    going: Collection[GlobalId], references: StandingReferences, ending: Collection[tuple[GlobalId, str]]
) -> None:
    """Returns if no table that stays refers to one that goes; `ending` are the foreign keys that are dropped before."""
    links = [one for one in references.to(going) if one[0].id not in going and (one[0].id, one[1].name) not in ending]
    for child, key, parent in links[:1]:
        others = [f"constraint {one.name} on table {called(by)}" for by, one, to in links if to.id == parent.id]
        raise OrphanStillRead(
            f'table "{called(parent)}" is not dropped: table "{called(child)}" refers to it',
            detail=f"No file defines it any more; what depends on it: {', '.join(others)}.",
            hint=(
                "Take it out of its file, too."
                if key.is_of_files
                else f"Drop that first: ALTER TABLE {called(child)} DROP CONSTRAINT {key.name}."
            )
            + " Without --drop it is left alone.",
        )
