"""Scalars in a type that is known to take them."""

from __future__ import annotations

from mz_dagster.functions import CastContext, Failure, cast
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import ScalarType


def implicit(scalar: Scalar, target: ScalarType) -> Scalar:
    """Returns `scalar` in a type to which it is cast without being asked."""
    found = cast(scalar.type, target, CastContext.IMPLICIT)
    assert not isinstance(found, Failure), found
    return found.apply(scalar)


def explicit(scalar: Scalar, target: ScalarType) -> Scalar:
    """Returns `scalar` in a type to which it can be cast."""
    found = cast(scalar.type, target)
    assert not isinstance(found, Failure), found
    return found.apply(scalar)
