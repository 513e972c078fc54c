"""What every command of the storage layer does to a project, said in terms of the formalism: a model to test against.

Collections are the pTVCs of a `TvcMap`. Around it stand the rights of the durable state, as plain values: who holds
which since back, who writes, reads and leads, until when. Each method is one transaction: it changes this state and
returns what the command returns, or raises `Refused` and has changed nothing. There are no batches here, so no command
of the physical layout is here either: by this specification compaction and sweeps do nothing but end what ran out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from mz_dagster.catalog import (
    BatchId,
    BatchNotWriting,
    CapabilityExpired,
    CollectionUpperMismatch,
    FrontierNotHeld,
    Leadership,
    LeadershipLost,
    LedByAnother,
    NameTaken,
    Sealed,
    SinceBehindInput,
    StillNeeded,
    TickMinted,
    TickMoved,
    UnknownCapability,
    UnknownObject,
    UpperBeyondInput,
    WrongRight,
    WrongSeal,
)
from mz_dagster.catalog.sweeping import GRACE_MS
from mz_dagster.errors import Error
from mz_dagster.formalism import (
    EPOCH_MS,
    Antichain,
    CollectionVersion,
    GlobalId,
    Ptvc,
    Timeline,
    TvcMap,
    Update,
    UpdateBeyondUpper,
    UpdateNotBeyondLower,
    UpperWentBack,
    between,
    compact_updates,
)
from mz_dagster.storage import ReadBeforeSince, ReadBeyondUpper

Data = tuple[int | None, str | None]
"""A row's one cell, and the error if it is of the error part."""

Updates = Sequence[Update[Data, int]]
Frontier = Antichain[int]

TIMELINE: Timeline[int] = Timeline("t", EPOCH_MS)


def at(*times: int) -> Frontier:
    """Returns a frontier as the specification has it."""
    return Antichain.of(TIMELINE, *times)


def bare(frontier: Frontier) -> Frontier:
    """Returns a frontier as the catalog has it, which keeps the timeline in another column."""
    return Antichain.of(EPOCH_MS, *frontier)


class Refused(Exception):
    """Says that a command is an error of this class."""

    def __init__(self, error: type[Error]) -> None:
        super().__init__(error.__name__)
        self.error = error


@dataclass(frozen=True)
class Right:
    """A capability: it holds the since, or the upper, of `collection` at `frontier` until then."""

    collection: GlobalId
    frontier: Frontier
    until_ms: int | None
    writes: bool = False


@dataclass(frozen=True)
class Append:
    """Updates of `[lower, upper)`."""

    collection: GlobalId
    lower: Frontier
    upper: Frontier
    updates: Updates
    batch: BatchId | None = None


@dataclass
class Written:
    """An append under way, whose updates are written and not sealed."""

    append: Append
    until_ms: int
    dead: bool = False


@dataclass
class Reading:
    """A read under way: what its collections held when it began. Once lapsed it may fail, but never be wrong."""

    contents: Mapping[GlobalId, Ptvc[Data, int]]
    until_ms: int
    lapsed: bool = False


@dataclass
class Specification:
    """Is the state of a project with one timeline.

    Attributes:
        shared: The collections that are written by write capabilities: their updates from upper on, which are written
            and cannot be read before all writers have come so far.
    """

    now_ms: int
    tvcs: TvcMap[Data, int] = field(default_factory=TvcMap)
    names: dict[str, GlobalId] = field(default_factory=dict)
    inputs: dict[GlobalId, tuple[GlobalId, ...]] = field(default_factory=dict)
    retentions: dict[GlobalId, int | None] = field(default_factory=dict)
    shared: dict[GlobalId, Updates] = field(default_factory=dict)
    dropped: set[GlobalId] = field(default_factory=set)
    rights: dict[int, Right] = field(default_factory=dict)
    last_id: int = 0
    last_right: int = 0
    ticks: tuple[int, ...] = ()
    read_ts: int = 0
    epoch: int = 0
    leader: tuple[str, int] | None = None
    writes: dict[BatchId, Written] = field(default_factory=dict)
    reads: dict[int, Reading] = field(default_factory=dict)

    def copy(self) -> Specification:
        """Returns a state that can change without this one."""
        return replace(
            self,
            tvcs=TvcMap(self.tvcs.entries()),
            names=dict(self.names),
            inputs=dict(self.inputs),
            retentions=dict(self.retentions),
            shared=dict(self.shared),
            dropped=set(self.dropped),
            rights=dict(self.rights),
            writes={id: replace(one) for id, one in self.writes.items()},
            reads={id: replace(one) for id, one in self.reads.items()},
        )

    @property
    def collections(self) -> list[GlobalId]:
        """All that are not dropped."""
        return [id for id in self.tvcs if id not in self.dropped]

    def create(
        self, name: str, inputs: tuple[GlobalId, ...], since: Frontier, retention_ms: int | None
    ) -> tuple[GlobalId, str]:
        if name in self.names:
            raise Refused(NameTaken)
        for input in inputs:
            if not self.tvcs[input].since <= since:
                raise Refused(SinceBehindInput)
        self.last_id += 1
        id = GlobalId(f"{'u' if inputs else 's'}{self.last_id}")
        self.tvcs.bind(id, TIMELINE, since)
        self.names[name], self.inputs[id], self.retentions[id] = id, inputs, retention_ms
        return id, name

    def new_id(self) -> None:
        self.last_id += 1

    def create_shared(self, start: int, retention_ms: int | None, ttl_ms: int) -> tuple[Right, Right]:
        """Creates a collection under the newest id, which is written by capabilities only."""
        id = GlobalId(f"u{self.last_id}")
        self.tvcs.bind(id, TIMELINE, at(start))
        self.inputs[id], self.retentions[id], self.shared[id] = (), retention_ms, ()
        until = self._until(ttl_ms)
        return self._hand_out(Right(id, at(start), until)), self._hand_out(Right(id, at(start), until, True))

    def outputs(self, id: GlobalId) -> list[GlobalId]:
        return [one for one in self.collections if id in self.inputs[one]]

    def drop(self, id: GlobalId, cascade: bool) -> tuple[GlobalId, ...]:
        if id not in self.collections:
            raise Refused(UnknownObject)
        doomed, queue = {id}, [id]
        while queue:
            for output in self.outputs(queue.pop()):
                if not cascade:
                    raise Refused(StillNeeded)
                if output not in doomed:
                    doomed.add(output)
                    queue.append(output)
        self._end(doomed)
        return tuple(sorted(doomed))

    def _end(self, doomed: Collection[GlobalId]) -> None:
        self.names = {name: one for name, one in self.names.items() if one not in doomed}
        self.dropped |= set(doomed)
        for one in doomed:
            self._let_go(one)

    def _let_go(self, id: GlobalId) -> None:
        """Ends what nobody has a right to any more of a dropped collection."""
        if id not in self.dropped:
            return
        readers, writers = (self._live(id, writes=writes) for writes in (False, True))
        self.rights = {n: one for n, one in self.rights.items() if one.collection != id or self._holds(one)}
        if not readers:
            self.tvcs.compact(id, at())
        if not writers and (not readers or id in self.shared):
            self.tvcs.append(id, at(), between(self.shared.get(id, ()), self.tvcs[id].upper, at()))

    def append(
        self, appends: Sequence[Append], leadership: Leadership | None = None
    ) -> Sealed | CollectionUpperMismatch | BatchNotWriting | LeadershipLost:
        """Seals written batches, all or none."""
        if leadership is not None and not self.leads(leadership):
            return LeadershipLost("t", leadership.epoch)
        if any(one.collection in self.shared for one in appends):
            raise Refused(WrongSeal)
        for one in appends:
            found = at() if one.collection in self.dropped else self.tvcs[one.collection].upper
            if found != one.lower:
                return CollectionUpperMismatch(one.collection, bare(one.lower), bare(found))
        for one in appends:
            if one.batch is not None and self.writes[one.batch].dead:
                return BatchNotWriting(one.batch, None)
        uppers = {one.collection: one.upper for one in appends}
        for one in appends:
            for input in self.inputs[one.collection]:
                if not one.upper <= uppers.get(input, self.tvcs[input].upper):
                    raise Refused(UpperBeyondInput)
        for one in appends:
            self.tvcs.append(one.collection, one.upper, one.updates)
        return Sealed(tuple(one.collection for one in appends))

    def compare_and_append(self, one: Append) -> Sealed | CollectionUpperMismatch | BatchNotWriting | LeadershipLost:
        """Writes and seals in one call, which looks at the upper before it writes."""
        found = self.tvcs[one.collection].upper
        if found != one.lower:
            return CollectionUpperMismatch(one.collection, bare(one.lower), bare(found))
        self.write(one)
        return self.append([one])

    def finish(self, batch: BatchId) -> Sealed | CollectionUpperMismatch | BatchNotWriting | LeadershipLost:
        """Seals what was written before."""
        outcome = self.append([self.writes[batch].append])
        if isinstance(outcome, Sealed):
            del self.writes[batch]
        return outcome

    def write(self, one: Append) -> None:
        """Refuses what could never be sealed."""
        if self.tvcs[one.collection].since.is_empty and one.collection not in self.shared:
            raise Refused(UnknownObject)
        times = [update.time for update in one.updates]
        if any(not one.lower.less_equal(time) for time in times):
            raise Refused(UpdateNotBeyondLower)
        if any(one.upper.less_equal(time) for time in times):
            raise Refused(UpdateBeyondUpper)

    def read(self, id: GlobalId, time: int) -> CollectionVersion[Data]:
        self._check_readable(id, time)
        return self.tvcs.read(id, time)

    def read_updates(self, id: GlobalId, lower: int | None, upper: int | None) -> frozenset[Update[Data, int]]:
        ptvc = self.tvcs[id]
        if lower is not None and not ptvc.since.less_equal(lower - 1):
            raise Refused(ReadBeforeSince)
        if upper is not None:
            self._check_readable(id, upper - 1)
        elif ptvc.since.is_empty:
            raise Refused(ReadBeforeSince)
        from_, to = at() if lower is None else at(lower), at() if upper is None else at(upper)
        return between(ptvc.updates, at(0) if lower is None else from_, to)

    def _check_readable(self, id: GlobalId, time: int) -> None:
        if not self.tvcs[id].since.less_equal(time):
            raise Refused(ReadBeforeSince)
        if self.tvcs[id].upper.less_equal(time):
            raise Refused(ReadBeyondUpper)

    def allow_compaction(self, retention_ms: int | None) -> dict[GlobalId, Frontier]:
        """Advances every since to the least of what retention, capabilities and outputs hold."""
        for id in self.dropped:
            self._let_go(id)
        before = {id: self.tvcs[id].since for id in self.collections}
        for id in before:
            self._settle(id)
        done: set[GlobalId] = set()

        def visit(id: GlobalId) -> None:
            if id in done:
                return
            done.add(id)
            for output in self.outputs(id):
                visit(output)
            retention, ptvc = self.retentions[id], self.tvcs[id]
            limits = [one.frontier for one in self._live(id, writes=False)]
            if id in self.shared and retention is None:
                if not limits:
                    return
            else:
                retention = retention_ms if retention is None else retention
                if retention is None or ptvc.upper.is_empty:
                    return
                limits.append(_before(ptvc.upper, 1 + retention))
            for output in self.outputs(id):
                limits += [self.tvcs[output].since, _before(self.tvcs[output].upper, 1)]
            self.tvcs.compact(id, ptvc.since.join(reduce(lambda left, right: left.meet(right), limits)))

        for id in before:
            visit(id)
        return {id: bare(self.tvcs[id].since) for id in before if self.tvcs[id].since != before[id]}

    def _holds(self, right: Right) -> bool:
        return right.until_ms is None or right.until_ms > self.now_ms

    def _live(self, id: GlobalId, *, writes: bool) -> list[Right]:
        rights = self.rights.values()
        return [one for one in rights if (one.collection, one.writes) == (id, writes) and self._holds(one)]

    def _settle(self, id: GlobalId, *, may_end: bool = False) -> None:
        """Moves the upper of a shared collection to the least that a live write capability holds."""
        held = [one.frontier for one in self._live(id, writes=True)]
        if id not in self.shared or not (held or may_end):
            return
        ptvc = self.tvcs[id]
        upper = ptvc.upper.join(reduce(lambda left, right: left.meet(right), held, at()))
        self.tvcs.append(id, upper, between(self.shared[id], ptvc.upper, upper))
        self.shared[id] = [one for one in self.shared[id] if upper.less_equal(one.time)]

    def set_retention(self, id: GlobalId, retention_ms: int | None) -> None:
        if id in self.dropped:
            raise Refused(UnknownObject)
        self.retentions[id] = retention_ms

    def declare_dead(self) -> None:
        """Is a sweep's first transaction: who ran out has lost what it wrote, and may lose what it reads."""
        for write in self.writes.values():
            write.dead = write.dead or write.until_ms <= self.now_ms
        for read in self.reads.values():
            read.lapsed = read.lapsed or read.until_ms <= self.now_ms

    def forget(self) -> None:
        """Is a sweep's last transaction: what ran out long ago is not even known any more."""
        over = self.now_ms - GRACE_MS
        self.rights = {
            number: right for number, right in self.rights.items() if right.until_ms is None or right.until_ms > over
        }

    def acquire_read(self, id: GlobalId, frontier: Frontier | None, ttl_ms: int | None) -> Right:
        since = self.tvcs[id].since
        if since.is_empty or id in self.dropped:
            raise Refused(UnknownObject)
        if frontier is not None and not since <= frontier:
            raise Refused(FrontierNotHeld)
        return self._hand_out(Right(id, since if frontier is None else frontier, self._until(ttl_ms)))

    def acquire(self, id: GlobalId, ttl_ms: int) -> tuple[Right, Right]:
        """Hands out the rights to read at since and to write at upper; one at `{}` grants nothing."""
        self._settle(id)
        since, upper, until = self.tvcs[id].since, self.tvcs[id].upper, self._until(ttl_ms)
        read, write = Right(id, at(), None), Right(id, at(), None, True)
        if not since.is_empty:
            read = self._hand_out(Right(id, since, until))
        if not upper.is_empty and id in self.shared:
            write = self._hand_out(Right(id, upper, until, True))
        return read, write

    def clone(self, number: int, ttl_ms: int) -> Right:
        return self._hand_out(replace(self.validate(number), until_ms=self._until(ttl_ms)))

    def _hand_out(self, right: Right) -> Right:
        self.last_right += 1
        self.rights[self.last_right] = right
        return right

    def _until(self, ttl_ms: int | None) -> int | None:
        return None if ttl_ms is None else self.now_ms + ttl_ms

    def validate(self, number: int) -> Right:
        """Returns a right that is not over: neither by the clock, nor because its frontier was passed when it was."""
        if number not in self.rights:
            raise Refused(UnknownCapability)
        right = self.rights[number]
        ptvc = self.tvcs[right.collection]
        if not self._holds(right) or not (ptvc.upper if right.writes else ptvc.since) <= right.frontier:
            raise Refused(CapabilityExpired)
        return right

    def validate_right(self, number: int, *, writes: bool) -> Right:
        right = self.validate(number)
        if right.writes != writes:
            raise Refused(WrongRight)
        return right

    def downgrade(self, number: int, frontier: Frontier) -> Right:
        right = self.validate(number)
        if not right.frontier <= frontier:
            raise Refused(FrontierNotHeld)
        return self._move(number, right, frontier)

    def _move(self, number: int, right: Right, frontier: Frontier) -> Right:
        """Moves a right; the last one to say that it is over ends its collection."""
        moved = self.rights[number] = replace(right, frontier=frontier)
        if frontier.is_empty:
            del self.rights[number]
        if right.writes:
            self._settle(right.collection, may_end=frontier.is_empty)
        elif frontier.is_empty:
            id = right.collection
            used = self._live(id, writes=False) or self.outputs(id)
            if id in self.shared and self.retentions[id] is None and not used:
                self._end([id])
        if frontier.is_empty:
            self._let_go(right.collection)
        return moved

    def append_by_right(self, number: int, lower: Frontier, upper: Frontier, updates: Updates) -> Right:
        """Appends to a shared collection; `lower` is where the writer believes its right to stand."""
        right = self.validate_right(number, writes=True)
        if right.frontier != lower:
            raise Refused(FrontierNotHeld)
        if not lower <= upper:
            raise Refused(UpperWentBack)
        self.write(Append(right.collection, lower, upper, updates))
        self.shared[right.collection] = [*self.shared[right.collection], *updates]
        moved = self._move(number, right, upper)
        self._let_go(right.collection)
        return moved

    def subscribe(
        self, number: int, as_of: int | None, snapshot: bool, up_to: int | None
    ) -> tuple[frozenset[Update[Data, int]], Frontier]:
        """Returns all that a subscription sends without waiting, and until where."""
        right = self.validate_right(number, writes=False)
        first = right.frontier.only if as_of is None else as_of
        if not right.frontier.less_equal(first):
            raise Refused(FrontierNotHeld)
        ptvc = self.tvcs[right.collection]
        upper = ptvc.upper if up_to is None else ptvc.upper.meet(at(up_to))
        begin = at(first if snapshot else first + 1)
        sent = upper if begin < upper else begin
        is_over = up_to is not None and at(up_to) <= sent
        if right.collection in self.dropped - self.shared.keys() and not is_over:
            raise Refused(UnknownObject)  # once it has sent what there was
        if not begin < upper:
            return frozenset(), begin
        later = between(ptvc.updates, at(first + 1), upper)
        if not snapshot:
            return later, upper
        contents = self.read(right.collection, first).multiplicities
        return later | {Update(data, first, count) for data, count in contents.items()}, upper

    def renew(self, number: int, ttl_ms: int) -> Right:
        self.rights[number] = replace(self.validate(number), until_ms=self._until(ttl_ms))
        return self.rights[number]

    def drop_right(self, number: int) -> None:
        if number not in self.rights:
            raise Refused(UnknownCapability)
        right = self.rights.pop(number)
        self._settle(right.collection)
        self._let_go(right.collection)

    def mint(self, tick: int, expected_last: int | None) -> TickMinted | TickMoved:
        last = self.ticks[-1] if self.ticks else None
        if last != expected_last or (last is not None and tick <= last) or tick <= self.read_ts:
            return TickMoved("t", last, self.read_ts)
        self.ticks, self.read_ts = (*self.ticks, tick), tick
        return TickMinted("t", tick)

    def lead(self, holder: str, ttl_ms: int) -> Leadership | LedByAnother:
        if self.leader is not None and self.leader[1] > self.now_ms:
            # No lease lasts longer than it would if it were given now: the clock may have been set back.
            self.leader = (self.leader[0], min(self.leader[1], self.now_ms + ttl_ms))
            return LedByAnother("t", *self.leader)
        self.epoch, self.leader = self.epoch + 1, (holder, self.now_ms + ttl_ms)
        return Leadership("t", self.epoch, holder)

    def leads(self, leadership: Leadership) -> bool:
        return self.leader is not None and (self.epoch, self.leader[0]) == (leadership.epoch, leadership.holder)

    def renew_leadership(self, leadership: Leadership, ttl_ms: int) -> Leadership | LeadershipLost:
        if not self.leads(leadership):
            return LeadershipLost("t", leadership.epoch)
        self.leader = (leadership.holder, self.now_ms + ttl_ms)
        return leadership

    def resign(self, leadership: Leadership) -> None:
        if self.leads(leadership):
            self.leader = None


def _before(upper: Frontier, distance: int) -> Frontier:
    return at(*(max(0, time - distance) for time in upper))


def compacted(updates: Iterable[Update[Data, int]], since: Frontier) -> frozenset[Update[Data, int]]:
    """Returns updates in the form in which a pTVC with that since has them."""
    return compact_updates(updates, since)


def readings_of(spec: Specification, ids: Collection[GlobalId], ttl_ms: int) -> Reading:
    """Returns a read of collections that begins now."""
    return Reading({id: spec.tvcs[id] for id in ids}, spec.now_ms + ttl_ms)
