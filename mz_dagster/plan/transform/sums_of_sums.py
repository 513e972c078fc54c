"""Sums of sums are sums of what is summed, and likewise counts, least and greatest values: one state in place of two.

    Reduce[k; sum s] (Union (Reduce[j; sum x] R, ...))   is   Reduce[k; sum x] (Union (R, ...))

where all that is used of the inner groups' aggregates is that they are aggregated again. That a group is there does not
depend on how its rows are grouped before, so neither do the outer keys, nor what is computed or filtered by the inner
ones. Sums of floats stay, as they are rounded once each.
"""

from __future__ import annotations

from mz_dagster.functions import Failure, cast
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.relation import Aggregate, Filter, FlatMap, Map, Projection, Reduce, Relation, Union
from mz_dagster.plan.representations import with_one_zero
from mz_dagster.plan.rewriting import bottom_up, can_fail, reference, with_inputs
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, columns_of
from mz_dagster.scalars.types import BOOL, INT8, Kind, RelationType

_EXACT = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC)
#: What the outer function makes of what the inner one made, as it would of the rows.
_AGAIN = {
    AggregateFunction.SUM: (AggregateFunction.SUM, AggregateFunction.COUNT),
    AggregateFunction.MIN: (AggregateFunction.MIN,),
    AggregateFunction.MAX: (AggregateFunction.MAX,),
}


def sums_of_sums(relation: Relation) -> Relation:
    """Returns `relation` without groups whose aggregates are only aggregated again."""
    return bottom_up(relation, lambda one: _of_rows(one) if isinstance(one, Reduce) else one)


def _of_rows(outer: Reduce) -> Relation:
    """Returns a reduction over the rows of what it is a reduction of groups of; itself if it is none."""
    if any(one.function not in _AGAIN or one.distinct or one.filter is not None for one in outer.aggregates):
        return outer
    arguments = {one.arguments[0]: one.function for one in outer.aggregates}
    if any(arguments[one.arguments[0]] is not one.function for one in outer.aggregates):
        return outer
    below = _without_groups(outer.input, arguments, frozenset(outer.key))
    return with_inputs(outer, [below])


def _without_groups(relation: Relation, arguments: dict[int, AggregateFunction], used: frozenset[int]) -> Relation:
    """Returns what has rows in place of the groups of `relation`, if that makes no difference; else `relation`.

    Args:
        relation: What is aggregated.
        arguments: By what function each of these columns is.
        used: The columns that are used otherwise.
    """
    if arguments.keys() & used:
        return relation
    match relation:
        case Projection():
            below = {relation.positions[one]: function for one, function in arguments.items()}
            if len(below) != len(arguments):
                return relation
            others = frozenset(relation.positions[one] for one in used)
        case Map():
            arity = relation.input.relation_type.arity
            passed = {one: one if one < arity else _passed(relation.scalars[one - arity]) for one in arguments}
            below = {column: arguments[one] for one, column in passed.items() if column is not None and column < arity}
            if len(below) != len(arguments):
                return relation
            computed = (scalar for place, scalar in enumerate(relation.scalars, arity) if place not in arguments)
            others = used | {column for scalar in computed for column in columns_of(scalar)}
            if arguments.keys() & others:  # a scalar may read those before it
                return relation
            others = frozenset(one for one in others if one < arity)
        case Filter():
            below, others = arguments, used | {column for one in relation.predicates for column in columns_of(one)}
        case FlatMap():
            arity = relation.input.relation_type.arity - relation.arrays
            if any(one >= arity for one in arguments):
                return relation
            below = arguments
            others = frozenset((*(one for one in used if one < arity), *range(arity, arity + relation.arrays)))
        case Union():
            inputs = [_without_groups(one, arguments, used) for one in relation.inputs]
            is_same = all(new is old for new, old in zip(inputs, relation.inputs, strict=True))
            return relation if is_same else Union(tuple(inputs))  # groups are unique, rows are not
        case Reduce():
            return _rows(relation, arguments, used) or relation
        case _:
            return relation
    return with_inputs(relation, [_without_groups(relation.input, below, others)])


def _passed(scalar: Scalar) -> int | None:
    """Returns of which column a scalar is the value, in whatever exact type; None of none."""
    if isinstance(scalar, Call) and scalar.function.startswith("cast_") and not can_fail(scalar):
        (value,), type_ = scalar.arguments, scalar.type
        is_exact = value.type.kind in _EXACT and type_.kind in _EXACT and type_.scale >= value.type.scale
        return _passed(value) if is_exact else None
    return scalar.position if isinstance(scalar, ColumnRef) else None


def _rows(inner: Reduce, arguments: dict[int, AggregateFunction], used: frozenset[int]) -> Relation | None:
    """Returns the rows of a reduction, with what each adds to an aggregate in its place; None if that differs."""
    arity, type_ = len(inner.key), inner.input.relation_type
    keys = [reference(type_, position) for position in inner.key]
    if any(one >= arity for one in used) or any(one < arity for one in arguments):
        return None
    if not inner.key or any(with_one_zero(key) != key for key in keys):
        return None
    scalars: list[Scalar] = []
    for place, one in enumerate(inner.aggregates, arity):
        function = arguments.get(place)
        scalar: Scalar | None = Literal(None, one.type)  # nobody reads it
        if function is not None:
            scalar = _added(one, type_) if one.function in _AGAIN[function] else None
        if scalar is None:
            return None
        scalars.append(scalar)
    mapped = Map(inner.input, tuple(scalars), inner.names)
    return Projection(mapped, (*inner.key, *range(type_.arity, type_.arity + len(scalars))))


def _added(one: Aggregate, below: RelationType) -> Scalar | None:
    """Returns what a row adds to an aggregate, None if no scalar says it."""
    value: Scalar = reference(below, one.arguments[0]) if one.arguments else Literal(1, INT8)
    if one.function is AggregateFunction.COUNT:
        if one.distinct:
            return None
        if value.nullable:
            value = If(Call("is_not_null", (value,), BOOL, False), Literal(1, INT8), Literal(0, INT8))
        else:
            value = Literal(1, INT8)
    elif one.function is AggregateFunction.SUM:
        found = cast(value.type, one.type)
        if one.distinct or one.type.kind not in _EXACT or isinstance(found, Failure):
            return None
        value = found.apply(value)
    if one.filter is None:
        return value
    otherwise = Literal(one.function.of_nothing, value.type)
    return If(reference(below, one.filter), value, otherwise)
