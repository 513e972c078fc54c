"""The walk from the logical plan to the physical one, and what it keeps as arrangements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import assert_never

from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.lowering.fusion import fused, linear_over, selected
from mz_dagster.plan.lowering.lookup_order import lookup_order
from mz_dagster.plan.lowering.reduce import comparable, lowered_reduce
from mz_dagster.plan.lowering.staged import ONE_STAGE, Stages, buckets_for, results_of, staged, state_key
from mz_dagster.plan.physical import (
    Accumulate,
    Arrangement,
    ConstantRows,
    DeltaJoin,
    MaintainedPlan,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    StateOperator,
    TemporalState,
    TopRows,
    UnionAll,
    Windowed,
    physical_inputs,
    without_names,
)
from mz_dagster.plan.relation import (
    Constant,
    DependentJoin,
    Filter,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
)
from mz_dagster.plan.rewriting import reference
from mz_dagster.plan.scalar import Call, ColumnRef, Literal
from mz_dagster.plan.types import BOOL, INT8, MZ_TIMESTAMP, Column, RelationType, smallest_key


def lower_to_maintained_plan(relation: Relation, names: tuple[str, ...]) -> MaintainedPlan:
    """Returns the plan by which `relation` is maintained, with output columns called `names`.

    Precondition: `relation` has no `Let`, which `optimize` sees to, and no subqueries, which `decorrelate` does.

    Cost: an arrangement costs one more write per step in which it changes.
    """
    lowering = _Lowering(arranges=True)
    output = lowering.lowered(relation)
    return MaintainedPlan(tuple(lowering.arrangements), output, relation.relation_type.with_names(names))


def lower_to_snapshot_plan(relation: Relation) -> Physical:
    """Returns the plan by which `relation` is computed once, at one time: operators may stand below any others.

    A group is recomputed as a whole, in one stage. Inputs that never retract get no operator of their own kind: what
    arrives at one time need not be consolidated, so it may retract.
    """
    return _Lowering(arranges=False).lowered(relation)


@dataclass(slots=True)
class _Lowering:
    arranges: bool
    arrangements: list[Arrangement] = field(default_factory=list)
    _known: dict[tuple[object, ...], ReadCollection] = field(default_factory=dict)

    def lowered(self, relation: Relation) -> Physical:
        """Returns the physical plan of `relation`."""
        base, mfp = fused(relation)
        return linear_over(self._operator(base), mfp, relation.relation_type)

    def _operator(self, relation: Relation) -> Physical:
        match relation:
            case Get():
                return ReadCollection(relation.id, relation.relation_type, relation.name)
            case Constant():
                return ConstantRows(relation.rows, relation.relation_type)
            case Negate():
                return NegateAll(self.lowered(relation.input), relation.relation_type)
            case Union():
                return UnionAll(tuple(self.lowered(one) for one in relation.inputs), relation.relation_type)
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
            case RepeatRow():
                return Repeat(self.lowered(relation.input), relation.count, relation.relation_type)
            case Map() | Filter() | Project() | Let() | DependentJoin():
                raise InternalError(f"{type(relation).__name__} cannot be lowered by itself")
            case _:
                assert_never(relation)

    def _join(self, relation: Join) -> Physical:
        inputs = [self.lowered(one) for one in relation.inputs]
        if self.arranges:
            inputs = [
                self._arranged(one, _join_key(relation, i)) if _has_join(one) else one for i, one in enumerate(inputs)
            ]
        orders = tuple(lookup_order(relation, i) for i in range(len(inputs)))
        return DeltaJoin(tuple(inputs), relation.equivalences, orders, relation.relation_type, relation.null_safe)

    def _threshold(self, relation: Threshold) -> Physical:
        columns = relation.relation_type.columns
        below = self.lowered(relation.input)
        keys = [comparable(reference(below.relation_type, position)) for position in range(len(columns))]
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
        function = TopRows(relation.order, relation.limit, relation.offset)
        below = relation.input.relation_type
        # Without a limit no row of a bucket can be left out before the last stage.
        stages = ONE_STAGE
        if relation.limit is not None:
            stages = self.stages(relation.group_size, below.monotonic and relation.offset == 0)
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

    def stages(self, group_size: int | None, monotonic: bool) -> Stages:
        """Returns the stages for groups of that size: one in a plan that runs once, which keeps no state."""
        if not self.arranges:
            return ONE_STAGE
        return Stages((1,), monotonic=True) if monotonic else Stages(buckets_for(group_size))

    def kept(self, node: StateOperator) -> Physical:
        """Returns what reads the output of `node`: its arrangement, or the operator itself in a plan that runs once."""
        if not self.arranges:
            return node
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
        nameless = without_names(plan)
        # Equality does not tell 0.0 from -0.0.
        identity = (nameless, *(match[0] for match in _ZEROS.finditer(repr(nameless))))
        if identity not in self._known:
            id = GlobalId(f"arrangement:{len(self.arrangements) + 1}")
            relation_type = with_unique_names(plan.relation_type)
            self.arrangements.append(Arrangement(id, plan, relation_type, key))
            self._known[identity] = ReadCollection(id, relation_type, str(id))
        return self._known[identity]


_ZEROS = re.compile(r"value=-?0\.0\b")


def default_key(relation_type: RelationType) -> tuple[int, ...]:
    """Returns the key of an arrangement that names none: the smallest unique key, else all columns."""
    return smallest_key(relation_type.keys) or tuple(range(relation_type.arity))


def _join_key(join: Join, index: int) -> tuple[int, ...]:
    """Returns the columns of input `index` by which the join looks it up."""
    relation_type = join.inputs[index].relation_type
    offset = join.offsets[index]
    key = sorted(
        {
            scalar.position - offset
            for one in join.equivalences
            for scalar in one
            if isinstance(scalar, ColumnRef) and 0 <= scalar.position - offset < relation_type.arity
        }
    )
    return tuple(key) or default_key(relation_type)


def _has_join(plan: Physical) -> bool:
    return isinstance(plan, DeltaJoin) or any(_has_join(one) for one in physical_inputs(plan))


def with_unique_names(relation_type: RelationType) -> RelationType:
    """Returns the type with names that a shard can have: unique, and none of its own."""
    names: list[str] = []
    for i, name in enumerate(relation_type.names):
        unusable = relation_type.names.count(name) > 1 or name.startswith("mz_") or not name.isidentifier()
        names.append(f"c{i}" if unusable else name)
    if len({name.lower() for name in names}) != len(names):
        names = [f"c{i}" for i in range(relation_type.arity)]
    return relation_type.with_names(tuple(names))
