"""Turns the text of one cell into a value of its declared type, or into PostgreSQL's words for why not.

Owns the input functions of the scalar types, as total Spark expressions: no text whatever raises, also in ANSI mode.
Values are exact: numbers are read from their digits, never through a float; a numeric rounds half away from zero to
its scale, as PostgreSQL's does; a finite text whose float is infinite or vanishes is out of range.

Dates and times are read in ISO form only (`2013-01-31`, `2013-01-31 05:15:00.25`, `...T...`, with `Z` or `+05:30` where
a zone belongs), or are `infinity` or `-infinity`. PostgreSQL's other spellings, BC and hour 24 are errors here.

Does not know where a cell came from: files and lines are added by `record`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.source import in_python
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

#: What PostgreSQL's input functions skip at both ends, text excepted.
_WHITESPACE = " \t\n\r\x0b\x0c"

#: What Spark has no exact way to read.
_IN_PYTHON = {
    Kind.JSON, Kind.JSONB, Kind.UNCONSTRAINED, Kind.TIME, Kind.TIMETZ, Kind.INTERVAL, Kind.ARRAY, Kind.DIMENSIONED,
}  # fmt: skip

_INTEGER = r"^[+-]?[0-9]+\z"
_NATURAL = r"^[+]?[0-9]+\z"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
#: Exponents beyond four digits cannot be a value of 38 digits, and computing their powers of ten would take all memory.
_HUGE_EXPONENT = r"[eE][+-]?0*[0-9]{5,}\z"
_NONZERO_MANTISSA = r"^[^eE]*[1-9]"
_DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]*)?)?"
_ZONE = r"( ?(Z|z|UTC|utc|[+-][0-9]{1,2}(:?[0-9]{2})?))"

#: Parts of which a text of bytes is nothing but, behind `\\x` and without. They are taken away, and nothing may be
#: left: Java matches repeated groups by recursion, and is out of stack over some thousand bytes.
_HEX_PART = r"[ \t\n\r]+|[0-9a-fA-F]{2}"
_ESCAPED_PART = r"(\\[0-3][0-7]{2}|\\\\|[^\\]+)"

_TIMESTAMP = rf"^{_DATE}([ T]{_TIME}{_ZONE}?)?\z"


def decode(text: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns what PostgreSQL's input function of `type_` makes of `text`; NULL if it is NULL or cannot be decoded.

    Why it cannot is `why_not`'s business: kept apart, because a plan that carries both for every column costs more
    to compile than to run.
    """
    trimmed = _trimmed(text)
    match type_.kind:
        case Kind.TEXT:
            return text
        case Kind.VARCHAR | Kind.CHAR:
            return fitted(text, type_)
        case Kind.ENUM:
            return _decode_enum(text, type_)
        case Kind.UUID:
            return _decode_uuid(text)
        case Kind.BYTEA:
            return _decode_bytea(text)
        case kind if kind in _IN_PYTHON:
            return in_python.read(text, type_)
        case Kind.BOOL:
            lowered = F.lower(trimmed)
            return F.when(lowered.rlike(r"^(t|tr|tru|true|y|ye|yes|on|1)\z"), F.lit(True)).when(
                lowered.rlike(r"^(f|fa|fal|fals|false|n|no|of|off|0)\z"), F.lit(False)
            )
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return F.when(trimmed.rlike(_INTEGER), trimmed.try_cast(spark_type(type_)))
        case Kind.MZ_TIMESTAMP:
            return F.when(trimmed.rlike(_NATURAL), trimmed.try_cast(spark_type(type_)))
        case Kind.FLOAT4 | Kind.FLOAT8:
            return _decode_float(trimmed, type_)
        case Kind.NUMERIC:
            plain = trimmed.rlike(_NUMBER) & ~trimmed.rlike(_HUGE_EXPONENT)
            # Of a zero with an exponent Spark counts the places.
            zero = F.lit(0).cast(spark_type(type_))
            return F.when(
                plain, F.when(trimmed.rlike(_NONZERO_MANTISSA), trimmed.try_cast(spark_type(type_))).otherwise(zero)
            )
        case Kind.DATE:
            found = _in_range(F.when(trimmed.rlike(rf"^{_DATE}\z"), trimmed.try_cast("date")))
            return F.coalesce(found, _infinite(trimmed, type_.kind))
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return F.coalesce(_decode_timestamp(trimmed, type_), _infinite(trimmed, type_.kind))
        case _:
            raise TypeError(f"no source has columns of type {type_}")


def why_not(text: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns `<SQLSTATE> <message>`: why `text`, which is not NULL, decodes to NULL."""
    trimmed = _trimmed(text)
    kind, name = type_.kind, type_.kind.value
    match kind:
        case Kind.TEXT | Kind.BOOL | Kind.UUID:
            return _invalid_syntax(text, name)
        case Kind.ENUM:
            return F.concat(F.lit(f"22P02 invalid input value for enum {type_}: "), shown(text))
        case Kind.BYTEA:
            return F.lit("22P02 invalid input syntax for type bytea")
        case _ if kind in _IN_PYTHON:
            return in_python.why_unread(text, type_)
        case Kind.VARCHAR | Kind.CHAR:
            return F.lit(f"22001 value too long for type {type_}")
        case Kind.INT2 | Kind.INT4 | Kind.INT8 | Kind.MZ_TIMESTAMP:
            out_of_range = F.concat(F.lit("22003 value "), shown(text), F.lit(f" is out of range for type {name}"))
            return F.when(trimmed.rlike(_INTEGER), out_of_range).otherwise(_invalid_syntax(text, name))
        case Kind.FLOAT4 | Kind.FLOAT8:
            out_of_range = F.concat(F.lit("22003 "), shown(text), F.lit(f" is out of range for type {name}"))
            return F.when(trimmed.rlike(_NUMBER), out_of_range).otherwise(_invalid_syntax(text, name))
        case Kind.NUMERIC:
            overflow = F.lit("22003 numeric field overflow")
            return (
                F.when(F.lower(trimmed).rlike(r"^[+-]?(inf|infinity)\z"), overflow)
                .when(~trimmed.rlike(_NUMBER), _invalid_syntax(text, name))
                .when(trimmed.rlike(_HUGE_EXPONENT), F.lit("22003 value overflows numeric format"))
                .otherwise(overflow)
            )
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            shape = rf"^{_DATE}\z" if kind is Kind.DATE else _TIMESTAMP
            out_of_range = F.concat(F.lit("22008 date/time field value out of range: "), shown(text))
            long_name = "timestamp with time zone" if kind is Kind.TIMESTAMPTZ else name
            return F.when(trimmed.rlike(shape), out_of_range).otherwise(_invalid_syntax(text, long_name, "22007"))
        case _:
            raise TypeError(f"no source has columns of type {type_}")


def fitted(text: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns a string as one of limited length, as it is stored; NULL if more than blanks would be cut off."""
    kept = F.left(text, F.lit(type_.length))
    fits = F.rtrim(kept, F.lit(" ")) == F.rtrim(text, F.lit(" "))
    return F.when(fits, F.rtrim(kept, F.lit(" ")) if type_.kind is Kind.CHAR else kept)


def shown(text: SparkColumn) -> SparkColumn:
    """Returns `text` quoted for a message, cut after 100 characters."""
    cut = F.when(F.length(text) > 100, F.concat(F.substring(text, 1, 100), F.lit("..."))).otherwise(text)
    return F.concat(F.lit('"'), cut, F.lit('"'))


def _decode_enum(text: SparkColumn, type_: ScalarType) -> SparkColumn:
    assert type_.enumeration is not None
    found = F.lit(None).cast("string")
    for label, member in zip(type_.enumeration.labels, type_.enumeration.members or (), strict=True):
        found = F.when(text == label, F.lit(member)).otherwise(found)
    return found


def _trimmed(text: SparkColumn) -> SparkColumn:
    return F.btrim(text, F.lit(_WHITESPACE))


def _invalid_syntax(text: SparkColumn, name: str, code: str = "22P02") -> SparkColumn:
    return F.concat(F.lit(f"{code} invalid input syntax for type {name}: "), shown(text))


def _decode_uuid(text: SparkColumn) -> SparkColumn:
    inner = F.when(text.rlike(r"^\{[^{}]*\}\z"), F.regexp_replace(text, "[{}]", "")).otherwise(text)
    digits = F.when(inner.rlike(r"\A([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\z"), F.lower(F.replace(inner, F.lit("-"))))
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    grouped = F.concat_ws("-", *(F.substring(digits, start, length) for start, length in parts))
    return F.when(digits.isNotNull(), grouped)


def _decode_bytea(text: SparkColumn) -> SparkColumn:
    digits = F.substring(text, 3, 1 << 30)
    hexadecimal = F.when(F.regexp_replace(digits, _HEX_PART, "") == "", F.regexp_replace(digits, "[ \t\n\r]", ""))
    parts = F.transform(
        F.regexp_extract_all(text, F.lit(_ESCAPED_PART), F.lit(1)),
        lambda part: (
            F.when(part == "\\\\", F.lit("5C"))
            .when(part.startswith("\\"), F.lpad(F.conv(F.substring(part, 2, 3), 8, 16), 2, "0"))
            .otherwise(F.hex(part))
        ),
    )
    escaped = F.when(F.regexp_replace(text, _ESCAPED_PART, "") == "", F.array_join(parts, ""))
    return F.unhex(F.when(text.startswith("\\x"), hexadecimal).otherwise(escaped))


def _decode_float(trimmed: SparkColumn, type_: ScalarType) -> SparkColumn:
    number = F.when(trimmed.rlike(_NUMBER), trimmed.try_cast(spark_type(type_)))
    # Beyond the largest, or not zero and yet zero: what the type cannot hold.
    held = F.when(number == 0, ~trimmed.rlike(_NONZERO_MANTISSA)).otherwise(F.abs(number) < F.lit(float("inf")))
    lowered = F.lower(trimmed)
    named = (
        F.when(lowered == "nan", F.lit(float("nan")))
        .when(lowered.rlike(r"^[+]?(inf|infinity)\z"), F.lit(float("inf")))
        .when(lowered.rlike(r"^-(inf|infinity)\z"), F.lit(float("-inf")))
    )
    return F.when(held, number).otherwise(named.cast(spark_type(type_)))


def _decode_timestamp(trimmed: SparkColumn, type_: ScalarType) -> SparkColumn:
    # The seconds without their fraction go through Spark; the fraction is rounded, which Spark would cut off.
    whole = F.regexp_extract(trimmed, rf"^({_DATE}([ T][0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}})?)?)", 1)
    fraction = F.regexp_extract(trimmed, r":[0-9]{2}(\.[0-9]+)", 1)
    micros = F.round(F.concat(F.lit("0"), F.substring(fraction, 1, 20)).try_cast("decimal(38,20)"), 6)
    seconds = F.coalesce(micros, F.lit(0).cast("decimal(38,20)")).cast("decimal(18,6)")
    local = F.when(trimmed.rlike(_TIMESTAMP), whole.try_cast("timestamp_ntz"))
    value = local + F.make_dt_interval(secs=seconds)
    if type_.kind is Kind.TIMESTAMPTZ:
        zone = F.regexp_extract(trimmed, r":[0-9]{2}(\.[0-9]*)?" + _ZONE + r"\z", 3)
        sign = F.when(zone.startswith("-"), F.lit(-1)).otherwise(F.lit(1))
        hours = _digits(zone, r"^[+-]([0-9]{1,2})")
        minutes = _digits(zone, r"^[+-][0-9]{1,2}:?([0-9]{2})\z")
        offset = F.when((hours < 16) & (minutes < 60), F.make_dt_interval(hours=sign * hours, mins=sign * minutes))
        value = (value - offset).cast("timestamp")
    return _in_range(value)


def _infinite(trimmed: SparkColumn, kind: Kind) -> SparkColumn:
    """Returns the infinite date or timestamp that a text names."""
    numbers = (F.when(F.lower(trimmed) == str(one), one.stored(kind)) for one in (INFINITY, NEGATIVE_INFINITY))
    number = F.coalesce(*numbers)
    if kind is Kind.DATE:
        return F.date_from_unix_date(number)
    moment = F.timestamp_micros(number)
    return moment if kind is Kind.TIMESTAMPTZ else moment.cast("timestamp_ntz")


def _digits(text: SparkColumn, pattern: str) -> SparkColumn:
    return F.coalesce(F.regexp_extract(text, pattern, 1).try_cast("int"), F.lit(0))


def _in_range(value: SparkColumn) -> SparkColumn:
    """Returns `value` of the years 1 to 9999: Spark would read a year 0, and carry a fraction into the year 10000."""
    return F.when(F.year(value).between(1, 9999), value)
