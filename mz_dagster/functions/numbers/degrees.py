"""Trigonometry in degrees, exact where the result is: `sind(30)` is 0.5.

As PostgreSQL does it, every angle is brought into the first quadrant, and the C library's functions are scaled so that
they hit the known values at 30, 45 and 60 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

_RADIANS_PER_DEGREE = 0.0174532925199432957692
_SIN_30 = math.sin(30.0 * _RADIANS_PER_DEGREE)
_ONE_MINUS_COS_60 = 1.0 - math.cos(60.0 * _RADIANS_PER_DEGREE)
_ASIN_HALF, _ACOS_HALF, _ATAN_ONE = math.asin(0.5), math.acos(0.5), math.atan(1.0)


def _near_zero_sine(angle: float) -> float:
    """Returns the sine of 0 to 30 degrees."""
    return math.sin(angle * _RADIANS_PER_DEGREE) / _SIN_30 / 2.0


def _near_zero_cosine(angle: float) -> float:
    """Returns the cosine of 0 to 60 degrees."""
    return 1.0 - (1.0 - math.cos(angle * _RADIANS_PER_DEGREE)) / _ONE_MINUS_COS_60 / 2.0


def _sine(angle: float) -> float:
    """Returns the sine of 0 to 90 degrees."""
    return _near_zero_sine(angle) if angle <= 30 else _near_zero_cosine(90.0 - angle)


def _cosine(angle: float) -> float:
    """Returns the cosine of 0 to 90 degrees."""
    return _near_zero_cosine(angle) if angle <= 60 else _near_zero_sine(90.0 - angle)


_TAN_45, _COT_45 = _sine(45.0) / _cosine(45.0), _cosine(45.0) / _sine(45.0)


def _quotient(above: float, below: float) -> float:
    return math.copysign(math.inf, below) if below == 0 else above / below


def _tangent(angle: float) -> float:
    return _quotient(_sine(angle), _cosine(angle)) / _TAN_45


def _cotangent(angle: float) -> float:
    return _quotient(_cosine(angle), _sine(angle)) / _COT_45


def _in_quadrant(
    function: Callable[[float], float], negative: int, beyond_180: int, beyond_90: int
) -> Callable[[float], float]:
    """Returns a function of all angles, given the signs by which negative, reflex and obtuse ones differ."""

    def of_any(angle: float) -> float:
        if math.isnan(angle):
            return angle
        if math.isinf(angle):
            raise SqlFailure("22003", "input is out of range")
        sign, angle = 1, math.fmod(angle, 360.0)
        if angle < 0:
            sign, angle = sign * negative, -angle
        if angle > 180:
            sign, angle = sign * beyond_180, 360.0 - angle
        if angle > 90:
            sign, angle = sign * beyond_90, 180.0 - angle
        return sign * function(angle)

    return of_any


def _without_minus_zero(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda angle: function(angle) or 0.0


@function(
    "asind_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="asind",
    says="The inverse sine, in degrees.",
    example="asind(0.5)",
    gives="30",
    fallible=True,
)
def asind(sine: float) -> float:
    """Returns the angle of a sine.

    Example:
        >>> asind(0.5), acosd(0.5), atand(1.0)
        (30.0, 60.0, 45.0)
    """
    _check_ratio(sine)
    return math.copysign(_angle_of_sine(abs(sine)), sine) if sine < 0 else _angle_of_sine(sine)


@function(
    "acosd_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="acosd",
    says="The inverse cosine, in degrees.",
    example="acosd(0.5)",
    gives="60",
    fallible=True,
)
def acosd(cosine: float) -> float:
    """Returns the angle of a cosine."""
    _check_ratio(cosine)
    return _angle_of_cosine(cosine) if not cosine < 0 else 90.0 + _angle_of_sine(-cosine)


@function(
    "atand_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="atand",
    says="The inverse tangent, in degrees.",
    example="atand(1)",
    gives="45",
)
def atand(tangent: float) -> float:
    """Returns the angle of a tangent."""
    return math.atan(tangent) / _ATAN_ONE * 45.0


@function(
    "atan2d_float8",
    (Kind.FLOAT8, Kind.FLOAT8),
    Kind.FLOAT8,
    sql="atan2d",
    says="The inverse tangent of a quotient, in degrees, in its quadrant.",
    example="atan2d(1, 0)",
    gives="90",
)
def atan2d(y: float, x: float) -> float:
    """Returns the angle of the point (x, y)."""
    return math.atan2(y, x) / _ATAN_ONE * 45.0


def _check_ratio(value: float) -> None:
    if value < -1 or value > 1:
        raise SqlFailure("22003", "input is out of range")


def _angle_of_sine(sine: float) -> float:
    return math.asin(sine) / _ASIN_HALF * 30.0 if sine <= 0.5 else 90.0 - math.acos(sine) / _ACOS_HALF * 60.0


def _angle_of_cosine(cosine: float) -> float:
    return 90.0 - math.asin(cosine) / _ASIN_HALF * 30.0 if cosine <= 0.5 else math.acos(cosine) / _ACOS_HALF * 60.0


function(
    "sind_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="sind",
    says="The sine, of degrees.",
    example="sind(30)",
    gives="0.5",
    fallible=True,
)(_in_quadrant(_sine, -1, -1, 1))
function(
    "cosd_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="cosd",
    says="The cosine, of degrees.",
    example="cosd(60)",
    gives="0.5",
    fallible=True,
)(_in_quadrant(_cosine, 1, 1, -1))
function(
    "tand_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="tand",
    says="The tangent, of degrees.",
    example="tand(45)",
    gives="1",
    fallible=True,
)(_without_minus_zero(_in_quadrant(_tangent, -1, -1, -1)))
function(
    "cotd_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="cotd",
    says="The cotangent, of degrees.",
    example="cotd(45)",
    gives="1",
    fallible=True,
)(_without_minus_zero(_in_quadrant(_cotangent, -1, -1, -1)))
