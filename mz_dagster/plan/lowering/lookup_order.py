"""In which order the terms of a delta join look up its inputs.

Without knowledge of sizes, next is an input whose unique key is bound by what is already there, then one that is
connected by an equivalence, and only then one that is not: a cross product. Ties go to the leftmost.

Where the sizes are known, next is the connected input of which a row finds the fewest. How many it finds is estimated:
the input's rows, divided for each class of equivalences that connects it by how many different values there can be in
it. These are no more than the smallest input with a scalar in the class has rows; a class with a small dimension in it
keeps few rows apart. A row finds one of a unique key at most. Of an input's predicates, one that a column equals a
constant is taken to pass a twentieth of the rows, any other a quarter.

What of this depends on the plan alone is found once for a join (`_Joined`), what depends on the sizes once for each of
its inputs (`_Sizes`); and `LookupOrders` keeps an order for as long as the sizes stay near those that it is for.

The order changes what a step costs, never what it yields: it is no part of what is on disk.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from operator import or_

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.membership import AMONG, constants_of
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
    collections_read,
    has_join,
    physical_inputs,
    with_physical_inputs,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, columns_of

#: Returns about how many rows a collection has.
RowCounts = Callable[[GlobalId], int]
#: What share of the rows a predicate is taken to pass, one of equality, and all predicates of an input at least.
_PASSES, _EQUAL_PASSES, _PASSES_AT_LEAST = 0.25, 0.05, 0.001
#: The rank of what is looked up by nothing.
_CROSS = 2
#: By which factor a size may change before a join is ordered anew, and below how many rows sizes are all the same.
_NEAR, _FEW = 2, 100
#: How many orders are kept at most.
_MOST = 10_000


def lookup_orders(join: DeltaJoin) -> tuple[tuple[int, ...], ...]:
    """Returns the order in which the term of each input looks up the others, their sizes unknown.

    Args:
        join: Its `orders` are not looked at.
    """
    joined = _Joined.of(join)
    return tuple(
        tuple(chosen for chosen, _ in _steps(joined, first, lambda index, classes: 0))
        for first in range(len(join.inputs))
    )


def ordered_by_size(plan: Physical, rows: RowCounts) -> Physical:
    """Returns `plan` with each of its joins looking up its inputs, and beginning a snapshot, as sizes suggest."""
    return _Sizes(rows).ordered(plan)


def snapshot_ordered_by_size(plan: SnapshotPlan, rows: RowCounts) -> SnapshotPlan:
    """Returns `plan` with its joins ordered as `ordered_by_size` does."""
    known: dict[GlobalId, int] = {}
    sizes = _Sizes(lambda id: known[id] if id in known else rows(id))
    shared: list[SharedPlan] = []
    for one in plan.shared:
        shared.append(replace(one, plan=sizes.ordered(one.plan)))
        known[one.id] = round(sizes.of(one.plan))
    return SnapshotPlan(tuple(shared), sizes.ordered(plan.output))


class LookupOrders:
    """Keeps plans as they were ordered, for as long as none of the sizes has changed by more than a factor.

    What a process steps again and again is so ordered seldom, and stays the same plan to whoever keeps what it made of
    one. Threads may share it.
    """

    def __init__(self) -> None:
        self._kept: dict[GlobalId, _Kept] = {}

    def ordered(self, id: GlobalId, plan: Physical, rows: RowCounts) -> Physical:
        """Returns the plan of a collection with its joins ordered by sizes that are, or recently were, its inputs'.

        Args:
            id: The collection; it is known by its newest plan only.
            plan: The plan.
            rows: How many rows each collection has.
        """
        if not has_join(plan):
            return plan
        sizes = {one: rows(one) for one in sorted(collections_read(plan))}
        kept = self._kept.get(id)
        if kept is None or kept.plan is not plan or not all(_near(kept.sizes[one], sizes[one]) for one in sizes):
            kept = _Kept(plan, sizes, ordered_by_size(plan, sizes.__getitem__))
            if len(self._kept) >= _MOST:  # most of them are of collections that were dropped
                self._kept.clear()
            self._kept[id] = kept
        return kept.ordered


@dataclass(frozen=True, slots=True)
class _Kept:
    plan: Physical
    sizes: Mapping[GlobalId, int]
    ordered: Physical


def _near(one: int, other: int) -> bool:
    return max(one, other, _FEW) <= _NEAR * max(min(one, other), _FEW)


def estimated_state(plan: MaintainedPlan, rows: RowCounts) -> dict[str, int]:
    """Returns about how many rows each arrangement of a plan, and its output, will hold, by what its inputs hold."""
    known: dict[GlobalId, int] = {}
    sizes = _Sizes(lambda id: known[id] if id in known else rows(id))
    for one in plan.arrangements:
        known[one.id] = round(sizes.of(one.plan))
    output = round(sizes.of(plan.output))
    return {str(id): count for id, count in known.items()} | {"output": output}


class _Sizes:
    """Estimates the plans over collections of known sizes, each node once however many nodes are above it."""

    def __init__(self, rows: RowCounts) -> None:
        self._rows = rows
        # By identity; the node is kept, so that no other gets its own.
        self._known: dict[int, tuple[Physical, float]] = {}

    def of(self, plan: Physical) -> float:
        """Returns about how many rows a plan has."""
        if id(plan) not in self._known:
            self._known[id(plan)] = plan, self._estimated(plan)
        return self._known[id(plan)][1]

    def _estimated(self, plan: Physical) -> float:
        match plan:
            case ReadCollection():
                return max(self._rows(plan.id), 1)
            case ConstantRows():
                return max(len(plan.rows), 1)
            case Linear():
                return self.of(plan.input) * _share(plan)
            case UnionAll():
                return sum(map(self.of, plan.inputs))
            case DeltaJoin():
                return self._lookups(plan).term(0)[1][-1]
            case Accumulate() if not plan.key_arity:
                return 1
            case _:
                return self.of(physical_inputs(plan)[0])

    def ordered(self, plan: Physical) -> Physical:
        """Returns `plan` with its joins ordered by these sizes."""
        plan = with_physical_inputs(plan, [self.ordered(one) for one in physical_inputs(plan)])
        if not isinstance(plan, DeltaJoin):
            return plan
        lookups = self._lookups(plan)
        terms = [lookups.term(i) for i in range(len(plan.inputs))]
        costs = [sum(totals) for _, totals in terms]
        return replace(plan, orders=tuple(order for order, _ in terms), first=costs.index(min(costs)))

    def _lookups(self, join: DeltaJoin) -> _Lookups:
        shares = [_share(one) if isinstance(one, Linear) else 1 for one in join.inputs]
        return _Lookups.of(_Joined.of(join), [self.of(one) for one in join.inputs], shares)


def _share(plan: Linear) -> float:
    shares = [_passes(scalar) for kind, scalar in plan.mfp.steps if kind == "filter"]
    return max(math.prod(shares), _PASSES_AT_LEAST)


def _passes(predicate: Scalar) -> float:
    if not isinstance(predicate, Call):
        return _PASSES
    if predicate.function == "or":
        return min(sum(map(_passes, predicate.arguments)), _PASSES)
    if predicate.function == AMONG:
        return min(_EQUAL_PASSES * len(constants_of(predicate)), _PASSES)
    is_equality = predicate.function.startswith("eq_") and any(isinstance(one, Literal) for one in predicate.arguments)
    return _EQUAL_PASSES if is_equality else _PASSES


@dataclass(frozen=True, slots=True)
class _Joined:
    """How the inputs of a join are connected: what its plan says, whatever the sizes. Sets of inputs are bit masks.

    Attributes:
        sides: For each class of equivalences, the inputs that each of its scalars is computed from.
        classes_of: For each input, the classes in which a scalar is computed from it, alone or with others.
        inputs_of: For each class, the inputs that a scalar is computed from alone.
        own: For each input, by the classes in which a scalar is computed from it alone: which of its columns those are.
        keys: The unique keys of each input.
    """

    sides: tuple[frozenset[int], ...]
    classes_of: tuple[frozenset[int], ...]
    inputs_of: tuple[frozenset[int], ...]
    own: tuple[Mapping[int, frozenset[int]], ...]
    keys: tuple[frozenset[frozenset[int]], ...]

    @classmethod
    def of(cls, join: DeltaJoin) -> _Joined:
        """Returns how the inputs of `join` are connected; walks each of its scalars once."""
        offsets = list(accumulate((one.relation_type.arity for one in join.inputs), initial=0))
        sides: list[frozenset[int]] = []
        classes_of: list[set[int]] = [set() for _ in join.inputs]
        own: list[dict[int, frozenset[int]]] = [{} for _ in join.inputs]
        for number, equivalence in enumerate(join.equivalences):
            masks: set[int] = set()
            for scalar in equivalence:
                inputs = {bisect_right(offsets, position) - 1 for position in columns_of(scalar)}
                if not inputs:
                    continue
                masks.add(sum(1 << one for one in inputs))
                if len(inputs) == 1:
                    (one,) = inputs
                    column = {scalar.position - offsets[one]} if isinstance(scalar, ColumnRef) else set()
                    own[one][number] = own[one].get(number, frozenset()) | column
            sides.append(frozenset(masks))
            touched = reduce(or_, masks, 0)
            for one in range(touched.bit_length()):
                if touched >> one & 1:
                    classes_of[one].add(number)
        inputs_of = [frozenset(mask.bit_length() - 1 for mask in one if mask.bit_count() == 1) for one in sides]
        return cls(
            tuple(sides),
            tuple(map(frozenset, classes_of)),
            tuple(inputs_of),
            tuple(own),
            tuple(one.relation_type.keys for one in join.inputs),
        )

    def bound_by(self, chosen: int, bound: int, among: Set[int]) -> frozenset[int]:
        """Returns which classes among those given have a value now that an input is bound.

        Args:
            chosen: The input.
            bound: The inputs that are bound, it among them.
            among: The classes that have had none.
        """
        touched = self.classes_of[chosen] & among
        return frozenset(one for one in touched if any(not side & ~bound for side in self.sides[one]))

    def key_is_bound(self, index: int, classes: Iterable[int]) -> bool:
        """Returns whether the columns that are compared in these classes have a unique key of the input among them."""
        if not self.keys[index]:
            return False
        positions = frozenset[int]().union(*(self.own[index][one] for one in classes))
        return any(key <= positions for key in self.keys[index])

    def rank(self, index: int, classes: Sequence[int]) -> int:
        """Returns 0 if the classes by which an input is looked up bind a unique key of it, else 1, `_CROSS` without."""
        if self.key_is_bound(index, classes):
            return 0
        return 1 if classes else _CROSS


@dataclass(frozen=True, slots=True)
class _Lookups:
    """Tells what the look-ups of a join find, whose inputs have known sizes.

    Attributes:
        sizes: About how many rows each input has.
        whole: How many they would have without their predicates.
        values: Of each class of equivalences, how many different values there can be.
    """

    joined: _Joined
    sizes: Sequence[float]
    whole: Sequence[float]
    values: Sequence[float]

    @classmethod
    def of(cls, joined: _Joined, sizes: Sequence[float], shares: Sequence[float]) -> _Lookups:
        """Returns the look-ups of a join by its inputs' sizes and by the shares that pass their predicates."""
        whole = [size / share for size, share in zip(sizes, shares, strict=True)]
        values = [
            min((whole[i] for i, own in enumerate(joined.own) if number in own), default=math.inf)
            for number in range(len(joined.sides))
        ]
        return cls(joined, sizes, whole, values)

    def found(self, index: int, classes: Sequence[int]) -> float:
        """Returns how many rows of the input a row finds that looks them up by these classes."""
        size, whole = self.sizes[index], self.whole[index]
        if self.joined.key_is_bound(index, classes):
            return size / whole
        for one in classes:
            size /= self.values[one]
        # However many classes there are, a value that is looked up is mostly there.
        return max(size, self.sizes[index] / whole)

    def term(self, first: int) -> tuple[tuple[int, ...], list[float]]:
        """Returns in which order a term looks up, and how many rows there are before that and after each look-up."""
        order, totals = [], [self.sizes[first]]
        for chosen, found in _steps(self.joined, first, self.found):
            order.append(chosen)
            totals.append(totals[-1] * found)
        return tuple(order), totals


def _steps(joined: _Joined, first: int, found: Callable[[int, Sequence[int]], float]) -> Iterator[tuple[int, float]]:
    """Yields the look-ups of a term, each with how many rows a row finds: `found`, of an input and what is bound."""
    bound = 1 << first
    without_value = set(range(len(joined.sides)))
    rest = {i: None for i in range(len(joined.own)) if i != first}  # in order
    # By input: whether it is a cross product, how many rows are found, its rank, and which it is.
    ranked: dict[int, tuple[bool, float, int, int]] = {}
    new, anew = joined.bound_by(first, bound, without_value), list(rest)
    while rest:
        without_value -= new
        for i in anew:
            classes = [one for one in joined.own[i] if one not in without_value]
            rank = joined.rank(i, classes)
            ranked[i] = rank == _CROSS, found(i, classes), rank, i
        chosen = min(rest, key=ranked.__getitem__)
        yield chosen, ranked[chosen][1]
        bound |= 1 << chosen
        del rest[chosen]
        # The others are found by what they were found by before.
        new = joined.bound_by(chosen, bound, without_value)
        anew = [i for i in sorted(set().union(*map(joined.inputs_of.__getitem__, new))) if i in rest]
