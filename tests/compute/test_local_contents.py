"""What is computed of little in this process, from the beginning, is what Spark makes of it: queries and views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.compute.walk.local_plans import LocalContents
from mz_dagster.errors import DataError
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.sparkless import refuse_spark

#: By what they have; each is computed here but for its functions, if Spark has to evaluate them.
QUERIES = {
    "a chain of joins": "SELECT c.name, a.y, b.z FROM a JOIN b ON a.x = b.x JOIN c ON b.z = c.z",
    "an outer join": "SELECT a.x, a.y, b.z FROM a LEFT JOIN b ON a.x = b.x AND a.y = b.z",
    "sums by key": "SELECT a.x, count(*) AS n, sum(a.y * b.z) AS total FROM a JOIN b ON a.x = b.x GROUP BY a.x",
    "sums of numerics": "SELECT name, sum(price) AS total, avg(price) AS mean, count(price) AS n FROM c GROUP BY name",
    "a sum of all": "SELECT count(*) AS n, sum(price) AS total, max(name) AS most FROM c",
    "extremes": "SELECT x, min(y) AS least, max(y) AS most FROM a GROUP BY x",
    "each row once": "SELECT DISTINCT x, y > 1 AS big FROM a",
    "the first by key": "SELECT DISTINCT ON (x) x, z FROM b ORDER BY x, z DESC",
    "the first of all": "SELECT z, name FROM c ORDER BY price DESC NULLS LAST, name, z LIMIT 3 OFFSET 1",
    "set operations": "(SELECT x FROM a EXCEPT ALL SELECT x FROM b) UNION ALL"
    " (SELECT z FROM b INTERSECT SELECT y FROM a)",
    "a semijoin": "SELECT x, y FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND b.z > 0)",
    "no such row": "SELECT x, y FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x)",
    "a subplan twice": "WITH w AS (SELECT x, count(*) AS n FROM a GROUP BY x)"
    " SELECT l.x, r.n FROM w l JOIN w r ON l.n = r.n",
    "constant rows": "SELECT v.n, a.y FROM (VALUES (1, 'one'), (2, NULL)) AS v (k, n) LEFT JOIN a ON a.x = v.k",
    "moments": "SELECT date_trunc('day', at) AS day, count(*) AS n FROM d WHERE at < '2024-03-01 00:00:00' GROUP BY 1",
    "branches": "SELECT CASE WHEN y IS NULL THEN -1 WHEN y > 1 THEN y + 1 END AS c, coalesce(y, x, 7) AS d FROM a",
    "functions of text": "SELECT upper(name) AS u, length(name) AS n FROM c WHERE name LIKE '%x%'",
    "functions of Spark": "SELECT z::float8 / 3 AS third, name ~ 'x$' AS ends FROM c",
    "rows of arrays": "SELECT d.at, d.tags FROM d JOIN d AS e ON d.at = e.at",
    "elements": "SELECT at, unnest(tags) AS tag FROM d",
    "numbered elements": "SELECT at, t.a, t.b, t.n FROM d, unnest(tags, tags || 4) WITH ORDINALITY AS t (a, b, n)",
    "an error": "SELECT x, 12 / y AS q FROM a",
    "an error that does not matter": "SELECT x FROM a WHERE y = 0 OR 12 / y > 3",
    "an error in a group": "SELECT b.x, sum(12 / a.y) AS q FROM a JOIN b ON a.x = b.x GROUP BY b.x",
}
WRITES = (
    "INSERT INTO a VALUES (1, 1), (1, 2), (2, 3), (NULL, 2), (3, NULL), (2, 3)",
    "INSERT INTO b VALUES (1, 1), (1, 2), (2, 0), (NULL, 1), (4, NULL)",
    "INSERT INTO c VALUES (1, 'x', 1.25), (2, 'yx', -3.10), (0, NULL, NULL), (1, 'x', 99.99), (NULL, '', 0.00)",
    "INSERT INTO d VALUES ('2024-02-29 12:00:00', '{1,NULL}'), ('2024-02-29 13:30:00.5', NULL), (NULL, '{}'),"
    " ('2024-03-01 00:00:00', '{3}')",
    "DELETE FROM a WHERE y = 3",
    "INSERT INTO a VALUES (4, 0), (2, 5)",
    "UPDATE b SET z = 5 WHERE x = 1 AND z = 2",
    "DELETE FROM a WHERE y = 0",
)


#: Spark takes half a second and more for each query at each time.
PARTS = [slice(1, None, 48), *(pytest.param(slice(n, None, 48), marks=pytest.mark.deep) for n in range(48) if n != 1)]


@pytest.fixture
def connection(tmp_path: Path, spark_config: SparkConfig) -> Iterator[Connection]:
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as opened:
        opened.execute("CREATE TABLE a (x integer, y integer)")
        opened.execute("CREATE TABLE b (x integer, z integer)")
        opened.execute("CREATE TABLE c (z integer, name text, price numeric(8, 2))")
        opened.execute("CREATE TABLE d (at timestamp, tags integer[])")
        yield opened


@pytest.mark.deep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", PARTS)
def test_queries_and_views_are_what_spark_makes_of_them(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget, part: slice
) -> None:
    queries = list(QUERIES.values())[part]
    evaluated: Counter[bool] = Counter()
    updates = LocalContents.updates

    def counted(*arguments: Any) -> Any:
        found = updates(*arguments)
        evaluated[found is not None] += 1
        return found

    monkeypatch.setattr(LocalContents, "updates", counted)
    for text in WRITES[:5]:
        connection.execute(text)
    for number, query in enumerate(queries):
        connection.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
    assert evaluated[True] >= len(queries), "views were made here"
    times = []
    for text in WRITES[5:]:
        connection.execute(text)
        times.append(connection.engine.catalog.read_ts("default"))
    asked = [(query, time) for query in queries for time in times]
    here = {(query, time): answer(connection, f"{query} AS OF {time}") for query, time in asked}
    assert not evaluated[False]
    set_budget(evaluated_updates=0)
    for (query, time), found in here.items():
        by_spark = answer(connection, f"{query} AS OF {time}")
        assert found == by_spark, f"{query} at {time}"
        held = answer(connection, f"SELECT * FROM v{queries.index(query)} AS OF {time}")
        assert held == by_spark, f"the view of {query} at {time}"
    failing = {QUERIES[name] for name in ("an error", "an error in a group")}
    assert {query for (query, _), found in here.items() if isinstance(found, str)} == failing & set(queries)


def answer(connection: Connection, query: str) -> Counter[Any] | str:
    """Returns a query's rows, or its error."""
    try:
        return Counter(map(repr, connection.execute(query).fetchall()))
    except DataError as error:
        return str(error)


def test_what_is_little_and_of_known_functions_needs_no_spark(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_spark(monkeypatch)
    for text in WRITES[:4]:
        connection.execute(text)
    query = "SELECT c.name, sum(a.y) AS n FROM a JOIN c ON a.x = c.z WHERE price > 1.00 GROUP BY c.name"
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    for text, total in (("DELETE FROM a WHERE y = 1", 4), ("INSERT INTO c VALUES (2, 'x', 2.00)", 10)):
        connection.execute(text)
        for asked in (query, "SELECT * FROM v"):
            assert Counter(connection.execute(asked).fetchall()) == {("x", total): 1}
