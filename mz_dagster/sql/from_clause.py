"""Binds FROM: relations, aliases, derived tables, LATERAL and joins.

Owns which columns a FROM clause offers. ON becomes a filter over a join, or the condition of an outer join. Comma binds
looser than JOIN, so the relation before a comma is not visible in the ON behind it; in a LATERAL relation all that
stands to its left is. Which predicates are equalities that a join can look up by is decided later, by a transform.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mz_dagster.functions import Failure, common_type, resolve_function
from mz_dagster.plan.outer_join import outer_join
from mz_dagster.plan.relation import ColumnOrder, DependentJoin, Filter, Join, Map, Projection, Relation
from mz_dagster.plan.rewriting import projected_to
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import ColumnRef, Scalar
from mz_dagster.sql.binding import BindingContext, CommonTable, OrderedRows, name_of, only_parts
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.enclosing import Enclosing, enclosed, relation_within_all, with_rows_visible
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
from mz_dagster.sql.jsonb_records import POPULATING, RECORD_FUNCTIONS, bind_populated, bind_records
from mz_dagster.sql.output_names import output_name
from mz_dagster.sql.scope import Scope, ScopeColumn
from mz_dagster.sql.set_functions import bind_rows_from

BindQuery = Callable[[exp.Expr, "FromBinder"], OrderedRows]


@dataclass(frozen=True, slots=True)
class FromItem:
    """A bound part of FROM: a plan and what can be named in it.

    Attributes:
        relation: The plan; of a query, behind its columns those that only its order needs.
        scope: Of the plan's columns.
        order: Of the rows, if it is one query alone.
        order_position: As of `OrderedRows`.
    """

    relation: Relation
    scope: Scope
    order: tuple[ColumnOrder, ...] = ()
    order_position: int | None = None


@dataclass(frozen=True, slots=True)
class _Merged:
    """A column that stands for one of each side: that they are equal, and its value over both sides' columns."""

    name: str
    predicate: Scalar
    value: Scalar


#: For each side of a join that may be named: whether the left, whether the right side's rows are preserved.
_KEEPS = {"": (False, False), "LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}
_JOINS = "Use [INNER | LEFT | RIGHT | FULL | CROSS] JOIN; EXISTS and NOT EXISTS are semijoins and their complements."


@dataclass(slots=True)
class FromBinder:
    """Binds one FROM clause.

    Attributes:
        binding: The statement's state.
        body: The text.
        tables: CTEs in scope, by name.
        bind_query: Binds a derived table.
    """

    binding: BindingContext
    body: Body
    tables: dict[str, CommonTable]
    bind_query: BindQuery
    _level: int = field(init=False)

    def __post_init__(self) -> None:
        self._level = len(self.binding.enclosing)

    def bind(self, first: exp.Expr | None, joins: list[exp.Join]) -> FromItem:
        """Returns the clause's plan; without FROM, the one row without columns."""
        if first is None:
            return FromItem(ONE_ROW, Scope())
        trees: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
        for join in joins:
            if self._after_comma(join):
                trees.append((join.this, []))
            else:
                trees[-1][1].append(join)
        combined = self._tree(*trees[0])
        for node, rest in trees[1:]:
            combined = self._unordered(combined)
            with enclosed(self.binding.enclosing, Enclosing(combined.scope, visible=False)) as row:
                right = self._unordered(self._tree(node, rest))
            combined = self._beside(combined, right, tuple(row.arguments), node)
        return combined

    def _tree(self, first: exp.Expr, joins: list[exp.Join]) -> FromItem:
        source = self._item(first)
        for join in joins:
            source = self._join(self._unordered(source), join)
        return source

    def _unordered(self, source: FromItem) -> FromItem:
        """Returns the rows of a query that is joined, which has no effect on their order, without what that needs."""
        if not source.order:
            return source
        self.binding.lost_order = source.order_position or self.binding.lost_order
        shown = range(len(source.scope.visible))
        return FromItem(projected_to(source.relation, shown), source.scope)

    def _after_comma(self, join: exp.Join) -> bool:
        span = self.body.span(join.this)
        if span is None:
            return False
        before = [token for token in self.body.tokens if token.end <= span[0]]
        while before and (before[-1].is_symbol("(") or before[-1].is_word("lateral")):
            before.pop()
        return bool(before) and before[-1].is_symbol(",")

    def _beside(self, left: FromItem, right: FromItem, arguments: tuple[Scalar, ...], node: exp.Expr) -> FromItem:
        """Returns all pairs of rows; the right side's may depend on the left one's, through `arguments`."""
        by = left.relation.relation_type.arity
        scope = left.scope.beside(right.scope, by, self.body.position(node))
        if arguments:
            return FromItem(DependentJoin(left.relation, right.relation, arguments), scope)
        if left.relation is ONE_ROW:
            return right
        return FromItem(Join((left.relation, right.relation), ()), scope)

    def _join(self, left: FromItem, join: exp.Join) -> FromItem:
        side, kind, method = (str(join.args.get(one) or "").upper() for one in ("side", "kind", "method"))
        position = self._join_position(join)
        if side not in _KEEPS or kind not in ("", "INNER", "CROSS", "OUTER") or method not in ("", "NATURAL"):
            what = " ".join(word for word in (method, side, kind, "JOIN") if word)
            raise UnsupportedForm(
                f"{what} is not supported", detail="PostgreSQL has no such join.", hint=_JOINS, position=position
            )
        only_parts(self.body, join, "this", "kind", "side", "method", "on", "using", "alias", what="this form of JOIN")
        self._check_join(join, side, kind, method, position)
        keeps = _KEEPS[side]
        row = Enclosing(left.scope, visible=False, outer_joined=keeps[1])
        with enclosed(self.binding.enclosing, row):
            right = self._unordered(self._item(join.this))
        arguments = tuple(row.arguments)
        joined = self._beside(left, right, arguments, join.this)
        on, using = join.args.get("on"), join.args.get("using")
        names, nodes = self._using_names(left, right, using, method, join)
        predicates: list[Scalar] = []
        if on is not None:
            binder = Expressions(self.binding, self.body, joined.scope, "JOIN/ON")
            predicates = [binder.boolean(on, "JOIN/ON")]
        merged = self._merged(left, right, joined, names, nodes, side)
        predicates += [one.predicate for one in merged]
        relation: Relation
        if any(keeps):
            local_id = self.binding.local_id
            relation = outer_join(left.relation, right.relation, arguments, predicates, keeps, local_id)
        else:
            relation = Filter(joined.relation, tuple(predicates)) if predicates else joined.relation
        by = left.relation.relation_type.arity
        lefts = left.scope.nullable() if keeps[1] else left.scope
        rights = right.scope.nullable() if keeps[0] else right.scope
        scope = lefts.beside(rights, by, position)
        return (
            self._with_merged(relation, scope, merged, join.args.get("alias")) if names else FromItem(relation, scope)
        )

    def _check_join(self, join: exp.Join, side: str, kind: str, method: str, position: int) -> None:
        conditions = [one for one in ("on", "using") if join.args.get(one)]
        if kind == "OUTER" and not side:
            raise InvalidSyntax("syntax error: OUTER JOIN needs LEFT, RIGHT or FULL", position=position)
        if kind in ("CROSS", "INNER") and side:
            raise InvalidSyntax(f"syntax error: {side} {kind} JOIN is not a join", position=position)
        if kind == "CROSS" and method:
            raise InvalidSyntax("syntax error: NATURAL CROSS JOIN is not a join", position=position)
        if (kind == "CROSS" or method) and conditions:
            raise InvalidSyntax(f"syntax error: {method or kind} JOIN has no condition", position=position)
        if kind != "CROSS" and not method and not conditions:
            raise InvalidSyntax("syntax error: JOIN needs ON or USING", position=position)

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

    def _using_names(
        self, left: FromItem, right: FromItem, using: list[exp.Expr] | None, method: str, join: exp.Join
    ) -> tuple[list[str], list[exp.Expr]]:
        """Returns the names of the columns to merge, and what to blame for each."""
        if method:
            common = {column.name for column in right.scope.visible}
            names = list(dict.fromkeys(column.name for column in left.scope.visible if column.name in common))
            return names, [join.this for _ in names]
        nodes = list(using or [])
        names = [name_of(one) for one in nodes]
        for i, (node, name) in enumerate(zip(nodes, names, strict=True)):
            if names.index(name) != i:
                position = self.body.position(node)
                raise DuplicateColumn(f'column name "{name}" appears more than once in USING clause', position=position)
        return names, nodes

    def _merged(
        self, left: FromItem, right: FromItem, joined: FromItem, names: list[str], nodes: list[exp.Expr], side: str
    ) -> list[_Merged]:
        """Returns for each name the equality of the two sides' columns and which of them stands for both."""
        by = left.relation.relation_type.arity
        binder = Expressions(self.binding, self.body, joined.scope, "JOIN/USING")
        merged: list[_Merged] = []
        for node, name in zip(nodes, names, strict=True):
            position = self.body.position(node)
            lefts = self._using_side(left, name, "left", position)
            rights = self._using_side(right, name, "right", position).shifted(by)
            target = common_type([lefts.type, rights.type], "JOIN/USING")
            if isinstance(target, Failure):
                raise error_of(target, position)
            predicate = binder.operator("=", [lefts.reference, rights.reference], position)
            kept_left, kept_right = _KEEPS[side]
            sides = (
                replace(lefts, nullable=lefts.nullable or kept_right),
                replace(rights, nullable=rights.nullable or kept_left),
            )
            values = [binder.as_type(one.reference, target, node, "JOIN/USING") for one in sides]
            if side == "FULL":
                resolved = resolve_function("coalesce", [target, target])
                value = binder.applied(resolved, values, position)
            elif side == "RIGHT" or (side == "" and lefts.type != target and rights.type == target):
                value = values[1]
            else:
                value = values[0]
            merged.append(_Merged(name, predicate, value))
        return merged

    def _with_merged(self, relation: Relation, scope: Scope, merged: list[_Merged], alias: exp.Expr | None) -> FromItem:
        """Returns the join with a column for each merged pair, which stands before all others and has an `alias`."""
        columns: list[ScopeColumn] = []
        for one in merged:
            if isinstance(one.value, ColumnRef):
                place = one.value.position
            else:
                relation = Map(relation, (one.value,), (one.name,))
                place = relation.relation_type.arity - 1
            columns.append(ScopeColumn(one.name, place, one.value.type, one.value.nullable))
        names = {one.name for one in merged}
        rest = (column for column in scope.visible if column.name not in names)
        found = Scope(scope.tables, (*columns, *rest))
        if alias is None:
            return FromItem(relation, found)
        self.body.check_name(alias, alias=True)
        return FromItem(relation, found.with_table(name_of(alias), columns, self.body.position(alias)))

    def _using_side(self, side: FromItem, name: str, which: str, position: int) -> ScopeColumn:
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

    def _item(self, node: exp.Expr) -> FromItem:
        joins = list(node.args.get("joins") or [])
        if joins:
            return self.bind(_without_joins(node), joins)
        match node:
            case exp.Unnest():
                return self._rows_from(node, node, [node], ordinality=bool(node.args.get("offset")))
            case exp.Table() if not isinstance(node.this, exp.Identifier):
                return self._functions(node)
            case exp.Table():
                return self._table(node)
            case exp.Subquery() if self._is_join_tree(node.this):
                return self._parenthesized(node)
            case exp.Subquery() | exp.Values():
                return self._derived(node)
            case exp.Lateral():
                if not isinstance(node.this, exp.Subquery):
                    only_parts(self.body, node, "this", "alias", "ordinality", what="this form of LATERAL")
                    called = node.this
                    if isinstance(called, exp.Dot) and name_of(called.this) == "pg_catalog":
                        called = called.expression
                    ordinality = bool(node.args.get("ordinality") or called.args.get("offset"))
                    return self._rows_from(node, called, [called], ordinality=ordinality)
                with with_rows_visible(self.binding.enclosing[self._level :]):
                    return self._derived(node)
            case _:
                raise UnsupportedForm(
                    "this form in FROM is not supported",
                    hint="Use relations, derived tables and VALUES.",
                    position=self.body.position(node),
                )

    def _is_join_tree(self, node: exp.Expr) -> bool:
        """Returns whether what stands in parentheses is a part of FROM, not a query."""
        if isinstance(node, exp.Subquery):
            return bool(node.args.get("joins")) or self._is_join_tree(node.this)
        return isinstance(node, exp.Table)

    def _parenthesized(self, node: exp.Subquery) -> FromItem:
        only_parts(self.body, node, "this", "alias")
        inner = self._item(node.this)
        alias, names = self._alias(node)
        if alias is None:
            return inner
        inner = self._unordered(inner)
        shown_names = tuple(column.name for column in inner.scope.visible)
        relation = Projection(inner.relation, tuple(column.position for column in inner.scope.visible))
        return self._aliased(relation, shown_names, alias, names, node)

    def _table(self, node: exp.Table) -> FromItem:
        position = self.body.position(node)
        only_parts(self.body, node, "this", "db", "catalog", "alias")
        parts = tuple(name_of(one) for one in (node.args.get("catalog"), node.args.get("db"), node.this) if one)
        alias, names = self._alias(node)
        if len(parts) == 1 and parts[0] in self.tables:
            common = self.tables[parts[0]]
            read = relation_within_all(common.relation, self.binding.enclosing, common.level)
            source = self._aliased(read, common.names, alias or parts[0], names, node)
            return replace(source, order=common.order, order_position=common.order_position)
        relation, item = self.binding.relation(parts, position)
        own = item.relation_type.names[: item.relation_type.arity - item.hidden]
        source = self._aliased(relation, own, alias or parts[-1], names, node)
        scope = source.scope.with_fields(own)
        if item.hidden:
            scope = scope.with_hidden(item.relation_type)
        if item.kind == "table":
            scope = scope.with_keys(item.relation_type.keys)
        return replace(source, scope=scope if alias is not None else scope.of_schema(item.schema))

    def _functions(self, node: exp.Table) -> FromItem:
        """Returns the rows of a function, or of several in ROWS FROM."""
        only_parts(self.body, node, "this", "db", "alias", "ordinality", "rows_from")
        if node.args.get("db") is not None and name_of(node.args["db"]) != "pg_catalog":
            raise UnsupportedForm(
                "a function qualified by a schema is not supported", position=self.body.position(node)
            )
        tables = node.args.get("rows_from") or [node]
        calls = [one if isinstance(one, exp.Unnest) else one.this for one in tables]
        for one in tables:
            if not isinstance(one, exp.Unnest):
                only_parts(self.body, one, "this", "db", "alias", "ordinality", "rows_from")
        return self._rows_from(node, node, calls, ordinality=bool(node.args.get("ordinality")))

    def _rows_from(self, node: exp.Expr, owner: exp.Expr, calls: list[exp.Expr], *, ordinality: bool) -> FromItem:
        """Returns the rows of functions, which may depend on what stands to their left.

        Args:
            node: The item of FROM.
            owner: What has the alias, if `node` has not.
            calls: The functions.
            ordinality: Whether their rows are numbered.
        """
        aliased = node if node.args.get("alias") is not None else owner
        named = [name_of(one.this) for one in calls if isinstance(one, exp.Anonymous)]
        if not RECORD_FUNCTIONS.isdisjoint(named) or (not POPULATING.isdisjoint(named) and _is_defined(aliased)):
            return self._records(node, aliased, calls, ordinality=ordinality)
        if len(calls) == 1 and isinstance(calls[0], exp.Anonymous) and name_of(calls[0].this) in POPULATING:
            return self._populated(node, aliased, calls[0], ordinality=ordinality)
        alias, names = self._alias(aliased)
        if isinstance(owner.args.get("offset"), exp.Identifier):
            # Of `unnest(x) WITH ORDINALITY AS u (v, n)` the parser takes n apart.
            self.body.check_name(owner.args["offset"], alias=True)
            names.append(name_of(owner.args["offset"]))
        binder = Expressions(self.binding, self.body, Scope(), "functions in FROM")
        with with_rows_visible(self.binding.enclosing[self._level :]):
            called = ["unnest" if isinstance(one, exp.Unnest) else output_name(self.body, one) for one in calls]
            found = bind_rows_from(binder, calls, called, ordinality=ordinality)
        own = found.names
        if alias is not None and found.scalar:
            own = (alias, *own[1:])
        source = self._aliased(found.relation, own, alias or found.names[0], names, node)
        return replace(source, scope=source.scope.of_values()) if found.is_value else source

    def _records(self, node: exp.Expr, aliased: exp.Expr, calls: list[exp.Expr], *, ordinality: bool) -> FromItem:
        """Returns the rows of a function whose columns are defined by its alias."""
        position = self.body.position(node)
        alias = aliased.args.get("alias")
        definitions = [] if alias is None else list(alias.args.get("columns") or [None])
        if alias is None or not all(isinstance(one, exp.ColumnDef) for one in definitions):
            raise InvalidSyntax(
                'a column definition list is required for functions returning "record"',
                hint="Write ... AS t (a integer, b text), for example.",
                position=position,
            )
        if ordinality:
            raise InvalidSyntax("WITH ORDINALITY cannot be used with a column definition list", position=position)
        (call,) = calls if len(calls) == 1 else (None,)
        if not isinstance(call, exp.Anonymous):
            raise UnsupportedForm("ROWS FROM with a column definition list is not supported", position=position)
        if alias.this is not None:
            self.body.check_name(alias.this, alias=True)
        name = name_of(call.this) if alias.this is None else name_of(alias.this)
        binder = Expressions(self.binding, self.body, Scope(), "functions in FROM")
        with with_rows_visible(self.binding.enclosing[self._level :]):
            relation, names = bind_records(binder, call, definitions)
        return self._aliased(relation, names, name, [], node)

    def _populated(self, node: exp.Expr, aliased: exp.Expr, call: exp.Anonymous, *, ordinality: bool) -> FromItem:
        """Returns the rows of a function whose columns are a relation's."""
        if ordinality:
            raise UnsupportedForm(
                "WITH ORDINALITY is not supported for records of json", position=self.body.position(node)
            )
        alias, names = self._alias(aliased)
        binder = Expressions(self.binding, self.body, Scope(), "functions in FROM")
        with with_rows_visible(self.binding.enclosing[self._level :]):
            relation, own = bind_populated(binder, call)
        return self._aliased(relation, own, alias or name_of(call.this), names, node)

    def _derived(self, node: exp.Subquery | exp.Values | exp.Lateral) -> FromItem:
        alias, names = self._alias(node)
        query: exp.Expr
        if isinstance(node, exp.Lateral):
            only_parts(self.body, node, "this", "alias", what="this form of LATERAL")
            query = node.this
            if not isinstance(query, exp.Subquery):
                raise UnsupportedForm("this form of LATERAL is not supported", position=self.body.position(node))
        elif isinstance(node, exp.Subquery):
            only_parts(self.body, node, "this", "alias")
            query = node.this
        else:
            only_parts(self.body, node, "expressions", "alias")
            query = node
        rows = self.bind_query(query, self)
        source = self._aliased(rows.relation, rows.names, alias, names, node)
        return replace(source, order=rows.order, order_position=rows.order_position)

    def _alias(self, node: exp.Expr) -> tuple[str | None, list[str]]:
        alias = node.args.get("alias")
        if alias is None:
            return None, []
        only_parts(self.body, alias, "this", "columns")
        columns = list(alias.args.get("columns") or [])
        for named in (alias.this, *columns):
            if isinstance(named, exp.Identifier):
                self.body.check_name(named, alias=True)
        for one in columns:
            if not isinstance(one, exp.Identifier):
                message = 'a column definition list is only allowed for functions returning "record"'
                raise InvalidSyntax(message, position=self.body.position(one))
        return (name_of(alias.this) if alias.this is not None else None), [name_of(one) for one in columns]

    def _aliased(
        self, relation: Relation, own: tuple[str, ...], alias: str | None, names: list[str], node: exp.Expr
    ) -> FromItem:
        if len(names) > len(own):
            raise InvalidColumnReference(
                f'table "{alias}" has {len(own)} columns available but {len(names)} columns specified',
                position=self.body.position(node),
            )
        shown = (*names, *own[len(names) :])
        return FromItem(relation, Scope.of(alias, relation.relation_type, shown))


def _is_defined(node: exp.Expr) -> bool:
    """Returns whether an alias defines columns with their types."""
    alias = node.args.get("alias")
    return alias is not None and any(isinstance(one, exp.ColumnDef) for one in alias.args.get("columns") or ())


def _without_joins(node: exp.Expr) -> exp.Expr:
    """Returns the item alone: a copy that keeps its place in the text."""
    copy: exp.Expr = node.copy()
    copy.set("joins", None)
    copy.meta.pop("span", None)
    return copy
