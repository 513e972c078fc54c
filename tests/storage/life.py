"""The life of one collection: what the crash and race tests run in processes of its own.

At each tick n the collection gains the row (n, 0) and loses the row (n - WINDOW, 0), so its content at every time is
known, whoever wrote it and however often it crashed meanwhile. All commands go on from where the catalog stands.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mz_dagster.catalog import BoundFile, Catalog, CollectionRow, NameTaken, NewObject, Seal, Sealed, UnknownWriter
from mz_dagster.clock import SYSTEM_CLOCK, Clock, ManualClock
from mz_dagster.fail_point import VARIABLE
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.scalars.types import INT4, Column
from mz_dagster.storage import (
    BatchIncomplete,
    BatchWriter,
    Inlining,
    LeaseLost,
    LocalShards,
    ShardUnavailable,
    compact,
    compare_and_append,
    leased,
    read_at,
    sweep,
    update_table,
)

COLUMNS = (Column("n", INT4), Column("v", INT4))
WINDOW = 3
TICKS = 8
TTL_MS = 300
#: Of processes that are paused: so long that no renewal is under way, holding the catalog's lock, when they stop.
PAUSED_TTL_MS = 600_000


NOTHING_INLINED = Inlining(0, 0)
#: The first batches, which have one update each.
SOME_INLINED = Inlining(1, 65_536)
ALL_INLINED = Inlining(1_000, 65_536)


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def rows_at(time: int) -> Counter[tuple[Any, ...]]:
    """Returns what the collection contains at a time."""
    return Counter({(n, 0): 1 for n in range(max(1, time - WINDOW + 1), time + 1)})


def updates_at(time: int) -> list[tuple[tuple[int, int], int, int]]:
    retracted = [((time - WINDOW, 0), time, -1)] if time > WINDOW else []
    return [((time, 0), time, 1), *retracted]


class Life:
    """Is a project folder with one timeline, one source and its collection.

    Args:
        folder: The folder.
        clock: Wall clock.
        inlining: Which batches are inlined.
        url: The catalog's; by default SQLite in the folder.
    """

    def __init__(
        self, folder: Path, clock: Clock, inlining: Inlining = NOTHING_INLINED, url: str | None = None
    ) -> None:
        self.clock = clock
        self.catalog = Catalog.open(url or f"sqlite:///{folder}/catalog.sqlite", clock=clock)
        self.catalog.declare_timeline("t")
        with contextlib.suppress(NameTaken):
            self.catalog.create_object(NewObject("s", "source", "", "t", COLUMNS, since=1, upper=1))
        found = self.catalog.resolve_name("s")
        assert found is not None
        self.id = found.id
        self.shards = LocalShards(folder, self.catalog, inlining)

    @property
    def row(self) -> CollectionRow:
        return self.catalog.collection(self.id)

    def tick(self) -> None:
        """Mints the next tick, unless one is waiting to be appended, and appends it."""
        last = self.catalog.last_tick("t") or 0
        if last < self.row.upper.only:
            self.catalog.mint_tick("t", last + 1, {self.id: [BoundFile(f"f{last + 1}", 1, "")]}, last or None)
        self.append()

    def append(self) -> bool:
        row = self.row
        time = row.upper.only
        frame = update_table(COLUMNS, updates_at(time))
        done = compare_and_append(
            self.catalog, self.shards, row, at(time), at(time + 1), frame, holder="life", ttl_ms=TTL_MS
        )
        return isinstance(done, Sealed)

    def compact(self) -> object:
        self.catalog.allow_compaction("t", retention_ms=4)
        return compact(self.catalog, self.shards, self.row, holder="life", least_parts=2, ttl_ms=TTL_MS)

    def sweep(self, thorough: bool = False) -> object:
        return sweep(self.catalog, self.shards, thorough=thorough)

    def live(self) -> None:
        """Does everything, until the last tick is readable."""
        while self.row.upper.only <= TICKS:
            self.tick()
            self.compact()
            self.sweep()

    def read(self, time: int) -> Counter[tuple[Any, ...]]:
        with read_at(self.catalog, self.shards, self.row, time, holder="reader", ttl_ms=TTL_MS) as frame:
            rows = [tuple(row.values()) for row in frame.to_pylist()]
        return Counter({row[:-3]: row[-2] for row in rows})

    def check(self) -> None:
        """Checks the content at every readable time."""
        row = self.row
        for time in range(row.since.only, row.upper.only):
            assert self.read(time) == rows_at(time), f"at {time} of [{row.since}, {row.upper})"


def live_until(folder: Path, now: int, fail_at: str, inlining: Inlining, url: str) -> None:
    """Lives, and is killed where the fail point says."""
    os.environ[VARIABLE] = fail_at
    Life(folder, ManualClock(now), inlining, url).live()


def live_as_told(arguments: Sequence[str]) -> None:
    """Carries out a command: its arguments are the folder, the command, now, how many rows are inlined, a URL."""
    folder, command, now, inlined_rows, *others = arguments
    url = others[0] if others else None
    inlining = Inlining(int(inlined_rows), 65_536)
    life = Life(Path(folder), SYSTEM_CLOCK if now == "real" else ManualClock(int(now)), inlining, url)
    match command:
        case "stop before write" | "stop before seal":
            row = life.row
            time = row.upper.only
            with BatchWriter(life.catalog, holder="paused", ttl_ms=PAUSED_TTL_MS) as writer:
                batch = life.catalog.reserve_batch(row.id, writer.id, at(time), at(time + 1))
                if command == "stop before write":
                    os.kill(os.getpid(), signal.SIGSTOP)
                stats = life.shards.append(row, batch, update_table(COLUMNS, updates_at(time)))
                if command == "stop before seal":
                    os.kill(os.getpid(), signal.SIGSTOP)
                outcome = life.catalog.seal([Seal(row.id, at(time), at(time + 1), batch, stats)])
            print(type(outcome).__name__)
            if not isinstance(outcome, Sealed):
                print(life.append())
        case "stop before read":
            row = life.row
            try:
                with leased(life.catalog, [row.id], holder="paused", ttl_ms=PAUSED_TTL_MS) as lease:
                    os.kill(os.getpid(), signal.SIGSTOP)
                    listed = lease.snapshots[row.id]
                    rows = life.shards.read(row, listed.batches).num_rows
                print(rows)
            except (BatchIncomplete, LeaseLost) as error:
                print(type(error).__name__)
        case "append" | "compact" | "sweep":
            SYSTEM_CLOCK.sleep(0.01)
            print("ready", flush=True)
            while True:
                # A writer that was paused may find that its batch's folder is gone; it would try again.
                with contextlib.suppress(ShardUnavailable, BatchIncomplete, LeaseLost, UnknownWriter):
                    if command == "append":
                        life.append()
                    elif command == "compact":
                        life.compact()
                    else:
                        life.sweep(thorough=True)
                        SYSTEM_CLOCK.sleep(0.02)
        case "read":
            print("ready", flush=True)
            reads = 0
            while True:
                try:
                    life.check()
                except (BatchIncomplete, LeaseLost) as error:
                    print("paused", type(error).__name__, flush=True)
                except Exception as error:
                    # Between looking at since and taking a lease, since may have moved on.
                    if type(error).__name__ != "ReadBeforeSince":
                        raise
                reads += 1
                print("read", reads, flush=True)
