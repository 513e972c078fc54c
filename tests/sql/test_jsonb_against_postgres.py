"""Queries over jsonb say what PostgreSQL 15 says; equal values of several representations count as equal everywhere."""

from __future__ import annotations

from tests.postgres_server import Postgres
from tests.sql.against_postgres import differences, script, tables

#: Values of all types; equal ones of several representations, NULLs and duplicates.
_Q = (
    "(VALUES (1, '1.0'::jsonb), (2, '1.00'), (3, '[1, {\"a\": 2.50}]'), (4, '[1.0, {\"a\": 2.5}]'), (5, NULL),"
    " (6, 'null'), (7, '{}'), (8, '[]'), (9, '\"b\"'), (10, '\"aa\"'), (11, NULL), (12, '{\"b\": 1, \"aa\": [2, 3]}'),"
    " (13, 'true'), (14, '10'), (15, '-3e2'), (16, '[]')) AS q (i, j)"
)
#: A document for each row of a table.
_D = (
    "(SELECT id, a, jsonb_build_object('a', a, 'tags', jsonb_build_array(b, c, d), 'x', jsonb_build_object('e', e))"
    " AS j FROM t) AS m"
)

QUERIES = [
    # Operators and their precedence.
    "SELECT (j -> 'a')::text, j ->> 'a', j -> 'tags' ->> 1, j #>> '{x,e}', (j #> '{tags,-1}')::text FROM " + _D,
    "SELECT j ->> 'a' || j ->> 'a', j -> 'a' = '1', j @> '{\"a\": 1}' OR j ? 'b', NOT j ? 'a' FROM " + _D,
    "SELECT upper(j #>> '{tags,1}'), coalesce(j -> 'no', j -> 'a')::text, length((j -> 'tags')::text) FROM " + _D,
    "SELECT (j - 'tags' || '{\"b\": [1]}')::text, (j #- '{tags,0}')::text, j ?| '{b,x}', j ?& '{a,x}' FROM " + _D,
    "SELECT j['tags'][1]::text, j['x']['e'] = to_jsonb(e) FROM " + _D + " JOIN t USING (id)",
    "SELECT (j ->> 'a')::int + 1, (j -> 'a')::int, (j['a'])::numeric(10, 2) FROM " + _D + " WHERE a > 0",
    "SELECT id FROM " + _D + " WHERE j -> 'a' > '1' AND (j -> 'tags' -> 0) IS NOT NULL",
    "SELECT jsonb_typeof(j -> 'a'), jsonb_array_length(j -> 'tags'), jsonb_strip_nulls(j)::text FROM " + _D,
    "SELECT jsonb_set(j, '{tags,1}', to_jsonb(id))::text, jsonb_insert(j, '{tags,0}', 'true')::text FROM " + _D,
    "SELECT jsonb_pretty(j), jsonb_extract_path_text(j, 'x', 'e'), jsonb_extract_path(j, 'tags', '0')::text FROM " + _D,
    "SELECT jsonb_contains(j, '{\"a\": 1}'), jsonb_contained('{}', j), jsonb_exists(j, 'a') FROM " + _D,
    "SELECT jsonb_exists_any(j, '{a}'), jsonb_exists_all(j, '{a,b}'), jsonb_concat(j, '[]')::text FROM " + _D,
    "SELECT jsonb_delete_path(j, '{x,e}')::text FROM " + _D,
    "SELECT jsonb_delete(j, 'a')::text, jsonb_delete(j -> 'tags', 1)::text FROM " + _D,
    "SELECT to_jsonb(t)::text FROM t",
    "SELECT jsonb_build_object('r', ROW(a, c), 'list', ARRAY[a, b], c, d)::text FROM t WHERE c IS NOT NULL",
    "SELECT jsonb_build_object(c, 1)::text FROM t",
    "SELECT jsonb_object(ARRAY['a', c])::text FROM t",
    "SELECT (c::jsonb)::text FROM t WHERE c <> ''",
    "SELECT '{\"a\"' || ': 1}', ('{\"a\"' || ': 1}')::jsonb::text",
    # Equal values.
    "SELECT count(*), min(i) FROM " + _Q + " GROUP BY j",
    "SELECT count(DISTINCT j), count(j) FROM " + _Q,
    "SELECT count(*) FROM (SELECT DISTINCT j FROM " + _Q + ") AS d",
    "SELECT j::text FROM (SELECT DISTINCT j FROM " + _Q + " WHERE i IN (2, 3, 9)) AS d",
    "SELECT j::text, count(*) FROM " + _Q + " WHERE i NOT IN (1, 4) GROUP BY j",
    "SELECT DISTINCT ON (j) i FROM " + _Q + " ORDER BY j, i DESC",
    "SELECT i FROM " + _Q + " ORDER BY j, i",
    "SELECT i, j::text FROM " + _Q + " ORDER BY j DESC NULLS LAST, i",
    "SELECT i FROM (SELECT i FROM " + _Q + " ORDER BY j DESC, i LIMIT 5) AS d",
    "SELECT i, rank() OVER (ORDER BY j DESC), count(*) OVER (PARTITION BY j) FROM " + _Q,
    "SELECT i, lag(j) OVER (ORDER BY i) = j FROM " + _Q,
    "SELECT array_agg(i ORDER BY j, i) FROM " + _Q,
    "SELECT p.i, q.i FROM " + _Q + " JOIN " + _Q.replace(" q ", " p ") + " ON p.j = q.j",
    "SELECT p.i, q.i FROM " + _Q + " FULL JOIN " + _Q.replace(" q ", " p ") + " ON p.j = q.j AND p.i < q.i",
    # Partners that are equal, and told apart.
    *(
        "SELECT p.j::text, q.j::text FROM (SELECT j FROM " + _Q + f") AS p {kind} JOIN (SELECT j FROM " + _Q
        + ") AS q ON p.j = q.j AND p.j::text < q.j::text"
        for kind in ("LEFT", "RIGHT", "FULL")
    ),
    "SELECT p.j::text, q.t FROM (SELECT j FROM " + _Q + ") AS p LEFT JOIN LATERAL (SELECT r.j::text AS t FROM "
    + _Q.replace(" q ", " r ") + " WHERE r.j = p.j AND r.j::text > p.j::text) AS q ON true",
    "SELECT i FROM " + _Q + " WHERE j IN (SELECT w.j FROM " + _Q.replace(" q ", " w ") + " WHERE w.i IN (2, 4))",
    "SELECT i, j IN ('1', '[]'), j = ANY (VALUES ('10.0'::jsonb)), j > ALL (SELECT '\"a\"'::jsonb) FROM " + _Q,
    "SELECT count(*) FROM (SELECT j FROM " + _Q + " EXCEPT SELECT '1'::jsonb) AS d",
    "SELECT count(*) FROM (SELECT j FROM " + _Q + " INTERSECT ALL SELECT '[]'::jsonb) AS d",
    "SELECT count(*) FROM (SELECT j FROM " + _Q + " INTERSECT ALL SELECT '1'::jsonb) AS d",
    "SELECT i, j IS DISTINCT FROM '1', nullif(j, '1') IS NULL, j BETWEEN 'null' AND '99' FROM " + _Q,
    "SELECT CASE j WHEN '1' THEN 'one' WHEN '[]' THEN 'none' END, jsonb_typeof(j) FROM " + _Q,
    # Aggregates.
    "SELECT jsonb_agg(j ORDER BY i)::text, jsonb_agg(i ORDER BY i DESC)::text FROM " + _Q,
    "SELECT f, jsonb_agg(c ORDER BY id)::text, jsonb_agg(DISTINCT b)::text FROM t GROUP BY f",
    "SELECT jsonb_agg(a ORDER BY id) FILTER (WHERE a > 0)::text, jsonb_agg(a) FILTER (WHERE a > 90) IS NULL FROM t",
    "SELECT jsonb_object_agg(id, c)::text, jsonb_object_agg(coalesce(c, '-'), id ORDER BY id)::text FROM t",
    "SELECT jsonb_object_agg(c, id) FROM t",
    "SELECT jsonb_agg(x ORDER BY x.a, x.k, x.c)::text FROM v AS x",
    "SELECT jsonb_agg(a)::text FROM z",
    # Functions that return rows.
    "SELECT id, n, x::text FROM " + _D + ", jsonb_array_elements(j -> 'tags') WITH ORDINALITY AS e (x, n)",
    "SELECT id, key, value::text FROM " + _D + ", LATERAL jsonb_each(j)",
    "SELECT id, k FROM " + _D + " CROSS JOIN jsonb_object_keys(j -> 'x') AS k WHERE j @> '{\"a\": 1}'",
    "SELECT e.key, count(*), max(e.value) FROM " + _D + " CROSS JOIN jsonb_each_text(j) AS e GROUP BY e.key",
    "SELECT id, jsonb_array_elements_text(j -> 'tags') FROM " + _D,
    "SELECT id, (SELECT count(*) FROM jsonb_array_elements(j -> 'tags') AS e WHERE e.value <> 'null') FROM " + _D,
    "SELECT * FROM jsonb_array_elements('{}')",
    "SELECT id, r.a, e, x::text FROM " + _D + ", jsonb_to_record(j || j -> 'x') AS r (a int, e text, no int, x jsonb)",
    "SELECT * FROM jsonb_to_recordset('[{\"a\": 1.005, \"b\": \"x\"}, {\"b\": null, \"A\": 2}]')"
    " AS r (b text, a numeric(38,2), \"A\" integer)",
    "SELECT a FROM " + _Q + " CROSS JOIN LATERAL jsonb_to_record(CASE WHEN i = 12 THEN j END) AS (b int, a text)",
    "SELECT * FROM jsonb_to_recordset('[1]') AS r (a int)",
    "SELECT * FROM jsonb_to_record('[]') AS r (a int)",
    "SELECT * FROM jsonb_to_record('{}') AS r (a, b)",
    "SELECT * FROM jsonb_each('{}') AS r (a text, b text)",
    "SELECT * FROM jsonb_to_recordset('[]') WITH ORDINALITY AS r (a int)",
    # Errors.
    "SELECT (j -> 'tags')::int FROM " + _D,
    "SELECT jsonb_array_length(j) FROM " + _D,
    "SELECT j - 1 FROM " + _D,
    "SELECT j -> 1.5 FROM " + _D,
    "SELECT j #> ARRAY[1] FROM " + _D,
    "SELECT j['a':'b'] FROM " + _D,
    "SELECT j[1.5] FROM " + _D,
    "SELECT min(j) FROM " + _D,
    "SELECT sum(j) FROM " + _D,
    "SELECT j + 1 FROM " + _D,
    "SELECT jsonb_build_object('a') FROM t",
    "SELECT to_jsonb('a')",
    "SELECT '{'::jsonb",
    "SELECT j = 'x' FROM " + _D,
    "SELECT a::jsonb FROM t",
    "SELECT CASE WHEN a = 1 THEN j ELSE 1 END FROM " + _D,
]  # fmt: skip

#: A document for each row of a table, with blanks and a key that is there twice.
_E = (
    '(SELECT id, a, (\'{"a": 0, "tags":  [\' || id || \', null,"é"], "a" :\''
    " || coalesce(a, 7) || '}')::json AS j FROM t) AS m"
)

JSON_QUERIES = [
    "SELECT j::text, (j -> 'a')::text, j ->> 'tags', j #>> '{tags,2}', (j #> '{tags,-1}')::text,"
    " j['a'] IS NULL FROM " + _E,
    "SELECT j::text, (j -> 'a')::text, j ->> 'tags', j -> 'tags' ->> 2, (j #> '{tags,-1}')::text FROM " + _E,
    "SELECT json_typeof(j -> 'a'), json_array_length(j -> 'tags'), json_strip_nulls(j)::text,"
    " j::jsonb::text FROM " + _E,
    "SELECT id, n, x::text FROM " + _E + ", json_array_elements(j -> 'tags') WITH ORDINALITY AS e (x, n)",
    "SELECT id, key, value::text FROM " + _E + ", LATERAL json_each(j)",
    "SELECT e.key, count(*), max(e.value) FROM " + _E + " CROSS JOIN json_each_text(j) AS e GROUP BY e.key",
    "SELECT k, count(*) FROM " + _E + ", json_object_keys(j) AS k GROUP BY k",
    "SELECT id, json_array_elements_text(j -> 'tags') FROM " + _E,
    "SELECT id, r.a, x::text FROM " + _E + ", json_to_record(j) AS r (a int, no int,"
    " tags json) CROSS JOIN (SELECT 1) AS s (x)",
    "SELECT a, b, c::text, d::text FROM json_to_recordset('[{\"a\": 1.005, \"b\": \"x\", \"c\": [1,  2]},"
    " {\"b\": null, \"d\": {\"z\":1,\"y\":2}, \"a\":2}]') AS r (b text, a numeric(38,2), c json, d jsonb)",
    "SELECT to_json(t)::text, row_to_json(t, true)::text, row_to_json(ROW(a, c))::text FROM t",
    "SELECT json_build_object('r', ROW(a, c), 'list', ARRAY[a, b], coalesce(c, '-'), d, id, e)::text FROM t",
    "SELECT json_build_array(a, c, d, f, e, NULL, j, to_jsonb(c))::text FROM t JOIN " + _E + " USING (id, a)",
    "SELECT array_to_json(ARRAY[a, b])::text, array_to_json(ARRAY[c, NULL], true)::text, to_json(d)::text FROM t",
    "SELECT json_object(ARRAY['a', c])::text, json_object(ARRAY['a', 'a'], ARRAY[c, NULL])::text FROM t",
    "SELECT json_extract_path(j, 'tags', '0')::text, json_extract_path_text(j, 'a') FROM " + _E,
    "SELECT json_agg(j ORDER BY id)::text, json_agg(id ORDER BY id DESC)::text,"
    " json_agg(a) FILTER (WHERE a > 90) IS NULL FROM " + _E,
    "SELECT f, json_agg(c ORDER BY id)::text, json_agg(DISTINCT b)::text FROM t GROUP BY f",
    "SELECT json_agg(x ORDER BY x.a, x.k, x.c)::text, json_agg(ARRAY[x.a, x.k] ORDER BY x.a, x.k)::text FROM v AS x",
    "SELECT json_object_agg(id, c ORDER BY id)::text, json_object_agg(id, d ORDER BY id)::text FROM t",
    "SELECT json_object_agg(c, id) FROM t",
    "SELECT j || 'x', concat(j, 1), format('%s', j), coalesce(j, '1')::text, ARRAY[j]::text, ROW(j)::text FROM " + _E,
    "SELECT to_jsonb(j)::text, jsonb_build_array(j)::text FROM " + _E,
    "SELECT x::text FROM (SELECT '1 '::json UNION ALL SELECT '[1,  2]'::jsonb::json) AS d (x)",
    "SELECT o::text, p::text, q::text FROM jsonb_to_record('{\"o\": \"{}\", \"p\": [1,2],"
    " \"q\": null}') AS r (o json, p json, q json)",
    "SELECT o::text, p::text, q::text FROM json_to_record('{\"o\": \"{}\", \"p\": [1,2],"
    " \"q\": null}') AS r (o jsonb, p json, q json)",
    "SELECT json_extract_path(j, VARIADIC ARRAY['tags', '1'])::text,"
    " json_build_array(VARIADIC ARRAY[a, NULL])::text FROM " + _E,
    "SELECT jsonb_extract_path_text(j::jsonb, VARIADIC ARRAY['tags', '2']),"
    " json_build_array(VARIADIC NULL::text[]) IS NULL FROM " + _E,
    "SELECT row_to_json(v.*)::text, to_jsonb(v.*)::text FROM v",
    # Columns of a relation.
    *(
        f"SELECT {call}"
        for kind in ("json", "jsonb")
        for call in (
            f"r.* FROM {kind}_populate_record(NULL::v, '{{\"a\": 1, \"c\": \"x\", \"no\": 2}}') AS r",
            f"id, r.a, k FROM {_E}, {kind}_populate_record(NULL::v, m.j::{kind}) AS r",
            f"x, c FROM {kind}_populate_recordset(NULL::v, '[{{\"a\": 1}}, {{\"c\": [1,  2]}}]') AS r (x, k)",
            f"* FROM {kind}_populate_record(NULL::v, NULL)",
            f"count(*) FROM {kind}_populate_recordset(NULL::v, NULL)",
            f"* FROM {kind}_populate_recordset(NULL::v, '{{}}')",
            f"* FROM {kind}_populate_recordset(NULL::v, '[1]')",
            f"* FROM {kind}_populate_record(NULL::v, '[]')",
            f"* FROM {kind}_populate_record(NULL::v)",
            f"* FROM {kind}_populate_record(NULL::nothing, '[]')",
            f"a, k FROM {kind}_populate_record(NULL::v, '{{\"a\": \"x\"}}')",
        )
    ),
    # What there is not.
    "SELECT '{a'::json",
    "SELECT '{\"a\":1}' -> 'a'",
    "SELECT DISTINCT j FROM " + _E,
    "SELECT count(*) FROM " + _E + " GROUP BY j",
    "SELECT id FROM " + _E + " ORDER BY j",
    "SELECT count(DISTINCT j) FROM " + _E,
    "SELECT j FROM " + _E + " UNION SELECT '1'",
    "SELECT row_number() OVER (PARTITION BY j) FROM " + _E,
    "SELECT j = j FROM " + _E,
    "SELECT j IS DISTINCT FROM j FROM " + _E,
    "SELECT greatest(j, j) FROM " + _E,
    "SELECT max(j) FROM " + _E,
    "SELECT j::int FROM " + _E,
    "SELECT length(j) FROM " + _E,
    "SELECT json_array_length(j) FROM " + _E,
    "SELECT json_build_object('a') FROM t",
    "SELECT json_build_object(c, 1)::text FROM t",
    "SELECT to_json('a')",
]  # fmt: skip


def test_queries_over_json_and_jsonb_say_what_postgres_says(postgres: Postgres) -> None:
    data = tables(3)
    postgres.run(script(data))
    assert not (found := differences(postgres, data, [*QUERIES, *JSON_QUERIES])), "\n".join(found)
