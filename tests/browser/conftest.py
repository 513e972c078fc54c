"""A small shop with five ticks, three of them stepped, served by `dagster dev`; a page of a browser to look at it.

The shop's Spark is the test run's server. Its third order came in no parts, so that its price is an error.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from mz_dagster.adapter import Engine, Project
from mz_dagster.orchestration import partition_key, partitions_of
from mz_dagster.orchestration.drive import dagster_home, drive, instance_of, load_definitions
from mz_dagster.storage.spark import SparkConfig, ensure_server
from tests.browser.dagster_dev import chromium, dagster_dev

SETTINGS = """\
[project]
name = "shop"
timeline = "shop"
[timelines.shop]
clock = "landing/clock"
[spark]
remote = "{remote}"
"""

SQL = """\
-- Every order, as the till reports it.
-- @owner team:sales
-- @group till
CREATE SOURCE orders (id integer NOT NULL, customer text, amount integer, parts integer, PRIMARY KEY (id))
    FROM FILES (FOLDER 'landing/orders', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;

-- What one part of each order costs.
-- @owner ada@example.com
-- @group reports
-- @tag tier=gold
CREATE MATERIALIZED VIEW part_prices AS SELECT id, customer, amount / parts AS price FROM orders;

-- Part prices, for looking up a customer's.
-- @group reports
CREATE INDEX part_prices_by_customer ON part_prices (customer);
"""

DEFINITIONS = """\
from pathlib import Path

import dagster as dg

from mz_dagster import (
    MzResource,
    Project,
    build_compaction_job,
    build_frontier_sensor,
    build_mz_asset_checks,
    mz_assets,
    step_selection,
)

PROJECT = Project.load(Path(__file__).parent)


@mz_assets(project=PROJECT)
def shop(context: dg.AssetExecutionContext, mz: MzResource):
    yield from mz.step(context)


step = dg.define_asset_job("step", selection=step_selection(shop))
defs = dg.Definitions(
    assets=[shop],
    asset_checks=[build_mz_asset_checks(PROJECT)],
    jobs=[step, build_compaction_job(PROJECT)],
    sensors=[build_frontier_sensor(PROJECT, step, default_status=dg.DefaultSensorStatus.STOPPED)],
    resources={"mz": MzResource(project_dir=str(PROJECT.root))},
    executor=dg.in_process_executor,
)
"""

WORKSPACE = """\
load_from:
  - python_file: {relative_path: definitions.py, working_directory: ., location_name: shop}
"""

TICKS = [int(datetime(2026, 1, day, tzinfo=UTC).timestamp() * 1000) for day in range(1, 6)]
#: Ticks that were stepped before the browser looks; the others are minted only.
STEPPED = 3


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark_config: SparkConfig) -> Iterator[Project]:
    root = tmp_path_factory.mktemp("shop")
    server = ensure_server(spark_config)
    (root / "landing" / "orders").mkdir(parents=True)
    (root / "assets").mkdir()
    (root / "assets" / "shop.sql").write_text(SQL)
    (root / "mz.toml").write_text(SETTINGS.format(remote=server.url))
    (root / "definitions.py").write_text(DEFINITIONS)
    (root / "workspace.yaml").write_text(WORKSPACE)
    project = Project.load(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
        patch.setenv("DAGSTER_HOME", str(dagster_home(project)))
        patch.syspath_prepend(root)  # which loading the definitions does, too, but nobody undoes
        with instance_of(project) as instance:
            definitions = load_definitions(project)
            for number in range(STEPPED):
                _order(root, number)
                drive(definitions, instance, ticks=1, on_run=lambda _: None)
            with Engine(project) as engine:
                for number in range(STEPPED, len(TICKS)):
                    _order(root, number)
                    assert engine.poll("shop").tick == TICKS[number]
            minted = [partition_key(tick) for tick in TICKS[STEPPED:]]
            instance.add_dynamic_partitions(str(partitions_of(project, "shop").name), minted)
        yield project


def _order(root: Path, number: int) -> None:
    """Drops one order and sets the clock to its tick."""
    landing = root / "landing"
    parts = 0 if number == 2 else 2
    value = f'{{"customer": "ada", "amount": 10, "parts": {parts}}}'
    (landing / "orders" / f"{number}.jsonl").write_text(f'{{"key": {{"id": {number}}}, "value": {value}}}\n')
    (landing / "clock.new").write_text(str(TICKS[number]))
    (landing / "clock.new").replace(landing / "clock")


@pytest.fixture(scope="module")
def url(project: Project) -> Iterator[str]:
    """The project in Dagster's UI, with its daemon."""
    with dagster_dev(project.root, dagster_home(project)) as url:
        yield url


@pytest.fixture(scope="module")
def browser(url: str) -> Iterator[BrowserContext]:
    """One session of a browser; it waits half a minute for whatever it is told to find."""
    expect.set_options(timeout=30_000)
    with chromium() as opened:
        context = opened.new_context(base_url=url, viewport={"width": 1400, "height": 900})
        context.set_default_timeout(30_000)
        yield context


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keeps what a failed test saw: a screenshot, and in the report the page's text."""
    report = yield
    if call.when == "call" and report.failed and isinstance(item, pytest.Function) and "page" in item.funcargs:
        page, project = item.funcargs["page"], item.funcargs["project"]
        assert isinstance(page, Page)
        assert isinstance(project, Project)
        shot = project.root / f"{item.name}.png"
        page.screenshot(path=shot)
        report.sections.append((f"Page {page.url}, seen in {shot}", page.inner_text("body")))
    return report
