"""A Delta table in, a view, and a Delta table out, as assets of one graph."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mz_dagster import MzResource, Project, StepResult, build_mz_asset_specs, mz_assets
from mz_dagster.adapter import Engine
from mz_dagster.orchestration.ticks import partition_key, partitions_of

SQL = """
CREATE SOURCE orders (id bigint, city text) FROM DELTA (URI 'lake/orders');
CREATE MATERIALIZED VIEW cities AS SELECT city, count(*) AS n FROM orders GROUP BY city;
-- What the shops see.
-- @kind shops
CREATE SINK published FROM cities INTO DELTA (URI 'out/cities') KEY (city) ENVELOPE UPSERT;
"""


def test_a_sink_is_an_asset_downstream_of_its_view(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text(SQL)
    (tmp_path / "mz.toml").write_text("[project]\nengine = 'local'\n")
    lake = tmp_path / "lake" / "orders"
    write_deltalake(lake, pa.table({"id": [1, 2], "city": ["London", "Paris"]}))

    @mz_assets(project=Project.load(tmp_path))
    def shop(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    specs = {spec.key.to_user_string(): spec for spec in shop.specs}
    assert {one.asset_key.to_user_string() for one in specs["published"].deps} == {"cities"}
    assert {"sink", "deltalake", "shops"} <= specs["published"].kinds
    assert specs["orders"].metadata["dagster/uri"] == lake.as_uri()
    assert specs["published"].metadata["dagster/uri"] == (tmp_path / "out" / "cities").as_uri()
    assert specs["cities"].metadata["dagster/table_name"] == f"{tmp_path.name}.public.cities"
    assert "dagster/uri" not in specs["cities"].metadata
    assert specs["published"].description == "What the shops see."
    job = dg.define_asset_job("step", selection=[shop], executor_def=dg.in_process_executor)
    definitions = dg.Definitions(assets=[shop], jobs=[job], resources={"mz": MzResource(project_dir=str(tmp_path))})
    for _ in range(2):
        ran = definitions.resolve_job_def("step").execute_in_process(instance=instance)
        assert ran.success
        made = {one.asset_key.to_user_string() for one in ran.get_asset_materialization_events() if one.asset_key}
        assert made == {"orders", "cities", "published"}
        wanted = {(one["city"]): 1 for one in DeltaTable(lake).to_pyarrow_table().to_pylist()}
        found = DeltaTable(tmp_path / "out" / "cities").to_pyarrow_table().to_pylist()
        assert {one["city"] for one in found} == set(wanted)
        write_deltalake(lake, pa.table({"id": [3], "city": ["Rome"]}), mode="append")
        DeltaTable(lake).delete("city = 'Paris'")


def test_assets_that_write_what_a_source_reads_are_its_upstream(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    lake = tmp_path / "lake"
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text(
        SQL + "CREATE SOURCE files (a bigint) FROM FILES (FOLDER 'landing/a b') FORMAT CSV;\n"
        "CREATE CONNECTION store TO S3 (REGION = 'us-east-1');\n"
        "CREATE SOURCE far (a bigint) FROM DELTA (URI 's3://bucket/far', CONNECTION store);\n"
        "CREATE SOURCE alone (a bigint) FROM DELTA (URI 'lake/alone');\n"
    )
    (tmp_path / "mz.toml").write_text("[project]\nengine = 'local'\n")
    lake.mkdir()
    (tmp_path / "link").symlink_to(lake)
    days = dg.DailyPartitionsDefinition(start_date="2024-01-01", end_date="2024-01-03")

    @dg.asset(metadata={"dagster/uri": (lake / "orders").as_uri()})
    def written() -> None:
        write_deltalake(lake / "orders", pa.table({"id": [1], "city": ["London"]}), mode="append")

    @dg.asset(partitions_def=days, metadata={"dagster/uri": dg.MetadataValue.path(str(tmp_path / "link" / "orders"))})
    def by_day() -> None: ...

    @dg.asset(metadata={"dagster/uri": "lake/elsewhere"})
    def another() -> None: ...

    of_others: list[dg.AssetsDefinition | dg.AssetSpec] = [
        written,
        by_day,
        another,
        dg.AssetSpec("landed", metadata={"dagster/uri": (tmp_path / "landing" / "a b").as_uri()}),
        dg.AssetSpec("stored", metadata={"dagster/uri": "s3a://bucket/far/"}),
        dg.AssetSpec("fed", metadata={"mz/table": "public.alone"}),
        dg.AssetSpec("both", metadata={"mz/table": "far", "dagster/uri": "s3://bucket/far"}),
        dg.AssetSpec("out", metadata={"dagster/uri": (tmp_path / "out" / "cities").as_uri()}),
    ]
    project = Project.load(tmp_path)
    reads = {
        spec.key.to_user_string(): {one.asset_key.to_user_string() for one in spec.deps}
        for spec in build_mz_asset_specs(project, upstream=of_others)
    }
    assert reads == {
        "orders": {"written", "by_day"},
        "cities": {"orders"},
        "published": {"cities"},
        "files": {"landed"},
        "far": {"stored", "both"},
        "alone": {"fed"},
    }

    @mz_assets(project=project, upstream=of_others)
    def shop(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    chosen = dg.AssetSelection.assets("orders", "cities", "published")
    job = dg.define_asset_job("step", selection=chosen, executor_def=dg.in_process_executor)
    mz = MzResource(project_dir=str(tmp_path))
    definitions = dg.Definitions(assets=[shop, *of_others], jobs=[job], resources={"mz": mz})
    step = definitions.resolve_job_def("step")

    def published() -> list[tuple[str, int]]:
        found = DeltaTable(tmp_path / "out" / "cities").to_pyarrow_table().to_pylist()
        return [(one["city"], one["n"]) for one in found]

    assert dg.materialize([written], instance=instance).success
    assert step.execute_in_process(instance=instance).success
    assert published() == [("London", 1)]
    for one in (written, by_day):
        key = None if one is written else "2024-01-02"
        assert dg.materialize([one], instance=instance, partition_key=key).success
    with Engine(project) as engine:
        tick = engine.poll("default").tick
    assert tick is not None
    instance.add_dynamic_partitions(partitions_of(project, "default").name or "", [partition_key(tick)])
    assert step.execute_in_process(instance=instance, partition_key=partition_key(tick)).success
    assert published() == [("London", 2)]
