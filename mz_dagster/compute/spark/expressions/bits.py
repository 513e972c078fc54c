"""Operators on the bits of integers, and constants."""

from __future__ import annotations

import math

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, strict
from mz_dagster.storage.late_pyspark import functions as sf

_SHORT = ("int2", "int4", "int8")


@strict(*(f"{name}_{short}" for name in ("bit_and", "bit_or", "bit_xor") for short in _SHORT))
def _bitwise(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    name = invocation.function.split("_")[1]
    value = {"and": left.bitwiseAND, "or": left.bitwiseOR, "xor": left.bitwiseXOR}[name](right)
    return value, None


@strict(*(f"bit_not_{short}" for short in _SHORT))
def _complement(invocation: Invocation) -> Outcome:
    return sf.bitwise_not(invocation.values[0]), None


@strict("to_hex_int4", "to_hex_int8")
def _hexadecimal(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    digits = 8 if invocation.function == "to_hex_int4" else 16
    # Spark's digits are those of a bigint, of which a negative integer has twice as many as it should.
    return sf.lower(sf.right(sf.hex(value), sf.lit(digits))), None


@strict("pi")
def _pi(invocation: Invocation) -> Outcome:
    return sf.lit(math.pi).cast(spark_type(invocation.type)), None
