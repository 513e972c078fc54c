"""Functions that return rows, rows of values and arrays, bound and evaluated naively, give what PostgreSQL gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mz_dagster.errors import Error
from mz_dagster.plan.decorrelate import decorrelate
from mz_dagster.plan.relation import DependentJoin, FlatMap, Join, Reduce, Relation, inputs_of
from tests.postgres_server import Postgres
from tests.sql.against_postgres import Data, bind, differences, script, tables
from tests.sql.row_queries import ARRAYS, ITEMS, REFUSED, ROWS, SERIES, TOGETHER, UNNEST, VALUES

DATA: Data = tables(1)


@pytest.fixture(scope="module")
def postgres(postgres: Postgres) -> Postgres:
    postgres.run(script(DATA))
    return postgres


@pytest.mark.parametrize(
    "queries",
    [SERIES, VALUES, ITEMS, UNNEST, ROWS, ARRAYS, TOGETHER],
    ids=["series", "values", "items", "unnest", "rows", "arrays", "together"],
)
def test_queries_return_what_postgres_returns(postgres: Postgres, queries: tuple[str, ...]) -> None:
    found = differences(postgres, DATA, queries)
    assert not found, f"{len(found)} of {len(queries)} differ:\n" + "\n".join(found)


@pytest.mark.parametrize(("query", "position", "message"), REFUSED)
def test_what_has_no_exact_plan_is_refused_at_its_position(query: str, position: int, message: str) -> None:
    with pytest.raises(Error) as caught:
        bind(query)
    assert (caught.value.position, caught.value.message) == (position, message)
    assert caught.value.hint or caught.value.detail


def nodes_of(relation: Relation) -> Iterator[Relation]:
    yield relation
    for one in inputs_of(relation):
        yield from nodes_of(one)


def test_a_lateral_table_function_is_applied_to_the_rows_themselves() -> None:
    found = list(nodes_of(bind("SELECT id, g FROM t, generate_series(1, a) AS g, unnest(ARRAY[g, b]) AS u").relation))
    assert sum(isinstance(one, FlatMap) for one in found) == 2
    assert not any(isinstance(one, DependentJoin | Reduce) for one in found)


def test_a_table_function_joined_to_every_row_needs_no_state() -> None:
    relation = bind("SELECT id, x FROM t LEFT JOIN LATERAL generate_series(1, a) AS x ON true").relation
    assert not any(isinstance(one, Reduce | Join) for one in nodes_of(relation))


def test_a_lateral_query_over_a_collection_still_has_a_domain() -> None:
    query = "SELECT id, q.k FROM t, LATERAL (SELECT v.k FROM v, generate_series(1, t.a) AS g WHERE g = v.k) AS q"
    relation = bind(query).relation
    assert any(isinstance(one, Reduce) for one in nodes_of(relation))
    assert decorrelate(relation, lambda: pytest.fail("nothing is left to share")) is relation
