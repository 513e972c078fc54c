"""Examples of json, whose values are texts as they were written."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import Failure, resolve_table_function
from mz_dagster.functions.jsonb.as_json import LINES, SPACED, as_json, as_json_or_null
from mz_dagster.functions.jsonb.as_jsonb import as_key
from mz_dagster.scalars.record import field, record
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, JSON, JSONB, TEXT, array_of, dimensioned
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function, operator

_VALUES = [
    "null", "true", " 0", "-0.0", "1.50 ", "1e3", "-1E-3", '""', '"a"', '"\\u00e9\\n\\"\\\\"', "[]", "{ }",
    "[1, 2.0,[3] ]", "[null]", '["a", "b" ,"a"]', '[{"a": 1}, [1,  2]]', '{"a": 1}',
    '{"a":1.0, "b":null, "a" : {"c":2 }}',
    '{"b": [1, 2], "aa": {"a": "x", "c": null}}', '{"1": 2, "": []}', '{"a": {"b": 1}, "a": {"c": 2}}', '"\\u0000"',
    '{"a": "\\ud83d", "b": 1}', '["\\ud83d\\ude00", 1]', '\t[1 ,{"a":\n[ ]}]\n', '{"\\u0061": {"b": {"c": [0, 1, 2]}}}',
    '[{"a": 1, "b": "x"}, {"b": null}]',
]  # fmt: skip

POOLS["json"] = (JSON, _VALUES)
POOLS["json_array"] = (JSON, ["[]", '[1, null, "a b"]', "[[1, 2], [3, 4]]", "[1, [2]]", "[[1], [2, 3]]", "[[], []]"])
POOLS["json_list"] = (array_of(JSON), ["{}", "{1.0,NULL,null}", r'{"{\"a\": [1,  2]}","\"x\""}'])


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield casting("text_json", JSON)
    yield casting("json", TEXT)
    yield casting("json", JSONB)
    yield casting("jsonb", JSON)
    for pool in ("texts", "ints", "moments"):
        (column,) = columns_of((pool,))
        array = as_json(column)
        assert not isinstance(array, Failure)
        call = Call("json_build_object_list", (array, Literal("argument {} cannot be null", TEXT)), JSON)
        yield Example("json_build_object(VARIADIC {0})", call, (pool,))
    for symbol in ("->", "->>"):
        yield operator(symbol, "json", "jsonb_key")
        yield operator(symbol, "json", "jsonb_index")
    for symbol in ("#>", "#>>"):
        yield operator(symbol, "json", "jsonb_path")
    for name in ("json_typeof", "json_array_length", "json_strip_nulls"):
        yield function(name, "json")
    yield function("json_object", "jsonb_pairs")
    yield function("json_object", "jsonb_keys", "jsonb_pairs")
    yield operator("||", "text", "json")
    yield operator("||", "json", "text")
    yield from _built()
    yield from _sets()


def _sets() -> Iterator[Example]:
    """Yields the functions that return rows, which here are arrays."""
    (column,) = columns_of(["json"])
    for name in ("json_array_elements", "json_array_elements_text", "json_object_keys"):
        rows = f"CASE WHEN {{0}} IS NOT NULL THEN ARRAY(SELECT x FROM {name}({{0}}) x) END"
        yield Example(rows, applied(resolve_table_function(name, [JSON]), [column]), ("json",))
    for name, place in (("json_each", 1), ("json_each", 2), ("json_each_text", 2)):
        array = applied(resolve_table_function(name, [JSON]), [column])
        assert array.type.element is not None
        row = Call("array_subscript", (array, Literal(place, INT4)), array.type.element)
        for number, part in enumerate(("key", "value")):
            one = f"(SELECT {part} FROM {name}({{0}}) WITH ORDINALITY AS r (key, value, n) WHERE n = {place})"
            yield Example(one, field(row, number), ("json",))
    records = Call("json_to_recordset", (column,), array_of(JSON))
    count = "CASE WHEN {0} IS NOT NULL THEN (SELECT count(*) FROM json_to_recordset({0}) AS r (x json)) END"
    yield Example(count, Call("cardinality", (records,), INT4), ("json",))
    records = Call("json_populate_recordset", (column,), array_of(JSON))
    count = "CASE WHEN {0} IS NOT NULL THEN (SELECT count(*) FROM json_populate_recordset(NULL::pg_am, {0})) END"
    yield Example(count, Call("cardinality", (records,), INT4), ("json",))
    text = Call("array_text_json", (*columns_of(["json_array"]), Literal(True, BOOL)), TEXT)
    sql = "(SELECT a FROM json_to_record(json_build_object('a', {0})) AS r (a json[]))::text[]"
    yield Example(sql, Call("dimensioned_of_text", (text,), dimensioned(TEXT)), ("json_array",))
    member = Call("member_json", (Call("json_to_record", (column,), JSON), Literal("b", TEXT)), JSON)
    yield Example("(SELECT b FROM json_to_record({0}) AS r (b json))", member, ("json",))


def _built() -> Iterator[Example]:
    kinds = (
        *("bool", "int2", "int4", "int8", "float4", "float8", "n2", "n38", "text", "date", "ts", "tz"),
        *("u", "json", "jsonb"),
    )
    for pool in kinds:
        (column,) = columns_of([pool])
        yield Example("to_json({0})", _found(as_json(column)), (pool,))
        members = [_found(as_json_or_null(column)), _found(as_json_or_null(column))]
        yield Example("json_build_array({0}, {0})", Call("json_build_array", tuple(members), JSON, False), (pool,))
        if pool not in ("json", "jsonb"):
            parts = (_found(as_key(column, "22023 argument 1 cannot be null")), members[0])
            yield Example("json_build_object({0}, {0})", Call("json_build_object", parts, JSON, False), (pool,))
    for pool in ("ints", "texts", "floats", "bools", "prices", "dates", "jsonb_moments", "jsonb_list", "json_list"):
        yield Example("to_json({0})", _found(as_json(columns_of([pool])[0])), (pool,))
    lines = _found(as_json(columns_of(["texts"])[0], LINES))
    yield Example("array_to_json({0}, true)", lines, ("texts",))
    row = record(columns_of(["int4", "text"]), ("a", "b"))
    yield Example("(SELECT to_json(r) FROM (SELECT {0} AS a, {1} AS b) r)", _found(as_json(row)), ("int4", "text"))
    (texts,) = columns_of(["texts"])
    whole = Call("json_of_texts", (texts, Literal(SPACED, TEXT)), JSON)
    aggregated = "CASE WHEN cardinality({0}) > 0 THEN (SELECT json_agg(x ORDER BY n) FROM unnest({0}) WITH ORDINALITY"
    yield Example(
        f"CASE WHEN cardinality({{0}}) = 0 THEN '[]' ELSE {aggregated} AS u (x, n)) END END", whole, ("texts",)
    )
    key, value = columns_of(["jsonb_key", "json"])
    present = (
        Call("coalesce", (key, Literal("", TEXT)), TEXT, False),
        Call("coalesce", (value, Literal("0", JSON)), JSON, False),
    )
    listed = Call("array", (Call("json_member", present, TEXT, False),), array_of(TEXT), False)
    one = Call("json_of_members", (listed,), JSON, False)
    rows = "(SELECT json_object_agg(coalesce({0}, ''), coalesce({1}, '0')))"
    yield Example(rows, one, ("jsonb_key", "json"))
    for name, result in (("json_extract_path", JSON), ("json_extract_path_text", TEXT)):
        implementation = {"json_extract_path": "extract_path_json"}.get(name, "extract_path_text_json")
        for pools in (("json", "jsonb_key"), ("json", "jsonb_key", "jsonb_key")):
            call = Call(implementation, tuple(columns_of(pools)), result)
            yield Example(f"{name}({', '.join(f'{{{i}}}' for i in range(len(pools)))})", call, pools)


def _found(scalar: Scalar | Failure) -> Scalar:
    assert not isinstance(scalar, Failure), str(scalar)
    return scalar
