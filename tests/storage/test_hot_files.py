"""Files that are read again are in memory, up to a limit; what is read is what the batch list names, as without."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.catalog import Batch, BatchId, CollectionRow
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.scalars.types import INT8, TEXT, TIMESTAMP, Column, numeric
from mz_dagster.storage import LocalShards, update_table
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.decoded_files import HotFile
from mz_dagster.storage.hot_files import HotFiles
from mz_dagster.storage.kept_columns import compacted
from mz_dagster.storage.lookup import KeyValues
from mz_dagster.storage.numerics import stored_value
from mz_dagster.storage.shards import BatchIncomplete
from tests.budgets import SetBudget
from tests.storage.test_clustering import collection, listed

COLUMNS = (Column("k", INT8), Column("name", TEXT), Column("n", numeric(2)))
KEYED = (Column("k", INT8), Column("at", TIMESTAMP), Column("t", TEXT))
FILE = HotFile("u1", "mz_batch=1/x.parquet", "h")


def rows(count: int) -> pa.Table:
    return pa.table({"a": pa.array(range(count)), "b": pa.array(range(count))})


def test_a_file_is_kept_from_the_second_read_on() -> None:
    files = HotFiles(10**6)
    asked: list[list[str]] = []

    def read(names: Sequence[str]) -> pa.Table:
        asked.append(list(names))
        return rows(10).select(names)

    assert files.columns(FILE, 10, ["a"], read) is None
    for _ in range(2):
        found = files.columns(FILE, 10, ["a"], read)
        assert found is not None
        assert found.column_names == ["a"]
    assert files.columns(FILE, 10, ["b", "a"], read) is not None
    assert asked == [["a"], ["b"]], "a column is read once"
    files.forget("u1", ["mz_batch=1"])
    assert files.bytes == 0


def test_what_was_least_lately_read_goes_first_and_the_limit_holds() -> None:
    files = HotFiles(4 * 160)
    for number in range(6):
        files.keep(FILE._replace(hash=str(number)), rows(10))
        assert files.columns(FILE._replace(hash="0"), 10, ["a"], lambda _: rows(10)) is not None
        assert files.bytes <= 4 * 160
    found = [files.columns(FILE._replace(hash=str(one)), 10, ["a"], lambda _: rows(10)) is not None for one in range(6)]
    assert found == [True, False, False, True, True, True]
    files.keep(FILE, rows(11))
    assert files.columns(FILE, 11, ["a", "b"], lambda _: rows(11)) is None, "it is more than a quarter of the limit"


def test_of_more_files_than_find_room_as_many_stay_as_do() -> None:
    files = HotFiles(8 * 160)
    read = dict.fromkeys((FILE._replace(hash=str(number)) for number in range(12)), 0)

    def reading(file: HotFile) -> pa.Table:
        read[file] += 1
        return rows(10)

    for _ in range(20):
        for file in read:
            files.columns(file, 10, ["a", "b"], lambda _, file=file: reading(file))  # type: ignore[misc]
            assert files.bytes <= 8 * 160
    assert sorted(read.values()) == [0] * 4 + [1] * 8, "read one after the other, each would be forgotten in time"
    others = [FILE._replace(hash=str(number)) for number in range(20, 28)]
    for _ in range(3):
        for file in others:
            files.columns(file, 10, ["a", "b"], lambda _: rows(10))
    assert all(files.has(file, 10, ["a"]) for file in others), "what is not read any more goes"


@pytest.mark.parametrize(
    "type_",
    [
        pa.int8(), pa.int64(), pa.float64(), pa.bool_(), pa.decimal128(38, 2), pa.date32(), pa.timestamp("us"),
        pa.string(), pa.large_binary(), pa.binary(16), pa.list_(pa.int64()), pa.decimal256(60, 2), pa.null(),
    ],
    ids=str,
)  # fmt: skip
def test_a_column_without_a_value_is_one_wherever_it_lies(type_: pa.DataType) -> None:
    for count in (1_000, 70_001, 3_000):
        column, _ = compacted(pa.chunked_array([pa.nulls(count, type_)]))
        column.validate(full=True)
        assert column.type == type_
        assert column.null_count == len(column) == count
        assert column.slice(5, 700).to_pylist() == [None] * 700
        assert pa.concat_arrays([column.take([3, 999]).combine_chunks(), pa.nulls(1, type_)]).null_count == 3


@pytest.mark.parametrize(
    ("cells", "type_", "extra"),
    [
        ([[1, 3], [3, 9]], pa.int64(), 0),
        ([[1, 3], [2, 9]], pa.int64(), 4 * 12),
        ([[1, 3], [4, None]], pa.int64(), 4 * 12),
        ([[1, 2], [3, 4]], pa.timestamp("us"), 0),
        ([["a", "b"], ["c", "d"]], pa.string(), 4 * 4 + 4 * 5),
    ],
)
def test_what_lies_in_order_is_not_kept_twice(cells: list[list[Any]], type_: pa.DataType, extra: int) -> None:
    files = HotFiles(10**6)
    files.keep(FILE, pa.table({"k": pa.chunked_array([pa.array(one, type_) for one in cells])}))
    kept = files.columns(FILE, 4, ["k"], lambda _: rows(0))
    assert kept is not None
    assert kept.column("k").num_chunks == 1, "rows of a column in one piece are taken without copying all of it"
    before = files.bytes
    for _ in range(2):
        ordered = files.ordered(FILE, kept, "k")
        assert ordered.values.to_pylist() == kept.column("k").take(ordered.rows).to_pylist()
        present = ordered.values.drop_null().to_pylist()
        assert present == sorted(present)
        assert files.bytes - before == pytest.approx(extra, abs=1)


def test_equal_integers_are_counted_once() -> None:
    first, second, third = (
        compacted(pa.chunked_array([pa.array([7] * count, pa.int64())])) for count in (5_000, 2_000, 9_000)
    )
    assert [bytes_ for _, bytes_ in (first, second, third)] == [8 * 5_000, 0, 8 * 9_000]
    assert [column.to_pylist() == [7] * len(column) for column, _ in (first, second, third)] == [True] * 3
    column, bytes_ = compacted(pa.chunked_array([pa.array([7] * 4_999 + [None])]))
    assert (column.null_count, bytes_ > 8 * 4_999) == (1, True)


def written(row: CollectionRow, shards: LocalShards, number: int, table: pa.Table) -> Batch:
    return listed(number, shards.append(row, BatchId(number), table))


@pytest.mark.parametrize("seed", range(3))
def test_reads_are_the_same_with_and_without(tmp_path: Path, set_budget: SetBudget, seed: int) -> None:
    set_budget(narrowed_cells=2)
    dice, row = random.Random(seed), collection(COLUMNS)
    writer, hot, cold = LocalShards(tmp_path, hot_bytes=0), LocalShards(tmp_path), LocalShards(tmp_path, hot_bytes=0)
    batches = []
    for number in range(1, 4):
        numbers = [None, *(Decimal(dice.randrange(10**4)) / 100 for _ in range(9))]
        updates = [
            ((dice.randrange(9), dice.choice([None, "a", "b"]), dice.choice(numbers)),
             dice.randrange(50), dice.choice([1, -1]), dice.choice([None] * 9 + ["22012 division by zero"]))
            for _ in range(30)
        ]  # fmt: skip
        batches.append(written(row, writer, number, update_table(COLUMNS, updates)))
    for _ in range(12):
        chosen = dice.sample(batches, dice.randint(1, 3))
        over = COLUMNS[dice.choice([0, 2])]
        condition = stored_value(over, COLUMNS) >= pa.scalar(
            3, pa.int64() if over.name == "k" else pa.decimal128(38, 2)
        )
        how: dict[str, Any] = dice.choice([{}, {"condition": condition, "over": [over]}, {"condition": condition}])
        asked: dict[str, Any] = {
            "lower": dice.choice([None, 20]), "upper": dice.choice([None, 40]),
            "columns": dice.choice([None, ["name"], ["n", "k"], []]), **how,
        }  # fmt: skip
        one, other = (shards.read(row, chosen, **asked) for shards in (hot, cold))
        assert one.schema == other.schema
        assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))
    assert hot.rows_decoded < cold.rows_decoded


def test_what_is_kept_is_not_read_once_its_file_is_gone(tmp_path: Path) -> None:
    row, shards = collection(COLUMNS), LocalShards(tmp_path)
    batch = written(row, shards, 1, update_table(COLUMNS, [((1, "a", None), 1, 1)]))
    assert shards.read(row, [batch]).num_rows == 1
    assert shards.rows_decoded == 0, "what this process wrote is in memory"
    shards.delete(row, [batch.id])
    with pytest.raises(BatchIncomplete):
        shards.read(row, [batch])


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_many_keys_are_found_by_their_order(tmp_path: Path, set_budget: SetBudget, seed: int) -> None:
    """The same as by comparing each row, and fewer rows are compared."""
    dice, row = random.Random(seed), collection(KEYED)
    set_budget(ordered_rows=0)
    moments = [None, *(datetime(2020, 1, one) for one in range(1, 9))]
    shards, batches = LocalShards(tmp_path), []
    for number in range(1, 4):
        updates = [
            ((dice.choice([None, *range(-20, 20)]), dice.choice(moments), dice.choice("ab")), dice.randrange(9), 1)
            for _ in range(400)
        ]
        failed = [((None,) * 3, 3, 1, "22012 division by zero")] if number == 1 else []
        batches.append(written(row, shards, number, update_table(KEYED, [*updates, *failed])))
    for _ in range(12):
        positions = sorted(dice.sample(range(3), dice.randint(1, 3)))
        columns = {position: KEYED[position] for position in positions}
        keys = shards.read(row, batches).slice(dice.randrange(1_000), dice.choice([0, 1, 5])).select(positions)
        sought = LookupKeys.of(columns, [keys])
        files = shards.files(row, batches)
        asked: dict[str, Any] = {"upper": dice.choice([None, 5]), "over": list(columns.values())}
        asked["condition"] = sought.condition(KEYED)
        one, other = (shards.read_files(row, batches, files, **asked, key=key) for key in (None, sought.values))
        assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))


def test_a_lookup_of_keys_in_memory_costs_by_the_keys(tmp_path: Path) -> None:
    """To compare each of a million rows takes twenty times as long."""
    row, shards, rows = collection(KEYED), LocalShards(tmp_path), 1_000_000
    data = [pa.array(range(rows)), pa.nulls(rows, pa.timestamp("us")), pa.repeat("a", rows)]
    meta = [pa.repeat(1, rows), pa.repeat(1, rows), pa.nulls(rows, pa.string())]
    batch = written(row, shards, 1, pa.Table.from_arrays([*data, *meta], schema=update_schema(KEYED)))
    sought = LookupKeys.of({0: KEYED[0]}, [pa.table({"k": pa.array([5, 900], pa.int64())})])
    files = shards.files(row, [batch])

    def seconds(key: KeyValues | None) -> float:
        begin = time.process_time()
        found = shards.read_files(row, [batch], files, condition=sought.condition(KEYED), over=[KEYED[0]], key=key)
        taken = time.process_time() - begin
        assert found.num_rows == 2
        return taken

    by_order, by_rows = (min(seconds(key) for _ in range(6)) for key in (sought.values, None))
    assert 3 * by_order < by_rows, (by_order, by_rows)
