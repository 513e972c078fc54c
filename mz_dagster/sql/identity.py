"""Columns whose values are generated: `GENERATED ... AS IDENTITY` and `serial`."""

from __future__ import annotations

from mz_dagster.functions import type_name
from mz_dagster.plan.sequence import SequenceDefinition
from mz_dagster.scalars.types import INT2, INT4, INT8, ScalarType
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidParameterValue, InvalidSyntax
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.statements import Identity

#: The types that stand for an integer whose values are generated.
_SERIAL = {"smallserial": INT2, "serial2": INT2, "serial": INT4, "serial4": INT4, "bigserial": INT8, "serial8": INT8}
_LIMITS = {INT2: 2**15, INT4: 2**31, INT8: 2**63}
#: The types of columns that may generate their values.
SERIAL_TYPES = (INT2, INT4, INT8)


def serial_type(cursor: TokenCursor) -> ScalarType | None:
    """Moves past `serial` or its like, and returns the type of the column; None if the type is another."""
    token = cursor.current
    found = _SERIAL.get(token.value) if token.kind is TokenKind.WORD else None
    if found is None:
        return None
    cursor.advance()
    if cursor.current.is_symbol("[") or cursor.sees("array"):
        raise cursor.refuse("an array of serial", "PostgreSQL has none.", token=token)
    return found


def serial(type_: ScalarType) -> Identity:
    """Returns how a serial column generates its values."""
    return Identity("serial", SequenceDefinition(1, 1, 1, _LIMITS[type_] - 1, cycles=False))


def parse_identity(cursor: TokenCursor, type_: ScalarType, sequence: str) -> Identity:
    """Moves past `{ALWAYS | BY DEFAULT} AS IDENTITY [(options)]`, behind `GENERATED`.

    Args:
        cursor: Behind that word.
        type_: The column's type.
        sequence: What its sequence is called.

    Raises:
        InvalidParameterValue: The type is no integer, or the options contradict each other.
    """
    token = cursor.ahead(-1)
    always = cursor.accepts("always")
    if not always:
        cursor.expects("by", "default")
    cursor.expects("as")
    if cursor.current.is_symbol("("):
        raise InvalidSyntax("for a generated column, GENERATED ALWAYS must be specified", position=token.start + 1)
    cursor.expects("identity")
    if type_ not in _LIMITS:
        raise InvalidParameterValue(
            "identity column type must be smallint, integer, or bigint", position=token.start + 1
        )
    options = _options(cursor, sequence) if cursor.accepts_symbol("(") else {}
    return Identity("always" if always else "by default", _definition(options, type_, token.start + 1))


def _options(cursor: TokenCursor, sequence: str) -> dict[str, int | None]:
    """Moves past the options, which are all there are or none; the value of one that is said not to be is None."""
    found: dict[str, int | None] = {}
    while not cursor.accepts_symbol(")"):
        token = cursor.current
        value: int | None = None
        if cursor.sees("sequence", "name"):
            cursor.accepts("sequence", "name")
            if (named := cursor.name()).last != sequence:
                raise cursor.refuse(
                    f'the name "{named}" of a sequence',
                    "It is called after its table and column.",
                    f"Call it {sequence}, or leave SEQUENCE NAME out.",
                    token,
                )
            continue
        if cursor.accepts("no"):
            name = token.value if cursor.current.kind is TokenKind.END else cursor.advance().value
            if name not in ("minvalue", "maxvalue", "cycle"):
                raise InvalidSyntax("NO is followed by MINVALUE, MAXVALUE or CYCLE", position=token.start + 1)
        elif cursor.accepts("cycle"):
            name, value = "cycle", 1
        elif cursor.accepts("start"):
            name = "start"
            cursor.accepts("with")
            value = integer(cursor)
        elif cursor.accepts("increment"):
            name = "increment"
            cursor.accepts("by")
            value = integer(cursor)
        elif cursor.sees("minvalue|maxvalue|cache"):
            name = cursor.advance().value
            value = integer(cursor)
        elif cursor.sees("sequence|owned|as|restart"):
            raise cursor.refuse(f"{token.value.upper()} of an identity column", "Its sequence is its own.")
        else:
            raise cursor.unexpected("an option of a sequence")
        if name in found:
            raise InvalidSyntax("conflicting or redundant options", position=token.start + 1)
        found[name] = value
    return found


def integer(cursor: TokenCursor) -> int:
    """Moves past an integer with an optional sign, and returns it."""
    negative = cursor.accepts_symbol("-")
    if not negative:
        cursor.accepts_symbol("+")
    if cursor.current.kind is not TokenKind.NUMBER or not cursor.current.value.isdigit():
        raise cursor.unexpected("an integer")
    value = int(cursor.advance().value)
    return -value if negative else value


def _definition(options: dict[str, int | None], type_: ScalarType, position: int) -> SequenceDefinition:
    limit = _LIMITS[type_]
    increment = _or(options.get("increment"), 1)
    if increment == 0:
        raise InvalidParameterValue("INCREMENT must not be zero", position=position)
    lowest, highest = (1, limit - 1) if increment > 0 else (-limit, -1)
    minimum, maximum = _or(options.get("minvalue"), lowest), _or(options.get("maxvalue"), highest)
    for name, value in (("MAXVALUE", maximum), ("MINVALUE", minimum)):
        if not -limit <= value < limit:
            raise InvalidParameterValue(
                f"{name} ({value}) is out of range for sequence data type {type_name(type_)}", position=position
            )
    if minimum >= maximum:
        raise InvalidParameterValue(f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})", position=position)
    start = _or(options.get("start"), minimum if increment > 0 else maximum)
    if start < minimum:
        raise InvalidParameterValue(
            f"START value ({start}) cannot be less than MINVALUE ({minimum})", position=position
        )
    if start > maximum:
        raise InvalidParameterValue(
            f"START value ({start}) cannot be greater than MAXVALUE ({maximum})", position=position
        )
    if (cache := options.get("cache")) is not None and cache < 1:
        raise InvalidParameterValue(f"CACHE ({cache}) must be greater than zero", position=position)
    return SequenceDefinition(start, increment, minimum, maximum, cycles=bool(options.get("cycle")))


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def identity_text(identity: Identity) -> str:
    """Returns what a definition says of how a column that is not serial generates its values, behind its type."""
    one = identity.sequence
    options = f"START WITH {one.start} INCREMENT BY {one.increment} MINVALUE {one.minimum} MAXVALUE {one.maximum}"
    return f"GENERATED {identity.generated.upper()} AS IDENTITY ({options}{' CYCLE' if one.cycles else ''})"


def serial_text(type_: ScalarType) -> str:
    """Returns the name of the serial type whose column is of a type."""
    return next(name for name, one in _SERIAL.items() if one == type_)
