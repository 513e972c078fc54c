"""Functions of double-precision numbers that the C library computes, in PostgreSQL as in Python.

Owns what PostgreSQL adds to the library: its errors, and its results for NaN, infinities and zero. The last digit is
the library's: on workers that all have one, results are deterministic, and PostgreSQL's where it has the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mz_dagster.functions.registry import Named, SqlFailure, function
from mz_dagster.scalars.types import Kind

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


@function("exp_float8", (Kind.FLOAT8,), Kind.FLOAT8, sql="exp", fallible=True)
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


@function("ln_float8", (Kind.FLOAT8,), Kind.FLOAT8, sql="ln", fallible=True)
def ln(value: float) -> float:
    """Returns the natural logarithm."""
    return _logarithm(math.log, value)


@function("log_float8", (Kind.FLOAT8,), Kind.FLOAT8, sql=("log", "log10"), fallible=True)
def log10(value: float) -> float:
    """Returns the logarithm to the base 10."""
    return _logarithm(math.log10, value)


def _logarithm(function: Callable[[float], float], value: float) -> float:
    if value == 0:
        raise SqlFailure("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise SqlFailure("2201E", "cannot take logarithm of a negative number")
    return function(value)


@function("power_float8", (Kind.FLOAT8, Kind.FLOAT8), Kind.FLOAT8, sql=("^", "power", "pow"), fallible=True)
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


@function(
    "cbrt_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="||/",
    says="The cube root, of a double.",
    example="||/ 27.0",
    gives="3.0000000000000004",
    also=(Named("cbrt", "The cube root.", "cbrt(27.0)", "3.0000000000000004"),),
)
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


@function(
    "cot_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="cot",
    says="The cotangent, of radians.",
    example="cot(0.5)",
    gives="1.830487721712452",
    fallible=True,
)
def cot(value: float) -> float:
    """Returns the cotangent."""
    tangent = _finite(math.tan)(value)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1.0 / tangent


@function(
    "atanh_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="atanh",
    says="The inverse hyperbolic tangent.",
    example="atanh(0.25)",
    gives="0.25541281188299536",
    fallible=True,
)
def atanh(value: float) -> float:
    """Returns the inverse hyperbolic tangent, infinite at -1 and 1."""
    if abs(value) == 1:
        return math.copysign(math.inf, value)
    return _within(math.atanh, -1, 1)(value)


@function(
    "atan2_float8",
    (Kind.FLOAT8, Kind.FLOAT8),
    Kind.FLOAT8,
    sql="atan2",
    says="The inverse tangent of a quotient, in radians, in its quadrant.",
    example="atan2(1, 0)",
    gives="1.5707963267948966",
)
def atan2(y: float, x: float) -> float:
    """Returns the angle of the point (x, y)."""
    return math.atan2(y, x)


@function(
    "degrees_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="degrees",
    says="Radians as degrees.",
    example="degrees(0.5)",
    gives="28.64788975654116",
    fallible=True,
)
def degrees(radians: float) -> float:
    """Returns an angle in degrees."""
    result = radians / _RADIANS_PER_DEGREE
    if math.isinf(result) and math.isfinite(radians):
        raise overflow()
    return result


@function(
    "radians_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="radians",
    says="Degrees as radians.",
    example="radians(45.0)",
    gives="0.7853981633974483",
    fallible=True,
)
def radians(degrees: float) -> float:
    """Returns an angle in radians."""
    result = degrees * _RADIANS_PER_DEGREE
    if result == 0 and degrees != 0:
        raise underflow()
    return result


function(
    "sin_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="sin",
    says="The sine, of radians.",
    example="sin(1)",
    gives="0.8414709848078965",
    fallible=True,
)(_finite(math.sin))
function(
    "cos_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="cos",
    says="The cosine, of radians.",
    example="cos(0)",
    gives="1",
    fallible=True,
)(_finite(math.cos))
function(
    "tan_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="tan",
    says="The tangent, of radians.",
    example="tan(1)",
    gives="1.5574077246549023",
    fallible=True,
)(_finite(math.tan))
function(
    "asin_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="asin",
    says="The inverse sine, in radians.",
    example="asin(1)",
    gives="1.5707963267948966",
    fallible=True,
)(_within(math.asin, -1, 1))
function(
    "acos_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="acos",
    says="The inverse cosine, in radians.",
    example="acos(1)",
    gives="0",
    fallible=True,
)(_within(math.acos, -1, 1))
function(
    "atan_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="atan",
    says="The inverse tangent, in radians.",
    example="atan(1)",
    gives="0.7853981633974483",
)(math.atan)
function(
    "sinh_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="sinh",
    says="The hyperbolic sine.",
    example="sinh(1)",
    gives="1.1752011936438014",
)(_large(math.sinh))
function(
    "cosh_float8", (Kind.FLOAT8,), Kind.FLOAT8, sql="cosh", says="The hyperbolic cosine.", example="cosh(0)", gives="1"
)(_large(math.cosh))
function(
    "tanh_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="tanh",
    says="The hyperbolic tangent.",
    example="tanh(1)",
    gives="0.7615941559557649",
)(math.tanh)
function(
    "asinh_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="asinh",
    says="The inverse hyperbolic sine.",
    example="asinh(1)",
    gives="0.881373587019543",
)(math.asinh)
function(
    "acosh_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="acosh",
    says="The inverse hyperbolic cosine.",
    example="acosh(1)",
    gives="0",
    fallible=True,
)(_within(math.acosh, 1, math.inf))
