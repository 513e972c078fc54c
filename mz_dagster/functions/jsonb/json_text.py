"""The functions of json: a text that is kept as it was written, with its white space, repeated keys and their order.

What is taken out of one is a piece of its text. An escape of U+0000 or of half a surrogate pair may stand in a json;
functions that decode strings refuse it wherever it stands, as PostgreSQL's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring

from mz_dagster.functions.arrays.dimensions import nested_json
from mz_dagster.functions.function import Nullability, list_of
from mz_dagster.functions.jsonb.jsonb import (
    check_escapes,
    document_of,
    element_texts,
    member_texts,
    string_of,
    without_blanks,
)
from mz_dagster.functions.jsonb.jsonb_functions import pairs_of_texts
from mz_dagster.functions.jsonb.jsonb_operators import index_of_step
from mz_dagster.functions.registry import Named, SqlFailure, function, pure
from mz_dagster.scalars.types import JSON, TEXT, Kind, record_of

#: What stands between values that are put apart again: no json has it.
UNSEEN = "\x1e"
_KINDS = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}


@pure("cast_text_to_json")
def parsed(text: str) -> str:
    """Returns a text that is JSON, as it is.

    Example:
        >>> parsed(' {"b":1e2, "a": 1, "b":[ ]}')
        ' {"b":1e2, "a": 1, "b":[ ]}'
    """
    document_of(text)
    return text


@pure("cast_json_to_text", "cast_jsonb_to_json")
def same(text: str) -> str:
    """Returns the text that a value is."""
    return text


def _decoded(text: str) -> str:
    """Returns a value without white space around it, whose strings can all be decoded."""
    check_escapes(text)
    return without_blanks(text)


def _unless_object(text: str) -> str:
    """Returns a value without white space around it; the strings of an object, which is refused first, may be any."""
    text = without_blanks(text)
    return text if text[0] == "{" else _decoded(text)


def _shown(text: str | None) -> str | None:
    """Returns a piece as text: a string without its quotes, NULL for null."""
    if text is None or text == "null":
        return None
    return string_of(text) if text[0] == '"' else text


def _field(text: str, key: str) -> str | None:
    text = _decoded(text)
    found = [value for name, value in member_texts(text) if name == key] if text[0] == "{" else []
    return found[-1] if found else None


def _element(text: str, index: int) -> str | None:
    text = _decoded(text)
    found = element_texts(text) if text[0] == "[" else []
    return found[index] if -len(found) <= index < len(found) else None


def _followed(text: str, path: Sequence[str | None]) -> str | None:
    return None if None in path else _at(_decoded(text), path)


def _at(text: str, path: Sequence[str | None]) -> str | None:
    """Returns the last piece that a path leads to: by any of equal keys."""
    if not path:
        return text
    step, rest = path[0], path[1:]
    if text[0] == "{":
        ends = [_at(value, rest) for name, value in member_texts(text) if name == step]
        return next((one for one in reversed(ends) if one is not None), None)
    index = index_of_step(step)
    if text[0] != "[" or index is None:
        return None
    found = element_texts(text)
    return _at(found[index], rest) if -len(found) <= index < len(found) else None


@function(
    "get_json_text",
    (Kind.JSON, Kind.TEXT),
    Kind.JSON,
    sql="->",
    says="The value of a key, or of an element from 0 on.",
    example='\'{"a": {"b": "foo"}}\'::jsonb -> \'a\'',
    gives='{"b": "foo"}',
    also=(
        Named(
            "json_object_field",
            "The same as `->` with a text, of a json.",
            "json_object_field('{\"a\": [1,2]}'::json, 'a')",
            "[1,2]",
        ),
    ),
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def field(text: str, key: str) -> str | None:
    """Returns `value -> key`: of equal keys the last one's.

    Example:
        >>> field('{"a": 1, "a" :  [1,  2] }', "a")
        '[1,  2]'
    """
    return _field(text, key)


@function(
    "get_json_int4",
    (Kind.JSON, Kind.INT4),
    Kind.JSON,
    sql=("json_array_element", "->"),
    says="The same as `->` with a number, of a json.",
    example="json_array_element('[1, {\"a\":  2}]'::json, 1)",
    gives='{"a":  2}',
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def element(text: str, index: int) -> str | None:
    """Returns `value -> index`, counted from 0, or from the end if it is negative."""
    return _element(text, index)


@function(
    "get_text_json_text",
    (Kind.JSON, Kind.TEXT),
    Kind.TEXT,
    sql="->>",
    says="Likewise, as text.",
    example="'[1, 2, 3]'::jsonb ->> 2",
    gives="3",
    also=(
        Named(
            "json_object_field_text",
            "The same as `->>` with a text, of a json.",
            "json_object_field_text('{\"a\": \"x\"}'::json, 'a')",
            "x",
        ),
    ),
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def field_text(text: str, key: str) -> str | None:
    """Returns `value ->> key`."""
    return _shown(_field(text, key))


@function(
    "get_text_json_int4",
    (Kind.JSON, Kind.INT4),
    Kind.TEXT,
    sql=("json_array_element_text", "->>"),
    says="The same as `->>` with a number, of a json.",
    example="json_array_element_text('[\"a\"]'::json, 0)",
    gives="a",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def element_text(text: str, index: int) -> str | None:
    """Returns `value ->> index`."""
    return _shown(_element(text, index))


@function(
    "get_json_path",
    (Kind.JSON, Kind.ARRAY),
    Kind.JSON,
    sql="#>",
    says="The value at the end of a path.",
    example='\'{"a": {"b": ["foo", "bar"]}}\'::jsonb #> \'{a,b,1}\'',
    gives='"bar"',
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def at_path(text: str, path: Sequence[str | None]) -> str | None:
    """Returns `value #> path`."""
    return _followed(text, path)


@function(
    "get_text_json_path",
    (Kind.JSON, Kind.ARRAY),
    Kind.TEXT,
    sql="#>>",
    says="Likewise, as text.",
    example='\'{"a": {"b": ["foo", "bar"]}}\'::jsonb #>> \'{a,b,1}\'',
    gives="bar",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def at_path_text(text: str, path: Sequence[str | None]) -> str | None:
    """Returns `value #>> path`."""
    return _shown(_followed(text, path))


@function("extract_path_json", (), Kind.JSON, fallible=True, nullability=Nullability.ALWAYS)
def at_steps(text: str, *steps: str) -> str | None:
    """Returns `json_extract_path(value, step, ...)`."""
    return _followed(text, steps)


@function("extract_path_text_json", (), Kind.TEXT, fallible=True, nullability=Nullability.ALWAYS)
def at_steps_text(text: str, *steps: str) -> str | None:
    """Returns `json_extract_path_text(value, step, ...)`."""
    return _shown(_followed(text, steps))


@function(
    "json_typeof",
    (Kind.JSON,),
    Kind.TEXT,
    sql="json_typeof",
    says="What a value is: object, array, string, number, boolean or null.",
    example="json_typeof('-123.4'::json)",
    gives="number",
)
def type_name(text: str) -> str:
    """Returns the name of a value's type."""
    return _kind(without_blanks(text))


def _kind(text: str) -> str:
    return _KINDS.get(text[0], "number")


def _invalid(message: str) -> SqlFailure:
    return SqlFailure("22023", message)


@function(
    "json_array_length",
    (Kind.JSON,),
    Kind.INT4,
    sql="json_array_length",
    says="How many elements an array has.",
    example="json_array_length('[1, 2, [3]]'::json)",
    gives="3",
    fallible=True,
)
def array_length(text: str) -> int:
    """Returns how many elements an array has."""
    text = without_blanks(text)
    if text[0] != "[":
        raise _invalid(f"cannot get array length of a {'non-array' if text[0] == '{' else 'scalar'}")
    return len(element_texts(text))


@function(
    "json_array_elements",
    (Kind.JSON,),
    Kind.ARRAY,
    rows="json_array_elements",
    says="The elements of an array.",
    example="(SELECT min(value::text) FROM json_array_elements('[[1,2]]'::json))",
    gives="[1,2]",
    fallible=True,
    type=list_of(JSON),
)
def elements(text: str) -> list[str]:
    """Returns the elements of an array."""
    return _elements(without_blanks(text), "json_array_elements")


@function(
    "json_array_elements_text",
    (Kind.JSON,),
    Kind.ARRAY,
    rows="json_array_elements_text",
    says="Likewise, as texts.",
    example='(SELECT min(value) FROM json_array_elements_text(\'["b", "a"]\'::json))',
    gives="a",
    fallible=True,
    type=list_of(TEXT),
)
def elements_text(text: str) -> list[str | None]:
    """Returns the elements of an array as texts."""
    return [_shown(one) for one in _elements(_unless_object(text), "json_array_elements_text")]


def _elements(text: str, name: str) -> list[str]:
    if text[0] != "[":
        raise _invalid(f"cannot call {name} on a {'non-array' if text[0] == '{' else 'scalar'}")
    return element_texts(text)


@function(
    "json_object_keys",
    (Kind.JSON,),
    Kind.ARRAY,
    rows="json_object_keys",
    says="The keys of an object.",
    example='(SELECT count(*) FROM json_object_keys(\'{"a": 1, "b": 2}\'::json))',
    gives="2",
    fallible=True,
    type=list_of(TEXT),
)
def keys(text: str) -> list[str]:
    """Returns the keys of an object, equal ones as often as they are there."""
    return [key for key, _ in member_texts(_object(text, "json_object_keys"))]


@function(
    "json_each",
    (Kind.JSON,),
    Kind.ARRAY,
    rows="json_each",
    says="The keys of an object with their values, also those that are there twice.",
    example='(SELECT count(*) FROM json_each(\'{"a": 1, "a": 2}\'::json))',
    gives="2",
    fallible=True,
    type=list_of(record_of((("key", TEXT), ("value", JSON)))),
)
def members(text: str) -> list[tuple[str, str]]:
    """Returns the keys of an object with their values."""
    return _members(text)


@function(
    "json_each_text",
    (Kind.JSON,),
    Kind.ARRAY,
    rows="json_each_text",
    says="Likewise, as texts.",
    example='(SELECT value FROM json_each_text(\'{"a": "foo"}\'::json))',
    gives="foo",
    fallible=True,
    type=list_of(record_of((("key", TEXT), ("value", TEXT)))),
)
def members_text(text: str) -> list[tuple[str, str | None]]:
    """Returns the keys of an object with their values as texts."""
    return [(key, _shown(one)) for key, one in _members(text)]


def _members(text: str) -> list[tuple[str, str]]:
    text = _decoded(text)
    if text[0] != "{":
        raise _invalid(f"cannot deconstruct {'an array as an object' if text[0] == '[' else 'a scalar'}")
    return member_texts(text)


def _object(text: str, name: str) -> str:
    text = _decoded(text)
    if text[0] != "{":
        raise _invalid(f"cannot call {name} on {'an array' if text[0] == '[' else 'a scalar'}")
    return text


@function("json_to_record", (Kind.JSON,), Kind.JSON, fallible=True)
def record(text: str) -> str:
    """Returns an object as it is."""
    return _object(text, "populate_composite")


@function("json_to_recordset", (Kind.JSON,), Kind.ARRAY, fallible=True)
def records(text: str, name: str = "json_to_recordset") -> list[str]:
    """Returns the elements of an array of objects."""
    text = _unless_object(text)
    if text[0] != "[":
        raise _invalid(f"cannot call {name} on {'an object' if text[0] == '{' else 'a scalar'}")
    found = element_texts(text)
    if any(one[0] != "{" for one in found):
        raise _invalid(f"argument of {name} must be an array of objects")
    return found


@function("json_populate_recordset", (Kind.JSON,), Kind.ARRAY, fallible=True)
def _records_of_a_type(text: str) -> list[str]:
    return records(text, "json_populate_recordset")


@function("member_json", (Kind.JSON, Kind.TEXT), Kind.JSON, nullability=Nullability.ALWAYS)
def member_of(text: str, key: str) -> str | None:
    """Returns a member of an object; NULL if it is null or not there."""
    found = _field(text, key)
    return None if found == "null" else found


@function(
    "json_strip_nulls",
    (Kind.JSON,),
    Kind.JSON,
    sql="json_strip_nulls",
    says="The value without the keys whose value is null, and without white space.",
    example='json_strip_nulls(\'{"a": 1, "b": null}\'::json)',
    gives='{"a":1}',
    fallible=True,
)
def without_nulls(text: str) -> str:
    """Returns a value without the members of objects, at any depth, that are null, and without white space."""
    return _stripped(_decoded(text))


def _stripped(text: str) -> str:
    match text[0]:
        case "{":
            kept = [(key, one) for key, one in member_texts(text) if one != "null"]
            return "{" + ",".join([f"{encode_basestring(key)}:{_stripped(one)}" for key, one in kept]) + "}"
        case "[":
            return "[" + ",".join(map(_stripped, element_texts(text))) + "]"
        case '"':
            return encode_basestring(string_of(text))
        case _:
            return text


@function("to_json_number", (Kind.TEXT,), Kind.JSON)
def number(text: str) -> str:
    """Returns the number of a number's text as it stands, and a string for NaN and the infinities."""
    return text if text[-1].isdigit() else encode_basestring(text)


@function("json_of_list", (Kind.ARRAY, Kind.TEXT), Kind.JSON)
def array_of(values: Sequence[str | None], separator: str) -> str:
    """Returns the array of values; NULL is null.

    Example:
        >>> array_of(["1", None], ", ")
        '[1, null]'
    """
    return "[" + separator.join(["null" if one is None else one for one in values]) + "]"


@function("json_nested", (Kind.JSON, Kind.ARRAY, Kind.TEXT), Kind.JSON)
def nested(values: str, lengths: Sequence[int], separator: str) -> str:
    """Returns the arrays in an array of values, which stand in one with `UNSEEN` between them, by their dimensions."""
    return nested_json(values[1:-1].split(UNSEEN), lengths, separator)


@function("json_of_texts", (Kind.ARRAY, Kind.TEXT), Kind.JSON)
def array_of_strings(texts: Sequence[str | None], separator: str) -> str:
    """Returns the array of strings."""
    return array_of([None if one is None else encode_basestring(one) for one in texts], separator)


@function("json_of_numbers", (Kind.ARRAY, Kind.TEXT), Kind.JSON)
def array_of_numbers(texts: Sequence[str | None], separator: str) -> str:
    """Returns the array of numbers, or booleans, by their texts."""
    booleans = ("true", "false")
    return array_of([one if one is None or one in booleans else number(one) for one in texts], separator)


@function("json_of_timestamps", (Kind.ARRAY, Kind.TEXT), Kind.JSON)
def array_of_moments(texts: Sequence[str | None], separator: str) -> str:
    """Returns the array of timestamps in ISO 8601's form, by their texts; with a zone, which is UTC, if they have."""
    isos = [None if one is None else one.replace(" ", "T").replace("+00", "+00:00") for one in texts]
    return array_of_strings(isos, separator)


@function("json_member", (Kind.TEXT, Kind.JSON), Kind.TEXT)
def member(key: str, value: str) -> str:
    """Returns a member of an object: a key and its value, as `json_build_object` spaces them."""
    return f"{encode_basestring(key)} : {value}"


@function("json_of_members", (Kind.ARRAY,), Kind.JSON)
def object_of(members: Sequence[str]) -> str:
    """Returns the object that `json_object_agg` makes of members."""
    return "{ " + ", ".join(members) + " }"


@function("json_build_array", (), Kind.JSON)
def built_array(*values: str) -> str:
    """Returns the array of values."""
    return array_of(values, ", ")


@function("json_build_object", (), Kind.JSON)
def built_object(*parts: str) -> str:
    """Returns the object of keys and values in turn."""
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return "{" + ", ".join([member(key, value) for key, value in pairs]) + "}"


@function("json_build_object_list", (Kind.JSON, Kind.TEXT), Kind.JSON, fallible=True)
def built_object_of(array: str, no_key: str) -> str:
    """Returns the object of the keys and values in turn that an array holds.

    Args:
        array: The array, without blanks between its elements.
        no_key: What the error says of a key that is null, with `{}` for its number.

    Example:
        >>> built_object_of('["a",1,2,null]', "argument {} cannot be null")
        '{"a" : 1, "2" : null}'
    """
    found = element_texts(array)
    if len(found) % 2:
        raise _invalid("argument list must have even number of elements")
    if "null" in found[::2]:
        raise _invalid(no_key.format(2 * found[::2].index("null") + 1))
    return built_object(*(string_of(one) if i % 2 == 0 and one[0] == '"' else one for i, one in enumerate(found)))


@function("json_of_fields", (), Kind.JSON)
def row_object(separator: str, *parts: str) -> str:
    """Returns the object that a record is, of its fields' names and values in turn."""
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return "{" + separator.join([f"{encode_basestring(key)}:{value}" for key, value in pairs]) + "}"


@function(
    "json_object_list",
    (Kind.ARRAY,),
    Kind.JSON,
    sql="json_object",
    says="The object of keys and values that an array has, or two arrays.",
    example="json_object('{a,1,a,2}'::text[])",
    gives='{"a" : "1", "a" : "2"}',
    fallible=True,
)
def object_of_texts(parts: Sequence[str | None]) -> str:
    """Returns `json_object(keys and values in turn)`, of strings."""
    if len(parts) % 2:
        raise SqlFailure("2202E", "array must have even number of elements")
    return object_of_strings(parts[::2], parts[1::2])


@function("json_object_lists", (Kind.ARRAY, Kind.ARRAY), Kind.JSON, sql="json_object", fallible=True)
def object_of_strings(keys: Sequence[str | None], values: Sequence[str | None]) -> str:
    """Returns `json_object(keys, values)`, of strings."""
    pairs = pairs_of_texts(keys, values)
    shown = [member(key, "null" if value is None else encode_basestring(value)) for key, value in pairs]
    return "{" + ", ".join(shown) + "}"
