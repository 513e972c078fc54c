"""The laws of formats, which every kind of file keeps in both engines, compressed or not.

A format registers itself below: how it writes rows of texts, or of values if it has types of its own.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Column,
    array_of,
    dimensioned,
    numeric,
)
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.source import FileSource, SourceUnreadable
from mz_dagster.storage.source.files import Format
from mz_dagster.storage.source.folder import InFolder
from tests.source.landing import bind, drop, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]
COLUMNS = tuple(
    Column(name, type_, nullable=name != "id")
    for name, type_ in {
        "id": INT4, "i2": INT2, "i8": INT8, "n": numeric(2), "f": FLOAT8, "t": TEXT, "b": BOOL, "d": DATE,
        "ts": TIMESTAMP, "tz": TIMESTAMPTZ, "u": UUID,
    }.items()
)  # fmt: skip
VALUES: Mapping[str, Sequence[Any]] = {
    "i2": [-32768, 32767, 0],
    "i8": [-(2**63), 2**63 - 1],
    "n": [Decimal("-0.01"), Decimal("123456789012345678901234567890.12"), Decimal("0.00")],
    "f": [1.5, -0.0, 1e300, float("nan"), float("-inf")],
    "t": ["", " a\tb ", 'quo"te, \\n', "é\u2028🦆", "null"],
    "b": [True, False],
    "d": [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)],
    "ts": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "tz": [datetime(2024, 1, 31, 12, 0, 0, 250000, tzinfo=ZoneInfo("UTC"))],
    "u": ["123e4567-e89b-12d3-a456-426614174000"],
}


#: A row of NULLs, and for each value of each type a row.
ROWS: Sequence[Row] = [
    {"id": number, **one}
    for number, one in enumerate([{}, *({name: value} for name, values in VALUES.items() for value in values)])
]


def text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def as_json(columns: Sequence[Column], some: Sequence[Row]) -> bytes:
    return "".join(json.dumps({one.name: text(row.get(one.name)) for one in columns}) + "\n" for row in some).encode()


def as_csv(columns: Sequence[Column], some: Sequence[Row]) -> bytes:
    def field(value: str | None) -> str:
        return "" if value is None else '"' + value.replace('"', '""') + '"'

    lines = [",".join(one.name for one in columns)]
    lines += [",".join(field(text(row.get(one.name))) for one in columns) for row in some]
    return "".join(f"{line}\n" for line in lines).encode()


def as_parquet(columns: Sequence[Column], some: Sequence[Row]) -> bytes:
    arrays = [pa.array([row.get(one.name) for row in some], arrow_type(one.type)) for one in columns]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, names=[one.name for one in columns]), sink, row_group_size=7)
    return bytes(sink.getvalue().to_pybytes())


#: What Avro calls the types of columns.
AVRO: Mapping[str, Any] = {
    "smallint": "int", "integer": "int", "bigint": "long", "double precision": "double", "text": "string",
    "boolean": "boolean", "numeric(38,2)": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2},
    "date": {"type": "int", "logicalType": "date"}, "uuid": {"type": "string", "logicalType": "uuid"},
    "timestamp": {"type": "long", "logicalType": "local-timestamp-micros"},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros"},
}  # fmt: skip


def as_avro(columns: Sequence[Column], some: Sequence[Row]) -> bytes:
    fields = [{"name": one.name, "type": ["null", AVRO[str(one.type)]]} for one in columns]
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    target = BytesIO()
    whole = [{one.name: row.get(one.name) for one in columns} for row in some]
    fastavro.writer(target, schema, whole, codec="deflate", sync_interval=1 << 20)
    return target.getvalue()


def as_orc(columns: Sequence[Column], some: Sequence[Row], codec: str = "zlib") -> bytes:
    target = BytesIO()
    arrays = [pa.array([row.get(one.name) for row in some], arrow_type(one.type)) for one in columns]
    orc.write_table(pa.Table.from_arrays(arrays, names=[one.name for one in columns]), target, compression=codec)
    return target.getvalue()


def packed(write: Callable[..., bytes], codec: str, columns: Sequence[Column], some: Sequence[Row]) -> bytes:
    content = write(columns, some)
    return gzip.compress(content) if codec == ".gz" else bytes(pa.Codec("zstd").compress(content, asbytes=True))


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Attributes:
        format: What SQL calls its format.
        write: Writes rows of columns.
        ending: Of its files' names.
        is_typed: Whether it has types of its own, so that a value is refused by its column's type.
        without: Columns of which values are refused with their file.
    """

    format: Format
    write: Callable[[Sequence[Column], Sequence[Row]], bytes]
    ending: str = ""
    is_typed: bool = False
    without: frozenset[str] = frozenset()

    @property
    def rows(self) -> Sequence[Row]:
        """`ROWS` that it has."""
        return [row for row in ROWS if not self.without & set(row)]

    def source(self, folder: Path, columns: Sequence[Column] = COLUMNS) -> FileSource:
        return FileSource(InFolder(folder), "f*", self.format, tuple(columns), spool=folder.parent / "copies")


FORMATS = {
    "json": Kind("json", as_json),
    "json.gz": Kind("json", partial(packed, as_json, ".gz"), ".gz"),
    "csv": Kind("csv", as_csv),
    "csv.zst": Kind("csv", partial(packed, as_csv, ".zst"), ".zst"),
    "parquet": Kind("parquet", as_parquet, is_typed=True),
    "avro": Kind("avro", as_avro, is_typed=True),
    "orc": Kind("orc", as_orc, is_typed=True, without=frozenset({"ts"})),  # no year 1, see test_orc.py
}


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return FORMATS[request.param]


def read(source: FileSource) -> Iterator[dict[str, Any]]:
    """Yields the records of all files that are there."""
    return iter(source.read_here(bind({1: source.poll({})})).to_pylist())


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # 0.0 and -0.0 are two, and NaN is one


def test_each_value_of_each_type_comes_back(kind: Kind, tmp_path: Path) -> None:
    drop(tmp_path / "in", f"f{kind.ending}", kind.write(COLUMNS, kind.rows))
    found = list(read(kind.source(tmp_path / "in")))
    assert [one["mz_error"] for one in found] == [None] * len(kind.rows)
    for record, row in zip(found, kind.rows, strict=True):
        for column in COLUMNS:
            assert same(record[column.name], row.get(column.name)), column.name


@pytest.mark.parametrize("names", [("csv.zst", "orc"), pytest.param(tuple(FORMATS), marks=pytest.mark.deep)])
def test_both_engines_have_the_same_records(spark: SparkSession, tmp_path: Path, names: Sequence[str]) -> None:
    for name in names:
        kind = FORMATS[name]
        wrong = [*kind.rows, {"i8": 1}, {"id": 2, "t": "x" * 300}]
        folder = tmp_path / name / "in"
        drop(folder, f"f{kind.ending}", kind.write(COLUMNS, wrong))
        source = kind.source(folder)
        bindings = bind({1: source.poll({})})
        with source.found_by_spark(bindings) as (found, bound):
            assert len(records(spark, found, bound, source.read_here(bindings))) == len(wrong)


def test_a_row_that_is_wrong_is_an_error_with_its_place_and_the_others_are_there(kind: Kind, tmp_path: Path) -> None:
    columns = (Column("id", INT4, nullable=False), Column("n", INT2))
    wide: Sequence[Column] = (Column("id", INT4), Column("n", INT8))
    drop(tmp_path / "in", f"f{kind.ending}", kind.write(wide, [{"id": 1, "n": 2}, {"id": 2, "n": 40000}, {"n": 1}]))
    good, large, null = read(kind.source(tmp_path / "in", columns))
    assert (good["id"], good["n"], good["mz_error"]) == (1, 2, None)
    unit, first = ("row", 1) if kind.is_typed else ("line", 2 if kind.format == "csv" else 1)
    assert large["mz_error"].startswith("22003 ")
    assert large["mz_error"].endswith(f'(file "f{kind.ending}", {unit} {first + 1}, column "n")')
    assert null["mz_error"] == (
        f'23502 null value in column "id" violates not-null constraint (file "f{kind.ending}", {unit} {first + 2}, '
        'column "id")'
    )
    assert large["id"] is None is null["n"]


def test_a_file_of_no_rows_has_no_records(kind: Kind, tmp_path: Path) -> None:
    drop(tmp_path / "in", f"f{kind.ending}", kind.write(COLUMNS, []))
    assert list(read(kind.source(tmp_path / "in"))) == []


def test_what_is_cut_short_is_never_taken_for_whole(kind: Kind, tmp_path: Path) -> None:
    whole = kind.write(COLUMNS, kind.rows)
    for length in range(1, len(whole) - 1, max(1, len(whole) // 20)):
        drop(tmp_path / "in", f"f{kind.ending}", whole[:length])
        if kind.is_typed or kind.ending or (kind.format == "csv" and b"\n" not in whole[:length]):
            with pytest.raises(SourceUnreadable, match=f"f{kind.ending}") as caught:
                list(read(kind.source(tmp_path / "in")))
            assert caught.value.hint, "it says what to do"
            continue
        found = list(read(kind.source(tmp_path / "in")))
        assert len(found) < len(kind.rows) or found[-1]["mz_error"] is not None


def test_the_same_bytes_are_the_same_records_in_the_order_of_names(kind: Kind, tmp_path: Path) -> None:
    for name in ("f2", "f10", "f1/x"):
        drop(tmp_path / "in", f"{name}{kind.ending}", kind.write(COLUMNS, ROWS[:3]))
    source = replace(kind.source(tmp_path / "in"), pattern="**/*")
    first, again = list(read(source)), list(read(source))
    assert repr(first) == repr(again)
    assert [one["mz_path"] for one in first] == sorted(one["mz_path"] for one in first)


#: A column of each type that writers may have begun to write later.
LATER = (
    *COLUMNS,
    *(Column(f"later_{i}", one) for i, one in enumerate((JSONB, BYTEA, INTERVAL, array_of(INT4), dimensioned(INT4)))),
)


def test_columns_that_a_file_lacks_are_null_in_its_rows(kind: Kind, tmp_path: Path) -> None:
    few = COLUMNS[:1]
    drop(tmp_path / "in", f"f1{kind.ending}", kind.write(few, [{"id": 1}, {"id": 2}]))
    drop(tmp_path / "in", f"f2{kind.ending}", kind.write(COLUMNS, [{"id": 3, "t": "x", "i8": 4}]))
    first, second, third = read(kind.source(tmp_path / "in", LATER[1:] + few))
    assert [one["id"] for one in (first, second, third)] == [1, 2, 3]
    assert (third["t"], third["i8"], third["mz_error"]) == ("x", 4, None)
    assert {first[one.name] for one in LATER[1:]} == {None} == {first["mz_error"], second["mz_error"]}
    assert [third[one.name] for one in LATER[len(COLUMNS) :]] == [None] * 5


def test_columns_that_are_not_declared_are_left_out(kind: Kind, tmp_path: Path) -> None:
    drop(tmp_path / "in", f"f{kind.ending}", kind.write(COLUMNS, kind.rows))
    source = kind.source(tmp_path / "in", COLUMNS[:2])
    assert [(one["id"], one["i2"]) for one in read(source)] == [(row["id"], row.get("i2")) for row in kind.rows]


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.startswith("json")])
def test_a_file_is_refused_of_which_a_column_may_have_another_name_or_must_be_there(name: str, tmp_path: Path) -> None:
    kind = FORMATS[name]
    drop(tmp_path / "in", f"f{kind.ending}", kind.write(COLUMNS[:2], [{"id": 1, "i2": 2}]))
    source = kind.source(tmp_path / "in", (COLUMNS[0], Column("i_2", INT2)))
    with pytest.raises(SourceUnreadable, match='lacks column "i_2", and has the undeclared column "i2"') as caught:
        source.poll({})
    assert "If writers have another column now, declare it, too" in str(caught.value.hint)
    source = replace(source, columns=(*COLUMNS[:2], Column("k", INT2)), key=("k",), envelope="upsert")
    with pytest.raises(SourceUnreadable, match='lacks column "k"; column "k" must have a value'):
        source.poll({})
    with pytest.raises(SourceUnreadable, match='lacks column "k"'):
        kind.source(tmp_path / "in", (Column("k", INT2),)).poll({})


@pytest.mark.parametrize("names", [("csv", "parquet"), pytest.param(tuple(FORMATS), marks=pytest.mark.deep)])
def test_both_engines_read_what_a_file_lacks_as_null(spark: SparkSession, tmp_path: Path, names: Sequence[str]) -> None:
    for name in names:
        kind, folder = FORMATS[name], tmp_path / name / "in"
        drop(folder, f"f1{kind.ending}", kind.write(COLUMNS[:2], [{"id": 1}, {"id": 2, "i2": 7}]))
        drop(folder, f"f2{kind.ending}", kind.write(COLUMNS, kind.rows))
        source = replace(kind.source(folder, LATER), key=("id",), envelope="upsert")
        bindings = bind({1: source.poll({})})
        with source.found_by_spark(bindings) as (found, bound):
            assert len(records(spark, found, bound, source.read_here(bindings))) == 2 + len(kind.rows)
