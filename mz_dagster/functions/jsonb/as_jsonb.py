"""What a value of any type becomes as a part of a jsonb: PostgreSQL's `to_jsonb`.

Numbers and booleans stay what they are, dates and timestamps become strings in ISO 8601's form, a jsonb is itself, and
what has no form of its own becomes a string of its text.
"""

from __future__ import annotations

from mz_dagster.functions.arrays.dimensioned import elements_of, lengths_of
from mz_dagster.functions.casts import cast, short_name
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.session_zone import zoned
from mz_dagster.functions.signature import type_name
from mz_dagster.scalars.record import field
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, JSONB, TEXT, Kind, array_of

#: The text of null.
NULL = "null"
#: Kinds with a form of their own.
_DIRECT = frozenset((
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT8, Kind.NUMERIC, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ, Kind.UNCONSTRAINED,
))  # fmt: skip
#: Kinds whose values are numbers, or booleans, by their text.
NUMBERS = frozenset((
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC,
))  # fmt: skip


def as_jsonb(value: Scalar) -> Scalar | Failure:
    """Returns `value` as a jsonb; NULL stays NULL.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import DATE
        >>> as_jsonb(ColumnRef(0, DATE)).function
        'to_jsonb_date'
    """
    kind = value.type.kind
    if kind is Kind.JSONB:
        return value
    if kind is Kind.JSON:
        return _call("cast_json_to_jsonb", value)
    if kind in _DIRECT:
        return _call(f"to_jsonb_{short_name(kind)}", value)
    if kind is Kind.ARRAY:
        return _of_array(value)
    if kind is Kind.DIMENSIONED:
        return _of_dimensions(value)
    if kind is Kind.RECORD:
        return _of_record(value)
    text = _text(value)
    if isinstance(text, Failure):
        return text
    return _call("to_jsonb_number" if kind is Kind.FLOAT4 else "to_jsonb_text", text)


def as_jsonb_or_null(value: Scalar) -> Scalar | Failure:
    """Returns `value` as a member of an array or object, in which NULL is null."""
    return with_null(as_jsonb(value), Literal(NULL, JSONB))


def with_null(document: Scalar | Failure, null: Literal) -> Scalar | Failure:
    """Returns a json or jsonb with the document `null` of its type in the place of NULL."""
    if isinstance(document, Failure) or not document.nullable:
        return document
    return null if isinstance(document, Literal) else Call("coalesce", (document, null), null.type, False)


def as_key(value: Scalar, missing: str) -> Scalar | Failure:
    """Returns `value` as the key of an object: a text; NULL is the error `missing`, a SQLSTATE with its message."""
    kind = value.type.kind
    if kind in (Kind.JSON, Kind.JSONB, Kind.ARRAY, Kind.DIMENSIONED, Kind.RECORD):
        return Failure("22023", "key value must be scalar, not array, composite, or json")
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        quoted = _call(f"to_jsonb_{short_name(kind)}", value)
        text: Scalar | Failure = Call("btrim_text_text", (quoted, Literal('"', TEXT)), TEXT, value.nullable)
    else:
        text = _text(value)
    if isinstance(text, Failure) or not text.nullable:
        return text
    present = Call("is_not_null", (text,), BOOL, False)
    return If(present, text, Call("error", (Literal(missing, TEXT),), TEXT))


def _call(function: str, value: Scalar) -> Scalar:
    if isinstance(value, Literal) and value.value is None:
        return Literal(None, JSONB)
    return zoned(Call(function, (value,), JSONB, value.nullable))


def _text(value: Scalar) -> Scalar | Failure:
    if value.type.kind is Kind.CHAR:
        return Call("output_bpchar", (value,), TEXT, value.nullable)
    found = cast(value.type, TEXT)
    return found if isinstance(found, Failure) else found.apply(value)


def _of_array(value: Scalar) -> Scalar | Failure:
    element = value.type.element
    assert element is not None
    if element.kind in (Kind.JSON, Kind.JSONB):
        jsonbs = cast(value.type, array_of(JSONB))
        assert not isinstance(jsonbs, Failure)
        return _call("to_jsonb_array_jsonb", jsonbs.apply(value))
    texts = cast(value.type, array_of(TEXT))
    if isinstance(texts, Failure) or element.kind in (Kind.CHAR, Kind.RECORD):
        return Failure("0A000", f"to_jsonb({type_name(value.type)}) is not supported", "Cast its elements to text.")
    if element.kind in NUMBERS or element.kind is Kind.UNCONSTRAINED:
        function = "to_jsonb_array_number"
    elif element.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        function = "to_jsonb_array_timestamp"
    else:
        function = "to_jsonb_array_text"
    return _call(function, texts.apply(value))


def _of_dimensions(value: Scalar) -> Scalar | Failure:
    flat = _of_array(elements_of(value))
    if isinstance(flat, Failure):
        return flat
    return Call("jsonb_nested", (flat, lengths_of(value)), JSONB, value.nullable)


def _of_record(value: Scalar) -> Scalar | Failure:
    parts: list[Scalar] = []
    for number, (name, _) in enumerate(value.type.fields):
        member = as_jsonb_or_null(field(value, number))
        if isinstance(member, Failure):
            return member
        parts += [Literal(name, TEXT), member]
    found = Call("jsonb_build_object", tuple(parts), JSONB, False)
    return If(Call("is_null", (value,), BOOL, False), Literal(None, JSONB), found) if value.nullable else found
