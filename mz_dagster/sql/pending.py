"""A query that is bound but for the types of its bare literals.

Owns how such literals get their types from whoever uses the query: an arm of a UNION, a row to INSERT; and how an
order with a limit becomes part of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mz_dagster.functions import CastContext, Failure, Unknown, cast, common_type, type_name
from mz_dagster.functions.signature import ArgumentType
from mz_dagster.plan.relation import (
    ColumnOrder,
    Constant,
    Filter,
    Join,
    Map,
    Projection,
    Relation,
    TopK,
    Union,
    Window,
    WindowFunction,
)
from mz_dagster.plan.rewriting import reference
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT8, Column, RelationType, ScalarType
from mz_dagster.sql.binding import Bound, argument_type
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import DatatypeMismatch, error_of
from mz_dagster.sql.scope import Scope


@dataclass(slots=True)
class Pending:
    """A bound query whose bare literals have no type yet.

    Attributes:
        body: The text, for positions.
        rows: Alternatives that are added up: each a plan and one item per column over its columns.
        nodes: For each row its items' syntax.
        names: The columns' names, also of those behind `shown`.
        shown: How many columns are handed out; those behind them only an order needs. By default all.
        order: The order of the rows, over the columns.
        limit: How many rows at most are handed out, or None.
        offset: How many rows are left out first.
        limit_size: How many rows are expected in front of a limit.
        ordered_distinct: Whether the order has had its effect, in DISTINCT ON.
        scope: What the query reads, which a limit must not.
        order_position: Where in the text the order stands, if it may be lost by mistake.
    """

    body: Body
    rows: list[tuple[Relation, list[Bound]]]
    nodes: list[list[exp.Expr]]
    names: tuple[str, ...]
    shown: int = -1
    order: tuple[ColumnOrder, ...] = ()
    limit: int | None = None
    offset: int = 0
    limit_size: int | None = None
    ordered_distinct: bool = False
    scope: Scope = field(default_factory=Scope)
    order_position: int | None = None

    def __post_init__(self) -> None:
        if self.shown < 0:
            self.shown = len(self.names)

    def settled(self, *, keep_open: bool = False) -> Pending:
        """Returns the same query as one plan whose columns are its items.

        Bare literals become text; with `keep_open`, only within the plan, and stay open as items.
        """
        types = self.common_types("VALUES")
        relation = self.finish(types, "VALUES")
        literals = self.rows[0][1] if keep_open and len(self.rows) == 1 else []
        items: list[Bound] = [
            ColumnRef(i, column.type, column.nullable, self.names[i])
            for i, column in enumerate(relation.relation_type.columns)
        ]
        for i, item in enumerate(literals):
            if isinstance(item, Unknown):
                items[i] = item
        return replace(self, rows=[(relation, items)], nodes=self.nodes[:1])

    def trimmed(self) -> Pending:
        """Returns the query without an order and the columns that only it needs."""
        shown = self.shown
        rows = [(relation, items[:shown]) for relation, items in self.rows]
        nodes = [one[:shown] for one in self.nodes]
        return replace(self, rows=rows, nodes=nodes, names=self.names[:shown], order=(), ordered_distinct=False)

    def limited(self) -> Pending:
        """Returns the query with `order`, `limit` and `offset` made part of its plan."""
        if self.limit is None and self.offset == 0:
            return self.trimmed()
        settled = self.settled(keep_open=True)
        relation, items = settled.rows[0]
        top = TopK(relation, (), self.order, self.limit, self.offset, self.limit_size)
        limited = replace(settled, rows=[(top, items)], limit=None, offset=0, limit_size=None)
        return limited.trimmed()

    def cut(self, limit: int | Scalar | None, offset: int | Scalar, *, ties: bool) -> Pending:
        """Returns the query with a limit and an offset; with `ties` rows equal to the last one are let through, too.

        Numbers are left to whoever finishes the query. Scalars, and a limit with ties, are compared with the rows'
        numbers and ranks within the plan.
        """
        if not isinstance(offset, int) or not (limit is None or isinstance(limit, int)):
            return self._cut_by(limit, offset, ties=ties)
        if not ties or not limit:
            return replace(self, limit=limit, offset=offset)
        settled = self.settled(keep_open=True)
        relation, items = settled.rows[0]
        arity = relation.relation_type.arity
        ranked = Window(relation, (), self.order, (WindowFunction("rank", (), INT8, False),), ("rank",))
        last = Literal(min(offset + limit, 2**63 - 1), INT8)
        let_through = Filter(ranked, (Call("le_int8", (ColumnRef(arity, INT8, False), last), BOOL, False),))
        return replace(settled, rows=[(Projection(let_through, tuple(range(arity))), items)], offset=offset)

    def _cut_by(self, limit: int | Scalar | None, offset: int | Scalar, *, ties: bool) -> Pending:
        """Returns the query with bounds that the plan computes: in a row of their own, which fails whatever is read."""
        settled = self.settled(keep_open=True)
        relation, items = settled.rows[0]
        arity = relation.relation_type.arity
        names = ("row_number", "rank")
        functions = tuple(WindowFunction(name, (), INT8, False) for name in names)
        numbered = Window(relation, (), self.order, functions, names)
        bounds = tuple(one if isinstance(one, Scalar) else Literal(one, INT8) for one in (limit, offset))
        counts = Map(ONE_ROW, bounds, ("limit", "offset"))
        joined = Join((numbered, counts), ())
        number, rank, most, skipped = (reference(joined.relation_type, arity + i) for i in range(4))
        first = Call("coalesce", (skipped, Literal(0, INT8)), INT8, False)
        within = Call("subtract_int8", (rank if ties else number, first), INT8, False)
        tests = [
            Call("gt_int8", (number, first), BOOL, False),
            Call("or", (Call("is_null", (most,), BOOL, False), Call("le_int8", (within, most), BOOL)), BOOL),
        ]
        if ties:
            tests.append(Call("is_distinct_from", (most, Literal(0, INT8)), BOOL, False))
        let_through = Projection(Filter(joined, tuple(tests)), tuple(range(arity)))
        return replace(settled, rows=[(Union((let_through, _failures(counts, relation))), items)])

    def types(self) -> list[list[ArgumentType]]:
        """Returns, for each column, the types it has in the rows."""
        columns: list[list[ArgumentType]] = [[] for _ in self.names]
        for _, items in self.rows:
            for column, item in zip(columns, items, strict=True):
                column.append(argument_type(item))
        return columns

    def common_types(self, what: str) -> list[ScalarType]:
        """Returns one type for each column; columns of bare literals are text."""
        found: list[ScalarType] = []
        for i, types in enumerate(self.types()):
            type_ = common_type(types, what)
            if isinstance(type_, Failure):
                raise error_of(type_, self.body.position(self.nodes[-1][i]))
            found.append(type_)
        return found

    def finish(
        self,
        targets: Sequence[ScalarType],
        what: str,
        context: CastContext = CastContext.IMPLICIT,
        columns: Sequence[str] = (),
    ) -> Relation:
        """Returns the plan whose columns have the `targets`' types; a cast of another context may be asked for.

        Args:
            targets: One type for each column.
            what: For errors: `UNION`, `VALUES`, `INSERT`.
            context: Which casts apply by themselves.
            columns: For errors of an INSERT: the target columns.
        """
        finished: list[tuple[Relation, list[Scalar]]] = []
        for (relation, items), nodes in zip(self.rows, self.nodes, strict=True):
            scalars = [
                self._coerced(item, target, node, what, context, columns[i] if columns else self.names[i])
                for i, (item, target, node) in enumerate(zip(items, targets, nodes, strict=True))
            ]
            finished.append((relation, scalars))
        bare = all(relation is ONE_ROW for relation, _ in finished)
        if bare and all(isinstance(one, Literal) for _, scalars in finished for one in scalars):
            return self._constant([scalars for _, scalars in finished], targets)
        arms = tuple(projected(relation, scalars, self.names) for relation, scalars in finished)
        return arms[0] if len(arms) == 1 else Union(arms)

    def _constant(self, rows: list[list[Scalar]], targets: Sequence[ScalarType]) -> Constant:
        literals = tuple(tuple(one for one in row if isinstance(one, Literal)) for row in rows)
        columns = tuple(
            Column(name, target, any(row[i].value is None for row in literals))
            for i, (name, target) in enumerate(zip(self.names, targets, strict=True))
        )
        keys = frozenset({frozenset[int]()}) if len(rows) <= 1 else frozenset[frozenset[int]]()
        return Constant(literals, RelationType(columns, keys, True))

    def _coerced(
        self, item: Bound, target: ScalarType, node: exp.Expr, what: str, context: CastContext, column: str
    ) -> Scalar:
        position = self.body.position(node)
        if isinstance(item, Unknown):
            assigned = context is CastContext.ASSIGNMENT
            literal = item.as_type(target, assigned=assigned, rounds=assigned)
            if isinstance(literal, Failure):
                raise error_of(literal, position)
            return literal
        found = cast(item.type, target, context)
        if isinstance(found, Failure):
            if context is CastContext.ASSIGNMENT:
                raise DatatypeMismatch(
                    f'column "{column}" is of type {type_name(target)} '
                    f"but expression is of type {type_name(item.type)}",
                    hint="You will need to rewrite or cast the expression.",
                    position=position,
                )
            raise error_of(found, position)
        return found.apply(item)


def _failures(counts: Map, like: Relation) -> Relation:
    """Returns the errors of a row of counts, as no rows of another relation: they are there if that is known empty."""
    columns = like.relation_type.columns
    zero = Literal(0, INT8)
    negative = [Call("lt_int8", (reference(counts.relation_type, i), zero), BOOL) for i in range(2)]
    never = Filter(counts, (Call("or", tuple(negative), BOOL),))
    empty_row = Map(never, tuple(Literal(None, one.type) for one in columns), like.relation_type.names)
    return Projection(empty_row, tuple(range(2, 2 + len(columns))))


def projected(relation: Relation, scalars: Sequence[Scalar], names: Sequence[str]) -> Relation:
    """Returns the plan whose columns are `scalars` over `relation`, under `names`."""
    arity = relation.relation_type.arity
    positions: list[int] = []
    added: list[Scalar] = []
    added_names: list[str] = []
    for scalar, name in zip(scalars, names, strict=True):
        if isinstance(scalar, ColumnRef):
            positions.append(scalar.position)
        else:
            positions.append(arity + len(added))
            added.append(scalar)
            added_names.append(name)
    if added:
        relation = Map(relation, tuple(added), tuple(added_names))
    if positions == list(range(relation.relation_type.arity)):
        return relation
    return Projection(relation, tuple(positions))
