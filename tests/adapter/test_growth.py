"""What is computed in this process takes memory and time by how much it is, not by its square.

One statement for each operator, over sizes a few times apart; the exponent of the fit is at most 1.1 where sizes are
large enough that what is the same for all is nothing: these are deep. The others are sure to find a square.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, process_time
from typing import get_args

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.compute.algebra.frame import META
from mz_dagster.compute.local.linear_operators import unnested
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import Physical, ReadCollection, Staged, StageFunction, Unnest, physical_inputs
from mz_dagster.scalars.types import INT4, Column, RelationType, array_of
from mz_dagster.storage.arrow_schema import update_table
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.growth import exponent, peak
from tests.sparkless import refuse_spark

#: By the operator: a query over a table of n rows, of which k is unique and g has a hundred values.
OPERATORS = {
    "rows": "SELECT k, v FROM t{n} AS t",
    "scalars": "SELECT k + 1 AS k, v * 2 AS v, s || 'x' AS s FROM t{n} AS t WHERE v > 0",
    "negation": "SELECT k FROM t{n} AS t EXCEPT ALL SELECT k FROM t{n} AS t WHERE g = 1",
    "distinct": "SELECT DISTINCT v FROM t{n} AS t",
    "join": "SELECT x.k, y.v FROM t{n} x JOIN t{n} y ON x.k = y.k",
    "outer join": "SELECT x.k, y.v FROM t{n} x LEFT JOIN t{n} y ON x.k = y.v",
    "semijoin": "SELECT k FROM t{n} AS t WHERE NOT EXISTS (SELECT 1 FROM t{n} y WHERE y.v = t.k)",
    "sums": "SELECT g, count(*) AS n, sum(v) AS s, avg(v) AS a FROM t{n} AS t GROUP BY g",
    "extremes": "SELECT g, min(v) AS least, max(s) AS most FROM t{n} AS t GROUP BY g",
    "first rows": "SELECT k, v FROM t{n} AS t ORDER BY v, k LIMIT 10",
    "first rows by key": "SELECT DISTINCT ON (g) g, v, k FROM t{n} AS t ORDER BY g, v, k",
    "repeat": "SELECT v FROM t{n} AS t INTERSECT ALL SELECT k FROM t{n} AS t",
    "union": "SELECT k, v FROM t{n} AS t UNION ALL SELECT v, k FROM t{n} AS t UNION ALL VALUES (1, 2)",
    "elements": "SELECT k, e FROM t{n} AS t, unnest(ARRAY[k, v]) AS e",
    "lists": "SELECT g, array_agg(v ORDER BY k) AS l, string_agg(s, ',') AS s FROM t{n} AS t GROUP BY g",
    "list of all": "SELECT array_agg(v ORDER BY v, k) AS l FROM t{n} AS t",
    "windows": "SELECT sum(v) OVER (PARTITION BY g ORDER BY k) AS s, lag(s) OVER (ORDER BY v, k) AS l FROM t{n} AS t",
    "frames": "SELECT k, max(v) OVER (ORDER BY k ROWS 5 PRECEDING) AS m FROM t{n} AS t",
    "float sums": "SELECT g, sum(v / 3e0) AS s FROM t{n} AS t GROUP BY g",
    "asked errors": "SELECT k, CASE WHEN k < 0 THEN (SELECT sum(1 / y.v) FROM t{n} y) END AS e FROM t{n} AS t",
}
#: Views, whose making evaluates what a query of the same form does not.
VIEWS = {
    "temporal filter": "SELECT k, v FROM t{n} AS t WHERE mz_now() >= k AND mz_now() <= 4000000000000 + v",
}
#: Functions of all kinds.
WINDOWS = (
    "row_number() OVER (ORDER BY v)",
    "sum(v) OVER (PARTITION BY g ORDER BY k)",
    "lag(s) OVER (ORDER BY v, k)",
    "max(v) OVER (ORDER BY k ROWS 5 PRECEDING)",
)
CHEAP = ("join",)


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget) -> Iterator[Connection]:
    refuse_spark(monkeypatch)
    set_budget(Budget.here_alone())
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


def filled(connection: Connection, size: int) -> None:
    """Makes a table of so many rows."""
    connection.execute(f"CREATE TABLE t{size} (k integer, g integer, v integer, s text)")
    file = connection.engine.project.root / f"t{size}.csv"
    file.write_text("".join(f"{n},{n % 100},{n * 7919 % size},text {n}\n" for n in range(size)))
    connection.execute(f"COPY t{size} FROM '{file.name}' (FORMAT CSV)")


def costs(connection: Connection, operator: str, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Returns the exponents of an operator's time and memory."""
    for size in sizes:
        filled(connection, size)

    def run(size: int) -> None:
        if operator in OPERATORS:
            connection.execute(OPERATORS[operator].replace("{n}", str(size))).fetchall()
            return
        connection.execute(f"CREATE MATERIALIZED VIEW made AS {VIEWS[operator].replace('{n}', str(size))}")
        assert connection.execute("SELECT * FROM made").rowcount == size
        connection.execute("DROP MATERIALIZED VIEW made")

    def seconds(size: int) -> float:
        # The collector goes through all that the process holds, but only once enough was made: a step, no growth.
        gc.collect()
        gc.disable()
        try:
            begin = process_time()
            run(size)
            return process_time() - begin
        finally:
            gc.enable()

    run(sizes[0])
    gc.collect()
    gc.freeze()  # what earlier tests have left need not be gone through each time
    try:
        return exponent(seconds, sizes), exponent(lambda size: peak(lambda: run(size)), sizes, times=1)
    finally:
        gc.unfreeze()


def test_an_array_takes_memory_by_its_elements_once(set_budget: SetBudget) -> None:
    set_budget(Budget.here_alone())
    own = RelationType((Column("k", INT4), Column("elements", array_of(INT4))))
    made = RelationType((Column("k", INT4), Column("element", INT4)))
    node = Unnest(ReadCollection(GlobalId("u1"), own, "t"), 1, False, made)

    def memory(size: int) -> float:
        rows = update_table(own.columns, [((1, tuple(range(size))), 0, 1)]).rename_columns(
            ["c0", "c1", "mz_timestamp", "mz_diff", "mz_error"]
        )
        return peak(lambda: unnested(rows, node))

    assert unnested(update_table(own.columns, []).rename_columns(["c0", "c1", *META]), node).num_rows == 0
    # Of fewer elements most are Python's small integers, which take no memory.
    assert exponent(memory, (16_000, 64_000, 256_000), times=1) < 1.1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("operator", CHEAP)
def test_no_operator_here_takes_time_or_memory_by_the_square(connection: Connection, operator: str) -> None:
    time, memory = costs(connection, operator, (500, 2_000))
    assert time < 1.5
    assert memory < 1.5


def test_each_operator_of_this_process_has_a_statement_here(connection: Connection) -> None:
    filled(connection, 4)
    met: set[type] = set()

    def meet(node: Physical) -> None:
        met.update({type(node), type(node.function)} if isinstance(node, Staged) else {type(node)})
        for one in physical_inputs(node):
            meet(one)

    for number, text in enumerate((OPERATORS | VIEWS).values()):
        connection.execute(f"CREATE MATERIALIZED VIEW v{number} AS {text.replace('{n}', '4')}")
        plan = connection.engine.definitions.definition(connection.engine.collection_of(f"v{number}")).plan
        assert plan is not None
        for one in (*(each.plan for each in plan.arrangements), plan.output):
            meet(one)
    assert {*get_args(Physical), *get_args(StageFunction)} <= met


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("operator", [*OPERATORS, *VIEWS])
def test_time_and_memory_of_each_operator_here_are_linear(connection: Connection, operator: str) -> None:
    time, memory = costs(connection, operator, (10_000, 30_000, 100_000))
    assert time < 1.1
    assert memory < 1.1


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("window", WINDOWS)
def test_windows_take_time_by_their_rows(
    tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget, window: str
) -> None:
    """By Spark; a partition has all rows, or each has a hundredth of them."""
    set_budget(Budget.spark_alone())
    sizes = (10_000, 30_000, 100_000)
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection:
        for size in sizes:
            filled(connection, size)

        def seconds(size: int) -> float:
            begin = monotonic()
            connection.execute(f"CREATE MATERIALIZED VIEW made AS SELECT k, {window} AS w FROM t{size} AS t")
            assert connection.execute("SELECT count(*) FROM made").fetchall() == [(size,)]
            found = monotonic() - begin
            connection.execute("DROP MATERIALIZED VIEW made")
            return found

        assert exponent(seconds, sizes, times=2) < 1.1
