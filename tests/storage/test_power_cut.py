"""A power cut takes back nothing that was sealed: all that a batch is read through is on disk before its seal.

Each test cuts the power at every transaction that makes batches live, before it commits, and reads all that the catalog
lists afterwards from what that leaves of the shards. What the catalog promises of a power cut, its database does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest

from mz_dagster.catalog import BatchState, Catalog, CollectionRow, NewObject, Sealed
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.scalars.types import INT4, Column
from mz_dagster.storage import (
    BatchIncomplete,
    CollectionDescription,
    FileDamaged,
    Inlining,
    LocalShards,
    Merge,
    ShardUnavailable,
    Storage,
    compact,
    compare_and_append,
    local_shards,
    sweep,
    table_log,
    table_sync,
    update_table,
)
from mz_dagster.storage.shards import TABLE_PROPERTIES
from tests.storage.power import PowerCut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (Column("k", INT4),)


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


class House:
    """Is a collection whose power is cut whenever a batch of it becomes live."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = Catalog.open(f"sqlite:///{folder}/catalog.sqlite", clock=ManualClock(1_000_000))
        self.catalog.declare_timeline("t")
        self.id = self.catalog.create_object(NewObject("x", "table", "", "t", COLUMNS)).id
        root = folder / "root"
        root.mkdir()
        self.power = PowerCut(root)
        self.shards = LocalShards(root, self.catalog, Inlining(0, 0))
        self.cuts = 0

    @property
    def row(self) -> CollectionRow:
        return self.catalog.collection(self.id)

    @contextmanager
    def cutting(self) -> Iterator[None]:
        """Cuts the power in every transaction that makes a batch live, for the length of a block."""

        def cut(real: Callable[..., Any]) -> Callable[..., Any]:
            def command(*arguments: Any, **named: Any) -> Any:
                with self.power.over():
                    done = real(*arguments, **named)
                    self.check()
                self.cuts += 1
                return done

            return command

        with self.power.noting(), ExitStack() as patches:
            for name in ("seal", "replace_batches", "append_batch"):
                patches.enter_context(mock.patch.object(self.catalog, name, cut(getattr(self.catalog, name))))
            yield

    def check(self) -> None:
        """Reads what is live from what a power cut now leaves."""
        for row in self.catalog.collections():
            live = self.catalog.batches(row.id, BatchState.LIVE)
            for early in (True, False):
                left = LocalShards(self.power.left(self.folder / "left", early=early), self.catalog)
                rows = left.read(row, live).to_pylist()
                # Every time has one update, and since has moved nothing.
                assert Counter(one["mz_timestamp"] for one in rows) == Counter(range(row.upper.only))

    def append(self) -> None:
        upper = self.row.upper.only
        frame = update_table(COLUMNS, [((upper,), upper, 1)])
        sealed = compare_and_append(self.catalog, self.shards, self.row, at(upper), at(upper + 1), frame, holder="test")
        assert isinstance(sealed, Sealed)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A house whose tables have a checkpoint every third commit, and keep no log for longer than they must."""
    properties = {"delta.checkpointInterval": "3", "delta.logRetentionDuration": "interval 0 seconds"}
    monkeypatch.setattr(local_shards, "TABLE_PROPERTIES", {**TABLE_PROPERTIES, **properties})
    made = House(tmp_path)
    with made.catalog:
        yield made


def test_what_was_sealed_outlives_a_power_cut(house: House) -> None:
    with house.cutting():
        for number in range(1, 15):
            house.append()
            if number % 5 == 0:
                assert isinstance(compact(house.catalog, house.shards, house.row, holder="test"), Merge)
                sweep(house.catalog, house.shards, thorough=number == 10)
                with house.power.over():
                    house.check()
    assert house.cuts == 14 + 2
    log = house.shards.path(house.row) / "_delta_log"
    assert not (log / f"{0:020d}.json").exists(), "no log was cut, so this has tested less than it says"


def test_what_was_sealed_in_the_catalog_outlives_a_power_cut_beside_files(house: House) -> None:
    """Some batches are inlined, and a merge of several has grown to a file."""
    with house.cutting():
        for number in range(1, 11):
            house.shards = LocalShards(house.power.root, house.catalog, Inlining(number % 3, 65_536))
            house.append()
            if number % 5 == 0:
                assert isinstance(compact(house.catalog, house.shards, house.row, holder="test"), Merge)
                sweep(house.catalog, house.shards, thorough=True)
                with house.power.over():
                    house.check()
    assert house.cuts == 10 + 2


def test_commits_of_others_that_a_batch_is_read_through_are_on_disk(house: House) -> None:
    """A writer that dies before its seal leaves a commit that nobody forced to disk; those after it lie upon it."""
    with house.cutting():
        house.append()
        writer = house.catalog.register_writer("dies", 60_000)
        batch = house.catalog.reserve_batch(house.id, writer, at(1), at(2))
        with house.power.over():
            house.shards.append(house.row, batch, update_table(COLUMNS, [((0,), 1, 1)]))
        house.shards = LocalShards(house.power.root)  # another process, which remembers nothing
        house.append()
        house.append()
    assert house.cuts == 3


def test_an_append_under_a_write_capability_outlives_a_power_cut(house: House) -> None:
    storage = Storage(house.catalog, house.shards, holder="test")
    with house.cutting():
        _, write = storage.create(storage.new_id(), CollectionDescription("t", COLUMNS))
        for time in range(3):
            write = storage.append(write, [((time,), time, 1)], at(time + 1))
    assert house.cuts == 3


@pytest.mark.parametrize("forgotten", ["sync", "sync_tree"])
def test_the_check_sees_what_is_not_forced_to_disk(house: House, forgotten: str) -> None:
    with (
        house.cutting(),
        mock.patch.object(table_sync, forgotten),
        pytest.raises((AssertionError, BatchIncomplete, FileDamaged, ShardUnavailable, pa.ArrowInvalid)),
    ):
        house.append()


def test_what_cannot_be_forced_to_disk_is_not_sealed(house: House) -> None:
    failure = OSError(5, "Input/output error")
    with (
        mock.patch.object(table_sync, "sync_tree", side_effect=failure),
        pytest.raises(ShardUnavailable, match="Input/output error"),
    ):
        house.append()
    assert house.row.upper == at(0)
    house.append()


def test_a_log_that_was_made_anew_is_forced_to_disk_from_its_beginning(house: House) -> None:
    with house.cutting():
        for _ in range(4):
            house.append()
        live = house.catalog.batches(house.id, BatchState.LIVE)
        assert table_log.rebuild_log(house.shards, house.row, live) is not None
        with house.power.over():
            house.check()
        house.append()


@pytest.mark.deep
def test_what_spark_wrote_outlives_a_power_cut(house: House, spark: SparkSession) -> None:
    from mz_dagster.storage.spark_shards import SparkShards
    from mz_dagster.storage.spark_shards import update_schema as spark_schema

    shards = SparkShards(house.power.root, spark)
    with house.cutting():
        for time in range(4):
            frame = spark.createDataFrame([(time, time, 1, None)], spark_schema(COLUMNS))
            sealed = compare_and_append(house.catalog, shards, house.row, at(time), at(time + 1), frame, holder="test")
            assert isinstance(sealed, Sealed)
        assert isinstance(compact(house.catalog, shards, house.row, holder="test"), Merge)
        house.append()  # upon commits of Spark
    assert house.cuts == 6
