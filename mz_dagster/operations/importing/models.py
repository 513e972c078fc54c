"""Queries to import, in one form: those in files of SQL, and dbt's compiled models by their manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from mz_dagster.errors import ProgrammingError

MANIFEST = "manifest.json"


class NothingToImport(ProgrammingError):
    """A path at which there is nothing that can be imported."""

    sqlstate = "58P01"


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a person has written of a model or a source.

    Attributes:
        description: Its text.
        owners: As they are called there.
        tags: Likewise.
        group: Likewise.
        columns: By name, what is said of each.
    """

    description: str = ""
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    group: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """A text that holds a query.

    Attributes:
        name: What it is called if it does not say itself.
        sql: The text; None if there is none, for `reason`.
        place: Where it stands.
        relation: What other queries call it, as written there; None for its name.
        kind: `view` or `materialized view`; None if the text says it.
        told: What is written of it.
        reason: Why it is not imported.
    """

    name: str
    sql: str | None
    place: str
    relation: str | None = None
    kind: str | None = None
    told: ModelMetadata = ModelMetadata()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """A relation that models read and that is no query: what it is called there, and its columns' types, if known."""

    name: str
    relation: str
    types: Mapping[str, str | None]
    told: ModelMetadata = ModelMetadata()


@dataclass(frozen=True, slots=True)
class Models:
    """All that is at a path.

    Attributes:
        models: The queries.
        sources: What they read.
        dialect: What they are written in, if the place says so.
    """

    models: tuple[Model, ...]
    sources: tuple[ImportedSource, ...] = ()
    dialect: str | None = None


def read_models(path: Path) -> Models:
    """Returns what there is to import at a path: a file of SQL, dbt's manifest, or a folder of either.

    Raises:
        NothingToImport: There is nothing, or it cannot be read.
    """
    for manifest in (path, path / MANIFEST, path / "target" / MANIFEST):
        if manifest.name == MANIFEST and manifest.is_file():
            return _of_manifest(manifest)
    files = [path] if path.is_file() else sorted(path.rglob("*.sql"))
    if not files:
        raise NothingToImport(
            f'there is nothing to import at "{path}"',
            hint=f'Name a file of SQL, a folder of some, or dbt\'s "{MANIFEST}", which "dbt compile" writes.',
        )
    root = path.parent if path.is_file() else path
    return Models(tuple(Model(one.stem, _text(one), one.relative_to(root).as_posix()) for one in files))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NothingToImport(f'cannot read "{path}": {error}', hint="Make it a readable UTF-8 file.") from error


# ---- dbt


class _Column(BaseModel):
    name: str
    description: str | None = None
    data_type: str | None = None


class _Config(BaseModel):
    materialized: str | None = None
    group: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict)


class _Described(BaseModel):
    name: str
    relation_name: str | None = None
    description: str = ""
    columns: dict[str, _Column] = Field(default_factory=dict)
    meta: dict[str, Any] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)
    config: _Config = Field(default_factory=_Config)
    original_file_path: str = ""


class _Node(_Described):
    resource_type: str
    alias: str = ""
    language: str = "sql"
    compiled_code: str | None = None
    group: str | None = None


class _SourceTable(_Described):
    source_name: str
    identifier: str


class _Owner(BaseModel):
    name: str | None = None
    email: str | list[str] | None = None


class _Group(BaseModel):
    name: str
    owner: _Owner = Field(default_factory=_Owner)


class _Metadata(BaseModel):
    dbt_schema_version: str
    adapter_type: str | None = None


class _Manifest(BaseModel):
    metadata: _Metadata
    nodes: dict[str, _Node]
    sources: dict[str, _SourceTable] = Field(default_factory=dict)
    groups: dict[str, _Group] = Field(default_factory=dict)


#: What dbt keeps as what it is here; whatever else it may do to a table, the rows are those of the query. Adapters have
#: names of their own for what the database keeps up to date: Materialize's, and Snowflake's.
_KINDS = {
    "view": "view",
    **dict.fromkeys(
        ("table", "incremental", "materialized_view", "materializedview", "dynamic_table"), "materialized view"
    ),
}


def _of_manifest(path: Path) -> Models:
    try:
        manifest = _Manifest.model_validate_json(_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise NothingToImport(
            f'"{path}" is no manifest of dbt: {where}: {first["msg"]}', hint='"dbt compile" writes one to target/.'
        ) from error
    types = _catalog(path.with_name("catalog.json"))
    owners = {one.name: one.owner for one in manifest.groups.values()}
    models, sources = [], []
    for key, node in manifest.nodes.items():
        if node.resource_type == "model":
            models.append(_model(node, owners))
        elif node.resource_type in ("seed", "snapshot") and node.relation_name:
            sources.append(_source(node.alias or node.name, node, types.get(key, {}), owners))
    for key, table in manifest.sources.items():
        sources.append(_source(table.identifier, table, types.get(key, {}), owners))
    return Models(tuple(models), tuple(sources), manifest.metadata.adapter_type)


def _model(node: _Node, owners: Mapping[str, _Owner]) -> Model:
    kind, reason = node.config.materialized, None
    if node.language != "sql":
        reason = f"it is written in {node.language}"
    elif kind == "ephemeral":
        reason = "it is ephemeral: dbt has put it into each query that reads it"
    elif kind not in _KINDS:
        reason = f"it is materialized as {kind}, which nothing here is"
    elif not node.compiled_code:
        reason = 'it is not compiled; run "dbt compile"'
    sql = None if reason else node.compiled_code
    place = node.original_file_path or node.name
    name = node.alias or node.name
    return Model(name, sql, place, node.relation_name, _KINDS.get(kind or ""), _metadata(node, owners), reason)


def _source(name: str, found: _Described, types: Mapping[str, str], owners: Mapping[str, _Owner]) -> ImportedSource:
    said = {one.name: one.data_type for one in found.columns.values()}
    columns: dict[str, str | None] = {**types} if types else {**said}
    return ImportedSource(name, found.relation_name or name, columns, _metadata(found, owners))


def _metadata(found: _Described, groups: Mapping[str, _Owner]) -> ModelMetadata:
    meta = {**found.meta, **found.config.meta}
    group = found.config.group or (found.group if isinstance(found, _Node) else None)
    owners = [*_listed(meta.get("owner"))]
    if not owners and group is not None and group in groups:
        owners = [*_listed(groups[group].email)] or [*_listed(groups[group].name)]
    columns = {one.name: one.description for one in found.columns.values() if one.description}
    return ModelMetadata(
        found.description, tuple(dict.fromkeys(owners)), tuple(dict.fromkeys(found.tags)), group, columns
    )


def _listed(value: Any) -> Iterator[str]:
    """Yields the texts in what may be one, several or none."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one.strip():
            yield one.strip()


def _catalog(path: Path) -> Mapping[str, Mapping[str, str]]:
    """Returns the types of columns that `dbt docs generate` has found, by the key of their node; nothing without it."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(_text(path))
        nodes = {**found["nodes"], **found["sources"]}
        return {
            key: {one["name"]: one["type"] for one in sorted(node["columns"].values(), key=lambda one: one["index"])}
            for key, node in nodes.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NothingToImport(
            f'"{path}" is no catalog of dbt: {error}', hint='Remove it, or write it with "dbt docs generate".'
        ) from error
