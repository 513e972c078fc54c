"""The digits of floating-point numbers as PostgreSQL 15 prints them: the shortest that read back as the number."""

from __future__ import annotations

import math

from mz_dagster.plan.functions.pure.registry import pure


@pure("cast_float8_to_text")
def float8_text(value: float) -> str:
    """Returns the text of a double.

    Example:
        >>> float8_text(0.1), float8_text(1e15), float8_text(-0.0), float8_text(1e-05)
        ('0.1', '1e+15', '-0', '1e-05')
    """
    return _text(value, repr(value), 15)


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
