r"""The input functions of the scalar types, in Python: what the text of a cell is as a value of its declared type.

They accept what `source.decode` says, and say the same of what it does not. An array's text is PostgreSQL's,
`{1,2}`, `{{1,2},{3,4}}` or `[0:1]={1,2}`, and of its elements each is read as a cell.

Spark's workers get this code by value, for the types that Spark does not read itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa

from mz_dagster.functions.arrays.arrays import dimensioned_of_text, elements_of
from mz_dagster.functions.literals import FALSE_WORDS, INTEGER_RANGES, TRUE_WORDS
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.types import Kind, ScalarType

#: What PostgreSQL's input functions skip at both ends, text excepted.
_WHITESPACE = " \t\n\r\x0b\x0c"

_INTEGER = re.compile("[+-]?[0-9]+")
_NATURAL = re.compile("[+]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HUGE_EXPONENT = re.compile("[eE][+-]?0*[0-9]{5,}$")
_NONZERO_MANTISSA = re.compile("[^eE]*[1-9]")
_DATE = re.compile("([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIMESTAMP = re.compile(
    _DATE.pattern + r"(?:[ T]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]*))?)?"
    "( ?(?:Z|z|UTC|utc|[+-][0-9]{1,2}(?::?[0-9]{2})?))?)?"
)
_OFFSET_HOURS = re.compile("[+-]([0-9]{1,2})")
_OFFSET_MINUTES = re.compile("[+-][0-9]{1,2}:?([0-9]{2})")
_UUID = re.compile("([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}")
_HEX_BYTES = re.compile(r"\\x([ \t\n\r]*[0-9a-fA-F]{2})*[ \t\n\r]*")
_ESCAPED_PART = re.compile(r"\\([0-3][0-7]{2})|\\(\\)|([^\\]+)")
#: Possessive, as what a part is never depends on what follows: else a bad end would be looked for in ever so many ways.
_ESCAPED_BYTES = re.compile(rf"({_ESCAPED_PART.pattern})*+")

#: The input functions that casts in SQL have, too.
_OF_SQL = {
    Kind.JSON: "cast_text_to_json",
    Kind.JSONB: "cast_text_to_jsonb",
    Kind.UNCONSTRAINED: "cast_text_to_unconstrained",
    Kind.TIME: "cast_text_to_time",
    Kind.TIMETZ: "cast_text_to_timetz",
    Kind.INTERVAL: "cast_text_to_interval",
}
_LONG_NAMES = {Kind.TIMESTAMPTZ: "timestamp with time zone"}
_RANGES = INTEGER_RANGES | {Kind.MZ_TIMESTAMP: (0, INTEGER_RANGES[Kind.INT8][1])}
_DAY = 86_400_000_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
#: The first day of the year 1, and the day after the last one of 9999, since 1970.
FIRST_DAY, DAYS_END = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY + 1
#: Exact for all that has up to 38 digits before the point and any number behind it.
_EXACT = Context(prec=200)


def reader_of(type_: ScalarType) -> Callable[[str], Any]:
    """Returns what reads a text as a value of a type, in its plain form; of one that is none it raises `SqlFailure`.

    Example:
        >>> from mz_dagster.scalars.types import INT4, dimensioned, numeric
        >>> reader_of(INT4)(" +7 "), reader_of(numeric(2))("1.005"), reader_of(dimensioned(INT4))("{{1},{NULL}}")
        (7, Decimal('1.01'), ([1, None], [2, 1], [1, 1]))
    """
    match type_.kind:
        case Kind.TEXT:
            return str
        case Kind.VARCHAR | Kind.CHAR:
            return partial(_fitted, type_=type_)
        case Kind.ENUM:
            return partial(_member, type_=type_)
        case Kind.UUID:
            return _uuid
        case Kind.BYTEA:
            return _bytea
        case Kind.JSON | Kind.JSONB | Kind.UNCONSTRAINED | Kind.TIME | Kind.TIMETZ | Kind.INTERVAL as kind:
            return PURE[_OF_SQL[kind]]
        case Kind.BOOL:
            return _truth
        case Kind.INT2 | Kind.INT4 | Kind.INT8 | Kind.MZ_TIMESTAMP as kind:
            return partial(_integer, kind=kind)
        case Kind.FLOAT4 | Kind.FLOAT8 as kind:
            return partial(_float, kind=kind)
        case Kind.NUMERIC:
            return partial(_numeric, type_=type_)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ as kind:
            return partial(_moment, kind=kind)
        case Kind.ARRAY if type_.element is not None:
            return partial(_list, element=reader_of(type_.element))
        case Kind.DIMENSIONED if type_.array_element is not None:
            return partial(_dimensioned, element=reader_of(type_.array_element))
        case _:
            raise TypeError(f"no source has columns of type {type_}")


def _list(text: str, element: Callable[[str], Any]) -> list[Any]:
    return [None if one is None else element(one) for one in elements_of(text)]


def _dimensioned(text: str, element: Callable[[str], Any]) -> tuple[list[Any], list[int], list[int]]:
    elements, lengths, lowers = dimensioned_of_text(text)
    return [None if one is None else element(one) for one in elements], lengths, lowers


def _truth(text: str) -> bool:
    word = text.strip(_WHITESPACE).lower()
    if word in TRUE_WORDS or word in FALSE_WORDS:
        return word in TRUE_WORDS
    raise _invalid_syntax(text, Kind.BOOL.value)


def _moment(text: str, kind: Kind) -> int:
    trimmed = text.strip(_WHITESPACE)
    for infinity in (INFINITY, NEGATIVE_INFINITY):
        if trimmed.lower() == str(infinity):
            return infinity.stored(kind)
    found = (_DATE if kind is Kind.DATE else _TIMESTAMP).fullmatch(trimmed)
    if found is None:
        raise _invalid_syntax(text, _LONG_NAMES.get(kind, kind.value), "22007")
    value = _moment_of(found, kind)
    if value is None:
        raise SqlFailure("22008", f"date/time field value out of range: {_shown(text)}")
    return value


def _shown(text: str) -> str:
    return f'"{text if len(text) <= 100 else text[:100] + "..."}"'


def _invalid_syntax(text: str, name: str, code: str = "22P02") -> SqlFailure:
    return SqlFailure(code, f"invalid input syntax for type {name}: {_shown(text)}")


def _fitted(text: str, type_: ScalarType) -> str:
    kept = text[: type_.length]
    if kept.rstrip(" ") != text.rstrip(" "):
        raise SqlFailure("22001", f"value too long for type {type_}")
    return kept.rstrip(" ") if type_.kind is Kind.CHAR else kept


def _member(text: str, type_: ScalarType) -> str:
    assert type_.enumeration is not None
    try:
        return type_.enumeration.member(text)
    except KeyError:
        raise SqlFailure("22P02", f"invalid input value for enum {type_}: {_shown(text)}") from None


def _uuid(text: str) -> str:
    inner = text[1:-1] if re.fullmatch(r"\{[^{}]*\}", text) else text
    if not _UUID.fullmatch(inner):
        raise _invalid_syntax(text, "uuid")
    digits = inner.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _bytea(text: str) -> bytes:
    if text.startswith("\\x"):
        if _HEX_BYTES.fullmatch(text):
            return bytes.fromhex(text[2:])
    elif _ESCAPED_BYTES.fullmatch(text):
        return b"".join(
            bytes([int(octal, 8)]) if octal else (backslash or others).encode()
            for octal, backslash, others in _ESCAPED_PART.findall(text)
        )
    raise SqlFailure("22P02", "invalid input syntax for type bytea")


def _integer(text: str, kind: Kind) -> int:
    name, trimmed = kind.value, text.strip(_WHITESPACE)
    if not _INTEGER.fullmatch(trimmed):
        raise _invalid_syntax(text, name)
    low, high = _RANGES[kind]
    digits = trimmed.lstrip("+-").lstrip("0")
    if len(digits) <= 20 and (kind is not Kind.MZ_TIMESTAMP or _NATURAL.fullmatch(trimmed)):
        value = int(trimmed[:1].strip("0123456789+") + (digits or "0"))
        if low <= value <= high:
            return value
    raise SqlFailure("22003", f"value {_shown(text)} is out of range for type {name}")


def _float(text: str, kind: Kind) -> float:
    name, trimmed = kind.value, text.strip(_WHITESPACE)
    if not _NUMBER.fullmatch(trimmed):
        named = re.fullmatch("nan|([+-]?)inf(inity)?", trimmed.lower())
        if named is None:
            raise _invalid_syntax(text, name)
        return float(trimmed)
    try:
        # Arrow rounds a decimal once, straight to single precision.
        single_or_double = pa.float32() if kind is Kind.FLOAT4 else pa.float64()
        value: float = pa.scalar(trimmed.lstrip("+")).cast(single_or_double).as_py()
    except pa.ArrowInvalid:  # it is beyond the largest
        value = float("inf")
    is_zero = not _NONZERO_MANTISSA.match(trimmed)
    if is_zero:
        return -0.0 if trimmed.startswith("-") else 0.0
    if value == 0 or abs(value) == float("inf"):
        raise SqlFailure("22003", f"{_shown(text)} is out of range for type {name}")
    return value


def _numeric(text: str, type_: ScalarType) -> Decimal:
    trimmed = text.strip(_WHITESPACE)
    overflow = SqlFailure("22003", "numeric field overflow")
    if re.fullmatch("[+-]?inf(inity)?", trimmed.lower()):
        raise overflow
    if not _NUMBER.fullmatch(trimmed):
        raise _invalid_syntax(text, "numeric")
    if _HUGE_EXPONENT.search(trimmed):
        raise SqlFailure("22003", "value overflows numeric format")
    if not _NONZERO_MANTISSA.match(trimmed):
        return Decimal(0).scaleb(-type_.scale)
    try:
        rounded = Decimal(trimmed).quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        raise overflow from None
    if rounded.copy_abs() >= Decimal(10) ** (38 - type_.scale):
        raise overflow
    return rounded


def _moment_of(found: re.Match[str], kind: Kind) -> int | None:
    """Returns days or microseconds since 1970, None if there is no such moment."""
    try:
        day = date(int(found[1]), int(found[2]), int(found[3])).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    if kind is Kind.DATE:
        return day
    hour, minute, second, fraction = (found[i] or "" for i in range(4, 8))
    if int(hour or 0) > 23 or int(minute or 0) > 59 or int(second or 0) > 59:
        return None
    micros = int(fraction[:6].ljust(6, "0")) + (fraction[6:7] >= "5")
    clock = (int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)) * 1_000_000 + micros
    offset = _offset((found[8] or "").lstrip(" ")) if kind is Kind.TIMESTAMPTZ else 0
    if offset is None:
        return None
    value = day * _DAY + clock - offset
    return value if FIRST_DAY * _DAY <= value < DAYS_END * _DAY else None


def _offset(zone: str) -> int | None:
    """Returns the microseconds by which a zone is east of UTC, None if there is no such zone."""
    hours, minutes = _OFFSET_HOURS.match(zone), _OFFSET_MINUTES.fullmatch(zone)
    if hours is None:
        return 0
    found = int(hours[1]), 0 if minutes is None else int(minutes[1])
    if found[0] >= 16 or found[1] >= 60:
        return None
    return (-1 if zone[0] == "-" else 1) * (found[0] * 3600 + found[1] * 60) * 1_000_000
