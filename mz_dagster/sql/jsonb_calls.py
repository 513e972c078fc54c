"""Binds the functions of jsonb that take arguments of any type, or any number of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import Failure, Unknown, cast, type_name
from mz_dagster.functions.jsonb.as_jsonb import as_jsonb, as_jsonb_or_null, as_key
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import JSONB, TEXT, Kind
from mz_dagster.sql.errors import DatatypeMismatch, InvalidParameterValue, UndefinedFunction, error_of
from mz_dagster.sql.expression_binder import ExpressionBinder

#: SQL name -> implementation and result.
_PATHS = {
    "jsonb_extract_path": ("extract_path_jsonb", JSONB),
    "jsonb_extract_path_text": ("extract_path_text_jsonb", TEXT),
}
JSONB_CALLS = frozenset(("to_jsonb", "jsonb_build_array", "jsonb_build_object", *_PATHS))


def bind_jsonb_call(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns the call of one of `JSONB_CALLS`."""
    match name:
        case "to_jsonb":
            return _to_jsonb(binder, nodes, position)
        case "jsonb_build_array":
            elements = [member(binder, one) for one in nodes]
            return Call("jsonb_build_array", tuple(elements), JSONB, False) if elements else Literal("[]", JSONB)
        case "jsonb_build_object":
            return _object(binder, nodes, position)
        case _:
            return _path(binder, name, nodes, position)


def member(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    """Returns `node` as a member of an array or object."""
    found = as_jsonb_or_null(binder.typed(node))
    if isinstance(found, Failure):
        raise error_of(found, binder.body.position(node))
    return found


def _to_jsonb(binder: ExpressionBinder, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    if len(nodes) != 1:
        raise UndefinedFunction(f"function to_jsonb() of {len(nodes)} arguments does not exist", position=position)
    bound = binder.bind(nodes[0])
    if isinstance(bound, Unknown):
        raise DatatypeMismatch(
            "could not determine polymorphic type because input has type unknown",
            hint="Cast the literal, to text or jsonb for example.",
            position=position,
        )
    found = as_jsonb(bound)
    if isinstance(found, Failure):
        raise error_of(found, position)
    return found


def _object(binder: ExpressionBinder, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    if len(nodes) % 2:
        raise InvalidParameterValue(
            "argument list must have even number of elements",
            hint="The arguments of jsonb_build_object() must consist of alternating keys and values.",
            position=position,
        )
    parts: list[Scalar] = []
    for number, node in enumerate(nodes, 1):
        if number % 2:
            key = as_key(binder.typed(node), f"22023 argument {number}: key must not be null")
            if isinstance(key, Failure):
                raise error_of(key, binder.body.position(node))
            parts.append(key)
        else:
            parts.append(member(binder, node))
    return Call("jsonb_build_object", tuple(parts), JSONB, False) if parts else Literal("{}", JSONB)


def _path(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    if len(nodes) < 2:
        raise UndefinedFunction(f"function {name}() of {len(nodes)} arguments does not exist", position=position)
    function, type_ = _PATHS[name]
    value, *steps = [
        binder.as_type(binder.bind(node), JSONB if i == 0 else TEXT, node, f"argument {i + 1} of {name}()")
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
        if not isinstance(bound, Unknown) and bound.type.kind not in (Kind.TEXT, Kind.INT2, Kind.INT4):
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
