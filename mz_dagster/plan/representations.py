"""Kinds whose equal values have several representations: `1 mon` equals `30 days`, and in jsonb 1.0 equals 1.00.

Such values are grouped by one value for all equal ones, and told apart where a function could tell the difference.
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


def told_apart(scalar: Scalar) -> Scalar:
    """Returns a value that is equal only for one representation of `scalar`."""
    known = REPRESENTATIONS.get(scalar.type.kind)
    return scalar if known is None else Call(known.ordered, (scalar,), known.order, scalar.nullable)


def told_again(scalar: Scalar, type_: ScalarType) -> Scalar:
    """Returns the value of type `type_` that `told_apart` was given."""
    known = REPRESENTATIONS.get(type_.kind)
    return scalar if known is None else Call(known.restored, (scalar,), type_, scalar.nullable)
