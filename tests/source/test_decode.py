"""Every text of a table decodes to PostgreSQL's value, or to PostgreSQL's words: by Spark, in one job, and in process.

Of texts that nobody thought of both say the same.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    ScalarType,
    numeric,
)
from mz_dagster.storage.plain_cells import python_cells
from mz_dagster.storage.source.decode import decode, why_not
from mz_dagster.storage.source.local.decode import decoded
from tests.source.mutations import mutated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def syntax(name: str, text: str, code: str = "22P02") -> str:
    return f'{code} invalid input syntax for type {name}: "{text}"'


def field(text: str) -> str:
    return f'22008 date/time field value out of range: "{text}"'


def too_long(type_: ScalarType) -> str:
    return f"22001 value too long for type {type_}"


BAD_BYTEA = "22P02 invalid input syntax for type bytea"
VARCHAR3, CHAR3 = ScalarType(Kind.VARCHAR, length=3), ScalarType(Kind.CHAR, length=3)
#: Kinds whose values are strings here.
TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UUID)
NAN, INF = float("nan"), float("inf")
UTC = dt.UTC

#: (type, text, value or error)
CASES: list[tuple[ScalarType, str | None, Any]] = [
    (BOOL, "t", True),
    (BOOL, " TRUE\t", True),
    (BOOL, "of", False),
    (BOOL, "0", False),
    (BOOL, "o", syntax("boolean", "o")),
    (BOOL, "", syntax("boolean", "")),
    (INT2, "-32768", -32768),
    (INT2, "32768", '22003 value "32768" is out of range for type smallint'),
    (INT4, " +007 ", 7),
    (INT4, "000000000000000000000000000000000000000000000000012", 12),
    (INT4, "2147483648", '22003 value "2147483648" is out of range for type integer'),
    (INT4, "5.0", syntax("integer", "5.0")),
    (INT4, "1e3", syntax("integer", "1e3")),
    (INT4, "0x10", syntax("integer", "0x10")),
    (INT4, "1_000", syntax("integer", "1_000")),
    (INT4, "", syntax("integer", "")),
    (INT4, "\u0661", syntax("integer", "\u0661")),
    (INT8, "-9223372036854775808", -(1 << 63)),
    (INT8, "9" * 120, f'22003 value "{"9" * 100}..." is out of range for type bigint'),
    (MZ_TIMESTAMP, "1385856000000", 1385856000000),
    (MZ_TIMESTAMP, "-1", '22003 value "-1" is out of range for type mz_timestamp'),
    (FLOAT8, "10.357019999999999", 10.357019999999999),
    (FLOAT8, "1e400", '22003 "1e400" is out of range for type double precision'),
    (FLOAT8, "1e-400", '22003 "1e-400" is out of range for type double precision'),
    (FLOAT8, "0e-999", 0.0),
    (FLOAT8, "5e-324", 5e-324),
    (FLOAT8, "NaN", NAN),
    (FLOAT8, "-Infinity", -INF),
    (FLOAT8, " inf ", INF),
    (FLOAT8, "1d", syntax("double precision", "1d")),
    (FLOAT8, "0x1p3", syntax("double precision", "0x1p3")),
    (FLOAT8, ".", syntax("double precision", ".")),
    (FLOAT4, "0.1", 0.10000000149011612),
    (FLOAT4, "1e39", '22003 "1e39" is out of range for type real'),
    (numeric(2), "1.005", Decimal("1.01")),
    (numeric(2), "-1.005", Decimal("-1.01")),
    (numeric(2), " .5e1 ", Decimal("5.00")),
    (numeric(2), "12345678901234567890123456789012345.67", Decimal("12345678901234567890123456789012345.67")),
    (numeric(2), "1e36", "22003 numeric field overflow"),
    (numeric(2), "1e999999999", "22003 value overflows numeric format"),
    (numeric(2), "1e-999999999", "22003 value overflows numeric format"),
    (numeric(2), "1e-9999", Decimal("0.00")),
    (numeric(2), "0e50", Decimal("0.00")),
    (numeric(2), "-.0E-50", Decimal("0.00")),
    (INT4, "7\u0085", syntax("integer", "7\u0085")),
    (DATE, "2013-01-01\u2028", syntax("date", "2013-01-01\u2028", "22007")),
    (numeric(2), "Infinity", "22003 numeric field overflow"),
    (numeric(2), "NaN", syntax("numeric", "NaN")),
    (numeric(2), "1,000", syntax("numeric", "1,000")),
    (numeric(38), "0.12345678901234567890123456789012345678", Decimal("0.12345678901234567890123456789012345678")),
    (TEXT, " as is ", " as is "),
    (TEXT, "", ""),
    (TEXT, None, None),
    (INT4, None, None),
    (TIMESTAMPTZ, None, None),
    (VARCHAR3, "abc", "abc"),
    (VARCHAR3, "abc  ", "abc"),
    (VARCHAR3, "a ", "a "),
    (VARCHAR3, "Äh🐘x", too_long(VARCHAR3)),
    (CHAR3, "a  ", "a"),
    (CHAR3, "ab   ", "ab"),
    (CHAR3, "ab  c", too_long(CHAR3)),
    (UUID, "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    (UUID, "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    (UUID, "a0eebc99", syntax("uuid", "a0eebc99")),
    (UUID, "", syntax("uuid", "")),
    (UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\n", syntax("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\n")),
    (BYTEA, r"\x", b""),
    (BYTEA, r"\x00 fF", b"\x00\xff"),
    (BYTEA, r"\x0", BAD_BYTEA),
    (BYTEA, r"\x0g", BAD_BYTEA),
    (BYTEA, "", b""),
    (BYTEA, r"é\\\007\377b", b"\xc3\xa9\\\x07\xffb"),
    (BYTEA, r"a\400", BAD_BYTEA),
    (BYTEA, "a" * 60 + "\\9", BAD_BYTEA),
    (BYTEA, "a\\001" * 20_000, b"a\x01" * 20_000),
    (BYTEA, "\\x" + "0a" * 50_000, b"\n" * 50_000),
    (DATE, "2013-1-5", dt.date(2013, 1, 5)),
    (DATE, "2013-02-29", field("2013-02-29")),
    (DATE, "2012-02-29", dt.date(2012, 2, 29)),
    (DATE, "0000-01-01", field("0000-01-01")),
    (DATE, "1582-10-10", dt.date(1582, 10, 10)),
    (DATE, "tomorrow", syntax("date", "tomorrow", "22007")),
    (DATE, "2013", syntax("date", "2013", "22007")),
    (TIMESTAMP, "2013-01-01 05:15:00", dt.datetime(2013, 1, 1, 5, 15)),
    (TIMESTAMP, "2013-01-01T05:15", dt.datetime(2013, 1, 1, 5, 15)),
    (TIMESTAMP, "2013-01-01", dt.datetime(2013, 1, 1)),
    (TIMESTAMP, "2013-12-31 23:59:59.9999995", dt.datetime(2014, 1, 1)),
    (TIMESTAMP, "9999-12-31 23:59:59.9999995", field("9999-12-31 23:59:59.9999995")),
    (TIMESTAMPTZ, "9999-12-31 23:00:00-05", field("9999-12-31 23:00:00-05")),
    (TIMESTAMPTZ, "0001-01-01 00:00:00+05", field("0001-01-01 00:00:00+05")),
    (TIMESTAMP, "2013-01-01 00:00:00.0000004", dt.datetime(2013, 1, 1)),
    (TIMESTAMP, "2013-01-01 00:00:00.25", dt.datetime(2013, 1, 1, 0, 0, 0, 250000)),
    (TIMESTAMP, "2013-03-10 02:30:00", dt.datetime(2013, 3, 10, 2, 30)),
    (TIMESTAMP, "2013-01-01 05:15:00+05", dt.datetime(2013, 1, 1, 5, 15)),
    (TIMESTAMP, "2013-01-01 25:00", field("2013-01-01 25:00")),
    (TIMESTAMP, "2013-01-01 10:61", field("2013-01-01 10:61")),
    (TIMESTAMP, "noon", syntax("timestamp", "noon", "22007")),
    (TIMESTAMPTZ, "2013-01-01T06:00:00Z", dt.datetime(2013, 1, 1, 6, tzinfo=UTC)),
    (TIMESTAMPTZ, "2013-01-01 06:00:00.5-0830", dt.datetime(2013, 1, 1, 14, 30, 0, 500000, tzinfo=UTC)),
    (TIMESTAMPTZ, "2013-01-01 06:00 +05:45", dt.datetime(2013, 1, 1, 0, 15, tzinfo=UTC)),
    (TIMESTAMPTZ, "2013-01-01 06:00:00", dt.datetime(2013, 1, 1, 6, tzinfo=UTC)),
    (TIMESTAMPTZ, "2013-01-01 06:00:00+99", field("2013-01-01 06:00:00+99")),
    (TIMESTAMPTZ, "x", syntax("timestamp with time zone", "x", "22007")),
    (TIME, "10:00", 36_000_000_000),
    (TIME, " 1:2:3.5 ", 3_723_500_000),
    (TIME, "24:00:01", field("24:00:01")),
    (TIME, "noon", syntax("time", "noon", "22007")),
    (TIME, None, None),
    (INTERVAL, "1 year 2 mons -3 days 04:05", (14, -3, 14_700_000_000)),
    (INTERVAL, "P1Y2M3DT4H", (14, 3, 14_400_000_000)),
    (INTERVAL, "", syntax("interval", "", "22007")),
    (INTERVAL, "2147483648 days", '22015 interval field value out of range: "2147483648 days"'),
]


def test_every_text_decodes_to_a_value_or_to_postgresqls_words(spark: SparkSession) -> None:
    texts = spark.createDataFrame([(i, text) for i, (_, text, _) in enumerate(CASES)], "i int, text string")
    types = list(dict.fromkeys(type_ for type_, _, _ in CASES))
    columns = []
    for n, type_ in enumerate(types):
        value = decode(F.col("text"), type_)
        error = F.when(F.col("text").isNotNull() & value.isNull(), why_not(F.col("text"), type_))
        if type_ in (DATE, TIMESTAMP, TIMESTAMPTZ):  # of infinite ones Python has none
            value = F.when(~F.lower(F.trim("text")).endswith("infinity"), value)
        if type_ == TIMESTAMPTZ:  # collected as UTC, whatever this machine's zone
            value = value.cast("timestamp_ntz")
        columns += [value.alias(f"v{n}"), error.alias(f"e{n}")]
    rows = {row["i"]: row for row in texts.select("i", *columns).collect()}
    wrong = []

    for i, (type_, text, expected) in enumerate(CASES):
        n = types.index(type_)
        value, error = rows[i][f"v{n}"], rows[i][f"e{n}"]
        if type_ == TIMESTAMPTZ and isinstance(expected, dt.datetime):
            expected = expected.replace(tzinfo=None)
        is_error = isinstance(expected, str) and (type_.kind not in TEXTS or expected[:5] in ("22001", "22P02"))
        same = (
            (value is None and error == expected)
            if is_error
            else error is None and (value == expected or (value != value and expected != expected))
        )
        if not same or (isinstance(value, float) and not is_error and repr(value) != repr(float(expected))):
            wrong.append(f"{type_} {text!r}: {value!r} {error!r} instead of {expected!r}")
    assert not wrong, "\n".join(wrong)
    assert math.isnan(NAN)


def test_what_is_infinite_decodes_alike_by_spark_and_in_this_process(spark: SparkSession) -> None:
    texts = ["infinity", "-infinity", " Infinity ", "+infinity", "inf", "2020-01-01"]
    types = (DATE, TIMESTAMP, TIMESTAMPTZ)
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    there = frame.select(*(decode(F.col("text"), type_).alias(f"v{n}") for n, type_ in enumerate(types))).toArrow()
    for n, type_ in enumerate(types):
        here, faults = decoded(pa.array(texts, pa.string()), type_)
        assert python_cells(here)[:5] == [INFINITY, NEGATIVE_INFINITY, INFINITY, None, None]
        assert faults.keys() == {3, 4}
        assert python_cells(there.column(n).cast(here.type)) == python_cells(here)


def test_every_text_decodes_so_in_this_process() -> None:
    wrong = []
    for type_ in dict.fromkeys(type_ for type_, _, _ in CASES):
        cases = [(text, expected) for other, text, expected in CASES if other == type_]
        values, faults = decoded(pa.array([text for text, _ in cases], pa.string()), type_)
        for i, (text, expected) in enumerate(cases):
            value = values[i].as_py()
            is_error = isinstance(expected, str) and (type_.kind not in TEXTS or expected[:5] in ("22001", "22P02"))
            if isinstance(value, dict):
                value = tuple(value.values())
            shown = repr if isinstance(value, float) else lambda one: one
            same = value is None and faults.get(i) == expected if is_error else shown(value) == shown(expected)
            if not same or (is_error or i in faults) != is_error:
                wrong.append(f"{type_} {text!r}: {value!r} {faults.get(i)!r} instead of {expected!r}")
    assert not wrong, "\n".join(wrong)


#: Texts that most columns hold, and what is put into them.
_SOUND: list[tuple[ScalarType, list[str]]] = [
    (BOOL, ["true", "f", "YES", "off", "1"]),
    (INT2, ["0", "-32768", "+7", "32767"]),
    (INT4, ["12", "-2147483648", " 3 "]),
    (INT8, ["9223372036854775807", "-1", "0009"]),
    (MZ_TIMESTAMP, ["1385856000000", "+5"]),
    (FLOAT4, ["1.5", "3.4028235e38", "1e-45", "-0", "16777217", "inf"]),
    (FLOAT8, ["1.5", "1.7976931348623157e308", "5e-324", "0.1", "-.5e1", "NaN"]),
    (numeric(2), ["1.005", "-12", "99999999999999999999999999999999999.994", ".5e3", "0e9"]),
    (numeric(38), ["0.5", "1", "0.99999999999999999999999999999999999999"]),
    (VARCHAR3, ["abc", "ab ", "abc  "]),
    (CHAR3, ["a  ", "abc", "ab"]),
    (UUID, ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}"]),
    (BYTEA, ["\\x00ff", "\\x", "a\\\\b\\377é", "plain"]),
    (DATE, ["2013-01-31", "2012-2-29", "0001-01-01", "9999-12-31"]),
    (TIMESTAMP, ["2013-01-31 05:15:00.25", "2013-1-3T5:15", "2013-01-31", "2013-01-01 10:00:00.9999995 +05:30"]),
    (TIMESTAMPTZ, ["2013-01-31T05:15:00Z", "2013-01-31 05:15:00.5-0830", "2013-01-31 05:15 +5", "2013-01-31"]),
    (TIME, ["10:00", "1:2:3.5", "24:00"]),
    (INTERVAL, ["1 mon -2 days 03:04:05.6", "P1DT2H", "3 hours"]),
    (JSONB, ['{"a": [1.50, null], "b": "\\u00e9"}', "1e2", '"x"', "[]"]),
]


def _texts(rng: random.Random, sound: list[str], count: int) -> list[str]:
    """Returns texts, some of them damaged; none that a line cannot hold."""
    found = [*sound]
    while len(found) < count:
        text = mutated(rng, rng.choice(sound).encode()).decode("utf-8", "ignore")
        if "\0" not in text:
            found.append(text)
    return found


def test_damaged_texts_decode_alike_by_spark_and_in_this_process(spark: SparkSession) -> None:
    ensure_exact(spark)
    rng, count = random.Random(7), 400
    columns = [_texts(rng, sound, count) for _, sound in _SOUND]
    frame = spark.createDataFrame(
        list(zip(range(count), *columns, strict=True)),
        ", ".join(["i int", *(f"t{n} string" for n in range(len(_SOUND)))]),
    )
    values = [decode(F.col(f"t{n}"), type_).alias(f"v{n}") for n, (type_, _) in enumerate(_SOUND)]
    decoded_too = frame.select("*", *values)
    faults = [
        F.when(F.col(f"v{n}").isNull(), why_not(F.col(f"t{n}"), type_)).alias(f"e{n}")
        for n, (type_, _) in enumerate(_SOUND)
    ]
    found = decoded_too.select("i", *(f"v{n}" for n in range(len(_SOUND))), *faults).orderBy("i").toArrow()
    wrong, refused = [], 0
    for n, (type_, _) in enumerate(_SOUND):
        by_us, why = decoded(pa.array(columns[n], pa.string()), type_)
        by_spark = python_cells(found.column(f"v{n}").cast(by_us.type))
        for i, (text, ours, theirs) in enumerate(zip(columns[n], python_cells(by_us), by_spark, strict=True)):
            fault = found.column(f"e{n}")[i].as_py()
            refused += fault is not None
            if (repr(ours), why.get(i)) != (repr(theirs), fault):
                wrong.append(f"{type_} {text!r}: {ours!r} {why.get(i)!r} instead of Spark's {theirs!r} {fault!r}")
    assert not wrong, "\n".join(wrong)
    assert 0.2 < refused / (count * len(_SOUND)) < 0.8
