"""The text of arrays and records, from the texts of their elements and back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mz_dagster.functions.arrays.dimensions import check_shape, dimensions_text, too_deep
from mz_dagster.functions.arrays.limits import MOST_DIMENSIONS, OTHER_BOUNDS, SEVERAL_DIMENSIONS
from mz_dagster.functions.errors import failure
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

_SPACE = " \t\n\v\f\r"
#: How a text begins whose array may have dimensions other than one from 1.
_BRACES_OR_BOUNDS = re.compile(r"[ \t\n\v\f\r]*(\[|\{[ \t\n\v\f\r]*\{)")
#: The bounds of a dimension; the lower one may be left out.
_BOUNDS = re.compile(r"\[([-+0-9]+)(?::([-+0-9]+))?\]")
_INTEGER = re.compile("[-+]?[0-9]+")
#: An array in which nothing is quoted.
_PLAIN = re.compile(r'[ \t\n\v\f\r]*\{([^{}"\\]+)\}[ \t\n\v\f\r]*')
_QUOTED_IN_ARRAY = re.compile(r'[{}",\\ \t\n\v\f\r]')
_QUOTED_IN_RECORD = re.compile(r'[()",\\ \t\n\v\f\r]')


@function("array_text", (Kind.ARRAY,), Kind.TEXT)
def array_text(elements: list[str | None]) -> str:
    r"""Returns the text of an array, given those of its elements.

    Example:
        >>> array_text(["a", None, "b c", "", "null", '"'])
        '{a,NULL,"b c","","null","\\""}'
    """
    return "{" + ",".join("NULL" if one is None else _element(one) for one in elements) + "}"


@function("dimensioned_text", (Kind.ARRAY, Kind.ARRAY, Kind.ARRAY), Kind.TEXT)
def dimensioned_text(elements: Sequence[str | None], lengths: Sequence[int], lowers: Sequence[int]) -> str:
    """Returns the text of an array of any dimensions, given those of its elements.

    Example:
        >>> dimensioned_text(["1", "2", "3", "4"], [2, 2], [1, 1]), dimensioned_text(["1"], [1], [0])
        ('{{1,2},{3,4}}', '[0:0]={1}')
    """
    if not lengths:
        return "{}"
    found = ["NULL" if one is None else _element(one) for one in elements]
    for length in reversed(lengths):
        found = ["{" + ",".join(found[at : at + length]) + "}" for at in range(0, len(found), length)]
    bounds = dimensions_text(lengths, lowers) if any(one != 1 for one in lowers) else None
    return f"{bounds}={found[0]}" if bounds else found[0]


def _element(text: str) -> str:
    if text and text.upper() != "NULL" and not _QUOTED_IN_ARRAY.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@function("record_text", (Kind.ARRAY,), Kind.TEXT)
def record_text(fields: list[str | None]) -> str:
    """Returns the text of a record, given those of its fields.

    Example:
        >>> record_text(["1", None, "b c", ""])
        '(1,,"b c","")'
    """
    return "(" + ",".join("" if one is None else _field(one) for one in fields) + ")"


def _field(text: str) -> str:
    if text and not _QUOTED_IN_RECORD.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{escaped}"'


@function("array_elements_of_text", (Kind.TEXT,), Kind.ARRAY, fallible=True)
def elements_of(text: str) -> list[str | None]:
    """Returns the texts of the elements that an array's text spells; arrays of one dimension, counted from 1.

    Example:
        >>> elements_of('{a, NULL ,"b, c",{0}'.replace("{0}", "d}"))
        ['a', None, 'b, c', 'd']
    """
    if (plain := _PLAIN.fullmatch(text)) is not None:
        words = [one.strip(_SPACE) for one in plain.group(1).split(",")]
        if all(words):
            return [None if one.upper() == "NULL" else one for one in words]
    elements, lengths, lowers = dimensioned_of_text(text)
    if len(lengths) > 1:
        raise failure(SEVERAL_DIMENSIONS)
    if any(lower != 1 for lower in lowers):
        raise failure(OTHER_BOUNDS)
    return elements


def has_dimensions(text: str) -> bool:
    """Returns whether a text spells an array of several dimensions, or one that is not counted from 1.

    Example:
        >>> has_dimensions("{{1,2},{3,4}}"), has_dimensions("[0:1]={1,2}"), has_dimensions("[1:2]={1,2}")
        (True, True, False)
    """
    if not _BRACES_OR_BOUNDS.match(text):
        return False
    try:
        _, lengths, lowers = dimensioned_of_text(text)
    except SqlFailure:
        return True  # whoever reads it says what is wrong with it
    return len(lengths) > 1 or any(lower != 1 for lower in lowers)


@function("dimensioned_of_text", (Kind.TEXT,), Kind.DIMENSIONED, fallible=True)
def dimensioned_of_text(text: str) -> tuple[list[str | None], list[int], list[int]]:
    """Returns the texts of the elements that an array's text spells, the lengths of its dimensions and their bounds.

    Example:
        >>> dimensioned_of_text("[0:1][1:2]={{1,2},{3,4}}")
        (['1', '2', '3', '4'], [2, 2], [0, 1])
    """
    bounds, at = _bounds(text)
    if text[at : at + 1] != "{":
        raise _malformed(text)
    braces = text[at:]  # which is all that an error in them shows
    elements: list[str | None] = []
    lengths: list[int] = []
    _check_end(braces, _level(braces, 1, 1, elements, lengths))
    if bounds and [last - first + 1 for first, last in bounds] != lengths:
        raise _malformed(text)
    lowers = [first for first, _ in bounds] or [1] * len(lengths)
    check_shape(lengths, lowers)
    return elements, lengths, lowers


def _bounds(text: str) -> tuple[list[tuple[int, int]], int]:
    """Returns the bounds that a text begins with, and where its braces begin."""
    found: list[tuple[int, int]] = []
    at = _skipped(text, 0)
    while text[at : at + 1] == "[":
        if len(found) == MOST_DIMENSIONS:
            raise too_deep(len(found) + 1)
        written = _BOUNDS.match(text, at)
        if written is None:
            raise _malformed(text)
        first, last = written.groups()
        lower, upper = (1, _number(first)) if last is None else (_number(first), _number(last))
        if upper < lower:
            raise SqlFailure("2202E", "upper bound cannot be less than lower bound")
        found.append((lower, upper))
        at = _skipped(text, written.end())
    if found:
        if text[at : at + 1] != "=":
            raise _malformed(text)
        at = _skipped(text, at + 1)
    return found, at


def _number(digits: str) -> int:
    """Returns the number at the beginning of digits and signs, as C's atoi does."""
    found = _INTEGER.match(digits)
    return int(found.group()) if found else 0


def _level(text: str, at: int, depth: int, elements: list[str | None], lengths: list[int]) -> int:
    """Adds what stands between braces to `elements`, and returns where it ends.

    Args:
        text: The array's text.
        at: Behind the brace that opens.
        depth: How many are open.
        elements: Those before.
        lengths: Of the dimensions that are known, in which the one of `depth` and those within must be these.
    """
    if depth > MOST_DIMENSIONS:
        raise too_deep(depth)
    at, count = _skipped(text, at), 0
    if depth == 1 and text[at : at + 1] == "}":
        return at + 1
    is_first = len(lengths) < depth
    if is_first:
        if elements:
            raise _malformed(text)
        lengths.append(0)
    nests = text[at : at + 1] == "{"
    if not nests and len(lengths) > depth:
        raise _malformed(text)
    while True:
        at = _skipped(text, at)
        if (text[at : at + 1] == "{") is not nests:
            raise _malformed(text)
        if nests:
            at = _skipped(text, _level(text, at + 1, depth + 1, elements, lengths))
        else:
            element, at = _read(text, at)
            elements.append(element)
        count += 1
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise _malformed(text)
        at += 1
    if is_first:
        lengths[depth - 1] = count
    elif lengths[depth - 1] != count:
        raise _malformed(text)
    return at + 1


def _read(text: str, at: int) -> tuple[str | None, int]:
    """Returns an element and where it ends, blanks behind it skipped."""
    if text[at : at + 1] == '"':
        found, at = _quoted(text, at + 1)
        return found, _skipped(text, at)
    characters: list[str] = []
    escaped = False
    blanks = 0  # behind the last character that is none, or is escaped
    while at < len(text) and text[at] not in ",}":
        one = text[at]
        if one in '{"':
            raise _malformed(text)
        blanks = blanks + 1 if one in _SPACE else 0
        if one == "\\":
            at += 1
            if at >= len(text):
                raise _malformed(text)
            one, escaped, blanks = text[at], True, 0
        characters.append(one)
        at += 1
    found = "".join(characters[: len(characters) - blanks])
    if not found:
        raise _malformed(text)
    return (None if found.upper() == "NULL" and not escaped else found), at


def _quoted(text: str, at: int) -> tuple[str, int]:
    characters: list[str] = []
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 1
        if at >= len(text):
            break
        characters.append(text[at])
        at += 1
    if at >= len(text):
        raise _malformed(text)
    return "".join(characters), at + 1


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _check_end(text: str, at: int) -> None:
    if _skipped(text, at) != len(text):
        raise _malformed(text)


def _malformed(text: str) -> SqlFailure:
    return SqlFailure("22P02", f'malformed array literal: "{text}"')
