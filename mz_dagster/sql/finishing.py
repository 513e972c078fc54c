"""ORDER BY, LIMIT and OFFSET of a one-off SELECT: what is done to its rows once they are read.

A collection has no order, so none of this is part of a plan; in the definition of a view it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from mz_dagster.plan.functions import Unknown
from mz_dagster.plan.scalar import ColumnRef, Literal
from mz_dagster.plan.types import INT8
from mz_dagster.sql.binding import Binding, Bound, name_of, only
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import (
    AmbiguousColumn,
    DatatypeMismatch,
    InvalidColumnReference,
    InvalidRowCount,
    UnsupportedForm,
)
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.query import Pending
from mz_dagster.sql.scope import Scope


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """Is one key of an order: a column, which way, and where NULLs go."""

    position: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class RowSetFinishing:
    """Is what is done to a row set before it is handed out.

    Attributes:
        order: Keys, most significant first; ties are in no order.
        limit: How many rows at most, or None.
        offset: How many rows to leave out first.
        project: The columns to hand out: those that only the order needs come behind them in the plan.
    """

    order: tuple[ColumnOrder, ...]
    limit: int | None
    offset: int
    project: tuple[int, ...]

    @property
    def is_trivial(self) -> bool:
        """True if it changes nothing."""
        return not self.order and self.limit is None and self.offset == 0


def bind_finishing(binding: Binding, body: Body, node: exp.Expr, pending: Pending) -> RowSetFinishing:
    """Returns the finishing that `node` asks for; columns only the order needs are appended to `pending`."""
    project = tuple(range(len(pending.names)))
    order = node.args.get("order")
    keys = tuple(_key(binding, body, pending, one) for one in order.expressions) if order is not None else ()
    limit = _limit(binding, body, node.args.get("limit"))
    offset = _count(binding, body, node.args.get("offset"), "OFFSET")
    return RowSetFinishing(keys, limit, offset or 0, project)


def _key(binding: Binding, body: Body, pending: Pending, ordered: exp.Ordered) -> ColumnOrder:
    node = ordered.this
    descending, nulls_first = bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))
    if ordered.args.get("with_fill") is not None:
        raise UnsupportedForm("WITH FILL is not supported", position=body.position(node))
    return ColumnOrder(_column(binding, body, pending, node), descending, nulls_first)


def _column(binding: Binding, body: Body, pending: Pending, node: exp.Expr) -> int:
    position = body.position(node)
    if isinstance(node, exp.Literal):
        if node.is_string or not str(node.this).isdigit():
            raise InvalidColumnReference("non-integer constant in ORDER BY", position=position)
        if not 1 <= int(node.this) <= len(pending.names):
            raise InvalidColumnReference(f"ORDER BY position {node.this} is not in select list", position=position)
        return int(node.this) - 1
    bare = isinstance(node, exp.Column) and node.args.get("table") is None and isinstance(node.this, exp.Identifier)
    if bare:
        name = name_of(node.this)
        places = [i for i, one in enumerate(pending.names) if one == name]
        if len({_same(pending, i) for i in places}) > 1:
            raise AmbiguousColumn(f'ORDER BY "{name}" is ambiguous', position=position)
        if places:
            return places[0]
    if pending.scope is None:
        raise UnsupportedForm(
            "invalid UNION ORDER BY clause" if not bare else f'column "{name_of(node.this)}" does not exist',
            detail="Only result column names can be used, not expressions or functions.",
            hint="Add the expression to every SELECT, or move the UNION into a FROM clause.",
            position=position,
        )
    if len(pending.rows) != 1:
        raise UnsupportedForm("ORDER BY an expression over VALUES is not supported", position=position)
    relation, items = pending.rows[0]
    bound: Bound = Expressions(binding, body, pending.scope, "ORDER BY").typed(node)
    if bound in items:
        return items.index(bound)
    items.append(bound)
    pending.nodes[0].append(node)
    pending.names = (*pending.names, "?order?")
    pending.rows[0] = (relation, items)
    return len(items) - 1


def _same(pending: Pending, place: int) -> object:
    item = pending.rows[0][1][place]
    return (item.position,) if isinstance(item, ColumnRef) else item


def _limit(binding: Binding, body: Body, node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Fetch):
        options = node.args.get("limit_options")
        if options is not None:
            only(body, options, "rows", what="this form of FETCH")
        only(body, node, "direction", "count", "limit_options", what="this form of FETCH")
        count = node.args.get("count")
        return 1 if count is None else _value(binding, body, count, "LIMIT")
    if node is not None:
        if _is_all(body, node):
            return None
        only(body, node, "expression", what="this form of LIMIT")
    return _count(binding, body, node, "LIMIT")


def _is_all(body: Body, node: exp.Expr) -> bool:
    """Returns whether `node` is `LIMIT ALL`."""
    position = body.position(node)
    places = [i for i, token in enumerate(body.tokens) if body.text.offset + token.start + 1 == position]
    return bool(places) and body.tokens[places[0]].is_word("limit") and body.tokens[places[0] + 1].is_word("all")


def _count(binding: Binding, body: Body, node: exp.Expr | None, what: str) -> int | None:
    return None if node is None else _value(binding, body, node.expression, what)


def _value(binding: Binding, body: Body, node: exp.Expr, what: str) -> int | None:
    position = body.position(node)
    bound = Expressions(binding, body, Scope(), what).bind(node)
    if isinstance(bound, Unknown):
        if bound.text is None:
            return None
        bound = Expressions(binding, body, Scope(), what).literal(bound, INT8, node)
    if not isinstance(bound, Literal):
        raise UnsupportedForm(
            f"{what} of an expression is not supported", hint="Write a number or a parameter.", position=position
        )
    if not isinstance(bound.value, int) or isinstance(bound.value, bool):
        raise DatatypeMismatch(f"argument of {what} must be type bigint", position=position)
    if bound.value < 0:
        raise InvalidRowCount(f"{what} must not be negative", position=position)
    return bound.value


def ordered_rows(rows: Sequence[tuple[object, ...]], finishing: RowSetFinishing) -> list[tuple[object, ...]]:
    """Returns `rows` as `finishing` hands them out; text sorts by bytes, NaN above all numbers.

    Example:
        >>> finishing = RowSetFinishing((ColumnOrder(0, True, False),), 2, 0, (0,))
        >>> ordered_rows([(1,), (None,), (3,), (2,)], finishing)
        [(3,), (2,)]
    """
    result = list(rows)
    for key in reversed(finishing.order):
        nulls = [row for row in result if row[key.position] is None]
        others = [row for row in result if row[key.position] is not None]
        others.sort(key=lambda row: _sort_key(row[key.position]), reverse=key.descending)
        result = [*nulls, *others] if key.nulls_first else [*others, *nulls]
    stop = None if finishing.limit is None else finishing.offset + finishing.limit
    return [tuple(row[i] for i in finishing.project) for row in result[finishing.offset : stop]]


def _sort_key(value: object) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (value != value, value if value == value else 0.0)
    return value
