"""Records of JSON with columns of array types beside PostgreSQL's, through a session, in this process and on Spark."""

from __future__ import annotations

import re
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


_ROWS = (
    "CREATE TABLE t (a int, b text, c int[])",
    "INSERT INTO t VALUES (1, 'x', ARRAY[1]), (2, NULL, NULL), (NULL, 'z', ARRAY[3, 4])",
    "CREATE TABLE u (a int, b varchar(3), c int)",
    "CREATE TABLE x (a int)",
    "INSERT INTO x VALUES (1), (5)",
    "CREATE TABLE w (v varchar(3)[], d varchar(3)[][])",
    "CREATE TABLE long (v text[])",
    "INSERT INTO long VALUES (ARRAY['abcd'])",
)
#: Without `SELECT`, and `json_` or `jsonb_` before the functions' names.
_BASES = (
    'r.* FROM t, populate_record(t, \'{"b": "x"}\') AS r',
    "r.* FROM t, populate_record(t.*, '{\"b\": null}') AS r",
    "r.* FROM t, populate_record(t, NULL) AS r",
    'r.* FROM t AS s (p, q), populate_record(s, \'{"b": "n", "q": 1}\') AS r',
    'r.* FROM t, populate_recordset(t, \'[{}, {"a": 7}, {"c": [9], "b": null}]\') AS r',
    "r.* FROM t, populate_recordset(t, NULL) AS r",
    'r.* FROM x LEFT JOIN t ON t.a = x.a, populate_record(t, \'{"b": "y"}\') AS r',
    "(SELECT r.b FROM populate_record(t, '{\"a\": 1}') r) FROM t",
    "* FROM populate_record((1, 'k', ARRAY[2])::t, '{\"a\": 5}')",
    "* FROM populate_record(CAST(ROW(1, 'k', NULL) AS t), '{\"a\": 5}')",
    "* FROM populate_record(ROW(1, 2)::t, '{\"a\": 5}')",
    "* FROM populate_record(ROW(1, 'long', NULL)::u, '{\"a\": 5}')",
    "* FROM populate_record(ROW('x', 'k', NULL)::t, '{\"a\": 5}')",
    "* FROM populate_record(ROW(1, 2), '{\"f1\": 0}')",
    "* FROM populate_record(ROW(1, 2), '{\"f1\": 0}') AS r (a int, b int)",
    "* FROM populate_record(ROW(1, 2), '{\"a\": 0}') AS r (a int, b text)",
    "* FROM populate_record(ROW(1, 'x'), '{\"f2\": \"y\"}') AS r (a int, b text)",
    "* FROM populate_record(ROW(1, 2), '{}') AS r (a int)",
    "* FROM populate_recordset(ROW(1, 2), '[{\"a\": 0}, {}]') AS r (a int, b int)",
    "* FROM populate_record(NULL::record, '{\"a\": 0}') AS r (a int, b text)",
    "* FROM populate_record(NULL::record, '{\"a\": 0}')",
    "* FROM populate_record(NULL::t, '{\"a\": 0}') AS r (a int)",
    "* FROM populate_record(NULL, '{}')",
    "* FROM populate_record(NULL::int, '{}')",
    "populate_record(1, '{}')",
    "* FROM (SELECT 1 AS a) s, populate_record(s, '{\"a\": 0}') AS r",
    '(populate_record(t, \'{"b": "x"}\')).* FROM t',
    '(populate_record(NULL::t, \'{"b": "x"}\')).b',
    "(populate_record(t, NULL)).b FROM t",
    "populate_record(NULL::t, NULL) IS NULL",
    'row_to_json(populate_record(NULL::t, \'{"b": "x"}\'))::text',
    "(populate_record(ROW(1, 'q', NULL)::t, '{\"c\": [1, 2]}')).*",
    "(populate_record(ROW(1, 'q', NULL)::t, NULL)).*",
    'sum((populate_record(t, \'{"b": "x"}\')).a) FROM t',
    "a FROM t WHERE (populate_record(t, '{\"a\": 2}')).a = 2",
    # Strings of a length, which are not cut off.
    'v::text FROM to_record(\'{"v": ["abc", null, 1]}\') AS r (v varchar(3)[])',
    'v::text FROM to_record(\'{"v": ["abcd"]}\') AS r (v varchar(3)[])',
    'v::text FROM to_record(\'{"v": ["abc   "]}\') AS r (v varchar(3)[])',
    'v::text FROM to_record(\'{"v": ["ab"]}\') AS r (v char(3)[])',
    'v::text FROM to_record(\'{"v": ["abcd"]}\') AS r (v char(3)[])',
    'v::text FROM to_record(\'{"v": "{abc,NULL}"}\') AS r (v varchar(3)[])',
    'v::text FROM to_record(\'{"v": "{abcd}"}\') AS r (v varchar(3)[])',
    'v::text FROM to_record(\'{"v": [["abc"], ["d"]]}\') AS r (v varchar(3)[][])',
    'v::text FROM to_record(\'{"v": [["abcd"], ["d"]]}\') AS r (v varchar(3)[][])',
    '* FROM populate_recordset(NULL::w, \'[{"v": ["abcd"]}]\')',
    '* FROM populate_recordset(NULL::w, \'[{"v": ["abc"]}, {}]\')',
)
_ASSIGNED = (
    "INSERT INTO w (v) SELECT v FROM long",
    "INSERT INTO w (v) VALUES (ARRAY['abcd'])",
    "INSERT INTO w (v) VALUES ('{abcd}')",
    "INSERT INTO w (v) VALUES (ARRAY['abc  ', 'd'])",
    "INSERT INTO w (v) SELECT v::varchar(3)[] FROM long",
    "INSERT INTO w (d) SELECT ARRAY[v, v] FROM long",
    "UPDATE w SET v = ARRAY['1234']",
)


def _found(execute: Any, queries: Sequence[str], failure: type[Exception]) -> list[Any]:
    found: list[Any] = []
    for query in queries:
        try:
            found.append(sorted(execute(query).fetchall(), key=repr))
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
    assert not (different := _differences(queries, found, wanted)), "\n".join(different)


def _differences(queries: Sequence[str], found: Sequence[Any], wanted: Sequence[Any]) -> list[str]:
    beside = zip(queries, found, wanted, strict=True)
    return [f"{one}: {ours}, in PostgreSQL {theirs}" for one, ours, theirs in beside if ours != theirs]


def test_a_row_has_what_a_document_does_not_say(sparkless: Connection, postgres: Postgres) -> None:
    queries = [
        "SELECT " + re.sub(r"\b(?=(populate|to)_record)", f"{kind}_", one)
        for kind in ("json", "jsonb")
        for one in _BASES
    ]
    with postgres.new_database().connect() as connection:
        for one in _ROWS:
            sparkless.execute(one)
            connection.execute(one)
        wanted = _found(connection.execute, queries, psycopg.Error)
    found = _found(sparkless.execute, queries, Error)
    assert not (different := _differences(queries, found, wanted)), "\n".join(different)


def test_elements_that_are_too_long_are_not_cut_off_by_an_assignment(sparkless: Connection, postgres: Postgres) -> None:
    with postgres.new_database().connect() as connection:
        for one in _ROWS:
            sparkless.execute(one)
            connection.execute(one)
        for one in _ASSIGNED:
            beside = list[str | None]()
            for execute, failure in ((sparkless.execute, Error), (connection.execute, psycopg.Error)):
                try:
                    execute(one)
                    beside.append(None)
                except failure as error:
                    beside.append(error.sqlstate)
            assert beside[0] == beside[1], one
        texts = "SELECT v::text, d::text FROM w"
        assert sorted(sparkless.execute(texts).fetchall(), key=repr) == sorted(
            connection.execute(texts).fetchall(), key=repr
        )
