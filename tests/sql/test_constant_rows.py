"""VALUES of plain literals and parameters become the rows that they become one by one, in time by their length."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from mz_dagster.errors import Error
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.sql import Insert, bind_insert, body_parser, parse
from mz_dagster.sql.binder import NO_NAMES
from mz_dagster.sql.body_parser import parse_body
from mz_dagster.sql.constant_rows import ConstantRows
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.statements import SqlText
from mz_dagster.sql.type_names import column_type
from tests.growth import exponent

_TYPES = (
    "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric", "numeric(5, 2)", "text",
    "varchar(3)", "char(3)", "date", "timestamp", "timestamp(1)", "timestamptz", "time", "interval", "uuid", "bytea",
    "json", "jsonb", "integer[]",
)  # fmt: skip
_LITERALS = (
    "1", "-1", "0", "32768", "3000000000", "1.5", "-1.005", "1234.567", "1e3", "1e40", "-.5", "NULL", "null", "TRUE",
    "false", "''", "'1'", "'t'", "'abcd'", "'a''b, (c)'", "'2024-02-30'", "'2024-02-28 10:00:00.55+02'", "'1 day'",
    "'{}'", "'{1,2}'", "'[1, {\"a\": 2}]'", "'550e8400-e29b-41d4-a716-446655440000'", "'NaN'", "'\\x00ff'",
)  # fmt: skip
#: Values of parameters, beside the texts above.
_VALUES: tuple[object, ...] = (
    None, True, False, 1, -1, 32768, 3_000_000_000, 2**70, 1.5, float("nan"), -0.0, Decimal("-1.005"), Decimal("1e40"),
    date(2024, 2, 29), datetime(2024, 2, 28, 10, 0, 0, 550_000), datetime(2024, 2, 28, tzinfo=UTC), timedelta(days=1),
    b"ab", UUID(int=7), {"a": [1]}, [1, None], [], "abcd", "a\x00b", object(),
)  # fmt: skip
_CASTS = ("", "::VARCHAR", " :: text", "::INTEGER", "::bigint", "::boolean", "::double precision", "::date",
          "::timestamp without time zone", "::timestamptz", "::jsonb", "::varchar(2)", "::numeric", "::int[]",
          "::numeric(3,1)")  # fmt: skip
#: The types of columns to which casts are tried.
_CAST = ("integer", "double precision", "numeric(5, 2)", "varchar(3)", "timestamptz", "jsonb")


def _type(text: str) -> Any:
    cursor = TokenCursor(text, tuple(one for one in tokens_of(text)[:-1]), len(text))
    return column_type(cursor)


def _bound(text: str, target: RelationType, params: Sequence[object] = ()) -> object:
    (insert,) = parse(text)
    assert isinstance(insert, Insert)
    try:
        found = bind_insert(insert, target, NO_NAMES, params=params)
    except Error as error:
        return error.sqlstate, error.message, error.position
    return found.relation, found.relation_type


@pytest.mark.parametrize("type_", _TYPES)
def test_literals_become_what_they_become_one_by_one(type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = RelationType((Column("a", _type(type_)), Column("b", _type("integer"))))
    texts = [f"INSERT INTO t VALUES ({one} , 7),\n( NULL,-8)" for one in _LITERALS]
    directly = [_bound(one, target) for one in texts]
    monkeypatch.setattr(ConstantRows, "of", lambda *_: None)
    for text, one in zip(texts, directly, strict=True):
        assert repr(one) == repr(_bound(text, target)), text


@pytest.mark.parametrize("type_", _TYPES)
def test_parameters_become_what_they_become_one_by_one(type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = RelationType((Column("a", _type(type_)), Column("b", _type("integer"))))
    values = [*_VALUES, *(one.strip("'") for one in _LITERALS)]
    each = [(cast, one) for i, cast in enumerate(_CASTS[1:]) for one in values[i % 4 :: 4]] if type_ in _CAST else []
    each += [("", one) for one in values]
    given = [(f"INSERT INTO t VALUES (?{cast}, ?), ( NULL,-8)", [one, 7]) for cast, one in each]
    given += [("INSERT INTO t VALUES (?, ?)", [1])]
    directly = [_bound(text, target, params) for text, params in given]
    monkeypatch.setattr(ConstantRows, "of", lambda *_: None)
    for (text, params), one in zip(given, directly, strict=True):
        assert repr(one) == repr(_bound(text, target, params)), (text, params)


@pytest.mark.parametrize(
    "text",
    ["VALUES (1, 2), (3)", "VALUES (1 + 1, 2)", "VALUES ('a' 'b', 2)", "VALUES (1, DEFAULT)", "SELECT 1, 2",
     "VALUES (1, 2) -- (3, 4)", "VALUES (1, 2), (3, 4) LIMIT 1", "VALUES (1, 2, 3)", "VALUES (1a, 2)", "VALUES ()",
     "VALUES (E'a', 2)", "VALUES (truer, 2)", "VALUES (1, 2", "VALUES (?::varchar(3), 2)", "VALUES (?::int[], 2)",
     "VALUES (?::text::int, 2)", "VALUES (?::s.text, 2)", "VALUES (? + 1, 2)", "VALUES (?::integers, 2)"],
)  # fmt: skip
def test_what_is_more_than_plain_literals_is_bound_as_any_query(text: str) -> None:
    columns = [Column("a", _type("text")), Column("b", _type("integer"))]
    found = ConstantRows.of(text)
    assert found is None or found.assigned(columns, [1]) is None


def test_many_rows_with_documents_take_time_by_their_number() -> None:
    columns = [Column("a", _type("integer")), Column("b", _type("json"))]

    def seconds(rows: int) -> float:
        text = "VALUES " + ",".join(f'({i}, \'{{"a": [{i}, "x"]}}\')' for i in range(rows))
        before = time.process_time()
        given = ConstantRows.of(text)
        assert given is not None
        found = given.assigned(columns)
        assert found is not None
        assert len(found.rows) == rows
        return time.process_time() - before

    assert exponent(seconds, (1_000, 16_000), times=2) < 1.4


def test_many_parameters_take_time_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    target = RelationType((Column("a", _type("integer")), Column("b", _type("text"))))

    def seconds(rows: int) -> float:
        params = [one for i in range(rows) for one in (i, f"name {i}")]
        before = time.process_time()
        found = _bound("INSERT INTO t VALUES " + ",".join(["(?, ?)"] * rows), target, params)
        assert isinstance(found, tuple)
        assert len(found) == 2
        return time.process_time() - before

    assert exponent(seconds, (1_000, 16_000), times=2) < 1.4
    monkeypatch.setattr(ConstantRows, "of", lambda *_: None)
    assert exponent(seconds, (250, 2_000), times=1) < 1.4


def test_what_stands_alone_in_a_list_is_parsed_as_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = (
        "SELECT f(1, 'a', ?, NULL), (1), ((?)), ('a' , 'b'), x IN (1, ?, 'a'), ARRAY[1, ?, NULL], cast(? AS int)",
        "SELECT * FROM (VALUES (?, 1, 'a'), (NULL, 2, ?)) AS v (a, b, c) WHERE a IN (?) ORDER BY 1, 2 LIMIT ?",
        "VALUES ('a'\n'b', ?), (DEFAULT, NULL)",
        "SELECT ?::int, ?, 'a' AS b, count(?), sum(1) OVER (PARTITION BY 1, ?), (1e4, .5, 5., U&'a', E'a\\n')",
        "SELECT extract(year FROM ?), interval '1', date '2020-01-01', (?)[1], nullif(?, 1), coalesce(?)",
    )

    def parsed() -> list[object]:
        trees = [parse_body(SqlText(one)).root for one in texts]
        return [[(repr(node), dict(node.meta)) for node in one.walk()] for one in trees]

    alone = parsed()
    monkeypatch.setattr(body_parser, "_ALONE", ())
    assert parsed() == alone
