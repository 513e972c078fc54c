"""Group size hints: `OPTIONS (AGGREGATE INPUT GROUP SIZE = n, ...)` behind the clauses of a SELECT.

Owns their grammar, which the parser of queries does not know: they are cut out of the text, blank for blank, so that
all positions stay. A hint says how many rows a group is expected to have at most; it never changes a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.sql.errors import DuplicateColumn, InvalidSyntax, UnsupportedForm, ValueOutOfRange
from mz_dagster.sql.lexer import Token, TokenKind

_AGGREGATE = ("aggregate", "input", "group", "size")
_DISTINCT_ON = ("distinct", "on", "input", "group", "size")
_LIMIT = ("limit", "input", "group", "size")
_EXPECTED = ("expected", "group", "size")


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """What a SELECT's hints say; None where nothing is said.

    Attributes:
        aggregate: Rows per group of GROUP BY.
        distinct_on: Rows per group of DISTINCT ON.
        limit: Rows in front of LIMIT.
    """

    aggregate: int | None = None
    distinct_on: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Hint:
    """One OPTIONS clause.

    Attributes:
        select: The offset of the word SELECT that it belongs to.
        sizes: What it says.
    """

    select: int
    sizes: GroupSizes


def cut_hints(sql: str, tokens: tuple[Token, ...], offset: int) -> tuple[str, tuple[Hint, ...]]:
    """Returns the text with blanks in the place of its hints, and the hints.

    Args:
        sql: The text.
        tokens: Its tokens.
        offset: Where the text begins in the statement's, for errors.

    Example:
        >>> from mz_dagster.sql.lexer import tokens_of
        >>> text = "SELECT 1 OPTIONS (LIMIT INPUT GROUP SIZE = 9) LIMIT 1"
        >>> cut_hints(text, tokens_of(text), 0)[1]
        (Hint(select=0, sizes=GroupSizes(aggregate=None, distinct_on=None, limit=9)),)
    """
    hints: list[Hint] = []
    for i, token in enumerate(tokens):
        if not (token.is_word("options") and tokens[i + 1].is_symbol("(") and _starts_hint(tokens[i + 2 : i + 4])):
            continue
        select = _select_of(tokens[:i])
        if select is None:
            raise InvalidSyntax('syntax error at or near "options"', position=offset + token.start + 1)
        sizes, end = _sizes(tokens, i + 2, offset)
        if any(hint.select == select for hint in hints):
            raise InvalidSyntax("a SELECT has one OPTIONS clause", position=offset + token.start + 1)
        hints.append(Hint(select, sizes))
        sql = sql[: token.start] + " " * (end - token.start) + sql[end:]
    return sql, tuple(hints)


def _starts_hint(two: tuple[Token, ...]) -> bool:
    words = tuple(token.value for token in two if token.kind is TokenKind.WORD)
    return words in [name[:2] for name in (_AGGREGATE, _DISTINCT_ON, _LIMIT, _EXPECTED)]


def _select_of(before: tuple[Token, ...]) -> int | None:
    """Returns where the SELECT stands that the end of the tokens `before` is in."""
    depth = 0
    for token in reversed(before):
        if token.is_symbol(")"):
            depth += 1
        elif token.is_symbol("("):
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and token.is_word("select"):
            return token.start
    return None


def _sizes(tokens: tuple[Token, ...], at: int, offset: int) -> tuple[GroupSizes, int]:
    sizes = GroupSizes()
    for name, value in _entries(tokens, at, offset):
        field = {_AGGREGATE: "aggregate", _DISTINCT_ON: "distinct_on", _LIMIT: "limit"}[name]
        if getattr(sizes, field) is not None:
            position = offset + value.start + 1
            raise DuplicateColumn(f"{' '.join(name).upper()} is specified more than once", position=position)
        if not value.value.isdigit() or whole_number(value.value) >= 2**63:
            raise ValueOutOfRange(
                f"{' '.join(name).upper()} must be a whole number of rows", position=offset + value.start + 1
            )
        sizes = replace(sizes, **{field: int(value.value)})
    while not tokens[at].is_symbol(")"):
        at += 1
    return sizes, tokens[at].end


def _entries(tokens: tuple[Token, ...], at: int, offset: int) -> Iterator[tuple[tuple[str, ...], Token]]:
    while True:
        start, words = at, []
        while tokens[at].kind is TokenKind.WORD:
            words.append(tokens[at].value)
            at += 1
        name = tuple(words)
        if name == _EXPECTED:
            raise UnsupportedForm(
                "EXPECTED GROUP SIZE is not supported",
                detail="It does not say which operator it is about.",
                hint="Write AGGREGATE, DISTINCT ON or LIMIT INPUT GROUP SIZE.",
                position=offset + tokens[start].start + 1,
            )
        if name not in (_AGGREGATE, _DISTINCT_ON, _LIMIT):
            raise _unexpected(tokens[at] if name == () else tokens[start], offset)
        at += tokens[at].is_symbol("=")
        if tokens[at].kind not in (TokenKind.NUMBER, TokenKind.STRING):
            raise _unexpected(tokens[at], offset)
        yield name, tokens[at]
        at += 1
        if tokens[at].is_symbol(")"):
            return
        if not tokens[at].is_symbol(","):
            raise _unexpected(tokens[at], offset)
        at += 1


def _unexpected(token: Token, offset: int) -> InvalidSyntax:
    near = f'at or near "{token.value}"' if token.kind is not TokenKind.END else "at end of input"
    return InvalidSyntax(f"syntax error {near}", position=offset + token.start + 1)
