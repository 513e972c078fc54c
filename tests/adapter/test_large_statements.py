"""What PostgreSQL takes is computed by Spark however large it is: what it is sent grows neither deep nor too large."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget
from mz_dagster.compute.spark.linear_by_workers import linear_by_workers
from mz_dagster.errors import DataError
from mz_dagster.plan.physical import MapFilterProject
from tests.budgets import SetBudget

_NEVER = 2**31

#: Values of each kind that differs in Spark's columns and in Python, NULLs, and rows that are left out.
_TYPED = """
SELECT a / 2 AS i, c / 7 AS n, d || '-' || a AS t, date '2024-02-28' + a AS day,
    timestamp '2024-01-31 10:00:00' + (a || ' months')::interval AS moment,
    (a || ' days')::interval AS span, j -> 'k' AS j, decode(d, 'escape') AS bytes,
    CASE WHEN a > 2 THEN NULL ELSE a > 1 END AS b,
    timestamptz '2024-01-31 10:00:00+02' + (a || ' seconds')::interval AS z
FROM t WHERE a + 1 > 1 AND d IS NOT NULL
"""


@pytest.fixture
def table(connection: Connection) -> Connection:
    connection.execute("CREATE TABLE t (a integer, b integer, c numeric(10, 2), d text, j jsonb)")
    connection.execute(
        "INSERT INTO t VALUES (0, 2, 3.5, 'x', '{}'), (1, 2, 3.5, 'x', '{\"k\": 1.0}'), (2, 3, 4.55, 'y', NULL), "
        "(3, 4, NULL, 'z', '{\"k\": [1]}'), (4, 5, 1, NULL, NULL)"
    )
    return connection


@pytest.fixture
def by_workers(monkeypatch: pytest.MonkeyPatch) -> list[MapFilterProject]:
    """What was evaluated by workers so far."""
    seen: list[MapFilterProject] = []

    def noted(frame: Any, mfp: MapFilterProject) -> Any:
        seen.append(mfp)
        return linear_by_workers(frame, mfp)

    monkeypatch.setattr("mz_dagster.compute.spark.linear.linear_by_workers", noted)
    return seen


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_sixty_quotients_are_computed_by_workers(
    table: Connection, set_budget: SetBudget, by_workers: list[MapFilterProject]
) -> None:
    """As expressions, Spark's planner spends minutes on them."""
    set_budget(Budget.spark_alone())
    quotients = ", ".join(f"c / (b + {i}) * {i}.5 AS w{i}" for i in range(60))
    table.execute(f"CREATE MATERIALIZED VIEW wide AS SELECT a, {quotients} FROM t")
    table.execute("DELETE FROM t WHERE a = 1")
    found = table.execute("SELECT * FROM wide").fetchall()
    set_budget(Budget.here_alone())
    assert sorted(found) == sorted(table.execute(f"SELECT a, {quotients} FROM t").fetchall())
    assert len(found) == 4
    assert by_workers


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_workers_compute_what_spark_does(
    table: Connection, set_budget: SetBudget, by_workers: list[MapFilterProject]
) -> None:
    set_budget(Budget.spark_alone(), planned_columns=_NEVER)
    planned = sorted(table.execute(_TYPED).fetchall(), key=repr)
    assert not by_workers
    set_budget(planned_columns=-1)
    assert sorted(table.execute(_TYPED).fetchall(), key=repr) == planned
    assert len(planned) == 3
    assert any(len(mfp.steps) > 10 for mfp in by_workers)
    with pytest.raises(DataError, match="division by zero"):
        table.execute("SELECT 10 / (a - 2) AS q, b FROM t WHERE a > 0").fetchall()
    assert sorted(table.execute("SELECT 10 / (a - 2) AS q, b FROM t WHERE a > 2").fetchall()) == [(5, 5), (10, 4)]


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_nothing_is_as_deep_as_it_is_long(table: Connection, set_budget: SetBudget) -> None:
    """Sixty sums, any of which may be what there is, and thirty sums on top of one another."""
    set_budget(Budget.spark_alone())
    sums = ", ".join(f"sum(b + {i}) AS s{i}" for i in range(60))
    assert table.execute(f"SELECT {sums} FROM t").fetchall() == [tuple(16 + 5 * i for i in range(60))]
    query = "SELECT a, b FROM t"
    for i in range(30):
        query = f"SELECT a, max(b) + 1 AS b FROM ({query}) q{i} GROUP BY a"
    assert sorted(table.execute(query).fetchall()) == [(0, 32), (1, 32), (2, 33), (3, 34), (4, 35)]


def test_calls_within_one_another_are_parsed_once_each(sparkless: Connection) -> None:
    """Parsed twice, as each argument was for the sake of lambdas, sixty would take until the end of time."""
    calls = "abs(" * 60 + "-1.5" + ")" * 60
    assert sparkless.execute(f"SELECT {calls}").fetchall() == [(Decimal("1.5"),)]
