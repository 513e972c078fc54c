"""Unconstrained numerics: what `numeric` means without a precision and a scale.

A `numeric(p, s)` has the scale of its type and 38 digits, which both engines' decimals hold: it is as fast as an
integer. An unconstrained numeric has up to 131,072 digits before the point and 16,383 after it, each value its own, and
may be `NaN` and the infinities. So it is a type of its own, decided when a query is bound:

- it is what `numeric` without a scale is as a column, and as a cast of what has no scale of its own (text, floats,
  jsonb); literals that are no `numeric(38, s)`; products, quotients and roundings whose scale is not known or is beyond
  38; and everything that is computed from one of these. Where it meets another number that becomes one, too, by
  itself. An integer, or a numeric with a scale, that is cast to `numeric` stays what it is.
- A value is stored, and computed with, as the text that PostgreSQL shows: no exponent, no sign of zero, as many digits
  after the point as its display scale says. `cast(x as numeric(38, s))` is the way back to the fast form.
- `1.0` equals `1.00`, so it is one of the kinds of `plan/representations.py`: it is joined, grouped and made distinct
  by `comparable_unconstrained`, the text without zeros at the end; ordered by bytes (`order_unconstrained`), in which
  NaN is the greatest; and of the representations in a group the one with the least scale is shown.
- Sums are exact, and updates are taken out of them again: a value is digits of nine places, added up as integers by
  scale and place. What is kept tells the scales of the values that are there, of which the sum has the greatest.
  Averages, variances and deviations are functions of counts and sums.

Results have the digits of PostgreSQL's `numeric.c`. What is computed is Python's `Decimal`, exactly, and functions that
are no rational ones with more digits than are shown; a few microseconds each, on Spark's workers as in this process.

Here are the casts and comparisons; `unconstrained_functions` and `unconstrained_sums` have the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from mz_dagster.functions.errors import NUMERIC_NAN, failure
from mz_dagster.functions.numbers.decimals import INTEGER_NAMES, bounded
from mz_dagster.functions.numbers.digits import places_of
from mz_dagster.functions.registry import SqlFailure, function, pure
from mz_dagster.scalars.types import Kind

#: The most digits before and after the point.
WHOLE_DIGITS, _FRACTION_DIGITS = 131_072, 16_383
#: Holds every sum and product exactly.
EXACT = Context(prec=2 * (WHOLE_DIGITS + _FRACTION_DIGITS), Emax=999_999, Emin=-999_999)
_NUMBER = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_SPECIAL = {"nan": "NaN", **dict.fromkeys(("inf", "infinity", "+inf", "+infinity"), "Infinity")}
_SPECIAL |= dict.fromkeys(("-inf", "-infinity"), "-Infinity")
_BLANK = " \t\n\v\f\r"


def text_of(value: Decimal) -> str:
    """Returns the text that PostgreSQL shows of a number.

    Raises:
        SqlFailure: It has too many digits.

    Example:
        >>> text_of(Decimal("-1.50E+1")), text_of(Decimal("-0.0")), text_of(Decimal("-Infinity"))
        ('-15.0', '0.0', '-Infinity')
    """
    if not value.is_finite():
        return "NaN" if value.is_nan() else "Infinity" if value > 0 else "-Infinity"
    if not value:
        return f"{value.copy_abs():f}" if places_of(value) else "0"
    if value.adjusted() >= WHOLE_DIGITS:
        raise overflow()
    if places_of(value) > _FRACTION_DIGITS:
        return text_of(at_scale(value, _FRACTION_DIGITS))
    return f"{value:f}"


def overflow() -> SqlFailure:
    """Returns the error of a number that has too many digits."""
    return SqlFailure("22003", "value overflows numeric format")


def at_scale(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """Returns a number rounded to so many decimal places; before the point, if they are negative."""
    if scale >= 0:
        return value.quantize(Decimal(1).scaleb(-scale, EXACT), rounding, EXACT)
    if value.adjusted() < -scale - 1 and rounding in (ROUND_DOWN, ROUND_HALF_UP):
        return Decimal(0)
    return value.scaleb(scale, EXACT).to_integral_value(rounding, EXACT).scaleb(-scale, EXACT)


# ---- casts


@pure("cast_text_to_unconstrained")
def of_text(text: str) -> str:
    """Returns the number that a text spells.

    Example:
        >>> of_text(" 1.50e1 "), of_text("-0.0"), of_text("inf"), of_text("1e-3")
        ('15.0', '0.0', 'Infinity', '0.001')
    """
    word = text.strip(_BLANK)
    special = _SPECIAL.get(word.lower())
    if special is not None:
        return special
    match = _NUMBER.fullmatch(word)
    if match is None:
        raise SqlFailure("22P02", f'invalid input syntax for type numeric: "{text}"')
    exponent = match[3]
    if exponent is None:
        return text_of(Decimal(match[1] + match[2]))
    if len(exponent) > 10 or abs(int(exponent)) >= 2**30 - 1:
        raise overflow()
    digits, shift = match[2], int(exponent)
    number = Decimal(match[1] + digits)
    if number and number.adjusted() + shift >= WHOLE_DIGITS:
        raise overflow()
    scale = places_of(number) - shift
    if scale > _FRACTION_DIGITS:
        raise overflow()
    return text_of(number.scaleb(shift, EXACT) if number else Decimal(0).scaleb(-max(scale, 0), EXACT))


@pure("cast_int2_to_unconstrained", "cast_int4_to_unconstrained", "cast_int8_to_unconstrained")
def of_integer(value: int) -> str:
    """Returns an integer."""
    return str(value)


@pure("cast_float8_to_unconstrained")
def of_float8(value: float) -> str:
    """Returns the 15 significant digits of a double, as PostgreSQL takes them.

    Example:
        >>> of_float8(0.1 + 0.2), of_float8(1e20), of_float8(float("-inf"))
        ('0.3', '100000000000000000000', '-Infinity')
    """
    return of_text(f"{value:.15g}")


@pure("cast_float4_to_unconstrained")
def of_float4(value: float) -> str:
    """Returns the 6 significant digits of a real."""
    return of_text(f"{value:.6g}")


@pure("cast_unconstrained_to_text")
def shown(value: str) -> str:
    """Returns the text, which it is."""
    return value


@pure("cast_unconstrained_to_numeric", scaled=True)
def to_numeric(value: str, scale: int) -> Decimal:
    """Returns a number rounded to a scale, of 38 digits at most.

    Example:
        >>> to_numeric("2.345", 2)
        Decimal('2.35')
    """
    number = Decimal(value)
    if number.is_nan():
        raise failure(NUMERIC_NAN)
    if not number.is_finite() or number.adjusted() > 38:
        raise SqlFailure("22003", "numeric field overflow")
    found = at_scale(number, scale)
    if found.copy_abs() >= Decimal(10) ** (38 - scale):
        raise SqlFailure("22003", "numeric field overflow")
    return found if found else found.copy_abs()


def _to_integer(kind: str) -> Callable[[str], int]:
    name = INTEGER_NAMES[kind]

    def converted(value: str) -> int:
        number = Decimal(value)
        if not number.is_finite():
            raise SqlFailure("0A000", f"cannot convert {'NaN' if number.is_nan() else 'infinity'} to {name}")
        if number.adjusted() > 20:
            raise SqlFailure("22003", f"{name} out of range")
        return bounded(int(at_scale(number, 0)), kind)

    return converted


pure("cast_unconstrained_to_int2")(_to_integer("int2"))
pure("cast_unconstrained_to_int4")(_to_integer("int4"))
pure("cast_unconstrained_to_int8")(_to_integer("int8"))


@pure("cast_unconstrained_to_mz_timestamp")
def to_mz_timestamp(value: str) -> int:
    """Returns an integer as a time."""
    number = Decimal(value)
    if not number.is_finite() or number.adjusted() > 20 or number != at_scale(number, 0) or not 0 <= number < 2**63:
        raise SqlFailure("22003", "mz_timestamp out of range")
    return int(number)


@function("to_jsonb_unconstrained", (Kind.UNCONSTRAINED,), Kind.JSONB)
def to_jsonb(value: str) -> str:
    """Returns a number of jsonb; a string of what is none."""
    return value if value[-1].isdigit() else f'"{value}"'


# ---- comparison


def _rank(value: str) -> tuple[int, Decimal]:
    """Returns what compares as PostgreSQL compares numbers: NaN equals itself, and is greater than all others."""
    number = Decimal(value)
    return (1, Decimal(0)) if number.is_nan() else (0, number)


@function("eq_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.BOOL, sql="=")
def equal(left: str, right: str) -> bool:
    """Returns whether two numbers are equal, however many digits are shown of them."""
    return left == right or _rank(left) == _rank(right)


@function("ne_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.BOOL, sql="<>")
def unequal(left: str, right: str) -> bool:
    """Returns whether two numbers differ."""
    return not equal(left, right)


@function("lt_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.BOOL, sql="<")
def less(left: str, right: str) -> bool:
    """Returns whether `left` is less."""
    return _rank(left) < _rank(right)


@function("le_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.BOOL, sql="<=")
def less_or_equal(left: str, right: str) -> bool:
    """Returns whether `left` is not greater."""
    return _rank(left) <= _rank(right)


@function("gt_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.BOOL, sql=">")
def greater(left: str, right: str) -> bool:
    """Returns whether `left` is greater."""
    return _rank(left) > _rank(right)


@function("ge_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.BOOL, sql=">=")
def greater_or_equal(left: str, right: str) -> bool:
    """Returns whether `left` is not less."""
    return _rank(left) >= _rank(right)


@function("comparable_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, internal=True)
@function(
    "trim_scale_unconstrained",
    (Kind.UNCONSTRAINED,),
    Kind.UNCONSTRAINED,
    sql="trim_scale",
    says="The number without zeros at its end.",
    example="trim_scale(8.4100)",
    gives="8.41",
)
def comparable(value: str) -> str:
    """Returns the one text of all numbers that equal this one: without zeros at the end.

    Example:
        >>> comparable("1.500"), comparable("100"), comparable("0.0"), comparable("NaN")
        ('1.5', '100', '0', 'NaN')
    """
    return value.rstrip("0").rstrip(".") if "." in value else value


@function("order_unconstrained", (Kind.UNCONSTRAINED,), Kind.BYTEA, internal=True)
def order(value: str) -> bytes:
    """Returns bytes that compare as numbers do.

    The sign, the power of ten of the first digit, and the digits; of a negative number their complement.

    Example:
        >>> sorted(["NaN", "2", "-1.5", "10", "Infinity", "-20", "0", "-Infinity"], key=order)
        ['-Infinity', '-20', '-1.5', '0', '2', '10', 'Infinity', 'NaN']
    """
    special = _ORDER_OF_SPECIAL.get(value)
    if special is not None:
        return special
    whole, _, fraction = value.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return b"\2"
    power = len(digits) - len(fraction)
    magnitude = (power + 2**31).to_bytes(4, "big") + digits.rstrip("0").encode() + b"\0"
    return b"\1" + bytes(255 - one for one in magnitude) if value.startswith("-") else b"\3" + magnitude


_ORDER_OF_SPECIAL = {"-Infinity": b"\0", "Infinity": b"\4", "NaN": b"\5"}


@function("ordered_unconstrained", (Kind.UNCONSTRAINED,), Kind.BYTEA, internal=True)
def ordered(value: str) -> bytes:
    """Returns the order of a number, and behind it what tells it from those that equal it: its length and its text."""
    encoded = value.encode()
    return order(value) + len(encoded).to_bytes(4, "big") + encoded + len(encoded).to_bytes(4, "big")


@function("restored_unconstrained", (Kind.BYTEA,), Kind.UNCONSTRAINED, internal=True)
def restored(key: bytes) -> str:
    """Returns the number that `ordered` was made of.

    Example:
        >>> restored(ordered("1.50"))
        '1.50'
    """
    return key[-4 - int.from_bytes(key[-4:], "big") : -4].decode()
