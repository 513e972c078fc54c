"""Random commands to a project and to its specification, with crashes at fail points; state, errors and reads agree.

After each command the catalog is compared with the specification, and what the touched collections hold is read. After
a crash the catalog must be in one of the states between the transactions of the command that crashed, and that one is
it from then on: nothing in between, nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mz_dagster.catalog import (
    BatchId,
    BatchState,
    BatchStats,
    BoundFile,
    Capability,
    Catalog,
    CollectionRow,
    Leadership,
    Lease,
    LostRace,
    NewObject,
    ObjectRow,
    ReadCapability,
    Seal,
    WriteCapability,
)
from mz_dagster.clock import ManualClock
from mz_dagster.errors import Error
from mz_dagster.formalism import EMPTY, GlobalId, Update, consolidate
from mz_dagster.scalars.types import INT4, Column
from mz_dagster.storage import (
    BatchWriter,
    CollectionDescription,
    Inlining,
    LocalShards,
    Merge,
    Storage,
    SubscribeDeadline,
    compact,
    compare_and_append,
    read_at,
    read_updates,
    sweep,
    update_table,
)
from mz_dagster.storage import Upper as SentUpper
from tests.catalog.by_driver import one_state
from tests.postgres_server import Postgres
from tests.storage.crashing import Crash, Spot, crashing
from tests.storage.leftovers import check_only_live_is_left
from tests.storage.model_draws import (
    AFTER,
    APPEND,
    BEFORE,
    CATALOG,
    COMPACT,
    HOLDERS,
    MINT,
    OFFSETS,
    SEAL,
    SWEEP,
    TTLS,
    WIDTHS,
    WRITE,
    spots,
)
from tests.storage.model_project import START_MS, new_project
from tests.storage.specification import (
    Append,
    Data,
    Frontier,
    Refused,
    Right,
    Specification,
    Updates,
    Written,
    at,
    bare,
    compacted,
    readings_of,
)

COLUMNS = (Column("n", INT4),)
COLLECTIONS = 4
"""How many collections there are at most."""


#: Some batches, and not all.
SOME_INLINED = Inlining(2, 65_536)


class Interfering(LocalShards):
    """Is shards in which something else happens in the middle of a merge."""

    def __init__(self, root: Path, catalog: Catalog, strike: Callable[[], object]) -> None:
        super().__init__(root, catalog, SOME_INLINED)
        self.strike = strike

    def inline_merge(self, *args: Any, **kwargs: Any) -> Any:
        self.strike()
        return super().inline_merge(*args, **kwargs)


class StorageMachine(RuleBasedStateMachine):
    """Is a project next to its specification.

    Args:
        inlining: Which batches are inlined.
        server: Where the catalog is, unless it is SQLite.

    Attributes:
        crashes: How often a crash struck at each fail point, in all runs.
        outcomes: How often a command had each kind of outcome.
    """

    crashes: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()

    def __init__(self, inlining: Inlining = SOME_INLINED, server: Postgres | None = None) -> None:
        super().__init__()
        self.inlining = inlining
        self.folder, self.url, self.remove = new_project(server)
        self.clock = ManualClock(START_MS)
        self.catalog = Catalog.open(self.url, clock=self.clock)
        self.shards = LocalShards(self.folder, self.catalog, self.inlining)
        self.spec = Specification(START_MS)
        self.capabilities: dict[int, Capability] = {}
        self.leaderships: list[Leadership] = []
        self.stats: dict[BatchId, BatchStats] = {}
        self.leases: dict[int, Lease] = {}
        self.bound = 0

    # What every command goes through.

    def perform(
        self,
        command: Callable[[], object],
        *specified: Callable[[Specification], object],
        touched: Collection[GlobalId] = (),
        spot: Spot | None = None,
    ) -> object:
        """Runs a command and its specification, one function for each transaction that shows.

        Returns:
            What both returned, the class of the error that both raised, or `Crash`.
        """
        states = [self.spec]
        expected: object = None
        for one in specified:
            state = states[-1].copy()
            try:
                expected = one(state)
            except Refused as refused:
                expected = refused.error
                break
            states.append(state)
        found: object = Crash
        with crashing(spot) as machine:
            found = outcome_of(command)
        if machine.crashed and spot is not None:
            self.crashes[spot[0]] += 1
            self.reopen()
            allowed = states[:1] if spot[0] in BEFORE else states[-1:] if spot[0] in AFTER else states
            seen = self.observed()
            fitting = [state for state in allowed if self.expected_of(state) == seen]
            assert fitting, f"after a crash at {spot}: {seen}, expected one of {[*map(self.expected_of, allowed)]}"
            self.spec = fitting[-1]
            self.check_contents(self.spec.collections)
            return Crash
        assert found == expected, f"{found} instead of {expected}"
        self.outcomes[(found if isinstance(found, type) else type(found)).__name__] += 1
        self.spec = states[-1]
        assert self.observed() == self.expected_of(self.spec)
        self.check_contents([id for id in touched if id in self.spec.collections])
        return found

    def reopen(self) -> None:
        self.catalog.close()
        self.catalog = Catalog.open(self.url, clock=self.clock)
        self.shards = LocalShards(self.folder, self.catalog, self.inlining)

    def observed(self) -> dict[str, object]:
        """Returns the durable state, read behind the catalog's back."""
        with one_state(self.url) as connection:
            timeline = connection.execute("SELECT read_ts, epoch, holder, until_ms FROM timeline").fetchone()
            # What is buried is at {} for good; how much history what was dropped once kept concerns nobody any more.
            ids = connection.execute(
                "SELECT c.id, since, upper, CASE WHEN NOT dropped THEN retention_ms END FROM collection c "
                "JOIN object o ON o.id = c.id UNION ALL SELECT id, '[]', '[]', NULL FROM tombstone"
            ).fetchall()
            rights = connection.execute("SELECT id, collection, frontier, until_ms, writes FROM capability").fetchall()
            writing = {id for (id,) in connection.execute("SELECT id FROM batch WHERE state = 'writing'")}
            # Of what others have a right to, nothing else says that it was dropped.
            dropped = connection.execute("SELECT id FROM object WHERE dropped UNION SELECT id FROM tombstone")
            return {
                "dropped": {id for (id,) in dropped},
                "collections": {id: (json.loads(since), json.loads(upper), kept) for id, since, upper, kept in ids},
                "names": dict(connection.execute("SELECT name, object FROM name").fetchall()),
                "rights": {id: (on, json.loads(held), until, bool(writes)) for id, on, held, until, writes in rights},
                "ids": dict(
                    connection.execute("SELECT name, last FROM counter WHERE name IN ('object', 'capability')")
                ),
                "ticks": tuple(tick for (tick,) in connection.execute("SELECT tick FROM tick ORDER BY tick")),
                "timeline": timeline,
                "writing": {id for id in self.spec.writes if id in writing},
            }

    def expected_of(self, spec: Specification) -> dict[str, object]:
        """Returns what `observed` finds in a state of the specification."""
        tvcs = {id: spec.tvcs[id] for id in spec.tvcs}
        return {
            "dropped": spec.dropped,
            "collections": {
                id: (
                    ptvc.since.to_json(),
                    ptvc.upper.to_json(),
                    None if id in spec.dropped else spec.retentions[id],
                )
                for id, ptvc in tvcs.items()
            },
            "names": spec.names,
            "rights": {
                id: (right.collection, right.frontier.to_json(), right.until_ms, right.writes)
                for id, right in spec.rights.items()
            },
            "ids": {"object": spec.last_id, "capability": spec.last_right},
            "ticks": spec.ticks,
            "timeline": (spec.read_ts, spec.epoch, *(spec.leader or (None, None))),
            "writing": {id for id in self.spec.writes if id in spec.writes and not spec.writes[id].dead},
        }

    def row(self, id: GlobalId) -> CollectionRow:
        return self.catalog.collection(id)

    def check_contents(self, ids: Collection[GlobalId]) -> None:
        """Checks whole histories, hence what collections contain at every readable time."""
        for id in ids:
            ptvc = self.spec.tvcs[id]
            if not ptvc.since < ptvc.upper:
                continue  # there is no time at which it can be read
            with read_updates(self.catalog, self.shards, self.row(id), holder="check") as frame:
                found = updates_in(frame)
            there = compacted(found, ptvc.since)
            assert there == ptvc.updates, (
                f"{id} of [{ptvc.since}, {ptvc.upper}) lacks {[*map(str, ptvc.updates - there)]} "
                f"and has {[*map(str, there - ptvc.updates)]}"
            )

    def draw_any(self, data: st.DataObject) -> GlobalId:
        """Draws a collection, seldom a dropped one."""
        drawn: GlobalId = data.draw(st.sampled_from([*self.spec.collections * 4, *self.spec.tvcs]))
        return drawn

    def draw_collection(self, data: st.DataObject, *, open_only: bool = False) -> GlobalId | None:
        closed = {id for id in self.spec.collections if id in self.spec.shared or self.spec.tvcs[id].upper.is_empty}
        ids = [id for id in self.spec.collections if not open_only or id not in closed]
        return data.draw(st.sampled_from(ids)) if ids else None

    def draw_append(self, data: st.DataObject, id: GlobalId, *, shift: int = 0, stray: int = 0) -> Append:
        """Draws updates of the next interval; `shift` moves the interval, `stray` its updates."""
        (upper,) = self.spec.tvcs[id].upper.elements or (7,)
        lower, width = max(0, upper + shift), data.draw(WIDTHS)
        updates = [
            Update(row, max(0, lower + stray + (offset if width is None else offset % width)), diff)
            for row, offset, diff in data.draw(OFFSETS)
        ]
        return Append(id, at(lower), at() if width is None else at(lower + width), updates)

    # Names and definitions.

    @initialize(since=st.integers(0, 3))
    def begin(self, since: int) -> None:
        self.create_collection("a", (), since, None, None)
        self.create_shared(start=2, retention_ms=None, ttl_ms=60_000, spot=None)
        (source, _) = self.spec.tvcs
        for time in range(since, since + 3):
            self.compare_and_append(Append(source, at(time), at(time + 1), [Update((time, None), time, 1)]), None)
        for time in (2, 3):
            self.append_with(2, at(time + 1), [Update((time, None), time, 1)], None)

    @precondition(lambda self: len(self.spec.collections) < COLLECTIONS)
    @rule(
        data=st.data(),
        name=st.sampled_from("abcdef"),
        shift=st.integers(-1, 3),
        retention_ms=st.none() | st.integers(0, 6),
        spot=spots(CATALOG),
    )
    def create(self, data: st.DataObject, name: str, shift: int, retention_ms: int | None, spot: Spot | None) -> None:
        known = self.spec.collections
        inputs = tuple(sorted(data.draw(st.sets(st.sampled_from(known), max_size=2)))) if known else ()
        since = max([0, *(time + shift for id in inputs for time in self.spec.tvcs[id].since)])
        self.create_collection(name, inputs, since, retention_ms, spot)

    def create_collection(
        self, name: str, inputs: tuple[GlobalId, ...], since: int, retention_ms: int | None, spot: Spot | None
    ) -> None:
        kind = "materialized view" if inputs else "source"
        new = NewObject(
            name,
            kind,
            "",
            "t",
            COLUMNS,
            dependencies={id: id for id in inputs},
            since=since,
            upper=since,
            retention_ms=retention_ms,
        )
        self.perform(
            lambda: self.catalog.create_object(new),
            lambda spec: spec.create(name, inputs, at(since), retention_ms),
            spot=spot,
        )

    @precondition(lambda self: len(self.spec.collections) > 1)
    @rule(data=st.data(), cascade=st.sampled_from([False, False, True]), spot=spots(CATALOG))
    def drop_collection(self, data: st.DataObject, cascade: bool, spot: Spot | None) -> None:
        id = self.draw_any(data)
        self.perform(lambda: self.catalog.drop_object(id, cascade), lambda spec: spec.drop(id, cascade), spot=spot)

    @rule(data=st.data(), retention_ms=st.none() | st.integers(0, 6), spot=spots(CATALOG))
    def set_retention(self, data: st.DataObject, retention_ms: int | None, spot: Spot | None) -> None:
        id = self.draw_any(data)
        self.perform(
            lambda: self.catalog.set_retention(id, retention_ms),
            lambda spec: spec.set_retention(id, retention_ms),
            spot=spot,
        )

    # Appends.

    @rule(
        data=st.data(),
        shift=st.sampled_from([0, 0, 0, 0, -1, 1]),
        stray=st.sampled_from([0, 0, 0, 0, 0, -1, 9]),
        spot=spots(APPEND),
    )
    def append(self, data: st.DataObject, shift: int, stray: int, spot: Spot | None) -> None:
        id = self.draw_any(data)
        self.compare_and_append(self.draw_append(data, id, shift=shift, stray=stray), spot)

    def compare_and_append(self, one: Append, spot: Spot | None) -> None:
        def command() -> object:
            row, frame = self.row(one.collection), frame_of(one.updates)
            bounds = bare(one.lower), bare(one.upper)
            return compare_and_append(self.catalog, self.shards, row, *bounds, frame, holder="model")

        self.perform(command, lambda spec: spec.compare_and_append(one), touched=[one.collection], spot=spot)

    @rule(data=st.data(), led=st.booleans(), shift=st.sampled_from([0, 0, 0, 1]), spot=spots(WRITE))
    def seal_together(self, data: st.DataObject, led: bool, shift: int, spot: Spot | None) -> None:
        ids = [id for id in self.spec.collections if not self.spec.tvcs[id].upper.is_empty]
        if not ids:
            return
        chosen = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
        appends = [self.draw_append(data, id, shift=shift if id == chosen[-1] else 0) for id in chosen]
        leadership = data.draw(st.sampled_from(self.leaderships)) if led and self.leaderships else None

        def command() -> object:
            with BatchWriter(self.catalog, holder="model") as writer:
                seals = []
                for one in appends:
                    bounds = bare(one.lower), bare(one.upper)
                    written = writer.write(self.shards, self.row(one.collection), *bounds, frame_of(one.updates))
                    seals.append(Seal(one.collection, *bounds, *written))
                return self.catalog.seal(seals, leadership=leadership)

        self.perform(command, lambda spec: spec.append(appends, leadership), touched=chosen, spot=spot)

    @rule(data=st.data(), ttl_ms=TTLS)
    def begin_append(self, data: st.DataObject, ttl_ms: int) -> None:
        id = self.draw_collection(data, open_only=True)
        if id is None:
            return
        self.write_slowly(self.draw_append(data, id), ttl_ms)

    def write_slowly(self, one: Append, ttl_ms: int) -> None:
        id, bounds = one.collection, (bare(one.lower), bare(one.upper))
        batch = self.catalog.reserve_batch(id, self.catalog.register_writer("slow", ttl_ms), *bounds)
        stats = self.shards.append(self.row(id), batch, frame_of(one.updates), bounds)
        self.spec.writes[batch] = Written(replace(one, batch=batch), self.spec.now_ms + ttl_ms)
        self.stats[batch] = stats

    @precondition(lambda self: self.spec.writes)
    @rule(data=st.data(), spot=spots(SEAL))
    def finish_append(self, data: st.DataObject, spot: Spot | None) -> None:
        self.seal_written(data.draw(st.sampled_from(list(self.spec.writes))), spot)

    def seal_written(self, batch: BatchId, spot: Spot | None) -> None:
        one = self.spec.writes[batch].append
        seal = Seal(one.collection, bare(one.lower), bare(one.upper), batch, self.stats[batch])
        self.perform(
            lambda: self.catalog.seal([seal]),
            lambda spec: spec.finish(batch),
            touched=[one.collection],
            spot=spot,
        )
        self.spec.writes.pop(batch, None)

    # Compaction and the sweep.

    @rule(retention_ms=st.none() | st.integers(0, 8), spot=spots(CATALOG))
    def allow_compaction(self, retention_ms: int | None, spot: Spot | None) -> None:
        self.perform(
            lambda: self.catalog.allow_compaction("t", retention_ms=retention_ms),
            lambda spec: spec.allow_compaction(retention_ms),
            touched=self.spec.collections,
            spot=spot,
        )

    @rule(data=st.data(), least_parts=st.sampled_from([1, 2, 2, 4]), spot=spots(COMPACT))
    def merge(self, data: st.DataObject, least_parts: int, spot: Spot | None) -> None:
        stored = [*filter(self.holds_batches, self.spec.collections if spot else ())]  # something to merge
        id = data.draw(st.sampled_from(stored)) if stored else self.draw_any(data)
        self.merge_one(id, 1 if stored else least_parts, spot)

    def merge_one(self, id: GlobalId, least_parts: int, spot: Spot | None) -> None:
        def command() -> None:
            merged = compact(self.catalog, self.shards, self.row(id), holder="model", least_parts=least_parts)
            assert merged is None or isinstance(merged, Merge)

        self.perform(command, lambda spec: None, touched=[id], spot=spot)

    @rule(data=st.data(), swept=st.booleans())
    def merge_and_lose_the_race(self, data: st.DataObject, swept: bool) -> None:
        id = self.draw_collection(data)
        if id is None:
            return
        won: list[object] = []

        def strike() -> None:
            won.append(compact(self.catalog, self.shards, self.row(id), holder="first", least_parts=1))
            if swept:
                sweep(self.catalog, self.shards)

        def command() -> None:
            shards = Interfering(self.folder, self.catalog, strike)
            second = compact(self.catalog, shards, self.row(id), holder="second", least_parts=1)
            assert isinstance(second, LostRace) if won else second is None

        sweeps = [Specification.declare_dead, Specification.forget] if swept and self.holds_batches(id) else []
        self.perform(command, *sweeps, lambda spec: None, touched=[id])

    def holds_batches(self, id: GlobalId) -> bool:
        return bool(self.catalog.batches(id, BatchState.LIVE))

    @rule(thorough=st.booleans(), spot=spots(SWEEP))
    def sweep(self, thorough: bool, spot: Spot | None) -> None:
        for id in filter(self.holds_batches, self.spec.collections if spot else ()):  # something to sweep
            self.merge_one(id, 1, None)
        self.sweep_all(thorough, spot)

    def sweep_all(self, thorough: bool, spot: Spot | None) -> None:
        def command() -> None:
            sweep(self.catalog, self.shards, thorough=thorough)

        transactions = Specification.declare_dead, Specification.forget
        self.perform(command, *transactions, touched=self.spec.collections, spot=spot)

    # Reads.

    @rule(data=st.data(), time=st.integers(0, 40))
    def read(self, data: st.DataObject, time: int) -> None:
        id = self.draw_any(data)

        def command() -> object:
            with read_at(self.catalog, self.shards, self.row(id), time, holder="model") as frame:
                return EMPTY.apply(updates_in(frame))

        self.perform(command, lambda spec: spec.read(id, time))

    @rule(data=st.data(), lower=st.none() | st.integers(1, 30), width=st.none() | st.integers(1, 10))
    def read_interval(self, data: st.DataObject, lower: int | None, width: int | None) -> None:
        id = self.draw_any(data)
        upper = None if width is None else (lower or 0) + width
        if upper is None and not self.spec.tvcs[id].since < self.spec.tvcs[id].upper:
            return  # there is no time at which it can be read

        def command() -> object:
            row = self.row(id)
            with read_updates(self.catalog, self.shards, row, lower=lower, upper=upper, holder="model") as frame:
                return compacted(updates_in(frame), at(*row.since))

        self.perform(command, lambda spec: spec.read_updates(id, lower, upper))

    @rule(data=st.data(), ttl_ms=TTLS)
    def begin_read(self, data: st.DataObject, ttl_ms: int) -> None:
        self.read_slowly(data.draw(st.lists(st.sampled_from(list(self.spec.tvcs)), max_size=3, unique=True)), ttl_ms)

    def read_slowly(self, ids: Sequence[GlobalId], ttl_ms: int) -> int:
        lease = self.catalog.lease(ids, "slow", ttl_ms)
        self.spec.reads[lease.id] = readings_of(self.spec, ids, ttl_ms)
        self.leases[lease.id] = lease
        return lease.id

    @precondition(lambda self: self.spec.reads)
    @rule(data=st.data())
    def finish_read(self, data: st.DataObject) -> None:
        self.end_read(data.draw(st.sampled_from(list(self.spec.reads))))

    def end_read(self, number: int) -> None:
        reading = self.spec.reads.pop(number)
        try:
            for id, listed in self.leases[number].snapshots.items():
                ptvc = reading.contents[id]
                assert (listed.since, listed.upper) == (bare(ptvc.since), bare(ptvc.upper))
                if not listed.since < listed.upper:
                    continue  # it is readable at no time yet, and merges have moved updates to since, beyond upper
                # Beyond its upper a shared collection may have updates of some of its writers.
                end = None if listed.upper.is_empty else listed.upper.only
                # What was buried meanwhile has no columns any more; it had no batches, either.
                found = []
                if listed.batches:
                    found = updates_in(self.shards.read(self.row(id), listed.batches, upper=end))
                assert compacted(found, ptvc.since) == ptvc.updates, (id, found, listed, ptvc.updates, reading.lapsed)
        except Error:
            assert reading.lapsed
        intact = self.catalog.release_lease(number)
        assert intact or reading.lapsed

    # Capabilities.

    def storage(self, ttl_ms: int = 60_000) -> Storage:
        return Storage(self.catalog, self.shards, holder="model", lease_ms=ttl_ms, clock=self.clock)

    def hold(
        self,
        command: Callable[[], object],
        *specified: Callable[[Specification], object],
        touched: Collection[GlobalId] = (),
        spot: Spot | None = None,
    ) -> None:
        """Performs a command that returns capabilities, and keeps these; those of a crash are lost."""
        returned: list[object] = []

        def kept() -> object:
            returned.append(command())
            return returned[-1]

        if self.perform(kept, *specified, touched=touched, spot=spot) is Crash:
            return
        for found in returned:
            for one in found if isinstance(found, tuple) else (found,):
                if isinstance(one, Capability) and one.token:
                    self.capabilities[int(one.label[1:])] = one

    def draw_capability(self, data: st.DataObject, *, writes: bool | None = None) -> int:
        """Draws one that was handed out, mostly of the right that is asked for, whatever became of it."""
        numbers = list(self.capabilities)
        fitting = [one for one in numbers if isinstance(self.capabilities[one], WriteCapability) == writes]
        return data.draw(st.sampled_from([*fitting * 6, *numbers]))

    @precondition(lambda self: len(self.spec.collections) < COLLECTIONS)
    @rule(
        start=st.integers(0, 3),
        retention_ms=st.sampled_from([None, None, 0, 5]),
        ttl_ms=TTLS,
        spot=spots(CATALOG),
    )
    def create_shared(self, start: int, retention_ms: int | None, ttl_ms: int, spot: Spot | None) -> None:
        def command() -> object:
            storage = self.storage(ttl_ms)
            description = CollectionDescription("t", COLUMNS, start=start, retention_ms=retention_ms)
            return storage.create(storage.new_id(), description)

        self.hold(
            command, Specification.new_id, lambda spec: spec.create_shared(start, retention_ms, ttl_ms), spot=spot
        )

    @rule(data=st.data(), time=st.none() | st.integers(0, 20), ttl_ms=st.none() | TTLS, spot=spots(CATALOG))
    def acquire_read(self, data: st.DataObject, time: int | None, ttl_ms: int | None, spot: Spot | None) -> None:
        id = self.draw_any(data)
        frontier = None if time is None else at(time)
        bared = None if frontier is None else bare(frontier)
        self.hold(
            lambda: self.catalog.acquire_read(id, bared, holder="model", ttl_ms=ttl_ms),
            lambda spec: spec.acquire_read(id, frontier, ttl_ms),
            spot=spot,
        )

    @rule(data=st.data(), ttl_ms=TTLS, spot=spots(CATALOG))
    def acquire(self, data: st.DataObject, ttl_ms: int, spot: Spot | None) -> None:
        id = self.draw_any(data)
        self.hold(
            lambda: self.storage(ttl_ms).acquire_capabilities(id),
            lambda spec: spec.acquire(id, ttl_ms),
            touched=[id],
            spot=spot,
        )

    @precondition(lambda self: self.capabilities)
    @rule(data=st.data(), ttl_ms=TTLS, spot=spots(CATALOG))
    def clone(self, data: st.DataObject, ttl_ms: int, spot: Spot | None) -> None:
        number = self.draw_capability(data)
        self.hold(
            lambda: self.storage(ttl_ms).clone_capability(self.capabilities[number]),
            lambda spec: spec.clone(number, ttl_ms),
            spot=spot,
        )

    @precondition(lambda self: self.capabilities)
    @rule(data=st.data(), time=st.sampled_from([*range(30), None]), spot=spots(CATALOG))
    def downgrade(self, data: st.DataObject, time: int | None, spot: Spot | None) -> None:
        number = self.draw_capability(data)
        frontier = at() if time is None else at(time)
        self.hold(
            lambda: self.storage().downgrade_capability(self.capabilities[number], bare(frontier)),
            lambda spec: spec.downgrade(number, frontier),
            touched=[self.capabilities[number].collection],
            spot=spot,
        )

    @precondition(lambda self: self.capabilities)
    @rule(data=st.data(), ttl_ms=TTLS, spot=spots(CATALOG))
    def renew(self, data: st.DataObject, ttl_ms: int, spot: Spot | None) -> None:
        number = self.draw_capability(data)
        self.hold(
            lambda: self.storage(ttl_ms).renew_capability(self.capabilities[number]),
            lambda spec: spec.renew(number, ttl_ms),
            spot=spot,
        )

    @precondition(lambda self: self.capabilities)
    @rule(data=st.data())
    def validate(self, data: st.DataObject) -> None:
        number = self.draw_capability(data)
        self.perform(lambda: self.catalog.validate(self.capabilities[number].token), lambda spec: spec.validate(number))

    @precondition(lambda self: self.capabilities)
    @rule(data=st.data(), spot=spots(CATALOG))
    def drop_capability(self, data: st.DataObject, spot: Spot | None) -> None:
        number = self.draw_capability(data)
        if self.capabilities[number].frontier.is_empty:
            return
        self.perform(
            lambda: self.storage().drop_capability(self.capabilities[number]),
            lambda spec: spec.drop_right(number),
            touched=[self.capabilities[number].collection],
            spot=spot,
        )

    @precondition(lambda self: self.capabilities)
    @rule(data=st.data(), width=WIDTHS, stray=st.sampled_from([0, 0, 0, 0, 0, -1, 9]), spot=spots(APPEND))
    def append_by_capability(self, data: st.DataObject, width: int | None, stray: int, spot: Spot | None) -> None:
        """Appends by what is known of a capability, which a crash may have made out of date."""
        number = self.draw_capability(data, writes=True)
        if self.capabilities[number].frontier.is_empty:
            return
        lower = self.capabilities[number].frontier.only
        updates = [
            Update(row, max(0, lower + stray + (offset if width is None else offset % width)), diff)
            for row, offset, diff in data.draw(OFFSETS)
        ]
        self.append_with(number, at() if width is None else at(lower + width), updates, spot)

    def append_with(self, number: int, upper: Frontier, updates: Updates, spot: Spot | None) -> None:
        held = self.capabilities[number]
        lower = at(*held.frontier)
        self.hold(
            lambda: self.storage().append(cast(WriteCapability, held), rows_of(updates), bare(upper)),
            lambda spec: spec.append_by_right(number, lower, upper, updates),
            touched=[held.collection],
            spot=spot,
        )

    @precondition(lambda self: self.capabilities)
    @rule(
        data=st.data(),
        ahead=st.sampled_from([None, 0, 1, 2, -1]),
        snapshot=st.booleans(),
        up_to=st.none() | st.integers(0, 20),
    )
    def subscribe(self, data: st.DataObject, ahead: int | None, snapshot: bool, up_to: int | None) -> None:
        number = self.draw_capability(data, writes=False)
        held = self.capabilities[number]
        if held.frontier.is_empty:
            return
        as_of = None if ahead is None else max(0, held.frontier.only + ahead)

        def command() -> object:
            subscription = self.storage().subscribe_at(
                cast(ReadCapability, held), as_of, snapshot=snapshot, up_to=up_to, deadline_s=0
            )
            sent: list[Update[Data, int]] = []
            upper = at(subscription.as_of if snapshot else subscription.as_of + 1)
            try:
                for message in subscription:
                    if isinstance(message, SentUpper):
                        upper = at(*message.frontier)
                    else:
                        new = updates_in(message.frame)
                        assert all(upper.less_equal(update.time) for update in new), "before what was said to be sent"
                        sent += new
            except SubscribeDeadline:
                pass  # there is nothing more for now
            assert not any(upper.less_equal(update.time) for update in sent), "beyond what was said to be sent"
            return consolidate(sent), upper

        self.perform(command, lambda spec: spec.subscribe(number, as_of, snapshot, up_to))

    # Time and leadership.

    @rule(ms=st.sampled_from([999, 1_001, 61_000, 3_600_000, 90_000_000, -2_000]))
    def shift_clock(self, ms: int) -> None:
        self.clock.advance(ms)
        self.spec.now_ms += ms

    @rule()
    def restart(self) -> None:
        self.reopen()
        self.check_contents(self.spec.collections)

    @rule(data=st.data(), step=st.integers(0, 3), stale=st.sampled_from([False, False, True]), spot=spots(MINT))
    def mint(self, data: st.DataObject, step: int, stale: bool, spot: Spot | None) -> None:
        self.mint_after(step, stale, spot)

    def mint_after(self, step: int, stale: bool, spot: Spot | None) -> None:
        last = self.spec.ticks[-1] if self.spec.ticks else None
        tick, expected = (last or 0) + step, None if stale else last
        sources = [id for id in self.spec.collections if not self.spec.inputs[id]]
        self.bound += 1
        files = {id: [BoundFile(f"f{self.bound}", 1, "")] for id in sources}
        self.perform(
            lambda: self.catalog.mint_tick("t", tick, files, expected),
            lambda spec: spec.mint(tick, expected),
            spot=spot,
        )

    @rule(holder=HOLDERS, ttl_ms=TTLS, spot=spots(CATALOG))
    def lead(self, holder: str, ttl_ms: int, spot: Spot | None) -> None:
        found = self.perform(
            lambda: self.catalog.lead("t", holder, ttl_ms), lambda spec: spec.lead(holder, ttl_ms), spot=spot
        )
        if isinstance(found, Leadership):
            self.leaderships.append(found)

    @precondition(lambda self: self.leaderships)
    @rule(data=st.data(), ttl_ms=TTLS, spot=spots(CATALOG))
    def renew_leadership(self, data: st.DataObject, ttl_ms: int, spot: Spot | None) -> None:
        leadership = data.draw(st.sampled_from(self.leaderships))
        self.perform(
            lambda: self.catalog.renew_leadership(leadership, ttl_ms),
            lambda spec: spec.renew_leadership(leadership, ttl_ms),
            spot=spot,
        )

    @precondition(lambda self: self.leaderships)
    @rule(data=st.data(), spot=spots(CATALOG))
    def resign(self, data: st.DataObject, spot: Spot | None) -> None:
        leadership = data.draw(st.sampled_from(self.leaderships))
        self.perform(lambda: self.catalog.resign(leadership), lambda spec: spec.resign(leadership), spot=spot)

    def teardown(self) -> None:
        """Long after, a sweep leaves the live batches and nothing else."""
        try:
            self.clock.advance(10**10)
            sweep(self.catalog, self.shards, thorough=True)
            assert self.catalog.sweepable() == ()
            check_only_live_is_left(self.catalog, self.shards, self.catalog.collections(dropped=True))
            self.check_contents(self.spec.collections)
        finally:
            self.catalog.close()
            self.remove()


def outcome_of(command: Callable[[], object]) -> object:
    """Returns what a command returned, in the specification's terms, or the class of the error that it raised."""
    try:
        found = command()
    except Error as error:
        return type(error)
    match found:
        case ReadCapability() | WriteCapability():
            return right_of(found)
        case (ReadCapability() as read, WriteCapability() as write):
            return right_of(read), right_of(write)
        case ObjectRow():
            return found.id, found.name
        case _:
            return found


def right_of(capability: Capability) -> Right:
    writes = isinstance(capability, WriteCapability)
    return Right(capability.collection, at(*capability.frontier), capability.until_ms, writes)


def rows_of(updates: Updates) -> list[tuple[tuple[int | None], int, int, str | None]]:
    return [((one.data[0],), one.time, one.diff, one.data[1]) for one in updates]


def frame_of(updates: Updates) -> Any:
    return update_table(COLUMNS, rows_of(updates))


def updates_in(frame: Any) -> list[Update[Data, int]]:
    rows = frame.select(["n", "mz_error", "mz_timestamp", "mz_diff"]).to_pylist()
    return [Update((row["n"], row["mz_error"]), row["mz_timestamp"], row["mz_diff"]) for row in rows]
