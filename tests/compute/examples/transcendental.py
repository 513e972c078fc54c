"""Roots, powers, logarithms, trigonometry, bits, divisors, buckets; the digits of floats."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from mz_dagster.functions import resolve_function, resolve_operator
from mz_dagster.functions.errors import NUMERIC_NAN
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import FLOAT4, FLOAT8, INT4, INT8, TEXT, numeric
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function, operator

POOLS |= {
    "float4_digits": (FLOAT4, ["0.1", "1e-45", "3.4028235e38", "16777216", "1.17549435e-38", "123456", "1234567",
        "0.0001", "0.00001", "9.5367431640625e-07", "33554432", "-2.5", "NaN", "Infinity", "8.5899346e9", "1e10",
        "7.0385307e-26", "-0"]),
    "float8_digits": (FLOAT8, ["0.1", "0.30000000000000004", "2.675", "123456789012345678", "1e22", "-1e-7", "0.5",
        "1e35", "1e36", "-0", "12345.67890123456789"]),
    "angle": (FLOAT8, ["0", "-0", "0.5", "1", "-1", "0.999", "1.5707963267948966", "3.14159", "100", "-1e9", "1e22",
        "NaN", "Infinity", "-Infinity", "2", "-0.3", "1e-300", "710", "1e308"]),
    "exponent": (FLOAT8, ["0", "1", "2", "-1", "0.5", "-2.5", "3", "10", "100", "1000", "-1000", "NaN", "Infinity",
        "-Infinity", "1e300"]),
    "positive": (numeric(4), ["0", "1", "2", "0.0001", "0.5", "3.1416", "99.99", "12345678.9012", "-1", "100",
        "1234567890123456789012345678901234", "1.1", "0.9", "10000", "9999.9999"]),
    "power": (numeric(2), ["0", "1", "2", "-1", "0.5", "3", "-2.5", "10", "1.25", "-7"]),
    "far": (numeric(1), ["0", "1", "-1", "2.5", "-20.0", "40", "10.1", "-3.3", "100"]),
    "divisor": (numeric(3), ["0", "1", "-4.5", "0.003", "12", "18", "123456.789", "7"]),
    "whole": (INT8, ["0", "1", "-1", "5", "20", "33", "34", "12"]),
    "shift": (INT4, ["0", "1", "5", "31", "32", "33", "-1", "15", "64"]),
    "buckets": (INT4, ["0", "1", "5", "10", "-1", "2147483647"]),
    "amount": (numeric(3), ["0", "1", "-1", "12", "-485", "1234567", "0.5", "-0.004", "99.995", "1234.567"]),
    "amount4": (FLOAT4, ["0", "-0.5", "12", "1234.567", "99.995", "1e10"]),
    "amount8": (FLOAT8, ["0", "-0.5", "12", "1234.567", "99.995", "-1234567", "0.001", "1e17"]),
    "number_template": (TEXT, ["", "9", "999", "9,999.99", "FM9,999.99", "0000", "FM0999.90", "S999", "999S", "MI99.9",
        "99PR", "SG99", "PL99", "L9.9", "99th", "FM9TH", "9G999D9", '"no. "99', "$99.", "B9.9", "99.9.9",
        "S9S", "x 9 y", "FM.99", "9.", "FM90.0PR"]),
    "number_text": (TEXT, ["1,234.50", "-12", "12-", "<1.5>", "$1,234.5", " 7", "x42", "", ".5", "99999", "1.2345"]),
    "degrees": (FLOAT8, ["0", "-0", "30", "45", "60", "90", "-90", "135", "180", "225", "270", "360", "-450", "1e-300",
        "1", "0.5", "-0.5", "0.3", "-1", "1.5", "17.3", "123456.789", "1e22", "NaN", "Infinity", "-Infinity"]),
    "edge": (FLOAT8, ["0", "1", "10", "-5.5", "0.1", "NaN", "Infinity", "7"]),
}  # fmt: skip


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield casting("float4_digits", TEXT)
    yield casting("float8_digits", TEXT)
    for pool in ("float4_digits", "float8_digits"):
        for scale in (0, 2, 20):
            yield _finite(casting(pool, numeric(scale)))
    yield from _floats()
    yield from _numerics()
    yield from _integers()
    for pool in ("int4", "int8", "amount", "amount4", "amount8"):
        yield function("to_char", pool, "number_template")
    for template in ("9,999.99", "S99", "99.9MI", "FM9.999PR", "L9G999D9", '"x"99'):
        (column,) = columns_of(["number_text"])
        arguments = [column, Literal(template, TEXT)]
        resolved = resolve_function("to_number", [TEXT, TEXT], [None, template])
        yield Example(f"to_number({{0}}, '{template}')", applied(resolved, arguments), ("number_text",))


def _finite(example: Example) -> Example:
    """Returns the example with what numerics here are not: NaN."""

    def tolerates(ours: str | None, theirs: str | None, _: tuple[str | None, ...]) -> bool:
        return theirs == "=NaN" and ours == f"!{NUMERIC_NAN}"

    return Example(example.sql, example.scalar, example.pools, tolerates)


def _floats() -> Iterator[Example]:
    for name in ("exp", "ln", "log", "log10", "cbrt", "sin", "cos", "tan", "cot", "asin", "acos", "atan"):
        yield function(name, "angle")
    for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "degrees", "radians"):
        yield function(name, "angle")
    yield function("atan2", "angle", "angle")
    for name in ("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand"):
        yield function(name, "degrees")
    yield function("atan2d", "angle", "angle")
    for name in ("power", "pow"):
        yield function(name, "angle", "exponent")
    yield operator("^", "angle", "exponent")
    yield operator("||/", "angle")
    yield operator("|/", "angle")
    yield function("width_bucket", "edge", "edge", "edge", "buckets")
    yield Example("pi()", applied(resolve_function("pi", []), []), ())


def _rounded(example: Example) -> Example:
    """Returns the example with the digits that its scale does not hold rounded off."""
    scale = example.scalar.type.scale

    def tolerates(ours: str | None, theirs: str | None, _: tuple[str | None, ...]) -> bool:
        if ours is None or theirs is None or not ours.startswith("=") or not theirs.startswith("="):
            return False
        shown = len(theirs.partition(".")[2])
        return shown > scale and abs(Decimal(ours[1:]) - Decimal(theirs[1:])) <= Decimal(1).scaleb(-scale) / 2

    return Example(example.sql, example.scalar, example.pools, tolerates)


def _numerics() -> Iterator[Example]:
    for name in ("sqrt", "ln", "log", "log10"):
        yield _rounded(function(name, "positive"))
    yield _rounded(function("exp", "far"))
    yield _rounded(function("log", "positive", "positive"))
    yield _rounded(function("power", "power", "power"))
    yield _rounded(function("power", "positive", "power"))
    for name in ("div", "gcd", "lcm"):
        yield function(name, "divisor", "divisor")
        yield function(name, "n2", "divisor")
    yield function("factorial", "whole")
    yield function("min_scale", "n10")
    yield function("width_bucket", "divisor", "divisor", "divisor", "buckets")


def _integers() -> Iterator[Example]:
    for pool in ("int2", "int4", "int8"):
        for symbol in ("&", "|", "#"):
            yield operator(symbol, pool, pool)
        for symbol in ("<<", ">>"):
            yield operator(symbol, pool, "shift")
        (column,) = columns_of([pool])
        yield Example("~ {0}", applied(resolve_operator("~", [column.type]), [column]), (pool,))
    for pool in ("int4", "int8"):
        yield function("gcd", pool, pool)
        yield function("lcm", pool, pool)
        yield function("to_hex", pool)
    yield operator("&", "int2", "int8")
