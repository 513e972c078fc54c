"""Binds the functions of jsonb and json that take arguments of any type, or any number of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import Failure, Unknown, cast, type_name
from mz_dagster.functions.jsonb.as_json import COMMA, LINES, as_json, as_json_or_null
from mz_dagster.functions.jsonb.as_jsonb import as_jsonb, as_jsonb_or_null, as_key
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import BOOL, JSON, JSONB, TEXT, Kind, ScalarType
from mz_dagster.sql.binding import argument_type
from mz_dagster.sql.errors import DatatypeMismatch, InvalidParameterValue, UndefinedFunction, UnsupportedForm, error_of
from mz_dagster.sql.expression_binder import ExpressionBinder

#: SQL name -> implementation, argument and result.
#: The types of keys.
_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
_PATHS = {
    "json_extract_path": ("extract_path_json", JSON, JSON),
    "json_extract_path_text": ("extract_path_text_json", JSON, TEXT),
    "jsonb_extract_path": ("extract_path_jsonb", JSONB, JSONB),
    "jsonb_extract_path_text": ("extract_path_text_jsonb", JSONB, TEXT),
}
JSONB_CALLS = frozenset((
    "to_json", "row_to_json", "array_to_json", "json_build_array", "json_build_object",
    "to_jsonb", "jsonb_build_array", "jsonb_build_object", *_PATHS,
))  # fmt: skip


def bind_jsonb_call(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns the call of one of `JSONB_CALLS`."""
    type_ = JSONB if "jsonb" in name else JSON
    match name:
        case "to_json" | "to_jsonb":
            return _of_any(binder, name, nodes, position)
        case "row_to_json" | "array_to_json":
            return _of_composite(binder, name, nodes, position)
        case "json_build_array" | "jsonb_build_array":
            elements = [_member(binder, type_, one) for one in nodes]
            return Call(name, tuple(elements), type_, False) if elements else Literal("[]", type_)
        case "json_build_object" | "jsonb_build_object":
            return _object(binder, name, nodes, position)
        case _:
            return _path(binder, name, nodes, position)


def _member(binder: ExpressionBinder, type_: ScalarType, node: exp.Expr) -> Scalar:
    """Returns `node` as a member of an array or object."""
    found = (as_jsonb_or_null if type_ == JSONB else as_json_or_null)(binder.typed(node))
    if isinstance(found, Failure):
        raise error_of(found, binder.body.position(node))
    return found


def _of_any(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    if len(nodes) != 1:
        raise UndefinedFunction(f"function {name}() of {len(nodes)} arguments does not exist", position=position)
    bound = binder.bind(nodes[0])
    if isinstance(bound, Unknown):
        raise DatatypeMismatch(
            "could not determine polymorphic type because input has type unknown",
            hint="Cast the literal, to text or jsonb for example.",
            position=position,
        )
    found = as_jsonb(bound) if name == "to_jsonb" else as_json(bound)
    if isinstance(found, Failure):
        raise error_of(found, position)
    return found


def _of_composite(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns `row_to_json(record)` or `array_to_json(array)`; a second argument says whether it has several lines."""
    kinds = (Kind.RECORD,) if name == "row_to_json" else (Kind.ARRAY, Kind.DIMENSIONED)
    bounds = [binder.bind(one) for one in nodes]
    if not 1 <= len(bounds) <= 2 or isinstance(bounds[0], Unknown) or bounds[0].type.kind not in kinds:
        shown = ", ".join(type_name(argument_type(one)) for one in bounds)
        raise UndefinedFunction(f"function {name}({shown}) does not exist", position=position)
    separator = COMMA
    if len(bounds) == 2:
        pretty = binder.as_type(bounds[1], BOOL, nodes[1], f"argument 2 of {name}()")
        if not isinstance(pretty, Literal) or pretty.value is None:
            raise UnsupportedForm(
                f"a second argument of {name}() that is no constant is not supported",
                hint="Write true or false.",
                position=position,
            )
        separator = LINES if pretty.value else COMMA
    found = as_json(bounds[0], separator)
    if isinstance(found, Failure):
        raise error_of(found, position)
    return found


def _object(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    type_ = JSONB if name == "jsonb_build_object" else JSON
    if len(nodes) % 2:
        raise InvalidParameterValue(
            "argument list must have even number of elements",
            hint=f"The arguments of {name}() must consist of alternating keys and values.",
            position=position,
        )
    parts: list[Scalar] = []
    for number, node in enumerate(nodes, 1):
        if number % 2:
            no_key = (
                f"argument {number}: key must not be null" if type_ == JSONB else f"argument {number} cannot be null"
            )
            key = as_key(binder.typed(node), f"22023 {no_key}")
            if isinstance(key, Failure):
                raise error_of(key, binder.body.position(node))
            parts.append(key)
        else:
            parts.append(_member(binder, type_, node))
    return Call(name, tuple(parts), type_, False) if parts else Literal("{}", type_)


def _path(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    if len(nodes) < 2:
        raise UndefinedFunction(f"function {name}() of {len(nodes)} arguments does not exist", position=position)
    function, source, type_ = _PATHS[name]
    value, *steps = [
        binder.as_type(binder.bind(node), source if i == 0 else TEXT, node, f"argument {i + 1} of {name}()")
        for i, node in enumerate(nodes)
    ]
    return Call(function, (value, *steps), type_)


def bind_subscripts(binder: ExpressionBinder, value: Scalar, nodes: Sequence[exp.Expr]) -> Scalar:
    """Returns `value[node]...` of a jsonb: keys are text, and indexes integers."""
    steps: list[Scalar] = []
    for node in nodes:
        if isinstance(node, exp.Slice):
            raise DatatypeMismatch("jsonb subscript does not support slices", position=binder.body.position(node))
        bound = binder.bind(node)
        if not isinstance(bound, Unknown) and bound.type.kind not in (*_TEXTS, Kind.INT2, Kind.INT4):
            raise DatatypeMismatch(
                f"subscript type {type_name(bound.type)} is not supported",
                detail="jsonb subscript must be coercible to either integer or text.",
                position=binder.body.position(node),
            )
        if isinstance(bound, Unknown):
            steps.append(binder.literal(bound, TEXT, node))
        else:
            shown = cast(bound.type, TEXT)
            assert not isinstance(shown, Failure)
            steps.append(shown.apply(bound))
    return Call("extract_path_jsonb", (value, *steps), JSONB)
