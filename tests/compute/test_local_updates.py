"""Views that are maintained in this process hold what their queries say, whichever way their lookups read."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.compute.walk.local_plans import LocalUpdates
from mz_dagster.errors import DataError
from mz_dagster.plan.physical import Accumulate, Linear, Physical, physical_inputs
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget

VIEWS = {
    "pairs": "SELECT a.y, b.z FROM a JOIN b ON a.x = b.x",
    "sums": "SELECT a.x, count(*) AS n, sum(b.z * a.y) AS total FROM a JOIN b ON a.x = b.x GROUP BY a.x",
    "chain": "SELECT c.name, sum(c.price) AS total FROM a JOIN b ON a.x = b.x JOIN c ON b.z = c.z GROUP BY c.name",
    "first": "SELECT b.z, b.x, c.name FROM b JOIN c ON b.z = c.z ORDER BY b.x DESC, c.name LIMIT 3",
    "newest": "SELECT DISTINCT ON (x) x, z FROM b ORDER BY x, z DESC",
    "least": "SELECT a.x, min(b.z / (a.y - 3)) AS least FROM a JOIN b ON a.x = b.x GROUP BY a.x",
}
#: By the way that lookups read where a collection is not little: what makes them, and which views are maintained.
ROUTES: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "what others ask for, too": (
        {"whole_rows": 0, "common_lookup_rows": 0, "kept_rows": 10**9},
        ("pairs", "sums", "least"),
    ),
    "the files of the keys": ({"whole_rows": 0}, tuple(VIEWS)),
    "by a query": ({"whole_rows": 0, "decoded_cells": -1}, ("chain", "newest", "least")),
}


@pytest.fixture
def connection(tmp_path: Path, spark_config: SparkConfig) -> Iterator[Connection]:
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


@pytest.mark.timeout(300)
@pytest.mark.parametrize("route", ROUTES)
def test_views_hold_what_their_queries_say(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget, route: str
) -> None:
    thresholds, views = ROUTES[route]
    set_budget(**thresholds)
    evaluated: Counter[bool] = Counter()
    updates = LocalUpdates.updates
    monkeypatch.setattr(LocalUpdates, "updates", lambda *args: noted(evaluated, updates(*args)))
    chosen = random.Random(5)

    def insert(table: str, rows: int) -> None:
        def value() -> str:
            key = "NULL" if chosen.random() < 0.2 else str(chosen.randrange(4))
            price, text = chosen.randrange(300) / 100, chosen.choice(["NULL", "'x'", "'y '", "''"])
            return f"({key}, {chosen.randrange(3)})" if table != "c" else f"({key}, {text}, {price})"

        connection.execute(f"INSERT INTO {table} VALUES {', '.join(value() for _ in range(rows))}")

    connection.execute("CREATE TABLE a (x integer, y integer)")
    connection.execute("CREATE TABLE b (x integer, z integer)")
    connection.execute("CREATE TABLE c (z integer, name text, price numeric(8, 2))")
    for table in ("a", "b", "c"):
        insert(table, 10)
    for name in views:
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    failed = handovers = 0
    for change in ("INSERT INTO a VALUES (1, 3)", "DELETE FROM a WHERE y = 3"):
        connection.execute(change)
        for table in ("a", "b", "c"):
            insert(table, 2)
        poll = connection.engine.poll("default")
        assert poll.tick is not None, poll.reason
        report = connection.engine.step("default", poll.tick)
        assert not report.failures
        handovers += sum(one.handovers for one in report.collections)
        for name in views:
            held, asked = (rows(connection, text) for text in (f"SELECT * FROM {name}", VIEWS[name]))
            assert held == asked, (change, name)
            failed += held is None
    assert failed > 0, "an error came"
    assert (handovers > 0) == (route == "by a query")
    assert evaluated[True] > evaluated[False]


@pytest.mark.deep
def test_more_changes_are_computed_with_here_if_scalars_have_kernels(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget
) -> None:
    connection.execute("CREATE TABLE big (k integer, v integer)")
    connection.execute("CREATE TABLE small (k integer, name text)")
    connection.execute("INSERT INTO small VALUES (0, 'x'), (1, 'y'), (2, 'x'), (NULL, 'x')")
    connection.execute("INSERT INTO big VALUES (0, 1), (1, 2)")
    query = "count(*) AS n, sum(big.v) AS total FROM big JOIN small ON big.k = small.k"
    views = {
        "by_kernels": f"SELECT small.name, {query} WHERE small.name = 'x' GROUP BY 1",
        "by_spark": f"SELECT exp(small.k::float8) AS name, {query} GROUP BY 1",
    }
    for name, text in views.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    set_budget(evaluated_updates=10, step_times=20)
    evaluated: defaultdict[int, set[bool]] = defaultdict(set)
    updates = LocalUpdates.updates

    def noted_by_changes(plans: LocalUpdates, node: Physical) -> pa.Table | None:
        found = updates(plans, node)
        if isinstance(node, Accumulate):
            filters = sum(kind == "filter" for one in linears(node) for kind, _ in one.mfp.steps)
            evaluated[filters].add(found is not None)
        return found

    monkeypatch.setattr(LocalUpdates, "updates", noted_by_changes)
    connection.execute(f"INSERT INTO big VALUES {', '.join(f'({n % 4}, {n})' for n in range(60))}")
    connection.execute("DELETE FROM big WHERE v < 50")
    for name, text in views.items():
        assert rows(connection, f"SELECT * FROM {name}") == rows(connection, text) != Counter()
    assert evaluated == {1: {True}, 0: {False}}


def linears(node: Physical) -> Iterator[Linear]:
    if isinstance(node, Linear):
        yield node
    for one in physical_inputs(node):
        yield from linears(one)


def noted(evaluated: Counter[bool], found: object) -> object:
    evaluated[found is not None] += 1
    return found


def rows(connection: Connection, query: str) -> Counter[tuple[object, ...]] | None:
    """Returns a query's rows, None if they are an error of the data."""
    try:
        return Counter(connection.execute(query).fetchall())
    except DataError:
        return None
