"""The graph of collections of one timeline, as a step sees it.

Pure data: which collections there are, what each is made of, and in which order a step may visit
them. The adapter builds it from the catalog; nothing here reads or writes.

What of a collection cannot be told, because it does not bind any more or its source cannot be looked at, is a node like
the others, with the reason in it: a graph is never refused for one of its collections.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from mz_dagster.errors import DatabaseError, InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.lowering.stored_columns import Stored, over_stored
from mz_dagster.plan.operators import operators
from mz_dagster.plan.physical import ConstantRows, Physical, TemporalState, collections_read, physical_inputs
from mz_dagster.storage.sink.sink import Sink
from mz_dagster.storage.source import Source


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A collection filled from outside, through bindings and an envelope.

    Attributes:
        key: The columns by which large batches of it are laid out; none for no layout.
        memory: The collection that has what keys were told, so that it is not applied again; None if nothing does.
        owner: The source whose bindings it is filled by, if it is such a memory itself.
    """

    id: GlobalId
    name: str
    source: Source
    key: tuple[int, ...] = ()
    memory: GlobalId | None = None
    owner: GlobalId | None = None

    @property
    def inputs(self) -> frozenset[GlobalId]:
        """What keys were told, of a source; its memory reads no other collection."""
        return frozenset() if self.memory in (None, self.id) else frozenset({self.memory})

    @property
    def bound(self) -> GlobalId:
        """The source whose bindings fill it."""
        return self.owner or self.id

    @property
    def operators(self) -> str:
        """What computes it, for people."""
        return self.source.operators


@dataclass(frozen=True, slots=True)
class TableNode:
    """A collection filled by sessions; a step only closes its times."""

    id: GlobalId
    name: str

    @property
    def inputs(self) -> frozenset[GlobalId]:
        """No collection is read."""
        return frozenset()

    @property
    def operators(self) -> str:
        """Nothing computes it."""
        return ""


@dataclass(frozen=True, slots=True)
class MaintainedNode:
    """A collection that is a plan's output: a materialized view, an arrangement or an index of its own.

    Attributes:
        plan: Reads collections by their GlobalIds only.
        named: The collections that its query names. A plan may read fewer, where a condition is never true for
            example; the catalog still holds its upper to theirs.
        key: The columns by which large batches of it are laid out; none for no layout.
        owner: Of an arrangement: the object that it serves.
        reads: The collections that the plan reads.
        inputs: The collections that it depends on: it never passes their uppers.
        has_constants: True if the plan holds rows of its own, so that it has output even when no input ever has.
        operators: The operators of the plan, for people.
    """

    id: GlobalId
    name: str
    plan: Physical
    named: frozenset[GlobalId] = frozenset()
    key: tuple[int, ...] = ()
    owner: GlobalId | None = None
    reads: frozenset[GlobalId] = field(init=False, repr=False, compare=False)
    inputs: frozenset[GlobalId] = field(init=False, repr=False, compare=False)
    has_constants: bool = field(init=False, repr=False, compare=False)
    operators: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Each step asks for these of each node, and plans may be large.
        object.__setattr__(self, "reads", collections_read(self.plan))
        object.__setattr__(self, "inputs", self.reads | self.named)
        object.__setattr__(self, "has_constants", _has_constants(self.plan))
        object.__setattr__(self, "operators", operators(self.plan))

    @property
    def is_temporal(self) -> bool:
        """True if it changes as time goes on, although no input does."""
        return isinstance(self.plan, TemporalState)


@dataclass(frozen=True, slots=True)
class FailedNode:
    """A collection that no step can advance for now, and why; those that depend on it stay behind with it.

    Attributes:
        error: Why.
        inputs: The collections that it depends on.
        owner: Of an arrangement: the object that it serves, which fails for the same reason.
    """

    id: GlobalId
    name: str
    error: DatabaseError
    inputs: frozenset[GlobalId] = frozenset()
    owner: GlobalId | None = None

    @property
    def operators(self) -> str:
        """Nothing computes it."""
        return ""


@dataclass(frozen=True, slots=True)
class SinkNode:
    """A collection without content, whose upper says up to which time a sink has written another one's.

    Attributes:
        input: What it writes.
        sink: What it writes to.
        checks: Those that are blocking, of its input and of what that is computed from.
    """

    id: GlobalId
    name: str
    input: GlobalId
    sink: Sink
    checks: frozenset[GlobalId] = frozenset()

    @property
    def inputs(self) -> frozenset[GlobalId]:
        """What it writes, and what may keep it from that."""
        return self.checks | {self.input}

    @property
    def operators(self) -> str:
        """What it does, for people."""
        return self.sink.operators


Node = SourceNode | TableNode | MaintainedNode | SinkNode | FailedNode


def owner_of(node: Node) -> GlobalId | None:
    """Returns the object that a collection serves, if it is none itself."""
    return node.owner if isinstance(node, SourceNode | MaintainedNode | FailedNode) else None


@dataclass(frozen=True)
class Graph:
    """All collections of a timeline, each after the ones it reads.

    Raises:
        InternalError: A node stands before one of its inputs, or reads what is not in the graph.
    """

    timeline: str
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        seen: set[GlobalId] = set()
        for node in self.nodes:
            missing = node.inputs - seen
            if missing:
                raise InternalError(f'"{node.name}" reads {sorted(missing)}, which no node before it provides')
            seen.add(node.id)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def over_stored(self, stored: Stored) -> Graph:
        """Returns the graph of the same collections, of which some have these columns by now (`over_stored`)."""
        return Graph(
            self.timeline,
            tuple(
                replace(one, plan=over_stored(one.plan, stored))
                if isinstance(one, MaintainedNode) and one.reads & stored.keys()
                else one
                for one in self.nodes
            ),
        )

    @cached_property
    def by_id(self) -> dict[GlobalId, Node]:
        """The nodes by their ids."""
        return {node.id: node for node in self.nodes}

    def upstream(self, wanted: frozenset[GlobalId]) -> frozenset[GlobalId]:
        """Returns `wanted` and everything that they depend on."""
        reached: set[GlobalId] = set()
        for node in reversed(self.nodes):
            if node.id in wanted or node.id in reached:
                reached |= {node.id, *node.inputs}
        return frozenset(reached)

    def downstream(self, wanted: Set[GlobalId]) -> frozenset[GlobalId]:
        """Returns `wanted` and everything that depends on them."""
        reached = set(wanted)
        for node in self.nodes:
            if not reached.isdisjoint(node.inputs):
                reached.add(node.id)
        return frozenset(reached)


def _has_constants(plan: Physical) -> bool:
    if isinstance(plan, ConstantRows):
        return bool(plan.rows)
    return any(_has_constants(one) for one in physical_inputs(plan))
