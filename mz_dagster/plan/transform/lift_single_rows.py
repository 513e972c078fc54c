"""A single row is joined to groups, not to the rows that they are made of.

    Reduce[k; f(x), max(s)] (A x S)   is   Project (Reduce[k; f(x)] A) x S     if S has always exactly one row, of s

So a row that stands beside all others, as a total in `FROM sales, (SELECT max(total) AS most FROM totals)`, is not kept
beside each of them, to be written anew with each of them whenever it changes. What may read S is a key, or a minimum or
maximum, which is the value itself; a filter or a map below the reduction may not.

It comes behind the last flattening of joins, which would take the groups' join apart again.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.functions.aggregates.algebra import AggregateClass
from mz_dagster.plan.relation import Aggregate, Filter, Join, Map, Projection, Reduce, Relation
from mz_dagster.plan.representations import with_one_zero
from mz_dagster.plan.rewriting import bottom_up, moved, reference, scalars_of
from mz_dagster.plan.row_count import is_one_row
from mz_dagster.scalars.scalar import ColumnRef, columns_of


def lift_single_rows(relation: Relation) -> Relation:
    """Returns `relation` with single rows joined above the reductions that they stood below."""
    return bottom_up(relation, _lifted)


def _lifted(relation: Relation) -> Relation:
    if not isinstance(relation, Reduce):
        return relation
    steps: list[Map | Projection | Filter] = []
    join = relation.input
    while isinstance(join, Map | Projection | Filter):
        steps.append(join)
        join = join.input
    if not isinstance(join, Join):
        return relation
    single = _unconnected_single_rows(join)
    rest = [i for i in range(len(join.inputs)) if i not in single]
    if not single or not rest or (len(rest) == 1 and join.equivalences):
        return relation
    places = join.places(rest)
    classes = tuple(tuple(moved(scalar, places) for scalar in one) for one in join.equivalences)
    others = tuple(join.inputs[i] for i in rest)
    below = Join(others, classes, join.null_safe) if len(others) > 1 else others[0]
    # Where each column of what has been rebuilt is: its place below, or in the single rows.
    found = {position: (False, place) for position, place in places.items()}
    found |= {position: (True, place) for position, place in join.places(single).items()}
    for step in reversed(steps):
        if any(
            found[position][0] for scalar in scalars_of(step) for position in columns_of(scalar) if position in found
        ):
            return relation
        below, found = _rebuilt(step, below, found)
    return _joined(relation, below, found, [join.inputs[i] for i in single]) or relation


def _unconnected_single_rows(join: Join) -> list[int]:
    """Returns the inputs of a join that always have exactly one row, and are compared with none."""
    compared = join.compared
    return [i for i, one in enumerate(join.inputs) if i not in compared and is_one_row(one)]


_Places = dict[int, tuple[bool, int]]


def _rebuilt(
    step: Map | Projection | Filter, below: Relation, found: _Places
) -> tuple[Map | Projection | Filter, _Places]:
    """Returns a linear operator without the columns of the single rows, and where its columns are then."""
    if isinstance(step, Projection):
        kept = dict.fromkeys(found[position][1] for position in step.positions if not found[position][0])
        places = {position: new for new, position in enumerate(kept)}
        moved_to = {
            new: found[position] if found[position][0] else (False, places[found[position][1]])
            for new, position in enumerate(step.positions)
        }
        return Projection(below, tuple(kept)), moved_to
    own = {position: place for position, (is_single, place) in found.items() if not is_single}
    if isinstance(step, Filter):
        return Filter(below, tuple(moved(one, own) for one in step.predicates)), found
    arity, width = step.input.relation_type.arity, below.relation_type.arity
    added = {arity + n: width + n for n in range(len(step.scalars))}
    scalars = tuple(moved(one, own | added) for one in step.scalars)
    return Map(below, scalars, step.names), found | {old: (False, new) for old, new in added.items()}


def _joined(relation: Reduce, below: Relation, found: _Places, rows: Sequence[Relation]) -> Relation | None:
    """Returns the reduction of what is `below`, beside single rows; None if it needs these in its groups."""
    own = {position: place for position, (is_single, place) in found.items() if not is_single}
    aggregates: list[tuple[Aggregate, str]] = []
    for one, name in zip(relation.aggregates, relation.names, strict=True):
        if one.positions <= own.keys():
            aggregates.append((one.moved(own), name))
        elif not _is_the_value(one, relation):
            return None
    keys = tuple(dict.fromkeys(own[position] for position in relation.key if position in own))
    kept = tuple(one for one, _ in aggregates)
    reduced = Reduce(below, keys, kept, tuple(name for _, name in aggregates), relation.group_size)
    beside = Join((reduced, *rows), ())
    width = reduced.relation_type.arity
    results = iter(range(len(keys), width))
    columns: list[int] = []
    for position in relation.key:
        is_single, place = found[position]
        columns.append(width + place if is_single else keys.index(place))
    for one in relation.aggregates:
        columns.append(next(results) if one.positions <= own.keys() else width + found[one.arguments[0]][1])
    values = [with_one_zero(reference(beside.relation_type, position)) for position in columns]
    if all(isinstance(one, ColumnRef) for one in values):
        return Projection(beside, tuple(columns))
    arity = beside.relation_type.arity
    names = relation.relation_type.names
    return Projection(Map(beside, tuple(values), names), tuple(range(arity, arity + len(values))))


def _is_the_value(one: Aggregate, relation: Reduce) -> bool:
    """Returns whether an aggregate is its argument where that is one value in all rows of a group."""
    if one.function.aggregate_class is not AggregateClass.HIERARCHICAL or not one.function.is_idempotent:
        return False
    if one.filter is not None or len(one.arguments) != 1:
        return False
    return relation.input.relation_type.columns[one.arguments[0]].type == one.type
