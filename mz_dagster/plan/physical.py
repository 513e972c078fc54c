"""The physical plan: what the renderer runs.

A tree of frozen nodes, each naming the operator in `compute/` that renders it. `lowering/` makes it
from the logical plan. Whatever must be looked up by a later step (an input of a join that is itself a
join, for example) or is the state of a keyed operator becomes an *arrangement*: a collection of its own, owned by the
object, with its own shard and frontiers, so that the operators above read it like any other collection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, assert_never, cast

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.object_cache import cached_by_object
from mz_dagster.plan.relation import Aggregate, ColumnOrder, WindowFunction
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar, signs_of_zeros
from mz_dagster.scalars.types import Column, Kind, RelationType, ScalarType


class OperatorKind(Enum):
    """Says how an operator turns updates of its inputs into updates of its output."""

    LINEAR = "linear"
    BILINEAR = "bilinear"
    KEYED = "keyed"


@dataclass(frozen=True, slots=True)
class MapFilterProject:
    """A fused run of maps, filters and a projection over one row.

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

    def passed(self, position: int) -> int | None:
        """Returns which input column an output column is, None if it is a mapped one."""
        column = self.projection[position]
        return column if column < self.arity else None


@dataclass(frozen=True, slots=True)
class ReadCollection:
    """Reads the updates of a collection, with the part of the plan that can be pushed into the read.

    Attributes:
        id: A GlobalId, or `arrangement:N` for the N-th arrangement of the same maintained plan.
        relation_type: Of the collection itself.
        name: For EXPLAIN.
        where: Predicates that what reads it asks of each row: storage skips the files in which none passes. They do not
            decide the rows that the plan has.
    """

    id: GlobalId
    relation_type: RelationType
    name: str = ""
    where: tuple[Scalar, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """A fixed multiset of rows: updates at the first time only."""

    rows: tuple[tuple[Literal, ...], ...]
    relation_type: RelationType


@dataclass(frozen=True, slots=True)
class Linear:
    """Applies a `MapFilterProject` to each update; time and diff are kept."""

    input: Physical
    mfp: MapFilterProject
    relation_type: RelationType

    def passed(self, position: int) -> int | None:
        """Returns which input column an output column is, None if it is a mapped one."""
        return self.mfp.passed(position)


@dataclass(frozen=True, slots=True)
class NegateAll:
    """Negates each row's diff; an error's stays as it is."""

    input: Physical
    relation_type: RelationType

    def passed(self, position: int) -> int:
        """Returns the same column of the input."""
        return position


@dataclass(frozen=True, slots=True)
class UnionAll:
    """Concatenates updates."""

    inputs: tuple[Physical, ...]
    relation_type: RelationType


@dataclass(frozen=True, slots=True)
class DeltaJoin:
    """Joins n inputs by one term per input; each input is linear over arranged collections.

    Attributes:
        inputs: In a maintained plan, each built of `ReadCollection`, `ConstantRows`, `UnionAll` and `EachUpdate` only,
            so that its history can be read from shards.
        equivalences: As in the logical `Join`, over the concatenated columns.
        orders: For term i, the order in which the other inputs are looked up.
        relation_type: Of the concatenated columns.
        null_safe: As in the logical `Join`.
        first: With which input the join begins where it is computed at one time.
    """

    inputs: tuple[Physical, ...]
    equivalences: tuple[tuple[Scalar, ...], ...]
    orders: tuple[tuple[int, ...], ...]
    relation_type: RelationType
    null_safe: frozenset[int] = frozenset()
    first: int = 0


@dataclass(frozen=True, slots=True)
class Repeat:
    """Multiplies each diff by the row's bigint column at `count`, which is dropped."""

    input: Physical
    count: int
    relation_type: RelationType

    def passed(self, position: int) -> int:
        """Returns which input column an output column is."""
        return position if position < self.count else position + 1


@dataclass(frozen=True, slots=True)
class Catch:
    """Makes rows of errors, with the error in a last column, as the logical `CatchErrors` does."""

    input: Physical
    relation_type: RelationType

    def passed(self, _: int) -> None:
        """Returns None: an error is there whatever its columns would have been."""


@dataclass(frozen=True, slots=True)
class Unnest:
    """Puts each row beside the elements of its last columns, which are arrays, as the logical `FlatMap` does."""

    input: Physical
    arrays: int
    ordinality: bool
    relation_type: RelationType

    def passed(self, position: int) -> int | None:
        """Returns which input column an output column is, None for elements and their numbers."""
        return position if position < self.input.relation_type.arity - self.arrays else None


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Keeps, per key, the number of rows and sums over them: the state of counts, sums, DISTINCT and set operations.

    A state operator: its output is its state, a collection of its own, and what is above reads it.

    Attributes:
        input: Its first `key_arity` columns are the key, in which zeros have no sign; the others are contributions: NOT
            NULL bigint or numeric columns.
        key_arity: How many columns the key has; 0 for one group of everything.
        relation_type: Of the state: the key, the number of rows (bigint, may be negative; a key with number and sums
            all 0 has no row), the sums in the types of the contributions.
    """

    input: Physical
    key_arity: int
    relation_type: RelationType


@dataclass(frozen=True, slots=True, repr=False)
class TopRows:
    """A stage function: of each bucket the first rows in an order; `offset` is left out by the last stage only.

    With `ties`, which has a limit and no offset, those that equal the last one in the order, too.
    """

    order: tuple[ColumnOrder, ...]
    limit: int | None
    offset: int = 0
    ties: bool = False

    def __repr__(self) -> str:  # digests of plans are made of it, and older ones have no ties
        ties = ", ties=True" if self.ties else ""
        return f"TopRows(order={self.order!r}, limit={self.limit!r}, offset={self.offset!r}{ties})"


@dataclass(frozen=True, slots=True)
class Extremes:
    """A stage function: of each bucket one row with the group and, per other column, what its values come to.

    Attributes:
        functions: For each column of the input that is not of the group, in order, a hierarchical one. Of parts of a
            bucket they come to the same as of the whole.
    """

    functions: tuple[AggregateFunction, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """A stage function, of a single stage: one row per group with ordered aggregates (array_agg, string_agg).

    The result's columns follow the input's in the state: at level 0 they are NULL; at level 1 the input's
    columns that are not of the group are.
    """

    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class Windowed:
    """A stage function, of a single stage: each row of the group with the values of window functions behind it.

    At level 0 the functions' columns are NULL.
    """

    order: tuple[ColumnOrder, ...]
    functions: tuple[WindowFunction, ...]


StageFunction = TopRows | Extremes | Gathered | Windowed


@dataclass(frozen=True, slots=True)
class Staged:
    """Recomputes the groups that are touched, in a tournament of stages.

    A state operator. Its state holds levels: level 0 are the input's rows, level s + 1 what stage s makes of the
    buckets of level s, and the last level, `len(buckets)`, is the result, which what is above filters out of it. A row
    of level 0 lies in bucket `hash(columns not of the group) mod buckets[0]` of its group, and what a stage makes of a
    bucket lies in bucket `its number mod buckets[s]` of level s. A changed row makes each stage read one bucket.

    Attributes:
        group: Positions of the group's columns in the input.
        function: What a stage does with one bucket.
        buckets: How many buckets each stage has, powers of two, falling; the last is 1.
        monotonic: The input never retracts: then only the last level is kept (one stage), and a retraction that comes
            all the same is an error of the data.
        relation_type: Of the state: `level` integer, `bucket` bigint, the input's columns, the function's results
            (`Gathered`, `Windowed`); all but level and bucket nullable.
        once: The plan runs once, so there is no state: only the last level is made.
    """

    input: Physical
    group: tuple[int, ...]
    function: StageFunction
    buckets: tuple[int, ...]
    monotonic: bool
    relation_type: RelationType
    once: bool = False

    @property
    def last_level(self) -> int:
        """The level of the result."""
        return len(self.buckets)


@dataclass(frozen=True, slots=True)
class TemporalState:
    """Keeps the rows that are valid, or will be: the state of a temporal filter.

    A state operator. A row (data, lower, upper) is in the state from its arrival on: with `valid` false as long as
    the time is before `lower`, with `valid` true while it is in `[lower, upper)`, and gone from then on. What is above
    keeps the valid ones.

    Attributes:
        lower: Bounds over the input's columns; the row's lower bound is their maximum.
        upper: Likewise; the minimum.
        relation_type: Of the state: the input's columns, `valid_from` mz_timestamp (0 without a bound), `valid_to`
            mz_timestamp (NULL without a bound), `valid` boolean.
    """

    input: Physical
    lower: tuple[Scalar, ...]
    upper: tuple[Scalar, ...]
    relation_type: RelationType


#: What makes something of each update of its one input by itself. Each tells by `passed` which columns it passes on, so
#: that lookups and bounds go through it.
EachUpdate = Linear | NegateAll | Repeat | Catch | Unnest
StateOperator = Accumulate | Staged | TemporalState
_OneInput = EachUpdate | StateOperator

Physical = ReadCollection | ConstantRows | UnionAll | DeltaJoin | _OneInput


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A subplan whose output is kept as a collection of its own, because a later step looks it up.

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
    """What a materialized view, or an index on a view, runs at every step.

    Attributes:
        arrangements: In dependency order; each may read those before it.
        output: The view's own updates.
        relation_type: The output's, with the view's column names.
    """

    arrangements: tuple[Arrangement, ...]
    output: Physical
    relation_type: RelationType

    def over(self, ids: Mapping[GlobalId, GlobalId]) -> MaintainedPlan:
        """Returns the plan with each collection in `ids` read under its new id."""
        arrangements = tuple(replace(one, plan=rename_collections(one.plan, ids)) for one in self.arrangements)
        return replace(self, arrangements=arrangements, output=rename_collections(self.output, ids))


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """A subplan that a plan computed once reads several times.

    Attributes:
        id: `shared:N`, under which the plan reads it like a collection.
        plan: What it holds.
    """

    id: GlobalId
    plan: Physical


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """What a query at one time runs.

    Attributes:
        shared: In dependency order; each may read those before it.
        output: The query's rows.
    """

    shared: tuple[SharedPlan, ...]
    output: Physical


def operator_kind(node: Physical) -> OperatorKind:
    """Returns the kind of `node`'s operator."""
    if isinstance(node, StateOperator):
        return OperatorKind.KEYED
    return OperatorKind.BILINEAR if isinstance(node, DeltaJoin) else OperatorKind.LINEAR


def physical_inputs(node: Physical) -> tuple[Physical, ...]:
    """Returns the direct inputs, in order."""
    if isinstance(node, _OneInput):
        return (node.input,)
    match node:
        case ReadCollection() | ConstantRows():
            return ()
        case UnionAll() | DeltaJoin():
            return node.inputs
        case _:
            assert_never(node)


def is_linear(node: Physical) -> bool:
    """Returns whether a plan treats each row by itself: it neither groups nor joins."""
    if isinstance(node, DeltaJoin | StateOperator):
        return False
    return all(is_linear(one) for one in physical_inputs(node))


def with_physical_inputs(node: Physical, inputs: Sequence[Physical]) -> Physical:
    """Returns `node` over other inputs, in the order of `physical_inputs`; itself if they are the same."""
    if all(new is old for new, old in zip(inputs, physical_inputs(node), strict=True)):
        return node
    if isinstance(node, _OneInput):
        return replace(node, input=inputs[0])
    match node:
        case ReadCollection() | ConstantRows():
            return node
        case UnionAll() | DeltaJoin():
            return replace(node, inputs=tuple(inputs))
        case _:
            assert_never(node)


def collections_read(node: Physical) -> frozenset[GlobalId]:
    """Returns the ids of all collections that `node` reads, arrangements included."""
    return frozenset(one.id for one in reads_of(node))


@cached_by_object(most=20_000)
def reads_of(node: Physical) -> tuple[ReadCollection, ...]:
    """Returns where a plan reads collections, each collection once."""
    found: dict[GlobalId, ReadCollection] = {}
    seen: set[int] = set()
    below = [node]
    while below:
        one = below.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, ReadCollection):
            found.setdefault(one.id, one)
        below += reversed(physical_inputs(one))
    return tuple(found.values())


@cached_by_object(most=20_000)
def constant_rows(node: Physical) -> int:
    """Returns how many constant rows a plan has."""
    own = len(node.rows) if isinstance(node, ConstantRows) else 0
    return own + sum(map(constant_rows, physical_inputs(node)))


def has_join(node: Physical) -> bool:
    """Returns whether a join is in a plan."""
    return isinstance(node, DeltaJoin) or any(map(has_join, physical_inputs(node)))


def may_cancel(node: Physical) -> bool:
    """Returns whether updates of one time may be there that sum to zero, as those of a default that is replaced."""
    match node:
        case NegateAll():
            return True
        case Accumulate() | Staged() | TemporalState():
            return False
        case _:
            return any(map(may_cancel, physical_inputs(node)))


def rename_collections(node: Physical, ids: Mapping[GlobalId, GlobalId]) -> Physical:
    """Returns `node` with each collection in `ids` read under its new id; others are read as before."""
    if isinstance(node, ReadCollection):
        return replace(node, id=ids.get(node.id, node.id))
    return with_physical_inputs(node, [rename_collections(one, ids) for one in physical_inputs(node)])


def without_names(node: Physical) -> Physical:
    """Returns `node` without what does not decide its rows: names of columns and collections, known keys."""
    return cast(Physical, _without_names(node))


class Identity:
    """What is equal for plans that have the same rows for all data, as far as their form tells; hashed once.

    Names do not count; the sign of a zero, which equality does not tell, does; and NaN is NaN.
    """

    __slots__ = ("_hash", "_parts")

    def __init__(self, node: Physical) -> None:
        nameless = without_names(node)
        self._parts = nameless, signs_of_zeros(nameless)
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Identity) and self._hash == other._hash and self._parts == other._parts
        )


@cached_by_object(most=20_000)
def identity(node: Physical) -> Identity:
    """Returns the identity of a plan; for the same node it is computed once."""
    return Identity(node)


@cache
def _parameters(kind: Any) -> tuple[str, ...] | None:
    """Returns what the values of a class of nodes are made of; None for what is no node."""
    return tuple(one.name for one in fields(kind) if one.init) if is_dataclass(kind) else None


_FLOATS = frozenset({Kind.FLOAT4, Kind.FLOAT8})


def _with_one_nan(value: Any) -> Any:
    """Returns a literal's value in which every NaN is the same object: else it is not even equal to itself."""
    if value.__class__ is tuple:
        return tuple(map(_with_one_nan, value))
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _without_names(value: object) -> object:
    match value:
        case ConstantRows():  # which are very many literals
            rows = value.rows
            if any(one.type.kind in _FLOATS or one.type.holds(_FLOATS) for one in value.relation_type.columns):
                rows = tuple(tuple(cast(Literal, _without_names(cell)) for cell in row) for row in rows)
            return ConstantRows(rows, cast(RelationType, _without_names(value.relation_type)))
        case Literal(value=float() | tuple() as given):
            return replace(value, value=_with_one_nan(given))
        case (
            ScalarType() | Literal() | (int(), *_)
        ):  # a type is the same with its names, and a list of positions has none
            return value
        case tuple():
            return tuple(map(_without_names, value))
        case RelationType():
            return RelationType(tuple([Column("", one.type, one.nullable) for one in value.columns]))
        case ColumnRef():
            return replace(value, name="")
    node = cast(Any, value)
    names = _parameters(node.__class__)
    if names is None:
        return value
    parts = {name: _without_names(getattr(node, name)) for name in names}
    return replace(node, **{**parts, "name": ""} if isinstance(node, ReadCollection) else parts)
