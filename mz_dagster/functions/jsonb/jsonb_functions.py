"""Functions of jsonb by name: what makes one of other values, and what tells of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring

from mz_dagster.functions.arrays.dimensions import nested_json
from mz_dagster.functions.function import Nullability, list_of
from mz_dagster.functions.jsonb.jsonb import (
    Node,
    Number,
    composed,
    in_order,
    is_scalar,
    number_of,
    read,
    text_of,
    type_of,
    write,
)
from mz_dagster.functions.moments.moment import text_of_date, text_of_timestamp, text_of_timestamptz
from mz_dagster.functions.numbers.floats import float8_text
from mz_dagster.functions.registry import SqlFailure, function, pure
from mz_dagster.scalars.types import JSONB, TEXT, Kind, record_of


@function("to_jsonb_bool", (Kind.BOOL,), Kind.JSONB)
def boolean(value: bool) -> str:
    """Returns a boolean."""
    return "true" if value else "false"


for _short, _kind in (("int2", Kind.INT2), ("int4", Kind.INT4), ("int8", Kind.INT8)):
    function(f"to_jsonb_{_short}", (_kind,), Kind.JSONB)(str)


@function("to_jsonb_date", (Kind.DATE,), Kind.JSONB)
def date_string(day: int) -> str:
    """Returns the string of a date."""
    return f'"{text_of_date(day)}"'


@function("to_jsonb_timestamp", (Kind.TIMESTAMP,), Kind.JSONB)
def timestamp_string(moment: int) -> str:
    """Returns the string of a timestamp, in ISO 8601's form."""
    return f'"{text_of_timestamp(moment).replace(" ", "T")}"'


@function("to_jsonb_timestamptz", (Kind.TIMESTAMPTZ,), Kind.JSONB)
def timestamptz_string(moment: int) -> str:
    """Returns the string of a timestamp with a zone, which is UTC, in ISO 8601's form."""
    return f'"{text_of_timestamptz(moment).replace(" ", "T")}:00"'


@function("to_jsonb_text", (Kind.TEXT,), Kind.JSONB)
def string(text: str) -> str:
    """Returns the string that a text is."""
    return encode_basestring(text)


@function("to_jsonb_float8", (Kind.FLOAT8,), Kind.JSONB)
def float_number(value: float) -> str:
    """Returns the number that a double shows, and a string for what is no number.

    Example:
        >>> float_number(1e20), float_number(float("nan"))
        ('100000000000000000000', '"NaN"')
    """
    return number(float8_text(value))


@function("to_jsonb_number", (Kind.TEXT,), Kind.JSONB)
def number(text: str) -> str:
    """Returns the number of a number's text, and a string for NaN and the infinities."""
    return str(number_of(text)) if text[-1].isdigit() else encode_basestring(text)


@function("to_jsonb_array_text", (Kind.ARRAY,), Kind.JSONB)
def array_of_strings(texts: Sequence[str | None]) -> str:
    """Returns the array of strings; NULL is null."""
    return array_of_list([None if one is None else encode_basestring(one) for one in texts])


@function("to_jsonb_array_number", (Kind.ARRAY,), Kind.JSONB)
def array_of_numbers(texts: Sequence[str | None]) -> str:
    """Returns the array of numbers, or booleans, by their texts."""
    booleans = ("true", "false")
    return array_of_list([one if one is None or one in booleans else number(one) for one in texts])


@function("to_jsonb_array_timestamp", (Kind.ARRAY,), Kind.JSONB)
def array_of_moments(texts: Sequence[str | None]) -> str:
    """Returns the array of timestamps in ISO 8601's form, by their texts; with a zone, which is UTC, if they have."""
    isos = [None if one is None else one.replace(" ", "T").replace("+00", "+00:00") for one in texts]
    return array_of_strings(isos)


@function("jsonb_build_array", (), Kind.JSONB, fallible=True)
def array_of(*elements: str) -> str:
    """Returns the array of values."""
    return composed("[" + ", ".join(elements) + "]")


@function("to_jsonb_array_jsonb", (Kind.ARRAY,), Kind.JSONB, fallible=True)
def array_of_list(elements: Sequence[str | None]) -> str:
    """Returns the array of the values of a list; NULL is null."""
    return array_of(*("null" if one is None else one for one in elements))


@function("jsonb_build_object", (), Kind.JSONB, fallible=True)
def object_of(*parts: str) -> str:
    """Returns the object of keys and values in turn; the last of equal keys stands."""
    return _object(zip(parts[::2], parts[1::2], strict=True))


@function("jsonb_object_of_pairs", (Kind.ARRAY,), Kind.JSONB, fallible=True)
def object_of_pairs(pairs: Sequence[str]) -> str:
    """Returns the object of arrays of a key with its value; the last of equal keys stands."""
    nodes = [read(one) for one in pairs]
    return _object((key, write(value)) for key, value in nodes)


def _object(pairs: Iterable[tuple[str, str]]) -> str:
    members = in_order(dict(pairs))
    return composed("{" + ", ".join([f"{encode_basestring(key)}: {value}" for key, value in members.items()]) + "}")


@function(
    "jsonb_object_list",
    (Kind.ARRAY,),
    Kind.JSONB,
    sql="jsonb_object",
    says="The object of keys and values that an array has, or two arrays.",
    example="jsonb_object('{a,1,b,2}'::text[])",
    gives='{"a": "1", "b": "2"}',
    fallible=True,
)
def object_of_texts(parts: Sequence[str | None]) -> str:
    """Returns `jsonb_object(keys and values in turn)`, of strings."""
    if len(parts) % 2:
        raise SqlFailure("2202E", "array must have even number of elements")
    return object_of_strings(parts[::2], parts[1::2])


@function("jsonb_object_lists", (Kind.ARRAY, Kind.ARRAY), Kind.JSONB, sql="jsonb_object", fallible=True)
def object_of_strings(keys: Sequence[str | None], values: Sequence[str | None]) -> str:
    """Returns `jsonb_object(keys, values)`, of strings."""
    return write(in_order(dict(pairs_of_texts(keys, values))))


def pairs_of_texts(keys: Sequence[str | None], values: Sequence[str | None]) -> list[tuple[str, str | None]]:
    """Returns the keys, none of which may be NULL, with their values."""
    if bool(keys) != bool(values):
        raise SqlFailure("2202E", "wrong number of array subscripts")
    if len(keys) != len(values):
        raise SqlFailure("2202E", "mismatched array dimensions")
    pairs: list[tuple[str, str | None]] = []
    for key, value in zip(keys, values, strict=True):
        if key is None:
            raise SqlFailure("22004", "null value not allowed for object key")
        pairs.append((key, value))
    return pairs


@function(
    "jsonb_typeof",
    (Kind.JSONB,),
    Kind.TEXT,
    sql="jsonb_typeof",
    says="What a value is: object, array, string, number, boolean or null.",
    example="jsonb_typeof('-123.4'::jsonb)",
    gives="number",
)
def type_name(text: str) -> str:
    """Returns the name of a value's type."""
    return type_of(read(text))


@function(
    "jsonb_array_length",
    (Kind.JSONB,),
    Kind.INT4,
    sql="jsonb_array_length",
    says="How many elements an array has.",
    example="jsonb_array_length('[1, 2, [3]]'::jsonb)",
    gives="3",
    fallible=True,
)
def array_length(text: str) -> int:
    """Returns how many elements an array has."""
    return len(_array(text, "get array length of"))


def _array(text: str, what: str) -> list[Node]:
    node = read(text)
    if type(node) is not list:
        raise SqlFailure("22023", f"cannot {what} a {'scalar' if is_scalar(node) else 'non-array'}")
    return node


@function(
    "jsonb_strip_nulls",
    (Kind.JSONB,),
    Kind.JSONB,
    sql="jsonb_strip_nulls",
    says="The value without the keys whose value is null.",
    example='jsonb_strip_nulls(\'{"a": 1, "b": null}\'::jsonb)',
    gives='{"a": 1}',
)
def without_nulls(text: str) -> str:
    """Returns a value without the members of objects, at any depth, that are null."""
    return write(_stripped(read(text)))


def _stripped(node: Node) -> Node:
    if type(node) is dict:
        return {key: _stripped(one) for key, one in node.items() if one is not None}
    return [_stripped(one) for one in node] if type(node) is list else node


@function(
    "jsonb_pretty",
    (Kind.JSONB,),
    Kind.TEXT,
    sql="jsonb_pretty",
    says="The text of a jsonb, over several lines.",
    example="jsonb_pretty('1'::jsonb)",
    gives="1",
)
def pretty(text: str) -> str:
    """Returns a value over several lines, indented by four blanks."""
    return _indented(read(text), "\n")


def _indented(node: Node, line: str) -> str:
    below = line + "    "
    if type(node) is dict:
        members = [f"{below}{encode_basestring(key)}: {_indented(one, below)}" for key, one in node.items()]
        return "{" + ",".join(members) + line + "}"
    if type(node) is list:
        return "[" + ",".join([below + _indented(one, below) for one in node]) + line + "]"
    return write(node)


@pure("cast_jsonb_to_bool")
def to_bool(text: str) -> bool:
    """Returns the boolean that a value is."""
    node = read(text)
    if type(node) is not bool:
        raise _cannot_cast(node, "boolean")
    return node


@pure("cast_jsonb_to_int2")
def to_int2(text: str) -> int:
    """Returns the number that a value is, rounded, as a smallint."""
    return _integer(text, "smallint", 2**15)


@pure("cast_jsonb_to_int4")
def to_int4(text: str) -> int:
    """Returns the number that a value is, rounded, as an integer."""
    return _integer(text, "integer", 2**31)


@pure("cast_jsonb_to_int8")
def to_int8(text: str) -> int:
    """Returns the number that a value is, rounded, as a bigint."""
    return _integer(text, "bigint", 2**63)


def _integer(text: str, type_: str, limit: int) -> int:
    """Returns the integer nearest to a value's number; of two as near the one farther from zero."""
    whole, _, fraction = _number(text, type_).lstrip("-").partition(".")
    value = int(whole) + (fraction[:1] >= "5") if len(whole) < 20 else limit + 1
    value = -value if text.startswith("-") else value
    if not -limit <= value < limit:
        raise SqlFailure("22003", f"{type_} out of range")
    return value


@function("jsonb_number_float4", (Kind.JSONB,), Kind.TEXT, fallible=True)
def number_for_float4(text: str) -> str:
    """Returns the text of the number that a value is, to be cast to real."""
    return _number(text, "real")


@function("jsonb_number_float8", (Kind.JSONB,), Kind.TEXT, fallible=True)
def number_for_float8(text: str) -> str:
    """Returns the text of the number that a value is, to be cast to double precision."""
    return _number(text, "double precision")


@function("jsonb_number_numeric", (Kind.JSONB,), Kind.TEXT, fallible=True)
def number_for_numeric(text: str) -> str:
    """Returns the text of the number that a value is, to be cast to numeric."""
    return _number(text, "numeric")


def _number(text: str, type_: str) -> str:
    node = read(text)
    if type(node) is not Number:
        raise _cannot_cast(node, type_)
    return str(node)


def _cannot_cast(node: Node, type_: str) -> SqlFailure:
    name = type_of(node)
    return SqlFailure("22023", f"cannot cast jsonb {'numeric' if name == 'number' else name} to type {type_}")


@function(
    "jsonb_array_elements",
    (Kind.JSONB,),
    Kind.ARRAY,
    rows="jsonb_array_elements",
    says="The elements of an array.",
    example="(SELECT count(*) FROM jsonb_array_elements('[1, true]'::jsonb))",
    gives="2",
    fallible=True,
    type=list_of(JSONB),
)
def elements(text: str) -> list[str]:
    """Returns the elements of an array."""
    return [write(one) for one in _extracted(text)]


@function(
    "jsonb_array_elements_text",
    (Kind.JSONB,),
    Kind.ARRAY,
    rows="jsonb_array_elements_text",
    says="Likewise, as texts.",
    example='(SELECT max(value) FROM jsonb_array_elements_text(\'["foo", "bar"]\'::jsonb))',
    gives="foo",
    fallible=True,
    type=list_of(TEXT),
)
def elements_text(text: str) -> list[str | None]:
    """Returns the elements of an array as texts."""
    return [text_of(one) for one in _extracted(text)]


@function("jsonb_nested", (Kind.JSONB, Kind.ARRAY), Kind.JSONB)
def nested(values: str, lengths: Sequence[int]) -> str:
    """Returns the arrays in an array of values, by their dimensions.

    Example:
        >>> nested("[1, 2, 3, 4]", [2, 2])
        '[[1, 2], [3, 4]]'
    """
    return nested_json(elements(values), lengths, ", ", ", ")


def _extracted(text: str) -> list[Node]:
    node = read(text)
    if type(node) is not list:
        raise SqlFailure("22023", f"cannot extract elements from {'a scalar' if is_scalar(node) else 'an object'}")
    return node


@function(
    "jsonb_object_keys",
    (Kind.JSONB,),
    Kind.ARRAY,
    rows="jsonb_object_keys",
    says="The keys of an object.",
    example='(SELECT max(k) FROM jsonb_object_keys(\'{"a": 1, "b": 2}\'::jsonb) AS o(k))',
    gives="b",
    fallible=True,
    type=list_of(TEXT),
)
def keys(text: str) -> list[str]:
    """Returns the keys of an object."""
    return list(_object_given(text, "jsonb_object_keys"))


@function(
    "jsonb_each",
    (Kind.JSONB,),
    Kind.ARRAY,
    rows="jsonb_each",
    says="The keys of an object with their values.",
    example='(SELECT count(*) FROM jsonb_each(\'{"a": 1, "b": 2}\'::jsonb))',
    gives="2",
    fallible=True,
    type=list_of(record_of((("key", TEXT), ("value", JSONB)))),
)
def members(text: str) -> list[tuple[str, str]]:
    """Returns the keys of an object with their values."""
    return [(key, write(one)) for key, one in _members(text, "jsonb_each").items()]


@function(
    "jsonb_each_text",
    (Kind.JSONB,),
    Kind.ARRAY,
    rows="jsonb_each_text",
    says="Likewise, as texts.",
    example='(SELECT value FROM jsonb_each_text(\'{"a": "foo"}\'::jsonb))',
    gives="foo",
    fallible=True,
    type=list_of(record_of((("key", TEXT), ("value", TEXT)))),
)
def members_text(text: str) -> list[tuple[str, str | None]]:
    """Returns the keys of an object with their values as texts."""
    return [(key, text_of(one)) for key, one in _members(text, "jsonb_each_text").items()]


def _members(text: str, name: str) -> dict[str, Node]:
    node = read(text)
    if type(node) is not dict:
        raise SqlFailure("22023", f"cannot call {name} on a non-object")
    return node


@function("jsonb_to_record", (Kind.JSONB,), Kind.JSONB, fallible=True)
def record(text: str) -> str:
    """Returns an object as it is."""
    _object_given(text, "populate_composite")
    return text


def _object_given(text: str, name: str) -> dict[str, Node]:
    node = read(text)
    if type(node) is not dict:
        raise SqlFailure("22023", f"cannot call {name} on {'a scalar' if is_scalar(node) else 'an array'}")
    return node


@function("jsonb_to_recordset", (Kind.JSONB,), Kind.ARRAY, fallible=True)
def records(text: str, name: str = "jsonb_to_recordset") -> list[str]:
    """Returns the elements of an array of objects."""
    node = read(text)
    if type(node) is not list:
        raise SqlFailure("22023", f"cannot call {name} on a non-array")
    if any(type(one) is not dict for one in node):
        raise SqlFailure("22023", f"argument of {name} must be an array of objects")
    return [write(one) for one in node]


@function("jsonb_populate_recordset", (Kind.JSONB,), Kind.ARRAY, fallible=True)
def _records_of_a_type(text: str) -> list[str]:
    return records(text, "jsonb_populate_recordset")


@function("member_jsonb", (Kind.JSONB, Kind.TEXT), Kind.JSONB, nullability=Nullability.ALWAYS)
def member(text: str, key: str) -> str | None:
    """Returns a member of an object; NULL if it is null or not there."""
    node = read(text).get(key)
    return None if node is None else write(node)
