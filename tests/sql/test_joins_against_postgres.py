"""Joins and subqueries, bound and evaluated naively, give what PostgreSQL gives for the same text and rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import optimize
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.types import INT4, INT8, TEXT, Column, RelationType
from mz_dagster.sql import BoundQuery, Select, bind_query, ordered_rows, parse
from tests.plan.reference import Rows
from tests.postgres_server import Postgres
from tests.sql.against_postgres import Answer, normal, script, theirs
from tests.sql.evaluation import Failed, rows_of
from tests.sql.join_queries import combinations, queries

TABLES = {
    "t": RelationType((Column("a", INT4), Column("b", INT4), Column("c", TEXT), Column("n", INT4, False))),
    "u": RelationType((Column("a", INT4), Column("x", INT4), Column("c", TEXT))),
    "v": RelationType((Column("k", INT4, False), Column("a", INT8), Column("c", TEXT)), frozenset({frozenset({0})})),
    "z": RelationType((Column("a", INT4), Column("b", INT4))),
}
Data = Mapping[str, list[tuple[Any, ...]]]


class Tables:
    """Resolves the tables."""

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        if name[-1] not in TABLES or len(name) != 1:
            return None
        return Item(GlobalId(f"u_{name[-1]}"), name[-1], "table", TABLES[name[-1]], "demo")

    def names(self) -> tuple[str, ...]:
        return tuple(TABLES)


def random_data(seed: int) -> Data:
    """Returns small tables with NULLs and duplicates; some seeds have an empty or NULL-free one."""
    pick = random.Random(seed)
    nulls = pick.choice([0.0, 0.2, 0.2, 0.4])

    def number() -> int | None:
        return None if pick.random() < nulls else pick.randint(0, 3)

    def text() -> str | None:
        return None if pick.random() < nulls else pick.choice(["x", "y"])

    t: list[tuple[Any, ...]] = [(number(), number(), text(), pick.randint(0, 1)) for _ in range(pick.choice([0, 5, 7]))]
    u: list[tuple[Any, ...]] = [(number(), number(), text()) for _ in range(pick.choice([0, 1, 4, 6]))]
    v: list[tuple[Any, ...]] = [(k, number(), text()) for k in pick.sample(range(5), pick.choice([1, 3, 4]))]
    return {"t": t + t[:2], "u": u + u[:1], "v": v, "z": []}


@cache
def bound(query: str) -> BoundQuery | Error:
    """Returns the query bound over the tables, or what was refused."""
    try:
        (select,) = parse(query)
        assert isinstance(select, Select)
        return bind_query(select.query, Tables())
    except Error as error:
        return error


def ours(plan: BoundQuery, data: Data) -> Answer:
    """Returns the rows of the plan, or the error of the data."""
    collections: dict[str, Rows] = {f"u_{name}": Counter(rows) for name, rows in data.items()}
    try:
        found = rows_of(plan.relation, collections)
    except Failed as failed:
        return Answer(error=str(failed)[:5])
    assert all(n >= 0 for n in found.values()), "a multiplicity is negative"
    for row in found:
        for column, cell in zip(plan.relation.relation_type.columns, row, strict=True):
            assert cell is not None or column.nullable, f"{column} is NULL"
    rows = ordered_rows(list(found.elements()), plan.finishing)
    return Answer((), tuple(tuple(normal(one) for one in row) for row in rows)).unordered()


def differences(server: Postgres, asked: Sequence[tuple[str, str]], data: Data) -> list[str]:
    """Returns where the answers differ."""
    names = ", ".join(TABLES)
    server.run(f"DROP TABLE IF EXISTS {names}; " + script({name: (TABLES[name], data[name]) for name in TABLES}))
    plans = [(query, bound(query)) for query, _ in asked]
    widths = [1 if isinstance(plan, Error) else plan.relation_type.arity for _, plan in plans]
    answers = theirs(server, [(query, width) for (_, query), width in zip(asked, widths, strict=True)])
    found: list[str] = []
    for (query, plan), other in zip(plans, answers, strict=True):
        if isinstance(plan, Error):
            found.append(f"{query}\n   refused: {plan}")
            continue
        mine = ours(plan, data)
        other = Answer((), other.rows, other.error[:5]).unordered()
        if mine.error == "21000" and not other.error:
            # Nobody asks for the value, which the plan has no more once it is optimized.
            mine = ours(replace(plan, relation=optimize(plan.relation)), data)
        if mine != other:
            found.append(f"{query}\n   ours: {mine}\n theirs: {other}\n   data: {data}")
    return found


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 80), (1, 80), *(pytest.param(n, 150, marks=pytest.mark.deep) for n in range(8))]
)
def test_joins_and_subqueries_give_what_postgres_gives(postgres: Postgres, seed: int, count: int) -> None:
    # The queries are bound once, which costs most; the data differ.
    found = differences(postgres, queries(0, count), random_data(seed))
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:8])


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(100, 140))
def test_all_combinations_give_what_postgres_gives(postgres: Postgres, seed: int) -> None:
    found = differences(postgres, queries(seed, combinations()), random_data(seed))
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:8])
