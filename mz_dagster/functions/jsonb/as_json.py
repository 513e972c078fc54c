"""What a value of any type becomes as a part of a json: PostgreSQL's `to_json`.

As `to_jsonb`, but a json and a jsonb keep their text, and a number the digits that it is shown with.
"""

from __future__ import annotations

from mz_dagster.functions.arrays.dimensioned import elements_of, lengths_of
from mz_dagster.functions.casts import cast
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.jsonb.as_jsonb import NUMBERS, as_jsonb, with_null
from mz_dagster.functions.jsonb.json_text import UNSEEN
from mz_dagster.functions.signature import type_name
from mz_dagster.scalars.record import field
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, JSON, JSONB, TEXT, Kind, array_of

#: What stands between the members of a record or an array.
COMMA, LINES, SPACED = ",", ",\n ", ", "
_SHOWN_NUMBERS = (Kind.FLOAT4, Kind.FLOAT8, Kind.UNCONSTRAINED)


def as_json(value: Scalar, separator: str = COMMA) -> Scalar | Failure:
    """Returns `value` as a json; NULL stays NULL.

    Args:
        value: Of any type.
        separator: What stands between its members, if it is an array or a record; within these it is a comma.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import FLOAT8
        >>> as_json(ColumnRef(0, FLOAT8)).function
        'to_json_number'
    """
    kind = value.type.kind
    if kind is Kind.JSON:
        return value
    if kind is Kind.ARRAY:
        return _of_array(value, separator)
    if kind is Kind.DIMENSIONED:
        flat = _of_array(elements_of(value), UNSEEN)
        if isinstance(flat, Failure):
            return flat
        return Call("json_nested", (flat, lengths_of(value), Literal(separator, TEXT)), JSON, value.nullable)
    if kind is Kind.RECORD:
        return _of_record(value, separator)
    if kind in _SHOWN_NUMBERS:
        text = cast(value.type, TEXT)
        return text if isinstance(text, Failure) else _call("to_json_number", text.apply(value))
    found = as_jsonb(value)
    return found if isinstance(found, Failure) else _call("cast_jsonb_to_json", found)


def as_json_or_null(value: Scalar) -> Scalar | Failure:
    """Returns `value` as a member of an array or object, in which NULL is null."""
    return with_null(as_json(value), Literal("null", JSON))


def _call(function: str, value: Scalar, *others: Scalar) -> Scalar:
    if isinstance(value, Literal) and value.value is None:
        return Literal(None, JSON)
    return Call(function, (value, *others), JSON, value.nullable)


def _of_array(value: Scalar, separator: str) -> Scalar | Failure:
    element = value.type.element
    assert element is not None
    texts = cast(value.type, array_of(TEXT))
    if isinstance(texts, Failure) or element.kind in (Kind.CHAR, Kind.RECORD):
        return Failure("0A000", f"to_json({type_name(value.type)}) is not supported", "Cast its elements to text.")
    if element in (JSON, JSONB):
        function = "json_of_list"
    elif element.kind in (*NUMBERS, Kind.UNCONSTRAINED):
        function = "json_of_numbers"
    elif element.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        function = "json_of_timestamps"
    else:
        function = "json_of_texts"
    return _call(function, texts.apply(value), Literal(separator, TEXT))


def _of_record(value: Scalar, separator: str) -> Scalar | Failure:
    parts: list[Scalar] = [Literal(separator, TEXT)]
    for number, (name, _) in enumerate(value.type.fields):
        member = as_json_or_null(field(value, number))
        if isinstance(member, Failure):
            return member
        parts += [Literal(name, TEXT), member]
    found = Call("json_of_fields", tuple(parts), JSON, False)
    return If(Call("is_null", (value,), BOOL, False), Literal(None, JSON), found) if value.nullable else found
