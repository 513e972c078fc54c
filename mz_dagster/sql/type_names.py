"""Names of types, as SQL writes them, to scalar types.

Numerics have a scale that is fixed when bound. `numeric` without one is a `TypeName` whose scale is open: a
cast takes it from its operand, a column definition is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.plan.types import Kind, ScalarType
from mz_dagster.sql.cursor import Cursor
from mz_dagster.sql.errors import InvalidTableDefinition, UndefinedType, suggestion
from mz_dagster.sql.lexer import TokenKind, tokens_of

_KINDS = {
    "boolean": Kind.BOOL, "bool": Kind.BOOL,
    "smallint": Kind.INT2, "int2": Kind.INT2,
    "integer": Kind.INT4, "int": Kind.INT4, "int4": Kind.INT4,
    "bigint": Kind.INT8, "int8": Kind.INT8,
    "real": Kind.FLOAT4, "float4": Kind.FLOAT4, "float8": Kind.FLOAT8,
    "numeric": Kind.NUMERIC, "decimal": Kind.NUMERIC, "dec": Kind.NUMERIC,
    "text": Kind.TEXT, "string": Kind.TEXT, "varchar": Kind.TEXT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP, "timestamptz": Kind.TIMESTAMPTZ,
    "mz_timestamp": Kind.MZ_TIMESTAMP,
}  # fmt: skip
_LATER = frozenset((
    "char", "character", "bpchar", "name", "bytea", "time", "timetz", "interval", "uuid", "json", "jsonb", "xml",
    "money", "bit", "oid", "inet", "cidr", "macaddr", "point", "list", "map", "record", "uint2", "uint4", "uint8",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypeName:
    """Is a type as named.

    Attributes:
        kind: The family.
        scale: Of a numeric; None when it was not said.
    """

    kind: Kind
    scale: int | None = None

    @property
    def is_open(self) -> bool:
        """True for `numeric` without a scale."""
        return self.kind is Kind.NUMERIC and self.scale is None

    @property
    def scalar_type(self) -> ScalarType:
        """The type; an open scale counts as 0."""
        return ScalarType(self.kind, self.scale or 0)


def type_name_of(text: str, offset: int = 0) -> TypeName:
    """Returns the type that `text` names.

    Example:
        >>> type_name_of("double precision").scalar_type.kind.value
        'double precision'
    """
    cursor = Cursor(" " * offset + text, (), offset + len(text))
    cursor.tokens = tuple(token for token in tokens_of(cursor.source) if token.kind is not TokenKind.END)
    name = parse_type_name(cursor)
    cursor.expects_end()
    return name


def parse_type_name(cursor: Cursor) -> TypeName:
    """Moves `cursor` past the name of a type and returns it."""
    token = cursor.current
    if token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
        raise cursor.unexpected("a type")
    cursor.advance()
    word = token.value
    arguments: tuple[int, ...] = ()
    if word == "double":
        cursor.expects("precision")
        name = TypeName(Kind.FLOAT8)
    elif word in ("character", "char") and cursor.accepts("varying"):
        word, name = "varchar", TypeName(Kind.TEXT)
    elif word == "float":
        arguments = _arguments(cursor)
        if arguments and not 1 <= arguments[0] <= 53:
            raise UndefinedType("precision for type float must be between 1 and 53", position=token.start + 1)
        name, arguments = TypeName(Kind.FLOAT4 if arguments and arguments[0] <= 24 else Kind.FLOAT8), ()
    elif word in _KINDS:
        name = TypeName(_KINDS[word])
    elif word in _LATER:
        raise cursor.refuse(
            f"type {word}",
            "Its values cannot be kept exactly yet.",
            "Use boolean, integers, real, double precision, numeric, text, date or timestamps.",
            token,
        )
    else:
        hint = suggestion(word, _KINDS)
        raise UndefinedType(f'type "{word}" does not exist', hint=hint, position=token.start + 1)
    arguments = arguments or _arguments(cursor)
    if name.kind is Kind.NUMERIC:
        name = TypeName(Kind.NUMERIC, _numeric_scale(arguments, token.start))
    elif word == "varchar" and arguments:
        raise cursor.refuse("varchar with a length", "Lengths of text are not enforced.", "Use text.", token)
    elif name.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        if arguments and arguments != (6,):
            raise cursor.refuse("a timestamp of lower precision", "Timestamps have microseconds.", None, token)
        if cursor.accepts("with", "time", "zone"):
            name = TypeName(Kind.TIMESTAMPTZ)
        else:
            cursor.accepts("without", "time", "zone")
    elif arguments:
        raise UndefinedType(f'type modifier is not allowed for type "{word}"', position=token.start + 1)
    if cursor.current.is_symbol("[") or cursor.sees("array|list"):
        raise cursor.refuse("an array type", "Arrays cannot be kept exactly yet.")
    return name


def column_type(cursor: Cursor) -> ScalarType:
    """Moves `cursor` past the type of a column, whose scale must be known."""
    token = cursor.current
    name = parse_type_name(cursor)
    if name.is_open:
        raise InvalidTableDefinition(
            "the scale of a numeric column must be given",
            detail="Scales are fixed when bound; without one, values could be rounded silently.",
            hint="Write numeric(38, 2), for example.",
            position=token.start + 1,
        )
    return name.scalar_type


def _arguments(cursor: Cursor) -> tuple[int, ...]:
    if not cursor.accepts_symbol("("):
        return ()
    found: list[int] = []
    while True:
        token = cursor.current
        if token.kind is not TokenKind.NUMBER or not token.value.isdigit():
            raise cursor.unexpected("an integer")
        found.append(int(cursor.advance().value))
        if cursor.accepts_symbol(")"):
            return tuple(found)
        cursor.expects_symbol(",")


def _numeric_scale(arguments: tuple[int, ...], offset: int) -> int | None:
    match arguments:
        case ():
            return None
        case (precision,):
            scale = 0
        case (precision, scale):
            pass
        case _:
            raise UndefinedType("invalid NUMERIC type modifier", position=offset + 1)
    if not 1 <= precision <= 38:
        raise UndefinedType(
            f"NUMERIC precision {precision} must be between 1 and 38",
            detail="Every numeric has 38 digits.",
            position=offset + 1,
        )
    if scale > precision:
        raise UndefinedType(f"NUMERIC scale {scale} must be between 0 and precision {precision}", position=offset + 1)
    return scale
