"""Records of JSON with columns of array types beside PostgreSQL's, through a session, in this process and on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from tests.postgres_server import Postgres

_ARRAYS = (
    "[]",
    '{"i": [1, null, 2], "s": ["a", "b c", 1.50, {"x": [1]}, "q\\"", "NULL", null], "j": ["a", {"b": 1}, null, [2]]}',
    '{"i": "{1,NULL}", "s": [], "v": ["abc"]}',
    '{"i": null, "s": [[]], "d": ["2024-02-29"]}',
    '{"i": ["x"]}',
    '{"i": 1}',
    '{"i": {"a": 1}}',
    '{"v": ["abcd"]}',
    '{"s": [true, [1,  2e1]]}',
    '{"i": [1, [2]]}',
    '{"m": [[1, 2], [3]]}',
    '{"i": "x"}',
    '{"s": "a"}',
    '{"s": [[], [1]]}',
    '{"m": [[1, 2], [3, 4]], "s": "{a,\\"b c\\"}"}',
    '{"m": [[1], 2]}',
)
_COLUMNS = "i int[], s text[], v varchar[], d date[], j jsonb[], m int[][]"


def _found(execute: Any, queries: Sequence[str], failure: type[Exception]) -> list[Any]:
    found: list[Any] = []
    for query in queries:
        try:
            found.append(execute(query).fetchall())
        except failure as error:
            found.append(getattr(error, "sqlstate", None))
    return found


@pytest.mark.parametrize("kind", ["json", "jsonb"])
def test_columns_of_arrays_are_made_as_in_postgres(sparkless: Connection, postgres: Postgres, kind: str) -> None:
    sparkless.execute("CREATE TABLE kept (i int[], s text[], m int[][])")
    queries = [
        f"SELECT i::text, s::text, v::text, d::text, j::text, m::text FROM {kind}_to_record('{one}') AS r ({_COLUMNS})"
        for one in _ARRAYS
    ]
    queries += [
        f"SELECT i::text, s::text, m::text FROM {kind}_populate_recordset(NULL::kept, '[{one}, {{}}]')"
        for one in _ARRAYS[1:4]
    ]
    with postgres.new_database().connect() as connection:
        connection.autocommit = True
        connection.execute("CREATE TABLE kept (i int[], s text[], m int[][])")
        wanted = _found(connection.execute, queries, psycopg.Error)
    found = _found(sparkless.execute, queries, Error)
    beside = zip(queries, found, wanted, strict=True)
    different = [f"{one}: {ours}, in PostgreSQL {theirs}" for one, ours, theirs in beside if ours != theirs]
    assert not different, "\n".join(different)
