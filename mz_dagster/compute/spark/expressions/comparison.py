"""Comparisons, all of them total.

Exactness: text compares by bytes; NaN equals itself and is greater than every number, as in PostgreSQL and in Spark.
Numerics of different scales compare by value even where the coarser one has too many digits for the finer scale.
A comparison of a floating-point column is hidden from file skipping: the statistics of `deltalake` leave out NaN.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, all_present, decimal, strict, try_cast
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")
_PLAIN = (
    *("bool", "int2", "int4", "int8", "text", "bpchar", "uuid", "bytea"),
    *("date", "timestamp", "timestamptz", "mz_timestamp"),
)
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def compare(name: str, left: Column, right: Column) -> Column:
    """Returns the comparison called `name` of two columns of one type."""
    match name:
        case "eq":
            return left == right
        case "ne":
            return left != right
        case "lt":
            return left < right
        case "le":
            return left <= right
        case "gt":
            return left > right
        case _:
            return left >= right


@strict(*(f"{name}_{kind}" for name in _NAMES for kind in _PLAIN))
def _plain(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    return compare(invocation.function[:2], left, right), None


@strict(*(f"{name}_{kind}" for name in _NAMES for kind in ("float4", "float8")))
def _float(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    return compare(invocation.function[:2], sf.nanvl(left, left), right), None


@strict(*(f"{name}_numeric" for name in _NAMES))
def _numeric(invocation: Invocation) -> Outcome:
    name = invocation.function[:2]
    left, right = invocation.values
    left_scale, right_scale = (scalar.type.scale for scalar in invocation.scalars)
    if left_scale == right_scale:
        return compare(name, left, right), None
    if left_scale > right_scale:
        return _mixed(_MIRRORED[name], right, left, left_scale, invocation.scalars[1]), None
    return _mixed(name, left, right, right_scale, invocation.scalars[0]), None


def _mixed(name: str, coarse: Column, fine: Column, scale: int, scalar: Scalar) -> Column:
    """Returns the comparison of `coarse` with `fine`, whose scale is greater."""
    widened = try_cast(coarse, f"decimal(38,{scale})")
    if (
        isinstance(scalar, Literal)
        and isinstance(scalar.value, Decimal)
        and scalar.value.copy_abs() < 10 ** (38 - scale)
    ):
        return compare(name, sf.lit(f"{scalar.value:f}").cast(f"decimal(38,{scale})"), fine)
    # What cannot be widened is farther from zero than anything of the finer scale.
    zero = decimal("0", scalar.type.scale)
    beyond = {"eq": sf.lit(False), "ne": sf.lit(True)}.get(
        name, coarse < zero if name in ("lt", "le") else coarse > zero
    )
    return sf.when(widened.isNotNull(), compare(name, widened, fine)).when(all_present([coarse, fine]), beyond)


@strict("not")
def _not(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return ~value, None
