"""What a statement costs that says one thing many times: it is linear in how often.

Cost is counted in calls of functions, which is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mz_dagster.adapter import Connection
from tests.growth import calls, exponent


def _joined(kind: str, n: int, shown: str = "x0.a") -> str:
    joins = " ".join(f"{kind} JOIN t x{i} ON x{i}.a = x0.a" for i in range(1, n + 1))
    return f"SELECT {shown} FROM t x0 {joins}"


def _in_a_chain(n: int) -> str:
    return "SELECT x0.a FROM t x0 " + " ".join(f"JOIN t x{i} ON x{i}.a = x{i - 1}.b" for i in range(1, n + 1))


def _in_order(n: int) -> str:
    return "SELECT x0.a FROM t x0 " + " ".join(f"LEFT JOIN t x{i} ON x{i}.a < x0.a" for i in range(1, n + 1))


def _lateral(n: int) -> str:
    one = "LEFT JOIN LATERAL (SELECT b FROM t y WHERE y.a = x0.a + {0} ORDER BY b LIMIT 1) x{0} ON true"
    return "SELECT x0.a FROM t x0 " + " ".join(one.format(i) for i in range(1, n + 1))


def _using(n: int) -> str:
    return "SELECT a FROM t x0 " + " ".join(f"JOIN t x{i} USING (a)" for i in range(1, n + 1))


def _natural(kind: str, n: int) -> str:
    return "SELECT * FROM t x0 " + " ".join(f"NATURAL {kind} JOIN t x{i}" for i in range(1, n + 1))


#: By what there are many of: a query with so many.
FORMS: dict[str, Callable[[int], str]] = {
    "joins in a star": partial(_joined, "INNER"),
    "joins in a chain": _in_a_chain,
    "joins by names": _using,
    "joins by all names": partial(_natural, "INNER"),
    "left joins by all names": partial(_natural, "LEFT"),
    "left joins": partial(_joined, "LEFT"),
    "left joins, every column": partial(_joined, "LEFT", shown="*"),
    "left joins by an order": _in_order,
    "lateral left joins": _lateral,
    "full joins": partial(_joined, "FULL"),
    "distinct aggregates": lambda n: f"SELECT {', '.join(f'count(DISTINCT a + {i})' for i in range(n))} FROM t",
}


#: What others are made of, too.
DEEP = (
    "left joins",
    "lateral left joins",
    "joins in a star",
    "joins in a chain",
    "joins by names",
    "left joins by all names",
    "left joins, every column",
    "left joins by an order",
)


@pytest.mark.parametrize("form", [pytest.param(one, marks=pytest.mark.deep if one in DEEP else ()) for one in FORMS])
def test_a_statement_costs_as_many_times_as_it_says_something(sparkless: Connection, form: str) -> None:
    assert exponent(_cost(sparkless, FORMS[form]), (5, 10, 20), times=1) <= 1.1


def test_a_script_costs_as_many_times_as_it_has_statements(sparkless: Connection) -> None:
    def cost(n: int) -> float:
        script = "".join(f"SELECT {i}, '{'words ' * 20}';\n" for i in range(n))
        return calls(lambda: sparkless.execute(script))

    assert exponent(cost, (40, 80, 160), times=1) < 1.2


@pytest.mark.deep
def test_every_column_of_full_joins_costs_by_joins_and_columns(sparkless: Connection) -> None:
    """Each join on the way has the columns of all before it, which are asked for, and may be NULL in its rows alone.

    So what a statement says is the columns of all its joins together: their number, times the columns of its result.
    """
    cost = _cost(sparkless, partial(_joined, "FULL", shown="*"))
    joins = {n * 3 * (n + 1): n for n in (5, 10, 20)}
    assert exponent(lambda size: cost(joins[size]), (*joins,), times=1) <= 1.0


def _cost(connection: Connection, query: Callable[[int], str]) -> Callable[[int], float]:
    """Returns what tells the cost of a query with many of something, in a new database."""
    connection.execute("CREATE TABLE t (a integer, b integer, s text)")
    connection.execute("INSERT INTO t VALUES (1, 2, 'x'), (2, 3, 'y')")
    for n in (2, 3, 2, 3, 2):  # what a process does once, in its first statements, is done
        connection.execute(query(n)).fetchall()
    return lambda n: calls(lambda: connection.execute(query(n)).fetchall())


def _listed(n: int) -> str:
    return ", ".join(map(str, range(n)))


def _rows(n: int) -> str:
    return ", ".join(f"({i})" for i in range(n))


#: What a list of constants behind IN may be written as, too, and what is looked for in it.
LISTS: dict[str, Callable[[int], str]] = {
    "NOT IN": lambda n: f"a NOT IN ({_listed(n)})",
    "= ANY(ARRAY)": lambda n: f"a = ANY(ARRAY[{_listed(n)}])",
    "<> ALL(ARRAY)": lambda n: f"a <> ALL(ARRAY[{_listed(n)}])",
    "= ANY(ARRAY) of another type": lambda n: f"a = ANY(ARRAY[{_listed(n)}]::bigint[])",
    "= ANY(ARRAY), a bigint": lambda n: f"a::bigint = ANY(ARRAY[{_listed(n)}])",
    "= ANY(ARRAY) of texts": lambda n: "s = ANY(ARRAY['" + _listed(n).replace(", ", "', '") + "'])",
    "IN (VALUES)": lambda n: f"a IN (VALUES {_rows(n)})",
    "NOT IN (VALUES)": lambda n: f"a NOT IN (VALUES {_rows(n)})",
    "= ANY (VALUES)": lambda n: f"a = ANY (VALUES {_rows(n)})",
    "<> ALL (VALUES)": lambda n: f"a <> ALL (VALUES {_rows(n)})",
}


@pytest.mark.parametrize("form", LISTS)
def test_a_list_of_constants_costs_at_most_twice_what_it_does_behind_in(sparkless: Connection, form: str) -> None:
    sparkless.execute("CREATE TABLE t (a integer, s text)")
    sparkless.execute("INSERT INTO t VALUES (1, '2')")

    def more(test: Callable[[int], str]) -> int:
        """Returns what 400 constants more cost, of statements that are new, in a process that had such before."""

        def asked(n: int) -> None:
            sparkless.execute(f"SELECT a FROM t WHERE {test(n)}").fetchall()

        asked(99)
        return -calls(lambda: asked(100)) + calls(lambda: asked(500))

    assert more(LISTS[form]) <= 2 * more(lambda n: f"a IN ({_listed(n)})")


def test_what_is_counted_apart_is_computed_apart(sparkless: Connection) -> None:
    """Each of many aggregates of distinct values evaluates its own, and not those of the others."""
    sparkless.execute("CREATE TABLE t (a integer)")
    shown = sparkless.execute("EXPLAIN SELECT count(DISTINCT a + 1), count(DISTINCT a + 2) FROM t").fetchall()
    physical = [row[0] for row in shown if "map #" in row[0]]
    assert [sum(f"+ {n})" in one for one in physical) for n in (1, 2)] == [1, 1]
