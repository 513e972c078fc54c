"""Read capabilities: durable rights that hold a collection's since back (items 62 to 72 and 77 to 81).

A capability is a bearer token: whoever presents it has the right. It is validated at every use. The catalog
keeps only a hash of its secret, compared in constant time, so that a copy of the catalog grants nothing.
One with a lease expires by the clock and then holds nothing back; using it is an error. One without a
lease holds until it is dropped.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from mz_dagster.catalog.codec import frontier_of, frontier_text
from mz_dagster.catalog.database import Transactions, next_ids
from mz_dagster.catalog.errors import CapabilityExpired, FrontierNotHeld, UnknownCapability, UnknownObject
from mz_dagster.catalog.frontiers import frontiers
from mz_dagster.catalog.rows import ReadCapability
from mz_dagster.catalog.schema import CAPABILITY
from mz_dagster.formalism import Antichain, GlobalId


class Capabilities(Transactions):
    """Is the part of the catalog that hands out, checks and takes back read capabilities."""

    def acquire_read(
        self,
        collection: GlobalId,
        frontier: Antichain[int] | None = None,
        *,
        holder: str,
        ttl_ms: int | None,
    ) -> ReadCapability:
        """Returns a capability that holds a collection's since at `frontier`, by default where since stands now.

        Args:
            collection: The collection.
            frontier: At or beyond its since.
            holder: Who asks, in words that help to find it.
            ttl_ms: How long it lasts unless renewed, in milliseconds; None for as long as it is not dropped.

        Raises:
            FrontierNotHeld: The collection's since is already beyond the frontier; the hint names it.
            UnknownObject: There is no such collection, or it was dropped.
        """
        with self._database.write() as connection:
            found = frontiers(connection, [collection])
            if collection not in found or found[collection][0].is_empty:
                raise UnknownObject(collection, dropped=collection in found)
            since = found[collection][0]
            wanted = since if frontier is None else frontier
            if not since <= wanted:
                raise FrontierNotHeld(
                    f'"{collection}" cannot be held at {wanted}',
                    detail=f"Its history before {since} is forgotten.",
                    hint=f"Use a frontier at or beyond {since}.",
                )
            return self._insert(connection, collection, wanted, holder, ttl_ms)

    def downgrade(self, token: str, frontier: Antichain[int]) -> ReadCapability:
        """Moves a capability to a later frontier, and lets since follow; `{}` drops it.

        Raises:
            FrontierNotHeld: The frontier is before the one held.
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
        """
        with self._database.write() as connection:
            row, held = self._valid(connection, token)
            if not held <= frontier:
                raise FrontierNotHeld(
                    f"a capability at {held} cannot go back to {frontier}",
                    hint="Downgrade to a frontier at or beyond the one held.",
                )
            mine = CAPABILITY.c.id == row.id
            if frontier.is_empty:
                connection.execute(delete(CAPABILITY).where(mine))
            else:
                connection.execute(update(CAPABILITY).where(mine).values(frontier=frontier_text(frontier)))
            return ReadCapability(token, GlobalId(row.collection), frontier, row.until_ms)

    def clone(self, token: str, *, holder: str, ttl_ms: int | None) -> ReadCapability:
        """Returns an independent capability for the same frontier.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
        """
        with self._database.write() as connection:
            row, held = self._valid(connection, token)
            return self._insert(connection, GlobalId(row.collection), held, holder, ttl_ms)

    def validate(self, token: str) -> ReadCapability:
        """Returns what a token stands for.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
        """
        with self._database.read() as connection:
            row, held = self._valid(connection, token)
            return ReadCapability(token, GlobalId(row.collection), held, row.until_ms)

    def renew(self, token: str, ttl_ms: int) -> ReadCapability:
        """Extends a capability's lease.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out: since may have moved meanwhile.
        """
        until = self._now_ms() + ttl_ms
        with self._database.write() as connection:
            row, held = self._valid(connection, token)
            connection.execute(update(CAPABILITY).where(CAPABILITY.c.id == row.id).values(until_ms=until))
            return ReadCapability(token, GlobalId(row.collection), held, until)

    def drop(self, token: str) -> None:
        """Ends a capability.

        Raises:
            UnknownCapability: The token denotes nothing.
        """
        with self._database.write() as connection:
            connection.execute(delete(CAPABILITY).where(CAPABILITY.c.id == _found(connection, token).id))

    def _insert(
        self, connection: Connection, collection: GlobalId, frontier: Antichain[int], holder: str, ttl_ms: int | None
    ) -> ReadCapability:
        until = None if ttl_ms is None else self._now_ms() + ttl_ms
        (id,) = next_ids(connection, "capability", 1)
        secret = secrets.token_urlsafe(32)
        connection.execute(
            insert(CAPABILITY).values(
                id=id,
                token_hash=_hash(secret),
                collection=collection,
                frontier=frontier_text(frontier),
                holder=holder,
                until_ms=until,
            )
        )
        return ReadCapability(f"r{id}.{secret}", collection, frontier, until)

    def _valid(self, connection: Connection, token: str) -> tuple[Any, Antichain[int]]:
        row = _found(connection, token)
        if row.until_ms is not None and row.until_ms <= self._now_ms():
            raise CapabilityExpired
        id = GlobalId(row.collection)
        since, _ = frontiers(connection, [id])[id]
        if since.is_empty:
            raise UnknownObject(id, dropped=True)
        return row, frontier_of(since.lattice, row.frontier)  # type: ignore[arg-type]


def _found(connection: Connection, token: str) -> Any:
    head, _, secret = token.partition(".")
    # Bounded, so that no token makes the database compare an integer that it cannot hold.
    id = int(head[1:]) if head[:1] == "r" and head[1:].isascii() and head[1:].isdigit() and len(head) < 19 else -1
    row = connection.execute(select(CAPABILITY).where(CAPABILITY.c.id == id)).one_or_none()
    expected = _hash("") if row is None else row.token_hash
    if not hmac.compare_digest(_hash(secret), expected) or row is None:
        raise UnknownCapability
    return row


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
