"""Floating-point numbers evaluated in Python: arithmetic, rounding, casts, and the digits of exact sums.

Exactness: Python's floats are IEEE 754's doubles, as PostgreSQL's and Java's are, so that each operation has one result
on every machine. A `real` is computed as a double and rounded, which for these operations is the result rounded once:
a double has more than twice its digits. What overflows or underflows is an error, as in PostgreSQL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from ctypes import c_float
from typing import Any

from mz_dagster.functions.aggregates.sums import BITS, exact_sum, nearest_float8
from mz_dagster.functions.errors import DIVISION_BY_ZERO, FLOAT_OVERFLOW, FLOAT_UNDERFLOW, failure, out_of_range
from mz_dagster.functions.function import COMPARISONS, mixed
from mz_dagster.functions.literals import INTEGER_RANGES
from mz_dagster.functions.registry import Named, built, function, pure
from mz_dagster.functions.value_order import order_key
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import FLOAT8, Kind

#: Returns what a strict function makes of arguments that are not NULL, for a call.
Builder = Callable[[Call], Callable[..., Any]]

_KINDS = {Kind.FLOAT4: "float4", Kind.FLOAT8: "float8"}
#: From here on every double is whole.
_WHOLE = 2.0**52
#: Of a double: the bits of its mantissa, and the exponent of its least unit.
MANTISSA, LEAST = 53, -1074
#: What zero has as its exponent, counted from that of the least unit.
EXPONENT_OF_ZERO = 1 - MANTISSA - LEAST
#: The limbs of what is no finite number.
NAN, INFINITY, NEGATIVE_INFINITY = -1, -2, -3


def _rounded(kind: Kind) -> Callable[[float], float]:
    return (lambda value: c_float(value).value) if kind is Kind.FLOAT4 else (lambda value: value)


def _checked(found: float, *, may_overflow: bool, may_underflow: bool) -> float:
    if may_overflow and math.isinf(found):
        raise failure(FLOAT_OVERFLOW)
    if may_underflow and found == 0:
        raise failure(FLOAT_UNDERFLOW)
    return found


def _sum(apply: Callable[[float, float], float]) -> Builder:
    def build(call: Call) -> Callable[..., float]:
        rounded = _rounded(call.type.kind)

        def computed(left: float, right: float) -> float:
            is_finite = not (math.isinf(left) or math.isinf(right))
            return _checked(rounded(apply(left, right)), may_overflow=is_finite, may_underflow=False)

        return computed

    return build


def _product(call: Call) -> Callable[..., float]:
    rounded = _rounded(call.type.kind)

    def computed(left: float, right: float) -> float:
        is_finite = not (math.isinf(left) or math.isinf(right))
        is_zero = left == 0 or right == 0
        return _checked(rounded(left * right), may_overflow=is_finite, may_underflow=not is_zero)

    return computed


def _quotient(call: Call) -> Callable[..., float]:
    rounded = _rounded(call.type.kind)

    def computed(left: float, right: float) -> float:
        if math.isnan(left):
            return left
        if right == 0:
            raise failure(DIVISION_BY_ZERO)
        found = rounded(left / right)
        return _checked(found, may_overflow=not math.isinf(left), may_underflow=left != 0 and not math.isinf(right))

    return computed


def _narrowed(value: float) -> float:
    found = c_float(value).value
    return _checked(found, may_overflow=not math.isinf(value), may_underflow=value != 0)


def _to_integer(call: Call) -> Callable[..., int]:
    (least, most), error = INTEGER_RANGES[call.type.kind], out_of_range(call.type.kind)

    def computed(value: float) -> int:
        # A NaN is in no range. What is half-way goes to the even one.
        if not (math.isfinite(value) and least <= (found := round(value)) <= most):
            raise failure(error)
        return found

    return computed


def _whole(whole: Callable[[float], int]) -> Callable[[float], float]:
    """Returns the rounding of doubles by `whole`; what becomes zero keeps its sign."""

    def computed(value: float) -> float:
        return math.copysign(float(whole(value)), value) if abs(value) < _WHOLE else value

    return computed


def _as_it_is(value: float) -> float:
    return value


def _unsigned(value: float) -> float:
    return value or 0.0


@function("pi", (), Kind.FLOAT8, sql="pi", says="The number pi.", example="pi()", gives="3.141592653589793")
def pi() -> float:
    """Returns the number pi."""
    return math.pi


@function("sign_float8", (Kind.FLOAT8,), Kind.FLOAT8, sql="sign")
def sign(value: float) -> float:
    """Returns -1, 0 or 1; 0 of NaN."""
    return float((value > 0) - (value < 0))


@function(
    "sqrt_float8",
    (Kind.FLOAT8,),
    Kind.FLOAT8,
    sql="sqrt",
    also=(Named("|/", "The square root, of a double.", "|/ 25.0", "5"),),
    fallible=True,
)
def root(value: float) -> float:
    """Returns the square root."""
    if value < 0:
        raise failure("2201F cannot take square root of a negative number")
    return math.sqrt(value)


def _compared(compare: Callable[[Any, Any], bool]) -> Builder:
    key = order_key(FLOAT8)
    return lambda _: lambda left, right: compare(key(left), key(right))


# The digits of exact sums: `compute/spark/expressions/float_sum.py` says what they are.


def _exponent(value: float) -> int:
    if value == 0:
        return EXPONENT_OF_ZERO
    return max(0, math.frexp(value)[1] - MANTISSA - LEAST)


@function("limb_float8", (Kind.FLOAT8,), Kind.INT4, internal=True)
def limb(value: float) -> int:
    """Returns the place of a number's least digit, or what stands for what is no finite number."""
    if math.isfinite(value):
        return _exponent(value) // BITS
    return NAN if math.isnan(value) else INFINITY if value > 0 else NEGATIVE_INFINITY


@function("digit_float8", (Kind.FLOAT8, Kind.INT4), Kind.INT8, internal=True)
def digit(value: float, place: int) -> int:
    """Returns the digit of a finite number at a place, counted from that of `limb`."""
    if not math.isfinite(value):
        return 0
    exponent = _exponent(value)
    mantissa = int(math.ldexp(abs(value), -LEAST - exponent))
    found = (mantissa << exponent % BITS) >> place * BITS & ((1 << BITS) - 1)
    return -found if value < 0 else found


@function("whole_float8", (Kind.ARRAY,) * 5, Kind.FLOAT8, fallible=True, internal=True)
def exact_whole(limbs: Sequence[int], *digits: Sequence[int]) -> float | None:
    """Returns the number nearest to the sum of digits at places; none of no number."""
    total = exact_sum(limbs, *digits)
    return None if total is None else nearest_float8(total)


for _kind, _short in _KINDS.items():
    _pair, _mixed = (_kind, _kind), mixed(tuple(_KINDS), _kind)
    for _symbol, _name in COMPARISONS.items():
        function(f"{_name}_{_short}", _pair, Kind.BOOL, sql=_symbol, signatures=_mixed, of_call=True)(
            _compared(getattr(operator, _name))
        )
    for _name, _symbol, _builder in (
        ("add", "+", _sum(operator.add)),
        ("subtract", "-", _sum(operator.sub)),
        ("multiply", "*", _product),
        ("divide", "/", _quotient),
    ):
        function(f"{_name}_{_short}", _pair, _kind, sql=_symbol, signatures=_mixed, fallible=True, of_call=True)(
            _builder
        )
    function(f"negate_{_short}", (_kind,), _kind, sql="-")(operator.neg)
    function(f"abs_{_short}", (_kind,), _kind, sql=("abs", "@"))(abs)
    built(*(f"cast_{_short}_to_{other}" for other in ("int2", "int4", "int8")))(_to_integer)
    function(f"unsigned_zero_{_short}", (_kind,), _kind, internal=True)(_unsigned)
pure("cast_float4_to_float8")(_as_it_is)
pure("cast_float8_to_float4")(_narrowed)
for _name, _names, _function in (
    ("round", "round", round),
    ("trunc", "trunc", math.trunc),
    ("ceil", ("ceil", "ceiling"), math.ceil),
    ("floor", "floor", math.floor),
):
    function(f"{_name}_float8", (Kind.FLOAT8,), Kind.FLOAT8, sql=_names)(_whole(_function))
