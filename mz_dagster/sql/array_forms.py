"""Binds the forms of arrays: ARRAY[...], ARRAY(query), subscripts, slices, and comparisons with ANY or ALL of one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.budget import budget
from mz_dagster.functions import Failure, Unknown, common_type, resolve_function, type_name
from mz_dagster.functions.membership import among, is_member
from mz_dagster.plan.membership import compared
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, TEXT, Kind, ScalarType, array_of
from mz_dagster.sql.binding import Bound, argument_type, only_parts, unwrapped
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    IndeterminateDatatype,
    InvalidSyntax,
    SeveralDimensions,
    UnsupportedForm,
    WrongObjectKind,
    error_of,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.jsonb_calls import bind_subscripts


def bind_array(binder: ExpressionBinder, node: exp.Array, target: ScalarType | None = None) -> Scalar:
    """Returns `ARRAY[...]`, of the elements' common type, or of `target`, to which it is cast right away."""
    position = binder.body.position(node)
    nodes: list[exp.Expr] = list(node.expressions)
    if any(isinstance(unwrapped(one), exp.Array) for one in nodes):
        raise _several_dimensions(position)
    if not nodes:
        if target is None:
            raise IndeterminateDatatype(
                "cannot determine type of empty array",
                hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
                position=position,
            )
        return Literal((), target)
    bounds = [binder.bind(one) for one in nodes]
    if any(not isinstance(one, Unknown) and one.type.kind is Kind.ARRAY for one in bounds):
        raise _several_dimensions(position)
    element = None if target is None else target.element
    if element is None:
        found = common_type([argument_type(one) for one in bounds], "ARRAY")
        if isinstance(found, Failure):
            raise error_of(found, position)
        element = found
    if target is None:
        values = [binder.as_type(one, element, each, "ARRAY") for one, each in zip(bounds, nodes, strict=True)]
    else:
        values = [binder.cast_to(one, element, each) for one, each in zip(bounds, nodes, strict=True)]
    return array_from(values, element)


def array_from(values: Sequence[Scalar], element: ScalarType) -> Scalar:
    """Returns the array of values of one type: a literal, if all of them are."""
    literals = [one.value for one in values if isinstance(one, Literal)]
    if len(literals) == len(values):
        return Literal(tuple(literals), array_of(element))
    return Call("array", tuple(values), array_of(element), False)


def bind_bracket(binder: ExpressionBinder, node: exp.Bracket) -> Scalar:
    """Returns `array[place]` or `array[first:last]`, or the member of a jsonb that all subscripts lead to."""
    only_parts(binder.body, node, "this", "expressions", what="this form of subscript")
    position = binder.body.position(node)
    inner, places = node.this, list(node.expressions)
    while isinstance(inner, exp.Bracket):
        inner, places = inner.this, [*inner.expressions, *places]
    if not isinstance(inner, exp.Column | exp.Dot | exp.Paren | exp.Placeholder | exp.Parameter | exp.Subquery):
        raise InvalidSyntax(
            'syntax error at or near "["',
            hint="Put what is in front of the subscript into parentheses.",
            position=position,
        )
    array = binder.typed(inner)
    if array.type.kind is Kind.JSONB:
        return bind_subscripts(binder, array, places)
    if isinstance(node.this, exp.Bracket):
        raise _several_dimensions(position)
    if array.type.kind is not Kind.ARRAY:
        raise DatatypeMismatch(
            f"cannot subscript type {type_name(array.type)} because it does not support subscripting",
            position=position,
        )
    if len(node.expressions) != 1:
        raise _several_dimensions(position)
    (place,) = node.expressions
    if not isinstance(place, exp.Slice):
        arguments: list[Bound] = [array, _place(binder, place)]
        return binder.applied(resolve_function("array_subscript", [array.type, INT4]), arguments, position)
    only_parts(binder.body, place, "this", "expression", what="this form of slice")
    first = Literal(1, INT4) if place.this is None else _place(binder, place.this)
    last: Scalar = Literal(2**31 - 1, INT4) if place.expression is None else _place(binder, place.expression)
    arguments = [array, first, last]
    return binder.applied(resolve_function("array_slice", [array.type, INT4, INT4]), arguments, position)


def _place(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    bound = binder.bind(node)
    if isinstance(bound, Unknown):
        return binder.literal(bound, INT4, node)
    if bound.type.kind not in (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8):
        raise DatatypeMismatch("array subscript must have type integer", position=binder.body.position(node))
    return binder.cast_to(bound, INT4, node, assigned=True)


def is_quantifiable(function: str) -> bool:
    """Returns whether a test of two values can be one of a value and each element: not if Spark's workers call it."""
    return not any(part in function for part in ("jsonb", "regexp", "unconstrained"))


def bind_quantified_array(
    binder: ExpressionBinder, left: exp.Expr, symbol: str, right: exp.Expr, position: int, *, every: bool
) -> Scalar:
    """Returns `left symbol ANY (array)`, or `ALL (array)`: of an array as written the tests one by one."""
    value = binder.bind(left)
    inner = unwrapped(right)
    if isinstance(inner, exp.Array) and inner.expressions:
        tests = [binder.operator(symbol, [value, binder.bind(one)], position, [left, one]) for one in inner.expressions]
        return binder.connected("and" if every else "or", tests, position)
    bound = binder.bind(right)
    if isinstance(bound, Unknown):
        element = TEXT if isinstance(value, Unknown) else value.type
        bound = binder.literal(bound, array_of(element), right)
    if bound.type.element is None:
        raise WrongObjectKind("op ANY/ALL (array) requires array on right side", position=position)
    element = bound.type.element
    sample = binder.operator(symbol, [value, ColumnRef(0, element)], position)
    if sample.type != BOOL:
        raise DatatypeMismatch("op ANY/ALL (array) requires operator to yield boolean", position=position)
    if isinstance(bound, Literal) and isinstance(bound.value, tuple):
        if (symbol, every) in (("=", False), ("<>", True)) and len(bound.value) > budget().compared_constants:
            present = next((one for one in bound.value if one is not None), None)
            test = binder.operator(symbol, [value, Literal(present, element)], position)
            found = compared(test, "ne" if every else "eq")
            if found is not None and found[1].type == element and all(map(is_member, bound.value)):
                is_one = among(found[0], bound.value, like=found[1])
                return Call("not", (is_one,), BOOL) if every else is_one
        tests = [binder.operator(symbol, [value, Literal(one, element)], position) for one in bound.value]
        if not tests:
            return Literal(every, BOOL)
        return binder.connected("and" if every else "or", tests, position)
    written = unwrapped(inner.this) if type(inner) is exp.Cast else inner
    if isinstance(written, exp.Array) and written.expressions:
        cells = [binder.cast_to(binder.bind(one), element, one) for one in written.expressions]
        tests = [binder.operator(symbol, [value, one], position) for one in cells]
        return binder.connected("and" if every else "or", tests, position)
    if not isinstance(sample, Call) or len(sample.arguments) != 2 or not is_quantifiable(sample.function):
        raise UnsupportedForm(
            f"operator {symbol} with ANY or ALL of an array of {type_name(element)} is not supported",
            hint="Compare with the rows of unnest().",
            position=position,
        )
    first, second = sample.arguments
    array = binder.cast_to(bound, array_of(second.type), right)
    quantifier = "all_elements" if every else "any_element"
    return Call(quantifier, (first, array, Literal(sample.function, TEXT)), BOOL)


def _several_dimensions(position: int) -> UnsupportedForm:
    return SeveralDimensions(position=position)
