"""The functions and operators of unconstrained numerics: each has the one of numerics with a scale as its twin.

`unconstrained.py` says what they return. A call means one of these if an argument is unconstrained, or if the twin's
result has no scale that is known; see `functions/resolution.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.comparing import comparing_functions, comparing_overloads
from mz_dagster.functions.function import Function, Nullability, Overload
from mz_dagster.scalars.types import Kind

_U, _N, _I4, _I8, _T, _ARRAY = Kind.UNCONSTRAINED, Kind.NUMERIC, Kind.INT4, Kind.INT8, Kind.TEXT, Kind.ARRAY

#: (SQL names, implementation, arguments, result, fallible).
_NAMED: tuple[tuple[tuple[str, ...], str, tuple[Kind, ...], Kind, bool], ...] = (
    (("+",), "add_unconstrained", (_U, _U), _U, True),
    (("-",), "subtract_unconstrained", (_U, _U), _U, True),
    (("*",), "multiply_unconstrained", (_U, _U), _U, True),
    (("/",), "divide_unconstrained", (_U, _U), _U, True),
    (("%", "mod"), "modulo_unconstrained", (_U, _U), _U, True),
    (("-",), "negate_unconstrained", (_U,), _U, False),
    (("abs", "@"), "abs_unconstrained", (_U,), _U, False),
    (("sign",), "sign_unconstrained", (_U,), _U, False),
    (("round",), "round_unconstrained", (_U,), _U, True),
    (("trunc",), "trunc_unconstrained", (_U,), _U, False),
    (("ceil", "ceiling"), "ceil_unconstrained", (_U,), _U, True),
    (("floor",), "floor_unconstrained", (_U,), _U, True),
    (("round",), "round_unconstrained_int4", (_U, _I4), _U, True),
    (("trunc",), "trunc_unconstrained_int4", (_U, _I4), _U, False),
    (("sqrt",), "sqrt_unconstrained", (_U,), _U, True),
    (("exp",), "exp_unconstrained", (_U,), _U, True),
    (("ln",), "ln_unconstrained", (_U,), _U, True),
    (("log", "log10"), "log_unconstrained", (_U,), _U, True),
    (("log",), "log_unconstrained_unconstrained", (_U, _U), _U, True),
    (("power", "pow", "^"), "power_unconstrained", (_U, _U), _U, True),
    (("div",), "div_unconstrained", (_U, _U), _U, True),
    (("gcd",), "gcd_unconstrained", (_U, _U), _U, False),
    (("lcm",), "lcm_unconstrained", (_U, _U), _U, True),
    (("trim_scale",), "trim_scale_unconstrained", (_U,), _U, False),
    (("width_bucket",), "width_bucket_unconstrained", (_U, _U, _U, _I4), _I4, True),
    (("to_char",), "to_char_unconstrained", (_U, _T), _T, True),
)
#: Likewise, of what is NULL for NaN and the infinities.
_OF_FINITE = (("scale", "scale_unconstrained"), ("min_scale", "min_scale_unconstrained"))
#: What makes of equal values one, and has their order; and what sums are made of.
INTERNAL = (
    Function("comparable_unconstrained", (_U,), _U),
    Function("order_unconstrained", (_U,), Kind.BYTEA),
    Function("ordered_unconstrained", (_U,), Kind.BYTEA),
    Function("restored_unconstrained", (Kind.BYTEA,), _U),
    Function("sum_places_unconstrained", (_U,), _ARRAY),
    Function("sum_digits_unconstrained", (_U,), _ARRAY),
    Function("sum_unconstrained", (_ARRAY, _ARRAY), _U, fallible=True, nullability=Nullability.ALWAYS),
    Function("rescaled_unconstrained", (_U, _I4), _U),
    *(
        Function(f"{name}_unconstrained", (_I8, _U, _U), _U, fallible=True, nullability=Nullability.ALWAYS)
        for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
    ),
)


def functions() -> Iterator[Function]:
    """Yields the implementations."""
    yield from comparing_functions(_U)
    yield Function("to_jsonb_unconstrained", (_U,), Kind.JSONB)
    yield Function("sum_list_unconstrained", (_ARRAY,), _U, fallible=True, nullability=Nullability.ALWAYS)
    for _, name, arguments, result, fallible in _NAMED:
        yield Function(name, arguments, result, fallible=fallible)
    for _, name in _OF_FINITE:
        yield Function(name, (_U,), _I4, nullability=Nullability.ALWAYS)


def overloads() -> Iterator[Overload]:
    """Yields the operators and functions."""
    yield from comparing_overloads(_U)
    for names, implementation, arguments, _, _ in _NAMED:
        for name in names:
            yield Overload(name, arguments, implementation)
    for name, implementation in _OF_FINITE:
        yield Overload(name, (_U,), implementation)
