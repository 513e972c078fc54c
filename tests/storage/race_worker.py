"""One of several processes that do everything at once to one project, and write down what they were told.

Started by `multiprocessing`'s fork server, which has imported all this. It is paused by others at any moment, past its
leases; so each error that a pause explains is an answer. Any other ends the process, with its text in the folder.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from mz_dagster.catalog import (
    Catalog,
    CollectionRow,
    Leadership,
    NewObject,
    ReadCapability,
    Seal,
    Sealed,
    WriteCapability,
)
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import Error, InternalError
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.scalars.types import TEXT, Column
from mz_dagster.storage import (
    BatchWriter,
    Inlining,
    LocalShards,
    ReadBeforeSince,
    ReadBeyondUpper,
    Storage,
    Updates,
    compact,
    compare_and_append,
    read_at,
    sweep,
    update_table,
)
from tests.storage.history import Event, Recorder
from tests.storage.places import place_of

COLUMNS = (Column("row", TEXT),)
TIMELINE = "t"
LEASE_MS = 500
"""How long every lease lasts; who is paused is paused for longer."""

RETENTION_MS = 12
"""How much history stays, in times, where no capability holds more."""

STOP = "stop"
"""The file whose appearance ends all workers."""


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def only(frontier: Antichain[int]) -> int | None:
    return frontier.elements[0] if frontier.elements else None


def make_project(url: str) -> None:
    """Makes a project with two sources, which the engine would write, and a collection for holders of capabilities."""
    with Catalog.open(url) as catalog:
        catalog.declare_timeline(TIMELINE)
        for name in ("a", "b"):
            catalog.create_object(new_source(name))
        catalog.create_collection(
            catalog.reserve_id(),
            TIMELINE,
            COLUMNS,
            start=1,
            retention_ms=RETENTION_MS,
            holder="test",
            ttl_ms=LEASE_MS,
        )


def new_source(name: str) -> NewObject:
    return NewObject(name, "source", "", TIMELINE, COLUMNS, since=1, upper=1)


def work(folder: str, url: str, name: str, seed: int) -> None:
    """Is the process: works until it is told to stop."""
    try:
        with Catalog.open(url) as catalog:
            worker = Worker(Path(folder), catalog, name, Random(seed))
            while not (Path(folder) / STOP).exists():
                worker.act()
    except BaseException:
        (Path(folder) / f"{name}.error").write_text(traceback.format_exc())
        raise


class Worker:
    """Does one thing after the other, at random."""

    def __init__(self, folder: Path, catalog: Catalog, name: str, random: Random) -> None:
        self.catalog, self.name, self.random = catalog, name, random
        self.shards = LocalShards(place_of(folder), catalog, Inlining(2, 65_536))  # some of both kinds
        self.recorder = Recorder(folder / "history", name)
        self.rows = 0
        self.leadership: Leadership | None = None
        self.writing: WriteCapability | None = None
        self.mine: list[str] = []
        self.held: list[ReadCapability] = []
        self.actions: list[Callable[[], None]] = [
            *[self.append] * 4,
            *[self.append_as_leader] * 3,
            *[self.append_by_capability] * 4,
            *[self.read] * 8,
            *[self.hold] * 2,
            *[self.use_what_is_held] * 4,
            *[self.subscribe] * 2,
            *[self.compact] * 3,
            *[self.sweep] * 1,
            *[self.create_and_drop] * 1,
        ]

    def act(self) -> None:
        self.random.choice(self.actions)()

    @contextmanager
    def asked(self, operation: str, id: str, **facts: Any) -> Iterator[Event]:
        """Records an operation; an error that says that nothing happened is a refusal."""
        with self.recorder.event(operation, id, **facts) as event:
            try:
                yield event
            except InternalError:
                raise
            except Error as error:
                event.answer = None if getattr(error, "may_have_taken_effect", False) else "refused"

    def collections(self, *kinds: str) -> list[CollectionRow]:
        return [self.catalog.collection(one.id) for kind in kinds for one in self.catalog.objects(kind)]

    def some(self, *kinds: str) -> CollectionRow:
        return self.random.choice(self.collections(*kinds))

    # Appends.

    def fresh(self) -> str:
        self.rows += 1
        return f"{self.name}.{self.rows}"

    def updates(self, row: CollectionRow, lower: int, upper: int) -> list[tuple[str, int, int]]:
        """Returns new rows, and retractions of some that are there just before `lower`."""
        found = [(self.fresh(), self.random.randrange(lower, upper), 1) for _ in range(self.random.randint(0, 2))]
        if row.is_readable_at(lower - 1):
            there = sorted(self.contents(row, lower - 1))
            found += [(one, self.random.randrange(lower, upper), -1) for one in there[:-5]]
        return found

    def contents(self, row: CollectionRow, time: int) -> dict[str, int]:
        with read_at(self.catalog, self.shards, row, time, holder=self.name, ttl_ms=LEASE_MS) as frame:
            return {one["row"]: one["mz_diff"] for one in frame.to_pylist()}

    def prepared(self, row: CollectionRow) -> tuple[int, int, list[tuple[str, int, int]]] | None:
        """Returns an append to a source from its upper on, or None if it is gone meanwhile."""
        lower = only(row.upper)
        if lower is None:
            return None
        upper = lower + self.random.randint(1, 3)
        try:
            return lower, upper, self.updates(row, lower, upper)
        except Error:
            return None  # since has moved on, or a pause was too long

    def append(self) -> None:
        row = self.some("source")
        if (prepared := self.prepared(row)) is None:
            return
        lower, upper, updates = prepared
        with self.asked("append", row.id, lower=lower, upper=upper, updates=updates) as event:
            outcome = compare_and_append(
                self.catalog,
                self.shards,
                row,
                at(lower),
                at(upper),
                frame_of(updates),
                holder=self.name,
                ttl_ms=LEASE_MS,
            )
            event.answer = "done" if isinstance(outcome, Sealed) else "refused"

    def append_as_leader(self) -> None:
        """Seals several sources at once, under the timeline's exclusive lease, which is never renewed here."""
        if self.leadership is None:
            with self.asked("lead", TIMELINE) as event:
                led = self.catalog.lead(TIMELINE, self.name, LEASE_MS)
                event.answer = "refused"
                if isinstance(led, Leadership):
                    event.answer, event.epoch, self.leadership = "done", led.epoch, led
        if self.leadership is None:
            return
        rows = self.random.sample(self.collections("source"), 2)
        prepared = [(row, one) for row in rows if (one := self.prepared(row)) is not None]
        epoch = self.leadership.epoch
        asked = [
            Event(
                self.name, "append", SYSTEM_CLOCK.now_ms(), None, row.id, None, 0, *one[:2], updates=one[2], epoch=epoch
            )
            for row, one in prepared
        ]
        answer: str | None = "refused"
        try:
            with BatchWriter(self.catalog, holder=self.name, ttl_ms=LEASE_MS) as writer:
                seals = [
                    Seal(row.id, at(lower), at(upper), *self.write(writer, row, lower, upper, updates))
                    for row, (lower, upper, updates) in prepared
                ]
                outcome = self.catalog.seal(seals, leadership=self.leadership)
                answer = "done" if isinstance(outcome, Sealed) else "refused"
                if not isinstance(outcome, Sealed) or self.random.random() < 0.2:
                    self.leadership = None
        except InternalError:
            raise
        except Error as error:
            answer = None if getattr(error, "may_have_taken_effect", False) else "refused"
        for event in asked:
            event.answer = answer
            self.recorder.write(event)

    def write(self, writer: BatchWriter, row: CollectionRow, lower: int, upper: int, updates: Any) -> Any:
        return writer.write(self.shards, row, at(lower), at(upper), frame_of(updates))

    def append_by_capability(self) -> None:
        """Appends to the collection that several fill together; each retracts rows of its own only."""
        row = self.some("collection")
        if (writing := self.writing or self.acquired(row)) is None:
            return
        lower = writing.frontier.only
        upper = lower + self.random.randint(1, 3)
        added = self.fresh()
        updates = [(added, self.random.randrange(lower, upper), 1)]
        updates += [(one, self.random.randrange(lower, upper), -1) for one in self.mine[:-3]]
        facts = {"lower": lower, "upper": upper, "updates": updates, "token": writing.label}
        moved: object = None
        with (
            self.asked("append", row.id, **facts) as event,
            BatchWriter(self.catalog, holder=self.name, ttl_ms=LEASE_MS) as writer,
        ):
            batch, stats = self.write(writer, row, lower, upper, updates)
            moved = self.catalog.append_batch(writing.token, at(lower), at(upper), batch, stats)
            event.answer = "done" if isinstance(moved, WriteCapability) else "refused"
        if isinstance(moved, WriteCapability):
            self.writing, self.mine = moved, [*self.mine[-3:], added]
        else:
            self.writing = None

    def acquired(self, row: CollectionRow) -> WriteCapability | None:
        """Returns a new capability to write; of since, which events tell of, it says nothing."""
        found: WriteCapability | None = None
        with self.asked("hold", row.id) as event:
            read, write = self.catalog.acquire(row.id, holder=self.name, ttl_ms=LEASE_MS)
            event.answer, event.token, event.frontier, event.until = "done", write.label, None, write.until_ms
            found = write
            self.catalog.drop(read.token)
        return found

    # Reads.

    def read(self) -> None:
        row = self.look(self.some("source", "source", "collection").id)
        since, upper = only(row.since), only(row.upper)
        if since is not None and upper is not None:
            self.read_at(row, self.random.randint(max(0, since - 1), upper))

    def look(self, id: GlobalId) -> CollectionRow:
        with self.asked("frontiers", id) as event:
            row = self.catalog.collection(id)
            event.answer, event.since, event.upper = "told", only(row.since), only(row.upper)
        return row

    def read_at(self, row: CollectionRow, time: int) -> None:
        with self.asked("read", row.id, time=time) as event:
            try:
                event.contents = self.contents(row, time)
                event.answer = "contents"
            except ReadBeforeSince as error:
                event.answer, event.since = "before since", only(error.since)
            except ReadBeyondUpper as error:
                event.answer, event.upper = "beyond upper", only(error.upper)

    # Capabilities.

    def hold(self) -> None:
        row = self.some("source", "collection")
        with self.asked("hold", row.id) as event:
            ttl_ms = self.random.choice([LEASE_MS, LEASE_MS * 4])
            if self.held and self.random.random() < 0.3:
                source = self.random.choice(self.held)
                event.collection = source.collection
                read = self.catalog.clone(source.token, holder=self.name, ttl_ms=ttl_ms)
            else:
                read = self.catalog.acquire_read(row.id, holder=self.name, ttl_ms=ttl_ms)
            assert isinstance(read, ReadCapability)
            event.token, event.frontier, event.until = read.label, only(read.frontier), read.until_ms
            event.answer = "done"
            self.held = [*self.held[-5:], read]

    def use_what_is_held(self) -> None:
        if not self.held:
            return
        one = self.held.pop(self.random.randrange(len(self.held)))
        frontier = one.frontier.only
        facts: dict[str, Any] = {"token": one.label, "frontier": frontier}
        moved: object = one
        match self.random.choice(["read", "read", "downgrade", "renew", "release"]):
            case "read":
                self.read_at(self.catalog.collection(one.collection), frontier)
            case "downgrade":
                facts["frontier"] = frontier + self.random.randint(0, 3)
                with self.asked("downgrade", one.collection, **facts) as event:
                    moved = self.catalog.downgrade(one.token, at(facts["frontier"]))
                    event.answer = "done"
            case "renew":
                with self.asked("renew", one.collection, **facts) as event:
                    moved = self.catalog.renew(one.token, LEASE_MS)
                    assert isinstance(moved, ReadCapability)
                    event.answer, event.until = "done", moved.until_ms
            case _:
                moved = None
                with self.asked("release", one.collection, **facts) as event:
                    self.catalog.drop(one.token)
                    event.answer = "done"
        if isinstance(moved, ReadCapability):
            self.held.append(moved)

    def subscribe(self) -> None:
        """Follows a collection for a while: what was sent up to each `Upper` is what a read before it finds."""
        row = self.some("source", "collection")
        storage = Storage(self.catalog, self.shards, holder=self.name, lease_ms=LEASE_MS)
        invoked, contents = SYSTEM_CLOCK.now_ms(), Counter[str]()
        try:
            read = self.catalog.acquire_read(row.id, holder=self.name, ttl_ms=LEASE_MS)
            for message in storage.subscribe_at(read, deadline_s=0.3, poll_s=0.02):
                if isinstance(message, Updates):
                    for one in message.frame.to_pylist():
                        contents[one["row"]] += one["mz_diff"]
                elif not message.frontier.is_empty:
                    told = Event(self.name, "read", invoked, None, row.id, "contents", message.frontier.only - 1)
                    told.contents = {one: count for one, count in contents.items() if count}
                    self.recorder.write(told)
                    if self.random.random() < 0.5:
                        storage.downgrade_capability(read, at(told.time))
        except InternalError:
            raise
        except Error:
            pass  # nothing new, or it was paused past its lease

    # What may not show.

    def compact(self) -> None:
        row = self.some("source", "collection")
        try:
            self.catalog.allow_compaction(TIMELINE, retention_ms=RETENTION_MS)
            compact(self.catalog, self.shards, row, holder=self.name, least_parts=2, ttl_ms=LEASE_MS)
        except InternalError:
            raise
        except Error:
            pass  # it lost its lease or its batch to a pause: that costs its own work only
        self.look(row.id)

    def sweep(self) -> None:
        sweep(self.catalog, self.shards, thorough=self.random.random() < 0.3)

    def create_and_drop(self) -> None:
        """Makes a source for the others to use, and drops one that was made so before."""
        self.catalog.create_object(new_source(self.fresh()))
        short = [one for one in self.catalog.objects("source") if one.name not in ("a", "b")]
        if len(short) > 2:
            with self.asked("drop", short[0].id) as event:
                self.catalog.drop_object(short[0].id)
                event.answer = "done"


def frame_of(updates: list[tuple[str, int, int]]) -> Any:
    return update_table(COLUMNS, [((row,), time, diff) for row, time, diff in updates])
