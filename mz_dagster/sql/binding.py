"""What binding one statement carries along: resolver, parameters, CTEs in scope, and what was used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp

from mz_dagster.formalism import GlobalId
from mz_dagster.functions import ArgumentType, Unknown
from mz_dagster.functions.evaluation import is_constant, known_value
from mz_dagster.plan.reading_time import with_position
from mz_dagster.plan.relation import ColumnOrder, Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.plan.rewriting import with_ids_of
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.sql.body_parser import RECURSION_HINT, RECURSION_REASON, Body
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.enclosing import Enclosing
from mz_dagster.sql.errors import (
    QueryOfTwoTimelines,
    UndefinedParameter,
    UndefinedTable,
    UnsupportedForm,
    WrongObjectKind,
)
from mz_dagster.sql.lexer import fold
from mz_dagster.sql.parameters import literal_of_value
from mz_dagster.sql.type_names import looked_up


class Null(Enum):
    """The text that NULL is."""

    NULL = "NULL"


#: What a bound expression is before its context has decided the type of a bare literal.
Bound = Scalar | Unknown


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A CTE in scope.

    Attributes:
        id: A local id.
        relation: What reads it; its own plan, if it depends on the rows around its query.
        names: Of its columns; those behind them only the order needs.
        level: How many rows were around it when it was bound.
        order: Of its rows, over the columns of `relation`.
        order_position: As of `OrderedRows`.
    """

    id: GlobalId
    relation: Relation
    names: tuple[str, ...]
    level: int = 0
    order: tuple[ColumnOrder, ...] = ()
    order_position: int | None = None


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """A query whose order counts for what reads it, though it is not part of its plan.

    Attributes:
        relation: The plan: the query's columns, then those only the order needs.
        names: Of the query's columns.
        order: Over its columns.
        order_position: Where in the text the order stands, unless a limit or DISTINCT ON has made use of it already.
    """

    relation: Relation
    names: tuple[str, ...]
    order: tuple[ColumnOrder, ...] = ()
    order_position: int | None = None


@dataclass(slots=True)
class BindingContext:
    """Carries the state of binding one statement.

    Attributes:
        resolver: Answers names.
        parameters: The values of `?`, in order.
        is_of_moment: Whether somebody has asked when or by whom it is executed, or what the system catalogs say.
        depends: The ids of all items used, in order of use.
        names: The names as used, and what they stood for.
        uses: Where in the text each name stands, as its position.
        timelines: The timelines used, each with the name that brought it.
        locals: How many local ids were given out.
        lets: The CTEs, in the order in which each may read those before it.
        enclosing: The rows around the query that is bound now, innermost last.
        lost_order: The position of an ORDER BY without effect: what reads the rows of its query gets them in no order.
            That of a derived table or a CTE that is all that FROM has is the order of what reads it.
        order_reader: What goes by the order of the rows that it reads, since it has no ORDER BY of its own.
        bind_query: Binds a subquery of an expression at this place; None where there is no query around it.
        bind_ordered: Binds one whose order counts; None likewise.
    """

    resolver: Resolver
    parameters: Sequence[object] = ()
    _circumstances: Circumstances | None = None
    is_of_moment: bool = False
    depends: dict[GlobalId, None] = field(default_factory=dict)
    names: dict[str, GlobalId] = field(default_factory=dict)
    uses: list[tuple[int, str]] = field(default_factory=list)
    timelines: dict[str, str] = field(default_factory=dict)
    locals: int = 0
    lets: list[tuple[GlobalId, Relation]] = field(default_factory=list)
    enclosing: list[Enclosing] = field(default_factory=list)
    lost_order: int | None = None
    order_reader: str | None = None
    bind_query: Callable[[exp.Expr], Relation] | None = None
    bind_ordered: Callable[[exp.Expr], OrderedRows] | None = None

    @property
    def is_definition(self) -> bool:
        """Whether it is bound to hold at all times, and not executed once."""
        return self._circumstances is None

    @property
    def circumstances(self) -> Circumstances | None:
        """When and by whom it is executed; None for a definition, which must not depend on that.

        What asks for it knows no more than at the next execution: what it binds is of this one alone.
        """
        self.is_of_moment = True
        return self._circumstances

    @contextmanager
    def binding_by(
        self,
        bind_query: Callable[[exp.Expr], Relation],
        bind_ordered: Callable[[exp.Expr], OrderedRows] | None = None,
    ) -> Iterator[None]:
        """Lets subqueries of expressions be bound by these for the duration of the block."""
        before = self.bind_query, self.bind_ordered
        self.bind_query, self.bind_ordered = bind_query, bind_ordered
        try:
            yield
        finally:
            self.bind_query, self.bind_ordered = before

    def local_id(self) -> GlobalId:
        """Returns an id for a shared subplan that no other in this statement has."""
        self.locals += 1
        return GlobalId(f"let:{self.locals}")

    def item(self, parts: tuple[str, ...], position: int) -> Item:
        """Returns what a name stands for, and notes its use.

        Raises:
            UndefinedTable: Nothing bears the name.
            QueryOfTwoTimelines: It is on another timeline than what was used before.
        """
        name = ".".join(parts)
        item = self.resolver.resolve(parts)
        if item is None or item.kind == "type":
            raise UndefinedTable.named(name, self.resolver.names() if item is None else (), position)
        if item.kind == "index":
            raise WrongObjectKind(f'"{name}" is an index', hint="Read what it is on.", position=position)
        if item.kind in ("connection", "secret"):
            raise WrongObjectKind(f'"{name}" is a {item.kind}', hint="It has no rows to be read.", position=position)
        if item.kind == "sink":
            raise WrongObjectKind(f'"{name}" is a sink', hint="Read what it writes.", position=position)
        self.depends[item.id] = None
        self.names[name] = item.id
        self.uses.append((position, name))
        if item.timeline is not None:
            self.timelines.setdefault(item.timeline, name)
            if len(self.timelines) > 1:
                first, *_ = ((one, user) for one, user in self.timelines.items() if one != item.timeline)
                raise QueryOfTwoTimelines(
                    "a query cannot read collections of two timelines",
                    detail=f'"{first[1]}" is on timeline "{first[0]}", "{name}" on "{item.timeline}"; '
                    "their times never compare.",
                    hint="Declare the sources IN TIMELINE of one name.",
                    position=position,
                )
        return item

    def type_named(self, type_: ScalarType, position: int) -> ScalarType:
        """Returns a type as written, with what the name of an enumeration stands for, and notes its use.

        Raises:
            UndefinedType: It stands for nothing.
        """

        def resolve(parts: tuple[str, ...]) -> Item | None:
            item = self.resolver.resolve(parts)
            if item is not None:
                self.names[".".join(parts)] = item.id
            return item

        return looked_up(type_, resolve, position)

    def relation(self, parts: tuple[str, ...], position: int) -> tuple[Relation, Item]:
        """Returns the plan that reads what a name stands for, and that."""
        item = self.item(parts, position)
        if item.expansion is None:
            return item.relation(), item
        # What is wrong with its mz_now() is wrong where it is named: its own text is another one.
        return with_position(with_ids_of(item.expansion, item.id), position), item

    def check_order(self) -> None:
        """Raises UnsupportedForm if something would go by an order that is lost: nothing is ever dropped silently."""
        if self.lost_order is not None and self.order_reader is not None:
            raise self.order_is_lost(self.lost_order, self.order_reader)

    def order_is_lost(self, position: int | None, reader: str) -> UnsupportedForm:
        """Returns the error of what would go by an order, at `position`, that its rows do not come in."""
        return UnsupportedForm(
            f"ORDER BY in a subquery is not supported beside {reader} without an order",
            detail="The rows that it reads have no order: a join, a grouping or another order comes in between.",
            hint=f"Write the order where it counts: with {reader}.",
            position=position,
        )

    def parameter(self, index: int, position: int) -> Bound:
        """Returns the value of the `?` with that number, as a literal."""
        if index >= len(self.parameters):
            raise UndefinedParameter(
                f"there is no parameter ${index + 1}",
                detail=f"{len(self.parameters)} values were given.",
                hint="Give one value for each ?.",
                position=position,
            )
        return literal_of_value(self.parameters[index], position)


def argument_type(bound: Bound) -> ArgumentType:
    """Returns the type by which a call is resolved."""
    return bound if isinstance(bound, Unknown) else bound.type


def constant_text(bound: Bound) -> str | Null | None:
    """Returns the text of a literal, or of casts of one, as drivers cast parameters; None of anything else.

    NULL has none, but is known, too: it is what a parameter is as long as only the types of a statement are asked for.
    """
    if isinstance(bound, Unknown):
        return Null.NULL if bound.text is None else bound.text
    if bound.type.kind not in (Kind.TEXT, Kind.VARCHAR, Kind.CHAR) or not is_constant(bound):
        return None
    value = known_value(bound)
    return value if isinstance(value, str) else Null.NULL


def qualifier_of(column: exp.Column) -> str | None:
    """Returns what a column is qualified by: a relation, perhaps with its schema; None if by nothing."""
    parts = [name_of(one) for one in (column.args.get("db"), column.args.get("table")) if one is not None]
    return ".".join(parts) if parts else None


def name_of(node: exp.Expr | str | None) -> str:
    """Returns an identifier folded as SQL folds it."""
    if isinstance(node, exp.Identifier):
        text: str = node.this
        return text if node.args.get("quoted") else fold(text)
    return fold(str(node)) if isinstance(node, str) else ""


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Returns what stands in parentheses, or `node` itself."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_prefixed(body: Body, node: exp.Cast) -> bool:
    """Returns whether a cast's type stands before what is cast, as in `date '2020-01-01'`."""
    whole, type_ = body.span(node), body.span(node.args["to"])
    return whole is not None and type_ is not None and whole[0] == type_[0]


def only_parts(
    body: Body, node: exp.Expr, *expected: str, what: str = "this clause", reason: str | None = None
) -> None:
    """Refuses `node` if it carries anything but the `expected` parts: nothing is ever dropped silently."""
    for name, value in node.args.items():
        if name in expected or not value:
            continue
        blamed = value[0] if isinstance(value, list) else value
        position = body.position(blamed) if isinstance(blamed, exp.Expr) else body.position(node)
        if name in _KEYWORDS:
            position = body.keyword_position(_KEYWORDS[name], node)
        label, why = _CLAUSES.get(name, (what, reason))
        raise UnsupportedForm(
            f"{label} is not supported",
            detail=why or "It has no exact plan yet.",
            hint=_HINTS.get(name),
            position=position,
        )


#: Clauses whose syntax tree does not say where they stand, by the word that opens them.
_KEYWORDS = {
    "distinct": "distinct",
    "locks": "for",
    "sample": "tablesample",
    "recursive": "recursive",
    "windows": "window",
    "pivots": "pivot",
    "symmetric": "symmetric",
}
_CLAUSES: dict[str, tuple[str, str | None]] = {
    "order": ("ORDER BY here", "Rows of a collection have no order; only a one-off SELECT orders its result."),
    "limit": ("LIMIT here", None),
    "offset": ("OFFSET here", None),
    "locks": ("a row lock here", "What is defined locks nothing: lock where it is read."),
    "laterals": ("LATERAL VIEW", "PostgreSQL has no such clause."),
    "sample": ("TABLESAMPLE", "A sample is not a function of the collection."),
    "into": ("INTO", "A SELECT creates nothing."),
    "pivots": ("PIVOT", None),
    "recursive": ("WITH RECURSIVE", RECURSION_REASON),
    "ordinality": ("WITH ORDINALITY", None),
    "only": ("ONLY", "Tables do not inherit."),
    "with_": ("WITH here", None),
    "hint": ("a hint", None),
    "match": ("MATCH_RECOGNIZE", None),
}
_HINTS = {"recursive": RECURSION_HINT}
