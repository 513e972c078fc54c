"""Nested joins become one n-way join, which needs no intermediate results.

    Join (Map s (Filter p (Join a b))) c   is   Project (Map s' (Filter p' (Join a b c)))

What stands between the joins is lifted above, in its order: a filter stays below the maps that it guards. Only
inputs that are made of a join are taken apart; maps and filters over a single collection stay where they are.

A chain of joins is taken apart as a whole, each only once, so that it takes time by its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from mz_dagster.plan.relation import Filter, Join, Map, Projection, Relation, inputs_of
from mz_dagster.plan.rewriting import moved, projected_to, with_inputs
from mz_dagster.scalars.scalar import Scalar, columns_of


@dataclass(frozen=True, slots=True)
class _Parts:
    """A relation taken apart: columns of `leaves`, then of the mapped scalars, then `positions` of them.

    Attributes:
        leaves: What is joined.
        leaf_arity: How many columns they have.
        equivalences: Over the leaves' columns, each with whether NULL equals NULL in it.
        steps: `("filter", predicate, "")` or `("map", scalar, name)`, in order.
        maps: How many of them are maps.
        positions: Where each output column stands.
    """

    leaves: tuple[Relation, ...]
    leaf_arity: int
    equivalences: tuple[tuple[tuple[Scalar, ...], bool], ...]
    steps: tuple[tuple[str, Scalar, str], ...]
    maps: int
    positions: tuple[int, ...]

    @classmethod
    def alone(cls, leaf: Relation) -> _Parts:
        """Returns a relation that is not taken apart."""
        arity = leaf.relation_type.arity
        return cls((leaf,), arity, (), (), 0, tuple(range(arity)))


def flatten_joins(relation: Relation) -> Relation:
    """Returns `relation` with no join below another, but for what only linear operators may not pass."""
    return _Flattening().flat(relation)


class _Flattening:
    """Flattens the joins of one plan; what is there several times is looked at once."""

    def __init__(self) -> None:
        self._flat: dict[int, Relation] = {}
        self._joins: dict[int, _Parts | None] = {}

    def flat(self, relation: Relation) -> Relation:
        """Returns `relation` with its joins flattened."""
        if id(relation) not in self._flat:
            parts = self._of_join(relation) if isinstance(relation, Join) else None
            self._flat[id(relation)] = self._with_flat_inputs(relation) if parts is None else _assembled(parts)
        return self._flat[id(relation)]

    def _with_flat_inputs(self, relation: Relation) -> Relation:
        return with_inputs(relation, [self.flat(one) for one in inputs_of(relation)])

    def _of_join(self, join: Join) -> _Parts | None:
        """Returns a join taken apart; None if none of its inputs is made of one."""
        if id(join) not in self._joins:
            self._joins[id(join)] = self._taken_apart(join)
        return self._joins[id(join)]

    def _taken_apart(self, join: Join) -> _Parts | None:
        parts = [self._parts(one) for one in join.inputs]
        for i, one in enumerate(parts):
            mapped = frozenset() if one is None else _mapped(join, one, i)
            if mapped and any(columns_of(scalar) & mapped for each in join.equivalences for scalar in each):
                parts[i] = None
        if all(one is None for one in parts):
            return None
        return _joined(join, [one or _Parts.alone(self.flat(join.inputs[i])) for i, one in enumerate(parts)])

    def _parts(self, relation: Relation) -> _Parts | None:
        """Returns `relation` taken apart, or None if it is not linear over a join."""
        match relation:
            case Join():
                return self._of_join(relation) or _parts_of_flat(relation, self._with_flat_inputs(relation))
            case Projection() | Filter() | Map():
                below = self._parts(relation.input)
                return None if below is None else _above(relation, below)
            case _:
                return None


def _mapped(join: Join, one: _Parts, i: int) -> frozenset[int]:
    """Returns the join's columns that input `i` computes by a map."""
    if not one.maps:
        return frozenset()
    offset = join.offsets[i]
    return frozenset(offset + new for new, old in enumerate(one.positions) if old >= one.leaf_arity)


def _parts_of_flat(join: Join, flat: Relation) -> _Parts:
    """Returns a join of what is no join taken apart."""
    arity = join.relation_type.arity
    return _Parts(inputs_of(flat), arity, _classes(join), (), 0, tuple(range(arity)))


def _above(relation: Projection | Filter | Map, below: _Parts) -> _Parts:
    """Returns a linear operator over what is taken apart, taken apart."""
    match relation:
        case Projection():
            return replace(below, positions=tuple([below.positions[one] for one in relation.positions]))
        case Filter():
            places = dict(enumerate(below.positions))
            steps = tuple(("filter", moved(one, places), "") for one in relation.predicates)
            return replace(below, steps=below.steps + steps)
        case Map():
            made, positions = list(below.steps), list(below.positions)
            for number, (scalar, name) in enumerate(zip(relation.scalars, relation.names, strict=True), below.maps):
                made.append(("map", moved(scalar, dict(enumerate(positions))), name))
                positions.append(below.leaf_arity + number)
            maps = below.maps + len(relation.scalars)
            return replace(below, steps=tuple(made), maps=maps, positions=tuple(positions))


def _classes(join: Join) -> tuple[tuple[tuple[Scalar, ...], bool], ...]:
    return tuple((one, number in join.null_safe) for number, one in enumerate(join.equivalences))


def _joined(join: Join, parts: Sequence[_Parts]) -> _Parts:
    """Returns the parts of the whole join, given those of its inputs: leaves side by side, then all maps."""
    total = sum([one.leaf_arity for one in parts])
    leaves: list[Relation] = []
    equivalences: list[tuple[tuple[Scalar, ...], bool]] = []
    steps: list[tuple[str, Scalar, str]] = []
    positions: list[int] = []
    leaf_offset, map_offset = 0, total
    for one in parts:
        places = {i: leaf_offset + i for i in range(one.leaf_arity)}
        places |= {one.leaf_arity + i: map_offset + i for i in range(one.maps)}
        leaves += one.leaves
        if leaf_offset or one.maps:
            equivalences += [(tuple(moved(scalar, places) for scalar in each), safe) for each, safe in one.equivalences]
            steps += [(kind, moved(scalar, places), name) for kind, scalar, name in one.steps]
        else:  # it stays where it is, as what was joined first does in each join above
            equivalences += one.equivalences
            steps += one.steps
        positions += [places[place] for place in one.positions]
        leaf_offset, map_offset = leaf_offset + one.leaf_arity, map_offset + one.maps
    outer = dict(enumerate(positions))
    equivalences += [(tuple(moved(scalar, outer) for scalar in each), safe) for each, safe in _classes(join)]
    return _Parts(tuple(leaves), total, tuple(equivalences), tuple(steps), map_offset - total, tuple(positions))


def _assembled(parts: _Parts) -> Relation:
    null_safe = frozenset(number for number, (_, safe) in enumerate(parts.equivalences) if safe)
    relation: Relation = Join(parts.leaves, tuple(one for one, _ in parts.equivalences), null_safe)
    for kind, same in groupby(parts.steps, lambda step: step[0]):
        if kind == "filter":
            relation = Filter(relation, tuple(scalar for _, scalar, _ in same))
            continue
        for _, scalar, name in same:
            relation = Map(relation, (scalar,), (name,))
    return projected_to(relation, parts.positions)
