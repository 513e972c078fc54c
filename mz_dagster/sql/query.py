"""Binds queries: SELECT, VALUES, set operations, WITH.

Owns how queries compose: what is in parentheses, in a WITH clause, in FROM. What follows a query (ORDER BY, LIMIT,
OFFSET) becomes part of its plan, except for the outermost query of a one-off SELECT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from mz_dagster.plan.decorrelate import decorrelate
from mz_dagster.plan.dependence import is_dependent
from mz_dagster.plan.relation import Constant, Get, Let, Relation, TopK
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.sql.binding import BindingContext, Bound, CommonTable, OrderedRows, name_of, only_parts
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.comparability import check_comparable
from mz_dagster.sql.constant_lists import constant_nodes
from mz_dagster.sql.errors import (
    DuplicateAlias,
    InvalidColumnReference,
    InvalidRowCount,
    InvalidSyntax,
    UnsupportedForm,
)
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.from_clause import FromBinder
from mz_dagster.sql.ordering import TAIL, QueryTail, has_ties, limit_of, offset_of
from mz_dagster.sql.output_columns import OutputColumns
from mz_dagster.sql.pending import Pending
from mz_dagster.sql.scope import Scope
from mz_dagster.sql.select import SelectBinder, check_clauses
from mz_dagster.sql.set_operations import combined


@dataclass(slots=True)
class Queries:
    """Binds the queries of one text.

    Attributes:
        binding: The statement's state.
        body: The text.
    """

    binding: BindingContext
    body: Body

    def bind(
        self,
        node: exp.Expr,
        tables: dict[str, CommonTable],
        *,
        finishing: bool = False,
        drops_order: bool = False,
        tail: QueryTail | None = None,
    ) -> Pending:
        """Returns the bound query.

        Args:
            node: Its syntax.
            tables: The CTEs in scope.
            finishing: Whether its order, limit and offset are left to the caller; else they are part of the plan.
            drops_order: Whether its rows become a collection, so that nothing reads them in their order; an order
                without a limit has no effect either way.
            tail: What follows the parentheses around `node`.
        """
        tail = (tail or QueryTail()).around(self.body, node)
        inner = self.common_tables(node, tables)
        if isinstance(node, exp.Subquery):
            only_parts(self.body, node, "this", "with_", *TAIL)
            return self.bind(node.this, inner, finishing=finishing, drops_order=drops_order, tail=tail)
        match node:
            case exp.Select():
                pending = self._select(node, inner, tail.order)
            case exp.Union() | exp.Except() | exp.Intersect():
                pending = self._set_operation(node, inner, tail.order)
            case exp.Values():
                only_parts(self.body, node, "expressions", "alias", "with_", *TAIL)
                around = FromBinder(self.binding, self.body, inner, self.ordered)
                with self.binding.binding_by(
                    lambda one: self.derived(one, around), lambda one: self.ordered(one, around)
                ):
                    pending = self._values(node, tail.order)
            case _:
                raise UnsupportedForm("this form of query is not supported", position=self.body.position(node))
        counted = Expressions(self.binding, self.body, pending.scope, "LIMIT")
        around = FromBinder(self.binding, self.body, inner, self.ordered)
        with self.binding.binding_by(lambda one: self.derived(one, around), lambda one: self.ordered(one, around)):
            limit = limit_of(counted, tail.limit)
            offset = offset_of(replace(counted, clause="OFFSET"), tail.offset)
        cut = limit is not None or offset != 0
        ties = has_ties(self.body, tail)
        if ties and limit is None:
            message = "row count cannot be null in FETCH FIRST ... WITH TIES clause"
            raise InvalidRowCount(message, position=self.body.position(node))
        pending = pending.cut(limit, offset, ties=ties)
        by_order = cut or pending.ordered_distinct
        if tail.order is not None:
            pending.order_position = self.body.position(tail.order)
        if by_order and not pending.order:
            self.binding.order_reader = "LIMIT" if cut else "DISTINCT ON"
        if finishing:
            return pending
        if pending.order and not (by_order or drops_order):
            self.binding.lost_order = pending.order_position
        return pending.limited()

    def derived(self, node: exp.Expr, around: FromBinder) -> Relation:
        """Returns the plan of a query within a query, whose order does not count."""
        return _finished(node, self.bind(node, around.tables))

    def ordered(self, node: exp.Expr, around: FromBinder) -> OrderedRows:
        """Returns the plan of a query within a query whose order, if it has one, counts."""
        pending = self.bind(node, around.tables, finishing=True)
        if not pending.order:
            return OrderedRows(_finished(node, pending.limited()), pending.names)
        relation, _ = pending.settled().rows[0]
        position = None if pending.ordered_distinct else pending.order_position
        if pending.limit is not None or pending.offset:
            relation = TopK(relation, (), pending.order, pending.limit, pending.offset, pending.limit_size)
            position = None
        return OrderedRows(relation, pending.names[: pending.shown], pending.order, position)

    def common_tables(self, node: exp.Expr, tables: dict[str, CommonTable]) -> dict[str, CommonTable]:
        """Returns the CTEs in scope of a query: those around it, and its own."""
        clause = node.args.get("with_")
        if clause is None:
            return tables
        only_parts(self.body, clause, "expressions")
        inner, seen = dict(tables), set[str]()
        for cte in clause.expressions:
            only_parts(self.body, cte, "this", "alias", "materialized", "scalar")
            alias = cte.args["alias"]
            for named in (alias.this, *(alias.args.get("columns") or [])):
                self.body.check_name(named, alias=True)
            name = name_of(alias.this)
            if name in seen:
                raise DuplicateAlias(
                    f'WITH query name "{name}" specified more than once', position=self.body.position(alias)
                )
            seen.add(name)
            found = self.ordered(cte.this, FromBinder(self.binding, self.body, inner, self.ordered))
            own = found.names
            names = [name_of(one) for one in alias.args.get("columns") or []]
            if len(names) > len(own):
                raise InvalidColumnReference(
                    f'WITH query "{name}" has {len(own)} columns available but {len(names)} columns specified',
                    position=self.body.position(alias),
                )
            inner[name] = self._shared(replace(found, names=(*names, *own[len(names) :])))
        return inner

    def _shared(self, rows: OrderedRows) -> CommonTable:
        """Returns the table by which a CTE is read: a local name, to be bound around the whole query.

        One that depends on the rows around it is read as its own plan.
        """
        identity, read, level = self.binding.local_id(), rows.relation, len(self.binding.enclosing)
        if not (isinstance(read, Get | Constant) or is_dependent(read)):
            self.binding.lets.append((identity, read))
            read, level = Get(identity, read.relation_type, str(identity)), 0
        return CommonTable(identity, read, rows.names, level, rows.order, rows.order_position)

    def _select(self, node: exp.Select, tables: dict[str, CommonTable], order: exp.Expr | None) -> Pending:
        check_clauses(self.body, node)
        from_ = node.args.get("from_")
        if from_ is None and node.args.get("joins"):
            raise InvalidSyntax("syntax error: JOIN without FROM", position=self.body.position(node.args["joins"][0]))
        binder = FromBinder(self.binding, self.body, tables, self.ordered)
        with self.binding.binding_by(lambda one: self.derived(one, binder), lambda one: self.ordered(one, binder)):
            source = binder.bind(from_.this if from_ is not None else None, list(node.args.get("joins") or []))
            select = SelectBinder(self.binding, self.body, source.scope, source.order, source.order_position)
            return select.bind(node, source.relation, order)

    def _values(self, node: exp.Values, order: exp.Expr | None) -> Pending:
        expressions = Expressions(self.binding, self.body, Scope(), "VALUES")
        nodes: list[list[exp.Expr]] = []
        for row in node.expressions:
            bare = row.this if isinstance(row, exp.Paren) else row
            cells = list(row.expressions) if isinstance(row, exp.Tuple) else [bare]
            if nodes and len(cells) != len(nodes[0]):
                raise InvalidSyntax("VALUES lists must all be the same length", position=self.body.position(row))
            if isinstance(cells[0], exp.RawString):  # the one cells of all rows
                nodes += [[one] for one in constant_nodes(self.body, cells[0])]
            else:
                nodes.append(cells)
        rows: list[tuple[Relation, list[Bound]]] = [(ONE_ROW, list(map(expressions.bind, cells))) for cells in nodes]
        names = tuple(f"column{i + 1}" for i in range(len(nodes[0])))
        refused = UnsupportedForm(
            "ORDER BY an expression over VALUES is not supported",
            hint="Put VALUES into FROM.",
            position=self.body.position(order) if order is not None else None,
        )
        outputs = OutputColumns(self.body, list(names), [], [], None, refused)
        return Pending(self.body, rows, nodes, names, order=outputs.order(order))

    def _set_operation(self, node: exp.Expr, tables: dict[str, CommonTable], order: exp.Expr | None) -> Pending:
        only_parts(self.body, node, "this", "expression", "distinct", "with_", *TAIL, what="this form of set operation")
        left, right = self.bind(node.this, tables), self.bind(node.expression, tables)
        pending = combined(self.binding, self.body, node, left, right)
        _, items = pending.rows[0]
        outputs = OutputColumns(self.body, list(pending.names), list(items), pending.nodes[0], None)
        pending.order = outputs.order(order)
        return pending


def _finished(node: exp.Expr, pending: Pending) -> Relation:
    what = "VALUES" if isinstance(node, exp.Values) else "UNION"
    return pending.finish(pending.common_types(what), what)


def with_lets(relation: Relation, binding: BindingContext, position: int | None = None) -> Relation:
    """Returns `relation` within the bindings of all CTEs, outermost first, without subqueries.

    Raises:
        UnsupportedForm: It compares values that cannot be compared exactly, blamed at `position`; or an order that has
            no effect may be missed.
    """
    binding.check_order()
    for part in (relation, *(value for _, value in binding.lets)):
        check_comparable(part, position)
    for identity, value in reversed(binding.lets):
        relation = Let(identity, value, relation)
    return decorrelate(relation, binding.local_id)
