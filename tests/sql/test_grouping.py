"""The plans of groups, windows, set operations and limits: their nodes, types and hints."""

from collections.abc import Iterator
from typing import TypeVar

import pytest

from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.relation import (
    Aggregate,
    ColumnOrder,
    Constant,
    Filter,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    Let,
    Map,
    Negate,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    Window,
    WindowFrame,
    inputs_of,
)
from mz_dagster.plan.row_count import at_least_one_row, at_most_one_row
from mz_dagster.scalars.scalar import If, Literal
from mz_dagster.scalars.types import INT8, numeric
from tests.sql.project import bind


def nodes(relation: Relation) -> Iterator[Relation]:
    yield relation
    for one in inputs_of(relation):
        yield from nodes(one)


Node = TypeVar("Node")


def only(query: str, kind: type[Node]) -> Node:
    (found,) = [one for one in nodes(bind(query).relation) if isinstance(one, kind)]
    return found


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT count(*), count(b), sum(b), sum(a::smallint), sum(u.a), sum(d) FROM t JOIN u USING (a)", [
            "count bigint NOT NULL", "count bigint NOT NULL", "sum bigint", "sum bigint", "sum numeric(38,0)",
            "sum numeric(38,2)"]),
        ("SELECT avg(b), avg(d), avg(d * 1.123456789012345678901) FROM t", [
            "avg numeric(38,20)", "avg numeric(38,20)", "avg numeric(38,23)"]),
        ("SELECT min(c), max(e), min(f::int), max(ts) FROM t, u", ["min text", "max date", "min integer",
            "max timestamp"]),
        ("SELECT min(g), max(g) FROM v", ["min double precision", "max double precision"]),
        ("SELECT bool_and(f), every(f), bool_or(b > 1) x FROM t", ["bool_and boolean", "every boolean", "x boolean"]),
        ("SELECT variance(b), var_pop(d) FROM t", ["variance numeric(38,20)", "var_pop numeric(38,20)"]),
        ("SELECT array_agg(b), array_agg(d), string_agg(c, ',') FROM t", [
            "array_agg integer[]", "array_agg numeric(38,2)[]", "string_agg text"]),
        ("SELECT a, b, count(*) FILTER (WHERE f) FROM t GROUP BY 1, b", [
            "a integer NOT NULL", "b integer", "count bigint NOT NULL"]),
        ("SELECT row_number() OVER w, ntile(2) OVER w, cume_dist() OVER w, lag(b, 1, 0::bigint) OVER w, "
         "first_value(c) OVER w, sum(b) OVER w, count(*) OVER w FROM t WINDOW w AS (ORDER BY a)", [
            "row_number bigint NOT NULL", "ntile integer", "cume_dist double precision NOT NULL", "lag bigint",
            "first_value text", "sum bigint", "count bigint NOT NULL"]),
        ("SELECT a FROM t EXCEPT SELECT d FROM t", ["a numeric(38,2)"]),
    ],
)  # fmt: skip
def test_types_are_postgresqls(query: str, columns: list[str]) -> None:
    assert [str(column) for column in bind(query).relation_type.columns] == columns


def test_equal_aggregates_are_bound_once() -> None:
    query = "SELECT b, avg(a), sum(a) + 1, count(*), count(a) FROM t GROUP BY b HAVING sum(a) > 1 ORDER BY avg(a)"
    reduce = only(query, Reduce)
    assert [(one.function, one.type) for one in reduce.aggregates] == [
        (AggregateFunction.SUM, INT8),
        (AggregateFunction.COUNT, INT8),
    ]
    assert (reduce.key, reduce.names) == ((1,), ("sum", "count"))


def test_keys_of_groups_are_unique() -> None:
    assert bind("SELECT b, count(*) FROM t GROUP BY b").relation_type.keys == {frozenset({0})}
    assert bind("SELECT DISTINCT b, c FROM t").relation_type.keys == {frozenset({0, 1})}
    assert frozenset({1}) in bind("SELECT DISTINCT ON (b) a, b FROM t").relation_type.keys


def test_a_filter_is_put_under_the_argument() -> None:
    reduce = only("SELECT b, sum(a) FILTER (WHERE f), array_agg(a + 1) FILTER (WHERE f) FROM t GROUP BY b", Reduce)
    below = reduce.input
    assert isinstance(below, Map)
    total, array = reduce.aggregates
    assert total.filter is None
    assert isinstance(below.scalars[total.arguments[0] - 6], If)
    assert array.filter == 5
    assert isinstance(below.scalars[array.arguments[0] - 6], If)


def test_distinct_aggregates_share_one_state_of_values() -> None:
    reduce = only("SELECT avg(DISTINCT b), sum(DISTINCT b) FROM t", Reduce)
    first, second = reduce.aggregates
    assert first.arguments == second.arguments
    assert first.distinct
    assert second.distinct


def test_a_global_aggregate_has_a_default_row() -> None:
    bound = bind("SELECT count(*), sum(b), count(*) + 1 FROM t")
    let = next(one for one in nodes(bound.relation) if isinstance(one, Let))
    assert isinstance(let.value, Reduce)
    assert let.value.key == ()
    union = let.body
    assert isinstance(union, Union)
    rows, default, superseded = union.inputs
    assert isinstance(default, Constant)
    assert default.rows == ((Literal(0, INT8), Literal(None, INT8)),)
    assert isinstance(superseded, Negate)
    assert rows.relation_type == let.value.relation_type
    assert at_least_one_row(bound.relation)
    assert at_most_one_row(bound.relation)
    assert not at_least_one_row(bind("SELECT count(*) FROM t HAVING count(*) > 1").relation)
    assert not any(isinstance(one, Let) for one in nodes(bind("SELECT count(*) FROM t GROUP BY a").relation))


def test_without_aggregates_one_group_is_one_row() -> None:
    assert not any(isinstance(one, Reduce) for one in nodes(bind("SELECT 1 AS one FROM t HAVING true").relation))


def test_order_of_ordered_aggregates() -> None:
    reduce = only("SELECT string_agg(DISTINCT c, ',' ORDER BY c DESC) FROM t", Reduce)
    (one,) = reduce.aggregates
    assert isinstance(one, Aggregate)
    assert one.distinct
    assert one.order == (ColumnOrder(2, True, True),)


def test_set_operations_are_multiplicities() -> None:
    def shape(query: str) -> list[type]:
        return [type(one) for one in nodes(bind(query).relation) if isinstance(one, Reduce | Threshold | Union | Let)]

    assert shape("SELECT b FROM t UNION SELECT a FROM v") == [Reduce, Union]
    assert shape("SELECT b FROM t UNION ALL SELECT a FROM v") == [Union]
    assert shape("SELECT b FROM t EXCEPT ALL SELECT a FROM v") == [Threshold, Union]
    assert shape("SELECT b FROM t EXCEPT SELECT a FROM v") == [Threshold, Union, Reduce, Reduce]
    assert shape("SELECT b FROM t INTERSECT ALL SELECT a FROM v") == [Let, Union, Threshold, Union]


def test_limits_within_a_query_are_a_top_k() -> None:
    top = only("SELECT x.b FROM (SELECT b FROM t ORDER BY a DESC LIMIT 5 OFFSET 2) x", TopK)
    assert (top.group, top.order, top.limit, top.offset) == ((), (ColumnOrder(1, True, True),), 5, 2)
    outermost = bind("SELECT b FROM t ORDER BY a LIMIT 5")
    assert not any(isinstance(one, TopK) for one in nodes(outermost.relation))
    assert outermost.finishing.limit == 5
    assert only("SELECT x.b FROM (SELECT b FROM t LIMIT 5) x", TopK).order == ()


def test_distinct_on_is_a_top_1_per_group() -> None:
    bound = bind("SELECT DISTINCT ON (b) a FROM t ORDER BY b DESC, e, a LIMIT 3")
    top = next(one for one in nodes(bound.relation) if isinstance(one, TopK))
    assert (top.group, top.limit, top.offset) == ((1,), 1, 0)
    assert top.order == (ColumnOrder(2, False, False), ColumnOrder(0, False, False))
    assert (bound.finishing.limit, len(bound.finishing.order)) == (3, 3)


@pytest.mark.parametrize(
    ("query", "kind", "size"),
    [
        ("SELECT b, max(a) FROM t GROUP BY b OPTIONS (AGGREGATE INPUT GROUP SIZE = 9)", Reduce, 9),
        ("SELECT b, max(a) FROM t GROUP BY b OPTIONS (LIMIT INPUT GROUP SIZE = 9)", Reduce, None),
        ("SELECT max(a) FROM (SELECT a FROM t OPTIONS (AGGREGATE INPUT GROUP SIZE = 9)) x", Reduce, None),
        ("SELECT max(a) FROM (SELECT a FROM t) x OPTIONS (AGGREGATE INPUT GROUP SIZE 9)", Reduce, 9),
        ("SELECT DISTINCT ON (b) a FROM t OPTIONS (DISTINCT ON INPUT GROUP SIZE = '7') ORDER BY b", TopK, 7),
        ("SELECT * FROM (SELECT a FROM t options (LIMIT INPUT GROUP SIZE = 4) LIMIT 2) x", TopK, 4),
        ("(SELECT a FROM t LIMIT 1) UNION ALL SELECT b FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 4)", TopK, None),
        ("WITH x AS (SELECT max(b) AS m FROM t OPTIONS (AGGREGATE INPUT GROUP SIZE = 3)) SELECT m FROM x", Reduce, 3),
    ],
)
def test_hints_are_of_their_own_select(query: str, kind: type[Reduce | TopK], size: int | None) -> None:
    assert only(query, kind).group_size == size


def test_options_may_be_a_name() -> None:
    assert bind("SELECT options.a FROM t options (a, b)").relation_type.names == ("a",)


def test_windows_of_one_partition_and_order_are_one_node() -> None:
    query = (
        "SELECT rank() OVER w, sum(b) OVER (PARTITION BY c ORDER BY a), max(b) OVER (PARTITION BY c), "
        "rank() OVER (PARTITION BY c ORDER BY a) FROM t WINDOW w AS (PARTITION BY c ORDER BY a)"
    )
    found = [one for one in nodes(bind(query).relation) if isinstance(one, Window)]
    assert [[function.name for function in one.functions] for one in found] == [["max"], ["rank", "sum"]]
    assert [one.partition for one in found] == [(2,), (2,)]


def test_frames_are_spelled_out() -> None:
    def frame(over: str) -> WindowFrame | None:
        (function,) = only(f"SELECT count(*) OVER ({over}) FROM t", Window).functions
        return function.frame

    everything = WindowFrame(FrameUnit.RANGE, FrameBound(True, preceding=True), FrameBound(True))
    here = FrameBound(False, Literal(0, INT8))
    assert frame("PARTITION BY b") == everything
    assert frame("ORDER BY b") == WindowFrame(FrameUnit.RANGE, FrameBound(True, preceding=True), here)
    assert frame("ORDER BY b ROWS 2 PRECEDING EXCLUDE TIES") == WindowFrame(
        FrameUnit.ROWS, FrameBound(False, Literal(2, INT8), True), here, FrameExclusion.TIES
    )
    found = frame("ORDER BY d RANGE BETWEEN 1.5 PRECEDING AND 2 FOLLOWING")
    assert found is not None
    assert found.start.offset is not None
    assert found.start.offset.type.kind is numeric(2).kind
    (ranked,) = only("SELECT rank() OVER (ORDER BY a) FROM t", Window).functions
    assert ranked.frame is None


def test_clauses_act_in_order() -> None:
    query = "SELECT b, count(*) FROM t WHERE f GROUP BY b HAVING count(*) > 1 QUALIFY rank() OVER (ORDER BY b) < 3"
    kinds = [type(one) for one in nodes(bind(query).relation) if isinstance(one, Filter | Reduce | Window)]
    assert kinds == [Filter, Window, Filter, Reduce, Filter]
