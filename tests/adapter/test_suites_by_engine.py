"""The query suites, asked in sessions: whichever engine computes an answer, it is PostgreSQL's.

`tests/sql` holds what is bound to PostgreSQL by evaluating plans naively. Here the same queries go all the way, and are
computed in this process however much that is, or by Spark however little.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.errors import Error, InternalError
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.postgres_server import Postgres
from tests.sparkless import refuse_spark
from tests.sql import (
    join_queries,
    row_queries,
    test_against_postgres,
    test_jsonb_against_postgres,
    test_statistics_against_postgres,
    test_strings_against_postgres,
    test_times_against_postgres,
)
from tests.sql.against_postgres import Answer, Data, normal, script, tables, theirs
from tests.sql.random_queries import Queries
from tests.sql.test_joins_against_postgres import TABLES, random_data

#: A query, and how PostgreSQL spells it.
Pair = tuple[str, str]


def _plain(seed: int, wanted: int) -> list[Pair]:
    found = (one.partition("|||") for one in test_against_postgres.QUERIES)
    return [(ours.strip(), theirs.strip() or ours) for ours, _, theirs in found]


def _random(seed: int, wanted: int) -> list[Pair]:
    queries = Queries(random.Random(seed))
    return _both([queries.stored_apart() if n % 10 == 0 else queries.query() for n in range(wanted)])


def _typed(seed: int, wanted: int) -> list[Pair]:
    suites = (test_jsonb_against_postgres, test_times_against_postgres, test_strings_against_postgres)
    return _both([query for suite in suites for query in suite.QUERIES])


def _rows(seed: int, wanted: int) -> list[Pair]:
    r = row_queries
    return _both([*r.SERIES, *r.ITEMS, *r.UNNEST, *r.ROWS, *r.ARRAYS, *r.TOGETHER])


def _statistics(seed: int, wanted: int) -> list[Pair]:
    pick = random.Random(seed)
    return _both([test_statistics_against_postgres.grouped_query(pick) for _ in range(wanted)])


def _both(queries: list[str]) -> list[Pair]:
    return [(one, one) for one in queries]


def _joined_tables(seed: int) -> Data:
    rows = random_data(seed)
    return {name: (columns, rows[name]) for name, columns in TABLES.items()}


#: What makes queries by a seed, and by how many are wanted of those that are random.
Suite = Callable[[int, int], list[Pair]]
#: By the tables they are over, made by a seed: suites by name.
SUITES: dict[str, tuple[Callable[[int], Data], Mapping[str, Suite]]] = {
    "one table": (
        tables,
        {"plain": _plain, "random": _random, "typed": _typed, "rows": _rows, "statistics": _statistics},
    ),
    "joins": (_joined_tables, {"joins": join_queries.queries}),
}


#: Types of elements, each with two values that are equal and look different.
_STORED_APART = (
    ("jsonb", "'1'::jsonb", "'1.0'::jsonb"),
    ("interval", "interval '1 mon'", "interval '30 days'"),
    ("numeric", "'2'::numeric", "'2.00'::numeric"),
    ("float8", "0::float8", "'-0'::float8"),
)
#: Over a table whose arrays in `k` are equal or not.
_OF_PARTNERS = (
    "SELECT p.id AS a, q.id AS b FROM {} AS p JOIN {} AS q ON p.k = q.k",
    "SELECT p.id AS a, q.id AS b FROM {} AS p LEFT JOIN {} AS q ON p.k = q.k AND p.k::text < q.k::text",
    "SELECT p.id AS a, q.id AS b FROM {} AS p, {} AS q WHERE p.k IS NOT DISTINCT FROM q.k",
    "SELECT p.id AS a FROM {} AS p WHERE NOT EXISTS (SELECT FROM {} AS q WHERE p.k = q.k AND q.id > p.id)",
    "SELECT p.id AS a, (SELECT count(*) FROM {} AS q WHERE p.k = q.k) AS n FROM {} AS p",
)

#: Over such a table: what groups, orders and subtracts by its arrays, and by records of them.
_OF_GROUPS = (
    "SELECT count(*) AS n, min(id) AS least FROM {} GROUP BY k",
    "SELECT count(*) AS n FROM {} GROUP BY ROW(k, id > 9)",
    "SELECT count(*) AS n FROM {} GROUP BY ROW(k[1], ARRAY[k[1]]) HAVING count(DISTINCT k) > 0",
    "SELECT count(*) AS n, count(DISTINCT k) AS m FROM (SELECT DISTINCT k FROM {}) AS d",
    "SELECT count(*) AS n FROM (SELECT k FROM {} UNION SELECT k FROM {} WHERE id = 1) AS u",
    "SELECT count(*) AS n FROM (SELECT k FROM {} EXCEPT ALL SELECT k FROM {} WHERE id = 1) AS e",
    "SELECT count(*) AS n FROM (SELECT k FROM {} WHERE id = 1 INTERSECT SELECT k FROM {} WHERE id = 2) AS i",
    "SELECT id, count(*) OVER (PARTITION BY k) AS n, rank() OVER (ORDER BY k DESC) AS r FROM {}",
    "SELECT DISTINCT ON (k) cardinality(k) AS n FROM {} ORDER BY k, id",
    "SELECT id FROM {} ORDER BY k NULLS FIRST, id LIMIT 3",
    "SELECT array_agg(id ORDER BY k, id) AS ids FROM {}",
    "SELECT p.k::text AS p, q.k::text AS q FROM (SELECT k FROM {} WHERE id < 3) AS p "
    "LEFT JOIN (SELECT k FROM {}) AS q ON p.k::text < q.k::text",
    "SELECT p.id, (SELECT string_agg(p.k::text || q.id, '' ORDER BY q.id) FROM {} AS q WHERE q.id <> p.id) AS t "
    "FROM {} AS p",
    "SELECT p.id AS p FROM {} AS p JOIN {} AS q ON ROW(p.k, 1) = ROW(q.k, 1)",
)
#: Likewise, and shows how a key is stored; of zeros the sign goes.
_OF_KEYS = (
    "SELECT k::text AS t FROM {} WHERE id = 2 GROUP BY k",
    "SELECT k::text AS t FROM (SELECT k FROM {} WHERE id = 2 INTERSECT SELECT k FROM {} WHERE id = 2) AS i",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    tried = refuse_spark(monkeypatch)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        opened.execute("SET engine = local")
        yield opened
    assert not tried


@pytest.fixture
def by_spark(tmp_path: Path, compiling_spark_config: SparkConfig, set_budget: SetBudget) -> Iterator[Connection]:
    set_budget(Budget.spark_alone())
    engine = Engine(Project.load(tmp_path), spark=compiling_spark_config)
    with Connection(engine, Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


def answer(connection: Connection, query: str) -> tuple[Answer, int]:
    """Returns what a session says and how many columns that has."""
    try:
        cursor = connection.execute(query)
    except InternalError:
        raise
    except Error as error:
        return Answer(error=error.sqlstate), 0
    rows = tuple(tuple(normal(one) for one in row) for row in cursor.fetchall())
    return Answer((), rows), len(cursor.description or ())


def said(database: Postgres, asked: Sequence[tuple[str, int]]) -> list[Answer]:
    """Returns PostgreSQL's answers to queries, each given with its number of columns; 0 for one that is an error."""
    known = iter(theirs(database, [one for one in asked if one[1]]))
    unknown = iter(database.attempt([f"SELECT json_agg(q) FROM ({query}) AS q" for query, width in asked if not width]))
    answers = []
    for _, width in asked:
        if width:
            answers.append(replace(next(known), types=()))
        else:
            found = next(unknown) or "none"
            answers.append(Answer(error=found[1:]))
    return [replace(one, error=one.error[:5]) for one in answers]


def filled(connection: Connection, postgres: Postgres, data: Data) -> Postgres:
    """Makes the tables in an empty project, and in a new database, which is returned."""
    statements = script(data)
    for create in (one for one in statements.splitlines() if one.startswith("CREATE")):
        connection.execute(create.removesuffix(";"))
    for name, (columns, rows) in data.items():
        if rows:
            places = ", ".join("?" for _ in columns.columns)
            every = ", ".join(f"({places})" for _ in rows)
            connection.execute(f"INSERT INTO {name} VALUES {every}", [cell for row in rows for cell in row])
    database = postgres.new_database()
    database.run(statements)
    return database


def differences(connection: Connection, database: Postgres, pairs: Sequence[Pair]) -> tuple[list[str], int]:
    """Returns where a session's answers are not PostgreSQL's, and how many were compared."""
    told = [(query, spelled, *answer(connection, query)) for query, spelled in pairs]
    differ: list[str] = []
    for (query, _, mine, _), other in zip(told, said(database, [(s, n) for _, s, _, n in told]), strict=True):
        if " ORDER BY " not in query.rpartition(")")[2]:
            mine, other = mine.unordered(), other.unordered()
        if mine != other:
            differ.append(f"{query}\n   ours: {mine}\n theirs: {other}")
    return differ, len(told)


def _chosen(pick: random.Random, pairs: list[Pair], some: int) -> list[Pair]:
    return pick.sample(pairs, some) if some else pairs


def compared(connection: Connection, postgres: Postgres, over: str, seed: int, wanted: int, some: int = 0) -> int:
    """Asks an empty project the suites over some tables, fails where answers differ; returns how many were compared.

    Args:
        connection: To the project.
        postgres: The referee.
        over: Which tables.
        seed: Of the tables, and of what is random.
        wanted: How many random queries are made of each suite.
        some: How many of each suite are asked, by chance; 0 for all.
    """
    made, suites = SUITES[over]
    database = filled(connection, postgres, made(seed))
    pick = random.Random(seed)
    pairs = [pair for suite in suites.values() for pair in _chosen(pick, suite(seed, wanted), some)]
    differ, n = differences(connection, database, pairs)
    assert not differ, f"{len(differ)} of {n} differ, seed {seed}:\n" + "\n".join(differ[:20])
    return n


@pytest.mark.parametrize("over", SUITES)
def test_answers_made_here_are_those_of_postgres(here: Connection, postgres: Postgres, over: str) -> None:
    assert compared(here, postgres, over, seed=1, wanted=10, some=8) >= 4


@pytest.mark.deep
def test_answers_made_by_spark_are_those_of_postgres(by_spark: Connection, postgres: Postgres) -> None:
    compared(by_spark, postgres, "one table", seed=1, wanted=1, some=1)


@pytest.mark.parametrize(
    "queries", [_OF_PARTNERS, pytest.param(_OF_GROUPS, marks=pytest.mark.deep)], ids=["partners", "groups"]
)
def test_equal_arrays_that_are_stored_differently_are_one_value(
    here: Connection, postgres: Postgres, queries: Sequence[str]
) -> None:
    _compare_arrays(here, postgres, queries, _STORED_APART)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("type_", _STORED_APART, ids=lambda type_: type_[0])
@pytest.mark.parametrize("queries", [_OF_PARTNERS, _OF_GROUPS], ids=["partners", "groups"])
def test_equal_arrays_are_one_value_to_spark(
    by_spark: Connection, postgres: Postgres, queries: Sequence[str], type_: tuple[str, str, str]
) -> None:
    _compare_arrays(by_spark, postgres, queries, (type_,))


def _compare_arrays(
    here: Connection, postgres: Postgres, queries: Sequence[str], types: Sequence[tuple[str, str, str]]
) -> None:
    database = postgres.new_database()
    pairs: list[Pair] = []
    for n, (type_, one, other) in enumerate(types):
        statements = (
            f"CREATE TABLE a{n} (id integer PRIMARY KEY, k {type_}[])",
            f"INSERT INTO a{n} VALUES (1, ARRAY[{one}]), (2, ARRAY[{other}]), (3, ARRAY[{one}, NULL]), (4, NULL), "
            f"(5, ARRAY[{one}]), (6, ARRAY[NULL, {other}])",
        )
        for statement in statements:
            here.execute(statement)
        database.run(";".join(statements))
        more = _OF_KEYS if queries is _OF_GROUPS and type_ != "float8" else ()
        for i, query in enumerate(one.replace("{}", f"a{n}") for one in (*queries, *more)):
            pairs.append((query, query))
            if n == i % len(types):  # each is maintained of one type
                here.execute(f"CREATE MATERIALIZED VIEW v{i} AS {query}")
                pairs.append((f"SELECT * FROM v{i}", query))
        for change in (f"UPDATE a{n} SET id = id + 10 WHERE id > 2", f"DELETE FROM a{n} WHERE id = 15"):
            here.execute(change)
            database.run(change)
    differ, _ = differences(here, database, pairs)
    assert not differ, "\n".join(differ)


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("over", SUITES)
def test_many_answers_made_here_are_those_of_postgres(
    here: Connection, postgres: Postgres, over: str, seed: int
) -> None:
    assert compared(here, postgres, over, seed, wanted=400) > 100


@pytest.mark.deep
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("over", SUITES)
def test_all_answers_made_by_spark_are_those_of_postgres(by_spark: Connection, postgres: Postgres, over: str) -> None:
    compared(by_spark, postgres, over, seed=8, wanted=200)
