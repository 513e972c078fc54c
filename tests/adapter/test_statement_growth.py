"""What a statement costs that says one thing many times: it is linear in how often, but for what the rows grow wider.

Cost is counted in calls of functions, which is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mz_dagster.adapter import Connection
from tests.growth import calls, exponent


def _joined(kind: str, n: int) -> str:
    return "SELECT x0.a FROM t x0 " + " ".join(f"{kind} JOIN t x{i} ON x{i}.a = x0.a" for i in range(1, n))


def _in_a_chain(n: int) -> str:
    return "SELECT x0.a FROM t x0 " + " ".join(f"JOIN t x{i} ON x{i}.a = x{i - 1}.b" for i in range(1, n))


def _in_order(n: int) -> str:
    return "SELECT x0.a FROM t x0 " + " ".join(f"LEFT JOIN t x{i} ON x{i}.a < x0.a" for i in range(1, n))


def _lateral(n: int) -> str:
    one = "LEFT JOIN LATERAL (SELECT b FROM t y WHERE y.a = x0.a + {0} ORDER BY b LIMIT 1) x{0} ON true"
    return "SELECT x0.a FROM t x0 " + " ".join(one.format(i) for i in range(1, n))


def _using(n: int) -> str:
    return "SELECT a FROM t x0 " + " ".join(f"JOIN t x{i} USING (a)" for i in range(1, n))


#: By what there are many of: a query with so many, and the most that the exponent of its cost may be.
FORMS: dict[str, tuple[Callable[[int], str], float]] = {
    "joins in a star": (partial(_joined, "INNER"), 1.1),
    "joins in a chain": (_in_a_chain, 1.1),
    "joins by names": (_using, 1.1),
    "left joins": (partial(_joined, "LEFT"), 1.1),
    "left joins by an order": (_in_order, 1.1),
    "lateral left joins": (_lateral, 1.1),
    # Until the first pass leaves out what is not read, each has a NULL for each column of all joins before it.
    "full joins": (partial(_joined, "FULL"), 1.13),
    "distinct aggregates": (
        lambda n: f"SELECT {', '.join(f'count(DISTINCT a + {i})' for i in range(n))} FROM t",
        1.1,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_statement_costs_as_many_times_as_it_says_something(sparkless: Connection, form: str) -> None:
    query, most = FORMS[form]
    sparkless.execute("CREATE TABLE t (a integer, b integer, s text)")
    sparkless.execute("INSERT INTO t VALUES (1, 2, 'x'), (2, 3, 'y')")
    for n in (2, 3, 2, 3, 2):  # what a process does once, in its first statements, is done
        sparkless.execute(query(n)).fetchall()

    def cost(n: int) -> float:
        return calls(lambda: sparkless.execute(query(n)).fetchall())

    assert exponent(cost, (5, 10, 20), times=1) <= most


def test_what_is_counted_apart_is_computed_apart(sparkless: Connection) -> None:
    """Each of many aggregates of distinct values evaluates its own, and not those of the others."""
    sparkless.execute("CREATE TABLE t (a integer)")
    shown = sparkless.execute("EXPLAIN SELECT count(DISTINCT a + 1), count(DISTINCT a + 2) FROM t").fetchall()
    physical = [row[0] for row in shown if "map #" in row[0]]
    assert [sum(f"+ {n})" in one for one in physical) for n in (1, 2)] == [1, 1]
