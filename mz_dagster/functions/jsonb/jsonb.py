"""The values of jsonb: reading, writing and comparing.

A jsonb is its canonical text, which is PostgreSQL's output: keys by their length in bytes, then by their bytes, the
last of equal keys only, numbers as numerics with the digits they were given, `{"a": 1, "b": [2, 3]}`. `read` and
`write` turn that text into Python's objects and back. A number is a `Number`, the text of a numeric: its trailing
zeros are shown, although they do not tell it from another, so equal values may have different texts.

Nested deeper than 200 levels is an error, as in PostgreSQL beyond what its stack holds.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Any

from mz_dagster.functions.registry import SqlFailure, function, pure
from mz_dagster.scalars.types import Kind

_DEPTH = 200
#: A value with two levels of members around it.
_DOCUMENT_DEPTH = _DEPTH + 2
#: The digits that a numeric of PostgreSQL has at most, before and behind the point.
_WHOLE_DIGITS = 131072
_FRACTION_DIGITS = 16383
_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_ZERO_AT_END = re.compile(r"\.[0-9]*0(?![0-9])")
#: Strings, which stay, and zeros at the end of a fraction.
_TRAILING_ZEROS = re.compile(r'("(?:[^"\\]|\\.)*")|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])')


class Number(str):
    """A number: the text of a numeric, without an exponent."""

    __slots__ = ()


#: None, bool, Number, str, list or dict; a dict's keys are in their order.
Node = Any


class _Decoder(json.JSONDecoder):
    """Python's decoder; one that is sent to a worker is made anew there."""

    def __init__(self, number: Any) -> None:
        super().__init__(parse_int=number, parse_float=number, parse_constant=_no_constant)
        self._number = number

    def __reduce__(self) -> Any:
        return _Decoder, (self._number,)


def _no_constant(_: str) -> Any:
    raise _invalid()


def _invalid() -> SqlFailure:
    return SqlFailure("22P02", "invalid input syntax for type json")


def number_of(text: str) -> Number:
    """Returns the number that `text` spells, as PostgreSQL's numeric shows it.

    Example:
        >>> str(number_of("1.50e1")), str(number_of("-0.0")), str(number_of("1e-3"))
        ('15.0', '0.0', '0.001')
    """
    if len(text) < 1000 and "e" not in text and "E" not in text and not text.startswith("-0"):
        return Number(text)
    match = _NUMBER.fullmatch(text)
    assert match is not None, text
    sign, whole, fraction, exponent = match[1], match[2], match[3] or "", match[4]
    shift = int(exponent) if exponent is not None and len(exponent) < 12 else 0
    overflow = SqlFailure("22003", "value overflows numeric format")
    if exponent is not None and (len(exponent) >= 12 or abs(shift) >= 2**30 - 1):
        raise overflow
    scale = max(0, len(fraction) - shift)
    digits = (whole + fraction).lstrip("0")
    if scale > _FRACTION_DIGITS or (digits and len(digits) + shift - len(fraction) > _WHOLE_DIGITS):
        raise overflow
    if not digits:
        return Number("0." + "0" * scale if scale else "0")
    if shift > len(fraction):
        digits += "0" * (shift - len(fraction))
    digits = digits.rjust(scale + 1, "0")
    return Number(f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}")


_CANONICAL = _Decoder(Number)
_FOREIGN = _Decoder(number_of)
_RAW = _Decoder(Number)


def read(text: str) -> Node:
    """Returns the value of a canonical text."""
    return _CANONICAL.raw_decode(text)[0]


def write(node: Node) -> str:
    """Returns the canonical text of a value.

    Example:
        >>> write({"a": [None, True, Number("1.0"), "é"]})
        '{"a": [null, true, 1.0, "é"]}'
    """
    kind = type(node)
    if kind is Number:
        return str(node)
    if kind is str:
        return encode_basestring(node)
    if kind is dict:
        return "{" + ", ".join([f"{encode_basestring(key)}: {write(one)}" for key, one in node.items()]) + "}"
    if kind is list:
        return "[" + ", ".join([write(one) for one in node]) + "]"
    return "null" if node is None else "true" if node else "false"


def rank(key: str) -> tuple[int, bytes]:
    """Returns what the keys of an object are ordered by."""
    encoded = key.encode()
    return len(encoded), encoded


def in_order(pairs: dict[str, Node]) -> dict[str, Node]:
    """Returns the object with its keys in their order."""
    return {key: pairs[key] for key in sorted(pairs, key=rank)} if len(pairs) > 1 else pairs


def is_scalar(node: Node) -> bool:
    """Returns whether a value is neither an object nor an array."""
    return type(node) is not dict and type(node) is not list


def type_of(node: Node) -> str:
    """Returns the name of a value's type: `object`, `array`, `string`, `number`, `boolean`, `null`."""
    names = {dict: "object", list: "array", str: "string", Number: "number", bool: "boolean"}
    return names.get(type(node), "null")


def text_of(node: Node) -> str | None:
    """Returns a value as text: a string without its quotes, NULL for null."""
    return None if node is None else node if type(node) is str else write(node)


@pure("cast_text_to_jsonb", "cast_json_to_jsonb")
def parsed(text: str) -> str:
    """Returns the canonical text of what any JSON text says.

    Example:
        >>> parsed(' {"b":1e2, "a": 1.50, "b":[ ]}')
        '{"a": 1.50, "b": []}'
    """
    return write(node_of(text))


def node_of(text: str) -> Node:
    """Returns the value that any JSON text says."""
    try:
        node = _FOREIGN.decode(text)
    except json.JSONDecodeError as error:
        # A string without an end is blamed at its beginning.
        unended = error.msg.startswith(("Unterminated", "Invalid \\uXXXX"))
        check_escapes(text if unended else text[: error.pos])
        raise _invalid() from None
    except RecursionError:
        raise _too_deep() from None
    check_escapes(text)
    return _canonical(node, _DEPTH)


def document_of(text: str) -> Node:
    """Returns what any JSON text says, read as PostgreSQL's json: numbers as they stand, any escape in a string.

    Raises:
        SqlFailure: It is no JSON text, or nested too deep.
    """
    try:
        # Most texts are an object and nothing around it, which this tells in half the time.
        node, end = _RAW.raw_decode(text) if text.startswith("{") else (None, -1)
        if end != len(text):
            node = _RAW.decode(text)
    except json.JSONDecodeError:
        raise _invalid() from None
    except RecursionError:
        raise _too_deep() from None
    if text.count("[") + text.count("{") > _DOCUMENT_DEPTH:
        _refuse_deep(node, _DOCUMENT_DEPTH)
    return node


def members_of(text: str) -> dict[str, str]:
    """Returns the members of an object, which `text` is known to spell, by name, as they stand; the last of each name.

    Example:
        >>> members_of('{"a": 1, "b" : [1e2,  "x"], "a": {} }')
        {'a': '{}', 'b': '[1e2,  "x"]'}
    """
    return dict(member_texts(text))


def member_texts(text: str) -> list[tuple[str, str]]:
    """Returns the members of an object, which `text` is known to spell, with the texts of their values."""
    found: list[tuple[str, str]] = []
    position = _blanks(text, text.index("{") + 1)
    while text[position] != "}":
        name, position = _RAW.raw_decode(text, position)
        value, position = _piece(text, _blanks(text, _blanks(text, position) + 1))
        found.append((name, value))
    return found


def element_texts(text: str) -> list[str]:
    """Returns the texts of the elements of an array, which `text` is known to spell.

    Example:
        >>> element_texts('[1e2 , {"a":  null},[]]')
        ['1e2', '{"a":  null}', '[]']
    """
    found: list[str] = []
    position = _blanks(text, text.index("[") + 1)
    while text[position] != "]":
        value, position = _piece(text, position)
        found.append(value)
    return found


def _piece(text: str, start: int) -> tuple[str, int]:
    """Returns the text of the value that begins at `start`, and where what follows the comma behind it begins."""
    _, end = _RAW.raw_decode(text, start)
    behind = _blanks(text, end)
    return text[start:end], _blanks(text, behind + 1) if text[behind] == "," else behind


def string_of(text: str) -> str:
    """Returns the string that a value, which is one, spells."""
    found: str = _RAW.raw_decode(text)[0]
    return found


def without_blanks(text: str) -> str:
    """Returns a value without what JSON may have around it."""
    return text.strip(" \t\n\r")


def _blanks(text: str, position: int) -> int:
    while text[position] in " \t\n\r":
        position += 1
    return position


def _too_deep() -> SqlFailure:
    return SqlFailure("54001", "stack depth limit exceeded")


def _canonical(node: Node, depth: int) -> Node:
    if is_scalar(node):
        return node
    if not depth:
        raise _too_deep()
    if type(node) is dict:
        return in_order({key: _canonical(one, depth - 1) for key, one in node.items()})
    return [_canonical(one, depth - 1) for one in node]


def _refuse_deep(node: Node, depth: int) -> None:
    if is_scalar(node):
        return
    if not depth:
        raise _too_deep()
    for one in node.values() if type(node) is dict else node:
        _refuse_deep(one, depth - 1)


def composed(text: str) -> str:
    """Returns the text of a value that was put together of others, unless it is nested too deep."""
    if text.count("[") + text.count("{") > _DEPTH:
        _canonical(read(text), _DEPTH)
    return text


def check_escapes(text: str) -> None:
    """Refuses escapes of U+0000 and of halves of surrogate pairs, which Python lets pass; the first one counts."""
    if "\\u" not in text:
        return
    high = -1
    for match in _ESCAPE.finditer(text):
        unit = int(match[1], 16) if match[1] else 0x20
        is_low = 0xDC00 <= unit < 0xE000
        if match[0] == "\\u" or is_low != (high >= 0) or (is_low and high != match.start()):
            raise _invalid()
        if unit == 0:
            raise SqlFailure("22P05", "unsupported Unicode escape sequence")
        high = match.end() if 0xD800 <= unit < 0xDC00 else -1
    if high >= 0:
        raise _invalid()


@function("comparable_jsonb", (Kind.JSONB,), Kind.JSONB, internal=True)
def comparable(text: str) -> str:
    """Returns the one text of all values that equal this one: its numbers without zeros at the end.

    Example:
        >>> comparable('[1.0, 2.50, "3.0"]')
        '[1, 2.5, "3.0"]'
    """
    return _TRAILING_ZEROS.sub(r"\1\2", text) if _ZERO_AT_END.search(text) else text


@function("ordered_jsonb", (Kind.JSONB,), Kind.BYTEA, internal=True)
def ordered(text: str) -> bytes:
    """Returns the order of a value, and behind it what tells it from those that equal it: its text, with its length."""
    encoded = text.encode()
    return order(text) + encoded + len(encoded).to_bytes(4, "big")


@function("restored_jsonb", (Kind.BYTEA,), Kind.JSONB, internal=True)
def restored(key: bytes) -> str:
    """Returns the value that `ordered` was made of.

    Example:
        >>> restored(ordered("[1.50]"))
        '[1.50]'
    """
    return key[-4 - int.from_bytes(key[-4:], "big") : -4].decode()


@function("order_jsonb", (Kind.JSONB,), Kind.BYTEA, internal=True)
def order(text: str) -> bytes:
    """Returns bytes that compare as PostgreSQL compares the value.

    Objects come after arrays, these after booleans, numbers, strings and null; what has more members comes after what
    has fewer. A scalar by itself compares as an array of one, but comes before it.
    """
    node = read(text)
    if is_scalar(node):
        return _ARRAY + (1).to_bytes(4, "big") + b"\0" + _order(node)
    return _order(node)


_NULL, _STRING, _NUMERIC, _BOOLEAN, _ARRAY, _OBJECT = (bytes([i]) for i in range(1, 7))


def _order(node: Node) -> bytes:
    kind = type(node)
    if kind is str:
        return b"".join((_STRING, node.encode(), b"\0"))
    if kind is Number:
        return _NUMERIC + _number_order(node)
    if kind is dict:
        pairs = [key.encode() + b"\0" + _order(one) for key, one in node.items()]
        return _OBJECT + len(node).to_bytes(4, "big") + b"".join(pairs)
    if kind is list:
        return _ARRAY + len(node).to_bytes(4, "big") + b"\1" + b"".join([_order(one) for one in node])
    return _NULL if node is None else _BOOLEAN + (b"\1" if node else b"\0")


def _number_order(number: str) -> bytes:
    """Returns the sign, the power of ten of the first digit, and the digits; of a negative number their complement."""
    whole, _, fraction = number.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return b"\1"
    power = len(digits) - len(fraction)
    magnitude = (power + 2**31).to_bytes(4, "big") + digits.rstrip("0").encode() + b"\0"
    return b"\0" + bytes(255 - one for one in magnitude) if number.startswith("-") else b"\2" + magnitude


@function("eq_jsonb", (Kind.JSONB, Kind.JSONB), Kind.BOOL, sql="=")
def equal(left: str, right: str) -> bool:
    """Returns whether two values are equal."""
    return left == right or comparable(left) == comparable(right)


@function("ne_jsonb", (Kind.JSONB, Kind.JSONB), Kind.BOOL, sql="<>")
def unequal(left: str, right: str) -> bool:
    """Returns whether two values differ."""
    return not equal(left, right)


@function("lt_jsonb", (Kind.JSONB, Kind.JSONB), Kind.BOOL, sql="<")
def less(left: str, right: str) -> bool:
    """Returns whether `left` comes before `right`."""
    return order(left) < order(right)


@function("le_jsonb", (Kind.JSONB, Kind.JSONB), Kind.BOOL, sql="<=")
def less_or_equal(left: str, right: str) -> bool:
    """Returns whether `left` does not come after `right`."""
    return order(left) <= order(right)


@function("gt_jsonb", (Kind.JSONB, Kind.JSONB), Kind.BOOL, sql=">")
def greater(left: str, right: str) -> bool:
    """Returns whether `left` comes after `right`."""
    return order(left) > order(right)


@function("ge_jsonb", (Kind.JSONB, Kind.JSONB), Kind.BOOL, sql=">=")
def greater_or_equal(left: str, right: str) -> bool:
    """Returns whether `left` does not come before `right`."""
    return order(left) >= order(right)
