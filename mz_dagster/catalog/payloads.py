"""Payloads: the updates of inlined batches, which are sealed with them in the row (`storage.inlined`).

A payload is inserted by the transaction that makes its batch live, and deleted by the one that forgets it; it is never
changed. What proves that it is the one that was written is in the batch's own row.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, bindparam, delete, insert, select

from mz_dagster.catalog.database import Database, Transactions, in_portions, next_ids
from mz_dagster.catalog.rows import BatchId
from mz_dagster.catalog.schema import BATCH, INLINED_BATCH

_AT_ONCE = 64
"""How many ids of batches a process takes at once; those that it does not use nobody does."""

#: Built once: building a statement takes longer than running it.
_KEEP = insert(INLINED_BATCH)
_DELETE = delete(INLINED_BATCH).where(INLINED_BATCH.c.batch.in_(bindparam("gone", expanding=True)))
_PAYLOADS = select(INLINED_BATCH).where(INLINED_BATCH.c.batch.in_(bindparam("wanted", expanding=True)))


class Payloads(Transactions):
    """The part of the catalog that holds updates."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._fresh: deque[int] = deque()
        self._taking = threading.Lock()

    def fresh_batch(self) -> BatchId:
        """Returns a batch id, never used before, for a batch that brings its updates to its seal.

        Cost: one transaction for many of them.
        """
        with self._taking:
            if not self._fresh:
                with self._database.write(until_power_cut=True) as connection:
                    self._fresh.extend(next_ids(connection, "batch", _AT_ONCE))
            return BatchId(self._fresh.popleft())

    def payloads(self, batches: Collection[BatchId]) -> Mapping[BatchId, bytes]:
        """Returns the payloads of those of the batches that have one."""
        found: dict[BatchId, bytes] = {}
        with self._database.read() as connection:
            for portion in in_portions(batches):
                for row in connection.execute(_PAYLOADS, {"wanted": portion}):
                    found[BatchId(row.batch)] = bytes(row.payload)
        return found

    def put_back_payload(self, batch: BatchId, payload: bytes) -> None:
        """Puts the payload that was written in the place of one that is damaged or gone; the caller has compared it."""
        with self._database.write() as connection:
            if connection.execute(select(BATCH.c.id).where(BATCH.c.id == batch)).first() is None:
                return  # it was swept meanwhile
            connection.execute(delete(INLINED_BATCH).where(INLINED_BATCH.c.batch == batch))
            insert_payloads(connection, {batch: payload})

    def remove_stray_payloads(self, batches: Collection[BatchId]) -> int:
        """Removes those of the payloads whose batches the catalog does not know; returns how many."""
        with self._database.write() as connection:
            known = select(BATCH.c.id)
            stray = (INLINED_BATCH.c.batch.in_(list(batches)), INLINED_BATCH.c.batch.not_in(known))
            return int(connection.execute(delete(INLINED_BATCH).where(*stray)).rowcount)


def payloads_in(copy: Path, batches: Collection[BatchId]) -> Mapping[BatchId, bytes]:
    """Returns the payloads that a copy of a catalog has of some batches; it is not changed, however old it is."""
    found: dict[BatchId, bytes] = {}
    with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (INLINED_BATCH.name,)).fetchone() is None:
            return found
        for id in batches:
            row = connection.execute(f"SELECT payload FROM {INLINED_BATCH.name} WHERE batch = ?", (id,)).fetchone()
            if row is not None:
                found[id] = row[0]
    return found


def insert_payloads(connection: Connection, payloads: Mapping[BatchId, bytes]) -> None:
    """Stores the payloads of batches that become live."""
    if payloads:
        rows = [{"batch": id, "payload": payload} for id, payload in payloads.items()]
        connection.execute(_KEEP, rows)


def delete_payloads(connection: Connection, batches: Iterable[BatchId]) -> None:
    """Deletes the payloads of batches that are forgotten, of which a statement may name as many."""
    connection.execute(_DELETE, {"gone": list(batches)})
