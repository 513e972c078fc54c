"""A bit that flips in a file of a shard is an error that says where: it is never read as other data."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog import Catalog
from mz_dagster.operations.doctor import examine
from mz_dagster.storage import LocalShards, compact, file_hashes, sweep
from mz_dagster.storage.shards import BatchIncomplete, FileDamaged
from tests.catalog.older import take_back


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of many values, few of which are equal, so that most of its file is data."""
    root = tmp_path_factory.mktemp("flipped") / "project"
    root.mkdir()
    (root / "mz.toml").write_text('[project]\nname = "flipped"\n[writes]\ninline_rows = 0\n')
    with Engine(Project.load(root)) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE t (a integer, b text, c bigint)")
        rows = ", ".join(f"({n}, 'v{n * 7919}', {n * 1_000_003})" for n in range(200))
        session.execute(f"INSERT INTO t VALUES {rows}")
    return root


def read(root: Path) -> list[dict[str, object]]:
    """Returns the updates of the table, as a new process reads them."""
    catalog = Catalog.open_made(Project.load(root).catalog_url)
    assert catalog is not None
    with catalog:
        (row,) = catalog.collections()
        found = LocalShards(root / ".mz").read(row, catalog.live_batches([row.id])[row.id])
        return list(found.to_pylist())


def flip(path: Path, bit: int) -> None:
    with open(path, "r+b") as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def test_a_flipped_bit_is_never_read_as_other_data(project: Path, tmp_path: Path) -> None:
    whole = read(project)
    copy = shutil.copytree(project, tmp_path / "copy")
    (path,) = (copy / ".mz" / "shards").glob("*/mz_batch=*/*/*.parquet")
    chance = random.Random(20)
    for bit in sorted(chance.randrange(path.stat().st_size * 8) for _ in range(120)):
        flip(path, bit)
        with pytest.raises(FileDamaged) as error:
            read(copy)
        assert error.value.sqlstate == "XX001"
        assert path.name in error.value.message
        assert '"u1"' in error.value.message
        flip(path, bit)
    assert read(copy) == whole


def test_an_error_of_a_statement_says_what_people_call_what_is_damaged(project: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(project, tmp_path / "copy")
    (path,) = (copy / ".mz" / "shards").glob("*/mz_batch=*/*/*.parquet")
    flip(path, 8 * 400)
    for damage in (FileDamaged, BatchIncomplete):
        with Engine(Project.load(copy)) as engine, pytest.raises(damage) as error:
            Session(engine).execute("SELECT * FROM t")
        assert '"u1" is the table "t".' in str(error.value.detail)
        path.unlink(missing_ok=True)


def test_the_doctor_hashes_what_it_reads_deeply(project: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(project, tmp_path / "copy")
    (path,) = (copy / ".mz" / "shards").glob("*/mz_batch=*/*/*.parquet")
    assert examine(copy, deep=True).findings == ()
    flip(path, 8 * 400)
    (finding,) = examine(copy, deep=True).findings
    assert finding.check == "file-content"
    assert path.name in finding.what


def test_a_file_is_hashed_once_in_a_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    hash_file = file_hashes.hash_file

    def noting(path: Path) -> str:
        asked.append(path)
        return hash_file(path)

    monkeypatch.setattr(file_hashes, "hash_file", noting)
    with Engine(Project.load(project)) as engine:
        session = Session(engine)
        for _ in range(3):
            session.execute("SELECT count(*) FROM t")
    assert len(asked) == 1


def test_what_a_version_without_hashes_wrote_is_read_and_noted(project: Path, tmp_path: Path) -> None:
    whole = read(project)
    copy = shutil.copytree(project, tmp_path / "copy")
    with closing(sqlite3.connect(copy / ".mz" / "catalog.sqlite")) as connection, connection:
        connection.execute("UPDATE batch SET file_list = NULL")
        take_back(connection.execute, "0006")
    with Engine(Project.load(copy)) as engine:
        assert Session(engine).execute("SELECT count(*) FROM t").rows == ((200,),)
    assert read(copy) == whole
    assert [one.check for one in examine(copy, deep=True).findings] == ["batch-unhashed"]
    with Engine(Project.load(copy)) as engine:
        row = engine.catalog.collection(engine.collection_of("t"))
        compact(engine.catalog, engine.shards, row, holder="test", least_parts=1)
        sweep(engine.catalog, engine.shards)
    assert read(copy) == whole
    assert examine(copy, deep=True).findings == ()
