"""Arithmetic of integers and of numerics with a scale, their rounding, the bits of integers, and the parts of sums.

An integer that does not fit its type is an error. A numeric has 38 digits in all, and the scale that its call has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from mz_dagster.functions.errors import (
    DIVISION_BY_ZERO,
    NEGATIVE_MULTIPLICITY,
    NUMERIC_OVERFLOW,
    failure,
    out_of_range,
)
from mz_dagster.functions.function import Nullability, mixed
from mz_dagster.functions.literals import INTEGER_RANGES
from mz_dagster.functions.numbers.numerics import (
    EXACT,
    ROUNDINGS,
    quotient,
    remainder,
    rounded,
    scaled,
    to_scale,
    unscaled,
)
from mz_dagster.functions.numbers.scales import (
    first_scale,
    greater_scale,
    literal_scale,
    no_scale,
    quotient_scale,
    sum_of_scales,
)
from mz_dagster.functions.registry import Named, describe, function
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind

#: Returns what a strict function makes of arguments that are not NULL.
Apply = Callable[..., Any]
_INTEGERS = {Kind.INT2: "int2", Kind.INT4: "int4", Kind.INT8: "int8"}
_N = Kind.NUMERIC

describe(
    Named(
        "+",
        "A sum; a date or timestamp moved by days or an interval.",
        "timestamp '2024-01-31 12:00' + interval '1 mon'",
        "2024-02-29 12:00:00",
    ),
    Named(
        "-",
        "A difference; a number's negative; what lies between two moments; a jsonb without a key or an element.",
        "date '2024-03-01' - date '2024-02-01'",
        "29",
    ),
    Named("*", "A product.", "1.50 * 3", "4.50"),
    Named("/", "A quotient, of integers cut off towards zero.", "7 / 2", "3"),
    Named("%", "What a division leaves, with the sign of the dividend.", "-7 % 4", "-3"),
    Named("mod", "The same as `%`.", "mod(7, 4)", "3"),
    Named("@", "The absolute value.", "@ (-5)", "5"),
    Named("abs", "The absolute value.", "abs(-1.5)", "1.5"),
    Named("sign", "-1, 0 or 1, as a number is negative, zero or positive.", "sign(-8.4)", "-1"),
    Named("ceil", "The least whole number that is not less.", "ceil(-1.5)", "-1"),
    Named("ceiling", "The same as `ceil`.", "ceiling(1.2)", "2"),
    Named("floor", "The greatest whole number that is not greater.", "floor(-1.5)", "-2"),
    Named(
        "round",
        "The nearest number of so many digits behind the point: numerics half away from zero, doubles to even.",
        "round(2.345, 2)",
        "2.35",
    ),
    Named(
        "trunc",
        "The number without what is behind the point, or behind so many digits there.",
        "trunc(-2.789, 1)",
        "-2.7",
    ),
    Named("&", "The bits that both integers have.", "91 & 15", "11"),
    Named("|", "The bits that one of two integers has.", "32 | 3", "35"),
    Named("#", "The bits in which two integers differ.", "17 # 5", "20"),
    Named("~", "The other bits of an integer; whether a regular expression matches a text.", "'abcd' ~ 'b.d'", "true"),
)


def within(apply: Apply, bounds: tuple[int, int], error: str) -> Apply:
    """Returns a function that fails where its result is none, or not from the first bound to the last."""
    first, last = bounds

    def checked(*values: Any) -> int:
        found: int | None = apply(*values)
        if found is None or not first <= found <= last:
            raise failure(error)
        return found

    return checked


def in_range(apply: Apply, call: Call) -> Apply:
    """Returns a function of integers that fails where its result is out of the range of the call's type."""
    kind = call.type.kind
    return within(apply, INTEGER_RANGES[kind], out_of_range(kind))


# ---- integers


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise failure(DIVISION_BY_ZERO)
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise failure(DIVISION_BY_ZERO)
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _as_it_is(apply: Apply, _: Call) -> Apply:
    return apply


for _kind, _short in _INTEGERS.items():
    _pair, _mixed = (_kind, _kind), mixed(tuple(_INTEGERS), _kind)
    for _name, _symbol, _apply in (
        ("add", "+", operator.add),
        ("subtract", "-", operator.sub),
        ("multiply", "*", operator.mul),
        ("divide", "/", _quotient),
    ):
        function(f"{_name}_{_short}", _pair, _kind, sql=_symbol, signatures=_mixed, fallible=True, of_call=True)(
            partial(in_range, _apply)
        )
    function(f"modulo_{_short}", _pair, _kind, sql=("%", "mod"), fallible=True, of_call=True)(
        partial(_as_it_is, _remainder)
    )
    function(f"negate_{_short}", (_kind,), _kind, sql="-", fallible=True, of_call=True)(partial(in_range, operator.neg))
    function(f"abs_{_short}", (_kind,), _kind, sql=("abs", "@"), fallible=True, of_call=True)(partial(in_range, abs))
    for _name, _symbol, _apply in (
        ("bit_and", "&", operator.and_),
        ("bit_or", "|", operator.or_),
        ("bit_xor", "#", operator.xor),
    ):
        function(f"{_name}_{_short}", _pair, _kind, sql=_symbol, of_call=True)(partial(_as_it_is, _apply))
    function(f"bit_not_{_short}", (_kind,), _kind, sql="~", of_call=True)(partial(_as_it_is, operator.invert))


@function("multiplicity_int8", (Kind.INT8,), Kind.INT8, fallible=True, internal=True, of_call=True)
def multiplicity(_: Call) -> Callable[[int], int]:
    """Returns a count that is none of rows if it is negative."""

    def counted(count: int) -> int:
        if count < 0:
            raise failure(NEGATIVE_MULTIPLICITY)
        return count

    return counted


# ---- numerics with a scale


def _exact(apply: Apply, is_product: bool, call: Call) -> Apply | None:
    scales, scale = [one.type.scale for one in call.arguments], call.type.scale
    if scale != (sum(scales) if is_product else max(scales)):
        return None  # Spark may overflow on the way to fewer digits
    return lambda *values: to_scale(apply(*values), scale)


for _name, _sql, _exactly, _scale in (
    ("add", "+", EXACT.add, greater_scale),
    ("subtract", "-", EXACT.subtract, greater_scale),
    ("multiply", "*", EXACT.multiply, sum_of_scales),
):
    function(f"{_name}_numeric", (_N, _N), _N, sql=_sql, fallible=True, scale=_scale, of_call=True)(
        partial(_exact, _exactly, _name == "multiply")
    )
function("negate_numeric", (_N,), _N, sql="-", scale=first_scale, of_call=True)(partial(_exact, EXACT.minus, False))
function("abs_numeric", (_N,), _N, sql=("abs", "@"), scale=first_scale, of_call=True)(partial(_exact, EXACT.abs, False))


@function("divide_numeric", (_N, _N), _N, sql="/", fallible=True, scale=quotient_scale, of_call=True)
def divided(call: Call) -> Callable[[Decimal, Decimal], Decimal]:
    """Returns the quotient with the digits that PostgreSQL shows."""
    left, right = (one.type.scale for one in call.arguments)
    return lambda above, below: quotient(above, below, (left, right), call.type.scale)


@function("modulo_numeric", (_N, _N), _N, sql=("%", "mod"), fallible=True, scale=greater_scale, of_call=True)
def modulo(call: Call) -> Callable[[Decimal, Decimal], Decimal]:
    """Returns what a division leaves, with the sign of the dividend."""
    return lambda left, right: to_scale(remainder(left, right), call.type.scale)


def _rounding(call: Call) -> Apply:
    rounding = ROUNDINGS[call.function.partition("_")[0]]
    return lambda value, digits=0: to_scale(rounded(value, digits, rounding), call.type.scale)


for _name, _names in (("round", "round"), ("trunc", "trunc"), ("ceil", ("ceil", "ceiling")), ("floor", "floor")):
    function(f"{_name}_numeric", (_N,), _N, sql=_names, fallible=_name != "trunc", scale=no_scale, of_call=True)(
        _rounding
    )
for _name in ("round", "trunc"):
    function(f"{_name}_numeric_int4", (_N, Kind.INT4), _N, sql=_name, fallible=True, scale=literal_scale, of_call=True)(
        _rounding
    )


@function("sign_numeric", (_N,), _N, sql="sign", scale=no_scale, of_call=True)
def sign(_: Call) -> Callable[[Decimal], Decimal]:
    """Returns -1, 0 or 1."""
    return lambda value: Decimal((value > 0) - (value < 0))


@function("high_part_numeric", (_N,), _N, internal=True, of_call=True)
@function("low_part_numeric", (_N,), _N, internal=True, of_call=True)
def part(call: Call) -> Callable[[Decimal], Decimal]:
    """Returns one of the two parts of a numeric (`scalar.accumulation`)."""
    scale, own = call.arguments[0].type.scale, call.type.scale
    is_low = call.function == "low_part_numeric"

    def of(value: Decimal) -> Decimal:
        units = unscaled(value, scale)
        high = abs(units) // 10**19 * (-1 if units < 0 else 1)
        return scaled(units - high * 10**19, own) if is_low else scaled(high, own)

    return of


# The value at a greater scale, NULL where it has too many digits for that; see `plan/equality.py`.
@function("widened_numeric", (_N,), _N, nullability=Nullability.ALWAYS, internal=True, of_call=True)
def widened(call: Call) -> Callable[[Decimal], Decimal | None]:
    """Returns the value at the scale of the call, none if it has too many digits for that."""
    scale = call.type.scale
    return lambda value: to_scale(value, scale) if abs(unscaled(value, scale)) < 10**38 else None


@function("whole_numeric", (_N, _N), _N, fallible=True, internal=True, of_call=True)
def whole(call: Call) -> Callable[[Decimal, Decimal], Decimal]:
    """Returns the sum of which the arguments are the sums of parts (`scalar.accumulation`)."""
    scale, high_scale = call.type.scale, call.arguments[0].type.scale

    def of(high: Decimal, low: Decimal) -> Decimal:
        total = unscaled(high, high_scale) * 10**19 + unscaled(low, scale)
        if abs(total) >= 10**38:
            raise failure(NUMERIC_OVERFLOW)
        return scaled(total, scale)

    return of
