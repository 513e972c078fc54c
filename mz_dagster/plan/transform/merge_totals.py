"""Totals of one input that a join puts side by side are one total, with a filter for each.

    Join(total[f] (Filter p R), total[g] (Filter q R), S)
    is   Join(S, Project (f, g) (total[f where p, g where q] (Filter (p or q) R)))

A total is an aggregate without GROUP BY: one row at all times, `with_default(Reduce[][f] R)`. So their product is one
row, too, and what is computed above each is computed above that. Instead of a state for each, and one for each product
of them, there is one state.

A filter guards what is computed above it, so what can fail is computed where it has passed. Totals that an equivalence
looks up something by stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateClass, AggregateFunction
from mz_dagster.plan.relation import (
    Aggregate,
    Constant,
    Filter,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    Union,
)
from mz_dagster.plan.rewriting import bottom_up, can_fail, conjunction, moved, nodes_of
from mz_dagster.plan.row_count import with_default
from mz_dagster.plan.transform.split_disjunctions import factored
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, signs_of_zeros
from mz_dagster.scalars.types import BOOL

_Run = tuple[Map | Filter | Projection, ...]


def merge_totals(relation: Relation) -> Relation:
    """Returns `relation` with totals of one input that stand side by side in a join merged.

    Precondition: what is used several times is bound by a `Let`, no two of the same id.
    """
    bound = {one.id: one.value for one in nodes_of(relation) if isinstance(one, Let)}
    ids = (id for n in count(1) if (id := GlobalId(f"total{n}")) not in bound)
    return bottom_up(relation, lambda one: _merged(one, bound, ids) if isinstance(one, Join) else one)


@dataclass(frozen=True, slots=True)
class _Total:
    """An input of a join that has one row: what is computed of aggregates of everything.

    Attributes:
        source: What is aggregated.
        below: What is computed of its rows, from the bottom up.
        aggregates: Over that.
        above: What is computed of them, from the bottom up.
    """

    source: Get
    below: _Run
    aggregates: tuple[Aggregate, ...]
    above: _Run


def _merged(join: Join, bound: Mapping[GlobalId, Relation], ids: Iterator[GlobalId]) -> Relation:
    connected = join.compared
    groups: dict[GlobalId, dict[int, _Total]] = {}
    for i, one in enumerate(join.inputs):
        total = None if i in connected else _total(one, bound)
        if total is not None:
            groups.setdefault(total.source.id, {})[i] = total
    several = [one for one in groups.values() if len(one) > 1]
    if not several:
        return join
    order = [i for i in range(len(join.inputs)) if not any(i in one for one in several)]
    inputs = [join.inputs[i] for i in order]
    for group in several:
        order += group
        inputs.append(_together(list(group.values()), next(ids)))
    places = join.places(order)
    classes = tuple(tuple(moved(scalar, places) for scalar in one) for one in join.equivalences)
    whole = Join(tuple(inputs), classes, join.null_safe) if len(inputs) > 1 else inputs[0]
    return Projection(whole, tuple(places[position] for position in range(join.relation_type.arity)))


def _total(relation: Relation, bound: Mapping[GlobalId, Relation]) -> _Total | None:
    """Returns a relation as a total that can be merged, None if it is none."""
    base, above = _run(relation)
    while isinstance(base, Get) and base.id in bound:
        base, shared = _run(bound[base.id])
        above = (*shared, *above)
    match base:
        case Union(inputs=(Get() as row, default, Negate(input=superseded))) if _run(superseded)[0] == row:
            reduce, cells = bound.get(row.id), _cells(default)
        case _:
            return None
    if not isinstance(reduce, Reduce) or reduce.key:
        return None
    source, below = _run(reduce.input)
    is_merged = all(_is_merged(one) for one in reduce.aggregates)
    if not isinstance(source, Get) or not is_merged or cells != [_of_no_rows(one).value for one in reduce.aggregates]:
        return None
    return _Total(source, below, reduce.aggregates, above)


def _is_merged(one: Aggregate) -> bool:
    """Returns whether an aggregate ignores NULLs in its one argument, and the order of the rows."""
    is_plain = one.filter is None and one.function is not AggregateFunction.EXACT_SUM
    return is_plain and one.function.aggregate_class is not AggregateClass.BASIC


def _cells(relation: Relation) -> list[object] | None:
    """Returns what the one row of a constant holds, None if the relation is none."""
    constant, run = _run(relation)
    if not isinstance(constant, Constant) or len(constant.rows) != 1:
        return None
    places = list(range(len(constant.rows[0])))
    for one in run:
        if not isinstance(one, Projection):
            return None
        places = [places[position] for position in one.positions]
    return [constant.rows[0][place].value for place in places]


def _run(relation: Relation) -> tuple[Relation, _Run]:
    """Returns what is below the maps, filters and projections on top of a relation; and these, from the bottom up."""
    run: list[Map | Filter | Projection] = []
    while isinstance(relation, Map | Filter | Projection):
        run.append(relation)
        relation = relation.input
    return relation, tuple(reversed(run))


def _of_no_rows(aggregate: Aggregate) -> Literal:
    """Returns what an aggregate comes to without rows."""
    return Literal(aggregate.function.of_nothing, aggregate.type)


def _together(totals: Sequence[_Total], identity: GlobalId) -> Relation:
    """Returns the product of totals of one source, as one."""
    row = _Widened(_counted_rows(totals))
    aggregates: list[Aggregate] = []
    starts: list[list[int]] = []
    for one in totals:
        places, predicates = row.computed(range(one.source.relation_type.arity), one.below)
        where = row.added(conjunction(predicates), "where") if predicates else None
        own = [replace(each.moved(dict(enumerate(places))), filter=where) for each in one.aggregates]
        aggregates += [each for each in own if each not in aggregates]
        starts.append([aggregates.index(each) for each in own])
    reduce = Reduce(row.relation, (), tuple(aggregates), tuple(f"total_{i}" for i in range(len(aggregates))))
    total = _Widened(with_default(reduce, [_of_no_rows(one) for one in aggregates], identity))
    chosen: list[int] = []
    for one, start in zip(totals, starts, strict=True):
        places, predicates = total.computed(start, one.above)
        if predicates:
            total.relation = Filter(total.relation, tuple(predicates))
        chosen += places
    return Projection(total.relation, tuple(chosen))


def _counted_rows(totals: Sequence[_Total]) -> Relation:
    """Returns the source without rows that count in none of the totals, as far as that is told by its columns."""
    source = totals[0].source
    alternatives: list[Scalar] = []
    for one in totals:
        row = _Widened(source)
        _, predicates = row.computed(range(source.relation_type.arity), one.below)
        if not predicates or row.relation is not source or any(map(can_fail, predicates)):
            return source
        alternatives.append(conjunction(predicates))
    each = tuple(dict.fromkeys(alternatives))
    either = Call("or", each, BOOL, any(one.nullable for one in each)) if len(each) > 1 else each[0]
    return Filter(source, (factored(either),))


@dataclass(slots=True)
class _Widened:
    """A relation with columns of several runs over it, each column once."""

    relation: Relation
    _known: dict[object, int] = field(default_factory=dict)

    def added(self, scalar: Scalar, name: str) -> int:
        """Returns the position of a scalar over the relation."""
        if isinstance(scalar, ColumnRef):
            return scalar.position
        same = scalar, signs_of_zeros(scalar)
        if same not in self._known:
            self._known[same] = self.relation.relation_type.arity
            self.relation = Map(self.relation, (scalar,), (name,))
        return self._known[same]

    def computed(self, start: Sequence[int], run: _Run) -> tuple[list[int], list[Scalar]]:
        """Returns where the columns of a run over the columns at `start` are, and what it filters by."""
        places: list[int] = list(start)
        predicates: list[Scalar] = []
        for one in run:
            at = dict(enumerate(places))
            match one:
                case Map():
                    for scalar, name in zip(one.scalars, one.names, strict=True):
                        places.append(self.added(_guarded(moved(scalar, at), predicates), name))
                case Filter():
                    predicates += [_guarded(moved(predicate, at), predicates) for predicate in one.predicates]
                case Projection():
                    places = [places[position] for position in one.positions]
        return places, predicates


def _guarded(scalar: Scalar, predicates: Sequence[Scalar]) -> Scalar:
    """Returns a scalar that fails no row that one of the predicates before it leaves out."""
    if not predicates or not can_fail(scalar):
        return scalar
    return If(conjunction(predicates), scalar, Literal(None, scalar.type))
