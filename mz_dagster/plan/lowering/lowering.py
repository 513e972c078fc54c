"""The walk from the logical plan to the physical one, and what it keeps as arrangements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from mz_dagster.budget import budget
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.lowering.arrangement_elision import elide_arrangements
from mz_dagster.plan.lowering.fusion import fused, linear_over, selected
from mz_dagster.plan.lowering.lookup_order import lookup_orders
from mz_dagster.plan.lowering.prejoin import plain_columns, prejoined
from mz_dagster.plan.lowering.reduce import lowered_reduce
from mz_dagster.plan.lowering.singletons import with_singletons_joined
from mz_dagster.plan.lowering.staged import ONE_STAGE, Stages, buckets_for, results_of, staged, state_key
from mz_dagster.plan.physical import (
    Accumulate,
    Arrangement,
    Catch,
    ConstantRows,
    DeltaJoin,
    MaintainedPlan,
    NegateAll,
    OperatorKind,
    Physical,
    ReadCollection,
    Repeat,
    SharedPlan,
    SnapshotPlan,
    Staged,
    StateOperator,
    TemporalState,
    TopRows,
    UnionAll,
    Unnest,
    Windowed,
    collections_read,
    has_join,
    identity,
    may_cancel,
    operator_kind,
    physical_inputs,
)
from mz_dagster.plan.relation import (
    CatchErrors,
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
    inputs_of,
)
from mz_dagster.plan.representations import with_one_zero
from mz_dagster.plan.rewriting import gets_of, reference
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import BOOL, INT8, MZ_TIMESTAMP, Column, RelationType, smallest_key


def lower_to_maintained_plan(relation: Relation, names: tuple[str, ...]) -> MaintainedPlan:
    """Returns the plan by which `relation` is maintained, with output columns called `names`.

    Precondition: `relation` has no subqueries, which `decorrelate` sees to, and no two `Let`s of the same id, which
    `optimize` does.

    Cost: an arrangement costs one more write per step in which it changes.
    """
    lowering = _Lowering(arranges=True)
    output = lowering.lowered(relation)
    arrangements, output = elide_arrangements(lowering.arrangements, lowering.for_sharing, output)
    return MaintainedPlan(arrangements, output, relation.relation_type.with_names(names))


def lower_to_snapshot_plan(relation: Relation) -> SnapshotPlan:
    """Returns the plan by which `relation` is computed once, at one time: operators may stand below any others.

    A group is recomputed as a whole, in one stage. Inputs that never retract get no operator of their own kind: what
    arrives at one time need not be consolidated, so it may retract.
    """
    lowering = _Lowering(arranges=False)
    output = lowering.lowered(relation)
    return SnapshotPlan(tuple(lowering.shared), output)


@dataclass(slots=True)
class _Lowering:
    arranges: bool
    arrangements: list[Arrangement] = field(default_factory=list)
    shared: list[SharedPlan] = field(default_factory=list)
    #: The arrangements that are there only because a plan occurs several times.
    for_sharing: set[GlobalId] = field(default_factory=set)
    _local: dict[GlobalId, Physical] = field(default_factory=dict)
    _known: dict[object, ReadCollection] = field(default_factory=dict)
    #: Of which collections of others each is made.
    _made: dict[GlobalId, frozenset[GlobalId]] = field(default_factory=dict)

    def lowered(self, relation: Relation) -> Physical:
        """Returns the physical plan of `relation`."""
        base, mfp = fused(relation)
        return linear_over(self._operator(base), mfp, relation.relation_type)

    def _operator(self, relation: Relation) -> Physical:
        match relation:
            case Get() if relation.id in self._local:
                return self._local[relation.id]
            case Get():
                return ReadCollection(relation.id, relation.relation_type, relation.name)
            case Constant():
                return ConstantRows(relation.rows, relation.relation_type)
            case Negate():
                return NegateAll(self.lowered(relation.input), relation.relation_type)
            case Union():
                return self._united([self.lowered(one) for one in relation.inputs], relation.relation_type)
            case Join():
                return self._join(relation)
            case Reduce():
                return lowered_reduce(relation, self.lowered(relation.input), self)
            case Threshold():
                return self._threshold(relation)
            case TopK():
                return self._top_rows(relation)
            case Window():
                return self._window(relation)
            case TemporalFilter():
                return self._temporal(relation)
            case CatchErrors():
                return Catch(self.lowered(relation.input), relation.relation_type)
            case RepeatRow():
                return Repeat(self.lowered(relation.input), relation.count, relation.relation_type)
            case FlatMap():
                below = self.lowered(relation.input)
                return Unnest(below, relation.arrays, relation.ordinality, relation.relation_type)
            case Let():
                value = self.lowered(relation.value)
                self._local[relation.id] = self.several(value, lookup_key(relation))
                return self.lowered(relation.body)
            case Map() | Filter() | Projection() | DependentJoin():
                raise InternalError(f"{type(relation).__name__} cannot be lowered by itself")
            case _:
                assert_never(relation)

    def several(self, plan: Physical, key: tuple[int, ...] = ()) -> Physical:
        """Returns what several read, by `key`, instead of `plan`; `plan` itself, if it is cheap to compute again."""
        if _is_cheap(plan):
            return plan
        if not self.arranges:
            return self._cut_off(plan)
        kept = len(self.arrangements)
        read = self._arranged(plan, key or default_key(plan.relation_type))
        self.for_sharing |= {one.id for one in self.arrangements[kept:]}
        return read

    def _bounded(self, plan: Physical) -> Physical:
        """Returns what a state operator of a plan that runs once reads: `plan`, cut off if it is large.

        How long a plan takes to be planned, and how much memory, grows by more than its size, and what is too deep is
        not planned at all.
        """
        operators = list(_operators(plan))
        keyed = sum(operator_kind(one) is OperatorKind.KEYED for one in operators)
        is_large = keyed >= budget().planned_states or len(operators) > budget().planned_operators
        return self._cut_off(plan) if is_large else plan

    def _united(self, inputs: Sequence[Physical], relation_type: RelationType) -> Physical:
        """Returns the sum of plans; of many operators in a plan that runs once, of sums that are computed in turn."""
        parts: list[list[Physical]] = [[]]
        size = 0
        for one in inputs:
            own = sum(1 for _ in _operators(one))
            if parts[-1] and size + own > budget().planned_operators:
                parts.append([])
                size = 0
            parts[-1].append(one)
            size += own
        if self.arranges or len(parts) == 1:
            return UnionAll(tuple(inputs), relation_type)
        return UnionAll(tuple(self._cut_off(UnionAll(tuple(each), relation_type)) for each in parts), relation_type)

    def _cut_off(self, plan: Physical) -> ReadCollection:
        one = SharedPlan(GlobalId(f"shared:{len(self.shared) + 1}"), plan)
        self.shared.append(one)
        return ReadCollection(one.id, plan.relation_type, str(one.id))

    def _join(self, relation: Join) -> Physical:
        if self.arranges and (kept := prejoined(relation, list(map(self._made_of, relation.inputs)), self._local)):
            return self.lowered(kept)
        if self.arranges and (fewer := with_singletons_joined(relation)):
            return self.lowered(fewer)
        inputs = [self.lowered(one) for one in relation.inputs]
        # Rows that cancel are joined with all others that do: of n scalar subqueries, each a value, a default and the
        # default taken back, 3^n updates are made for one row. What is kept, or cut off, is consolidated.
        several_cancel = sum(map(may_cancel, inputs)) > 1
        # At one time an input is read twice: for its rows and for its errors.
        for i, one in enumerate(inputs):
            if has_join(one) or (several_cancel and may_cancel(one)):
                inputs[i] = self._arranged(one, _join_key(relation, i)) if self.arranges else self._cut_off(one)
        # Rows are looked up by representation, so equal values need the same one.
        classes = tuple(tuple(with_one_zero(scalar) for scalar in one) for one in relation.equivalences)
        join = DeltaJoin(tuple(inputs), classes, (), relation.relation_type, relation.null_safe)
        return replace(join, orders=lookup_orders(join))

    def _made_of(self, relation: Relation) -> frozenset[GlobalId]:
        """Returns the collections that a relation is made of, what `Let`s have bound and what is arranged included."""
        kept = {one.id: one.plan for one in self.arrangements}

        def made_of(id: GlobalId) -> frozenset[GlobalId]:
            if id not in self._made:
                plan = self._local.get(id) or kept.get(id)
                read = frozenset[GlobalId]() if plan is None else collections_read(plan)
                self._made[id] = frozenset({id}) if plan is None else frozenset().union(*map(made_of, read))
            return self._made[id]

        return frozenset().union(*(made_of(get.id) for get in gets_of(relation)))

    def _threshold(self, relation: Threshold) -> Physical:
        columns = relation.relation_type.columns
        below = self.lowered(relation.input)
        keys = [with_one_zero(reference(below.relation_type, position)) for position in range(len(columns))]
        row = selected(below, [], keys, relation.relation_type)
        counted = RelationType((*columns, Column("n", INT8, False)), frozenset({frozenset(range(len(columns)))}))
        state = self.kept(Accumulate(row, len(columns), counted))
        count = ColumnRef(len(columns), INT8, False, "n")
        positive = Call("gt_int8", (count, Literal(0, INT8)), BOOL, False)
        all_columns = [reference(counted, position) for position in range(len(columns) + 1)]
        return Repeat(selected(state, [positive], all_columns, counted), len(columns), relation.relation_type)

    def _top_rows(self, relation: TopK) -> Physical:
        if relation.limit is None and relation.offset == 0:
            return self.lowered(relation.input)
        if relation.limit == 0:
            return ConstantRows((), relation.relation_type)
        function = TopRows(relation.order, relation.limit, relation.offset, relation.ties)
        below = relation.input.relation_type
        # Without a limit no row of a bucket can be left out before the last stage.
        stages = ONE_STAGE
        if relation.limit is not None:
            monotonic = below.monotonic and relation.offset == 0
            stages = self.stages(relation.group_size, monotonic, relation.limit + relation.offset)
        node = staged(self.lowered(relation.input), relation.group, function, stages)
        return results_of(node, self.kept(node), range(below.arity), relation.relation_type)

    def _window(self, relation: Window) -> Physical:
        below = self.lowered(relation.input)
        results = relation.relation_type.columns[below.relation_type.arity :]
        node = staged(below, relation.partition, Windowed(relation.order, relation.functions), ONE_STAGE, results)
        return results_of(node, self.kept(node), range(relation.relation_type.arity), relation.relation_type)

    def _temporal(self, relation: TemporalFilter) -> Physical:
        below = relation.relation_type.columns
        bounds = (
            Column("valid_from", MZ_TIMESTAMP, False), Column("valid_to", MZ_TIMESTAMP), Column("valid", BOOL, False)
        )  # fmt: skip
        node = TemporalState(
            self.lowered(relation.input), relation.lower, relation.upper, RelationType((*below, *bounds))
        )
        valid = reference(node.relation_type, len(below) + 2)
        kept = [reference(node.relation_type, position) for position in range(len(below))]
        return selected(self.kept(node), [valid], kept, relation.relation_type)

    def stages(self, group_size: int | None, monotonic: bool, kept: int = 1) -> Stages:
        """Returns the stages for groups of that size: one in a plan that runs once, which keeps no state.

        Args:
            group_size: How many rows a group is expected to have at most; None if nobody said.
            monotonic: Whether the input only grows.
            kept: How many rows a stage keeps of a bucket at most.
        """
        if not self.arranges:
            return ONE_STAGE
        return Stages((1,), monotonic=True) if monotonic else Stages(buckets_for(group_size, kept))

    def kept(self, node: StateOperator) -> Physical:
        """Returns what reads the output of `node`: its arrangement, or the operator itself in a plan that runs once."""
        if not self.arranges:
            node = replace(node, input=self._bounded(node.input))
            return replace(node, once=True) if isinstance(node, Staged) else node
        match node:
            case Accumulate():
                return self._arranged(node, tuple(range(node.key_arity)))
            case Staged():
                return self._arranged(node, state_key(node))
            case TemporalState():
                return self._arranged(node, tuple(range(node.input.relation_type.arity)))
            case _:
                assert_never(node)

    def _arranged(self, plan: Physical, key: tuple[int, ...]) -> ReadCollection:
        known = identity(plan)
        if known not in self._known:
            id = GlobalId(f"arrangement:{len(self.arrangements) + 1}")
            relation_type = with_unique_names(plan.relation_type)
            self.arrangements.append(Arrangement(id, plan, relation_type, key))
            self._known[known] = ReadCollection(id, relation_type, str(id))
        return self._known[known]


def default_key(relation_type: RelationType) -> tuple[int, ...]:
    """Returns the key of an arrangement that names none: the smallest unique key, else all columns."""
    return smallest_key(relation_type.keys) or tuple(range(relation_type.arity))


def lookup_key(let: Let) -> tuple[int, ...]:
    """Returns the columns by which the first join looks up the value of `let`; none if no join does."""

    def found(relation: Relation) -> tuple[int, ...]:
        if isinstance(relation, Join):
            for index, one in enumerate(relation.inputs):
                base, mfp = fused(one)
                if isinstance(base, Get) and base.id == let.id:
                    places = {mfp.projection[position] for position in _join_key(relation, index)}
                    return tuple(sorted(place for place in places if place < mfp.arity))
        return next(filter(None, map(found, inputs_of(relation))), ())

    return found(let.body)


def _join_key(join: Join, index: int) -> tuple[int, ...]:
    """Returns the columns of input `index` by which the join looks it up."""
    key: set[int] = set()
    for one in join.equivalences:
        key |= plain_columns(join, index, one)
    return tuple(sorted(key)) or default_key(join.inputs[index].relation_type)


def _is_cheap(plan: Physical) -> bool:
    """Returns whether what is shared may as well be computed for each of its uses."""
    operators = list(_operators(plan))
    keyed = sum(operator_kind(one) is OperatorKind.KEYED for one in operators)
    return len(operators) <= budget().cheap_operators and keyed <= 1 and not has_join(plan)


def _operators(plan: Physical) -> Iterator[Physical]:
    yield plan
    for one in physical_inputs(plan):
        yield from _operators(one)


def with_unique_names(relation_type: RelationType) -> RelationType:
    """Returns the type with names that a shard can have: unique, and none of its own."""
    names: list[str] = []
    for i, name in enumerate(relation_type.names):
        unusable = relation_type.names.count(name) > 1 or name.startswith("mz_") or not name.isidentifier()
        names.append(f"c{i}" if unusable else name)
    if len({name.lower() for name in names}) != len(names):
        names = [f"c{i}" for i in range(relation_type.arity)]
    return relation_type.with_names(tuple(names))
