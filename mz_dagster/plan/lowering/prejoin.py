"""What a filtered input leaves of a large one is kept, where the join would look the large one up scattered.

A join whose other input is made of the same collection, as with the average of each part's lineitems, looks that
collection up whenever it changes itself. By columns that have nothing to do with its key the rows of one value lie in
all files, and all of it is read at each step. If a third input is joined by its unique key, and filtered by constants,
then what passes that filter is few rows, and their join never has more rows than the large input: kept as an
arrangement by the columns of the lookup, it is what the step reads instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import permutations

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.lowering.fusion import fused
from mz_dagster.plan.relation import Get, Join, Projection, Relation
from mz_dagster.plan.rewriting import moved
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, columns_of


def prejoined(join: Join, reads: Sequence[Collection[GlobalId]], local: Collection[GlobalId]) -> Relation | None:
    """Returns the join with such a pair of inputs as one input, which is a join by itself; None if it has none.

    Args:
        join: A join.
        reads: The collections of which each input is made.
        local: What `Let`s have bound, which is no collection.
    """
    if len(join.inputs) < 3:
        return None
    for large, filtering in permutations(range(len(join.inputs)), 2):
        base = fused(join.inputs[large])[0]
        if not isinstance(base, Get) or base.id in local or not _restricts(join, large, filtering):
            continue
        others = [i for i in range(len(join.inputs)) if i not in (large, filtering) and base.id in reads[i]]
        if any(_is_scattered(join, large, other) for other in others):
            return _paired(join, large, filtering)
    return None


def _restricts(join: Join, large: int, filtering: int) -> bool:
    """Returns whether an input leaves few rows of another: it is filtered by constants, and joined by a unique key."""
    base, mfp = fused(join.inputs[filtering])
    if not isinstance(base, Get) or not any(kind == "filter" and _is_constant(one) for kind, one in mfp.steps):
        return False
    joined: set[int] = set()
    for one in join.equivalences:
        if plain_columns(join, large, one):
            joined |= plain_columns(join, filtering, one)
    return any(key <= joined for key in join.inputs[filtering].relation_type.keys)


def _is_constant(predicate: Scalar) -> bool:
    """Returns whether a row passes only where a column has one value."""
    if not isinstance(predicate, Call) or not predicate.function.startswith("eq_") or len(predicate.arguments) != 2:
        return False
    return any(isinstance(one, Literal) for one in predicate.arguments) and bool(columns_of(predicate))


def _is_scattered(join: Join, large: int, other: int) -> bool:
    """Returns whether one input looks another up, and by no column of the key by which that is laid out."""
    base, mfp = fused(join.inputs[large])
    places = {mfp.projection[position] for one in join.equivalences if _scalars(join, other, one)
              for position in plain_columns(join, large, one)}  # fmt: skip
    return bool(places) and not any(place in key for place in places for key in base.relation_type.keys)


def _paired(join: Join, large: int, filtering: int) -> Relation:
    rest = [i for i in range(len(join.inputs)) if i not in (large, filtering)]
    pair = (large, filtering)
    inner = Join(tuple(join.inputs[i] for i in pair), *_equivalences(join, pair, join.places(pair)))
    places = join.places([*pair, *rest])
    # What the pair has made equal is compared once.
    outer = Join(
        (inner, *(join.inputs[i] for i in rest)), *_equivalences(join, range(len(join.inputs)), places, without=pair)
    )
    return Projection(outer, tuple(places[position] for position in range(join.relation_type.arity)))


def _equivalences(
    join: Join, inputs: Collection[int], places: Mapping[int, int], without: tuple[int, int] | None = None
) -> tuple[tuple[tuple[Scalar, ...], ...], frozenset[int]]:
    """Returns the classes over some inputs, and which of them are null-safe.

    Args:
        join: The join.
        inputs: Which inputs.
        places: Where their columns are.
        without: Two inputs of which the second's scalars are left out where the first has some, too.
    """
    classes: list[tuple[Scalar, ...]] = []
    null_safe = set()
    for number, one in enumerate(join.equivalences):
        left_out: set[Scalar] = set()
        if without is not None and (mine := _scalars(join, without[0], one)):
            left_out = {*mine[1:], *_scalars(join, without[1], one)}
        known = [scalar for scalar in one if scalar not in left_out and _inputs(join, scalar) <= set(inputs)]
        if len(known) > 1:
            if number in join.null_safe:
                null_safe.add(len(classes))
            classes.append(tuple(moved(scalar, places) for scalar in known))
    return tuple(classes), frozenset(null_safe)


def _inputs(join: Join, scalar: Scalar) -> frozenset[int]:
    return join.owners(columns_of(scalar))


def _scalars(join: Join, input: int, equivalence: Sequence[Scalar]) -> list[Scalar]:
    """Returns those scalars of an equivalence that are over one input."""
    return [one for one in equivalence if _inputs(join, one) == {input}]


def plain_columns(join: Join, input: int, equivalence: Sequence[Scalar]) -> set[int]:
    """Returns the columns of an input that stand, as they are, in an equivalence; counted within the input."""
    found = (one.position for one in _scalars(join, input, equivalence) if isinstance(one, ColumnRef))
    return {position - join.offsets[input] for position in found}
