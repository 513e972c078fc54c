"""Kinds whose equal values have several representations: `1 mon` equals `30 days`, and 1.0 equals 1.00.

Such values are grouped by one value for all equal ones, and by their representation where a function could tell the
difference; and so are arrays and records that hold some. The two zeros of floating-point numbers are equal, too:
grouped, only the one stays that has no sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mz_dagster.functions.arrays.dimensioned import elements_of, with_elements
from mz_dagster.scalars.scalar import Call, Scalar
from mz_dagster.scalars.types import BOOL, BYTEA, INT4, Kind, ScalarType, array_of, record_of


@dataclass(frozen=True, slots=True)
class Representation:
    """Names the functions of a kind whose equal values have several representations.

    Attributes:
        comparable: To the value that stands for all equal ones.
        ordered: To one of type `order`, by which the least representation is found; it tells them apart.
        restored: From that, back.
        order: Their type between.
        sorted: To one of type `order`, by which rows are ordered; empty where `comparable` does it.
    """

    comparable: str
    ordered: str
    restored: str
    order: ScalarType = BYTEA
    sorted: str = ""


REPRESENTATIONS: Mapping[Kind, Representation] = {
    Kind.INTERVAL: Representation("comparable_interval", "ordered_interval", "restored_interval"),
    Kind.UNCONSTRAINED: Representation(
        "comparable_unconstrained", "ordered_unconstrained", "restored_unconstrained", sorted="order_unconstrained"
    ),
    Kind.JSONB: Representation("comparable_jsonb", "ordered_jsonb", "restored_jsonb", sorted="order_jsonb"),
}

#: Of arrays and records that hold values of such kinds: part by part (`functions/arrays/parts.py`).
_OF_PARTS = Representation("comparable_parts", "ordered_parts", "restored_parts", sorted="sorted_parts")

#: What makes 0.0 of -0.0, which equals it.
_UNSIGNED_ZERO: Mapping[Kind, str] = {Kind.FLOAT4: "unsigned_zero_float4", Kind.FLOAT8: "unsigned_zero_float8"}


def representation_of(type_: ScalarType) -> Representation | None:
    """Returns how values of a type are represented, None if equal ones have one representation, but for zeros' signs.

    Example:
        >>> from mz_dagster.scalars.types import INT4, JSONB
        >>> representation_of(array_of(JSONB)).comparable, representation_of(array_of(INT4))
        ('comparable_parts', None)
    """
    return _OF_PARTS if type_.holds(REPRESENTATIONS) else REPRESENTATIONS.get(type_.kind)


def comparable(scalar: Scalar) -> Scalar:
    """Returns the value that stands for all equal to `scalar`, itself if equal values have one representation."""
    known = representation_of(scalar.type)
    return scalar if known is None else _once(known.comparable, scalar)


def with_one_zero(scalar: Scalar) -> Scalar:
    """Returns `scalar` with 0.0 for each -0.0, if it is a floating-point number or holds some."""
    if scalar.type.holds(_UNSIGNED_ZERO):
        return _once("unsigned_zeros", scalar)
    function = _UNSIGNED_ZERO.get(scalar.type.kind)
    return scalar if function is None else _once(function, scalar)


def _once(function: str, scalar: Scalar) -> Scalar:
    """Returns the call of a function that changes nothing if it is called again."""
    if isinstance(scalar, Call) and scalar.function == function:
        return scalar
    return Call(function, (scalar,), scalar.type, scalar.nullable)


def by_representation(scalar: Scalar) -> Scalar:
    """Returns a value that is equal only for one representation of `scalar`, itself if equal values have but one.

    By it rows are looked up where what is asked of them can tell equal values apart: that is not a comparison.
    """
    known = representation_of(scalar.type)
    if known is not None:
        return Call(known.ordered, (scalar,), known.order, scalar.nullable)
    type_ = _with_signs(scalar.type)
    return scalar if type_ == scalar.type else Call("represented_floats", (scalar,), type_, scalar.nullable)


def sortable(scalar: Scalar) -> Scalar:
    """Returns what rows are ordered by in the place of `scalar`, itself if its stored form has its order."""
    if scalar.type.kind is Kind.DIMENSIONED:
        sorted_ = with_elements(scalar, _with_sorted_parts(elements_of(scalar)))
        return Call("order_dimensioned", (sorted_,), _sorted_type(sorted_.type), scalar.nullable)
    if scalar.type.element is not None:
        sorted_ = _with_sorted_parts(scalar)
        return Call("order_array", (sorted_,), _sorted_type(sorted_.type), scalar.nullable)
    known = representation_of(scalar.type)
    if known is not None and known.sorted:
        return Call(known.sorted, (scalar,), known.order, scalar.nullable)
    return comparable(scalar)


def _with_sorted_parts(array: Scalar) -> Scalar:
    """Returns a list of what its elements are ordered by, itself if that is they."""
    assert array.type.element is not None
    known = REPRESENTATIONS.get(array.type.element.kind)
    if known is None:
        return array
    order = known.order if known.sorted else array.type.element
    return Call(_OF_PARTS.sorted, (array,), array_of(order), array.nullable)


def from_representation(scalar: Scalar, type_: ScalarType) -> Scalar:
    """Returns the value of type `type_` that `by_representation` was given."""
    known = representation_of(type_)
    if known is not None:
        return Call(known.restored, (scalar,), type_, scalar.nullable)
    return scalar if scalar.type == type_ else Call("restored_floats", (scalar,), type_, scalar.nullable)


def _with_signs(type_: ScalarType) -> ScalarType:
    """Returns the type in which each floating-point number stands beside whether it is -0.0."""
    if type_.kind in _UNSIGNED_ZERO:
        return record_of([("value", type_), ("is_minus_zero", BOOL)])
    if not type_.holds(_UNSIGNED_ZERO):
        return type_
    if type_.element is not None:
        return array_of(_with_signs(type_.element))
    return record_of([(name, _with_signs(one)) for name, one in type_.fields])


def _sorted_type(type_: ScalarType) -> ScalarType:
    """Returns the type of what rows are ordered by in the place of an array: NULL is last among its elements.

    Behind those of an array of any dimensions stand how many it has, their lengths and lower bounds.
    """
    if type_.kind is Kind.DIMENSIONED:
        assert type_.array_element is not None
        return array_of(record_of([("rank", INT4), ("element", type_.array_element), ("number", INT4)]))
    assert type_.element is not None
    return array_of(record_of([("is_null", BOOL), ("element", type_.element)]))
