"""Examples of jsonb."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mz_dagster.functions import Failure, resolve_table_function
from mz_dagster.functions.jsonb.as_jsonb import as_jsonb, as_jsonb_or_null, as_key
from mz_dagster.scalars.record import field, record
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import (
    BOOL,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    JSONB,
    TEXT,
    TIMESTAMPTZ,
    array_of,
    dimensioned,
    numeric,
)
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function, operator

_VALUES = [
    "null", "true", "false", "0", "-0.0", "1", "1.0", "-1.50", "99.995", "1e3", "1e-3", "2147483648", "1e40", '""',
    '"a"', '"1"', '"é\\n\\"\\\\"', "[]", "{}", "[1, 2.0, [3]]", "[null]", '["a", "b", "a"]', '[{"a": 1}, [1, 2]]',
    "[[]]", '{"a": 1}', '{"a": 1.0, "b": null}', '{"b": [1, 2], "aa": {"a": "x", "c": null}}', '{"1": 2, "": []}',
    '{"a": {"b": {"c": [0, 1, {"d": true}]}}}', '{"é": "ü", "zz": 1, "z": 2}', '[true, 1, "1", null, 1.00]',
]  # fmt: skip
_TEXTS = [
    *_VALUES, "", " ", "nan", "[NaN]", "Infinity", "01", "1.", ".5", "-", "+1", "[1,]", "[1 2]", "[", '{"a"}',
    '{"a":1,}', "{a:1}", "{'a': 1}", " [ 1 ,\t2 ]\n", "\x0c1", '"a\tb"', '"\\/\\b\\u00e9\\u00E9"', '"\\u12g4"',
    '"\\x"', '"abc', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\ud83dx\\ude00"', '"\\ud83d\\ud83d\\ude00"',
    '"\\u0000"', '["\\u0000", x', '["\\ud800", "\\u0000"]', '"\\\\u0000"', '{"a":1,"b":2,"a":{"z":1,"y":2,"xx":3}}',
    "1 2", "tru", "TRUE", "1E5", "1e+2", "1.50e1", "-0e5", "0.000e2", "1e16384", "1e-16384", "1e131072",
    "1e99999999999", "-1e-5", "[[[[[]]]]]",
]  # fmt: skip
_PATHS = [
    "{}", "{a}", "{b}", "{b,1}", "{b,-1}", "{b,-3}", "{b,7}", "{aa,c}", "{0}", "{-1}", "{1}", "{2,0}", "{2,x}",
    "{1,a}", "{x}", "{99999999999}", "{ 1}", '{"1 "}', '{""}', "{NULL}", "{a,NULL}", "{a,b,c,2,d}", "{a,b,c,-3}",
    "{a,b,x,y}",
]  # fmt: skip

POOLS["jsonb"] = (JSONB, _VALUES)
POOLS["jsonb_key"] = (TEXT, ["a", "b", "", "1", "é", "aa", "zz"])
POOLS["jsonb_index"] = (INT4, ["0", "1", "2", "-1", "-3", "-4", "7", "2147483647", "-2147483648"])
POOLS["jsonb_path"] = (array_of(TEXT), _PATHS)
POOLS["json_path"] = (
    TEXT,
    [
        "$", "strict $.a", "$.a.b.c[*]", "$.**.keyvalue()", "$[*] ? (@ == 1)", "$.a / 0",
        '$.* ? (@ like_regex "^X" flag "i")',
        "$.a.double()", "strict $[1]", "exists($.b)", "$ == $x", "-$[*]", "$[0 to last].type()",
    ],
)  # fmt: skip
POOLS["json_moment"] = (JSONB, ['"2024-02-29"', '["12:30:00.50+2", "10:30:00"]', '"2024-02-29 12:30:00+01"', "1"])
POOLS["json_moment_path"] = (TEXT, ["$.datetime()", '$[*] ? (@.datetime() > "2024-02-29T10:00:00".datetime())'])
POOLS["jsonb_array"] = (
    JSONB,
    [
        "[]",
        '[1, null, "a b"]',
        "[[1, 2], [3, 4]]",
        "[1, [2]]",
        "[[1], [2, 3]]",
        "[[], []]",
        '["x\\"\\\\y"]',
        '"{1,NULL}"',
        "1",
    ],
)
POOLS["json_variables"] = (JSONB, ['{"x": 1}', "[]", "{}"])
POOLS["jsonb_keys"] = (array_of(TEXT), ["{}", "{a}", "{a,b}", "{NULL}", "{a,NULL}", '{"",1}', "{b,aa}"])
POOLS["jsonb_moments"] = (array_of(TIMESTAMPTZ), ['{"2020-02-29 12:34:56.789+00",NULL}', "{}"])
POOLS["jsonb_list"] = (array_of(JSONB), ["{}", "{1.0,NULL,null}", r'{"{\"a\": [1, 2]}","\"x\""}'])
POOLS["jsonb_pair_list"] = (array_of(JSONB), ["{}", r'{"[\"b\", 1]","[\"aa\", null]","[\"b\", {\"x\": [2.0]}]"}'])
POOLS["jsonb_pairs"] = (array_of(TEXT), ["{}", "{a}", "{a,1}", "{a,1,a,2,b,NULL}", "{NULL,1}", '{"é","\\""}'])
POOLS["text_json"] = (TEXT, _TEXTS)


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield casting("text_json", JSONB)
    for target in (TEXT, BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, numeric(0), numeric(2), numeric(30)):
        yield casting("jsonb", target)
    for symbol in ("=", "<>", "<", "<=", ">", ">=", "@>", "<@", "||"):
        yield operator(symbol, "jsonb", "jsonb")
    for symbol in ("->", "->>", "-"):
        yield operator(symbol, "jsonb", "jsonb_key")
        yield operator(symbol, "jsonb", "jsonb_index")
    yield operator("?", "jsonb", "jsonb_key")
    for symbol in ("#>", "#>>", "#-"):
        yield operator(symbol, "jsonb", "jsonb_path")
    for symbol in ("?|", "?&", "-"):
        yield operator(symbol, "jsonb", "jsonb_keys")
    for name in ("jsonb_set", "jsonb_insert"):
        yield function(name, "jsonb", "jsonb_path", "jsonb")
        yield function(name, "jsonb", "jsonb_path", "jsonb", "bool")
    for name in ("jsonb_typeof", "jsonb_array_length", "jsonb_strip_nulls", "jsonb_pretty"):
        yield function(name, "jsonb")
    for symbol in ("@?", "@@"):
        yield replace(operator(symbol, "jsonb", "json_path"), sql=f"{{0}} {symbol} {{1}}::jsonpath")
    for name in ("jsonb_path_exists", "jsonb_path_match", "jsonb_path_query_array", "jsonb_path_query_first"):
        yield function(name, "jsonb", "json_path", sql=f"{name}({{0}}, {{1}}::jsonpath)")
        called = f"{name}({{0}}, {{1}}::jsonpath, {{2}}"
        yield function(name, "jsonb", "json_path", "json_variables", sql=f"{called})")
        yield function(name, "jsonb", "json_path", "json_variables", "bool", sql=f"{called}, {{3}})")
        moment, called = ("json_moment", "json_moment_path"), f"{name}_tz({{0}}, {{1}}::jsonpath"
        yield function(f"{name}_tz", *moment, sql=f"{called})")
        yield function(f"{name}_tz", *moment, "json_variables", sql=f"{called}, {{2}})")
        yield function(f"{name}_tz", *moment, "json_variables", "bool", sql=f"{called}, {{2}}, {{3}})")
    yield function("jsonb_path_query_array", *moment, sql="jsonb_path_query_array({0}, {1}::jsonpath)")
    yield function("jsonb_object", "jsonb_pairs")
    yield function("jsonb_object", "jsonb_keys", "jsonb_pairs")
    yield operator("||", "text", "jsonb")
    yield operator("||", "jsonb", "text")
    yield from _built()
    yield from _sets()


def _sets() -> Iterator[Example]:
    """Yields the functions that return rows, which here are arrays."""
    (column,) = columns_of(["jsonb"])
    for name in ("jsonb_array_elements", "jsonb_array_elements_text", "jsonb_object_keys"):
        rows = f"CASE WHEN {{0}} IS NOT NULL THEN ARRAY(SELECT x FROM {name}({{0}}) x) END"
        yield Example(rows, applied(resolve_table_function(name, [JSONB]), [column]), ("jsonb",))
    for name, pools in (
        ("jsonb_path_query", ("jsonb", "json_path", "json_variables", "bool")),
        ("jsonb_path_query_tz", ("json_moment", "json_moment_path", "json_variables", "bool")),
    ):
        for number in (2, 3, 4):
            columns = columns_of(pools[:number])
            found = applied(resolve_table_function(name, [one.type for one in columns]), columns)
            given = " AND ".join(f"{{{i}}} IS NOT NULL" for i in range(number))
            others = "".join(f", {{{i}}}" for i in range(2, number))
            listed = f"ARRAY(SELECT x FROM {name}({{0}}, {{1}}::jsonpath{others}) x)"
            yield Example(f"CASE WHEN {given} THEN {listed} END", found, pools[:number])
    for name, place in (("jsonb_each", 1), ("jsonb_each", 2), ("jsonb_each_text", 2)):
        array = applied(resolve_table_function(name, [JSONB]), [column])
        assert array.type.element is not None
        row = Call("array_subscript", (array, Literal(place, INT4)), array.type.element)
        for number, part in enumerate(("key", "value")):
            one = f"(SELECT {part} FROM {name}({{0}}) WITH ORDINALITY AS r (key, value, n) WHERE n = {place})"
            yield Example(one, field(row, number), ("jsonb",))
    records = Call("jsonb_to_recordset", (column,), array_of(JSONB))
    count = "CASE WHEN {0} IS NOT NULL THEN (SELECT count(*) FROM jsonb_to_recordset({0}) AS r (x int)) END"
    yield Example(count, Call("cardinality", (records,), INT4), ("jsonb",))
    records = Call("jsonb_populate_recordset", (column,), array_of(JSONB))
    count = "CASE WHEN {0} IS NOT NULL THEN (SELECT count(*) FROM jsonb_populate_recordset(NULL::pg_am, {0})) END"
    yield Example(count, Call("cardinality", (records,), INT4), ("jsonb",))
    text = Call("array_text_jsonb", (*columns_of(["jsonb_array"]), Literal(False, BOOL)), TEXT)
    array = Call("dimensioned_of_text", (text,), dimensioned(TEXT))
    sql = "(SELECT a FROM jsonb_to_record(jsonb_build_object('a', {0})) AS r (a text[]))"
    yield Example(sql, array, ("jsonb_array",))
    record_ = Call("jsonb_to_record", (column,), JSONB)
    member = Call("member_jsonb", (record_, Literal("a", TEXT)), JSONB)
    yield Example("(SELECT a FROM jsonb_to_record({0}) AS r (a jsonb))", member, ("jsonb",))
    pairs = (
        "CASE WHEN {0} IS NOT NULL THEN coalesce((SELECT jsonb_object_agg(p ->> 0, p -> 1 ORDER BY n)"
        " FROM unnest({0}) WITH ORDINALITY AS u (p, n)), '{{}}') END"
    )
    call = Call("jsonb_object_of_pairs", tuple(columns_of(["jsonb_pair_list"])), JSONB)
    yield Example(pairs, call, ("jsonb_pair_list",))


def _built() -> Iterator[Example]:
    kinds = ("bool", "int2", "int4", "int8", "float4", "float8", "n2", "n38", "text", "date", "ts", "tz", "jsonb")
    for pool in kinds:
        (column,) = columns_of([pool])
        yield Example("to_jsonb({0})", _found(as_jsonb(column)), (pool,))
        members = [_found(as_jsonb_or_null(column)), _found(as_jsonb_or_null(column))]
        yield Example("jsonb_build_array({0}, {0})", Call("jsonb_build_array", tuple(members), JSONB, False), (pool,))
        if pool != "jsonb":
            parts = (_found(as_key(column, "22023 argument 1: key must not be null")), members[0])
            yield Example("jsonb_build_object({0}, {0})", Call("jsonb_build_object", parts, JSONB, False), (pool,))
    for pool in ("ints", "texts", "floats", "bools", "prices", "dates", "jsonb_moments", "jsonb_list"):
        yield Example("to_jsonb({0})", _found(as_jsonb(columns_of([pool])[0])), (pool,))
    row = record(columns_of(["int4", "text"]), ("a", "b"))
    yield Example("(SELECT to_jsonb(r) FROM (SELECT {0} AS a, {1} AS b) r)", _found(as_jsonb(row)), ("int4", "text"))
    for name, result in (("jsonb_extract_path", JSONB), ("jsonb_extract_path_text", TEXT)):
        implementation = {"jsonb_extract_path": "extract_path_jsonb"}.get(name, "extract_path_text_jsonb")
        for pools in (("jsonb", "jsonb_key"), ("jsonb", "jsonb_key", "jsonb_key")):
            call = Call(implementation, tuple(columns_of(pools)), result)
            yield Example(f"{name}({', '.join(f'{{{i}}}' for i in range(len(pools)))})", call, pools)


def _found(scalar: Scalar | Failure) -> Scalar:
    assert not isinstance(scalar, Failure), str(scalar)
    return scalar
