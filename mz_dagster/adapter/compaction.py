"""The compaction of a project: batches are merged, and what nobody needs is swept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mz_dagster.catalog import NO_ROWS, Catalog, CollectionRow
from mz_dagster.clock import Clock
from mz_dagster.errors import Error, OperationalError
from mz_dagster.formalism import GlobalId
from mz_dagster.progress import Task, task
from mz_dagster.storage.compact import Merge, compact, rows_to_merge
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.sweep import sweep


def compact_all(
    catalog: Catalog,
    shards: LocalShards,
    shards_for: Callable[[int], LocalShards | Shards[Any]],
    names: Mapping[GlobalId, str],
    sort_key: Callable[[CollectionRow], Sequence[str]],
    *,
    holder: str,
    ttl_ms: int,
    clock: Clock,
    only: frozenset[GlobalId] | None,
    max_seconds: float | None,
    max_rows: int | None,
    thorough: bool,
) -> Iterator[str]:
    """Merges batches and sweeps, and yields one line for each thing done; see `Engine.compact`.

    Args:
        catalog: The catalog.
        shards: The shards in this process.
        shards_for: Returns those that merge so many rows: of many, on Spark.
        names: How people call the collections.
        sort_key: Returns the columns by which a collection's merged batches are laid out.
        holder: Who compacts.
        ttl_ms: How long its leases outlive it if it vanishes, in milliseconds.
        clock: Says when `max_seconds` are over.
        only: The collections whose batches to merge; None for all.
        max_seconds: After how long to start no further merge.
        max_rows: After how many rows read to start no further merge.
        thorough: Whether to look for strays of crashed writers in every shard, too.
    """
    failures: dict[str, Error] = {}
    rows_read = 0
    until = None if max_seconds is None else clock.monotonic_ms() + max_seconds * 1000
    counts = catalog.live_batch_counts()
    rows = [row for row in catalog.collections() if only is None or row.id in only]
    left = rows_to_merge(catalog, [row.id for row in rows])
    # Not around the yields: who takes the lines is not at work on it.
    merging = Task("compaction", sum(left.values()), "rows")
    while rows:
        if (max_rows is not None and rows_read >= max_rows) or (until is not None and clock.monotonic_ms() >= until):
            yield f"stopped at the limit, after merges of {rows_read} updates; the rest waits for the next run"
            break
        row = rows[0]
        name = names.get(row.id, row.id)
        _, stats = counts.get(row.id, (0, NO_ROWS))
        try:
            with task(f'merging "{name}"', left[row.id], "rows"):
                chosen = shards_for(stats.rows)
                merge = compact(catalog, chosen, row, holder=holder, key=sort_key(row), ttl_ms=ttl_ms)
        except Error as failure:
            failures[name] = failure
            yield f'"{name}" could not be merged: {failure.message}'
            merge = None
        merging.advance(left[row.id])
        left[row.id] = 0
        if isinstance(merge, Merge):
            rows_read += merge.rows_read
            told = f"{merge.rows_read} updates became {merge.rows_written}"
            yield f'"{name}": merged {len(merge.parts)} batches, {told}'
        else:
            del rows[0]
    merging.end()
    swept = sweep(catalog, shards, thorough=thorough)
    batches = sum(len(ids) for ids in (*swept.batches.values(), *swept.strays.values()))
    yield f"swept {batches} batches"
    if failures:
        name, first = next(iter(failures.items()))
        raise OperationalError(
            f"{len(failures)} collections could not be merged",
            detail=f'First of them "{name}": {first}.',
            hint="They are as readable as before; compact again once the cause is gone.",
        ) from first
