"""Columns that nothing reads are dropped as early as possible: reads and joins carry only what is needed.

So are aggregates and window functions, and inputs of a join that always have one row. A shared subplan has the columns
that any of its uses needs. What goes by the whole row keeps its input as wide as it is: `Threshold`. So it is with the
ties of `TopK` and `Window`, as far as there can be ties and the columns decide them.

Precondition: no two `Let`s bind the same id, which `share_subplans` sees to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from mz_dagster.formalism import GlobalId
from mz_dagster.functions import AGGREGATES
from mz_dagster.plan.relation import (
    CatchErrors,
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    FrameUnit,
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
    WindowFunction,
    inputs_of,
)
from mz_dagster.plan.rewriting import moved, projected_to, with_inputs
from mz_dagster.plan.row_count import is_one_row
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import Scalar, columns_of


def demand(relation: Relation) -> Relation:
    """Returns `relation` with each operator's inputs narrowed to the columns that are needed above."""
    narrowing = _Narrowing()
    return narrowing.over_narrow(narrowing.whole(relation))


def _read(scalars: Iterable[Scalar]) -> frozenset[int]:
    return frozenset().union(*(columns_of(one) for one in scalars))


#: What reads a shared subplan that has become narrower, and where it has the columns that are left.
_Narrow: TypeAlias = tuple[Get, Mapping[int, int]]


@dataclass(slots=True)
class _Narrowing:
    """Narrows a plan.

    Attributes:
        uses: For each shared subplan around, the columns that its uses need so far.
        narrow: For each `Let` whose value has become narrower, by its identity: what reads the value then, and where it
            has the columns that are left.
        around: The same by name, for the `Let`s around what `over_narrow` looks at.
    """

    uses: dict[GlobalId, frozenset[int]] = field(default_factory=dict)
    narrow: dict[int, _Narrow] = field(default_factory=dict)
    around: dict[GlobalId, _Narrow | None] = field(default_factory=dict)

    def whole(self, relation: Relation) -> Relation:
        """Returns all columns of `relation`."""
        return self.narrowed(relation, frozenset(range(relation.relation_type.arity)))

    def narrowed(self, relation: Relation, needed: frozenset[int]) -> Relation:
        """Returns the columns `needed` of `relation`, in their order."""
        kept = sorted(needed)
        match relation:
            case Get() | Constant():
                if isinstance(relation, Get) and relation.id in self.uses:
                    self.uses[relation.id] |= needed
                return projected_to(relation, kept)
            case Let():
                return self._narrowed_let(relation, needed)
            case Negate():
                return Negate(self.narrowed(relation.input, needed))
            case Union():
                inputs = tuple(self.narrowed(one, needed) for one in relation.inputs)
                keys = (frozenset(kept.index(one) for one in key) for key in relation.keys if key <= needed)
                return Union(inputs, frozenset(keys))
            case Projection():
                below = frozenset(relation.positions[one] for one in kept)
                places = {old: new for new, old in enumerate(sorted(below))}
                return projected_to(
                    self.narrowed(relation.input, below), [places[relation.positions[one]] for one in kept]
                )
            case Filter():
                below = needed | _read(relation.predicates)
                places = {old: new for new, old in enumerate(sorted(below))}
                predicates = tuple(moved(one, places) for one in relation.predicates)
                return projected_to(
                    Filter(self.narrowed(relation.input, below), predicates), [places[one] for one in kept]
                )
            case Map():
                return self._narrowed_map(relation, kept)
            case Join():
                return self._narrowed_join(relation, kept)
            case Reduce():
                return self._narrowed_reduce(relation, kept)
            case TemporalFilter():
                below = needed | _read((*relation.lower, *relation.upper))
                places = {old: new for new, old in enumerate(sorted(below))}
                lower = tuple(moved(one, places) for one in relation.lower)
                upper = tuple(moved(one, places) for one in relation.upper)
                narrow = TemporalFilter(self.narrowed(relation.input, below), lower, upper)
                return projected_to(narrow, [places[one] for one in kept])
            case RepeatRow():
                return self._narrowed_repeat(relation, kept)
            case FlatMap():
                return self._narrowed_flat_map(relation, kept)
            case TopK():
                return self._narrowed_top(relation, kept)
            case Window():
                return self._narrowed_window(relation, kept)
            case Threshold():
                return projected_to(Threshold(self.whole(relation.input)), kept)
            case CatchErrors():  # of all columns: an error may be that of one which nobody reads
                return projected_to(CatchErrors(self.whole(relation.input)), kept)
            case DependentJoin():
                return projected_to(relation, kept)
            case _:
                assert_never(relation)

    def _narrowed_reduce(self, relation: Reduce, kept: list[int]) -> Relation:
        """Returns the columns `kept` of a reduction without the aggregates that nobody reads.

        One group of everything keeps its aggregates if nothing but its row is needed: that is the test for the default
        row, and the same reduction is there for the row itself.
        """
        arity = len(relation.key)
        used = [i for i in range(len(relation.aggregates)) if arity + i in kept]
        if not relation.key and not used:
            used = list(range(len(relation.aggregates)))
        below = frozenset(relation.key).union(*(relation.aggregates[i].positions for i in used))
        places = {old: new for new, old in enumerate(sorted(below))}
        narrow = Reduce(
            self.narrowed(relation.input, below),
            tuple(places[one] for one in relation.key),
            tuple(relation.aggregates[i].moved(places) for i in used),
            tuple(relation.names[i] for i in used),
            relation.group_size,
        )
        columns = {position: position for position in range(arity)} | {
            arity + i: arity + new for new, i in enumerate(used)
        }
        return projected_to(narrow, [columns[one] for one in kept])

    def _narrowed_repeat(self, relation: RepeatRow, kept: list[int]) -> Relation:
        # Position `count` is not among the columns above.
        below = frozenset({relation.count} | {one if one < relation.count else one + 1 for one in kept})
        narrow = sorted(below)
        return RepeatRow(self.narrowed(relation.input, below), narrow.index(relation.count))

    def _narrowed_flat_map(self, relation: FlatMap, kept: list[int]) -> Relation:
        """Returns the columns `kept` of table functions, all of which decide how many rows there are."""
        arity = relation.input.relation_type.arity
        arrays = range(arity - relation.arrays, arity)
        below = frozenset(kept).union(arrays) - {arity}
        places = {old: new for new, old in enumerate(sorted(below))}
        narrow = FlatMap(self.narrowed(relation.input, below), relation.arrays, arity in kept)
        return projected_to(narrow, [places.get(one, len(places)) for one in kept])

    def _narrowed_top(self, relation: TopK, kept: list[int]) -> Relation:
        given, below = frozenset(relation.group) | {one.position for one in relation.order}, frozenset(kept)
        below = below | given if relation.ties else _deciding(given, below, relation.input.relation_type.keys)
        places = {old: new for new, old in enumerate(sorted(below))}
        narrow = replace(
            relation,
            input=self.narrowed(relation.input, below),
            group=tuple(places[one] for one in relation.group),
            order=tuple(one.moved(places) for one in relation.order),
        )
        return projected_to(narrow, [places[one] for one in kept])

    def _narrowed_window(self, relation: Window, kept: list[int]) -> Relation:
        """Returns the columns `kept` of a window without the functions that nobody reads."""
        arity = relation.input.relation_type.arity
        used = [i for i in range(len(relation.functions)) if arity + i in kept]
        own = frozenset(one for one in kept if one < arity)
        if not used:
            return projected_to(self.narrowed(relation.input, own), [sorted(own).index(one) for one in kept])
        functions = [relation.functions[i] for i in used]
        given = frozenset(relation.partition) | {one.position for one in relation.order}
        needed = own.union(given, *(one.positions for one in functions))
        if any(_differs_between_peers(one) for one in functions):
            needed = _deciding(given, needed, relation.input.relation_type.keys)
        places = {old: new for new, old in enumerate(sorted(needed))}
        narrow = replace(
            relation,
            input=self.narrowed(relation.input, needed),
            partition=tuple(places[one] for one in relation.partition),
            order=tuple(one.moved(places) for one in relation.order),
            functions=tuple(one.moved(places) for one in functions),
            names=tuple(relation.names[i] for i in used),
        )
        places |= {arity + i: len(needed) + new for new, i in enumerate(used)}
        return projected_to(narrow, [places[one] for one in kept])

    def _narrowed_map(self, relation: Map, kept: list[int]) -> Relation:
        arity = relation.input.relation_type.arity
        needed = set(kept)
        for i in reversed(range(len(relation.scalars))):
            if arity + i in needed:
                needed |= columns_of(relation.scalars[i])
        below = frozenset(one for one in needed if one < arity)
        used = [i for i in range(len(relation.scalars)) if arity + i in needed]
        places = {old: new for new, old in enumerate(sorted(below))}
        places |= {arity + i: len(below) + new for new, i in enumerate(used)}
        narrow = self.narrowed(relation.input, below)
        if used:
            scalars = tuple(moved(relation.scalars[i], places) for i in used)
            narrow = Map(narrow, scalars, tuple(relation.names[i] for i in used))
        return projected_to(narrow, [places[one] for one in kept])

    def _narrowed_join(self, relation: Join, kept: list[int]) -> Relation:
        needed = frozenset(kept) | _read(scalar for one in relation.equivalences for scalar in one)
        inputs: list[Relation] = []
        places: dict[int, int] = {}
        for offset, one in zip(relation.offsets, relation.inputs, strict=True):
            columns = frozenset(column for column in range(one.relation_type.arity) if offset + column in needed)
            if not columns and is_one_row(one):
                continue
            for column in sorted(columns):
                places[offset + column] = len(places)
            inputs.append(self.narrowed(one, columns))
        equivalences = tuple(tuple(moved(scalar, places) for scalar in one) for one in relation.equivalences)
        if len(inputs) < 2 and (equivalences or not inputs):
            inputs = [*inputs, *[ONE_ROW] * (2 - len(inputs))]
        narrow = inputs[0] if len(inputs) == 1 else Join(tuple(inputs), equivalences, relation.null_safe)
        return projected_to(narrow, [places[one] for one in kept])

    def _narrowed_let(self, relation: Let, needed: frozenset[int]) -> Relation:
        """Returns the columns `needed` of the body, over the columns that any use of the value needs."""
        self.uses[relation.id] = frozenset()
        body = self.narrowed(relation.body, needed)
        used = self.uses.pop(relation.id)
        narrow = Let(relation.id, self.narrowed(relation.value, used), body)
        if len(used) < relation.value.relation_type.arity:
            places = {old: new for new, old in enumerate(sorted(used))}
            self.narrow[id(narrow)] = Get(relation.id, narrow.value.relation_type), places
        return narrow

    def over_narrow(self, relation: Relation) -> Relation:
        """Returns a plan that was narrowed, with each use of a shared subplan over the narrow form of that."""
        if isinstance(relation, Let):
            value, outer = self.over_narrow(relation.value), self.around.get(relation.id)
            self.around[relation.id] = self.narrow.get(id(relation))
            body = self.over_narrow(relation.body)
            self.around[relation.id] = outer
            return Let(relation.id, value, body)
        if isinstance(relation, Projection) and isinstance(relation.input, Get):
            narrow = self.around.get(relation.input.id)
            return relation if narrow is None else _over(narrow, relation)
        return with_inputs(relation, [self.over_narrow(one) for one in inputs_of(relation)])


def _over(narrow: _Narrow, relation: Projection) -> Relation:
    """Returns a projection of a shared subplan over the narrow form of that."""
    get, places = narrow
    return projected_to(get, [places[one] for one in relation.positions])


def _deciding(given: frozenset[int], needed: frozenset[int], keys: Iterable[frozenset[int]]) -> frozenset[int]:
    """Returns the columns of which those decide whose values are equal in `given`, the whole row deciding ties.

    Columns decide in their order. So all before one that is needed do, until what has decided has a unique key; those
    behind the last one that is needed only tell rows apart that are equal above.
    """
    decided = set(given)
    for position in range(max(needed - given, default=-1)):
        if any(key <= decided for key in keys):
            break
        decided.add(position)
    return frozenset(decided) | needed


def _differs_between_peers(function: WindowFunction) -> bool:
    """Returns whether a window function's values differ between rows that its order says are equal."""
    by_rows = function.frame is None or function.frame.unit is FrameUnit.ROWS
    found = AGGREGATES.get(function.name)
    if found is not None and found.hypothetical:
        return False
    return by_rows or found is None or found.sees_order
