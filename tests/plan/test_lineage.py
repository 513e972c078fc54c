"""Column lineage of bound SQL: which columns of collections a value comes from, and which only choose its row."""

from __future__ import annotations

import pytest

from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import Get, RelationType, RepeatRow
from mz_dagster.plan.lineage import SourceColumn, column_lineage
from mz_dagster.plan.relation import DependentJoin
from mz_dagster.scalars.types import INT4, INT8, Column
from tests.plan.queries import QUERIES, TIMED, VIEWS
from tests.sql.project import Project, T, bind

CASES = {
    # Rows are chosen by other columns than those that are shown.
    "SELECT a AS x, b + d AS y, 1 AS z FROM t WHERE f AND e IS NOT NULL": "x: t.a; y: t.b, t.d; z:",
    "SELECT v.k, u.x FROM t JOIN v ON v.k = t.a JOIN u ON u.a = t.a": "k: v.k; x: u.x",
    "SELECT t.b FROM t WHERE t.b = 3": "b: t.b",
    "SELECT CASE WHEN b > 1 THEN 'x' ELSE c END AS y FROM t": "y: t.b, t.c",
    # Outer joins: the rows beside NULLs bring no column of the other side.
    "SELECT t.a, v.k, v.g FROM t LEFT JOIN v ON t.b = v.k": "a: t.a; k: v.k; g: v.g",
    "SELECT t.a, v.g FROM t FULL JOIN v ON t.b = v.k AND v.g > t.a": "a: t.a; g: v.g",
    "SELECT a, k FROM t FULL JOIN v USING (a)": "a: t.a, v.a; k: v.k",
    # Aggregates: their arguments, filters and orders, not what groups them.
    "SELECT b, count(*) AS n, sum(d) AS s, avg(a) AS m FROM t GROUP BY b": "b: t.b; n:; s: t.d; m: t.a",
    "SELECT count(*) FILTER (WHERE f) AS n, max(b) AS m FROM t HAVING min(a) > 1": "n: t.f; m: t.b",
    "SELECT string_agg(c, ',' ORDER BY e) AS l, var_samp(d) AS w FROM t": "l: t.c, t.e; w: t.d",
    "SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, e": "b: t.b; a: t.a",
    # Windows: arguments and filters; a rank is a place in the order.
    "SELECT lag(d) OVER w AS x, rank() OVER w AS r FROM t WINDOW w AS (PARTITION BY b ORDER BY c)": "x: t.d; r: t.c",
    "SELECT sum(b) FILTER (WHERE f) OVER (ORDER BY a) AS s FROM t": "s: t.b, t.f",
    # Rows of arrays: their elements, and not their numbers.
    "SELECT t.c, x, n FROM t, unnest(ARRAY[t.a, t.b]) WITH ORDINALITY AS l (x, n)": "c: t.c; x: t.a, t.b; n:",
    # Set operations: what is added brings values, what is taken away does not.
    "SELECT b FROM t UNION SELECT k FROM v UNION ALL VALUES (1)": "b: t.b, v.k",
    "SELECT b FROM t EXCEPT ALL SELECT k FROM v": "b: t.b",
    "SELECT b FROM t INTERSECT SELECT k FROM v": "b: t.b",
    # Subqueries and lateral joins, after decorrelation.
    "SELECT a, (SELECT max(g) FROM v WHERE v.a = t.b) AS m FROM t": "a: t.a; m: v.g",
    "SELECT (SELECT g + t.b FROM v WHERE v.k = t.a) AS m FROM t": "m: t.b, v.g",
    "SELECT a FROM t WHERE b IN (SELECT k FROM v) AND NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)": "a: t.a",
    "SELECT EXISTS (SELECT 1 FROM v WHERE v.k = t.b) OR f AS e FROM t": "e: t.f",
    "SELECT t.a, l.g FROM t, LATERAL (SELECT g FROM v WHERE v.a = t.b ORDER BY k LIMIT 1) l": "a: t.a; g: v.g",
    "SELECT l.g FROM t LEFT JOIN LATERAL (SELECT g + t.b AS g FROM v LIMIT 1) l ON true": "g: t.b, v.g",
    # Shared subplans, plain views, time.
    "WITH q AS (SELECT a, b FROM t) SELECT x.a, y.b FROM q x JOIN q y ON x.a = y.b": "a: t.a; b: t.b",
    "SELECT seen.n, v.k, seen.s FROM seen JOIN v ON v.a = seen.m": "n: t.b; k: v.k; s: u.x",
    "SELECT c FROM t WHERE mz_now() < t.a": "c: t.c",
    "SELECT g.x FROM (VALUES (1), (2)) AS g (x)": "x:",
}


def told(query: str) -> str:
    project = Project()
    for name, text in VIEWS.items():
        project.add_view(name, text)
    bound = bind(query, project=project)
    items = {item.id: item for item in project.items.values() if item.kind != "index"}
    lines = []
    for name, sources in zip(bound.relation_type.names, column_lineage(bound.relation), strict=False):
        columns = (f"{items[id].name}.{items[id].relation_type.names[position]}" for id, position in sources)
        lines.append(f"{name}: {', '.join(sorted(columns))}".rstrip())
    return "; ".join(lines)


@pytest.mark.parametrize("query", CASES)
def test_a_value_derives_from_what_computes_it(query: str) -> None:
    assert told(query) == CASES[query]


@pytest.mark.parametrize("query", [*QUERIES.values(), *TIMED.values()], ids=[*QUERIES, *TIMED])
def test_every_query_has_a_lineage_as_wide_as_its_rows_and_within_what_it_reads(query: str) -> None:
    project = Project()
    for name, text in VIEWS.items():
        project.add_view(name, text)
    relation = bind(query, project=project).relation
    lineage = column_lineage(relation)
    assert len(lineage) == relation.relation_type.arity
    arity = {item.id: item.relation_type.arity for item in project.items.values()}
    assert all(0 <= one.position < arity[one.collection] for sources in lineage for one in sources)


def test_a_repeated_rows_count_is_dropped() -> None:
    get = Get(GlobalId("t"), RelationType((Column("a", INT4), Column("n", INT8, False), Column("b", INT4))))
    assert column_lineage(RepeatRow(get, 1)) == (
        frozenset({SourceColumn(get.id, 0)}),
        frozenset({SourceColumn(get.id, 2)}),
    )


def test_a_dependent_join_is_no_bound_plan() -> None:
    get = Get(GlobalId("t"), T)
    with pytest.raises(InternalError, match="dependent join"):
        column_lineage(DependentJoin(get, get, ()))
