"""The text of arrays and records, from the texts of their elements and back."""

from __future__ import annotations

import re

from mz_dagster.functions.registry import SqlFailure, pure

_SPACE = " \t\n\v\f\r"
#: An array in which nothing is quoted.
_PLAIN = re.compile(r'[ \t\n\v\f\r]*\{([^{}"\\]+)\}[ \t\n\v\f\r]*')
_QUOTED_IN_ARRAY = re.compile(r'[{}",\\ \t\n\v\f\r]')
_QUOTED_IN_RECORD = re.compile(r'[()",\\ \t\n\v\f\r]')


@pure("array_text")
def array_text(elements: list[str | None]) -> str:
    r"""Returns the text of an array, given those of its elements.

    Example:
        >>> array_text(["a", None, "b c", "", "null", '"'])
        '{a,NULL,"b c","","null","\\""}'
    """
    return "{" + ",".join("NULL" if one is None else _element(one) for one in elements) + "}"


def _element(text: str) -> str:
    if text and text.upper() != "NULL" and not _QUOTED_IN_ARRAY.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@pure("record_text")
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


@pure("array_elements_of_text")
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
    at = _skipped(text, 0)
    if text[at : at + 1] == "[":
        raise SqlFailure("0A000", "arrays that are not counted from 1 are not supported")
    if text[at : at + 1] != "{":
        raise _malformed(text)
    at = _skipped(text, at + 1)
    elements: list[str | None] = []
    if text[at : at + 1] == "}":
        _check_end(text, at + 1)
        return elements
    while True:
        element, at = _read(text, _skipped(text, at))
        elements.append(element)
        if text[at : at + 1] == "}":
            _check_end(text, at + 1)
            return elements
        if text[at : at + 1] != ",":
            raise _malformed(text)
        at += 1


def _read(text: str, at: int) -> tuple[str | None, int]:
    """Returns an element and where it ends, blanks behind it skipped."""
    if text[at : at + 1] == "{":
        raise SqlFailure("0A000", "arrays of several dimensions are not supported")
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
