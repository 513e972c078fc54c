"""`varchar(n)`, `char(n)`, `uuid` and `bytea`.

A `char(n)` is stored without the blanks at its end: so its equality, its order and its text are those of what is
stored. Where PostgreSQL shows the blanks, they are put back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, strict
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_STRINGS = ("text", "varchar", "bpchar")


def _stripped(value: Column) -> Column:
    return sf.rtrim(value, sf.lit(" "))


@strict(*(f"cast_{source}_to_{target}" for source in _STRINGS for target in ("varchar", "bpchar")))
def _cut(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    if invocation.type.length:
        value = sf.left(value, sf.lit(invocation.type.length))
    return (_stripped(value) if invocation.type.kind is Kind.CHAR else value), None


@strict(*(f"assign_{source}_to_{target}" for source in _STRINGS for target in ("varchar", "bpchar")), heavy=True)
def _assigned(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    kept = sf.left(value, sf.lit(invocation.type.length))
    fits = _stripped(kept) == _stripped(value)
    shown = _stripped(kept) if invocation.type.kind is Kind.CHAR else kept
    message = f"22001 value too long for type {invocation.type}"
    return sf.when(fits, shown), sf.when(~fits, sf.lit(message))


@strict("cast_varchar_to_text", "cast_bpchar_to_text", "cast_uuid_to_text")
def _same(invocation: Invocation) -> Outcome:
    return invocation.values[0], None


@strict("output_bpchar")
def _padded(invocation: Invocation) -> Outcome:
    return sf.rpad(invocation.values[0], invocation.scalars[0].type.length, " "), None


@strict("cast_bytea_to_text")
def _hex_text(invocation: Invocation) -> Outcome:
    return sf.concat(sf.lit("\\x"), sf.lower(sf.hex(invocation.values[0]))), None


@strict("concat_bytea")
def _concatenation(invocation: Invocation) -> Outcome:
    return sf.concat(*invocation.values), None


@strict("octet_length_bytea")
def _size(invocation: Invocation) -> Outcome:
    return sf.octet_length(invocation.values[0]), None


@strict("bit_length_bytea")
def _bits(invocation: Invocation) -> Outcome:
    return sf.bit_length(invocation.values[0]), None


@strict("md5_bytea")
def _md5(invocation: Invocation) -> Outcome:
    return sf.md5(invocation.values[0]), None


@strict("sha224_bytea", "sha256_bytea", "sha384_bytea", "sha512_bytea")
def _sha2(invocation: Invocation) -> Outcome:
    bits = int(invocation.function.partition("_")[0].removeprefix("sha"))
    return sf.unhex(sf.sha2(invocation.values[0], bits)), None
