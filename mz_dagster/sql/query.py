"""Binds queries: SELECT, VALUES, UNION ALL, WITH.

Owns how clauses compose. A bound query is *pending* until its columns' types are settled: an arm of a UNION or a
row to INSERT still has its bare literals open, and whoever uses the query decides their types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mz_dagster.plan.functions import CastContext, Failure, Unknown, cast, common_type, literal_of, type_name
from mz_dagster.plan.functions.signature import ArgumentType
from mz_dagster.plan.relation import Constant, Filter, Get, Let, Map, Project, Relation, Union
from mz_dagster.plan.scalar import ColumnRef, Literal, Scalar
from mz_dagster.plan.types import Column, RelationType, ScalarType
from mz_dagster.sql.binding import Binding, Bound, CommonTable, name_of, only
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    DuplicateAlias,
    InvalidColumnReference,
    InvalidSyntax,
    UnsupportedForm,
    error_of,
)
from mz_dagster.sql.expressions import Expressions, argument_type
from mz_dagster.sql.from_clause import ONE_ROW, FromBinder
from mz_dagster.sql.output_names import output_name
from mz_dagster.sql.scope import Scope

_FINISHING = ("order", "limit", "offset")


@dataclass(slots=True)
class Pending:
    """Is a bound query whose bare literals have no type yet.

    Attributes:
        body: The text, for positions.
        rows: Alternatives that are added up: each a plan and one item per column over its columns.
        nodes: For each row its items' syntax.
        names: The columns' names.
        scope: What ORDER BY may name besides the output columns; None after UNION.
    """

    body: Body
    rows: list[tuple[Relation, list[Bound]]]
    nodes: list[list[exp.Expr]]
    names: tuple[str, ...]
    scope: Scope | None = None

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
            literal = literal_of(item.text, target)
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
    return Project(relation, tuple(positions))


@dataclass(slots=True)
class Queries:
    """Binds the queries of one text.

    Attributes:
        binding: The statement's state.
        body: The text.
    """

    binding: Binding
    body: Body

    def bind(self, node: exp.Expr, tables: dict[str, CommonTable], *, finishing: bool = False) -> Pending:
        """Returns the bound query; with `finishing`, its ORDER BY, LIMIT and OFFSET are left to the caller."""
        if isinstance(node, exp.Subquery):
            only(self.body, node, "this", "with_", *(_FINISHING if finishing else ()))
            if (
                finishing
                and any(node.args.get(one) for one in _FINISHING)
                and any(node.this.args.get(one) for one in _FINISHING)
            ):
                only(self.body, node.this, *(one for one in node.this.args if one not in _FINISHING))
            return self.bind(node.this, self._with(node, tables), finishing=finishing)
        inner = self._with(node, tables)
        allowed = ("with_", *(_FINISHING if finishing else ()))
        match node:
            case exp.Select():
                only(self.body, node, "expressions", "from_", "joins", "where", "kind", *allowed)
                pending = self._select(node, inner)
            case exp.Union():
                pending = self._union(node, inner, allowed)
            case exp.Except() | exp.Intersect():
                word = "EXCEPT" if isinstance(node, exp.Except) else "INTERSECT"
                raise UnsupportedForm(
                    f"{word} is not supported",
                    detail="It is not maintained yet.",
                    position=self._set_position(node, word.lower()),
                )
            case exp.Values():
                only(self.body, node, "expressions", "alias", *allowed)
                pending = self._values(node)
            case _:
                raise UnsupportedForm("this form of query is not supported", position=self.body.position(node))
        return pending

    def derived(self, node: exp.Expr, around: FromBinder) -> tuple[Relation, tuple[str, ...]]:
        """Returns the plan and the column names of a query within a query."""
        pending = self.bind(node, around.tables)
        what = "VALUES" if isinstance(node, exp.Values) else "UNION"
        return pending.finish(pending.common_types(what), what), pending.names

    def _with(self, node: exp.Expr, tables: dict[str, CommonTable]) -> dict[str, CommonTable]:
        clause = node.args.get("with_")
        if clause is None:
            return tables
        only(self.body, clause, "expressions")
        inner, seen = dict(tables), set[str]()
        for cte in clause.expressions:
            only(self.body, cte, "this", "alias", "materialized", "scalar")
            alias = cte.args["alias"]
            for named in (alias.this, *(alias.args.get("columns") or [])):
                self.body.check_name(named, alias=True)
            if not self.body.follows(cte.this, "as", "materialized"):
                raise InvalidSyntax("syntax error: WITH needs AS", position=self.body.position(cte.this))
            name = name_of(alias.this)
            if name in seen:
                raise DuplicateAlias(
                    f'WITH query name "{name}" specified more than once', position=self.body.position(alias)
                )
            seen.add(name)
            relation, own = self.derived(cte.this, FromBinder(self.binding, self.body, inner, self.derived))
            names = [name_of(one) for one in alias.args.get("columns") or []]
            if len(names) > len(own):
                raise InvalidColumnReference(
                    f'WITH query "{name}" has {len(own)} columns available but {len(names)} columns specified',
                    position=self.body.position(alias),
                )
            inner[name] = self._shared(relation, (*names, *own[len(names) :]))
        return inner

    def _shared(self, relation: Relation, names: tuple[str, ...]) -> CommonTable:
        """Returns the table by which a CTE is read: a local name, to be bound around the whole query."""
        if isinstance(relation, Get | Constant):
            return CommonTable(self.binding.local_id(), relation, names)
        identity = self.binding.local_id()
        self.binding.lets.append((identity, relation))
        return CommonTable(identity, Get(identity, relation.relation_type, str(identity)), names)

    def _select(self, node: exp.Select, tables: dict[str, CommonTable]) -> Pending:
        if node.args.get("kind"):
            raise UnsupportedForm("SELECT AS is not supported", position=self.body.position(node))
        from_ = node.args.get("from_")
        if from_ is None and node.args.get("joins"):
            raise InvalidSyntax("syntax error: JOIN without FROM", position=self.body.position(node.args["joins"][0]))
        binder = FromBinder(self.binding, self.body, tables, self.derived)
        source = binder.bind(from_.this if from_ is not None else None, list(node.args.get("joins") or []))
        relation = source.relation
        where = node.args.get("where")
        if where is not None:
            expressions = Expressions(self.binding, self.body, source.scope, "WHERE")
            relation = Filter(relation, (expressions.boolean(where.this, "WHERE"),))
        expressions = Expressions(self.binding, self.body, source.scope)
        items: list[Bound] = []
        nodes: list[exp.Expr] = []
        names: list[str] = []
        for item in node.expressions:
            star = self._star(item, source.scope)
            if star is not None:
                for reference in star:
                    items.append(reference)
                    nodes.append(item)
                    names.append(reference.name)
                continue
            if isinstance(item, exp.Alias):
                self.body.check_name(item.args["alias"], label=True)
            items.append(expressions.bind(item.this if isinstance(item, exp.Alias) else item))
            nodes.append(item)
            names.append(output_name(self.body, item))
        if not items:
            raise UnsupportedForm(
                "a SELECT without columns is not supported",
                hint="Select a constant.",
                position=self.body.position(node),
            )
        return Pending(self.body, [(relation, items)], [nodes], tuple(names), source.scope)

    def _star(self, item: exp.Expr, scope: Scope) -> list[ColumnRef] | None:
        if isinstance(item, exp.Star):
            only(self.body, item, what="this form of *")
            if not scope.tables:
                raise InvalidSyntax("SELECT * with no tables specified is not valid", position=self.body.position(item))
            return [column.reference for column in scope.visible]
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            only(self.body, item, "this", "table", what="this form of *")
            only(self.body, item.this, what="this form of *")
            table = scope.table(name_of(item.args["table"]), self.body.position(item))
            return [column.reference for column in table.columns]
        return None

    def _values(self, node: exp.Values) -> Pending:
        expressions = Expressions(self.binding, self.body, Scope(), "VALUES")
        rows: list[tuple[Relation, list[Bound]]] = []
        nodes: list[list[exp.Expr]] = []
        for row in node.expressions:
            bare = row.this if isinstance(row, exp.Paren) else row
            cells = list(row.expressions) if isinstance(row, exp.Tuple) else [bare]
            if nodes and len(cells) != len(nodes[0]):
                raise InvalidSyntax("VALUES lists must all be the same length", position=self.body.position(row))
            rows.append((ONE_ROW, [expressions.bind(cell) for cell in cells]))
            nodes.append(cells)
        names = tuple(f"column{i + 1}" for i in range(len(nodes[0])))
        return Pending(self.body, rows, nodes, names, Scope())

    def _union(self, node: exp.Union, tables: dict[str, CommonTable], allowed: tuple[str, ...]) -> Pending:
        position = self._set_position(node, "union")
        if node.args.get("distinct") is not False:
            raise UnsupportedForm(
                "UNION is not supported",
                detail="Distinct is not maintained yet.",
                hint="Use UNION ALL if rows may repeat.",
                position=position,
            )
        only(self.body, node, "this", "expression", "distinct", *allowed, what="this form of UNION")
        left, right = self.bind(node.this, tables), self.bind(node.expression, tables)
        if len(left.names) != len(right.names):
            raise InvalidSyntax(
                "each UNION query must have the same number of columns", position=self.body.position(node.expression)
            )
        both = Pending(self.body, [*left.rows, *right.rows], [*left.nodes, *right.nodes], left.names)
        types = both.common_types("UNION")
        relation = both.finish(types, "UNION")
        items: list[Bound] = [
            ColumnRef(i, column.type, column.nullable, left.names[i])
            for i, column in enumerate(relation.relation_type.columns)
        ]
        return Pending(self.body, [(relation, items)], [left.nodes[0]], left.names)

    def _set_position(self, node: exp.Expr, word: str) -> int:
        """Returns the position of the word between the operands of a set operation."""
        left, right = self.body.span(node.this), self.body.span(node.expression)
        for token in self.body.tokens:
            if left and right and left[1] <= token.start < right[0] and token.is_word(word):
                return self.body.text.offset + token.start + 1
        return self.body.keyword_position(word, node)


def with_lets(relation: Relation, binding: Binding) -> Relation:
    """Returns `relation` within the bindings of all CTEs, outermost first."""
    for identity, value in reversed(binding.lets):
        relation = Let(identity, value, relation)
    return relation
