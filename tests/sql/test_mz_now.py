"""`mz_now()`: what a maintained view may do with it, and what is refused where and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from mz_dagster.adapter.definition import define
from mz_dagster.errors import Error, NotSupportedError
from mz_dagster.plan import Call, Literal, explain_logical, optimize
from mz_dagster.plan.reading_time import at_time, depends_on_time
from mz_dagster.plan.relation import Constant, Filter, Relation, TemporalFilter, inputs_of
from mz_dagster.scalars.scalar import ColumnRef, Scalar
from mz_dagster.scalars.types import MZ_TIMESTAMP
from mz_dagster.sql import CreateIndex, CreateMaterializedView, CreateView, Select, bind_query, parse
from mz_dagster.sql.circumstances import Circumstances
from tests.sql.project import Project, bind


def filters(relation: Relation) -> list[TemporalFilter]:
    below = [found for one in inputs_of(relation) for found in filters(one)]
    return [relation, *below] if isinstance(relation, TemporalFilter) else below


def shown(bounds: Sequence[Scalar]) -> list[str]:
    """Returns bounds as `name`, `name+` for its step, or a number."""

    def one(scalar: Scalar) -> str:
        match scalar:
            case ColumnRef():
                return scalar.name
            case Literal():
                return str(scalar.value)
            case Call(function="step_mz_timestamp"):
                return f"{one(scalar.arguments[0])}+"
            case Call() if scalar.function.startswith("cast_"):
                return one(scalar.arguments[0])
        raise AssertionError(scalar)

    return [one(bound) for bound in bounds]


BOUNDS = [
    ("mz_now() >= a", ["a"], []),
    ("mz_now() > a", ["a+"], []),
    ("mz_now() < a", [], ["a"]),
    ("mz_now() <= a", [], ["a+"]),
    ("mz_now() = a", ["a"], ["a+"]),
    ("a <= mz_now()", ["a"], []),
    ("a < mz_now()", ["a+"], []),
    ("a > mz_now()", [], ["a"]),
    ("a >= mz_now()", [], ["a+"]),
    ("a = mz_logical_timestamp()", ["a"], ["a+"]),
    ("mz_now() BETWEEN a AND d", ["a"], ["d+"]),
    ("mz_now() >= a AND mz_now() >= b AND mz_now() < d AND mz_now() <= e", ["a", "b"], ["d", "e+"]),
    ("NOT mz_now() < a", ["a"], []),
    ("NOT (mz_now() < a OR mz_now() >= b)", ["a"], ["b"]),
    ("NOT mz_now() <> a", ["a"], ["a+"]),
    ("NOT (NOT (mz_now() < a))", [], ["a"]),
    ("mz_now() < 7", [], ["7"]),
    ("mz_now() < '7'", [], ["7"]),
    ("mz_now() < '2020-01-01'", [], ["1577836800000"]),
    ("mz_now() <= '2020-01-01 00:00:00.0019 UTC'", [], ["1577836800002"]),
    ("mz_now() IN (a)", ["a"], ["a+"]),
]


@pytest.mark.parametrize(("predicate", "lower", "upper"), BOUNDS)
def test_comparisons_become_bounds(predicate: str, lower: list[str], upper: list[str]) -> None:
    relation = optimize(bind(f"SELECT a FROM t WHERE f AND {predicate}").relation)
    (found,) = filters(relation)
    assert (shown(found.lower), shown(found.upper)) == (lower, upper)
    assert "Filter #" in explain_logical(found.input), "what is no bound is filtered before"


def test_each_bound_goes_to_the_input_that_it_is_about() -> None:
    relation = optimize(
        bind("SELECT t.a FROM t JOIN u ON t.a = u.a AND mz_now() < u.ts WHERE t.e >= mz_now() AND t.d + u.a > mz_now()")
        .relation
    )  # fmt: skip
    bounds = [(shown(one.lower), shown(one.upper)) for one in filters(relation)[1:]]
    assert sorted(bounds) == [([], ["e+"]), ([], ["ts"])]


def test_equality_with_now_is_no_condition_to_join_by() -> None:
    relation = optimize(bind("SELECT t.a FROM t, v WHERE mz_now() = t.a AND mz_now() = v.k").relation)
    assert "Join cross" in explain_logical(relation)
    assert len(filters(relation)) == 2


def test_a_view_of_a_temporal_filter_is_not_monotonic_once_rows_leave() -> None:
    for bound, monotonic in (("mz_now() >= a", True), ("mz_now() < a", False)):
        assert optimize(bind(f"SELECT a FROM u WHERE {bound}").relation).relation_type.monotonic is monotonic


FORM = "Unsupported temporal predicate. Note: mz_now() must be directly compared to a mz_timestamp-castable expression"
CALL = "cannot materialize call to mz_now"
REFUSED = [
    ("SELECT a FROM t WHERE mz_now() <> a", "mz_now() <>", "Unsupported binary temporal operation: NotEq"),
    ("SELECT a FROM t WHERE NOT (a = mz_now())", "mz_now()", "Unsupported binary temporal operation: NotEq"),
    ("SELECT a FROM t WHERE a = 1 OR mz_now() < 5", "mz_now()", FORM),
    ("SELECT a FROM t WHERE mz_now() < b OR b IS NULL", "mz_now()", FORM),
    ("SELECT a FROM t WHERE mz_now() IN (a, b)", "mz_now()", FORM),
    ("SELECT a FROM t WHERE mz_now() < 5 AND mz_now()::timestamp < e", "mz_now()::", FORM),
    ("SELECT a FROM t WHERE mz_now() < mz_logical_timestamp()", "mz_now()", FORM),
    ("SELECT a FROM t WHERE (mz_now() < a) IS NOT TRUE", "mz_now()", FORM),
    ("SELECT a FROM t WHERE CASE WHEN f THEN mz_now() < a END", "mz_now()", FORM),
    ("SELECT a, mz_now() AS now FROM t", "mz_now()", CALL),
    ("SELECT a FROM t JOIN (SELECT mz_now()::text AS c FROM v) x ON t.c = x.c", "mz_now()", None),
]


@pytest.mark.parametrize(("query", "blamed", "message"), REFUSED)
def test_other_uses_are_refused_in_what_is_maintained(query: str, blamed: str, message: str | None) -> None:
    text = f"CREATE MATERIALIZED VIEW m AS {query}"
    (statement,) = parse(text)
    assert isinstance(statement, CreateMaterializedView)
    with pytest.raises(NotSupportedError) as caught:
        define(statement, Project(), default_timeline="demo")
    assert caught.value.position == text.index(blamed) + 1
    assert message is None or caught.value.message.startswith(message)
    assert caught.value.hint


def test_a_plain_view_may_say_anything_and_is_blamed_where_it_is_maintained() -> None:
    project = Project()
    (view,) = parse("CREATE VIEW loose AS SELECT a FROM t WHERE mz_now() <> a")
    assert isinstance(view, CreateView)
    definition = define(view, project, default_timeline="demo")
    project.items["loose"] = definition.item(project.items["t"].id)
    for text in (
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t JOIN loose USING (a)",
        "CREATE INDEX i ON loose (a)",
    ):
        (statement,) = parse(text)
        assert isinstance(statement, CreateMaterializedView | CreateIndex)
        with pytest.raises(NotSupportedError, match="NotEq") as caught:
            define(statement, project, default_timeline="demo")
        assert caught.value.position == text.index("loose") + 1
    assert depends_on_time(bind("SELECT * FROM loose", project=project).relation)


WRONG = [
    ("SELECT mz_now() - 30 FROM t", 17, "operator does not exist: mz_timestamp - integer"),
    ("SELECT a FROM t WHERE mz_now() + 1 > a", 32, "operator does not exist: mz_timestamp + integer"),
    ("SELECT a FROM t WHERE mz_now() < f", 32, "operator does not exist: mz_timestamp < boolean"),
    ("SELECT a FROM t WHERE mz_now() < c", 32, "operator does not exist: mz_timestamp < text"),
    ("SELECT a FROM t WHERE mz_now() < 'soon'", 34, 'invalid input syntax for type mz_timestamp: "soon"'),
    ("SELECT mz_now(1)", 8, "function mz_now(integer) does not exist"),
    ("SELECT e + '2' FROM t", 10, "operator is not unique: date + unknown"),
    ("SELECT e + 'x' FROM t", 10, "operator is not unique: date + unknown"),
]


@pytest.mark.parametrize(("query", "position", "message"), WRONG)
def test_there_is_no_arithmetic_on_times(query: str, position: int, message: str) -> None:
    with pytest.raises(Error) as caught:
        bind(query)
    assert (caught.value.position, caught.value.message) == (position, message)


def test_a_query_reads_its_own_time_wherever_it_asks_for_it() -> None:
    (row,) = _rows(at_time(optimize(bind("SELECT mz_now(), mz_logical_timestamp() AS then, 1").relation), 42))
    assert row == (42, 42, 1)
    relation = at_time(optimize(bind("SELECT a FROM t WHERE mz_now() BETWEEN b AND d OR mz_now() <> a").relation), 42)
    assert not depends_on_time(relation)


def test_at_one_time_a_bound_is_a_comparison_again_and_the_last_time_has_no_step() -> None:
    relation = at_time(
        optimize(bind("SELECT a FROM t WHERE mz_now() <= 9223372036854775807 AND mz_now() > b").relation), 5
    )
    below: Relation = relation
    while not isinstance(below, Filter):
        (below,) = inputs_of(below)
    text = explain_logical(relation)
    assert "step" not in text
    assert "gt_mz_timestamp(5" in text
    assert "le_mz_timestamp" not in text  # no time is beyond the last


def test_a_date_and_days_in_quotes_is_a_timestamp() -> None:
    bound = bind("SELECT e + '90 days', '1 week' + e, e + 1 FROM t")
    assert [str(column.type) for column in bound.relation_type.columns] == ["timestamp", "timestamp", "date"]


def test_the_clock_is_read_by_a_statement_and_refused_in_a_definition() -> None:
    noon = datetime(2021, 7, 27, 12, 0, 0, 5000, UTC)
    (select,) = parse("SELECT now(), CURRENT_TIMESTAMP, mz_now() = 1")
    assert isinstance(select, Select)
    relation = optimize(bind_query(select.query, Project(), circumstances=Circumstances(noon)).relation)
    assert [scalar for scalar in _literals(relation) if scalar == noon] == [noon, noon]
    for form in ("now()", "CURRENT_TIMESTAMP"):
        text = f"CREATE VIEW v2 AS SELECT a, {form} AS x FROM t"
        (view,) = parse(text)
        assert isinstance(view, CreateView)
        with pytest.raises(NotSupportedError, match="not supported") as caught:
            define(view, Project(), default_timeline="demo")
        assert caught.value.position == text.index(form) + 1
        assert caught.value.detail


def _rows(relation: Relation) -> list[tuple[object, ...]]:
    assert isinstance(relation, Constant)
    return [tuple(cell.value for cell in row) for row in relation.rows]


def _literals(relation: Relation) -> list[object]:
    own = getattr(relation, "scalars", ())
    rows = [cell for row in getattr(relation, "rows", ()) for cell in row]
    found = [one.value for one in (*own, *rows) if isinstance(one, Literal)]
    return [*found, *(value for one in inputs_of(relation) for value in _literals(one))]


def test_now_is_of_the_type_of_times() -> None:
    assert bind("SELECT mz_now()").relation_type.columns[0].type == MZ_TIMESTAMP
    assert bind("SELECT mz_logical_timestamp()").relation_type.names == ("mz_logical_timestamp",)
