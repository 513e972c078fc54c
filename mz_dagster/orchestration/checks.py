"""Asset checks: the invariants of the formalism, as Dagster shows them.

The cheap ones come with each step (`frontier_checks`), and so do those of the project (`data_checks`). The two here
read data, so they run when somebody asks for them: from an asset's Checks tab, by a schedule over them, or by a job; a
job that steps leaves them out (`step_selection`).

    no_negative_multiplicity   no row is there fewer than zero times
    audit                      a view is its query, computed once more from its inputs
"""

# No postponed annotations here: Dagster takes the type of `config` as it stands.
from collections.abc import Callable, Iterator

import dagster as dg
from pydantic import Field

from mz_dagster.adapter import (
    Audit,
    Engine,
    NegativeRows,
    Project,
    ProjectObject,
    Sample,
    audit,
    effective_objects,
    negative_rows,
    shown,
)
from mz_dagster.catalog import NO_ROWS
from mz_dagster.compute import RowSample
from mz_dagster.errors import DatabaseError
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.events import table
from mz_dagster.orchestration.frontier_checks import AUDIT, NO_NEGATIVE_MULTIPLICITY, frontier_check_specs
from mz_dagster.orchestration.resource import MzResource
from mz_dagster.orchestration.runs import holder_of
from mz_dagster.orchestration.ticks import partition_key
from mz_dagster.orchestration.translator import MzDagsterTranslator

__all__ = ["AuditConfig", "build_mz_asset_checks", "frontier_check_specs", "step_selection"]


class AuditConfig(dg.Config):
    """Says when and how much to check."""

    tick: int | None = Field(
        default=None,
        description="The time, in the timeline's numbers (milliseconds); by default the latest that is complete.",
    )
    sample: float = Field(
        default=1.0, gt=0, le=1, description="The share of the rows to compare, chosen by their hash; 1.0 for all."
    )
    max_rows: int = Field(
        default=100_000_000,
        ge=1,
        description="About how many rows of a collection to compare at most; of a larger one, a smaller share.",
    )
    examples: int = Field(default=5, ge=0, le=100, description="How many rows to show of each kind that is wrong.")


def build_mz_asset_checks(
    project: Project, *, timeline: str | None = None, translator: MzDagsterTranslator | None = None
) -> dg.AssetChecksDefinition:
    """Returns the checks that read the data of a timeline's assets, any of which can be selected.

    Sources and tables are computed from nothing and have no audit. Needs the resource `mz`, an `MzResource`.

    Args:
        project: The project whose files define the assets.
        timeline: Which of its timelines; by default the project's own.
        translator: Decides the assets' keys; the one of `mz_assets`.
    """
    translator = translator or MzDagsterTranslator()
    chosen = timeline or project.timeline
    names: dict[dg.AssetCheckKey, str] = {}
    specs: list[dg.AssetCheckSpec] = []
    for one in effective_objects(project):
        wanted = _checks_of(one) if one.definition.timeline == chosen else {}
        for name, description in wanted.items():
            key = translator.get_asset_spec(one).key
            specs.append(dg.AssetCheckSpec(name, asset=key, description=description))
            names[specs[-1].key] = one.name

    @dg.multi_asset_check(name=f"mz_{chosen}_checks", specs=specs, can_subset=True)
    def checks(
        context: dg.AssetCheckExecutionContext, mz: MzResource, config: AuditConfig
    ) -> Iterator[dg.AssetCheckResult]:
        with mz.engine(holder_of(context.run.run_id)) as engine:
            for spec in specs:
                if spec.key in context.selected_asset_check_keys:
                    id = engine.collection_of(names[spec.key])
                    yield _checked(spec, engine, id, config, context.log.info)

    return checks


def step_selection(*assets: dg.AssetsDefinition) -> dg.AssetSelection:
    """Returns what a job that steps selects: the assets, and only those of their checks that come with each step.

    Dagster would take every check on a selected asset along, and so recompute each view at each tick.
    """
    return dg.AssetSelection.assets(*assets).without_checks() | dg.AssetSelection.checks(*assets)


def _checks_of(one: ProjectObject) -> dict[str, str]:
    """Returns name and description of the checks of an object that read its data."""
    definition = one.definition
    if definition.kind in ("view", "check") or (definition.kind == "index" and definition.plan is None):
        return {}  # it is no asset, or its collection is that of what it is on
    found = {NO_NEGATIVE_MULTIPLICITY: "No row is there fewer than zero times."}
    if definition.plan is not None:
        found[AUDIT] = "At a closed tick, the contents are the query's, computed once more from its inputs."
    return found


def _checked(
    spec: dg.AssetCheckSpec, engine: Engine, id: GlobalId, config: AuditConfig, log: Callable[[str], None]
) -> dg.AssetCheckResult:
    _, held = engine.catalog.live_batch_counts().get(id, (0, NO_ROWS))
    share = min(config.sample, config.max_rows / max(1, held.rows))
    log(f'{spec.name} of "{spec.asset_key.to_user_string()}": {share:.2%} of the rows of {held.rows} updates')
    check = audit if spec.name == AUDIT else negative_rows
    try:
        found = check(engine, id, tick=config.tick, share=share, examples=config.examples)
    except DatabaseError as error:
        log(f"{spec.name} could not be made: {error}")
        return dg.AssetCheckResult(
            passed=False,
            asset_key=spec.asset_key,
            check_name=spec.name,
            severity=dg.AssetCheckSeverity.WARN,
            description=f"could not be made: {error}",
        )
    passed, description, metadata = _audited(found) if isinstance(found, Audit) else _looked_at(found)
    return dg.AssetCheckResult(
        passed=passed,
        asset_key=spec.asset_key,
        check_name=spec.name,
        severity=dg.AssetCheckSeverity.ERROR,
        description=description,
        metadata={"mz/tick": found.tick, "mz/share": share, **metadata},
    )


def _audited(one: Audit) -> "tuple[bool, str, dict[str, dg.RawMetadataValue]]":
    found = one.found
    metadata: dict[str, dg.RawMetadataValue] = {
        "mz/rows_compared": found.held,
        "mz/rows_missing": found.missing.count,
        "mz/rows_surplus": found.surplus.count,
        "mz/errors_held": found.errors_held,
        "mz/errors_computed": found.errors_computed,
    }
    for name, rows in (("mz/missing", found.missing), ("mz/surplus", found.surplus)):
        if rows.examples:
            metadata[name] = _examples(one.columns, rows)
    if one.passed:
        return True, f"{found.held} rows are the query's, at {partition_key(one.tick)}", metadata
    wrong = [f"{found.missing.count} rows are missing"] if found.missing.count else []
    wrong += [f"{found.surplus.count} rows should not be there"] if found.surplus.count else []
    if not wrong:
        wrong = [f"it has {found.errors_held} errors and its query {found.errors_computed}"]
    hint = "Drop it and create it again, which computes it anew; and please report it, since this is a bug."
    return False, f"at {partition_key(one.tick)}: {' and '.join(wrong)}. {hint}", metadata


def _looked_at(one: NegativeRows) -> "tuple[bool, str, dict[str, dg.RawMetadataValue]]":
    found = one.found
    metadata: dict[str, dg.RawMetadataValue] = {"mz/rows_lacking": found.count}
    if found.examples:
        metadata["mz/lacking"] = _examples(one.columns, found)
    if not found.count:
        return True, f"no row is there fewer than zero times, at {partition_key(one.tick)}", metadata
    hint = "A source retracted what it never asserted, or a batch was written behind the engine: correct the source."
    return False, f"at {partition_key(one.tick)}: {found.count} copies of rows lack. {hint}", metadata


def _examples(columns: tuple[str, ...], rows: RowSample) -> dg.TableMetadataValue:
    shown_rows: tuple[tuple[str | int, ...], ...] = tuple(
        (*map(shown, cells), copies) for cells, copies in rows.examples
    )
    return table(Sample((*columns, "copies"), (*("text" for _ in columns), "bigint"), shown_rows))
