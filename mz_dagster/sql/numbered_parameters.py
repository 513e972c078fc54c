"""Statements whose parameters are numbered, `$1`, `$2`, as those that have `?` in their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mz_dagster.sql.errors import InvalidSyntax, UndefinedParameter
from mz_dagster.sql.lexer import Token, TokenKind

_MOST = 65_535


@dataclass(frozen=True, slots=True)
class NumberedParameters:
    """A text whose parameters are numbered.

    Attributes:
        text: It with `?` for its parameters, and with everything else at its place.
        places: Of each `?` the number of the parameter that stands there, from 0 on.
    """

    text: str
    places: tuple[int, ...]

    @classmethod
    def of(cls, text: str, tokens: Iterable[Token]) -> NumberedParameters:
        """Returns that of a text of which these are the tokens.

        Raises:
            InvalidSyntax: A parameter has no number.
            UndefinedParameter: Its number is not from 1 to 65,535.
        """
        parts, places, at = [], [], 0
        for token in (one for one in tokens if one.kind is TokenKind.PARAMETER):
            if not token.value.startswith("$"):
                raise InvalidSyntax('syntax error at or near "?"', position=token.start + 1, hint="Write $1, $2, ...")
            number = int(token.value[1:]) if len(token.value) < 7 else 0
            if not 1 <= number <= _MOST:
                raise UndefinedParameter(f"there is no parameter {token.value}", position=token.start + 1)
            parts += [text[at : token.start], "?".ljust(token.end - token.start)]
            places.append(number - 1)
            at = token.end
        return cls("".join(parts) + text[at:], tuple(places))

    @property
    def count(self) -> int:
        """How many parameters there are, with those that stand nowhere."""
        return max(self.places, default=-1) + 1
