"""Freshness and automation across the edge from a view to an asset downstream of it, as the daemon sees them."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.definitions.freshness_evaluator import FRESHNESS_EVALUATORS_BY_POLICY_TYPE
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import freeze_time

from mz_dagster import MzIOManager, MzResource, Project, StepResult, mz_assets
from mz_dagster.adapter import Engine
from mz_dagster.clock import SystemClock
from mz_dagster.orchestration import partition_key, partitions_of

RETENTION = "mz_retention_feed"
Mint = Callable[..., None]
START = datetime(2026, 3, 2, 8, tzinfo=UTC)


class Asked:
    """Evaluates automation as the daemon's sensor does, from one look to the next."""

    def __init__(self, definitions: dg.Definitions, instance: dg.DagsterInstance, *names: str) -> None:
        self.definitions, self.instance = definitions, instance
        self.selection = dg.AssetSelection.assets(*names)
        self.cursor: Any = None

    def __call__(self) -> int:
        found = dg.evaluate_automation_conditions(
            self.definitions, self.instance, asset_selection=self.selection, cursor=self.cursor
        )
        self.cursor = found.cursor
        return found.total_requested


def states(definitions: dg.Definitions, instance: dg.DagsterInstance, *names: str) -> list[str]:
    """Returns what the freshness daemon would say of some assets."""
    graph = definitions.resolve_asset_graph()

    def state(name: str) -> str:
        node = graph.get(dg.AssetKey(name))
        policy = node.freshness_policy_or_from_metadata
        assert policy is not None
        evaluator = FRESHNESS_EVALUATORS_BY_POLICY_TYPE[type(policy)]()
        return asyncio.run(evaluator.evaluate_freshness(LoadingContextForTest(instance), node)).value

    return [state(name) for name in names]


@pytest.mark.filterwarnings("ignore::dagster.SupersessionWarning")
def test_what_is_downstream_stays_fresh_with_its_view_while_nothing_happens(
    engine: Engine,
    mint: Mint,
    quiet: Project,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = timedelta(minutes=10)

    @dg.asset(
        deps=["doubled"],
        automation_condition=dg.AutomationCondition.eager(),
        freshness_policy=dg.FreshnessPolicy.time_window(window),
    )
    def report() -> None: ...

    both = dg.Definitions.merge(defs, dg.Definitions(assets=[report]))
    asked = Asked(both, instance, "report")
    checked = dg.build_last_update_freshness_checks(assets=["doubled", "report"], lower_bound_delta=window)
    checks = dg.Definitions(asset_checks=checked).resolve_implicit_global_asset_job_def()

    def at(minutes: float, sensor: str | None = None) -> tuple[list[str], int]:
        """Does as Dagster's daemon does once, so long after the start; returns the states before and the requests."""
        now = START + timedelta(minutes=minutes)
        with freeze_time(now), monkeypatch.context() as then:
            then.setattr(SystemClock, "now_ms", lambda _: round(now.timestamp() * 1000))
            before = states(both, instance, "doubled", "report")
            if minutes == 17:
                ran = checks.execute_in_process(instance=instance)
                said = {one.asset_key.to_user_string(): one.passed for one in ran.get_asset_check_evaluations()}
                assert [said["doubled"], said["report"]] == [one in ("PASS", "WARN") for one in before]
            if sensor is not None:
                look(sensor)
            if requests := asked():
                instance.report_runless_asset_event(dg.AssetMaterialization("report"))
            return before, requests

    (quiet.root / "clock").write_text("1000")
    mint(1000)
    assert at(0, "mz_frontier_feed") == (["UNKNOWN", "UNKNOWN"], 0)  # minted, and not yet to be read
    engine.step("feed", 1000)
    assert at(1, "mz_frontier_feed") == (["UNKNOWN", "UNKNOWN"], 1)
    assert at(5) == (["WARN", "PASS"], 0)
    (quiet.root / "clock").write_text("1400")
    assert engine.poll("feed").tick is None  # idle: the frontier follows the clock, without a tick
    assert at(6, RETENTION) == (["WARN", "PASS"], 1)  # the view is told to be fresh, and what reads it follows
    assert at(14, RETENTION) == (["WARN", "PASS"], 0)  # the frontier has not moved again
    assert at(17, RETENTION) == (["FAIL", "FAIL"], 0)
    (quiet.root / "clock").write_text("1800")
    assert engine.poll("feed").tick is None
    assert at(18, RETENTION) == (["FAIL", "FAIL"], 1)
    assert at(19) == (["PASS", "PASS"], 0)


def test_an_asset_downstream_of_a_view_that_is_younger_than_ticks_looks_at_the_last(
    engine: Engine, mint: Mint, quiet: Project, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000, 2000)
    engine.step("feed", 2000)
    look()
    (quiet.root / "assets" / "younger.sql").write_text("CREATE MATERIALIZED VIEW younger AS SELECT id FROM a;")
    engine.apply()
    mint(3000)
    engine.step("feed", 3000)

    @mz_assets(project=Project.load(quiet.root))
    def stepped(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    def downstream(name: str, mapping: dg.PartitionMapping | None) -> dg.AssetsDefinition:
        @dg.asset(
            name=name,
            deps=[dg.AssetDep("younger", partition_mapping=mapping)],
            automation_condition=dg.AutomationCondition.eager(),
        )
        def report() -> None: ...

        return report

    assets = [downstream("of_all", None), downstream("of_the_last", dg.LastPartitionMapping())]
    definitions = dg.Definitions(assets=[stepped, *assets], resources={"mz": MzResource(project_dir=str(quiet.root))})
    of_all, of_the_last = (Asked(definitions, instance, name) for name in ("of_all", "of_the_last"))
    look()
    assert (of_all(), of_the_last()) == (0, 0)
    instance.report_runless_asset_event(dg.AssetMaterialization("younger", partition=partition_key(3000)))
    assert (of_all(), of_the_last()) == (0, 1), "it was not there at the first ticks"
    instance.add_dynamic_partitions("mz_ticks_shop.feed", [partition_key(4000)])
    assert of_the_last() == 0
    instance.report_runless_asset_event(dg.AssetMaterialization("younger", partition=partition_key(4000)))
    assert of_the_last() == 1


@pytest.mark.deep
def test_an_asset_without_partitions_takes_a_view_as_it_is_when_all_its_ticks_are_forgotten(
    engine: Engine,
    mint: Mint,
    quiet: Project,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
) -> None:
    taken: list[pa.Table] = []
    ins = {"doubled": dg.AssetIn(input_manager_key="mz_io")}

    @dg.asset(ins=ins)
    def report(doubled: pa.Table) -> None:
        taken.append(doubled)

    @dg.asset(
        ins={
            "doubled": dg.AssetIn(input_manager_key="mz_io", partition_mapping=dg.LastPartitionMapping()),
        }
    )
    def of_the_last(doubled: pa.Table) -> None:
        taken.append(doubled)

    @dg.asset(ins=ins, partitions_def=partitions_of(quiet, "feed"))
    def by_tick(doubled: pa.Table) -> None:
        taken.append(doubled)

    (quiet.root / "clock").write_text("1000")
    mint(1000)
    engine.step("feed", 1000)
    look()
    (quiet.root / "clock").write_text("100000")
    assert engine.poll("feed").tick is None
    look(RETENTION)
    assert not engine.catalog.collection(engine.collection_of("doubled")).is_readable_at(1000)
    resources = {"mz_io": MzIOManager(project_dir=str(quiet.root)), "mz": MzResource(project_dir=str(quiet.root))}
    definitions = dg.Definitions.merge(
        dg.Definitions(assets=defs.assets), dg.Definitions(assets=[report, of_the_last, by_tick], resources=resources)
    )

    def ran(name: str, key: str | None = None) -> bool:
        job = dg.define_asset_job("one", selection=[name], executor_def=dg.in_process_executor)
        one = dg.Definitions.merge(definitions, dg.Definitions(jobs=[job])).resolve_job_def("one")
        return one.execute_in_process(instance=instance, partition_key=key, raise_on_error=False).success

    assert ran("report")
    assert ran("of_the_last")
    assert [one.num_rows for one in taken] == [0, 0]
    assert not ran("by_tick", partition_key(1000)), "what the tick was is forgotten"
    mint(200_000)
    look()
    assert ran("of_the_last"), "a tick that is open is closed by who reads it"
