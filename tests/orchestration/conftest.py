"""A project with its own folder, whose Spark is the test run's server, and Dagster definitions over it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mz_dagster import (
    MzDagsterTranslator,
    MzResource,
    Project,
    StepResult,
    build_continuous_job,
    build_frontier_sensor,
    build_retention_sensor,
    mz_assets,
)
from mz_dagster.adapter import Engine
from mz_dagster.catalog import TickMoved
from mz_dagster.storage.spark import SparkConfig, ensure_server
from tests.orchestration.instances import own_instance

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

#: Of a project at which nothing arrives, so that no Spark is needed.
QUIET_SQL = """
CREATE SOURCE a (id integer NOT NULL, PRIMARY KEY (id))
FROM FILES (FOLDER 'landing/a', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE b (id integer NOT NULL, PRIMARY KEY (id))
FROM FILES (FOLDER 'landing/b', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;
CREATE MATERIALIZED VIEW doubled AS SELECT id * 2 AS two FROM a;
"""


@pytest.fixture
def project(tmp_path: Path, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch) -> Project:
    server = ensure_server(spark_config)
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    (tmp_path / "mz.toml").write_text(
        "[project]\nname = 'shop'\ntimeline = 'feed'\n[timelines.feed]\nclock = 'landing/clock'\n"
        f"[spark]\nremote = '{server.url}'\n"
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
    def orders_assets(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
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
    with own_instance() as opened:
        yield opened


@pytest.fixture
def quiet(tmp_path: Path) -> Project:
    """A project whose Spark is nowhere, on a timeline whose clock stands still."""
    keep = "[retention]\nkeep = '1500 ms'\n"
    (tmp_path / "mz.toml").write_text(
        "[project]\nname = 'shop'\ntimeline = 'feed'\n[timelines.feed]\nclock = 'clock'\n[spark]\nremote = 'sc://127.0.0.1:1'\n"
        + keep
    )
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text(QUIET_SQL)
    for source in ("a", "b"):
        (tmp_path / "landing" / source).mkdir(parents=True)
    return Project.load(tmp_path)


class Fresh(MzDagsterTranslator):
    """Gives one asset a freshness policy."""

    def get_asset_spec(self, obj: Any) -> dg.AssetSpec:
        spec = super().get_asset_spec(obj)
        policy = dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=10), warn_window=timedelta(minutes=4))
        return spec.replace_attributes(freshness_policy=policy) if obj.name == "doubled" else spec


@pytest.fixture
def defs(quiet: Project) -> dg.Definitions:
    @mz_assets(project=quiet, translator=Fresh())
    def stepped(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    job = dg.define_asset_job("step", selection=[stepped], executor_def=dg.in_process_executor)
    return dg.Definitions(
        assets=[stepped],
        jobs=[job, build_continuous_job(quiet)],
        sensors=[build_frontier_sensor(quiet, job), build_retention_sensor(quiet)],
        resources={"mz": MzResource(project_dir=str(quiet.root))},
    )


@pytest.fixture
def engine(quiet: Project) -> Iterator[Engine]:
    with Engine(quiet, holder="a session") as opened:
        opened.apply()
        yield opened


@pytest.fixture
def mint(engine: Engine) -> Callable[..., None]:
    """Mints ticks at which nothing arrives."""

    def minted(*ticks: int) -> None:
        for tick in ticks:
            last = engine.catalog.last_tick("feed")
            assert not isinstance(engine.catalog.mint_tick("feed", tick, {}, last), TickMoved)

    return minted


@pytest.fixture
def look(defs: dg.Definitions, instance: dg.DagsterInstance) -> Callable[..., Any]:
    """Evaluates a sensor and does what the daemon does with the result, but launches nothing."""
    cursors: dict[str, str | None] = {}

    def evaluated(name: str = "mz_frontier_feed", *, lost_cursor: bool = False) -> Any:
        with dg.build_sensor_context(
            instance=instance,
            instance_ref=instance.get_ref(),
            definitions=defs,
            sensor_name=name,
            cursor=None if lost_cursor else cursors.get(name),
            resources=defs.resources or {},
        ) as context:
            result = defs.resolve_sensor_def(name).evaluate_tick(context)
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
        for request in result.dynamic_partitions_requests or ():
            if isinstance(request, dg.AddDynamicPartitionsRequest):
                instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
            else:
                for key in request.partition_keys:
                    instance.delete_dynamic_partition(request.partitions_def_name, key)
        cursors[name] = result.cursor
        return result

    return evaluated
