"""In which order the terms of a delta join look up its inputs.

Without knowledge of sizes, next is an input whose unique key is bound by what is already there, then one that is
connected by an equivalence, and only then one that is not: a cross product. Ties go to the leftmost.

Where the sizes are known, next is the connected input of which a row finds the fewest. How many it finds is estimated:
the input's rows, divided for each class of equivalences that connects it by how many different values there can be in
it. These are no more than the smallest input with a scalar in the class has rows; a class with a small dimension in it
keeps few rows apart. A row finds one of a unique key at most. Of an input's predicates, one that a column equals a
constant is taken to pass a twentieth of the rows, any other a quarter.

The order changes what a step costs, never what it yields: it is no part of what is on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    Linear,
    MaintainedPlan,
    Physical,
    ReadCollection,
    SharedPlan,
    SnapshotPlan,
    UnionAll,
    physical_inputs,
    with_physical_inputs,
)
from mz_dagster.plan.scalar import Call, ColumnRef, Literal, Scalar, columns_of

#: Returns about how many rows a collection has.
RowCounts = Callable[[GlobalId], int]
#: What share of the rows a predicate is taken to pass, one of equality, and all predicates of an input at least.
_PASSES, _EQUAL_PASSES, _PASSES_AT_LEAST = 0.25, 0.05, 0.001
#: The rank of what is looked up by nothing.
_CROSS = 2


def lookup_order(join: DeltaJoin, first: int, rows: RowCounts | None = None) -> tuple[int, ...]:
    """Returns the order in which the term of input `first` looks up the others.

    Args:
        join: Its `orders` are not looked at.
        first: The input.
        rows: How many rows each collection has, if that is known.
    """
    return tuple(one for one, _ in _steps(join, first, rows))


def ordered_by_size(plan: Physical, rows: RowCounts) -> Physical:
    """Returns `plan` with each of its joins looking up its inputs, and beginning a snapshot, as sizes suggest."""
    inputs = [ordered_by_size(one, rows) for one in physical_inputs(plan)]
    plan = with_physical_inputs(plan, inputs)
    if not isinstance(plan, DeltaJoin):
        return plan
    numbers = range(len(inputs))
    orders = tuple(lookup_order(plan, i, rows) for i in numbers)
    costs = [sum(_intermediate(plan, i, rows)) for i in numbers]
    return replace(plan, orders=orders, first=costs.index(min(costs)))


def snapshot_ordered_by_size(plan: SnapshotPlan, rows: RowCounts) -> SnapshotPlan:
    """Returns `plan` with its joins ordered as `ordered_by_size` does."""
    known: dict[GlobalId, int] = {}

    def counted(id: GlobalId) -> int:
        return known[id] if id in known else rows(id)

    shared: list[SharedPlan] = []
    for one in plan.shared:
        shared.append(replace(one, plan=ordered_by_size(one.plan, counted)))
        known[one.id] = round(estimated_rows(one.plan, counted))
    return SnapshotPlan(tuple(shared), ordered_by_size(plan.output, counted))


def estimated_rows(plan: Physical, rows: RowCounts) -> float:
    """Returns about how many rows a plan has; of a state operator, at most: as many as its input."""
    match plan:
        case ReadCollection():
            return max(rows(plan.id), 1)
        case ConstantRows():
            return max(len(plan.rows), 1)
        case Linear():
            return estimated_rows(plan.input, rows) * _share(plan)
        case UnionAll():
            return sum(estimated_rows(one, rows) for one in plan.inputs)
        case DeltaJoin():
            return list(_intermediate(plan, 0, rows))[-1]
        case Accumulate() if not plan.key_arity:
            return 1
        case _:
            return estimated_rows(physical_inputs(plan)[0], rows)


def estimated_updates(plan: Physical, rows: RowCounts, new: RowCounts) -> float:
    """Returns about how many updates new ones make of a plan; of a state operator, how many come in.

    Args:
        plan: The plan.
        rows: How many rows each collection has.
        new: How many updates of it are new.
    """
    match plan:
        case ReadCollection():
            return new(plan.id)
        case ConstantRows():
            return 0
        case Linear():
            return estimated_updates(plan.input, rows, new) * _share(plan)
        case DeltaJoin():
            return sum(
                estimated_updates(one, rows, new) / estimated_rows(one, rows) * list(_intermediate(plan, i, rows))[-1]
                for i, one in enumerate(plan.inputs)
            )
        case _:
            return sum(estimated_updates(one, rows, new) for one in physical_inputs(plan))


def estimated_state(plan: MaintainedPlan, rows: RowCounts) -> dict[str, int]:
    """Returns about how many rows each arrangement of a plan, and its output, will hold, by what its inputs hold."""
    known: dict[GlobalId, int] = {}

    def counted(id: GlobalId) -> int:
        return known[id] if id in known else rows(id)

    for one in plan.arrangements:
        known[one.id] = round(estimated_rows(one.plan, counted))
    output = round(estimated_rows(plan.output, counted))
    return {str(id): count for id, count in known.items()} | {"output": output}


def _share(plan: Linear) -> float:
    shares = [_passes(scalar) for kind, scalar in plan.mfp.steps if kind == "filter"]
    return max(math.prod(shares), _PASSES_AT_LEAST)


def _passes(predicate: Scalar) -> float:
    if not isinstance(predicate, Call):
        return _PASSES
    if predicate.function == "or":
        return min(sum(map(_passes, predicate.arguments)), _PASSES)
    is_equality = predicate.function.startswith("eq_") and any(isinstance(one, Literal) for one in predicate.arguments)
    return _EQUAL_PASSES if is_equality else _PASSES


def _intermediate(join: DeltaJoin, first: int, rows: RowCounts) -> Iterator[float]:
    """Yields how many rows there are after each look-up, beginning with all rows of the input `first`."""
    total = estimated_rows(join.inputs[first], rows)
    yield total
    for _, found in _steps(join, first, rows):
        total *= found
        yield total


def _steps(join: DeltaJoin, first: int, rows: RowCounts | None) -> Iterator[tuple[int, float]]:
    """Yields the look-ups of a term, each with how many rows a row finds."""
    shape = _Shape.of(join, rows)
    bound = set(shape.columns(first))
    rest = [i for i in range(len(join.inputs)) if i != first]
    while rest:
        ranks = {i: shape.rank(i, bound) for i in rest}
        chosen = min(rest, key=lambda i: (ranks[i] == _CROSS, shape.found(i, bound), ranks[i], i))
        yield chosen, shape.found(chosen, bound)
        rest.remove(chosen)
        bound |= set(shape.columns(chosen))


@dataclass(frozen=True, slots=True)
class _Shape:
    """Is what is known of a join's inputs.

    Attributes:
        offsets: Where their columns begin.
        sizes: About how many rows they have, None if that is not known.
        whole: How many they would have without their predicates.
    """

    join: DeltaJoin
    offsets: Sequence[int]
    sizes: Sequence[float] | None
    whole: Sequence[float]

    @classmethod
    def of(cls, join: DeltaJoin, rows: RowCounts | None) -> _Shape:
        """Returns the shape of `join`."""
        *offsets, _ = accumulate((one.relation_type.arity for one in join.inputs), initial=0)
        if rows is None:
            return cls(join, offsets, None, ())
        sizes = [estimated_rows(one, rows) for one in join.inputs]
        shares = [_share(one) if isinstance(one, Linear) else 1 for one in join.inputs]
        return cls(join, offsets, sizes, [size / share for size, share in zip(sizes, shares, strict=True)])

    def columns(self, index: int) -> range:
        """Returns the joined columns that are of input `index`."""
        return range(self.offsets[index], self.offsets[index] + self.join.inputs[index].relation_type.arity)

    def rank(self, index: int, bound: set[int]) -> int:
        """Returns 0 if a unique key of the input is bound, 1 if anything of it is, else `_CROSS`."""
        classes = self._connecting(index, bound)
        if self._key_is_bound(index, classes):
            return 0
        return 1 if classes else _CROSS

    def found(self, index: int, bound: set[int]) -> float:
        """Returns how many rows of the input a row of what is bound finds; 0 if no sizes are known."""
        if self.sizes is None:
            return 0
        size, whole = self.sizes[index], self.whole[index]
        classes = self._connecting(index, bound)
        if self._key_is_bound(index, classes):
            return size / whole
        for one in classes:
            size /= min(self.whole[i] for i in range(len(self.whole)) if self._own(one, i))
        # However many classes there are, a value that is looked up is mostly there.
        return max(size, self.sizes[index] / whole)

    def _connecting(self, index: int, bound: set[int]) -> list[tuple[Scalar, ...]]:
        return [
            one
            for one in self.join.equivalences
            if self._own(one, index) and any(columns_of(scalar) and columns_of(scalar) <= bound for scalar in one)
        ]

    def _own(self, equivalence: Sequence[Scalar], index: int) -> list[Scalar]:
        own = set(self.columns(index))
        return [scalar for scalar in equivalence if columns_of(scalar) and columns_of(scalar) <= own]

    def _key_is_bound(self, index: int, classes: Sequence[Sequence[Scalar]]) -> bool:
        scalars = [scalar for one in classes for scalar in self._own(one, index)]
        positions = {one.position - self.offsets[index] for one in scalars if isinstance(one, ColumnRef)}
        return any(key <= positions for key in self.join.inputs[index].relation_type.keys)
