"""A cursor over the tokens of one statement: the few moves that the statement grammar is written in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mz_dagster.functions.catalog import keywords
from mz_dagster.sql.errors import InvalidSyntax, UnsupportedForm
from mz_dagster.sql.lexer import Token, TokenKind
from mz_dagster.sql.statements import Name, SqlText

#: PostgreSQL's reserved words, which name nothing unless quoted.
RESERVED = frozenset(keywords.RESERVED)


def quoted(name: str) -> str:
    """Returns a name as it is written in SQL: in quotes unless it may stand without.

    Example:
        >>> quoted("orders"), quoted("Orders"), quoted("order"), quoted('a"b')
        ('orders', '"Orders"', '"order"', '"a""b"')
    """
    if re.fullmatch(r"[a-z_][a-z0-9_$]*", name) and name not in RESERVED:
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


@dataclass(slots=True)
class TokenCursor:
    """Walks over the tokens of one statement.

    Attributes:
        source: The whole text.
        tokens: The statement's tokens.
        end: Offset behind the statement.
        at: Index of the current token.
    """

    source: str
    tokens: tuple[Token, ...]
    end: int
    at: int = 0

    @property
    def current(self) -> Token:
        """The current token; of kind `END` behind the last."""
        return self.ahead(0)

    def ahead(self, count: int) -> Token:
        """Returns the token `count` places on."""
        if self.at + count < len(self.tokens):
            return self.tokens[self.at + count]
        return Token(TokenKind.END, "", self.end, self.end)

    def advance(self) -> Token:
        """Moves on and returns the token left behind."""
        token = self.current
        self.at += 1
        return token

    def sees(self, *words: str) -> bool:
        """Returns whether the next tokens are these words, each of which may list alternatives by `|`."""
        return all(self.ahead(i).is_word(*word.split("|")) for i, word in enumerate(words))

    def accepts(self, *words: str) -> bool:
        """Moves past these words if they are next; returns whether they were."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def accepts_symbol(self, symbol: str) -> bool:
        """Moves past `symbol` if it is next; returns whether it was."""
        if not self.current.is_symbol(symbol):
            return False
        self.at += 1
        return True

    def expects(self, *words: str) -> None:
        """Moves past these words, or raises."""
        for word in words:
            if not self.accepts(word):
                raise self.unexpected(word.replace("|", " or ").upper())

    def expects_symbol(self, symbol: str) -> None:
        """Moves past `symbol`, or raises."""
        if not self.accepts_symbol(symbol):
            raise self.unexpected(f'"{symbol}"')

    def expects_end(self) -> None:
        """Raises unless the statement ends here."""
        if self.current.kind is not TokenKind.END:
            raise self.unexpected("the end of the statement")

    def identifier(self, what: str = "a name") -> str:
        """Moves past an identifier and returns it folded."""
        token = self.current
        if token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and token.value not in RESERVED):
            return self.advance().value
        raise self.unexpected(what)

    def name(self) -> Name:
        """Moves past a possibly qualified name."""
        offset = self.current.start
        parts = [self.identifier()]
        while self.accepts_symbol("."):
            parts.append(self.identifier())
        return Name(tuple(parts), offset)

    def string(self, what: str) -> str:
        """Moves past a string literal and returns its value."""
        if self.current.kind is not TokenKind.STRING:
            raise self.unexpected(f"{what} as a string literal")
        return self.advance().value

    def natural_number(self, what: str, digits: int = 18) -> int:
        """Moves past a whole number without a sign, of no more than so many digits, and returns it."""
        text = self.current.value
        if self.current.kind is not TokenKind.NUMBER or not text.isdecimal() or len(text) > digits:
            raise self.unexpected(what)
        self.advance()
        return int(text)

    def names_in_parentheses(self) -> tuple[str, ...]:
        """Moves past `(a, b, ...)`."""
        self.expects_symbol("(")
        names = [self.identifier("a column")]
        while self.accepts_symbol(","):
            names.append(self.identifier("a column"))
        self.expects_symbol(")")
        return tuple(names)

    def skip_balanced(self) -> None:
        """Moves past one token, or past a whole parenthesis if it opens one."""
        opened = self.advance()
        if not opened.is_symbol("("):
            return
        depth = 1
        while depth:
            token = self.advance()
            if token.kind is TokenKind.END:
                raise InvalidSyntax('"(" is not closed', position=opened.start + 1)
            depth += token.is_symbol("(") - token.is_symbol(")")

    def text_until(self, stop: int) -> SqlText:
        """Returns the text from the current token to the one at index `stop`, and moves there."""
        if stop <= self.at:
            raise self.unexpected("an expression")
        start, end = self.current.start, self.tokens[stop - 1].end
        before = sum(token.kind is TokenKind.PARAMETER for token in self.tokens[: self.at])
        self.at = stop
        return SqlText(self.source[start:end], start, before)

    def parenthesized(self) -> SqlText:
        """Moves past what stands in parentheses, and returns its text without them."""
        if not self.current.is_symbol("("):
            raise self.unexpected('"("')
        opening = self.at
        self.skip_balanced()
        behind, self.at = self.at, opening + 1
        text = self.text_until(behind - 1)
        self.at = behind
        return text

    def index_of(self, *words: str) -> int:
        """Returns the index of the first place, outside parentheses, where `words` stand; else that of the end."""
        return self.index_of_any([words], self.at)

    def index_of_any(self, alternatives: Sequence[Sequence[str]], start: int) -> int:
        """Returns the index of the first place from `start` on, outside parentheses, where one of several stands."""
        depth = 0
        for index in range(start, len(self.tokens)):
            token = self.tokens[index]
            depth += token.is_symbol("(") - token.is_symbol(")")
            if depth == 0 and any(self._stand_at(index, words) for words in alternatives):
                return index
        return len(self.tokens)

    def _stand_at(self, index: int, words: Sequence[str]) -> bool:
        if not self.tokens[index].is_word(words[0]):
            return False
        there = self.tokens[index : index + len(words)]
        return len(there) == len(words) and all(one.is_word(word) for one, word in zip(there, words, strict=True))

    def unexpected(self, expected: str) -> InvalidSyntax:
        """Returns the error that says what was expected at the current token."""
        token = self.current
        if token.kind is TokenKind.END:
            return InvalidSyntax(f"syntax error at end of input: expected {expected}", position=token.start + 1)
        near = self.source[token.start : token.end]
        return InvalidSyntax(f'syntax error at or near "{near}": expected {expected}', position=token.start + 1)

    def refuse(self, what: str, reason: str, hint: str | None = None, token: Token | None = None) -> UnsupportedForm:
        """Returns the error that refuses `what` at `token`, by default the current one."""
        blamed = self.current if token is None else token
        return UnsupportedForm(f"{what} is not supported", detail=reason, hint=hint, position=blamed.start + 1)
