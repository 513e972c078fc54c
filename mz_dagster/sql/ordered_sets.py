"""Binds aggregates WITHIN GROUP: percentiles and the mode, over the values in order; ranks of a row that is not there.

A percentile is an element of `array_agg(x ORDER BY x)`, without the NULLs. A rank counts the rows that come before the
one that is asked for, which PostgreSQL calls hypothetical; so it is kept up to date by counts.
"""

from __future__ import annotations

from collections.abc import Callable

from mz_dagster.errors import Error
from mz_dagster.functions import (
    AGGREGATES,
    ArgumentType,
    CastContext,
    Failure,
    Unknown,
    ambiguous,
    cast,
    common_type,
    no_match,
    type_name,
)
from mz_dagster.functions.aggregates.algebra import Spelling
from mz_dagster.functions.casts import short_name
from mz_dagster.plan.representations import REPRESENTATIONS, comparable
from mz_dagster.scalars.scalar import Call, If, Literal, OuterColumn, Scalar, walk
from mz_dagster.scalars.types import BOOL, FLOAT8, INT4, INT8, INTERVAL, Kind, ScalarType, array_of
from mz_dagster.sql.aggregate_expansion import Expansion
from mz_dagster.sql.binding import argument_type
from mz_dagster.sql.coercions import implicit
from mz_dagster.sql.errors import DatatypeMismatch, UnsupportedForm, error_of
from mz_dagster.sql.ordering import folded

#: Those that exist WITHIN GROUP only; the ranks are window functions, too.
RANKS = frozenset(name for name, one in AGGREGATES.items() if one.hypothetical)
_NUMBERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.UNCONSTRAINED, Kind.FLOAT4, Kind.FLOAT8)
#: What PostgreSQL's percentiles between two neighbours take for intervals.
_SPANS = (Kind.INTERVAL, Kind.TIME)
#: Kinds of which equal values can look different, without one that stands for all.
_EQUAL_OTHERWISE = (Kind.CHAR, Kind.RECORD, Kind.ARRAY, Kind.DIMENSIONED)


def ordered_set(expansion: Expansion) -> Scalar:
    """Returns what an aggregate WITHIN GROUP means.

    Args:
        expansion: Of the call; its arguments are those before WITHIN GROUP, its order is the one behind it.
    """
    record = AGGREGATES.get(expansion.call.name)
    if record is not None and record.hypothetical:
        return _rank(expansion)
    is_known = record is not None and record.ordered_set and record.takes(len(expansion.arguments))
    if record is None or not is_known or len(expansion.order) != 1:
        raise _no_function(expansion)
    return _mode(expansion) if record.spelling is Spelling.MODE else _percentile(expansion)


def _mode(expansion: Expansion) -> Scalar:
    type_ = expansion.order[0].scalar.type
    if type_.kind in _EQUAL_OTHERWISE:
        raise UnsupportedForm(
            f"mode() of {type_name(type_)} is not supported",
            detail="Values that are equal but look different would be counted apart.",
            position=expansion.call.position,
        )
    values = _values(expansion, type_)
    counted = values if type_.kind not in REPRESENTATIONS else _values(expansion, type_, comparable)
    return _element(values, Call("mode_place_array", (counted,), INT4))


def _percentile(expansion: Expansion) -> Scalar:
    type_ = expansion.order[0].scalar.type
    continuous = expansion.record.spelling is Spelling.CONTINUOUS_PERCENTILE
    fraction = _folded(_fraction(expansion, continuous=continuous))
    if continuous:
        if type_.kind not in expansion.record.keys:
            raise _no_function(expansion)
        type_ = INTERVAL if type_.kind in _SPANS else FLOAT8
    if type_.array_element is not None:
        raise UnsupportedForm(
            f"{expansion.call.name}() of arrays is not supported",
            detail="The arrays of a group are not kept in their order.",
            position=expansion.call.position,
        )
    values, several = _values(expansion, type_), fraction.type.kind is Kind.ARRAY
    if several and continuous:
        return Call(f"percentiles_{short_name(type_.kind)}", (values, fraction), array_of(type_))
    if _is_share(fraction):  # of nothing the array is NULL, and so is what is made of it
        if continuous:
            return Call(f"percentile_{short_name(type_.kind)}", (values, fraction), type_)
        length = implicit(Call("cardinality", (values,), INT4), INT8)
        return _element(values, Call("percentile_place_float8", (fraction, length), INT4))
    count = expansion.count(expansion.order[0].scalar, distinct=False)
    if several:
        places = Call("percentile_places_float8", (fraction, count), array_of(INT4))
        return Call("elements_array", (values, places), array_of(type_))
    place = Call("percentile_place_float8", (fraction, count), INT4)
    if not continuous:
        return _element(values, place)
    # Over nothing it is NULL, too, but the fraction is checked.
    nothing = expansion.operator("is null", place)
    return If(nothing, Literal(None, type_), Call(f"percentile_{short_name(type_.kind)}", (values, fraction), type_))


def _folded(fraction: Scalar) -> Scalar:
    """Returns the literal that a fraction is which depends on nothing."""
    return folded(fraction) if all(isinstance(part, Literal | Call | If) for part in walk(fraction)) else fraction


def _is_share(fraction: Scalar) -> bool:
    """Returns whether a fraction is known to be one, so that there is nothing to be checked where there are no rows."""
    return isinstance(fraction, Literal) and isinstance(fraction.value, float) and 0 <= fraction.value <= 1


def _fraction(expansion: Expansion, *, continuous: bool) -> Scalar:
    """Returns the direct argument as a double or an array of doubles."""
    found = expansion.arguments[0]
    if isinstance(found, Unknown):
        if not continuous and expansion.order[0].scalar.type.kind not in _NUMBERS:
            raise error_of(ambiguous(expansion.call.name, _types(expansion)), expansion.call.position)
        return expansion.typed(0, FLOAT8)
    if found.type.kind not in (*_NUMBERS, Kind.ARRAY):
        raise _no_function(expansion)
    target = cast(found.type, array_of(FLOAT8) if found.type.kind is Kind.ARRAY else FLOAT8, CastContext.IMPLICIT)
    if isinstance(target, Failure):
        raise _no_function(expansion)
    return target.apply(found)


def _values(expansion: Expansion, type_: ScalarType, shown: Callable[[Scalar], Scalar] = lambda value: value) -> Scalar:
    """Returns what is shown of the group's values in order, without the NULLs."""
    (key,) = expansion.order
    value = expansion.guarded(implicit(key.scalar, type_))
    present = expansion.operator("is not null", value) if value.nullable else None
    return expansion.array(shown(value), present, (key.over(value),))


def _element(values: Scalar, place: Scalar) -> Scalar:
    assert values.type.element is not None
    return Call("array_subscript", (values, place), values.type.element)


def _rank(expansion: Expansion) -> Scalar:
    """Returns the rank that a row with the direct arguments would have."""
    spelling, order = expansion.record.spelling, expansion.order
    if len(expansion.arguments) != len(order):
        raise _no_function(expansion)
    before: Scalar = Literal(False, BOOL)
    tied: Scalar = Literal(True, BOOL)
    for i in reversed(range(len(order))):
        value, given = _matched(expansion, i)
        comes, same = _compared(expansion, i, value, given)
        before = If(comes, Literal(True, BOOL), If(same, before, Literal(False, BOOL)))
        tied = If(same, tied, Literal(False, BOOL))
    one = Literal(1, INT8)
    if spelling is Spelling.DENSE_RANK:
        return expansion.operator("+", _distinct_before(expansion, before), one)
    if spelling is Spelling.RANK:
        return expansion.operator("+", _counted(expansion, before), one)
    rows = implicit(_counted(expansion, Literal(True, BOOL)), FLOAT8)
    if spelling is Spelling.CUMULATIVE_DISTRIBUTION:
        reached = expansion.operator("+", _counted(expansion, If(tied, Literal(True, BOOL), before)), one)
        return expansion.operator("/", implicit(reached, FLOAT8), expansion.operator("+", rows, Literal(1.0, FLOAT8)))
    share = expansion.operator("/", implicit(_counted(expansion, before), FLOAT8), rows)
    return If(expansion.operator("=", rows, Literal(0.0, FLOAT8)), Literal(0.0, FLOAT8), share)


def _matched(expansion: Expansion, i: int) -> tuple[Scalar, Scalar]:
    """Returns the i-th key and the direct argument for it, in one type."""
    key, found = expansion.order[i].scalar, expansion.arguments[i]
    target = common_type([key.type, argument_type(found)])
    if isinstance(target, Failure):
        shown = " and ".join(type_name(one) for one in (key.type, argument_type(found)))
        raise DatatypeMismatch(
            f"WITHIN GROUP types {shown} cannot be matched", position=expansion.position_of_argument(i)
        )
    given = expansion.typed(i, target)
    if any(not isinstance(part, Literal | Call | If | OuterColumn) for part in walk(given)):
        raise UnsupportedForm(
            f"{expansion.call.name}() of a row that depends on the group is not supported",
            detail="The rows before it are counted as they come.",
            hint="Give constants before WITHIN GROUP.",
            position=expansion.position_of_argument(i),
        )
    return implicit(key, target), given


def _compared(expansion: Expansion, i: int, value: Scalar, given: Scalar) -> tuple[Scalar, Scalar]:
    """Returns whether a row's key comes before the given one, and whether they are the same."""
    key = expansion.order[i]
    comes: Scalar = expansion.operator(">" if key.descending else "<", value, given)
    if given.nullable:
        nothing = expansion.operator("is null", given)
        comes = If(nothing, Literal(not key.nulls_first, BOOL), comes)
    if value.nullable:
        absent = expansion.operator("is null", value)
        present = expansion.operator("is not null", given)
        comes = If(absent, present if key.nulls_first else Literal(False, BOOL), comes)
    return comes, expansion.operator("is not distinct from", value, given)


def _counted(expansion: Expansion, condition: Scalar) -> Scalar:
    """Returns how many rows there are for which `condition` is true."""
    return expansion.count(If(condition, Literal(True, BOOL), Literal(None, BOOL)), distinct=False)


def _distinct_before(expansion: Expansion, before: Scalar) -> Scalar:
    """Returns how many different keys come before the given one."""
    if len(expansion.order) > 1:
        raise UnsupportedForm(
            "dense_rank() WITHIN GROUP of several keys is not supported",
            detail="Distinct values are counted of one column.",
            position=expansion.call.position,
        )
    value, _ = _matched(expansion, 0)
    different = expansion.count(If(before, value, Literal(None, value.type)), distinct=True)
    if not value.nullable:
        return different
    absent = expansion.operator("is null", value)
    nulls = _counted(expansion, If(absent, before, Literal(False, BOOL)))
    some = If(expansion.operator(">", nulls, Literal(0, INT8)), Literal(1, INT8), Literal(0, INT8))
    return expansion.operator("+", different, some)


def _no_function(expansion: Expansion) -> Error:
    return error_of(no_match(expansion.call.name, _types(expansion)), expansion.call.position)


def _types(expansion: Expansion) -> list[ArgumentType]:
    """Returns the types of the direct arguments, then those of the order's keys."""
    return [*expansion.types, *(key.scalar.type for key in expansion.order)]
