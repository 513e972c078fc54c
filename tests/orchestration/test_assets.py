"""How a project looks in Dagster: keys, dependencies, partitions, metadata; and how users change it."""

from __future__ import annotations

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster import MzDagsterTranslator, Project, build_mz_asset_specs
from mz_dagster.adapter import ProjectObject
from mz_dagster.orchestration import partition_key, partitions_of, tick_of


def test_sources_views_and_indexes_are_assets_and_plain_views_are_looked_through(project: Project) -> None:
    specs = {spec.key.to_user_string(): spec for spec in build_mz_asset_specs(project)}
    reads = {name: {dep.asset_key.to_user_string() for dep in spec.deps} for name, spec in specs.items()}
    assert reads == {
        "orders": set(),
        "customers": set(),
        "ordered": {"orders", "customers"},
        "ordered_by_city": {"ordered"},
    }


def test_a_specification_tells_what_the_sql_says(project: Project) -> None:
    specs = {spec.key.to_user_string(): spec for spec in build_mz_asset_specs(project)}
    ordered = specs["ordered"]
    assert ordered.description is not None
    assert ordered.description.startswith("What was ordered where.")
    assert ordered.kinds == {"materialized_view", "spark", "deltalake"}
    schema = ordered.metadata["dagster/column_schema"]
    assert [(column.name, column.type) for column in schema.columns] == [
        ("id", "integer"),
        ("twice", "integer"),
        ("city", "text"),
    ]
    assert not schema.columns[0].constraints.nullable


def test_a_translator_changes_keys_and_with_them_dependencies(project: Project) -> None:
    class Prefixed(MzDagsterTranslator):
        def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
            spec = super().get_asset_spec(obj)
            return spec.replace_attributes(key=spec.key.with_prefix("mz"), group_name="mine")

    specs = {spec.key: spec for spec in build_mz_asset_specs(project, translator=Prefixed())}
    ordered = specs[dg.AssetKey(["mz", "ordered"])]
    assert {dep.asset_key for dep in ordered.deps} == {dg.AssetKey(["mz", "orders"]), dg.AssetKey(["mz", "customers"])}
    assert ordered.group_name == "mine"


def test_definitions_load_with_ticks_as_partitions(definitions: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(definitions)
    graph = definitions.resolve_asset_graph()
    assert graph.get(dg.AssetKey("ordered")).partitions_def == partitions_of("feed")


@given(st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999))
def test_partition_keys_sort_as_ticks_and_tell_them(left: int, right: int) -> None:
    assert tick_of(partition_key(left)) == left
    assert (partition_key(left) < partition_key(right)) == (left < right)


@pytest.mark.parametrize("key", ["2013-01-01", "2013-01-01T00:00:00.000+01:00", "2013-01-01T00:00:00Z"])
def test_other_forms_are_no_partition_keys(key: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        tick_of(key)
