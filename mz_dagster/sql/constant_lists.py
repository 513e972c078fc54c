"""Binds long lists of plain literals, each of which the lexer keeps as one token, and tests of being among them.

They stand in `x IN (list)`, `ARRAY[list]` and `x IN (VALUES list)`. What such a list means is what its literals mean
one by one, common type and errors included; where `IN` is no look into a set (`plan/membership.py`), or there is an
error to be told, they become nodes of the tree after all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from mz_dagster.functions import (
    CastContext,
    Failure,
    Unknown,
    cast,
    common_type,
    numeric_literal,
)
from mz_dagster.functions.evaluation import compiled, is_evaluable
from mz_dagster.functions.membership import among, is_member
from mz_dagster.functions.plain import from_plain, to_plain
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.membership import compared
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import INT4, INT8, Kind, ScalarType, array_of
from mz_dagster.sql.binding import Bound
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.lexer import constant_spans, constants_of
from mz_dagster.sql.parameters import negated_literal

_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)


def constant_nodes(body: Body, node: exp.RawString) -> list[exp.Expr]:
    """Returns a list's literals as nodes, as if they had been parsed one by one."""
    span = body.span(node)
    assert span is not None
    text = body.text.text[span[0] : span[1]]
    return [_node(text[start:end], span[0] + start, span[0] + end) for start, end in constant_spans(text)]


def _node(text: str, start: int, end: int) -> exp.Expr:
    found: exp.Expr
    if text[0] == "'":
        found = exp.Literal.string(unquoted(text))
    elif text[0] in "nN":
        found = exp.Null()
    elif text[0] == "-":
        found = exp.Neg(this=_node(text[1:], start + 1, end))
    else:
        found = exp.Literal.number(text)
    found.meta["span"] = (start, end)
    return found


def bind_among(left: Bound, node: exp.RawString, equal: Callable[[Literal], Scalar]) -> Scalar | None:
    """Returns whether `left` is among the constants of a list, None if they are to be bound one by one.

    Args:
        left: Is looked for.
        node: Is the list.
        equal: Returns what `left = literal` is.
    """
    if isinstance(left, Unknown):
        return None
    by_type = _by_type(constants_of(node.this))
    if by_type is None:
        return None
    numbers, unknowns = by_type
    shared = common_type([left.type, *numbers, *unknowns.values()], "IN")
    if isinstance(shared, Failure):
        if left.type.kind is not Kind.CHAR or numbers:
            return None
        # Such a value is compared with literals as with strings of its own kind and of any length.
        shared = replace(left.type, length=0)
    values: list[Any] = []
    for type_, some in numbers.items():
        converted = _converted(list(some.values()), type_, shared, CastContext.IMPLICIT)
        if converted is None:
            return None
        values += converted
    for unknown in unknowns.values():
        literal = unknown.as_type(shared, rounds=False)
        if isinstance(literal, Failure):
            return None
        values.append(literal.value)
    present = next((one for one in values if one is not None), None)
    if present is None or not all(map(is_member, values)):
        return None
    found = compared(equal(Literal(present, shared)))
    # What is compared as text is stored as the text that it is.
    if found is None or found[1].type.kind is not shared.kind or found[1].type.scale != shared.scale:
        return None
    return among(found[0], values, like=found[1])


def constant_array(node: exp.RawString, element: ScalarType | None, what: str = "ARRAY") -> Literal | None:
    """Returns the array of a list's constants, None if they are to be bound one by one.

    Args:
        node: Is the list.
        element: To which each is cast; None for the type that they have in common.
        what: Wants one, for errors.
    """
    texts = constants_of(node.this)
    by_type = _by_type(texts)
    if by_type is None:
        return None
    numbers, unknowns = by_type
    shared = common_type([*numbers, *unknowns.values()], what) if element is None else element
    if isinstance(shared, Failure):
        return None
    context = CastContext.IMPLICIT if element is None else CastContext.EXPLICIT
    values: dict[str, Any] = {}
    for type_, written in numbers.items():
        converted = _converted(list(written.values()), type_, shared, context)
        if converted is None:
            return None
        values.update(zip(written, converted, strict=True))
    for text, unknown in unknowns.items():
        literal = unknown.as_type(shared, rounds=element is not None)
        if isinstance(literal, Failure):
            return None
        values[text] = literal.value
    return Literal(tuple(values[one] for one in texts), array_of(shared))


def list_of_values(query: exp.Expr) -> exp.RawString | None:
    """Returns the list of constants that are the rows of `VALUES (...), (...)`; None if it is another query."""
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    if not isinstance(query, exp.Values) or any(query.args.get(one) for one in ("with_", "order", "limit", "offset")):
        return None
    (row,) = query.expressions if len(query.expressions) == 1 else (None,)
    found = row.expressions[0] if isinstance(row, exp.Tuple) else None
    return found if isinstance(found, exp.RawString) else None


def _by_type(texts: Sequence[str]) -> tuple[dict[ScalarType, dict[str, Any]], dict[str, Unknown]] | None:
    """Returns the numbers by their types, and what has none of its own, by how they are written.

    It is None if a number is an error.
    """
    numbers: dict[ScalarType, dict[str, Any]] = {}
    unknowns: dict[str, Unknown] = {}
    for text in dict.fromkeys(texts):
        if text[0] == "'":
            unknowns[text] = Unknown(unquoted(text))
        elif text[0] in "nN":
            unknowns[text] = Unknown(None)
        else:
            found = number_of(text)
            if found is None:
                return None
            numbers.setdefault(found[0], {})[text] = found[1]
    return numbers, unknowns


def number_of(text: str) -> tuple[ScalarType, Any] | None:
    """Returns the type and the value of a number as it is written; None if it is an error."""
    if len(text) < 19 and text.lstrip("-").isdecimal():
        value = int(text)
        return INT4 if -(2**31) <= value < 2**31 else INT8, value
    literal = numeric_literal(text.lstrip("-"))
    if isinstance(literal, Failure):
        return None
    if text[0] == "-":
        literal = negated_literal(literal)
    return literal.type, literal.value


def unquoted(text: str) -> str:
    """Returns what a string as it is written says."""
    return text[1:-1].replace("''", "'")


def _converted(values: list[Any], type_: ScalarType, shared: ScalarType, context: CastContext) -> list[Any] | None:
    """Returns numbers in a type, None where a cast to it is nothing that is known here, or fails for one."""
    if context is CastContext.IMPLICIT and type_.kind in _INTEGERS and shared.kind in _INTEGERS:
        return values
    found = cast(type_, shared, context)
    return None if isinstance(found, Failure) else constants_through(found.apply(ColumnRef(0, type_)), values, type_)


def constants_through(scalar: Scalar, values: Sequence[Any], type_: ScalarType) -> list[Any] | None:
    """Returns what a scalar over column 0 is of each of some constants; None if that is not known, or one fails."""
    if isinstance(scalar, ColumnRef):
        return list(values)
    if not is_evaluable(scalar):
        return None
    evaluate = compiled(scalar)
    try:
        return [from_plain(evaluate((to_plain(one, type_),)), scalar.type) for one in values]
    except SqlFailure:
        return None
