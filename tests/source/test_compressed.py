"""Compressed files: the records are those of what they hold, and what is damaged or holds too much is refused."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget, budget_of
from mz_dagster.compute.step.local_ingest import placed_ingest
from mz_dagster.scalars.types import INT4, TEXT, Column
from mz_dagster.storage.source import FileSource, SourceUnreadable
from mz_dagster.storage.source.compression import MOST_SMALL
from mz_dagster.storage.source.files import Format
from mz_dagster.storage.source.folder import InFolder
from tests.source.landing import bind, drop, poll, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (Column("id", INT4, nullable=False), Column("name", TEXT))
JSON = '{"id": 1, "name": "a é"}\n{"id": "x"}\n{"id": 3}'
CSV = 'name,id\n"a é",1\n,x\n"",3'


def compressed(content: str | bytes, ending: str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return gzip.compress(data) if ending == ".gz" else bytes(pa.Codec("zstd").compress(data, asbytes=True))


def source(folder: Path, format_: Format = "json", spool: Path | None = None) -> FileSource:
    return FileSource(InFolder(folder), "*", format_, COLUMNS, spool=spool)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize(("format_", "content"), [("json", JSON), ("csv", CSV)])
def test_records_are_those_of_what_a_file_holds(tmp_path: Path, format_: Format, content: str, ending: str) -> None:
    drop(tmp_path, "f", content)
    drop(tmp_path, f"f{ending}", compressed(content, ending))
    plain, packed = source(tmp_path, format_).poll({})
    assert packed.size == (tmp_path / f"f{ending}").stat().st_size
    found = source(tmp_path, format_).read_here(bind({1: [plain, packed]})).to_pylist()
    assert len(found) == 6
    for one, other in zip(found[:3], found[3:], strict=True):
        expected = {**one, "mz_path": f"f{ending}"}
        if one["mz_error"] is not None:
            expected["mz_error"] = one["mz_error"].replace('"f"', f'"f{ending}"')
        assert other == expected


def test_several_archives_in_a_file_are_one_file(tmp_path: Path) -> None:
    for ending in (".gz", ".zst"):
        drop(tmp_path, f"f{ending}", compressed('{"id": 1}\n', ending) + compressed('{"id": 2}\n', ending))
    files = source(tmp_path).poll({})
    assert source(tmp_path).read_here(bind({1: files})).column("id").to_pylist() == [1, 2, 1, 2]


def test_what_spark_reads_is_a_copy_of_what_files_hold(spark: SparkSession, tmp_path: Path) -> None:
    landing, spool = tmp_path / "a b", tmp_path / "copies"
    for path in ("f", "sub.gz/g"):
        drop(landing, f"{path}.gz", compressed(JSON, ".gz"))
        drop(landing, f"{path}.zst", compressed(JSON, ".zst"))
        drop(landing, path, JSON)
    polled = FileSource(InFolder(landing), "**/*", "json", COLUMNS, spool=spool)
    files = polled.poll({})
    bindings = bind({3: files[:2], 4: files[2:]})
    with polled.found_by_spark(bindings) as (found, bound):
        by_spark = records(spark, found, bound, polled.read_here(bindings))
        assert list(spool.iterdir())
    assert not list(spool.iterdir())
    assert [one[:3] for one in by_spark] == [
        (tick, file.path, row) for tick, some in ((3, files[:2]), (4, files[2:])) for file in some for row in (1, 2, 3)
    ]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_what_is_cut_short_or_damaged_is_refused_until_it_is_whole(
    connection: Connection, tmp_path: Path, ending: str
) -> None:
    (tmp_path / "in").mkdir()
    connection.execute("CREATE SOURCE s (id integer) FROM FILES (FOLDER 'in', PATTERN '*.jsonl*') FORMAT JSON")
    whole = compressed("".join(f'{{"id": {i}}}\n' for i in range(5000)), ending)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    damaged = [whole[:-1], whole[: len(whole) // 2], whole + b"junk", b"", b'{"id": 1}\n']
    damaged += [bytes(flipped)] if ending == ".gz" else []  # Arrow's Zstandard has no checksum
    for content in damaged:
        drop(tmp_path / "in", f"a.jsonl{ending}", content)
        with pytest.raises(SourceUnreadable, match=f'cannot decompress file "a.jsonl{ending}"') as caught:
            poll(connection)
        assert "Replace the file by one that is whole" in str(caught.value)
    drop(tmp_path / "in", f"a.jsonl{ending}", whole)
    drop(tmp_path / "in", "b.jsonl", '{"id": -1}')
    poll(connection)
    (found,) = connection.execute("SELECT count(*), sum(id) FROM s").fetchall()
    assert found == (5001, 5000 * 4999 // 2 - 1)


def test_a_file_that_holds_too_much_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    block = pa.Codec("zstd").compress(b"\n" * (MOST_SMALL // 4), asbytes=True)
    drop(tmp_path, "bomb.zst", block * 5)
    tracemalloc.start()
    with pytest.raises(SourceUnreadable, match="holds more than 16777216") as caught:
        source(tmp_path).poll({})
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()
    assert "uncompressed" in str(caught.value)


def test_how_much_a_file_holds_decides_who_reads_it(tmp_path: Path) -> None:
    drop(tmp_path, "f.gz", compressed('{"id": 1}\n' * 100_000, ".gz"))
    polled = source(tmp_path)
    bindings = bind({1: polled.poll({})})
    assert polled.held_bytes(bindings, 10) >= 10
    assert polled.held_bytes(bindings, 2_000_000) == 1_000_000
    other = source(tmp_path)
    assert other.held_bytes(bindings, MOST_SMALL * 2) == other.size(bindings), "so small a file cannot hold so much"
    assert other.held_bytes(bindings, 2_000_000) == 1_000_000
    with budget_of(Budget(ingested_bytes=999_999)):
        assert "1000000 bytes" in placed_ingest(other, bindings, is_first=False).because
