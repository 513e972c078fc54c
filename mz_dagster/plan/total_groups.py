"""Aggregates and window functions taken apart into what cannot fail and scalars over it, which can.

What fails in a scalar can be told by the row (`subquery_errors`); what fails in an operator that groups is an error of
the whole. Of the latter there are four, and each is made of the former:

    sum of numerics            is   whole_numeric(sum of the high parts, sum of the low parts)
    sum of doubles             is   nearest_float8(the exact sum)
    ntile of a                 is   an error if the first a of the partition is not positive; else ntile of that
    nth_value of x and n       is   an error if n is not positive; else nth_value of x and n

A sum of distinct values is that of a relation in which each is once, joined on the group's key.

Sums of integers of 32 bits, arrays and texts are left whole: beyond 2^31 rows, or 1 GB, there is a group's error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mz_dagster.errors import InternalError
from mz_dagster.functions import Failure, cast
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.functions.errors import NTH_VALUE_NOT_POSITIVE, NTILE_NOT_POSITIVE
from mz_dagster.plan.relation import (
    Aggregate,
    FrameBound,
    FrameUnit,
    Join,
    Map,
    Reduce,
    Relation,
    Window,
    WindowFrame,
    WindowFunction,
)
from mz_dagster.plan.rewriting import reference, references, shifted
from mz_dagster.plan.semijoin import Sharing, distinct_of
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, FLOAT8, INT4, TEXT, Kind, ScalarType, high_part_type

_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_WHOLE = WindowFrame(FrameUnit.ROWS, FrameBound(True, preceding=True), FrameBound(True))


def group_may_fail(relation: Relation, *, of_digits: bool = True) -> bool:
    """Returns whether a plan's topmost operator is one of those that `without_group_errors` takes apart.

    Not counted, if it is not asked for, is that a sum may have more digits than a numeric.
    """
    match relation:
        case Reduce():
            sums = filter(_sum_may_fail, relation.aggregates)
            return any(of_digits or one.type.kind is not Kind.NUMERIC for one in sums)
        case Window():
            functions = filter(_function_may_fail, relation.functions)
            return any(of_digits or one.name != "sum" for one in functions)
        case _:
            return False


def without_group_errors(relation: Reduce | Window, sharing: Sharing) -> tuple[Relation, list[Scalar]]:
    """Returns what cannot fail, and over it the columns of `relation`, of which those that can fail do.

    The columns before those of the functions are the first of both.

    Args:
        relation: What is taken apart: `group_may_fail`.
        sharing: Takes what is read several times.
    """
    return _reduced(relation, sharing) if isinstance(relation, Reduce) else _windowed(relation)


@dataclass(slots=True)
class _Parts:
    """What is computed below an operator, each column once.

    Attributes:
        below: The operator's input.
        scalars: What is appended to it.
    """

    below: Relation
    scalars: list[Scalar] = field(default_factory=list)

    def added(self, scalar: Scalar) -> int:
        """Returns the position of a scalar over the input."""
        if scalar not in self.scalars:
            self.scalars.append(scalar)
        return self.below.relation_type.arity + self.scalars.index(scalar)

    def of_sum(self, position: int) -> tuple[tuple[int, ScalarType], tuple[int, ScalarType]]:
        """Returns where the high and the low part of a numeric are, and their types."""
        value = reference(self.below.relation_type, position)
        # A sum has more digits than the column's type may say that each of its values has.
        high, low = high_part_type(value.type.scale), value.type.unmodified
        return (
            (self.added(Call("high_part_numeric", (value,), high, value.nullable)), high),
            (self.added(Call("low_part_numeric", (value,), low, value.nullable)), low),
        )

    @property
    def relation(self) -> Relation:
        """The input with what was appended."""
        names = tuple(f"part_{i}" for i in range(len(self.scalars)))
        return Map(self.below, tuple(self.scalars), names) if self.scalars else self.below


def _sum_may_fail(one: Aggregate) -> bool:
    return one.function is AggregateFunction.SUM and one.type.kind in (Kind.NUMERIC, *_FLOATS)


def _reduced(relation: Reduce, sharing: Sharing) -> tuple[Relation, list[Scalar]]:
    apart = [
        one for one in relation.aggregates if one.distinct and _sum_may_fail(one) and one.type.kind is Kind.NUMERIC
    ]
    below = sharing.shared(relation.input) if apart else relation.input
    parts = _Parts(below)
    aggregates: list[Aggregate] = []
    arity = len(relation.key)
    #: Of each aggregate the number of the relation that has it, and where it begins there.
    places: list[tuple[int, int]] = []
    others: list[Relation] = []
    for one in relation.aggregates:
        if one in apart:
            places.append((1 + len(others), arity))
            others.append(_sum_of_distinct(below, relation.key, one))
            continue
        places.append((0, arity + len(aggregates)))
        if not _sum_may_fail(one):
            aggregates.append(one)
        elif one.type.kind is Kind.NUMERIC:
            for position, type_ in parts.of_sum(one.arguments[0]):
                aggregates.append(Aggregate(AggregateFunction.SUM, (position,), type_, filter=one.filter))
        else:
            value = parts.added(_cast(reference(below.relation_type, one.arguments[0]), FLOAT8))
            aggregates.append(Aggregate(AggregateFunction.EXACT_SUM, (value,), TEXT, one.distinct, one.filter))
    names = tuple(f"sum_{i}" for i in range(len(aggregates)))
    found: list[Relation] = [Reduce(parts.relation, relation.key, tuple(aggregates), names, relation.group_size)]
    found += others
    whole, starts = _beside_each_other(found, arity)
    columns: list[Scalar] = list(references(whole, range(arity)))
    for one, (number, place) in zip(relation.aggregates, places, strict=True):
        columns.append(_whole(whole, starts[number] + place, one.type, _sum_may_fail(one)))
    return whole, columns


def _sum_of_distinct(below: Relation, key: Sequence[int], one: Aggregate) -> Relation:
    """Returns for each group the sums of the parts of the distinct values of an argument."""
    (position,) = one.arguments
    value: Scalar = reference(below.relation_type, position)
    if one.filter is not None:
        value = If(reference(below.relation_type, one.filter), value, Literal(None, value.type))
    once = _Parts(distinct_of(below, (*references(below, key), value)))
    sums = [Aggregate(AggregateFunction.SUM, (place,), type_) for place, type_ in once.of_sum(len(key))]
    return Reduce(once.relation, tuple(range(len(key))), tuple(sums), ("high", "low"))


def _beside_each_other(found: Sequence[Relation], arity: int) -> tuple[Relation, list[int]]:
    """Returns relations that begin with the key of the same groups, joined, and where each begins."""
    starts = [0]
    for one in found:
        starts.append(starts[-1] + one.relation_type.arity)
    if len(found) == 1:
        return found[0], starts
    classes = tuple(
        tuple(shifted(reference(one.relation_type, i), start) for one, start in zip(found, starts, strict=False))
        for i in range(arity)
    )
    return Join(tuple(found), classes, frozenset(range(arity))), starts


def _whole(relation: Relation, place: int, type_: ScalarType, apart: bool) -> Scalar:
    """Returns a function's value, which begins at a place, `apart` or as it is."""
    first = reference(relation.relation_type, place)
    if not apart:
        return first
    if type_.kind is Kind.NUMERIC:
        return Call("whole_numeric", (first, reference(relation.relation_type, place + 1)), type_)
    return _cast(Call("nearest_float8", (first,), FLOAT8), type_)


def _function_may_fail(one: WindowFunction) -> bool:
    return one.name in ("ntile", "nth_value") or (one.name == "sum" and one.type.kind is Kind.NUMERIC)


def _windowed(relation: Window) -> tuple[Relation, list[Scalar]]:
    parts = _Parts(relation.input)
    functions: list[WindowFunction] = []
    starts: list[int] = []
    for one in relation.functions:
        starts.append(len(functions))
        match one.name:
            case "sum" if _function_may_fail(one):
                for position, type_ in parts.of_sum(one.arguments[0]):
                    functions.append(WindowFunction("sum", (position,), type_, True, one.frame, filter=one.filter))
            case "ntile":
                buckets = reference(relation.input.relation_type, one.arguments[0])
                positive = parts.added(If(_is_not_positive(buckets), Literal(1, INT4), buckets))
                functions.append(WindowFunction("ntile", (positive,), one.type, one.nullable))
                functions.append(
                    WindowFunction("first_value", one.arguments, buckets.type, True, _WHOLE, ignore_nulls=True)
                )
            case "nth_value":
                value, nth = one.arguments
                number = reference(relation.input.relation_type, nth)
                positive = parts.added(If(_is_not_positive(number), Literal(None, INT4), number))
                functions.append(
                    WindowFunction("nth_value", (value, positive), one.type, True, one.frame, one.ignore_nulls)
                )
            case _:
                functions.append(one)
    names = tuple(f"value_{i}" for i in range(len(functions)))
    whole = Window(parts.relation, relation.partition, relation.order, tuple(functions), names)
    arity, first = relation.input.relation_type.arity, parts.relation.relation_type.arity
    columns: list[Scalar] = list(references(whole, range(arity)))
    for one, start in zip(relation.functions, starts, strict=True):
        value_column = _whole(whole, first + start, one.type, one.name == "sum" and _function_may_fail(one))
        if one.name == "ntile":
            asked = reference(whole.relation_type, first + start + 1)
            value_column = _unless_not_positive(asked, value_column, NTILE_NOT_POSITIVE)
        elif one.name == "nth_value":
            asked = reference(whole.relation_type, one.arguments[1])
            value_column = _unless_not_positive(asked, value_column, NTH_VALUE_NOT_POSITIVE)
        columns.append(value_column)
    return whole, columns


def _unless_not_positive(number: ColumnRef, value: Scalar, error: str) -> Scalar:
    return If(_is_not_positive(number), Call("error", (Literal(error, TEXT),), value.type, False), value)


def _is_not_positive(number: ColumnRef) -> Scalar:
    return Call("le_int4", (number, Literal(0, INT4)), BOOL, number.nullable)


def _cast(value: Scalar, target: ScalarType) -> Scalar:
    found = cast(value.type, target)
    if isinstance(found, Failure):
        raise InternalError(f"no sum of {value.type}: {found}")
    return found.apply(value)
