"""Equalities above a join become its equivalences, by which it looks rows up.

A predicate `eq_*(s, t)` becomes one if `s` reads only one input and `t` only another, and both can be brought to one
type (`plan/equality.py`); so does `is_not_distinct_from(s, t)`, in which NULL equals NULL. Classes that share a
scalar are merged: `a = b` and `b = c` are one class of three, in which NULL equals NULL only if it does in each of
those it is made of. A side that can fail is first computed in its input, so that the lookup itself cannot fail: its
errors are then those of all the input's rows. One that raises an error of its own, as a subquery of several rows does,
stays above: that is an error of the rows that ask only.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.plan.equality import equated, is_equality
from mz_dagster.plan.relation import Filter, Join, Map, Relation, offsets_of
from mz_dagster.plan.rewriting import (
    bottom_up,
    can_fail,
    conjunction,
    conjuncts,
    filtered,
    moved,
    projected_to,
    shifted,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar, columns_of, reads_now, walk


@dataclass(frozen=True, slots=True)
class _Class:
    scalars: tuple[Scalar, ...]
    null_safe: bool


def join_equivalences(relation: Relation) -> Relation:
    """Returns `relation` with the equalities of filters over joins moved into the joins."""
    return bottom_up(relation, _moved_in)


def _moved_in(relation: Relation) -> Relation:
    if isinstance(relation, Join):
        classes = [_Class(one, number in relation.null_safe) for number, one in enumerate(relation.equivalences)]
        joined = _join(relation.inputs, classes)
        return relation if joined == relation else joined
    if not isinstance(relation, Filter) or not isinstance(relation.input, Join):
        return relation
    join = relation.input
    predicates = [one for predicate in relation.predicates for one in conjuncts(predicate)]
    equalities = {one: sides for one in predicates if (sides := _equated(join, one)) is not None}
    if not equalities:
        return relation
    rest = [one for one in predicates if one not in equalities]
    stays = [one for one in rest if not can_fail(one)]
    unsafe = [one for one in rest if can_fail(one)]
    if unsafe:
        stays.append(conjunction(unsafe))
    classes = [_Class(one, number in join.null_safe) for number, one in enumerate(join.equivalences)]
    inputs = list(join.inputs)
    added: dict[tuple[int, Scalar], int] = {}
    for predicate, sides in equalities.items():
        classes.append(_Class(sides, not is_equality(predicate)))
        for side in sides:
            if can_fail(side):
                _compute_below(inputs, join, side, added)
    if not added:
        return filtered(_join(join.inputs, classes), stays)
    return _with_computed(join, inputs, classes, stays, added)


def _compute_below(inputs: list[Relation], join: Join, side: Scalar, added: dict[tuple[int, Scalar], int]) -> None:
    owner = _owner(join, side)
    assert owner is not None
    if (owner, side) not in added:
        added[owner, side] = inputs[owner].relation_type.arity
        inputs[owner] = Map(inputs[owner], (shifted(side, -join.offsets[owner]),), ("lookup",))


def _with_computed(
    join: Join,
    inputs: list[Relation],
    classes: list[_Class],
    stays: list[Scalar],
    added: dict[tuple[int, Scalar], int],
) -> Relation:
    """Returns the join over inputs that got columns, without them in the result."""
    offsets = offsets_of(tuple(inputs))
    places = {
        join.offsets[i] + column: offsets[i] + column
        for i, one in enumerate(join.inputs)
        for column in range(one.relation_type.arity)
    }

    def relocated(scalar: Scalar) -> Scalar:
        owner = _owner(join, scalar)
        if owner is not None and (owner, scalar) in added:
            return ColumnRef(offsets[owner] + added[owner, scalar], scalar.type, scalar.nullable, "lookup")
        return moved(scalar, places)

    joined = _join(tuple(inputs), [_Class(tuple(map(relocated, one.scalars)), one.null_safe) for one in classes])
    below = filtered(joined, [moved(one, places) for one in stays])
    return projected_to(below, [places[i] for i in range(join.relation_type.arity)])


def _equated(join: Join, predicate: Scalar) -> tuple[Scalar, Scalar] | None:
    """Returns what `predicate` says is equal, if its two sides are of two inputs."""
    if reads_now(predicate):
        return None  # rows are looked up by what they hold, at any time
    sides = equated(predicate)
    if isinstance(predicate, Call) and predicate.function == "is_not_distinct_from":
        left, right = predicate.arguments
        sides = (left, right) if left.type == right.type else None
    if sides is None or any(map(_raises, sides)):
        return None
    owners = [_owner(join, side) for side in sides]
    return sides if None not in owners and owners[0] != owners[1] else None


def equated_inputs(join: Join, predicate: Scalar) -> frozenset[int]:
    """Returns the numbers of the two inputs that `predicate` links, if it is to be an equivalence; else none."""
    sides = _equated(join, predicate) or ()
    return frozenset(owner for side in sides if (owner := _owner(join, side)) is not None)


def _raises(scalar: Scalar) -> bool:
    """Returns whether `scalar` is made to be an error of the rows that ask for it: not of all in an input."""
    return any(isinstance(one, Call) and one.function == "error" for one in walk(scalar))


def _owner(join: Join, scalar: Scalar) -> int | None:
    """Returns the only input that `scalar` reads, or None."""
    return join.only_owner(columns_of(scalar))


def _join(inputs: tuple[Relation, ...], classes: list[_Class]) -> Join:
    """Returns the join of inputs in which classes that share a scalar are one."""
    merged: list[_Class] = []
    for one in classes:
        touching = [other for other in merged if set(other.scalars) & set(one.scalars)]
        rest = [other for other in merged if other not in touching]
        together = tuple(dict.fromkeys(scalar for each in (*touching, one) for scalar in each.scalars))
        # NULL equals none of what is never NULL.
        null_safe = all(each.null_safe for each in (*touching, one)) and all(each.nullable for each in together)
        merged = [*rest, _Class(together, null_safe)]
    safe = frozenset(number for number, one in enumerate(merged) if one.null_safe)
    return Join(inputs, tuple(one.scalars for one in merged), safe)
