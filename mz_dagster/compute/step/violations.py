"""How many violations a check has at each time: what its collection, which holds them, says.

Counting reads multiplicities and errors alone, and no file where the catalog says that there are no updates, which is
so of a check that always held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.catalog import Batch, Catalog, CollectionRow
from mz_dagster.compute.lookups.step_reads import stored_table
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.arrow_schema import update_schema, without_errors
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.plain_cells import python_cells
from mz_dagster.storage.read import leased, overlapping
from mz_dagster.storage.shards import DIFF, ERROR, TIME

#: Of how many updates examples are looked for: they are read whole.
_MOST_EXAMINED = 100_000


@dataclass(frozen=True, slots=True)
class Violations:
    """The violations of a check, from its since to its upper.

    Attributes:
        since: Before it nothing is known.
        upper: Nor from here on.
        times: When there began to be another number of them, ascending.
        counts: How many there were from then on.
        errors: The updates of errors, by which nobody knows whether it holds.
        rows: Violations at the time that was asked for, as many as were asked for.
    """

    since: int
    upper: int
    times: NDArray[np.int64]
    counts: NDArray[np.int64]
    errors: pa.Table
    rows: tuple[tuple[object, ...], ...] = ()

    def is_known_at(self, time: int) -> bool:
        """Returns whether it can be told if the check held at a time."""
        return self.since <= time < self.upper

    def count_at(self, time: int) -> int:
        """Returns how many violations there were at a time."""
        before = int(np.searchsorted(self.times, time, side="right"))
        return int(self.counts[before - 1]) if before else 0

    def errors_at(self, time: int) -> tuple[str, ...]:
        """Returns the errors that there were instead of an answer, by text."""
        before = self.errors.filter(pc.less_equal(self.errors.column(TIME), time))
        return tuple(sorted(set(consolidated(before, time).column(ERROR).to_pylist()))) if len(before) else ()

    def holds_at(self, time: int) -> bool:
        """Returns whether the check is known to have held at a time."""
        return self.is_known_at(time) and self.count_at(time) == 0 and not self.errors_at(time)


def violations_of(
    catalog: Catalog,
    local: LocalShards,
    rows: Sequence[CollectionRow],
    holder: str,
    lease_ms: int,
    *,
    examples: int = 0,
    at: int | None = None,
) -> dict[GlobalId, Violations]:
    """Returns the violations of checks, by their collections.

    Args:
        catalog: The durable state.
        local: The shards.
        rows: The checks' collections.
        holder: Names this process in leases.
        lease_ms: How long a lease lasts without renewal.
        examples: How many rows of each to show; none of those that are very many.
        at: When those were violations; None for the latest time that is known.
    """
    listed = catalog.live_batches([row.id for row in rows])  # later than the rows, so it has all that they know of
    empty = [row for row in rows if not any(batch.stats.rows for batch in listed[row.id])]
    found = {row.id: _counted(row, update_schema(()).empty_table(), update_schema(()).empty_table()) for row in empty}
    read = [row for row in rows if row.id not in found]
    if read:
        with leased(catalog, [row.id for row in read], holder=holder, ttl_ms=lease_ms) as lease:
            for row in read:
                found[row.id] = _read(local, row, lease.snapshots[row.id].batches, examples, at)
    return found


def _read(
    local: LocalShards, row: CollectionRow, batches: Sequence[Batch], examples: int, at: int | None
) -> Violations:
    upper = row.upper.only
    at = upper - 1 if at is None else at
    held = [one for one in overlapping(batches, None, upper) if one.stats.rows]
    errors = local.errors(row, held, upper=upper)
    found = _counted(row, stored_table(local, row, held, None, upper, ()), errors)
    if not examples or not found.count_at(at) or sum(one.stats.rows for one in held) > _MOST_EXAMINED:
        return found
    whole = stored_table(local, row, held, None, at + 1, range(len(row.columns)))
    shown = consolidated(without_errors(whole), at).slice(0, examples)
    cells = [python_cells(shown.column(i)) for i in range(len(row.columns))]
    return replace(found, rows=tuple(zip(*cells, strict=True)))


def _counted(row: CollectionRow, updates: pa.Table, errors: pa.Table) -> Violations:
    rows = without_errors(updates)
    times = rows.column(TIME).to_numpy().astype(np.int64)
    order = np.argsort(times, kind="stable")
    counts = np.cumsum(rows.column(DIFF).to_numpy().astype(np.int64)[order])
    return Violations(row.since.only, row.upper.only, times[order], counts, errors)
