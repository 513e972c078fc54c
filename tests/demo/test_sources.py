"""The demo's five sources, read through Spark as their SQL files declare them, against the reference."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mz_dagster.catalog import BoundFile
from mz_dagster.scalars.types import Column
from mz_dagster.sql import parse
from mz_dagster.sql.statements import CreateSource, Files
from mz_dagster.storage.envelope import none, upsert
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.source.folder import InFolder
from sensors.feed import SOURCES, Feed
from tests.demo.reference import ASSETS, COLUMNS, KEYS, Reference
from tests.source.landing import bind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 5


def declared(name: str, landing: Path) -> FileSource:
    """Returns the source that a file of `assets/` declares, in another landing folder."""
    (statement,) = parse((ASSETS / f"{name}.sql").read_text(encoding="utf-8"))
    assert isinstance(statement, CreateSource)
    columns = tuple(Column(c.name, c.type, c.nullable) for c in statement.columns)
    key = tuple(statement.key) if statement.key else None
    files = statement.origin
    assert isinstance(files, Files)
    folder = landing / Path(files.folder).name
    return FileSource(InFolder(folder), files.pattern, files.format, columns, key, statement.envelope)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[int, tuple[BoundFile, ...]]]]:
    """A landing folder after some days, and what each day's poll of each source found."""
    landing = tmp_path_factory.mktemp("landing")
    found: dict[str, dict[int, tuple[BoundFile, ...]]] = {name: {} for name in SOURCES}
    for day in range(1, DAYS + 1):
        Feed(landing).advance()
        for name in SOURCES:
            bound = {file.path: file for files in found[name].values() for file in files}
            found[name][day] = declared(name, landing).poll(bound)
    return landing, found


# That each source is its reference at each tick is shown by `test_replay.py`.
@pytest.mark.deep
@pytest.mark.parametrize("name", SOURCES)
def test_source_is_the_reference_after_days_in_one_interval(
    spark: SparkSession, replay: tuple[Path, dict[str, dict[int, tuple[BoundFile, ...]]]], name: str
) -> None:
    landing, found = replay
    source = declared(name, landing)
    columns = [column.name for column in source.columns]
    assert columns == list(COLUMNS[name])
    assert source.key == KEYS.get(name)
    records = source.read(spark, bind(found[name]))
    updates = (
        none.updates(records, columns=columns)
        if source.key is None
        else upsert.updates(records, None, columns=columns, key=source.key)
    )
    if name == "weather":  # collected as UTC, whatever this machine's zone
        updates = updates.withColumn("time_hour", updates["time_hour"].cast("timestamp_ntz"))
    rows = updates.collect()
    reference = Reference(landing)
    for day in range(1, DAYS + 1):
        reference.advance()
        state: Counter[tuple[Any, ...]] = Counter()
        for row in rows:
            assert row["mz_error"] is None
            if row["mz_timestamp"] <= day:
                state[tuple(row[column] for column in columns)] += row["mz_diff"]
        expected = Counter(tuple(map(_without_zone, row)) for row in reference.rows(name))
        assert Counter({row: n for row, n in state.items() if n}) == expected, f"after day {day}"


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
