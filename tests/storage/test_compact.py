"""Compaction: invisible, few batches, little work."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mz_dagster.catalog import Catalog, CollectionRow, NewObject, Seal, Sealed
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain, CollectionVersion, GlobalId, Ptvc, Timeline, Update
from mz_dagster.scalars.types import INT4, Column
from mz_dagster.storage import (
    LocalShards,
    Merge,
    ReadBeforeSince,
    ReadBeyondUpper,
    choose_merge,
    compact,
    compare_and_append,
    read_at,
    read_updates,
    sort_key,
    sweep,
    update_table,
)

TIMELINE = Timeline("t", EPOCH_MS)
COLUMNS = (Column("k", INT4), Column("v", INT4))


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def live(sizes: list[int], least_parts: int) -> list[int]:
    start = choose_merge(sizes, least_parts)
    return sizes if start is None else [*sizes[:start], sum(sizes[start:])]


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=200), st.integers(1, 6))
def test_batches_are_logarithmic_in_the_updates(appends: list[int], least_parts: int) -> None:
    sizes: list[int] = []
    for one in appends:
        sizes = live([*sizes, one], least_parts)
        assert len(sizes) <= math.log2(sum(sizes)) + 1 + least_parts


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=200), st.integers(2, 6), st.integers(1, 20))
def test_each_update_is_rewritten_logarithmically_often(appends: list[int], least_parts: int, every: int) -> None:
    """Compaction runs after every so many appends; counts how often the most often rewritten update was."""
    batches: list[tuple[int, int]] = []  # size, most rewrites of an update in it
    for number, one in enumerate(appends):
        batches.append((one, 0))
        if number % every:
            continue
        start = choose_merge([size for size, _ in batches], least_parts)
        if start is not None:
            merged = batches[start:]
            batches[start:] = [(sum(size for size, _ in merged), max(rewrites for _, rewrites in merged) + 1)]
    assert max(rewrites for _, rewrites in batches) <= math.log2(sum(appends)) + 1


@given(st.lists(st.integers(1, 120), min_size=1, max_size=400), st.integers(1, 6), st.integers(1, 200))
def test_bounded_merges_leave_few_young_batches_and_write_little(
    appends: list[int], least_parts: int, most_rows: int
) -> None:
    """Of the batches that together have no more than the bound there are few; no merge exceeds it."""
    batches: list[tuple[int, int]] = []  # size, most rewrites of an update in it
    for one in appends:
        batches.append((one, 0))
        start = choose_merge([size for size, _ in batches], least_parts, most_rows)
        if start is not None:
            merged = batches[start:]
            assert sum(size for size, _ in merged) <= most_rows
            batches[start:] = [(sum(size for size, _ in merged), max(rewrites for _, rewrites in merged) + 1)]
        young = [sum(size for size, _ in batches[i:]) <= most_rows for i in range(len(batches))].count(True)
        assert young <= math.log2(most_rows) + 1 + least_parts
    assert max(rewrites for _, rewrites in batches) <= math.log2(most_rows) + 1


def test_a_big_old_batch_is_left_alone_until_the_young_have_grown() -> None:
    assert choose_merge([1000, *[1] * 999]) == 1
    assert choose_merge([1000, *[1] * 1000]) == 0
    assert choose_merge([1000, 500, 200, 100]) is None
    assert choose_merge([]) is None
    assert choose_merge([5], least_parts=1) is None


def test_the_layout_follows_the_smallest_key() -> None:
    row = CollectionRow(GlobalId("u1"), "t", at(0), at(0), COLUMNS, frozenset(), "x", None)
    assert sort_key(row) == ("k", "v")
    keyed = CollectionRow(
        GlobalId("u1"), "t", at(0), at(0), COLUMNS, frozenset({frozenset({0, 1}), frozenset({1})}), "x", None
    )
    assert sort_key(keyed) == ("v",)


class Twin:
    """Is a collection in a real shard beside its specification."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(1_000_000)
        self.catalog = Catalog.open(f"sqlite:///{folder}/catalog.sqlite", clock=self.clock)
        self.catalog.declare_timeline("t")
        self.id = self.catalog.create_object(NewObject("x", "table", "", "t", COLUMNS)).id
        self.shards = LocalShards(folder)
        self.ptvc: Ptvc[tuple[int | None, int | None], int] = Ptvc.begin(TIMELINE)

    @property
    def row(self) -> CollectionRow:
        return self.catalog.collection(self.id)

    def append(self, length: int, updates: list[tuple[tuple[int | None, int | None], int, int]]) -> None:
        lower = self.row.upper.only
        placed = [(data, lower + offset % length, diff) for data, offset, diff in updates]
        self.append_only(length, placed)
        self.ptvc = self.ptvc.append(Antichain.of(TIMELINE, lower + length), [Update(*one) for one in placed])

    def append_only(self, length: int, placed: list[tuple[tuple[int | None, int | None], int, int]]) -> None:
        """Appends updates at their own times, and does not tell the specification."""
        self.append_frame(length, update_table(COLUMNS, placed))

    def append_frame(self, length: int, frame: pa.Table) -> None:
        lower = self.row.upper.only
        outcome = compare_and_append(
            self.catalog,
            self.shards,
            self.row,
            at(lower),
            at(lower + length),
            frame,
            holder="test",
        )
        assert isinstance(outcome, Sealed)

    def advance_since(self, keep: int) -> None:
        moved = self.catalog.allow_compaction("t", retention_ms=keep)
        if moved:
            self.ptvc = self.ptvc.compact(Antichain.of(TIMELINE, moved[self.id].only))

    def check(self) -> None:
        row = self.row
        assert (row.since.elements, row.upper.elements) == (self.ptvc.since.elements, self.ptvc.upper.elements)
        for time in range(row.since.only, row.upper.only):
            with read_at(self.catalog, self.shards, row, time, holder="test") as frame:
                assert contents(frame) == version(self.ptvc.read(time)), time
        if row.since.only:
            with (
                pytest.raises(ReadBeforeSince),
                read_at(self.catalog, self.shards, row, row.since.only - 1, holder="test"),
            ):
                pass
        with pytest.raises(ReadBeyondUpper), read_at(self.catalog, self.shards, row, row.upper.only, holder="test"):
            pass


def contents(frame: object) -> Counter[tuple[object, ...]]:
    rows = [tuple(row.values()) for row in frame.to_pylist()]  # type: ignore[attr-defined]
    return Counter({row[:-3]: row[-2] for row in rows})


def version(read: CollectionVersion[tuple[int | None, int | None]]) -> Counter[tuple[object, ...]]:
    return Counter({tuple(data): count for data, count in read.multiplicities.items()})


CELLS = st.one_of(st.none(), st.integers(0, 2))
UPDATES = st.lists(st.tuples(st.tuples(CELLS, CELLS), st.integers(0, 9), st.sampled_from([-1, 1, 2])), max_size=4)
COMMANDS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), UPDATES),
        st.tuples(st.just("since"), st.integers(0, 6), st.none()),
        st.tuples(st.just("compact"), st.integers(1, 3), st.none()),
        st.tuples(st.just("sweep"), st.booleans(), st.none()),
    ),
    max_size=12,
)


@pytest.mark.timeout(300)
@settings(max_examples=26, deadline=None)
@given(COMMANDS)
def test_the_shard_reads_as_its_specification_does(
    tmp_path_factory: pytest.TempPathFactory, commands: list[tuple[str, int, list[object] | None]]
) -> None:
    twin = Twin(tmp_path_factory.mktemp("twin"))
    with twin.catalog:
        for command, number, updates in commands:
            match command:
                case "append":
                    twin.append(number, updates)  # type: ignore[arg-type]
                case "since":
                    twin.advance_since(number)
                case "compact":
                    compact(twin.catalog, twin.shards, twin.row, holder="test", least_parts=number)
                case _:
                    sweep(twin.catalog, twin.shards, thorough=bool(number))
        twin.check()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("times", [60, pytest.param(100, marks=pytest.mark.deep)])
def test_overwritten_keys_compact_to_the_key_space(tmp_path: Path, times: int) -> None:
    """Item 179, in small: 10 keys overwritten 100 times are stored in about 10 rows."""
    twin = Twin(tmp_path)
    with twin.catalog:
        read = written = 0
        twin.append(1, [((k, 0), 0, 1) for k in range(10)])
        values = dict.fromkeys(range(10), 0)
        for time in range(1, times + 1):
            k = time % 10
            twin.append(1, [((k, values[k]), 0, -1), ((k, time), 0, 1)])
            values[k] = time
            twin.advance_since(0)
            merge = compact(twin.catalog, twin.shards, twin.row, holder="test")
            if isinstance(merge, Merge):
                read, written = read + merge.rows_read, written + merge.rows_written
                sweep(twin.catalog, twin.shards)
        count, stats = twin.catalog.live_batch_counts()[twin.id]
        assert count <= 6
        assert stats.rows <= 40
        assert written <= read <= 10 * (2 * times + 10)
        assert len(list((tmp_path / twin.row.shard).glob("mz_batch=*"))) == count


def test_intervals_of_updates_are_exact_after_compaction(tmp_path: Path) -> None:
    twin = Twin(tmp_path)
    with twin.catalog:
        for time in range(10):
            twin.append(1, [((time, 0), 0, 1)])
        twin.advance_since(4)
        assert twin.row.since == at(5)
        compact(twin.catalog, twin.shards, twin.row, holder="test", least_parts=2)
        for lower in range(6, 11):
            with read_updates(twin.catalog, twin.shards, twin.row, lower=lower, holder="test") as frame:
                assert sorted(row["k"] for row in frame.to_pylist()) == list(range(lower, 10))
        # At since and before, one cannot tell any more when something happened.
        with (
            pytest.raises(ReadBeforeSince),
            read_updates(twin.catalog, twin.shards, twin.row, lower=5, holder="test"),
        ):
            pass


def test_a_dropped_collection_cannot_be_read_and_its_folder_goes(tmp_path: Path) -> None:
    twin = Twin(tmp_path)
    with twin.catalog:
        twin.append(5, [((1, 1), 0, 1)])
        row = twin.row
        twin.catalog.drop_object(twin.id)
        with pytest.raises(ReadBeforeSince, match="any more"), read_at(twin.catalog, twin.shards, row, 1, holder="t"):
            pass
        sweep(twin.catalog, twin.shards, thorough=True)
        assert not (tmp_path / row.shard).exists()
        assert twin.catalog.seal([Seal(twin.id, at(5), at(6))]) is not None
