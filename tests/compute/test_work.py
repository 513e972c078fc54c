"""Work: a step reads what it touches, measured in rows of the files that it chooses.

One table is shared by all. For each operator a view is hydrated over it and its large state laid out; then one row is
written and stepped, and what the step read is compared with what there is.

What a step may read. A million rows lie in 32 buckets, so a key costs a bucket of about 31,000 rows. One changed key
touches one bucket of a state that is laid out by it, and of a tournament's state one for each level. Operators that
need whole groups (array_agg, windows) are held to it among many groups only: in a group of a million rows they read the
group.

The deep tests run over a million rows; the fast ones over a tenth of them, with sizes and thresholds a tenth as large,
and for one operator of a kind only.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as sf

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget, budget_of
from mz_dagster.catalog import Seal, Sealed
from mz_dagster.compute import CollectionStep, Outcome
from mz_dagster.formalism import Antichain
from mz_dagster.storage import BatchWriter
from tests.budgets import SetBudget

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession

    from mz_dagster.storage.spark import SparkConfig

TIMELINE = "default"
#: The thresholds that are a tenth as large where the rows are a tenth as many.
SIZES = (
    "clustered_rows",
    "bucket_rows",
    "inlined_rows",
    "unbounded_rows",
    "pruned_rows",
    "written_updates",
    "first_updates",
    "small_rows",
)

pytestmark = pytest.mark.timeout(900)


def fast(operators: Iterable[str], *chosen: str) -> list[ParameterSet]:
    """Returns the operators as parameters of a test; those that are not chosen are deep."""
    assert set(chosen) <= set(operators)
    return [pytest.param(one, marks=() if one in chosen else pytest.mark.deep) for one in operators]


class World:
    """Is an embedded project with the tables `t (k, g, v)`, very many rows laid out by `k`, and `d (k)`, three rows.

    In `t` each `k` is there once and all rows have one `g`.

    Attributes:
        rows: How many rows there are in `t`.
        bucket: What a key costs: a bucket of 32, and a tenth more, since a hash fills them unevenly.
    """

    def __init__(self, connection: Connection, spark: SparkSession, rows: int) -> None:
        self.connection = connection
        self.rows = rows
        self.bucket = rows * 11 // (32 * 10)
        self.engine = connection.engine
        connection.execute("CREATE TABLE t (k bigint NOT NULL, g integer NOT NULL, v bigint NOT NULL)")
        connection.execute("CREATE INDEX t_by_k ON t (k)")
        connection.execute("CREATE TABLE d (k bigint NOT NULL)")
        connection.execute("INSERT INTO d VALUES (1), (2), (3)")
        number = sf.col("id")
        data = [number, sf.lit(0), sf.pmod(sf.xxhash64(number), sf.lit(1000))]
        self._fill(spark.range(rows).select(*data), "t")

    def _fill(self, rows: object, name: str) -> None:
        """Writes rows straight into a table's shard."""
        catalog = self.engine.catalog
        row = catalog.collection(self.engine.collection_of(name))
        time = catalog.write_ts(TIMELINE, self.engine.now(TIMELINE))
        meta = [sf.lit(time).cast("bigint"), sf.lit(1).cast("bigint"), sf.lit(None).cast("string")]
        names = [*(column.name for column in row.columns), "mz_timestamp", "mz_diff", "mz_error"]
        frame = rows.select("*", *meta).toDF(*names)  # type: ignore[attr-defined]
        upper = Antichain.of(row.upper.lattice, time + 1)
        with BatchWriter(catalog, holder="test") as writer:
            _, shards = self.engine.spark.open()
            batch, stats = writer.write(shards, row, row.upper, upper, frame, key=(0,), rows=self.rows)
            assert isinstance(
                catalog.seal([Seal(row.id, row.upper, upper, batch, stats)], apply=(TIMELINE, time)), Sealed
            )
        assert stats.rows == self.rows
        assert stats.files == 32

    def step(self) -> dict[str, CollectionStep]:
        """Mints a tick and steps to it; returns what became of each collection that changed, by name."""
        poll = self.engine.poll(TIMELINE)
        assert poll.tick is not None, poll.reason
        report = self.engine.step(TIMELINE, poll.tick)
        assert not report.failures, report.failures
        return {one.name: one for one in report.collections if one.outcome is Outcome.ADVANCED}

    @contextmanager
    def hydrated(self, query: str) -> Iterator[None]:
        """Maintains a query as the view `w`, hydrated and compacted, for the length of a block."""
        self.connection.execute(f"CREATE MATERIALIZED VIEW w AS {query}")
        try:
            list(self.engine.compact(thorough=False))
            yield
        finally:
            self.connection.execute("DROP MATERIALIZED VIEW w")

    def changed(self, *statements: str) -> dict[str, CollectionStep]:
        """Runs the statements and steps to them."""
        for statement in statements:
            self.connection.execute(statement)
        return self.step()


@pytest.fixture(
    scope="module", params=[100_000, pytest.param(1_000_000, marks=pytest.mark.deep)], ids=["a tenth", "a million"]
)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark_config: SparkConfig
) -> Iterator[World]:
    spark = request.getfixturevalue("spark")
    project = Project.load(tmp_path_factory.mktemp("work"))
    sizes = {name: getattr(Budget(), name) * request.param // 1_000_000 for name in SIZES}
    with (
        budget_of(Budget(**sizes)),
        Connection(Engine(project, spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection,
    ):
        yield World(connection, spark, request.param)


SMALL_GROUPS = "OPTIONS (AGGREGATE INPUT GROUP SIZE = 10)"
SMALL_TOPS = "OPTIONS (DISTINCT ON INPUT GROUP SIZE = 10)"

#: By operator: the query, and how many buckets of its state one changed key touches.
MANY_GROUPS = {
    "count and sum": ("SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k", 1),
    "distinct": ("SELECT DISTINCT k, g FROM t", 1),
    "except": ("SELECT k FROM t EXCEPT SELECT k FROM d", 1),
    "max": (f"SELECT k, max(v) AS m FROM t GROUP BY k {SMALL_GROUPS}", 2),
    "top-k": (f"SELECT DISTINCT ON (k) k, v FROM t {SMALL_TOPS} ORDER BY k, v DESC", 2),
    "array_agg": ("SELECT k, array_agg(v ORDER BY v) AS a FROM t GROUP BY k", 2),
    "window": ("SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t", 2),
}


@pytest.mark.parametrize("operator", fast(MANY_GROUPS))
def test_one_changed_key_among_a_million_groups(world: World, operator: str) -> None:
    query, levels = MANY_GROUPS[operator]
    with world.hydrated(query):
        steps = world.changed("INSERT INTO t VALUES (12345, 7, 5000)")
        assert sum(one.stats.rows for one in steps.values()) >= 1
        read = sum(one.rows_read for one in steps.values())
        # A tournament keeps a row at each level, so its buckets are as many times larger.
        assert 0 < read <= levels * levels * world.bucket + 1000, steps


ONE_GROUP = {
    # The state of a sum is one row, whatever the group.
    "count and sum": ("SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g", 0),
    "max": ("SELECT g, max(v) AS m FROM t GROUP BY g", 2),
    # What is first of all and of each bucket is read twice: to see whether that changes, and as what it is.
    "top-k": ("SELECT k, v FROM t ORDER BY v DESC LIMIT 3", 5),
}


@pytest.mark.parametrize("operator", fast(ONE_GROUP, "max"))
def test_one_changed_row_in_a_group_of_a_million(world: World, operator: str) -> None:
    query, levels = ONE_GROUP[operator]
    with world.hydrated(query):
        for change in ("INSERT INTO t VALUES (12345, 0, 6000)", "DELETE FROM t WHERE v = 6000"):
            steps = world.changed(change)
            assert sum(one.stats.rows for one in steps.values()) >= 1
            read = sum(one.rows_read for one in steps.values())
            assert 0 < read <= levels * world.bucket + 5000, steps


#: Of joins: the query. One key is written to `d`, which is small, and found in `t`.
JOINS = {
    "inner join": "SELECT t.k, t.v FROM t JOIN d ON t.k = d.k",
    "left join": "SELECT t.k, t.v, d.k AS found FROM t LEFT JOIN d ON t.k = d.k",
    "semijoin": "SELECT t.k, t.v FROM t WHERE EXISTS (SELECT 1 FROM d WHERE d.k = t.k)",
    "antijoin": "SELECT t.k, t.v FROM t WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.k = t.k)",
}


@pytest.mark.parametrize("operator", fast(JOINS, "antijoin"))
def test_one_changed_key_of_a_join_with_a_million(world: World, operator: str) -> None:
    with world.hydrated(JOINS[operator]):
        key = world.rows // 2 + list(JOINS).index(operator)
        steps = world.changed(f"INSERT INTO d VALUES ({key})")
        assert sum(one.stats.rows for one in steps.values()) >= 1
        read = sum(one.rows_read for one in steps.values())
        assert 0 < read <= 2 * world.bucket + 1000, steps


#: Views whose states and joins are looked up by key, with duplicates and NULL keys.
PRUNED = {
    "sums": "SELECT x, count(*) AS n, sum(y) AS s FROM a GROUP BY x",
    "greatest": "SELECT x, max(y) AS m FROM a GROUP BY x",
    "joined": "SELECT a.x, a.y, b.z FROM a JOIN b ON a.x = b.x",
    "missing": "SELECT a.x, a.y FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x)",
}


@pytest.mark.deep
def test_pruned_lookups_change_no_result(tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget) -> None:
    """Every batch that a compaction writes is laid out, in files of a few rows, and every lookup is pruned."""
    set_budget(**(dict.fromkeys(SIZES, 0) | {"bucket_rows": 4, "pruned_rows": -1}))
    chosen = random.Random(3)
    project = replace(Project.load(tmp_path), retention_ms=0)
    with Connection(Engine(project, spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection:

        def insert(table: str, rows: int) -> None:
            values = [
                f"({'NULL' if chosen.random() < 0.1 else chosen.randrange(12)}, {chosen.randrange(5)})"
                for _ in range(rows)
            ]
            connection.execute(f"INSERT INTO {table} VALUES {', '.join(values)}")

        connection.execute("CREATE TABLE a (x integer, y integer)")
        connection.execute("CREATE TABLE b (x integer, z integer)")
        for table in ("a", "b"):
            connection.execute(f"CREATE INDEX {table}_by_x ON {table} (x)")
            insert(table, 30)
        for name, query in PRUNED.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        engine = connection.engine
        for change in ("a", "b", "delete"):
            list(engine.compact(thorough=False))
            if change == "delete":
                connection.execute("DELETE FROM a WHERE y = 4")
            else:
                insert(change, 2)
            poll = engine.poll(TIMELINE)
            assert poll.tick is not None
            report = engine.step(TIMELINE, poll.tick)
            assert not report.failures
            for name, query in PRUNED.items():
                held = Counter(connection.execute(f"SELECT * FROM {name}").fetchall())
                assert held == Counter(connection.execute(query).fetchall()), (change, name)
        row = engine.catalog.collection(engine.collection_of("a"))
        files = engine.shards.files(row, engine.catalog.live_batches([row.id])[row.id])
        assert sum(file.bucket is not None for file in files) > 4
