"""The resource by which Dagster's ops and sensors reach the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from pydantic import Field

from mz_dagster.adapter import Engine, Project
from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import CollectionStep, Outcome, StepReport
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.ticks import tick_of

NAME_KEY = "mz/name"


class MzResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Opens the engine of a project.

    Which Spark, which catalog and which retention are settings of the project's `mz.toml`, so that Dagster, the command
    line and sessions can never disagree about them.
    """

    project_dir: str = Field(description="The project's root folder, which holds mz.toml.")

    def project(self) -> Project:
        """Returns the project."""
        return Project.load(Path(self.project_dir))

    @contextmanager
    def engine(self, holder: str) -> Iterator[Engine]:
        """Opens the engine for the length of a block, with the project's definitions applied.

        Args:
            holder: Names the user of the engine in leases, a run id for example.
        """
        with Engine(self.project(), holder=holder) as engine:
            engine.apply()
            yield engine

    def step(self, context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        """Steps the selected assets to the run's newest tick, and yields a result for each that is readable there.

        A run of all assets steps whatever else sessions have created on the timeline, too: a tick is closed only then.
        A tick that is closed already changes nothing; its assets are reported as they are.

        Raises:
            dagster.Failure: A collection failed; those that finished are materialized all the same.
        """
        ticks = [tick_of(key) for key in context.partition_keys]
        if not ticks or ticks != sorted(set(ticks)):
            raise dg.Failure(
                f"the partitions {list(context.partition_keys)} are not an ascending range of ticks",
                metadata={"hint": "Select one tick, or a range from an older to a newer one."},
            )
        tick = ticks[-1]
        specs = {spec.key: spec for spec in context.assets_def.specs}
        timeline = str(next(iter(specs.values())).metadata["mz/timeline"])
        with self.engine(f"dagster run {context.run.run_id}") as engine:
            assets = {key: engine.collection_of(str(spec.metadata[NAME_KEY])) for key, spec in specs.items()}
            ids = {key: assets[key] for key in context.selected_asset_keys}
            only: frozenset[GlobalId] | None = None
            if len(ids) < len(assets):
                # With them what is no asset of its own: their arrangements, and what sessions put in between.
                selected = frozenset(ids.values())
                only = selected | (engine.graph(timeline).upstream(selected) - frozenset(assets.values()))
            report = engine.step(timeline, tick, only=only, progress=context.log.info)
            context.log.info(summary(report))
            rows = {row.id: row for row in engine.catalog.collections(timeline)}
            steps = {one.id: one for one in report.collections}
            for spec in context.assets_def.specs:
                if spec.key in ids and rows[ids[spec.key]].upper.less_equal(tick) is False:
                    id = ids[spec.key]
                    yield dg.MaterializeResult(
                        asset_key=spec.key, metadata=_metadata(engine, rows[id], steps[id], tick)
                    )
        _raise_failures(report)


def summary(report: StepReport) -> str:
    """Returns a step's story in one line."""
    count = {outcome: sum(1 for one in report.collections if one.outcome is outcome) for outcome in Outcome}
    told = ", ".join(f"{number} {outcome.value}" for outcome, number in count.items() if number)
    return f"step to tick {report.tick}: {told}; {report.engine_ms / 1000:.1f} s"


def _metadata(engine: Engine, row: CollectionRow, step: CollectionStep, tick: int) -> dict[str, dg.RawMetadataValue]:
    batches = engine.catalog.live_batches((row.id,))[row.id]
    return {
        "mz/since": row.since.only,
        "mz/upper": row.upper.only,
        "mz/lag_ms": max(0, tick + 1 - row.upper.only),
        "mz/rows_appended": step.stats.rows,
        "mz/rows_retained": sum(batch.stats.rows for batch in batches),
        "mz/errors_appended": step.stats.errors,
        "mz/bytes": sum(batch.stats.bytes for batch in batches),
        "mz/batches": len(batches),
        "mz/spark_s": round(step.spark_ms / 1000, 3),
        "mz/outcome": step.outcome.value,
    }


def _raise_failures(report: StepReport) -> None:
    if not report.failures:
        return
    behind = [one.name for one in report.collections if one.outcome is Outcome.BLOCKED]
    raise dg.Failure(
        "; ".join(f'"{one.name}" failed: {one.error}' for one in report.failures)
        + (f"; behind it stay: {', '.join(sorted(behind))}" if behind else ""),
        allow_retries=False,
    )
