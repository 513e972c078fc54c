"""What a project's SQL files define, before any of it is created.

Reads every `*.sql` file below `assets/`, parses it, and binds its definitions against each other, depth first, so
that files may be in any order. Needs neither catalog nor Spark: Dagster loads its assets from here, and `apply`
creates them.

What a person is to know of an object comes from the same files: the comment directly above its statement is its
description, with annotations such as `@owner` in it; the comment beside a column of a source or table is the column's;
and COMMENT ON says both in SQL, with the last word.

Only definitions may stand in a project's files; what changes data (INSERT, DROP, ...) belongs to a session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from mz_dagster.adapter import introspection
from mz_dagster.adapter.annotations import Annotations, BadAnnotation, parse_annotations
from mz_dagster.adapter.definition import Definable, Definition, define, name_of
from mz_dagster.adapter.project import Project
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item
from mz_dagster.sql import Comment, CreateIndex, CreateSource, CreateTable, Statement, parse
from mz_dagster.sql.errors import suggestion

#: The rest of a line from a column's name on, up to and with its comment; a quoted name may hold anything.
_BESIDE = re.compile(r'(?:[^"\n-]|"[^"\n]*"|-(?!-))*--+[ \t]*(\S[^\n]*)')


class BadProjectFile(ProgrammingError):
    """Reports a definition in a project's files that cannot be used, with its file and line."""


@dataclass(frozen=True, slots=True)
class ProjectObject:
    """Is one object that a project's files define.

    Attributes:
        definition: The bound definition; its GlobalIds are the objects' names, since nothing is created yet.
        path: The file.
        line: The line on which its statement starts, counted from 1.
        comment: From `COMMENT ON`, or the comment lines directly above the statement; None if there are none.
        annotations: From the same lines.
        column_comments: By column: from `COMMENT ON COLUMN`, or the comment beside it in a source or table; of an index
            those of what it is on.
        views: The plain views in its query, which are part of it, nested ones included.
    """

    definition: Definition
    path: Path
    line: int
    comment: str | None
    annotations: Annotations = field(default_factory=Annotations)
    column_comments: Mapping[str, str] = field(default_factory=dict)
    views: tuple[ProjectObject, ...] = ()

    @property
    def name(self) -> str:
        """The object's name."""
        return self.definition.name

    @property
    def version(self) -> str:
        """A hash of the SQL that defines it, that of the plain views in its query included."""
        texts = (self.definition.text, *(f"{one.name}\0{one.definition.text}" for one in self.views))
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]

    @property
    def depends(self) -> tuple[str, ...]:
        """The names of the project's objects that it reads, sorted."""
        return tuple(sorted(self.definition.dependencies.values()))


def load_objects(project: Project) -> tuple[ProjectObject, ...]:
    """Returns everything that the project's files define, each object after those it reads.

    Raises:
        BadProjectFile: A file cannot be read, does not parse or bind, two objects bear one name, definitions depend
            on each other in a cycle, or a comment has an annotation that is not valid or is on what does not exist.
            The error names file and line.
    """
    return _Loader(project).load()


_S = TypeVar("_S", bound=Statement)


@dataclass(frozen=True, slots=True)
class _Found(Generic[_S]):
    statement: _S
    path: Path
    text: str

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.statement.offset) + 1

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class _Loader:
    def __init__(self, project: Project) -> None:
        self._project = project
        self._found: dict[str, _Found[Definable]] = {}
        self._comments: list[_Found[Comment]] = []
        self._loaded: dict[str, ProjectObject] = {}
        self._loading: list[str] = []
        self._indexed: set[str] = set()

    def load(self) -> tuple[ProjectObject, ...]:
        for path in sorted(self._project.assets.rglob("*.sql")):
            self._read(path)
        for one in self._comments:
            if (name := one.statement.name.last) not in self._found:
                raise BadProjectFile(
                    f'{one.place}: COMMENT ON "{name}", which no file of the project defines',
                    hint=suggestion(name, self._found) or "Define it, or remove the comment.",
                )
        for name in self._found:
            self._object(name)
        for one in self._comments:
            self._check_column(one)
        return tuple(self._loaded.values())

    def _read(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadProjectFile(f'cannot read "{path}": {error}', hint="Make it a readable UTF-8 file.") from error
        try:
            statements = parse(text)
        except Error as error:
            raise _placed(error, path, text) from error
        for statement in statements:
            if isinstance(statement, Comment):
                self._comments.append(_Found(statement, path, text))
            elif isinstance(statement, Definable):
                self._add(_Found(statement, path, text))
            else:
                raise BadProjectFile(
                    f"{path}:{_line(text, statement)}: only definitions may stand in a project's files",
                    hint='Run other statements in a session: "mz-dagster sql".',
                )

    def _add(self, found: _Found[Definable]) -> None:
        name = name_of(found.statement)
        if name in self._found:
            raise BadProjectFile(
                f'two objects are called "{name}"',
                detail=f"They are defined at {self._found[name].place} and {found.place}.",
                hint="Rename one of them.",
            )
        self._found[name] = found

    def _object(self, name: str) -> ProjectObject:
        if name in self._loaded:
            return self._loaded[name]
        found = self._found[name]
        if name in self._loading:
            cycle = [*self._loading[self._loading.index(name) :], name]
            raise BadProjectFile(
                "definitions depend on each other in a cycle: " + " reads ".join(f'"{one}"' for one in cycle),
                detail=f"The cycle goes through {found.place}.",
                hint="Break it: let one of them read the sources of the others.",
            )
        self._loading.append(name)
        try:
            definition = define(
                found.statement,
                self,
                default_timeline=self._project.timeline,
                indexed=isinstance(found.statement, CreateIndex) and str(found.statement.on) in self._indexed,
            )
        except BadProjectFile:
            raise
        except Error as error:
            raise _placed(error, found.path, found.text, name) from error
        finally:
            self._loading.pop()
        if isinstance(found.statement, CreateIndex):
            self._indexed.add(str(found.statement.on))
        annotations, comment = _comment_above(found)
        for said in self._comments_on(name):
            comment = said.comment if said.column is None else comment
        self._loaded[name] = ProjectObject(
            definition,
            found.path,
            found.line,
            comment,
            annotations,
            self._column_comments(definition, found),
            self._views(definition),
        )
        return self._loaded[name]

    def _comments_on(self, name: str) -> Iterator[Comment]:
        return (one.statement for one in self._comments if one.statement.name.last == name)

    def _column_comments(self, definition: Definition, found: _Found[Definable]) -> Mapping[str, str]:
        if definition.on is not None:
            return self._loaded[definition.on.name].column_comments
        said = {one.column: one.comment for one in self._comments_on(definition.name) if one.column is not None}
        comments = {**_comments_beside(found), **said}
        return {column: comment for column, comment in comments.items() if comment is not None}

    def _views(self, definition: Definition) -> tuple[ProjectObject, ...]:
        """Returns the plain views in a definition's query."""
        read = (self._loaded[one] for one in sorted(definition.dependencies.values()) if one in self._loaded)
        views = {one.name: one for view in read if view.definition.kind == "view" for one in (view, *view.views)}
        return tuple(views.values())

    def _check_column(self, said: _Found[Comment]) -> None:
        """Refuses a comment on a column that its object does not have; an index has none of its own."""
        column, definition = said.statement.column, self._loaded[said.statement.name.last].definition
        names = definition.relation_type.names
        if column is None or (column in names and definition.on is None):
            return
        if definition.on is not None:
            hint = f'Comment on the column of "{definition.on.name}".'
        else:
            hint = suggestion(column, names) or f"Its columns are {', '.join(names)}."
        raise BadProjectFile(f'{said.place}: column "{column}" of "{definition.name}" does not exist', hint=hint)

    # ---- the resolver by which definitions see each other

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name in a definition stands for, loading its definition first."""
        if len(name) == 1 and name[0] in self._found:
            return self._object(name[0]).definition.item(GlobalId(name[0]))
        relation = introspection.find(name)
        return None if relation is None else relation.item()

    def names(self) -> tuple[str, ...]:
        """Returns all names that the files define."""
        return tuple(self._found)


def _line(text: str, statement: Statement) -> int:
    return text.count("\n", 0, statement.offset) + 1


def _placed(error: Error, path: Path, text: str, name: str | None = None) -> BadProjectFile:
    """Returns the error with its position as file, line and column."""
    place = str(path)
    if error.position is not None:
        before = text[: error.position - 1]
        place = f"{path}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    about = f' (in "{name}")' if name else ""
    return BadProjectFile(f"{place}: {error.message}{about}", detail=error.detail, hint=error.hint)


def _comment_above(found: _Found[Definable]) -> tuple[Annotations, str | None]:
    """Returns what the `--` lines that stand directly above a statement say."""
    above = found.text[: found.statement.offset].rstrip(" \t").removesuffix("\n").split("\n")
    lines = list(_lines_above(above))[::-1]
    try:
        return parse_annotations(lines)
    except BadAnnotation as error:
        place = f"{found.path}:{found.line - len(lines) + error.line}"
        raise BadProjectFile(f"{place}: {error.message}", hint=error.hint) from error


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
