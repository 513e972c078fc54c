"""Kinds whose equal values have several representations are grouped and ordered by one value for all equal ones.

    Reduce[k; f] r      is   Project (k', f) (Map k' = restored(m) (Reduce[c; f, m = min(ordered(k))] (Map c, ... r)))
    TopK[g, o] r        is   Project r (TopK[c(g), c(o)] (Map c(g), c(o) r)), and so is Window
    Threshold r         is   Threshold (Map c(r)), and Join compares c(x) with c(y)

where c(x) is the value that stands for all that equal x, whose stored form has their order, and `ordered(x)` has that
order, too, and tells them apart: so a group shows the least representation of its key, whatever the order of its rows.
What a difference of collections leaves is c alone: who makes it looks up how one side represents it
(`represented_as_in`). Where the stored form of c(x) has another order, rows are ordered by `sorted(x)`.

Once, at the end: it adds columns, and the other passes know grouping by the columns that the query names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.relation import Aggregate, ColumnOrder, Join, Map, Reduce, Relation, Threshold, TopK, Window
from mz_dagster.plan.representations import (
    by_representation,
    comparable,
    from_representation,
    representation_of,
    sortable,
    with_one_zero,
)
from mz_dagster.plan.rewriting import bottom_up, projected_to, reference, shifted
from mz_dagster.scalars.scalar import ColumnRef, Scalar


def comparable_columns(relation: Relation) -> Relation:
    """Returns `relation` with grouping and order by `=` where representations differ."""
    return bottom_up(relation, _compared)


def comparable_rows(relation: Relation) -> Relation:
    """Returns `relation` with the values that stand for all equal ones: rows that are equal have one representation.

    Where collections are subtracted, rows must cancel that are equal, not only those that look alike.
    """
    width = relation.relation_type.arity
    cells = [reference(relation.relation_type, position) for position in range(width)]
    scalars = [with_one_zero(comparable(cell)) for cell in cells]
    if scalars == cells:
        return relation
    return projected_to(Map(relation, tuple(scalars), relation.relation_type.names), range(width, 2 * width))


def represented_as_in(relation: Relation, source: Relation) -> Relation:
    """Returns the rows of `relation`, which are some `comparable_rows` of `source`, as that represents them.

    Of several equal rows of `source` the least one is shown.
    """
    columns = _Columns(source)
    everything = range(columns.width)
    several = columns.several(everything)
    if not several:
        return relation
    key = tuple(columns.comparable(everything).values())
    least = columns.least(several)
    shown = Reduce(columns.relation(), key, least, tuple(f"least_{i}" for i in range(len(least))))
    classes = tuple(
        (reference(relation.relation_type, i), shifted(reference(shown.relation_type, i), columns.width))
        for i in everything
    )
    joined = Join((relation, shown), classes, frozenset(everything))
    restored = columns.restored(joined, 2 * columns.width, several)
    width = joined.relation_type.arity
    return projected_to(restored, [width + several.index(i) if i in several else i for i in everything])


def with_sortable_columns(relation: Relation, order: Sequence[ColumnOrder]) -> tuple[Relation, tuple[ColumnOrder, ...]]:
    """Returns `relation`, and its order over columns that compare as they are stored: if need be, added behind its own.

    It is for rows that are ordered when they are out of the plan.
    """
    columns = _Columns(relation)
    places = {one.position: one.position for one in order}
    places |= columns.sortable(one for one in places if columns.is_sorted_apart(one))
    return (columns.relation() if columns.added else relation), tuple(one.moved(places) for one in order)


def _compared(relation: Relation) -> Relation:
    match relation:
        case Reduce():
            return _reduced(relation)
        case TopK() | Window():
            return _ordered(relation)
        case Join():
            classes = tuple(tuple(comparable(scalar) for scalar in one) for one in relation.equivalences)
            return relation if classes == relation.equivalences else replace(relation, equivalences=classes)
        case Threshold():
            columns = _Columns(relation.input)
            places = columns.comparable(range(columns.width))
            if not columns.added:
                return relation
            return Threshold(projected_to(columns.relation(), tuple(places.values())))
        case _:
            return relation


def _ordered(relation: TopK | Window) -> Relation:
    columns = _Columns(relation.input)
    group = relation.group if isinstance(relation, TopK) else relation.partition
    group = tuple(columns.comparable(group).values())
    sortable = columns.sortable(one.position for one in relation.order)
    if not columns.added:
        return relation
    order = tuple(one.moved(sortable) for one in relation.order)
    below = columns.relation()
    if isinstance(relation, TopK):
        return projected_to(replace(relation, input=below, group=group, order=order), range(columns.width))
    results = range(below.relation_type.arity, below.relation_type.arity + len(relation.functions))
    window = replace(relation, input=below, partition=group, order=order)
    return projected_to(window, (*range(columns.width), *results))


def _reduced(relation: Reduce) -> Relation:
    columns = _Columns(relation.input)
    distinct = (p for one in relation.aggregates if one.distinct for p in one.arguments)
    places = columns.comparable((*relation.key, *distinct))
    sortable = columns.sortable(each.position for one in relation.aggregates for each in one.order)
    if not columns.added:
        return relation
    own = tuple(
        replace(
            one,
            arguments=tuple(places[p] for p in one.arguments) if one.distinct else one.arguments,
            order=tuple(each.moved(sortable) for each in one.order),
        )
        for one in relation.aggregates
    )
    several = columns.several(relation.key)
    least = columns.least(several)
    below = Reduce(
        columns.relation(),
        tuple(places[position] for position in relation.key),
        (*own, *least),
        (*relation.names, *(f"least_{i}" for i in range(len(least)))),
        relation.group_size,
    )
    first, width = relation.relation_type.arity, below.relation_type.arity
    kept = [*range(first)]
    for i, position in enumerate(several):
        kept[relation.key.index(position)] = width + i
    return projected_to(columns.restored(below, first, several), kept)


class _Columns:
    """A relation with columns added to it."""

    def __init__(self, below: Relation) -> None:
        self._below = below
        self.width = below.relation_type.arity
        self.added: list[Scalar] = []
        self._names: list[str] = []

    def several(self, positions: Iterable[int]) -> list[int]:
        """Returns those of the columns whose equal values have several representations."""
        return [one for one in positions if representation_of(self._column(one).type) is not None]

    def is_sorted_apart(self, position: int) -> bool:
        """Returns whether what stands for equal values of a column has not their order."""
        known = representation_of(self._column(position).type)
        return known is not None and bool(known.sorted)

    def comparable(self, positions: Iterable[int]) -> dict[int, int]:
        """Adds what stands for all equal values of these columns, and returns where; a column itself if it does."""
        return {one: self._place(one, comparable(self._column(one))) for one in positions}

    def sortable(self, positions: Iterable[int]) -> dict[int, int]:
        """Adds what has the order of these columns, and returns where; a column itself if it has."""
        return {one: self._place(one, sortable(self._column(one))) for one in positions}

    def least(self, positions: Iterable[int]) -> tuple[Aggregate, ...]:
        """Returns what finds the least representation of these columns, which have several."""
        apart = {one: by_representation(self._column(one)) for one in positions}
        return tuple(Aggregate(AggregateFunction.MIN, (self._place(p, one),), one.type) for p, one in apart.items())

    def restored(self, found: Relation, first: int, positions: Sequence[int]) -> Relation:
        """Returns these columns behind those of `found`, in which the `least` of them stand from `first` on."""
        if not positions:
            return found
        columns = [self._column(one) for one in positions]
        # Of a group the least is NULL only where all are.
        least = (
            replace(reference(found.relation_type, first + i), nullable=one.nullable) for i, one in enumerate(columns)
        )
        scalars = (from_representation(one, column.type) for one, column in zip(least, columns, strict=True))
        return Map(found, tuple(scalars), tuple(one.name for one in columns))

    def relation(self) -> Relation:
        """Returns the relation, the added columns behind its own."""
        return Map(self._below, tuple(self.added), tuple(self._names))

    def _column(self, position: int) -> ColumnRef:
        return reference(self._below.relation_type, position)

    def _place(self, position: int, scalar: Scalar) -> int:
        """Adds a scalar over a column, unless it is the column or is there already, and returns where it is."""
        if scalar == self._column(position):
            return position
        if scalar not in self.added:
            self.added.append(scalar)
            self._names.append(self._column(position).name)
        return self.width + self.added.index(scalar)
