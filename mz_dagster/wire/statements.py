"""A client's text as one of ours: parameters `$1` are `?`, which are counted by their places."""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.sql.errors import InvalidSyntax, UndefinedParameter
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.parsed_texts import fragments_of


@dataclass(frozen=True, slots=True)
class ClientStatement:
    """A statement of a client.

    Attributes:
        text: With `?` for its parameters, and with everything else at its place.
        places: Of each `?` the number of the parameter that stands there, from 0 on.
        count: How many parameters it has.
        is_empty: Whether there is nothing to execute.
    """

    text: str
    places: tuple[int, ...]
    count: int
    is_empty: bool = False

    @classmethod
    def of(cls, text: str) -> ClientStatement:
        """Returns that of a text, which is one statement or empty.

        Raises:
            InvalidSyntax: It is several.
            UndefinedParameter: A parameter has no number from 1 to 65,535.

        Example:
            >>> ClientStatement.of("SELECT $2, '$1', $1 + $2")
            ClientStatement(text="SELECT ? , '$1', ?  + ? ", places=(1, 0, 1), count=2, is_empty=False)
        """
        fragments = fragments_of(text)
        if len(fragments) > 1:
            raise InvalidSyntax("cannot insert multiple commands into a prepared statement")
        parts, places, at = [], [], 0
        for token in (token for one in fragments for token in one.tokens if token.kind is TokenKind.PARAMETER):
            if not token.value.startswith("$"):
                raise InvalidSyntax('syntax error at or near "?"', position=token.start + 1, hint="Write $1, $2, ...")
            number = int(token.value[1:]) if len(token.value) < 7 else 0
            if not 1 <= number <= 65_535:
                raise UndefinedParameter(f"there is no parameter {token.value}", position=token.start + 1)
            parts += [text[at : token.start], "?".ljust(token.end - token.start)]
            places.append(number - 1)
            at = token.end
        return cls("".join(parts) + text[at:], tuple(places), max(places, default=-1) + 1, not fragments)
