"""Predicates move towards what they read: through linear operators, and into single inputs of joins.

Those that cannot fail also pass what takes rows together, where it takes them together with all rows of which the
predicate says the same: a reduction, a top-k or a window whose group has all the columns that the predicate reads; and
a threshold. What compares with `mz_now()` does not: above there are fewer rows to wait for.

A predicate that can fail never overtakes one before it that stays behind, and never enters an input of a join:
there it would meet rows that the join drops. But a comparison of `mz_now()` does, although the cast of its other side
can fail: it bounds how long the input's rows are kept.

Into a shared subplan go those predicates that cannot fail and that all of its uses have.

Precondition: no two `Let`s bind the same id, which `share_subplans` sees to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.properties import let_through
from mz_dagster.plan.relation import (
    Constant,
    DependentJoin,
    Filter,
    Get,
    Join,
    Let,
    Map,
    Negate,
    OneInput,
    Projection,
    Relation,
    Union,
    inputs_of,
)
from mz_dagster.plan.rewriting import bottom_up, can_fail, filtered, moved, shifted, substituted, with_inputs
from mz_dagster.plan.transform.temporal_filters import is_temporal
from mz_dagster.scalars.scalar import Scalar, columns_of, reads_now


def push_predicates(relation: Relation) -> Relation:
    """Returns `relation` with each predicate as far down as it may go."""
    pushing = _Pushing()
    pushed = pushing.pushed(relation, ())
    # At once for all shared subplans: a walk for each takes time by the square of a plan.
    return bottom_up(pushed, lambda one: _without(one, pushing.entered)) if pushing.entered else pushed


@dataclass(slots=True)
class _Pushing:
    """Pushes predicates down a plan.

    Attributes:
        uses: For each shared subplan around, the predicates that stand directly above its uses so far.
        entered: For each shared subplan, the predicates that went into it.
    """

    uses: dict[GlobalId, list[tuple[Scalar, ...]]] = field(default_factory=dict)
    entered: dict[GlobalId, list[Scalar]] = field(default_factory=dict)

    def pushed(self, relation: Relation, predicates: Sequence[Scalar]) -> Relation:
        """Returns `Filter predicates relation`, pushed down."""
        match relation:
            case Filter():
                return self.pushed(relation.input, (*relation.predicates, *predicates))
            case Projection():
                places = dict(enumerate(relation.positions))
                below = self.pushed(relation.input, [moved(one, places) for one in predicates])
                return Projection(below, relation.positions)
            case Map():
                return self._through_map(relation, predicates)
            case Negate() | Union():
                return with_inputs(relation, [self.pushed(one, predicates) for one in inputs_of(relation)])
            case Join():
                return self._into_join(relation, predicates)
            case Let():
                return self._into_let(relation, predicates)
            case Get() if relation.id in self.uses:
                self.uses[relation.id].append(tuple(predicates))
                return filtered(relation, predicates)
            case Get() | Constant() | DependentJoin():
                return filtered(
                    with_inputs(relation, [self.pushed(one, ()) for one in inputs_of(relation)]), predicates
                )
            case _:
                return self._past(relation, predicates)

    def _past(self, relation: OneInput, predicates: Sequence[Scalar]) -> Relation:
        """Returns `Filter predicates relation`; what reads only columns that let it through moves into the input."""
        places = let_through(relation)
        through: list[Scalar] = []
        stays: list[Scalar] = []
        for predicate in predicates:
            columns = columns_of(predicate)
            passes = columns and columns <= places.keys() and not can_fail(predicate) and not reads_now(predicate)
            if passes:
                through.append(moved(predicate, places))
            else:
                stays.append(predicate)
        return filtered(with_inputs(relation, [self.pushed(relation.input, through)]), stays)

    def _through_map(self, relation: Map, predicates: Sequence[Scalar]) -> Relation:
        arity = relation.input.relation_type.arity
        values: dict[int, Scalar] = {}
        for i, scalar in enumerate(relation.scalars):
            inlined = substituted(scalar, values)
            if not can_fail(inlined) and all(position < arity for position in columns_of(inlined)):
                values[arity + i] = inlined
        through: list[Scalar] = []
        stays: list[Scalar] = []
        for predicate in predicates:
            inlined = substituted(predicate, values)
            below = all(position < arity for position in columns_of(inlined))
            if below and not (stays and can_fail(inlined)):
                through.append(inlined)
            else:
                stays.append(predicate)
        return filtered(Map(self.pushed(relation.input, through), relation.scalars, relation.names), stays)

    def _into_join(self, relation: Join, predicates: Sequence[Scalar]) -> Relation:
        offsets = relation.offsets
        into: list[list[Scalar]] = [[] for _ in relation.inputs]
        stays: list[Scalar] = []
        for predicate in predicates:
            owner = relation.only_owner(columns_of(predicate))
            if owner is not None and (not can_fail(predicate) or is_temporal(predicate)):
                into[owner].append(shifted(predicate, -offsets[owner]))
            else:
                stays.append(predicate)
        inputs = tuple(self.pushed(one, pushed) for one, pushed in zip(relation.inputs, into, strict=True))
        return filtered(replace(relation, inputs=inputs), stays)

    def _into_let(self, relation: Let, predicates: Sequence[Scalar]) -> Relation:
        self.uses[relation.id] = []
        body = self.pushed(relation.body, predicates)
        first, *others = self.uses.pop(relation.id) or [()]
        common = [
            one for one in first if all(one in other for other in others) and not can_fail(one) and not reads_now(one)
        ]
        if common:
            self.entered[relation.id] = common
        return Let(relation.id, self.pushed(relation.value, common), body)


def _without(relation: Relation, entered: Mapping[GlobalId, Sequence[Scalar]]) -> Relation:
    """Returns `relation` without the predicates by which it filters a shared subplan that they have entered."""
    if not isinstance(relation, Filter) or not isinstance(relation.input, Get) or relation.input.id not in entered:
        return relation
    return filtered(relation.input, [one for one in relation.predicates if one not in entered[relation.input.id]])
