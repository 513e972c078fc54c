"""What the checks look at: the catalog's rows of one transaction, read with the suspicion that any may be wrong."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from mz_dagster.adapter.project import Project
from mz_dagster.catalog import Batch, BatchId, BatchState, BatchStats, Catalog, CollectionRow, in_shard
from mz_dagster.catalog.codec import LATTICES, columns_of, file_list_of, frontier_of, keys_of
from mz_dagster.catalog.records import Record
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId, IntegerTimes
from mz_dagster.operations.doctor.finding import Finding
from mz_dagster.operations.quarantine import quarantine_of
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.sweep import sweep

Value = TypeVar("Value")


@dataclass(slots=True)
class ExaminedProject:
    """A project under examination.

    Attributes:
        project: The project.
        catalog: Its catalog, for what must be asked again and for repairs.
        shards: Its shards.
        records: Every row of the catalog, of one transaction.
        now_ms: When they were read.
        objects: The rows of the objects, by id.
        collections: Those that can be read, by id.
        batches: Those that can be read, of all states, by collection, by lower.
        unreadable: What cannot be.
        unlisted: The collections whose list of live batches is damaged, with what is to be said of each.
        to_hash: How many bytes of data files are yet to be hashed, unless all are.
    """

    project: Project
    catalog: Catalog
    shards: LocalShards
    records: Mapping[str, tuple[Record, ...]]
    now_ms: int
    objects: dict[GlobalId, Record] = field(default_factory=dict)
    collections: dict[GlobalId, CollectionRow] = field(default_factory=dict)
    batches: dict[GlobalId, list[Batch]] = field(default_factory=dict)
    unreadable: list[Finding] = field(default_factory=list)
    unlisted: dict[GlobalId, Finding] = field(default_factory=dict)
    to_hash: int = 1 << 30

    @classmethod
    def of(cls, project: Project, catalog: Catalog, now_ms: int) -> ExaminedProject:
        """Returns the project as its catalog stands now."""
        examined = cls(project, catalog, LocalShards(project.shard_place(), catalog), catalog.records(), now_ms)
        examined._read()
        return examined

    def called(self, id: str) -> str:
        """Returns what to call an object before people."""
        row = self.objects.get(GlobalId(id))
        if row is None:
            return f'"{id}"'
        name = next((one["name"] for one in self.records["name"] if one["object"] == id), row["created_as"])
        if name is None and row["owner"] is not None:
            return f"{row['kind']} {id} of {self.called(row['owner'])}"
        return f'{row["kind"]} "{name}" ({id})'

    def way_back(self, id: GlobalId) -> str:
        """Returns how to get an object's contents back, a sentence: from its inputs, its files, or a backup."""
        row = self.objects[id]
        if row["owner"] is not None and self.objects[row["owner"]]["kind"] == "source":
            return self.way_back(row["owner"])
        name = next((one["name"] for one in self.records["name"] if one["object"] == id), id)
        copies = '"mz-dagster doctor --from-backup FOLDER" puts its files back'
        match row["kind"]:
            case "materialized view" | "index" | "check" | "arrangement":
                command = shlex.join(("mz-dagster", "rebuild", name))
                return f'The way back: "{command}" makes it anew from what it reads; or {copies}.'
            case "source":
                command = shlex.join(("mz-dagster", "reread", name))
                return f'The way back: "{command}", if all files that it has read are still there; or {copies}.'
            case _:
                return f"The way back: its rows exist nowhere else; {copies}, or restore the backup."

    def is_over(self, id: str) -> bool:
        """Returns whether a collection is dropped, and nobody has a right to it any more."""
        row = self.collections.get(GlobalId(id))
        return self.is_dropped(id) and (row is None or (row.since.is_empty and row.upper.is_empty))

    def is_dropped(self, id: str) -> bool:
        """Returns whether an object is there and dropped."""
        return bool(self.objects.get(GlobalId(id), {}).get("dropped"))

    def is_written_by_capability(self, id: GlobalId) -> bool:
        """Returns whether a collection's times are its writers' own, of whom several may fill one interval."""
        return bool(self.objects[id]["kind"] == "collection")

    def live(self, id: GlobalId) -> Sequence[Batch]:
        """Returns a collection's live batches, by lower."""
        return [batch for batch in self.batches.get(id, ()) if batch.state is BatchState.LIVE]

    def readable(self) -> Iterator[CollectionRow]:
        """Yields the collections that have contents: neither dropped nor closed for reading."""
        return (row for row in self.collections.values() if not row.since.is_empty)

    def sweep(self) -> str:
        """Sweeps thoroughly: what nobody can read or seal any more goes, with all that no batch is known for."""
        swept = sweep(self.catalog, self.shards, thorough=True, aside=quarantine_of(self.project))
        count = sum(len(ids) for ids in (*swept.batches.values(), *swept.strays.values()))
        return f"swept {count} batches"

    def lattice(self, timeline: str | None) -> IntegerTimes:
        """Returns the lattice of a timeline."""
        found = next((one["lattice"] for one in self.records["timeline"] if one["name"] == timeline), None)
        return EPOCH_MS if found is None else LATTICES[found]

    def frontier(self, where: str, timeline: str | None, text: str) -> Antichain[int] | None:
        """Returns the frontier that a text stands for, or None, and notes that it is unreadable."""
        return self._value(where, f"the frontier {text!r}", lambda: frontier_of(self.lattice(timeline), text))

    def _read(self) -> None:
        self.objects = {GlobalId(row["id"]): row for row in self.records["object"]}
        for row in self.records["timeline"]:
            name, lattice = row["name"], row["lattice"]
            self._value(f'timeline "{name}"', f"the lattice {lattice!r}", partial(LATTICES.__getitem__, lattice))
        for row in self.records["collection"]:
            if row["id"] in self.objects and (found := self._collection(row)) is not None:
                self.collections[found.id] = found
        for row in self.records["batch"]:
            if row["collection"] in self.collections and (batch := self._batch(row)) is not None:
                self.batches.setdefault(batch.collection, []).append(batch)
        for batches in self.batches.values():
            batches.sort(key=lambda batch: batch.lower.elements)

    def _collection(self, row: Record) -> CollectionRow | None:
        id = GlobalId(row["id"])
        where, defined = self.called(id), self.objects[id]
        since = self.frontier(where, row["timeline"], row["since"])
        upper = self.frontier(where, row["timeline"], row["upper"])
        columns = self._value(where, "the list of its columns", lambda: columns_of(defined["column_types"]))
        keys = self._value(where, "the list of its keys", lambda: keys_of(defined["unique_keys"]))
        if since is None or upper is None or columns is None or keys is None:
            return None
        return CollectionRow(
            id,
            row["timeline"],
            since,
            upper,
            in_shard(columns),
            keys,
            row["shard"],
            row["failure"],
            poll_failure=row["poll_failure"],
            called=tuple(one.name for one in columns),
        )

    def _batch(self, row: Record) -> Batch | None:
        collection = self.collections[row["collection"]]
        where = f"batch {row['id']} of {self.called(collection.id)}"
        lower = self.frontier(where, collection.timeline, row["lower"])
        upper = self.frontier(where, collection.timeline, row["upper"])
        state = self._value(where, f"the state {row['state']!r}", lambda: BatchState(row["state"]))
        if lower is None or upper is None or state is None:
            return None
        text = row["file_list"]
        files = None if text is None else self._value(where, "the list of its files", partial(file_list_of, text))
        stats = BatchStats(row["rows"], row["errors"], row["files"], row["bytes"], files)
        return Batch(BatchId(row["id"]), collection.id, lower, upper, state, stats)

    def _value(self, where: str, what: str, read: Callable[[], Value]) -> Value | None:
        try:
            return read()
        except Exception as error:  # whatever a wrong text makes of whoever reads it
            self.unreadable.append(Finding("unreadable-value", where, f"{what} cannot be read: {error}"))
            return None
