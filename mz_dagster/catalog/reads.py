"""What a write has read, and whether that has changed by the time at which the write takes effect (items 118 to 120).

A write that reads does so at one time `r` and takes effect at a later one, `w`. It is as if it had happened at `w`
alone if nothing that it has read has an update in `(r, w]`, and if none can come to be there any more:

    for each collection c that was read, and each that c is computed from:
        no live batch of c holds updates in (r, w]
        no file is bound to a source c in (r, w]                         no tick can be minted there: w is applied
        no row of a temporal filter of c is due in (r, w]
        a table c is closed up to w, so that no other write can take effect there
        whatever only holders of capabilities write is known up to w already

All of it is found out, and made so, in the transaction that seals the write. Batches tell it to the interval: one that
reaches from before `r` to beyond counts as an update in between, which costs a retry and never an anomaly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, select

from mz_dagster.catalog.codec import frontier_of
from mz_dagster.catalog.database import RowsOf
from mz_dagster.catalog.frontiers import row_lattice
from mz_dagster.catalog.references import number_of_references
from mz_dagster.catalog.rows import BatchState, ReadSet, Seal
from mz_dagster.catalog.schema import BATCH, BOUND, COLLECTION, HOLD, OBJECT, TIMELINE
from mz_dagster.formalism import Antichain, GlobalId

#: Built once: every write that reads asks these, and building them takes longer than running them.
_COLLECTIONS = RowsOf(
    select(
        COLLECTION.c.id,
        COLLECTION.c.upper,
        COLLECTION.c.next_due,
        OBJECT.c.kind,
        OBJECT.c.dropped,
        TIMELINE.c.lattice,
    )
    .join(OBJECT, OBJECT.c.id == COLLECTION.c.id)
    .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline),
    COLLECTION.c.id,
)
_INPUTS = RowsOf(select(HOLD.c.input), HOLD.c.output)
_BATCHES = RowsOf(
    select(BATCH.c.collection, BATCH.c.lower, BATCH.c.upper).where(BATCH.c.state == BatchState.LIVE.value),
    BATCH.c.collection,
)
_BOUND = (
    select(BOUND.c.source)
    .where(
        BOUND.c.source.in_(bindparam("wanted", expanding=True)),
        BOUND.c.tick > bindparam("after"),
        BOUND.c.tick <= bindparam("until"),
    )
    .limit(1)
)


Rows = Mapping[GlobalId, Any]


def rows_of(connection: Connection, collections: Iterable[GlobalId]) -> Rows:
    """Returns the rows of those of the collections that are there, with what their objects are and their lattices."""
    return {GlobalId(row.id): row for row in _COLLECTIONS.rows(connection, collections)}


def with_inputs(connection: Connection, collections: Iterable[GlobalId]) -> Rows:
    """Returns the rows of collections and of everything that they are computed from."""
    rows: dict[GlobalId, Any] = {}
    wanted = set(collections)
    while wanted:
        found = rows_of(connection, wanted)
        rows |= found
        computed = [id for id, row in found.items() if row.kind not in ("table", "source")]
        wanted = {GlobalId(row.input) for row in _INPUTS.rows(connection, computed)} - rows.keys()
    return rows


def first_changed(connection: Connection, rows: Rows, reads: ReadSet, time: int) -> GlobalId | None:
    """Returns a collection that has, or may yet get, updates in `(reads.time, time]`; None if none of them has.

    One of them is returned, too, if tables have come to refer to others since it was looked which ones do.

    Args:
        connection: A transaction.
        rows: What decides what was read, from `with_inputs`.
        reads: What was read.
        time: When the write takes effect.
    """
    for id in sorted(reads.collections):
        if id not in rows or rows[id].dropped:
            return id
    if reads.references not in (None, number_of_references(connection)):
        return min(reads.collections)
    for id, row in rows.items():
        is_due = row.next_due is not None and row.next_due <= time
        if is_due or (row.kind == "collection" and _upper(row).less_equal(time)):
            return id
    for batch in _BATCHES.rows(connection, rows):
        lattice = row_lattice(rows[batch.collection])
        lower, upper = frontier_of(lattice, batch.lower), frontier_of(lattice, batch.upper)
        if lower.less_equal(time) and not upper.less_equal(reads.time + 1):
            return GlobalId(batch.collection)
    sources = [id for id, row in rows.items() if row.kind == "source"]
    if not sources:
        return None
    bound = {"wanted": sources, "after": reads.time, "until": time}
    found: str | None = connection.execute(_BOUND, bound).scalar_one_or_none()
    return None if found is None else GlobalId(found)


def closings(rows: Rows, time: int) -> list[Seal]:
    """Returns the seals by which those of the collections that are tables get no more up to a time."""
    return [
        Seal(id, _upper(row), Antichain.of(row_lattice(row), time + 1))
        for id, row in rows.items()
        if row.kind == "table" and _upper(row).less_equal(time)
    ]


def _upper(row: Any) -> Antichain[int]:
    return frontier_of(row_lattice(row), row.upper)
