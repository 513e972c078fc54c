"""The operators and functions of jsonb that take a value apart, look into it or change it.

A path is the list of an array of text. At the top a scalar is an array of one to `->`, `?`, `@>` and `||`, as in
PostgreSQL, but not to a path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mz_dagster.functions.function import Nullability
from mz_dagster.functions.jsonb.jsonb import (
    Node,
    comparable,
    composed,
    in_order,
    is_scalar,
    read,
    text_of,
    write,
)
from mz_dagster.functions.registry import Named, SqlFailure, function
from mz_dagster.scalars.types import Kind

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
#: What is not there; None is null.
_ABSENT = object()


def _written(node: Node) -> str | None:
    return None if node is _ABSENT else write(node)


def _shown(node: Node) -> str | None:
    return None if node is _ABSENT else text_of(node)


def _field(text: str, key: str) -> Node:
    node = read(text)
    return node.get(key, _ABSENT) if type(node) is dict else _ABSENT


def _element(text: str, index: int) -> Node:
    node = read(text)
    if type(node) is dict:
        return _ABSENT
    elements = _elements(node)
    return elements[index] if -len(elements) <= index < len(elements) else _ABSENT


def _elements(node: Node) -> list[Node]:
    """Returns an array's elements; a scalar is one."""
    return node if type(node) is list else [node]


@function(
    "get_jsonb_text",
    (Kind.JSONB, Kind.TEXT),
    Kind.JSONB,
    sql=("jsonb_object_field", "->"),
    says="The same as `->` with a text.",
    example="jsonb_object_field('{\"a\": 1}'::jsonb, 'a')",
    gives="1",
    nullability=Nullability.ALWAYS,
)
def field(text: str, key: str) -> str | None:
    """Returns `value -> key`."""
    return _written(_field(text, key))


@function(
    "get_jsonb_int4",
    (Kind.JSONB, Kind.INT4),
    Kind.JSONB,
    sql=("jsonb_array_element", "->"),
    says="The same as `->` with a number.",
    example="jsonb_array_element('[1, 2]'::jsonb, 1)",
    gives="2",
    nullability=Nullability.ALWAYS,
)
def element(text: str, index: int) -> str | None:
    """Returns `value -> index`, counted from 0, or from the end if it is negative."""
    return _written(_element(text, index))


@function(
    "get_text_jsonb_text",
    (Kind.JSONB, Kind.TEXT),
    Kind.TEXT,
    sql=("jsonb_object_field_text", "->>"),
    says="The same as `->>` with a text.",
    example="jsonb_object_field_text('{\"a\": \"x\"}'::jsonb, 'a')",
    gives="x",
    nullability=Nullability.ALWAYS,
)
def field_text(text: str, key: str) -> str | None:
    """Returns `value ->> key`."""
    return _shown(_field(text, key))


@function(
    "get_text_jsonb_int4",
    (Kind.JSONB, Kind.INT4),
    Kind.TEXT,
    sql=("jsonb_array_element_text", "->>"),
    says="The same as `->>` with a number.",
    example="jsonb_array_element_text('[\"a\"]'::jsonb, 0)",
    gives="a",
    nullability=Nullability.ALWAYS,
)
def element_text(text: str, index: int) -> str | None:
    """Returns `value ->> index`."""
    return _shown(_element(text, index))


def _followed(text: str, path: Sequence[str | None]) -> Node:
    node = read(text)
    if None in path:
        return _ABSENT
    for step in path:
        if type(node) is dict:
            node = node.get(step, _ABSENT)
        elif type(node) is list:
            index = index_of_step(step)
            node = _ABSENT if index is None or not -len(node) <= index < len(node) else node[index]
        else:
            return _ABSENT
    return node


def index_of_step(step: str | None) -> int | None:
    """Returns the integer that a step of a path spells, as C's strtol reads it, or None."""
    match = _INTEGER.fullmatch(step or "")
    index = int(match[1]) if match and len(match[1]) < 20 else None
    return index if index is not None and -(2**31) <= index < 2**31 else None


@function("get_jsonb_path", (Kind.JSONB, Kind.ARRAY), Kind.JSONB, sql="#>", nullability=Nullability.ALWAYS)
def at_path(text: str, path: Sequence[str | None]) -> str | None:
    """Returns `value #> path`."""
    return _written(_followed(text, path))


@function("get_text_jsonb_path", (Kind.JSONB, Kind.ARRAY), Kind.TEXT, sql="#>>", nullability=Nullability.ALWAYS)
def at_path_text(text: str, path: Sequence[str | None]) -> str | None:
    """Returns `value #>> path`."""
    return _shown(_followed(text, path))


@function("extract_path_jsonb", (), Kind.JSONB, nullability=Nullability.ALWAYS)
def at_steps(text: str, *steps: str) -> str | None:
    """Returns `jsonb_extract_path(value, step, ...)`, and `value[step]...`."""
    return _written(_followed(text, steps))


@function("extract_path_text_jsonb", (), Kind.TEXT, nullability=Nullability.ALWAYS)
def at_steps_text(text: str, *steps: str) -> str | None:
    """Returns `jsonb_extract_path_text(value, step, ...)`."""
    return _shown(_followed(text, steps))


@function(
    "contains_jsonb",
    (Kind.JSONB, Kind.JSONB),
    Kind.BOOL,
    sql="@>",
    says="Whether the first jsonb, or array, contains the second.",
    example='\'{"a": 1, "b": 2}\'::jsonb @> \'{"b": 2}\'::jsonb',
    gives="true",
    also=(Named("jsonb_contains", "The same as `@>`.", "jsonb_contains('[1, 2]'::jsonb, '[2]'::jsonb)", "true"),),
)
def contains(text: str, part: str) -> bool:
    """Returns `value @> part`."""
    node, inner = (read(comparable(one)) for one in (text, part))
    if is_scalar(inner) and type(node) is not dict:
        return any(_equal(one, inner) for one in _elements(node))
    return _contains(node, inner)


@function(
    "contained_jsonb",
    (Kind.JSONB, Kind.JSONB),
    Kind.BOOL,
    sql="<@",
    says="Whether it is contained.",
    example="ARRAY[2, 2, 7] <@ ARRAY[1, 7, 4, 2, 6]",
    gives="true",
    also=(Named("jsonb_contained", "The same as `<@`.", "jsonb_contained('[2]'::jsonb, '[1, 2]'::jsonb)", "true"),),
)
def contained(part: str, text: str) -> bool:
    """Returns `part <@ value`."""
    return contains(text, part)


def _contains(node: Node, part: Node) -> bool:
    if type(part) is dict and type(node) is dict:
        return all(key in node and _contains(node[key], one) for key, one in part.items())
    if type(part) is list and type(node) is list:
        return all(
            any(_equal(one, other) if is_scalar(one) else _contains(other, one) for other in node) for one in part
        )
    return is_scalar(part) and _equal(node, part)


def _equal(left: Node, right: Node) -> bool:
    """Compares two values of which one is a scalar; Python takes a number for its text, and 1 for true."""
    return type(left) is type(right) and left == right


@function(
    "has_key_jsonb",
    (Kind.JSONB, Kind.TEXT),
    Kind.BOOL,
    sql="?",
    says="Whether a text is a key, or an element.",
    example="'{\"a\": 1, \"b\": 2}'::jsonb ? 'b'",
    gives="true",
    also=(Named("jsonb_exists", "The same as `?`.", "jsonb_exists('{\"a\": 1}'::jsonb, 'a')", "true"),),
)
def has_key(text: str, key: str) -> bool:
    """Returns `value ? key`: whether it has such a key, or such a string among its elements."""
    return _has(read(text), key)


@function(
    "has_any_key_jsonb",
    (Kind.JSONB, Kind.ARRAY),
    Kind.BOOL,
    sql="?|",
    says="Whether one of some texts is.",
    example="'{\"a\": 1, \"b\": 2}'::jsonb ?| ARRAY['b', 'd']",
    gives="true",
    also=(Named("jsonb_exists_any", "The same as `?|`.", "jsonb_exists_any('{\"a\": 1}'::jsonb, '{a,b}')", "true"),),
)
def has_any_key(text: str, keys: Sequence[str | None]) -> bool:
    """Returns `value ?| keys`."""
    node = read(text)
    return any(_has(node, key) for key in keys if key is not None)


@function(
    "has_all_keys_jsonb",
    (Kind.JSONB, Kind.ARRAY),
    Kind.BOOL,
    sql="?&",
    says="Whether all of some texts are.",
    example="'[\"a\", \"b\", \"c\"]'::jsonb ?& ARRAY['a', 'b']",
    gives="true",
    also=(Named("jsonb_exists_all", "The same as `?&`.", "jsonb_exists_all('{\"a\": 1}'::jsonb, '{a,b}')", "false"),),
)
def has_all_keys(text: str, keys: Sequence[str | None]) -> bool:
    """Returns `value ?& keys`."""
    node = read(text)
    return all(_has(node, key) for key in keys if key is not None)


def _has(node: Node, key: str) -> bool:
    if type(node) is dict:
        return key in node
    return any(type(one) is str and one == key for one in _elements(node))


@function(
    "concat_jsonb",
    (Kind.JSONB, Kind.JSONB),
    Kind.JSONB,
    sql=("jsonb_concat", "||"),
    says="The same as `||`.",
    example="jsonb_concat('{\"a\": 1}'::jsonb, '{\"b\": 2}'::jsonb)",
    gives='{"a": 1, "b": 2}',
    fallible=True,
)
def concatenated(left: str, right: str) -> str:
    """Returns `left || right`: of objects the union, in which the right one's values stand; else one array."""
    first, second = read(left), read(right)
    if type(first) is dict and type(second) is dict:
        return write(in_order(first | second))
    return composed(write([*_elements(first), *_elements(second)]))


@function(
    "subtract_jsonb_text",
    (Kind.JSONB, Kind.TEXT),
    Kind.JSONB,
    sql=("jsonb_delete", "-"),
    says="The same as `-`.",
    example="jsonb_delete('{\"a\": 1, \"b\": 2}'::jsonb, 'a')",
    gives='{"b": 2}',
    fallible=True,
)
def without_key(text: str, key: str) -> str:
    """Returns `value - key`: without that key, or without the elements that are that string."""
    return without_keys(text, [key])


@function("subtract_jsonb_path", (Kind.JSONB, Kind.ARRAY), Kind.JSONB, sql=("-", "jsonb_delete"), fallible=True)
def without_keys(text: str, keys: Sequence[str | None]) -> str:
    """Returns `value - keys`."""
    node = _deletable(text)
    if type(node) is dict:
        return write({key: one for key, one in node.items() if key not in keys})
    return write([one for one in node if type(one) is not str or one not in keys])


@function("subtract_jsonb_int4", (Kind.JSONB, Kind.INT4), Kind.JSONB, sql=("-", "jsonb_delete"), fallible=True)
def without_element(text: str, index: int) -> str:
    """Returns `value - index`."""
    node = _deletable(text)
    if type(node) is dict:
        raise SqlFailure("22023", "cannot delete from object using integer index")
    if -len(node) <= index < len(node):
        del node[index]
    return write(node)


def _deletable(text: str) -> Node:
    node = read(text)
    if is_scalar(node):
        raise SqlFailure("22023", "cannot delete from scalar")
    return node


@function(
    "delete_path_jsonb",
    (Kind.JSONB, Kind.ARRAY),
    Kind.JSONB,
    sql="#-",
    says="The value without what is at the end of a path.",
    example="'[\"a\", {\"b\": 1}]'::jsonb #- '{1,b}'",
    gives='["a", {}]',
    also=(
        Named(
            "jsonb_delete_path",
            "The same as `#-`.",
            "jsonb_delete_path('{\"a\": {\"b\": 1}}'::jsonb, '{a,b}')",
            '{"a": {}}',
        ),
    ),
    fallible=True,
)
def without_path(text: str, path: Sequence[str | None]) -> str:
    """Returns `value #- path`."""
    node = read(text)
    if is_scalar(node):
        raise SqlFailure("22023", "cannot delete path in scalar")
    if not node:
        return text
    place, key = _place(node, path)
    if _has_member(place, key):
        del place[key]
    return write(node)


@function(
    "set_jsonb",
    (Kind.JSONB, Kind.ARRAY, Kind.JSONB),
    Kind.JSONB,
    sql="jsonb_set",
    says="The value with another one at the end of a path.",
    example="jsonb_set('{\"a\": [0, 1]}'::jsonb, '{a,0}', '9'::jsonb)",
    gives='{"a": [9, 1]}',
    fallible=True,
)
@function("set_jsonb_bool", (Kind.JSONB, Kind.ARRAY, Kind.JSONB, Kind.BOOL), Kind.JSONB, sql="jsonb_set", fallible=True)
def with_value(text: str, path: Sequence[str | None], value: str, create: bool = True) -> str:
    """Returns `jsonb_set(value, path, new, create)`."""
    node = _settable(text)
    if not node and not create:
        return text
    place, key = _place(node, path)
    if _has_member(place, key):
        place[key] = read(value)
    elif create:
        _add(place, key, read(value))
    return composed(write(node))


@function(
    "insert_jsonb",
    (Kind.JSONB, Kind.ARRAY, Kind.JSONB),
    Kind.JSONB,
    sql="jsonb_insert",
    says="The value with another one inserted at the end of a path.",
    example="jsonb_insert('{\"a\": [0, 1, 2]}'::jsonb, '{a,1}', '\"new\"'::jsonb)",
    gives='{"a": [0, "new", 1, 2]}',
    fallible=True,
)
@function(
    "insert_jsonb_bool", (Kind.JSONB, Kind.ARRAY, Kind.JSONB, Kind.BOOL), Kind.JSONB, sql="jsonb_insert", fallible=True
)
def with_inserted(text: str, path: Sequence[str | None], value: str, after: bool = False) -> str:
    """Returns `jsonb_insert(value, path, new, after)`."""
    node = _settable(text)
    place, key = _place(node, path)
    if not _has_member(place, key):
        _add(place, key, read(value))
    elif type(place) is dict:
        raise SqlFailure("22023", "cannot replace existing key")
    else:
        place.insert(key + after, read(value))
    return composed(write(node))


def _settable(text: str) -> Node:
    node = read(text)
    if is_scalar(node):
        raise SqlFailure("22023", "cannot set path in scalar")
    return node


def _place(node: Node, path: Sequence[str | None]) -> tuple[Node, Any]:
    """Returns what the last step of `path` is taken in, with the key or index that it is there.

    An index before the first element is -1, one behind the last is the length. What is not there on the way is None.
    """
    key: Any = None
    for position, step in enumerate(path, 1):
        if position > 1:
            if not _has_member(node, key):
                return None, key
            node = node[key]
        if step is None:
            raise SqlFailure("22004", f"path element at position {position} is null")
        key = step
        if type(node) is list:
            index = index_of_step(step)
            if index is None:
                raise SqlFailure("22P02", f'path element at position {position} is not an integer: "{step}"')
            key = min(index, len(node)) if index >= 0 else max(index + len(node), -1)
    return (node, key) if path else (None, key)


def _has_member(node: Node, key: Any) -> bool:
    return key in node if type(node) is dict else type(node) is list and 0 <= key < len(node)


def _add(place: Node, key: Any, new: Node) -> None:
    """Adds a member under a key that an object has not, or at one of the ends of an array."""
    if type(place) is dict:
        pairs = in_order(place | {key: new})
        place.clear()
        place.update(pairs)
    elif type(place) is list:
        place.insert(max(key, 0), new)
