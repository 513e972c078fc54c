"""A project as a Dagster component: everything that `definitions.py` would say, from a few lines of YAML.

    type: mz_dagster.MzProjectComponent
    attributes:
      project: project        # the folder that holds mz.toml, relative to this file
      translation:
        group_name: "{{ obj.annotations.group or 'flights' }}"

Owns no behaviour of its own: it calls the same builders as a project's own `definitions.py`. Its jobs, sensors and
partition sets are named after timelines, and its resource is `mz`, so a Dagster project holds one of it.

Annotations are not strings here (`from __future__`): Dagster reads a component's fields from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import dagster as dg
from dagster.components.resolved.core_models import OpSpec
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver

from mz_dagster.adapter import NoProject, Project, ProjectObject, effective_objects
from mz_dagster.adapter.project import SETTINGS_FILE
from mz_dagster.orchestration.assets import mz_assets
from mz_dagster.orchestration.checks import build_mz_asset_checks, step_selection
from mz_dagster.orchestration.compaction import COMPACTION_CRON, build_compaction_job, build_compaction_schedule
from mz_dagster.orchestration.continuous import build_continuous_job
from mz_dagster.orchestration.resource import MzResource, StepResult
from mz_dagster.orchestration.scaffold import project_files, write_files
from mz_dagster.orchestration.sensors import build_frontier_sensor, build_retention_sensor
from mz_dagster.orchestration.ticks import named
from mz_dagster.orchestration.translator import MzDagsterTranslator


class _ComponentTranslator(MzDagsterTranslator):
    """Asks the component, so that what a subclass of it overrides decides."""

    def __init__(self, component: "MzProjectComponent") -> None:
        self._component = component

    def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
        return self._component.get_asset_spec(obj)


class MzProjectScaffolder(dg.Scaffolder):
    """Writes `defs.yaml`, and the project that it names beside it."""

    def scaffold(self, request: dg.ScaffoldRequest) -> None:
        """Writes both; see `dg scaffold defs --help`."""
        name = request.target_path.name
        write_files(request.target_path / "project", project_files(name, standalone=False))
        dg.scaffold_component(request, {"project": "project"})


@dg.scaffold_with(MzProjectScaffolder)
@dataclass
class MzProjectComponent(dg.Component, dg.Resolvable):
    """Loads a folder of SQL files as assets that are maintained incrementally, with all that keeps them up to date.

    For each timeline: an asset for each source, table, materialized view and index, their checks, the job that steps
    them, the sensor that requests its runs, the retention sensor, and the continuous job. For the project: the
    compaction job with its schedule, and the resource `mz`.

    Subclass it and override `get_asset_spec` or `execute` to change how assets look or what a step does around
    `mz.step(context)`.
    """

    project: Annotated[
        str,
        dg.Resolver.default(
            description="The folder that holds the project's mz.toml; relative to this component's folder.",
            examples=["project", "{{ context.project_root }}/warehouse"],
        ),
    ]
    timelines: Annotated[
        list[str] | None,
        dg.Resolver.default(
            description="Which of the project's timelines; by default all on which its files define something.",
            examples=[["default"]],
        ),
    ] = None
    op: Annotated[
        OpSpec | None,
        dg.Resolver.default(
            description="Name, tags, description, pool and backfill policy of the op that steps a timeline. With "
            "several timelines the name is a prefix.",
            examples=[{"tags": {"team": "flights"}, "pool": "spark"}],
        ),
    ] = None
    translation: Annotated[
        TranslationFn[ProjectObject] | None,
        TranslationFnResolver[ProjectObject](template_vars_for_translation_fn=lambda obj: {"obj": obj}),
    ] = None
    start_sensors: Annotated[
        bool,
        dg.Resolver.default(
            description="Whether the sensors and the compaction schedule run without being switched on.",
            examples=[True, False],
        ),
    ] = True
    compaction_schedule: Annotated[
        str | None,
        dg.Resolver.default(
            description="When batches are merged, as a cron expression; null for no schedule.",
            examples=["*/15 * * * *", "0 3 * * *"],
        ),
    ] = COMPACTION_CRON

    def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
        """Returns the specification of the asset that stands for `obj`, without what it reads of the others.

        Args:
            obj: A source, table, materialized view or index of the project.
        """
        spec = MzDagsterTranslator().get_asset_spec(obj)
        return spec if self.translation is None else self.translation(spec, obj)

    def execute(self, context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        """Steps the selected assets to the run's ticks, and yields their results."""
        yield from mz.step(context)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Returns the definitions of the project's assets and of what drives them.

        Raises:
            NoProject: The folder holds no `mz.toml`.
            CatalogUnavailable: A file is wrong, and what was applied last cannot be looked up.
        """
        project = _project_at(context.path / self.project)
        timelines = self.timelines or _timelines_of(project)
        return dg.Definitions.merge(
            self._project_defs(project),
            *(self._timeline_defs(project, one, alone=len(timelines) == 1) for one in timelines),
        )

    def _project_defs(self, project: Project) -> dg.Definitions:
        """Returns what there is one of, whatever the timelines."""
        compaction = build_compaction_job(project, translator=_ComponentTranslator(self))
        status = dg.DefaultScheduleStatus.RUNNING if self.start_sensors else dg.DefaultScheduleStatus.STOPPED
        schedules = []
        if (cron := self.compaction_schedule) is not None:
            schedules.append(build_compaction_schedule(project, compaction, cron_schedule=cron, default_status=status))
        return dg.Definitions(
            jobs=[compaction],
            schedules=schedules,
            resources={"mz": MzResource(project_dir=str(project.root))},
        )

    def _timeline_defs(self, project: Project, timeline: str, *, alone: bool) -> dg.Definitions:
        op = self.op or OpSpec()
        translator = _ComponentTranslator(self)
        status = dg.DefaultSensorStatus.RUNNING if self.start_sensors else dg.DefaultSensorStatus.STOPPED

        @mz_assets(
            project=project,
            timeline=timeline,
            name=op.name if alone or op.name is None else named(op.name, timeline),
            translator=translator,
            description=op.description,
            op_tags=op.tags,
            pool=op.pool,
            backfill_policy=op.backfill_policy,
        )
        def assets(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
            yield from self.execute(context, mz)

        step = dg.define_asset_job(
            "step" if alone else named("step", timeline),
            selection=step_selection(assets),
            executor_def=dg.in_process_executor,
            description=f'Advances every collection of timeline "{timeline}" to the selected ticks.',
        )
        return dg.Definitions(
            assets=[assets],
            asset_checks=[build_mz_asset_checks(project, timeline=timeline, translator=translator)],
            jobs=[step, build_continuous_job(project, timeline=timeline, translator=translator)],
            sensors=[
                build_frontier_sensor(project, step, timeline=timeline, default_status=status),
                build_retention_sensor(project, timeline=timeline, default_status=status),
            ],
        )


def _project_at(folder: Path) -> Project:
    if not (folder / SETTINGS_FILE).is_file():
        raise NoProject(
            f'no project in "{folder.resolve()}"',
            hint=f'Name the folder that holds "{SETTINGS_FILE}" in the attribute "project" of defs.yaml.',
        )
    return Project.load(folder)


def _timelines_of(project: Project) -> list[str]:
    """Returns the timelines on which the project's files define something; the default one if there is nothing."""
    found = dict.fromkeys(one.definition.timeline for one in effective_objects(project))
    return [one for one in found if one is not None] or [project.timeline]
