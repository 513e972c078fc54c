"""The files that an import would write, held against the project's own before any of them is there.

A query comes in only if it is translated whole, and binds to what the project then has. What reads something that does
not come in stays out with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mz_dagster.adapter import Project, ProjectObject, load_project
from mz_dagster.adapter.annotations import BadAnnotation, parse_annotations
from mz_dagster.errors import OperationalError, one_line
from mz_dagster.operations.importing.models import ImportedSource, Model, ModelMetadata, Models
from mz_dagster.operations.importing.naming import named
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.translation import (
    Original,
    Remark,
    SourceDialect,
    Untranslatable,
    column_type,
    originals,
    relation_path,
    translate,
)

#: What an asset, and with it its file, may be called in Dagster; it leads nowhere else.
_NAME = re.compile(r"[A-Za-z0-9_]+")

WRITTEN, LEFT_OUT = "written", "left out"
#: How the comparison of results begins where they are not the same.
DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Imported:
    """What becomes of one query.

    Attributes:
        name: What it is called here.
        place: Where it comes from.
        outcome: `written` or `left out`.
        file: The file it is written to, from the project's root; None if it is left out.
        reason: Why it is left out.
        remarks: What its translation says otherwise, and what may mean something else.
        compared: Whether both give the same rows; None if they were not compared.
        reads: The relations that it reads, as they are called here.
        original: The query as it was, with these names; None if it does not come in, or is none.
        query: The query as it is here, likewise.
    """

    name: str
    place: str
    outcome: str
    file: str | None = None
    reason: str | None = None
    remarks: tuple[Remark, ...] = ()
    compared: str | None = None
    reads: tuple[str, ...] = ()
    original: str | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an import would do.

    Attributes:
        imported: What becomes of each query, each after those it reads as far as they come in.
        sources: Files of sources that the project does not have, from the project's root.
        missing: By the name of each relation that must exist first, the queries that read it.
        files: The texts of the files to write, by their paths.
    """

    imported: tuple[Imported, ...]
    sources: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]
    files: Mapping[Path, str] = field(repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out, and nothing was found to differ."""
        return all(one.outcome == WRITTEN and not (one.compared or "").startswith(DIFFERS) for one in self.imported)


@dataclass(slots=True)
class _Query:
    name: str
    model: Model
    original: Original
    text: str = ""
    query: str = ""
    remarks: tuple[Remark, ...] = ()

    @property
    def relation(self) -> tuple[str, ...]:
        """What others call it."""
        if self.model.relation is not None:
            return relation_path(self.model.relation, self.original.dialect)
        return self.original.name or (self.name,)


def propose(project: Project, models: Models, dialect: SourceDialect) -> Proposal:
    """Returns what importing some models would do; writes nothing."""
    left_out: list[Imported] = []
    queries = list(_queries(models, dialect, left_out))
    sources = {relation_path(one.relation, dialect): one for one in models.sources}
    own = {one.relation: one.name for one in queries}
    names = named(own, {one.name: one.original.reads for one in queries} | {"": tuple(sources)})
    there = load_project(project)
    defined = {one.name for one in there.objects}
    taken = defined | {fault.name for fault in there.faults}
    files: dict[Path, str] = {}
    stubs: list[str] = []
    for path, source in sources.items():
        stub = _stub(names[path], source, dialect)
        target = project.assets / f"{names[path]}.sql"
        if stub is not None and names[path] not in taken and not target.exists():
            files[target] = stub
            stubs.append(_relative(target, project))
    made: list[_Query] = []
    for one in queries:
        target = project.assets / f"{one.name}.sql"
        if one.name in taken or target.exists():
            left_out.append(_left_out(one, f'the project has "{one.name}" already'))
            continue
        try:
            _translate(one, names, dialect)
        except Untranslatable as error:
            left_out.append(_left_out(one, one_line(error)))
        else:
            files[target] = one.text
            made.append(one)
    objects, reasons = _held_against(project, files, made)
    missing = _missing(made, names, defined | {one.stem for one in files})
    for one in made:
        if one.name not in objects:
            left_out.append(_left_out(one, reasons.get(one.name, "it cannot be used")))
            del files[project.assets / f"{one.name}.sql"]
    for one in made:
        if one.name in objects:
            target = project.assets / f"{one.name}.sql"
            files[target] += _column_comments(one, objects[one.name])
    order = {name: at for at, name in enumerate(objects)}
    come_in = sorted((one for one in made if one.name in objects), key=lambda one: order[one.name])
    written = [_written(one, names, project) for one in come_in]
    return Proposal((*written, *left_out), tuple(stubs), missing, files)


def write(proposal: Proposal) -> None:
    """Writes the files of a proposal; none of them is there yet.

    Raises:
        OperationalError: One cannot be written; those before it are.
    """
    for path, text in proposal.files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise OperationalError(
                f'cannot write "{path}": {error.strerror}', hint="Import again once it can be written."
            ) from error


def _queries(models: Models, dialect: SourceDialect, left_out: list[Imported]) -> Iterator[_Query]:
    """Yields the queries of all models; of those that are none, or share their name, notes why."""
    seen: set[str] = set()
    for model in models.models:
        if model.sql is None:
            left_out.append(Imported(model.name, model.place, LEFT_OUT, reason=model.reason))
            continue
        try:
            found = list(originals(model.sql, dialect))
        except Untranslatable as error:
            found = [error]
        alone = sum(isinstance(one, Original) and one.name is None for one in found) == 1
        for one in found:
            reason = None
            name = model.name if isinstance(one, Untranslatable) or one.name is None else one.name[-1]
            if isinstance(one, Untranslatable):
                reason = one_line(one)
            elif one.name is None and not alone:
                reason = "the file has several queries without a name; write CREATE VIEW ... AS before each"
            elif not _NAME.fullmatch(name):
                reason = f'"{name}" is no name for an asset of Dagster; give it one of letters, digits and _'
            elif name in seen:
                reason = f'another query is called "{name}", too'
            if reason is not None or isinstance(one, Untranslatable):
                place = model.place if len(found) == 1 else f"{model.place}:{one.line}"
                left_out.append(Imported(name, place, LEFT_OUT, reason=reason))
                continue
            seen.add(name)
            yield _Query(name, model, replace(one, kind=model.kind or one.kind))


def _written(query: _Query, names: Mapping[tuple[str, ...], str], project: Project) -> Imported:
    file = _relative(project.assets / f"{query.name}.sql", project)
    reads = tuple(names[path] for path in query.original.reads)
    made = Imported(query.name, query.model.place, WRITTEN, file, remarks=query.remarks, reads=reads)
    if query.original.kind == "table":
        return made
    return replace(made, original=query.original.sql(names), query=query.query)


def _left_out(query: _Query, reason: str) -> Imported:
    return Imported(query.name, query.model.place, LEFT_OUT, reason=reason)


def _translate(query: _Query, names: Mapping[tuple[str, ...], str], dialect: SourceDialect) -> None:
    """Makes the text of a query's file."""
    translation = translate(query.original, names)
    query.query = translation.text
    kind = query.original.kind.upper()
    header = f"-- Translated from {dialect.name}: {' '.join(query.model.place.split())}\n\n"
    told = query.model.told
    above, unfit = _annotations(replace(told, description=told.description or query.original.comment))
    create = f"CREATE {kind} {quoted(query.name)}"
    between = " " if kind == "TABLE" else " AS\n"
    before = header + above + create + between
    query.text = f"{before}{translation.text};\n"
    lines = before.count("\n")
    query.remarks = (
        *unfit,
        *(one if one.line is None else replace(one, line=one.line + lines) for one in translation.remarks),
    )


def _annotations(told: ModelMetadata) -> tuple[str, list[Remark]]:
    """Returns the lines above a statement, and a remark on each word that Dagster does not take."""
    lines = [re.sub(r"^\s*@", "- @", line).strip() for line in told.description.strip().splitlines()]
    unfit: list[Remark] = []
    said = [
        *(f"@owner {_owner(one)}" for one in told.owners),
        *(() if told.group is None else (f"@group {told.group}",)),
        *(f"@tag {one}" for one in told.tags),
    ]
    for one in dict.fromkeys(said):
        try:
            parse_annotations([one])
        except BadAnnotation as error:
            unfit.append(Remark("annotation", f"left out: {one_line(error)}"))
        else:
            lines.append(one)
    return "".join(f"-- {line}".rstrip() + "\n" for line in lines), unfit


def _owner(text: str) -> str:
    """Returns an owner as Dagster has one: an address, or else a team.

    Example:
        >>> _owner("ana@example.com"), _owner("Data Platform")
        ('ana@example.com', 'team:Data-Platform')
    """
    return (
        text if "@" in text.strip("@") or text.startswith("team:") else "team:" + re.sub(r"\s+", "-", text.strip("@"))
    )


def _stub(name: str, source: ImportedSource, dialect: SourceDialect) -> str | None:
    """Returns the file of a source of which the types of all columns are known; None of another."""
    columns: list[str] = []
    comments = source.told.columns
    for column, type_ in source.types.items():
        here = None if type_ is None else column_type(type_, dialect)
        if here is None:
            return None
        comment = " ".join(comments.get(column, "").split())
        columns.append(
            f"    {quoted(dialect.column(column))} {here.lower()}" + "{comma}" + (f" -- {comment}" if comment else "")
        )
    if not columns or not name.isidentifier():
        return None
    lines = "\n".join(one.replace("{comma}", "" if one is columns[-1] else ",", 1) for one in columns)
    above, _ = _annotations(source.told)
    return (
        f"-- Translated from {dialect.name}: the source {' '.join(source.relation.split())}\n"
        f"-- Its rows come from files; say in which folder they arrive, and in which format.\n\n{above}"
        f"CREATE SOURCE {quoted(name)} (\n{lines}\n)\n"
        f"FROM FILES (FOLDER 'landing/{name}', PATTERN '*.parquet')\nFORMAT PARQUET;\n"
    )


def _held_against(
    project: Project, files: Mapping[Path, str], made: Sequence[_Query]
) -> tuple[dict[str, ProjectObject], dict[str, str]]:
    """Returns the objects that the project would have with these files, in order, and why others would not be."""
    whole = load_project(project, files)
    reasons = {}
    for fault in whole.faults:
        if fault.name is not None:
            reasons[fault.name] = one_line(fault.error).replace(f"{project.root}/", "")
    imported = {one.name for one in made}
    return {one.name: one for one in whole.objects if one.name in imported}, reasons


def _missing(
    made: Sequence[_Query], names: Mapping[tuple[str, ...], str], there: set[str]
) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for one in made:
        for path in one.original.reads:
            if names[path] not in there:
                found.setdefault(names[path], []).append(one.name)
    return {name: tuple(readers) for name, readers in sorted(found.items())}


def _column_comments(query: _Query, made: ProjectObject) -> str:
    """Returns statements that say what is written of the columns that there are."""
    folded = {query.original.dialect.column(name): text for name, text in query.model.told.columns.items()}
    said = [(column, folded[column]) for column in made.definition.relation_type.names if column in folded]
    lines = []
    for column, text in said:
        doubled = text.strip().replace("'", "''")
        lines.append(f"\nCOMMENT ON COLUMN {quoted(query.name)}.{quoted(column)} IS '{doubled}';\n")
    return "".join(lines)


def _relative(path: Path, project: Project) -> str:
    return path.relative_to(project.root).as_posix()
