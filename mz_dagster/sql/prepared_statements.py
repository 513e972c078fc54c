"""`PREPARE` and `EXECUTE`: parses the types of the parameters of a prepared statement, and its values.

What is prepared is a statement like any other, which `statement_parser` parses.
"""

from __future__ import annotations

from mz_dagster.scalars.types import UNCONSTRAINED, ScalarType
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.options import Common
from mz_dagster.sql.session_statements import Execute
from mz_dagster.sql.statements import Name, SqlText
from mz_dagster.sql.type_names import parse_type_name


def parse_parameter_types(cursor: TokenCursor) -> tuple[ScalarType | None, ...]:
    """Moves past `(type, ...)`, if it is there; None for what is left to where the parameter stands."""
    if not cursor.accepts_symbol("("):
        return ()
    found = [_type(cursor)]
    while cursor.accepts_symbol(","):
        found.append(_type(cursor))
    cursor.expects_symbol(")")
    return tuple(found)


def _type(cursor: TokenCursor) -> ScalarType | None:
    if cursor.accepts("unknown"):
        return None
    name = parse_type_name(cursor)
    if name.is_any_char:
        return None  # as what it stands beside
    if not name.is_open:
        return name.scalar_type
    return name.array_of(UNCONSTRAINED) if name.is_array else UNCONSTRAINED


def parse_execute(cursor: TokenCursor, common: Common) -> Execute:
    """Moves past `EXECUTE name [(value, ...)]`."""
    cursor.expects("execute")
    name = Name((cursor.identifier("a prepared statement"),), cursor.ahead(-1).start)
    arguments: list[SqlText] = []
    if cursor.accepts_symbol("("):
        while True:
            arguments.append(cursor.text_until(_end_of_value(cursor)))
            if not cursor.accepts_symbol(","):
                break
        cursor.expects_symbol(")")
    return Execute(*common, name, tuple(arguments))


def _end_of_value(cursor: TokenCursor) -> int:
    """Returns the index of the token behind the value that begins here."""
    depth, at = 0, cursor.at
    while at < len(cursor.tokens):
        token = cursor.tokens[at]
        if depth == 0 and token.is_symbol(",", ")"):
            return at
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        at += 1
    return at
