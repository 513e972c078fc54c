"""ORDER BY, LIMIT, OFFSET and FETCH: what follows a query, wherever it stands.

Owns PostgreSQL's rules for what a key of an order may be: the number of an output column, its name, else an
expression over what the query reads. What becomes of it, a top-k or the finishing of a one-off SELECT, the caller says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from mz_dagster.plan.functions import Unknown
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.plan.scalar import ColumnRef, Literal, Scalar
from mz_dagster.plan.types import INT8
from mz_dagster.sql.binding import Binding, Bound, name_of, only, unwrapped
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import (
    AmbiguousColumn,
    DatatypeMismatch,
    InvalidColumnReference,
    InvalidRowCount,
    InvalidRowOffset,
    InvalidSyntax,
    UndefinedColumn,
    UnsupportedForm,
)
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.scope import Scope

TAIL = ("order", "limit", "offset")


@dataclass(frozen=True, slots=True)
class Tail:
    """Is what follows a query, as syntax."""

    order: exp.Expr | None = None
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None

    def around(self, body: Body, node: exp.Expr) -> Tail:
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
        return Tail(parts["order"], parts["limit"], parts["offset"])


@dataclass(slots=True)
class OutputColumns:
    """Is a growing list of output columns: those that are handed out, then those only an order needs.

    Attributes:
        body: The text.
        names: The columns' names; those behind `shown` have none that can be referred to.
        items: What they are.
        nodes: Their syntax.
        expressions: Binds an expression; None where only output columns can be named.
        refused: Why an expression cannot be a key where `expressions` is None.
    """

    body: Body
    names: list[str]
    items: list[Bound]
    nodes: list[exp.Expr]
    expressions: Callable[[exp.Expr], Scalar] | None
    refused: UnsupportedForm | None = None
    shown: int = field(init=False)

    def __post_init__(self) -> None:
        self.shown = len(self.names)

    def order(self, node: exp.Expr | None) -> tuple[ColumnOrder, ...]:
        """Returns the keys of ORDER BY; what a key needs is appended."""
        if node is None:
            return ()
        only(self.body, node, "expressions", what="this form of ORDER BY")
        keys: list[ColumnOrder] = []
        for one in node.expressions:
            only(self.body, one, "this", "desc", "nulls_first", what="this form of ORDER BY")
            place = self.place(one.this, "ORDER BY")
            keys.append(ColumnOrder(place, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
        return tuple(keys)

    def place(self, node: exp.Expr, clause: str) -> int:
        """Returns which column `node` means in ORDER BY or DISTINCT ON."""
        node = unwrapped(node)
        position = self.body.position(node)
        ordinal = ordinal_of(self.body, node, clause)
        if ordinal is not None:
            if not 1 <= ordinal <= self.shown:
                raise InvalidColumnReference(f"{clause} position {ordinal} is not in select list", position=position)
            return ordinal - 1
        name = bare_name(node)
        if name is not None:
            places = [i for i in range(self.shown) if self.names[i] == name]
            if len({self._same(i) for i in places}) > 1:
                raise AmbiguousColumn(f'{clause} "{name}" is ambiguous', position=position)
            if places:
                return places[0]
        if self.expressions is None:
            if name is not None:
                raise UndefinedColumn(f'column "{name}" does not exist', position=position)
            raise self.refused or UnsupportedForm(
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                detail="Only result column names can be used, not expressions or functions.",
                hint="Add the expression to every SELECT, or move the UNION into a FROM clause.",
                position=position,
            )
        scalar = self.expressions(node)
        for i, item in enumerate(self.items):
            if item == scalar:
                return i
        self.items.append(scalar)
        self.nodes.append(node)
        self.names.append("?order?")
        return len(self.items) - 1

    def _same(self, place: int) -> object:
        item = self.items[place]
        return (item.position,) if isinstance(item, ColumnRef) else item


def ordinal_of(body: Body, node: exp.Expr, clause: str) -> int | None:
    """Returns the number that `node` is, None if it is no literal.

    Raises:
        InvalidSyntax: It is a literal, but no whole number.
    """
    sign = 1
    inner = node
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        sign, inner = -1, node.this
    if isinstance(inner, exp.Null | exp.Boolean):
        raise InvalidSyntax(f"non-integer constant in {clause}", position=body.position(node))
    if not isinstance(inner, exp.Literal):
        return None
    if inner.is_string or not str(inner.this).isdigit() or int(inner.this) >= 2**31:
        raise InvalidSyntax(f"non-integer constant in {clause}", position=body.position(node))
    return sign * int(inner.this)


def bare_name(node: exp.Expr) -> str | None:
    """Returns the name that `node` is, None if it is qualified or no name."""
    if isinstance(node, exp.Column) and node.args.get("table") is None and isinstance(node.this, exp.Identifier):
        return name_of(node.this)
    return None


def limit_of(binding: Binding, body: Body, node: exp.Expr | None) -> int | None:
    """Returns how many rows LIMIT or FETCH lets through; None is all."""
    if isinstance(node, exp.Fetch):
        options = node.args.get("limit_options")
        if options is not None:
            _refuse_ties(body, options, node)
            only(body, options, "rows", what="this form of FETCH")
        only(body, node, "direction", "count", "limit_options", what="this form of FETCH")
        count = node.args.get("count")
        return 1 if count is None else _value(binding, body, count, "LIMIT")
    if node is None or _is_all(body, node):
        return None
    options = node.args.get("limit_options")
    if options is not None:
        _refuse_ties(body, options, node)
    only(body, node, "expression", what="this form of LIMIT")
    return _value(binding, body, node.expression, "LIMIT")


def offset_of(binding: Binding, body: Body, node: exp.Expr | None) -> int:
    """Returns how many rows OFFSET leaves out."""
    if node is None:
        return 0
    only(body, node, "expression", what="this form of OFFSET")
    return _value(binding, body, node.expression, "OFFSET") or 0


def _first(clause: exp.Expr) -> exp.Expr:
    """Returns what a clause of a tail begins with behind its keywords."""
    parts = [*clause.expressions, clause.args.get("expression"), clause.args.get("count")]
    return next((one for one in parts if one is not None), clause)


def _refuse_ties(body: Body, options: exp.Expr, node: exp.Expr) -> None:
    if options.args.get("with_ties"):
        raise UnsupportedForm(
            "WITH TIES is not supported",
            detail="The number of rows would depend on the data.",
            hint="Keep the rows whose rank() OVER (ORDER BY ...) is at most the limit.",
            position=body.keyword_position("ties", node),
        )


def _is_all(body: Body, node: exp.Expr) -> bool:
    """Returns whether `node` is `LIMIT ALL`."""
    position = body.position(node)
    places = [i for i, token in enumerate(body.tokens) if body.text.offset + token.start + 1 == position]
    return bool(places) and body.tokens[places[0]].is_word("limit") and body.tokens[places[0] + 1].is_word("all")


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
        kind = InvalidRowCount if what == "LIMIT" else InvalidRowOffset
        raise kind(f"{what} must not be negative", position=position)
    return bound.value
