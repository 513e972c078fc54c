"""The project of TPC-H's views: loaded and hydrated once, kept, and copied for whoever steps it.

Customers, parts and what never changes are loaded into the sources' shards straight from Parquet, and so is the first
load of orders and lineitems, exactly as the sources' own batches would be. From then on orders and lineitems change by
files of JSON lines, as the project's sources declare it. A round has two parts, measured apart:

    ingest    poll, bind and read the files, look the deleted rows up, write the sources' updates
    step      maintain the views from the sources' updates, seal

A full refresh has no part that compares with the first: plain tables are brought up to date by somebody else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq
from filelock import FileLock
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.harness import REPOSITORY, Bench, say, table, timed
from bench.loading import load
from bench.open_project import OpenProject, check
from bench.tpch.data import CHANGES, Data, Kind, Round, is_changed
from mz_dagster.adapter import Engine, Project
from mz_dagster.compute import SourceNode, StepReport
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from tests.tpch.feed import KEYS

TIMELINE = "tpch"
ASSETS = REPOSITORY / "tests" / "tpch" / "project" / "assets"
#: The 22 views, by the files that define them.
VIEWS = tuple(f"q{number:02}" for number in range(1, 23))
_SETTINGS = f'[project]\nname = "tpch"\ntimeline = "{TIMELINE}"\n'
#: How long one process waits for another that makes what both want, in seconds.
_LOCK_SECONDS = 4 * 3600


def short(view: str) -> str:
    """Returns a view's name in results.

    Example:
        >>> short("q01"), short("q22")
        ('q1', 'q22')
    """
    return f"q{int(view[1:])}"


@dataclass
class TpchProject(OpenProject):
    """Is a copy of the project, open.

    Attributes:
        data: What it was loaded from.
        rounds: The rounds of changes it has seen, in order.
    """

    data: Data
    rounds: list[Round] = field(default_factory=list)

    def place(self, kind: Kind) -> int:
        """Lets the next round's files arrive; returns how many rows change."""
        number = len(self.rounds)
        self.rounds.append((number, kind))
        return self.data.place(self.engine.project.root / "landing", number, kind)

    def ingest(self) -> int:
        """Binds what has arrived to a tick, and brings the sources there; returns the tick."""
        tick = self.poll()
        self.step(tick, self.sources)
        return tick

    @cached_property
    def sources(self) -> frozenset[GlobalId]:
        """The sources' collections."""
        return frozenset(node.id for node in self.engine.graph(self.timeline) if isinstance(node, SourceNode))


def told(report: StepReport) -> str:
    """Returns what a step did, as a table with a line for each collection that had work, the costliest first."""
    rows = [
        (one.name, one.rows_in, one.rows_read, one.stats.rows, one.spark_ms / 1000)
        for one in sorted(report.collections, key=lambda one: -one.spark_ms)
        if one.spark_ms
    ]
    return table(("collection", "updates in", "rows read", "updates out", "seconds"), rows)


def kept_folder(bench: Bench) -> Path:
    """Returns where the data and projects of a run's scale are kept."""
    return bench.folder / "tpch" / bench.scale_key


def data_of(bench: Bench) -> Data:
    """Returns the tables of a run's scale, generated if they are not there."""
    data = Data(kept_folder(bench) / "data", bench.scale)
    with _lock(bench):
        data.generate()
    return data


@contextmanager
def opened(bench: Bench, *, views: Sequence[str] = VIEWS, orders_per_round: int | None = None) -> Iterator[TpchProject]:
    """Opens a copy of the project: loaded, and with views hydrated.

    Args:
        bench: The run.
        views: Those that it has at least.
        orders_per_round: How many orders a round inserts, and deletes, at most; by default one in a thousand.
    """
    data = replace(data_of(bench), orders_per_round=orders_per_round)
    with _lock(bench):
        loaded = _loaded(bench, data)
        kept = _hydrated(bench, loaded, views) if views else loaded
        root = bench.new_path("project")
        _copy(kept, root)
    try:
        with Engine(Project.load(root), spark=bench.spark) as engine:
            yield TpchProject(engine, TIMELINE, data)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def define(root: Path, views: Iterable[str]) -> None:
    """Puts the definitions of views into a project's folder."""
    for view in views:
        shutil.copy(ASSETS / f"{view}.sql", root / "assets")


def _loaded(bench: Bench, data: Data) -> Path:
    root = kept_folder(bench) / "loaded"
    if _is_usable(bench, root):
        return root
    draft = _draft(root)
    (draft / "assets").mkdir(parents=True)
    (draft / "mz.toml").write_text(_SETTINGS, encoding="utf-8")
    shutil.copy(ASSETS / "sources.sql", draft / "assets")
    for name in KEYS:  # a source's folder has to be there
        (draft / "landing" / name).mkdir(parents=True)
    with Engine(Project.load(draft), spark=bench.spark) as engine:
        engine.apply()
        seconds, _ = timed(_load, engine, data, bench.new_path("live.parquet"))
    say(f"loaded the sources at scale {bench.scale:g} in {seconds:.0f} s")
    return _finished(draft, root)


def _load(engine: Engine, data: Data, live: Path) -> None:
    """Writes the tables, without the orders that are held back, into the sources' shards."""
    data.write_live(live)
    load(engine, TIMELINE, lambda session, name: rows_after(session, data, live, name))


def rows_after(
    session: SparkSession, data: Data, live: Path, name: str, rounds: Iterable[Round] = ()
) -> tuple[DataFrame, int]:
    """Returns a table's rows after some rounds, or before all of them; and about how many they are.

    Args:
        session: To read with.
        data: The tables.
        live: The file of the keys of the orders that are there.
        name: The table.
        rounds: The rounds.
    """
    frame = session.read.parquet(str(data.path(name)))
    numbers = [number for number, kind in rounds if kind == "dimensions"]
    if numbers and name in CHANGES:
        changed = F.expr(is_changed(name, numbers))
        for column, value in CHANGES[name].items():
            new = F.expr(value).cast(frame.schema[column].dataType)
            frame = frame.withColumn(column, F.when(changed, new).otherwise(F.col(column)))
    count = pq.read_metadata(data.path(name)).num_rows
    if key := {"orders": "o_orderkey", "lineitem": "l_orderkey"}.get(name):
        keys = session.read.parquet(str(live)).withColumnRenamed("o_orderkey", key)
        frame = frame.join(keys, key, "left_semi")
    return frame, count


def _hydrated(bench: Bench, loaded: Path, views: Sequence[str]) -> Path:
    whole = kept_folder(bench) / "hydrated"
    root = whole if set(views) == {*VIEWS} else whole.with_name("-".join(("hydrated", *map(short, views))))
    for usable in dict.fromkeys((whole, root)):
        if _is_usable(bench, usable):
            return usable
    draft = _draft(root)
    _copy(loaded, draft)
    define(draft, views)
    with Engine(Project.load(draft), spark=bench.spark) as engine:
        engine.apply()
        tick = engine.catalog.last_tick(TIMELINE)
        assert tick is not None, "a loaded project has a tick"
        seconds, report = timed(engine.step, TIMELINE, tick, progress=_say_busy)
    check(report)
    say(f"{told(report)}\nhydrated {len(views)} views at scale {bench.scale:g} in {seconds:.0f} s")
    return _finished(draft, root)


def _say_busy(line: str) -> None:
    """Is a progress of which only the signs of life are told."""
    if line.startswith("still working"):
        say(f"  {line}")


def _is_usable(bench: Bench, root: Path) -> bool:
    """Whether a kept project is there, not to be made anew, and planned as this code would plan it."""
    if not root.exists() or (bench.rebuild and root not in _REBUILT):
        return False
    try:
        with Engine(Project.load(root), spark=bench.spark) as engine:
            engine.graph(TIMELINE)
    except Error as error:
        say(f"{root} is made anew: {error.message}")
        return False
    return True


#: What this process has made anew already.
_REBUILT: set[Path] = set()


def _draft(root: Path) -> Path:
    draft = root.with_name(f"{root.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    return draft


def _finished(draft: Path, root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    draft.rename(root)
    _REBUILT.add(root)
    return root


def _copy(kept: Path, root: Path) -> None:
    """Copies a project that nobody has open; files of data, which never change, are the same files."""

    def copy(source: str, target: str) -> None:
        if source.endswith(".parquet") and "_delta_log" not in source:
            os.link(source, target)
        else:
            shutil.copy2(source, target)

    shutil.copytree(kept, root, copy_function=copy)


def _lock(bench: Bench) -> FileLock:
    kept = kept_folder(bench)
    kept.mkdir(parents=True, exist_ok=True)
    return FileLock(kept / "lock", timeout=_LOCK_SECONDS)
