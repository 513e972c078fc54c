"""The catalog's rows as they are: copied whole for backups, and shown unchecked to whoever looks for damage.

A copy is an SQLite database with the same tables, whatever the catalog's own database is, so that a backup of one kind
restores into the other. It holds one committed state, without what belongs to processes: leases, writers, leaders,
batches that are not live, and capabilities that expire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, delete, insert, select, update

from mz_dagster.catalog.database import Database, Transactions, next_ids
from mz_dagster.catalog.errors import CatalogTaken
from mz_dagster.catalog.replica import mark_changes
from mz_dagster.catalog.rows import BatchState
from mz_dagster.catalog.schema import (
    BATCH,
    CAPABILITY,
    CHANGED,
    COMPUTE_REPLICA,
    INLINED_BATCH,
    LEASE,
    LEASED_BATCH,
    METADATA,
    OBJECT,
    PROJECT,
    TIMELINE,
    WRITER,
)
from mz_dagster.catalog.timelines import NOBODY
from mz_dagster.catalog.upgrade import upgrade
from mz_dagster.catalog.url import CatalogUrl
from mz_dagster.liveness import this_process

PORTION = 1000
"""How many rows are copied by one statement."""

_RESTORING = "restoring-"
"""With what the id of a catalog begins that a restore has filled and whose project does not have its folder yet."""

_NOT_CARRIED = (WRITER, LEASE, LEASED_BATCH, COMPUTE_REPLICA, CHANGED)
"""Tables of what belongs to processes, and of what their own database notes for them."""

Record = Mapping[str, Any]


class Records(Transactions):
    """The part of the catalog that shows and copies its rows, whatever they mean."""

    def records(self) -> Mapping[str, tuple[Record, ...]]:
        """Returns every row of every table, as it is, in one transaction; by table, in order of the primary key.

        Of inlined batches without their payloads, which are read one by one (`Payloads.payloads`).
        """
        with self._database.read() as connection:
            return {
                table.name: tuple(
                    dict(row) for row in connection.execute(_shown(table).order_by(*table.primary_key)).mappings()
                )
                for table in METADATA.sorted_tables
            }

    def damage(self) -> tuple[str, ...]:
        """Returns what the database itself finds broken in its file; PostgreSQL has its own tools for that.

        Cost: one read of the file.
        """
        if not self._database.is_sqlite:
            return ()
        with self._database.read() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(20)").scalars().all()
        return tuple(str(one) for one in found if one != "ok")

    def copy_to(self, path: Path, *, holder: str, ttl_ms: int) -> int:
        """Copies one committed state to a new SQLite file, and leases the live batches that it lists.

        Writers wait for no more than the lease: the rows are copied after it.

        Args:
            path: The file; it must not be there.
            holder: Who copies, in words that help to find it.
            ttl_ms: How long the lease lasts unless renewed, in milliseconds.

        Returns:
            The lease, to be renewed and released by the caller.
        """
        with ExitStack() as stack:
            with self._database.write() as connection:
                # A transaction that begins to read while nobody else may write sees the very state that is leased.
                state = stack.enter_context(self._database.read())
                live = select(BATCH.c.id).where(BATCH.c.state == BatchState.LIVE.value)
                ids = state.execute(live).scalars().all()
                (lease,) = next_ids(connection, "lease", 1)
                until = self._now_ms() + ttl_ms
                values = {"id": lease, "holder": holder, "until_ms": until, "process": this_process()}
                connection.execute(insert(LEASE).values(values))
                if ids:
                    connection.execute(insert(LEASED_BATCH), [{"lease": lease, "batch": id} for id in ids])
            copy = Database(CatalogUrl.of_file(path), self._database.clock)
            try:
                upgrade(copy)
                with copy.write() as target:
                    _copy_rows(state, target)
            finally:
                copy.close()
        return int(lease)

    def fill_from(self, path: Path, *, id: str | None = None) -> None:
        """Makes this catalog, which must be empty, hold what a copy holds; in one transaction.

        Args:
            path: The copy; one of an older version is migrated in place.
            id: The id of the project whose catalog this becomes once `complete_restore` says that it is there; until
                then the catalog is nobody's, and can be filled anew. None to keep its own.

        Raises:
            CatalogTaken: This catalog holds something already.
            CatalogTooNew: The copy was made by a newer version of the code.
        """
        copy = Database(CatalogUrl.of_file(path), self._database.clock)
        try:
            upgrade(copy)
            with copy.read() as state, self._database.write() as target:
                own = target.execute(select(PROJECT.c.id)).scalar()
                if not (own or "").startswith(_RESTORING) and any(
                    target.execute(select(one).limit(1)).first() is not None for one in (TIMELINE, OBJECT)
                ):
                    raise CatalogTaken
                _copy_rows(state, target)
                target.execute(update(PROJECT).values(id=own if id is None else f"{_RESTORING}{id}"))
        finally:
            copy.close()

    def complete_restore(self, id: str, put_in_place: Callable[[], object] = lambda: None) -> None:
        """Gives a catalog that was filled for a project that project's id, after what puts the project in its place.

        Raises:
            CatalogTaken: Another restore has filled it meanwhile; nothing was put in its place.
        """
        with self._database.write() as connection:
            given = update(PROJECT).where(PROJECT.c.id == f"{_RESTORING}{id}").values(id=id)
            if not connection.execute(given).rowcount:
                raise CatalogTaken
            put_in_place()

    @property
    def restored_for(self) -> str | None:
        """The id of the project that a restore filled it for and did not say that it is there; None if none did."""
        with self._database.read() as connection:
            found = connection.execute(select(PROJECT.c.id)).scalar()
        return None if found is None or not found.startswith(_RESTORING) else str(found).removeprefix(_RESTORING)


def _copy_rows(source: Connection, target: Connection) -> None:
    """Replaces the rows of a new catalog by another's."""
    for table in reversed(METADATA.sorted_tables):
        if table is not PROJECT:
            target.execute(delete(table))
    owners = []
    for table in METADATA.sorted_tables:
        if table in _NOT_CARRIED or table is PROJECT:
            continue
        for portion in source.execute(_carried(table)).mappings().partitions(PORTION):
            rows: list[dict[str, Any]] = [dict(row) for row in portion]
            if table is TIMELINE:
                rows = [row | NOBODY for row in rows]
            elif table is OBJECT:  # an owner may be created after what it owns
                owners += [{"the_id": row["id"], "owner": row["owner"]} for row in rows if row["owner"] is not None]
                rows = [row | {"owner": None} for row in rows]
            target.execute(insert(table), rows)
    mark_changes(target)
    target.execute(update(PROJECT).values(names=source.execute(select(PROJECT.c.names)).scalar_one()))
    if owners:
        target.execute(update(OBJECT).where(OBJECT.c.id == bindparam("the_id")), owners)


def _shown(table: Table) -> Select[Any]:
    return select(table.c.batch) if table is INLINED_BATCH else select(table)


def _carried(table: Table) -> Select[Any]:
    query = select(table)
    if table is BATCH:
        return query.where(BATCH.c.state == BatchState.LIVE.value)
    if table is INLINED_BATCH:
        live = select(BATCH.c.id).where(BATCH.c.state == BatchState.LIVE.value)
        return query.where(INLINED_BATCH.c.batch.in_(live))
    if table is CAPABILITY:
        return query.where(CAPABILITY.c.until_ms.is_(None))
    return query
