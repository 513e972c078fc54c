"""Binds FROM: relations, aliases, derived tables, inner joins; ON becomes a filter over a join.

Owns which columns a FROM clause offers. Comma binds looser than JOIN, so the relation before a comma is not visible
in the ON behind it. Which predicates are equalities that a join can look up by is decided later, by a transform.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from mz_dagster.plan.functions import Failure, common_type
from mz_dagster.plan.relation import Constant, Filter, Join, Map, Relation
from mz_dagster.plan.scalar import Scalar
from mz_dagster.plan.types import RelationType
from mz_dagster.sql.binding import Binding, CommonTable, name_of, only
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import (
    AmbiguousColumn,
    DuplicateColumn,
    InvalidColumnReference,
    InvalidSyntax,
    UndefinedColumn,
    UnsupportedForm,
    error_of,
    suggestion,
)
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.scope import Scope, ScopeColumn

#: The relation of one row without columns.
ONE_ROW = Constant(((),), RelationType((), frozenset({frozenset()}), True))

BindQuery = Callable[[exp.Expr, "FromBinder"], "tuple[Relation, tuple[str, ...]]"]


@dataclass(frozen=True, slots=True)
class Source:
    """Is a bound part of FROM: a plan and what can be named in it."""

    relation: Relation
    scope: Scope


@dataclass(slots=True)
class FromBinder:
    """Binds one FROM clause.

    Attributes:
        binding: The statement's state.
        body: The text.
        tables: CTEs in scope, by name.
        bind_query: Binds a derived table.
    """

    binding: Binding
    body: Body
    tables: dict[str, CommonTable]
    bind_query: BindQuery

    def bind(self, first: exp.Expr | None, joins: list[exp.Join]) -> Source:
        """Returns the clause's plan; without FROM, the one row without columns."""
        if first is None:
            return Source(ONE_ROW, Scope())
        items: list[Source] = [self._item(first)]
        for join in joins:
            right = join.this
            if self._after_comma(join):
                items.append(self._item(right))
                continue
            items[-1] = self._join(items[-1], join)
        combined = items[0]
        blamed = [first, *(join.this for join in joins if self._after_comma(join))]
        for node, item in zip(blamed[1:], items[1:], strict=True):
            combined = self._cross(combined, item, node)
        return combined

    def _after_comma(self, join: exp.Join) -> bool:
        span = self.body.span(join.this)
        if span is None:
            return False
        before = [token for token in self.body.tokens if token.end <= span[0]]
        while before and before[-1].is_symbol("("):
            before.pop()
        return bool(before) and before[-1].is_symbol(",")

    def _cross(self, left: Source, right: Source, node: exp.Expr) -> Source:
        by = left.relation.relation_type.arity
        scope = left.scope.beside(right.scope, by, self.body.position(node))
        if left.relation is ONE_ROW:
            return right
        return Source(Join((left.relation, right.relation), ()), scope)

    def _join(self, left: Source, join: exp.Join) -> Source:
        side, kind, method = (str(join.args.get(one) or "").upper() for one in ("side", "kind", "method"))
        position = self._join_position(join)
        if side or kind not in ("", "INNER", "CROSS") or method:
            what = " ".join(word for word in (method, side, kind, "JOIN") if word)
            reason = "Only inner and cross joins are maintained yet."
            raise UnsupportedForm(f"{what} is not supported", detail=reason, position=position)
        only(self.body, join, "this", "kind", "on", "using", what="this form of JOIN")
        on, using = join.args.get("on"), join.args.get("using")
        if kind == "CROSS" and (on is not None or using):
            raise InvalidSyntax("syntax error: CROSS JOIN has no condition", position=position)
        if kind != "CROSS" and on is None and not using:
            raise InvalidSyntax("syntax error: JOIN needs ON or USING", position=position)
        right = self._item(join.this)
        joined = self._cross(left, right, join.this)
        if on is not None:
            binder = Expressions(self.binding, self.body, joined.scope, "JOIN/ON")
            predicate = binder.boolean(on, "JOIN/ON")
            return Source(Filter(joined.relation, (predicate,)), joined.scope)
        return self._using(left, right, joined, using) if using else joined

    def _join_position(self, join: exp.Join) -> int:
        """Returns the position of the first of the words that spell the join."""
        span = self.body.span(join.this)
        words = ("left", "right", "full", "natural", "join", "inner", "outer", "cross", "semi", "anti", "asof")
        found = self.body.position(join.this)
        for token in reversed([one for one in self.body.tokens if span is not None and one.end <= span[0]]):
            if token.is_word(*words):
                found = self.body.text.offset + token.start + 1
            elif not token.is_symbol("("):
                break
        return found

    def _using(self, left: Source, right: Source, joined: Source, using: list[exp.Expr]) -> Source:
        by = left.relation.relation_type.arity
        relation: Relation = joined.relation
        predicates: list[Scalar] = []
        merged: list[ScopeColumn] = []
        binder = Expressions(self.binding, self.body, joined.scope, "JOIN/USING")
        names = [name_of(one) for one in using]
        for node, name in zip(using, names, strict=True):
            position = self.body.position(node)
            if names.count(name) > 1:
                raise DuplicateColumn(f'column name "{name}" appears more than once in USING clause', position=position)
            lefts = self._using_side(left, name, "left", position)
            rights = self._using_side(right, name, "right", position).shifted(by)
            predicates.append(binder.operator("=", [lefts.reference, rights.reference], position))
            target = common_type([lefts.type, rights.type], "JOIN/USING")
            if isinstance(target, Failure):
                raise error_of(target, position)
            if target == lefts.type:
                merged.append(lefts)
                continue
            value = binder.as_type(lefts.reference, target, node, "JOIN/USING")
            relation = Map(relation, (value,), (name,))
            merged.append(ScopeColumn(name, relation.relation_type.arity - 1, target, value.nullable))
        rest = [column for column in joined.scope.visible if column.name not in names]
        visible = (*merged, *rest)
        return Source(Filter(relation, tuple(predicates)), Scope(joined.scope.tables, visible))

    def _using_side(self, side: Source, name: str, which: str, position: int) -> ScopeColumn:
        found = [column for column in side.scope.visible if column.name == name]
        if len(found) > 1:
            raise AmbiguousColumn(
                f'common column name "{name}" appears more than once in {which} table', position=position
            )
        if not found:
            raise UndefinedColumn(
                f'column "{name}" specified in USING clause does not exist in {which} table',
                hint=suggestion(name, [column.name for column in side.scope.visible]),
                position=position,
            )
        return found[0]

    def _item(self, node: exp.Expr) -> Source:
        match node:
            case exp.Table():
                return self._table(node)
            case exp.Subquery() if isinstance(node.this, exp.Table):
                only(self.body, node, "this")
                inner = node.this
                return self.bind(_without_joins(inner), list(inner.args.get("joins") or []))
            case exp.Subquery() | exp.Values():
                joins = list(node.args.get("joins") or [])
                return self.bind(_without_joins(node), joins) if joins else self._derived(node)
            case exp.Lateral():
                raise UnsupportedForm(
                    "LATERAL is not supported",
                    detail="Correlated relations are not maintained yet.",
                    position=self.body.position(node),
                )
            case _:
                raise UnsupportedForm(
                    "this form in FROM is not supported",
                    hint="Use relations, derived tables and VALUES.",
                    position=self.body.position(node),
                )

    def _table(self, node: exp.Table) -> Source:
        position = self.body.position(node)
        if not isinstance(node.this, exp.Identifier):
            raise UnsupportedForm(
                "a function in FROM is not supported",
                detail="Functions that return rows are not maintained yet.",
                position=position,
            )
        joins = list(node.args.get("joins") or [])
        if joins:
            return self.bind(_without_joins(node), joins)
        only(self.body, node, "this", "db", "catalog", "alias")
        parts = tuple(name_of(one) for one in (node.args.get("catalog"), node.args.get("db"), node.this) if one)
        alias, names = self._alias(node)
        if len(parts) == 1 and parts[0] in self.tables:
            common = self.tables[parts[0]]
            return self._aliased(common.relation, common.names, alias or parts[0], names, node)
        relation, own = self.binding.relation(parts, position)
        return self._aliased(relation, own, alias or parts[-1], names, node)

    def _derived(self, node: exp.Subquery | exp.Values) -> Source:
        alias, names = self._alias(node)
        if isinstance(node, exp.Subquery):
            only(self.body, node, "this", "alias")
            query = node.this
        else:
            only(self.body, node, "expressions", "alias")
            query = node
        if alias is None:
            raise InvalidSyntax(
                "subquery in FROM must have an alias",
                hint="For example, FROM (SELECT ...) AS foo.",
                position=self.body.position(node),
            )
        relation, own = self.bind_query(query, self)
        return self._aliased(relation, own, alias, names, node)

    def _alias(self, node: exp.Expr) -> tuple[str | None, list[str]]:
        alias = node.args.get("alias")
        if alias is None:
            return None, []
        only(self.body, alias, "this", "columns")
        columns = list(alias.args.get("columns") or [])
        for named in (alias.this, *columns):
            if isinstance(named, exp.Identifier):
                self.body.check_name(named, alias=True)
        for one in columns:
            if not isinstance(one, exp.Identifier):
                raise UnsupportedForm("a column definition list is not supported", position=self.body.position(one))
        return (name_of(alias.this) if alias.this is not None else None), [name_of(one) for one in columns]

    def _aliased(
        self, relation: Relation, own: tuple[str, ...], alias: str, names: list[str], node: exp.Expr
    ) -> Source:
        if len(names) > len(own):
            raise InvalidColumnReference(
                f'table "{alias}" has {len(own)} columns available but {len(names)} columns specified',
                position=self.body.position(node),
            )
        shown = (*names, *own[len(names) :])
        return Source(relation, Scope.of(alias, relation.relation_type, shown))


def _without_joins(node: exp.Expr) -> exp.Expr:
    """Returns the item alone: a copy that keeps its place in the text."""
    copy: exp.Expr = node.copy()
    copy.set("joins", None)
    copy.meta.pop("span", None)
    return copy
