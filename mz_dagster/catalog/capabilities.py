"""Capabilities: durable rights to read, which hold since back, and to write, which hold upper back (items 62 to 81).

A capability is a bearer token: whoever presents it has the right. It is validated at every use, in the transaction
that has the effect. The catalog keeps only a hash of its secret, compared in constant time, so that a copy of the
catalog grants nothing; no message ever shows more of it than its number.
One with a lease expires by the clock and then holds nothing back; using it is an error. One without a
lease holds until it is dropped.

    since(c)  is not beyond the frontier of any live read capability on c       (moves in `frontiers`)
    upper(c)  =  meet of the frontiers of the live write capabilities on c      (if c is a `collection`)

To *drop* a capability says nothing about the future: since and upper are free to move, and `acquire` finds them. To
*downgrade* it to `{}` says that its holder has read, or written, all that it ever will. The last one of a `collection`
to say so ends it for good: for writing, then its upper is `{}`; for reading, then it is gone as if it were dropped,
unless retention or an object that is computed from it holds it. A lease that runs out ends nothing.

Nobody ends what is another's: what is dropped stays readable by right of the capabilities that others hold on it, and
stays writable by right of theirs, until they give them back; it only has no name any more. What is written where nobody
will ever read is as good as written, and is not kept.

Sources, tables, views and their arrangements have no write capabilities: the engine writes them, under compare-and-set
of the upper and, in a step, the leader's epoch (`batches.seal`); a `collection` is written through capabilities only,
until the last one is handed over to a view (`maintaining`).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from mz_dagster.catalog.codec import frontier_of, frontier_text
from mz_dagster.catalog.database import Transactions, next_ids
from mz_dagster.catalog.errors import (
    CapabilityExpired,
    FrontierNotHeld,
    UnknownCapability,
    UnknownObject,
    WrongRight,
)
from mz_dagster.catalog.frontiers import (
    IS_LIVE,
    before,
    close_dropped,
    frontiers,
    is_written_by_capability,
    row_lattice,
    settle_upper,
)
from mz_dagster.catalog.objects import drop_rows
from mz_dagster.catalog.rows import (
    Capability,
    CapabilityRow,
    ReadCapability,
    TimelineHold,
    WriteCapability,
    capability_label,
)
from mz_dagster.catalog.schema import CAPABILITY, COLLECTION, HOLD, OBJECT, TIMELINE
from mz_dagster.catalog.timelines import lattice_of
from mz_dagster.formalism import Antichain, GlobalId


class Capabilities(Transactions):
    """The part of the catalog that hands out, checks and takes back capabilities."""

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
            dropped = connection.execute(select(OBJECT.c.dropped).where(OBJECT.c.id == collection)).scalar()
            if collection not in found or found[collection][0].is_empty or dropped:
                raise UnknownObject(collection, dropped=collection in found)
            since = found[collection][0]
            wanted = since if frontier is None else frontier
            if not since <= wanted:
                raise FrontierNotHeld(
                    f'"{collection}" cannot be held at {wanted}',
                    detail=f"Its history before {since} is forgotten.",
                    hint=f"Use a frontier at or beyond {since}.",
                )
            return self._read(connection, collection, wanted, holder, ttl_ms)

    def acquire(
        self, collection: GlobalId, *, holder: str, ttl_ms: int | None
    ) -> tuple[ReadCapability, WriteCapability]:
        """Returns capabilities to read and to write a collection at its since and upper.

        One at `{}` grants nothing: the collection has ended for reading or writing, or the engine writes it.

        Raises:
            UnknownObject: There never was such a collection.
        """
        with self._database.write() as connection:
            found = frontiers(connection, [collection])
            if collection not in found:
                raise UnknownObject(collection)
            settle_upper(connection, collection, self._now_ms())
            since, upper = frontiers(connection, [collection])[collection]
            read = ReadCapability("", collection, since, None)
            write = WriteCapability("", collection, Antichain.empty(since.lattice), None)
            if not since.is_empty:
                read = self._read(connection, collection, since, holder, ttl_ms)
            if not upper.is_empty and is_written_by_capability(connection, collection):
                write = self._write(connection, collection, upper, holder, ttl_ms)
            return read, write

    def hold_timeline(self, timeline: str, time: int, *, holder: str, ttl_ms: int) -> TimelineHold:
        """Holds the since of everything on a timeline that can be read at a time, so that it stays so.

        Args:
            timeline: The timeline.
            time: The time.
            holder: Who asks, in words that help to find it.
            ttl_ms: How long the hold lasts unless renewed, in milliseconds.
        """
        on_timeline = COLLECTION.c.timeline == timeline, OBJECT.c.dropped.is_(False)
        query = select(COLLECTION.c.id, COLLECTION.c.since).join(OBJECT, OBJECT.c.id == COLLECTION.c.id)
        with self._database.write() as connection:
            lattice = lattice_of(connection, timeline)
            found = connection.execute(query.where(*on_timeline)).all()
            readable = [GlobalId(one.id) for one in found if frontier_of(lattice, one.since).less_equal(time)]
            secret, until = secrets.token_urlsafe(32), self._now_ms() + ttl_ms
            ids = next_ids(connection, "capability", len(readable))
            frontier = frontier_text(Antichain.of(lattice, time))
            common = {"token_hash": _hash(secret), "writes": False, "frontier": frontier, "holder": holder}
            if readable:
                rows = [
                    {"id": id, "collection": collection, "until_ms": until, **common}
                    for id, collection in zip(ids, readable, strict=True)
                ]
                connection.execute(insert(CAPABILITY), rows)
            return TimelineHold(timeline, time, frozenset(readable), min(ids, default=0), max(ids, default=-1), secret)

    def renew_timeline_hold(self, hold: TimelineHold, ttl_ms: int) -> None:
        """Extends a hold that is live.

        Raises:
            CapabilityExpired: Its lease ran out: sinces may have moved meanwhile.
        """
        now = self._now_ms()
        with self._database.write() as connection:
            live = update(CAPABILITY).where(_of_hold(hold), CAPABILITY.c.until_ms > now)
            if connection.execute(live.values(until_ms=now + ttl_ms)).rowcount < len(hold.collections):
                raise CapabilityExpired(f"r{hold.first}")

    def drop_timeline_hold(self, hold: TimelineHold) -> None:
        """Gives a hold back, also one that has expired."""
        with self._database.write() as connection:
            on_dropped = select(OBJECT.c.id).join(CAPABILITY, CAPABILITY.c.collection == OBJECT.c.id)
            dropped = connection.execute(on_dropped.where(_of_hold(hold), OBJECT.c.dropped.is_(True))).scalars().all()
            connection.execute(delete(CAPABILITY).where(_of_hold(hold)))
            for id in dropped:
                close_dropped(connection, GlobalId(id), self._now_ms())

    def downgrade(self, token: str, frontier: Antichain[int]) -> Capability:
        """Moves a capability to a later frontier, and lets since or upper follow; at `{}` it is over.

        Raises:
            FrontierNotHeld: The frontier is before the one held.
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
        """
        with self._database.write() as connection:
            held = validated(connection, token, self._now_ms())
            if not held.frontier <= frontier:
                raise FrontierNotHeld(
                    f'capability "{held.label}" at {held.frontier} cannot go back to {frontier}',
                    hint="Downgrade to a frontier at or beyond the one held.",
                )
            return move(connection, held, frontier, self._now_ms())

    def clone(self, token: str, *, holder: str, ttl_ms: int | None) -> Capability:
        """Returns an independent capability for the same frontier.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
        """
        with self._database.write() as connection:
            held = validated(connection, token, self._now_ms())
            hand_out = self._read if isinstance(held, ReadCapability) else self._write
            return hand_out(connection, held.collection, held.frontier, holder, ttl_ms)

    def validate(self, token: str) -> Capability:
        """Returns what a token stands for.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
        """
        with self._database.read() as connection:
            return validated(connection, token, self._now_ms())

    def validate_read(self, token: str) -> ReadCapability:
        """Returns what a token stands for, if it grants reading.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
            WrongRight: It grants writing.
        """
        return needing_read(self.validate(token))

    def renew(self, token: str, ttl_ms: int) -> Capability:
        """Extends a capability's lease.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out: since or upper may have moved meanwhile.
        """
        until = self._now_ms() + ttl_ms
        with self._database.write() as connection:
            held = validated(connection, token, self._now_ms())
            connection.execute(update(CAPABILITY).where(_is(held.token)).values(until_ms=until))
            return type(held)(token, held.collection, held.frontier, until)

    def drop(self, token: str) -> None:
        """Gives a capability back, also one that has expired.

        Raises:
            UnknownCapability: The token denotes nothing.
        """
        with self._database.write() as connection:
            row = _found(connection, token)
            connection.execute(delete(CAPABILITY).where(_is(token)))
            if row.writes:
                settle_upper(connection, GlobalId(row.collection), self._now_ms())
            close_dropped(connection, GlobalId(row.collection), self._now_ms())

    def capabilities(self) -> tuple[CapabilityRow, ...]:
        """Returns all that holds a since or an upper back, but for retention, without any secret.

        What objects hold on what they are computed from is among it; it has no token and never expires.
        """
        now = self._now_ms()
        query = (
            select(CAPABILITY, TIMELINE.c.lattice)
            .join(COLLECTION, COLLECTION.c.id == CAPABILITY.c.collection)
            .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline)
            .order_by(CAPABILITY.c.id)
        )
        edges = select(HOLD.c.output, HOLD.c.input)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
            holds = sorted((GlobalId(one.output), GlobalId(one.input)) for one in connection.execute(edges))
            known = frontiers(connection, {output for output, _ in holds})
        tokens = [
            CapabilityRow(
                f"{'w' if row.writes else 'r'}{row.id}",
                GlobalId(row.collection),
                "write" if row.writes else "read",
                frontier_of(row_lattice(row), row.frontier),
                row.holder,
                row.until_ms,
                row.until_ms is None or row.until_ms > now,
            )
            for row in rows
        ]
        held = [
            CapabilityRow(None, input, "read", since.meet(before(upper, 1)), output, None, True)
            for output, input in holds
            for since, upper in [known[output]]
        ]
        return (*tokens, *held)

    def _read(
        self, connection: Connection, collection: GlobalId, frontier: Antichain[int], holder: str, ttl_ms: int | None
    ) -> ReadCapability:
        return ReadCapability(*self._insert(connection, "r", collection, frontier, holder, ttl_ms))

    def _write(
        self, connection: Connection, collection: GlobalId, frontier: Antichain[int], holder: str, ttl_ms: int | None
    ) -> WriteCapability:
        return WriteCapability(*self._insert(connection, "w", collection, frontier, holder, ttl_ms))

    def _insert(
        self,
        connection: Connection,
        right: str,
        collection: GlobalId,
        frontier: Antichain[int],
        holder: str,
        ttl_ms: int | None,
    ) -> tuple[str, GlobalId, Antichain[int], int | None]:
        until = None if ttl_ms is None else self._now_ms() + ttl_ms
        (id,) = next_ids(connection, "capability", 1)
        secret = secrets.token_urlsafe(32)
        connection.execute(
            insert(CAPABILITY).values(
                id=id,
                token_hash=_hash(secret),
                writes=right == "w",
                collection=collection,
                frontier=frontier_text(frontier),
                holder=holder,
                until_ms=until,
            )
        )
        return f"{right}{id}.{secret}", collection, frontier, until


def validated(connection: Connection, token: str, now: int) -> Capability:
    """Returns what a token stands for, in a transaction that goes on to use it.

    Raises:
        UnknownCapability: The token denotes nothing.
        CapabilityExpired: Its lease ran out.
    """
    row = _found(connection, token)
    if row.until_ms is not None and row.until_ms <= now:
        raise CapabilityExpired(capability_label(token))
    id = GlobalId(row.collection)
    since, upper = frontiers(connection, [id])[id]
    frontier = frontier_of(since.lattice, row.frontier)  # type: ignore[arg-type]
    if not (upper if row.writes else since) <= frontier:
        # It was over when it was passed, whatever a clock that was set back, or another machine's, says now.
        raise CapabilityExpired(capability_label(token))
    right = WriteCapability if row.writes else ReadCapability
    return right(token, id, frontier, row.until_ms)


def needing_read(capability: Capability) -> ReadCapability:
    """Returns the capability, if it is one to read.

    Raises:
        WrongRight: It is one to write.
    """
    if isinstance(capability, ReadCapability):
        return capability
    raise WrongRight(capability.label, needed="read")


def needing_write(capability: Capability) -> WriteCapability:
    """Returns the capability, if it is one to write.

    Raises:
        WrongRight: It is one to read.
    """
    if isinstance(capability, WriteCapability):
        return capability
    raise WrongRight(capability.label, needed="write")


def move(connection: Connection, held: Capability, frontier: Antichain[int], now: int) -> Capability:
    """Moves a validated capability to a frontier beyond its own; at `{}` it is over, and maybe its collection."""
    mine = _is(held.token)
    if frontier.is_empty:
        connection.execute(delete(CAPABILITY).where(mine))
    else:
        connection.execute(update(CAPABILITY).where(mine).values(frontier=frontier_text(frontier)))
    if isinstance(held, WriteCapability):
        settle_upper(connection, held.collection, now, may_end=frontier.is_empty)
    elif frontier.is_empty:
        _end_if_unread(connection, held.collection, now)
    if frontier.is_empty:
        close_dropped(connection, held.collection, now)
    return type(held)(held.token, held.collection, frontier, held.until_ms)


def hand_over(connection: Connection, token: str, now: int) -> WriteCapability:
    """Returns a write capability, the only live one on its collection, and leaves none by right of which to write it.

    Raises:
        UnknownCapability: The token denotes nothing.
        CapabilityExpired: Its lease ran out.
        WrongRight: It grants reading.
        FrontierNotHeld: There are others, by right of which somebody may go on to write the collection.
    """
    held = needing_write(validated(connection, token, now))
    capability = CAPABILITY.c
    on_it = capability.collection == held.collection, capability.writes
    others = select(capability.id, capability.holder).where(*on_it, IS_LIVE, ~_is(token)).order_by(capability.id)
    if found := connection.execute(others, {"now": now}).all():
        listed = ", ".join(f'"w{row.id}" of {row.holder}' for row in found)
        raise FrontierNotHeld(
            f'capability "{held.label}" is not the only one to write "{held.collection}"',
            detail=f"Others are {listed}.",
            hint="Drop them first: a view is the only writer of what it is written to.",
        )
    connection.execute(delete(CAPABILITY).where(*on_it))  # expired ones too, whatever a clock says later
    return held


def _end_if_unread(connection: Connection, collection: GlobalId, now: int) -> None:
    """Drops a collection that nobody reads, whose readers all have said that they never will again."""
    row = connection.execute(
        select(OBJECT.c.kind, COLLECTION.c.retention_ms)
        .join(COLLECTION, COLLECTION.c.id == OBJECT.c.id)
        .where(OBJECT.c.id == collection)
    ).one()
    capability = CAPABILITY.c
    readers: Sequence[Any] = (
        select(capability.id).where(capability.collection == collection, ~capability.writes, IS_LIVE),
        select(HOLD.c.output).where(HOLD.c.input == collection),
    )
    held = any(connection.execute(one.limit(1), {"now": now}).first() is not None for one in readers)
    if row.kind == "collection" and row.retention_ms is None and not held:
        drop_rows(connection, [collection], now)


def _is(token: str) -> ColumnElement[bool]:
    return CAPABILITY.c.id == int(token.partition(".")[0][1:])


def _of_hold(hold: TimelineHold) -> ColumnElement[bool]:
    """Returns the condition that a capability is part of a hold."""
    of_it = CAPABILITY.c.id.between(hold.first, hold.last), CAPABILITY.c.token_hash == _hash(hold.secret)
    return and_(*of_it)


def _found(connection: Connection, token: str) -> Any:
    """Returns a token's row; takes as long for a wrong secret as for a right one."""
    label, secret = capability_label(token), token.partition(".")[2]
    id = int(label[1:]) if label != "?" else -1
    row = connection.execute(select(CAPABILITY).where(CAPABILITY.c.id == id)).one_or_none()
    expected = _hash("") if row is None else row.token_hash
    if not hmac.compare_digest(_hash(secret), expected) or row is None or label[0] != ("w" if row.writes else "r"):
        raise UnknownCapability(label)
    return row


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
