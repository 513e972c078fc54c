"""How a project's objects look in Dagster; users subclass the translator to change it."""

from __future__ import annotations

import dagster as dg

from mz_dagster.adapter import ProjectObject

#: Dagster shows an icon for `spark`; the others are text chips.
_KINDS = {
    "source": {"source", "deltalake"},
    "table": {"table", "deltalake"},
    "materialized view": {"materialized_view", "spark", "deltalake"},
    "index": {"index", "spark", "deltalake"},
}


class MzDagsterTranslator:
    """Translates a project's object into an asset's specification.

    Override `get_asset_spec`, call `super()` and change what comes back with `replace_attributes` or
    `merge_attributes`. Dependencies are translated through the same method, so a changed key changes them too.

    Example:
        >>> class Prefixed(MzDagsterTranslator):
        ...     def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
        ...         spec = super().get_asset_spec(obj)
        ...         return spec.replace_attributes(key=spec.key.with_prefix("warehouse"))
    """

    def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
        """Returns the specification of the asset that stands for `obj`, without its dependencies.

        Args:
            obj: A source, table, materialized view or index of the project.
        """
        definition = obj.definition
        return dg.AssetSpec(
            key=dg.AssetKey(obj.name),
            description=_description(obj),
            kinds=_KINDS[definition.kind],
            metadata={
                "dagster/column_schema": dg.TableSchema(
                    columns=[
                        dg.TableColumn(
                            column.name,
                            str(column.type),
                            constraints=dg.TableColumnConstraints(nullable=column.nullable),
                        )
                        for column in definition.relation_type.columns
                    ]
                ),
                "dagster/storage_kind": "deltalake",
                "mz/sql": dg.MetadataValue.md(f"```sql\n{definition.text}\n```"),
                "mz/timeline": definition.timeline,
            },
        )


def _description(obj: ProjectObject) -> str:
    comment = obj.comment or f"{obj.definition.kind} {obj.name}".capitalize()
    return f"{comment}\n\n```sql\n{obj.definition.text}\n```"
