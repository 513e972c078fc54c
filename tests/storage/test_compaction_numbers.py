"""Compaction's promises as numbers: how many batches, how much is written again, what is left in the end."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mz_dagster.budget import Budget
from mz_dagster.catalog import NewObject
from mz_dagster.errors import DataError
from mz_dagster.storage import Merge, choose_merge, compact, read_at, sweep, update_table
from mz_dagster.storage.shards import MultiplicityOverflow
from tests.storage.test_compact import COLUMNS, Twin, at, contents

APPENDS = 10_000


@pytest.mark.parametrize("kind", ["equal", "random", "few large", "hourly"])
def test_ten_thousand_appends_lie_in_few_batches_and_are_rewritten_logarithmically_often(kind: str) -> None:
    rng = random.Random(7)
    sizes: list[int] = []
    appended = rewritten = most = 0
    every = 3600 if kind == "hourly" else 1
    for number in range(1, APPENDS + 1):
        size = {"equal": 10, "hourly": 10, "random": rng.randint(1, 1000)}.get(kind) or rng.choice([1, 1, 1, 1, 5000])
        appended += size
        sizes.append(size)
        if number % every:
            continue
        while (start := choose_merge(sizes)) is not None:
            merged = sum(sizes[start:])
            rewritten += merged
            sizes[start:] = [merged]
        most = max(most, len(sizes))
        assert len(sizes) <= math.log2(appended) + Budget().merged_parts
        assert rewritten <= appended * (math.log2(appended) + 1)
    # As measured: about half of the logarithm of the number of appends, and a merge an hour writes each update twice.
    assert rewritten <= appended * (2 if kind == "hourly" else math.log2(APPENDS)), rewritten / appended
    assert most <= math.log2(APPENDS) + Budget().merged_parts


@pytest.mark.parametrize("rounds", [400, pytest.param(1000, marks=pytest.mark.deep)])
def test_a_thousand_keys_overwritten_a_million_times_are_stored_in_a_thousand_rows(tmp_path: Path, rounds: int) -> None:
    """The seed's upserts: what is stored follows the key space, whatever was ingested."""
    keys, at_once = 1000, 25
    twin = Twin(tmp_path)
    with twin.catalog:
        merged = 0
        for first in range(0, rounds, at_once):
            twin.append_frame(at_once, overwritten(keys, range(first, first + at_once)))
            twin.catalog.allow_compaction("t", retention_ms=0)
            while isinstance(merge := compact(twin.catalog, twin.shards, twin.row, holder="test"), Merge):
                merged += merge.rows_read
        last = compact(twin.catalog, twin.shards, twin.row, holder="test", least_parts=1)
        assert isinstance(last, Merge)
        sweep(twin.catalog, twin.shards)
        count, stats = twin.catalog.live_batch_counts()[twin.id]
        assert (count, stats.rows, stats.files) == (1, keys, 1)
        assert merged <= 2 * keys * rounds * 2  # each update is read once or twice on its way out
        with read_at(twin.catalog, twin.shards, twin.row, rounds - 1, holder="test") as frame:
            assert contents(frame) == {(key, rounds - 1): 1 for key in range(keys)}


def overwritten(keys: int, times: range) -> pa.Table:
    """Returns the updates by which at each time all keys lose the value of the time before, and gain one of theirs."""
    time = np.repeat(np.array(times), keys)
    key = np.tile(np.arange(keys), len(times))
    new = np.stack([key, time, time, np.ones_like(time)])
    old = np.stack([key, time - 1, time, -np.ones_like(time)])[:, time > 0]
    k, v, at_time, diff = np.concatenate([new, old], axis=1)
    schema = update_table(COLUMNS, []).schema
    return pa.table([k.astype("int32"), v.astype("int32"), at_time, diff, pa.nulls(len(k), pa.string())], schema=schema)


def test_each_object_keeps_the_history_that_is_asked_of_it(tmp_path: Path) -> None:
    twin = Twin(tmp_path)
    with twin.catalog:
        new = [NewObject(name, "source", "", "t", (), since=0, upper=1000) for name in ("a", "b", "c")]
        a, b, c = (twin.catalog.create_object(one).id for one in new)
        twin.catalog.set_retention(a, 100)
        twin.catalog.set_retention(b, 0)
        twin.catalog.allow_compaction("t", retention_ms=500)
        assert [twin.catalog.collection(id).since for id in (a, b, c)] == [at(899), at(999), at(499)]
        twin.catalog.set_retention(a, 10_000)  # what is forgotten stays so
        twin.catalog.allow_compaction("t", retention_ms=500)
        assert twin.catalog.collection(a).since == at(899)


def test_two_compactions_at_once_with_appends_readers_and_sweeps_cost_each_other_at_most_their_work(
    tmp_path: Path,
) -> None:
    """What loses a race changes nothing, and says so; contents are those of the specification throughout."""
    twin = Twin(tmp_path)
    failures: list[BaseException] = []
    over = threading.Event()

    def again_and_again(work: Callable[[], object]) -> None:
        try:
            while not over.is_set():
                work()
        except BaseException as error:
            failures.append(error)

    def merging() -> None:
        compact(twin.catalog, twin.shards, twin.row, holder="m", least_parts=2)

    def reading() -> None:
        upper = twin.row.upper.only
        if upper:
            with read_at(twin.catalog, twin.shards, twin.row, upper - 1, holder="r") as frame:
                assert sum(contents(frame).values()) == upper

    with twin.catalog:
        works = [merging, merging, reading, lambda: sweep(twin.catalog, twin.shards, thorough=True)]
        threads = [threading.Thread(target=again_and_again, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            for number in range(15):
                twin.append(1, [((number, 0), 0, 1)])
        finally:
            over.set()
            for thread in threads:
                thread.join(60)
        assert not failures, failures
        twin.check()
        assert twin.catalog.live_batch_counts()[twin.id][1].rows == 15
        compact(twin.catalog, twin.shards, twin.row, holder="test", least_parts=2)
        sweep(twin.catalog, twin.shards, thorough=True)
        assert len(list(twin.shards.path(twin.row).glob("mz_batch=*"))) == len(twin.catalog.batches(twin.id))


def test_a_multiplicity_that_does_not_fit_fails_its_merge_and_loses_nothing(tmp_path: Path) -> None:
    """No number can stand for it, so reading it is an error, too; both heal once copies are deleted."""
    twin = Twin(tmp_path)
    most = 2**63 - 1
    with twin.catalog:
        twin.append_only(1, [((1, 1), 0, most), ((2, 2), 0, 1)])
        twin.append_only(1, [((1, 1), 1, 1)])
        twin.catalog.allow_compaction("t", retention_ms=0)
        for _ in range(2):
            with pytest.raises(MultiplicityOverflow) as caught:
                compact(twin.catalog, twin.shards, twin.row, holder="test", least_parts=1)
            assert isinstance(caught.value, DataError)
            assert "Delete some of its copies" in str(caught.value.hint)
        with pytest.raises(MultiplicityOverflow), read_at(twin.catalog, twin.shards, twin.row, 1, holder="test"):
            pass
        assert twin.catalog.live_batch_counts()[twin.id][1].rows == 3
        twin.append_only(1, [((1, 1), 2, -5)])
        twin.catalog.allow_compaction("t", retention_ms=0)
        assert isinstance(compact(twin.catalog, twin.shards, twin.row, holder="test", least_parts=1), Merge)
        with read_at(twin.catalog, twin.shards, twin.row, 2, holder="test") as frame:
            assert contents(frame) == {(1, 1): most - 4, (2, 2): 1}
        sweep(twin.catalog, twin.shards, thorough=True)
