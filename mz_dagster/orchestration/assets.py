"""A project's timeline as one graph of Dagster assets, fused into one op.

One op, so that a step is planned over the whole graph; subsettable, so that a person can still select assets in the
UI. Each asset's partitions are the timeline's ticks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import dagster as dg

from mz_dagster.adapter import NoProject, Project, ProjectObject, effective_objects
from mz_dagster.adapter.file_ids import name_of_file_id
from mz_dagster.adapter.project import SETTINGS_FILE
from mz_dagster.errors import ProgrammingError
from mz_dagster.orchestration.data_checks import data_check_specs
from mz_dagster.orchestration.events import NAME_KEY, TABLE_KEY, TIMELINE_KEY
from mz_dagster.orchestration.frontier_checks import frontier_check_specs
from mz_dagster.orchestration.ticks import partitions_of
from mz_dagster.orchestration.translator import MzDagsterTranslator, code_block, outside_dep
from mz_dagster.plan.lineage import column_lineage
from mz_dagster.sql import Files, Iceberg
from mz_dagster.sql.schemas import PUBLIC, key_of, last_of, parts_of

#: Dagster's own key, of which the open source UI shows nothing; so the same to read.
_LINEAGE_KEY = "dagster/column_lineage"
_READABLE_LINEAGE_KEY = "mz/lineage"


#: Where what an asset stands for is, by a key of Dagster's.
_URI_KEY = "dagster/uri"

#: An asset of whoever writes what a source reads.
Neighbour = dg.AssetsDefinition | dg.AssetSpec


def build_mz_asset_specs(
    project: Project,
    *,
    timeline: str | None = None,
    translator: MzDagsterTranslator | None = None,
    upstream: Iterable[Neighbour] = (),
) -> list[dg.AssetSpec]:
    """Returns a specification for each source, table, materialized view and index of a timeline, dependencies first.

    Plain views are no assets: what reads one depends on what the view reads. Checks are none, but checks of one. What
    is wrong in the files, and what reads it, is shown as it was applied last, with its error; without that, the rest is
    unharmed.

    Args:
        project: The project whose files define the objects.
        timeline: Which of its timelines; by default the project's own.
        translator: Decides how each looks; the dependencies and the column lineage that it gives are kept.
        upstream: Assets of others. A source depends on those whose metadata say that they are where it reads, by
            `dagster/uri`; a source or table, on those that feed it, by `mz/table`.

    Raises:
        CatalogUnavailable: A file is wrong, and what was applied last cannot be looked up.
        ProgrammingError: The project has no timeline of that name.
    """
    return _asset_specs(project, {one.name: one for one in effective_objects(project)}, timeline, translator, upstream)


def _asset_specs(
    project: Project,
    objects: Mapping[str, ProjectObject],
    timeline: str | None,
    translator: MzDagsterTranslator | None,
    upstream: Iterable[Neighbour],
) -> list[dg.AssetSpec]:
    """Returns what `build_mz_asset_specs` does, given the objects in effect."""
    translator = translator or MzDagsterTranslator()
    chosen = timeline or project.timeline
    timelines = {*project.timelines, *filter(None, (one.definition.timeline for one in objects.values()))}
    if chosen not in timelines:
        known = ", ".join(f'"{timeline}"' for timeline in sorted(timelines))
        raise ProgrammingError(f'the project has no timeline "{chosen}"', hint=f"Its timelines are {known}.")
    specs = {
        name: translator.get_asset_spec(one).merge_attributes(metadata={NAME_KEY: name, **_addresses(one, project)})
        for name, one in objects.items()
        if one.definition.kind not in ("view", "check") and one.definition.timeline == chosen
    }
    keys = {name: spec.key for name, spec in specs.items()}
    writers = _writers(upstream, project)
    return [
        _with_writers(_with_upstream(spec, objects[name], objects, keys), objects[name], writers, project)
        for name, spec in specs.items()
    ]


def _writers(upstream: Iterable[Neighbour], project: Project) -> Mapping[str, list[dg.AssetDep]]:
    """Returns the assets that say where they are, by that place, or by the name of what they feed."""
    found: dict[str, list[dg.AssetDep]] = defaultdict(list)
    for one in upstream:
        for spec in (one,) if isinstance(one, dg.AssetSpec) else one.specs:
            places = [_place(said, project) for said in _said(spec, _URI_KEY)]
            names = [parts_of(said) for said in _said(spec, TABLE_KEY)]
            places += [_fed(key_of((*name[:-1], PUBLIC)[0], name[-1])) for name in names if name]
            for place in places:
                # Any of its partitions may be in any tick: the two have nothing in common.
                mapping = None if spec.partitions_def is None else dg.AllPartitionMapping()
                found[place].append(dg.AssetDep(spec.key, partition_mapping=mapping))
    return found


def _said(spec: dg.AssetSpec, key: str) -> Iterator[str]:
    """Yields what an asset's metadata say, if it is a text."""
    said = spec.metadata.get(key)
    said = said.value if isinstance(said, dg.MetadataValue) else said
    if isinstance(said, str):
        yield said


def _fed(name: str) -> str:
    """Returns the place of what is fed by its name, which is no path and no URI."""
    return f"mz {name}"


def _with_writers(
    spec: dg.AssetSpec, one: ProjectObject, writers: Mapping[str, list[dg.AssetDep]], project: Project
) -> dg.AssetSpec:
    """Returns a source's or table's specification with those that write what it reads, and those that feed it."""
    if one.definition.kind not in ("source", "table"):
        return spec
    places = [_fed(one.name)]
    if one.definition.kind == "source":
        places += [_place(said, project) for said in _said(spec, _URI_KEY)]
    given = {dep.asset_key for dep in spec.deps}
    found = {dep.asset_key: dep for place in places for dep in writers.get(place, ()) if dep.asset_key not in given}
    return spec.replace_attributes(deps=[*spec.deps, *found.values()]) if found else spec


def _place(uri: str, project: Project) -> str:
    """Returns the one way to say where something is: a path of this machine, links followed, or a URI."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme != "file":
        return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest.rstrip('/')}"
    return str((project.root / (unquote(rest) if separator else uri)).resolve())


def _addresses(one: ProjectObject, project: Project) -> dict[str, str]:
    """Returns where an object is found: by whoever queries it, and what it is read from or written to outside."""
    definition = one.definition
    found = {"dagster/table_name": f"{project.name}.{definition.schema}.{last_of(definition.schema, one.name)}"}
    origin = definition.origin if definition.sink is None else definition.sink.delta
    if origin is not None and not isinstance(origin, Iceberg):  # of which only its catalog knows where it is
        place = origin.folder if isinstance(origin, Files) else origin.uri
        found[_URI_KEY] = place if "://" in place else (project.root / place).absolute().as_uri()
    return found


def _with_upstream(
    spec: dg.AssetSpec, one: ProjectObject, objects: Mapping[str, ProjectObject], keys: Mapping[str, dg.AssetKey]
) -> dg.AssetSpec:
    """Returns the specification with what the object reads of other assets: whole, and column by column."""
    given = {dep.asset_key for dep in spec.deps}
    reads = {read for each in (one, *one.views) for read in each.depends if read in keys}
    metadata = dict(spec.metadata)
    if (lineage := _column_lineage(one, objects, keys)) is not None:
        metadata.setdefault(_LINEAGE_KEY, lineage)
        metadata.setdefault(_READABLE_LINEAGE_KEY, code_block("text", _lines(lineage)))
    deps: list[dg.AssetDep | dg.AssetKey] = list(spec.deps)
    outside = {key for view in one.views for key in view.annotations.deps if dg.AssetKey(key) not in given}
    deps += map(outside_dep, sorted(outside))
    deps += sorted({keys[read] for read in reads} - given - {dg.AssetKey(key) for key in outside})
    return spec.replace_attributes(deps=deps, metadata=metadata)


def mz_assets(
    *,
    project: Project,
    timeline: str | None = None,
    name: str | None = None,
    translator: MzDagsterTranslator | None = None,
    upstream: Iterable[Neighbour] = (),
    description: str | None = None,
    op_tags: Mapping[str, Any] | None = None,
    pool: str | None = None,
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorates the function that steps a project's timeline.

    All assets of a timeline belong to one such function, with the checks of their frontiers and data: a step is planned
    over the whole graph, and one run at a time steps it. A project with several timelines has one function for each.

    Args:
        project: The project whose files define the assets.
        timeline: Which of its timelines; by default the project's own.
        name: The op's name; by default `mz_` and the timeline.
        translator: Decides how each asset looks.
        upstream: Assets of others. A source depends on those whose metadata say that they are where it reads, by
            `dagster/uri`; a source or table, on those that feed it, by `mz/table`.
        description: The op's description; by default the function's docstring.
        op_tags: Tags of the op, for executors and run launchers, beside `mz/timeline`.
        pool: The concurrency pool that the op takes a slot of, where several share a Spark cluster.
        backfill_policy: How a backfill's ticks become runs; by default one run over all of them.
        retry_policy: When a step is tried again whose process or Spark was lost. What failed because of its data is
            not: `MzResource.step` says so to Dagster.

    Raises:
        CatalogUnavailable: A file is wrong, and what was applied last cannot be looked up.
        NoProject: Where the project is to be is none.
        ProgrammingError: The project has no timeline of that name.

    Example::

        @mz_assets(project=PROJECT)
        def flights(context: dg.AssetExecutionContext, mz: MzResource):
            yield from mz.step(context)
    """
    chosen = timeline or project.timeline
    objects = {one.name: one for one in effective_objects(project)}
    if not objects and not (project.root / SETTINGS_FILE).is_file():
        raise NoProject(
            f'no project in "{project.root}"', hint=f'Give Project.load the folder that holds "{SETTINGS_FILE}".'
        )
    specs = _asset_specs(project, objects, chosen, translator, upstream)
    keys = {str(spec.metadata[NAME_KEY]): spec.key for spec in specs}
    return dg.multi_asset(
        name=name or "mz_" + re.sub(r"[^A-Za-z0-9_]", "_", chosen),
        specs=specs,
        check_specs=[*frontier_check_specs(specs), *data_check_specs(objects, keys)],
        partitions_def=partitions_of(project, chosen),
        can_subset=True,
        backfill_policy=backfill_policy or dg.BackfillPolicy.single_run(),
        description=description,
        op_tags={**(op_tags or {}), TIMELINE_KEY: chosen},
        pool=pool,
        retry_policy=retry_policy,
    )


def _column_lineage(
    one: ProjectObject, objects: Mapping[str, ProjectObject], keys: Mapping[str, dg.AssetKey]
) -> dg.TableColumnLineage | None:
    """Returns which columns of assets each column derives from; None for a source or table.

    None, too, for what is shown as it was applied last, which reads what its names stood for then.
    """
    if one.fault is not None:
        return None
    definition = one.definition
    relation = definition.relation
    if definition.on is not None:
        relation = definition.on.contents()
    if relation is None:
        return None
    names = definition.relation_type.names
    return dg.TableColumnLineage(
        {
            name: [
                dg.TableColumnDep(keys[read], objects[read].definition.relation_type.names[position])
                for id, position in sorted(sources)
                if (read := name_of_file_id(id)) in keys
            ]
            for name, sources in zip(names, column_lineage(relation), strict=True)
        }
    )


def _lines(lineage: dg.TableColumnLineage) -> str:
    """Returns a line for each column: its name, and what it derives from."""
    width = max(map(len, lineage.deps_by_column), default=0)
    return "\n".join(
        f"{column:{width}}  {', '.join(f'{one.asset_key.to_user_string()}.{one.column_name}' for one in deps)}".rstrip()
        for column, deps in lineage.deps_by_column.items()
    )
