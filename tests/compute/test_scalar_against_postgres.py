"""Every function of the table returns what PostgreSQL 15 returns, value or error, for edge values and NULL.

Each `Example` is one call, written once in SQL and once through the resolution that the binder uses. Its arguments are
drawn from pools of edge values; all calls are evaluated over one local relation, a few dozen expressions a job.
A function that no example exercises fails the last test.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from mz_dagster.compute.frame import ensure_exact, spark_type
from mz_dagster.compute.scalar import Emitter, emittable
from mz_dagster.plan.functions import (
    FUNCTIONS,
    INTERNAL_FUNCTIONS,
    UNKNOWN,
    Cast,
    Failure,
    Resolved,
    cast,
    literal_of,
    resolve_date_part,
    resolve_date_trunc,
    resolve_extract,
    resolve_function,
    resolve_operator,
)
from mz_dagster.plan.functions.table import EXTRACT_FIELDS, TRUNC_UNITS
from mz_dagster.plan.scalar import Call, ColumnRef, If, Literal, Scalar, rewrite, walk
from mz_dagster.plan.types import (
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
    Kind,
    ScalarType,
    numeric,
)
from tests.postgres_server import Postgres, running_postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INT2 = ["0", "1", "-1", "2", "7", "-7", "-32768", "32767", "181", "-182"]
_INT4 = ["0", "1", "-1", "3", "-7", "10", "46340", "-46341", "2147483647", "-2147483648", "100000"]
_INT8 = ["0", "1", "-1", "3", "-7", "3037000500", "9007199254740993", "9223372036854775807", "-9223372036854775808"]
_FLOAT = [
    "0",
    "-0",
    "1",
    "-1",
    "0.5",
    "-0.5",
    "1.5",
    "2.5",
    "-2.5",
    "0.3",
    "-0.3",
    "3e4",
    "1e-30",
    "NaN",
    "Infinity",
    "-Infinity",
]
_NUMERIC0 = ["0", "1", "-1", "3", "7", "-13", "99999999999999999999999999999999999999", "123456789012345678", "20000"]
_NUMERIC2 = [
    "0",
    "0.01",
    "-0.01",
    "1.00",
    "2.50",
    "-2.50",
    "0.05",
    "1234567.89",
    "999999999999999999999999999999999999.99",
    "7.00",
    "-3.33",
]
_NUMERIC10 = [
    "0",
    "0.0000000001",
    "1.5",
    "-2.0000000005",
    "33333.3333333333",
    "9999999999999999999999999999.9999999999",
    "10000",
]
_NUMERIC38 = ["0", "0.00000000000000000000000000000000000001", "-0.99999999999999999999999999999999999999", "0.5"]
_TEXT = [
    "",
    "a",
    "abc",
    "ABC",
    "  x y  ",
    "Ähß",
    "🐘é",
    "a%b",
    "a_b",
    "\\",
    "a\\b",
    "xxabcxx",
    "a,b,,c",
    "%",
    "\n a\n",
    "İı",
    "éé",
]
_SMALL = ["0", "1", "2", "3", "5", "-1", "-2", "-5", "2147483647", "-2147483648", "100"]
_DATES = [
    "0001-01-01",
    "0001-12-31",
    "1582-10-10",
    "1900-02-28",
    "1969-12-31",
    "1970-01-01",
    "2000-02-29",
    "2021-01-03",
    "2024-12-30",
    "2020-12-31",
    "9999-12-31",
]
_TIMES = ["00:00:00", "23:59:59.999999", "12:34:56.789", "00:00:00.000001", "01:02:03"]

#: Pool -> (type, texts).
POOLS: dict[str, tuple[ScalarType, list[str]]] = {
    "bool": (BOOL, ["true", "false"]),
    "int2": (INT2, _INT2),
    "int4": (INT4, _INT4),
    "int8": (INT8, _INT8),
    "float4": (FLOAT4, [*_FLOAT, "3.4e38", "-3.4e38", "1e-45", "16777217"]),
    "float8": (FLOAT8, [*_FLOAT, "1.7e308", "-1.7e308", "5e-324", "4503599627370497.5", "1e39", "2147483647.5",
        "9.3e18", "-9.3e18"]),
    "n0": (numeric(0), _NUMERIC0),
    "n2": (numeric(2), _NUMERIC2),
    "n10": (numeric(10), _NUMERIC10),
    "n30": (numeric(30), ["0", "0.000000000000000000000000000001", "-12345678.9", "3"]),
    "n38": (numeric(38), _NUMERIC38),
    "text": (TEXT, _TEXT),
    "small": (INT4, _SMALL),
    "date": (DATE, _DATES),
    "ts": (TIMESTAMP, [f"{d} {t}" for d, t in itertools.product(_DATES, _TIMES)]),
    "tz": (TIMESTAMPTZ, [f"{d} {t}+00" for d, t in itertools.product(_DATES, _TIMES)]),
    "mz": (MZ_TIMESTAMP, ["0", "1", "1700000000000", "253402300799999", "9223372036854775807"]),
    "needle": (TEXT, ["", "a", "b", "x", " ", "é", "c", ",", "xc", "ab"]),
    "pattern": (TEXT, ["", "%", "_", "a%", "%b", "%a%", "a\\%b", "a\\_b", "_b_", "A%", "ä%", "a\\\\b",
        "\\\\", "%_%_", "é%", "b\\", "%\n%", "[a]", "\\Q", "a.c", "\\E%"]),
    "escape": (TEXT, ["", "\\", "!", "a", "%", "xx"]),
    "text_int": (TEXT, ["1", " -7 ", "+3", "", " ", "abc", "1.5", "0x10", "32768", "-32769", "2147483648",
        "9223372036854775808", "00000000000000000000000001", "1_000", "\t5\n", "--1", "é", "-"]),
    "text_float": (TEXT, ["1", "1.", ".5", "-1e10", "1e400", "1e-400", "0e-999", "nan", "-Infinity", "+inf",
        "inf", "1d", "1f", "abc", "", " 7 ", "1e", "1e39", "16777217", "1e-46", ".", "0.1",
        "1.0000000596046448"]),
    "text_numeric": (TEXT, ["1", "1.005", "-1.005", ".5", "5.", "1e3", "1.5e-1", "abc", "", "1e36",
        "999999999999999999999999999999999999.995", " 2 ", "+3", "1e-50",
        "0.004999999999999999999999999999999999999999999"]),
    "text_bool": (TEXT, ["t", "TRUE", " yes ", "o", "on", "of", "off", "0", "1", "2", "", "n", "fal", "truex",
        "y e s"]),
    "text_date": (TEXT, ["2020-02-29", "2021-02-29", "2020-1-5", "2020-13-01", "2020-00-10", "0000-01-01",
        "abc", "", " 2020-01-01 ", "2020-01-01 10:00", "2020-01-01 25:00", "2020-12-31 24:00:00"]),
    "text_ts": (TEXT, ["2020-02-29 12:34:56.789", "2020-02-29T12:34", "2020-02-29", "2020-02-30 00:00",
        "2020-12-31 24:00:00", "2020-01-01 23:59:60", "2020-01-01 00:00:00.1234565",
        "2020-01-01 00:00:00.9999999", "2020-01-01 12:60", "2020-01-01 1:2:3", "abc", "2020-01-01 00:00:00+02",
        "2020-01-01 00:00:00-0330", "2020-01-01 00:00:00Z", "2020-01-01 00:00:00 UTC", "2020-01-01 00:00:00.",
        "2020-01-01 00:00:00+16"]),
}  # fmt: skip

#: How many argument tuples each example gets, at most.
ROWS = 60


@dataclass(frozen=True)
class Example:
    """One call.

    Attributes:
        sql: PostgreSQL's expression, with `{0}`, `{1}` for the arguments.
        scalar: The same over columns 0, 1, ....
        pools: Where the arguments come from.
    """

    sql: str
    scalar: Scalar
    pools: tuple[str, ...]


def _columns(pools: Sequence[str]) -> list[ColumnRef]:
    return [ColumnRef(i, POOLS[pool][0]) for i, pool in enumerate(pools)]


def _applied(resolved: Resolved | Failure, arguments: Sequence[Any]) -> Scalar:
    assert isinstance(resolved, Resolved), str(resolved)
    call = resolved.apply(arguments)
    assert isinstance(call, Call), str(call)
    return call


def operator(sql: str, *pools: str, name: str | None = None) -> Example:
    columns = _columns(pools)
    resolved = resolve_operator(name or sql, [column.type for column in columns])
    text = f"{{0}} {sql} {{1}}" if len(pools) == 2 else f"{sql} {{0}}"
    return Example(text, _applied(resolved, columns), pools)


def function(name: str, *pools: str, sql: str | None = None) -> Example:
    columns = _columns(pools)
    resolved = resolve_function(name, [column.type for column in columns])
    called = sql or f"{name}({', '.join(f'{{{i}}}' for i in range(len(pools)))})"
    return Example(called, _applied(resolved, columns), pools)


def rounding(name: str, pool: str, digits: int) -> Example:
    (column,) = _columns([pool])
    resolved = resolve_function(name, [column.type, INT4], [None, digits])
    return Example(f"{name}({{0}}, {digits})", _applied(resolved, [column, Literal(digits, INT4)]), (pool,))


def casting(pool: str, target: ScalarType, name: str | None = None) -> Example:
    (column,) = _columns([pool])
    found = cast(column.type, target)
    assert isinstance(found, Cast), str(found)
    return Example(f"{{0}}::{name or target}", found.apply(column), (pool,))


def examples() -> Iterator[Example]:
    yield from _comparisons()
    yield from _arithmetic()
    yield from _casts()
    yield from _texts()
    yield from _moments()
    yield from _logic()


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
        (column,) = _columns([pool])
        found = cast(column.type, MZ_TIMESTAMP)
        assert isinstance(found, Cast)
        yield Example(guard, found.apply(column), (pool,))
    whole = "CASE WHEN {0} < 0 OR {0} <> trunc({0}) OR {0} > 9223372036854775807 THEN"
    whole += " error('22003', 'mz_timestamp out of range') ELSE {0}::bigint END"
    for pool in ("n0", "n2"):
        (column,) = _columns([pool])
        found = cast(column.type, MZ_TIMESTAMP)
        assert isinstance(found, Cast)
        yield Example(whole, found.apply(column), (pool,))
    for pool in ("date", "ts", "tz"):
        (column,) = _columns([pool])
        found = cast(column.type, MZ_TIMESTAMP)
        assert isinstance(found, Cast)
        millis = "floor(extract(epoch from {0}) * 1000)::bigint"
        yield Example(
            f"CASE WHEN {millis} < 0 THEN error('22003', 'mz_timestamp out of range') ELSE {millis} END",
            found.apply(column),
            (pool,),
        )
    for target, name in ((TIMESTAMP, "timestamp"), (TIMESTAMPTZ, "timestamptz")):
        (column,) = _columns(["mz"])
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
    (column,) = _columns(["text_int"])
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


def _texts() -> Iterator[Example]:
    for pair in (("text", "text"), ("text", "int4"), ("n2", "text"), ("bool", "text"), ("text", "ts")):
        yield operator("||", *pair)
    for name in (
        "length", "char_length", "octet_length", "bit_length", "lower", "upper", "btrim", "ltrim", "rtrim", "reverse",
        "md5", "ascii",
    ):  # fmt: skip
        yield function(name, "text")
    for name in ("btrim", "ltrim", "rtrim", "strpos", "starts_with"):
        yield function(name, "text", "needle")
    yield function("position", "text", "needle", sql="position({1} in {0})")
    yield function("replace", "text", "needle", "needle")
    yield function("translate", "text", "text", "needle")
    yield function("substring", "text", "small")
    yield function("substring", "text", "small", "small")
    yield function("left", "text", "small")
    yield function("right", "text", "small")
    for name in ("lpad", "rpad"):
        yield function(name, "text", "int2")
        yield function(name, "text", "int2", "needle")
        yield rounded_size(name)
    yield function("repeat", "text", "int2")
    yield function("repeat", "needle", "small")
    yield function("split_part", "text", "needle", "small")
    for name, sql in (("like", "LIKE"), ("not like", "NOT LIKE"), ("ilike", "ILIKE"), ("not ilike", "NOT ILIKE")):
        yield operator(sql, "text", "pattern", name=name)
        for pattern in POOLS["pattern"][1]:
            (column,) = _columns(["text"])
            resolved = resolve_operator(name, [TEXT, UNKNOWN])
            call = _applied(resolved, [column, Literal(pattern, TEXT)])
            yield Example(f"{{0}} {sql} {quote(pattern, TEXT)}", call, ("text",))
    escaped = function("like_escape", "pattern", "escape")
    yield escaped
    like = resolve_operator("like", [TEXT, TEXT])
    yield Example("{1} LIKE {0} ESCAPE {2}", _escaped(like), ("pattern", "text", "escape"))
    for names in (("text", "int4"), ("bool", "n2", "text"), ("ts", "date")):
        yield function("concat", *names)
        yield function("concat_ws", "needle", *names)


def rounded_size(name: str) -> Example:
    """A pad whose result is too long for PostgreSQL, or empty; nothing in between, for the machine's sake."""
    column, fill = ColumnRef(0, TEXT), ColumnRef(1, TEXT)
    resolved = resolve_function(name, [TEXT, INT4, TEXT])
    call = _applied(resolved, [column, Literal(300_000_000, INT4), fill])
    return Example(f"{name}({{0}}, 300000000, {{1}})", call, ("text", "needle"))


def _escaped(like: Resolved | Failure) -> Scalar:
    pattern, text, escape = ColumnRef(0, TEXT), ColumnRef(1, TEXT), ColumnRef(2, TEXT)
    rewritten = _applied(resolve_function("like_escape", [TEXT, TEXT]), [pattern, escape])
    return _applied(like, [text, rewritten])


def _moments() -> Iterator[Example]:
    for field, (kinds, _) in EXTRACT_FIELDS.items():
        for pool in ("date", "ts", "tz"):
            (column,) = _columns([pool])
            if column.type.kind not in kinds:
                continue
            resolved = resolve_extract(field, column.type)
            yield Example(f"extract({field} from {{0}})", _applied(resolved, [column]), (pool,))
    for field in ("year", "hour", "microseconds"):
        for pool in ("date", "ts"):
            (column,) = _columns([pool])
            found = resolve_date_part(field, column.type)
            assert not isinstance(found, Failure)
            yield Example(f"date_part('{field}', {{0}})", found[1].apply(_applied(found[0], [column])), (pool,))
    for unit in TRUNC_UNITS:
        for pool in ("date", "ts", "tz"):
            (column,) = _columns([pool])
            resolved = resolve_date_trunc(unit, column.type)
            # Before year 1 there is nothing here.
            guard = (
                "CASE WHEN date_trunc('{0}', {{0}}) < '0001-01-01' THEN error('22008', 'timestamp out of range')::text"
            )
            guard = f"{guard.format(unit)} ELSE date_trunc('{unit}', {{0}})::text END"
            yield Example(guard, _applied(resolved, [column]), (pool,))


def _logic() -> Iterator[Example]:
    failing = _applied(resolve_operator("=", [INT4, INT4]), [_quotient(), Literal(1, INT4)])
    bool_ = ColumnRef(2, BOOL)
    pools = ("int4", "int4", "bool")
    sql = "({0} / {1} = 1)"
    for name in ("and", "or"):
        ok = ("CASE WHEN {2} THEN " + sql + " ELSE {2} AND NULL END") if name == "and" else (
            "CASE WHEN {2} THEN true ELSE " + sql + " OR {2} END"
        )  # fmt: skip
        if name == "and":
            ok = f"CASE WHEN {{2}} IS FALSE THEN false ELSE ({sql}) AND {{2}} END"
        for arguments in ([failing, bool_], [bool_, failing]):
            yield Example(ok, _applied(resolve_operator(name, [BOOL, BOOL]), arguments), pools)
    yield Example(f"NOT {sql}", _applied(resolve_operator("not", [BOOL]), [failing]), pools)
    for test in ("null", "true", "false", "unknown"):
        for phrase in (f"is {test}", f"is not {test}"):
            yield Example(f"{sql} {phrase}", _applied(resolve_operator(phrase, [BOOL]), [failing]), pools)
    guard = _applied(resolve_operator("<>", [INT4, INT4]), [ColumnRef(1, INT4), Literal(0, INT4)])
    yield Example(
        "CASE WHEN {1} <> 0 THEN {0} / {1} ELSE {0} END", If(guard, _quotient(), ColumnRef(0, INT4)), ("int4", "int4")
    )
    yield Example("CASE WHEN " + sql + " THEN 1 ELSE 2 END", If(failing, Literal(1, INT4), Literal(2, INT4)), pools)
    three = (INT4, INT4, INT4)
    yield Example(
        "coalesce({2}, {0} / {1}, {0})",
        _applied(resolve_function("coalesce", three), [ColumnRef(2, INT4), _quotient(), ColumnRef(0, INT4)]),
        ("int4", "int4", "int4"),
    )
    for name in ("greatest", "least"):
        yield function(name, "int4", "int4", "int4")
        yield function(name, "float8", "float8")
        yield function(name, "n2", "n2", "int4")
        yield function(name, "text", "needle")
        yield function(name, "int4")
    # Deep enough that written out in place it would be too large.
    deep: Scalar = ColumnRef(0, INT4)
    text = "{0}"
    for _ in range(12):
        deep = _applied(resolve_operator("/", [INT4, INT4]), [deep, ColumnRef(1, INT4)])
        deep = _applied(resolve_operator("+", [INT4, INT4]), [deep, deep])
        text = f"({text} / {{1}})"
        text = f"({text} * 2)"
    yield Example(text, deep, ("int4", "int4"))
    fails = Call("error", (Literal("22012 division by zero", TEXT),), INT4)
    yield Example("1 / 0", fails, ("one",))


def _quotient() -> Scalar:
    return _applied(resolve_operator("/", [INT4, INT4]), [ColumnRef(0, INT4), ColumnRef(1, INT4)])


POOLS["one"] = (INT4, ["1"])


def quote(text: str | None, type_: ScalarType) -> str:
    if text is None:
        return f"NULL::{sql_type(type_)}"
    escaped = text.replace("'", "''")
    return f"'{escaped}'::{sql_type(type_)}"


def sql_type(type_: ScalarType) -> str:
    return "bigint" if type_.kind is Kind.MZ_TIMESTAMP else str(type_)


def arguments_of(pools: Sequence[str], seed: int) -> list[tuple[str | None, ...]]:
    """Returns tuples of texts: everything if it is little, else a sample, each value at least once."""
    source = random.Random(seed)
    texts: list[list[str | None]] = [[*POOLS[pool][1], None] for pool in pools]
    everything = math.prod(len(one) for one in texts)
    if everything <= ROWS:
        return list(itertools.product(*texts))
    rows = {tuple(source.choice(one) for one in texts) for _ in range(ROWS)}
    for position, one in enumerate(texts):
        rows |= {tuple(v if i == position else source.choice(o) for i, o in enumerate(texts)) for v in one}
    return sorted(rows, key=repr)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        server.run(
            "CREATE FUNCTION error(code text, message text) RETURNS bigint LANGUAGE plpgsql AS"
            " $f$ BEGIN RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message; END $f$;"
        )
        yield server


def evaluate(
    spark: SparkSession, batch: list[Example], rows: list[list[tuple[str | None, ...]]]
) -> list[list[str | None]]:
    """Returns each example's outcomes, spelled as `Postgres.attempt` does, floats by Python's repr."""
    from pyspark.sql import functions as sf

    ensure_exact(spark)
    height = max(len(one) for one in rows)
    names: list[str] = []
    types: list[str] = []
    data: list[list[Any]] = []
    for number, (example, own) in enumerate(zip(batch, rows, strict=True)):
        for position, pool in enumerate(example.pools):
            type_ = POOLS[pool][0]
            names.append(f"a{number}_{position}")
            types.append(spark_type(type_))
            cells = [_cell(row[position], type_) for row in own]
            data.append(cells + [None] * (height - len(cells)))
    schema = ", ".join(
        f"{name} {'bigint' if type_.startswith('timestamp') else type_}"
        for name, type_ in zip(names, types, strict=True)
    )
    frame = spark.createDataFrame([(i, *row) for i, row in enumerate(zip(*data, strict=True))], f"i int, {schema}")
    restored = [
        sf.timestamp_micros(sf.col(name)).cast(type_).alias(name) if type_.startswith("timestamp") else sf.col(name)
        for name, type_ in zip(names, types, strict=True)
    ]
    frame = frame.select("i", *restored)
    shown = []
    # One emitter for all, so that the shared columns of all stand in the same few stages.
    emitter = Emitter([sf.col(name) for name in names])
    offset = 0
    for number, example in enumerate(batch):
        emitted = emitter.emit(moved(example.scalar, offset))
        offset += len(example.pools)
        value = emitted.value
        if example.scalar.type.kind is Kind.TIMESTAMPTZ:
            value = sf.concat(value.cast("string"), sf.lit("+00"))
        elif example.scalar.type.kind not in (Kind.FLOAT4, Kind.FLOAT8):
            value = value.cast("string")
        error = sf.lit(None).cast("string") if emitted.error is None else emitted.error
        shown.append((value.alias(f"v{number}"), error.alias(f"e{number}")))
    frame = emitter.stage(frame)
    answers = frame.select("i", *itertools.chain.from_iterable(shown)).collect()
    answers.sort(key=lambda answer: answer[0])
    found: list[list[str | None]] = []
    for number, own in enumerate(rows):
        cells = [(answer[1 + 2 * number], answer[2 + 2 * number]) for answer in answers[: len(own)]]
        for value, error in cells:
            assert value is None or error is None, f"{batch[number]}: both {value!r} and {error!r}"
        found.append([f"!{error}" if error is not None else None if v is None else f"={v}" for v, error in cells])
    return found


def moved(scalar: Scalar, offset: int) -> Scalar:
    return rewrite(scalar, lambda column: ColumnRef(column.position + offset, column.type))


def _cell(text: str | None, type_: ScalarType) -> Any:
    literal = literal_of(text, type_)
    assert isinstance(literal, Literal), str(literal)
    if literal.value is not None and type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        from datetime import UTC, datetime, timedelta

        assert isinstance(literal.value, datetime)
        return (literal.value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return literal.value


def same(example: Example, ours: str | None, theirs: str | None, argument_texts: tuple[str | None, ...]) -> bool:
    if ours == theirs:
        return True
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    type_ = example.scalar.type
    if ours[0] == "!":
        return False
    if type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
        import struct

        code = "f" if type_.kind is Kind.FLOAT4 else "d"
        mine, other = (struct.pack(code, float(text[1:])) for text in (ours, theirs))
        return mine == other or (ours == "=nan" and theirs == "=NaN")
    if type_.kind is Kind.NUMERIC:
        mine_, other_ = Decimal(ours[1:]), Decimal(theirs[1:])
        if mine_ == other_:
            return True
        # Division keeps a fixed number of digits, PostgreSQL more for small quotients.
        if any(isinstance(node, Call) and node.function == "divide_numeric" for node in walk(example.scalar)):
            kept = Decimal(1).scaleb(-type_.scale)
            return abs(other_) < Decimal("0.0001") and abs(mine_ - other_) <= kept / 2
    return False


def legitimate(example: Example, ours: str | None, theirs: str | None, row: tuple[str | None, ...]) -> bool:
    """Tells the documented limits: 38 digits, quotients below 10^17, divisors of at most 37 digits, years 1 to 9999."""
    if ours == "!22008 date out of range" and theirs is not None:
        return theirs.endswith(" BC") or theirs.startswith("=10")
    numeric_result = example.scalar.type.kind is Kind.NUMERIC
    if ours == "!22003 numeric field overflow" and theirs is not None and theirs[0] == "=" and numeric_result:
        divides = any(isinstance(n, Call) and n.function == "divide_numeric" for n in walk(example.scalar))
        if divides and sum(c.isdigit() for c in row[-1] or "") >= 38:
            return True
        limit = Decimal(10) ** (38 - example.scalar.type.scale - divides)
        return abs(Decimal(theirs[1:])) >= limit
    return False


def test_every_function_returns_what_postgres_returns(spark: SparkSession, postgres: Postgres) -> None:
    everything = list(examples())
    rows = [arguments_of(example.pools, seed) for seed, example in enumerate(everything)]
    asked = [
        example.sql.format(*(quote(text, POOLS[pool][0]) for text, pool in zip(row, example.pools, strict=True)))
        for example, own in zip(everything, rows, strict=True)
        for row in own
    ]
    answers = iter(postgres.attempt(asked))
    expected = [[next(answers) for _ in own] for own in rows]
    wrong: list[str] = []
    for start in range(0, len(everything), 40):
        batch, own_rows = everything[start : start + 40], rows[start : start + 40]
        found = evaluate(spark, batch, own_rows)
        for example, own, ours, theirs in zip(batch, own_rows, found, expected[start : start + 40], strict=True):
            wrong += [
                f"{example.sql} {row} [{example.scalar.type}]: {mine!r}, PostgreSQL {other!r}"
                for row, mine, other in zip(own, ours, theirs, strict=True)
                if not same(example, mine, other, row) and not legitimate(example, mine, other, row)
            ]
    assert not wrong, f"{len(wrong)} of {len(asked)} differ:\n" + "\n".join(wrong[:200])


def test_every_function_is_emittable_and_exercised() -> None:
    # mz_now() never gets there: it is a literal in a query, and a bound in a view.
    assert emittable() == frozenset(FUNCTIONS) - {"mz_now"}
    exercised = {node.function for example in examples() for node in walk(example.scalar) if isinstance(node, Call)}
    # PostgreSQL has no like of the internal ones: `test_accumulation.py` exercises them.
    assert frozenset(FUNCTIONS) - exercised == INTERNAL_FUNCTIONS | {"mz_now"}


def test_literals_are_read_as_postgres_reads_them(postgres: Postgres) -> None:
    targets = {
        "text_int": (INT2, INT4, INT8), "text_float": (FLOAT4, FLOAT8), "text_numeric": (numeric(0), numeric(2)),
        "text_bool": (BOOL,), "text_date": (DATE,), "text_ts": (TIMESTAMP, TIMESTAMPTZ),
    }  # fmt: skip
    wrong = []
    for pool, types in targets.items():
        for type_, text in itertools.product(types, POOLS[pool][1]):
            (theirs,) = postgres.attempt([quote(text, type_)])
            ours = literal_of(text, type_)
            if isinstance(ours, Failure):
                shown = f"!{ours}"
            elif type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
                example = Example("", ours, ())
                if same(example, f"={ours.value!s}", theirs, ()):
                    continue
                shown = f"={ours.value!s}"
            else:
                shown = f"={str(ours.value).lower() if type_ == BOOL else ours.value!s}"
                if theirs is not None and type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
                    shown = shown.replace("+00:00", "+00")
                    if "." in shown:
                        whole, _, zone = shown.partition("+")
                        shown = whole.rstrip("0") + (f"+{zone}" if zone else "")
            if shown != theirs:
                wrong.append(f"{quote(text, type_)}: {shown!r}, PostgreSQL {theirs!r}")
    assert not wrong, "\n".join(wrong)
