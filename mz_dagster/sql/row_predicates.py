"""Binds predicates of rows as written: comparisons, also with the row of a subquery, IS DISTINCT FROM, BETWEEN, IN."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import Unknown, type_name
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Kind
from mz_dagster.sql.binding import Bound, unwrapped
from mz_dagster.sql.errors import InvalidSyntax, UndefinedFunction, UnsupportedForm
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.refusals import refusal_of
from mz_dagster.sql.row_comparison import compared_rows, connected
from mz_dagster.sql.row_values import bind_row, row_nodes
from mz_dagster.sql.subqueries import bind_row_subquery, is_query


def bind_compared_rows(binder: ExpressionBinder, node: exp.Binary, symbol: str) -> Scalar | None:
    """Returns a comparison of which a side is a row as written; None if neither is."""
    sides = (node.this, node.expression)
    position = binder.body.operator_position(node)
    rows = [row_nodes(one) for one in sides]
    if rows == [None, None]:
        return None
    width = len(rows[0] if rows[0] is not None else rows[1] or [])
    values: list[list[Bound]] = []
    for side, row in zip(sides, rows, strict=True):
        if row is not None:
            values.append(_values(binder, side))
            continue
        found = _of_query(binder, side, width) if side is node.expression else None
        if found is None:
            return None
        values.append(found)
    return _compared(binder, symbol, values[0], values[1], position)


def _compared(
    binder: ExpressionBinder, symbol: str, left: Sequence[Bound], right: Sequence[Bound], position: int
) -> Scalar:
    """Returns the comparison of two rows as written; raises if they are not of one length."""
    if len(left) != len(right):
        raise InvalidSyntax("unequal number of entries in row expressions", position=position)
    if not left:
        raise UnsupportedForm("cannot compare rows of zero length", position=position)
    return compared_rows(symbol, left, right, binder.comparing(position))


def _of_query(binder: ExpressionBinder, node: exp.Expr, width: int) -> list[Bound] | None:
    """Returns the columns of the one row of a subquery, compared with a row; None if `node` is none."""
    node = unwrapped(node)
    return list(bind_row_subquery(binder, node, width)) if is_query(node) else None


def rows_distinct(binder: ExpressionBinder, symbol: str, node: exp.Binary) -> Scalar | None:
    """Returns `row IS [NOT] DISTINCT FROM row`; None if the sides are not both rows as written."""
    if row_nodes(node.this) is None or row_nodes(node.expression) is None:
        return None
    position = binder.body.operator_position(node)
    left, right = (_values(binder, one) for one in (node.this, node.expression))
    if len(left) != len(right):
        raise InvalidSyntax("unequal number of entries in row expressions", position=position)
    tests = [binder.operator(symbol, [a, b], position) for a, b in zip(left, right, strict=True)]
    return connected("and" if symbol.startswith("is not") else "or", tests)


def bind_row_between(binder: ExpressionBinder, node: exp.Between) -> Scalar:
    """Returns `row BETWEEN row AND row`."""
    position = binder.body.position(node)
    value, low, high = (_values(binder, node.args[part]) for part in ("this", "low", "high"))
    tests = [_compared(binder, symbol, value, bound, position) for symbol, bound in ((">=", low), ("<=", high))]
    return binder.operator("and", tests, position)


def bind_row_in(binder: ExpressionBinder, node: exp.In, nodes: Sequence[exp.Expr]) -> Scalar:
    """Returns `row IN (nodes)`."""
    position, left = binder.body.position(node), _values(binder, node.this)
    tests: list[Scalar] = []
    for one in nodes:
        if row_nodes(one) is None:
            found = binder.bind(one)
            if isinstance(found, Unknown) or found.type.kind is Kind.RECORD:
                raise refusal_of(binder.body, one)
            raise UndefinedFunction(
                f"operator does not exist: record = {type_name(found.type)}",
                hint="Compare the row with rows of as many values.",
                position=position,
            )
        tests.append(_compared(binder, "=", left, _values(binder, one), position))
    return connected("or", tests)


def _values(binder: ExpressionBinder, node: exp.Expr) -> list[Bound]:
    return [bound for bound, _ in bind_row(binder, node)]
