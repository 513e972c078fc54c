"""The hash of keys in process is Spark's own, over random keys of every type that it takes: files depend on it."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as sf
from xxhash import xxh64_intdigest

from mz_dagster.functions.plain import to_plain
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
    JSON,
    JSONB,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNCONSTRAINED,
    Column,
    Enumeration,
    Kind,
    ScalarType,
    array_of,
    dimensioned,
    numeric,
    record_of,
)
from mz_dagster.scalars.types import UUID as UUID_TYPE
from mz_dagster.scalars.values import Dimensioned, Interval, ZonedTime
from mz_dagster.storage import update_table
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.key_hash import key_hash, key_hashes, unscaled
from mz_dagster.storage.spark.hashing import hash_modulo
from mz_dagster.storage.spark_shards import update_schema
from mz_dagster.storage.xxh64 import of_integers, of_least_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 400
_MODULUS = 2**40
_DICE = random.Random(11)


def _integer(bits: int) -> int:
    """Returns a number of any length up to `bits`, often one at the edge of how many bytes it takes."""
    size = _DICE.randrange(bits)
    return _DICE.choice([-1, 1]) * (2**size - _DICE.randrange(2)) if _DICE.random() < 0.5 else _DICE.getrandbits(size)


def _text() -> str:
    return "".join(_DICE.choice("aZ 0\n'éß漢😀") for _ in range(_DICE.randrange(80)))


def _moment() -> datetime:
    edges = [
        datetime(1, 1, 2),
        datetime(1582, 10, 10),
        datetime(1970, 1, 1),
        datetime(9999, 12, 30, 23, 59, 59, 999999),
    ]
    return _DICE.choice(edges) if _DICE.random() < 0.1 else datetime(1900, 1, 1) + timedelta(microseconds=_integer(52))


def _numeric(scale: int) -> Decimal:
    digits = max(-(10**38) + 1, min(10**38 - 1, _integer(127)))
    sign, figures, _ = Decimal(digits).as_tuple()
    return Decimal((sign, figures, -scale))


def _interval() -> Interval:
    return Interval(_integer(31), _integer(31), _integer(63))


RECORD = record_of([("t", TEXT), ("x", FLOAT4), ("l", array_of(INT4)), ("d", DATE)])
_DRAWN: dict[ScalarType, Any] = {
    BOOL: lambda: _DICE.random() < 0.5,
    INT2: lambda: _integer(15),
    INT4: lambda: _integer(31),
    INT8: lambda: _integer(63),
    MZ_TIMESTAMP: lambda: _integer(63),
    DATE: lambda: _moment().date(),
    TIME: lambda: time(_DICE.randrange(24), _DICE.randrange(60), _DICE.randrange(60), _DICE.randrange(10**6)),
    TIMETZ: lambda: ZonedTime(_DICE.randrange(86_400 * 10**6), _DICE.randrange(-57_599, 57_600)),
    TIMESTAMP: _moment,
    TIMESTAMPTZ: lambda: _moment().replace(tzinfo=UTC),
    TEXT: _text,
    ScalarType(Kind.VARCHAR, length=90): _text,
    ScalarType(Kind.CHAR, length=90): lambda: _text().ljust(90),
    UUID_TYPE: lambda: UUID(int=_DICE.getrandbits(128)),
    BYTEA: lambda: _DICE.randbytes(_DICE.randrange(80)),
    UNCONSTRAINED: lambda: f"{_numeric(2):f}",
    numeric(0): lambda: _numeric(0),
    numeric(2): lambda: _numeric(2),
    numeric(38): lambda: _numeric(38),
    FLOAT4: lambda: _DICE.choice([0.0, -0.0, 1.5, -0.25, math.nan, math.inf, -math.inf]),
    FLOAT8: lambda: _DICE.choice([0.0, -0.0, 1e300, _DICE.random(), math.nan, math.inf, -math.inf]),
    INTERVAL: _interval,
    JSON: lambda: f'{{"a": {_DICE.randrange(9)}}}',
    JSONB: lambda: f'{{"a": {_DICE.randrange(9)}}}',
    ScalarType(Kind.ENUM, enumeration=Enumeration.of("mood", ["sad", "ok"])): lambda: _DICE.choice(["sad", "ok"]),
    array_of(FLOAT8): lambda: [_DICE.choice([None, 0.0, -0.0, math.nan, 2.5]) for _ in range(_DICE.randrange(4))],
    array_of(INTERVAL): lambda: [_interval() for _ in range(_DICE.randrange(3))],
    dimensioned(FLOAT8): lambda: Dimensioned(
        [_DICE.choice([None, 0.0, -0.0, math.nan, 2.5]) for _ in range(4)], (2, 2), (1, _DICE.randrange(2))
    ),
    RECORD: lambda: (_text(), _DICE.choice([None, -0.0]), [_DICE.choice([None, 1, 2])], _moment().date()),
}


def test_a_key_has_the_hash_that_spark_gives_it(spark: SparkSession) -> None:
    assert {one.kind for one in _DRAWN} == {*Kind}
    columns = [Column(f"k{i}", type_) for i, type_ in enumerate(_DRAWN)]
    rows = [[None if _DICE.random() < 0.1 else draw() for draw in _DRAWN.values()] for _ in range(_ROWS)]
    keys = [
        *([i] for i in range(len(columns))),
        *(_DICE.sample(range(len(columns)), _DICE.randrange(2, 6)) for _ in range(8)),
        [*range(len(columns))],
    ]
    stored = update_table(columns, [(row, n, 1) for n, row in enumerate(rows)])
    frame = spark.createDataFrame(stored, update_schema(columns))
    by_spark = [
        hash_modulo([sf.col(f"k{i}") for i in key], [columns[i].type for i in key], _MODULUS).alias(f"h{n}")
        for n, key in enumerate(keys)
    ]
    together = [
        key_hashes([stored.column(f"k{i}") for i in key], [columns[i].type for i in key]).tolist() for key in keys
    ]
    found = frame.select("mz_timestamp", *by_spark).collect()
    assert len(found) == _ROWS
    for number, *hashes in found:
        plain = [to_plain(cell, one.type) for cell, one in zip(rows[number], columns, strict=True)]
        for key, by_them, ours_together in zip(keys, hashes, together, strict=True):
            ours = key_hash([plain[i] for i in key], [columns[i].type for i in key])
            assert ours % _MODULUS == by_them, (key, rows[number])
            assert ours_together[number] == ours, (key, rows[number])


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38), st.integers(0, 5))
def test_a_numeric_is_stored_as_the_integer_that_it_is_at_its_scale(digits: int, scale: int, more: int) -> None:
    value = Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))
    assert unscaled(value, scale + more) == digits * 10**more
    fits = digits % 10 ** min(more, scale) == 0
    assert unscaled(value, scale - min(more, scale)) == (digits // 10 ** min(more, scale) if fits else None)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**17), 2**17), min_size=1), st.integers(0, 2**64 - 1))
def test_integers_have_the_hashes_of_their_bytes(values: list[int], seed: int) -> None:
    integers, seeds = np.array(values, np.int64), np.full(len(values), seed, np.uint64)
    assert of_integers(integers, 8, seeds).tolist() == [
        xxh64_intdigest(one.to_bytes(8, "little", signed=True), seed) for one in values
    ]
    shorts = [one >> 32 for one in values]
    assert of_integers(np.array(shorts, np.int64), 4, seeds).tolist() == [
        xxh64_intdigest(one.to_bytes(4, "little", signed=True), seed) for one in shorts
    ]
    assert of_least_bytes(integers, seeds).tolist() == [
        xxh64_intdigest(one.to_bytes((one if one >= 0 else ~one).bit_length() // 8 + 1, "big", signed=True), seed)
        for one in values
    ]


def test_a_part_of_a_column_has_the_hashes_of_its_cells() -> None:
    """Of numerics that fit in 64 bits, those that do not, and integers, NULLs among them."""
    for cells, type_ in (
        ([None, Decimal("1.5"), Decimal("-0.07"), None, Decimal(10**16)], numeric(2)),
        ([Decimal(7), None, Decimal(10**30), Decimal(-(10**19))], numeric(2)),
        ([5, None, -5, 0], INT4),
    ):
        whole = pa.array(cells, arrow_type(type_))
        parts = [key_hashes([pa.chunked_array([whole.slice(i, 2)])], [type_]).tolist() for i in range(len(cells) - 1)]
        assert parts == [[key_hash([one], [type_]) for one in cells[i : i + 2]] for i in range(len(cells) - 1)]
