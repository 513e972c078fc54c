"""What a project's SQL files define, before any of it is created.

Reads every `*.sql` file below `assets/`, parses it, and binds its definitions against each other, depth first, so
that files may be in any order. Needs neither catalog nor Spark: Dagster loads its assets from here, and `apply`
creates them.

Only definitions may stand in a project's files; what changes data (INSERT, DROP, ...) belongs to a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter import introspection
from mz_dagster.adapter.definition import Definable, Definition, define, name_of
from mz_dagster.adapter.project import Project
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item
from mz_dagster.sql import Comment, CreateIndex, Statement, parse


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
    """

    definition: Definition
    path: Path
    line: int
    comment: str | None

    @property
    def name(self) -> str:
        """The object's name."""
        return self.definition.name

    @property
    def depends(self) -> tuple[str, ...]:
        """The names of the project's objects that it reads, sorted."""
        return tuple(sorted(self.definition.dependencies.values()))


def load_objects(project: Project) -> tuple[ProjectObject, ...]:
    """Returns everything that the project's files define, each object after those it reads.

    Raises:
        BadProjectFile: A file cannot be read, does not parse or bind, two objects bear one name, or definitions
            depend on each other in a cycle. The error names file and line.
    """
    return _Loader(project).load()


@dataclass(frozen=True, slots=True)
class _Found:
    statement: Definable
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
        self._found: dict[str, _Found] = {}
        self._comments: dict[str, str | None] = {}
        self._loaded: dict[str, ProjectObject] = {}
        self._loading: list[str] = []
        self._indexed: set[str] = set()

    def load(self) -> tuple[ProjectObject, ...]:
        for path in sorted(self._project.assets.rglob("*.sql")):
            self._read(path)
        unknown = self._comments.keys() - self._found.keys()
        if unknown:
            raise BadProjectFile(
                f'COMMENT ON "{min(unknown)}", which no file of the project defines',
                hint="Define it, or remove the comment.",
            )
        for name in self._found:
            self._object(name)
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
            if isinstance(statement, Comment) and statement.column is None:
                self._comments[statement.name.last] = statement.comment
            elif isinstance(statement, Definable):
                self._add(_Found(statement, path, text))
            else:
                raise BadProjectFile(
                    f"{path}:{_line(text, statement)}: only definitions may stand in a project's files",
                    hint='Run other statements in a session: "mz-dagster sql".',
                )

    def _add(self, found: _Found) -> None:
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
        comment = self._comments.get(name, _comment_above(found.text, found.statement.offset))
        if isinstance(found.statement, CreateIndex):
            self._indexed.add(str(found.statement.on))
        loaded = ProjectObject(definition, found.path, found.line, comment)
        self._loaded[name] = loaded
        return loaded

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


def _comment_above(text: str, offset: int) -> str | None:
    """Returns the `--` lines that stand directly above the statement at `offset`, as one text."""
    lines = list(_lines_above(text[:offset].splitlines()))
    return "\n".join(reversed(lines)) or None


def _lines_above(lines: list[str]) -> Iterator[str]:
    for line in reversed(lines):
        stripped = line.strip()
        if not stripped.startswith("--"):
            return
        yield stripped.removeprefix("--").strip()


def by_name(objects: tuple[ProjectObject, ...]) -> Mapping[str, ProjectObject]:
    """Returns the objects by their names."""
    return {one.name: one for one in objects}
