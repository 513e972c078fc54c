"""PostgreSQL's object ids of types, and cells as its protocol writes and reads them: as text and in binary.

Sources: `pg_type.dat` for the ids, the `send` and `recv` functions of PostgreSQL's types for the binary forms.
A type that PostgreSQL does not know is sent as one that it does: `mz_timestamp` as bigint.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import prod
from typing import Any
from uuid import UUID as Uuid

from mz_dagster.adapter.system_catalogs.facts import type_modifier
from mz_dagster.functions.arrays.arrays import has_dimensions
from mz_dagster.functions.arrays.dimensions import check_shape, from_one
from mz_dagster.functions.arrays.limits import MOST_DIMENSIONS
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY, Infinity
from mz_dagster.scalars.parameter_types import OF_PARAMETERS
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.type_ids import LABEL_IDS, TYPE_IDS, ids_of, type_id
from mz_dagster.scalars.types import (
    TEXT,
    Kind,
    ScalarType,
    array_of,
    dimensioned,
)
from mz_dagster.scalars.values import Dimensioned, Interval, ZonedTime, dimensioned_of
from mz_dagster.sql.errors import InvalidParameterValue, UnsupportedForm

#: Object ids that say nothing: none, and that of `unknown`.
UNTYPED = frozenset((0, 705))

#: Of strings of any length, whose arrays are of texts.
_STRINGS = frozenset((1042, 1043))
#: Object ids that leave the type to the context.
_OPEN = UNTYPED | _STRINGS

_EPOCH_DATE = date(2000, 1, 1)
_EPOCH = datetime(2000, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class WireType:
    """What `RowDescription` says of a column's type.

    Attributes:
        id: The type's object id.
        size: How many bytes a cell has in binary; -1 if they vary.
        modifier: The type's modifier; -1 if there is none.
    """

    id: int
    size: int
    modifier: int


def wire_type(type_: ScalarType) -> WireType:
    """Returns what the protocol says of a type.

    Example:
        >>> from mz_dagster.scalars.types import INT4, array_of, numeric
        >>> wire_type(array_of(INT4)).id, wire_type(numeric(2)).modifier
        (1007, 2490374)
    """
    size = ids_of(type_).size if type_.array_element is None else -1
    return WireType(type_id(type_), size, type_modifier(type_))


def parameter_type(id: int) -> ScalarType | None:
    """Returns the type of an object id that a client gives a parameter; None if its context is to decide.

    Raises:
        UnsupportedForm: No type has it.
    """
    if id in _OPEN:
        return None
    for one in (*TYPE_IDS.values(), *LABEL_IDS.values()):
        if id == one.array and (one.id in OF_PARAMETERS or one.id in _STRINGS):
            return array_of(OF_PARAMETERS.get(one.id, TEXT))
    if id not in OF_PARAMETERS:
        raise UnsupportedForm(
            f"a parameter of the type with the object id {id} is not supported", hint="Send it as text."
        )
    return OF_PARAMETERS[id]


# ---- as text


def unsized(type_: ScalarType) -> ScalarType:
    """Returns a type without its length or scale, as clients send its values: nothing is cut."""
    return parameter_type(wire_type(type_).id) or TEXT


def is_enumerated(type_: ScalarType) -> bool:
    """Returns whether a type is an enumeration or an array of one."""
    return (type_.array_element or type_).enumeration is not None


def spelled_type(text: str, type_: ScalarType) -> ScalarType:
    """Returns the type of a parameter that is sent as a text: an array's object id says nothing of its dimensions."""
    return type_ if type_.element is None or not has_dimensions(text) else dimensioned(type_.element)


# ---- in binary


def binary_of(value: Any, type_: ScalarType) -> bytes:
    """Returns a cell that is not NULL as PostgreSQL's `send` functions write it."""
    if type_.label and type_.kind is Kind.INT8:
        return struct.pack("!I", value)
    match type_.kind:
        case Kind.BOOL:
            return b"\x01" if value else b"\x00"
        case Kind.INT2:
            return struct.pack("!h", value)
        case Kind.INT4:
            return struct.pack("!i", value)
        case Kind.INT8 | Kind.MZ_TIMESTAMP:
            return struct.pack("!q", value)
        case Kind.FLOAT4:
            return struct.pack("!f", value)
        case Kind.FLOAT8:
            return struct.pack("!d", value)
        case Kind.NUMERIC | Kind.UNCONSTRAINED:
            return _numeric_binary(Decimal(value), type_)
        case Kind.BYTEA:
            return bytes(value)
        case Kind.DATE:
            return struct.pack("!i", _limit(value, 32) if isinstance(value, Infinity) else (value - _EPOCH_DATE).days)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            if isinstance(value, Infinity):
                return struct.pack("!q", _limit(value, 64))
            naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return struct.pack("!q", (naive - _EPOCH) // _MICROSECOND)
        case Kind.TIME:
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return struct.pack("!q", seconds * 1_000_000 + value.microsecond)
        case Kind.TIMETZ:
            found = value if isinstance(value, ZonedTime) else ZonedTime.of_time(value)
            return struct.pack("!qi", found.clock, -found.offset)
        case Kind.INTERVAL:
            return struct.pack("!qii", value[2], value[1], value[0])
        case Kind.UUID:
            return bytes(value.bytes)
        case Kind.JSONB:
            return b"\x01" + str(value).encode()
        case Kind.CHAR:
            return str(value).ljust(type_.length).encode()
        case Kind.ARRAY:
            return _array_binary(Dimensioned(*from_one(value)), type_.parts[0])
        case Kind.DIMENSIONED:
            return _array_binary(dimensioned_of(value), type_.parts[0].parts[0])
        case Kind.RECORD:
            cells = [struct.pack("!i", len(type_.parts))]
            for one, part in zip(value, type_.parts, strict=True):
                cells.append(struct.pack("!I", wire_type(part).id) + _sized(one, part))
            return b"".join(cells)
        case _:
            return str(value).encode()


def _limit(value: Infinity, bits: int) -> int:
    return (1 << bits - 1) - 1 if value == INFINITY else -(1 << bits - 1)


def _sized(value: Any, type_: ScalarType) -> bytes:
    if value is None:
        return struct.pack("!i", -1)
    found = binary_of(value, type_)
    return struct.pack("!i", len(found)) + found


def _array_binary(array: Dimensioned, element: ScalarType) -> bytes:
    has_null = any(one is None for one in array.elements)
    head = struct.pack("!iiI", len(array.lengths), has_null, wire_type(element).id)
    bounds = [struct.pack("!ii", *one) for one in zip(array.lengths, array.lowers, strict=True)]
    return b"".join((head, *bounds, *(_sized(one, element) for one in array.elements)))


def _numeric_binary(value: Decimal, type_: ScalarType) -> bytes:
    """Returns a numeric in digits to the base 10,000: how many, the first's weight, sign, digits after the point."""
    if not value.is_finite():
        sign = 0xC000 if value.is_nan() else 0xF000 if value.is_signed() else 0xD000
        return struct.pack("!hhHh", 0, 0, sign, 0)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "it is finite"
    scale = max(0, -exponent)
    number = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole, fraction = (number[:-scale], number[-scale:].rjust(scale, "0")) if scale else (number, "")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    padded = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int(whole[i : i + 4]) for i in range(0, len(whole), 4)]
    weight = len(groups) - 1
    groups += [int(padded[i : i + 4]) for i in range(0, len(padded), 4)]
    while groups and not groups[0]:
        groups, weight = groups[1:], weight - 1
    while groups and not groups[-1]:
        groups.pop()
    weight = weight if groups else 0
    return struct.pack(f"!hhHh{len(groups)}H", len(groups), weight, 0x4000 if sign else 0, scale, *groups)


# ---- parameters


def parameter_of(data: bytes, type_: ScalarType, *, binary: bool) -> object:
    """Returns the value of a parameter: a literal of its type, or a text that is read as one.

    Raises:
        InvalidParameterValue: It is none of its type.
    """
    if not binary or type_ == TEXT:  # which is the same; of an enumeration the context tells what it is
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InvalidParameterValue(f"a parameter is no UTF-8: {error}") from error
    if type_.element is not None:
        found = _array_of(data, type_.element)
        if len(found.lengths) < 2 and all(lower == 1 for lower in found.lowers):
            return Literal(tuple(found.elements), type_)
        return Literal(found, dimensioned(type_.element))
    reader = _unpacked("!I") if type_.label and type_.kind is Kind.INT8 else _READERS.get(type_.kind)
    if reader is None:
        raise UnsupportedForm(f"a parameter of type {type_} in binary is not supported", hint="Send it as text.")
    try:
        value = reader(data)
    except (struct.error, UnicodeDecodeError, ValueError, OverflowError, IndexError) as error:
        raise InvalidParameterValue(f"incorrect binary data format of a parameter of type {type_}: {error}") from error
    return value if type_.kind in (Kind.UNCONSTRAINED, Kind.JSON, Kind.JSONB) else Literal(value, type_)


def _array_of(data: bytes, element: ScalarType) -> Dimensioned:
    try:
        dimensions, _, id = struct.unpack_from("!iiI", data)
        if dimensions == 0:
            return Dimensioned()
        if not 0 < dimensions <= MOST_DIMENSIONS:
            raise InvalidParameterValue(f"an array has no {dimensions} dimensions")
        if parameter_type(id) not in (element, None):
            raise InvalidParameterValue(f"the elements of an array are not of type {element}")
        bounds = [struct.unpack_from("!ii", data, 12 + 8 * one) for one in range(dimensions)]
        lengths, lowers = [length for length, _ in bounds], [lower for _, lower in bounds]
        check_shape(lengths, lowers)
        count = prod(lengths)
        if count > len(data):
            raise InvalidParameterValue("an array has fewer elements than it says")
        at = 12 + 8 * dimensions
        found: list[Any] = []
        for _ in range(count):
            (size,) = struct.unpack_from("!i", data, at)
            at += 4
            if size < 0:
                found.append(None)
                continue
            value = parameter_of(data[at : at + size], element, binary=True)
            found.append(value.value if isinstance(value, Literal) else value)
            at += size
        return Dimensioned(tuple(found), tuple(lengths), tuple(lowers)) if found else Dimensioned()
    except (struct.error, SqlFailure) as error:
        raise InvalidParameterValue(f"incorrect binary data format of an array: {error}") from error


def _unpacked(form: str) -> Callable[[bytes], Any]:
    return lambda data: struct.unpack(form, data)[0]


def _date(data: bytes) -> date | Infinity:
    (days,) = struct.unpack("!i", data)
    if abs(days) >= 2**31 - 1:
        return INFINITY if days > 0 else NEGATIVE_INFINITY
    return _EPOCH_DATE + timedelta(days)


def _moment(zoned: bool) -> Callable[[bytes], datetime | Infinity]:
    def read(data: bytes) -> datetime | Infinity:
        (microseconds,) = struct.unpack("!q", data)
        if abs(microseconds) >= 2**63 - 1:
            return INFINITY if microseconds > 0 else NEGATIVE_INFINITY
        found = _EPOCH + timedelta(microseconds=microseconds)
        return found.replace(tzinfo=UTC) if zoned else found

    return read


def _time(data: bytes) -> time:
    (microseconds,) = struct.unpack("!q", data)
    return (_EPOCH + timedelta(microseconds=microseconds)).time()


def _timetz(data: bytes) -> ZonedTime:
    clock, west = struct.unpack("!qi", data)
    return ZonedTime(clock, -west)


def _interval(data: bytes) -> Interval:
    microseconds, days, months = struct.unpack("!qii", data)
    return Interval(months, days, microseconds)


def _numeric(data: bytes) -> str:
    count, weight, sign, scale = struct.unpack_from("!hhHh", data)
    if sign in (0xC000, 0xD000, 0xF000):
        return {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign]
    digits = "".join(f"{one:04d}" for one in struct.unpack_from(f"!{count}H", data, 8)) or "0"
    # No arithmetic of decimals, which would round to the context's precision.
    value = Decimal((1 if sign else 0, tuple(map(int, digits)), 4 * (weight + 1 - count)))
    return f"{value:.{max(0, scale)}f}"


def _jsonb(data: bytes) -> str:
    if data[0] != 1:
        raise ValueError(f"version {data[0]} of jsonb is not known")
    return data[1:].decode()


_READERS: Mapping[Kind, Callable[[bytes], Any]] = {
    Kind.BOOL: lambda data: data != b"\x00",
    Kind.INT2: _unpacked("!h"),
    Kind.INT4: _unpacked("!i"),
    Kind.INT8: _unpacked("!q"),
    Kind.FLOAT4: _unpacked("!f"),
    Kind.FLOAT8: _unpacked("!d"),
    Kind.UNCONSTRAINED: _numeric,
    Kind.BYTEA: bytes,
    Kind.TEXT: bytes.decode,
    Kind.JSON: bytes.decode,
    Kind.JSONB: _jsonb,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMETZ: _timetz,
    Kind.TIMESTAMP: _moment(zoned=False),
    Kind.TIMESTAMPTZ: _moment(zoned=True),
    Kind.INTERVAL: _interval,
    Kind.UUID: lambda data: Uuid(bytes=data),
}
