"""A project of three tables that PostgreSQL has too, and queries asked of both: what they differ in."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Context, Decimal
from typing import Any

from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.functions import type_name
from mz_dagster.functions.moments.interval_text import text_of_interval
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Item
from mz_dagster.plan.transform import comparable_columns
from mz_dagster.scalars.types import BOOL, DATE, INT2, INT4, INT8, TEXT, Column, RelationType, ScalarType, numeric
from mz_dagster.scalars.values import Interval
from mz_dagster.sql import BoundQuery, Select, bind_query, ordered_rows, parse
from tests.plan.reference import Rows
from tests.postgres_server import Postgres
from tests.sql.evaluation import Failed, rows_of

T = RelationType(
    (
        Column("a", INT4),
        Column("b", INT4),
        Column("s", INT2),
        Column("l", INT8),
        Column("d", numeric(2)),
        Column("c", TEXT),
        Column("f", BOOL),
        Column("e", DATE),
        Column("id", INT4, False),
    )
)
V = RelationType((Column("a", INT4), Column("k", INT4), Column("c", TEXT)))
#: What is done to a bound plan before it is evaluated.
Transformed = Callable[[Relation], Relation]
#: Tables by name.
Data = dict[str, tuple[RelationType, list[tuple[Any, ...]]]]

_SQL_TYPES = {numeric(2): "numeric(38,2)"}


#: Has room for ten digits behind the longest numeric.
_EXACT = Context(prec=60)


def tables(seed: int) -> Data:
    """Returns the tables: `t` and `v` with NULLs and duplicates, `z` as `t` without rows."""
    pick = random.Random(seed)

    def cell(type_: ScalarType) -> Any:
        if pick.random() < 0.2:
            return None
        match type_.kind.value:
            case "boolean":
                return pick.random() < 0.5
            case "text":
                return pick.choice(["x", "y", "Z", "", "xx"])
            case "numeric":
                return Decimal(pick.choice(["1.50", "-2.25", "0.00", "3.10", "100.01"]))
            case "date":
                return date(2020, 1, pick.randint(1, 4))
            case "bigint":
                return pick.choice([1, -1, 2**40, 7])
            case _:
                return pick.randint(-2, 4)

    t = [(*(cell(column.type) for column in T.columns[:-1]), i) for i in range(14)]
    v: list[tuple[Any, ...]] = [tuple(cell(column.type) for column in V.columns) for _ in range(6)]
    return {"t": (T, t), "v": (V, v + v[:2]), "z": (T, [])}


def script(data: Data) -> str:
    """Returns what creates and fills the tables."""
    lines: list[str] = []
    for name, (columns, rows) in data.items():
        shown = ", ".join(f"{one.name} {_SQL_TYPES.get(one.type, one.type.kind.value)}" for one in columns.columns)
        lines.append(f"CREATE TABLE {name} ({shown});")
        for row in rows:
            cells = ", ".join("NULL" if one is None else f"'{one}'" for one in row)
            lines.append(f"INSERT INTO {name} VALUES ({cells});")
    return "\n".join(lines)


class Tables:
    """Resolves the tables."""

    def __init__(self) -> None:
        self.items = {
            name: Item(GlobalId(f"u{i}"), name, "table", columns, "demo")
            for i, (name, (columns, _)) in enumerate(tables(0).items())
        }

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        return self.items.get(name[-1]) if len(name) == 1 else None

    def names(self) -> tuple[str, ...]:
        return tuple(self.items)


def bind(query: str) -> BoundQuery:
    """Returns the query bound over the tables."""
    (select,) = parse(query)
    assert isinstance(select, Select)
    return bind_query(select.query, Tables())


@dataclass(frozen=True)
class Answer:
    """Is what a query says: types and rows, or an error."""

    types: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    error: str = ""

    def unordered(self) -> Answer:
        """Returns the answer with its rows in one order."""
        return Answer(self.types, tuple(sorted(self.rows, key=repr)), self.error)


def ours(query: str, data: Data, transformed: Transformed = comparable_columns) -> Answer:
    """Returns the answer of the bound plan, transformed."""
    try:
        bound = bind(query)
    except Error as error:
        return Answer(error=f"{error.sqlstate} {error.message}")
    items = Tables().items
    collections: dict[str, Rows] = {items[name].id: Counter(rows) for name, (_, rows) in data.items()}
    types = tuple(_type(one.type) for one in bound.relation_type.columns)
    try:
        found = rows_of(transformed(bound.relation), collections)
    except Failed as failed:
        return Answer(types, error=str(failed))
    assert all(n >= 0 for n in found.values()), "a multiplicity is negative"
    for row in found:
        for column, one in zip(bound.relation.relation_type.columns, row, strict=True):
            assert one is not None or column.nullable, f"{column} is NULL"
    rows = ordered_rows(list(found.elements()), bound.finishing)
    return Answer(types, tuple(tuple(normal(one) for one in row) for row in rows))


def theirs(server: Postgres, queries: Sequence[tuple[str, int]]) -> list[Answer]:
    """Returns the server's answers to queries, each given with its number of columns."""
    asked: list[str] = []
    for query, n in queries:
        names = ", ".join(f"c{i}" for i in range(n))
        types = ", ".join(f"pg_typeof(c{i})" for i in range(n))
        nulls = ", ".join("NULL" for _ in range(n))
        asked.append(
            f"SELECT json_build_array(json_build_array({types}), (SELECT coalesce(json_agg(json_build_array({names})), "
            f"'[]') FROM ({query}) AS q ({names}))) FROM (SELECT * FROM ({query}) AS q ({names}) UNION ALL "
            f"SELECT {nulls}) AS q LIMIT 1"
        )
    answers: list[Answer] = []
    for answer in server.attempt(asked):
        assert answer is not None
        if answer.startswith("!"):
            answers.append(Answer(error=answer[1:]))
            continue
        types, rows = json.loads(answer[1:], parse_float=Decimal)
        answers.append(Answer(tuple(types), tuple(tuple(normal(one) for one in row) for row in rows)))
    return answers


def normal(cell: Any) -> Any:
    """Returns a cell in one form: numbers to ten digits, lists as tuples, dates as text."""
    match cell:
        case bool() | None | str():
            return cell
        case int() | float() | Decimal():
            return f"{_EXACT.add(Decimal(str(cell)).quantize(Decimal('1e-10'), context=_EXACT), 0):f}"
        case Interval():
            return text_of_interval(cell)
        case date() | time():
            shown, zone, _ = cell.isoformat().partition("+00:00")
            return (shown.rstrip("0") if "." in shown else shown) + zone
        case _:
            return tuple(normal(one) for one in cell)


def _type(type_: ScalarType) -> str:
    return type_name(type_) if type_.element is None else f"{_type(type_.element)}[]"


def differences(
    server: Postgres,
    data: Data,
    queries: Iterable[str | tuple[str, str]],
    transformed: Transformed = comparable_columns,
) -> list[str]:
    """Returns where the answers differ; a pair gives PostgreSQL's own spelling second.

    Of a query with ORDER BY at its end the order counts.
    """
    pairs = [(one, one) if isinstance(one, str) else one for one in queries]
    own = [ours(query, data, transformed) for query, _ in pairs]
    asked = [(query, max(1, len(answer.types))) for (_, query), answer in zip(pairs, own, strict=True)]
    found: list[str] = []
    for (query, _), mine, other in zip(pairs, own, theirs(server, asked), strict=True):
        if not (mine.error or other.error) and " ORDER BY " not in query.rpartition(")")[2]:
            mine, other = mine.unordered(), other.unordered()
        if mine.error and other.error:
            mine, other = Answer(error=mine.error[:5]), Answer(error=other.error[:5])
        elif mine.error:
            mine = replace(mine, types=())
        if mine != other:
            found.append(f"{query}\n   ours: {mine}\n theirs: {other}")
    return found
