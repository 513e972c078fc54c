"""The casts, each with the context in which it applies by itself.

Owns PostgreSQL's matrix of casts between the kinds we have. A cast that we cannot compute exactly as PostgreSQL 15
does is not in it: a `real` to text (Java 17's digits are not the shortest), a floating-point number to numeric (C's
`%.15g` rounds the exact binary value; Spark has no access to it).

Numeric: the target's scale is fixed when bound. A value that does not fit `numeric(38, s)` is `22003 numeric field
overflow`, as for PostgreSQL's `numeric(38, s)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from mz_dagster.plan.functions.signature import ArgumentType, Cast, Failure, Unknown, type_name
from mz_dagster.plan.types import TEXT, Kind, ScalarType


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
    # mz_timestamp is Materialize's: other kinds become one by themselves, so that `mz_now()` compares with them.
    (_K.INT4, _K.MZ_TIMESTAMP): (_I, True),
    (_K.INT8, _K.MZ_TIMESTAMP): (_I, True),
    (_K.NUMERIC, _K.MZ_TIMESTAMP): (_I, True),
    (_K.DATE, _K.MZ_TIMESTAMP): (_I, True),
    (_K.TIMESTAMP, _K.MZ_TIMESTAMP): (_I, True),
    (_K.TIMESTAMPTZ, _K.MZ_TIMESTAMP): (_I, True),
    (_K.MZ_TIMESTAMP, _K.TIMESTAMP): (_A, True),
    (_K.MZ_TIMESTAMP, _K.TIMESTAMPTZ): (_A, True),
}

#: PostgreSQL has these; we refuse them, with the reason.
REFUSED_CASTS: dict[tuple[Kind, Kind], str] = {
    (_K.FLOAT4, _K.TEXT): "the shortest digits of a floating-point number cannot be computed exactly here",
    (_K.FLOAT4, _K.NUMERIC): "the decimal digits of a floating-point number cannot be computed exactly here",
    (_K.FLOAT8, _K.NUMERIC): "the decimal digits of a floating-point number cannot be computed exactly here",
}

_NAMES = {
    Kind.BOOL: "bool",
    Kind.INT2: "int2",
    Kind.INT4: "int4",
    Kind.INT8: "int8",
    Kind.FLOAT4: "float4",
    Kind.FLOAT8: "float8",
    Kind.NUMERIC: "numeric",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.MZ_TIMESTAMP: "mz_timestamp",
    Kind.TIME: "time",
    Kind.INTERVAL: "interval",
    Kind.UUID: "uuid",
    Kind.BYTEA: "bytea",
    Kind.JSONB: "jsonb",
    Kind.VARCHAR: "varchar",
    Kind.CHAR: "bpchar",
    Kind.ARRAY: "array",
    Kind.RECORD: "record",
}


def short_name(kind: Kind) -> str:
    """Returns the kind's part of an implementation's name, `int4` for example."""
    return _NAMES[kind]


#: The decimal digits that the integers need.
_INTEGER_DIGITS = {Kind.INT2: 5, Kind.INT4: 10, Kind.INT8: 19}


def cast(source: ScalarType, target: ScalarType, context: CastContext = CastContext.EXPLICIT) -> Cast | Failure:
    """Returns the cast from `source` to `target`, if it applies in `context`.

    A cast between equal types has an empty `function` and does nothing.

    Example:
        >>> from mz_dagster.plan.types import INT4, INT8
        >>> cast(INT4, INT8, CastContext.IMPLICIT).function
        'cast_int4_to_int8'
        >>> str(cast(INT8, INT4, CastContext.IMPLICIT))
        '42846 cannot cast type bigint to integer'
    """
    if source == target:
        return Cast("", source, target, False)
    pair = (source.kind, target.kind)
    if pair in REFUSED_CASTS:
        return Failure(
            "0A000",
            f"casting type {type_name(source)} to {type_name(target)} is not supported",
            f"What would be computed differs from PostgreSQL: {REFUSED_CASTS[pair]}.",
        )
    known = CASTS.get(pair)
    if known is None or known[0] > context:
        return Failure("42846", f"cannot cast type {type_name(source)} to {type_name(target)}")
    fallible = known[1]
    if target.kind is Kind.NUMERIC:
        if source.kind in _INTEGER_DIGITS:
            fallible = target.scale > 38 - _INTEGER_DIGITS[source.kind]
        elif source.kind is Kind.NUMERIC:
            # A smaller scale can overflow too: 38 nines, rounded up.
            fallible = True
    return Cast(f"cast_{_NAMES[source.kind]}_to_{_NAMES[target.kind]}", source, target, fallible)


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
    Kind.TEXT: "S",
    Kind.DATE: "D",
    Kind.TIMESTAMP: "D",
    Kind.TIMESTAMPTZ: "D",
    Kind.MZ_TIMESTAMP: "U",
    Kind.ARRAY: "A",
}
PREFERRED: frozenset[Kind] = frozenset({Kind.BOOL, Kind.FLOAT8, Kind.TEXT, Kind.TIMESTAMPTZ})


def common_type(types: Sequence[ArgumentType], context: str = "CASE") -> ScalarType | Failure:
    """Returns the one type for the branches of CASE, the columns of UNION or VALUES, IN, coalesce and greatest.

    PostgreSQL's rule: undecided literals follow the others, and are text if there are no others; a type of another
    category is an error; otherwise the candidate gives way to a later type to which it casts by itself, unless
    it is its category's preferred one. Numerics meet at the greatest scale.

    Args:
        types: At least one.
        context: For the message: `CASE`, `UNION`, `VALUES`, `COALESCE`, `GREATEST`, `LEAST`, `IN`.

    Example:
        >>> from mz_dagster.plan.functions.signature import UNKNOWN
        >>> from mz_dagster.plan.types import INT4, numeric
        >>> str(common_type([INT4, numeric(2), UNKNOWN]))
        'numeric(38,2)'
    """
    decided = [one for one in types if not isinstance(one, Unknown)]
    if not decided:
        return TEXT
    if any(one.kind is Kind.ARRAY for one in decided):
        other = next((one for one in decided if one != decided[0]), None)
        if other is None:
            return decided[0]
        if all(one.kind is Kind.ARRAY for one in (decided[0], other)):
            return Failure("42846", f"{context} could not convert type {type_name(other)} to {type_name(decided[0])}")
        return Failure("42804", f"{context} types {type_name(decided[0])} and {type_name(other)} cannot be matched")
    kind = decided[0].kind
    for one in decided[1:]:
        if one.kind is kind:
            continue
        if CATEGORY[one.kind] != CATEGORY[kind]:
            return Failure(
                "42804", f"{context} types {type_name(ScalarType(kind))} and {type_name(one)} cannot be matched"
            )
        if kind not in PREFERRED and implicitly_castable(kind, one.kind) and not implicitly_castable(one.kind, kind):
            kind = one.kind
    for one in decided:
        if not implicitly_castable(one.kind, kind):
            return Failure(
                "42846", f"{context} could not convert type {type_name(one)} to {type_name(ScalarType(kind))}"
            )
    if kind is not Kind.NUMERIC:
        return ScalarType(kind)
    return ScalarType(kind, max(numeric_scale(one) for one in types))


def numeric_scale(type_: ArgumentType) -> int:
    """Returns the scale that a value of the type has as a numeric: its own, 0 for integers, the literal's digits."""
    if isinstance(type_, ScalarType):
        return type_.scale
    return 0 if type_.text is None else literal_scale(type_.text)


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
