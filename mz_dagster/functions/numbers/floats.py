"""The digits of floating-point numbers as PostgreSQL 15 prints them: the shortest that read back as the number.

A numeric gets fewer: the 15 or 6 that the type surely holds.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction

from mz_dagster.functions.errors import NUMERIC_NAN, failure
from mz_dagster.functions.numbers.numerics import fitted
from mz_dagster.functions.registry import SqlFailure, pure


@pure("cast_float8_to_text")
def float8_text(value: float) -> str:
    """Returns the text of a double.

    Example:
        >>> float8_text(0.1), float8_text(1e15), float8_text(-0.0), float8_text(1e-05)
        ('0.1', '1e+15', '-0', '1e-05')
    """
    return _text(value, repr(value), 15)


@pure("cast_float4_to_text")
def float4_text(value: float) -> str:
    """Returns the text of a single-precision number, given as a double.

    Example:
        >>> float4_text(0.10000000149011612), float4_text(1234567.0), float4_text(271.546875)
        ('0.1', '1.234567e+06', '271.54688')
    """
    if not math.isfinite(value) or value == 0:
        return _text(value, "", 6)
    return _text(value, _shortest(abs(value)), 6)


def _shortest(value: float) -> str:
    """Returns the fewest decimal digits, and of those the nearest, even ones, that spell a single-precision number."""
    exact = Fraction(value)
    (bits,) = struct.unpack("I", struct.pack("f", value))
    below, above = (_single(bits + step) for step in (-1, 1))
    low, high = (exact + below) / 2, (exact + above) / 2
    even = bits % 2 == 0
    exponent = math.floor(math.log10(value)) + 1
    for digits in range(1, 10):
        unit = Fraction(10) ** (exponent - digits)
        down = exact // unit
        fitting = [n for n in (down, down + 1) if low < n * unit < high or (even and n * unit in (low, high))]
        if fitting:
            nearest = min(fitting, key=lambda n: (abs(n * unit - exact), n % 2))
            return f"{nearest}e{exponent - digits}"
    return f"{value:.8e}"


def _single(bits: int) -> Fraction:
    """Returns the number that bits spell; beyond the greatest, the one that would follow."""
    if bits == 0x7F800000:
        return Fraction(2) ** 128
    (value,) = struct.unpack("f", struct.pack("I", bits))
    return Fraction(value)


@pure("cast_float8_to_numeric", scaled=True)
def float8_numeric(value: float, scale: int) -> Decimal:
    """Returns a double as a numeric, by its first 15 digits.

    Example:
        >>> float8_numeric(0.1 + 0.2, 20)
        Decimal('0.30000000000000000000')
    """
    return _numeric(value, f"{value:.15g}", scale)


@pure("cast_float4_to_numeric", scaled=True)
def float4_numeric(value: float, scale: int) -> Decimal:
    """Returns a single-precision number as a numeric, by its first 6 digits."""
    return _numeric(value, f"{value:.6g}", scale)


def _numeric(value: float, digits: str, scale: int) -> Decimal:
    if math.isnan(value):
        raise failure(NUMERIC_NAN)
    if math.isinf(value):
        raise SqlFailure("22003", "numeric field overflow")
    return fitted(Decimal(digits), scale, scale)


def _text(value: float, shortest: str, digits: int) -> str:
    """Returns `shortest` in PostgreSQL's form: with an exponent from 10^digits on, and below 0.0001."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent_text or "0")
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(significant)
    significant = significant.rstrip("0")
    exponent = point - 1
    if exponent < -4 or exponent >= digits:
        tail = f".{significant[1:]}" if len(significant) > 1 else ""
        return f"{sign}{significant[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{significant}"
    if point >= len(significant):
        return f"{sign}{significant}{'0' * (point - len(significant))}"
    return f"{sign}{significant[:point]}.{significant[point:]}"
