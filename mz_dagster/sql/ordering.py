"""ORDER BY, LIMIT, OFFSET and FETCH: what follows a query, wherever it stands.

What a key of an order may be `output_columns.py` says; what becomes of the order, a top-k or the finishing of a one-off
SELECT, the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from mz_dagster.functions import CastContext, Failure, Unknown, cast, type_name
from mz_dagster.plan.relation import Constant, Map
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.plan.transform import fold_constants
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, walk
from mz_dagster.scalars.types import INT8, TEXT
from mz_dagster.sql.binding import only_parts
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    InvalidColumnReference,
    InvalidRowCount,
    InvalidRowOffset,
    InvalidSyntax,
)
from mz_dagster.sql.expression_binder import ExpressionBinder

TAIL = ("order", "limit", "offset")


@dataclass(frozen=True, slots=True)
class QueryTail:
    """What follows a query, as syntax."""

    order: exp.Expr | None = None
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None

    def around(self, body: Body, node: exp.Expr) -> QueryTail:
        """Returns this tail of a query in parentheses together with the one of `node` within them.

        Raises:
            InvalidSyntax: Both have the same clause.
        """
        names = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}
        parts: dict[str, exp.Expr | None] = {}
        for part in TAIL:
            outer: exp.Expr | None = getattr(self, part)
            inner = node.args.get(part)
            if outer is not None and inner is not None:
                raise InvalidSyntax(
                    f"multiple {names[part]} clauses not allowed",
                    hint="Put the inner query into FROM.",
                    position=body.position(_first(outer)),
                )
            parts[part] = outer if outer is not None else inner
        return QueryTail(parts["order"], parts["limit"], parts["offset"])


#: How many rows a clause counts: a number, or a scalar over no columns of the query, for each row around it.
RowCount = int | Scalar


def limit_of(binder: ExpressionBinder, node: exp.Expr | None) -> RowCount | None:
    """Returns how many rows LIMIT or FETCH lets through; None is all."""
    body = binder.body
    if isinstance(node, exp.Fetch):
        options = node.args.get("limit_options")
        if options is not None:
            only_parts(body, options, "rows", "with_ties", what="this form of FETCH")
        only_parts(body, node, "direction", "count", "limit_options", what="this form of FETCH")
        count = node.args.get("count")
        return 1 if count is None else _value(binder, count, "LIMIT")
    if node is None or _is_all(body, node):
        return None
    only_parts(body, node, "expression", what="this form of LIMIT")
    return _value(binder, node.expression, "LIMIT")


def has_ties(body: Body, tail: QueryTail) -> bool:
    """Returns whether the rows that are equal to the last one in the order are let through, too.

    Raises:
        InvalidSyntax: There is no order.
    """
    options = None if tail.limit is None else tail.limit.args.get("limit_options")
    if options is None or not options.args.get("with_ties"):
        return False
    if tail.order is None:
        assert tail.limit is not None
        position = body.keyword_position("ties", tail.limit)
        raise InvalidSyntax("WITH TIES cannot be specified without ORDER BY clause", position=position)
    return True


def offset_of(binder: ExpressionBinder, node: exp.Expr | None) -> RowCount:
    """Returns how many rows OFFSET leaves out."""
    if node is None:
        return 0
    only_parts(binder.body, node, "expression", what="this form of OFFSET")
    return _value(binder, node.expression, "OFFSET") or 0


def _first(clause: exp.Expr) -> exp.Expr:
    """Returns what a clause of a tail begins with behind its keywords."""
    parts = [*clause.expressions, clause.args.get("expression"), clause.args.get("count")]
    return next((one for one in parts if one is not None), clause)


def _is_all(body: Body, node: exp.Expr) -> bool:
    """Returns whether `node` is `LIMIT ALL`."""
    position = body.position(node)
    places = [i for i, token in enumerate(body.tokens) if body.text.offset + token.start + 1 == position]
    return bool(places) and body.tokens[places[0]].is_word("limit") and body.tokens[places[0] + 1].is_word("all")


def folded(scalar: Scalar) -> Scalar:
    """Returns the literal that a scalar over no columns is, if it can be told now; else the scalar."""
    relation = fold_constants(Map(ONE_ROW, (scalar,), ("value",)))
    return relation.rows[0][0] if isinstance(relation, Constant) and relation.rows else scalar


def _value(binder: ExpressionBinder, node: exp.Expr, what: str) -> RowCount | None:
    position = binder.body.position(node)
    bound = binder.bind(node)
    if isinstance(bound, Unknown):
        bound = binder.literal(bound, INT8, node)
    if any(isinstance(one, ColumnRef) for one in walk(bound)):
        raise InvalidColumnReference(f"argument of {what} must not contain variables", position=position)
    found = cast(bound.type, INT8, CastContext.ASSIGNMENT)
    if isinstance(found, Failure):
        shown = type_name(bound.type)
        raise DatatypeMismatch(f"argument of {what} must be type bigint, not type {shown}", position=position)
    value = folded(found.apply(bound))
    kind = InvalidRowCount if what == "LIMIT" else InvalidRowOffset
    message = f"{what} must not be negative"
    if not isinstance(value, Literal):
        failed = Call("error", (Literal(f"{kind.sqlstate} {message}", TEXT),), INT8)
        return If(binder.operator("<", [value, Literal(0, INT8)], position), failed, value)
    if value.value is None:
        return None
    assert isinstance(value.value, int)
    if value.value < 0:
        raise kind(message, position=position)
    return value.value
