"""A project's timeline as one graph of Dagster assets, fused into one op.

One op, so that a step is planned over the whole graph; subsettable, so that a person can still select assets in the
UI. Each asset's partitions are the timeline's ticks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg

from mz_dagster.adapter import Project, ProjectObject, load_objects
from mz_dagster.orchestration.resource import NAME_KEY
from mz_dagster.orchestration.ticks import partitions_of
from mz_dagster.orchestration.translator import MzDagsterTranslator


def build_mz_asset_specs(
    project: Project, *, timeline: str | None = None, translator: MzDagsterTranslator | None = None
) -> list[dg.AssetSpec]:
    """Returns a specification for each source, table, materialized view and index of a timeline, dependencies first.

    Plain views are no assets: what reads one depends on what the view reads.

    Args:
        project: The project whose files define the objects.
        timeline: Which of its timelines; by default the project's own.
        translator: Decides how each looks.
    """
    translator = translator or MzDagsterTranslator()
    chosen = timeline or project.timeline
    objects = {one.name: one for one in load_objects(project)}
    assets = {
        name: translator.get_asset_spec(one).merge_attributes(metadata={NAME_KEY: name})
        for name, one in objects.items()
        if one.definition.kind != "view" and one.definition.timeline == chosen
    }
    return [
        spec.replace_attributes(deps=[assets[read].key for read in _reads_assets(objects[name], objects)])
        for name, spec in assets.items()
    ]


def mz_assets(
    *,
    project: Project,
    timeline: str | None = None,
    name: str | None = None,
    translator: MzDagsterTranslator | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorates the function that steps a project's timeline.

    Args:
        project: The project whose files define the assets.
        timeline: Which of its timelines; by default the project's own.
        name: The op's name; by default `mz_` and the timeline.
        translator: Decides how each asset looks.

    Example::

        @mz_assets(project=PROJECT)
        def flights(context: dg.AssetExecutionContext, mz: MzResource):
            yield from mz.step(context)
    """
    chosen = timeline or project.timeline
    return dg.multi_asset(
        name=name or f"mz_{chosen}",
        specs=build_mz_asset_specs(project, timeline=chosen, translator=translator),
        partitions_def=partitions_of(chosen),
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
        op_tags={"mz/timeline": chosen},
    )


def _reads_assets(one: ProjectObject, objects: dict[str, ProjectObject]) -> list[str]:
    """Returns the names of the assets that an object reads, through any plain views."""
    found: dict[str, None] = {}
    for read in one.depends:
        if read not in objects:
            continue
        if objects[read].definition.kind == "view":
            found.update(dict.fromkeys(_reads_assets(objects[read], objects)))
        else:
            found[read] = None
    return list(found)
