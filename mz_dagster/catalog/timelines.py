"""Timelines, their oracle and their writer's lease.

The oracle of a timeline keeps two timestamps, `read_ts <= write_ts`, that only grow. Its laws (items 94 to 100):

- `read_ts` never decreases, and a read at it observes every write that was applied before;
- `write_ts(now)` is greater than everything handed out or applied before, so a write is strictly after
  every preceding read;
- `apply_write(ts)` makes `read_ts >= ts`: an acknowledged write is seen by every later read.

The writer's lease elects one leader per timeline. Its epoch grows with every new holder; a seal under an
older epoch fails, whatever the clocks say. A lease ends by the clock, when its holder gives it back, or when its holder
is a process of this machine that is dead (`mz_dagster.liveness`); one that is paused is not.

A clock that was set back finds leases that end far in the future. Nobody who renews a lease gives it for longer than
its `ttl_ms`, so whoever meets one that lasts longer than that from now shortens it: a leader that lives renews it long
before it ends, and one that crashed keeps nobody waiting for longer than ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, case, insert, select, update

from mz_dagster.catalog.codec import LATTICES
from mz_dagster.catalog.database import Transactions
from mz_dagster.catalog.errors import CatalogDamaged, TimelineDiffers, UnknownTimeline
from mz_dagster.catalog.rows import Leadership, LeadershipLost, LedByAnother, TimelineRow
from mz_dagster.catalog.schema import OBJECT, TIMELINE
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import EPOCH_MS, IntegerTimes
from mz_dagster.liveness import is_dead, this_process

#: Built once: every step and write asks these, and building a statement takes longer than running it.
_TIMELINE = select(TIMELINE).where(TIMELINE.c.name == bindparam("called"))
_LATTICE = select(TIMELINE.c.lattice).where(TIMELINE.c.name == bindparam("called"))
_CHANGE = update(TIMELINE).where(TIMELINE.c.name == bindparam("called"))
_GIVE_BACK = _CHANGE.where(TIMELINE.c.epoch == bindparam("led_in"), TIMELINE.c.holder == bindparam("led_by"))
_APPLY = _CHANGE.values(
    {
        column: case((column < bindparam("ts", type_=BigInteger), bindparam("ts", type_=BigInteger)), else_=column)
        for column in (TIMELINE.c.read_ts, TIMELINE.c.write_ts)
    }
)

NOBODY: dict[str, Any] = {"holder": None, "until_ms": None, "process": None}
"""What a timeline's row says when nobody leads it."""


@dataclass(frozen=True, slots=True)
class LostLeader:
    """Says who led a timeline last and did not give the lead back.

    Attributes:
        holder: Who that was.
        is_dead: Whether its process is known to be over; else it may be on another machine, or paused.
    """

    holder: str
    is_dead: bool


def timeline_row(connection: Connection, name: str) -> Any:
    """Returns a timeline's row.

    Raises:
        UnknownTimeline: It was never declared.
    """
    row = connection.execute(_TIMELINE, {"called": name}).one_or_none()
    if row is None:
        raise _unknown(connection, name)
    return row


def lattice_of(connection: Connection, timeline: str | None) -> IntegerTimes:
    """Returns a timeline's lattice; collections of no timeline hold constants and count milliseconds."""
    if timeline is None:
        return EPOCH_MS
    lattice = connection.execute(_LATTICE, {"called": timeline}).scalar_one_or_none()
    if lattice is None:
        raise _unknown(connection, timeline)
    return LATTICES[lattice]


def advance_oracle(connection: Connection, timeline: str, ts: int) -> None:
    """Makes a timeline's read and write timestamps at least `ts`."""
    if not connection.execute(_APPLY, {"called": timeline, "ts": ts}).rowcount:
        raise _unknown(connection, timeline)


def leads(connection: Connection, leadership: Leadership) -> bool:
    """Returns whether nobody has led the timeline since this leadership was won, and it was not resigned."""
    row = timeline_row(connection, leadership.timeline)
    return bool(row.epoch == leadership.epoch and row.holder == leadership.holder)


def take_lead(
    connection: Connection, timeline: str, holder: str, ttl_ms: int, now_ms: int
) -> Leadership | LedByAnother:
    """Does in a transaction what `Timelines.lead` does."""
    row = timeline_row(connection, timeline)
    if row.holder is not None and row.until_ms > now_ms and not is_dead(row.process):
        return _shortened(connection, row, now_ms + ttl_ms)
    lease = {"epoch": row.epoch + 1, "holder": holder, "until_ms": now_ms + ttl_ms, "process": this_process()}
    connection.execute(_CHANGE, {"called": timeline, **lease})
    return Leadership(timeline, row.epoch + 1, holder)


def give_lead_back(connection: Connection, leadership: Leadership) -> None:
    """Does in a transaction what `Timelines.resign` does."""
    mine = {"called": leadership.timeline, "led_in": leadership.epoch, "led_by": leadership.holder}
    connection.execute(_GIVE_BACK, {**mine, **NOBODY})


def _unknown(connection: Connection, timeline: str) -> UnknownTimeline:
    return UnknownTimeline(timeline, connection.execute(select(TIMELINE.c.name)).scalars().all())


def _shortened(connection: Connection, row: Any, until_ms: int) -> LedByAnother:
    """Returns who has the lease in a timeline's row, which ends at `until_ms` at the latest from now on."""
    if row.until_ms <= until_ms:
        return LedByAnother(row.name, row.holder, row.until_ms)
    connection.execute(_CHANGE, {"called": row.name, "until_ms": until_ms})
    return LedByAnother(row.name, row.holder, until_ms)


class Timelines(Transactions):
    """The part of the catalog that tells and orders time."""

    def declare_timeline(self, name: str, *, lattice: str = "epoch_ms") -> None:
        """Makes a timeline, unless it is there already.

        Raises:
            CatalogDamaged: It was there, and is not any more.
            TimelineDiffers: It is there with another lattice.
            ProgrammingError: There is no such lattice.
        """
        if lattice not in LATTICES:
            raise ProgrammingError(f'no lattice "{lattice}"', hint=f"Use one of {', '.join(sorted(LATTICES))}.")
        with self._database.read() as connection:
            if connection.execute(_LATTICE, {"called": name}).scalar_one_or_none() == lattice:
                return
        with self._database.write() as connection:
            found = connection.execute(_LATTICE, {"called": name}).scalar_one_or_none()
            if found is None and connection.execute(select(OBJECT.c.id).where(OBJECT.c.timeline == name)).first():
                raise CatalogDamaged(
                    f'the catalog has lost timeline "{name}"', detail="Of what is on it nobody knows the present time."
                )
            if found is None:
                connection.execute(insert(TIMELINE).values(name=name, lattice=lattice, read_ts=0, write_ts=0, epoch=0))
            elif found != lattice:
                raise TimelineDiffers(
                    f'timeline "{name}" exists with the lattice "{found}", not "{lattice}"',
                    hint="Choose another name: the times of existing collections keep their meaning.",
                )

    def timelines(self) -> tuple[TimelineRow, ...]:
        """Returns all timelines by name."""
        with self._database.read() as connection:
            rows = sorted(connection.execute(select(TIMELINE)), key=lambda row: str(row.name))
        return tuple(TimelineRow(row.name, row.lattice, row.read_ts, row.write_ts) for row in rows)

    def write_ts(self, timeline: str, now: int) -> int:
        """Returns a time `>= now`, greater than every time handed out or applied before."""
        with self._database.write(until_power_cut=True) as connection:
            row = timeline_row(connection, timeline)
            ts = max(row.write_ts + 1, row.read_ts + 1, now)
            connection.execute(_CHANGE, {"called": timeline, "write_ts": ts})
            return int(ts)

    def apply_write(self, timeline: str, ts: int) -> None:
        """Makes every later `read_ts` at least `ts`."""
        with self._database.write() as connection:
            advance_oracle(connection, timeline, ts)

    def lead(self, timeline: str, holder: str, ttl_ms: int) -> Leadership | LedByAnother:
        """Takes the writer's lease if it is free, over or of a dead process; never a live one, one's own included.

        Args:
            timeline: The timeline to write.
            holder: Who asks, in words that help to find it.
            ttl_ms: How long the lease lasts unless renewed, in milliseconds; the same for all who write the timeline.
        """
        with self._database.write(until_power_cut=True) as connection:
            return take_lead(connection, timeline, holder, ttl_ms, self._now_ms())

    def leader(self, timeline: str, ttl_ms: int) -> LedByAnother | None:
        """Returns who leads a timeline by a live lease, or None; a process that is dead does not.

        Args:
            timeline: The timeline.
            ttl_ms: How long a lease of the timeline lasts, in milliseconds.
        """
        now = self._now_ms()
        with self._database.read() as connection:
            row = timeline_row(connection, timeline)
        if row.holder is None or row.until_ms <= now or is_dead(row.process):
            return None
        if row.until_ms <= now + ttl_ms:
            return LedByAnother(timeline, row.holder, row.until_ms)
        with self._database.write() as connection:
            row = timeline_row(connection, timeline)
            return None if row.holder is None else _shortened(connection, row, now + ttl_ms)

    def lost_leader(self, timeline: str) -> LostLeader | None:
        """Returns whoever led a timeline last, if its lease ended otherwise than by its giving the lead back."""
        with self._database.read() as connection:
            row = timeline_row(connection, timeline)
        dead = is_dead(row.process)
        if row.holder is None or (row.until_ms > self._now_ms() and not dead):
            return None
        return LostLeader(row.holder, dead)

    def is_leading(self, leadership: Leadership) -> bool:
        """Returns whether nobody has led the timeline since this leadership was won, so that a seal under it can be."""
        with self._database.read() as connection:
            return leads(connection, leadership)

    def renew_leadership(self, leadership: Leadership, ttl_ms: int) -> Leadership | LeadershipLost:
        """Extends the lease, even one that has run out, unless somebody else has taken it since."""
        with self._database.write(until_power_cut=True) as connection:
            if not leads(connection, leadership):
                return LeadershipLost(leadership.timeline, leadership.epoch)
            connection.execute(_CHANGE, {"called": leadership.timeline, "until_ms": self._now_ms() + ttl_ms})
            return leadership

    def depose(self, led: LedByAnother) -> None:
        """Ends the lease of a leader who is known to be gone; does nothing if another leads by now.

        It saves waiting until the lease runs out. Should the leader be alive after all, its next seal fails, and it has
        lost its work, nothing else.
        """
        with self._database.write() as connection:
            connection.execute(
                update(TIMELINE)
                .where(TIMELINE.c.name == led.timeline, TIMELINE.c.holder == led.holder)
                .values(**NOBODY)
            )

    def resign(self, leadership: Leadership) -> None:
        """Gives the writer's lease back; does nothing if somebody else has it."""
        if not self.is_leading(leadership):  # as after a seal that gave it back
            return
        with self._database.write(until_power_cut=True) as connection:
            give_lead_back(connection, leadership)
