"""What an event of an asset carries: the frontiers, what a step moved and what it cost, and a sample of what changed.

Every materialization and observation has the same keys, because a key that is missing is a gap in the plot. What
Dagster plots are numbers, so times are milliseconds of the timeline. *Gauges* say what is (`mz/since`, `mz/upper`,
`mz/lag_ms`, `mz/rows_retained`, `mz/bytes`, `mz/batches`); *counters* say what one step did (`mz/rows_in`,
`mz/rows_out`, `mz/errors`, `mz/spark_s`), once, so that their sum over all events is the whole.
"""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from mz_dagster.adapter import Engine, RowCount, Sample, updates_written
from mz_dagster.catalog import NO_ROWS, CollectionRow, ObjectRow
from mz_dagster.compute import CollectionStep
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.ticks import partition_key

#: Keys of an asset's own metadata: which object it stands for, and of which timeline.
NAME_KEY = "mz/name"
#: By which other assets say which table or source `MzIOManager` feeds from them.
TABLE_KEY = "mz/table"
TIMELINE_KEY = "mz/timeline"

#: Keys of an event: which collection it is about, and where that stands.
ID_KEY = "mz/id"
SINCE_KEY = "mz/since"
UPPER_KEY = "mz/upper"
#: What was done: the outcome of a collection in a step, or one of those below.
OUTCOME_KEY = "mz/outcome"
#: How many rows there are at the tick: Dagster's own key, of an event of which that is known.
ROWS_KEY = "dagster/row_count"

#: The outcome of an event that no step of this process made: the tick can be read, whoever closed it.
READABLE = "readable"
#: The outcome where nothing was done, since the asset was complete at the tick, and has forgotten its history then.
FORGOTTEN = "forgotten"


def asset_objects(engine: Engine, specs: Iterable[dg.AssetSpec]) -> dict[dg.AssetKey, ObjectRow]:
    """Returns the object behind each asset.

    An asset whose object the catalog does not hold is left out: it was dropped, or its file became wrong before it was
    ever applied.
    """
    state = engine.catalog.state()

    def resolved(name: str) -> ObjectRow | None:
        found = state.object(state.ids[name]) if name in state.ids else None
        return engine.catalog.resolve_name(name) if found is None else found

    named = ((spec.key, resolved(str(spec.metadata[NAME_KEY]))) for spec in specs)
    return {key: row for key, row in named if row is not None}


def asset_ids(engine: Engine, specs: Iterable[dg.AssetSpec]) -> dict[dg.AssetKey, GlobalId]:
    """Returns the collection behind each of `asset_objects`: for an index that is its collection's own order, that."""
    return {key: engine.definitions.collection_of(row) for key, row in asset_objects(engine, specs).items()}


def asset_metadata(
    engine: Engine,
    row: CollectionRow,
    tick: int,
    *,
    step: CollectionStep | None = None,
    changes: int = 0,
    counted: RowCount | None = None,
) -> dict[str, dg.RawMetadataValue]:
    """Returns what a materialization or observation of an asset at `tick` carries.

    Args:
        engine: The project.
        row: The asset's collection, as it is now.
        tick: The tick that the event is about.
        step: What this process did with the collection; None if it did nothing that this event should count.
        changes: How many of the updates that the step wrote to show.
        counted: How many rows there were at some tick, which is told if it is this one.
    """
    batches, held = engine.catalog.live_batch_counts().get(row.id, (0, NO_ROWS))
    upper = row.upper.only
    metadata: dict[str, dg.RawMetadataValue] = {
        ID_KEY: row.id,
        SINCE_KEY: row.since.only,
        UPPER_KEY: upper,
        "mz/readable": readable(row),
        "mz/lag_ms": max(0, tick + 1 - upper),
        "mz/rows_in": 0 if step is None else step.rows_in,
        "mz/rows_out": 0 if step is None else step.stats.rows,
        "mz/rows_retained": held.rows,
        "mz/errors": 0 if step is None else step.stats.errors,
        "mz/bytes": held.bytes,
        "mz/batches": batches,
        "mz/spark_s": 0.0 if step is None else round(step.spark_ms / 1000, 3),
        "mz/engine": "" if step is None else step.engine,
        "mz/handovers": 0 if step is None else step.handovers,
        "mz/placement": "" if step is None else "\n".join(map(str, step.placements)),
        OUTCOME_KEY: READABLE if step is None else step.outcome.value,
    }
    if counted is not None and counted.time == tick:
        metadata[ROWS_KEY] = counted.rows
    if (ui := engine.spark.ui_url()) is not None:
        metadata["mz/spark_ui"] = dg.MetadataValue.url(ui)
    if changes and step is not None and (sample := updates_written(engine, row, step, changes)).rows:
        metadata["mz/changes"] = table(sample)
    return metadata


def readable(row: CollectionRow) -> str:
    """Returns from when to when a collection can be read, for people."""
    since, upper = row.since.only, row.upper.only
    return f"{partition_key(since)} to {partition_key(upper - 1)}" if since < upper else "not yet"


def table(sample: Sample) -> dg.TableMetadataValue:
    """Returns a sample of rows as Dagster shows it."""
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(sample.columns, row, strict=True))) for row in sample.rows],
        schema=dg.TableSchema(
            [dg.TableColumn(name, type_) for name, type_ in zip(sample.columns, sample.types, strict=True)]
        ),
    )
