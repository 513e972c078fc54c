"""What fails in a subquery, and several rows of it, are errors where it is asked for, and nowhere else; they heal."""

from __future__ import annotations

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget
from mz_dagster.compute.snapshot.peek import CollectionHasErrors
from tests.budgets import SetBudget

VALUE = "(SELECT q FROM two WHERE q >= a)"


BUDGETS = pytest.mark.parametrize(
    "budget",
    [
        pytest.param(Budget.here_alone(), id="here"),
        pytest.param(Budget.spark_alone(), id="spark", marks=pytest.mark.deep),
    ],
)


@BUDGETS
def test_several_rows_are_an_error_where_their_value_is_asked_for_until_they_are_gone(
    connection: Connection, set_budget: SetBudget, budget: Budget
) -> None:
    set_budget(budget)
    connection.execute("CREATE TABLE two (q integer)")
    connection.execute("CREATE TABLE one (a integer)")
    connection.execute("INSERT INTO two VALUES (1), (2)")
    connection.execute("INSERT INTO one VALUES (1)")
    guarded = f"SELECT CASE WHEN (SELECT count(*) FROM two WHERE q >= a) = 1 THEN {VALUE} END AS x FROM one"
    connection.execute(f"CREATE MATERIALIZED VIEW guarded AS {guarded}")
    connection.execute(f"CREATE MATERIALIZED VIEW asking AS SELECT {VALUE} AS x FROM one")
    assert connection.execute("SELECT * FROM guarded").fetchall() == [(None,)]
    with pytest.raises(CollectionHasErrors, match="more than one row returned by a subquery"):
        connection.execute("SELECT * FROM asking")
    connection.execute("DELETE FROM two WHERE q = 2")
    assert connection.execute("SELECT * FROM guarded").fetchall() == [(1,)]
    assert connection.execute("SELECT * FROM asking").fetchall() == [(1,)]


@BUDGETS
def test_what_fails_in_a_subquery_is_an_error_where_it_is_asked_for_until_it_is_mended(
    connection: Connection, set_budget: SetBudget, budget: Budget
) -> None:
    set_budget(budget)
    connection.execute("CREATE TABLE o (k integer, a integer)")
    connection.execute("CREATE TABLE u (a integer, x integer)")
    connection.execute("INSERT INTO o VALUES (1, 0), (2, 3)")
    connection.execute("INSERT INTO u VALUES (0, 0), (3, 2)")
    value = "(SELECT 6 / x FROM u WHERE u.a = o.a)"
    connection.execute(f"CREATE MATERIALIZED VIEW guarded AS SELECT k, CASE WHEN a <> 0 THEN {value} END AS q FROM o")
    connection.execute(f"CREATE MATERIALIZED VIEW later AS SELECT k, coalesce(k, {value}) AS q FROM o")
    counted = "SELECT coalesce(k, (SELECT count(*) FROM u WHERE u.a = o.a AND 6 / x > 0)) FROM o"
    assert sorted(connection.execute(counted).fetchall()) == [(1,), (2,)]
    assert sorted(connection.execute("SELECT * FROM guarded").fetchall()) == [(1, None), (2, 3)]
    assert sorted(connection.execute("SELECT * FROM later").fetchall()) == [(1, 1), (2, 2)]
    connection.execute("UPDATE o SET k = NULL WHERE a = 0")
    for query in ("SELECT * FROM later", f"SELECT coalesce(k, {value}) FROM o"):
        with pytest.raises(CollectionHasErrors, match="division by zero"):
            connection.execute(query)
    connection.execute("UPDATE u SET x = 1 WHERE a = 0")
    assert {row[1] for row in connection.execute("SELECT * FROM later").fetchall()} == {2, 6}


#: What fails in an operator that groups, not in a scalar; `{w}` is what ties it to the row.
GROUPS = {
    "sum": "(SELECT sum(h) FROM u{w})",
    "distinct": "(SELECT sum(DISTINCT h + x) + count(*) FROM u{w})",
    "average": "(SELECT avg(h) FROM u{w})",
    "float": "(SELECT sum(f) FROM u{w})",
    "ntile": "(SELECT max(q) FROM (SELECT ntile(x) OVER (ORDER BY u.a, x) AS q FROM u{w}) s)",
    "nth": "(SELECT max(q) FROM (SELECT nth_value(u.a, x) OVER (ORDER BY u.a) AS q FROM u{w}) s)",
    "framed": "(SELECT max(q) FROM (SELECT sum(h) OVER (ORDER BY u.a) AS q FROM u{w}) s)",
    "grouped": "(SELECT max(s) FROM (SELECT sum(h) AS s FROM u{w} GROUP BY u.a) q)",
}


def test_what_fails_in_a_group_is_an_error_where_it_is_asked_for(sparkless: Connection, set_budget: SetBudget) -> None:
    set_budget(Budget.here_alone())
    asked_for_groups(sparkless, ["sum", "average"])


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_what_fails_in_a_group_is_an_error_where_it_is_asked_for_by_spark(
    connection: Connection, set_budget: SetBudget
) -> None:
    set_budget(Budget.spark_alone())
    asked_for_groups(connection, list(GROUPS))


def asked_for_groups(connection: Connection, names: list[str]) -> None:
    """Asks for some of `GROUPS` where they do not fail, and where they do."""
    connection.execute("CREATE TABLE o (k integer, a integer)")
    connection.execute("CREATE TABLE u (a integer, x integer, h numeric(38,0), f float8)")
    connection.execute("INSERT INTO o VALUES (1, 0), (2, 3)")
    large = f"{'9' * 38}, '1e308'"
    connection.execute(f"INSERT INTO u VALUES (0, 0, {large}), (0, 0, {large}), (0, -1, {large}), (3, 2, 5, '2')")
    items = [
        f"CASE WHEN a > 0 THEN {GROUPS[name].format(w=' WHERE u.a = o.a')} END IS NULL AS {name}" for name in names
    ]
    guarded = f"SELECT k, {', '.join(items)} FROM o"
    # The second value of a group of one row is NULL.
    asked = [name == "nth" for name in names]
    expected = [(1, *[True] * len(names)), (2, *asked)]
    connection.execute(f"CREATE MATERIALIZED VIEW guarded AS {guarded}")
    for query in (guarded, "SELECT * FROM guarded"):
        assert sorted(connection.execute(query).fetchall()) == expected
    fails = r"out of range|overflow|must be greater than zero"
    for name in names:
        with pytest.raises(CollectionHasErrors, match=fails):
            connection.execute(f"SELECT CASE WHEN a = 0 THEN {GROUPS[name].format(w=' WHERE u.a = o.a')} END FROM o")
    closed = {name: GROUPS[name].format(w="") for name in names}
    asked_by_nobody(connection, list(closed.values()), maintained=True)
    for value in closed.values():
        with pytest.raises(CollectionHasErrors, match=fails):
            connection.execute(f"SELECT CASE WHEN a = 0 THEN {value} END FROM o")


def asked_by_nobody(connection: Connection, values: list[str], *, maintained: bool) -> None:
    """Asks for closed subqueries that fail where no row does."""
    connection.execute("CREATE TABLE IF NOT EXISTS empty (k integer)")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (k integer)")
    connection.execute("INSERT INTO rows VALUES (1)")
    queries = (
        (f"SELECT k, {', '.join(f'CASE WHEN k > 1 THEN {one} END' for one in values)} FROM rows", len(values)),
        (
            f"SELECT k, {', '.join(f'CASE WHEN k > 1 AND {one} > 0 THEN k END' for one in values)} FROM rows",
            len(values),
        ),
        (f"SELECT coalesce(k, {', '.join(values)}) FROM rows", 0),
        (f"SELECT k FROM (SELECT k, {', '.join(f'{one} AS v{n}' for n, one in enumerate(values))} FROM rows) s", 0),
        (f"SELECT {', '.join(values)} FROM empty", None),
    )
    for number, (query, nulls) in enumerate(queries):
        expected = [] if nulls is None else [(1, *[None] * nulls)]
        assert connection.execute(query).fetchall() == expected, query
        if maintained:
            names = ", ".join(f"c{n}" for n in range(len(values) if nulls is None else 1 + nulls))
            connection.execute(f"CREATE MATERIALIZED VIEW nobody{number} ({names}) AS {query}")
            assert connection.execute(f"SELECT * FROM nobody{number}").fetchall() == expected, query


def test_a_closed_subquery_fails_where_it_is_asked_for_until_it_is_mended(
    sparkless: Connection, set_budget: SetBudget
) -> None:
    set_budget(Budget.here_alone())
    closed_subqueries(sparkless, maintained=False)


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_a_closed_subquery_fails_where_it_is_asked_for_by_spark(connection: Connection, set_budget: SetBudget) -> None:
    set_budget(Budget.spark_alone())
    closed_subqueries(connection, maintained=True)


def closed_subqueries(connection: Connection, *, maintained: bool) -> None:
    """Asks for subqueries that fail below, in and above an aggregate, or without one, where rows ask and do not."""
    connection.execute("CREATE TABLE u (x integer)")
    connection.execute("INSERT INTO u VALUES (0), (2)")
    values = [
        "(SELECT sum(6 / x) FROM u)",
        "(SELECT 6 / min(x) FROM u)",
        "(SELECT 6 / x FROM u WHERE x < 2)",
        "(SELECT 6 / min(x) FROM u HAVING count(*) > 0)",
        "(SELECT count(*) FROM u WHERE 6 / x > 0)",
    ]
    asked_by_nobody(connection, values, maintained=maintained)
    queries = [f"SELECT k, {value} AS v FROM rows" for value in values]
    if maintained:
        for number, query in enumerate(queries):
            connection.execute(f"CREATE MATERIALIZED VIEW asking{number} AS {query}")
        queries += [f"SELECT * FROM asking{number}" for number in range(len(values))]
    for query in queries:
        with pytest.raises(CollectionHasErrors, match="division by zero"):
            connection.execute(query)
    connection.execute("UPDATE u SET x = 1 WHERE x = 0")
    for query, value in zip(queries, [9, 6, 6, 6, 2] * 2, strict=False):
        assert connection.execute(query).fetchall() == [(1, value)]


def test_a_bound_of_time_that_fails_is_an_error_where_it_is_asked_for(connection: Connection) -> None:
    connection.execute("CREATE TABLE o (k integer, a integer)")
    connection.execute("CREATE TABLE u (a integer, x integer)")
    connection.execute("INSERT INTO o VALUES (1, 0), (2, 3)")
    connection.execute("INSERT INTO u VALUES (0, 0), (3, 2)")
    past = "(SELECT count(*) FROM u WHERE u.a = o.a AND mz_now() > (6 / x)::text::mz_timestamp)"
    guarded = f"SELECT k, CASE WHEN a > 0 THEN {past} END FROM o"
    connection.execute(f"CREATE MATERIALIZED VIEW guarded AS {guarded}")
    connection.execute(f"CREATE MATERIALIZED VIEW asking AS SELECT k, {past} FROM o")
    for query in (guarded, "SELECT * FROM guarded"):
        assert sorted(connection.execute(query).fetchall()) == [(1, None), (2, 1)]
    with pytest.raises(CollectionHasErrors, match="division by zero"):
        connection.execute("SELECT * FROM asking")
