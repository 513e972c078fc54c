"""Functions of jsonb by name: what makes one of other values, and what tells of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring

from mz_dagster.functions.arrays.dimensions import nested_json
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
from mz_dagster.functions.numbers.floats import float8_text
from mz_dagster.functions.registry import SqlFailure, pure


@pure("to_jsonb_text")
def string(text: str) -> str:
    """Returns the string that a text is."""
    return encode_basestring(text)


@pure("to_jsonb_float8")
def float_number(value: float) -> str:
    """Returns the number that a double shows, and a string for what is no number.

    Example:
        >>> float_number(1e20), float_number(float("nan"))
        ('100000000000000000000', '"NaN"')
    """
    return number(float8_text(value))


@pure("to_jsonb_number")
def number(text: str) -> str:
    """Returns the number of a number's text, and a string for NaN and the infinities."""
    return str(number_of(text)) if text[-1].isdigit() else encode_basestring(text)


@pure("to_jsonb_array_text")
def array_of_strings(texts: Sequence[str | None]) -> str:
    """Returns the array of strings; NULL is null."""
    return array_of_list([None if one is None else encode_basestring(one) for one in texts])


@pure("to_jsonb_array_number")
def array_of_numbers(texts: Sequence[str | None]) -> str:
    """Returns the array of numbers, or booleans, by their texts."""
    booleans = ("true", "false")
    return array_of_list([one if one is None or one in booleans else number(one) for one in texts])


@pure("to_jsonb_array_timestamp")
def array_of_moments(texts: Sequence[str | None]) -> str:
    """Returns the array of timestamps in ISO 8601's form, by their texts; with a zone, which is UTC, if they have."""
    isos = [None if one is None else one.replace(" ", "T").replace("+00", "+00:00") for one in texts]
    return array_of_strings(isos)


@pure("jsonb_build_array")
def array_of(*elements: str) -> str:
    """Returns the array of values."""
    return composed("[" + ", ".join(elements) + "]")


@pure("to_jsonb_array_jsonb")
def array_of_list(elements: Sequence[str | None]) -> str:
    """Returns the array of the values of a list; NULL is null."""
    return array_of(*("null" if one is None else one for one in elements))


@pure("jsonb_build_object")
def object_of(*parts: str) -> str:
    """Returns the object of keys and values in turn; the last of equal keys stands."""
    return _object(zip(parts[::2], parts[1::2], strict=True))


@pure("jsonb_object_of_pairs")
def object_of_pairs(pairs: Sequence[str]) -> str:
    """Returns the object of arrays of a key with its value; the last of equal keys stands."""
    nodes = [read(one) for one in pairs]
    return _object((key, write(value)) for key, value in nodes)


def _object(pairs: Iterable[tuple[str, str]]) -> str:
    members = in_order(dict(pairs))
    return composed("{" + ", ".join([f"{encode_basestring(key)}: {value}" for key, value in members.items()]) + "}")


@pure("jsonb_object_list")
def object_of_texts(parts: Sequence[str | None]) -> str:
    """Returns `jsonb_object(keys and values in turn)`, of strings."""
    if len(parts) % 2:
        raise SqlFailure("2202E", "array must have even number of elements")
    return object_of_strings(parts[::2], parts[1::2])


@pure("jsonb_object_lists")
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


@pure("jsonb_typeof")
def type_name(text: str) -> str:
    """Returns the name of a value's type."""
    return type_of(read(text))


@pure("jsonb_array_length")
def array_length(text: str) -> int:
    """Returns how many elements an array has."""
    return len(_array(text, "get array length of"))


def _array(text: str, what: str) -> list[Node]:
    node = read(text)
    if type(node) is not list:
        raise SqlFailure("22023", f"cannot {what} a {'scalar' if is_scalar(node) else 'non-array'}")
    return node


@pure("jsonb_strip_nulls")
def without_nulls(text: str) -> str:
    """Returns a value without the members of objects, at any depth, that are null."""
    return write(_stripped(read(text)))


def _stripped(node: Node) -> Node:
    if type(node) is dict:
        return {key: _stripped(one) for key, one in node.items() if one is not None}
    return [_stripped(one) for one in node] if type(node) is list else node


@pure("jsonb_pretty")
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


@pure("jsonb_number_float4")
def number_for_float4(text: str) -> str:
    """Returns the text of the number that a value is, to be cast to real."""
    return _number(text, "real")


@pure("jsonb_number_float8")
def number_for_float8(text: str) -> str:
    """Returns the text of the number that a value is, to be cast to double precision."""
    return _number(text, "double precision")


@pure("jsonb_number_numeric")
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


@pure("jsonb_array_elements")
def elements(text: str) -> list[str]:
    """Returns the elements of an array."""
    return [write(one) for one in _extracted(text)]


@pure("jsonb_array_elements_text")
def elements_text(text: str) -> list[str | None]:
    """Returns the elements of an array as texts."""
    return [text_of(one) for one in _extracted(text)]


@pure("jsonb_nested")
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


@pure("jsonb_object_keys")
def keys(text: str) -> list[str]:
    """Returns the keys of an object."""
    return list(_object_given(text, "jsonb_object_keys"))


@pure("jsonb_each")
def members(text: str) -> list[tuple[str, str]]:
    """Returns the keys of an object with their values."""
    return [(key, write(one)) for key, one in _members(text, "jsonb_each").items()]


@pure("jsonb_each_text")
def members_text(text: str) -> list[tuple[str, str | None]]:
    """Returns the keys of an object with their values as texts."""
    return [(key, text_of(one)) for key, one in _members(text, "jsonb_each_text").items()]


def _members(text: str, name: str) -> dict[str, Node]:
    node = read(text)
    if type(node) is not dict:
        raise SqlFailure("22023", f"cannot call {name} on a non-object")
    return node


@pure("jsonb_to_record")
def record(text: str) -> str:
    """Returns an object as it is."""
    _object_given(text, "populate_composite")
    return text


def _object_given(text: str, name: str) -> dict[str, Node]:
    node = read(text)
    if type(node) is not dict:
        raise SqlFailure("22023", f"cannot call {name} on {'a scalar' if is_scalar(node) else 'an array'}")
    return node


@pure("jsonb_to_recordset")
def records(text: str, name: str = "jsonb_to_recordset") -> list[str]:
    """Returns the elements of an array of objects."""
    node = read(text)
    if type(node) is not list:
        raise SqlFailure("22023", f"cannot call {name} on a non-array")
    if any(type(one) is not dict for one in node):
        raise SqlFailure("22023", f"argument of {name} must be an array of objects")
    return [write(one) for one in node]


@pure("jsonb_populate_recordset")
def _records_of_a_type(text: str) -> list[str]:
    return records(text, "jsonb_populate_recordset")


@pure("member_jsonb")
def member(text: str, key: str) -> str | None:
    """Returns a member of an object; NULL if it is null or not there."""
    node = read(text).get(key)
    return None if node is None else write(node)
