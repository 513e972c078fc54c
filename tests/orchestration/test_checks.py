"""The invariants as asset checks: each passes on what is right, and finds what was broken on purpose."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mz_dagster import (
    MzResource,
    Project,
    StepResult,
    build_mz_asset_checks,
    build_mz_asset_specs,
    mz_assets,
    step_selection,
)
from mz_dagster.adapter import Connection, Engine, Isolation
from mz_dagster.catalog import CollectionRow, Sealed
from mz_dagster.formalism import Antichain
from mz_dagster.orchestration.events import asset_ids, asset_metadata
from mz_dagster.orchestration.frontier_checks import FrontierChecks, FrontierSnapshot, last_frontiers
from mz_dagster.storage import compare_and_append, update_table
from tests.orchestration.instances import own_instance

TIMELINE = "default"
KEY = dg.AssetKey("t")
ALL = {"since_le_upper", "frontiers_monotone", "not_ahead_of_inputs", "goes_on", "no_errors"}
SQL = """
CREATE TABLE t (a integer, b text);
CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b;
CREATE INDEX v_by_n ON v (n);
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A project whose view nobody has stepped: it needs no Spark."""
    (tmp_path / "mz.toml").write_text("")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.sql").write_text(SQL)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        opened.engine.apply()
        yield opened


@pytest.fixture
def definitions(connection: Connection) -> dg.Definitions:
    project = connection.engine.project

    @mz_assets(project=project)
    def assets(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    checks = build_mz_asset_checks(project)
    return dg.Definitions(
        assets=[assets],
        asset_checks=[checks],
        jobs=[
            dg.define_asset_job("step", selection=step_selection(assets)),
            dg.define_asset_job("checks", selection=dg.AssetSelection.checks(checks)),
            dg.define_asset_job("frontier_checks", selection=dg.AssetSelection.checks(assets)),
        ],
        resources={"mz": MzResource(project_dir=str(project.root))},
        executor=dg.in_process_executor,
    )


def row_of(connection: Connection, name: str) -> CollectionRow:
    engine = connection.engine
    return engine.catalog.collection(engine.collection_of(name))


def append(connection: Connection, name: str, *updates: Any) -> int:
    """Writes updates behind the engine's back, at the next time; returns it."""
    engine, row = connection.engine, row_of(connection, name)
    time = max(engine.clock.now_ms(), row.upper.only)
    frame = update_table(row.columns, [(data, time, diff, *error) for data, diff, *error in updates])
    upper = Antichain.of(row.upper.lattice, time + 1)
    sealed = compare_and_append(
        engine.catalog, engine.shards, row, row.upper, upper, frame, holder="a test", apply=(TIMELINE, time)
    )
    assert isinstance(sealed, Sealed)
    return time


def evaluated(
    connection: Connection,
    name: str,
    tick: int,
    before: FrontierSnapshot | None = None,
    **changed: tuple[int, int],
) -> dict[str, dg.AssetCheckResult]:
    """Evaluates the cheap checks, with the frontiers of some collections told otherwise than they are."""
    engine = connection.engine
    rows = {row.id: row for row in engine.catalog.collections(TIMELINE)}
    for other, frontiers in changed.items():
        id = engine.collection_of(other)
        since, upper = (Antichain.of(rows[id].upper.lattice, time) for time in frontiers)
        rows[id] = replace(rows[id], since=since, upper=upper)
    key = dg.AssetKey(name)
    names = ALL if name == "t" else ALL - {"no_errors"}  # the view has no contents to look at
    checks = FrontierChecks(engine, engine.graph(TIMELINE), rows, tick, {} if before is None else {key: before})
    return {str(one.check_name): one for one in checks.results(key, engine.collection_of(name), names)}


# ---- the cheap ones


def test_each_check_passes_on_what_is_right(connection: Connection) -> None:
    time = append(connection, "t", ((1, "x"), 1))
    found = evaluated(connection, "t", time)
    assert found.keys() == ALL
    assert all(one.passed for one in found.values())
    assert all(one.severity is dg.AssetCheckSeverity.ERROR for one in found.values())
    assert found["since_le_upper"].metadata["mz/readable_ms"].value == time + 1


def test_a_frontier_that_went_back_is_found_unless_it_is_of_another_collection(connection: Connection) -> None:
    time = append(connection, "t", ((1, "x"), 1))
    id = row_of(connection, "t").id
    for before, passed in (
        (FrontierSnapshot(id, 0, time + 1), True),
        (FrontierSnapshot(id, 0, time + 2), False),
        (FrontierSnapshot(id, 1, time), False),
        (FrontierSnapshot("u99", 1, time + 2), True),
    ):
        found = evaluated(connection, "t", time, before)["frontiers_monotone"]
        assert found.passed is passed, before
    found = evaluated(connection, "t", time, FrontierSnapshot(id, 0, time + 2))["frontiers_monotone"]
    assert found.metadata["mz/upper_moved_ms"].value == -1
    assert found.description == f"since 0 -> 0, upper {time + 2} -> {time + 1}"


def test_an_output_ahead_of_an_input_is_found_and_the_input_is_named(connection: Connection) -> None:
    time = append(connection, "t", ((1, "x"), 1))
    found = evaluated(connection, "v", time, v=(0, time + 5))["not_ahead_of_inputs"]
    assert not found.passed
    assert found.description == "ahead of t, v (arrangement 1)"
    assert not evaluated(connection, "v", time, v=(1, 0))["since_le_upper"].passed


def test_errors_count_until_they_are_taken_back(connection: Connection) -> None:
    zero = (None, None), 1, "22012 division by zero"
    first = append(connection, "t", zero, zero, ((None, None), 1, "22003 out of range"))
    found = evaluated(connection, "t", first)["no_errors"]
    assert not found.passed
    assert (found.metadata["mz/net_errors"].value, found.metadata["mz/distinct_errors"].value) == (3, 2)
    assert found.description == "22003 out of range; 22012 division by zero"
    second = append(connection, "t", ((None, None), -2, zero[2]), ((None, None), -1, "22003 out of range"))
    assert evaluated(connection, "t", second)["no_errors"].passed
    assert not evaluated(connection, "t", first)["no_errors"].passed


def test_the_last_frontiers_are_those_of_the_last_materialization(connection: Connection) -> None:
    time = append(connection, "t", ((1, "x"), 1))
    engine = connection.engine
    (spec,) = [one for one in build_mz_asset_specs(engine.project) if one.key == KEY]
    assert asset_ids(engine, [spec]) == {KEY: engine.collection_of("t")}
    with own_instance() as instance:
        assert last_frontiers(instance, [KEY]) == {}
        instance.report_runless_asset_event(dg.AssetMaterialization(KEY, metadata={"mz/upper": 1}))
        assert last_frontiers(instance, [KEY]) == {}, "an event that does not tell all says nothing"
        metadata = asset_metadata(engine, row_of(connection, "t"), time)
        instance.report_runless_asset_event(dg.AssetMaterialization(KEY, metadata=metadata))
        assert last_frontiers(instance, [KEY]) == {KEY: FrontierSnapshot(row_of(connection, "t").id, 0, time + 1)}


def test_a_run_of_checks_alone_needs_no_tick(connection: Connection, definitions: dg.Definitions) -> None:
    """As from the button of the Checks tab."""
    append(connection, "t", ((1, "x"), 1), ((None, None), 1, "22012 division by zero"))
    with own_instance() as instance:
        ran = definitions.resolve_job_def("frontier_checks").execute_in_process(instance=instance)
    found = {(one.asset_key.to_user_string(), one.check_name): one for one in ran.get_asset_check_evaluations()}
    assert found.keys() == {(asset, check) for asset in ("t", "v", "v_by_n") for check in ALL}
    assert [key for key, one in found.items() if not one.passed] == [("t", "no_errors")]
    assert not ran.get_asset_materialization_events()


# ---- those that read data


def test_views_are_audited_and_tables_are_not_and_a_step_audits_nothing(definitions: dg.Definitions) -> None:
    def names(job: str) -> set[tuple[str, str]]:
        keys = definitions.resolve_job_def(job).asset_layer.asset_graph.asset_check_keys
        return {(key.asset_key.to_user_string(), key.name) for key in keys}

    assert names("checks") == {
        ("t", "no_negative_multiplicity"),
        ("v", "no_negative_multiplicity"),
        ("v", "audit"),
    }
    assert names("step") == {(asset, check) for asset in ("t", "v", "v_by_n") for check in ALL}


def run_checks(definitions: dg.Definitions, **config: Any) -> dict[tuple[str, str], dg.AssetCheckEvaluation]:
    """Runs the checks that read data, as from the Checks tab; returns what each found."""
    run_config = {
        "ops": {"mz_default_checks": {"config": config}},
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }
    with own_instance() as instance:
        ran = definitions.resolve_job_def("checks").execute_in_process(instance=instance, run_config=run_config)
    return {(one.asset_key.to_user_string(), one.check_name): one for one in ran.get_asset_check_evaluations()}


def test_a_retraction_of_what_is_not_there_is_found_with_its_row(
    connection: Connection, definitions: dg.Definitions
) -> None:
    good = append(connection, "t", ((1, "x"), 2), ((1, "x"), -1))
    bad = append(connection, "t", ((7, None), -2))
    assert run_checks(definitions, tick=good)["t", "no_negative_multiplicity"].passed
    found = run_checks(definitions)["t", "no_negative_multiplicity"]
    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.ERROR
    assert (found.metadata["mz/tick"].value, found.metadata["mz/rows_lacking"].value) == (bad, 2)
    table = found.metadata["mz/lacking"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [dict(record.data) for record in table.records] == [{"a": "7", "b": "NULL", "copies": 2}]


def test_what_cannot_be_checked_yet_says_why_and_stops_no_other(
    connection: Connection, definitions: dg.Definitions
) -> None:
    time = append(connection, "t", ((1, "x"), 1))
    found = run_checks(definitions, tick=time)
    assert found["t", "no_negative_multiplicity"].passed
    audit = found["v", "audit"]  # nobody has stepped it
    assert not audit.passed
    assert audit.severity is dg.AssetCheckSeverity.WARN
    assert audit.description is not None
    assert "could not be made" in audit.description
    assert "HINT" in audit.description


def test_what_the_files_say_wrong_of_an_asset_is_a_warning_of_its_check(
    connection: Connection, definitions: dg.Definitions
) -> None:
    path = connection.engine.project.assets / "t.sql"
    path.write_text(SQL.replace("SELECT b, count(*)", "SELECT c, count(*)"))
    with dg.DagsterInstance.ephemeral() as instance:
        done = definitions.resolve_job_def("frontier_checks").execute_in_process(instance=instance)
        found = {(str(one.asset_key.path[-1]), one.check_name): one for one in done.get_asset_check_evaluations()}
    assert found["t", "goes_on"].passed
    wrong = found["v", "goes_on"]
    assert (wrong.passed, wrong.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "t.sql:3:" in str(wrong.description)
