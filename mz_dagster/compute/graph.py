"""The graph of collections of one timeline, as a step sees it.

Pure data: which collections there are, what each is made of, and in which order a step may visit
them. The adapter builds it from the catalog; nothing here reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ConstantRows, Physical, TemporalState, collections_read, physical_inputs
from mz_dagster.storage.source import FileSource


@dataclass(frozen=True, slots=True)
class SourceNode:
    """Is a collection filled from outside, through bindings and an envelope.

    Attributes:
        key: The columns by which large batches of it are laid out; none for no layout.
    """

    id: GlobalId
    name: str
    source: FileSource
    key: tuple[int, ...] = ()

    @property
    def inputs(self) -> frozenset[GlobalId]:
        """No collection is read."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class TableNode:
    """Is a collection filled by sessions; a step only closes its times."""

    id: GlobalId
    name: str

    @property
    def inputs(self) -> frozenset[GlobalId]:
        """No collection is read."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class MaintainedNode:
    """Is a collection that is a plan's output: a materialized view, an arrangement or an index of its own.

    Attributes:
        plan: Reads collections by their GlobalIds only.
        named: The collections that its query names. A plan may read fewer, where a condition is never true for
            example; the catalog still holds its upper to theirs.
        key: The columns by which large batches of it are laid out; none for no layout.
        owner: Of an arrangement: the object that it serves.
    """

    id: GlobalId
    name: str
    plan: Physical
    named: frozenset[GlobalId] = frozenset()
    key: tuple[int, ...] = ()
    owner: GlobalId | None = None

    @property
    def inputs(self) -> frozenset[GlobalId]:
        """The collections that it depends on: it never passes their uppers."""
        return self.reads | self.named

    @property
    def reads(self) -> frozenset[GlobalId]:
        """The collections that the plan reads."""
        return collections_read(self.plan)

    @property
    def has_constants(self) -> bool:
        """True if the plan holds rows of its own, so that it has output even when no input ever has."""
        return _has_constants(self.plan)

    @property
    def is_temporal(self) -> bool:
        """True if it changes as time goes on, although no input does."""
        return isinstance(self.plan, TemporalState)


Node = SourceNode | TableNode | MaintainedNode


@dataclass(frozen=True)
class Graph:
    """Is all collections of a timeline, each after the ones it reads.

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


def _has_constants(plan: Physical) -> bool:
    if isinstance(plan, ConstantRows):
        return bool(plan.rows)
    return any(_has_constants(one) for one in physical_inputs(plan))
