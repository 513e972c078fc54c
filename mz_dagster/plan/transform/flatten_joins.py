"""Nested joins become one n-way join, which needs no intermediate results.

    Join (Map s (Filter p (Join a b))) c   is   Project (Map s' (Filter p' (Join a b c)))

What stands between the joins is lifted above, in its order: a filter stays below the maps that it guards. Only
inputs that are made of a join are taken apart; maps and filters over a single collection stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.plan.relation import Filter, Join, Map, Projection, Relation
from mz_dagster.plan.rewriting import bottom_up, moved, projected_to
from mz_dagster.scalars.scalar import Scalar, columns_of


@dataclass(frozen=True, slots=True)
class _Parts:
    """A relation taken apart: columns of `leaves`, then of the mapped scalars, then `positions` of them.

    Attributes:
        leaves: What is joined.
        equivalences: Over the leaves' columns, each with whether NULL equals NULL in it.
        steps: `("filter", predicate, "")` or `("map", scalar, name)`, in order.
        positions: Where each output column stands.
    """

    leaves: tuple[Relation, ...]
    equivalences: tuple[tuple[tuple[Scalar, ...], bool], ...]
    steps: tuple[tuple[str, Scalar, str], ...]
    positions: tuple[int, ...]

    @property
    def leaf_arity(self) -> int:
        return sum(leaf.relation_type.arity for leaf in self.leaves)


def flatten_joins(relation: Relation) -> Relation:
    """Returns `relation` with no join below another, but for what only linear operators may not pass."""
    return bottom_up(relation, _flat)


def _flat(relation: Relation) -> Relation:
    if not isinstance(relation, Join):
        return relation
    parts = [_parts(one) for one in relation.inputs]
    for i, one in enumerate(parts):
        scalars = [scalar for each in relation.equivalences for scalar in each]
        if one is not None and any(columns_of(scalar) & _mapped(relation, parts, i) for scalar in scalars):
            parts[i] = None
    if all(one is None for one in parts):
        return relation
    return _assembled(_joined(relation, parts))


def _mapped(relation: Join, parts: list[_Parts | None], i: int) -> frozenset[int]:
    """Returns the join's columns that input `i` computes by a map."""
    one = parts[i]
    assert one is not None
    offset = relation.offsets[i]
    return frozenset(offset + new for new, old in enumerate(one.positions) if old >= one.leaf_arity)


def _parts(relation: Relation) -> _Parts | None:
    """Returns `relation` taken apart, or None if it is not linear over a join."""
    match relation:
        case Join():
            return _Parts(relation.inputs, _classes(relation), (), tuple(range(relation.relation_type.arity)))
        case Projection():
            below = _parts(relation.input)
            if below is None:
                return None
            return _Parts(
                below.leaves, below.equivalences, below.steps, tuple(below.positions[one] for one in relation.positions)
            )
        case Filter():
            below = _parts(relation.input)
            if below is None:
                return None
            places = dict(enumerate(below.positions))
            steps = tuple(("filter", moved(one, places), "") for one in relation.predicates)
            return _Parts(below.leaves, below.equivalences, below.steps + steps, below.positions)
        case Map():
            return _parts_of_map(relation)
        case _:
            return None


def _classes(join: Join) -> tuple[tuple[tuple[Scalar, ...], bool], ...]:
    return tuple((one, number in join.null_safe) for number, one in enumerate(join.equivalences))


def _parts_of_map(relation: Map) -> _Parts | None:
    below = _parts(relation.input)
    if below is None:
        return None
    steps, positions = list(below.steps), list(below.positions)
    for scalar, name in zip(relation.scalars, relation.names, strict=True):
        place = below.leaf_arity + sum(kind == "map" for kind, _, _ in steps)
        steps.append(("map", moved(scalar, dict(enumerate(positions))), name))
        positions.append(place)
    return _Parts(below.leaves, below.equivalences, tuple(steps), tuple(positions))


def _joined(relation: Join, parts: list[_Parts | None]) -> _Parts:
    """Returns the parts of the whole join: leaves side by side, then all maps."""
    alone = [
        one or _Parts((relation.inputs[i],), (), (), tuple(range(relation.inputs[i].relation_type.arity)))
        for i, one in enumerate(parts)
    ]
    total = sum(one.leaf_arity for one in alone)
    leaves: list[Relation] = []
    equivalences: list[tuple[tuple[Scalar, ...], bool]] = []
    steps: list[tuple[str, Scalar, str]] = []
    positions: list[int] = []
    leaf_offset, map_offset = 0, total
    for one in alone:
        maps = sum(kind == "map" for kind, _, _ in one.steps)
        places = {i: leaf_offset + i for i in range(one.leaf_arity)}
        places |= {one.leaf_arity + i: map_offset + i for i in range(maps)}
        leaves += one.leaves
        if leaf_offset or maps:
            equivalences += [(tuple(moved(scalar, places) for scalar in each), safe) for each, safe in one.equivalences]
            steps += [(kind, moved(scalar, places), name) for kind, scalar, name in one.steps]
        else:  # it stays where it is, as what was joined first does in each join above
            equivalences += one.equivalences
            steps += one.steps
        positions += [places[place] for place in one.positions]
        leaf_offset, map_offset = leaf_offset + one.leaf_arity, map_offset + maps
    outer = dict(enumerate(positions))
    equivalences += [(tuple(moved(scalar, outer) for scalar in each), safe) for each, safe in _classes(relation)]
    return _Parts(tuple(leaves), tuple(equivalences), tuple(steps), tuple(positions))


def _assembled(parts: _Parts) -> Relation:
    null_safe = frozenset(number for number, (_, safe) in enumerate(parts.equivalences) if safe)
    relation: Relation = Join(parts.leaves, tuple(one for one, _ in parts.equivalences), null_safe)
    for kind, scalar, name in parts.steps:
        relation = Map(relation, (scalar,), (name,)) if kind == "map" else Filter(relation, (scalar,))
    return projected_to(relation, parts.positions)
