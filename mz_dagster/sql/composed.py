"""A query put together from parts of a statement, so that it is bound as the one query that it means.

An UPDATE is the query `SELECT values FROM table, others WHERE predicate`, whose parts stand in another order and under
other words in the statement. Errors still blame the user's own text: positions are taken back into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mz_dagster.errors import Error
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.statements import SqlText


def parameters_in(text: str) -> int:
    """Returns how many `?` a text has."""
    return sum(one.kind is TokenKind.PARAMETER for one in tokens_of(text)) if "?" in text else 0


@dataclass(frozen=True, slots=True)
class Composed:
    """The text of a query and where its parts come from.

    Attributes:
        text: The query.
        parts: Each part with the offset in `text` at which it begins, in order.
        places: Of each `?` of the query, which one of the statement it is.
    """

    text: SqlText
    parts: tuple[tuple[int, SqlText], ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, *pieces: str | SqlText) -> Composed:
        """Returns the query that the pieces are together: words of ours, and parts of the statement in any order.

        Example:
            >>> composed = Composed.of("SELECT ", SqlText("a + b", 100), " FROM ", SqlText("t", 50))
            >>> composed.text.text, composed.position(12), composed.position(19)
            ('SELECT a + b FROM t', 105, 51)
        """
        text = ""
        parts: list[tuple[int, SqlText]] = []
        places: list[int] = []
        for piece in pieces:
            if isinstance(piece, SqlText):
                parts.append((len(text), piece))
                places += range(piece.parameters_before, piece.parameters_before + parameters_in(piece.text))
            text += piece if isinstance(piece, str) else piece.text
        return cls(SqlText(text), tuple(parts), tuple(places))

    def parameters(self, values: Sequence[object]) -> list[object]:
        """Returns the values of the query's `?`, given those of the statement's."""
        return [values[place] for place in self.places if place < len(values)]

    def position(self, position: int) -> int:
        """Returns where the character at a position in the query stands in the statement: in the part before it."""
        found = self.parts[0][1].offset + 1
        for start, part in self.parts:
            if position > start:
                found = part.offset + min(position - start, len(part.text) + 1)
        return found

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Takes the position of an error that is raised in the block back into the statement."""
        try:
            yield
        except Error as error:
            if error.position is not None:
                error.position = self.position(error.position)
            raise
