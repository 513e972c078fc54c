"""Splits SQL text into tokens and statements, as PostgreSQL's lexer does.

Owns the only place that knows quotes, comments and dollar quotes; everything in the front end works on
its tokens, so that a keyword within a literal is never taken for one. Invariant: tokens and the gaps
between them cover the text, and a token's `start` and `end` are offsets into the text given.
It does not know what any word means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from mz_dagster.sql.errors import InvalidSyntax


class TokenKind(Enum):
    """Says what a token is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    PARAMETER = "parameter"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """Is one token.

    Attributes:
        kind: What it is.
        value: A word folded to lower case, a quoted identifier or a string without its quotes, else as written.
        start: 0-based offset of its first character.
        end: Offset behind its last character.
    """

    kind: TokenKind
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Returns whether this is one of the unquoted `words`, which are given in lower case."""
        return self.kind is TokenKind.WORD and self.value in words

    def is_symbol(self, *symbols: str) -> bool:
        """Returns whether this is one of the `symbols`."""
        return self.kind is TokenKind.SYMBOL and self.value in symbols


@dataclass(frozen=True, slots=True)
class Fragment:
    """Is the text of one statement within a longer text: `text[start:end]`, without its semicolon."""

    start: int
    end: int
    tokens: tuple[Token, ...]


_SPACE = re.compile(r"[ \t\r\n\f\v]+|--[^\r\n]*")
_WORD = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?\$")
_NUMBERED = re.compile(r"\$[0-9]+")
_SYMBOL = re.compile(r"::|<=|>=|<>|!=|\|\||->>|->|=>|:=|.", re.DOTALL)
_ASCII_FOLD = {ordinal: ordinal + 32 for ordinal in range(ord("A"), ord("Z") + 1)}


def fold(word: str) -> str:
    """Returns an unquoted identifier as PostgreSQL folds it: ASCII letters to lower case, nothing else.

    Example:
        >>> fold("Straße_ÄB")
        'straße_Äb'
    """
    return word.translate(_ASCII_FOLD)


def tokens_of(text: str) -> tuple[Token, ...]:
    """Returns the tokens of `text`, ended by one of kind `END`.

    Raises:
        InvalidSyntax: A quote or comment does not end, or a form of literal is not known.

    Example:
        >>> [token.value for token in tokens_of("SELECT 'it''s' -- why")]
        ['select', "it's", '']
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if match := _SPACE.match(text, at):
            at = match.end()
        elif text.startswith("/*", at):
            at = _end_of_comment(text, at)
        else:
            token = _token_at(text, at)
            tokens.append(token)
            at = token.end
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return tuple(tokens)


def same_tokens(text: str, other: str) -> bool:
    """Returns whether two texts differ in white space, comments and the case of unquoted words only.

    Raises:
        InvalidSyntax: A quote or comment does not end, or a form of literal is not known.

    Example:
        >>> same_tokens("SELECT a -- why", "select  A"), same_tokens("SELECT 'a'", "SELECT 'A'")
        (True, False)
    """
    one, two = ([(token.kind, token.value) for token in tokens_of(each)] for each in (text, other))
    return one == two


def split(text: str) -> tuple[Fragment, ...]:
    """Returns the statements of `text`, in order, empty ones included.

    Semicolons within quotes, comments or parentheses do not split. The fragments' texts joined by `;` are `text`.

    Example:
        >>> text = "SELECT ';' /* ; */; SELECT 2"
        >>> [text[one.start:one.end] for one in split(text)]
        ["SELECT ';' /* ; */", ' SELECT 2']
    """
    fragments: list[Fragment] = []
    start, depth = 0, 0
    pending: list[Token] = []
    for token in tokens_of(text):
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth = max(0, depth - 1)
        if token.kind is TokenKind.END or (token.is_symbol(";") and depth == 0):
            fragments.append(Fragment(start, token.start, tuple(pending)))
            start, pending = token.end, []
        else:
            pending.append(token)
    return tuple(fragments)


def _end_of_comment(text: str, start: int) -> int:
    depth, at = 0, start
    while at < len(text):
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    raise InvalidSyntax("unterminated /* comment", position=start + 1)


def _quoted_end(text: str, start: int, quote: str, what: str, *, escapes: bool = False) -> int:
    at = start + 1
    while at < len(text):
        if escapes and text[at] == "\\":
            at += 2
        elif text[at] != quote:
            at += 1
        elif text.startswith(quote * 2, at):
            at += 2
        else:
            return at + 1
    raise InvalidSyntax(f"unterminated {what}", position=start + 1)


def _token_at(text: str, at: int) -> Token:
    character = text[at]
    if character == "'":
        end = _quoted_end(text, at, "'", "quoted string")
        return Token(TokenKind.STRING, text[at + 1 : end - 1].replace("''", "'"), at, end)
    if character == '"':
        end = _quoted_end(text, at, '"', "quoted identifier")
        if end - at == 2:
            raise InvalidSyntax('zero-length delimited identifier at or near """"', position=at + 1)
        return Token(TokenKind.QUOTED, text[at + 1 : end - 1].replace('""', '"'), at, end)
    if match := _DOLLAR.match(text, at):
        end = text.find(match.group(), match.end())
        if end < 0:
            raise InvalidSyntax("unterminated dollar-quoted string", position=at + 1)
        return Token(TokenKind.STRING, text[match.end() : end], at, end + len(match.group()))
    if match := _NUMBERED.match(text, at):
        return Token(TokenKind.PARAMETER, match.group(), at, match.end())
    if character == "?":
        return Token(TokenKind.PARAMETER, "?", at, at + 1)
    if match := _WORD.match(text, at):
        word = match.group()
        behind = text[match.end() : match.end() + 2]
        if word.lower() in ("e", "b", "x", "n") and behind[:1] == "'":
            raise InvalidSyntax(
                f"string literals of the form {word}'...' are not known",
                position=at + 1,
                hint="Write a plain literal; characters may stand in it as they are.",
            )
        if word.lower() == "u" and behind[:1] == "&" and text[match.end() + 1 : match.end() + 2] in ("'", '"'):
            raise InvalidSyntax("Unicode escapes of the form U&'...' are not known", position=at + 1)
        return Token(TokenKind.WORD, fold(word), at, match.end())
    if match := _NUMBER.match(text, at):
        following = _WORD.match(text, match.end())
        if following:
            raise InvalidSyntax(
                f'trailing junk after numeric literal at or near "{match.group()}{following.group()}"', position=at + 1
            )
        return Token(TokenKind.NUMBER, match.group(), at, match.end())
    symbol = _SYMBOL.match(text, at)
    assert symbol is not None
    return Token(TokenKind.SYMBOL, symbol.group(), at, symbol.end())
