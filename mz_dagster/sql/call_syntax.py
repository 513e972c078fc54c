"""The parts of a call as written: what stands in its parentheses and behind them, up to OVER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mz_dagster.errors import Error
from mz_dagster.functions import ArgumentType, no_match
from mz_dagster.sql.binding import name_of, only_parts
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import InvalidSyntax, UnsupportedForm, error_of


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """A call as written.

    Attributes:
        name: Folded.
        arguments: Without DISTINCT and ORDER BY.
        star: Whether it is `f(*)`.
        distinct: Whether DISTINCT stands before the arguments.
        order: ORDER BY within the parentheses, or behind WITHIN GROUP.
        filter: FILTER's condition.
        ignore_nulls: Whether IGNORE NULLS is asked for, behind the parentheses or at their end.
        position: Where it begins.
        within: Whether WITHIN GROUP stands behind it.
    """

    name: str
    arguments: tuple[exp.Expr, ...]
    star: bool
    distinct: bool
    order: tuple[exp.Expr, ...]
    filter: exp.Expr | None
    ignore_nulls: bool
    position: int
    within: bool = False


def call_syntax(body: Body, node: exp.Expr) -> CallSyntax:
    """Returns the parts of the call that `node` is, within FILTER, WITHIN GROUP and IGNORE NULLS."""
    position, condition, ignore_nulls = body.position(node), None, False
    within: exp.Expr | None = None
    inner = node
    while not isinstance(inner, exp.Anonymous):
        match inner:
            case exp.IgnoreNulls() | exp.RespectNulls():
                ignore_nulls = isinstance(inner, exp.IgnoreNulls)
                only_parts(body, inner, "this")
                inner = inner.this
            case exp.Filter() if condition is None:
                only_parts(body, inner, "this", "expression")
                condition = inner.expression.this
                inner = inner.this
            case exp.WithinGroup() if within is None:
                only_parts(body, inner, "this", "expression")
                within = inner.expression
                inner = inner.this
            case exp.Dot() if name_of(inner.this) == "pg_catalog":
                inner = inner.expression
            case exp.Column() if name_of(inner.args.get("table")) == "pg_catalog":
                only_parts(body, inner, "this", "table")
                inner = inner.this
            case _:
                raise UnsupportedForm(
                    "this form of call is not supported", detail="It has no exact plan yet.", position=position
                )
    only_parts(body, inner, "this", "expressions", "name", what="this form of call")
    arguments: list[exp.Expr] = list(inner.expressions)
    order: tuple[exp.Expr, ...] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        ordered = arguments[-1]
        only_parts(body, ordered, "this", "expressions")
        order = tuple(ordered.expressions)
        arguments[-1] = ordered.this
    if arguments and isinstance(arguments[-1], exp.IgnoreNulls | exp.RespectNulls) and not ignore_nulls:
        ignore_nulls = isinstance(arguments[-1], exp.IgnoreNulls)
        only_parts(body, arguments[-1], "this")
        arguments[-1] = arguments[-1].this
    if within is not None:
        if order or any(isinstance(one, exp.Distinct) for one in arguments):
            word = "multiple ORDER BY clauses" if order else "DISTINCT"
            raise InvalidSyntax(f"cannot use {word} with WITHIN GROUP", position=position)
        only_parts(body, within, "expressions")
        order = tuple(within.expressions)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        only_parts(body, arguments[0], "expressions", what="this form of DISTINCT")
        arguments = list(arguments[0].expressions)
    star = len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not distinct and not order
    if star:
        only_parts(body, arguments[0], what="this form of *")
        arguments = []
    name = name_of(inner.this)
    return CallSyntax(
        name, tuple(arguments), star, distinct, order, condition, ignore_nulls, position, within is not None
    )


def no_function(call: CallSyntax, types: Sequence[ArgumentType]) -> Error:
    """Returns the error that says that no function of the call's name takes these arguments."""
    return error_of(no_match(call.name, types), call.position)
