"""Comparisons, arithmetic, and casts of the kinds that are older than their areas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from mz_dagster.functions import Cast, cast
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    MZ_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    numeric,
)
from tests.compute.examples.example import Example, casting, columns_of, function, operator, rounding


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _comparisons()
    yield from _arithmetic()
    yield from _casts()


def _comparisons() -> Iterator[Example]:
    pools = ("bool", "int2", "int4", "int8", "float4", "float8", "n2", "text", "date", "ts", "tz")
    for symbol in ("=", "<>", "<", "<=", ">", ">="):
        for pool in pools:
            yield operator(symbol, pool, pool)
        for pair in (
            ("n2", "n10"),
            ("n38", "n0"),
            ("int4", "int8"),
            ("int8", "n2"),
            ("date", "ts"),
            ("int4", "float4"),
        ):
            yield operator(symbol, *pair)
    for pair in (("int4", "int4"), ("n0", "n38"), ("float8", "float8"), ("text", "text")):
        yield operator("IS DISTINCT FROM", *pair, name="is distinct from")
        yield operator("IS NOT DISTINCT FROM", *pair, name="is not distinct from")


def _arithmetic() -> Iterator[Example]:
    for symbol in "+-*/":
        for pool in ("int2", "int4", "int8", "float4", "float8", "n0", "n2"):
            yield operator(symbol, pool, pool)
        for pair in (("n2", "n10"), ("n10", "n2"), ("int8", "n2"), ("int2", "int8"), ("float4", "int4"), ("n10", "n0")):
            yield operator(symbol, *pair)
    yield operator("/", "n30", "n10")
    for pool in ("int2", "int4", "int8", "n0", "n2"):
        yield operator("%", pool, pool)
        yield function("mod", pool, pool)
    yield operator("%", "n2", "n10")
    for pool in ("int2", "int4", "int8", "float4", "float8", "n2", "n38"):
        yield operator("-", pool)
        yield function("abs", pool)
        yield operator("+", pool)
    for name in ("round", "trunc", "ceil", "floor", "sign"):
        for pool in ("float8", "n0", "n2", "n10", "n38"):
            yield function(name, pool)
    for digits in (-37, -3, -1, 0, 1, 2, 5):
        for pool in ("n2", "n10", "n0"):
            yield rounding("round", pool, digits)
            yield rounding("trunc", pool, digits)
    yield function("sqrt", "float8")
    yield operator("+", "date", "int2")
    yield operator("+", "int2", "date")
    yield operator("-", "date", "int2")
    yield operator("-", "date", "date")


def _casts() -> Iterator[Example]:
    numbers = {"int2": INT2, "int4": INT4, "int8": INT8, "float4": FLOAT4, "float8": FLOAT8, "n2": numeric(2)}
    for pool, target in itertools.product(("int2", "int4", "int8", "n0", "n10", "n2"), numbers.values()):
        yield casting(pool, target)
    for pool, name in itertools.product(("float4", "float8"), ("int2", "int4", "int8", "float4", "float8")):
        yield casting(pool, numbers[name])
    for pool in ("int4", "int8", "n0", "n2", "n10"):
        for scale in (0, 1, 20, 36):
            yield casting(pool, numeric(scale))
    for pool in ("bool", "int2", "int4", "int8", "n0", "n2", "n10", "n38", "date", "ts", "tz"):
        yield casting(pool, TEXT)
    yield casting("float8", TEXT)
    yield casting("bool", INT4)
    yield casting("int4", BOOL)
    moments = {"date": DATE, "ts": TIMESTAMP, "tz": TIMESTAMPTZ}
    for pool, target in itertools.product(moments, moments.values()):
        yield casting(pool, target)
    for target in (INT2, INT4, INT8):
        yield casting("text_int", target)
    for target in (FLOAT4, FLOAT8):
        yield casting("text_float", target)
    for scale in (0, 2, 10):
        yield casting("text_numeric", numeric(scale))
    yield casting("text_bool", BOOL)
    yield casting("text_date", DATE)
    yield casting("text_ts", TIMESTAMP)
    yield casting("text_ts", TIMESTAMPTZ)
    # mz_timestamp is not PostgreSQL's; where it has a meaning there, it is a bigint.
    yield from _mz_timestamps()


def _mz_timestamps() -> Iterator[Example]:
    guard = "CASE WHEN {0} < 0 THEN error('22003', 'mz_timestamp out of range') ELSE {0}::bigint END"
    for pool in ("int4", "int8"):
        (column,) = columns_of([pool])
        found = cast(column.type, MZ_TIMESTAMP)
        assert isinstance(found, Cast)
        yield Example(guard, found.apply(column), (pool,))
    whole = "CASE WHEN {0} < 0 OR {0} <> trunc({0}) OR {0} > 9223372036854775807 THEN"
    whole += " error('22003', 'mz_timestamp out of range') ELSE {0}::bigint END"
    for pool in ("n0", "n2", "u_whole"):
        (column,) = columns_of([pool])
        found = cast(column.type, MZ_TIMESTAMP)
        assert isinstance(found, Cast)
        yield Example(whole, found.apply(column), (pool,))
    for pool in ("date", "ts", "tz"):
        (column,) = columns_of([pool])
        found = cast(column.type, MZ_TIMESTAMP)
        assert isinstance(found, Cast)
        millis = "floor(extract(epoch from {0}) * 1000)::bigint"
        yield Example(
            "CASE {0} WHEN 'infinity' THEN 9223372036854775806 WHEN '-infinity' THEN 0"
            f" ELSE CASE WHEN {millis} < 0 THEN error('22003', 'mz_timestamp out of range') ELSE {millis} END END",
            found.apply(column),
            (pool,),
        )
    for target, name in ((TIMESTAMP, "timestamp"), (TIMESTAMPTZ, "timestamptz")):
        (column,) = columns_of(["mz"])
        found = cast(MZ_TIMESTAMP, target)
        assert isinstance(found, Cast)
        moment = "'1970-01-01 00:00:00+00'::timestamptz + interval '1 second' * ({0} / 1000)"
        moment = f"({moment} + interval '1 millisecond' * ({{0}} % 1000))::{name}"
        yield Example(
            "CASE WHEN {0} > 253402300799999 THEN error('22008', 'timestamp out of range')::text"
            f" ELSE ({moment})::text END",
            found.apply(column),
            ("mz",),
        )
    yield casting("mz", TEXT)
    for symbol in ("=", "<>", "<", "<=", ">", ">="):
        yield operator(symbol, "mz", "mz")
    (column,) = columns_of(["text_int"])
    found = cast(TEXT, MZ_TIMESTAMP)
    assert isinstance(found, Cast)
    yield Example(
        "CASE WHEN {0} !~ '^\\s*[+]?[0-9]+\\s*$'"
        " THEN error('22P02', 'invalid input syntax for type mz_timestamp: \"' || {0} || '\"')"
        " WHEN {0}::numeric > 9223372036854775807 THEN error('22003', 'mz_timestamp out of range')"
        " ELSE {0}::bigint END",
        found.apply(column),
        ("text_int",),
    )
