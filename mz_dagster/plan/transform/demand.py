"""Columns that nothing reads are dropped as early as possible: reads and joins carry only what is needed.

So are aggregates and window functions, and inputs of a join that always have one row. A shared subplan has the columns
that any of its uses needs. What goes by the whole row keeps its input as wide as it is: `Threshold`. So it is with the
ties of `TopK` and `Window`, as far as there can be ties and the columns decide them.

Precondition: no two `Let`s bind the same id, which `share_subplans` sees to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.properties import demanded, over, properties_of
from mz_dagster.plan.relation import (
    Constant,
    DependentJoin,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    OneInput,
    Projection,
    Reduce,
    Relation,
    Union,
    Window,
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
            case Union():
                inputs = tuple(self.narrowed(one, needed) for one in relation.inputs)
                keys = (frozenset(kept.index(one) for one in key) for key in relation.keys if key <= needed)
                return Union(inputs, frozenset(keys))
            case Join():
                return self._narrowed_join(relation, kept)
            case DependentJoin():
                return projected_to(relation, kept)
            case Projection():
                below = demanded(relation, needed)
                places = {old: new for new, old in enumerate(sorted(below))}
                return projected_to(
                    self.narrowed(relation.input, below), [places[relation.positions[one]] for one in kept]
                )
            case Map() | Window() if max(needed, default=-1) < relation.input.relation_type.arity:
                return self.narrowed(relation.input, needed)
            case _:
                return self._narrowed_input(relation, kept)

    def _narrowed_input(self, relation: OneInput, kept: list[int]) -> Relation:
        """Returns the columns `kept` of an operator over those of its input that it demands for them.

        All that it makes is kept, once what can be left out has been.
        """
        first = len(properties_of(relation).passed)
        relation, numbers = _without_unread(relation, [one - first for one in kept if one >= first])
        passed = properties_of(relation).passed
        below = demanded(relation, [*(one for one in kept if one < first), *range(first, relation.relation_type.arity)])
        places = {old: new for new, old in enumerate(sorted(below))}
        narrow = over(relation, self.narrowed(relation.input, below), places)
        now = {column: place for place, column in enumerate(properties_of(narrow).passed)}
        return projected_to(
            narrow,
            [now[places[passed[one]]] if one < first else len(now) + numbers.index(one - first) for one in kept],
        )

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


def _without_unread(relation: OneInput, read: Collection[int]) -> tuple[OneInput, Sequence[int]]:
    """Returns an operator without what it makes that nobody reads, and the numbers of what is left.

    One group of everything keeps its aggregates if nothing but its row is needed: that is the test for the default
    row, and the same reduction is there for the row itself.

    Args:
        relation: The operator.
        read: The numbers of what it makes that is read; some of it, unless that is a `Reduce` or cannot be left out.
    """
    match relation:
        case Map():
            arity = relation.input.relation_type.arity
            needed = {arity + i for i in read}
            for i in reversed(range(len(relation.scalars))):
                if arity + i in needed:
                    needed |= columns_of(relation.scalars[i])
            used = [i for i in range(len(relation.scalars)) if arity + i in needed]
            if len(used) < len(relation.scalars):
                places = {one: one for one in range(arity)} | {arity + i: arity + new for new, i in enumerate(used)}
                scalars = tuple(moved(relation.scalars[i], places) for i in used)
                relation = replace(relation, scalars=scalars, names=tuple(relation.names[i] for i in used))
            return relation, used
        case Reduce():
            used = sorted(read) if relation.key or read else list(range(len(relation.aggregates)))
            if len(used) < len(relation.aggregates):
                aggregates = tuple(relation.aggregates[i] for i in used)
                relation = replace(relation, aggregates=aggregates, names=tuple(relation.names[i] for i in used))
            return relation, used
        case Window():
            used = sorted(read)
            if len(used) < len(relation.functions):
                functions = tuple(relation.functions[i] for i in used)
                relation = replace(relation, functions=functions, names=tuple(relation.names[i] for i in used))
            return relation, used
        case FlatMap():
            used = [i for i in range(relation.arrays + 1) if i < relation.arrays or i in read]
            return replace(relation, ordinality=relation.arrays in used), used
        case _:
            return relation, range(relation.relation_type.arity)
