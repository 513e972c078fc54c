"""Exact sums of double precision, which updates can be taken out of again; no SQL name leads here.

Adding floats does not undo: (1e16 + 1) - 1e16 is 0. So a sum is kept as an integer. A finite double is m * 2^(b - 1074)
with m < 2^53 and 0 <= b <= 2045: an integer of up to 2098 bits in units of 2^-1074, written here in digits of 24 bits.

    limb_float8(x)      the place of its lowest digit, b div 24; -1 for NaN, -2 for infinity, -3 for -infinity
    digit_float8(x, i)  its digit at the place limb + i, for i from 0 to 3, with the sign of x; 0 if x is not finite
    whole_float8(limbs, digits 0, 1, 2, 3)
                        the double nearest to the sum (ties to even) whose digits, summed by limb, these are; `22003
                        value out of range: overflow`; NULL if there is no limb but NO_VALUE

A digit is below 2^24, so bigints hold the sums of 2^39 rows; carries are only made when a sum is read. A group has
one row of state for each limb that its values use, 89 at most. The sum of nothing but -0.0 is 0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, call, number, strict, try_cast
from mz_dagster.errors import InternalError
from mz_dagster.functions.errors import FLOAT_OVERFLOW
from mz_dagster.scalars.scalar import Literal
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

#: The limbs of what is no finite number; rows without a value have `plan.lowering`'s -4.
NAN, INFINITY, NEGATIVE_INFINITY = -1, -2, -3

_BITS = 24
_MASK = (1 << _BITS) - 1
#: Of a double: the bits of its mantissa, and the exponent of its least unit.
_MANTISSA = 53
_LEAST = -1074
#: So many digits hold the mantissa and the bit by which it is rounded.
_READ = 4


@strict("limb_float8", heavy=True)
def _limb(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    limb = sf.floor(_exponent(value) / _BITS).cast("int")
    special = sf.when(sf.isnan(value), NAN).when(value > 0, INFINITY).otherwise(NEGATIVE_INFINITY)
    return sf.when(value.isNull(), None).when(_is_finite(value), limb).otherwise(special), None


@strict("digit_float8", heavy=True)
def _digit(invocation: Invocation) -> Outcome:
    value, place = invocation.values[0], invocation.scalars[1]
    if not isinstance(place, Literal) or not isinstance(place.value, int):
        raise InternalError("the place of a digit is a constant")
    mantissa, shift = _mantissa(value), sf.pmod(_exponent(value), number(_BITS, "int"))
    # The mantissa's bits in three portions, each moved by less than a digit, so that no bit is lost.
    low = call("shiftleft", mantissa.bitwiseAND(_MASK), shift)
    middle = call("shiftleft", sf.shiftright(mantissa, _BITS).bitwiseAND(_MASK), shift)
    high = call("shiftleft", sf.shiftright(mantissa, 2 * _BITS), shift)
    digit = (
        low.bitwiseAND(_MASK),
        sf.shiftright(low, _BITS) + middle.bitwiseAND(_MASK),
        sf.shiftright(middle, _BITS) + high.bitwiseAND(_MASK),
        sf.shiftright(high, _BITS),
    )[place.value]
    signed = sf.when(value < 0, -digit).otherwise(digit)
    return sf.when(value.isNotNull(), sf.when(_is_finite(value), signed).otherwise(number(0, "bigint"))), None


def _is_finite(value: Column) -> Column:
    return ~sf.isnan(value) & (sf.abs(value) != sf.lit(float("inf")))


def _text(value: Column) -> Column:
    """Returns a finite double in hexadecimal, which is exact: 0x1.8p1, and 0x0.0000000000001p-1022 below 2^-1022."""
    return sf.format_string("%a", sf.abs(value))


def _exponent(value: Column) -> Column:
    """Returns b."""
    return try_cast(sf.substring_index(_text(value), "p", -1), "int") + number(1 - _MANTISSA - _LEAST, "int")


def _mantissa(value: Column) -> Column:
    """Returns m."""
    text = _text(value)
    fraction = sf.rpad(sf.substring_index(sf.substring(text, 5, 30), "p", 1), 13, "0")
    leading = sf.when(sf.substring(text, 3, 1) == "1", number(1 << (_MANTISSA - 1), "bigint"))
    return sf.coalesce(leading, number(0, "bigint")) + try_cast(sf.conv(fraction, 16, 10), "bigint")


@strict("whole_float8", heavy=True)
def _whole(invocation: Invocation) -> Outcome:
    limbs, *sums = invocation.values
    share = invocation.share
    maps = share(*(sf.map_from_arrays(limbs, one) for one in sums))
    # Carries go up by two places at most, and two more tell the sign.
    places = sf.sequence(number(0, "int"), sf.greatest(sf.array_max(limbs) + _READ + 4, number(0, "int")))
    (raw,) = share(sf.transform(places, lambda place: _at(maps, place)))
    (negative,) = share(_carried(raw)["carry"] < 0)
    (digits,) = share(_carried(sf.transform(raw, lambda one: sf.when(negative, -one).otherwise(one)))["digits"])
    (highest,) = share(sf.array_max(sf.transform(digits, lambda one, i: sf.when(one != 0, i).otherwise(-1))))
    top, rest = share(
        *(
            _digit_at(digits, highest - first) * (1 << _BITS) + _digit_at(digits, highest - first - 1)
            for first in (0, 2)
        )
    )
    below = sf.exists(sf.transform(digits, lambda one, i: (one != 0) & (i < highest - 3)), lambda one: one)
    (size,) = share(sf.length(sf.bin(top)))
    # What is left of `rest` when the mantissa has its bits: more than half of its least unit rounds up.
    left = size - (_MANTISSA - 2 * _BITS)
    (mantissa, remainder) = share(
        call("shiftleft", top, _MANTISSA - size).bitwiseOR(call("shiftright", rest, left)),
        rest.bitwiseAND(call("shiftleft", number(1, "bigint"), left) - 1),
    )
    half = call("shiftleft", number(1, "bigint"), left - 1)
    up = (remainder > half) | ((remainder == half) & (below | (mantissa.bitwiseAND(1) == 1)))
    rounded, exponent = share(
        mantissa + sf.when(up, number(1, "bigint")).otherwise(number(0, "bigint")),
        (highest - 3) * _BITS + left + _LEAST,
    )
    (scaled,) = share(_scaled(rounded.cast("double"), exponent))
    fits = (sf.length(sf.bin(rounded)) + exponent) <= 1024
    nan, plus, minus = (sf.array_contains(limbs, limb) for limb in (NAN, INFINITY, NEGATIVE_INFINITY))
    special = sf.when(nan | (plus & minus), float("nan")).when(plus, float("inf")).when(minus, float("-inf"))
    has_value = sf.array_max(limbs) >= NEGATIVE_INFINITY
    is_zero = highest < 0
    total = sf.when(is_zero, 0.0).when(fits, sf.when(negative, -scaled).otherwise(scaled))
    overflow = has_value & special.isNull() & ~is_zero & ~fits
    return sf.when(has_value, sf.coalesce(special, total)), sf.when(overflow, sf.lit(FLOAT_OVERFLOW))


def _at(maps: list[Column], place: Column) -> Column:
    """Returns the sum of what limbs have at a place."""
    zero = number(0, "bigint")
    total = zero
    for i, one in enumerate(maps):
        total = total + sf.coalesce(sf.try_element_at(one, place - i), zero)
    return total


def _carried(sums: Column) -> Column:
    """Returns the digits of a number whose places hold `sums`, and what is carried out: -1 below zero, else 0."""
    nothing = sf.array().cast("array<bigint>")
    start = sf.struct(number(0, "bigint").alias("carry"), nothing.alias("digits"))

    def added(whole: Column, one: Column) -> Column:
        total = whole["carry"] + one
        digits = sf.concat(whole["digits"], sf.array(total.bitwiseAND(_MASK)))
        return sf.struct(sf.shiftright(total, _BITS).alias("carry"), digits.alias("digits"))

    return sf.aggregate(sums, start, added)


def _digit_at(digits: Column, place: Column) -> Column:
    return sf.coalesce(sf.get(digits, place), number(0, "bigint"))


def _scaled(value: Column, exponent: Column) -> Column:
    """Returns `value * 2^exponent`, which is a double: each factor is a power of two, and each product exact."""
    for sign, bits in ((1, 10), (-1, 11)):
        for bit in reversed(range(bits)):
            has = (sf.greatest(sign * exponent, number(0, "int")).bitwiseAND(1 << bit)) != 0
            value = value * sf.when(has, 2.0 ** (sign * 2**bit)).otherwise(1.0)
    return value
