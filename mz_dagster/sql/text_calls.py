"""Binds functions of text that take values of any type: `format`, `quote_nullable`, `num_nulls`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import resolve_function
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, TEXT, array_of
from mz_dagster.sql.binding import Bound, argument_type
from mz_dagster.sql.errors import UndefinedFunction
from mz_dagster.sql.expression_binder import ExpressionBinder

TEXT_CALLS = ("format", "quote_nullable", "num_nulls", "num_nonnulls")


def bind_text_call(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns the call of one of `TEXT_CALLS`."""
    arguments = [binder.bind(one) for one in nodes]
    if not arguments or (name == "quote_nullable" and len(arguments) > 1):
        raise UndefinedFunction(f"function {name}() with {len(nodes)} arguments does not exist", position=position)
    match name:
        case "format":
            template = binder.as_type(arguments[0], TEXT, nodes[0])
            texts = Call("array", _texts(binder, arguments[1:], position), array_of(TEXT), False)
            return Call("format_text", (template, texts), TEXT, template.nullable)
        case "quote_nullable":
            (text,) = _texts(binder, arguments, position)
            quoted = Call("quote_literal_text", (text,), TEXT, text.nullable)
            return Call("coalesce", (quoted, Literal("NULL", TEXT)), TEXT, False)
        case _:
            test = "is_null" if name == "num_nulls" else "is_not_null"
            return _counted(test, [binder.as_type(one, None, node) for one, node in zip(arguments, nodes, strict=True)])


def _texts(binder: ExpressionBinder, arguments: Sequence[Bound], position: int) -> tuple[Scalar, ...]:
    """Returns the texts of the arguments, as `concat` shows them."""
    if not arguments:
        return ()
    types = [argument_type(one) for one in arguments]
    call = binder.applied(resolve_function("concat", types), arguments, position)
    assert isinstance(call, Call)
    return call.arguments


def _counted(test: str, values: Sequence[Scalar]) -> Scalar:
    ones = [If(Call(test, (one,), BOOL, False), Literal(1, INT4), Literal(0, INT4)) for one in values]
    total: Scalar = ones[0]
    for one in ones[1:]:
        total = Call("add_int4", (total, one), INT4, False)
    return total
