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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mz_dagster.plan.relation import (
    Aggregate,
    AggregateFunction,
    ColumnOrder,
    Join,
    Map,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Window,
)
from mz_dagster.plan.representations import REPRESENTATIONS, Representation
from mz_dagster.plan.rewriting import bottom_up, projected_to, reference, shifted
from mz_dagster.plan.scalar import Call, Scalar
from mz_dagster.plan.types import BOOL, Kind, ScalarType, array_of, record_of


def comparable_columns(relation: Relation) -> Relation:
    """Returns `relation` with grouping and order by `=` where representations differ."""
    return bottom_up(relation, _compared)


#: Kinds whose one zero of two is the only other representation that there is.
_ZEROS = {Kind.FLOAT4: "unsigned_zero_float4", Kind.FLOAT8: "unsigned_zero_float8"}


def comparable_rows(relation: Relation) -> Relation:
    """Returns `relation` with the values that stand for all equal ones: rows that are equal have one representation.

    Where collections are subtracted, rows must cancel that are equal, not only those that look alike.
    """
    scalars: list[Scalar] = []
    for position, column in enumerate(relation.relation_type.columns):
        found = REPRESENTATIONS.get(column.type.kind)
        function = _ZEROS.get(column.type.kind) if found is None else found.comparable
        cell = reference(relation.relation_type, position)
        scalars.append(Call(function, (cell,), column.type, column.nullable) if function else cell)
    if not any(isinstance(one, Call) for one in scalars):
        return relation
    width = len(scalars)
    return projected_to(Map(relation, tuple(scalars), relation.relation_type.names), range(width, 2 * width))


def represented_as_in(relation: Relation, source: Relation) -> Relation:
    """Returns the rows of `relation`, which are some `comparable_rows` of `source`, as that represents them.

    Of several equal rows of `source` the least one is shown.
    """
    columns = _Columns(source)
    places = columns.comparable(range(columns.width))
    if not places:
        return relation
    least = tuple(
        Aggregate(AggregateFunction.MIN, (columns.ordered(position),), columns.representation(position).order)
        for position in places
    )
    key = tuple(places.get(position, position) for position in range(columns.width))
    shown = Reduce(columns.relation(), key, least, tuple(f"least_{i}" for i in range(len(least))))
    classes = tuple(
        (reference(relation.relation_type, i), shifted(reference(shown.relation_type, i), columns.width))
        for i in range(columns.width)
    )
    joined = Join((relation, shown), classes, frozenset(range(columns.width)))
    width = joined.relation_type.arity
    restored = tuple(
        Call(
            columns.representation(position).restored,
            (reference(joined.relation_type, 2 * columns.width + i),),
            columns.type(position),
            relation.relation_type.columns[position].nullable,
        )
        for i, position in enumerate(places)
    )
    named = tuple(relation.relation_type.columns[position].name for position in places)
    order = [width + list(places).index(i) if i in places else i for i in range(columns.width)]
    return projected_to(Map(joined, restored, named), order)


def sorted_type(type_: ScalarType) -> ScalarType:
    """Returns the type of what rows are ordered by in the place of an array: NULL is last among its elements."""
    assert type_.element is not None
    return array_of(record_of([("is_null", BOOL), ("element", type_.element)]))


def with_sortable_columns(relation: Relation, order: Sequence[ColumnOrder]) -> tuple[Relation, tuple[ColumnOrder, ...]]:
    """Returns `relation`, and its order over columns that compare as they are stored: if need be, added behind its own.

    It is for rows that are ordered when they are out of the plan.
    """
    columns = _Columns(relation)
    own = (one.position for one in order if columns.is_sorted_apart(one.position))
    places = columns.sortable(own)
    return (columns.relation() if columns.added else relation), _moved(order, places)


def _compared(relation: Relation) -> Relation:
    match relation:
        case Reduce():
            return _reduced(relation)
        case TopK() | Window():
            return _ordered(relation)
        case Join():
            classes = tuple(tuple(_comparable(scalar) for scalar in one) for one in relation.equivalences)
            return relation if classes == relation.equivalences else replace(relation, equivalences=classes)
        case Threshold():
            columns = _Columns(relation.input)
            places = columns.comparable(range(columns.width))
            if not columns.added:
                return relation
            order = [places.get(position, position) for position in range(columns.width)]
            return Threshold(projected_to(columns.relation(), order))
        case _:
            return relation


def _comparable(scalar: Scalar) -> Scalar:
    """Returns the value that stands for all equal to `scalar`; itself if it is that already."""
    known = REPRESENTATIONS.get(scalar.type.kind)
    if known is None or (isinstance(scalar, Call) and scalar.function == known.comparable):
        return scalar
    return Call(known.comparable, (scalar,), scalar.type, scalar.nullable)


def _ordered(relation: TopK | Window) -> Relation:
    columns = _Columns(relation.input)
    group = relation.group if isinstance(relation, TopK) else relation.partition
    places = columns.comparable(group)
    order = _moved(relation.order, columns.sortable(one.position for one in relation.order))
    if not columns.added:
        return relation
    group = tuple(places.get(position, position) for position in group)
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
    several = [position for position in relation.key if position in places]
    least = [
        Aggregate(AggregateFunction.MIN, (columns.ordered(position),), columns.representation(position).order)
        for position in several
    ]
    aggregates = (
        *(
            replace(
                one,
                arguments=tuple(places.get(p, p) for p in one.arguments) if one.distinct else one.arguments,
                order=_moved(one.order, sortable),
            )
            for one in relation.aggregates
        ),
        *least,
    )
    key = tuple(places.get(position, position) for position in relation.key)
    names = (*relation.names, *(f"least_{i}" for i in range(len(least))))
    below = replace(relation, input=columns.relation(), key=key, aggregates=aggregates, names=names)
    shown = below.relation_type
    first = len(key) + len(relation.aggregates)
    restored = tuple(
        Call(columns.representation(position).restored, (reference(shown, first + i),), columns.type(position))
        for i, position in enumerate(several)
    )
    kept = list(range(first))
    for i, position in enumerate(several):
        kept[relation.key.index(position)] = shown.arity + i
    own = relation.relation_type.columns
    named = tuple(own[relation.key.index(position)].name for position in several)
    return projected_to(Map(below, restored, named) if restored else below, kept)


def _moved(order: Sequence[ColumnOrder], places: Mapping[int, int]) -> tuple[ColumnOrder, ...]:
    return tuple(replace(one, position=places.get(one.position, one.position)) for one in order)


class _Columns:
    """Is a relation with columns added to it."""

    def __init__(self, below: Relation) -> None:
        self._below = below
        self.width = below.relation_type.arity
        self.added: list[Scalar] = []
        self._names: list[str] = []

    def type(self, position: int) -> ScalarType:
        """Returns the type of a column."""
        return self._below.relation_type.columns[position].type

    def representation(self, position: int) -> Representation:
        """Returns the functions of a column's kind."""
        return REPRESENTATIONS[self.type(position).kind]

    def comparable(self, positions: Iterable[int]) -> dict[int, int]:
        """Adds what stands for the columns that have several representations, and returns where."""
        several = [p for p in dict.fromkeys(positions) if self.type(p).kind in REPRESENTATIONS]
        return {p: self._add(p, self.representation(p).comparable, self.type(p)) for p in several}

    def sortable(self, positions: Iterable[int]) -> dict[int, int]:
        """Adds what orders rows by columns that have several representations, and returns where."""
        positions = list(dict.fromkeys(positions))
        several = [p for p in positions if self.type(p).kind in REPRESENTATIONS]
        arrays = {p: self._add(p, "order_array", sorted_type(self.type(p))) for p in positions if self.is_array(p)}
        apart = arrays | {
            p: self._add(p, self.representation(p).sorted, self.representation(p).order)
            for p in several
            if self.is_sorted_apart(p)
        }
        return apart | self.comparable(p for p in several if p not in apart)

    def is_array(self, position: int) -> bool:
        """Returns whether a column holds arrays, whose stored form has another order."""
        return self.type(position).kind is Kind.ARRAY

    def is_sorted_apart(self, position: int) -> bool:
        """Returns whether what stands for equal values of a column has not their order."""
        found = REPRESENTATIONS.get(self.type(position).kind)
        return found is not None and bool(found.sorted)

    def ordered(self, position: int) -> int:
        """Adds what tells representations of a column apart, and returns where."""
        return self._add(position, self.representation(position).ordered, self.representation(position).order)

    def relation(self) -> Relation:
        """Returns the relation, the added columns behind its own."""
        return Map(self._below, tuple(self.added), tuple(self._names))

    def _add(self, position: int, function: str, type_: ScalarType) -> int:
        """Adds a function of a column, once, and returns where it is."""
        column = reference(self._below.relation_type, position)
        call = Call(function, (column,), type_, column.nullable)
        if call not in self.added:
            self.added.append(call)
            self._names.append(column.name)
        return self.width + self.added.index(call)
