"""A `SELECT` whose only item is a call of a function that is none: which, and where in the text it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mz_dagster.sql.lexer import Token, TokenKind, tokens_of

#: What may follow the only item of a SELECT.
_CLAUSES = ("from", "where", "order", "limit", "offset", "fetch")


@dataclass(frozen=True, slots=True)
class SelectCall:
    """The only item of a `SELECT`.

    Attributes:
        text: The query's.
        function: The name that is called, without a schema.
        column: What the item's column is called.
        select: The word SELECT.
        opening: The parenthesis before the arguments.
        commas: What stands between them.
        closing: The one behind them.
        last: The item's last token.
    """

    text: str
    function: str
    column: str
    select: Token
    opening: Token
    commas: tuple[Token, ...]
    closing: Token
    last: Token

    @classmethod
    def of(cls, text: str, functions: Sequence[str], *, several: bool = False, none: bool = False) -> SelectCall | None:
        """Returns the call that a query is, else None.

        Args:
            text: The query's.
            functions: The names of which it has to be one.
            several: Whether it may have several arguments.
            none: Whether it may have none.

        Example:
            >>> found = SelectCall.of("SELECT pg_catalog.f((1)) AS x LIMIT 1", ["f"])
            >>> found.function, found.column, found.last.value
            ('f', 'x', 'x')
            >>> SelectCall.of("SELECT f(1) AS", ["f"]), SelectCall.of("SELECT f(1), 2", ["f"])
            (None, None)
        """
        if not any(one in text.lower() for one in functions):
            return None
        tokens = tokens_of(text)
        at = 3 if tokens[1].is_word("pg_catalog") and tokens[2].is_symbol(".") else 1
        if not tokens[0].is_word("select") or not tokens[at].is_word(*functions):
            return None
        commas, end = _end_of_call(tokens, at + 1)
        if end is None or (end == at + 2 and not none) or (commas and not several):
            return None
        column, last = tokens[at].value, end
        if tokens[end + 1].is_word("as"):
            last = end + 2
        elif tokens[end + 1].kind in (TokenKind.WORD, TokenKind.QUOTED) and not tokens[end + 1].is_word(*_CLAUSES):
            last = end + 1
        if last > end:
            column = tokens[last].value
        rest = tokens[last + 1 : last + 2]
        if not rest or (rest[0].kind is not TokenKind.END and not rest[0].is_word(*_CLAUSES)):
            return None
        return cls(text, tokens[at].value, column, tokens[0], tokens[at + 1], commas, tokens[end], tokens[last])

    @classmethod
    def each_of(cls, text: str, functions: Sequence[str]) -> tuple[SelectCall, ...]:
        """Returns the calls that all items of a query are, each as the only one behind SELECT; none if one is no call.

        Example:
            >>> [one.column for one in SelectCall.each_of("SELECT f(1) AS x, g((2), 3) FROM t", ["f", "g"])]
            ['x', 'g']
        """
        tokens = tokens_of(text)
        found: list[SelectCall] = []
        begin = tokens[0].end
        while True:
            # What is before the item is blanks, so that all stands where it stood; SELECT takes the place before it.
            end = _end_of_item(tokens, begin)
            select = text[: tokens[0].end] + " " * (begin - tokens[0].end)
            behind = text[end:] if end < len(text) and text[end] != "," else " " * (len(text) - end)
            one = cls.of(select + text[begin:end] + behind, functions, several=True)
            if one is None:
                return ()
            found.append(one)
            if text[end : end + 1] != ",":
                return tuple(found)
            begin = end + 1

    @property
    def has_arguments(self) -> bool:
        """Whether it is called with anything."""
        return bool(self.text[self.opening.end : self.closing.start].strip())

    @property
    def asked(self) -> str:
        """The query of the arguments: the text with blanks in the place of the call around them, and of its name.

        Example:
            >>> SelectCall.of("SELECT f(a, 2) AS x FROM t", ["f"], several=True).asked
            'SELECT   a, 2       FROM t'
        """
        text, begin, last = self.text, self.select.end, self.last.end
        before, behind = " " * (self.opening.end - begin), " " * (last - self.closing.start)
        return f"{text[:begin]}{before}{text[self.opening.end : self.closing.start]}{behind}{text[last:]}"

    def asked_as(self, type_: str) -> str:
        """Returns the query of the arguments, each cast to a type of SQL; of none it is NULL.

        Example:
            >>> SelectCall.of("SELECT func(a, 2) AS x FROM t", ["func"], several=True).asked_as("int4")
            'SELECT (a)::int4,( 2)::int4 FROM t'
        """
        text, starts = self.text, (self.opening, *self.commas)
        parts = [text[one.end : end.start] for one, end in zip(starts, (*self.commas, self.closing), strict=True)]
        cast = ",".join(f"({one if self.has_arguments else 'NULL'})::{type_}" for one in parts)
        room = self.last.end - self.select.end
        return f"{text[: self.select.end]} {cast.rjust(room - 1)}{text[self.last.end :]}"


def _end_of_item(tokens: Sequence[Token], begin: int) -> int:
    """Returns where an item of a list ends that begins at an offset: at a comma, a clause or the end."""
    depth = 0
    for token in tokens:
        if token.start < begin:
            continue
        if depth == 0 and (token.is_symbol(",") or token.is_word(*_CLAUSES) or token.kind is TokenKind.END):
            return token.start
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
    return tokens[-1].end


def _end_of_call(tokens: Sequence[Token], opening: int) -> tuple[tuple[Token, ...], int | None]:
    """Returns the commas of a call, and the number of the parenthesis that closes it; None if nothing does."""
    depth, commas = 0, []
    for number in range(opening, len(tokens)):
        depth += tokens[number].is_symbol("(", "[") - tokens[number].is_symbol(")", "]")
        if depth == 1 and tokens[number].is_symbol(","):
            commas.append(tokens[number])
        if depth == 0:
            return tuple(commas), number
    return tuple(commas), None
