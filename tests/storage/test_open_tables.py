"""Tables that are open already are as new as those opened anew."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from mz_dagster.catalog import Batch, BatchId, BatchState, Catalog, CollectionRow
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import BOOL, INT4, Column
from mz_dagster.storage import LocalShards, open_tables, update_table
from mz_dagster.storage.open_tables import OpenTables
from mz_dagster.storage.shards import ShardUnavailable
from tests.budgets import SetBudget


def commit(path: Path, number: int) -> None:
    write_deltalake(path, pa.table({"n": pa.array([number], pa.int64())}), mode="append")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every table that is opened anew."""
    paths: list[Path] = []

    def counting(path: Path) -> DeltaTable | None:
        paths.append(path)
        return original(path)

    original = open_tables.open_table
    monkeypatch.setattr(open_tables, "open_table", counting)
    return paths


def version(tables: OpenTables, path: Path) -> int | None:
    with tables.newest(path) as table:
        return None if table is None else table.version()


def test_a_table_is_opened_once_and_always_up_to_date(tmp_path: Path, opened: list[Path]) -> None:
    tables = OpenTables()
    assert version(tables, tmp_path) is None
    for number in range(3):
        commit(tmp_path, number)
        assert version(tables, tmp_path) == number
    assert opened == [tmp_path] * 2  # before it was there, and after


def test_a_log_that_was_cut_behind_a_checkpoint_is_followed(tmp_path: Path, opened: list[Path]) -> None:
    tables = OpenTables()
    commit(tmp_path, 0)
    assert version(tables, tmp_path) == 0
    for number in range(1, 4):
        commit(tmp_path, number)
    DeltaTable(tmp_path).create_checkpoint()
    for number in range(3):
        (tmp_path / "_delta_log" / f"{number:020d}.json").unlink()
    assert version(tables, tmp_path) == 3
    with tables.newest(tmp_path) as table:
        assert table is not None
        assert len(table.file_uris()) == 4
    assert opened == [tmp_path]


def test_a_log_that_was_made_anew_is_read_anew(tmp_path: Path) -> None:
    tables = OpenTables()
    for number in range(3):
        commit(tmp_path, number)
    assert version(tables, tmp_path) == 2
    (tmp_path / "_delta_log").rename(tmp_path / "_delta_log.damaged-1")
    commit(tmp_path, 3)
    assert version(tables, tmp_path) == 0
    shutil.rmtree(tmp_path)
    assert version(tables, tmp_path) is None


def test_a_damaged_log_is_an_error_and_none_after_its_repair(tmp_path: Path) -> None:
    tables = OpenTables()
    commit(tmp_path, 0)
    assert version(tables, tmp_path) == 0
    commit(tmp_path, 1)
    entry = tmp_path / "_delta_log" / f"{1:020d}.json"
    whole = entry.read_text(encoding="utf-8")
    entry.write_text("{", encoding="utf-8")
    with pytest.raises(ShardUnavailable, match="cannot open the shard"):
        version(tables, tmp_path)
    entry.write_text(whole, encoding="utf-8")
    assert version(tables, tmp_path) == 1


def test_a_log_that_is_cut_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path, 0)
    attempts: list[str] = []

    def cut_at_first(path: str) -> DeltaTable:
        attempts.append(path)
        if len(attempts) < 3:
            raise DeltaError("Kernel error: File not found: 00000000000000000003.json")
        return DeltaTable(path)

    monkeypatch.setattr(open_tables, "DeltaTable", cut_at_first)
    assert version(OpenTables(), tmp_path) == 0
    assert len(attempts) == 3


def test_nobody_gets_a_table_that_somebody_has(tmp_path: Path) -> None:
    tables = OpenTables()
    commit(tmp_path, 0)
    seen: list[int] = []
    met = threading.Barrier(4, timeout=30)

    def use() -> None:
        with tables.newest(tmp_path) as table:
            seen.append(id(table))
            met.wait()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(seen)) == 4


def test_a_table_is_not_used_again_after_an_error(tmp_path: Path, opened: list[Path]) -> None:
    tables = OpenTables()
    commit(tmp_path, 0)
    with pytest.raises(ZeroDivisionError), tables.newest(tmp_path):
        raise ZeroDivisionError
    assert version(tables, tmp_path) == 0
    assert len(opened) == 2


def test_the_tables_least_lately_used_are_closed(
    tmp_path: Path, opened: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_tables, "MOST_TABLES", 2)
    tables, paths = OpenTables(), [tmp_path / name for name in "abc"]
    for path in paths:
        commit(path, 0)
        version(tables, path)
    for path in (paths[2], paths[1], paths[0]):
        version(tables, path)
    assert opened == [*paths, paths[0]]


def test_reads_and_merges_of_listed_batches_open_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower, upper = Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 9)
    columns = (Column("n", INT4),)
    collection = CollectionRow(GlobalId("u1"), "t", lower, upper, columns, frozenset(), "shards/u1", None)
    stats = LocalShards(tmp_path).append(collection, BatchId(1), update_table(columns, [((1,), 1, 1)]))
    listed = Batch(BatchId(1), collection.id, lower, upper, BatchState.LIVE, stats)
    monkeypatch.setattr(open_tables, "open_table", pytest.fail)
    shards, where = LocalShards(tmp_path), [Call("eq_int4", (ColumnRef(0, INT4), Literal(2, INT4)), BOOL)]
    assert shards.read(collection, [listed], where=where).num_rows == 1
    assert shards.head(collection, listed, 9).num_rows == 1
    assert not shards.errors(collection, [listed]).num_rows
    assert [one.path for one in shards.files(collection, [listed], bounds=columns)] == [
        one.path for one in stats.file_list or ()
    ]


def test_an_append_asks_no_log_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though others append and delete meanwhile, and cut the log."""
    lower, upper, columns = Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 99), (Column("n", INT4),)
    collection = CollectionRow(GlobalId("u1"), "t", lower, upper, columns, frozenset(), "shards/u1", None)
    shards, others = LocalShards(tmp_path), LocalShards(tmp_path)

    def written(by: LocalShards, number: int) -> Batch:
        stats = by.append(collection, BatchId(number), update_table(columns, [((number,), 1, 1)]))
        return Batch(BatchId(number), collection.id, lower, upper, BatchState.LIVE, stats)

    batches = [written(shards, 1), written(others, 2)]
    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "update_incremental", pytest.fail)
        batches += [written(shards, 3), written(shards, 4)]
    others.delete(collection, [BatchId(2)])
    batches.append(written(shards, 5))
    batches += [written(others, number) for number in range(6, 9)]
    table = DeltaTable(shards.path(collection))
    table.create_checkpoint()
    for entry in sorted((shards.path(collection) / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    batches.append(written(shards, 9))
    kept = [one for one in batches if one.id != 2]
    found = LocalShards(tmp_path).read(collection, kept).column("n").to_pylist()
    assert sorted(found) == [1, 3, 4, 5, 6, 7, 8, 9]
    assert shards.stored_batches(collection) == {one.id for one in kept}


def test_inlined_batches_are_read_without_a_table_whatever_is_asked(tmp_path: Path, set_budget: SetBudget) -> None:
    set_budget(unbounded_rows=0)
    lower, upper, columns = Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 9), (Column("n", INT4),)
    collection = CollectionRow(GlobalId("u1"), "t", lower, upper, columns, frozenset(), "shards/u1", None)
    with Catalog.open(f"sqlite:///{tmp_path}/catalog.sqlite") as catalog:
        shards = LocalShards(tmp_path, catalog)
        stats = shards.inline(collection, update_table(columns, [((1,), 1, 1), ((None,), 2, 1, "22012 x")]))
        assert stats is not None
        batch = Batch(BatchId(1), collection.id, lower, upper, BatchState.WRITING, stats)
        where = [Call("eq_int4", (ColumnRef(0, INT4), Literal(1, INT4)), BOOL)]
        assert shards.read(collection, [batch], where=where).num_rows == 2
        assert shards.read(collection, [batch], lower=2, condition=pc.field("n") == 7).num_rows == 1
        assert shards.read(collection, [batch], upper=2, columns=["n"]).column("n").to_pylist() == [1]
        assert shards.errors(collection, [batch]).column("mz_error").to_pylist() == ["22012 x"]
        assert shards.head(collection, batch, 1).num_rows == 1
        assert not (tmp_path / "shards").exists()
