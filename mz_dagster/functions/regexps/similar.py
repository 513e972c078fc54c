"""SQL's SIMILAR TO: its patterns as regular expressions."""

from __future__ import annotations

from mz_dagster.functions.function import Nullability
from mz_dagster.functions.regexps.regexp import substring
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

_WILD = {"%": ".*", "_": ".", "(": "(?:"}


@function(
    "similar_to_escape_text",
    (Kind.TEXT,),
    Kind.TEXT,
    sql="similar_to_escape",
    says="The regular expression that a pattern of `SIMILAR TO` is.",
    example="'abc' SIMILAR TO '%(b|d)%'",
    gives="true",
    fallible=True,
)
@function("similar_to_escape_text_text", (Kind.TEXT, Kind.TEXT), Kind.TEXT, sql="similar_to_escape", fallible=True)
def similar_to_escape(pattern: str, escape: str = "\\") -> str:
    r"""Returns the regular expression that a pattern of SIMILAR TO means.

    Example:
        >>> similar_to_escape("a_(b|c)%"), similar_to_escape("10!%", "!")
        ('^(?:a.(?:b|c).*)$', '^(?:10\\%)$')
    """
    if len(escape) > 1:
        raise SqlFailure("22025", "invalid escape string")
    pieces: list[str] = []
    separators = 0
    escaped = bracket = False
    for character in pattern:
        if escaped:
            escaped = False
            if character == '"' and not bracket:
                separators += 1
                pieces.append(_separator(separators))
            else:
                pieces.append("\\" + character)
        elif character == escape:
            escaped = True
        elif bracket:
            pieces.append("\\\\" if character == "\\" else character)
            bracket = character != "]"
        elif character in _WILD:
            pieces.append(_WILD[character])
        else:
            bracket = character == "["
            pieces.append("\\" + character if character in "\\.^$" else character)
    return f"^(?:{''.join(pieces)})$"


def _separator(number: int) -> str:
    """Returns what divides a pattern of SUBSTRING: as little as possible before the part that is wanted."""
    if number > 2:
        raise SqlFailure("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")
    return "){1,1}?(" if number == 1 else "){1,1}(?:"


@function(
    "substring_text_similar",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="substring",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def substring_similar(text: str, pattern: str, escape: str) -> str | None:
    """Returns what a pattern of SIMILAR TO marks by two escaped double quotes.

    Example:
        >>> substring_similar("foobar", '%#"o_b#"%', "#")
        'oob'
    """
    return substring(text, similar_to_escape(pattern, escape))
