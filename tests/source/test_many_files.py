"""Thousands of new files in a tick: each is read once by the poll and once by the step, in time by their number."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.storage.source.folder import InFolder
from tests.growth import exponent

TIMELINE = "default"


def drop_many(folder: Path, first: int, count: int) -> None:
    for number in range(first, first + count):
        (folder / f"{number:06}.jsonl").write_text(f'{{"id": {number}}}\n')


def advance(connection: Connection) -> None:
    """Binds what is new, and has it read."""
    engine = connection.engine
    assert not engine.poll(TIMELINE).failures
    tick = engine.catalog.last_tick(TIMELINE)
    assert tick is not None
    assert not engine.step(TIMELINE, tick).failures


def create(connection: Connection, name: str, folder: Path) -> None:
    folder.mkdir()
    connection.execute(f"CREATE SOURCE {name} (id bigint) FROM FILES (FOLDER '{folder.name}') FORMAT JSON")
    connection.execute(f"CREATE MATERIALIZED VIEW of_{name} AS SELECT count(*) AS n, sum(id)::bigint AS s FROM {name}")


def advance_once(connection: Connection, tmp_path: Path) -> None:
    """Has everything imported that a step needs, so that the first measurement has not."""
    create(connection, "warm", tmp_path / "warm")
    drop_many(tmp_path / "warm", 0, 1)
    advance(connection)


@pytest.mark.parametrize("sizes", [(200, 1600), pytest.param((1000, 16_000), marks=pytest.mark.deep)])
def test_thousands_of_new_files_take_time_by_their_number(
    connection: Connection, tmp_path: Path, sizes: tuple[int, int]
) -> None:
    def took(count: int) -> float:
        create(connection, f"s{count}", tmp_path / f"s{count}")
        drop_many(tmp_path / f"s{count}", 0, count)
        begin = time.process_time()
        advance(connection)
        seconds = time.process_time() - begin
        found = connection.execute(f"SELECT n, s FROM of_s{count}").fetchall()
        assert found == [(count, count * (count - 1) // 2)]
        return seconds

    advance_once(connection, tmp_path)
    assert exponent(took, sizes, times=1) < 1.5, "1 is a line, 2 a square"


def test_of_thousands_of_files_those_that_are_new_are_read(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connection, "s", tmp_path / "s")
    read: Counter[str] = Counter()
    for name in ("fetched", "read"):
        original = getattr(InFolder, name)

        def noted(place: Any, path: str, original: Any = original) -> Any:
            read[path] += 1
            return original(place, path)

        monkeypatch.setattr(InFolder, name, noted)
    drop_many(tmp_path / "s", 0, 500)
    advance(connection)
    assert len(read) == 500
    assert set(read.values()) == {2}, "by the poll and by the step"
    for first in (500, 503):
        read.clear()
        drop_many(tmp_path / "s", first, 3)
        advance(connection)
        assert len(read) == 3
        assert sum(read.values()) == 6
    assert connection.execute("SELECT n FROM of_s").fetchall() == [(506,)]
