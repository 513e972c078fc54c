"""The casts, each with the context in which it applies by itself.

Owns PostgreSQL's matrix of casts between the kinds we have. A cast that we cannot compute exactly as PostgreSQL 15
does is not in it.

A numeric has a scale that is fixed when bound, or none: an unconstrained one is a kind of its own, to which the others
are cast by themselves. With a scale, a value that does not fit `numeric(38, s)` is `22003 numeric field overflow`, as
for PostgreSQL's `numeric(38, s)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum

from mz_dagster.functions.arrays import dimensioned as arrays
from mz_dagster.functions.arrays.arrays import has_dimensions
from mz_dagster.functions.arrays.limits import not_a_list
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.literals import literal_scale, numeric_type_of
from mz_dagster.functions.signature import ArgumentType, Cast, Unknown, kind_name, type_name
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import TEXT, UNCONSTRAINED, Kind, ScalarType, array_of, dimensioned


class CastContext(IntEnum):
    """Says where a cast applies; a later one includes those before it."""

    IMPLICIT = 0
    ASSIGNMENT = 1
    EXPLICIT = 2


_I, _A, _E = CastContext.IMPLICIT, CastContext.ASSIGNMENT, CastContext.EXPLICIT
_K = Kind

#: (from, to) -> (context, fallible).
CASTS: dict[tuple[Kind, Kind], tuple[CastContext, bool]] = {
    (_K.INT2, _K.INT4): (_I, False),
    (_K.INT2, _K.INT8): (_I, False),
    (_K.INT2, _K.FLOAT4): (_I, False),
    (_K.INT2, _K.FLOAT8): (_I, False),
    (_K.INT2, _K.NUMERIC): (_I, True),
    (_K.INT4, _K.INT2): (_A, True),
    (_K.INT4, _K.INT8): (_I, False),
    (_K.INT4, _K.FLOAT4): (_I, False),
    (_K.INT4, _K.FLOAT8): (_I, False),
    (_K.INT4, _K.NUMERIC): (_I, True),
    (_K.INT4, _K.BOOL): (_E, False),
    (_K.INT8, _K.INT2): (_A, True),
    (_K.INT8, _K.INT4): (_A, True),
    (_K.INT8, _K.FLOAT4): (_I, False),
    (_K.INT8, _K.FLOAT8): (_I, False),
    (_K.INT8, _K.NUMERIC): (_I, True),
    (_K.FLOAT4, _K.INT2): (_A, True),
    (_K.FLOAT4, _K.INT4): (_A, True),
    (_K.FLOAT4, _K.INT8): (_A, True),
    (_K.FLOAT4, _K.FLOAT8): (_I, False),
    (_K.FLOAT4, _K.NUMERIC): (_A, True),
    (_K.FLOAT4, _K.TEXT): (_A, False),
    (_K.FLOAT8, _K.NUMERIC): (_A, True),
    (_K.FLOAT8, _K.INT2): (_A, True),
    (_K.FLOAT8, _K.INT4): (_A, True),
    (_K.FLOAT8, _K.INT8): (_A, True),
    (_K.FLOAT8, _K.FLOAT4): (_A, True),
    (_K.NUMERIC, _K.INT2): (_A, True),
    (_K.NUMERIC, _K.INT4): (_A, True),
    (_K.NUMERIC, _K.INT8): (_A, True),
    (_K.NUMERIC, _K.FLOAT4): (_I, False),
    (_K.NUMERIC, _K.FLOAT8): (_I, False),
    (_K.NUMERIC, _K.NUMERIC): (_I, True),
    (_K.INT2, _K.UNCONSTRAINED): (_I, False),
    (_K.INT4, _K.UNCONSTRAINED): (_I, False),
    (_K.INT8, _K.UNCONSTRAINED): (_I, False),
    (_K.NUMERIC, _K.UNCONSTRAINED): (_I, False),
    (_K.FLOAT4, _K.UNCONSTRAINED): (_A, False),
    (_K.FLOAT8, _K.UNCONSTRAINED): (_A, False),
    (_K.TEXT, _K.UNCONSTRAINED): (_E, True),
    (_K.UNCONSTRAINED, _K.NUMERIC): (_A, True),
    (_K.UNCONSTRAINED, _K.INT2): (_A, True),
    (_K.UNCONSTRAINED, _K.INT4): (_A, True),
    (_K.UNCONSTRAINED, _K.INT8): (_A, True),
    (_K.UNCONSTRAINED, _K.FLOAT4): (_I, True),
    (_K.UNCONSTRAINED, _K.FLOAT8): (_I, True),
    (_K.UNCONSTRAINED, _K.TEXT): (_A, False),
    (_K.BOOL, _K.INT4): (_E, False),
    (_K.DATE, _K.TIMESTAMP): (_I, False),
    (_K.DATE, _K.TIMESTAMPTZ): (_I, False),
    (_K.TIMESTAMP, _K.DATE): (_A, False),
    (_K.TIMESTAMP, _K.TIMESTAMPTZ): (_I, False),
    (_K.TIMESTAMPTZ, _K.DATE): (_A, False),
    (_K.TIMESTAMPTZ, _K.TIMESTAMP): (_A, False),
    (_K.BOOL, _K.TEXT): (_A, False),
    (_K.INT2, _K.TEXT): (_A, False),
    (_K.INT4, _K.TEXT): (_A, False),
    (_K.INT8, _K.TEXT): (_A, False),
    (_K.NUMERIC, _K.TEXT): (_A, False),
    (_K.FLOAT8, _K.TEXT): (_A, False),
    (_K.DATE, _K.TEXT): (_A, False),
    (_K.TIMESTAMP, _K.TEXT): (_A, False),
    (_K.TIMESTAMPTZ, _K.TEXT): (_A, False),
    (_K.MZ_TIMESTAMP, _K.TEXT): (_A, False),
    (_K.TEXT, _K.BOOL): (_E, True),
    (_K.TEXT, _K.INT2): (_E, True),
    (_K.TEXT, _K.INT4): (_E, True),
    (_K.TEXT, _K.INT8): (_E, True),
    (_K.TEXT, _K.FLOAT4): (_E, True),
    (_K.TEXT, _K.FLOAT8): (_E, True),
    (_K.TEXT, _K.NUMERIC): (_E, True),
    (_K.TEXT, _K.DATE): (_E, True),
    (_K.TEXT, _K.TIMESTAMP): (_E, True),
    (_K.TEXT, _K.TIMESTAMPTZ): (_E, True),
    (_K.TEXT, _K.MZ_TIMESTAMP): (_A, True),
    (_K.TIME, _K.INTERVAL): (_I, False),
    (_K.INTERVAL, _K.TIME): (_A, False),
    (_K.TIMESTAMP, _K.TIME): (_A, False),
    (_K.TIMESTAMPTZ, _K.TIME): (_A, False),
    (_K.TIME, _K.TEXT): (_A, False),
    (_K.TIME, _K.TIMETZ): (_I, False),
    (_K.TIMETZ, _K.TIME): (_A, False),
    (_K.TIMESTAMPTZ, _K.TIMETZ): (_A, False),
    (_K.TIMETZ, _K.TEXT): (_A, False),
    (_K.TEXT, _K.TIMETZ): (_E, True),
    (_K.INTERVAL, _K.TEXT): (_A, False),
    (_K.TEXT, _K.TIME): (_E, True),
    (_K.TEXT, _K.INTERVAL): (_E, True),
    # What a string longer than its type becomes is decided by the context: see `_to_length`.
    (_K.TEXT, _K.VARCHAR): (_I, False),
    (_K.TEXT, _K.CHAR): (_I, False),
    (_K.VARCHAR, _K.TEXT): (_I, False),
    (_K.VARCHAR, _K.VARCHAR): (_I, False),
    (_K.VARCHAR, _K.CHAR): (_I, False),
    (_K.CHAR, _K.TEXT): (_I, False),
    (_K.CHAR, _K.VARCHAR): (_I, False),
    (_K.CHAR, _K.CHAR): (_I, False),
    (_K.TEXT, _K.UUID): (_E, True),
    (_K.UUID, _K.TEXT): (_A, False),
    (_K.TEXT, _K.BYTEA): (_E, True),
    (_K.BYTEA, _K.TEXT): (_A, False),
    (_K.TEXT, _K.JSON): (_E, True),
    (_K.JSON, _K.TEXT): (_A, False),
    (_K.JSON, _K.JSONB): (_A, True),
    (_K.JSONB, _K.JSON): (_A, False),
    (_K.TEXT, _K.JSONB): (_E, True),
    (_K.JSONB, _K.TEXT): (_A, False),
    (_K.JSONB, _K.BOOL): (_E, True),
    (_K.JSONB, _K.INT2): (_E, True),
    (_K.JSONB, _K.INT4): (_E, True),
    (_K.JSONB, _K.INT8): (_E, True),
    # mz_timestamp is Materialize's: other kinds become one by themselves, so that `mz_now()` compares with them.
    (_K.INT4, _K.MZ_TIMESTAMP): (_I, True),
    (_K.INT8, _K.MZ_TIMESTAMP): (_I, True),
    (_K.NUMERIC, _K.MZ_TIMESTAMP): (_I, True),
    (_K.UNCONSTRAINED, _K.MZ_TIMESTAMP): (_I, True),
    (_K.DATE, _K.MZ_TIMESTAMP): (_I, True),
    (_K.TIMESTAMP, _K.MZ_TIMESTAMP): (_I, True),
    (_K.TIMESTAMPTZ, _K.MZ_TIMESTAMP): (_I, True),
    (_K.MZ_TIMESTAMP, _K.TIMESTAMP): (_A, True),
    (_K.MZ_TIMESTAMP, _K.TIMESTAMPTZ): (_A, True),
}

_NAMES = {
    Kind.BOOL: "bool",
    Kind.INT2: "int2",
    Kind.INT4: "int4",
    Kind.INT8: "int8",
    Kind.FLOAT4: "float4",
    Kind.FLOAT8: "float8",
    Kind.NUMERIC: "numeric",
    Kind.UNCONSTRAINED: "unconstrained",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.MZ_TIMESTAMP: "mz_timestamp",
    Kind.TIME: "time",
    Kind.TIMETZ: "timetz",
    Kind.INTERVAL: "interval",
    Kind.UUID: "uuid",
    Kind.BYTEA: "bytea",
    Kind.JSON: "json",
    Kind.JSONB: "jsonb",
    Kind.VARCHAR: "varchar",
    Kind.CHAR: "bpchar",
    Kind.ARRAY: "array",
    Kind.RECORD: "record",
    Kind.DIMENSIONED: "dimensioned",
    Kind.ENUM: "enum",
}


def short_name(kind: Kind) -> str:
    """Returns the kind's part of an implementation's name, `int4` for example."""
    return _NAMES[kind]


#: The decimal digits that the integers need.
_INTEGER_DIGITS = {Kind.INT2: 5, Kind.INT4: 10, Kind.INT8: 19}


def cast(source: ScalarType, target: ScalarType, context: CastContext = CastContext.EXPLICIT) -> Cast | Failure:
    """Returns the cast from `source` to `target`, if it applies in `context`.

    A cast between equal types has an empty `function` and does nothing, but for what the target's modifier makes of
    values; one that applies by itself leaves them as they are.

    Example:
        >>> from mz_dagster.scalars.types import INT4, INT8
        >>> cast(INT4, INT8, CastContext.IMPLICIT).function
        'cast_int4_to_int8'
        >>> str(cast(INT8, INT4, CastContext.IMPLICIT))
        '42846 cannot cast type bigint to integer'
    """
    found = _unmodified(source, target if target.array_element is None else target.unmodified, context)
    if isinstance(found, Failure) or target.value_modifier is None or context is CastContext.IMPLICIT:
        return found
    return replace(found, target=target, fallible=True, modifies=True)


def _unmodified(source: ScalarType, target: ScalarType, context: CastContext) -> Cast | Failure:
    if source == target:
        return Cast("", source, target, False)
    if source.kind is Kind.JSONB and target.kind in _OF_JSON_NUMBERS and context is CastContext.EXPLICIT:
        name = "numeric" if target.kind is Kind.UNCONSTRAINED else _NAMES[target.kind]
        number = Cast(f"jsonb_number_{name}", source, TEXT, True)
        return Cast(f"cast_text_to_{_NAMES[target.kind]}", source, target, True, number)
    if Kind.DIMENSIONED in (source.kind, target.kind):
        return _of_dimensions(source, target, context)
    if Kind.ARRAY in (source.kind, target.kind) or Kind.RECORD in (source.kind, target.kind):
        return _composite(source, target, context)
    pair = (source.kind, target.kind)
    if pair == (Kind.ENUM, Kind.TEXT) and context is not CastContext.IMPLICIT:
        assert source.enumeration is not None
        return Cast("renamed_label_of_enum" if source.enumeration.renamed else "label_of_enum", source, target, False)
    if pair == (Kind.TEXT, Kind.ENUM) and context is CastContext.EXPLICIT:
        assert target.enumeration is not None
        return Cast("enum_of_renamed_label" if target.enumeration.renamed else "enum_of_label", source, target, True)
    if pair not in CASTS and not {source.kind, target.kind}.isdisjoint(_LIMITED):
        return _through_text(source, target, context)
    known = CASTS.get(pair)
    if known is None or known[0] > context:
        return _no_cast(source, target)
    if target.kind in _LIMITED:
        return _to_length(source, target, context)
    fallible = known[1]
    if target.kind is Kind.NUMERIC:
        if source.kind in _INTEGER_DIGITS:
            fallible = target.scale > 38 - _INTEGER_DIGITS[source.kind]
        elif source.kind is Kind.NUMERIC:
            # A smaller scale can overflow too: 38 nines, rounded up.
            fallible = True
    return Cast(f"cast_{_NAMES[source.kind]}_to_{_NAMES[target.kind]}", source, target, fallible)


#: What a number of jsonb is read as by its text.
_OF_JSON_NUMBERS = frozenset({Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.UNCONSTRAINED})


def _composite(source: ScalarType, target: ScalarType, context: CastContext) -> Cast | Failure:
    """Returns the cast of an array or record: element by element, or by way of the text that it is shown as."""
    if source.element is not None and target.element is not None:
        one = cast(source.element, target.element, context)
        if isinstance(one, Failure):
            return one if one.sqlstate == "0A000" else _no_cast(source, target)
        # What is assigned may be too long.
        name = "assign_elements" if one.function.startswith("assign_") else "cast_elements"
        return Cast(name if one.function else "", source, target, one.fallible)
    texts = array_of(TEXT)
    if target == TEXT and context is not CastContext.IMPLICIT:
        for part in source.parts:
            shown = cast(part, TEXT)
            if isinstance(shown, Failure):
                return shown
        shape = "array" if source.element is not None else "record"
        parts = Cast(f"{shape}_output", source, texts, False)
        return Cast(f"{shape}_text", source, target, False, parts)
    if source == TEXT and target.element is not None and context is CastContext.EXPLICIT:
        read = Cast("array_elements_of_text", source, texts, True)
        if target == texts:
            return read
        return Cast("cast_elements", source, target, True, read)
    return _no_cast(source, target)


def element_context(function: str) -> CastContext:
    """Returns the context in which a function that casts elements casts them."""
    return CastContext.ASSIGNMENT if function == "assign_elements" else CastContext.EXPLICIT


def _of_dimensions(source: ScalarType, target: ScalarType, context: CastContext) -> Cast | Failure:
    """Returns the cast of arrays of any dimensions: one of lists changes the type alone, one to lists may fail."""
    texts = dimensioned(TEXT)
    if target == TEXT and context is not CastContext.IMPLICIT:
        element = source.array_element
        shown = _no_cast(source, target) if element is None else cast(element, TEXT)
        if isinstance(shown, Failure):
            return shown
        return Cast("dimensioned_text", source, target, False, compose=arrays.text_of)
    if source == TEXT and context is CastContext.EXPLICIT:
        assert target.array_element is not None
        read = Cast("dimensioned_of_text", source, texts, True)
        each = cast(texts, target)
        if isinstance(each, Failure):
            return each
        return Cast("dimensioned_of_text", source, target, True, compose=lambda text: each.apply(read.apply(text)))
    if source.array_element is None or target.array_element is None:
        return _no_cast(source, target)
    if target.kind is Kind.ARRAY and context is CastContext.IMPLICIT:
        return _no_cast(source, target)
    one = cast(array_of(source.array_element), array_of(target.array_element), context)
    if isinstance(one, Failure):
        return one if one.sqlstate == "0A000" else _no_cast(source, target)

    def compose(value: Scalar) -> Scalar:
        assert isinstance(one, Cast)
        if source.kind is Kind.ARRAY:
            return arrays.of_list(one.apply(value))
        if target.kind is Kind.ARRAY:
            return one.apply(arrays.as_list(value, f"0A000 {not_a_list(type_name(target))}"))
        return arrays.with_elements(value, one.apply(arrays.elements_of(value)))

    return Cast("cast_dimensioned", source, target, one.fallible or target.kind is Kind.ARRAY, compose=compose)


#: The strings that know how long they may be.
_LIMITED = frozenset({Kind.VARCHAR, Kind.CHAR})


def _to_length(source: ScalarType, target: ScalarType, context: CastContext) -> Cast:
    """Returns the cast of a string: one written in the query cuts off what is too long, any other refuses it."""
    if source.kind is Kind.CHAR and not target.length:
        return Cast("", source, target, False)
    fits = not target.length or 0 < source.length <= target.length
    fallible = context is not CastContext.EXPLICIT and not fits
    prefix = "assign" if fallible else "cast"
    return Cast(f"{prefix}_{_NAMES[source.kind]}_to_{_NAMES[target.kind]}", source, target, fallible)


def _through_text(source: ScalarType, target: ScalarType, context: CastContext) -> Cast | Failure:
    """Returns the cast between a string with a length and another kind: by the text that PostgreSQL shows."""
    if source.kind is Kind.CHAR:
        shown: Cast | Failure = Cast("output_bpchar", source, TEXT, False)
    else:
        shown = cast(source, TEXT, context)
    read = cast(TEXT, target, context)
    for one in (shown, read):
        if isinstance(one, Failure):
            return one if one.sqlstate == "0A000" else _no_cast(source, target)
    assert isinstance(shown, Cast)
    assert isinstance(read, Cast)
    first = None if source.kind is Kind.VARCHAR else shown
    return Cast(read.function, source, target, shown.fallible or read.fallible, first)


def _no_cast(source: ScalarType, target: ScalarType) -> Failure:
    return Failure("42846", f"cannot cast type {type_name(source)} to {type_name(target)}")


def implicitly_castable(source: Kind, target: Kind) -> bool:
    """Returns whether PostgreSQL would cast by itself while it resolves a call; refused casts count as there."""
    if source is target:
        return True
    known = CASTS.get((source, target))
    return known is not None and known[0] is CastContext.IMPLICIT


#: PostgreSQL's type categories, and the preferred kind of each.
CATEGORY: dict[Kind, str] = {
    Kind.BOOL: "B",
    Kind.INT2: "N",
    Kind.INT4: "N",
    Kind.INT8: "N",
    Kind.FLOAT4: "N",
    Kind.FLOAT8: "N",
    Kind.NUMERIC: "N",
    Kind.UNCONSTRAINED: "N",
    Kind.TEXT: "S",
    Kind.VARCHAR: "S",
    Kind.CHAR: "S",
    Kind.UUID: "U",
    Kind.BYTEA: "U",
    Kind.JSON: "U",
    Kind.JSONB: "U",
    Kind.DATE: "D",
    Kind.TIMESTAMP: "D",
    Kind.TIMESTAMPTZ: "D",
    Kind.TIME: "D",
    Kind.TIMETZ: "D",
    Kind.INTERVAL: "T",
    Kind.MZ_TIMESTAMP: "U",
    Kind.ARRAY: "A",
    Kind.DIMENSIONED: "A",
    Kind.ENUM: "E",
}
PREFERRED: frozenset[Kind] = frozenset({Kind.BOOL, Kind.FLOAT8, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL})


def common_type(types: Sequence[ArgumentType], context: str = "CASE") -> ScalarType | Failure:
    """Returns the one type for the branches of CASE, the columns of UNION or VALUES, IN, coalesce and greatest.

    PostgreSQL's rule: undecided literals follow the others, and are text if there are no others; a type of another
    category is an error; otherwise the candidate gives way to a later type to which it casts by itself, unless
    it is its category's preferred one. Numerics meet at the greatest scale, if they have one.

    Args:
        types: At least one.
        context: For the message: `CASE`, `UNION`, `VALUES`, `COALESCE`, `GREATEST`, `LEAST`, `IN`.

    Example:
        >>> from mz_dagster.functions.signature import (UNKNOWN)
        >>> from mz_dagster.scalars.types import INT4, numeric
        >>> str(common_type([INT4, numeric(2), UNKNOWN]))
        'numeric(38,2)'
    """
    decided = [one for one in types if not isinstance(one, Unknown)]
    if not decided:
        return TEXT
    if decided[0].label and all(one.label == decided[0].label for one in decided):
        return decided[0]
    if any(one.kind is Kind.DIMENSIONED for one in decided) or (
        decided[0].element is not None
        and any(isinstance(one, Unknown) and one.text is not None and has_dimensions(one.text) for one in types)
    ):
        lists = [one if one.array_element is None else array_of(one.array_element) for one in decided]
        found = common_type(lists, context)
        return found if isinstance(found, Failure) or found.element is None else dimensioned(found.element)
    if any(one.kind in (Kind.ARRAY, Kind.RECORD) for one in decided):
        return _common_composite(decided, context)
    kind = decided[0].kind
    for one in decided[1:]:
        if one.kind is kind:
            continue
        if CATEGORY[one.kind] != CATEGORY[kind]:
            first = next(type_ for type_ in decided if type_.kind is kind)
            return Failure("42804", f"{context} types {type_name(first)} and {type_name(one)} cannot be matched")
        if kind not in PREFERRED and implicitly_castable(kind, one.kind) and not implicitly_castable(one.kind, kind):
            kind = one.kind
    for one in decided:
        if not implicitly_castable(one.kind, kind):
            return Failure("42846", f"{context} could not convert type {type_name(one)} to {kind_name(kind)}")
    if kind is Kind.ENUM:
        other = next((one for one in decided if one != decided[0]), decided[0])
        if other != decided[0]:
            message = f"{context} could not convert type {type_name(other)} to {type_name(decided[0])}"
            return Failure("42846", message)
        return other
    if kind in _LIMITED:
        return _common_string(kind, types, decided, context)
    if kind is not Kind.NUMERIC:
        return ScalarType(kind)
    quoted = (one.text for one in types if isinstance(one, Unknown) and one.text is not None)
    if any(numeric_type_of(text) == UNCONSTRAINED for text in quoted):
        return UNCONSTRAINED
    return ScalarType(kind, max(numeric_scale(one) for one in types))


def _common_composite(decided: Sequence[ScalarType], context: str) -> ScalarType | Failure:
    """Returns the type of arrays of one type, or of records; numerics of different scales are one type."""
    first = decided[0]
    other = next((one for one in decided if one != first), None)
    if other is None:
        return first
    kinds = {one.element.kind if one.element is not None else None for one in decided}
    if kinds == {Kind.NUMERIC, Kind.UNCONSTRAINED}:
        return array_of(UNCONSTRAINED)
    if kinds == {Kind.NUMERIC}:
        scale = max(one.element.scale for one in decided if one.element is not None)
        return array_of(ScalarType(Kind.NUMERIC, scale))
    if first.kind is other.kind is Kind.ARRAY:
        return Failure("42846", f"{context} could not convert type {type_name(other)} to {type_name(first)}")
    return Failure("42804", f"{context} types {type_name(first)} and {type_name(other)} cannot be matched")


def _common_string(
    kind: Kind, types: Sequence[ArgumentType], decided: Sequence[ScalarType], context: str
) -> ScalarType | Failure:
    """Returns the type of strings of one length, and else text; blanks at the end of a `char(n)` must not get lost."""
    one = decided[0]
    texts = [type_.text for type_ in types if isinstance(type_, Unknown) and type_.text is not None]
    if kind is Kind.VARCHAR:
        return one if all(type_ == one for type_ in types) else TEXT
    if all(type_ == one for type_ in decided) and all(len(text) == one.length for text in texts):
        return one
    return Failure(
        "0A000",
        f"{context} of character types of different lengths is not supported",
        f"In PostgreSQL each value keeps blanks of its own at the end. Cast to text, or to {one}.",
    )


def numeric_scale(type_: ArgumentType) -> int:
    """Returns the scale that a value of the type has as a numeric: its own, 0 for integers, the literal's digits."""
    if isinstance(type_, ScalarType):
        return type_.scale
    return 0 if type_.text is None else literal_scale(type_.text)
