"""What prepared statements and portals are said to be before they are executed: their parameters, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from mz_dagster.adapter import Connection
from mz_dagster.functions import OpenParameter
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import TEXT, Column, ScalarType
from mz_dagster.sql import Insert, Select
from mz_dagster.wire.statements import Portal, Prepared
from mz_dagster.wire.types import UNTYPED, is_enumerated, unsized, wire_type


def types_of(connection: Connection, prepared: Prepared) -> Sequence[ScalarType | None]:
    """Returns the types of a query's parameters: what the client has said, or else what they are where they stand.

    None are those of a parameter that is of several types, at several places, and of a query that does not say
    what it is before it has values.
    """
    if None not in prepared.types:
        return prepared.types
    meaning = connection.meaning()
    if meaning is not None and prepared.found is not None and prepared.found[0] == meaning:
        return prepared.found[1]
    found = _found_types(connection, prepared)
    prepared.found = meaning, found
    return found


def _found_types(connection: Connection, prepared: Prepared) -> Sequence[ScalarType | None]:
    asked, places = _asked(prepared)
    if not connection.note_types(prepared.statement.text, places):
        return prepared.types
    every = [one.types if isinstance(one, OpenParameter) else [one.type] for one in asked]
    found = [{*map(unsized, types)} for types in every]
    is_insert = isinstance(prepared.parsed, Insert)  # what is cut or rounded is so as it is read
    for one, types in zip(found, every, strict=True):
        if (is_insert and one != {*types}) or any(map(is_enumerated, types)):  # which a client sends as a text
            one.clear()
    return [types.pop() if len(types) == 1 else None for types in found]


def _asked(prepared: Prepared) -> tuple[list[OpenParameter | Literal], list[OpenParameter | Literal]]:
    """Returns what stands for the parameters of a statement as long as they have no values, and that by places."""
    asked = [OpenParameter() if one is None else Literal(None, one) for one in prepared.types]
    return asked, [asked[place] for place in prepared.statement.places]


def described(connection: Connection, prepared: Prepared) -> tuple[tuple[Column, ...] | None, list[ScalarType | None]]:
    """Returns what a statement returns, and of which types its parameters are."""
    if prepared.statement.is_empty:
        return None, prepared.types
    asked, places = _asked(prepared)
    columns = connection.describe(prepared.statement.text, places)
    return columns, [
        unsized(one.types[-1]) if isinstance(one, OpenParameter) and one.types else known
        for one, known in zip(asked, prepared.types, strict=True)
    ]


def parameter_ids(prepared: Prepared, types: Sequence[ScalarType | None]) -> list[int]:
    """Returns the object ids of parameters: those that the client has given, as it gave them, or else their types'.

    Clients hold against them what they gave: pgjdbc, which gives a string that of varchar, breaks off at that of text.
    """
    return [
        wire_type(one or TEXT).id if given is None or given in UNTYPED else given
        for one, given in zip_longest(types, prepared.given_ids)
    ]


def columns_of(connection: Connection, portal: Portal) -> tuple[Column, ...] | None:
    """Returns what a portal returns; of a value of a known type nothing but that counts."""
    prepared, statement = portal.prepared, portal.prepared.statement
    if statement.is_empty:
        return None
    known = [Literal(None, one.type) if isinstance(one, Literal) else one for one in portal.values]
    places = [known[place] for place in statement.places]
    are_known = isinstance(prepared.parsed, Select) and all(isinstance(one, Literal) for one in known)
    meaning = connection.meaning() if are_known and connection.transaction_status != "E" else None
    if meaning is None:
        return connection.describe(statement.text, places)
    asked = meaning, tuple(known)
    if prepared.returned is None or prepared.returned[0] != asked:
        prepared.returned = asked, connection.describe(statement.text, places)
    return prepared.returned[1]
