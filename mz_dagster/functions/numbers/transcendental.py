"""Functions of double-precision numbers that the C library computes, in PostgreSQL as in Python.

Owns what PostgreSQL adds to the library: its errors, and its results for NaN, infinities and zero. The last digit is
the library's: on workers that all have one, results are deterministic, and PostgreSQL's where it has the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mz_dagster.functions.registry import SqlFailure, pure

#: The functions whose last digit is the C library's.
OF_THE_C_LIBRARY = frozenset(
    f"{name}_float8"
    for name in (
        *("exp", "ln", "log", "power", "cbrt", "atan2", "atan2d"),
        *("sin", "cos", "tan", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand"),
    )
)
_RADIANS_PER_DEGREE = 0.0174532925199432957692


def overflow() -> SqlFailure:
    """Returns the error of a result that is too large."""
    return SqlFailure("22003", "value out of range: overflow")


def underflow() -> SqlFailure:
    """Returns the error of a result that is not zero, and would become it."""
    return SqlFailure("22003", "value out of range: underflow")


@pure("exp_float8")
def exp(value: float) -> float:
    """Returns e to the power of `value`."""
    if not math.isfinite(value):
        return 0.0 if value < 0 else value
    try:
        result = math.exp(value)
    except OverflowError:
        raise overflow() from None
    if result == 0:
        raise underflow()
    return result


@pure("ln_float8")
def ln(value: float) -> float:
    """Returns the natural logarithm."""
    return _logarithm(math.log, value)


@pure("log_float8")
def log10(value: float) -> float:
    """Returns the logarithm to the base 10."""
    return _logarithm(math.log10, value)


def _logarithm(function: Callable[[float], float], value: float) -> float:
    if value == 0:
        raise SqlFailure("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise SqlFailure("2201E", "cannot take logarithm of a negative number")
    return function(value)


@pure("power_float8")
def power(base: float, exponent: float) -> float:
    """Returns `base` to the power of `exponent`.

    Example:
        >>> power(2.0, 10.0), power(-8.0, 3.0)
        (1024.0, -512.0)
    """
    if base == 1 or exponent == 0:
        return 1.0
    if math.isnan(base) or math.isnan(exponent):
        return math.nan
    if base == 0 and exponent < 0:
        raise SqlFailure("2201F", "zero raised to a negative power is undefined")
    if base < 0 and math.isfinite(exponent) and not exponent.is_integer():
        raise SqlFailure("2201F", "a negative number raised to a non-integer power yields a complex result")
    try:
        result = math.pow(base, exponent)
    except OverflowError:
        raise overflow() from None
    if result == 0 and base != 0 and math.isfinite(base) and math.isfinite(exponent):
        raise underflow()
    return result


@pure("cbrt_float8")
def cbrt(value: float) -> float:
    """Returns the cube root."""
    return math.cbrt(value)


def _finite(function: Callable[[float], float]) -> Callable[[float], float]:
    """Returns a function of angles, which infinity is not."""

    def checked(value: float) -> float:
        if math.isinf(value):
            raise SqlFailure("22003", "input is out of range")
        return function(value)

    return checked


def _within(function: Callable[[float], float], least: float, most: float) -> Callable[[float], float]:
    """Returns a function that has values from `least` to `most` only."""

    def checked(value: float) -> float:
        if value < least or value > most:
            raise SqlFailure("22003", "input is out of range")
        return function(value)

    return checked


def _large(function: Callable[[float], float]) -> Callable[[float], float]:
    """Returns a function that grows to infinity, as PostgreSQL lets it."""

    def grown(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.copysign(math.inf, value) if function is math.sinh else math.inf

    return grown


@pure("cot_float8")
def cot(value: float) -> float:
    """Returns the cotangent."""
    tangent = _finite(math.tan)(value)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1.0 / tangent


@pure("atanh_float8")
def atanh(value: float) -> float:
    """Returns the inverse hyperbolic tangent, infinite at -1 and 1."""
    if abs(value) == 1:
        return math.copysign(math.inf, value)
    return _within(math.atanh, -1, 1)(value)


@pure("atan2_float8")
def atan2(y: float, x: float) -> float:
    """Returns the angle of the point (x, y)."""
    return math.atan2(y, x)


@pure("degrees_float8")
def degrees(radians: float) -> float:
    """Returns an angle in degrees."""
    result = radians / _RADIANS_PER_DEGREE
    if math.isinf(result) and math.isfinite(radians):
        raise overflow()
    return result


@pure("radians_float8")
def radians(degrees: float) -> float:
    """Returns an angle in radians."""
    result = degrees * _RADIANS_PER_DEGREE
    if result == 0 and degrees != 0:
        raise underflow()
    return result


for _name, _function in {
    "sin": _finite(math.sin),
    "cos": _finite(math.cos),
    "tan": _finite(math.tan),
    "asin": _within(math.asin, -1, 1),
    "acos": _within(math.acos, -1, 1),
    "atan": math.atan,
    "sinh": _large(math.sinh),
    "cosh": _large(math.cosh),
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": _within(math.acosh, 1, math.inf),
}.items():
    pure(f"{_name}_float8")(_function)
