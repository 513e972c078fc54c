"""Examples of numerics without a scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mz_dagster.functions.jsonb.as_jsonb import as_jsonb
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import (
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    TEXT,
    UNCONSTRAINED,
    numeric,
)
from tests.compute.examples.example import POOLS, Example, casting, columns_of, function, operator

_SPECIAL = ["NaN", "Infinity", "-Infinity"]
_NUMBERS = [
    "0", "0.00", "1", "1.00", "-1", "1.5", "-2.5", "0.5", "2.345", "-0.05", "100", "7", "99.995", "123456789012.5",
    "12345678901234567890123456789012345678901234567890", "0.000000000000000000000000000000000000000000000012345",
    "-99999999999999999999.99999999999999999999", "1e60", "-1e-20", "20000", "3.0000", "0.9999999999999999",
]  # fmt: skip
POOLS["u"] = (UNCONSTRAINED, [*_NUMBERS, *_SPECIAL])
POOLS["u_few"] = (UNCONSTRAINED, ["0", "1", "2", "-1.50", "3.1", "-3", "1e20", "1e-5", "0.5", *_SPECIAL])
POOLS["u_log"] = (UNCONSTRAINED, [*_NUMBERS, "1.0000001", "0.95", "1.1", "2", "10", "1e100", "1e-100", *_SPECIAL])
POOLS["u_exp"] = (UNCONSTRAINED, ["0", "1", "-1.5", "20.25", "-300", "0.000001", "1000", "-5999", "6000", "-6000",
    "123.4567890123456789", *_SPECIAL])  # fmt: skip
POOLS["u_whole"] = (UNCONSTRAINED, ["0", "1.00", "-1", "1.5", "9223372036854775807", "9223372036854775808", "1e40"])
POOLS["u_far"] = (UNCONSTRAINED, ["20000", "20000.5", "-20000.5", "3000.25", "-1234.5", "4e9", "-4e9"])
POOLS["u_places"] = (INT4, ["0", "1", "2", "-1", "-2", "5", "30", "-30", "1000"])
POOLS["u_template"] = (TEXT, ["999.99", "FM9990.000", "9,999S"])
POOLS["u_text"] = (TEXT, ["1", " -1.50 ", "+.5", "5.", "1e3", "1.5e-1", "1e-50", "abc", "", ".", "1e", "0e5", "-0.0",
    "0e-5", "nan", " NaN", "inf", "+Infinity", "-INF", "-nan", "infinit", "1e131071", "1e131072", "1e-16383",
    "1e-16384", "1e99999999999", "0x10", "1_000", "00012.10"])  # fmt: skip


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    for symbol in ("=", "<>", "<", "<=", ">", ">="):
        yield operator(symbol, "u", "u")
    for name in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        yield operator(name, "u", "u", name=name.lower())
    for symbol in "+-*/%":
        yield operator(symbol, "u", "u")
        yield operator(symbol, "u_few", "u_few")
        yield operator(symbol, "u_few", "n2")
        yield operator(symbol, "int4", "u_few")
    yield operator("+", "u", "float8")
    yield operator("=", "n10", "u")
    for name in ("sign", "round", "trunc", "ceil", "floor", "abs", "scale", "min_scale", "trim_scale"):
        yield function(name, "u")
    yield operator("-", "u")
    for name in ("round", "trunc"):
        yield function(name, "u", "u_places")
        yield function(name, "n10", "u_places")
    yield function("sqrt", "u_log")
    yield function("exp", "u_exp")
    yield function("ln", "u_log")
    yield function("log", "u_log")
    yield function("log", "u_few", "u_log")
    yield function("power", "u_few", "u_exp")
    yield function("power", "u_log", "u_few")
    yield function("power", "u_few", "u_far")
    for name in ("div", "gcd", "lcm"):
        yield function(name, "u_few", "u_few")
    yield function("div", "u", "u")
    for name in ("greatest", "least"):
        yield function(name, "u", "u", "int4")
    yield function("width_bucket", "u_few", "u_few", "u_few", "small")
    yield replace(function("to_char", "u_few", "u_template"), tolerates=_is_special)
    for pool in ("int2", "int4", "int8", "n0", "n38", "float4", "float8", "u_text"):
        yield casting(pool, UNCONSTRAINED)
    for target in (INT2, INT4, INT8, FLOAT4, FLOAT8, TEXT):
        yield casting("u", target)
    for scale in (0, 2, 38):
        yield replace(casting("u", numeric(scale)), tolerates=_is_special)
    (column,) = columns_of(["u"])
    found = as_jsonb(column)
    assert isinstance(found, Call)
    yield Example("to_jsonb({0})", found, ("u",))


def _is_special(ours: str | None, theirs: str | None, row: tuple[str | None, ...]) -> bool:
    """Tells what is refused of NaN and the infinities."""
    return row[0] in _SPECIAL and ours is not None and ours.startswith("!")
