"""Binds the forms of arrays: ARRAY[...], subscripts, slices, and comparisons with ANY or ALL of one.

An array is a list unless it is written with dimensions, or made of arrays: `functions/arrays/dimensioned.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from mz_dagster.budget import budget
from mz_dagster.functions import Failure, Unknown, common_type, resolve_function, type_name
from mz_dagster.functions.arrays.arrays import has_dimensions
from mz_dagster.functions.arrays.dimensioned import elements_of, of_list, part_between, stacked, subscript
from mz_dagster.functions.arrays.limits import MOST_DIMENSIONS
from mz_dagster.functions.membership import among, is_member
from mz_dagster.functions.numbers.numerics import exactly
from mz_dagster.plan.membership import compared
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, Value
from mz_dagster.scalars.types import BOOL, INT4, TEXT, Kind, ScalarType, array_of, dimensioned
from mz_dagster.scalars.values import Dimensioned
from mz_dagster.sql.binding import Bound, argument_type, only_parts, unwrapped
from mz_dagster.sql.constant_lists import constant_array, constant_nodes, constants_through
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    IndeterminateDatatype,
    InvalidSyntax,
    UnsupportedForm,
    WrongObjectKind,
    error_of,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.jsonb_calls import bind_subscripts


def bind_array(binder: ExpressionBinder, node: exp.Array, target: ScalarType | None = None) -> Scalar:
    """Returns `ARRAY[...]`, of the elements' common type, or of `target`, to which it is cast right away."""
    position = binder.body.position(node)
    element = None if target is None else target.array_element
    found = _constants(node, element)
    if found is not None:
        return found if target is None or target.kind is Kind.ARRAY else of_list(found)
    nodes = _elements(binder, node)
    if not nodes:
        if target is None:
            raise IndeterminateDatatype(
                "cannot determine type of empty array",
                hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
                position=position,
            )
        return Literal((), target) if target.kind is Kind.ARRAY else Literal(Dimensioned(), target)
    bounds = [_item(binder, one, element) for one in nodes]
    if any(map(_is_array, bounds)):
        return _stacked(binder, bounds, nodes, element, position)
    if element is None:
        shared = common_type([argument_type(one) for one in bounds], "ARRAY")
        if isinstance(shared, Failure):
            raise error_of(shared, position)
        element = shared
    if target is None:
        values = [binder.as_type(one, element, each, "ARRAY") for one, each in zip(bounds, nodes, strict=True)]
    else:
        values = [binder.cast_to(one, element, each) for one, each in zip(bounds, nodes, strict=True)]
    listed = array_from(values, element)
    return listed if target is None or target.kind is Kind.ARRAY else of_list(listed)


def _item(binder: ExpressionBinder, node: exp.Expr, element: ScalarType | None) -> Bound:
    """Returns an item of `ARRAY[...]`; of one that is written so itself, the items are of the element type at once."""
    inner = unwrapped(node)
    if element is not None and isinstance(inner, exp.Array):
        return bind_array(binder, inner, array_of(element))
    return binder.bind(node)


def _is_array(bound: Bound) -> bool:
    return not isinstance(bound, Unknown) and bound.type.array_element is not None


def _stacked(
    binder: ExpressionBinder,
    bounds: Sequence[Bound],
    nodes: Sequence[exp.Expr],
    element: ScalarType | None,
    position: int,
) -> Scalar:
    """Returns `ARRAY[...]` of arrays, which is one of one more dimension."""
    types = [argument_type(one) for one in bounds]
    found: ScalarType | Failure
    if all(isinstance(one, Unknown) or one.array_element is not None for one in types):
        found = element or common_type(
            [one if isinstance(one, Unknown) else (one.array_element or one) for one in types], "ARRAY"
        )
    else:
        found = common_type(types, "ARRAY")
    if isinstance(found, Failure):
        raise error_of(found, position)
    type_ = dimensioned(found)
    if element is None:
        values = [binder.as_type(one, type_, each, "ARRAY") for one, each in zip(bounds, nodes, strict=True)]
    else:
        values = [binder.cast_to(one, type_, each) for one, each in zip(bounds, nodes, strict=True)]
    return stacked(values, found)


def _constants(node: exp.Array, element: ScalarType | None = None) -> Literal | None:
    """Returns an array as written that is one long list of constants; None if it is none, or not known to be right."""
    (first,) = node.expressions[:1] or [None]
    return constant_array(first, element) if isinstance(first, exp.RawString) else None


def _elements(binder: ExpressionBinder, node: exp.Array) -> list[exp.Expr]:
    """Returns the elements of an array as written."""
    nodes = [constant_nodes(binder.body, one) if isinstance(one, exp.RawString) else [one] for one in node.expressions]
    return [one for some in nodes for one in some]


def _written_elements(binder: ExpressionBinder, node: exp.Array, position: int) -> list[tuple[exp.Expr, Bound]]:
    """Returns the elements of an array as written, each as its syntax and bound; one without a type has the array's."""
    nodes = _elements(binder, node)
    bounds = [binder.bind(one) for one in nodes]
    shared = common_type([argument_type(one) for one in bounds], "ARRAY")
    if isinstance(shared, Failure):
        if shared.sqlstate != "0A000":  # what no array holds here may be compared all the same
            raise error_of(shared, position)
        return list(zip(nodes, bounds, strict=True))
    return [
        (one, binder.literal(bound, shared, one) if isinstance(bound, Unknown) else bound)
        for one, bound in zip(nodes, bounds, strict=True)
    ]


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
    if array.type.array_element is None:
        raise DatatypeMismatch(
            f"cannot subscript type {type_name(array.type)} because it does not support subscripting",
            position=position,
        )
    if array.type.kind is Kind.DIMENSIONED or len(places) > 1:
        return _of_dimensions(binder, array, places, position)
    (place,) = places
    if not isinstance(place, exp.Slice):
        arguments: list[Bound] = [array, _place(binder, place)]
        return binder.applied(resolve_function("array_subscript", [array.type, INT4]), arguments, position)
    only_parts(binder.body, place, "this", "expression", what="this form of slice")
    first = Literal(1, INT4) if place.this is None else _place(binder, place.this)
    last: Scalar = Literal(2**31 - 1, INT4) if place.expression is None else _place(binder, place.expression)
    arguments = [array, first, last]
    return binder.applied(resolve_function("array_slice", [array.type, INT4, INT4]), arguments, position)


def _of_dimensions(binder: ExpressionBinder, array: Scalar, places: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns `array[i][j]`, or a part of it if one of the subscripts is a slice: then `i` is `1:i`."""
    if len(places) > MOST_DIMENSIONS:
        shown = f"number of array dimensions ({len(places)}) exceeds the maximum allowed ({MOST_DIMENSIONS})"
        raise error_of(Failure("54000", shown), position)
    whole = array if array.type.kind is Kind.DIMENSIONED else of_list(array)
    if not any(isinstance(one, exp.Slice) for one in places):
        return subscript(whole, [_place(binder, one) for one in places])
    firsts: list[Scalar | None] = []
    lasts: list[Scalar | None] = []
    for place in places:
        if isinstance(place, exp.Slice):
            only_parts(binder.body, place, "this", "expression", what="this form of slice")
            bounds = (place.this, place.expression)
            first, last = (None if one is None else _place(binder, one) for one in bounds)
        else:
            first, last = Literal(1, INT4), _place(binder, place)
        firsts.append(first)
        lasts.append(last)
    return part_between(whole, firsts, lasts)


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
        constants = _constants(inner)
        if constants is not None:
            return bind_quantified_constants(binder, value, symbol, constants, position, every=every)
        nests = any(isinstance(unwrapped(one), exp.Array) for one in inner.expressions)
        elements = [] if nests else _written_elements(binder, inner, position)
        if elements and not any(_is_array(one) for _, one in elements):
            tests = [binder.operator(symbol, [value, bound], position, [left, one]) for one, bound in elements]
            return binder.connected("and" if every else "or", tests, position)
    bound = binder.bind(right)
    if isinstance(bound, Unknown):
        element = TEXT if isinstance(value, Unknown) else value.type
        type_ = dimensioned(element) if bound.text is not None and has_dimensions(bound.text) else array_of(element)
        bound = binder.literal(bound, type_, right)
    has_several = bound.type.kind is Kind.DIMENSIONED
    bound = elements_of(bound) if has_several else bound
    if isinstance(bound, Literal) and isinstance(bound.value, tuple):
        return bind_quantified_constants(binder, value, symbol, bound, position, every=every)
    if bound.type.element is None:
        raise WrongObjectKind("op ANY/ALL (array) requires array on right side", position=position)
    element = bound.type.element
    sample = binder.operator(symbol, [value, ColumnRef(0, element)], position)
    if sample.type != BOOL:
        raise DatatypeMismatch("op ANY/ALL (array) requires operator to yield boolean", position=position)
    written = unwrapped(inner.this) if type(inner) is exp.Cast else inner
    if isinstance(written, exp.Array) and written.expressions and not has_several:
        cells = [binder.cast_to(binder.bind(one), element, one) for one in _elements(binder, written)]
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


def bind_quantified_constants(
    binder: ExpressionBinder, value: Bound, symbol: str, array: Literal, position: int, *, every: bool
) -> Scalar:
    """Returns whether `value symbol constant` is true for any element of an array that is known, or for all."""
    element = array.type.element
    assert element is not None
    assert isinstance(array.value, tuple)
    sample = binder.operator(symbol, [value, ColumnRef(0, element)], position)
    if sample.type != BOOL:
        raise DatatypeMismatch("op ANY/ALL (array) requires operator to yield boolean", position=position)
    if (symbol, every) in (("=", False), ("<>", True)) and len(array.value) > budget().compared_constants:
        is_one = _among(sample, array.value, element, "ne" if every else "eq")
        if is_one is not None:
            return Call("not", (is_one,), BOOL) if every else is_one
    tests = [binder.operator(symbol, [value, Literal(one, element)], position) for one in array.value]
    return binder.connected("and" if every else "or", tests, position) if tests else Literal(every, BOOL)


def _among(sample: Scalar, constants: Sequence[Value], element: ScalarType, operation: str) -> Scalar | None:
    """Returns a look into a set that says whether a value is one of some constants; None if there is none.

    Args:
        sample: The comparison of the value with a constant of type `element`, which column 0 stands for.
        constants: Of that type.
        element: Their type.
        operation: What the comparison is to be, `eq` or `ne`.
    """
    if not isinstance(sample, Call) or len(sample.arguments) != 2:
        return None
    value, compared_with = sample.arguments
    members, type_ = constants_through(compared_with, constants, element), compared_with.type
    if members is not None and value.type.kind is Kind.NUMERIC and type_.kind is Kind.NUMERIC:
        members, type_ = [*_at_scale(members, value.type.scale)], value.type.unmodified
    present = next((one for one in members or () if one is not None), None)
    if members is None or present is None or not all(map(is_member, members)):
        return None
    test = replace(sample, arguments=(value, Literal(present, type_)))
    found = compared(test, operation)
    return None if found is None else among(found[0], members, like=found[1])


def _at_scale(constants: Iterable[Value], scale: int) -> Iterator[Value]:
    """Yields those of some numerics that one of a scale may equal, with that scale; and NULL."""
    for one in constants:
        if not isinstance(one, Decimal):
            yield one
        elif (found := exactly(one, scale)) is not None:
            yield found
