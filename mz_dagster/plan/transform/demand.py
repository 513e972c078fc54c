"""Columns that nothing reads are dropped as early as possible: reads and joins carry only what is needed.

So are aggregates and window functions. What goes by the whole row keeps its input as wide as it is: `Threshold`, the
ties of `TopK` and of `Window`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

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
from mz_dagster.plan.rewriting import moved, projected_to
from mz_dagster.plan.scalar import Scalar, columns_of


def demand(relation: Relation) -> Relation:
    """Returns `relation` with each operator's inputs narrowed to the columns that are needed above."""
    return _narrowed(relation, frozenset(range(relation.relation_type.arity)))


def _read(scalars: Iterable[Scalar]) -> frozenset[int]:
    return frozenset().union(*(columns_of(one) for one in scalars))


def _narrowed(relation: Relation, needed: frozenset[int]) -> Relation:
    """Returns the columns `needed` of `relation`, in their order."""
    kept = sorted(needed)
    match relation:
        case Get() | Constant():
            return projected_to(relation, kept)
        case Let():
            return projected_to(Let(relation.id, demand(relation.value), demand(relation.body)), kept)
        case Negate():
            return Negate(_narrowed(relation.input, needed))
        case Union():
            return Union(tuple(_narrowed(one, needed) for one in relation.inputs))
        case Project():
            below = frozenset(relation.positions[one] for one in kept)
            places = {old: new for new, old in enumerate(sorted(below))}
            return projected_to(_narrowed(relation.input, below), [places[relation.positions[one]] for one in kept])
        case Filter():
            below = needed | _read(relation.predicates)
            places = {old: new for new, old in enumerate(sorted(below))}
            predicates = tuple(moved(one, places) for one in relation.predicates)
            return projected_to(Filter(_narrowed(relation.input, below), predicates), [places[one] for one in kept])
        case Map():
            return _narrowed_map(relation, kept)
        case Join():
            return _narrowed_join(relation, kept)
        case Reduce():
            return _narrowed_reduce(relation, kept)
        case TemporalFilter():
            below = needed | _read((*relation.lower, *relation.upper))
            places = {old: new for new, old in enumerate(sorted(below))}
            lower = tuple(moved(one, places) for one in relation.lower)
            upper = tuple(moved(one, places) for one in relation.upper)
            narrow = TemporalFilter(_narrowed(relation.input, below), lower, upper)
            return projected_to(narrow, [places[one] for one in kept])
        case RepeatRow():
            return _narrowed_repeat(relation, kept)
        case TopK():
            return projected_to(replace(relation, input=demand(relation.input)), kept)
        case Window():
            return _narrowed_window(relation, kept)
        case Threshold():
            return projected_to(Threshold(demand(relation.input)), kept)
        case DependentJoin():
            return projected_to(relation, kept)
        case _:
            assert_never(relation)


def _narrowed_reduce(relation: Reduce, kept: list[int]) -> Relation:
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
        _narrowed(relation.input, below),
        tuple(places[one] for one in relation.key),
        tuple(relation.aggregates[i].moved(places) for i in used),
        tuple(relation.names[i] for i in used),
        relation.group_size,
    )
    columns = {position: position for position in range(arity)} | {arity + i: arity + new for new, i in enumerate(used)}
    return projected_to(narrow, [columns[one] for one in kept])


def _narrowed_repeat(relation: RepeatRow, kept: list[int]) -> Relation:
    # Position `count` is not among the columns above.
    below = frozenset({relation.count} | {one if one < relation.count else one + 1 for one in kept})
    narrow = sorted(below)
    return RepeatRow(_narrowed(relation.input, below), narrow.index(relation.count))


def _narrowed_window(relation: Window, kept: list[int]) -> Relation:
    """Returns the columns `kept` of a window; the input keeps its columns, since the whole row decides ties."""
    arity = relation.input.relation_type.arity
    used = [i for i in range(len(relation.functions)) if arity + i in kept]
    below = demand(relation.input)
    if not used:
        return projected_to(below, kept)
    functions = tuple(relation.functions[i] for i in used)
    narrow = replace(relation, input=below, functions=functions, names=tuple(relation.names[i] for i in used))
    places = {position: position for position in range(arity)} | {arity + i: arity + n for n, i in enumerate(used)}
    return projected_to(narrow, [places[one] for one in kept])


def _narrowed_map(relation: Map, kept: list[int]) -> Relation:
    arity = relation.input.relation_type.arity
    needed = set(kept)
    for i in reversed(range(len(relation.scalars))):
        if arity + i in needed:
            needed |= columns_of(relation.scalars[i])
    below = frozenset(one for one in needed if one < arity)
    used = [i for i in range(len(relation.scalars)) if arity + i in needed]
    places = {old: new for new, old in enumerate(sorted(below))}
    places |= {arity + i: len(below) + new for new, i in enumerate(used)}
    narrow = _narrowed(relation.input, below)
    if used:
        scalars = tuple(moved(relation.scalars[i], places) for i in used)
        narrow = Map(narrow, scalars, tuple(relation.names[i] for i in used))
    return projected_to(narrow, [places[one] for one in kept])


def _narrowed_join(relation: Join, kept: list[int]) -> Relation:
    needed = frozenset(kept) | _read(scalar for one in relation.equivalences for scalar in one)
    inputs: list[Relation] = []
    places: dict[int, int] = {}
    for offset, one in zip(relation.offsets, relation.inputs, strict=True):
        columns = frozenset(column for column in range(one.relation_type.arity) if offset + column in needed)
        for column in sorted(columns):
            places[offset + column] = len(places)
        inputs.append(_narrowed(one, columns))
    equivalences = tuple(tuple(moved(scalar, places) for scalar in one) for one in relation.equivalences)
    narrow = Join(tuple(inputs), equivalences, relation.null_safe)
    return projected_to(narrow, [places[one] for one in kept])
