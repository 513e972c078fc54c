"""In which order the term of a delta join looks up its inputs."""

from __future__ import annotations

from mz_dagster.plan.relation import Join
from mz_dagster.plan.scalar import ColumnRef, Scalar, columns_of


def lookup_order(join: Join, first: int) -> tuple[int, ...]:
    """Returns the order in which the term of input `first` looks up the others.

    Next is an input whose unique key is bound by what is already there, then one that is connected by an equivalence,
    and only then one that is not: a cross product. Ties go to the leftmost.
    """
    bound = _columns(join, first)
    order: list[int] = []
    rest = [i for i in range(len(join.inputs)) if i != first]
    while rest:
        chosen = min(rest, key=lambda i: (_rank(join, i, bound), i))
        order.append(chosen)
        rest.remove(chosen)
        bound |= _columns(join, chosen)
    return tuple(order)


def _columns(join: Join, index: int) -> set[int]:
    offset = join.offsets[index]
    return set(range(offset, offset + join.inputs[index].relation_type.arity))


def _rank(join: Join, index: int, bound: set[int]) -> int:
    own = _columns(join, index)
    connected: list[Scalar] = []
    for one in join.equivalences:
        if any(columns_of(scalar) <= bound for scalar in one):
            connected += [scalar for scalar in one if columns_of(scalar) <= own]
    positions = {scalar.position - join.offsets[index] for scalar in connected if isinstance(scalar, ColumnRef)}
    if any(key <= positions for key in join.inputs[index].relation_type.keys):
        return 0
    return 1 if connected else 2
