"""Calls whose last argument is `VARIADIC array`: of functions that take any number of arguments.

Each is another function of the array as a whole, so how many elements it has need not be known when it is bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import CastContext, Failure, cast, resolve_function
from mz_dagster.functions.arrays.dimensioned import elements_of
from mz_dagster.functions.jsonb.as_json import SPACED, as_json
from mz_dagster.functions.jsonb.as_jsonb import as_jsonb
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, JSON, JSONB, TEXT, Kind, array_of
from mz_dagster.sql.binding import argument_type
from mz_dagster.sql.errors import DatatypeMismatch, InvalidParameterValue, UnsupportedForm, error_of
from mz_dagster.sql.expression_binder import ExpressionBinder

#: How many arguments stand before it.
_BEFORE = {
    "concat": 0, "json_build_array": 0, "jsonb_build_array": 0, "json_build_object": 0, "jsonb_build_object": 0,
    "num_nulls": 0, "num_nonnulls": 0, "concat_ws": 1, "format": 1,
}  # fmt: skip
#: Functions of a document and the steps of a path, by the operator of a whole path.
_PATHS = {
    "json_extract_path": (JSON, "#>"),
    "json_extract_path_text": (JSON, "#>>"),
    "jsonb_extract_path": (JSONB, "#>"),
    "jsonb_extract_path_text": (JSONB, "#>>"),
}


def is_variadic(nodes: Sequence[exp.Expr]) -> bool:
    """Returns whether one of the arguments is marked so."""
    return any(isinstance(one, exp.Variadic) for one in nodes)


def bind_variadic(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns the call of a function whose last argument is an array of arguments.

    Raises:
        UnsupportedForm: The function takes no such argument here.
        DatatypeMismatch: The argument is no array.
    """
    *before, last = nodes
    wanted = 1 if name in _PATHS else _BEFORE.get(name)
    if not isinstance(last, exp.Variadic) or wanted != len(before):
        known = ", ".join((*_BEFORE, *_PATHS))
        raise UnsupportedForm(
            f"VARIADIC in {name}() is not supported",
            detail="How many arguments a function has must be known when it is bound.",
            hint=f"Write them one by one; {known} take VARIADIC, as the argument behind their own.",
            position=position,
        )
    array = binder.bind(last.this)
    if isinstance(array, Scalar) and array.type.kind is Kind.DIMENSIONED:
        array = elements_of(array)
    type_ = argument_type(array)
    array_position = binder.body.position(last.this)
    if not isinstance(array, Scalar) or array.type.kind is not Kind.ARRAY:
        raise DatatypeMismatch("VARIADIC argument must be an array", position=array_position)
    match name:
        case "json_build_array" | "jsonb_build_array":
            found = as_jsonb(array) if name == "jsonb_build_array" else as_json(array, SPACED)
            if isinstance(found, Failure):
                raise error_of(found, array_position)
            return found
        case "json_build_object" | "jsonb_build_object":
            return _object(name, array, array_position)
        case _ if name in _PATHS:
            document_type, symbol = _PATHS[name]
            document = binder.as_type(binder.bind(before[0]), document_type, before[0], f"argument 1 of {name}()")
            return binder.operator(symbol, [document, array], position)
        case "format":
            return _format(binder, before[0], array, array_position)
        case "num_nulls" | "num_nonnulls":
            return _counted(binder, name, array, position)
        case _:
            separator = Literal("", TEXT) if name == "concat" else binder.bind(before[0])
            types = [type_, argument_type(separator)]
            return binder.applied(resolve_function("array_to_string", types), [array, separator], position)


def _counted(binder: ExpressionBinder, name: str, array: Scalar, position: int) -> Scalar:
    """Returns how many elements of an array are NULL, or are not; NULL of no array."""

    def called(function: str, *arguments: Scalar) -> Scalar:
        types = [one.type for one in arguments]
        return binder.applied(resolve_function(function, types), arguments, position)

    assert array.type.element is not None
    known = called("cardinality", called("array_remove", array, Literal(None, array.type.element)))
    return known if name == "num_nonnulls" else binder.operator("-", [called("cardinality", array), known], position)


def _object(name: str, array: Scalar, position: int) -> Scalar:
    element = array.type.element
    if element is not None and element.kind in (Kind.JSON, Kind.JSONB, Kind.RECORD):
        raise InvalidParameterValue("key value must be scalar, not array, composite, or json", position=position)
    found = as_json(array)
    if isinstance(found, Failure):
        raise error_of(found, position)
    is_jsonb = name == "jsonb_build_object"
    no_key = Literal("argument {}: key must not be null" if is_jsonb else "argument {} cannot be null", TEXT)
    made = Call("json_build_object_list", (found, no_key), JSON, found.nullable)
    return Call("cast_json_to_jsonb", (made,), JSONB, made.nullable) if is_jsonb else made


def _format(binder: ExpressionBinder, template_node: exp.Expr, array: Scalar, position: int) -> Scalar:
    template = binder.as_type(binder.bind(template_node), TEXT, template_node)
    element = array.type.element
    found = cast(array.type, array_of(TEXT), CastContext.EXPLICIT)
    if isinstance(found, Failure) or element is None or element.kind in (Kind.BOOL, Kind.CHAR):
        raise UnsupportedForm(
            "VARIADIC in format() is not supported for arrays of this type",
            hint="Cast the elements to text.",
            position=position,
        )
    texts = found.apply(array)
    if texts.nullable:  # NULL is no arguments
        texts = If(Call("is_null", (texts,), BOOL, False), Literal((), texts.type), texts)
    return Call("format_text", (template, texts), TEXT, template.nullable)
