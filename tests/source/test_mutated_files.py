"""Damaged files of every format through every type: each bad record is an error with its place, and no run fails.

Many files of a format are read as one run, whatever is in lines. What no file of the format can be, a poll refuses and
names; it is not bound, and once it is replaced, the next poll takes it. A good file behind the damaged ones gives its
rows. Of Parquet there is a rest: headers of pages that Arrow reads and Spark does not. A run over such a file fails,
says which file it is, and goes on in this process.
"""

from __future__ import annotations

import datetime as dt
import io
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.compute.algebra.frame import ensure_exact
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
    Column,
    Kind,
    ScalarType,
    numeric,
)
from mz_dagster.storage.source import FileSource, SourceUnreadable
from mz_dagster.storage.source.files import Format
from mz_dagster.storage.source.folder import InFolder
from mz_dagster.storage.source.json_record import form_of, reader
from mz_dagster.storage.source.unreadable_files import named_if_unreadable
from tests.source.landing import bind, records
from tests.source.mutations import mutated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Each type with a text that it reads, and the value that Parquet holds; None if no column of Parquet is of the type.
CELLS: list[tuple[str, ScalarType, str, pa.Scalar | None]] = [
    ("k", INT4, "7", pa.scalar(7, pa.int32())),
    ("bo", BOOL, "true", pa.scalar(True)),
    ("i2", INT2, "-32768", pa.scalar(-5, pa.int16())),
    ("i8", INT8, "9223372036854775807", pa.scalar(1 << 40, pa.int64())),
    ("f4", FLOAT4, "1.5e10", pa.scalar(1.5, pa.float32())),
    ("f8", FLOAT8, "-1e-300", pa.scalar(0.1)),
    ("n", numeric(2), "12345.675", pa.scalar(Decimal("1.50"), pa.decimal128(38, 2))),
    ("t", TEXT, "text é, \U0001f600", pa.scalar("text é \U0001f600")),
    ("v", ScalarType(Kind.VARCHAR, length=8), "varchar", pa.scalar("varchar")),
    ("c", ScalarType(Kind.CHAR, length=4), "ab", pa.scalar("ab")),
    ("u", UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", pa.scalar("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("by", BYTEA, "\\x00ff", pa.scalar(b"\x00\xff")),
    ("d", DATE, "2013-01-31", pa.scalar(dt.date(2013, 1, 31))),
    ("ti", TIME, "12:30:59.5", None),
    ("ts", TIMESTAMP, "2013-01-31 05:15:00.25", pa.scalar(dt.datetime(2013, 1, 31, 5), pa.timestamp("us"))),
    ("tz", TIMESTAMPTZ, "2013-01-31T05:15:00+05:30",
     pa.scalar(dt.datetime(2013, 1, 31, 5, tzinfo=dt.UTC), pa.timestamp("us", "UTC"))),
    ("iv", INTERVAL, "1 mon -2 days 03:04:05.6", None),
    ("j", JSONB, '{"a": [1, "\\u00e9", null]}', pa.scalar('{"a": [1.50, null]}')),
    ("mz", MZ_TIMESTAMP, "1385856000000", pa.scalar(1385856000000)),
]  # fmt: skip
PLACED = re.compile(r'^[0-9A-Z]{5} .+ \(file "[^"]+", (line|row) [0-9]+(, column "[a-z0-9]+")?\)$', re.DOTALL)
ROWS = 4


def columns_of(format_: Format) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_, _, cell in CELLS if format_ != "parquet" or cell is not None)


def json_file(upsert: bool) -> bytes:
    def member(name: str, text: str) -> str:
        return f'"{name}": {text}' if name in ("k", "j", "f8") else f'"{name}": "{text}"'.replace("\\x", "\\\\x")

    key, *others = [member(name, text) for name, _, text, _ in CELLS]
    line = f'{{"key": {{{key}}}, "value": {{{", ".join(others)}}}}}' if upsert else f"{{{', '.join((key, *others))}}}"
    return f"{line}\n".encode() * ROWS


def csv_file() -> bytes:
    header = ",".join(name for name, *_ in CELLS)
    line = ",".join('"' + text.replace('"', '""') + '"' if "," in text else text for _, _, text, _ in CELLS)
    return (header + "\n" + f"{line}\n" * ROWS).encode()


def parquet_file(rng: random.Random) -> bytes:
    known = [(name, cell) for name, _, _, cell in CELLS if cell is not None]
    table = pa.table({name: pa.array([cell.as_py()] * ROWS, cell.type) for name, cell in known})
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=rng.random() < 0.5, compression=rng.choice(["none", "snappy"]))
    return sink.getvalue()


def flipped(rng: random.Random, data: bytes) -> bytes:
    """Returns bytes of a binary format with a few flipped anywhere, or without its end, its beginning or its middle."""
    kind, at = rng.randrange(8), rng.randrange(len(data))
    if kind < 5:
        found = bytearray(data)
        for _ in range(rng.choice((1, 1, 3))):
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
        return bytes(found)
    return (data[:at], data[at:], data[:at] + data[at + rng.randrange(64) :])[kind - 5]


def damaged(format_: Format, rng: random.Random, *, upsert: bool) -> bytes:
    match format_:
        case "json":
            return mutated(rng, json_file(upsert))
        case "csv":
            header, _, lines = csv_file().partition(b"\n")
            return header + b"\n" + mutated(rng, lines) if rng.random() < 0.9 else mutated(rng, header + b"\n" + lines)
        case "parquet":
            return flipped(rng, parquet_file(rng))
        case "avro" | "orc":
            raise ValueError(f"tests/source/test_{format_}.py damages it")


def good(format_: Format, *, upsert: bool) -> bytes:
    match format_:
        case "json":
            return json_file(upsert)
        case "csv":
            return csv_file()
        case "parquet":
            return parquet_file(random.Random(0))
        case "avro" | "orc":
            raise ValueError(f"tests/source/test_{format_}.py damages it")


def run(
    spark: SparkSession, folder: Path, format_: Format, rng: random.Random, files: int, *, upsert: bool
) -> Iterator[str]:
    """Lands damaged files and a good one, polls until all that is left can be bound, reads; yields what came out."""
    folder.mkdir()
    key, envelope = (("k",), "upsert") if upsert else (None, "none")
    source = FileSource(InFolder(folder), "*", format_, columns_of(format_), key, envelope)  # type: ignore[arg-type]
    for i in range(files):
        (folder / f"{i}").write_bytes(damaged(format_, rng, upsert=upsert))
    (folder / "good").write_bytes(good(format_, upsert=upsert))
    refused = 0
    while True:
        try:
            found = source.poll({})
            break
        except SourceUnreadable as refusal:
            unreadable = refusal
        named = re.search(r'file "([^"]+)"', unreadable.message)
        assert named, unreadable
        assert unreadable.detail, unreadable
        (folder / named[1]).unlink()
        refused += 1
        yield "refused"
    assert len(found) == files + 1 - refused, "a file was refused that the error does not name"
    while True:
        bindings = bind({1: found})
        try:
            with named_if_unreadable(spark, source, bindings):
                rows = records(spark, source, bindings)
            break
        except SourceUnreadable as failure:
            unreadable = failure
        named = re.search(r'file "([^"]+)"', unreadable.message)
        assert named, unreadable
        assert format_ == "parquet", "a line fails no run"
        (unread,) = (file for file in found if file.path == named[1])
        assert source.read_here(bind({1: [unread]})).num_rows == ROWS, "the way back"
        found = tuple(file for file in found if file is not unread)
        yield "unread"
    for _, _, _, deleted, error, *data in rows:
        assert error is None or PLACED.match(error), error
        yield "error" if error else "deleted" if deleted else "row"
        assert not error or all(one is None for one in data[upsert:]), "of a bad record no data is kept"
    fine = [row for row in rows if row[1] == "good"]
    assert len(fine) == ROWS
    assert all(error is None for _, _, _, _, error, *_ in fine), fine


def shown(spark: SparkSession, tmp_path: Path, format_: Format, runs: int, files: int, seed: int) -> None:
    ensure_exact(spark)
    rng, seen = random.Random(seed), Counter[str]()
    for i in range(runs):
        seen.update(run(spark, tmp_path / f"{i}", format_, rng, files, upsert=bool(i % 2)))
    assert ({"error", "row"} if format_ != "parquet" else {"refused", "row"}) <= set(seen)
    assert seen["unread"] <= runs * files // 25, seen


FORMATS: list[Format] = ["json", "csv", "parquet"]


@pytest.mark.parametrize(
    ("format_", "runs"),
    [("json", 1), *(pytest.param(one, 2, marks=pytest.mark.deep) for one in ("json", "parquet", "csv"))],
)
def test_a_damaged_file_fails_no_run(spark: SparkSession, tmp_path: Path, format_: Format, runs: int) -> None:
    """A second run is of upserts."""
    shown(spark, tmp_path, format_, runs, 6, seed=1)


@pytest.mark.deep
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("format_", FORMATS)
def test_ten_thousand_damaged_files_fail_no_run(spark: SparkSession, tmp_path: Path, format_: Format) -> None:
    shown(spark, tmp_path, format_, 14, 250, seed=2)


def test_a_poll_refuses_a_damaged_parquet_file_by_name(tmp_path: Path) -> None:
    rng = random.Random(4)
    refused = 0
    for i in range(200):
        (tmp_path / "file").write_bytes(flipped(rng, parquet_file(rng)))
        try:
            found = FileSource(InFolder(tmp_path), "*", "parquet", columns_of("parquet")).poll({})
        except SourceUnreadable as refusal:
            refused += '"file"' in refusal.message
        else:
            assert len(found) == 1, i
    assert refused > 60


@pytest.mark.deep
def test_thousands_of_damaged_lines_are_read_in_python(tmp_path: Path) -> None:
    """What Spark's workers do with a line, without Spark: it raises nothing, and says nothing that no text holds."""
    rng = random.Random(3)
    names = [name for name, *_ in CELLS]
    forms = [form_of(type_) for _, type_, *_ in CELLS]
    readers: list[tuple[bool, Callable[[str], tuple[object, ...]]]] = [
        (False, reader(names, forms, None)),
        (True, reader(names, forms, ["k"])),
    ]
    errors = 0
    for i in range(4_000):
        upsert, read = readers[i % 2]
        for line in mutated(rng, json_file(upsert)).decode("utf-8", "replace").split("\n"):
            malformed, fault, _, _, cells, _, _ = read(line)
            errors += malformed is not None or fault is not None
            assert malformed is not None or (isinstance(cells, list) and len(cells) == len(names))
            for text in (malformed, fault, *(cells if isinstance(cells, list) else ())):
                if text is not None:
                    str(text).encode("utf-8")  # raises for what no text holds
    assert errors > 1_000
