"""Small projects that a benchmark makes for itself, and what it may ask of their Spark."""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.harness import Bench
from bench.open_project import OpenProject
from mz_dagster.adapter import Engine, Project
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.storage.spark import server_status

TIMELINE = "small"
_SETTINGS = f'[project]\nname = "small"\ntimeline = "{TIMELINE}"\n'
#: How long Spark's UI may take to answer, in seconds.
_UI_SECONDS = 30.0
#: The UI is told of what was done a little later: how often to look again, and after how long.
_UI_LOOKS, _UI_PAUSE_SECONDS = 20, 0.5

Row = Mapping[str, Any]


@dataclass
class SmallProject(OpenProject):
    """Is a project of a benchmark's own."""

    def drop(self, source: str, name: str, records: Iterable[Row]) -> None:
        """Lets a file of JSON lines arrive in a source's folder."""
        folder = self.engine.project.root / "landing" / source
        draft = folder / f".{name}.tmp"
        draft.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
        os.replace(draft, folder / f"{name}.jsonl")


@contextmanager
def small_project(bench: Bench, sql: str, *, sources: Iterable[str]) -> Iterator[SmallProject]:
    """Makes a project of SQL, with empty folders for its sources, and opens it."""
    root = bench.new_path("project")
    (root / "assets").mkdir(parents=True)
    (root / "mz.toml").write_text(_SETTINGS, encoding="utf-8")
    (root / "assets" / "all.sql").write_text(sql, encoding="utf-8")
    for name in sources:
        (root / "landing" / name).mkdir(parents=True)
    try:
        with Engine(Project.load(root), spark=bench.spark) as engine:
            engine.apply()
            yield SmallProject(engine, TIMELINE)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def source(name: str, columns: str, *, key: str | None = None) -> str:
    """Returns the definition of a source of JSON lines; with a key its records are upserts.

    Example:
        >>> print(source("s", "id integer NOT NULL, v integer", key="id"))
        CREATE SOURCE s (id integer NOT NULL, v integer, PRIMARY KEY (id))
        FROM FILES (FOLDER 'landing/s') FORMAT JSON ENVELOPE UPSERT;
    """
    keyed = f", PRIMARY KEY ({key})" if key else ""
    envelope = "UPSERT" if key else "NONE"
    return (
        f"CREATE SOURCE {name} ({columns}{keyed})\n"
        f"FROM FILES (FOLDER 'landing/{name}') FORMAT JSON ENVELOPE {envelope};"
    )


def upsert(row: Row, *, key: str) -> Row:
    """Returns the record that makes a row the state of its key.

    Example:
        >>> upsert({"id": 1, "v": 2}, key="id")
        {'key': {'id': 1}, 'value': {'v': 2}}
    """
    return {"key": {key: row[key]}, "value": {name: cell for name, cell in row.items() if name != key}}


@dataclass(frozen=True)
class SparkWork:
    """Is how much a Spark has done since it was started.

    Attributes:
        executions: Of SQL: queries, writes, and what Delta does for them.
        jobs: Of any kind.
    """

    executions: int
    jobs: int

    def __sub__(self, other: SparkWork) -> SparkWork:
        return SparkWork(self.executions - other.executions, self.jobs - other.jobs)


def spark_work(bench: Bench) -> SparkWork:
    """Returns what the run's Spark has done so far, as its UI counts it once it has caught up."""
    found = _counted(bench)
    for _ in range(_UI_LOOKS):
        SYSTEM_CLOCK.sleep(_UI_PAUSE_SECONDS)
        before, found = found, _counted(bench)
        if before == found:
            break
    return found


def _counted(bench: Bench) -> SparkWork:
    server = server_status(bench.spark.state_dir)
    assert server is not None, "the run's own server is up"
    api = f"{server.ui_url}/api/v1/applications"
    application = _get(api)[0]["id"]
    executions = _get(f"{api}/{application}/sql?details=false&planDescription=false&offset=0&length=100000")
    jobs = _get(f"{api}/{application}/jobs")
    return SparkWork(_newest(executions, "id"), _newest(jobs, "jobId"))


def _newest(found: list[dict[str, Any]], number: str) -> int:
    """Returns how many there were, of which the UI has forgotten the oldest; they count from 0."""
    return 1 + max((int(one[number]) for one in found), default=-1)


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=_UI_SECONDS) as answer:
        return json.load(answer)
