"""What the functions and operators of jsonb are for, each with an example."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.function import Description

DESCRIPTIONS: Mapping[str, Description] = {
    "->": Description(
        "The value of a key, or of an element from 0 on.", '\'{"a": {"b": "foo"}}\'::jsonb -> \'a\'', '{"b": "foo"}'
    ),
    "->>": Description("Likewise, as text.", "'[1, 2, 3]'::jsonb ->> 2", "3"),
    "#>": Description(
        "The value at the end of a path.", '\'{"a": {"b": ["foo", "bar"]}}\'::jsonb #> \'{a,b,1}\'', '"bar"'
    ),
    "#>>": Description("Likewise, as text.", '\'{"a": {"b": ["foo", "bar"]}}\'::jsonb #>> \'{a,b,1}\'', "bar"),
    "#-": Description(
        "The value without what is at the end of a path.", "'[\"a\", {\"b\": 1}]'::jsonb #- '{1,b}'", '["a", {}]'
    ),
    "@>": Description(
        "Whether the first jsonb, or array, contains the second.",
        '\'{"a": 1, "b": 2}\'::jsonb @> \'{"b": 2}\'::jsonb',
        "true",
    ),
    "<@": Description("Whether it is contained.", "ARRAY[2, 2, 7] <@ ARRAY[1, 7, 4, 2, 6]", "true"),
    "?": Description("Whether a text is a key, or an element.", "'{\"a\": 1, \"b\": 2}'::jsonb ? 'b'", "true"),
    "?|": Description("Whether one of some texts is.", "'{\"a\": 1, \"b\": 2}'::jsonb ?| ARRAY['b', 'd']", "true"),
    "?&": Description("Whether all of some texts are.", "'[\"a\", \"b\", \"c\"]'::jsonb ?& ARRAY['a', 'b']", "true"),
    "jsonb_array_element": Description(
        "The same as `->` with a number.", "jsonb_array_element('[1, 2]'::jsonb, 1)", "2"
    ),
    "jsonb_array_element_text": Description(
        "The same as `->>` with a number.", "jsonb_array_element_text('[\"a\"]'::jsonb, 0)", "a"
    ),
    "jsonb_object_field": Description(
        "The same as `->` with a text.", "jsonb_object_field('{\"a\": 1}'::jsonb, 'a')", "1"
    ),
    "jsonb_object_field_text": Description(
        "The same as `->>` with a text.", "jsonb_object_field_text('{\"a\": \"x\"}'::jsonb, 'a')", "x"
    ),
    "jsonb_array_length": Description(
        "How many elements an array has.", "jsonb_array_length('[1, 2, [3]]'::jsonb)", "3"
    ),
    "jsonb_concat": Description(
        "The same as `||`.", "jsonb_concat('{\"a\": 1}'::jsonb, '{\"b\": 2}'::jsonb)", '{"a": 1, "b": 2}'
    ),
    "jsonb_contains": Description("The same as `@>`.", "jsonb_contains('[1, 2]'::jsonb, '[2]'::jsonb)", "true"),
    "jsonb_contained": Description("The same as `<@`.", "jsonb_contained('[2]'::jsonb, '[1, 2]'::jsonb)", "true"),
    "jsonb_delete": Description("The same as `-`.", "jsonb_delete('{\"a\": 1, \"b\": 2}'::jsonb, 'a')", '{"b": 2}'),
    "jsonb_delete_path": Description(
        "The same as `#-`.", "jsonb_delete_path('{\"a\": {\"b\": 1}}'::jsonb, '{a,b}')", '{"a": {}}'
    ),
    "jsonb_exists": Description("The same as `?`.", "jsonb_exists('{\"a\": 1}'::jsonb, 'a')", "true"),
    "jsonb_exists_all": Description("The same as `?&`.", "jsonb_exists_all('{\"a\": 1}'::jsonb, '{a,b}')", "false"),
    "jsonb_exists_any": Description("The same as `?|`.", "jsonb_exists_any('{\"a\": 1}'::jsonb, '{a,b}')", "true"),
    "jsonb_insert": Description(
        "The value with another one inserted at the end of a path.",
        "jsonb_insert('{\"a\": [0, 1, 2]}'::jsonb, '{a,1}', '\"new\"'::jsonb)",
        '{"a": [0, "new", 1, 2]}',
    ),
    "jsonb_set": Description(
        "The value with another one at the end of a path.",
        "jsonb_set('{\"a\": [0, 1]}'::jsonb, '{a,0}', '9'::jsonb)",
        '{"a": [9, 1]}',
    ),
    "jsonb_object": Description(
        "The object of keys and values that an array has, or two arrays.",
        "jsonb_object('{a,1,b,2}'::text[])",
        '{"a": "1", "b": "2"}',
    ),
    "jsonb_pretty": Description("The text of a jsonb, over several lines.", "jsonb_pretty('1'::jsonb)", "1"),
    "jsonb_strip_nulls": Description(
        "The value without the keys whose value is null.",
        'jsonb_strip_nulls(\'{"a": 1, "b": null}\'::jsonb)',
        '{"a": 1}',
    ),
    "jsonb_typeof": Description(
        "What a value is: object, array, string, number, boolean or null.", "jsonb_typeof('-123.4'::jsonb)", "number"
    ),
    "json_array_element": Description(
        "The same as `->` with a number, of a json.", "json_array_element('[1, {\"a\":  2}]'::json, 1)", '{"a":  2}'
    ),
    "json_array_element_text": Description(
        "The same as `->>` with a number, of a json.", "json_array_element_text('[\"a\"]'::json, 0)", "a"
    ),
    "json_object_field": Description(
        "The same as `->` with a text, of a json.", "json_object_field('{\"a\": [1,2]}'::json, 'a')", "[1,2]"
    ),
    "json_object_field_text": Description(
        "The same as `->>` with a text, of a json.", "json_object_field_text('{\"a\": \"x\"}'::json, 'a')", "x"
    ),
    "json_array_length": Description("How many elements an array has.", "json_array_length('[1, 2, [3]]'::json)", "3"),
    "json_object": Description(
        "The object of keys and values that an array has, or two arrays.",
        "json_object('{a,1,a,2}'::text[])",
        '{"a" : "1", "a" : "2"}',
    ),
    "json_strip_nulls": Description(
        "The value without the keys whose value is null, and without white space.",
        'json_strip_nulls(\'{"a": 1, "b": null}\'::json)',
        '{"a":1}',
    ),
    "json_typeof": Description(
        "What a value is: object, array, string, number, boolean or null.", "json_typeof('-123.4'::json)", "number"
    ),
    "json_array_elements": Description(
        "The elements of an array.", "(SELECT min(value::text) FROM json_array_elements('[[1,2]]'::json))", "[1,2]"
    ),
    "json_array_elements_text": Description(
        "Likewise, as texts.", '(SELECT min(value) FROM json_array_elements_text(\'["b", "a"]\'::json))', "a"
    ),
    "json_each": Description(
        "The keys of an object with their values, also those that are there twice.",
        '(SELECT count(*) FROM json_each(\'{"a": 1, "a": 2}\'::json))',
        "2",
    ),
    "json_each_text": Description(
        "Likewise, as texts.", '(SELECT value FROM json_each_text(\'{"a": "foo"}\'::json))', "foo"
    ),
    "json_object_keys": Description(
        "The keys of an object.", '(SELECT count(*) FROM json_object_keys(\'{"a": 1, "b": 2}\'::json))', "2"
    ),
    "@?": Description(
        "Whether a SQL/JSON path finds anything; NULL if the value is not as it says.",
        "'{\"a\": [1, 2]}'::jsonb @? '$.a[*] ? (@ > 1)'",
        "true",
    ),
    "@@": Description(
        "The boolean that a SQL/JSON path finds; NULL if it is none.",
        "'{\"a\": [1, 2]}'::jsonb @@ '$.a[*] > 1'",
        "true",
    ),
    "jsonb_path_exists": Description(
        "Whether a SQL/JSON path finds anything. A third argument has variables,"
        " a fourth says whether errors of the data are NULL.",
        "jsonb_path_exists('{\"a\": [1, 2]}'::jsonb, '$.a[*] ? (@ > $x)', '{\"x\": 1}'::jsonb)",
        "true",
    ),
    "jsonb_path_match": Description(
        "The boolean that a SQL/JSON path finds; NULL if it finds null.",
        "jsonb_path_match('{\"a\": [1, 2]}'::jsonb, 'exists($.a[*] ? (@ > 2))')",
        "false",
    ),
    "jsonb_path_query": Description(
        "What a SQL/JSON path finds, in rows.",
        "(SELECT max(q::text) FROM jsonb_path_query('{\"a\": [1, 2]}'::jsonb, '$.a[*]') AS r(q))",
        "2",
    ),
    "jsonb_path_query_array": Description(
        "The array of what a SQL/JSON path finds.",
        "jsonb_path_query_array('{\"a\": [1, 2]}'::jsonb, '$.a[*].type()')",
        '["number", "number"]',
    ),
    "jsonb_path_query_first": Description(
        "The first of what a SQL/JSON path finds; NULL if that is nothing.",
        "jsonb_path_query_first('{\"a\": [1, 2]}'::jsonb, '$.a[*] ? (@ > 1)')",
        "2",
    ),
    **{
        f"jsonb_path_{name}_tz": Description(
            f"The same as `jsonb_path_{name}`; moments without a time zone are in UTC.",
            f"jsonb_path_{name}_tz('{{\"a\": true}}'::jsonb, '$.a')",
            result,
        )
        for name, result in (("exists", "true"), ("match", "true"), ("query_array", "[true]"), ("query_first", "true"))
    },
    "jsonb_path_query_tz": Description(
        "The same as `jsonb_path_query`; moments without a time zone are in UTC.",
        "(SELECT max(q::text) FROM jsonb_path_query_tz('{\"a\": [1, 2]}'::jsonb, '$.a[*]') AS r(q))",
        "2",
    ),
}
