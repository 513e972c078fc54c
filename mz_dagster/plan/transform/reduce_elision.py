"""A group of one row needs no grouping.

    Reduce[key; f(x), ...] r   is   Project (key, ...) (Map f of one row, ... r)    if key contains a unique key of r

So DISTINCT over what is distinct already vanishes, and with it a collection. Keys promise nothing where a multiplicity
is negative: there the reduction is an error, and the row with that multiplicity is one when it is read.
`array_agg` and exact sums stay: no scalar makes one.
"""

from __future__ import annotations

from mz_dagster.functions import Failure, cast
from mz_dagster.functions.aggregates.algebra import AggregateClass, AggregateFunction
from mz_dagster.plan.relation import Aggregate, Map, Projection, Reduce, Relation
from mz_dagster.plan.rewriting import bottom_up, projected_to, reference
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT8, RelationType


def reduce_elision(relation: Relation) -> Relation:
    """Returns `relation` without reductions of groups that are single rows."""
    return bottom_up(relation, _elided)


def _elided(relation: Relation) -> Relation:
    if not isinstance(relation, Reduce):
        return relation
    below = relation.input.relation_type
    if not any(key <= set(relation.key) for key in below.keys):
        return relation
    values: list[Scalar] = []
    for one in relation.aggregates:
        value = _of_one_row(one, below)
        if value is None:
            return relation
        values.append(value)
    if not values:
        return projected_to(relation.input, relation.key)
    mapped = Map(relation.input, tuple(values), relation.names)
    return Projection(mapped, (*relation.key, *range(below.arity, below.arity + len(values))))


def _of_one_row(aggregate: Aggregate, below: RelationType) -> Scalar | None:
    """Returns what the aggregate is over a single row, or None if no scalar says it."""
    value: Scalar = reference(below, aggregate.arguments[0]) if aggregate.arguments else Literal(1, INT8)
    counts = value.nullable
    match aggregate.function:
        case AggregateFunction.COUNT:
            present = Call("is_not_null", (value,), BOOL, False)
            value = If(present, Literal(1, INT8), Literal(0, INT8)) if counts else Literal(1, INT8)
        case AggregateFunction.SUM:
            found = cast(value.type, aggregate.type)
            if isinstance(found, Failure):
                return None
            value = found.apply(value)
        case AggregateFunction.STRING_AGG:
            pass
        case function if function.aggregate_class is AggregateClass.HIERARCHICAL:
            pass
        case _:
            return None
    if aggregate.filter is None:
        return value
    return If(reference(below, aggregate.filter), value, Literal(aggregate.function.of_nothing, value.type))
