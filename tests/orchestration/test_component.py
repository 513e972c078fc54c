"""The component: what a few lines of YAML make of a project, and what a subclass and `translation:` change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import create_defs_folder_sandbox
from dagster.components.testing.test_cases import TestOpCustomization as OpCases
from dagster.components.testing.test_cases import TestTranslation as TranslationCases

from mz_dagster import MzProjectComponent, MzResource, Project, StepResult, build_mz_definitions
from mz_dagster.adapter import NoProject, ProjectObject
from mz_dagster.orchestration.scaffold import scaffold_project
from tests.orchestration.instances import own_instance

#: What Dagster's own scaffolding, component tree and test cases use.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore:Accessing `{{automation_condition"),
]

BIN = Path(sys.executable).parent
ALL = ["customers", "orders", "sales_by_city"]


@contextmanager
def loaded(
    attributes: Mapping[str, Any] | None = None, edit: Callable[[Path], None] = lambda _: None
) -> Iterator[tuple[MzProjectComponent, dg.Definitions]]:
    """Scaffolds the component as `dg` does, lets `edit` change the project, and loads what it defines."""
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=MzProjectComponent,
            defs_path="shop",
            defs_yaml_contents={
                "type": "mz_dagster.MzProjectComponent",
                "attributes": {"project": "project", **(attributes or {})},
            },
        )
        edit(path / "project")
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, definitions):
            assert isinstance(component, MzProjectComponent)
            yield component, definitions


def with_second_timeline(project: Path) -> None:
    (project / "mz.toml").write_text("[timelines.feed]\nclock = 'clock'\n")
    (project / "assets" / "feed.sql").write_text(
        "CREATE TABLE ticks (a integer) IN TIMELINE feed; CREATE MATERIALIZED VIEW ticked AS SELECT a FROM ticks;"
    )


def keys(definitions: dg.Definitions) -> list[str]:
    return sorted(spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs())


def op_of(definitions: dg.Definitions) -> dg.AssetsDefinition:
    return definitions.resolve_assets_def("sales_by_city")


# ---- what it makes


def test_what_is_scaffolded_loads_with_all_that_keeps_it_up_to_date() -> None:
    with loaded() as (_, definitions):
        dg.Definitions.validate_loadable(definitions)
        assert keys(definitions) == ALL
        repository = definitions.get_repository_def()
        assert {job.name for job in repository.get_all_jobs()} >= {"step", "mz_compaction", "mz_continuous_default"}
        sensors = {one.name: one.default_status for one in repository.sensor_defs}
        assert sensors == dict.fromkeys(("mz_frontier_default", "mz_retention_default"), dg.DefaultSensorStatus.RUNNING)
        (schedule,) = repository.schedule_defs
        assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
        checks = {spec.name for one in definitions.asset_checks or () for spec in one.check_specs}
        assert checks == {"no_negative_multiplicity", "audit"}
        assert "since_le_upper" in {spec.name for spec in op_of(definitions).check_specs}
        mz = (definitions.resources or {})["mz"]
        assert isinstance(mz, MzResource)
        assert Path(mz.project_dir).name == "project"
        assert not (Path(mz.project_dir) / ".mz").exists(), "loading makes no state"


def test_a_definitions_file_takes_all_of_a_project_by_one_call(tmp_path: Path) -> None:
    scaffold_project(tmp_path / "shop")
    project = Project.load(tmp_path / "shop")

    @dg.asset(metadata={"dagster/uri": str(project.root / "landing" / "orders")})
    def exported() -> None: ...

    @dg.asset(deps=["sales_by_city"])
    def report() -> None: ...

    own = dg.Definitions(assets=[exported, report])
    definitions = dg.Definitions.merge(own, build_mz_definitions(project, upstream=[exported], op_name="shop"))
    dg.Definitions.validate_loadable(definitions)
    assert keys(definitions) == sorted([*ALL, "exported", "report"])
    assert op_of(definitions).node_def.name == "shop"
    assert dg.AssetKey("exported") in definitions.resolve_asset_graph().get(dg.AssetKey("orders")).parent_keys
    jobs = {job.name for job in definitions.get_repository_def().get_all_jobs()}
    assert jobs >= {"step", "mz_compaction", "mz_continuous_default"}


def test_a_folder_without_a_project_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    for project in (Project.load(tmp_path / "nowhere"), Project.load(tmp_path)):
        with pytest.raises(NoProject, match="no project in") as refused:
            build_mz_definitions(project)
        assert '"mz.toml"' in str(refused.value.hint)


def test_its_driving_can_be_left_to_others() -> None:
    with loaded({"start_sensors": False, "compaction_schedule": None}) as (_, definitions):
        repository = definitions.get_repository_def()
        assert {one.default_status for one in repository.sensor_defs} == {dg.DefaultSensorStatus.STOPPED}
        assert not repository.schedule_defs
    with loaded({"start_sensors": False, "compaction_schedule": "0 3 * * *"}) as (_, definitions):
        (schedule,) = definitions.get_repository_def().schedule_defs
        assert schedule.cron_schedule == "0 3 * * *"
        assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED


def test_each_timeline_has_its_own_op_job_and_sensors() -> None:
    with loaded({"op": {"name": "shop"}}, with_second_timeline) as (_, definitions):
        dg.Definitions.validate_loadable(definitions)
        assert keys(definitions) == sorted([*ALL, "ticked", "ticks"])
        assert op_of(definitions).node_def.name == "shop_default"
        assert definitions.resolve_assets_def("ticked").node_def.name == "shop_feed"
        repository = definitions.get_repository_def()
        assert {one.name for one in repository.sensor_defs} == {
            f"mz_{what}_{timeline}" for what in ("frontier", "retention") for timeline in ("default", "feed")
        }
        assert {"step_default", "step_feed"} <= {job.name for job in repository.get_all_jobs()}
    with loaded({"timelines": ["feed"]}, with_second_timeline) as (_, definitions):
        assert keys(definitions) == ["ticked", "ticks"]
        assert "step" in {job.name for job in definitions.get_repository_def().get_all_jobs()}


# ---- what can be changed


class TestTranslation(TranslationCases):
    """Dagster's own cases for `translation:`."""

    def test_translation(
        self,
        attributes: dict[str, Any],
        assertion: Callable[[dg.AssetSpec], bool],
        key_modifier: Callable[[dg.AssetKey], dg.AssetKey] | None,
    ) -> None:
        if "partitions_def" in attributes:  # a step must know its tick, so partitions are ticks
            with pytest.raises(ComponentTreeException) as caught, loaded({"translation": attributes}):
                pass
            assert "different than the partitions_def" in str(caught.value.__cause__)
            return
        with loaded({"translation": attributes}) as (_, definitions):
            dg.Definitions.validate_loadable(definitions)
            for name in ("customers", "orders"):
                key = key_modifier(dg.AssetKey(name)) if key_modifier else dg.AssetKey(name)
                assert assertion(definitions.resolve_assets_def(key).get_asset_spec(key))


class TestOpCustomization(OpCases):
    """Dagster's own cases for `op:`."""

    def test_op_customization(self, attributes: dict[str, Any], assertion: Callable[[Any], bool]) -> None:
        with loaded({"op": attributes}) as (_, definitions):
            assert assertion(op_of(definitions).op if "backfill_policy" not in attributes else op_of(definitions))


def test_the_translation_sees_the_object_and_dependencies_follow_the_keys() -> None:
    translation = {"key": "shop/{{ obj.name }}", "tags": {"timeline": "{{ obj.definition.timeline }}"}}
    with loaded({"translation": translation}) as (_, definitions):
        assert keys(definitions) == [f"shop/{name}" for name in ALL]
        key = dg.AssetKey(["shop", "sales_by_city"])
        spec = definitions.resolve_assets_def(key).get_asset_spec(key)
        assert spec.tags["timeline"] == "default"
        assert spec.tags["tier"] == "gold", "what the SQL's annotations say stays"
        assert {dep.asset_key.to_user_string() for dep in spec.deps} == {"shop/customers", "shop/orders"}
        checked = {
            spec.asset_key.to_user_string() for one in definitions.asset_checks or () for spec in one.check_specs
        }
        assert checked == set(keys(definitions))


def test_a_subclass_changes_how_assets_look_and_what_a_step_does(tmp_path: Path) -> None:
    class Shop(MzProjectComponent):
        def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
            return super().get_asset_spec(obj).replace_attributes(group_name="shop", owners=[f"team:{obj.name}"])

        def execute(self, context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
            for key in sorted(context.selected_asset_keys):
                yield dg.MaterializeResult(asset_key=key, metadata={"instead": Path(mz.project_dir).name})

    scaffold_project(tmp_path / "shop")
    definitions = Shop(project=str(tmp_path / "shop")).build_defs(dg.ComponentTree.for_test().load_context)
    with own_instance() as instance:
        spec = op_of(definitions).get_asset_spec(dg.AssetKey("orders"))
        assert (spec.group_name, spec.owners) == ("shop", ["team:orders"])
        instance.add_dynamic_partitions("mz_ticks_shop.default", ["2026-01-05T00:00:00.000Z"])
        done = definitions.resolve_job_def("step").execute_in_process(
            instance=instance, partition_key="2026-01-05T00:00:00.000Z"
        )
        events = done.asset_materializations_for_node(op_of(definitions).node_def.name)
        assert [one.metadata["instead"].value for one in events] == ["shop"] * 3


# ---- what is wrong is told


def told(error: BaseException | None, kind: type[BaseException]) -> BaseException:
    """Returns the error of a kind from which another one was raised."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    assert error is not None
    return error


def test_a_folder_without_a_project_is_refused() -> None:
    with pytest.raises(ComponentTreeException) as caught, loaded({"project": "elsewhere"}):
        pass
    assert "elsewhere" in str(told(caught.value, NoProject))


def test_a_bad_file_is_named_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    def spoil(project: Path) -> None:
        (project / "assets" / "bad.sql").write_text("\nCREATE VIEW bad AS SELECT nothing FROM orders;")

    with loaded(edit=spoil) as (_, definitions):
        assert definitions.resolve_all_asset_specs()
    assert "bad.sql:2:27" in caplog.text


# ---- dg itself


def test_dg_finds_it_and_a_session_pays_nothing_for_it() -> None:
    look = (
        "import sys, mz_dagster; "
        "assert 'MzProjectComponent' in dir(mz_dagster); "
        "assert not {'dagster', 'pyspark', 'sqlalchemy'} & sys.modules.keys(); "
        "import dagster as dg; mz_dagster.MzProjectComponent; "
        "assert dg.DagsterLibraryRegistry.get()['mz_dagster'] == mz_dagster.__version__"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_dg_lists_scaffolds_and_checks_it(tmp_path: Path) -> None:
    package = tmp_path / "warehouse"
    (package / "defs").mkdir(parents=True)
    for path in (package / "__init__.py", package / "defs" / "__init__.py"):
        path.touch()
    (package / "definitions.py").write_text(
        "from pathlib import Path\nimport dagster as dg\n\n"
        "@dg.definitions\ndef defs():\n    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "warehouse"\nversion = "0"\n'
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "warehouse"\n'
    )

    listed, _, checked = dg_commands(
        tmp_path,
        ("list", "components", "--package", "mz_dagster", "--json"),
        ("scaffold", "defs", "mz_dagster.MzProjectComponent", "flights"),
        ("check", "defs"),
    )
    assert [one["key"] for one in json.loads(listed)["items"]] == ["mz_dagster.MzProjectComponent"]
    assert (package / "defs" / "flights" / "defs.yaml").read_text() == (
        "type: mz_dagster.MzProjectComponent\n\nattributes:\n  project: project\n"
    )
    project = package / "defs" / "flights" / "project"
    assert sorted(path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()) == [
        ".gitignore",
        "assets/orders.sql",
        "assets/sales_by_city.sql",
        "landing/customers/1.csv",
        "landing/orders/1.jsonl",
        "mz.toml",
    ]
    assert "All definitions loaded successfully" in checked


#: Runs several commands in one process: `dg` takes seconds for its imports.
_DG = """
import contextlib, io, json, sys
from dagster_dg_cli.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise
    print(json.dumps(printed.getvalue()))
"""


def dg_commands(folder: Path, *commands: Sequence[str]) -> list[str]:
    """Returns what `dg` prints for each of the commands."""
    home = folder / ".home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    environment = os.environ | {"DAGSTER_HOME": str(home), "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", _DG, json.dumps(commands)],
        cwd=folder,
        env=environment | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
