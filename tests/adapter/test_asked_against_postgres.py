"""Errors in subqueries are those of the rows that ask, as in PostgreSQL, whatever is below: joins, groups, CTEs."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget
from mz_dagster.errors import DataError
from mz_dagster.plan.physical import Accumulate, collections_read
from tests.budgets import SetBudget
from tests.postgres_server import Postgres

TABLES = (
    "CREATE TABLE o (k integer, a integer)",
    "CREATE TABLE u (a integer, x integer)",
    "CREATE TABLE w (a integer, x integer)",
    "CREATE TABLE empty (k integer)",
    "CREATE TABLE rows (k integer)",
    "INSERT INTO o VALUES (1, 0), (2, 3), (3, NULL)",
    "INSERT INTO u VALUES (0, 0), (3, 2), (4, 0)",
    "INSERT INTO w VALUES (0, 0), (3, 1), (5, 0)",
    "INSERT INTO rows VALUES (1)",
)
#: Subqueries without arguments, each of which fails.
CLOSED = (
    "(SELECT sum(6 / u.x) FROM u JOIN w ON u.a = w.a)",
    "(SELECT count(*) FROM u JOIN w ON u.a = w.a AND 6 / u.x > 0)",
    "(SELECT count(*) FROM u LEFT JOIN w ON u.a = w.a AND 6 / w.x > 0)",
    "(SELECT sum(6 / u.x) FROM u LEFT JOIN w ON u.a = w.a)",
    "(SELECT sum(6 / w.x) FROM u FULL JOIN w ON u.a = w.a)",
    "(SELECT max(s) FROM (SELECT sum(6 / x) AS s FROM u GROUP BY a) g)",
    "(SELECT count(*) FROM (SELECT a FROM u GROUP BY a HAVING 6 / min(x) > 0) g)",
    "(WITH c AS MATERIALIZED (SELECT 6 / x AS q FROM u) SELECT max(a.q) FROM c a, c b)",
    "(SELECT 6 / u.x FROM u, w WHERE u.a = w.a AND u.a = 0)",
    "(SELECT sum((SELECT max(6 / w.x) FROM w WHERE w.a = u.a)) FROM u)",
    "(SELECT count(*) FROM u WHERE x > (SELECT 1 / min(x) FROM w))",
    "(SELECT max(q) FROM (SELECT 6 / x AS q FROM u UNION ALL SELECT x FROM w) g)",
    "(SELECT max(q) FROM (SELECT 6 / x AS q FROM u UNION SELECT x FROM w) g)",
    "(SELECT max(q) FROM (SELECT sum(6 / x) OVER (ORDER BY a) AS q FROM u) g)",
    "(SELECT 6 / x FROM u ORDER BY a LIMIT 1)",
    "(SELECT count(DISTINCT 6 / x) FROM u)",
    "(EXISTS (SELECT 1 FROM u, w WHERE 6 / u.x > w.x))::int",
    "(5 IN (SELECT 6 / u.x FROM u, w))::int",
)
#: Who asks for their values: nobody, but for the last two.
ASKING = (
    "SELECT {} AS v FROM empty",
    "SELECT k FROM empty WHERE k > {}",
    "SELECT k FROM rows WHERE k > 1 AND k < {}",
    "SELECT k FROM rows WHERE k = 1 OR k < {}",
    "SELECT k FROM rows WHERE CASE WHEN k > 1 THEN {} = 1 ELSE true END",
    "SELECT CASE WHEN k > 1 THEN {} END AS v FROM rows",
    "SELECT coalesce(k, {}) AS v FROM rows",
    "SELECT k FROM (SELECT k, {} AS v FROM rows) s",
    "SELECT k FROM empty GROUP BY k HAVING count(*) > {}",
    "SELECT rows.k FROM rows LEFT JOIN empty ON rows.k = empty.k AND empty.k < {}",
    "SELECT {} AS v FROM rows",
    "SELECT k FROM rows WHERE k < {}",
)
#: Subqueries that fail for the row of `o` with a = 0.
TIED = (
    "(SELECT count(*) FROM u LEFT JOIN w ON u.a = w.a AND 6 / w.x > 0 WHERE u.a = o.a)",
    "(SELECT sum(6 / w.x) FROM u LEFT JOIN w ON u.a = w.a WHERE u.a = o.a)",
    "(SELECT sum(6 / w.x) FROM u LEFT JOIN w ON w.a = o.a WHERE u.a = o.a)",
    "(SELECT count(*) FROM u LEFT JOIN w ON w.a = o.a AND 6 / w.x > 0 WHERE u.a = o.a)",
    "(SELECT count(*) FROM u LEFT JOIN (SELECT a, 6 / x AS q FROM w) w ON w.a = u.a AND q > 0 WHERE u.a = o.a)",
    "(SELECT count(*) FROM u RIGHT JOIN w ON u.a = w.a AND 6 / u.x > 0 WHERE w.a = o.a)",
    "(SELECT count(*) FROM u JOIN w ON u.a = w.a AND 6 / w.x > 0 WHERE u.a = o.a)",
    "(SELECT max(q) FROM (SELECT a, 6 / x AS q FROM u) s WHERE s.a = o.a)",
    "(SELECT max(q) FROM (SELECT a, sum(6 / x) AS q FROM u GROUP BY a) s WHERE s.a = o.a)",
    "(SELECT max(q) FROM (SELECT a, 6 / x AS q FROM u UNION ALL SELECT a, 6 / x FROM w) s WHERE s.a = o.a)",
    "(SELECT max(q) FROM u LEFT JOIN LATERAL (SELECT 6 / w.x AS q FROM w WHERE w.a = u.a) s ON true WHERE u.a = o.a)",
    "(SELECT max((SELECT 6 / x FROM w WHERE w.a = u.a)) FROM u WHERE u.a = o.a)",
)
#: Who asks for theirs: not the row with a = 0, but for the last.
ASKING_TIED = (
    "SELECT k, CASE WHEN a > 0 THEN {} END AS v FROM o",
    "SELECT k, coalesce(k, {}) AS v FROM o",
    "SELECT k FROM o WHERE a > 0 AND {} > 0",
    "SELECT k FROM o WHERE CASE WHEN a > 0 THEN {} > 0 END",
    "SELECT k, {} AS v FROM o WHERE a > 0",
    "SELECT k FROM (SELECT k, {} AS v FROM o) s",
    "SELECT k, {} AS v FROM o",
)
#: Conditions that fail for the row of `o` with a = 0, and are true for that with a = 3.
TIED_CONDITIONS = (
    "a IN (SELECT u.a FROM u LEFT JOIN w ON u.a = w.a WHERE 6 / w.x > 0 AND u.a = o.a)",
    "EXISTS (SELECT 1 FROM u WHERE u.a = o.a AND 6 / u.x > 0)",
    "NOT EXISTS (SELECT 1 FROM u WHERE u.a = o.a AND 6 / u.x > 100)",
    "EXISTS (SELECT 1 FROM u WHERE u.a = o.a) AND EXISTS (SELECT 1 FROM w WHERE w.a = o.a AND 6 / w.x > 1)",
)
#: Conditions that fail for each row of `o` that they are asked for.
CLOSED_CONDITIONS = (
    "a IN (SELECT 6 / x FROM u)",
    "(a, k) IN (SELECT 6 / x, a FROM u)",
    "a > ANY (SELECT 6 / x FROM u)",
    "EXISTS (SELECT 1 FROM u GROUP BY a HAVING 6 / min(x) > 0)",
    "NOT EXISTS (SELECT 1 FROM u WHERE 6 / x > 100)",
    "EXISTS (SELECT 1 FROM u, (SELECT 6 / min(x) AS q FROM w) s WHERE u.a = o.a AND q > 0)",
)
QUERIES = [
    *(asking.format(one) for one in CLOSED for asking in ASKING),
    *(asking.format(one) for one in TIED for asking in ASKING_TIED),
]


def answer(connection: psycopg.Connection[tuple[object, ...]], query: str) -> list[str] | None:
    """Returns PostgreSQL's rows, sorted; None where it divides by zero."""
    try:
        return sorted(map(repr, connection.execute(query).fetchall()))
    except psycopg.errors.DivisionByZero:
        return None


def compare(connection: Connection, postgres: Postgres, queries: Sequence[str], *, maintained: bool) -> None:
    failing = 0
    with postgres.new_database().connect() as referee:
        for statement in TABLES:
            connection.execute(statement)
            referee.execute(statement)
        for query in queries:
            expected = answer(referee, query)
            asked = query
            if maintained:
                connection.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
                asked = "SELECT * FROM v"
            if expected is None:
                failing += 1
                with pytest.raises(DataError, match="division by zero"):
                    connection.execute(asked)
            else:
                assert sorted(map(repr, connection.execute(asked).fetchall())) == expected, query
            if maintained:
                connection.execute("UPDATE u SET x = 1 WHERE x = 0")
                connection.execute("UPDATE w SET x = 1 WHERE x = 0")
                connection.execute(asked)
                connection.execute("UPDATE u SET x = 0 WHERE a IN (0, 4)")
                connection.execute("UPDATE w SET x = 0 WHERE a IN (0, 5)")
                if expected is not None:
                    assert sorted(map(repr, connection.execute(asked).fetchall())) == expected, query
                connection.execute("DROP MATERIALIZED VIEW v")
    assert 0 < failing < len(queries) / 3


@pytest.mark.deep
def test_errors_are_those_of_the_rows_that_ask(
    sparkless: Connection, set_budget: SetBudget, postgres: Postgres
) -> None:
    set_budget(Budget.here_alone())
    compare(sparkless, postgres, QUERIES[::13], maintained=False)


def test_errors_are_those_of_the_rows_that_ask_at_every_time(
    sparkless: Connection, set_budget: SetBudget, postgres: Postgres
) -> None:
    set_budget(Budget.here_alone())
    compare(sparkless, postgres, QUERIES[1::41], maintained=True)


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("maintained", [False, True])
def test_all_errors_are_those_of_the_rows_that_ask(
    sparkless: Connection, set_budget: SetBudget, postgres: Postgres, maintained: bool
) -> None:
    set_budget(Budget.here_alone())
    compare(sparkless, postgres, QUERIES, maintained=maintained)


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_errors_are_those_of_the_rows_that_ask_by_spark(
    connection: Connection, set_budget: SetBudget, postgres: Postgres
) -> None:
    set_budget(Budget.spark_alone())
    compare(connection, postgres, QUERIES[::7], maintained=True)


def conditions_of_rows_that_ask(connection: Connection, every: int = 1) -> None:
    """Asks for what PostgreSQL may evaluate for other rows, too, and then fails: that depends on its plan."""
    for statement in TABLES:
        connection.execute(statement)
    asked = {
        **{one: ("a > 0", [(2,)], "k < 3", [(1,), (2,)]) for one in TIED_CONDITIONS},
        **{one: ("k > 3", [], "k < 3", None) for one in CLOSED_CONDITIONS},
    }
    for condition, (others, rows, failing, mended) in [*asked.items()][::every]:
        passing, wrong = (f"SELECT k FROM o WHERE {one} AND {condition}" for one in (others, failing))
        connection.execute(f"CREATE MATERIALIZED VIEW passing AS {passing}")
        connection.execute(f"CREATE MATERIALIZED VIEW wrong AS {wrong}")
        for query in (passing, "SELECT * FROM passing"):
            assert connection.execute(query).fetchall() == rows, condition
        for query in (wrong, "SELECT * FROM wrong"):
            with pytest.raises(DataError, match="division by zero"):
                connection.execute(query)
        connection.execute("UPDATE u SET x = 1 WHERE x = 0")
        connection.execute("UPDATE w SET x = 1 WHERE x = 0")
        found = sorted(connection.execute("SELECT * FROM wrong").fetchall())
        assert found == sorted(connection.execute(wrong).fetchall()) == (found if mended is None else mended)
        connection.execute("UPDATE u SET x = 0 WHERE a IN (0, 4)")
        connection.execute("UPDATE w SET x = 0 WHERE a IN (0, 5)")
        assert connection.execute("SELECT * FROM passing").fetchall() == rows, condition
        connection.execute("DROP MATERIALIZED VIEW passing, wrong")
    unread = "k + 2 IN (SELECT a FROM (SELECT a, 6 / x AS q FROM u) s) AND EXISTS (SELECT 6 / x FROM u)"
    assert connection.execute(f"SELECT k FROM rows WHERE {unread}").fetchall() == [(1,)]


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.deep)])
def test_a_condition_fails_for_the_rows_that_it_is_asked_for(
    sparkless: Connection, set_budget: SetBudget, every: int
) -> None:
    set_budget(Budget.here_alone())
    conditions_of_rows_that_ask(sparkless, every)


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_a_condition_fails_for_the_rows_that_it_is_asked_for_by_spark(
    connection: Connection, set_budget: SetBudget
) -> None:
    set_budget(Budget.spark_alone())
    conditions_of_rows_that_ask(connection)


def test_what_fails_below_an_aggregate_is_told_by_the_state_of_that(sparkless: Connection) -> None:
    """Nothing is kept of the join for the sake of its errors: the aggregate's state, the least error, the answer."""
    for statement in TABLES:
        sparkless.execute(statement)
    sparkless.execute(f"CREATE MATERIALIZED VIEW v AS SELECT k, {CLOSED[0]} AS v FROM rows")
    plan = sparkless.engine.definitions.definition(sparkless.engine.collection_of("v")).plan
    assert plan is not None
    tables = {sparkless.engine.collection_of(name) for name in ("u", "w")}
    reading = [one.plan for one in plan.arrangements if collections_read(one.plan) & tables]
    assert [type(one) for one in reading] == [Accumulate]
    assert len(plan.arrangements) == 3
