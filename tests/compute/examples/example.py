"""What an example is, and the pools of edge values that arguments are drawn from.

Owns `Example`, `POOLS` with the values that several areas need, and the few ways to make an example of an operator, a
function or a cast. An area adds its own pools where it needs them: `POOLS["uuid"] = (UUID, [...])`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mz_dagster.functions import Cast, Failure, Resolved, cast, resolve_function, resolve_operator
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, walk
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
    Kind,
    ScalarType,
    numeric,
)

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
_INFINITIES = ["infinity", "-infinity"]
_TIMES = ["00:00:00", "23:59:59.999999", "12:34:56.789", "00:00:00.000001", "01:02:03"]

#: Pool -> (type, texts).
POOLS: dict[str, tuple[ScalarType, list[str]]] = {
    "bool": (BOOL, ["true", "false"]),
    "int2": (INT2, _INT2),
    "int4": (INT4, _INT4),
    "int8": (INT8, _INT8),
    "float4": (FLOAT4, [*_FLOAT, "3.4e38", "-3.4e38", "1e-45", "16777217", "271.546875", "271.546844"]),
    "float8": (FLOAT8, [*_FLOAT, "1.7e308", "-1.7e308", "5e-324", "4503599627370497.5", "1e39", "2147483647.5",
        "9.3e18", "-9.3e18"]),
    "n0": (numeric(0), _NUMERIC0),
    "n2": (numeric(2), _NUMERIC2),
    "n10": (numeric(10), _NUMERIC10),
    "n30": (numeric(30), ["0", "0.000000000000000000000000000001", "-12345678.9", "3"]),
    "n38": (numeric(38), _NUMERIC38),
    "text": (TEXT, _TEXT),
    "one": (INT4, ["1"]),
    "small": (INT4, _SMALL),
    "date": (DATE, [*_DATES, *_INFINITIES]),
    "ts": (TIMESTAMP, [*(f"{d} {t}" for d, t in itertools.product(_DATES, _TIMES)), *_INFINITIES]),
    "tz": (TIMESTAMPTZ, [*(f"{d} {t}+00" for d, t in itertools.product(_DATES, _TIMES)), *_INFINITIES]),
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
        "abc", "", " 2020-01-01 ", "2020-01-01 10:00", "2020-01-01 25:00", "2020-12-31 24:00:00",
        "Infinity", " -infinity "]),
    "text_ts": (TEXT, ["2020-02-29 12:34:56.789", "2020-02-29T12:34", "2020-02-29", "2020-02-30 00:00",
        "2020-12-31 24:00:00", "2020-01-01 23:59:60", "2020-01-01 00:00:00.1234565",
        "2020-01-01 00:00:00.9999999", "2020-01-01 12:60", "2020-01-01 1:2:3", "abc", "2020-01-01 00:00:00+02",
        "2020-01-01 00:00:00-0330", "2020-01-01 00:00:00Z", "2020-01-01 00:00:00 UTC", "2020-01-01 00:00:00.",
        "2020-01-01 00:00:00+16", "infinity", "-INFINITY", "+infinity", "infinity 10:00", "inf", "infinity UTC"]),
}  # fmt: skip

#: Tells whether our outcome may differ so from PostgreSQL's, for a row of arguments: a documented limit.
Tolerance = Callable[[str | None, str | None, tuple[str | None, ...]], bool]


@dataclass(frozen=True)
class Example:
    """One call.

    Attributes:
        sql: PostgreSQL's expression, with `{0}`, `{1}` for the arguments.
        scalar: The same over columns 0, 1, ....
        pools: Where the arguments come from.
        tolerates: A documented limit, if there is one. Outcomes are None, `=value` or `!SQLSTATE message`.
    """

    sql: str
    scalar: Scalar
    pools: tuple[str, ...]
    tolerates: Tolerance | None = None


def columns_of(pools: Sequence[str]) -> list[ColumnRef]:
    return [ColumnRef(i, POOLS[pool][0]) for i, pool in enumerate(pools)]


def applied(resolved: Resolved | Failure, arguments: Sequence[Any]) -> Scalar:
    assert isinstance(resolved, Resolved), str(resolved)
    found = resolved.apply(arguments)
    assert not isinstance(found, Failure), str(found)
    return found


def operator(sql: str, *pools: str, name: str | None = None) -> Example:
    columns = columns_of(pools)
    resolved = resolve_operator(name or sql, [column.type for column in columns])
    text = f"{{0}} {sql} {{1}}" if len(pools) == 2 else f"{sql} {{0}}"
    return Example(text, applied(resolved, columns), pools)


def function(name: str, *pools: str, sql: str | None = None) -> Example:
    columns = columns_of(pools)
    resolved = resolve_function(name, [column.type for column in columns])
    called = sql or f"{name}({', '.join(f'{{{i}}}' for i in range(len(pools)))})"
    return Example(called, applied(resolved, columns), pools)


def rounding(name: str, pool: str, digits: int) -> Example:
    (column,) = columns_of([pool])
    resolved = resolve_function(name, [column.type, INT4], [None, digits])
    return Example(f"{name}({{0}}, {digits})", applied(resolved, [column, Literal(digits, INT4)]), (pool,))


def casting(pool: str, target: ScalarType, name: str | None = None) -> Example:
    (column,) = columns_of([pool])
    found = cast(column.type, target)
    assert isinstance(found, Cast), str(found)
    return Example(f"{{0}}::{name or target}", found.apply(column), (pool,))


def quote(text: str | None, type_: ScalarType) -> str:
    if text is None:
        return f"NULL::{sql_type(type_)}"
    escaped = text.replace("'", "''")
    return f"'{escaped}'::{sql_type(type_)}"


def sql_type(type_: ScalarType) -> str:
    return "bigint" if type_.kind is Kind.MZ_TIMESTAMP else str(type_)


def sample(examples: Sequence[Example]) -> list[int]:
    """Returns where examples are that together have each function and each kind of node, and some of the others."""
    seen = set[object]()
    chosen = []
    for place, example in enumerate(examples):
        told = {node.function if isinstance(node, Call) else type(node) for node in walk(example.scalar)}
        if place % 4 == 0 or told - seen:
            chosen.append(place)
            seen |= told
    return chosen
