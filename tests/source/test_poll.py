"""Polling: which files are ready, and every way in which a folder can be wrong. No Spark anywhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.catalog import Binding, BoundFile
from mz_dagster.formalism import GlobalId
from mz_dagster.scalars.types import INT4, TEXT, Column
from mz_dagster.storage.source import BoundFileChanged, FileSource, SourceUnreadable
from mz_dagster.storage.source.files import Format
from mz_dagster.storage.source.folder import InFolder
from tests.source.landing import drop

COLUMNS = (Column("id", INT4, nullable=False), Column("name", TEXT))


def source(folder: Path, pattern: str = "*.jsonl", format_: Format = "json") -> FileSource:
    return FileSource(InFolder(folder), pattern, format_, COLUMNS)


def test_files_are_found_by_pattern_and_sorted_by_path(tmp_path: Path) -> None:
    b, a = drop(tmp_path, "b.jsonl", "{}"), drop(tmp_path, "a é.jsonl", "")
    drop(tmp_path, "c.csv", "")
    drop(tmp_path, "sub/d.jsonl", "")
    assert source(tmp_path).poll({}) == (a, b)
    assert source(tmp_path).poll({"b.jsonl": b}) == (a,)
    assert [file.path for file in source(tmp_path, "**/*.jsonl").poll({})] == ["a é.jsonl", "b.jsonl", "sub/d.jsonl"]
    assert [file.path for file in source(tmp_path, "[!a]?[jx]*").poll({})] == ["b.jsonl"]


def test_file_is_ready_once_renamed_into_place(tmp_path: Path) -> None:
    for name in (".a.jsonl", "_a.jsonl", "a.tmp", "a.jsonl.part", "a.jsonl.crdownload", "_part/a.jsonl"):
        drop(tmp_path, name, "{}")
    everything = source(tmp_path, "**/*")
    assert everything.poll({}) == ()
    os.rename(tmp_path / "a.jsonl.part", tmp_path / "a.jsonl")
    assert [file.path for file in everything.poll({})] == ["a.jsonl"]


def test_file_that_changes_while_hashed_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop(tmp_path, "a.jsonl", "{}")
    file_digest = hashlib.file_digest

    def digest_and_append(file: Any, name: str) -> object:
        digest = file_digest(file, name)
        with open(tmp_path / "a.jsonl", "a") as growing:
            growing.write("{}")
        return digest

    polled = source(tmp_path)
    monkeypatch.setattr(hashlib, "file_digest", digest_and_append)
    assert polled.poll({}) == ()
    monkeypatch.undo()
    assert [file.size for file in polled.poll({})] == [4]


def test_pipes_and_dead_links_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "dead.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.jsonl").mkdir()
    assert source(tmp_path).poll({}) == ()


def test_missing_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="does not exist") as caught:
        source(tmp_path / "none").poll({})
    assert "Create the folder" in str(caught.value)
    assert not caught.value.may_have_taken_effect


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    drop(tmp_path, "x", "")
    with pytest.raises(SourceUnreadable, match="is not a folder"):
        source(tmp_path / "x").poll({})


def test_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop(tmp_path, "a.jsonl", "{}")

    def deny(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(hashlib, "file_digest", deny)  # as root no mode denies reading
    with pytest.raises(SourceUnreadable, match=r'a\.jsonl": Permission denied'):
        source(tmp_path).poll({})


@pytest.mark.parametrize("name", ["a:b.jsonl", "\udcff.jsonl"])
def test_name_that_spark_cannot_open_is_refused(tmp_path: Path, name: str) -> None:
    drop(tmp_path, name, "{}")
    with pytest.raises(SourceUnreadable, match="file name"):
        source(tmp_path).poll({})


@pytest.mark.parametrize("seen", [True, False], ids=["same process", "after a restart"])
def test_bound_file_that_vanished_or_grew_is_an_error(tmp_path: Path, seen: bool) -> None:
    bound = {"a.jsonl": drop(tmp_path, "a.jsonl", "{}")}
    polled = source(tmp_path)
    if seen:
        polled.poll({})
    assert polled.poll(bound) == ()
    drop(tmp_path, "a.jsonl", "{} ")
    with pytest.raises(BoundFileChanged, match=r'"a\.jsonl".*\n.*had 2 bytes and has 3') as caught:
        polled.poll(bound)
    assert "ALTER SOURCE ... RESET" in str(caught.value)
    os.unlink(tmp_path / "a.jsonl")
    with pytest.raises(BoundFileChanged, match="is gone"):
        polled.poll(bound)


def test_bound_file_rewritten_in_its_size_is_seen_by_the_process_that_hashed_it(tmp_path: Path) -> None:
    polled = source(tmp_path)
    bound = {"a.jsonl": drop(tmp_path, "a.jsonl", "1")}
    polled.poll({})
    drop(tmp_path, "a.jsonl", "1")
    assert polled.poll(bound) == ()
    drop(tmp_path, "a.jsonl", "2")
    with pytest.raises(BoundFileChanged, match="SHA-256"):
        polled.poll(bound)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("name\n", 'lacks column "id"; column "id" must have a value'),
        ("id,nane\n", 'lacks column "name", and has the undeclared column "nane"'),
        ("id", "Its header row has no end"),
        ("id,name,name\n", 'repeats column "name"'),
        ("\n", 'lacks columns "id", "name"'),
        ('id,"na\n', "no header row"),
        (b"id,na\xffme\n", "no header row"),
    ],
)
def test_csv_header_that_does_not_fit_is_named(tmp_path: Path, header: str | bytes, words: str) -> None:
    drop(tmp_path, "a.csv", header)
    with pytest.raises(SourceUnreadable, match=words) as caught:
        source(tmp_path, "*", "csv").poll({})
    assert "a.csv" in caught.value.message


def test_csv_file_without_bytes_or_rows_is_ready(tmp_path: Path) -> None:
    files = (drop(tmp_path, "a.csv", ""), drop(tmp_path, "b.csv", '\ufeff"name",id\r\n'))
    assert source(tmp_path, "*", "csv").poll({}) == files


def parquet(path: Path, **columns: Any) -> None:
    pq.write_table(pa.table(columns), path)


def test_parquet_file_that_does_not_fit_is_named_and_can_be_replaced(tmp_path: Path) -> None:
    polled = source(tmp_path, "*.parquet", "parquet")
    path = tmp_path / "a.parquet"
    ids, names = pa.array([1, 2], pa.int64()), pa.array(["x", None])

    def refused(words: str) -> None:
        with pytest.raises(SourceUnreadable, match=words) as caught:
            polled.poll({})
        assert "a.parquet" in caught.value.message

    path.write_text("not parquet at all")
    refused("It is not a Parquet file")
    path.write_bytes(b"")
    refused("It is not a Parquet file")
    parquet(path, id=ids, nane=names)
    refused('lacks column "name", and has the undeclared column "nane"')
    parquet(path, id=ids, name=names, NAME=names)
    refused("differ only in case")
    parquet(path, id=pa.array([1.5, 2.5]), name=names)
    refused('Its column "id" is double, which is not readable as integer')
    parquet(path, id=ids, name=names)
    whole = path.read_bytes()
    path.write_bytes(whole[:8] + b"\xff" * 40 + whole[48:])
    refused("It is damaged")
    path.write_bytes(whole[:-20])
    refused("It is not a Parquet file")
    path.write_bytes(whole)
    assert [file.size for file in polled.poll({})] == [len(whole)]


def test_polling_imports_no_spark(tmp_path: Path) -> None:
    drop(tmp_path, "a.jsonl", "{}")
    script = (
        "import sys, pathlib\n"
        "from mz_dagster.scalars.types import Column, INT4\n"
        "from mz_dagster.storage.source.files import FileSource\n"
        "from mz_dagster.storage.source.folder import InFolder\n"
        f"s = FileSource(InFolder(pathlib.Path({str(tmp_path)!r})), '*', 'json', (Column('id', INT4),))\n"
        "assert len(s.poll({})) == 1\n"
        "assert not any(name.split('.')[0] in ('pyspark', 'py4j') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=Path(__file__).parents[2])


def test_polls_result_is_a_binding(tmp_path: Path) -> None:
    drop(tmp_path, "a.jsonl", "abc")
    sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert source(tmp_path).poll({}) == (BoundFile("a.jsonl", 3, sha),)


def test_a_bound_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    file = drop(tmp_path, "a.jsonl", "{}")
    bindings = [Binding(GlobalId("s1"), 1, (file,))]
    polled = source(tmp_path)
    with polled.verified_unchanged(bindings):
        polled.verify(bindings)
    for content in ("[]", "{}"):  # of the same size, and even put back as it was
        with pytest.raises(BoundFileChanged, match="while it was read"), polled.verified_unchanged(bindings):
            drop(tmp_path, "a.jsonl", content)
    with pytest.raises(BoundFileChanged, match="while it was read"), polled.verified_unchanged(bindings):
        os.unlink(tmp_path / "a.jsonl")
