"""A project with its own folder, whose Spark is the test run's server, and Dagster definitions over it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from mz_dagster import MzResource, Project, build_frontier_sensor, mz_assets
from mz_dagster.storage.spark import SparkConfig, ensure_server

SQL = """
CREATE SOURCE orders (id integer NOT NULL, customer text, amount integer, PRIMARY KEY (id))
FROM FILES (FOLDER 'landing/orders', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE customers (name text NOT NULL, city text, PRIMARY KEY (name))
FROM FILES (FOLDER 'landing/customers', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;
CREATE VIEW named AS SELECT o.id, o.amount, c.city FROM orders o JOIN customers c ON c.name = o.customer;
-- What was ordered where.
CREATE MATERIALIZED VIEW ordered AS SELECT id, amount * 2 AS twice, city FROM named;
CREATE INDEX ordered_by_city ON ordered (city);
"""


@pytest.fixture
def project(tmp_path: Path, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch) -> Project:
    server = ensure_server(spark_config)
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    (tmp_path / "mz.toml").write_text(
        f"[project]\ntimeline = 'feed'\n[timelines.feed]\nclock = 'landing/clock'\n[spark]\nremote = '{server.url}'\n"
    )
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "orders.sql").write_text(SQL)
    for source in ("orders", "customers"):
        (tmp_path / "landing" / source).mkdir(parents=True)
    return Project.load(tmp_path)


@pytest.fixture
def drop(project: Project) -> Callable[..., None]:
    """Drops a file of JSON lines, if given, and sets the feed's clock."""

    def dropped(clock: int, source: str | None = None, *lines: str) -> None:
        landing = project.root / "landing"
        if source is not None:
            (landing / source / f"{clock}.jsonl").write_text("".join(line + "\n" for line in lines))
        (landing / "clock.new").write_text(str(clock))
        (landing / "clock.new").replace(landing / "clock")

    return dropped


@pytest.fixture
def definitions(project: Project) -> dg.Definitions:
    @mz_assets(project=project)
    def orders_assets(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[dg.MaterializeResult[None]]:
        yield from mz.step(context)

    job = dg.define_asset_job("step", selection=[orders_assets], executor_def=dg.in_process_executor)
    return dg.Definitions(
        assets=[orders_assets],
        jobs=[job],
        sensors=[build_frontier_sensor(project, job)],
        resources={"mz": MzResource(project_dir=str(project.root))},
    )


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened
