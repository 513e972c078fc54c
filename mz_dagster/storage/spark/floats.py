"""Floating-point numbers beside the sign of their zeros, also within arrays and records.

Spark groups -0.0 with 0.0, and what it then hands out is either. A number that stands in a struct with whether it is
-0.0 is grouped by its representation, and can be restored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

FLOATS = frozenset({Kind.FLOAT4, Kind.FLOAT8})


def is_minus_zero(value: Column) -> Column:
    """Returns whether a number is -0.0; NULL for NULL."""
    return (value == 0) & (value.cast("string") == "-0.0")


def represented(value: Column, type_: ScalarType) -> Column:
    """Returns a value of `type_` in which each number is a struct of it, without its sign if it is zero, and that."""

    def of_number(number: Column) -> Column:
        pair = sf.struct(_unsigned(number).alias("f1"), is_minus_zero(number).alias("f2"))
        return sf.when(number.isNotNull(), pair)

    return _each_number(value, type_, of_number)


def restored(value: Column, type_: ScalarType) -> Column:
    """Returns the value of `type_` that `represented` was given."""

    def of_pair(pair: Column) -> Column:
        number = pair.getField("f1")
        return sf.when(pair.getField("f2"), -number).otherwise(number)

    return _each_number(value, type_, of_pair)


def unsigned(value: Column, type_: ScalarType) -> Column:
    """Returns a value of `type_` with 0.0 for each -0.0."""
    return _each_number(value, type_, _unsigned)


def _unsigned(number: Column) -> Column:
    return sf.when(number == 0, sf.abs(number)).otherwise(number)


def minus_zeros(value: Column, type_: ScalarType) -> Column:
    """Returns for each number of a value of `type_` whether it is -0.0, in its place; NULL for what has no such."""
    if type_.kind in FLOATS:
        return sf.when(is_minus_zero(value), sf.lit(True))
    flags = _flags(value, type_)
    none = _flags(unsigned(value, type_), type_)
    return sf.when(flags != none, flags)


def with_minus_zeros(value: Column, flags: Column, type_: ScalarType) -> Column:
    """Returns the value of `type_` of which `unsigned` and `minus_zeros` made `value` and `flags`."""
    return sf.when(flags.isNull(), value).otherwise(_flagged(value, flags, type_))


def flags_type(type_: ScalarType) -> str:
    """Returns Spark's type of `minus_zeros`."""
    if type_.element is not None:
        return f"array<{flags_type(type_.element)}>"
    if type_.is_composite:
        return f"struct<{', '.join(f'f{i}: {flags_type(one)}' for i, (_, one) in enumerate(type_.fields, 1))}>"
    return "boolean"


def _each_number(value: Column, type_: ScalarType, rule: Callable[[Column], Column]) -> Column:
    """Returns a value of `type_` with what `rule` makes of each floating-point number in its place."""
    return _each_leaf(value, type_, lambda one, leaf: rule(one) if leaf.kind in FLOATS else one)


def _each_leaf(value: Column, type_: ScalarType, rule: Callable[[Column, ScalarType], Column]) -> Column:
    if type_.element is not None:
        element = type_.element
        return sf.transform(value, lambda one: _each_leaf(one, element, rule))
    if type_.is_composite:
        return each_field(value, type_, lambda one, field: _each_leaf(one, field, rule))
    return rule(value, type_)


def _flags(value: Column, type_: ScalarType) -> Column:
    def of_leaf(one: Column, leaf: ScalarType) -> Column:
        return sf.coalesce(is_minus_zero(one), sf.lit(False)) if leaf.kind in FLOATS else sf.lit(False)

    return _each_leaf(value, type_, of_leaf)


def _flagged(value: Column, flags: Column, type_: ScalarType) -> Column:
    if type_.element is not None:
        element = type_.element
        return sf.zip_with(value, flags, lambda one, flag: _flagged(one, flag, element))
    if type_.is_composite:
        fields = [
            _flagged(value.getField(f"f{i}"), flags.getField(f"f{i}"), one).alias(f"f{i}")
            for i, (_, one) in enumerate(type_.fields, 1)
        ]
        return sf.when(value.isNotNull(), sf.struct(*fields))
    return sf.when(flags, sf.negate(value)).otherwise(value) if type_.kind in FLOATS else value


def each_field(value: Column, type_: ScalarType, rule: Callable[[Column, ScalarType], Column]) -> Column:
    """Returns a record of what `rule` makes of each field of one."""
    fields = [rule(value.getField(f"f{i}"), one).alias(f"f{i}") for i, (_, one) in enumerate(type_.fields, 1)]
    return sf.when(value.isNotNull(), sf.struct(*fields))
