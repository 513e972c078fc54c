"""Disks that are full, read-only or damaged: an error that says what to do, and then all goes on; nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mz_dagster.catalog import Catalog, CatalogUnavailable
from mz_dagster.clock import ManualClock
from mz_dagster.errors import Error, OperationalError
from mz_dagster.storage import BatchIncomplete, LocalShards, ShardUnavailable, sweep
from tests.errors import says_what_to_do
from tests.storage.disks import Disk, small_disk
from tests.storage.life import WINDOW, Life, rows_at
from tests.storage.test_crashes import EPOCH, LATER, check_nothing_is_left


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


def goes_on(life: Life) -> None:
    """Checks that everything works and that no append was lost, doubled, or left behind as garbage."""
    assert isinstance(life.clock, ManualClock)
    life.clock.advance(LATER)  # to when the leases are over that nobody could give back
    before = life.row.upper.only
    for _ in range(WINDOW):
        life.tick()
        life.compact()
    assert life.row.upper.only == before + WINDOW
    life.check()
    check_nothing_is_left(life)


@pytest.mark.parametrize("what", ["catalog", "shards"])
def test_a_full_disk_is_an_error_and_costs_nothing_once_there_is_room(disk: Disk, tmp_path: Path, what: str) -> None:
    """With any number of free pages something else does not fit: a folder, a file, a log entry, a page of SQLite."""
    with (life := Life(disk.root if what == "catalog" else tmp_path, ManualClock(EPOCH))).catalog:
        life.shards = LocalShards(disk.root if what == "shards" else tmp_path)
        for _ in range(3):
            life.tick()
        errors: list[Error] = []
        works: tuple[Callable[[], object], ...] = (life.tick, life.compact, lambda: life.sweep(thorough=True))
        for free_pages in range(12):
            for work in works:
                upper = life.row.upper.only
                with disk.full(free_pages=free_pages):
                    try:
                        work()
                    except Error as error:
                        errors.append(error)
                assert life.row.upper.only in (upper, upper + 1)
                assert life.read(life.row.upper.only - 1) == rows_at(life.row.upper.only - 1)
        expected = CatalogUnavailable if what == "catalog" else ShardUnavailable
        kinds = {type(error) for error in errors}
        # Without a disk of its own all files of this process are too large.
        assert kinds == {expected} if disk.is_mounted else expected in kinds
        for failed in errors:
            says_what_to_do(failed, "space")
        goes_on(life)


def test_a_read_only_folder_of_shards_can_be_read_and_nothing_else(disk: Disk, tmp_path: Path) -> None:
    with (life := Life(tmp_path, ManualClock(EPOCH))).catalog:
        life.shards = LocalShards(disk.root)
        for _ in range(4):
            life.tick()
        with disk.read_only():
            life.check()
            for work in (life.tick, life.compact):
                with pytest.raises(ShardUnavailable) as caught:
                    work()
                says_what_to_do(caught.value, str(disk.root), "permissions")
            life.check()
        goes_on(life)


def test_a_read_only_catalog_says_what_must_be_writable(disk: Disk) -> None:
    with (life := Life(disk.root, ManualClock(EPOCH))).catalog:
        life.tick()
    with (
        disk.read_only(),
        pytest.raises(CatalogUnavailable) as caught,
        Catalog.open(f"sqlite:///{disk.root}/catalog.sqlite") as opened,
    ):
        opened.declare_timeline("other")
    says_what_to_do(caught.value, "writ")
    with (life := Life(disk.root, ManualClock(EPOCH))).catalog:
        goes_on(life)


@pytest.mark.parametrize(
    "damage", ["cut", *(pytest.param(one, marks=pytest.mark.deep) for one in ("garbage", "empty"))]
)
def test_a_damaged_log_stops_writes_until_it_is_restored_but_no_read(tmp_path: Path, damage: str) -> None:
    with (life := Life(tmp_path, ManualClock(EPOCH))).catalog:
        for _ in range(4):
            life.tick()
        entry = max((life.shards.path(life.row) / "_delta_log").glob("*.json"))
        kept = entry.read_bytes()
        entry.write_bytes({"garbage": b"\x00garbage", "cut": kept[: len(kept) // 2], "empty": b""}[damage])
        life.shards = LocalShards(tmp_path)  # as of a process that has not read the log before
        life.check()
        if damage != "empty":  # that is what a power cut leaves of one that nobody was told of
            for work in (life.compact, life.append):
                with pytest.raises(ShardUnavailable) as caught:
                    work()
                says_what_to_do(caught.value, "doctor")
            assert life.row.upper.only == 5
        entry.write_bytes(kept)
        goes_on(life)


def test_a_lost_file_stops_reads_and_merges_until_it_is_back_but_no_append(tmp_path: Path) -> None:
    with (life := Life(tmp_path, ManualClock(EPOCH))).catalog:
        for _ in range(4):
            life.tick()
        lost = min(life.shards.path(life.row).glob("mz_batch=*"))
        shutil.move(lost, tmp_path / "lost")
        for work in (life.check, life.compact):
            with pytest.raises(BatchIncomplete) as caught:
                work()
            says_what_to_do(caught.value, "is gone", "doctor")
        life.tick()
        sweep(life.catalog, life.shards, thorough=True)
        shutil.move(tmp_path / "lost", lost)
        assert life.read(5) == rows_at(5)
        goes_on(life)


def test_an_interrupted_write_says_whether_it_may_have_taken_effect(disk: Disk) -> None:
    with (life := Life(disk.root, ManualClock(EPOCH))).catalog:
        life.tick()
        with disk.full(), pytest.raises(OperationalError) as caught:
            life.tick()
        says_what_to_do(caught.value, "taken effect" if caught.value.may_have_taken_effect else "Nothing was changed")
        goes_on(life)
