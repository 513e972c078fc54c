"""Delta in, ten views, two Delta sinks: 0.1 % of a table changed; goals: half of Spark's MERGE, a tenth of a refresh.

The table is one of sales, with change data, which delta-rs changes: a range of rows gets other amounts, some go, some
come. Each round is measured three times over the same commits: from a poll to both sinks written; Spark merging the
change data into ten tables, by statements written by hand; and Spark overwriting the ten tables. The rows of both sinks
are compared with Spark's in each round. At scale 1 there are 6 million rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.small import TIMELINE, SmallProject, small_project
from mz_dagster.adapter import Connection, Isolation
from mz_dagster.storage.spark import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 6_000_000
_PORTION = 1_000_000
#: By what each view groups.
VIEWS = {
    "by_shop": ("shop",), "by_product": ("product",), "by_day": ("day",), "by_customer": ("customer",),
    "by_region": ("region",), "by_shop_day": ("shop", "day"), "by_region_day": ("region", "day"),
    "by_region_product": ("region", "product"), "by_shop_region": ("shop", "region"),
    "by_product_day": ("product", "day"),
}  # fmt: skip
SINKS = ("by_shop", "by_product")
_WARMUPS = 1


class OtherRows(Exception):
    """Reports a sink that is not what Spark computes."""


def run(bench: Bench) -> None:
    """Measures, compares the sinks with Spark's tables, prints and records."""
    spark = open_session(bench.spark)
    sales = Sales(round(_ROWS * bench.scale))
    with _project(bench, sales) as (project, lake):
        loaded, _ = timed(lambda: project.step(project.poll()))
        say(f"  first load: {loaded:.1f} s")
        by_hand = ByHand(spark, lake / "sales", bench.new_path("by_hand"))
        by_hand.refresh()
        steps, merges, refreshes = [], [], []
        for number in range(_WARMUPS + bench.repetitions):
            before = sales.change(lake / "sales")
            step, _ = timed(lambda: project.step(project.poll()))
            merge, _ = timed(by_hand.merge, before + 1)
            _compare(by_hand, lake.parent / "out")
            refresh, _ = timed(by_hand.refresh)
            say(f"  {round_name(number, _WARMUPS)}: step {step:.2f} s, MERGE {merge:.2f} s, refresh {refresh:.2f} s")
            if number >= _WARMUPS:
                steps.append(step)
                merges.append(merge)
                refreshes.append(refresh)
    step_time, merge_time, refresh_time = Timing(tuple(steps)), Timing(tuple(merges)), Timing(tuple(refreshes))
    merged, refreshed = Ratio(merge_time, step_time), Ratio(refresh_time, step_time)
    bench.results.record(
        f"lakehouse.{bench.scale_key}",
        {
            "rows": sales.rows, "step": step_time, "merge_by_hand": merge_time, "refresh": refresh_time,
            "merge_over_step": merged, "refresh_over_step": refreshed,
        },
    )  # fmt: skip
    print(table(("", "s"), [("step", step_time), ("MERGE by hand", merge_time), ("refresh", refresh_time)]))
    print(f"MERGE / step {merged}, goal 2; refresh / step {refreshed}, goal 10")


class Sales:
    """The table, and what is done to it.

    Args:
        rows: How many there are at first.
    """

    def __init__(self, rows: int) -> None:
        self.rows, self._next, self._round = rows, rows, 0
        self._random = np.random.default_rng(1)

    def write(self, path: Path) -> None:
        """Writes the table."""
        for start in range(0, self.rows, _PORTION):
            some = self._some(start, min(start + _PORTION, self.rows))
            write_deltalake(path, some, mode="append", configuration={"delta.enableChangeDataFeed": "true"})

    def change(self, path: Path) -> int:
        """Changes a thousandth of the rows, and returns the version before."""
        opened = DeltaTable(path)
        before, each = opened.version(), max(1, self.rows // 3000)
        start = self._round * 7 * each % max(1, self.rows - 2 * each)
        self._round += 1
        opened.update(updates={"amount": "amount + 1"}, predicate=f"id >= {start} AND id < {start + each}")
        opened.delete(f"id >= {start + each} AND id < {start + 2 * each}")
        write_deltalake(path, self._some(self._next, self._next + each), mode="append")
        self._next += each
        return before

    def _some(self, start: int, stop: int) -> pa.Table:
        count = stop - start
        drawn = {
            name: self._random.integers(most, size=count)
            for name, most in (("shop", 100), ("product", 1000), ("day", 365), ("customer", 10_000), ("region", 10))
        }
        return pa.table({"id": np.arange(start, stop), **drawn, "amount": self._random.integers(1, 10_000, size=count)})


class ByHand:
    """Ten tables that Spark keeps.

    Args:
        spark: It.
        source: The table that they are of.
        folder: Where they are.
    """

    def __init__(self, spark: SparkSession, source: Path, folder: Path) -> None:
        self._spark, self._source, self._folder = spark, source, folder

    def rows(self, view: str) -> set[tuple[int, ...]]:
        """Returns the rows of a table."""
        return {
            tuple(map(int, row)) for row in self._spark.read.format("delta").load(str(self._folder / view)).collect()
        }

    def refresh(self) -> None:
        """Computes all anew."""
        self._spark.read.format("delta").load(str(self._source)).createOrReplaceTempView("sales")
        for view in VIEWS:
            self._spark.sql(_query(view)).write.format("delta").mode("overwrite").save(str(self._folder / view))

    def merge(self, since: int) -> None:
        """Merges what has changed from a version on."""
        reader = self._spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", since)
        reader.load(str(self._source)).createOrReplaceTempView("changes")
        for view, keys in VIEWS.items():
            named = ", ".join(keys)
            sign = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
            self._spark.sql(
                f"MERGE INTO delta.`{self._folder / view}` t USING (SELECT {named}, sum({sign}) AS n, "
                f"sum({sign} * amount) AS amount FROM changes GROUP BY {named}) s "
                f"ON {' AND '.join(f't.{key} = s.{key}' for key in keys)} "
                "WHEN MATCHED AND t.n + s.n = 0 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET n = t.n + s.n, amount = t.amount + s.amount "
                "WHEN NOT MATCHED THEN INSERT *"
            ).collect()


def _query(view: str) -> str:
    named = ", ".join(VIEWS[view])
    return f"SELECT {named}, count(*) AS n, sum(amount) AS amount FROM sales GROUP BY {named}"


@contextmanager
def _project(bench: Bench, sales: Sales) -> Iterator[tuple[SmallProject, Path]]:
    with small_project(bench, "-- all is made in a session\n", sources=()) as project:
        lake = project.engine.project.root / "lake"
        sales.write(lake / "sales")
        with Connection(project.engine, Isolation.SERIALIZABLE, owns_engine=False) as connection:
            connection.execute(f"CREATE SOURCE sales IN TIMELINE \"{TIMELINE}\" FROM DELTA (URI 'lake/sales')")
            for view in VIEWS:
                connection.execute(f"CREATE MATERIALIZED VIEW {view} AS {_query(view)}")
            for view in SINKS:
                connection.execute(f"CREATE SINK out_{view} FROM {view} INTO DELTA (URI 'out/{view}') ENVELOPE UPSERT")
        yield project, lake
        shutil.rmtree(lake)


def _compare(by_hand: ByHand, out: Path) -> None:
    for view in SINKS:
        columns = DeltaTable(out / view).to_pyarrow_table().columns
        found = {tuple(map(int, row)) for row in zip(*(one.to_pylist() for one in columns), strict=True)}
        if found != by_hand.rows(view):
            raise OtherRows(f"the sink of {view} has {len(found - by_hand.rows(view))} rows that Spark does not have")
