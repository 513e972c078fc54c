"""How many rows collections have, told from how many they had before by what came since.

Memory: multiplicities, times and errors of the updates of one batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.arrow_schema import without_errors
from mz_dagster.storage.read import leased, overlapping
from mz_dagster.storage.shards import DIFF, BatchIncomplete

#: More updates than that are not read: it would take longer than what a step does.
_MOST = 20_000_000


@dataclass(frozen=True, slots=True)
class RowCount:
    """How many rows a collection had, each as often as its multiplicity says, without what is an error.

    Attributes:
        id: The collection.
        time: When.
        rows: How many.
    """

    id: GlobalId
    time: int
    rows: int


def rows_at(
    engine: Engine, asked: Sequence[tuple[CollectionRow, int]], before: Mapping[GlobalId, RowCount]
) -> dict[GlobalId, RowCount]:
    """Returns how many rows collections have.

    Args:
        engine: The project.
        asked: Collections, each with a time from its since to its upper.
        before: What was counted before.

    Returns:
        The counts, without those of sinks, and of what nothing is known of and much would have to be read.
    """
    sinks = {row.id for row in engine.catalog.objects("sink")}
    found: dict[GlobalId, RowCount] = {}
    read: dict[GlobalId, tuple[CollectionRow, int, RowCount | None]] = {}
    left = _MOST
    listed = engine.catalog.live_batches([row.id for row, _ in asked])
    for row, time in asked:
        if row.id in sinks or time < row.since.only:
            continue
        known = before.get(row.id)
        if known is not None and not row.since.only <= known.time <= time:
            known = None
        new = [one for one in _since(listed[row.id], known, time) if one.stats.rows]
        if not new:
            found[row.id] = RowCount(row.id, time, 0 if known is None else known.rows)
        elif (updates := sum(one.stats.rows for one in new)) <= left:
            left -= updates
            read[row.id] = (row, time, known)
    if read:
        with leased(engine.catalog, list(read), holder=engine.holder, ttl_ms=engine.project.lease_ms) as lease:
            for id, (row, time, known) in read.items():
                snapshot = lease.snapshots[id]
                if not snapshot.since.less_equal(time if known is None else known.time):
                    continue  # it was forgotten meanwhile
                try:
                    rows = _counted(engine, row, _since(snapshot.batches, known, time), known, time)
                except BatchIncomplete:  # whoever reads it is told
                    continue
                found[id] = RowCount(row.id, time, rows)
    return found


def _since(batches: Sequence[Batch], known: RowCount | None, time: int) -> Sequence[Batch]:
    return overlapping(batches, None if known is None else known.time + 1, time + 1)


def _counted(engine: Engine, row: CollectionRow, batches: Sequence[Batch], known: RowCount | None, time: int) -> int:
    lower, rows = (None, 0) if known is None else (known.time + 1, known.rows)
    for batch in batches:
        updates = engine.shards.read(row, [batch], lower=lower, upper=time + 1, columns=())
        rows += pc.sum(without_errors(updates).column(DIFF)).as_py() or 0
    return rows
