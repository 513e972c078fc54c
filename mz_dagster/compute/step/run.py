"""The state of one step while it runs: what it began with, and what has become of each collection so far."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING

from mz_dagster.budget import budget
from mz_dagster.catalog import Batch, BatchId, BatchState, BatchStats, CollectionRow
from mz_dagster.compute.lookups.common_lookups import CommonLookups
from mz_dagster.compute.lookups.shared_reads import SharedReads
from mz_dagster.compute.step.common_time import CommonTime
from mz_dagster.compute.step.graph import FailedNode, Graph, MaintainedNode, Node, SinkNode, SourceNode, TableNode
from mz_dagster.compute.step.local_ingest import FreshRecords
from mz_dagster.compute.step.report import CollectionStep, Outcome
from mz_dagster.compute.step.turns import Turn, Turns
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.storage.read import overlapping
from mz_dagster.storage.shards import Shards

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StepGivenUp(OperationalError):
    """Reports, to a thread that computes for a step, that nobody waits for it any more."""

    sqlstate = "57014"


#: The outcomes that a seal makes durable.
_TO_SEAL = (Outcome.ADVANCED, Outcome.IDLE, Outcome.FAILED)


@dataclass(slots=True)
class StepRun:
    """The state of one step while it runs.

    Attributes:
        opened: Spark, once it is needed: the same one until the step is over, since asking whether a Spark still
            answers takes a round trip, and a busy one that is late would be given up under those who use it.
        reserved: The batch of each collection that was computed; the seal forgets one in which nothing was written.
        smaller: The session for what is computed in smaller pieces, likewise.
        written: Those in which something was.
        tag: What Spark knows its work by, to interrupt it.
        common: The lookups that its collections share.
        reads: What its collections ask of storage alike.
        fresh: The records of which memories of keys were made, until their sources have them, too.
        heap_was_full: Set once Spark's heap was: all that begins then is computed in smaller pieces, one by one.
        one_by_one: Held by who does so.
        turns: The turns of those that compute in this process.
        turn_of: The turn of each collection that has begun.
        common_time: Holds what was sealed before the rest readable where the rest stands.
        given_up: Set once nobody waits for what its threads compute: they tell nothing more, and write nothing.
        overtaken: The collections that somebody else sealed meanwhile, and what of this step that makes useless
            (`overtake`): what it makes of them is not wanted any more.
    """

    graph: Graph
    tick: int
    rows: Mapping[GlobalId, CollectionRow]
    batches: dict[GlobalId, list[Batch]]
    selected: frozenset[GlobalId]
    common_time: CommonTime
    bound: Mapping[GlobalId, int]
    started: dict[GlobalId, float] = field(default_factory=dict)
    done: dict[GlobalId, CollectionStep] = field(default_factory=dict)
    reserved: dict[GlobalId, BatchId] = field(default_factory=dict)
    written: dict[GlobalId, BatchId] = field(default_factory=dict)
    dues: dict[GlobalId, int | None] = field(default_factory=dict)
    sealed: set[GlobalId] = field(default_factory=set)
    tag: str = field(default_factory=lambda: f"mz-step-{secrets.token_hex(8)}")
    opened: tuple[SparkSession, Shards[DataFrame]] | None = None
    smaller: tuple[SparkSession, Shards[DataFrame]] | None = None
    common: CommonLookups | None = None
    opening: Lock = field(default_factory=Lock)
    reads: SharedReads = field(default_factory=SharedReads)
    fresh: dict[GlobalId, FreshRecords] = field(default_factory=dict)
    heap_was_full: Event = field(default_factory=Event)
    one_by_one: Lock = field(default_factory=Lock)
    turns: Turns = field(default_factory=Turns)
    turn_of: dict[GlobalId, Turn] = field(default_factory=dict)
    given_up: Event = field(default_factory=Event)
    overtaken: set[GlobalId] = field(default_factory=set)
    _unsealed_at: int | None = None
    #: What was asked of lists of batches, which others ask, too: of which list, and how long it was.
    _overlapping: dict[tuple[GlobalId, int | None, int], tuple[list[Batch], int, tuple[Batch, ...]]] = field(
        default_factory=dict
    )

    def check_wanted(self, id: GlobalId) -> None:
        """Returns if somebody waits for what the step computes of a collection.

        Raises:
            StepGivenUp: Nobody does.
        """
        self._check_going_on()
        if id in self.overtaken:
            raise StepGivenUp(f'another was faster with "{self.graph.by_id[id].name}"')

    def is_unwanted(self, nodes: Sequence[Node]) -> bool:
        """Returns whether somebody else was faster with all that is left of some collections."""
        return all(node.id in self.overtaken or node.id in self.done for node in nodes) and any(
            node.id in self.overtaken for node in nodes
        )

    def check_any_wanted(self, nodes: Sequence[Node]) -> None:
        """Returns if somebody waits for what the step computes of any of some collections.

        Raises:
            StepGivenUp: Nobody does.
        """
        self._check_going_on()
        if self.is_unwanted(nodes):
            raise StepGivenUp(f'another was faster with "{nodes[-1].name}"')

    def _check_going_on(self) -> None:
        if self.given_up.is_set():
            raise StepGivenUp(f"the step to {self.tick} was given up")

    def note(self, row: CollectionRow, upper: Antichain[int], batch: BatchId, stats: BatchStats) -> None:
        """Notes a batch that takes a collection to an upper, for the rest of the step to read, and for the seal."""
        self.reserved[row.id] = batch
        if stats.rows:
            self.written[row.id] = batch
            self.batches[row.id].append(Batch(batch, row.id, row.upper, upper, BatchState.WRITING, stats))

    def tag_of(self, id: GlobalId) -> str:
        """Returns what Spark knows its work for one collection by, to interrupt it."""
        return f"{self.tag}-{id}"

    def overtake(self, moved: Mapping[GlobalId, int]) -> None:
        """Notes collections that somebody else has sealed, and with them what is not sealed and no use any more.

        What depends on one that has come as far as this step took it is right as it is. Else it would pass its input,
        or waits for an input of which this step makes nothing.

        Args:
            moved: The collections, by how far they are known now.
        """
        short = {id for id, upper in moved.items() if id not in self.done or upper < self.done[id].upper}
        self.overtaken |= moved.keys() | (self.graph.downstream(short) - self.sealed)

    def works_on(self, id: GlobalId) -> bool:
        """Returns whether the step is to seal a collection, or to note that it failed, and has not done so."""
        if id in self.sealed or id in self.overtaken or id not in self.selected:
            return False
        return id not in self.done or self.done[id].outcome in _TO_SEAL

    def unsealed(self) -> list[CollectionStep]:
        """What is done and not sealed, or noted if it failed; closed under inputs."""
        settled = self.sealed | self.overtaken
        return [one for one in list(self.done.values()) if one.id not in settled and one.outcome in _TO_SEAL]

    @property
    def has_unsealed(self) -> bool:
        """Whether there is any of `unsealed`; asked whenever a collection is done."""
        settled = len(self.sealed) + len(self.overtaken)
        if self._unsealed_at != settled:  # once there is something, it stays until it is settled
            found = any(self.done[id].outcome in _TO_SEAL for id in set(self.done) - self.sealed - self.overtaken)
            self._unsealed_at = settled if found else None
        return self._unsealed_at is not None

    def upper_of(self, id: GlobalId) -> int:
        """The upper that the collection will have when this step seals."""
        return self.done[id].upper if id in self.done else self.rows[id].upper.only

    def target(self, node: Node) -> int:
        """The upper that a collection can reach: that of the tick, or the least of its inputs."""
        if isinstance(node, TableNode):
            return self.upper_of(node.id)
        return min((self.tick + 1, *(self.upper_of(input) for input in node.inputs)))

    def has_work(self, node: Node, lower: int, upper: int) -> bool:
        """Whether anything is to be computed for a collection's advance over `[lower, upper)`."""
        match node:
            case SourceNode():
                return self.bound.get(node.bound, -1) >= lower
            case MaintainedNode():
                if self.rows[node.id].is_hydrated:
                    fresh = any(not self.is_empty(input, lower, upper) for input in node.reads)
                    return fresh or self.rows[node.id].is_due(upper)
                return node.has_constants or any(self.overlapping(input, None, upper) for input in node.reads)
            case TableNode() | FailedNode() | SinkNode():
                return False

    def overlapping(self, id: GlobalId, lower: int | None, upper: int) -> tuple[Batch, ...]:
        """The batches that may hold updates in `[lower, upper)`."""
        batches = self.batches[id]
        known = self._overlapping.get((id, lower, upper))
        if known is None or known[0] is not batches or known[1] != len(batches):
            known = batches, len(batches), overlapping(batches, lower, upper)
            self._overlapping[id, lower, upper] = known
        return known[2]

    def is_empty(self, id: GlobalId, lower: int, upper: int) -> bool:
        """True if the collection provably has no updates in `[lower, upper)`."""
        return not self.overlapping(id, lower, upper)

    def rows_between(self, id: GlobalId, lower: int | None, upper: int) -> int:
        """The updates of a collection in `[lower, upper)`; a batch that reaches beyond it counts whole."""
        return sum(batch.stats.rows for batch in self.overlapping(id, lower, upper))

    def rows_in(self, node: Node, lower: int, upper: int) -> int:
        """The updates in `[lower, upper)` of what a maintained collection is defined over."""
        if not isinstance(node, MaintainedNode):
            return 0
        first = lower if self.rows[node.id].is_hydrated else None
        return sum(self.rows_between(input.id, first, upper) for input in self.inputs(node))

    def is_little(self, node: Node, lower: int, upper: int) -> bool:
        """True if a collection is maintained in `[lower, upper)` by few updates."""
        return isinstance(node, MaintainedNode) and self.rows_in(node, lower, upper) <= budget().serial_rows

    def inputs(self, node: Node) -> list[Node]:
        """What a person would call a collection's inputs: not its own arrangements."""
        inputs = (self.graph.by_id[input] for input in sorted(node.inputs))
        return [one for one in inputs if not isinstance(one, SourceNode | MaintainedNode) or one.owner != node.id]
