"""A project as a Dagster component: everything that `definitions.py` would say, from a few lines of YAML.

    type: mz_dagster.MzProjectComponent
    attributes:
      project: project        # the folder that holds mz.toml, relative to this file
      translation:
        group_name: "{{ obj.annotations.group or 'flights' }}"

Owns no behaviour of its own: it is `build_mz_definitions` of a folder.

Annotations are not strings here (`from __future__`): Dagster reads a component's fields from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import dagster as dg
from dagster.components.resolved.core_models import OpSpec
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver

from mz_dagster.adapter import NoProject, Project, ProjectObject
from mz_dagster.adapter.project import SETTINGS_FILE
from mz_dagster.orchestration.compaction import COMPACTION_CRON
from mz_dagster.orchestration.project_definitions import build_mz_definitions
from mz_dagster.orchestration.resource import MzResource, StepResult
from mz_dagster.orchestration.scaffold import project_files, write_files
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
        op = self.op or OpSpec()
        return build_mz_definitions(
            _project_at(context.path / self.project),
            timelines=self.timelines,
            translator=_ComponentTranslator(self),
            execute=self.execute,
            op_name=op.name,
            description=op.description,
            op_tags=op.tags,
            pool=op.pool,
            backfill_policy=op.backfill_policy,
            start_sensors=self.start_sensors,
            compaction_schedule=self.compaction_schedule,
        )


def _project_at(folder: Path) -> Project:
    if not (folder / SETTINGS_FILE).is_file():
        raise NoProject(
            f'no project in "{folder.resolve()}"',
            hint=f'Name the folder that holds "{SETTINGS_FILE}" in the attribute "project" of defs.yaml.',
        )
    return Project.load(folder)
