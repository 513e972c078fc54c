"""Joins and subqueries as the binder leaves them: shapes of plans, errors of text as PostgreSQL has them, of data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mz_dagster.errors import Error
from mz_dagster.plan import explain_logical, optimize
from mz_dagster.plan.dependence import is_dependent
from mz_dagster.plan.relation import DependentJoin, Relation, inputs_of
from mz_dagster.plan.rewriting import scalars_of
from mz_dagster.scalars.scalar import OuterColumn, Subquery, walk
from mz_dagster.sql import BoundQuery
from tests.plan.reference import Rows
from tests.sql.evaluation import Failed, rows_of
from tests.sql.join_queries import queries
from tests.sql.test_joins_against_postgres import bound

SHAPES = {
    "SELECT n FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.k = t.a AND v.c = 'x')": """
Project #3{n}
  Project #0{a}, #1{b}, #2{c}, #3{n}
    Join #0{a} = #4{k}
      Get t (u_t)
      Distinct by #0{k}
        Project #0{k}
          Filter (#2{c} = 'x')
            Get v (u_v)""",
    "SELECT n FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.k = t.a)": """
Project #3{n}
  Union
    Get t (u_t)
    Negate
      Project #0{a}, #1{b}, #2{c}, #3{n}
        Join #0{a} = #4{k}
          Get t (u_t)
          Distinct by #0{k}
            Project #0{k}
              Get v (u_v)""",
    "SELECT n FROM t WHERE a IN (SELECT u.a FROM u)": """
Project #3{n}
  Project #0{a}, #1{b}, #2{c}, #3{n}
    Join #0{a} = #4{a}
      Get t (u_t)
      Distinct by #0{a}
        Project #0{a}
          Project #0{a}
            Get u (u_u)""",
    "SELECT n FROM t WHERE n NOT IN (SELECT k FROM v)": """
Project #3{n}
  Union
    Get t (u_t)
    Negate
      Project #0{a}, #1{b}, #2{c}, #3{n}
        Join #3{n} = #4{k}
          Get t (u_t)
          Distinct by #0{k}
            Project #0{k}
              Project #0{k}
                Get v (u_v)""",
    "SELECT t.n, w.x FROM t, LATERAL (SELECT u.x FROM u WHERE u.a < t.a ORDER BY u.x LIMIT 1) w": """
Let let:1
  Distinct by #0{a}
    Project #0{a}
      Get t (u_t)
  Project #3{n}, #6{x}
    Project #0{a}, #1{b}, #2{c}, #3{n}, #5{x}
      Join #0{a} is not distinct from #4{a}
        Get t (u_t)
        TopK order by #1{x} limit 1 by #0{a}
          Project #0{a}, #2{x}
            Filter (#1{a} < #0{a})
              Join cross
                Get let:1
                Get u (u_u)""",
    "SELECT t.n, v.k FROM t LEFT JOIN v ON t.a = v.k AND v.c = 'x'": """
Project #3{n}, #4{k}
  Let let:1
    Get t (u_t)
    Let let:2
      Get v (u_v)
      Union
        Filter (#0{a} = #4{k}) and (#6{c} = 'x')
          Join cross
            Get let:1
            Get let:2
        Map k := null::integer, a := null::bigint, c := null::text
          Union
            Get let:1
            Negate
              Project #0{a}, #1{b}, #2{c}, #3{n}
                Join #0{a} = #4{k}
                  Get let:1
                  Distinct by #0{k}
                    Project #0{k}
                      Filter (#2{c} = 'x')
                        Get let:2""",
}


def plan_of(query: str) -> BoundQuery:
    found = bound(query)
    assert isinstance(found, BoundQuery), found
    return found


@pytest.mark.parametrize("query", SHAPES)
def test_what_is_tied_by_equalities_needs_no_domain_and_what_is_not_is_grouped_by_it(query: str) -> None:
    shown = explain_logical(plan_of(query).relation)
    assert _bare(shown) == _bare(SHAPES[query]), shown


def _bare(text: str) -> list[str]:
    """Returns the operators in order, without projections, which say nothing here."""
    return [line.strip() for line in text.strip().splitlines() if not line.strip().startswith("Project")]


def _nodes(relation: Relation) -> list[Relation]:
    return [relation, *(node for one in inputs_of(relation) for node in _nodes(one))]


def test_no_plan_keeps_what_only_the_binder_knows() -> None:
    for query, _ in queries(1, 60):
        relation = plan_of(query).relation
        assert not is_dependent(relation), query
        for node in _nodes(relation):
            assert not isinstance(node, DependentJoin), query
            for scalar in scalars_of(node):
                assert not any(isinstance(one, Subquery | OuterColumn) for one in walk(scalar)), query


def test_nested_outer_joins_and_subqueries_grow_by_their_number() -> None:
    def size(count: int) -> int:
        joins = " ".join(f"LEFT JOIN u u{i} ON u{i}.a = t.a AND u{i}.x < t.b" for i in range(count))
        tests = " AND ".join(f"NOT EXISTS (SELECT 1 FROM v WHERE v.k = u{i}.x)" for i in range(count))
        return len(
            _nodes(plan_of(f"SELECT t.a, (SELECT max(x) FROM u WHERE u.a = t.b) FROM t {joins} WHERE {tests}").relation)
        )

    assert size(6) - size(4) <= 2 * (size(3) - size(2)) + 10


ERRORS = [
    ("SELECT (SELECT a, b FROM t)", 8, "42601", "subquery must return only one column"),
    ("SELECT a FROM t WHERE a IN (SELECT a, x FROM u)", 25, "42601", "subquery has too many columns"),
    ("SELECT a FROM t WHERE a NOT IN (SELECT a, x FROM u)", 25, "42601", "subquery has too many columns"),
    ("SELECT a FROM t WHERE (a, b) IN (SELECT a FROM u)", 30, "42601", "subquery has too few columns"),
    ("SELECT a FROM t WHERE a IN (SELECT c FROM u)", 25, "42883", "operator does not exist: integer = text"),
    ("SELECT a FROM t WHERE a < ALL (SELECT c FROM u)", 25, "42883", "operator does not exist: integer < text"),
    ("SELECT a FROM t WHERE 'q' IN (SELECT a FROM u)", 23, "22P02", 'invalid input syntax for type integer: "q"'),
    ("SELECT a FROM t WHERE EXISTS (SELECT nope FROM u)", 38, "42703", 'column "nope" does not exist'),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE w.a = t.a)", 53, "42P01",
     'missing FROM-clause entry for table "w"'),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u, v WHERE a = 1)", 56, "42702", 'column reference "a" is ambiguous'),
    ("SELECT t.a FROM t, u WHERE EXISTS (SELECT 1 FROM z WHERE c = 'x')", 58, "42702",
     'column reference "c" is ambiguous'),
    ("SELECT * FROM t, (SELECT t.a) x", 26, "42P01", 'invalid reference to FROM-clause entry for table "t"'),
    ("SELECT * FROM t, (SELECT n) x", 26, "42703", 'column "n" does not exist'),
    ("SELECT * FROM t JOIN (SELECT u.x FROM u WHERE u.a = t.a) w ON true", 53, "42P01",
     'invalid reference to FROM-clause entry for table "t"'),
    ("SELECT * FROM t RIGHT JOIN LATERAL (SELECT u.x FROM u WHERE u.a = t.a) w ON true", 67, "42P10",
     'invalid reference to FROM-clause entry for table "t"'),
    ("SELECT * FROM t FULL JOIN LATERAL (SELECT u.x FROM u WHERE u.a = b) w ON true", 66, "42P10",
     'invalid reference to FROM-clause entry for table "t"'),
    ("SELECT * FROM t, u JOIN v ON v.k = t.a", 36, "42P01", 'invalid reference to FROM-clause entry for table "t"'),
    ("SELECT * FROM t LEFT JOIN u ON 1", 32, "42804",
     "argument of JOIN/ON must be type boolean, not type integer"),
    ("SELECT * FROM t LEFT JOIN u ON a = 1", 32, "42702", 'column reference "a" is ambiguous'),
    ("SELECT * FROM t LEFT JOIN u USING (a, a)", 39, "42701",
     'column name "a" appears more than once in USING clause'),
    ("SELECT * FROM t JOIN u ON true LEFT JOIN v USING (a)", 51, "42702",
     'common column name "a" appears more than once in left table'),
    ("SELECT * FROM v NATURAL JOIN (SELECT 'x' AS k) w", 30, "42804",
     "JOIN/USING types integer and text cannot be matched"),
    ("SELECT * FROM t LEFT JOIN t ON true", 27, "42712", 'table name "t" specified more than once'),
    ("SELECT (SELECT 'x') + 1", 21, "42883", "operator does not exist: text + integer"),
    ("SELECT * FROM t NATURAL JOIN u ON true", 17, "42601", "syntax error: NATURAL JOIN has no condition"),
    ("SELECT * FROM t LEFT JOIN u", 17, "42601", "syntax error: JOIN needs ON or USING"),
    ("SELECT a FROM t WHERE (SELECT sum(t.a)) > 1", 31, "42803", "aggregate functions are not allowed in WHERE"),
    ("SELECT s.* FROM t, LATERAL (SELECT sum(t.a)) AS s", 36, "42803",
     "aggregate functions are not allowed in FROM clause of their own query level"),
    ("SELECT max((SELECT sum(t.a))) FROM t", 20, "42803", "aggregate function calls cannot be nested"),
    ("SELECT a FROM t LIMIT t.a", 23, "42P10", "argument of LIMIT must not contain variables"),
    ("SELECT (SELECT c FROM u OFFSET u.a) FROM t", 32, "42P10", "argument of OFFSET must not contain variables"),
    ("SELECT a FROM t LIMIT true", 23, "42804", "argument of LIMIT must be type bigint, not type boolean"),
    # Refused, though PostgreSQL has it.
    ("SELECT c FROM t WHERE c LIKE ANY (SELECT c FROM u)", 30, "0A000",
     "this form of ANY or ALL is not supported"),
    ("SELECT * FROM t LEFT SEMI JOIN u ON true", 17, "0A000", "LEFT SEMI JOIN is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "position", "sqlstate", "message"), ERRORS)
def test_errors_have_postgres_position_code_and_message(query: str, position: int, sqlstate: str, message: str) -> None:
    found = bound(query)
    assert isinstance(found, Error)
    assert (getattr(found, "position", None), found.sqlstate, found.message) == (position, sqlstate, message)


def content(query: str, *, optimized: bool = False, **rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    collections: dict[str, Rows] = {f"u_{name}": Counter(rows.get(name, [])) for name in ("t", "u", "v", "z")}
    relation = plan_of(query).relation
    found = rows_of(optimize(relation) if optimized else relation, collections)
    return Counter({row: n for row, n in found.items() if n})


@pytest.mark.parametrize("optimized", [False, True])
def test_several_rows_of_a_scalar_subquery_are_an_error_of_the_data(optimized: bool) -> None:
    query = "SELECT n, (SELECT u.x FROM u WHERE u.a = t.a) FROM t"
    t = [(1, 0, "x", 7), (2, 0, "x", 8)]
    assert content(query, optimized=optimized, t=t, u=[(1, 5, "x")]) == {(7, 5): 1, (8, None): 1}
    with pytest.raises(Failed, match="21000"):
        content(query, optimized=optimized, t=t, u=[(1, 5, "x"), (1, 6, "x")])
    with pytest.raises(Failed, match="21000"):
        content(query, optimized=optimized, t=t, u=[(1, 5, "x"), (1, 5, "x")])
    # It is not asked for 3, whose two rows do not matter; gone, they do not matter to anybody.
    assert content(query, optimized=optimized, t=t, u=[(1, 5, "x"), (3, 5, "x"), (3, 5, "x")]) == {
        (7, 5): 1,
        (8, None): 1,
    }


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT w.n FROM (SELECT n, (SELECT u.x FROM u) AS s FROM t) w", {(7,): 2}),
        ("SELECT n, CASE WHEN (SELECT count(*) FROM u) = 1 THEN (SELECT x FROM u) END FROM t", {(7, None): 2}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT x FROM u WHERE u.a < t.b) ELSE -1 END FROM t", {(7, -1): 2}),
        ("SELECT coalesce(n, (SELECT x FROM u)) FROM t", {(7,): 2}),
        ("SELECT a = 1 OR (SELECT x FROM u) = 1, a = 2 AND (SELECT x FROM u) = 1 FROM t", {(True, False): 2}),
        ("SELECT n FROM t WHERE a = 1 OR (SELECT x FROM u WHERE u.a < t.b) = 1", {(7,): 2}),
        ("SELECT n FROM t WHERE a = 2 AND (SELECT x FROM u) = 1", {}),
        ("SELECT n FROM t WHERE a = 2 AND n = (SELECT x FROM u)", {}),
        ("SELECT n FROM t, v WHERE t.a = v.k AND n = (SELECT x FROM u WHERE u.a < t.b)", {}),
        ("SELECT (SELECT x FROM u), (SELECT x FROM u WHERE u.a < z.a) FROM z", {}),
        ("SELECT n, (SELECT (SELECT x FROM u) FROM u WHERE u.a > t.b) FROM t", {(7, None): 2}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT x FROM u) IN (SELECT x FROM u) END FROM t", {(7, None): 2}),
        ("SELECT n, CASE WHEN a > 1 THEN 1 / (a - 1) = ANY (SELECT x FROM u) END FROM t", {(7, None): 2}),
    ],
)
def test_several_rows_of_a_subquery_are_no_error_where_nobody_asks_for_its_value(
    query: str, rows: dict[tuple[Any, ...], int]
) -> None:
    t = [(1, 5, "x", 7)] * 2
    assert content(query, optimized=True, t=t, u=[(1, 5, "x"), (2, 5, "x")]) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT n, CASE WHEN b <> 0 THEN (SELECT 6 / b) END FROM t", {(7, None): 1, (8, 3): 1}),
        ("SELECT n, CASE WHEN b <> 0 THEN (SELECT 6 / b FROM v) END FROM t", {(7, None): 1, (8, 3): 1}),
        ("SELECT coalesce(n, (SELECT 6 / b FROM u)) FROM t", {(7,): 1, (8,): 1}),
        ("SELECT coalesce(n, (SELECT 6 / u.x FROM u WHERE u.a = t.a)) FROM t", {(7,): 1, (8,): 1}),
        ("SELECT coalesce(n, (SELECT 6 / x FROM u)) FROM t", {(7,): 1, (8,): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT 6 / u.x FROM u WHERE u.a = t.a) END FROM t",
         {(7, None): 1, (8, 1): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT sum(6 / u.x) FROM u WHERE u.a = t.a) END FROM t",
         {(7, None): 1, (8, 1): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT u.c FROM u WHERE u.a = t.a ORDER BY 6 / u.x LIMIT 1) END FROM t",
         {(7, None): 1, (8, "y"): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT count(*) FROM (SELECT DISTINCT 6 / u.x FROM u WHERE u.a = t.a) w) END"
         " FROM t", {(7, None): 1, (8, 1): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND 6 / u.x = 1) END FROM t",
         {(7, None): 1, (8, True): 1}),
        ("SELECT n, a > 1 AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND 6 / u.x = 1) FROM t",
         {(7, False): 1, (8, True): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN 1 IN (SELECT 6 / u.x FROM u WHERE u.a = t.a) END FROM t",
         {(7, None): 1, (8, True): 1}),
        ("SELECT n, a = 1 OR 1 <> ALL (SELECT 6 / u.x FROM u WHERE u.a = t.a) FROM t", {(7, True): 1, (8, False): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN b = ANY (SELECT u.x / (u.x - t.b) FROM u WHERE u.a = t.a) END FROM t",
         {(7, None): 1, (8, False): 1}),
        ("SELECT n FROM t WHERE a = 1 OR (SELECT 6 / u.x FROM u WHERE u.a = t.a) = 1", {(7,): 1, (8,): 1}),
        ("SELECT n, CASE WHEN a > 5 THEN (SELECT w.q FROM u JOIN LATERAL (SELECT 6 / u.x AS q) w ON true"
         " WHERE u.a = t.a) END FROM t", {(7, None): 1, (8, None): 1}),
        ("SELECT n, CASE WHEN a > 5 THEN (SELECT max(w.q) FROM u, LATERAL (SELECT 6 / u.x AS q FROM v LIMIT 2) w"
         " WHERE u.a = t.a) END FROM t", {(7, None): 1, (8, None): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT (SELECT 6 / u.x) FROM u WHERE u.a = t.a) END FROM t",
         {(7, None): 1, (8, 1): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT u.x FROM u WHERE u.a = t.a AND (SELECT 6 / u.x FROM v) = 1) END"
         " FROM t", {(7, None): 1, (8, 6): 1}),
        ("SELECT n, CASE WHEN a > 5 THEN (SELECT count(*) FROM u JOIN v ON v.k = 6 / u.x WHERE u.a = t.a) END FROM t",
         {(7, None): 1, (8, None): 1}),
        ("SELECT n, CASE WHEN a > 5 THEN (WITH w AS (SELECT 6 / x AS q FROM u) SELECT count(*) FROM w, w AS y"
         " WHERE w.q > t.a) END FROM t", {(7, None): 1, (8, None): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT sum(q) FROM (SELECT 6 / u.x AS q FROM u WHERE u.a = t.a"
         " UNION ALL SELECT t.b) w) END FROM t", {(7, None): 1, (8, 3): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT max(q) FROM (SELECT rank() OVER (ORDER BY 6 / u.x) AS q FROM u"
         " WHERE u.a = t.a) w) END FROM t", {(7, None): 1, (8, 1): 1}),
        ("SELECT n, CASE WHEN a > 1 THEN (SELECT CASE WHEN u.x > 0 THEN (SELECT 6 / u.x) ELSE (SELECT 6 / u.x) END"
         " FROM u WHERE u.a = t.a) END FROM t", {(7, None): 1, (8, 1): 1}),
    ],
)  # fmt: skip
def test_an_error_within_a_subquery_is_none_where_nobody_asks_for_its_value(
    query: str, rows: dict[tuple[Any, ...], int]
) -> None:
    t = [(1, 0, "x", 7), (2, 2, "x", 8)]
    u = [(1, 0, "x"), (2, 6, "y")]
    assert content(query, optimized=True, t=t, u=u, v=[(1, 1, "x")]) == rows
    asked = query.replace("a > 1", "a > 0").replace("b <> 0", "b <> 9").replace("a = 1 OR", "a = 9 OR")
    asked = asked.replace("coalesce(n,", "coalesce(NULL,").replace("a > 5", "a > 0")
    with pytest.raises(Failed, match="22012"):
        content(asked, optimized=True, t=t, u=u, v=[(1, 1, "x")])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE 6 / u.x = t.a)",
        "SELECT n FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE 6 / u.x = t.a)",
        "SELECT n FROM t WHERE a NOT IN (SELECT 6 / u.x FROM u)",
        "SELECT n, (SELECT sum(6 / u.x) FROM u WHERE u.a = t.a) FROM t",
        "SELECT t.n, w.q FROM t LEFT JOIN (SELECT u.a, 6 / u.x AS q FROM u) w ON w.a = t.a",
        "SELECT t.n, w.q FROM t, LATERAL (SELECT 6 / u.x AS q FROM u WHERE u.a = t.a LIMIT 1) w",
    ],
)
def test_an_error_of_a_row_within_is_an_error_of_the_whole(query: str) -> None:
    t = [(1, 0, "x", 7)]
    content(query, t=t, u=[(1, 2, "x")])
    with pytest.raises(Failed, match="22012"):
        content(query, t=t, u=[(1, 2, "x"), (1, 0, "x")])


def test_what_earlier_conjuncts_leave_out_is_not_asked_for() -> None:
    query = "SELECT n FROM t WHERE b > 0 AND (SELECT u.x FROM u WHERE u.a = t.a) = 5"
    u = [(1, 5, "x"), (2, 5, "x"), (2, 5, "x")]
    assert content(query, t=[(1, 1, "x", 7), (2, 0, "x", 8)], u=u) == {(7,): 1}
