"""Reading bound files: every format, every way in which a row can be wrong, and the order of records."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.catalog import BoundFile
from mz_dagster.scalars.types import (
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Column,
    Kind,
    ScalarType,
    numeric,
)
from mz_dagster.storage.source import BoundFileChanged, FileSource, SourceUnreadable
from mz_dagster.storage.source.folder import InFolder
from tests.source.landing import bind, drop, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYED = (Column("k", INT4, nullable=False), Column("v", TEXT), Column("n", numeric(2), nullable=False))

#: A line, and its record: deleted, error (without the place), k, v, n.
UPSERT_LINES: list[tuple[str | bytes, tuple[Any, ...] | None]] = [
    ('{"key": {"k": 1}, "value": {"v": "a", "n": 1.005, "unknown": []}}', (False, None, 1, "a", Decimal("1.01"))),
    ('{"value":{"n":"7","v":12.500},"key":{"k":"2"}}\r', (False, None, 2, "12.500", Decimal("7.00"))),
    ('{"key":{"k":3},"value":null}', (True, None, 3, None, None)),
    ("", None),
    (" \t ", None),
    ('{"key":null,"value":null}', (True, None, None, None, None)),
    ('{"key":{"k":4},"value":{"v":"x"}}', (False, '23502 null value in column "n" violates not-null constraint|n', 4)),
    ('{"key":{"k":4},"value":{"n":"x"}}', (False, '22P02 invalid input syntax for type numeric: "x"|n', 4)),
    ('{"key":{"k":4}}', (False, '22P02 record has no member "value"', 4)),
    ('{"key":{"k":4},"value":7}', (False, '22P02 member "value" is not an object', 4)),
    ('{"key":{"k":4},"value":"{}"}', (False, '22P02 member "value" is not an object', 4)),
    ('{"key":{"k":4},"value":[]}', (False, '22P02 member "value" is not an object', 4)),
    ('{"key":{"k":"x"},"value":null}', (False, '22P02 invalid input syntax for type integer: "x"|k', None)),
    ('{"key":{"k":5.0},"value":null}', (False, '22P02 invalid input syntax for type integer: "5.0"|k', None)),
    ('{"key":{},"value":null}', (False, '23502 null value in column "k" violates not-null constraint|k', None)),
    ('{"key":{"k":null},"value":{}}', (False, '23502 null value in column "k" violates not-null constraint|k', None)),
    ('{"key":null,"value":{"n":1}}', (False, "23502 null key", None)),
    ('{"value":{"n":1}}', (False, '22P02 record has no member "key"', None)),
    ('{"key":5,"value":{"n":1}}', (False, '22P02 member "key" is not an object', None)),
    ('{"key":[{"k":1}],"value":null}', (False, '22P02 member "key" is not an object', None)),
    *[
        (line, (False, f'22P02 invalid input syntax for type json: "{line}"', None))
        for line in (
            '{"key":{"k":1},"value":null} junk',
            '{"key":{"k":1},"value":null}{"key":{"k":2},"value":null}',
            '{"key":{"k":1},"value":null},{"key":{"k":2},"value":null}',
            '{"key":{"k":1},"value":null}] junk',
            '{"key":{"k":1},"value":null}}',
            '[{"key":{"k":1},"value":null}]',
            "{'key':{'k':1},'value':null}",
            '{"key":{"k":01},"value":null}',
            '{"key":{"k":1.},"value":null}',
            '{"key":{"k":+1},"value":null}',
            '{"key":{"k":NaN},"value":null}',
            "null",
            "5",
            '"x"',
            "]",
        )
    ],
    (
        r'{"key":{"k":6},"value":{"v":"q\"1, 2\\\" \u00e9 3\\","n":-0.5e1}}',
        (False, None, 6, 'q"1, 2\\" é 3\\', Decimal("-5.00")),
    ),
    ('{"key":{"k":7},"value":{"v":{"z": [1, 2.50, "3"]},"n":0}}',
     (False, None, 7, '{"z": [1, 2.50, "3"]}', Decimal(0))),
    ('{"key":{"k":8},"value":{"v":"null","n":123456789012345678901234567890.12}}',
     (False, None, 8, "null", Decimal("123456789012345678901234567890.12"))),
    ('{"key":{"k":9},"value":{"v":null,"n":1,"n":2}}', (False, None, 9, None, Decimal(2))),
    (b'{"key":{"k":10},"value":{"v":"\xff","n":1}}', (False, '22021 invalid byte sequence for encoding "UTF8"', None)),
    ('{"key":{"k":11},"val', (False, '22P02 invalid input syntax for type json: "{"key":{"k":11},"val"', None)),
]  # fmt: skip


def expected(path: str, row: int, record: tuple[Any, ...], unit: str = "line") -> tuple[Any, ...]:
    """Returns a record as `records` does; a short one has NULLs at its end."""
    deleted, error, *data = record
    if error is not None:
        text, _, column = error.partition("|")
        error = f'{text} (file "{path}", {unit} {row}' + (f', column "{column}")' if column else ")")
    return (path, row, deleted, error, *data, *[None] * (3 - len(data)))


def test_every_kind_of_upsert_line(spark: SparkSession, tmp_path: Path) -> None:
    content = b"\n".join(line.encode() if isinstance(line, str) else line for line, _ in UPSERT_LINES)
    name = "odd [1] é+%20{x}#?.jsonl"
    files = {5: [drop(tmp_path / "a b", name, b"\xef\xbb\xbf" + content)], 7: [drop(tmp_path / "a b", "empty", "")]}
    source = FileSource(InFolder(tmp_path / "a b"), "*", "json", KEYED, ("k",), "upsert")
    wanted = [(5, *expected(name, i, record)) for i, (_, record) in enumerate(UPSERT_LINES, 1) if record is not None]
    found = records(spark, source, bind(files))
    assert found == wanted


def test_rows_of_the_envelope_none(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        '{"k": 1, "v": "a", "n": 1}',
        '{"v": "a", "n": 1}',
        '{"k": 1, "v": "a", "n": "x"}',
        "{}",
        '{"k": 1, "n": 1, "v": "\\uD834\\uDD1E"}',
        '[{"k": 1, "n": 1}]',
    ]
    source = FileSource(InFolder(tmp_path), "*", "json", KEYED)
    violated = '23502 null value in column "{0}" violates not-null constraint|{0}'
    wanted = [
        (False, None, 1, "a", Decimal(1)),
        (False, violated.format("k")),
        (False, '22P02 invalid input syntax for type numeric: "x"|n'),
        (False, violated.format("k")),
        (False, None, 1, "\U0001d11e", Decimal(1)),
        (False, f'22P02 invalid input syntax for type json: "{lines[-1]}"'),
    ]
    found = records(spark, source, bind({1: [drop(tmp_path, "a", "\n".join(lines) + "\n")]}))
    assert found == [(1, *expected("a", i, record)) for i, record in enumerate(wanted, 1)]


CSV_LINES: list[tuple[str | bytes, tuple[Any, ...] | None]] = [
    ("k,v,n", None),
    ("1,a,1.5", (False, None, 1, "a", Decimal("1.5"))),
    ('2,"x, ""y""\t",1\r', (False, None, 2, 'x, "y"\t', Decimal(1))),
    ('"3","",1', (False, None, 3, "", Decimal(1))),
    ("4,,1", (False, None, 4, None, Decimal(1))),
    ('5,"""",1', (False, None, 5, '"', Decimal(1))),
    ("", None),
    ("\r", None),
    ("k,v,n", (False, '22P02 invalid input syntax for type integer: "k"|k', None)),
    (" 6 , b ,1", (False, None, 6, " b ", Decimal(1))),
    ("7,a", (False, '22P04 missing data for column "n"', None)),
    ("7", (False, '22P04 missing data for column "v"', None)),
    ("8,a,1,", (False, "22P04 extra data after last expected column", None)),
    ('9,"a,1', (False, "22P04 unterminated CSV quoted field", None)),
    ('9,a"b",1', (False, "22P04 quote within an unquoted CSV field, or text after a quoted one", None)),
    ('9,"a"b,1', (False, "22P04 quote within an unquoted CSV field, or text after a quoted one", None)),
    ('9,"a"b"c",1', (False, "22P04 quote within an unquoted CSV field, or text after a quoted one", None)),
    (",a,1", (False, '23502 null value in column "k" violates not-null constraint|k', None)),
    ("10,a,", (False, '23502 null value in column "n" violates not-null constraint|n', 10)),
    (",,", (True, None, None, None, None)),
    (b"11,\xff,1", (False, '22021 invalid byte sequence for encoding "UTF8"', None)),
    ("12,a,1.5e", (False, '22P02 invalid input syntax for type numeric: "1.5e"|n', 12)),
]


def test_every_kind_of_csv_line_and_headers_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    content = b"\n".join(line.encode() if isinstance(line, str) else line for line, _ in CSV_LINES)
    files = {
        5: [drop(tmp_path, "a.csv", content), drop(tmp_path, "b.csv", '\ufeffn,k,"v"\r\n1,20,x\r\n')],
        6: [drop(tmp_path, "c.csv", "k,v,n\n21,y,2\n"), drop(tmp_path, "d.csv", "")],
    }
    source = FileSource(InFolder(tmp_path), "*.csv", "csv", KEYED, ("k",), "upsert")
    wanted = [(5, *expected("a.csv", i, record)) for i, (_, record) in enumerate(CSV_LINES, 1) if record is not None]
    wanted.append((5, "b.csv", 2, False, None, 20, "x", Decimal(1)))
    wanted.append((6, "c.csv", 2, False, None, 21, "y", Decimal(2)))
    assert records(spark, source, bind(files)) == wanted


def test_parquet_rows_of_several_schemas(spark: SparkSession, tmp_path: Path) -> None:
    columns = (
        Column("k", INT2, nullable=False),
        Column("v", TEXT),
        Column("at", TIMESTAMP),
        Column("x", FLOAT8, nullable=False),
        Column("n", numeric(2)),
    )
    at = dt.datetime(2013, 3, 10, 2, 30)

    def write(path: str, rows: list[tuple[Any, ...]], types: list[Any]) -> BoundFile:
        names = [column.name for column in columns]
        arrays = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
        table = pa.table(dict(zip(names, arrays, strict=True))).select(list(reversed(names)))
        pq.write_table(table, tmp_path / path, row_group_size=2)
        return drop(tmp_path, path, (tmp_path / path).read_bytes())

    wide = [pa.int64(), pa.large_string(), pa.timestamp("us"), pa.float32(), pa.decimal128(38, 3)]
    narrow = [pa.int8(), pa.dictionary(pa.int8(), pa.string()), pa.timestamp("ms"), pa.int32(), pa.int64()]
    viewed = [pa.int16(), pa.string_view(), pa.timestamp("ms"), pa.float64(), pa.int32()]
    files = [
        write("a é.parquet", [(1, "a", at, 0.5, Decimal("1.005")), (40000, "b", at, 1.5, None),
                              (2, None, None, None, None), (3, "c", None, 2.5, Decimal("-0.005")),
                              (None, None, None, None, None), (None, "d", None, 1.0, None)], wide),
        write("b.parquet", [(4, "e", at, 3, 7)], narrow),
        write("c.parquet", [(5, "f, longer than a view holds", at, 0.1, 8)], viewed),
    ]  # fmt: skip
    source = FileSource(InFolder(tmp_path), "*.parquet", "parquet", columns, ("k",), "upsert")
    assert list(source.poll({})) == files
    violated = (
        '23502 null value in column "{0}" violates not-null constraint (file "a é.parquet", row {1}, column "{0}")'
    )
    place = ' (file "a é.parquet", row 2, column "k")'
    nothing = (None,) * 4
    assert records(spark, source, bind({5: files[:1], 6: files[1:]})) == [
        (5, "a é.parquet", 1, False, None, 1, "a", at, 0.5, Decimal("1.01")),
        (5, "a é.parquet", 2, False, f"22003 smallint out of range{place}", None, *nothing),
        (5, "a é.parquet", 3, False, violated.format("x", 3), 2, *nothing),
        (5, "a é.parquet", 4, False, None, 3, "c", None, 2.5, Decimal("-0.01")),
        (5, "a é.parquet", 5, True, None, None, *nothing),
        (5, "a é.parquet", 6, False, violated.format("k", 6), None, *nothing),
        (6, "b.parquet", 1, False, None, 4, "e", at, 3.0, Decimal(7)),
        (6, "c.parquet", 1, False, None, 5, "f, longer than a view holds", at, 0.1, Decimal(8)),
    ]  # fmt: skip


def test_parquet_strings_become_those_of_the_column(spark: SparkSession, tmp_path: Path) -> None:
    columns = (
        Column("v", ScalarType(Kind.VARCHAR, length=3)),
        Column("c", ScalarType(Kind.CHAR, length=3), nullable=False),
        Column("u", UUID),
        Column("b", BYTEA),
    )
    table = {
        "v": pa.array(["ab ", "abc  ", None, "abcd"], pa.string()),
        "c": pa.array(["ab ", "a", "abc", "d"], pa.large_string()),
        "u": pa.array(["A0EEBC999C0B4EF8BB6D6BB9BD380A11", None, "x", None]),
        "b": pa.array([b"\x00\xff", b"", None, None], pa.binary()),
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    file = drop(tmp_path, "a.parquet", (tmp_path / "a.parquet").read_bytes())
    source = FileSource(InFolder(tmp_path), "*.parquet", "parquet", columns)
    found = records(spark, source, bind({5: [file]}))
    place = ' (file "a.parquet", row {0}, column "{1}")'
    nothing = (None,) * 4
    assert [row[4:] for row in found] == [
        (None, "ab ", "ab", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", b"\x00\xff"),
        (None, "abc", "a", None, b""),
        ('22P02 invalid input syntax for type uuid: "x"' + place.format(3, "u"), *nothing),
        ("22001 value too long for type character varying(3)" + place.format(4, "v"), *nothing),
    ]


@pytest.mark.parametrize(("many", "block"), [(8_000, "32k"), pytest.param(20_000, "64k", marks=pytest.mark.deep)])
def test_order_and_line_numbers_hold_in_split_files(spark: SparkSession, tmp_path: Path, many: int, block: str) -> None:
    """Files that Spark cuts into many blocks, packed with many others into partitions."""
    rng, n, wanted = random.Random(3), 0, []
    files: dict[int, list[BoundFile]] = {}
    for tick in (1, 2):
        files[tick] = []
        for name in ["big", *[f"{i:02d} small" for i in range(12)]]:
            lines = []
            for _ in range(many if name == "big" else rng.randrange(40)):
                n += 1
                lines.append(json.dumps({"i": n, "pad": "é" * rng.randrange(30)}, ensure_ascii=False))
            path = f"{tick} {name}"
            files[tick].append(drop(tmp_path, path, "\n".join(lines)))
            wanted += [(tick, path, i, n - len(lines) + i) for i in range(1, len(lines) + 1)]
    source = FileSource(InFolder(tmp_path), "*", "json", (Column("i", INT8), Column("pad", TEXT)))
    setting = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(setting)
    spark.conf.set(setting, block)
    try:
        frame = source.read(spark, bind(files))
        rows = frame.orderBy("mz_timestamp", "mz_path", "mz_block", "mz_row").collect()
    finally:
        spark.conf.set(setting, str(before))
    assert len({row["mz_block"] for row in rows}) > 10, "nothing was split"
    assert [(row["mz_timestamp"], row["mz_path"], row["mz_row"], row["i"]) for row in rows] == sorted(wanted)
    here = source.read_here(bind(files)).select(["mz_timestamp", "mz_path", "mz_row", "i"]).to_pylist()
    assert [tuple(row.values()) for row in here] == sorted(wanted)


def test_timestamps_with_zone_do_not_depend_on_this_machine(spark: SparkSession, tmp_path: Path) -> None:
    source = FileSource(InFolder(tmp_path), "*", "json", (Column("at", TIMESTAMPTZ),))
    file = drop(tmp_path, "a", '{"at": "2013-11-03T01:30:00-04:00"}')
    row = source.read(spark, bind({1: [file]})).selectExpr("unix_micros(at) AS micros").collect()[0]
    assert row["micros"] == int(dt.datetime(2013, 11, 3, 5, 30, tzinfo=dt.UTC).timestamp()) * 1_000_000


def test_changed_bound_file_is_an_error_before_anything_is_read(spark: SparkSession, tmp_path: Path) -> None:
    source = FileSource(InFolder(tmp_path), "*", "json", (Column("i", INT8),))
    bindings = bind({1: [drop(tmp_path, "a", '{"i": 1}')], 2: [drop(tmp_path, "b", '{"i": 2}')]})
    for read in (source.read_here, partial(source.read, spark)):
        drop(tmp_path, "b", '{"i": 3}')
        with pytest.raises(BoundFileChanged, match='"b"') as caught:
            read(bindings)
        assert str(caught.value.detail).startswith("Its SHA-256 was ")
        (tmp_path / "b").unlink()
        with pytest.raises(BoundFileChanged, match="is gone"):
            read(bindings)
    drop(tmp_path, "b", '{"i": 2}')
    assert [row[-1] for row in records(spark, source, bindings)] == [1, 2]


def test_bound_parquet_file_that_is_none_is_named(spark: SparkSession, tmp_path: Path) -> None:
    source = FileSource(InFolder(tmp_path), "*", "parquet", (Column("i", INT8),))
    with pytest.raises(SourceUnreadable, match=r'"a\.parquet"'):
        source.read(spark, bind({1: [drop(tmp_path, "a.parquet", "text")]}))
    with pytest.raises(SourceUnreadable, match=r'"a\.parquet"'):
        source.read_here(bind({1: [drop(tmp_path, "a.parquet", "text")]}))


def test_no_files_make_no_records(spark: SparkSession, tmp_path: Path) -> None:
    source = FileSource(InFolder(tmp_path), "*", "json", KEYED, ("k",), "upsert")
    empty = source.read(spark, bind({1: [], 2: [drop(tmp_path, "a", "")]}))
    full = source.read(spark, bind({1: [drop(tmp_path, "b", "x")]}))
    assert [(f.name, f.dataType) for f in empty.schema] == [(f.name, f.dataType) for f in full.schema]
    assert empty.collect() == []


def test_moments_of_parquet_are_of_the_years_that_sql_has(spark: SparkSession, tmp_path: Path) -> None:
    columns = (Column("d", DATE), Column("t", TIMESTAMP))
    days, micros = [2_932_896, 2_932_897, -719_163, 0], [0, 0, 0, 253_402_300_800_000_000]
    pq.write_table(
        pa.table({"d": pa.array(days, pa.int32()).cast(pa.date32()), "t": pa.array(micros, pa.timestamp("us"))}),
        tmp_path / "f",
    )
    source = FileSource(InFolder(tmp_path), "f", "parquet", columns)
    found = records(spark, source, bind({1: [drop(tmp_path, "f", (tmp_path / "f").read_bytes())]}))
    place = '22008 {0} out of range (file "f", row {1}, column "{2}")'
    assert [row[4] for row in found] == [
        None,
        place.format("date", 2, "d"),
        place.format("date", 3, "d"),
        place.format("timestamp", 4, "t"),
    ]
