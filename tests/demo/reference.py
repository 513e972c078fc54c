"""What the demo's collections must hold after any day of the replay, without Spark and without our own code.

`Reference` reads the landing folder as a person would: files in the order of their dates and names, with Python's own
JSON and CSV readers; per key the last record counts. DuckDB then answers the views' own queries, cut from the SQL
files.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

ASSETS = Path(__file__).resolve().parents[2] / "assets"
FIRST_DAY = dt.date(2013, 1, 1)

Row = tuple[Any, ...]

#: The sources' columns, in order, with DuckDB's names of their types.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "flights": {
        "carrier": "VARCHAR", "flight": "INTEGER", "origin": "VARCHAR", "sched_dep": "TIMESTAMP", "dest": "VARCHAR",
        "tailnum": "VARCHAR", "sched_arr": "TIMESTAMP", "distance": "INTEGER", "dep_time": "TIMESTAMP",
        "dep_delay": "INTEGER", "arr_time": "TIMESTAMP", "arr_delay": "INTEGER", "air_time": "INTEGER",
    },
    "weather": {
        "origin": "VARCHAR", "time_hour": "TIMESTAMPTZ", "temp": "DOUBLE", "dewp": "DOUBLE", "humid": "DOUBLE",
        "wind_dir": "INTEGER", "wind_speed": "DOUBLE", "wind_gust": "DOUBLE", "precip": "DECIMAL(38,2)",
        "pressure": "DOUBLE", "visib": "DOUBLE",
    },
    "planes": {
        "tailnum": "VARCHAR", "year": "INTEGER", "type": "VARCHAR", "manufacturer": "VARCHAR", "model": "VARCHAR",
        "engines": "INTEGER", "seats": "INTEGER", "speed": "INTEGER", "engine": "VARCHAR",
    },
    "airlines": {"carrier": "VARCHAR", "name": "VARCHAR"},
    "airports": {
        "faa": "VARCHAR", "name": "VARCHAR", "lat": "DOUBLE", "lon": "DOUBLE", "alt": "INTEGER", "tz": "INTEGER",
        "dst": "VARCHAR", "tzone": "VARCHAR",
    },
}  # fmt: skip
KEYS: Mapping[str, tuple[str, ...]] = {
    "flights": ("carrier", "flight", "origin", "sched_dep"),
    "planes": ("tailnum",),
    "airlines": ("carrier",),
    "airports": ("faa",),
}

#: The materialized views, each after those it reads.
MATERIALIZED = (
    "departures",
    "carrier_delays",
    "airport_traffic",
    "departures_with_planes",
    "worst_routes",
    "flights_due",
    "repeat_delays",
    "punctual_planes",
)


@dataclass(slots=True)
class Reference:
    """Is the state of the five sources after some days; `advance` moves it on by one.

    Example (a replay checked at every tick)::

        reference = Reference(landing)
        for day in range(1, 21):
            reference.advance()
            assert sorted(rows_of("departures", as_of)) == sorted(reference.query("departures"))
    """

    landing: Path
    day: int = 0
    _upserted: dict[str, dict[Row, Row]] = field(default_factory=lambda: {source: {} for source in KEYS})
    _weather: list[Row] = field(default_factory=list)

    def advance(self, days: int = 1) -> None:
        """Takes the files of the next days in; they must have been dropped."""
        for _ in range(days):
            date = FIRST_DAY + dt.timedelta(days=self.day)
            self.day += 1
            for source in COLUMNS:
                for path in sorted((self.landing / source).glob(f"{date}*")):
                    for key, value in _records(source, path):
                        self._take_in(source, key, value)

    def rows(self, source: str) -> list[Row]:
        """Returns the rows of a source, in no order."""
        return list(self._weather) if source == "weather" else list(self._upserted[source].values())

    def query(self, view: str, time: int = 0) -> list[Row]:
        """Returns DuckDB's answer to a view of the project, in no order, `mz_now()` being `time`."""
        with self.connect(time) as connection:
            return connection.execute(f"SELECT * FROM {view}").fetchall()

    def queries(self, time: int) -> dict[str, list[Row]]:
        """Returns DuckDB's answers to all materialized views of the project, by name, at `time`."""
        with self.connect(time) as connection:
            return {view: connection.execute(f"SELECT * FROM {view}").fetchall() for view in MATERIALIZED}

    def connect(self, time: int = 0) -> duckdb.DuckDBPyConnection:
        """Returns a database in memory that holds the sources as tables and the project's views as views."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for source, columns in COLUMNS.items():
            declared = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
            connection.execute(f"CREATE TABLE {source} ({declared})")
            rows = self.rows(source)
            if rows:  # row by row would take seconds a day
                lists = dict(
                    zip((f"c{i}" for i in range(len(columns))), map(list, zip(*rows, strict=True)), strict=True)
                )
                unnested = ", ".join(f"unnest(${name})" for name in lists)
                connection.execute(f"INSERT INTO {source} SELECT {unnested}", lists)
        for view in ("flights_with_airports", *MATERIALIZED):
            body = body_of(view).replace("mz_now()", str(time))
            connection.execute(f"CREATE VIEW {view} AS {body}")
        return connection

    def _take_in(self, source: str, key: Row, value: Row | None) -> None:
        if source == "weather":
            assert value is not None
            self._weather.append(value)
        elif value is None:
            self._upserted[source].pop(key, None)
        else:
            self._upserted[source][key] = value


def body_of(view: str) -> str:
    """Returns the query of the view that a file of `assets/` is named after."""
    text = (ASSETS / f"{view}.sql").read_text(encoding="utf-8")
    found = re.search(rf"CREATE (?:MATERIALIZED )?VIEW {view} AS\s(.*?);", re.sub("--.*", "", text), re.DOTALL)
    assert found is not None, view
    return found[1]


def _records(source: str, path: Path) -> Iterator[tuple[Row, Row | None]]:
    columns = COLUMNS[source]
    for key, value in _dicts(path):
        whole = None if value is None else {**key, **value}
        yield (
            tuple(_typed(key[name], columns[name]) for name in KEYS.get(source, ())),
            None if whole is None else tuple(_typed(whole.get(name), type_) for name, type_ in columns.items()),
        )


def _dicts(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    if path.suffix == ".jsonl":
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line, parse_float=Decimal)
            yield (record["key"], record["value"]) if "key" in record else ({}, record)
    elif path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                whole = {name: text or None for name, text in row.items()}
                yield whole, whole
    else:
        for row in pq.read_table(path).to_pylist():
            yield row, row


def _typed(value: Any, type_: str) -> Any:
    if value is None:
        return None
    match type_:
        case "INTEGER":
            return int(value)
        case "DOUBLE":
            return float(value)
        case "DECIMAL(38,2)":
            return Decimal(value).quantize(Decimal("0.01"))
        case "TIMESTAMP" | "TIMESTAMPTZ":
            return dt.datetime.fromisoformat(value)
        case _:
            return value
