"""Casts from and to text.

Exactness: what a text may look like is decided by a regular expression before Spark reads it, since Spark accepts
other texts than PostgreSQL; the same texts as in `functions/literals.py`, with the same errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, call, strict, try_cast
from mz_dagster.compute.spark.expressions.text import lower
from mz_dagster.functions.errors import MZ_TIMESTAMP_OUT_OF_RANGE, NUMERIC_NAN, NUMERIC_OVERFLOW
from mz_dagster.functions.literals import (
    FALSE_WORDS,
    FLOAT_PATTERN,
    SPACE,
    TRUE_WORDS,
)
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_SPACES = " \t\n\x0b\f\r"
_NUMBER = rf"\A{FLOAT_PATTERN}\z"


@strict("cast_bool_to_text", "cast_int2_to_text", "cast_int4_to_text", "cast_int8_to_text", "cast_numeric_to_text")
@strict("cast_int2_to_unconstrained", "cast_int4_to_unconstrained", "cast_int8_to_unconstrained")
@strict("cast_numeric_to_unconstrained", "cast_unconstrained_to_text")
@strict("cast_date_to_text", "cast_timestamp_to_text", "cast_mz_timestamp_to_text")
def _to_text(invocation: Invocation) -> Outcome:
    return invocation.values[0].cast("string"), None


@strict("label_of_enum")
def _label(invocation: Invocation) -> Outcome:
    (member,) = invocation.values
    return sf.regexp_replace(member, "^[0-9]+ ", ""), None


@strict("output_bool")
def _output_bool(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return sf.when(value, sf.lit("t")).when(~value, sf.lit("f")), None


@strict("cast_timestamptz_to_text")
def _zoned_to_text(invocation: Invocation) -> Outcome:
    return sf.concat(invocation.values[0].cast("string"), sf.lit("+00")), None


@strict("cast_int2_to_int4", "cast_int2_to_int8", "cast_int4_to_int8", "cast_bool_to_int4", "cast_int4_to_bool")
@strict(*(f"cast_{i}_to_{f}" for i in ("int2", "int4", "int8") for f in ("float4", "float8")), "cast_float4_to_float8")
def _always_fits(invocation: Invocation) -> Outcome:
    return invocation.values[0].cast(spark_type(invocation.type)), None


@strict("cast_int4_to_int2", "cast_int8_to_int2", "cast_int8_to_int4")
def _narrower(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    narrow = try_cast(value, spark_type(invocation.type))
    message = f"22003 {invocation.type.kind.value} out of range"
    return narrow, sf.when(narrow.isNull() & value.isNotNull(), sf.lit(message))


def _stripped(value: Column) -> Column:
    return sf.btrim(value, sf.lit(_SPACES))


def _invalid(type_: str, value: Column, sqlstate: str = "22P02") -> Column:
    return sf.concat(sf.lit(f'{sqlstate} invalid input syntax for type {type_}: "'), value, sf.lit('"'))


@strict("cast_text_to_bool", heavy=True)
def _to_bool(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    word = lower(_stripped(value))
    found = sf.when(word.isin(*TRUE_WORDS), sf.lit(True)).when(word.isin(*FALSE_WORDS), sf.lit(False))
    return found, sf.when(found.isNull() & value.isNotNull(), _invalid("boolean", value))


@strict("cast_text_to_int2", "cast_text_to_int4", "cast_text_to_int8", heavy=True)
def _to_integer(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    name = invocation.type.kind.value
    shaped = sf.rlike(value, sf.lit(rf"\A{SPACE}*[+-]?[0-9]+{SPACE}*\z"))
    found = try_cast(sf.when(shaped, _stripped(value)), spark_type(invocation.type))
    too_large = sf.concat(sf.lit('22003 value "'), value, sf.lit(f'" is out of range for type {name}'))
    return found, sf.when(~shaped, _invalid(name, value)).when(found.isNull() & value.isNotNull(), too_large)


@strict("cast_text_to_mz_timestamp", heavy=True)
def _to_mz_timestamp(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    shaped = sf.rlike(value, sf.lit(rf"\A{SPACE}*[+]?[0-9]+{SPACE}*\z"))
    found = try_cast(sf.when(shaped, _stripped(value)), "bigint")
    too_large = sf.when(found.isNull() & value.isNotNull(), sf.lit(MZ_TIMESTAMP_OUT_OF_RANGE))
    return found, sf.when(~shaped, _invalid("mz_timestamp", value)).otherwise(too_large)


@strict("cast_unconstrained_to_float4", "cast_unconstrained_to_float8", heavy=True)
@strict("cast_text_to_float4", "cast_text_to_float8", heavy=True)
def _to_float(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    name, type_ = invocation.type.kind.value, spark_type(invocation.type)
    word = _stripped(value)
    special = lower(call("regexp_replace", word, sf.lit(r"\A[+-]"), sf.lit("")))
    infinity = sf.when(sf.startswith(word, sf.lit("-")), sf.lit(float("-inf"))).otherwise(sf.lit(float("inf")))
    named = sf.when(special.isin("inf", "infinity"), infinity).when(special == "nan", sf.lit(float("nan")))
    shaped = sf.rlike(word, sf.lit(_NUMBER))
    near = try_cast(sf.when(shaped, word), type_)
    is_zero = sf.rlike(word, sf.lit(r"\A[+-]?[0.]*(?:[eE].*)?\z"))
    beyond = shaped & ((sf.abs(near) == float("inf")) | ((near == 0) & ~is_zero))
    found = sf.when(named.isNotNull(), named.cast(type_)).when(~beyond, near)
    too_large = sf.concat(sf.lit('22003 "'), word, sf.lit(f'" is out of range for type {name}'))
    error = sf.when(beyond, too_large).when(found.isNull() & value.isNotNull(), _invalid(name, value))
    return found, error


@strict("cast_text_to_numeric", heavy=True)
def _to_numeric(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    word = _stripped(value)
    shaped = sf.rlike(word, sf.lit(_NUMBER))
    # An exponent of five digits or more is beyond every scale; Java would take its time to find out.
    readable = shaped & ~sf.rlike(word, sf.lit("[eE][+-]?0*[1-9][0-9]{3,}"))
    found = try_cast(sf.when(readable, word), spark_type(invocation.type))
    error = (
        sf.when(sf.lower(word) == "nan", sf.lit(NUMERIC_NAN))
        .when(sf.rlike(word, sf.lit(r"(?i)\A[+-]?inf(inity)?\z")), sf.lit(NUMERIC_OVERFLOW))
        .when(~shaped, _invalid("numeric", value))
        .when(found.isNull() & value.isNotNull(), sf.lit(NUMERIC_OVERFLOW))
    )
    return found, error
