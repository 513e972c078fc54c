"""The oracle test: at every readable time a maintained collection is its query over the tables as they stood then.

Random schemas, queries, histories, splits into steps, compactions, retentions and restarts; PostgreSQL 15 is the
referee. A failure names its seed: `python -m tests.oracle.run --seed S --cases 1` tells its story as SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from mz_dagster.storage.spark import SparkConfig
from tests.oracle.expressions import Column
from tests.oracle.referee import Answer, Referee, spelled
from tests.oracle.scope import Query
from tests.oracle.world import Tally, World
from tests.postgres_server import Postgres


def live(
    seeds: Sequence[int],
    folder: Path,
    spark: SparkConfig,
    postgres: Postgres,
    *,
    views: int,
    writes: int,
    workers: int = 0,
) -> Tally:
    """Lives through worlds and returns what they did together."""
    total = Tally()
    for seed in seeds:
        world = World(seed, folder / f"world{seed}", spark, postgres, views=views, writes=writes, workers=workers)
        total.add(world.run())
    return total


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [2, *(pytest.param(one, marks=pytest.mark.deep) for one in (1, 3))])
def test_views_are_their_queries_at_every_time(
    tmp_path: Path, spark_config: SparkConfig, postgres: Postgres, seed: int
) -> None:
    """A small world; that every kind of operator was exercised is asked of the many. Seed 1 is by Spark alone."""
    total = live([seed], tmp_path, spark_config, postgres, views=3, writes=3)
    print(total)
    total.check(covers=False)


@pytest.mark.deep
@pytest.mark.timeout(36000)
def test_views_are_their_queries_in_many_worlds(tmp_path: Path, spark_config: SparkConfig, postgres: Postgres) -> None:
    total = live(range(1000, 1110), tmp_path, spark_config, postgres, views=16, writes=10)
    print(total)
    total.check()


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_views_are_their_queries_where_workers_compute(
    tmp_path: Path, spark_config: SparkConfig, postgres: Postgres
) -> None:
    """Those by this process: what is Spark's is left by workers, which `test_workers` shows."""
    seeds = [seed for seed in range(2000, 2030) if seed % 3 != 1]
    total = live(seeds, tmp_path, spark_config, postgres, views=16, writes=10, workers=2)
    print(total)
    total.check(covers=False)
    assert total.shared > len(seeds)


def test_the_referee_groups_rows_in_the_order_of_their_derived_table(postgres: Postgres) -> None:
    """However few rows it counts on: if it sorted them by the key, those of one key would come in any order."""
    with closing(Referee(postgres, "given_order")) as referee:
        referee.run("CREATE TABLE t AS SELECT n, n % 2 AS k FROM generate_series(0, 2999) AS n")
        referee.run("DELETE FROM t WHERE n >= 30; ANALYZE t")
        rows = "(SELECT n, k FROM t WHERE n % 100 = n ORDER BY n) AS x"
        columns = (Column("k", "integer"), Column("ns", "text"))
        query = Query(f"SELECT k, string_agg(n::text, ',') FROM {rows} GROUP BY k", columns, safe=True, strict=False)
        expected = [(k, ",".join(str(n) for n in range(k, 30, 2))) for k in range(2)]
        assert referee.answer(query, query.text) == Answer(spelled(expected, [one.type for one in columns]))
