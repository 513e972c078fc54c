"""A Delta table in, a view, and a Delta table out, as assets of one graph."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mz_dagster import MzResource, Project, StepResult, mz_assets

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
