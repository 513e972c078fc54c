"""How a project's objects look in Dagster; users subclass the translator to change it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

import dagster as dg

from mz_dagster.adapter import ProjectObject
from mz_dagster.adapter.annotations import Freshness
from mz_dagster.adapter.definition import Definition
from mz_dagster.orchestration.events import TIMELINE_KEY
from mz_dagster.plan import explain_physical
from mz_dagster.scalars.types import RelationType
from mz_dagster.sql import Delta, Files, Iceberg
from mz_dagster.sql.schemas import PUBLIC, last_of

#: With a source's format three at most, which leaves the rest of Dagster's ten to annotations (`MAX_KINDS`).
_KINDS = {
    "source": {"source", "deltalake"},
    "table": {"table", "deltalake"},
    "materialized view": {"view", "spark", "deltalake"},
    "index": {"index", "spark", "deltalake"},
    "sink": {"sink", "deltalake"},
}


class MzDagsterTranslator:
    """Translates a project's object into an asset's specification.

    Override `get_asset_spec`, call `super()` and change what comes back with `replace_attributes` or
    `merge_attributes`. Dependencies and column lineage follow the keys that it gives.

    Example:
        >>> class Prefixed(MzDagsterTranslator):
        ...     def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
        ...         spec = super().get_asset_spec(obj)
        ...         return spec.replace_attributes(key=spec.key.with_prefix("warehouse"))
    """

    def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
        """Returns the specification of the asset that stands for `obj`, without what it reads of the others.

        Its metadata are the columns (`dagster/column_schema`), where its SQL stands (`dagster/code_references`), the
        SQL itself (`mz/sql`) and the plan by which it is maintained (`mz/plan`, as EXPLAIN shows it). Its code version
        changes with its SQL, and with that of the plain views in its query. What was applied last, because the
        files are wrong now, has that error as `mz/fault` and above its description.

        Args:
            obj: A source, table, materialized view or index of the project.
        """
        definition, annotations = obj.definition, obj.annotations
        metadata: dict[str, dg.RawMetadataValue] = {
            "dagster/column_schema": _column_schema(obj),
            "dagster/storage_kind": "deltalake",
            "dagster/code_references": _code_references(obj),
            "mz/sql": code_block("sql", obj.sql),
            TIMELINE_KEY: definition.timeline,
        }
        description = obj.comment
        if obj.fault is not None:
            metadata["mz/fault"] = code_block("text", str(obj.fault))
            behind = f"**Its definition in the files is not applied:** {obj.fault.message}"
            description = behind if description is None else f"{behind}\n\n{description}"
        if definition.plan is not None:
            metadata["mz/plan"] = code_block("text", explain_physical(definition.plan))
        formats = _formats(definition)
        return dg.AssetSpec(
            key=asset_key(obj.name, obj.definition.schema),
            description=description,
            group_name=annotations.group,
            owners=annotations.owners,
            tags=dict(annotations.tags),
            deps=[outside_dep(key) for key in annotations.deps],
            kinds=_KINDS[definition.kind] | formats | set(annotations.kinds),
            code_version=obj.version,
            freshness_policy=None if annotations.freshness is None else _freshness_policy(annotations.freshness),
            metadata=metadata,
        )


def outside_dep(key: Sequence[str]) -> dg.AssetDep:
    """Returns the dependency on an asset outside of the project, any of whose partitions may be in any tick."""
    return dg.AssetDep(dg.AssetKey(key), partition_mapping=dg.AllPartitionMapping())


def _formats(definition: Definition) -> set[str]:
    """Returns the kinds of what a source reads."""
    match definition.origin:
        case Files(format=format):
            return {format}
        case Delta():
            return {"deltalake"}
        case Iceberg():
            return {"iceberg"}
        case None:
            return set()


def asset_key(name: str, schema: str = PUBLIC) -> dg.AssetKey:
    """Returns the key of the asset that stands for an object of SQL: its name, behind that of its schema.

    Dagster makes names of ops' outputs of it, which have letters of ASCII, digits, and what becomes `_`; in other names
    `_` takes the place of the rest, and a hash tells them apart.

    Args:
        name: What the catalog calls the object (`sql.schemas`).
        schema: The schema that it is in; `public` is not said.

    Example:
        >>> asset_key("sales_by_city").to_user_string(), asset_key("it's one").to_user_string()
        ('sales_by_city', 'it_s_one_bf37ca')
        >>> asset_key("sales.by_city", "sales").to_user_string()
        'sales/by_city'
    """
    last = _key_part(last_of(schema, name))
    return dg.AssetKey(last if schema == PUBLIC else [_key_part(schema), last])


def _key_part(name: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        return name
    return f"{re.sub('[^A-Za-z0-9]', '_', name)}_{sha256(name.encode()).hexdigest()[:6]}"


def _column_schema(obj: ProjectObject) -> dg.TableSchema:
    relation_type = obj.definition.relation_type
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                str(column.type),
                obj.column_comments.get(column.name),
                dg.TableColumnConstraints(nullable=column.nullable, unique=frozenset({i}) in relation_type.keys),
            )
            for i, column in enumerate(relation_type.columns)
        ],
        constraints=dg.TableConstraints(other=_table_constraints(relation_type)),
    )


def _table_constraints(relation_type: RelationType) -> list[str]:
    """Returns the unique keys that are no single columns."""
    names = relation_type.names
    keys = sorted(sorted(key) for key in relation_type.keys if len(key) != 1)
    return [f"unique ({', '.join(names[i] for i in key)})" if key else "at most one row" for key in keys]


def _code_references(obj: ProjectObject) -> dg.CodeReferencesMetadataValue:
    with warnings.catch_warnings():
        # Public, but in beta: a project that loads is not to warn of each of its assets.
        warnings.simplefilter("ignore", dg.BetaWarning)
        reference = dg.LocalFileCodeReference(file_path=str(obj.path), line_number=obj.line)
        return dg.CodeReferencesMetadataValue(code_references=[reference])


def code_block(language: str, text: str) -> dg.MarkdownMetadataValue:
    """Returns the text as code, within a fence that nothing in it ends."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return dg.MetadataValue.md(f"{fence}{language}\n{text}\n{fence}")


def _freshness_policy(freshness: Freshness) -> dg.FreshnessPolicy:
    warn = None if freshness.warn_ms is None else timedelta(milliseconds=freshness.warn_ms)
    return dg.FreshnessPolicy.time_window(timedelta(milliseconds=freshness.fail_ms), warn)
