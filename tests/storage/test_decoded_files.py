"""What one process has decoded of a file others map; what is damaged, too much or of another file is not used."""

from __future__ import annotations

import os
import random
import shutil
import stat
import weakref
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.catalog import BatchId
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.scalars.types import FLOAT8, INT8, TEXT, TIMESTAMP, Column, numeric
from mz_dagster.storage import LocalShards, update_table
from mz_dagster.storage.decoded_files import DecodedFiles, HotFile
from mz_dagster.storage.hot_files import HotFiles
from mz_dagster.storage.numerics import stored_value
from tests.budgets import SetBudget
from tests.storage.test_clustering import collection, listed

FILE = HotFile("u1", "mz_batch=1/x.parquet", "ab" * 16)
TABLE = pa.table(
    {
        "k": pa.array([3, 1, 2, 1], pa.int64()),
        "same": pa.array([7] * 4, pa.int64()),
        "none": pa.nulls(4, pa.string()),
        "text": pa.array(["a", None, "", "é"]),
        "n": pa.array([Decimal("1.50"), None, Decimal("-0.01"), Decimal(10**30)], pa.decimal128(38, 2)),
        "f": pa.array([-0.0, 0.0, 1.5, None]),
        "list": pa.array([[1, None], None, [], [2]], pa.list_(pa.int64())),
        "wide": pa.nulls(4, pa.decimal256(60, 2)),
    }
)
COLUMNS = (Column("k", INT8), Column("t", TEXT), Column("at", TIMESTAMP), Column("n", numeric(2)), Column("f", FLOAT8))


@pytest.fixture(autouse=True)
def of_a_few_rows(set_budget: SetBudget) -> None:
    """Files of a few rows are treated as large ones are."""
    set_budget(decoded_rows=0, ordered_rows=0, narrowed_cells=2)


class Reader:
    """Decodes columns of the table, and notes which."""

    def __init__(self, table: pa.Table = TABLE) -> None:
        self.table = table
        self.asked: list[str] = []

    def __call__(self, names: Sequence[str]) -> pa.Table:
        self.asked += names
        return self.table.select(list(names))

    def columns(self, files: HotFiles, names: Sequence[str] = TABLE.column_names, file: HotFile = FILE) -> pa.Table:
        """Returns columns as the second request for them does."""
        found = files.columns(file, 4, names, self, self.table.schema)
        return found if found is not None else files.columns(file, 4, names, self, self.table.schema)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.arrow"))


def mapped_and_looked_at(folder: Path) -> int:
    """Returns how many bytes of the files in a folder count as taken by this process, as the system says."""
    found, is_there = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first:
            is_there = rest.endswith(".arrow") and str(folder) in rest
        elif first == "Rss:" and is_there:
            found += int(rest.split()[0]) * 1024
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="nobody tells what of a file was looked at")
def test_pages_are_let_go_of_once_many_were_looked_at(tmp_path: Path, set_budget: SetBudget) -> None:
    table = pa.table({"k": pa.array(range(100_000)), "n": pa.array(range(0, 300_000, 3))})
    files = [HotFile("u1", f"mz_batch={number}/x.parquet", f"{number:02}" * 16) for number in range(10)]
    hot = HotFiles(0, DecodedFiles(tmp_path, 100 * table.nbytes))
    most = 0

    def look_at_all() -> None:
        nonlocal most
        for file in files:
            found = hot.columns(file, len(table), table.column_names, table.select)
            assert found is None or found.equals(table)
            most = max(most, mapped_and_looked_at(tmp_path))

    look_at_all()  # nothing is kept at the first request
    look_at_all()
    assert most >= 10 * table.nbytes
    set_budget(decoded_rows=0, mapped_bytes=3 * table.nbytes)
    look_at_all()  # lets go of what was looked at before
    most = 0
    look_at_all()
    assert table.nbytes < most < 4 * table.nbytes


def test_pages_that_another_thread_unmaps_are_mapped_when_they_are_let_go_of(
    tmp_path: Path, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot = HotFiles(0, DecodedFiles(tmp_path, 10**7))

    def look_at(number: int) -> None:
        file = HotFile("u1", f"mz_batch={number}/x.parquet", f"{number:032}")
        assert [Reader().columns(hot, ["k"], file)] == [TABLE.select(["k"])]

    for number in range(3):
        look_at(number)
    others = [column for columns in hot._mapped.values() for column in columns.values()]
    known, let_go_of = [weakref.ref(one.pages) for one in others], list[int]()
    hot.forget("u1")

    def noted(address: int, _: int) -> None:
        others.clear()
        assert address in [pages.address for one in known if (pages := one()) is not None]
        let_go_of.append(address)

    monkeypatch.setattr("mz_dagster.storage.hot_files.let_go", noted)
    set_budget(decoded_rows=0, mapped_bytes=0)
    look_at(3)
    assert len(set(let_go_of)) >= 3


def test_what_is_written_is_not_in_memory_once_more(tmp_path: Path) -> None:
    values = range(1_000_000)
    columns = {
        "n": pa.chunked_array([pa.array(values, pa.int64())]),
        "t": pa.chunked_array([pa.array(map(str, values))]),
    }
    size = sum(one.nbytes for one in columns.values())
    before, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        kept = DecodedFiles(tmp_path, 2 * size).keep(FILE, columns)
    finally:
        pa.set_memory_pool(before)
    assert counted.max_memory() < size // 10
    assert {name: one.cells for name, one in kept.items()} == columns


def test_what_others_have_removed_is_not_mapped_for_ever(tmp_path: Path) -> None:
    folder, reader = tmp_path / "decoded", Reader(pa.table({"k": range(10_000)}))
    hot, other = HotFiles(10**6, DecodedFiles(folder, 300_000)), DecodedFiles(folder)
    for number in range(20):
        file = HotFile("u1", f"mz_batch={number}/x.parquet", f"{number:032x}")
        assert reader.columns(hot, ["k"], file).equals(reader.table)
        other.forget("u1", [file.folder])
    mapped = {line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    assert len([one for one in mapped if one.startswith(str(folder))]) == 3, "as many as have room there"
    assert reader.columns(hot, ["k"], file).equals(reader.table)
    assert len(reader.asked) == 20, "the newest is mapped still"


def test_another_process_maps_what_one_has_decoded(tmp_path: Path) -> None:
    folder, reader = tmp_path / "decoded", Reader()
    first = HotFiles(10**6, DecodedFiles(folder))
    assert reader.columns(first, ["k", "none"]).equals(TABLE.select(["k", "none"]))
    assert reader.columns(first).equals(TABLE)
    assert (sorted(reader.asked), first.bytes) == (sorted(TABLE.column_names), 0)
    order = first.ordered(FILE, TABLE, "k")
    assert order.rows.to_pylist() == [1, 3, 2, 0]
    assert len(entries(folder)) == 3, "what is asked for together is together"

    other, unread = HotFiles(10**6, DecodedFiles(folder)), Reader()
    assert other.has(FILE, 4, ["k", "text"])
    found = other.columns(FILE, 4, TABLE.column_names, unread, TABLE.schema)
    assert found is not None, "at the first request"
    assert (found.equals(TABLE), found.schema, unread.asked) == (True, TABLE.schema, [])
    assert other.ordered(FILE, found, "k").values.equals(order.values)
    assert entries(folder) == entries(folder)
    assert len(entries(folder)) == 3, "an order is not made again"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not other.has(FILE._replace(hash="cd" * 16), 4, ["k"]), "another file at the same place"


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_an_entry_that_is_damaged_is_made_anew(tmp_path: Path, damage: str) -> None:
    Reader().columns(HotFiles(10**6, DecodedFiles(tmp_path / "decoded")))
    (entry,) = entries(tmp_path)
    content = bytearray(entry.read_bytes())
    place = content.index(b"\x03\0\0\0\0\0\0\0\x01")  # the first values of "k"
    content[place] ^= 1
    entry.unlink()
    entry.write_bytes(bytes({"flip": content, "cut": content[:-9], "empty": b"", "other": b"ARROW1"}[damage]))
    reader = Reader()
    assert reader.columns(HotFiles(10**6, DecodedFiles(tmp_path / "decoded"))).equals(TABLE)
    assert reader.asked == TABLE.column_names
    unread = Reader()
    assert unread.columns(HotFiles(10**6, DecodedFiles(tmp_path / "decoded"))).equals(TABLE)
    assert unread.asked == []


def test_of_another_type_than_asked_for_it_is_decoded(tmp_path: Path) -> None:
    Reader().columns(HotFiles(10**6, DecodedFiles(tmp_path)))
    other = Reader(TABLE.set_column(0, "k", TABLE["k"].cast(pa.int32())))
    assert other.columns(HotFiles(10**6, DecodedFiles(tmp_path))).equals(other.table)
    assert other.asked == ["k"]


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def test_the_limit_holds_and_what_is_used_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, files = tmp_path / "decoded", [FILE._replace(hash=f"{number:032x}") for number in range(6)]
    hot = HotFiles(10**6, DecodedFiles(folder))
    Reader().columns(hot, file=files[0])
    size = entries(folder)[0].stat().st_size
    small = DecodedFiles(folder, 3 * size)
    hot = HotFiles(10**6, small)
    for file in files[1:4]:
        assert Reader().columns(hot, file=file).equals(TABLE)
    assert len(entries(folder)) == 3, "all were used within the hour"
    assert hot.bytes > 0, "the fourth is in this process's memory"

    hour = SYSTEM_CLOCK.now_ms() / 1000 - 3_700
    for number in 0, 1:
        os.utime(next(folder.rglob(f"{files[number].hash}.*")), (hour, hour - number))
    stray = folder / "u1" / "mz_batch=1" / ".new-1-1"
    stray.write_bytes(b"x")
    os.utime(stray, (hour, hour))
    Reader().columns(HotFiles(10**6, DecodedFiles(folder, 3 * size)), file=files[4])
    left = {one.name.partition(".")[0] for one in entries(folder)}
    assert left == {files[number].hash for number in (0, 2, 4)}, "the least lately used has gone"
    assert not stray.exists()

    used = DecodedFiles(folder, 3 * size)
    assert used.columns(files[0])
    assert next(folder.rglob(f"{files[0].hash}.*")).stat().st_mtime > hour + 3_000, "its use is noted"
    roomy = DecodedFiles(folder, 100 * size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10_000_000, 0, 1_000_000 + size - 1))
    assert roomy.keep(files[5], {"k": TABLE["k"]})
    assert roomy.keep(files[5], {name: TABLE[name] for name in TABLE.column_names}) == {}, "a tenth stays free"


def test_where_there_is_no_room_for_it_a_file_is_not_decoded_whole(tmp_path: Path) -> None:
    hot, reader = HotFiles(1, DecodedFiles(tmp_path, 1)), Reader()
    for _ in range(3):
        assert hot.columns(FILE, 4, ["k"], reader, TABLE.schema) is None
    assert not hot.expects({FILE: 4}, 1)
    assert reader.asked == []


@pytest.mark.parametrize("fails", ["write", "replace", "mkdir"])
def test_a_disk_that_takes_nothing_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    places: dict[str, tuple[Any, str]] = {
        "write": (pa, "memory_map"),
        "replace": (os, "replace"),
        "mkdir": (Path, "mkdir"),
    }
    monkeypatch.setattr(*places[fails], failing)
    hot, reader = HotFiles(10**6, DecodedFiles(tmp_path / "decoded")), Reader()
    for _ in range(2):
        assert reader.columns(hot).equals(TABLE)
    assert reader.asked == TABLE.column_names, "it is kept in memory"


def test_what_is_deleted_is_forgotten(tmp_path: Path) -> None:
    row, folder = collection(COLUMNS), tmp_path / "decoded"
    shards = LocalShards(tmp_path / "state", decoded=DecodedFiles(folder))
    ids, other = [BatchId(number) for number in (1, 2)], LocalShards(tmp_path / "state")
    updates = update_table(COLUMNS, [((1, None, None, None, None), 1, 1)])
    batches = [listed(int(id), other.append(row, id, updates)) for id in ids]
    for _ in range(2):
        shards.read(row, batches)
    assert len(entries(folder)) == 2
    shards.delete(row, [ids[0]])
    assert [one.parent.name for one in entries(folder)] == ["mz_batch=2"]
    shards.destroy(row.shard)
    assert entries(folder) == []


def test_what_is_kept_of_a_file_that_was_written_is_in_the_order_of_its_rows(tmp_path: Path) -> None:
    """The writer takes the pieces of a table in any order; orders of the rows are kept for who decodes the file."""
    row, shards = collection(COLUMNS), LocalShards(tmp_path)
    for number in range(1, 9):
        pieces = [update_table(COLUMNS, [((n, None, None, None, None), 1, 1, None)] * (n + 1)) for n in range(7)]
        batch = listed(number, shards.append(row, BatchId(number), pa.concat_tables(pieces)))
        (file,) = batch.stats.file_list or ()
        kept = shards._hot.columns(HotFile(row.shard, file.path, file.hash), batch.stats.rows, ["k"], Reader())
        assert kept is not None
        stored = pq.read_table(shards.path(row) / file.path, columns=["k"], partitioning=None)
        assert kept.column("k").to_pylist() == stored.column("k").to_pylist()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(one, marks=pytest.mark.deep) for one in (2, 3))])
def test_reads_are_the_same_with_and_without(tmp_path: Path, seed: int) -> None:
    """Whatever is asked for, by several processes one after the other, of batches that come and go."""
    dice, row = random.Random(seed), collection(COLUMNS)
    writer, cold = LocalShards(tmp_path, hot_bytes=0), LocalShards(tmp_path, hot_bytes=0)

    def value(one: object) -> object:
        return None if dice.random() < 0.2 else one

    def cells() -> tuple[object, ...]:
        number, float_ = Decimal(dice.randrange(10**4)) / 100, dice.choice([0.0, -0.0, 1.5, float("nan")])
        return tuple(value(one) for one in (dice.randrange(9), dice.choice("abé"), None, number, float_))

    def opened() -> LocalShards:
        return LocalShards(tmp_path, decoded=DecodedFiles(tmp_path / "decoded"))

    hot, batches = opened(), []
    for number in range(1, 13):
        errors = [None] * 9 + ["22012 division by zero"]
        updates = [(cells(), dice.randrange(50), dice.choice([1, -1]), dice.choice(errors)) for _ in range(30)]
        batches.append(listed(number, writer.append(row, BatchId(number), update_table(COLUMNS, updates))))
        if len(batches) > 3:
            gone = batches.pop(dice.randrange(len(batches)))
            hot.delete(row, [gone.id])
        for _ in range(4):
            chosen = dice.sample(batches, dice.randint(1, len(batches)))
            over = COLUMNS[dice.choice([0, 3])]
            condition = stored_value(over, COLUMNS) >= pa.scalar(
                3, pa.int64() if over.name == "k" else pa.decimal128(38, 2)
            )
            how: dict[str, Any] = dice.choice([{}, {"condition": condition, "over": [over]}])
            asked: dict[str, Any] = {
                "lower": dice.choice([None, 20]), "upper": dice.choice([None, 40]),
                "columns": dice.choice([None, ["t"], ["n", "k"], ["f"], []]), **how,
            }  # fmt: skip
            one, other = (shards.read(row, chosen, **asked) for shards in (hot, cold))
            assert one.schema == other.schema
            assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))
        if dice.random() < 0.4:
            hot = opened()
    for _ in range(2):
        hot.read(row, batches)
    last = opened()
    assert sorted(map(repr, last.read(row, batches).to_pylist())) == sorted(
        map(repr, cold.read(row, batches).to_pylist())
    )
    assert last.rows_decoded == 0
