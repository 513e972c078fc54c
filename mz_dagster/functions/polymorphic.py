"""Resolution of functions over arrays of any element type.

Owns PostgreSQL's pseudo-types: in a signature `ARRAY` is an array and `ELEMENT` a value of one common element type, to
which all arguments are cast (`anycompatiblearray` and `anycompatible`). The operators between two arrays take one type
(`anyarray`), numerics of different scales aside, which are one type in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mz_dagster.functions.arrays.arrays import has_dimensions
from mz_dagster.functions.arrays.dimensioned import COMPOSED
from mz_dagster.functions.casts import CastContext, cast, common_type
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import AnyType, Function, Pseudo
from mz_dagster.functions.references import OF_ANY
from mz_dagster.functions.signature import ArgumentType, Cast, Resolved, Unknown, type_name
from mz_dagster.scalars.types import INT4, TEXT, Kind, ScalarType, array_of, dimensioned

_A, _E = Pseudo.ARRAY, Pseudo.ELEMENT
#: SQL name -> (implementation, arguments, result), in the order in which they are tried.
POLYMORPHIC: Mapping[str, tuple[tuple[str, tuple[AnyType, ...], AnyType], ...]] = {
    name: tuple(sorted(several, key=lambda one: len(one[1]))) for name, several in OF_ANY.items()
}
#: Those of arrays of any dimensions that differ in more than that.
_OF_DIMENSIONS: dict[str, tuple[tuple[str, tuple[AnyType, ...], AnyType], ...]] = {
    "array_fill": (
        ("dimensioned_fill", (_E, dimensioned(INT4)), _A),
        ("dimensioned_fill_from", (_E, dimensioned(INT4), dimensioned(INT4)), _A),
    ),
}
#: What compares elements: it takes arrays of one type, and of types that compare as they are stored.
_EXACT = frozenset(("=", "<>", "<", "<=", ">", ">=", "@>", "<@", "&&"))
_COMPARING = _EXACT | {"array_position", "array_positions", "array_remove", "array_replace", "width_bucket"}
#: Kinds whose equal values may be stored differently, or in another order than they compare.
_INCOMPARABLE = (Kind.INTERVAL, Kind.JSON, Kind.JSONB, Kind.UNCONSTRAINED, Kind.RECORD)


def has_order(type_: ScalarType) -> bool:
    """Returns whether values of an array or record type have an exact order here; others have the one of their kind."""
    element = type_.array_element
    return type_.kind is not Kind.RECORD and (element is None or element.kind not in _INCOMPARABLE)


def resolve_polymorphic(
    sql_name: str, arguments: Sequence[ArgumentType], functions: dict[str, Function]
) -> Resolved | Failure | None:
    """Returns what a call means if it is one of these functions over an array; None if it is not.

    Example:
        >>> from mz_dagster.functions.table import FUNCTIONS
        >>> from mz_dagster.scalars.types import INT8
        >>> str(resolve_polymorphic("||", [array_of(INT4), INT8], FUNCTIONS).result_type)
        'bigint[]'
    """
    if sql_name not in POLYMORPHIC:
        return None
    decided = [one for one in arguments if isinstance(one, ScalarType)]
    # An operator between an undecided literal and an element is not one of arrays.
    arrays = [one for one in decided if one.array_element is not None]
    if not arrays and not sql_name[0].isalpha():
        return None
    known = POLYMORPHIC[sql_name]
    if any(one.kind is Kind.DIMENSIONED for one in arrays):
        known = _OF_DIMENSIONS.get(sql_name, known)
    for implementation, signature, result in known:
        if len(signature) == len(arguments) and all(map(_fits, arguments, signature)):
            return _resolved(sql_name, functions[implementation], arguments, signature, result)
    return None


def _fits(argument: ArgumentType, wanted: AnyType) -> bool:
    if isinstance(argument, Unknown):
        return True
    if isinstance(wanted, Pseudo):
        return (argument.array_element is not None) is (wanted is _A)
    return not isinstance(cast(argument, wanted, CastContext.IMPLICIT), Failure)


def _has_dimensions(argument: ArgumentType, wanted: AnyType) -> bool:
    """Returns whether an argument is an array of any dimensions, or a quoted one of several."""
    if isinstance(argument, Unknown):
        return wanted is _A and argument.text is not None and has_dimensions(argument.text)
    return argument.kind is Kind.DIMENSIONED


def _resolved(
    sql_name: str,
    function: Function,
    arguments: Sequence[ArgumentType],
    signature: Sequence[AnyType],
    result: AnyType,
) -> Resolved | Failure | None:
    dimensions = any(map(_has_dimensions, arguments, signature))
    elements: list[ArgumentType] = []
    for argument, wanted in zip(arguments, signature, strict=True):
        if wanted is _A and isinstance(argument, ScalarType) and argument.array_element is not None:
            elements.append(argument.array_element)
        elif wanted is _E:
            elements.append(argument)
    if all(isinstance(one, Unknown) for one in elements):
        return Failure("42804", "could not determine polymorphic type because input has type unknown")
    kinds = {one.kind for one in elements if isinstance(one, ScalarType)}
    if sql_name in _EXACT and len(kinds) > 1 and kinds != {Kind.NUMERIC, Kind.UNCONSTRAINED}:
        return None
    element = common_type(elements, "ARRAY")
    if isinstance(element, Failure):
        return None
    if sql_name in _COMPARING and element.kind in (Kind.JSON, Kind.RECORD):
        return Failure("0A000", f"comparing elements of type {type_name(element)} is not supported")
    types = {_A: dimensioned(element) if dimensions else array_of(element), _E: element}
    targets = [types[one] if isinstance(one, Pseudo) else one for one in signature]
    casts: list[Cast | None] = []
    for argument, target in zip(arguments, targets, strict=True):
        found = None if isinstance(argument, Unknown) else cast(argument, target, CastContext.IMPLICIT)
        if isinstance(found, Failure):
            return None
        casts.append(found if found is not None and found.function else None)
    result_type = types[result] if isinstance(result, Pseudo) else result
    if dimensions:
        compose = COMPOSED.get(function.name)
        return None if compose is None else Resolved(function, tuple(targets), result_type, tuple(casts), compose)
    if function.name == "array_to_string" and element != TEXT:
        shown = cast(array_of(element), TEXT)
        if isinstance(shown, Failure):
            return shown
        targets[0] = array_of(TEXT)
        casts[0] = Cast("array_output", array_of(element), targets[0], False)
    return Resolved(function, tuple(targets), result_type, tuple(casts))
