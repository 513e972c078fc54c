"""Names of types, as SQL writes them, to scalar types.

`numeric` without a scale is a `TypeName` whose scale is open: a cast takes it from its operand if that has one, and a
column is of the unconstrained type (`functions/numbers/unconstrained.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from mz_dagster.functions.arrays.arrays import has_dimensions
from mz_dagster.functions.literals import numeric_type_of
from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.type_ids import LABELLED, VARYING
from mz_dagster.scalars.types import (
    UNCONSTRAINED,
    Enumeration,
    Kind,
    Modifier,
    ScalarType,
    array_of,
    dimensioned,
    numeric,
)
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidSyntax, UndefinedType, UnsupportedForm, suggestion
from mz_dagster.sql.lexer import Token, TokenKind, tokens_of
from mz_dagster.sql.schemas import names_in, path_of

_KINDS = {
    "boolean": Kind.BOOL, "bool": Kind.BOOL,
    "smallint": Kind.INT2, "int2": Kind.INT2,
    "integer": Kind.INT4, "int": Kind.INT4, "int4": Kind.INT4,
    "bigint": Kind.INT8, "int8": Kind.INT8,
    "real": Kind.FLOAT4, "float4": Kind.FLOAT4, "float8": Kind.FLOAT8,
    "numeric": Kind.NUMERIC, "decimal": Kind.NUMERIC, "dec": Kind.NUMERIC,
    "text": Kind.TEXT, "string": Kind.TEXT, "varchar": Kind.TEXT,
    "char": Kind.CHAR, "character": Kind.CHAR, "bpchar": Kind.CHAR, "uuid": Kind.UUID, "bytea": Kind.BYTEA,
    "json": Kind.JSON,
    "jsonb": Kind.JSONB,
    "date": Kind.DATE, "time": Kind.TIME, "timetz": Kind.TIMETZ, "interval": Kind.INTERVAL,
    "timestamp": Kind.TIMESTAMP, "timestamptz": Kind.TIMESTAMPTZ,
    "mz_timestamp": Kind.MZ_TIMESTAMP,
}  # fmt: skip
#: The collations that compare by bytes; that of the database is one.
BYTEWISE = ("default", "C", "POSIX", "ucs_basic")
#: The kinds of types that have a collation.
COLLATED = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
_AS_TEXT = ("Neither engine orders its values as PostgreSQL does.", "Use text, and a CHECK for its form.")
_AS_BOUNDS = ("Neither engine has its values.", "Use two columns, the first value and the first one behind.")
_AS_INTEGER = ("Integers here have a sign.", "Use the next wider integer, or numeric.")
#: Types of PostgreSQL's, or Materialize's, that there are not: why, and what to use.
OTHER_TYPES = {
    "money": ("Its digits depend on a setting of the server.", "Use numeric(38, 2)."),
    "bit": ("Neither engine has its values.", "Use an integer, on which & | # ~ << >> work, or bytea."),
    "varbit": ("Neither engine has its values.", "Use bytea."),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8", "xml", "tsvector", "tsquery"), _AS_TEXT),
    "jsonpath": ("A path is a text here.", "Leave the cast away, or use text."),
    **dict.fromkeys(
        ("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange", "int4multirange",
         "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"),
        _AS_BOUNDS,
    ),
    **dict.fromkeys(
        ("point", "line", "lseg", "box", "path", "polygon", "circle"),
        ("Neither engine has its values.", "Use columns of double precision."),
    ),
    **dict.fromkeys(("uint2", "uint4", "uint8"), _AS_INTEGER),
    **dict.fromkeys(("list", "map"), ("PostgreSQL has no such type.", "Use an array, or jsonb.")),
    "record": ("A record's fields are known only within a query.", "Use a column for each field, or jsonb."),
}  # fmt: skip

#: The fields that an interval's type may name.
INTERVAL_FIELDS = ("year", "month", "day", "hour", "minute", "second")
#: Which of them a type may have, in lower case.
INTERVAL_TYPES = frozenset((
    "", *INTERVAL_FIELDS, "year to month", "day to hour", "day to minute", "day to second", "hour to minute",
    "hour to second", "minute to second",
))  # fmt: skip
#: PostgreSQL's limit to the length of a varchar or char.
_MAX_LENGTH = 10_485_760


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as named.

    Attributes:
        kind: The family.
        scale: Of a numeric; None when it was not said.
        length: Of a string; 0 if it is not limited.
        is_array: Whether it is an array of that.
        has_dimensions: Whether that array may have several dimensions, as `integer[][]` says.
        modifier: What is made of its values.
        enumeration: Of what is no type of the language: the name, with its schema if it says one, not looked up yet.
        label: Of a type of the system catalogs: which one.
        is_varying: Whether it is `varchar` without a length, a text under that name.
    """

    kind: Kind
    scale: int | None = None
    length: int = 0
    is_array: bool = False
    has_dimensions: bool = False
    modifier: Modifier | None = None
    enumeration: Enumeration | None = None
    label: str = ""
    is_varying: bool = False

    @property
    def is_open(self) -> bool:
        """True for `numeric` without a scale, and for arrays of it."""
        return self.kind is Kind.NUMERIC and self.scale is None

    @property
    def is_any_char(self) -> bool:
        """True for `bpchar`, a char of any length, and for arrays of it."""
        return self.kind is Kind.CHAR and not self.length

    @property
    def scalar_type(self) -> ScalarType:
        """The type; an open scale counts as 0."""
        if self.label:
            type_ = LABELLED[self.label]
        else:
            type_ = ScalarType(
                self.kind, self.scale or 0, length=self.length, enumeration=self.enumeration, modifier=self.modifier
            )
        return self.array_of(type_) if self.is_array else type_

    def array_of(self, element: ScalarType) -> ScalarType:
        """Returns the type of arrays of a type that this one is."""
        return dimensioned(element) if self.has_dimensions else array_of(element)

    def type_of_text(self, text: str | None) -> ScalarType:
        """Returns the type of a literal that is read as this one: an open scale is that of its digits.

        One of an array that spells several dimensions is of any.
        """
        if text is not None and self.is_array and not self.has_dimensions and has_dimensions(text):
            return replace(self, has_dimensions=True).type_of_text(text)
        if not self.is_open or text is None:
            return self.scalar_type
        braces = text[text.find("{") :]  # behind bounds, if there are any
        texts = [one for one in re.split(r"[{},\s\"]+", braces) if one] if self.is_array else [text]
        types = [numeric_type_of(one) for one in texts if one.lower() != "null" or not self.is_array]
        type_ = UNCONSTRAINED if UNCONSTRAINED in types else numeric(max((one.scale for one in types), default=0))
        return self.array_of(type_) if self.is_array else type_


def type_name_of(text: str, offset: int = 0) -> TypeName:
    """Returns the type that `text` names.

    Example:
        >>> type_name_of("double precision").scalar_type.kind.value
        'double precision'
    """
    cursor = TokenCursor(" " * offset + text, (), offset + len(text))
    cursor.tokens = tuple(token for token in tokens_of(cursor.source) if token.kind is not TokenKind.END)
    name = parse_type_name(cursor)
    cursor.expects_end()
    return name


def parse_type_name(cursor: TokenCursor) -> TypeName:
    """Moves `cursor` past the name of a type and returns it."""
    token = cursor.current
    if token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
        raise cursor.unexpected("a type")
    cursor.advance()
    if token.value == "pg_catalog" and cursor.accepts_symbol("."):
        token = cursor.advance()
    word = token.value
    arguments: tuple[int, ...] = ()
    if word in LABELLED and (word != "char" or token.kind is TokenKind.QUOTED):
        name = TypeName(LABELLED[word].kind, label=word)
    elif word == "double":
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
    elif word in OTHER_TYPES and not cursor.current.is_symbol("."):
        raise cursor.refuse(f"type {word}", *OTHER_TYPES[word], token)
    else:
        name = TypeName(Kind.ENUM, enumeration=Enumeration(path_of(_parts(cursor, word))))
    arguments = arguments or _arguments(cursor)
    if name.kind is Kind.NUMERIC:
        name = _numeric(arguments, token.start)
    elif word == "varchar":
        length = _length(word, arguments, token.start) if arguments else 0
        name = TypeName(Kind.VARCHAR, length=length) if length else TypeName(Kind.TEXT, is_varying=True)
    elif name.kind is Kind.CHAR:
        if word != "bpchar" or arguments:
            name = TypeName(Kind.CHAR, length=_length("char", arguments or (1,), token.start))
    elif name.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.TIMETZ):
        modifier = _seconds(word, arguments, token)
        if cursor.accepts("with", "time", "zone"):
            name = TypeName(Kind.TIMETZ if name.kind is Kind.TIME else Kind.TIMESTAMPTZ)
        else:
            cursor.accepts("without", "time", "zone")
        name = replace(name, modifier=modifier)
    elif name.kind is Kind.INTERVAL:
        name = replace(name, modifier=_interval(cursor, arguments, token))
    elif arguments and name.enumeration is not None and (meant := suggestion(word, _KINDS)) is not None:
        raise UndefinedType(f'type "{word}" does not exist', hint=meant, position=token.start + 1)
    elif arguments:
        raise UndefinedType(f'type modifier is not allowed for type "{word}"', position=token.start + 1)
    dimensions = _dimensions(cursor)
    if not dimensions:
        return name
    return replace(name, is_array=True, has_dimensions=dimensions > 1)


def _parts(cursor: TokenCursor, first: str) -> tuple[str, ...]:
    """Moves past what qualifies a name."""
    parts = [first]
    while cursor.accepts_symbol("."):
        parts.append(cursor.identifier("a type"))
    return tuple(parts)


def _dimensions(cursor: TokenCursor) -> int:
    """Moves `cursor` past `[]`, `[n][m]`, `ARRAY` or `ARRAY[n]`; returns how many there were. PostgreSQL ignores n."""
    found = cursor.accepts("array")
    brackets = 0
    while cursor.accepts_symbol("["):
        if cursor.current.kind is TokenKind.NUMBER:
            cursor.advance()
        cursor.expects_symbol("]")
        brackets += 1
    if cursor.sees("list"):
        raise cursor.refuse("a list type", "PostgreSQL has no such type.", "Use an array.")
    return brackets or int(found)


def _seconds(word: str, arguments: tuple[int, ...], token: Token) -> Modifier | None:
    """Returns the modifier of a type whose seconds have so many digits; all six are none."""
    if len(arguments) > 1:
        raise UndefinedType("invalid type modifier", position=token.start + 1)
    return Modifier(arguments[0]) if arguments and arguments[0] < 6 else None


def _interval(cursor: TokenCursor, arguments: tuple[int, ...], token: Token) -> Modifier | None:
    """Moves past `YEAR TO MONTH`, `DAY TO SECOND(2)` and their like; returns the modifier of the type's intervals."""
    fields: list[str] = []
    if not arguments and cursor.sees("|".join(INTERVAL_FIELDS)):
        fields.append(cursor.advance().value)
        if cursor.accepts("to"):
            fields += ["to", cursor.identifier("a field")]
        if fields[-1] == "second":
            arguments = _arguments(cursor)
    written = " ".join(fields)
    if written not in INTERVAL_TYPES:
        raise InvalidSyntax("syntax error: there is no such type of intervals", position=token.start + 1)
    seconds = _seconds("interval", arguments, token)
    return Modifier(None if seconds is None else seconds.precision, written) if fields or seconds else None


def any_char_refused(position: int) -> UnsupportedForm:
    """Returns the error that refuses `bpchar` where no literal or char(n) says its length."""
    return UnsupportedForm(
        "type bpchar is not supported",
        detail="Only char(n) has a length of its own.",
        hint="Use char(1) or text.",
        position=position,
    )


def looked_up(type_: ScalarType, resolve: Callable[[tuple[str, ...]], Item | None], position: int) -> ScalarType:
    """Returns a type whose enumeration, if it is or has one, is that which its name stands for.

    Raises:
        UndefinedType: The name stands for no type.
    """
    if type_.array_element is not None:
        element = looked_up(type_.array_element, resolve, position)
        if element is type_.array_element:
            return type_
        return array_of(element) if type_.element is not None else dimensioned(element)
    if type_.enumeration is None or type_.enumeration.members is not None:
        return type_
    parts = names_in(type_.enumeration.name)
    item = resolve(parts)
    if item is None or item.kind != "type":
        name = ".".join(parts)
        raise UndefinedType(f'type "{name}" does not exist', hint=suggestion(name, _KINDS), position=position)
    return item.relation_type.columns[0].type


def column_type(cursor: TokenCursor) -> ScalarType:
    """Moves `cursor` past the type of a column."""
    token = cursor.current
    name = parse_type_name(cursor)
    if name.label:
        shown = '"char"' if name.label == "char" else name.label
        raise cursor.refuse(
            f"a column of type {shown}",
            "Values of the system catalogs' types are kept nowhere else.",
            "Use bigint for an object id, and text for a name.",
            token,
        )
    if name.is_any_char:
        raise any_char_refused(token.start + 1)
    if name.is_varying:
        return name.array_of(VARYING) if name.is_array else VARYING
    if not name.is_open:
        return name.scalar_type
    return name.array_of(UNCONSTRAINED) if name.is_array else UNCONSTRAINED


def _arguments(cursor: TokenCursor) -> tuple[int, ...]:
    if not cursor.accepts_symbol("("):
        return ()
    found: list[int] = []
    while True:
        token = cursor.current
        if token.kind is not TokenKind.NUMBER or not token.value.isdigit():
            raise cursor.unexpected("an integer")
        found.append(whole_number(cursor.advance().value))
        if cursor.accepts_symbol(")"):
            return tuple(found)
        cursor.expects_symbol(",")


def _length(word: str, arguments: tuple[int, ...], offset: int) -> int:
    if len(arguments) != 1:
        raise UndefinedType(f'invalid type modifier of type "{word}"', position=offset + 1)
    (length,) = arguments
    if length < 1:
        raise UndefinedType(f"length for type {word} must be at least 1", position=offset + 1)
    if length > _MAX_LENGTH:
        raise UndefinedType(f"length for type {word} cannot exceed {_MAX_LENGTH}", position=offset + 1)
    return length


def _numeric(arguments: tuple[int, ...], offset: int) -> TypeName:
    match arguments:
        case ():
            return TypeName(Kind.NUMERIC)
        case (precision,):
            scale = 0
        case (precision, scale):
            pass
        case _:
            raise UndefinedType("invalid NUMERIC type modifier", position=offset + 1)
    if not 1 <= precision <= 38:
        raise UndefinedType(
            f"NUMERIC precision {precision} must be between 1 and 38",
            hint="A numeric without a scale has any number of digits.",
            position=offset + 1,
        )
    if scale > 38:
        raise UndefinedType(f"NUMERIC scale {scale} must be between 0 and 38", position=offset + 1)
    return TypeName(Kind.NUMERIC, scale, modifier=Modifier(precision) if precision < 38 else None)
