"""What a project's SQL files define, before any of it is created.

Reads every `*.sql` file below `assets/`, parses it, and binds its definitions against each other, depth first, so
that files may be in any order. Needs no Spark, and a catalog or a table only for sources that leave their columns to it
(`stated_columns`): Dagster loads its assets from here, and `apply` creates them.

What a person is to know of an object comes from the same files: the comment directly above its statement is its
description, with annotations such as `@owner` in it, of which each `@check` creates a check; the comment beside a
column of a source or table is the column's; and COMMENT ON says both in SQL, with the last word.

Only definitions may stand in a project's files, and queries in those of `assets/checks/`, each of which is a check that
is called as its file; what changes data (INSERT, DROP, ...) belongs to a session.

One object's fault is its own, and that of what reads it: `load_project` returns all others beside the faults. Of a file
with an error of syntax, each statement up to its semicolon stands or falls alone; which objects a wrong one defines is
told from its first words. What is behind a quote that is not closed cannot even be split, and hides whatever it may
define (`Fault.hides`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from mz_dagster.adapter import introspection
from mz_dagster.adapter.annotations import Annotations, BadAnnotation, parse_annotations
from mz_dagster.adapter.defined_names import defined_names
from mz_dagster.adapter.definition import Definable, Definition, define, name_of
from mz_dagster.adapter.definition_cache import DefinitionCache, parts_of_query
from mz_dagster.adapter.file_ids import file_id, name_of_file_id
from mz_dagster.adapter.file_references import FileReference, bound_reference
from mz_dagster.adapter.origins import source_of
from mz_dagster.adapter.plan_limit import ensure_within_limit
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.reference_columns import check_can_be_referenced
from mz_dagster.adapter.stated_columns import StatedColumns
from mz_dagster.budget import Budget, budget
from mz_dagster.catalog import UnknownTimeline
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.disk import FileState, file_state
from mz_dagster.errors import Error, ProgrammingError, line_and_column
from mz_dagster.plan.plan_size import PlanTooLarge
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.types import RelationType
from mz_dagster.sql import (
    Comment,
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateSource,
    CreateTable,
    CreateTableAs,
    CreateView,
    Name,
    Select,
    Statement,
    parse,
)
from mz_dagster.sql.check_statement import CheckRule
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.declared_keys import ForeignKey
from mz_dagster.sql.errors import InvalidSchemaName, UndefinedTable, suggestion
from mz_dagster.sql.lexer import split_around_errors, tokens_of
from mz_dagster.sql.schemas import BUILT_IN, PUBLIC, key_of, schema_key
from mz_dagster.sql.table_text import with_foreign_keys, without_foreign_keys

#: The rest of a line from a column's name on, up to and with its comment; a quoted name may hold anything.
_BESIDE = re.compile(r'(?:[^"\n-]|"[^"\n]*"|-(?!-))*--+[ \t]*(\S[^\n]*)')


class BadProjectFile(ProgrammingError):
    """A definition in a project's files that cannot be used, with its file and line."""


#: So many faults, or names, a line tells.
_TOLD = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something in a project's files cannot be used.

    Attributes:
        name: The object that is not defined thereby; None if it is none, or nobody can tell which.
        error: What is wrong, with file and line.
        path: The file.
        line: The line on which its statement starts, counted from 1.
        waits_for: The object whose fault it is that this one, which reads it, cannot be used; None if it is its own.
        hides: Whether what is at fault may define more objects than those that are named.
        about: The table that goes on without what is at fault, a foreign key of it; None of all else.
    """

    name: str | None
    error: BadProjectFile
    path: Path
    line: int
    waits_for: str | None = None
    hides: bool = False
    about: str | None = None

    def of_reader(self, name: str, path: Path, line: int) -> Fault:
        """Returns the fault of an object that reads the one of this fault."""
        if self.waits_for is not None:
            return replace(self, name=name, path=path, line=line)
        cause = self.name or str(self.path)
        message = f'waits for "{cause}": {self.error.message}'
        error = BadProjectFile(message, detail=self.error.detail, hint=self.error.hint)
        return Fault(name, error, path, line, cause)


def some_of(told: Sequence[str], separator: str) -> str:
    """Returns the first of what is to be told, and how many more there are.

    Example:
        >>> some_of("abcdefg", ", ")
        'a, b, c, d, e, and 2 more'
    """
    more = len(told) - _TOLD
    return separator.join((*told[:_TOLD], *((f"and {more} more",) if more > 0 else ())))


def by_cause(faults: Sequence[Fault]) -> Iterator[tuple[Fault, tuple[str, ...]]]:
    """Yields each fault that is an object's or a file's own, with the names of what waits for it; then what is left.

    What is wrong with several in the same words, such as a cycle, is yielded once.
    """
    waiting: dict[str, list[Fault]] = {}
    for one in faults:
        if one.waits_for is not None:
            waiting.setdefault(one.waits_for, []).append(one)
    own: dict[str, tuple[Fault, list[str]]] = {}
    for one in faults:
        if one.waits_for is None:
            _, names = own.setdefault(str(one.error), (one, []))
            names += (str(each.name) for each in waiting.pop(one.name or str(one.path), ()))
    yield from ((one, tuple(dict.fromkeys(names))) for one, names in own.values())
    yield from ((one, ()) for left in waiting.values() for one in left)


@dataclass(frozen=True, slots=True)
class ProjectObject:
    """One object that a project's files define; its name is what the catalog calls it (`sql.schemas`).

    Attributes:
        definition: The bound definition; its GlobalIds are the objects' names, since nothing is created yet.
        path: The file.
        line: The line on which its statement starts, counted from 1.
        comment: From `COMMENT ON`, or the comment lines directly above the statement; None if there are none.
        annotations: From the same lines.
        column_comments: By column: from `COMMENT ON COLUMN`, or the comment beside it in a source or table; of an index
            those of what it is on.
        views: The plain views in its query, which are part of it, nested ones included.
        fault: Why this is not what the files say, but what was applied last; None if it is what they say.
        uncreatable: Why it is not created, if it is not there yet; None if nothing forbids it.
        decided_columns: Those that a source gets because its table has them now; None if they are stated, or were
            decided before.
        references: A table's foreign keys, which are no part of its definition.
    """

    definition: Definition
    path: Path
    line: int
    comment: str | None
    annotations: Annotations = field(default_factory=Annotations)
    column_comments: Mapping[str, str] = field(default_factory=dict)
    views: tuple[ProjectObject, ...] = ()
    fault: BadProjectFile | None = None
    uncreatable: BadProjectFile | None = None
    decided_columns: str | None = None
    references: tuple[FileReference, ...] = ()

    @property
    def name(self) -> str:
        """The object's name."""
        return self.definition.name

    @property
    def sql(self) -> str:
        """The SQL that defines it, with the foreign keys of a table."""
        return with_foreign_keys(self.definition.text, [one.text for one in self.references if one.error is None])

    @property
    def version(self) -> str:
        """A hash of the SQL that defines it, that of the plain views in its query included."""
        texts = (self.definition.text, *(f"{one.name}\0{one.definition.text}" for one in self.views))
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]

    @property
    def depends(self) -> tuple[str, ...]:
        """The names of the project's objects that it reads, sorted."""
        read = {*self.definition.dependencies.values(), *self.definition.indexes}
        return tuple(sorted(map(name_of_file_id, read)))


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """What a project's files define.

    Attributes:
        objects: What can be used, each after those it reads.
        faults: Why the rest cannot, those that wait for others last.
        altered: What tables and types that were altered in the catalog stand for in the objects, by their names.
    """

    objects: tuple[ProjectObject, ...]
    faults: tuple[Fault, ...] = ()
    altered: Mapping[str, Item] = field(default_factory=dict)


def load_project(project: Project, proposed: Mapping[Path, str] | None = None) -> ProjectFiles:
    """Returns everything that the project's files define, and what is wrong with some of it.

    Wrong is what cannot be read, does not parse or bind, shares its name with another, is part of a cycle, or has a
    comment with an annotation that is not valid or on what does not exist; and what reads any of that.

    Args:
        project: The project.
        proposed: The texts of files as they are to be, by their paths, which are taken as if they were.
    """
    global _loaded_last
    if proposed:
        return _Loader(project).load(proposed)
    files = file_states(project)
    known = _loaded_last
    if known is not None and known.follows_from(project, files):
        return known.found
    loader = _Loader(project)
    found = loader.load({})
    is_by_files_alone = not found.faults and not loader.asked_elsewhere
    if is_by_files_alone and are_settled(files) and file_states(project) == files:
        _loaded_last = _Loaded(project, files, budget(), found)
    return found


def file_states(project: Project) -> dict[Path, FileState]:
    """Returns what the project's files are known by, of those that are there."""
    found = ((path, file_state(path)) for path in project.assets.rglob("*.sql"))
    return {path: state for path, state in found if state is not None}


def are_settled(files: Mapping[Path, FileState]) -> bool:
    """Returns whether what changes in files from now on shows in what they are known by."""
    now_ms = SYSTEM_CLOCK.now_ms()
    return all(one.is_settled(now_ms) for one in files.values())


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What was found in a project's files, and all that it follows from."""

    project: Project
    files: Mapping[Path, FileState]
    budget: Budget
    found: ProjectFiles

    def follows_from(self, project: Project, files: Mapping[Path, FileState]) -> bool:
        return self.files == files and self.project == project and self.budget == budget()


#: What this process has loaded last: it is loaded by each of several that use it, and again at each use of a resource.
_loaded_last: _Loaded | None = None


_S = TypeVar("_S", bound=Statement)


@dataclass(frozen=True, slots=True)
class _Found(Generic[_S]):
    """A statement in a file.

    Attributes:
        text: The file's, with what was written into it.
        head: What was written before a query, to make it a statement.
        is_made: Whether the whole statement was made, of what stands on its line.
    """

    statement: _S
    path: Path
    text: str
    head: str = ""
    is_made: bool = False

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.statement.offset) + 1

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def placed(self, error: Error, name: str) -> BadProjectFile:
        """Returns an error of the object that the statement defines, with its place in the file."""
        if self.is_made:
            return BadProjectFile(f'{self.place}: {error.message} (in "{name}")', detail=error.detail, hint=error.hint)
        return _placed(error, self.path, self.text, name, self.head)


class _DependsOnFault(ProgrammingError):
    """Ends the binding of what reads an object with a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.error.message)
        self.fault = fault


class _Loader:
    """Loads a project's files.

    Attributes:
        asked_elsewhere: Whether what was found follows from more than the files and the project's settings.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._kept = DefinitionCache(project.state, "files")
        self._columns = StatedColumns(project)
        self._schemas: dict[str, _Found[CreateSchema]] = {}
        self._found: dict[str, _Found[Definable]] = {}
        self._comments: list[_Found[Comment]] = []
        self._loaded: dict[str, ProjectObject] = {}
        self._items: dict[str, Item] = {}
        self._loading: list[str] = []
        self._indexed: set[str] = set()
        self._faults: dict[str, Fault] = {}
        self._nameless: list[Fault] = []
        self.asked_elsewhere = False

    def load(self, proposed: Mapping[Path, str]) -> ProjectFiles:
        for path in sorted(set(self._project.assets.rglob("*.sql")) - proposed.keys()):
            self._read(path)
        for path, text in sorted(proposed.items()):
            self._take(path, text)
        for name, schema in self._schemas.items():
            definition = Definition("schema", name, schema.statement.text, RelationType(()), None, {})
            self._loaded[name] = ProjectObject(definition, schema.path, schema.line, None)
        for one in self._comments:
            if (name := _key(one.statement.name)) not in self._found:
                error = BadProjectFile(
                    f'{one.place}: COMMENT ON "{name}", which no file of the project defines',
                    hint=suggestion(name, self._found) or "Define it, or remove the comment.",
                )
                self._note(Fault(name, error, one.path, one.line))
        for name in self._found:
            self._object(name)
        for name, found in self._found.items():
            if name in self._loaded and isinstance(found.statement, CreateTable):
                self._loaded[name] = self._with_references(self._loaded[name], found, found.statement.references)
        faults = (*self._nameless, *self._faults.values())
        return ProjectFiles(tuple(self._loaded.values()), tuple(sorted(faults, key=lambda one: bool(one.waits_for))))

    def _with_references(
        self, one: ProjectObject, found: _Found[Definable], keys: Sequence[ForeignKey]
    ) -> ProjectObject:
        """Returns a table with its foreign keys, once all tables are loaded, and notes what is wrong with these."""
        made = []
        for key in keys:
            line = _line(found.text, key.offset)
            try:
                made.append(bound_reference(key, line, one.definition, self._referenced(key, one.definition)))
            except Error as error:
                if isinstance(error, _DependsOnFault):
                    error = ProgrammingError(
                        f'foreign key "{key.name}" waits for "{Name(key.table)}": {error.message}',
                        detail=error.fault.error.detail,
                        hint=error.fault.error.hint,
                        position=key.offset + 1,
                    )
                bad = found.placed(error, one.name)
                self._note(Fault(None, bad, found.path, line, about=one.name))
                made.append(FileReference(key, "", line, bad))
        return replace(one, references=tuple(made))

    def _referenced(self, key: ForeignKey, child: Definition) -> Definition:
        """Returns the other table of a foreign key."""
        item = self.resolve(key.table)
        if item is None:
            raise UndefinedTable.named(".".join(key.table), self.names(), key.offset + 1)
        check_can_be_referenced(key, item.kind, (child.timeline, item.timeline))
        return self._loaded[name_of_file_id(item.id)].definition

    def _note(self, fault: Fault) -> None:
        """Notes a fault; an object's first one counts."""
        if fault.name is None:
            self._nameless.append(fault)
        else:
            self._faults.setdefault(fault.name, fault)

    def _read(self, path: Path) -> None:
        try:
            text = path.read_bytes().decode("utf-8-sig")  # each end of a line as it is: it may be one in a literal
        except (OSError, UnicodeDecodeError) as error:
            bad = BadProjectFile(f'cannot read "{path}": {error}', hint="Make it a readable UTF-8 file.")
            self._note(Fault(None, bad, path, 1, hides=True))
            return
        self._take(path, text)

    def _take(self, path: Path, text: str) -> None:
        """Takes the definitions in the text of a file."""
        for statement in self._statements(path, text):
            if isinstance(statement, Comment):
                self._comments.append(_Found(statement, path, text))
            elif isinstance(statement, CreateSchema):
                self._add_schema(_Found(statement, path, text))
            elif isinstance(statement, Definable) and _is_temporary(statement):
                bad = BadProjectFile(
                    f"{path}:{_line(text, statement.offset)}: a temporary object is a session's own",
                    hint="Define it without TEMPORARY.",
                )
                self._note(Fault(None, bad, path, _line(text, statement.offset)))
            elif isinstance(statement, Definable):
                is_made = isinstance(statement, CreateSource) and not statement.columns
                found = _Found(statement, path, text, is_made=is_made)
                self._add(found)
                self._add_rules(found)
            elif isinstance(statement, Select) and self._project.assets / "checks" in path.parents:
                self._add_query(_Found(statement, path, text))
            else:
                line = _line(text, statement.offset)
                bad = BadProjectFile(
                    f"{path}:{line}: only definitions may stand in a project's files",
                    hint="Define what a query returns as a MATERIALIZED VIEW."
                    if isinstance(statement, CreateTableAs)
                    else 'Run other statements in a session: "mz-dagster sql".',
                )
                self._note(Fault(None, bad, path, line))

    def _statements(self, path: Path, text: str) -> Sequence[Statement]:
        """Returns the statements of a file that parse, and notes the others' faults."""
        try:
            return parse(text)
        except Error as error:
            whole = _placed(error, path, text)
        fragments, is_whole = split_around_errors(text)
        if not is_whole:
            self._note(Fault(None, whole, path, 1, hides=True))
        found: list[Statement] = []
        for one in fragments:
            try:
                found += parse(" " * one.start + text[one.start : one.end])
            except Error as error:
                for name in defined_names(one.tokens) or [None]:
                    bad = _placed(error, path, text, name)
                    self._note(Fault(name, bad, path, _line(text, one.tokens[0].start), hides=name is None))
        return found

    def _add_schema(self, found: _Found[CreateSchema]) -> None:
        """Takes a schema, which several files may create."""
        name = found.statement.name.last
        if name in BUILT_IN or name.startswith("pg_"):
            error = BadProjectFile(f'{found.place}: the schema "{name}" is not a user\'s', hint="Choose another name.")
            self._note(Fault(None, error, found.path, found.line))
        else:
            self._schemas.setdefault(schema_key(name), found)

    def _add(self, found: _Found[Definable]) -> None:
        schema = _schema(found.statement)
        name = key_of(schema, name_of(found.statement))
        first = self._found.setdefault(name, found)
        if first is not found:
            error = BadProjectFile(
                f'two objects are called "{name}"',
                detail=f"They are defined at {first.place} and {found.place}.",
                hint="Rename one of them.",
            )
            self._note(Fault(name, error, found.path, found.line))

    def _add_rules(self, found: _Found[Definable]) -> None:
        """Takes the checks that are annotations of an object, as statements on the lines on which they stand."""
        if not isinstance(found.statement, _CHECKABLE):
            return
        with suppress(BadAnnotation):  # it is the object's own fault, which its loading notes
            for line, rule in _rules_above(found):
                if rule.kind is not None:
                    schema = _schema(found.statement)
                    text = rule.statement(None if schema == PUBLIC else schema, found.statement.name.last)
                    self._add_made(found.path, "\n" * (line - 1) + text, line)

    def _add_query(self, found: _Found[Select]) -> None:
        """Takes the check that is a query in a file."""
        statement = found.statement
        rule = CheckRule(None)
        with suppress(BadAnnotation):
            rule = next((one for _, one in _rules_above(found)), rule)
        head = f"{rule.head(quoted(rule.name or found.path.stem), rule.on)} AS "
        before = found.text[: statement.offset]
        self._add_made(found.path, f"{before}{head}{statement.text}", found.line, head)

    def _add_made(self, path: Path, text: str, line: int, head: str = "") -> None:
        """Takes a check that is created by a statement made for it, which is the last of a text."""
        try:
            *_, statement = parse(text)
        except Error as error:
            place = BadProjectFile(f"{path}:{line}: {error.message}", detail=error.detail, hint=error.hint)
            self._note(Fault(None, place, path, line))
            return
        assert isinstance(statement, CreateCheck)
        self._add(_Found(statement, path, text, head, is_made=not head))

    def _object(self, name: str) -> ProjectObject | None:
        """Returns an object, loading it and what it reads first; None if it has a fault, which is noted."""
        if name in self._faults:
            return None
        if name not in self._loaded:
            found = self._found[name]
            try:
                made = self._load(name, found)
            except _DependsOnFault as waits:
                self._note(waits.fault.of_reader(name, found.path, found.line))
            except Error as error:
                bad = error if isinstance(error, BadProjectFile) else found.placed(error, name)
                self._note(Fault(name, bad, found.path, found.line))
                for other in defined_names(tokens_of(found.statement.text)):  # a semicolon may be missing
                    if other not in self._found:
                        self._note(Fault(other, bad, found.path, found.line, hides=other is None))
            else:
                self._loaded[name] = made
            finally:
                if isinstance(found.statement, CreateIndex):
                    self._indexed.add(_key(found.statement.on))
        return self._loaded.get(name)

    def _load(self, name: str, found: _Found[Definable]) -> ProjectObject:
        if name in self._loading:
            raise self._cycle(self._loading[self._loading.index(name) :], found)
        self._loading.append(name)
        try:
            statement, timeline = found.statement, self._project.timeline
            decided: str | None = None
            if isinstance(statement, CreateSource) and not statement.columns:
                statement, decided = self._stated(name, found, statement)
                self.asked_elsewhere = True
            elif isinstance(statement, CreateTable):
                statement = without_foreign_keys(statement)
            schema = _schema(statement)
            if schema != PUBLIC and schema_key(schema) not in self._schemas:
                raise InvalidSchemaName(
                    f'schema "{schema}" does not exist',
                    hint=f"Write CREATE SCHEMA {quoted(schema)}; into a file of the project.",
                    position=_named(statement).offset + 1,
                )
            indexed = isinstance(statement, CreateIndex) and _key(statement.on) in self._indexed
            parts: tuple[object, ...] = ("files", statement.text, statement.offset, timeline, indexed)
            if isinstance(statement, CreateView | CreateMaterializedView | CreateIndex | CreateCheck):
                parts = parts_of_query(statement.text, timeline, name, is_copy=indexed)
            definition = self._kept.get(
                parts,
                self,
                lambda resolver: define(statement, resolver, default_timeline=timeline, name=name, indexed=indexed),
            ).in_schema(schema)
        finally:
            self._loading.pop()
        if definition.origin is not None:
            source_of(definition, self._project)
        stored = isinstance(found.statement, CreateSource | CreateTable)
        if stored and definition.timeline not in self._project.timelines:
            raise UnknownTimeline(str(definition.timeline), tuple(self._project.timelines))
        annotations, comment = _comment_above(found)
        _check_rules(found, annotations)
        for one in self._comments:
            if _key(one.statement.name) == name:
                _check_column(one, definition)
                comment = one.statement.comment if one.statement.column is None else comment
        return ProjectObject(
            definition,
            found.path,
            found.line,
            comment,
            annotations,
            self._column_comments(definition, found),
            self._views(definition),
            uncreatable=self._uncreatable(definition, found),
            decided_columns=decided,
        )

    def _stated(self, name: str, found: _Found[Definable], statement: CreateSource) -> tuple[CreateSource, str | None]:
        """Returns a source's statement with the columns that its table has, or had when it was created."""
        before: str | None = None
        with suppress(BadAnnotation, BadProjectFile):  # told by whoever reads all of the comment
            before = _comment_above(found)[0].renamed_from
        return self._columns.of(statement, (name, *((before,) if before else ())), self)

    def _uncreatable(self, definition: Definition, found: _Found[Definable]) -> BadProjectFile | None:
        try:
            ensure_within_limit(definition, self._project)
        except PlanTooLarge as error:
            return _placed(error, found.path, found.text, definition.name)
        return None

    def _cycle(self, names: Sequence[str], found: _Found[Definable]) -> BadProjectFile:
        """Returns the fault of a cycle, noted of each of its objects."""
        error = BadProjectFile(
            "definitions depend on each other in a cycle: " + " reads ".join(f'"{one}"' for one in (*names, names[0])),
            detail=f"The cycle goes through {found.place}.",
            hint="Break it: let one of them read the sources of the others.",
        )
        for name in names:
            self._note(Fault(name, error, self._found[name].path, self._found[name].line))
        return error

    def _comments_on(self, name: str) -> Iterator[Comment]:
        return (one.statement for one in self._comments if _key(one.statement.name) == name)

    def _column_comments(self, definition: Definition, found: _Found[Definable]) -> Mapping[str, str]:
        if definition.on is not None:
            return self._loaded[name_of_file_id(definition.on.id)].column_comments
        said = {one.column: one.comment for one in self._comments_on(definition.name) if one.column is not None}
        comments = {**_comments_beside(found), **said}
        return {column: comment for column, comment in comments.items() if comment is not None}

    def _views(self, definition: Definition) -> tuple[ProjectObject, ...]:
        """Returns the plain views in a definition's query."""
        names = sorted(map(name_of_file_id, definition.dependencies.values()))
        read = (self._loaded[one] for one in names if one in self._loaded)
        views = {one.name: one for view in read if view.definition.kind == "view" for one in (view, *view.views)}
        return tuple(views.values())

    # ---- the resolver by which definitions see each other

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name in a definition stands for, loading its definition first."""
        key = _key(Name(name))
        there = self._found.get(key)
        # `"a.b"` and `a.b` are two objects, whatever the catalog calls them.
        is_meant = len(name) < 3 and (there is None or _schema(there.statement) == (*name[:-1], PUBLIC)[0])
        if is_meant and key in self._found.keys() | self._faults.keys():
            one = self._object(key)
            if one is None:
                raise _DependsOnFault(self._faults[key])
            return self._items.setdefault(key, one.definition.item(file_id(key)))
        relation = introspection.find(name)
        if relation is None and (hiding := next((one for one in self._nameless if one.hides), None)):
            raise _DependsOnFault(hiding)  # what cannot be read may define it
        return None if relation is None else relation.item()

    def names(self) -> tuple[str, ...]:
        """Returns all names that the files define."""
        return tuple(self._found)


def _key(name: Name) -> str:
    """Returns what the catalog calls the object of a name; one without a schema is of `public`."""
    return key_of(name.parts[-2] if len(name.parts) > 1 else PUBLIC, name.last)


def _schema(statement: Definable) -> str:
    """Returns the schema in which an object is defined; an index that says none is in that of what it is on."""
    named = _named(statement)
    return named.parts[-2] if len(named.parts) > 1 else PUBLIC


def _named(statement: Definable) -> Name:
    """Returns the name by which a definition says the schema of its object."""
    if isinstance(statement, CreateIndex):
        return statement.on if statement.name is None or len(statement.name.parts) == 1 else statement.name
    return statement.name


#: What rules are written above.
_CHECKABLE = (CreateSource, CreateTable, CreateView, CreateMaterializedView)


def _rules_above(found: _Found[Any]) -> list[tuple[int, CheckRule]]:
    """Returns the rules directly above a statement, with their lines.

    Raises:
        BadAnnotation: One of the annotations is wrong.
    """
    lines = _lines_directly_above(found)
    told = [parse_annotations([line])[0].checks for line in lines]
    first = found.line - len(lines)
    return [(first + n, rule) for n, rules in enumerate(told) for rule in rules]


def _check_rules(found: _Found[Definable], annotations: Annotations) -> None:
    """Refuses rules where they mean nothing."""
    for rule in annotations.checks:
        is_of_query = isinstance(found.statement, CreateCheck)
        if (rule.kind is None) is is_of_query and (is_of_query or isinstance(found.statement, _CHECKABLE)):
            continue
        raise BadProjectFile(
            f"{found.place}: @check {rule.kind or 'on'} does not stand here",
            detail="Rules such as unique(order_id) are written above sources, tables and views; "
            "@check on ... above a query in assets/checks/.",
            hint="Move it there.",
        )


def _is_temporary(statement: Definable) -> bool:
    return isinstance(statement, CreateTable | CreateView | CreateMaterializedView) and statement.temporary


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _check_column(said: _Found[Comment], definition: Definition) -> None:
    """Refuses a comment on a column that its object does not have; an index has none of its own."""
    column, names = said.statement.column, definition.relation_type.names
    if column is None or (column in names and definition.on is None):
        return
    if definition.on is not None:
        hint = f'Comment on the column of "{definition.on.called}".'
    else:
        hint = suggestion(column, names) or f"Its columns are {', '.join(names)}."
    raise BadProjectFile(f'{said.place}: column "{column}" of "{definition.name}" does not exist', hint=hint)


def _placed(error: Error, path: Path, text: str, name: str | None = None, head: str = "") -> BadProjectFile:
    """Returns the error with its position as file, line and column, not counting a head that no file has."""
    place = str(path)
    if error.position is not None:
        start = text.find(head) if head else 0
        at = error.position - 1
        at = max(start, at - len(head)) if at >= start else at
        line, column = line_and_column(text[:start] + text[start + len(head) :], at)
        place = f"{path}:{line}:{column}"
    about = f' (in "{name}")' if name else ""
    return BadProjectFile(f"{place}: {error.message}{about}", detail=error.detail, hint=error.hint)


def _comment_above(found: _Found[Definable]) -> tuple[Annotations, str | None]:
    """Returns what the `--` lines that stand directly above a statement say."""
    lines = _lines_directly_above(found)
    try:
        return parse_annotations(lines)
    except BadAnnotation as error:
        place = f"{found.path}:{found.line - len(lines) + error.number}"
        raise BadProjectFile(f"{place}: {error.message}", hint=error.hint) from error


def _lines_directly_above(found: _Found[Any]) -> list[str]:
    """Returns the `--` lines that stand directly above a statement, without that."""
    above = found.text[: found.statement.offset].rstrip(" \t").removesuffix("\n").split("\n")
    return list(_lines_above(above))[::-1]


def _comments_beside(found: _Found[Definable]) -> Mapping[str, str]:
    """Returns, by column, the `--` comments that end the lines on which the columns of a source or table stand."""
    if not isinstance(found.statement, CreateSource | CreateTable):
        return {}
    matches = ((column.name, _BESIDE.match(found.text, column.offset)) for column in found.statement.columns)
    # Of several columns on a line the comment is the last one's.
    last = {match.start(1): (name, match[1].strip()) for name, match in matches if match is not None}
    return dict(last.values())


def _lines_above(lines: list[str]) -> Iterator[str]:
    for line in reversed(lines):
        stripped = line.strip()
        if not stripped.startswith("--"):
            return
        yield stripped.removeprefix("--").strip()


def by_name(objects: tuple[ProjectObject, ...]) -> Mapping[str, ProjectObject]:
    """Returns the objects by their names."""
    return {one.name: one for one in objects}
