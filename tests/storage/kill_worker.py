"""A process that appends, seals, compacts and sweeps until it is killed, and writes down what it intends and has done.

Started by `multiprocessing`'s fork server, which has imported all this: a kill costs no start of Python. The journal is
a file: what was written to it before a kill is there.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from mz_dagster.catalog import Catalog, CollectionRow, NewObject, Seal, Sealed
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.scalars.types import TEXT, Column
from mz_dagster.storage import BatchWriter, Inlining, LocalShards, compact, read_at, sweep, update_table
from tests.storage.places import place_of

COLUMNS = (Column("row", TEXT),)
TTL_MS = 300
RETENTION_MS = 10

Updates = list[tuple[str, int, int]]


@dataclass
class Intent:
    """An append to some collections at once, of which the journal tells.

    Attributes:
        number: Unique in the journal.
        seals: By collection: lower, upper, updates.
        sealed: Whether it was acknowledged, or refused; None if the process died before it said so.
    """

    number: str
    seals: Mapping[str, tuple[int, int, Updates]]
    sealed: bool | None = None


def journal(folder: Path) -> list[Intent]:
    """Returns the intents in the order in which they were begun."""
    intents: dict[str, Intent] = {}
    path = folder / "journal"
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        found = json.loads(line)
        if "seals" in found:
            seals = {
                id: (lower, upper, [tuple(one) for one in rows]) for id, (lower, upper, rows) in found["seals"].items()
            }
            intents[found["number"]] = Intent(found["number"], seals)
        elif "sealed" in found:
            intents[found["number"]].sealed = found["sealed"]
    return list(intents.values())


def make_project(url: str) -> None:
    """Makes a project with two collections."""
    with Catalog.open(url) as catalog:
        catalog.declare_timeline("t")
        for name in ("a", "b"):
            catalog.create_object(NewObject(name, "source", "", "t", COLUMNS, since=1, upper=1))


def live(folder: str, url: str, name: str, seed: int) -> None:
    """Is the process."""
    try:
        Worker(Path(folder), url, name, Random(seed)).live()
    except BaseException:
        (Path(folder) / f"{name}.error").write_text(traceback.format_exc())
        raise


class Worker:
    """Works on the two collections, from where it finds them."""

    def __init__(self, folder: Path, url: str, name: str, random: Random) -> None:
        self.catalog = Catalog.open(url)
        self.shards = LocalShards(place_of(folder), self.catalog, Inlining(3, 65_536))  # some of both kinds
        self.name, self.random = name, random
        self.journal = os.open(folder / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.appends = 0

    def live(self) -> None:
        self.note(begun=self.name)
        while True:
            self.random.choice([self.append, self.append, self.append, self.compact, self.sweep])()

    def note(self, **facts: Any) -> None:
        os.write(self.journal, f"{json.dumps(facts)}\n".encode())

    def append(self) -> None:
        """Appends to one collection or, in one transaction, to both."""
        every = self.catalog.collections()
        rows = self.random.choice([every[:1], every[1:], every])
        self.appends += 1
        number = f"{self.name}.{self.appends}"
        intended = {row.id: self.intended(row, number) for row in rows}
        self.note(number=number, seals=intended)
        with BatchWriter(self.catalog, holder=self.name, ttl_ms=TTL_MS) as writer:
            seals = []
            for row in rows:
                lower, upper, updates = intended[row.id]
                frame = update_table(COLUMNS, [((one,), time, diff) for one, time, diff in updates])
                written = writer.write(self.shards, row, at(lower), at(upper), frame)
                seals.append(Seal(row.id, at(lower), at(upper), *written))
            outcome = self.catalog.seal(seals)
        self.note(number=number, sealed=isinstance(outcome, Sealed))

    def intended(self, row: CollectionRow, number: str) -> tuple[int, int, Updates]:
        lower = row.upper.only
        upper = lower + self.random.randint(1, 3)
        updates = [(number, self.random.randrange(lower, upper), self.random.choice([1, 1, 2]))]
        if row.is_readable_at(lower - 1):
            with read_at(self.catalog, self.shards, row, lower - 1, holder=self.name, ttl_ms=TTL_MS) as frame:
                there = sorted((one["row"], one["mz_diff"]) for one in frame.to_pylist())
            updates += [(one, self.random.randrange(lower, upper), -count) for one, count in there[:-4]]
        return lower, upper, updates

    def compact(self) -> None:
        self.catalog.allow_compaction("t", retention_ms=RETENTION_MS)
        row = self.random.choice(self.catalog.collections())
        compact(self.catalog, self.shards, row, holder=self.name, least_parts=2, ttl_ms=TTL_MS)

    def sweep(self) -> None:
        sweep(self.catalog, self.shards, thorough=self.random.random() < 0.2)


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def expected_at(sealed: Sequence[Intent], id: str, time: int) -> dict[tuple[str], int]:
    """Returns what a collection contains at a time, by the intents that were sealed."""
    rows: dict[tuple[str], int] = {}
    for intent in sealed:
        for row, updated, diff in intent.seals.get(id, (0, 0, []))[2]:
            if updated <= time:
                rows[row,] = rows.get((row,), 0) + diff
    return {row: count for row, count in rows.items() if count}
