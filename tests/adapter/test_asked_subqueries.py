"""What fails in a subquery, and several rows of it, are errors where it is asked for, and nowhere else; they heal."""

from __future__ import annotations

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget
from mz_dagster.compute.snapshot.peek import CollectionHasErrors
from tests.budgets import SetBudget

VALUE = "(SELECT q FROM two WHERE q >= a)"


BUDGETS = pytest.mark.parametrize("budget", [Budget.here_alone(), Budget.spark_alone()], ids=["here", "spark"])


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
    for name in names:
        with pytest.raises(CollectionHasErrors, match=r"out of range|overflow|must be greater than zero"):
            connection.execute(f"SELECT CASE WHEN a = 0 THEN {GROUPS[name].format(w=' WHERE u.a = o.a')} END FROM o")


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
