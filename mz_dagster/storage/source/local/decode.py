r"""Turns the texts of a column's cells into values of its declared type, in this process.

Accepts what `source.decode` has Spark accept, and says the same of what it does not: its docstring states the rules.
Most columns are plain, and Arrow reads them as they stand (`_plainly`): a text of such a form that it means the same to
Arrow and to PostgreSQL. If one is not, each distinct text of the column is read by itself (`read_text`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.functions.literals import FALSE_WORDS, INTEGER_RANGES, TRUE_WORDS
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.plain_cells import stored_cells

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
_ESCAPED_BYTES = re.compile(rf"({_ESCAPED_PART.pattern})*")

#: The input functions that Spark's workers call, too.
_IN_PYTHON = {
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
_FIRST_DAY, _DAYS_END = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY + 1
#: Exact for all that has up to 38 digits before the point and any number behind it.
_EXACT = Context(prec=200)

#: Forms of texts that mean the same to Arrow.
_ISO_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ISO_TIMESTAMP = rf"{_ISO_DATE}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?"
_ISO_OFFSET = "(Z|[+-](0[0-9]|1[0-5]):[0-5][0-9])"
#: How often Arrow's regular expressions repeat something at most.
_MOST_REPEATED = 1000


def decoded(texts: pa.Array, type_: ScalarType) -> tuple[pa.Array, Mapping[int, str]]:
    """Returns the values of texts, NULL for NULL and for what cannot be decoded, and why that cannot, by position.

    Args:
        texts: Of Arrow's type `string`.
        type_: The declared type.
    """
    if type_.kind is Kind.TEXT:
        return texts, {}
    pattern = _plain_form(type_)
    if pattern is None:
        return _one_by_one(texts, type_)
    is_plain = pc.match_substring_regex(texts, f"^({pattern})$")
    others = pc.all(is_plain).as_py() is False
    nothing = pa.scalar(None, pa.string())
    plain = _plainly(pc.if_else(is_plain, texts, nothing) if others else texts, type_)
    if plain is None:
        return _one_by_one(texts, type_)
    if not others:
        return plain, {}
    found, faults = _one_by_one(pc.if_else(is_plain, nothing, texts), type_)
    return pc.coalesce(plain, found), faults


def _one_by_one(texts: pa.Array, type_: ScalarType) -> tuple[pa.Array, Mapping[int, str]]:
    """Returns what `decoded` does, after a look at each distinct text."""
    encoded = texts.dictionary_encode()
    values: list[Any] = []
    faults: dict[int, str] = {}
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            values.append(read_text(text, type_))
        except SqlFailure as failure:
            values.append(None)
            faults[number] = str(failure)
    found = stored_cells(values, type_).take(encoded.indices)
    if not faults:
        return found, {}
    numbers = enumerate(encoded.indices.to_pylist())
    return found, {position: faults[number] for position, number in numbers if number in faults}


def read_text(text: str, type_: ScalarType) -> Any:
    """Returns the value that a text is of a type, in its plain form.

    Raises:
        SqlFailure: It is none, in PostgreSQL's words.

    Example:
        >>> from mz_dagster.scalars.types import INT4, numeric
        >>> read_text(" +7 ", INT4), read_text("1.005", numeric(2))
        (7, Decimal('1.01'))
    """
    kind, name = type_.kind, type_.kind.value
    trimmed = text.strip(_WHITESPACE)
    match kind:
        case Kind.VARCHAR | Kind.CHAR:
            return _fitted(text, type_)
        case Kind.ENUM:
            return _member(text, type_)
        case Kind.UUID:
            return _uuid(text)
        case Kind.BYTEA:
            return _bytea(text)
        case Kind.JSON | Kind.JSONB | Kind.UNCONSTRAINED | Kind.TIME | Kind.TIMETZ | Kind.INTERVAL:
            return PURE[_IN_PYTHON[kind]](text)
        case Kind.BOOL:
            word = trimmed.lower()
            if word in TRUE_WORDS or word in FALSE_WORDS:
                return word in TRUE_WORDS
            raise _invalid_syntax(text, name)
        case Kind.INT2 | Kind.INT4 | Kind.INT8 | Kind.MZ_TIMESTAMP:
            return _integer(text, trimmed, kind)
        case Kind.FLOAT4 | Kind.FLOAT8:
            return _float(text, trimmed, type_)
        case Kind.NUMERIC:
            return _numeric(text, trimmed, type_)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            for infinity in (INFINITY, NEGATIVE_INFINITY):
                if trimmed.lower() == str(infinity):
                    return infinity.stored(kind)
            pattern = _DATE if kind is Kind.DATE else _TIMESTAMP
            found = pattern.fullmatch(trimmed)
            if found is None:
                raise _invalid_syntax(text, _LONG_NAMES.get(kind, name), "22007")
            value = _moment(found, kind)
            if value is None:
                raise SqlFailure("22008", f"date/time field value out of range: {_shown(text)}")
            return value
        case _:
            raise TypeError(f"no source has columns of type {type_}")


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


def _integer(text: str, trimmed: str, kind: Kind) -> int:
    name = kind.value
    if not _INTEGER.fullmatch(trimmed):
        raise _invalid_syntax(text, name)
    low, high = _RANGES[kind]
    digits = trimmed.lstrip("+-").lstrip("0")
    if len(digits) <= 20 and (kind is not Kind.MZ_TIMESTAMP or _NATURAL.fullmatch(trimmed)):
        value = int(trimmed[:1].strip("0123456789+") + (digits or "0"))
        if low <= value <= high:
            return value
    raise SqlFailure("22003", f"value {_shown(text)} is out of range for type {name}")


def _float(text: str, trimmed: str, type_: ScalarType) -> float:
    name = type_.kind.value
    if not _NUMBER.fullmatch(trimmed):
        named = re.fullmatch("nan|([+-]?)inf(inity)?", trimmed.lower())
        if named is None:
            raise _invalid_syntax(text, name)
        return float(trimmed)
    try:
        # Arrow rounds a decimal once, straight to single precision.
        value: float = pa.scalar(trimmed.lstrip("+")).cast(arrow_type(type_)).as_py()
    except pa.ArrowInvalid:  # it is beyond the largest
        value = float("inf")
    is_zero = not _NONZERO_MANTISSA.match(trimmed)
    if is_zero:
        return -0.0 if trimmed.startswith("-") else 0.0
    if value == 0 or abs(value) == float("inf"):
        raise SqlFailure("22003", f"{_shown(text)} is out of range for type {name}")
    return value


def _numeric(text: str, trimmed: str, type_: ScalarType) -> Decimal:
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


def _moment(found: re.Match[str], kind: Kind) -> int | None:
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
    return value if _FIRST_DAY * _DAY <= value < _DAYS_END * _DAY else None


def _offset(zone: str) -> int | None:
    """Returns the microseconds by which a zone is east of UTC, None if there is no such zone."""
    hours, minutes = _OFFSET_HOURS.match(zone), _OFFSET_MINUTES.fullmatch(zone)
    if hours is None:
        return 0
    found = int(hours[1]), 0 if minutes is None else int(minutes[1])
    if found[0] >= 16 or found[1] >= 60:
        return None
    return (-1 if zone[0] == "-" else 1) * (found[0] * 3600 + found[1] * 60) * 1_000_000


def _plain_form(type_: ScalarType) -> str | None:
    """Returns the form of texts that Arrow reads as PostgreSQL does, as a regular expression; None if there is none."""
    match type_.kind:
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return "-?[0-9]{1,18}"
        case Kind.MZ_TIMESTAMP:
            return "[0-9]{1,18}"
        case Kind.NUMERIC if type_.scale < 38:
            behind = rf"(\.[0-9]{{1,{type_.scale}}})?" if type_.scale else ""
            return f"-?[0-9]{{1,{min(18, 38 - type_.scale)}}}{behind}"
        # So few digits neither overflow nor vanish.
        case Kind.FLOAT4:
            return r"-?[0-9]{1,15}(\.[0-9]{1,20})?([eE][+-]?0?[0-9])?"
        case Kind.FLOAT8:
            return r"-?[0-9]{1,15}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?"
        case Kind.DATE:
            return _ISO_DATE
        case Kind.TIMESTAMP:
            return _ISO_TIMESTAMP
        case Kind.TIMESTAMPTZ:
            return _ISO_TIMESTAMP + _ISO_OFFSET
        case Kind.VARCHAR | Kind.CHAR:
            return f"(?s).{{0,{type_.length}}}" if (type_.length or 0) <= _MOST_REPEATED else None
        case _:
            return None


def _plainly(texts: pa.Array, type_: ScalarType) -> pa.Array | None:
    """Returns the values of texts of the plain form, None if one of them has none."""
    match type_.kind:
        case Kind.VARCHAR:
            return texts
        case Kind.CHAR:
            return pc.utf8_rtrim(texts, characters=" ")
        case kind:
            try:
                found = texts.cast(arrow_type(type_))
            except pa.ArrowInvalid:  # a month has no such day, or a number is out of range
                return None
            return _in_range(found) if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else found


def _in_range(moments: pa.Array) -> pa.Array | None:
    """Returns moments, None if one is of a year that SQL does not have here."""
    is_date = pa.types.is_date(moments.type)
    bounds = pc.min_max(moments.cast(pa.int32() if is_date else pa.int64())).as_py()
    unit = 1 if is_date else _DAY
    is_in = bounds["min"] is None or (_FIRST_DAY * unit <= bounds["min"] and bounds["max"] < _DAYS_END * unit)
    return moments if is_in else None
