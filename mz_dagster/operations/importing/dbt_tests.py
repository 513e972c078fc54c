"""dbt's tests of the four generic kinds, as `schema.yml` says them, become `@check` lines above the objects they test.

A test comes in if the project has what it tests under its name here, and if the check that it becomes is one: the
project's files are loaded with all lines before any is written. Lines are added, and nothing else in a file is changed.
A test with a `where` becomes a file in `assets/checks/`, since a rule is about all rows.

What decides otherwise than by whether there are violations (`error_if`, `warn_if`, `fail_calc`, `limit`), other tests
and what a template says are left out, with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from mz_dagster.adapter import Fault, Project, ProjectObject, load_project
from mz_dagster.errors import Error, OperationalError, one_line
from mz_dagster.operations.importing.models import NothingToImport
from mz_dagster.operations.importing.proposal import LEFT_OUT, WRITTEN
from mz_dagster.sql.check_statement import CheckRule, parse_check_rule
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.schemas import PUBLIC

#: What dbt's projects hold beside what their authors wrote.
_NOT_WRITTEN = {"target", "dbt_packages", "dbt_modules", "logs"}
_KINDS = ("unique", "not_null", "accepted_values", "relationships")
_DECIDING = ("error_if", "warn_if", "fail_calc", "limit")
_TO = re.compile(
    r"(?:ref|source)\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"]([^'\"]+)['\"]\s*(?:,\s*v(?:ersion)?\s*=[^)]*)?\)"
)


class _Untold(ValueError):
    """Why a test is no check."""


@dataclass(frozen=True, slots=True)
class ImportedTest:
    """What becomes of one test.

    Attributes:
        on: What it tests, as dbt calls it.
        test: Its kind and column.
        place: The file that says it.
        outcome: `written` or `left out`.
        check: What it is called here; None if it is left out.
        file: The file it is written to, from the project's root; None if it is left out.
        reason: Why it is left out.
    """

    on: str
    test: str
    place: str
    outcome: str
    check: str | None = None
    file: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CheckProposal:
    """What importing tests would do.

    Attributes:
        tests: What becomes of each.
        files: The texts of the files to write, by their paths.
    """

    tests: tuple[ImportedTest, ...]
    files: Mapping[Path, str] = field(repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return all(one.outcome == WRITTEN for one in self.tests)


@dataclass(frozen=True, slots=True)
class _Test:
    """One test, as dbt says it."""

    names: tuple[str, ...]
    column: str | None
    kind: str
    said: Mapping[str, Any]
    place: str

    @property
    def told(self) -> ImportedTest:
        test = self.kind if self.column is None else f"{self.kind}({self.column})"
        return ImportedTest(self.names[0], test, self.place, LEFT_OUT)

    def rule(self) -> CheckRule:
        """Returns the rule that it is here.

        Raises:
            _Untold: It is none.
            Error: Its arguments are none of the rule's.
        """
        if self.kind not in _KINDS:
            raise _Untold(f"only {', '.join(_KINDS)} are imported; write others as queries in assets/checks/")
        if self.said.get("enabled") is False:
            raise _Untold("it is disabled")
        if deciding := [one for one in _DECIDING if self.said.get(one) is not None]:
            raise _Untold(f"a check holds if there are no violations; here {', '.join(deciding)} decides")
        if self.column is None:
            raise _Untold("it does not say of which column")
        severity = str(self.said.get("severity", "error")).lower()
        name = self.said.get("name")
        text = f"{self.kind}({', '.join([self.column, *self._arguments()])})"
        text += ", severity warn" if severity == "warn" else ""
        text += f", name {quoted(name)}" if isinstance(name, str) else ""
        if "{{" in text + str(self.said.get("where", "")) or "{%" in text:
            raise _Untold("a template says it")
        return parse_check_rule(text)

    def _arguments(self) -> Iterator[str]:
        if self.kind == "accepted_values":
            values = self.said.get("values")
            if not isinstance(values, list) or not values:
                raise _Untold("it does not say which values")
            for one in values:
                text = str(one)
                yield "'" + text.replace("'", "''") + "'" if self.said.get("quote", True) else text
        elif self.kind == "relationships":
            found = _TO.fullmatch(str(self.said.get("to", "")).strip())
            if found is None or not isinstance(self.said.get("field"), str):
                raise _Untold("it does not say whose column has the values, by ref() or source()")
            yield f"{quoted(found[1])}.{self.said['field']}"


def propose_checks(project: Project, path: Path) -> CheckProposal:
    """Returns what importing dbt's tests would do; writes nothing.

    Args:
        project: The project.
        path: A file of dbt's in YAML, or a folder of some.

    Raises:
        NothingToImport: There is no test, or it cannot be read.
    """
    tests = list(_tests(path))
    if not tests:
        raise NothingToImport(
            f'there are no tests at "{path}"', hint='Name a file such as "schema.yml", or a folder of some.'
        )
    there = load_project(project)
    return _Checks(project, {one.name: one for one in there.objects}, there.faults).proposal(tests)


def write_checks(proposal: CheckProposal) -> None:
    """Writes the files of a proposal, each whole or not at all.

    Raises:
        OperationalError: One cannot be written; those before it are.
    """
    for path, text in proposal.files.items():
        new = path.with_name(f"{path.name}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(text, encoding="utf-8")
            os.replace(new, path)
        except OSError as error:
            raise OperationalError(
                f'cannot write "{path}": {error.strerror}', hint="Import again once it can be written."
            ) from error


@dataclass(slots=True)
class _Made:
    """A check that a test would become, above an object or in a file of its own."""

    told: ImportedTest
    name: str
    target: ProjectObject
    line: str
    file: tuple[Path, str] | None


@dataclass(frozen=True, slots=True)
class _Checks:
    project: Project
    objects: Mapping[str, ProjectObject]
    faults: Sequence[Fault]

    def proposal(self, tests: Sequence[_Test]) -> CheckProposal:
        told: list[ImportedTest | _Made] = []
        taken = {*self.objects, *(one.name for one in self.faults)}
        for test in tests:
            try:
                made = self._made(test, taken)
            except (_Untold, Error) as error:
                reason = one_line(error) if isinstance(error, Error) else str(error)
                told.append(replace(test.told, reason=reason))
            else:
                taken.add(made.name)
                told.append(made)
        before = {one.name for one in self.faults}
        while True:
            come_in = [one for one in told if isinstance(one, _Made)]
            files = self._files(come_in)
            found = load_project(self.project, files).faults
            wrong = {one.name: one.error.message for one in found if one.name not in before}
            reasons = {one.name: wrong.get(one.name) or wrong.get(one.target.name) for one in come_in}
            if not any(reasons.values()):
                break
            told = [
                replace(one.told, reason=why) if isinstance(one, _Made) and (why := reasons[one.name]) else one
                for one in told
            ]
        return CheckProposal(tuple(one if isinstance(one, ImportedTest) else self._written(one) for one in told), files)

    def _made(self, test: _Test, taken: set[str | None]) -> _Made:
        """Returns what a test would become.

        Raises:
            _Untold: Nothing.
            Error: Likewise.
        """
        rule = test.rule()
        target = next((self.objects[one] for one in test.names if one in self.objects), None)
        if target is None:
            raise _Untold(f'the project has no "{test.names[0]}"')
        if target.definition.kind not in ("source", "table", "view", "materialized view"):
            raise _Untold(f'"{target.name}" is a {target.definition.kind}')
        if target.definition.schema != PUBLIC:
            raise _Untold(f'"{target.name}" is in a schema')
        name = rule.name_for(target.name)
        if name in taken:
            raise _Untold(f'the project has "{name}" already')
        where = test.said.get("where")
        if where is None:
            return _Made(test.told, name, target, f"-- @check {rule}", None)
        path = self.project.assets / "checks" / f"{name}.sql"
        if path.exists():
            raise _Untold(f'the project has "{path.name}" already')
        return _Made(test.told, name, target, "", (path, f"{rule.statement(None, target.name, str(where))};\n"))

    def _files(self, made: Sequence[_Made]) -> dict[Path, str]:
        """Returns the texts of files with the checks."""
        found = {one.file[0]: one.file[1] for one in made if one.file is not None}
        added: dict[Path, dict[int, list[str]]] = {}
        for one in made:
            if one.file is None:
                added.setdefault(one.target.path, {}).setdefault(one.target.line, []).append(one.line)
        for path, lines in added.items():
            text = path.read_text(encoding="utf-8").split("\n")
            for number in sorted(lines, reverse=True):
                text[number - 1 : number - 1] = lines[number]
            found[path] = "\n".join(text)
        return found

    def _written(self, one: _Made) -> ImportedTest:
        path = one.target.path if one.file is None else one.file[0]
        return replace(one.told, outcome=WRITTEN, check=one.name, file=path.relative_to(self.project.root).as_posix())


# ---- what dbt says


def _tests(path: Path) -> Iterator[_Test]:
    """Yields the tests in a file or a folder."""
    files = [path] if path.is_file() else sorted([*path.rglob("*.yml"), *path.rglob("*.yaml")])
    root = path.parent if path.is_file() else path
    for file in files:
        place = file.relative_to(root)
        if _NOT_WRITTEN.isdisjoint(place.parts):
            yield from _tests_in(file, place.as_posix())


def _tests_in(file: Path, place: str) -> Iterator[_Test]:
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise NothingToImport(
            f'cannot read "{file}": {" ".join(str(error).split())}', hint="Make it a readable file of YAML."
        ) from error
    for kind in ("models", "seeds", "snapshots"):
        for one in _mappings(said, kind):
            yield from _tests_of(one, tuple(map(str, filter(None, (one.get("name"), one.get("alias"))))), place)
    for source in _mappings(said, "sources"):
        for one in _mappings(source, "tables"):
            name, called = str(one.get("name")), one.get("identifier")
            names = (name, *([str(called)] if called else []), f"{source.get('name')}_{name}")
            yield from _tests_of(one, names, place)


def _tests_of(one: Mapping[str, Any], names: tuple[str, ...], place: str) -> Iterator[_Test]:
    for test in _listed(one):
        yield _test(test, names, None, place)
    for column in _mappings(one, "columns"):
        name = str(column.get("name"))
        for test in _listed(column):
            yield _test(test, names, quoted(name) if column.get("quote") is True else name, place)


def _listed(said: Mapping[str, Any]) -> list[Any]:
    """Returns the tests of a model or a column, which dbt has two names for."""
    return [one for key in ("tests", "data_tests") for one in said.get(key) or () if one]


def _test(said: Any, names: tuple[str, ...], column: str | None, place: str) -> _Test:
    """Returns a test, of any of the forms that dbt has."""
    if not isinstance(said, dict):
        return _Test(names, column, str(said), {}, place)
    if "test_name" in said:
        kind, arguments = str(said["test_name"]), said
    else:
        kind = next(iter(said))
        arguments = {**{key: value for key, value in said.items() if key != kind}, **(said[kind] or {})}
    inner = {key: arguments[key] or {} for key in ("arguments", "config") if isinstance(arguments.get(key), dict)}
    arguments = {**arguments, **inner.get("arguments", {}), **inner.get("config", {})}
    column = column or (str(arguments["column_name"]) if arguments.get("column_name") else None)
    return _Test(names, column, str(kind), arguments, place)


def _mappings(said: Any, key: str) -> Iterator[Mapping[str, Any]]:
    found = said.get(key) if isinstance(said, dict) else None
    return (one for one in found or () if isinstance(one, dict)) if isinstance(found, list) else iter(())
