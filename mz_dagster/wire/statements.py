"""Statements of a client: its text as one of ours, with `?` for `$1`; prepared, and in a portal."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from mz_dagster.adapter import Result
from mz_dagster.functions import Failure, literal_of
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import UNCONSTRAINED, Column, ScalarType
from mz_dagster.sql import Statement
from mz_dagster.sql.errors import InvalidSyntax, error_of
from mz_dagster.sql.numbered_parameters import NumberedParameters
from mz_dagster.sql.parsed_texts import fragments_of
from mz_dagster.wire.driver_questions import in_known_words
from mz_dagster.wire.types import spelled_type


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
        text = in_known_words(text)
        fragments = fragments_of(text)
        if len(fragments) > 1:
            raise InvalidSyntax("cannot insert multiple commands into a prepared statement")
        if fragments and fragments[0].tokens[0].is_word("prepare"):
            return cls(text, (), 0)  # those within are of what it prepares
        found = NumberedParameters.of(text, (token for one in fragments for token in one.tokens))
        return cls(found.text, found.places, found.count, not fragments)


@dataclass(slots=True)
class Prepared:
    """A prepared statement.

    Attributes:
        statement: What it says.
        types: The types of its parameters as far as the client has said.
        parsed: The statement; None if there is none.
        found: Of a query or an INSERT the types of its parameters, and what it meant when they were found.
        source: Its text, as the client has written it.
        kept_ms: When it was prepared, in milliseconds of the wall clock.
        returned: What it returns with parameters of some types, and what it meant when that was found.
        given_ids: The object ids that the client has given its first parameters, 0 for none.
    """

    statement: ClientStatement
    types: list[ScalarType | None]
    parsed: Statement | None
    source: str
    kept_ms: int
    found: tuple[Hashable, Sequence[ScalarType | None]] | None = None
    returned: tuple[Hashable, tuple[Column, ...] | None] | None = None
    given_ids: Sequence[int] = ()


@dataclass(slots=True)
class Portal:
    """A prepared statement with values.

    Attributes:
        prepared: The statement.
        values: Of its parameters.
        formats: Of the columns of its result.
        result: What it returned, once it is executed.
        sent: How many rows of it the client has.
        come: Rows of a subscription that it has not asked for.
    """

    prepared: Prepared
    values: list[object]
    formats: Sequence[int]
    result: Result | None = None
    sent: int = 0
    come: deque[tuple[Any, ...]] = field(default_factory=deque)


def typed(value: object, type_: ScalarType | None) -> object:
    """Returns a parameter as the session takes it: a literal of its type if that is known, else what is open."""
    if type_ is None or not (value is None or isinstance(value, str)):
        return value
    if value is None:
        return Literal(None, type_)
    found = literal_of(value, spelled_type(value, type_))
    if isinstance(found, Failure):
        raise error_of(found, None)
    # One of a fixed scale is as exact, and is computed faster.
    return Decimal(value) if type_ == UNCONSTRAINED else found
