"""The output columns of a query as ORDER BY and DISTINCT ON see them.

Owns PostgreSQL's rules for what a key of an order may be: the number of an output column, its name, else an
expression over what the query reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from mz_dagster.functions import Unknown
from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.scalars.scalar import ColumnRef, Scalar
from mz_dagster.sql.binding import Bound, name_of, only_parts, unwrapped
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.collected_calls import SortKey
from mz_dagster.sql.errors import (
    AmbiguousColumn,
    InvalidColumnReference,
    InvalidSyntax,
    UndefinedColumn,
    UnsupportedForm,
)


@dataclass(slots=True)
class OutputColumns:
    """A growing list of output columns: those that are handed out, then those only an order needs.

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

    @property
    def typed_items(self) -> list[Scalar]:
        """The items that are no bare literals."""
        return [one for one in self.items if not isinstance(one, Unknown)]

    def order(self, node: exp.Expr | None) -> tuple[ColumnOrder, ...]:
        """Returns the keys of ORDER BY; what a key needs is appended."""
        if node is None:
            return ()
        only_parts(self.body, node, "expressions", what="this form of ORDER BY")
        keys: list[ColumnOrder] = []
        for one in node.expressions:
            only_parts(self.body, one, "this", "desc", "nulls_first", what="this form of ORDER BY")
            place = self.place(one.this, "ORDER BY")
            keys.append(ColumnOrder(place, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
        return tuple(keys)

    def given_order(self, keys: Sequence[SortKey], node: exp.Expr) -> tuple[ColumnOrder, ...]:
        """Returns the order in which the rows of FROM come; what a key needs is appended, for errors as `node`."""
        order: list[ColumnOrder] = []
        for key in keys:
            if key.scalar not in self.items:
                self.items.append(key.scalar)
                self.nodes.append(node)
                self.names.append("?order?")
            order.append(ColumnOrder(self.items.index(key.scalar), key.descending, key.nulls_first))
        return tuple(order)

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
            if len(places) > 1 and len({self._same(i) for i in places}) > 1:
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
    if inner.is_string or not str(inner.this).isdigit() or whole_number(inner.this) >= 2**31:
        raise InvalidSyntax(f"non-integer constant in {clause}", position=body.position(node))
    return sign * int(inner.this)


def bare_name(node: exp.Expr) -> str | None:
    """Returns the name that `node` is, None if it is qualified or no name."""
    if isinstance(node, exp.Column) and node.args.get("table") is None and isinstance(node.this, exp.Identifier):
        return name_of(node.this)
    return None
