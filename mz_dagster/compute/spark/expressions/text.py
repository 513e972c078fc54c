"""Functions of text.

Exactness: positions count code points, as in PostgreSQL; `lower`, `upper` and `ILIKE` touch ASCII letters only, as the
C collation has it; positions before the first character and negative lengths are worked out here, since Spark reads
them otherwise.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, all_present, call, failing, number, strict
from mz_dagster.functions.text.characters import LONGEST
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_TOO_LONG = "54000 requested length too large"


def lower(value: Column) -> Column:
    """Returns the text with its ASCII letters in lower case."""
    return sf.translate(value, string.ascii_uppercase, string.ascii_lowercase)


@strict("concat_text")
def _concat(invocation: Invocation) -> Outcome:
    return sf.concat(*invocation.values), None


@strict("length_text")
def _length(invocation: Invocation) -> Outcome:
    return sf.length(invocation.values[0]), None


@strict("octet_length_text")
def _octets(invocation: Invocation) -> Outcome:
    return sf.octet_length(invocation.values[0]), None


@strict("bit_length_text")
def _bits(invocation: Invocation) -> Outcome:
    return sf.bit_length(invocation.values[0]), None


@strict("lower_text")
def _lower(invocation: Invocation) -> Outcome:
    return lower(invocation.values[0]), None


@strict("upper_text")
def _upper(invocation: Invocation) -> Outcome:
    return sf.translate(invocation.values[0], string.ascii_lowercase, string.ascii_uppercase), None


def _part(value: Column, start: Column, end: Column) -> Column:
    """Returns the characters from `start` to before `end`, both counted from 1 and clipped to the text; bigints."""
    after = sf.length(value).cast("bigint") + 1
    first = sf.least(sf.greatest(start, number(1, "bigint")), after)
    last = sf.least(sf.greatest(end, number(1, "bigint")), after)
    count = sf.greatest(last - first, number(0, "bigint"))
    return sf.substring(value, first.cast("int"), count.cast("int"))


@strict("substring_text_from", heavy=True)
def _substring_from(invocation: Invocation) -> Outcome:
    value, start = invocation.values
    long = start.cast("bigint")
    return sf.when(all_present([value, start]), _part(value, long, number(2**62, "bigint"))), None


@strict("substring_text_from_for", heavy=True)
def _substring(invocation: Invocation) -> Outcome:
    value, start, count = invocation.values
    first = start.cast("bigint")
    part = sf.when(count >= 0, _part(value, first, first + count.cast("bigint")))
    part = sf.when(all_present([value, start, count]), part)
    return failing(part, invocation.values, "22011 negative substring length not allowed")


@strict("left_text", heavy=True)
def _left(invocation: Invocation) -> Outcome:
    value, count = invocation.values
    long = count.cast("bigint")
    end = sf.when(count >= 0, long + 1).otherwise(sf.length(value) + long + 1)
    return sf.when(all_present([value, count]), _part(value, number(1, "bigint"), end)), None


@strict("right_text", heavy=True)
def _right(invocation: Invocation) -> Outcome:
    value, count = invocation.values
    long = count.cast("bigint")
    start = sf.when(count >= 0, sf.length(value) - long + 1).otherwise(1 - long)
    # PostgreSQL negates the count in 32 bits.
    start = sf.when(count == -(2**31), number(1, "bigint")).otherwise(start)
    return sf.when(all_present([value, count]), _part(value, start, number(2**62, "bigint"))), None


@strict(*(f"{name}_text{more}" for name in ("btrim", "ltrim", "rtrim") for more in ("", "_text")))
def _trim(invocation: Invocation) -> Outcome:
    value = invocation.values[0]
    characters = invocation.values[1] if len(invocation.values) > 1 else sf.lit(" ")
    name = invocation.function.partition("_")[0]
    return {"btrim": sf.btrim, "ltrim": sf.ltrim, "rtrim": sf.rtrim}[name](value, characters), None


@strict("replace_text")
def _replace(invocation: Invocation) -> Outcome:
    value, search, replacement = invocation.values
    return sf.replace(value, search, replacement), None


@strict("translate_text")
def _translate(invocation: Invocation) -> Outcome:
    return call("translate", *invocation.values), None


@strict("strpos_text")
def _position(invocation: Invocation) -> Outcome:
    value, search = invocation.values
    return call("instr", value, search), None


@strict("starts_with_text")
def _starts_with(invocation: Invocation) -> Outcome:
    value, prefix = invocation.values
    return sf.startswith(value, prefix), None


@strict("lpad_text", "rpad_text", "lpad_text_space", "rpad_text_space", heavy=True)
def _pad(invocation: Invocation) -> Outcome:
    value, count = invocation.values[:2]
    fill = invocation.values[2] if len(invocation.values) > 2 else sf.lit(" ")
    # With nothing to fill, the text is only cut. Else, as in PostgreSQL, 4 bytes a character are reckoned beforehand.
    cut = sf.octet_length(fill) == 0
    fits = sf.when(cut, sf.least(count, sf.length(value))).when(count <= LONGEST // 4, count)
    padded = call(invocation.function[:4], value, sf.greatest(fits, sf.lit(0)), fill)
    present = all_present(invocation.values)
    return failing(sf.when(fits.isNotNull() & present, padded), invocation.values, _TOO_LONG)


@strict("repeat_text", heavy=True)
def _repeat(invocation: Invocation) -> Outcome:
    value, count = invocation.values
    bytes_ = sf.octet_length(value).cast("bigint") * count.cast("bigint")
    times = sf.when(bytes_ <= LONGEST, sf.when(sf.octet_length(value) == 0, sf.lit(0)).otherwise(count))
    return failing(call("repeat", value, times), [value, count], _TOO_LONG)


@strict("reverse_text")
def _reverse(invocation: Invocation) -> Outcome:
    return sf.reverse(invocation.values[0]), None


@strict("md5_text")
def _md5(invocation: Invocation) -> Outcome:
    return sf.md5(invocation.values[0].cast("binary")), None


@strict("ascii_text")
def _ascii(invocation: Invocation) -> Outcome:
    return sf.ascii(invocation.values[0]), None


@strict("split_part_text", heavy=True)
def _split_part(invocation: Invocation) -> Outcome:
    value, delimiter, field = invocation.values
    safe = sf.when(field != 0, sf.greatest(field, sf.lit(-(2**31) + 1)))
    whole = sf.when((field == 1) | (field == -1), value).when(field != 0, sf.lit(""))
    part = sf.when(sf.octet_length(delimiter) == 0, whole).otherwise(sf.split_part(value, delimiter, safe))
    part = sf.when(all_present(invocation.values), part)
    return failing(part, invocation.values, "22023 field position must not be zero")
