"""Windows of which first rows are asked for: what is planned, for which conditions, and that nothing unread is kept."""

from __future__ import annotations

import pytest

from mz_dagster.plan import explain_logical, lower_to_maintained_plan, optimize
from mz_dagster.plan.physical import collections_read
from mz_dagster.plan.relation import Let, TopK
from mz_dagster.plan.rewriting import empty, nodes_of
from tests.sql.project import bind

NUMBERED = "(SELECT a, b, {} OVER (PARTITION BY b ORDER BY d) AS n FROM t) y"


def optimized(query: str) -> str:
    return explain_logical(optimize(bind(query).relation))


@pytest.mark.parametrize(
    ("function", "condition", "limit"),
    [
        ("row_number()", "n <= 3", "limit 3"),
        ("row_number()", "n < 3", "limit 2"),
        ("row_number()", "3 > n", "limit 2"),
        ("row_number()", "3 >= n", "limit 3"),
        ("row_number()", "n = 1", "limit 1"),
        ("row_number()", "n BETWEEN 1 AND 2", "limit 2"),
        ("row_number()", "n <= 3 AND a > 0 AND n <= 2", "limit 2"),
        ("rank()", "n <= 3", "limit 3 with ties"),
        ("rank()", "1 = n", "limit 1 with ties"),
    ],
)
def test_first_rows_are_kept(function: str, condition: str, limit: str) -> None:
    for columns in ("a, b, n", "a"):
        plan = optimized(f"SELECT {columns} FROM {NUMBERED.format(function)} WHERE {condition}")
        assert f"TopK order by #2{{d}} {limit} by" in plan
        is_read = columns != "a" or "BETWEEN" in condition
        assert ("Window" in plan) == (is_read and "limit 1" not in limit)


@pytest.mark.parametrize(
    ("function", "condition"),
    [
        ("row_number()", "n >= 3"),
        ("row_number()", "n <= 0"),
        ("row_number()", "n <= 1000"),
        ("row_number()", "n <= a"),
        ("row_number()", "n <= 1 OR a = 1"),
        ("dense_rank()", "n <= 3"),
        ("count(*)", "n <= 3"),
        ("percent_rank()", "n <= 3"),
    ],
)
def test_other_conditions_are_of_whole_partitions(function: str, condition: str) -> None:
    assert "TopK" not in optimized(f"SELECT a, b, n FROM {NUMBERED.format(function)} WHERE {condition}")


def test_a_function_of_more_than_the_rows_before_needs_the_partition() -> None:
    over = "OVER (PARTITION BY b ORDER BY d ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    numbered = f"(SELECT a, row_number() {over} AS n, count(*) {over} AS m FROM t) y"
    query = f"SELECT a, n, m FROM {numbered} WHERE n <= 3"
    assert "TopK" not in optimized(query)
    assert "limit 3" in optimized(query.replace("a, n, m", "a, n"))  # as nobody reads it


def test_a_second_row_is_of_the_first_two() -> None:
    plan = optimized(f"SELECT a FROM {NUMBERED.format('row_number()')} WHERE n = 2")
    assert "limit 2" in plan
    assert "= 2" in plan


def test_rows_with_ties_are_not_planned_as_a_window() -> None:
    plan = optimized("SELECT a FROM t ORDER BY b FETCH FIRST 2 ROWS WITH TIES")
    assert "limit 2 with ties" in plan
    assert "Window" not in plan


def test_arrangements_that_nothing_reads_are_not_kept() -> None:
    shared = bind("WITH q AS (SELECT DISTINCT b FROM t) SELECT x.b FROM q x JOIN q y ON x.b = y.b").relation
    (let,) = (one for one in nodes_of(optimize(shared)) if isinstance(one, Let))
    unread = Let(let.id, let.value, empty(let.body.relation_type))
    plan = lower_to_maintained_plan(unread, tuple(column.name for column in unread.relation_type.columns))
    assert plan.arrangements == ()
    assert collections_read(plan.output) == frozenset()


def test_ties_are_those_of_a_limit() -> None:
    nothing = empty(bind("SELECT a FROM t").relation.relation_type)
    with pytest.raises(ValueError, match="ties"):
        TopK(nothing, (), (), None, ties=True)
    with pytest.raises(ValueError, match="ties"):
        TopK(nothing, (), (), 2, 1, ties=True)
