"""Partition columns: what the folders of a file say is in each of its rows, and what they do not say is refused."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.scalars.types import DATE, INT4, TEXT, Column, numeric
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.storage.source import FileSource, SourceUnreadable
from mz_dagster.storage.source.files import Format
from mz_dagster.storage.source.folder import InFolder
from tests.source.landing import bind, drop, poll, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (Column("day", DATE, nullable=False), Column("id", INT4), Column("city", TEXT), Column("rate", numeric(2)))
PARTITION = ("city", "day")


def source(folder: Path, format_: Format = "json", key: tuple[str, ...] | None = None) -> FileSource:
    envelope: Any = "upsert" if key else "none"
    return FileSource(InFolder(folder), "**/*", format_, COLUMNS, key, envelope, partition=PARTITION)


def parquet(*ids: int) -> bytes:
    sink = pa.BufferOutputStream()
    rates = pa.array([Decimal("1.50")] * len(ids), pa.decimal128(9, 2))
    pq.write_table(pa.table({"city": ["ignored"] * len(ids), "rate": rates, "id": pa.array(ids, pa.int32())}), sink)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize(
    ("format_", "content"),
    [("json", b'{"city": "ignored", "id": 1, "rate": 1.5}'), ("csv", b"rate,id\n1.5,1"), ("parquet", parquet(1))],
)
def test_each_row_has_what_its_folders_say(tmp_path: Path, format_: Format, content: bytes) -> None:
    for city in ("Den Haag/S", "a=b", "%2F", "é+", "", "__HIVE_DEFAULT_PARTITION__"):
        drop(tmp_path, f"x/day=2024-1-31/y=3/city={quote(city, safe='=+')}/f", content)
    polled = source(tmp_path, format_)
    found = polled.read_here(bind({1: polled.poll({})})).to_pylist()
    assert [one["mz_error"] for one in found] == [None] * 6
    assert {(one["day"], one["id"], one["city"], one["rate"]) for one in found} == {
        (date(2024, 1, 31), 1, city, Decimal("1.50")) for city in ("Den Haag/S", "a=b", "%2F", "é+", "", None)
    }


def test_keys_have_what_the_folder_of_their_last_record_says(connection: Connection, tmp_path: Path) -> None:
    connection.execute(
        "CREATE SOURCE s (id integer, name text, day date, PRIMARY KEY (id)) FROM FILES "
        "(FOLDER 'in', PATTERN '**/*.jsonl', PARTITION COLUMNS (day)) FORMAT JSON ENVELOPE UPSERT"
    )
    drop(
        tmp_path,
        "in/day=2024-01-01/1.jsonl",
        '{"key": {"id": 1}, "value": {"name": "a"}}\n{"key": {"id": 2}, "value": {}}',
    )
    poll(connection)
    drop(
        tmp_path,
        "in/day=2024-01-02/1.jsonl",
        '{"key": {"id": 1}, "value": {"name": "b"}}\n{"key": {"id": 2}, "value": null}\n{"key": null, "value": null}',
    )
    poll(connection)
    assert connection.execute("SELECT * FROM s").fetchall() == [(1, "b", date(2024, 1, 2))]
    assert "PARTITION COLUMNS (day)" in connection.execute("SHOW CREATE SOURCE s").fetchall()[0][1]


def test_what_a_dataset_has_is_read(connection: Connection, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "city": ["a b", "ü:?", None, "x%"], "n": [7, 8, 7, 8]})
    parts = ds.partitioning(pa.schema([("n", pa.int64()), ("city", pa.string())]), flavor="hive")
    ds.write_dataset(rows, tmp_path / "lake", format="parquet", partitioning=parts)
    connection.execute(
        "CREATE SOURCE s (id bigint, city text, n bigint) FROM FILES "
        "(FOLDER 'lake', PATTERN '**/*.parquet', PARTITION COLUMNS = (city, n)) FORMAT PARQUET"
    )
    poll(connection)
    found = connection.execute("SELECT * FROM s ORDER BY id").fetchall()
    assert found == [(1, "a b", 7), (2, "ü:?", 8), (3, None, 7), (4, "x%", 8)]


@pytest.mark.parametrize("format_", [pytest.param("json", marks=pytest.mark.deep), "parquet"])
def test_spark_reads_the_same(spark: SparkSession, tmp_path: Path, format_: Format) -> None:
    good: dict[str, Any] = {
        "json": b'{"id": 1}\n{"id": "x"}\n[\n{"id": 2, "rate": "\\ud800"}',
        "parquet": parquet(1, 2),
    }
    for path in ("day=2024-01-31/city=a%20b", "city=__HIVE_DEFAULT_PARTITION__/day=0001-1-1"):
        drop(tmp_path, f"{path}/f", good[format_])
    polled = source(tmp_path, format_)
    assert len(records(spark, polled, bind({1: polled.poll({})}))) == (8 if format_ == "json" else 4)


def test_a_file_whose_folders_do_not_say_it_is_refused(tmp_path: Path) -> None:
    for path, why in {
        "day=2024-01-31/f": 'It is in no folder "city=...".',
        "city=x/day/f": 'It is in no folder "day=...".',
        "city=x/day=2024-02-30/f": 'Its folders say of column "day": date/time field value out of range: "2024-02-30".',
        "city=x/day=__HIVE_DEFAULT_PARTITION__/f": 'NULL of column "day", which is NOT NULL',
        "city=x/city=x/day=2024-01-31/f": 'Its folders say column "city" twice.',
        "city=%FF/day=2024-01-31/f": 'Its folder "city=%FF" is no text.',
        "city=%00/day=2024-01-31/f": 'Its folder "city=%00" is no text.',
    }.items():
        drop(tmp_path, path, '{"id": 1}')
        with pytest.raises(SourceUnreadable, match=r"folders called column=value") as caught:
            source(tmp_path).poll({})
        assert why in str(caught.value)
        (tmp_path / path).unlink()
    drop(tmp_path, "city=x/day=2024-01-31/f", '{"id": 1}')
    assert len(source(tmp_path).poll({})) == 1


def test_what_cannot_be_a_partition_column_is_refused(connection: Connection) -> None:
    for columns, partition, why in (
        ("a text, b text", "c", 'partition column "c" is not declared'),
        ("a text, b text", "b, b", 'partition column "b" is listed twice'),
        ("a text, b text, PRIMARY KEY (b)", "b", 'partition column "b" cannot be part of the key'),
        ("a text, b text", "a, b", "all columns are partition columns"),
    ):
        files = f"FILES (FOLDER 'in', PARTITION COLUMNS ({partition})) FORMAT JSON"
        envelope = "ENVELOPE UPSERT" if "KEY" in columns else ""
        with pytest.raises(InvalidTableDefinition, match=why):
            connection.execute(f"CREATE SOURCE s ({columns}) FROM {files} {envelope}")
