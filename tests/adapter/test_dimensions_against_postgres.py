"""Arrays of several dimensions beside PostgreSQL's: literals, functions, comparisons, and what is wrong with them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget, budget_of
from mz_dagster.errors import Error
from mz_dagster.functions import Failure, literal_of
from mz_dagster.functions.cell_text import cell_text
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import INT4, TEXT, dimensioned
from tests.postgres_server import Postgres

_LITERALS = (
    "{{1,2},{3,4}}",
    "{{1,2},{3,4}",
    "{{1,2},{3}}",
    "{{1},2}",
    "{1,{2}}",
    "{{},{}}",
    "{{}}",
    "{ { 1 , NULL } ,{ 3,4} } ",
    "[0:1]={1,2}",
    "[0:1]={1,2,3}",
    "[1:2]={1,2}",
    "[-1:0][2:3]={{1,2},{3,4}}",
    "[2:1]={1}",
    "[1:0]={}",
    "[2]={1,2}",
    "[1:2]{1,2}",
    " [ 1 : 2 ] = {1,2}",
    " [1:2] [1:1] = { {1},{2} }",
    "[1:1]={{1}}",
    "[1:1][1:1]={1}",
    "{{1,2},{3,4}}x",
    "{{{{{{1}}}}}}",
    "{{{{{{{1}}}}}}}",
    "[2147483647:2147483647]={1}",
    "[a:b]={1}",
    "[1:2",
    "[]={1}",
    '{{"1","2"},{3,4}}',
    "{{1,2},{3,4},}",
    "{{1 2}}",
    "{{x}}",
    "[1:1][1:1][1:1][1:1][1:1][1:1][1:1]={1}",
    "{{1,2},{3,4}}{",
    "[+1:+2]={1,2}",
    "[1:]={1}",
    "{,}",
    "{{,}}",
    "[-2147483648:-2147483647]={1,2}",
)
_A = "'{{1,2},{3,4}}'::int[]"
_B = "'[0:1][-1:1]={{1,2,3},{4,NULL,6}}'::int[]"
_C = "'[0:2]={5,6,7}'::int[]"
_E = "'{}'::int[][]"
_N = "NULL::int[][]"
_SOME = (_B, _C, _E, "'{{{1},{2}},{{3},{4}}}'::int[]")
_PAIRED = (_A, _B, _C, _N)

EXPRESSIONS = (
    *(f"'{one}'::int[]" for one in _LITERALS),
    *(f"'{one}'::int[][]" for one in _LITERALS[:4]),
    *(f"'{one}'::text::int[][]" for one in _LITERALS[:4]),
    """'{{a,"b c"},{"",NULL}}'::text[]""",
    """'{{"{","}"},{"\\"","\\\\"}}'::text[]""",
    "'{{1.5,NaN},{NULL,-0}}'::float8[]",
    "'{{1.50,2},{3,4}}'::numeric(9,2)[]",
    "'{{2020-01-01},{infinity}}'::date[]",
    "'{{t,f}}'::bool[]",
    "'{{1 mon,1 day}}'::interval[]",
    "ARRAY[[1,2],[3,4]]",
    "ARRAY[[1,2],[3]]",
    "ARRAY[[[1],[2]],[[3],[4]]]",
    "ARRAY[ARRAY[1,2],'{3,4}']",
    "ARRAY[ARRAY[1,2],NULL]",
    "ARRAY['{1,2}'::int[],'{}'::int[]]",
    "ARRAY['{}'::int[],'{}'::int[]]",
    "ARRAY[[1.5],[2.5]]",
    "ARRAY[[1],[2.5]] = ARRAY[[1.0],[2.5]]",
    "ARRAY[1,ARRAY[2]]",
    "ARRAY[['a'],['b']]",
    "ARRAY[[1,2],[3,4]]::text[]",
    "ARRAY[[1,2],[3,4]]::int[][]",
    "ARRAY[1,2]::int[][]",
    "ARRAY[]::int[][]",
    "'{{1}}'::int[2][2]",
    "(ARRAY[1.5, 2])::numeric(9,1)[3]",
    "(ARRAY[[1.5, 2]]::int[1][1]::text[2])[1][2]",
    "CAST('{1}' AS int)[1]",
    "ARRAY[['1'],['2']]::int[]",
    f"ARRAY[{_C},{_C}]",
    f"ARRAY[{_A},{_A}]",
    "ARRAY[[[[[[[1]]]]]]]",
    f"ARRAY[{_C},'{{1,2,3}}'::int[]]",
    *(f"array_dims({one})" for one in _SOME),
    *(f"array_ndims({one})" for one in _SOME),
    *(f"cardinality({one})" for one in _SOME),
    *(
        f"{f}({one}, {n})"
        for f in ("array_length", "array_lower", "array_upper")
        for one in _SOME
        for n in (0, 1, 2, 3)
    ),
    *(f"({one})[1]" for one in _SOME),
    *(f"({one})[{i}][{j}]" for one in _SOME for i in (0, 1, 2) for j in (-1, 1, 2, 3)),
    *(
        f"({one})[{s}]"
        for one in _SOME
        for s in (
            "1:1",
            ":1",
            "0:",
            ":",
            "2:1",
            "1:1][1:1",
            "1:1][2",
            "2][2:3",
            ":][:2",
            "1:2][1:2][1:2",
            "NULL:1",
            "1:NULL",
            "NULL",
            "1][NULL",
        )
    ),
    f"({_A})[1][1][1][1][1][1][1]",
    f"({_A})['1'][2]",
    f"(({_A})[1:1])[1][2]",
    *(f"{a} {o} {b}" for a in _PAIRED for b in _PAIRED for o in ("||", "=", "<", "<=", "<>", "@>", "&&")),
    f"{_C} || 8",
    f"8 || {_C}",
    f"{_A} || 8",
    f"8 || {_A}",
    f"{_E} || 8",
    f"{_N} || 8",
    f"8 || {_N}",
    f"{_A} || '{{5,6}}'",
    f"'{{5,6}}' || {_A}",
    f"{_A} || NULL",
    f"NULL::int || {_C}",
    f"array_append({_C}, 1)",
    f"array_prepend(1, {_C})",
    f"array_cat({_A}, ARRAY[5,6])",
    f"array_cat(ARRAY[5,6], {_A})",
    "array_append('[2147483647:2147483646]={}'::int[][], 1)",
    "array_append('[2147483646:2147483646]={1}'::int[], 1)",
    "array_prepend(1, '[-2147483648:-2147483648]={1}'::int[])",
    *(f"array_position({one}, {v})" for one in _SOME for v in ("2", "6", "NULL::int")),
    f"array_position({_C}, 6, 1)",
    f"array_position({_C}, 6, 2)",
    f"array_position({_C}, 6, NULL)",
    f"array_position({_C}, 6, -5)",
    *(f"array_positions({one}, 6)" for one in _SOME),
    *(f"array_remove({one}, 6)" for one in _SOME),
    "array_remove('[5:6]={1,1}'::int[], 1)",
    *(f"array_replace({one}, 3, 9)" for one in _SOME),
    f"array_replace({_B}, NULL, 0)",
    *(f"array_to_string({one}, ',', '*')" for one in _SOME),
    *(f"trim_array({one}, 1)" for one in _SOME),
    f"trim_array({_A}, 3)",
    f"trim_array({_A}, -1)",
    *(f"(SELECT array_agg(g) FROM generate_subscripts({one}, {n}) AS x(g))" for one in _SOME for n in (0, 1, 2, 3)),
    f"(SELECT array_agg(g ORDER BY n) FROM generate_subscripts({_B}, 2, true) WITH ORDINALITY AS x(g, n))",
    *(f"(SELECT array_agg(g ORDER BY n) FROM unnest({one}) WITH ORDINALITY AS x(g, n))" for one in _SOME),
    *(f"to_json({one})" for one in _SOME),
    *(f"to_jsonb({one})" for one in _SOME),
    f"array_to_json({_A}, true)",
    """to_json('{{a,"b\\"c"},{NULL,d}}'::text[])""",
    "to_jsonb('{{1.50,2},{NaN,4}}'::numeric[])",
    "to_jsonb('{{2020-01-01},{2021-01-01}}'::timestamp[])",
    "to_json('{{1.50,2},{NaN,4}}'::float8[])",
    f"jsonb_build_array({_A}, 1)",
    f"json_build_object('a', {_A})",
    *(f"{v} = ANY ({one})" for one in _SOME for v in ("4", "9", "NULL::int")),
    *(f"{v} < ALL ({one})" for one in _SOME for v in ("0", "4")),
    "4 = ANY (ARRAY[[1,2],[3,4]])",
    "4 = ANY ('{{1,2},{3,4}}')",
    "3 <> ALL (ARRAY[[1,2],[3,4]]::bigint[])",
    "array_fill(7, ARRAY[2,3])",
    "array_fill(7, ARRAY[2,3], ARRAY[0,5])",
    "array_fill(7, ARRAY[2], ARRAY[5])",
    "array_fill(NULL::int, ARRAY[1,2])",
    "array_fill(7, '{2,2}')",
    "array_fill('x'::text, ARRAY[2,0])",
    "array_fill(7, ARRAY[2,-1])",
    "array_fill(7, ARRAY[2,2], ARRAY[1])",
    "array_fill(7, NULL, ARRAY[1])",
    "array_fill(7, ARRAY[1], NULL)",
    "array_fill(7, ARRAY[2,NULL])",
    "array_fill(7, ARRAY[1,1,1,1,1,1,1])",
    "array_fill(7, ARRAY[[1,2],[3,4]])",
    "array_fill(7, ARRAY[100000,100000])",
    "array_fill(7, ARRAY[2,2], ARRAY[1,2147483647])",
    "array_fill(7, '{}', '{}')",
    "array_fill(7, ARRAY[1], ARRAY[NULL::int])",
    f"{_A}::bigint[]",
    f"{_A}::text[]",
    f"{_B}::numeric[]",
    "'{{1,x}}'::text[]::int[][]",
    f"{_A}::text",
    f"{_B}::text",
    "ARRAY[[1.4,1.6]]::int[]",
    f"concat({_A}, 'x')",
    f"{_A} IS NULL",
    f"{_N} IS NULL",
    f"{_N} IS DISTINCT FROM {_A}",
    f"{_A} IS NOT DISTINCT FROM {_A}",
    f"coalesce({_N}, {_C})",
    f"coalesce({_N}, '{{1}}'::int[])",
    f"greatest({_A}, {_B}, {_C})",
    f"least({_A}, {_B}, {_C}, {_E})",
    f"CASE WHEN true THEN {_A} ELSE '{{9}}' END",
    f"nullif({_A}, {_A})",
    f"{_A} IN ({_B}, {_A})",
    f"ROW({_A}, 1)",
    f"pg_typeof({_A})",
    f"num_nulls(VARIADIC {_B})",
    f"concat_ws('-', VARIADIC {_B})",
    "width_bucket(5, '[0:1]={1,4}'::int[])",
    f"width_bucket(5, {_A})",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]), (ARRAY[3,4])) AS v(x))",
    "(SELECT array_agg(x ORDER BY x DESC) FROM (VALUES (ARRAY[1,2]), (ARRAY[3,4])) AS v(x))",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]), (NULL)) AS v(x))",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]), (ARRAY[3])) AS v(x))",
    "(SELECT array_agg(x) FROM (VALUES ('{}'::int[])) AS v(x))",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2])) AS v(x) WHERE false)",
    f"(SELECT array_agg(x) FROM (VALUES ({_A}), ({_A})) AS v(x))",
    "(SELECT array_agg(DISTINCT x) FROM (VALUES (ARRAY[3,4]), (ARRAY[1,2]), (ARRAY[3,4])) AS v(x))",
    "ARRAY(SELECT x FROM (VALUES (ARRAY[1,2]), (ARRAY[3,4])) AS v(x) ORDER BY x DESC)",
    "(SELECT array_agg(DISTINCT x ORDER BY x DESC) FROM (VALUES (ARRAY[3,4]), (ARRAY[5,6]), (ARRAY[3,4])) AS v(x))",
    "ARRAY(SELECT ARRAY[1] WHERE false)",
    f"ARRAY(SELECT {_A})",
    f"(SELECT count(DISTINCT x) FROM (VALUES ({_A}), ({_B}), ({_A}), ({_C})) AS v(x))",
    f"(SELECT string_agg(x::text, ' ' ORDER BY x)"
    f" FROM (VALUES ({_A}), ({_B}), ({_A}), ({_C}), ({_E}), ({_N}), "
    f"('{{1,2,3,4}}'::int[]), ('{{{{1,NULL}}}}'::int[])) AS v(x))",
    f"(SELECT string_agg(x::text, ' ') FROM (SELECT x"
    f" FROM (VALUES ({_A}), ({_B}), ({_A}), ({_C})) AS v(x) GROUP BY x ORDER BY x DESC) AS w)",
    f"(SELECT json_agg(x ORDER BY x) FROM (VALUES ({_A}), ({_B})) AS v(x))",
    f"(SELECT jsonb_agg(x ORDER BY x) FROM (VALUES ({_A}), ({_B})) AS v(x))",
    "'{{-0,NaN}}'::float8[] = '{{0,NaN}}'::float8[]",
    f"{_A} = '{{{{1,2}},{{3,4}}}}'",
    "ARRAY[1,2] = '{{1,2}}'",
)


STATEMENTS = (
    "CREATE TABLE t (id int PRIMARY KEY, a int[][], b text[3][2], c float8[][])",
    "INSERT INTO t VALUES (1, '{{1,2},{3,4}}', '{{a,\"b c\"}}', '{{-0,NaN},{1.5,NULL}}'),"
    " (2, '[0:1]={5,6}', NULL, '{}'),"
    " (3, ARRAY[1,2], ARRAY[['x'],['y']], '{{0,NaN},{1.5,NULL}}'), (4, '{{1,2},{3,4}}', '{}', NULL),"
    " (5, NULL, '{{NULL}}', '{1}')",
    "INSERT INTO t (id, a) SELECT 6, ARRAY[a[1:1], a[2:2]] FROM t WHERE id = 1",
    "SELECT * FROM t ORDER BY id",
    "SELECT id, a FROM t ORDER BY a, id",
    "SELECT id, a FROM t ORDER BY a DESC NULLS LAST, id DESC",
    "SELECT id, c FROM t ORDER BY c, id",
    "SELECT a, count(*), min(id) FROM t GROUP BY a ORDER BY a",
    "SELECT count(DISTINCT c) FROM t",
    "SELECT DISTINCT a FROM t ORDER BY a LIMIT 3",
    "SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.a = y.a AND x.id < y.id ORDER BY 1, 2",
    "SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.c = y.c AND x.id < y.id ORDER BY 1, 2",
    "SELECT id FROM t WHERE a = '{{1,2},{3,4}}' ORDER BY id",
    "SELECT id FROM t WHERE a IN ('{{1,2},{3,4}}', '{1,2}') ORDER BY id",
    "SELECT id FROM t WHERE 3 = ANY (a) ORDER BY id",
    "SELECT id, u FROM t, unnest(a) AS x(u) ORDER BY 1, 2",
    "SELECT id, a[1][2], a[1], b[1][1], a[1:1], array_dims(a), array_upper(a, 1), cardinality(b) FROM t ORDER BY id",
    "SELECT id, a || a, a || 9, array_append(NULL, 1) FROM t WHERE id IN (2, 3) ORDER BY id",
    "SELECT a FROM t WHERE id < 3 UNION SELECT '{{1,2},{3,4}}'::int[] ORDER BY 1",
    "SELECT a FROM t EXCEPT SELECT a FROM t WHERE id = 1 ORDER BY 1",
    "SELECT array_agg(a[:2] ORDER BY id) FROM t WHERE id IN (1, 4)",
    "SELECT row_to_json(t)::text FROM t ORDER BY id",
    "SELECT row_number() OVER (PARTITION BY a ORDER BY id), rank() OVER (ORDER BY a), id FROM t ORDER BY id",
    "SELECT max(id) FROM t GROUP BY b ORDER BY 1",
    "SELECT id, a::text[] || b FROM t WHERE id IN (1, 4) ORDER BY id",
    "UPDATE t SET a = a || '{7,8}' WHERE id = 1",
    "SELECT a FROM t WHERE id = 1",
    "DELETE FROM t WHERE a = '{{1,2},{3,4}}'",
    "SELECT id, a FROM t ORDER BY id",
    "SELECT id, CASE WHEN id = 2 THEN a ELSE '{{0}}' END FROM t ORDER BY id",
    "SELECT attndims, format_type(atttypid, atttypmod) FROM pg_attribute"
    " WHERE attname = 'b' AND attrelid = 't'::regclass",
    "CREATE TABLE r (i interval[][], j jsonb[][], n numeric[][])",
    "INSERT INTO r VALUES ('{{1 mon,1 day}}', '{{1.0}}', '{{1.0,NaN}}'),"
    " ('{{30 days,24:00}}', '{{1.00}}', '{{1.00,NaN}}'),"
    " ('{{1 mon}}', '{{2},{\"[1]\"}}', '[0:0]={2}'), (NULL, '{1}', '{}')",
    "SELECT count(*) FROM r GROUP BY i",
    "SELECT count(*) FROM r GROUP BY j",
    "SELECT count(DISTINCT n), count(DISTINCT j) FROM r",
    "SELECT i::text FROM r ORDER BY j, n",
    "SELECT x.i::text, y.i::text FROM r AS x JOIN r AS y ON x.n = y.n AND x.j = y.j",
    "SELECT count(*) FROM (SELECT n FROM r WHERE i = '{{1 mon,1 day}}' UNION SELECT n FROM r WHERE i IS NOT NULL) AS x",
    "CREATE TABLE s (v varchar(2)[], w varchar(2)[][])",
    "INSERT INTO s VALUES ('{abc}')",
    "INSERT INTO s (w) VALUES ('{{abc}}')",
    "INSERT INTO s VALUES ('{ab}', '{{ab},{\"c   \"}}')",
    "SELECT v::text, w::text, '{{abc}}'::varchar(2)[] FROM s",
    "SELECT data_type, udt_name FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position",
)
VIEWS = (
    "CREATE MATERIALIZED VIEW grouped AS SELECT a, count(*) AS n, max(id) AS m FROM t GROUP BY a",
    "CREATE MATERIALIZED VIEW joined AS SELECT x.id AS x, y.id AS y, x.a FROM t AS x JOIN t AS y ON x.a = y.a",
    "CREATE MATERIALIZED VIEW shown AS SELECT id, a::text AS s, a[1][2] AS e, a || a AS d,"
    " array_to_json(a)::text AS j, a < '{{2}}' AS l,"
    " greatest(a, '{{1,2},{3,3}}') AS g, array_replace(a, 3, NULL) AS r FROM t",
    "CREATE MATERIALIZED VIEW elements AS SELECT id, u FROM t, unnest(a) AS x(u)",
    "CREATE MATERIALIZED VIEW stacked AS SELECT n, array_agg(a ORDER BY id) AS s"
    " FROM (SELECT id, a, cardinality(a) AS n FROM t WHERE"
    " a IS NOT NULL AND array_lower(a, 1) = 1 AND array_ndims(a) = 2) AS x GROUP BY n",
    "CREATE MATERIALIZED VIEW first AS SELECT DISTINCT ON (id % 2) id, a FROM t ORDER BY id % 2, a DESC, id",
    "CREATE MATERIALIZED VIEW floats AS SELECT c, count(*) AS n FROM t GROUP BY c",
    "CREATE MATERIALIZED VIEW ranked AS SELECT id, rank() OVER (ORDER BY a) AS r FROM t",
)


def _asked(connection: Connection, expressions: Sequence[str]) -> Iterator[str | None]:
    """Yields what `Postgres.attempt` says of expressions: those that fail one by one, others many at a time."""
    for start in range(0, len(expressions), 40):
        chunk = expressions[start : start + 40]
        try:
            (row,) = connection.execute(f"SELECT {', '.join(f'({one})::text' for one in chunk)}").fetchall()
            yield from (None if one is None else f"={one}" for one in row)
        except Error:
            yield from (_alone(connection, one) for one in chunk)


def _alone(connection: Connection, expression: str) -> str | None:
    try:
        ((found,),) = connection.execute(f"SELECT ({expression})::text").fetchall()
    except Error as error:
        return f"!{error.sqlstate} {error.message}"
    return None if found is None else f"={found}"


def test_they_are_what_postgres_has(sparkless: Connection, postgres: Postgres) -> None:
    answers = dict(zip(EXPRESSIONS, postgres.attempt(EXPRESSIONS), strict=True))
    good = [one for one, answer in answers.items() if not str(answer).startswith("!")]
    of_errors = [*{answer: one for one, answer in answers.items() if one not in good}.values()]
    found = zip([*good, *of_errors], [*_asked(sparkless, good), *_asked(sparkless, of_errors)], strict=True)
    wrong = [f"{one}: {mine!r}, PostgreSQL {answers[one]!r}" for one, mine in found if mine != answers[one]]
    assert not wrong, "\n".join(wrong)


def test_random_literals_are_read_as_postgres_reads_them(postgres: Postgres) -> None:
    source = random.Random(7)
    texts = [*dict.fromkeys(_literal(source) for _ in range(2000))]
    # PostgreSQL 15 reads braces of different depths as an empty array, or leaves elements out.
    texts = [one for one in texts if not _has_uneven_braces(one)]
    for type_ in (TEXT, INT4):
        for text, theirs in zip(texts, postgres.attempt([f"'{one}'::{type_}[]" for one in texts]), strict=True):
            found = literal_of(text, dimensioned(type_))
            shown = isinstance(found, Literal) and cell_text(found.value, found.type)
            assert theirs == (f"!{found.sqlstate} {found.message}" if isinstance(found, Failure) else f"={shown}"), text


def _literal(source: random.Random) -> str:
    """Returns what is an array, or nearly one."""
    if source.random() < 0.3:
        parts = ("{", "}", "{", "}", ",", ",", "1", "2", " ", '"', "\\", "N", "NULL", "[", "]", ":", "=", "0:1")
        return "".join(source.choice(parts) for _ in range(source.randrange(1, 14)))
    text = _braces(source, source.randrange(1, 4))
    if source.random() < 0.4:
        bounds = (f"[{source.choice(('', '-1:', '0:', '1:', '2:'))}{source.randrange(4)}]" for _ in range(2))
        text = "".join([*bounds][: source.randrange(1, 3)]) + source.choice(("=", " = ", "")) + text
    if source.random() < 0.3:
        at = source.randrange(len(text))
        text = text[:at] + source.choice(("", "{", "}", ",", '"', " ", "\\")) + text[at + 1 :]
    return text


def _braces(source: random.Random, depth: int) -> str:
    if depth == 0:
        return source.choice(("1", "2", "NULL", "null", '"1"', "3 ", " 4", '""', '"a b"', "x\\,y"))
    items = [_braces(source, depth - 1) for _ in range(source.randrange(1, 3))]
    return "{" + ",".join(items) + source.choice(("", "", " ")) + "}"


def _has_uneven_braces(text: str) -> bool:
    depths, depth = set(), 0
    for one, following in pairwise(text):
        depth += (one == "{") - (one == "}")
        if one not in "{}" and following in ",}":
            depths.add(depth)
    return len(depths) > 1


def _rows(connection: Any, sql: str) -> list[str] | str:
    try:
        cursor = connection.execute(sql)
        return [] if cursor.description is None else sorted(map(repr, cursor.fetchall()))
    except Error as error:
        return f"{error.sqlstate} {error.message}"
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary}"


@pytest.mark.deep
def test_tables_and_views_of_them_are_what_postgres_has(sparkless: Connection, postgres: Postgres) -> None:
    _compare(sparkless, postgres)


@pytest.mark.deep
def test_spark_has_the_same(connection: Connection, postgres: Postgres) -> None:
    with budget_of(Budget.spark_alone()):
        _compare(connection, postgres)


def _compare(connection: Connection, postgres: Postgres) -> None:
    wrong = []
    with postgres.new_database().connect() as client:
        for sql in (STATEMENTS[0], *VIEWS, *STATEMENTS[1:], *(f"SELECT * FROM {one.split()[3]}" for one in VIEWS)):
            mine, theirs = _rows(connection, sql), _rows(client, sql)
            if sql.startswith(("INSERT", "UPDATE", "DELETE")):
                for one in VIEWS:
                    client.execute(f"REFRESH MATERIALIZED VIEW {one.split()[3]}".encode())
            if mine != theirs:
                wrong.append(f"{sql}\n  {mine}\n  PostgreSQL: {theirs}")
    assert not wrong, "\n".join(wrong)


def test_they_are_lists_in_lists_in_python(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a int[][], b text[][], c timestamptz[][], d numeric[][])")
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    row = ([[1, 2], [3, None]], [["a"], ['b "c"']], [[moment]], [[Decimal("1.50")], [Decimal("NaN")]])
    sparkless.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (*row[:3], [[Decimal("1.50")], [None]]))
    sparkless.execute("UPDATE t SET d = '{{1.50},{NaN}}'")
    (found,) = sparkless.execute("SELECT * FROM t").fetchall()
    assert found[:3] == row[:3]
    assert str(found[3]) == str(row[3])
    ((bounds,),) = sparkless.execute("SELECT '[0:1]={5,6}'::int[]").fetchall()
    assert bounds == [5, 6]
    assert sparkless.execute("SELECT array_dims(?)", [bounds]).fetchall() == [("[0:1]",)]
    with pytest.raises(Error, match="matching dimensions"):
        sparkless.execute("SELECT ?", [[[1], [2, 3]]])
    sparkless.execute("SET TIME ZONE 'Asia/Kolkata'")
    ((zoned,),) = sparkless.execute("SELECT c FROM t").fetchall()
    assert zoned == [[moment]]
    assert zoned[0][0].hour == 5
    table = sparkless.execute("SELECT a, d FROM t").fetch_record_batch().read_all()
    assert table.column("a").to_pylist() == [{"elements": [1, 2, 3, None], "lengths": [2, 2], "lowers": [1, 1]}]


def test_what_a_list_cannot_hold_is_refused(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE t (a int[], t text)")
    for sql in (
        "INSERT INTO t VALUES ('{{1,2}}')",
        "INSERT INTO t VALUES ('[0:1]={1,2}')",
        "INSERT INTO t (a) SELECT ARRAY[ARRAY[x]] FROM generate_series(1, 2) AS g(x)",
        "SELECT array_fill(1, array_agg(x)) FROM generate_series(2, 3) AS g(x)",
        "SELECT t::int[] FROM (VALUES ('{{1}}')) AS v(t)",
        "SELECT * FROM jsonb_to_record('{\"a\": [[1]]}') AS t (a int[])",
    ):
        with pytest.raises(Error, match="dimension") as caught:
            sparkless.execute(sql).fetchall()
        assert caught.value.sqlstate == "0A000", sql
    sparkless.execute("INSERT INTO t SELECT '[1:1][1:2]={{1,2}}'::int[][] || '{}', '' WHERE false")
    sparkless.execute(
        "INSERT INTO t (a) SELECT CASE WHEN x > 0 THEN '{7}'::int[][] END FROM generate_series(1, 1) AS g(x)"
    )
    assert sparkless.execute("SELECT a FROM t").fetchall() == [([7],)]
