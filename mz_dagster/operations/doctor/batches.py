"""Checks of the catalog's lists of batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mz_dagster.catalog import Batch, BatchState
from mz_dagster.liveness import is_dead
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding, listing


def check_batches(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields batches that cover nothing, cover a time twice or beyond the upper, or that nobody needs."""
    yield from examined.unlisted.values()
    for id, batches in examined.batches.items():
        if id in examined.unlisted:
            continue
        row, live = examined.collections[id], examined.live(id)
        for batch in batches:
            if not batch.lower < batch.upper:
                what = f"it reaches from {batch.lower} to {batch.upper}"
                yield Finding("batch-interval", _called(examined, batch), what)
        if examined.is_dropped(id) and row.since.is_empty and live:
            what = f"batch {live[0].id} and {len(live) - 1} others are listed, although it was dropped"
            yield Finding("batch-of-dropped", examined.called(id), what)
            continue
        if examined.is_written_by_capability(id):
            continue
        for one, next in pairwise(live):
            if one.lower < one.upper and not one.upper <= next.lower:
                what = f"it covers [{one.lower}, {one.upper}), and batch {next.id} [{next.lower}, {next.upper})"
                yield Finding("batch-overlap", _called(examined, one), what)
        for one in live:
            if not one.upper <= row.upper:
                what = f"it ends at {one.upper}, beyond the upper {row.upper}"
                yield Finding("batch-beyond-upper", _called(examined, one), what)
    yield from _unswept(examined)


def _unswept(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields what the next sweep will take."""
    records, now = examined.records, examined.now_ms
    writers, leases = (
        {row["id"] for row in records[table] if row["until_ms"] > now and not is_dead(row["process"])}
        for table in ("writer", "lease")
    )
    listed = {row["batch"] for row in records["leased_batch"] if row["lease"] in leases}
    writer_of = {row["id"]: row["writer"] for row in records["batch"]}
    for id, batches in examined.batches.items():
        if id in examined.unlisted:
            continue
        unsealed = [one.id for one in batches if one.state is BatchState.WRITING and writer_of[one.id] not in writers]
        replaced = [one.id for one in batches if one.state is BatchState.REPLACED and one.id not in listed]
        dead = [one.id for one in batches if one.state is BatchState.DEAD]
        if unsealed:
            what = f"reserved and never sealed, by writers without a lease: batch {listing(unsealed)}"
            yield Finding("batch-unsealed", examined.called(id), what, examined.sweep)
        for state, ids in ((BatchState.REPLACED, replaced), (BatchState.DEAD, dead)):
            if ids:
                what = f"{state.value}, and still there: batch {listing(ids)}"
                yield Finding("batch-replaced", examined.called(id), what, examined.sweep)


def _called(examined: ExaminedProject, batch: Batch) -> str:
    return f"batch {batch.id} of {examined.called(batch.collection)}"
