"""A transform keeps every row and multiplicity; so does lowering; and so does each by itself, on any data."""

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mz_dagster.formalism import GlobalId
from mz_dagster.plan import (
    PIPELINE,
    collections_read,
    explain_logical,
    lower_to_maintained_plan,
    lower_to_snapshot_plan,
    optimize,
)
from mz_dagster.plan.optimize import Pass, check_order
from mz_dagster.plan.relation import Constant, Get, Join, Negate, Reduce, Relation, Union
from mz_dagster.plan.transform import lift_single_rows
from mz_dagster.scalars.scalar import ColumnRef, Literal
from mz_dagster.scalars.types import INT4, Column, RelationType
from tests.plan.queries import QUERIES, VIEWS
from tests.plan.reference import Rows, Undefined, maintained_rows, rows_of, snapshot_rows
from tests.sql.project import Project, bind

small = st.integers(-1, 3)
maybe = st.none() | small
text = st.sampled_from([None, "x", "y"])
boolean = st.sampled_from([None, True, False])
diffs = st.sampled_from([1, 1, 2, -1])


def collection(*cells: st.SearchStrategy[Any]) -> st.SearchStrategy[Rows]:
    return st.dictionaries(st.tuples(*cells), diffs, max_size=5).map(Counter)


def keyed(*cells: st.SearchStrategy[Any]) -> st.SearchStrategy[Rows]:
    rows = st.lists(st.tuples(*cells), max_size=5, unique_by=lambda row: row[0])
    return rows.map(Counter)


#: Unique keys are what the project says; what has none may have negative multiplicities.
collections = st.fixed_dictionaries(
    {
        "u1": keyed(small, maybe, text, st.none(), st.none(), boolean),
        "s2": collection(small, text, st.none()),
        "u3": keyed(small, maybe, st.none()),
    }
)


@cache
def bound(name: str) -> Relation:
    project = Project()
    for view, query in VIEWS.items():
        project.add_view(view, query)
    return bind(QUERIES[name], project=project).relation


@cache
def shared(relation: Relation) -> Relation:
    return PIPELINE[0].run(relation)


def expected_rows(relation: Relation, data: dict[str, Rows]) -> Rows | None:
    """Returns the rows, or None if they are an error because a multiplicity is negative."""
    try:
        return rows_of(relation, data)
    except Undefined:
        return None


def some_of(name: str, data: dict[str, Rows]) -> dict[str, Rows]:
    """Returns the data that a query is put to.

    Rows that the latest are looked for among are counted before they are joined, so that a negative multiplicity of
    one that no row meets is an error, too.
    """
    if not name.startswith("as_of_"):
        return data
    return {one: Counter({row: abs(n) for row, n in rows.items()}) for one, rows in data.items()}


def same(left: Rows, right: Rows) -> bool:
    return {r: n for r, n in left.items() if n} == {r: n for r, n in right.items() if n}


@pytest.mark.parametrize("name", QUERIES)
def test_optimizing_and_lowering_keep_every_row(name: str) -> None:
    relation = bound(name)
    optimized = optimize(relation)
    maintained = lower_to_maintained_plan(optimized, relation.relation_type.names)
    snapshot = lower_to_snapshot_plan(optimized)

    @settings(max_examples=13, deadline=None)
    @given(collections)
    def check(data: dict[str, Rows]) -> None:
        data = some_of(name, data)
        expected = expected_rows(relation, data)
        if expected is None:
            return
        assert same(rows_of(optimized, data), expected)
        assert same(maintained_rows(maintained, data), expected)
        assert same(snapshot_rows(snapshot, data), expected)

    check()


@pytest.mark.parametrize("one", {one.name: one for one in PIPELINE}.values(), ids=lambda one: one.name)
def test_each_transform_alone_keeps_every_row(one: Pass) -> None:
    relations = {name: bound(name) for name in QUERIES}
    relations["negated"] = Union((Negate(bound("join_equivalences")), bound("flatten_unions")))
    if one.name != "share_subplans":
        relations = {name: shared(relation) for name, relation in relations.items()}
    after = {name: one.run(relation) for name, relation in relations.items()}

    @settings(max_examples=3, deadline=None)
    @given(collections)
    def check(data: dict[str, Rows]) -> None:
        for name, relation in relations.items():
            own = some_of(name, data)
            expected = expected_rows(relation, own)
            if expected is not None:
                assert same(rows_of(after[name], own), expected), name

    check()


# What `comparable_columns` groups by is a column of the same kind, so it would do it again; and the union of one input
# by which `as_of_joins` says a key is one that says nothing to `flatten_unions`.
@pytest.mark.parametrize("name", [name for name in QUERIES if name != "comparable_columns" and "as_of" not in name])
def test_optimizing_twice_changes_nothing_more(name: str) -> None:
    once = optimize(bound(name))
    assert optimize(once) == once


def test_an_input_made_of_joins_becomes_an_arrangement() -> None:
    optimized = optimize(bound("arrangement"))
    plan = lower_to_maintained_plan(optimized, ("n", "x"))
    (arrangement,) = plan.arrangements
    assert arrangement.id == "arrangement:1"
    assert arrangement.key == (0,)
    assert collections_read(plan.output) == {"arrangement:1", "s2"}
    assert collections_read(arrangement.plan) == {"u1", "u3"}


def test_guards_keep_guarding() -> None:
    """A predicate that can fail stays above the join, behind those that cannot fail."""
    relation = optimize(bind("SELECT t.a FROM t, v WHERE 10 / t.b > 1 AND t.a = v.k AND t.b <> 0").relation)
    text = explain_logical(relation)
    assert text.index("(10 / ") < text.index("Join") < text.index("<> 0")


def test_a_pipeline_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="fuse_filters must come after split_disjunctions"):
        check_order(PIPELINE[6:])
    with pytest.raises(ValueError, match="fuse_maps must come after"):
        check_order(tuple(reversed(PIPELINE)))


def test_what_a_join_says_of_one_input_alone_keeps_single_rows_where_they_are() -> None:
    table = Get(GlobalId("u1"), RelationType((Column("a", INT4), Column("b", INT4))), "t")
    row = Constant(((Literal(1, INT4),),), RelationType((Column("s", INT4),), frozenset({frozenset()})))
    equal = ((ColumnRef(0, INT4), ColumnRef(1, INT4)),)
    grouped = Reduce(Join((table, row), equal), (0,), (), ())
    assert lift_single_rows(grouped) == grouped
    assert lift_single_rows(replace(grouped, input=Join((table, row), ()))) != grouped
