"""Reading a literal's text as a type.

Owns the Python side of the casts from text, for literals and constants; `compute/spark` has the Spark side, and both
accept the same texts and spell the same errors: PostgreSQL's, but there is no `now`, no NaN of a numeric with a scale,
and no year beyond 9999.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from uuid import UUID

from mz_dagster.functions.arrays.arrays import dimensioned_of_text, elements_of
from mz_dagster.functions.errors import NUMERIC_NAN, NUMERIC_OVERFLOW
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.jsonb.json_text import parsed as json_parsed
from mz_dagster.functions.jsonb.jsonb import parsed as jsonb_parsed
from mz_dagster.functions.modifiers import modified_plain
from mz_dagster.functions.moments.interval_text import interval_of
from mz_dagster.functions.moments.moment_text import (
    date_of_text,
    time_of_text,
    timestamp_of_text,
    timestamptz_of_text,
    timestamptz_of_text_in_zone,
    timetz_of_text,
)
from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.functions.numbers.unconstrained import of_text as unconstrained_of_text
from mz_dagster.functions.plain import from_plain, to_plain
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.functions.session_zone import UTC, session_zone
from mz_dagster.functions.text.strings import bytea_of, uuid_of
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import INT4, INT8, INTERVAL, UNCONSTRAINED, Kind, ScalarType, numeric
from mz_dagster.scalars.values import Dimensioned, Interval

#: PostgreSQL's isspace in the C locale, for regular expressions of Python and Java alike.
SPACE = r"[ \t\n\x0B\f\r]"
_INTEGER = re.compile(rf"{SPACE}*[+-]?[0-9]+{SPACE}*")
INTEGER_RANGES = {
    Kind.INT2: (-(2**15), 2**15 - 1),
    Kind.INT4: (-(2**31), 2**31 - 1),
    Kind.INT8: (-(2**63), 2**63 - 1),
}
TRUE_WORDS = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE_WORDS = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
FLOAT_PATTERN = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MOMENTS = {
    Kind.DATE: date_of_text,
    Kind.TIMESTAMP: timestamp_of_text,
    Kind.TIMESTAMPTZ: timestamptz_of_text,
    Kind.TIME: time_of_text,
}
_HINT_OF_MOMENTS = (
    "Write the date itself, or current_date or now(); and a zone as an offset or as a name like Europe/Berlin."
)
_HINT_OF_ARRAYS = (
    "A type with one pair of brackets has one dimension here, counted from 1. Declare the column, or cast, with two: "
    "integer[][]."
)
_EXACT = Context(prec=200)
#: Half a unit in the last place beyond the greatest single-precision number.
_FLOAT4_OVERFLOW = Decimal(2**128 - 2**103)


def literal_of(
    text: str | None, type_: ScalarType, *, assigned: bool = False, rounds: bool = True
) -> Literal | Failure:
    """Returns the literal of type `type_` that `text` spells (None is NULL), or PostgreSQL's error.

    What is too long for a string of limited length is cut off, as by a cast; if it is `assigned` to a column, an error.
    A numeric is rounded to the scale of its type, and what the type's modifier says is done, which somebody asked for;
    if nobody did, and `rounds` is false, a numeric that would be rounded is an error, and a modifier does not count.

    Example:
        >>> from mz_dagster.scalars.types import INT4, numeric
        >>> literal_of(" 42 ", INT4).value
        42
        >>> literal_of("1.005", numeric(2)).value
        Decimal('1.01')
        >>> print(literal_of("4x", INT4))
        22P02 invalid input syntax for type integer: "4x"
    """
    if text is None:
        return Literal(None, type_)
    modifier = type_.modifier if rounds else None
    if modifier is not None and type_.kind is Kind.INTERVAL:
        return _pure(lambda: Literal(Interval(*interval_of(text, modifier.fields, modifier.precision)), type_))
    found = _read(text, type_, assigned=assigned, rounds=rounds)
    if modifier is None or isinstance(found, Failure):
        return found
    plain = to_plain(found.value, type_)
    return _pure(lambda: Literal(from_plain(modified_plain(plain, type_), type_), type_))


def _read(text: str, type_: ScalarType, *, assigned: bool, rounds: bool) -> Literal | Failure:
    match type_.kind:
        case Kind.TEXT:
            return Literal(text, type_)
        case Kind.VARCHAR | Kind.CHAR:
            return _string(text, type_, assigned=assigned)
        case Kind.ENUM:
            assert type_.enumeration is not None
            if text in type_.enumeration.labels:
                return Literal(text, type_)
            return Failure("22P02", f'invalid input value for enum {type_.enumeration.name}: "{text}"')
        case Kind.UUID:
            return _pure(lambda: Literal(UUID(uuid_of(text)), type_))
        case Kind.BYTEA:
            return _pure(lambda: Literal(bytea_of(text), type_))
        case Kind.INTERVAL:
            return _pure(lambda: Literal(Interval(*interval_of(text)), type_))
        case Kind.JSON:
            return _pure(lambda: Literal(json_parsed(text), type_))
        case Kind.JSONB:
            return _pure(lambda: Literal(jsonb_parsed(text), type_))
        case Kind.UNCONSTRAINED:
            return _pure(lambda: Literal(unconstrained_of_text(text), type_))
        case Kind.BOOL:
            word = text.strip(" \t\n\v\f\r").lower()
            if word in TRUE_WORDS or word in FALSE_WORDS:
                return Literal(word in TRUE_WORDS, type_)
            return invalid_syntax("boolean", text)
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return _integer(text, type_)
        case Kind.MZ_TIMESTAMP:
            return _mz_timestamp(text, type_)
        case Kind.FLOAT4 | Kind.FLOAT8:
            return _float(text, type_)
        case Kind.NUMERIC:
            return _numeric(text, type_) if rounds else _exact(text, type_)
        case Kind.TIMESTAMPTZ if (zone := session_zone()) != UTC:
            return _pure(lambda: Literal(from_plain(timestamptz_of_text_in_zone(zone, text), type_), type_))
        case Kind.TIMETZ:
            zone = session_zone()
            code = partial(timetz_of_text, text, None if zone == UTC else zone)
            return _pure(
                lambda: Literal(from_plain(code(), type_), type_), "Write the offset behind the time: 10:00+02."
            )
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME:
            return _pure(lambda: Literal(from_plain(_MOMENTS[type_.kind](text), type_), type_), _HINT_OF_MOMENTS)
        case Kind.ARRAY | Kind.DIMENSIONED:
            return _array(text, type_, assigned=assigned, rounds=rounds)
        case _:
            return Failure("0A000", f"literals of type {type_} are not supported")


def interval_literal(text: str, fields: str, precision: int | None) -> Literal | Failure:
    """Returns the literal of `INTERVAL 'text' fields(precision)`; see `interval_of`."""
    return _pure(lambda: Literal(Interval(*interval_of(text, fields, precision)), INTERVAL))


def _array(text: str, type_: ScalarType, *, assigned: bool, rounds: bool) -> Literal | Failure:
    element = type_.array_element
    assert element is not None
    lengths: list[int] = []
    lowers: list[int] = []
    try:
        if type_.kind is Kind.DIMENSIONED:
            texts, lengths, lowers = dimensioned_of_text(text)
        else:
            texts = elements_of(text)
    except SqlFailure as failure:
        sqlstate, _, message = str(failure).partition(" ")
        hint = _HINT_OF_ARRAYS if sqlstate == "0A000" else None
        return Failure(sqlstate, message, hint)
    cells: list[object] = []
    for one in texts:
        cell = literal_of(one, element, assigned=assigned, rounds=rounds)
        if isinstance(cell, Failure):
            return cell
        cells.append(cell.value)
    if type_.kind is Kind.DIMENSIONED:
        return Literal(Dimensioned(tuple(cells), tuple(lengths), tuple(lowers)), type_)
    return Literal(tuple(cells), type_)


def numeric_literal(text: str) -> Literal | Failure:
    """Returns the literal of an unquoted number: integer, bigint or numeric, without a scale if it has more digits.

    Example:
        >>> [str(numeric_literal(one).type) for one in ("1.50", "3000000000", "1e40")]
        ['numeric(38,2)', 'bigint', 'numeric']
    """
    if re.fullmatch("[0-9]+", text):
        for type_ in (INT4, INT8):
            if whole_number(text) <= INTEGER_RANGES[type_.kind][1]:
                return Literal(int(text), type_)
    return literal_of(text, numeric_type_of(text), rounds=False)


def numeric_type_of(text: str) -> ScalarType:
    """Returns the type of numerics that holds what a text spells: of its scale, if there is one with all its digits.

    Example:
        >>> str(numeric_type_of("1.50")), str(numeric_type_of("NaN")), str(numeric_type_of("1e-60"))
        ('numeric(38,2)', 'numeric', 'numeric')
    """
    scaled = numeric(literal_scale(text))
    found = _exact(text, scaled)
    return UNCONSTRAINED if isinstance(found, Failure) and found.sqlstate != "22P02" else scaled


def literal_scale(text: str) -> int:
    """Returns the number of decimal places that `text` spells as a numeric, as PostgreSQL's `scale()` tells it.

    Example:
        >>> literal_scale("1.50"), literal_scale("12e-3"), literal_scale("1.5e3")
        (2, 3, 0)
    """
    mantissa, _, exponent = text.strip().lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    try:
        shift = int(exponent) if exponent else 0
    except ValueError:
        shift = 0
    return min(38, max(0, digits - shift))


def _failure(error: str) -> Failure:
    sqlstate, _, message = error.partition(" ")
    return Failure(sqlstate, message)


def invalid_syntax(type_: str, text: str) -> Failure:
    """Returns PostgreSQL's error for a text that spells no value of the type."""
    return Failure("22P02", f'invalid input syntax for type {type_}: "{text}"')


def _string(text: str, type_: ScalarType, *, assigned: bool) -> Literal | Failure:
    beyond = text[type_.length :] if type_.length else ""
    if assigned and beyond.strip(" "):
        return Failure("22001", f"value too long for type {type_}")
    kept = text[: type_.length] if type_.length else text
    return Literal(kept.rstrip(" ") if type_.kind is Kind.CHAR else kept, type_)


def _pure(read: Callable[[], Literal], hint: str | None = None) -> Literal | Failure:
    """Returns what a function of `PURE` makes of a literal's text, or its failure, with a hint if it is a refusal."""
    try:
        return read()
    except SqlFailure as failure:
        sqlstate, _, message = str(failure).partition(" ")
        return Failure(sqlstate, message, hint if sqlstate == "0A000" else None)


def _integer(text: str, type_: ScalarType) -> Literal | Failure:
    if not _INTEGER.fullmatch(text):
        return invalid_syntax(type_.kind.value, text)
    value = whole_number(text)
    low, high = INTEGER_RANGES[type_.kind]
    if not low <= value <= high:
        return Failure("22003", f'value "{text}" is out of range for type {type_.kind.value}')
    return Literal(value, type_)


def _mz_timestamp(text: str, type_: ScalarType) -> Literal | Failure:
    if not re.fullmatch(rf"{SPACE}*[+]?[0-9]+{SPACE}*", text):
        return invalid_syntax("mz_timestamp", text)
    if whole_number(text) > INTEGER_RANGES[Kind.INT8][1]:
        return Failure("22003", "mz_timestamp out of range")
    return Literal(int(text), type_)


def _float(text: str, type_: ScalarType) -> Literal | Failure:
    word = text.strip(" \t\n\v\f\r")
    name = type_.kind.value
    special = re.fullmatch("([+-]?)(inf|infinity|nan)", word.lower())
    if special:
        return Literal(float(word), type_)
    if not re.fullmatch(FLOAT_PATTERN, word):
        return invalid_syntax(name, text)
    value = float(word)
    if type_.kind is Kind.FLOAT4:
        value = _to_float4(word)
    zero = not re.search("[1-9]", re.split("[eE]", word)[0])
    if math.isinf(value) or (value == 0 and not zero):
        return Failure("22003", f'"{word}" is out of range for type {name}')
    return Literal(value, type_)


def _to_float4(word: str) -> float:
    """Rounds the decimal once, straight to single precision: through a double it would be rounded twice."""
    exact = _EXACT.create_decimal(word)
    if exact.copy_abs() >= _FLOAT4_OVERFLOW:
        return math.copysign(math.inf, exact)
    near: float = struct.unpack("f", struct.pack("f", float(exact)))[0]
    bits: int = struct.unpack("I", struct.pack("f", near))[0]
    neighbours = [near]
    for step in (-1, 1):
        other = bits + step
        if 0 <= other < 2**32:
            value: float = struct.unpack("f", struct.pack("I", other))[0]
            if math.isfinite(value):
                neighbours.append(value)
    distances = [
        (_EXACT.subtract(Decimal(value), exact).copy_abs(), struct.unpack("I", struct.pack("f", value))[0] & 1, value)
        for value in neighbours
    ]
    return min(distances)[2]


def _exact(text: str, type_: ScalarType) -> Literal | Failure:
    found = _numeric(text, type_)
    if isinstance(found, Literal) and found.value != Decimal(text.strip()):
        hint = "Numerics have at most 38 decimal places: write fewer, or cast a quoted number to double precision."
        return Failure("0A000", f'numeric "{text}" is not supported', hint)
    return found


def _numeric(text: str, type_: ScalarType) -> Literal | Failure:
    word = text.strip(" \t\n\v\f\r")
    if word.lower() == "nan":
        return _failure(NUMERIC_NAN)
    if re.fullmatch("[+-]?inf(inity)?", word.lower()):
        return _failure(NUMERIC_OVERFLOW)
    if not re.fullmatch(FLOAT_PATTERN, word):
        return invalid_syntax("numeric", text)
    try:
        value = Decimal(word)
        if value.adjusted() > 40 and value != 0:
            raise InvalidOperation
        rounded = value.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        return Failure("22003", "numeric field overflow")
    if rounded.copy_abs() >= Decimal(10) ** (38 - type_.scale):
        return Failure("22003", "numeric field overflow")
    return Literal(rounded.copy_abs() if rounded == 0 else rounded, type_)
