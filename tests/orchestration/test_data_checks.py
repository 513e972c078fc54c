"""The checks of a project as asset checks: each run carries them, and what is downstream of a blocking one waits."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import dagster as dg
import pytest

from mz_dagster import MzResource, Project, StepResult, mz_assets
from mz_dagster.adapter import Connection, Engine, Isolation, apply_project
from mz_dagster.orchestration.checks import build_mz_asset_checks, step_selection
from mz_dagster.orchestration.continuous import Continuous
from mz_dagster.orchestration.data_checks import check_name
from mz_dagster.orchestration.recording import asset_specs
from mz_dagster.orchestration.ticks import partition_key, partitions_of

SQL = """
-- @check unique(id), blocking
-- @check not_null(amount), severity warn
CREATE TABLE orders (id integer, amount integer);
-- @check row_count(<= 3)
CREATE VIEW large AS SELECT * FROM orders WHERE amount > 100;
-- What each is worth.
CREATE MATERIALIZED VIEW worth AS SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "assets" / "checks").mkdir(parents=True)
    (tmp_path / "assets" / "all.sql").write_text(SQL)
    (tmp_path / "assets" / "checks" / "positive.sql").write_text(
        "-- Nothing is worth less.\nSELECT * FROM worth WHERE amount < 0"
    )
    (tmp_path / "mz.toml").write_text("[project]\nengine = 'local'\n")
    return Project.load(tmp_path)


@pytest.fixture
def definitions(project: Project) -> dg.Definitions:
    return definitions_of(project)


def definitions_of(project: Project) -> dg.Definitions:
    """Returns what Dagster loads of the files as they are now."""

    @mz_assets(project=project)
    def shop(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    @dg.asset(deps=["worth"])
    def report() -> None:
        """Is computed of it."""

    selection = step_selection(shop) | dg.AssetSelection.assets(report)
    job = dg.define_asset_job("step", selection=selection, executor_def=dg.in_process_executor)
    return dg.Definitions(
        assets=[shop, report],
        asset_checks=[build_mz_asset_checks(project)],
        jobs=[job],
        resources={"mz": MzResource(project_dir=str(project.root))},
    )


def mint(engine: Engine) -> int:
    tick = engine.catalog.write_ts("default", engine.now("default"))
    engine.catalog.mint_tick("default", tick, {}, engine.catalog.last_tick("default"))
    return tick


def write(project: Project, *statements: str) -> None:
    with Connection(Engine(project), Isolation.STRICT_SERIALIZABLE) as connection:
        for statement in statements:
            connection.execute(statement)


def test_every_run_carries_what_the_checks_say(
    project: Project, definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    job = definitions.resolve_job_def("step")

    def run(success: bool) -> tuple[dict[str, dg.AssetCheckEvaluation], set[str]]:
        with Engine(project) as engine:
            apply_project(engine)
            tick = engine.poll("default").tick or mint(engine)
        instance.add_dynamic_partitions(partitions_of(project, "default").name or "", [partition_key(tick)])
        ran = job.execute_in_process(instance=instance, raise_on_error=False, partition_key=partition_key(tick))
        assert ran.success is success
        found = {one.check_name: one for one in ran.get_asset_check_evaluations()}
        made = {one.asset_key.to_user_string() for one in ran.get_asset_materialization_events() if one.asset_key}
        return found, made

    run(success=True)
    write(project, "INSERT INTO orders VALUES (1, 5), (2, NULL)")
    found, made = run(success=True)
    assert made == {"orders", "worth", "report"}
    own = {"orders_unique_id", "orders_not_null_amount", "large_row_count", "positive"}
    assert own <= found.keys()
    assert {name for name in own if not found[name].passed} == {"orders_not_null_amount"}
    warned = found["orders_not_null_amount"]
    assert warned.severity is dg.AssetCheckSeverity.WARN
    assert (warned.metadata["mz/violations"].value, warned.metadata["mz/violations_change"].value) == (1, 1)
    sample = warned.metadata["mz/violating"]
    assert isinstance(sample, dg.TableMetadataValue)
    (row,) = sample.records
    assert row.data == {"id": "2", "amount": "NULL"}
    assert found["large_row_count"].asset_key == dg.AssetKey("orders"), "a plain view is no asset"
    assert found["positive"].asset_key == dg.AssetKey("worth")

    write(project, "INSERT INTO orders VALUES (1, -9), (3, NULL)")
    found, made = run(success=False)
    assert made == {"orders", "worth"}, "views go on, and what is downstream does not"
    assert {name for name in own if not found[name].passed} == {
        "orders_not_null_amount",
        "orders_unique_id",
        "positive",
    }
    assert found["orders_not_null_amount"].metadata["mz/violations_change"].value == 1
    assert found["orders_unique_id"].description is not None
    assert found["orders_unique_id"].description.startswith("1 violation at ")

    write(project, "DELETE FROM orders WHERE amount < 0 OR amount IS NULL")
    found, made = run(success=True)
    assert {name for name in own if not found[name].passed} == set()
    assert found["orders_not_null_amount"].metadata["mz/violations_change"].value == -2


@pytest.mark.deep
def test_a_blocking_check_with_a_later_history_holds_up_no_old_tick(
    project: Project, instance: dg.DagsterInstance
) -> None:
    def run(tick: int) -> dg.ExecuteInProcessResult:
        instance.add_dynamic_partitions(partitions_of(project, "default").name or "", [partition_key(tick)])
        job = definitions_of(project).resolve_job_def("step")
        return job.execute_in_process(instance=instance, raise_on_error=False, partition_key=partition_key(tick))

    def applied(*statements: str) -> int:
        with Engine(project) as engine:
            apply_project(engine)
        write(project, *statements)
        with Engine(project) as engine:
            return engine.poll("default").tick or mint(engine)

    old = applied()
    assert run(old).success
    assert run(applied("INSERT INTO orders VALUES (1, 5)")).success
    text = SQL.replace("-- What each is worth.", "-- @check unique(id), blocking")
    (project.root / "assets" / "all.sql").write_text(text.replace("amount FROM orders GROUP", "bits FROM orders GROUP"))
    (project.root / "assets" / "checks" / "positive.sql").write_text("SELECT * FROM worth WHERE bits < 0")
    new = run(applied("INSERT INTO orders VALUES (2, 5)"))
    assert "worth_unique_id" in {one.check_name for one in new.get_asset_check_evaluations()}
    again = run(old)
    assert again.success, "nobody can tell whether it held, and the tick was closed before"
    assert not {"worth_unique_id", "positive"} & {one.check_name for one in again.get_asset_check_evaluations()}


def test_checks_are_specified_as_the_files_say(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    assert check_name("goes_on") != "goes_on", "each asset has one that is called so"
    specs = {key.name: graph.get_check_spec(key) for key in graph.asset_check_keys}
    assert specs["orders_unique_id"].blocking
    assert not specs["orders_not_null_amount"].blocking
    assert specs["positive"].description == "Nothing is worth less."
    assert 'It is about the view "large".' in str(specs["large_row_count"].description)


def test_continuous_mode_tells_when_a_check_says_something_else(
    project: Project, definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    with Engine(project) as engine, Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
        apply_project(engine)
        specs = asset_specs(definitions.get_repository_def(), engine)
        said: list[tuple[bool, object]] = []
        for statement in (
            "INSERT INTO orders VALUES (1, 1)",
            "INSERT INTO orders VALUES (1, 2), (2, 2)",
            "INSERT INTO orders VALUES (2, 2)",
            "DELETE FROM orders WHERE amount = 2",
        ):
            connection.execute(statement)
            engine.poll("default")
            loop = Continuous(engine, instance, "default", specs, lambda _: None, interval_s=0.05, for_s=0.01)
            for event in chain.from_iterable(loop.run()):
                if isinstance(event, dg.AssetCheckEvaluation) and event.check_name == "orders_unique_id":
                    said.append((event.passed, event.metadata["mz/violations"].value))
    assert said == [(True, 0), (False, 1), (False, 2), (True, 0)]
