"""What a plan knows of table functions: columns, keys, lineage, its transforms and EXPLAIN."""

from __future__ import annotations

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.plan import explain_logical, explain_physical, lower_to_maintained_plan, optimize
from mz_dagster.plan.lineage import SourceColumn, column_lineage
from mz_dagster.plan.relation import FlatMap, Get
from mz_dagster.scalars.types import INT4, INT8, TEXT, Column, RelationType, array_of
from tests.sql.against_postgres import bind

BELOW = Get(
    GlobalId("t"),
    RelationType(
        (Column("k", INT4, False), Column("p", array_of(INT4)), Column("q", array_of(TEXT), False)),
        frozenset({frozenset({0}), frozenset({1})}),
        monotonic=True,
    ),
)


def test_elements_take_the_places_of_their_arrays() -> None:
    flat = FlatMap(BELOW, 2, ordinality=True)
    assert flat.relation_type.columns == (
        Column("k", INT4, False), Column("p", INT4), Column("q", TEXT), Column("ordinality", INT8, False),
    )  # fmt: skip
    assert flat.relation_type.monotonic


def test_a_key_that_stays_is_one_together_with_the_ordinality_only() -> None:
    assert FlatMap(BELOW, 2, ordinality=True).relation_type.keys == {frozenset({0, 3})}
    assert FlatMap(BELOW, 2).relation_type.keys == frozenset()


@pytest.mark.parametrize("arrays", [0, 3, 4])
def test_what_is_no_array_has_no_elements(arrays: int) -> None:
    with pytest.raises(ValueError, match=r"columns$|rows are made of arrays"):
        FlatMap(BELOW, arrays)


def test_elements_derive_from_their_arrays_and_the_ordinality_from_nothing() -> None:
    sources = [frozenset({SourceColumn(BELOW.id, position)}) for position in range(3)]
    assert column_lineage(FlatMap(BELOW, 2, ordinality=True)) == (*sources, frozenset())


def test_explain_shows_what_is_unnested_and_filters_below_it() -> None:
    query = "SELECT id, g FROM t, generate_series(1, a) WITH ORDINALITY AS g (g, n) WHERE b > 1 AND n < 3"
    bound = bind(query)
    relation = optimize(bound.relation)
    assert explain_logical(relation).splitlines()[:4] == [
        "Project #0{id}, #1{generate_series}",
        "  Filter (#2{n} < 3)",
        "    FlatMap #1{generate_series} with ordinality",
        "      Project #1{id}, #2{generate_series}",
    ]
    shown = explain_physical(lower_to_maintained_plan(relation, bound.relation_type.names))
    assert "Unnest #1{generate_series} with ordinality [linear, unnest.py]" in shown
    assert shown.index("Unnest") < shown.index("filter (#1{b} > 1)")


def test_short_constant_series_are_rows_of_the_plan() -> None:
    relation = optimize(bind("SELECT x, n FROM unnest(ARRAY[2, NULL]) WITH ORDINALITY AS u (x, n)").relation)
    assert explain_logical(relation) == "Constant 2 rows: (2, 1), (null::integer, 2)"
    long = optimize(bind("SELECT g FROM generate_series(1, 1000000) AS g").relation)
    assert explain_logical(long).startswith("FlatMap")
