"""Keeps Dagster's record equal to what is readable: a partition per tick, a materialization per readable tick.

Runs record what they step. But a time also becomes readable without one: a session's read steps it, another process
drives the timeline, or a run's worker died between sealing and telling. What Dagster lacks then is found here by
comparing with its instance, and each is recorded once.

*Live* ticks are those that Dagster shows: the newest 10,000 that are not forgotten in every collection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import dagster as dg

from mz_dagster.adapter import Engine, RowCount, rows_at
from mz_dagster.catalog import CollectionRow
from mz_dagster.formalism import Antichain
from mz_dagster.orchestration.events import NAME_KEY, TIMELINE_KEY, asset_ids, asset_metadata, asset_objects
from mz_dagster.orchestration.frontier_checks import counted_before, last_frontiers
from mz_dagster.orchestration.ticks import partition_key, partitions_of

#: How many ticks Dagster shows; beyond it ranges of partitions become slow.
NEWEST = 10_000

#: How many ticks of an asset one look compares with Dagster's instance.
_TICKS_AT_ONCE = 500


def asset_specs(
    repository: dg.RepositoryDefinition | None, engine: Engine, timeline: str | None = None
) -> list[dg.AssetSpec]:
    """Returns the specifications of a project's assets as they were loaded, whatever changed them on the way.

    Args:
        repository: What Dagster loaded.
        engine: The project; another project's assets are left out.
        timeline: Only assets of this timeline, if given.
    """
    definitions = {} if repository is None else repository.assets_defs_by_key
    found = {spec.key: spec for one in definitions.values() for spec in one.specs}
    ours = [
        spec
        for spec in found.values()
        if NAME_KEY in spec.metadata and (timeline is None or spec.metadata.get(TIMELINE_KEY) == timeline)
    ]
    there = asset_objects(engine, ours)
    return [spec for spec in ours if spec.key in there]


def asset_rows(engine: Engine, specs: Sequence[dg.AssetSpec]) -> dict[dg.AssetKey, CollectionRow]:
    """Returns the collection behind each asset, as the catalog has it now."""
    rows = {row.id: row for row in engine.catalog.collections()}
    return {key: rows[id] for key, id in asset_ids(engine, specs).items() if id in rows}


def live_ticks(engine: Engine, timeline: str, *, after: int = -1) -> tuple[int, ...]:
    """Returns the ticks that Dagster shows, ascending; only those after a time, if given."""
    sinces = [row.since.only for row in engine.catalog.collections(timeline) if not row.since.is_empty]
    return engine.catalog.ticks(timeline, NEWEST, lower=max(after + 1, min(sinces, default=0)))


def missing_partitions(instance: dg.DagsterInstance, engine: Engine, timeline: str, ticks: Sequence[int]) -> list[str]:
    """Returns the keys of those ticks that are no partitions yet, ascending, for Dagster keeps them as they come."""
    known = set(partitions_of(engine.project, timeline).get_partition_keys(dynamic_partitions_store=instance))
    return [key for key in map(partition_key, ticks) if key not in known]


@dataclass(frozen=True, slots=True)
class RecordedTicks:
    """Says up to which tick each asset's readable ticks are known to be in Dagster's record.

    It only saves comparing them again: a lost one costs time, nothing else.
    """

    up_to: Mapping[str, int]

    @classmethod
    def from_text(cls, text: str | None) -> RecordedTicks:
        """Returns what `to_text` wrote; of anything else nothing is known."""
        try:
            found = json.loads(text or "{}")
        except ValueError:
            found = {}
        valid = isinstance(found, dict) and all(isinstance(tick, int) for tick in found.values())
        return cls(found if valid else {})

    def of_all(self, keys: Iterable[dg.AssetKey]) -> int:
        """Returns up to which tick that is known of all of some assets; -1 if of one nothing is."""
        return min((self.up_to.get(key.to_user_string(), -1) for key in keys), default=-1)

    def to_text(self) -> str:
        """Returns it as a sensor's cursor."""
        return json.dumps(self.up_to, sort_keys=True)


@dataclass(frozen=True, slots=True)
class UnrecordedTick:
    """A tick that can be read in an asset and that Dagster's record lacks."""

    key: dg.AssetKey
    row: CollectionRow
    tick: int

    def materialization(self, engine: Engine, counted: RowCount | None) -> dg.AssetMaterialization:
        """Returns the event that records it, without any step's figures, with how many rows there are if counted."""
        metadata = asset_metadata(engine, self.row, self.tick, counted=counted)
        return dg.AssetMaterialization(self.key, partition=partition_key(self.tick), metadata=metadata)


def unrecorded(
    instance: dg.DagsterInstance,
    assets: Mapping[dg.AssetKey, CollectionRow],
    ticks: Sequence[int],
    recorded: RecordedTicks,
    *,
    most: int = _TICKS_AT_ONCE,
    unseen: Mapping[dg.AssetKey, Antichain[int]] | None = None,
) -> tuple[list[UnrecordedTick], RecordedTicks]:
    """Returns readable ticks that Dagster does not show as materialized, and what is recorded once they are.

    The caller must have read `assets` before it made sure that no run of the timeline is live, for such a run tells its
    own ticks a moment after it has sealed them.

    Args:
        instance: Dagster's record.
        assets: The collections behind the assets.
        ticks: The live ticks, ascending.
        recorded: What an earlier call returned.
        most: How many to return at most; what is left is found by the next call.
        unseen: From when on assets became readable since the caller's last look, and by nobody who records: Dagster is
            not asked for these ticks.
    """
    found: list[UnrecordedTick] = []
    up_to = dict(recorded.up_to)
    for key, row in assets.items():
        name = key.to_user_string()
        readable = [tick for tick in ticks if tick > up_to.get(name, -1) and row.is_readable_at(tick)]
        readable = readable[: min(_TICKS_AT_ONCE, most - len(found))]
        if not readable:
            continue
        since = (unseen or {}).get(key)
        asked = {partition_key(tick) for tick in readable if since is None or not since.less_equal(tick)}
        shown: Set[str] = frozenset()
        if asked:
            shown = instance.get_latest_storage_id_by_partition(
                key, dg.DagsterEventType.ASSET_MATERIALIZATION, asked
            ).keys()
        found += [UnrecordedTick(key, row, tick) for tick in readable if partition_key(tick) not in shown]
        up_to[name] = readable[-1]
    return found, RecordedTicks(up_to)


def materializations(
    instance: dg.DagsterInstance, engine: Engine, found: Sequence[UnrecordedTick]
) -> list[dg.AssetMaterialization]:
    """Returns the events that record some ticks; of each asset the newest says how many rows there are."""
    if not found:
        return []
    newest = {one.key: one for one in found}
    counts = rows_at(
        engine, [(one.row, one.tick) for one in newest.values()], counted_before(last_frontiers(instance, newest))
    )
    return [one.materialization(engine, counts.get(one.row.id)) for one in found]
