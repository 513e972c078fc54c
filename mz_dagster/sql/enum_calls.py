"""`enum_first`, `enum_last` and `enum_range`: what is known of an enumeration by its type."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import Failure, common_type, no_match
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.types import Kind, array_of
from mz_dagster.sql.binding import argument_type
from mz_dagster.sql.errors import UnsupportedForm, error_of
from mz_dagster.sql.expression_binder import ExpressionBinder

#: Each with the numbers of arguments it takes.
ENUM_CALLS = {"enum_first": (1,), "enum_last": (1,), "enum_range": (1, 2)}


def bind_enum_call(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns the first or last value of an enumeration, or those between two of them, of which NULL is no bound.

    Raises:
        UndefinedFunction: The arguments are not of one enumeration.
        UnsupportedForm: The bounds of a range are no constants.
    """
    bounds = [binder.bind(one) for one in nodes]
    types = [argument_type(one) for one in bounds]
    type_ = common_type(types) if bounds else None
    if len(nodes) not in ENUM_CALLS[name] or type_ is None or isinstance(type_, Failure) or type_.kind is not Kind.ENUM:
        raise error_of(no_match(name, types), position)
    assert type_.enumeration is not None
    labels = type_.enumeration.labels
    if name != "enum_range":
        return Literal(labels[0 if name == "enum_first" else -1] if labels else None, type_)
    values = [binder.as_type(bound, type_, node) for bound, node in zip(bounds, nodes, strict=True)]
    if len(values) == 1:
        return Literal(labels, array_of(type_))
    known = [one.value for one in values if isinstance(one, Literal)]
    if len(known) < 2:
        raise UnsupportedForm(
            "enum_range between values that are not constants is not supported",
            hint="Compare the values of enum_range(NULL::type) with them.",
            position=position,
        )
    first, last = known
    start = 0 if first is None else labels.index(first)
    stop = len(labels) if last is None else labels.index(last) + 1
    return Literal(labels[start:stop], array_of(type_))
