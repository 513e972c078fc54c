r"""LIKE and ILIKE, in time that no pattern can make more than the product of its length and the text's.

`%` is any characters, `_` one; the backslash takes what follows it as it is. A pattern that ends with a lone one fails
only if matching gets that far: if what precedes it matches a part of the text from its start, with something left.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.functions.registry import Named, SqlFailure, function
from mz_dagster.functions.text.characters import lower
from mz_dagster.scalars.types import Kind

ENDS_WITH_ESCAPE = "LIKE pattern must not end with escape character"
INVALID_ESCAPE = "invalid escape string"

#: A token of a pattern: whether it is a wildcard, and its character.
Token = tuple[bool, str]
_ANY, _ONE = (True, "%"), (True, "_")


def tokens(pattern: str) -> tuple[tuple[Token, ...], bool]:
    r"""Returns the pattern's tokens, and whether a lone escape character follows them.

    Example:
        >>> tokens("a\\%_")
        (((False, 'a'), (False, '%'), (True, '_')), False)
    """
    found: list[Token] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            if position + 1 == len(pattern):
                return tuple(found), True
            found.append((False, pattern[position + 1]))
            position += 2
            continue
        found.append((character in "%_", character))
        position += 1
    return tuple(found), False


@function(
    "like_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="like",
    says="Whether a pattern matches a whole text: `%` is any characters, `_` is one.",
    example="'abc' LIKE 'a%'",
    gives="true",
    also=(Named("~~", "The same as `LIKE`.", "'abc' ~~ '_b%'", "true"),),
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def like(text: str, pattern: str) -> bool:
    """Returns whether a text is like a pattern.

    Example:
        >>> like("abcd", "a%_d"), like("abcd", "a_d")
        (True, False)
    """
    wanted, lone = tokens(pattern)
    if not lone:
        return _matches(text, wanted)
    if _matches(text, (*wanted, _ONE, _ANY)):
        raise SqlFailure("22025", ENDS_WITH_ESCAPE)
    return False


@function(
    "not_like_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="not like",
    says="The opposite of `LIKE`.",
    example="'abc' NOT LIKE '_b_'",
    gives="false",
    also=(Named("!~~", "The same as `NOT LIKE`.", "'abc' !~~ 'c%'", "true"),),
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def not_like(text: str, pattern: str) -> bool:
    """Returns whether a text is not like a pattern."""
    return not like(text, pattern)


@function(
    "ilike_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="ilike",
    says="`LIKE`, upper and lower case being the same.",
    example="'ABC' ILIKE 'a%'",
    gives="true",
    also=(Named("~~*", "The same as `ILIKE`.", "'abc' ~~* 'A%'", "true"),),
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def ilike(text: str, pattern: str) -> bool:
    """Returns whether a text is like a pattern, ASCII letters being the same in both cases."""
    return like(lower(text), lower(pattern))


@function(
    "not_ilike_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.BOOL,
    sql="not ilike",
    says="The opposite of `ILIKE`.",
    example="'ABC' NOT ILIKE 'b%'",
    gives="true",
    also=(Named("!~~*", "The same as `NOT ILIKE`.", "'abc' !~~* 'A%'", "false"),),
    signatures=((Kind.CHAR, Kind.TEXT),),
    fallible=True,
)
def not_ilike(text: str, pattern: str) -> bool:
    """Returns whether a text is not like a pattern, ASCII letters being the same in both cases."""
    return not ilike(text, pattern)


# x LIKE p ESCAPE e is x LIKE like_escape(p, e).
@function(
    "like_escape_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.TEXT,
    sql="like_escape",
    says="A pattern of `LIKE` with another escape character: what `ESCAPE` calls.",
    example="'a%' LIKE 'a!%' ESCAPE '!'",
    gives="true",
    fallible=True,
)
def like_escape(pattern: str, escape: str) -> str:
    r"""Returns a pattern with another escape character than the backslash, or none, as one with that.

    Example:
        >>> print(like_escape(r"a!%\b", "!"))
        a\%\\b
    """
    if len(escape) > 1:
        raise SqlFailure("22025", INVALID_ESCAPE)
    if escape == "\\":
        return pattern
    rewritten, escaped = "", False
    for character in pattern:
        if character == escape and not escaped:
            rewritten += "\\"
            escaped = True
            continue
        rewritten += "\\\\" if character == "\\" and not escaped else character
        escaped = False
    return rewritten


def _matches(text: str, wanted: Sequence[Token]) -> bool:
    """Returns whether tokens match all of a text: what follows a `%` is tried where it comes first, else later."""
    at, place = 0, 0
    retry: tuple[int, int] | None = None  # the token after the last `%`, and where the text it matches was last begun
    while at < len(text):
        token = wanted[place] if place < len(wanted) else None
        if token == _ANY:
            place += 1
            retry = place, at
        elif token is not None and (token == _ONE or token == (False, text[at])):
            at, place = at + 1, place + 1
        elif retry is not None:
            place, at = retry[0], retry[1] + 1
            retry = place, at
        else:
            return False
    return all(token == _ANY for token in wanted[place:])
