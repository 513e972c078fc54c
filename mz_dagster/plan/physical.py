"""The physical plan: what the renderer runs.

A tree of frozen nodes, each naming the operator in `compute/` that renders it. `lowering.py` makes it
from the logical plan. Whatever must be looked up by a later step (an input of a join that is itself a
join, for example) becomes an *arrangement*: a collection of its own, owned by the object, with
its own shard and frontiers, so that the operators above read it like any other collection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.scalar import Literal, Scalar
from mz_dagster.plan.types import RelationType


class OperatorKind(Enum):
    """Says how an operator turns updates of its inputs into updates of its output."""

    LINEAR = "linear"
    BILINEAR = "bilinear"
    KEYED = "keyed"


@dataclass(frozen=True, slots=True)
class MapFilterProject:
    """Is a fused run of maps, filters and a projection over one row.

    Evaluation: each step of `steps` in order, either a scalar that appends a column or a predicate; a row whose
    predicate is false or NULL is dropped and nothing after it is evaluated; the first error ends
    the row as an error. Then the columns at `projection` are kept.

    Attributes:
        arity: The number of input columns.
        steps: `("map", scalar)` or `("filter", scalar)`; positions count input columns, then mapped ones.
        projection: Positions of the output columns.
    """

    arity: int
    steps: tuple[tuple[str, Scalar], ...]
    projection: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """True if the row leaves as it came."""
        return not self.steps and self.projection == tuple(range(self.arity))


@dataclass(frozen=True, slots=True)
class ReadCollection:
    """Reads the updates of a collection, with the part of the plan that can be pushed into the read.

    Attributes:
        id: A GlobalId, or `arrangement:N` for the N-th arrangement of the same maintained plan.
        relation_type: Of the collection itself.
        name: For EXPLAIN.
    """

    id: GlobalId
    relation_type: RelationType
    name: str = ""


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """Is a fixed multiset of rows: updates at the first time only."""

    rows: tuple[tuple[Literal, ...], ...]
    relation_type: RelationType


@dataclass(frozen=True, slots=True)
class Linear:
    """Applies a `MapFilterProject` to each update; time and diff are kept."""

    input: Physical
    mfp: MapFilterProject
    relation_type: RelationType


@dataclass(frozen=True, slots=True)
class NegateAll:
    """Negates each diff."""

    input: Physical
    relation_type: RelationType


@dataclass(frozen=True, slots=True)
class UnionAll:
    """Concatenates updates."""

    inputs: tuple[Physical, ...]
    relation_type: RelationType


@dataclass(frozen=True, slots=True)
class DeltaJoin:
    """Joins n inputs by one term per input; each input is linear over arranged collections.

    Attributes:
        inputs: Each built of `ReadCollection`, `ConstantRows`, `Linear`, `NegateAll`, `UnionAll` only, so that its
            history can be read from shards.
        equivalences: As in the logical `Join`, over the concatenated columns.
        orders: For term i, the order in which the other inputs are looked up.
        relation_type: Of the concatenated columns.
    """

    inputs: tuple[Physical, ...]
    equivalences: tuple[tuple[Scalar, ...], ...]
    orders: tuple[tuple[int, ...], ...]
    relation_type: RelationType


Physical = ReadCollection | ConstantRows | Linear | NegateAll | UnionAll | DeltaJoin


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Is a subplan whose output is kept as a collection of its own, because a later step looks it up.

    Attributes:
        id: `arrangement:N`, under which the plan reads it.
        plan: What it holds.
        relation_type: Its columns as it is stored and read: the plan's, under names that a shard can hold.
        key: The columns by which it is looked up.
    """

    id: GlobalId
    plan: Physical
    relation_type: RelationType
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MaintainedPlan:
    """Is what a materialized view, or an index on a view, runs at every step.

    Attributes:
        arrangements: In dependency order; each may read those before it.
        output: The view's own updates.
        relation_type: The output's, with the view's column names.
    """

    arrangements: tuple[Arrangement, ...]
    output: Physical
    relation_type: RelationType


def operator_kind(node: Physical) -> OperatorKind:
    """Returns the kind of `node`'s operator."""
    match node:
        case ReadCollection() | ConstantRows() | Linear() | NegateAll() | UnionAll():
            return OperatorKind.LINEAR
        case DeltaJoin():
            return OperatorKind.BILINEAR
        case _:
            assert_never(node)


def physical_inputs(node: Physical) -> tuple[Physical, ...]:
    """Returns the direct inputs, in order."""
    match node:
        case ReadCollection() | ConstantRows():
            return ()
        case Linear() | NegateAll():
            return (node.input,)
        case UnionAll() | DeltaJoin():
            return node.inputs
        case _:
            assert_never(node)


def collections_read(node: Physical) -> frozenset[GlobalId]:
    """Returns the ids of all collections that `node` reads, arrangements included."""
    if isinstance(node, ReadCollection):
        return frozenset({node.id})
    return frozenset().union(*(collections_read(one) for one in physical_inputs(node)))


def rename_collections(node: Physical, ids: Mapping[GlobalId, GlobalId]) -> Physical:
    """Returns `node` with each collection in `ids` read under its new id; others are read as before."""
    match node:
        case ReadCollection():
            return replace(node, id=ids.get(node.id, node.id))
        case ConstantRows():
            return node
        case Linear() | NegateAll():
            return replace(node, input=rename_collections(node.input, ids))
        case UnionAll() | DeltaJoin():
            return replace(node, inputs=tuple(rename_collections(one, ids) for one in node.inputs))
        case _:
            assert_never(node)
