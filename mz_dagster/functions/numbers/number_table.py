"""Functions of numbers beyond arithmetic: roots, powers, logarithms, trigonometry, bits, divisors, buckets.

Floats are computed by the C library, as PostgreSQL's are. Numerics have PostgreSQL's digits, as far as the result's
scale holds them:

| operation | scale of the result |
|---|---|
| `sqrt`, `exp` | 18, or the argument's if that is greater; of literals as many as PostgreSQL shows, if these are more |
| `ln`, `log` | 30, or the greatest of the arguments'; of literals likewise |
| `power` | 16, or the greatest of the arguments'; of literals likewise |
| `div`, `factorial`; `gcd`, `lcm` | 0; the greater scale |
| `to_number` | the digits behind the template's point; it must be a literal |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial

from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import Function, Nullability, Overload, ScaleRule
from mz_dagster.functions.numbers import decimals
from mz_dagster.functions.numbers.number_reading import scale_of_template
from mz_dagster.functions.numbers.scales import at_least, no_scale
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import Kind, ScalarType

_I2, _I4, _I8, _F8, _N, _T = Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT8, Kind.NUMERIC, Kind.TEXT
_INTEGERS = {"int2": _I2, "int4": _I4, "int8": _I8}
#: What `to_char` shows.
_SHOWN = {"int4": _I4, "int8": _I8, "numeric": _N, "float4": Kind.FLOAT4, "float8": _F8}
_BITS = {"&": "bit_and", "|": "bit_or", "#": "bit_xor"}


def _of_template(_: Sequence[ScalarType], values: Sequence[object]) -> int | Failure:
    template = values[1] if len(values) > 1 else None
    if not isinstance(template, str):
        return Failure(
            "0A000",
            "a template of to_number that is not a literal is not supported",
            "Quote it: how many digits it has behind the point is the scale of the result.",
        )
    try:
        return scale_of_template(template)
    except SqlFailure as failure:
        sqlstate, message = str(failure).split(" ", 1)
        return Failure(sqlstate, message)


#: (SQL names, implementation, arguments, scale of the result), all of which can fail.
_NUMERIC: tuple[tuple[tuple[str, ...], str, tuple[Kind, ...], ScaleRule], ...] = (
    (("sqrt",), "sqrt_numeric", (_N,), at_least(18, decimals.sqrt_digits)),
    (("exp",), "exp_numeric", (_N,), at_least(18, decimals.exp_digits)),
    (("ln",), "ln_numeric", (_N,), at_least(30, decimals.ln_digits)),
    (("log", "log10"), "log_numeric", (_N,), at_least(30, partial(decimals.log_digits, Decimal(10)))),
    (("log",), "log_numeric_numeric", (_N, _N), at_least(30, decimals.log_digits)),
    (("power", "pow", "^"), "power_numeric", (_N, _N), at_least(16, decimals.power_digits)),
    (("div",), "div_numeric", (_N, _N), no_scale),
    (("gcd",), "gcd_numeric", (_N, _N), at_least(0)),
    (("lcm",), "lcm_numeric", (_N, _N), at_least(0)),
    (("factorial",), "factorial_int8", (_I8,), no_scale),
)

#: Functions of one double: (SQL names, implementation, fallible).
_FLOAT: tuple[tuple[tuple[str, ...], str, bool], ...] = (
    (("exp",), "exp", True),
    (("ln",), "ln", True),
    (("log", "log10"), "log", True),
    (("cbrt", "||/"), "cbrt", False),
    (("sin",), "sin", True),
    (("cos",), "cos", True),
    (("tan",), "tan", True),
    (("cot",), "cot", True),
    (("asin",), "asin", True),
    (("acos",), "acos", True),
    (("atan",), "atan", False),
    (("sinh",), "sinh", False),
    (("cosh",), "cosh", False),
    (("tanh",), "tanh", False),
    (("asinh",), "asinh", False),
    (("acosh",), "acosh", True),
    (("atanh",), "atanh", True),
    (("degrees",), "degrees", True),
    (("radians",), "radians", True),
    (("sind",), "sind", True),
    (("cosd",), "cosd", True),
    (("tand",), "tand", True),
    (("cotd",), "cotd", True),
    (("asind",), "asind", True),
    (("acosd",), "acosd", True),
    (("atand",), "atand", False),
)


def functions() -> Iterator[Function]:
    """Yields the implementations of this area."""
    for _, name, arguments, _ in _NUMERIC:
        yield Function(name, arguments, _N, fallible=True)
    for _, name, fallible in _FLOAT:
        yield Function(f"{name}_float8", (_F8,), _F8, fallible=fallible)
    yield Function("power_float8", (_F8, _F8), _F8, fallible=True)
    yield Function("atan2_float8", (_F8, _F8), _F8)
    yield Function("atan2d_float8", (_F8, _F8), _F8)
    yield Function("pi", (), _F8)
    yield Function("min_scale_numeric", (_N,), _I4)
    yield Function("width_bucket_numeric", (_N, _N, _N, _I4), _I4, fallible=True)
    yield Function("width_bucket_float8", (_F8, _F8, _F8, _I4), _I4, fallible=True)
    for short, kind in _INTEGERS.items():
        for name in _BITS.values():
            yield Function(f"{name}_{short}", (kind, kind), kind)
        yield Function(f"bit_not_{short}", (kind,), kind)
        yield Function(f"shift_left_{short}", (kind, _I4), kind)
        yield Function(f"shift_right_{short}", (kind, _I4), kind)
    for short, kind in _SHOWN.items():
        yield Function(f"to_char_{short}", (kind, _T), _T, fallible=True)
    yield Function("to_number_text_text", (_T, _T), _N, fallible=True, nullability=Nullability.ALWAYS)
    for short in ("int4", "int8"):
        kind = _INTEGERS[short]
        yield Function(f"gcd_{short}", (kind, kind), kind, fallible=True)
        yield Function(f"lcm_{short}", (kind, kind), kind, fallible=True)
        yield Function(f"to_hex_{short}", (kind,), _T)


def overloads() -> Iterator[Overload]:
    """Yields the SQL names of this area."""
    for names, implementation, arguments, scale in _NUMERIC:
        for name in names:
            yield Overload(name, arguments, implementation, scale)
    for names, implementation, _ in _FLOAT:
        for name in names:
            yield Overload(name, (_F8,), f"{implementation}_float8")
    yield Overload("|/", (_F8,), "sqrt_float8")
    for name in ("power", "pow", "^"):
        yield Overload(name, (_F8, _F8), "power_float8")
    yield Overload("atan2", (_F8, _F8), "atan2_float8")
    yield Overload("atan2d", (_F8, _F8), "atan2d_float8")
    yield Overload("pi", (), "pi")
    yield Overload("min_scale", (_N,), "min_scale_numeric")
    yield Overload("width_bucket", (_N, _N, _N, _I4), "width_bucket_numeric")
    yield Overload("width_bucket", (_F8, _F8, _F8, _I4), "width_bucket_float8")
    for short, kind in _INTEGERS.items():
        for symbol, name in _BITS.items():
            yield Overload(symbol, (kind, kind), f"{name}_{short}")
        yield Overload("~", (kind,), f"bit_not_{short}")
        yield Overload("<<", (kind, _I4), f"shift_left_{short}")
        yield Overload(">>", (kind, _I4), f"shift_right_{short}")
    for short, kind in _SHOWN.items():
        yield Overload("to_char", (kind, _T), f"to_char_{short}")
    yield Overload("to_number", (_T, _T), "to_number_text_text", _of_template)
    for short in ("int4", "int8"):
        kind = _INTEGERS[short]
        yield Overload("gcd", (kind, kind), f"gcd_{short}")
        yield Overload("lcm", (kind, kind), f"lcm_{short}")
        yield Overload("to_hex", (kind,), f"to_hex_{short}")
