"""Kinds whose equal values have several representations: `1 mon` equals `30 days`, and in jsonb 1.0 equals 1.00.

Such values are grouped by one value for all equal ones, and told apart where a function could tell the difference. Of
floating-point numbers, whose two zeros are equal, only the one stays that has no sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mz_dagster.plan.scalar import Call, Scalar
from mz_dagster.plan.types import BYTEA, Kind, ScalarType


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
    Kind.JSONB: Representation("comparable_jsonb", "ordered_jsonb", "restored_jsonb", sorted="order_jsonb"),
}

#: What makes 0.0 of -0.0, which equals it.
_UNSIGNED_ZERO: Mapping[Kind, str] = {Kind.FLOAT4: "unsigned_zero_float4", Kind.FLOAT8: "unsigned_zero_float8"}


def comparable(scalar: Scalar) -> Scalar:
    """Returns the value that stands for all equal to `scalar`, if its kind is of `REPRESENTATIONS`."""
    known = REPRESENTATIONS.get(scalar.type.kind)
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


def told_apart(scalar: Scalar) -> Scalar:
    """Returns a value that is equal only for one representation of `scalar`."""
    known = REPRESENTATIONS.get(scalar.type.kind)
    return scalar if known is None else Call(known.ordered, (scalar,), known.order, scalar.nullable)


def told_again(scalar: Scalar, type_: ScalarType) -> Scalar:
    """Returns the value of type `type_` that `told_apart` was given."""
    known = REPRESENTATIONS.get(type_.kind)
    return scalar if known is None else Call(known.restored, (scalar,), type_, scalar.nullable)
