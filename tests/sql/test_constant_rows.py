"""VALUES of plain literals become the rows that they become one by one, and are read in time by their length."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mz_dagster.errors import Error
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.sql import Insert, bind_insert, parse, writes
from mz_dagster.sql.binder import NO_NAMES
from mz_dagster.sql.constant_rows import constant_rows
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.lexer import tokens_of
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


def _type(text: str) -> Any:
    cursor = TokenCursor(text, tuple(one for one in tokens_of(text)[:-1]), len(text))
    return column_type(cursor)


@pytest.mark.parametrize("type_", _TYPES)
def test_literals_become_what_they_become_one_by_one(type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = RelationType((Column("a", _type(type_)), Column("b", _type("integer"))))

    def bound(literal: str) -> object:
        (insert,) = parse(f"INSERT INTO t VALUES ({literal} , 7),\n( NULL,-8)")
        assert isinstance(insert, Insert)
        try:
            found = bind_insert(insert, target, NO_NAMES)
        except Error as error:
            return error.sqlstate, error.message, error.position
        return found.relation, found.relation_type

    directly = [bound(one) for one in _LITERALS]
    monkeypatch.setattr(writes, "constant_rows", lambda *_: None)
    for literal, one in zip(_LITERALS, directly, strict=True):
        assert repr(one) == repr(bound(literal)), literal


@pytest.mark.parametrize(
    "text",
    ["VALUES (1, 2), (3)", "VALUES (1 + 1, 2)", "VALUES ('a' 'b', 2)", "VALUES (1, DEFAULT)", "SELECT 1, 2",
     "VALUES (1, 2) -- (3, 4)", "VALUES (1, 2), (3, 4) LIMIT 1", "VALUES (1, 2, 3)", "VALUES (1a, 2)", "VALUES ()",
     "VALUES (E'a', 2)", "VALUES (truer, 2)", "VALUES (1, 2"],
)  # fmt: skip
def test_what_is_more_than_plain_literals_is_bound_as_any_query(text: str) -> None:
    columns = [Column("a", _type("text")), Column("b", _type("integer"))]
    assert constant_rows(text, columns) is None


def test_many_rows_with_documents_take_time_by_their_number() -> None:
    columns = [Column("a", _type("integer")), Column("b", _type("json"))]

    def seconds(rows: int) -> float:
        text = "VALUES " + ",".join(f'({i}, \'{{"a": [{i}, "x"]}}\')' for i in range(rows))
        before = time.process_time()
        found = constant_rows(text, columns)
        assert found is not None
        assert len(found.rows) == rows
        return time.process_time() - before

    assert exponent(seconds, (1_000, 16_000), times=2) < 1.4
