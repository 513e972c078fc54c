"""The other side: the same data as plain Delta tables, each query run in full and its result written.

By plain Spark on the same server, in a session with Spark's own defaults wherever this project's settings serve its own
purposes. What only makes plain Delta tables quicker stays: one partition for a table's log instead of fifty. And by
DuckDB, from the same files, on as many cores.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from bench.harness import Bench, Timing, round_name, say, timed
from bench.tpch.project import ASSETS, VIEWS, TpchProject, rows_after
from mz_dagster.adapter import Session
from mz_dagster.storage.spark import open_session
from tests.tpch.feed import KEYS
from tests.tpch.referee import as_multisets

#: Spark's defaults of what this project sets for its own purposes.
_CONF = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "200",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "32",
    "spark.sql.maxConcurrentOutputFileWriters": "0",
    "spark.sql.limit.initialNumPartitions": "1",
    "spark.sql.analyzer.maxIterations": "100",
}


@dataclass(frozen=True)
class Query:
    """Is one of the 22 queries.

    Attributes:
        view: What a query reads that is a view of its own: its name with columns, and its text. Only query 15 has one.
        text: The query.
    """

    view: tuple[str, str] | None
    text: str


def query_of(view: str) -> Query:
    """Returns the query that defines a view of the project.

    Example:
        >>> query_of("q15").view[0]
        'revenue0 (supplier_no, total_revenue)'
        >>> query_of("q06").text.split()[:2]
        ['select', 'sum(l_extendedprice']
    """
    text = (ASSETS / f"{view}.sql").read_text(encoding="utf-8")
    defined = re.search(r"^create view (.*?) as\n(.*?);\n", text, re.DOTALL | re.MULTILINE)
    wanted = re.search(rf"^CREATE MATERIALIZED VIEW {view} AS\n(.*);\n", text, re.DOTALL | re.MULTILINE)
    assert wanted is not None, f"{view}.sql defines {view}"
    return Query((defined[1], defined[2]) if defined else None, wanted[1])


class WrongResult(Exception):
    """Reports that a maintained view is not what its query says."""


@dataclass
class Plain:
    """Is the tables as they are after the rounds that a project has seen.

    Attributes:
        bench: The run.
        project: Whose data.
    """

    bench: Bench
    project: TpchProject
    #: The columns of each result; Delta allows no parentheses in a name, and some queries name no column.
    _columns: dict[str, list[str]] = field(default_factory=dict, init=False)

    @cached_property
    def folder(self) -> Path:
        """Where tables and results are."""
        return self.bench.new_path("plain")

    @cached_property
    def session(self) -> SparkSession:
        """A session on the same server, with the tables as views."""
        session = open_session(replace(self.bench.spark, conf=_CONF))
        live = self.bench.new_path("live.parquet")
        self.project.data.write_live(live, self.project.rounds)
        for name in KEYS:
            frame, _ = rows_after(session, self.project.data, live, name, self.project.rounds)
            path = str(self.folder / name)
            seconds, _ = timed(frame.write.format("delta").save, path)
            say(f"  plain table {name} in {seconds:.1f} s")
            session.read.format("delta").load(path).createOrReplaceTempView(name)
        return session

    def refresh(self, view: str) -> None:
        """Computes a view's query with Spark, and replaces the Delta table of its result."""
        query = query_of(view)
        if query.view is not None:
            self.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {query.view[0]} AS {query.view[1]}")
        frame = self.session.sql(query.text)
        if view not in self._columns:
            self._columns[view] = [re.sub(r"\W", "_", name) for name in frame.columns]
        frame = frame.toDF(*self._columns[view])
        frame.write.format("delta").mode("overwrite").save(str(self.folder / "results" / view))

    def refreshes(self, repetitions: int, views: Sequence[str] = VIEWS) -> dict[str, Timing]:
        """Measures the full refresh of each view with Spark, all of them in each round."""
        return _rounds("full refresh by Spark", self.refresh, repetitions, self.bench.warmups, views)

    def duckdb_refreshes(self, repetitions: int) -> dict[str, Timing]:
        """Measures the same with DuckDB, from the same Parquet files into its own tables."""
        assert self.session, "the tables are there"
        with duckdb.connect(config={"threads": len(os.sched_getaffinity(0))}) as connection:
            for name in KEYS:
                connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{self.folder / name}/*.parquet')")

            def refresh(view: str) -> None:
                query = query_of(view)
                if query.view is not None:
                    connection.execute(f"CREATE OR REPLACE VIEW {query.view[0]} AS {query.view[1]}")
                connection.execute(f"CREATE OR REPLACE TABLE result_{view} AS {query.text}")

            return _rounds("full refresh by DuckDB", refresh, repetitions, self.bench.warmups)

    def check(self, tick: int, views: Sequence[str] = VIEWS) -> None:
        """Compares maintained views with what the last full refresh gave.

        Raises:
            WrongResult: One differs.
        """
        session = Session(self.project.engine)
        for view in views:
            mine = session.execute(f"SELECT * FROM {view} AS OF {tick}").rows
            frame = self.session.read.format("delta").load(str(self.folder / "results" / view))
            ours, theirs = as_multisets(*(list(map(_unpadded, rows)) for rows in (mine, frame.collect())))
            if ours != theirs:
                differing = list(((ours - theirs) + (theirs - ours)).items())[:4]
                raise WrongResult(f"{view} has {len(mine)} rows and differs from its query, for example in {differing}")
        say(f"{'all' if views == VIEWS else 'these'} views are their queries' results")


def _unpadded(row: tuple[object, ...]) -> tuple[object, ...]:
    """Returns a row whose values of type char(n) have no padding, which plain Spark knows nothing of."""
    return tuple(cell.rstrip(" ") if isinstance(cell, str) else cell for cell in row)


def _rounds(
    label: str, refresh: Callable[[str], None], repetitions: int, warmups: int, views: Sequence[str] = VIEWS
) -> dict[str, Timing]:
    found: dict[str, list[float]] = {view: [] for view in views}
    for number in range(warmups + repetitions):
        total = 0.0
        for view in views:
            seconds, _ = timed(refresh, view)
            total += seconds
            if number >= warmups:
                found[view].append(seconds)
        say(f"  {label}, {round_name(number, warmups)}: {total:.2f} s")
    return {view: Timing(tuple(seconds)) for view, seconds in found.items()}


def total(timings: dict[str, Timing]) -> Timing:
    """Returns the time of all views together, round by round."""
    return Timing(tuple(map(sum, zip(*(one.seconds for one in timings.values()), strict=True))))
