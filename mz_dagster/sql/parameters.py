"""What a parameter's Python value is in SQL: the literal that stands in the place of its `?`.

| Python | SQL |
|---|---|
| `None`, `str` | an open literal, whose type its context decides, as that of NULL and of a quoted text |
| `bool`, `int`, `float`, `Decimal` | boolean; integer, bigint or numeric, as it needs; double precision; numeric |
| `date`, `time`, `datetime` | date, time; timestamp, or timestamptz if it has a zone |
| `INFINITY`, `NEGATIVE_INFINITY` | an open literal, `'infinity'` or `'-infinity'` |
| `timedelta`, `Interval` | interval; a `timedelta` is days and microseconds |
| `bytes`, `UUID` | bytea, uuid |
| `dict` | jsonb |
| `list` | an array of what its elements have in common; an open literal if it is empty or of None alone; lists in \
lists of one length are one of several dimensions |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from mz_dagster.functions import UNKNOWN, Failure, Unknown, common_type, literal_of, numeric_literal
from mz_dagster.functions.arrays.arrays import dimensioned_text
from mz_dagster.functions.literals import numeric_type_of
from mz_dagster.functions.numbers import unconstrained_functions
from mz_dagster.functions.numbers.numerics import EXACT
from mz_dagster.scalars.infinity import Infinity
from mz_dagster.scalars.scalar import Literal, Value
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNCONSTRAINED,
    ScalarType,
    array_of,
    dimensioned,
)
from mz_dagster.scalars.types import UUID as UUID_TYPE
from mz_dagster.scalars.values import Dimensioned, Interval, NestedList, ZonedTime
from mz_dagster.sql.errors import InvalidParameterValue, UnsupportedForm, error_of
from mz_dagster.sql.lexer import check_characters


def literal_of_value(value: object, position: int) -> Literal | Unknown:
    """Returns the literal that a Python value is.

    Raises:
        UnsupportedForm: No SQL type holds it.
        BadCharacter: It has a character that no text holds.
    """
    match value:
        case None:
            return UNKNOWN
        case Unknown() | Literal():
            return value
        case bool():
            return Literal(value, BOOL)
        case int():
            return _integer(value, position)
        case float():
            return Literal(value, FLOAT8)
        case Decimal():
            return _numeric(value, position)
        case str():
            check_characters(value, position)
            return Unknown(value)
        case Infinity():
            return Unknown(str(value))
        case datetime():
            if value.tzinfo is None:
                return Literal(value, TIMESTAMP)
            return Literal(value.astimezone(UTC), TIMESTAMPTZ)
        case date():
            return Literal(value, DATE)
        case time() if value.tzinfo is None:
            return Literal(value, TIME)
        case time() if value.utcoffset() is not None:
            return Literal(ZonedTime.of_time(value), TIMETZ)
        case ZonedTime():
            return Literal(value, TIMETZ)
        case timedelta():
            return Literal(Interval(0, value.days, value.seconds * 1_000_000 + value.microseconds), INTERVAL)
        case Interval():
            return Literal(value, INTERVAL)
        case bytes() | bytearray() | memoryview():
            return Literal(bytes(value), BYTEA)
        case UUID():
            return Literal(value, UUID_TYPE)
        case dict():
            return _jsonb(value, position)
        case list():
            return _array(value, position)
        case _:
            raise UnsupportedForm(
                f"a parameter of Python type {type(value).__name__} is not supported",
                hint="Use None, bool, int, float, Decimal, str, bytes, date, time, datetime, timedelta, UUID, dict or "
                "list.",
                position=position,
            )


def negated_literal(literal: Literal) -> Literal:
    """Returns the number with its sign turned, typed as PostgreSQL types `-2147483648`: by the signed value."""
    value = literal.value
    if literal.type == UNCONSTRAINED:
        return Literal(unconstrained_functions.negate(str(value)), literal.type)
    assert isinstance(value, int | Decimal)
    if isinstance(value, int):
        return Literal(-value, INT4 if -value >= -(2**31) else INT8)
    # Of numbers without a point or an exponent this is the one that is no integer, while its negative is.
    if value == 2**63 and literal.type.scale == 0:
        return Literal(-int(value), INT8)
    # Python's own minus rounds to as many digits as the caller's context has.
    return Literal(EXACT.minus(value), literal.type)


def _integer(value: int, position: int) -> Literal:
    found = numeric_literal(str(abs(value)))
    if isinstance(found, Failure):
        raise error_of(found, position)
    return negated_literal(found) if value < 0 else found


def _numeric(value: Decimal, position: int) -> Literal:
    text = str(value)
    found = literal_of(text, numeric_type_of(text))
    if isinstance(found, Failure):
        raise error_of(found, position)
    return found


def _jsonb(value: dict[object, object], position: int) -> Literal:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidParameterValue(
            f"a parameter is not JSON: {error}", hint="Give a dict of JSON's own types, or its text.", position=position
        ) from error
    check_characters(text, position)
    return _as(text, JSONB, position)


def _array(values: Sequence[object], position: int) -> Literal | Unknown:
    if isinstance(values, NestedList) or any(isinstance(one, list) for one in values):
        return _nested(values, position)
    cells = [literal_of_value(one, position) for one in values]
    if all(isinstance(one, Unknown) and one.text is None for one in cells):
        return Unknown("{" + ",".join("NULL" for _ in cells) + "}")
    element = common_type([one if isinstance(one, Unknown) else one.type for one in cells], "ARRAY")
    if isinstance(element, Failure):
        raise error_of(element, position)
    elements = (one.text if isinstance(one, Unknown) else one.value for one in cells)
    return Literal(tuple(_element(one, element, position) for one in elements), array_of(element))


def _nested(values: Sequence[object], position: int) -> Literal | Unknown:
    """Returns the array that lists in lists are, which are equally long at each depth."""
    elements, lengths = list(values), [len(values)]
    while any(isinstance(one, list) for one in elements):
        rows = [one for one in elements if isinstance(one, list)]
        if len(rows) < len(elements) or any(len(one) != len(rows[0]) for one in rows):
            raise InvalidParameterValue(
                "multidimensional arrays must have array expressions with matching dimensions",
                hint="Give lists of one length within a list.",
                position=position,
            )
        elements = [cell for row in rows for cell in row]
        lengths.append(len(rows[0]))
    lowers = values.array.lowers if isinstance(values, NestedList) else [1] * len(lengths)
    found = _array(elements, position)
    if isinstance(found, Unknown):
        texts: list[str | None] = [None] * len(elements)
        return Unknown(dimensioned_text(texts, lengths, lowers) if elements else "{}")
    assert found.type.element is not None
    assert isinstance(found.value, tuple)
    shape = (tuple(lengths), tuple(lowers)) if elements else ((), ())
    return Literal(Dimensioned(found.value, *shape), dimensioned(found.type.element))


def _element(value: Value, type_: ScalarType, position: int) -> Value:
    """Returns an element's value in the type of all: text is read, and numbers of several types become those of one."""
    if isinstance(value, str | int | Decimal) and not isinstance(value, bool):
        return _as(str(value), type_, position, "The elements of an array are of one type.").value
    return value


def _as(text: str, type_: ScalarType, position: int, hint: str | None = None) -> Literal:
    found = literal_of(text, type_)
    if isinstance(found, Failure):
        raise error_of(found, position, hint=hint)
    return found
