"""Binds INSERT, UPDATE and DELETE: which rows of a table they read, and which they write.

An UPDATE or DELETE is a query over its table and what it joins, whose first columns are the table's own. A joined row
may match one of the table several times; the table's row changes once all the same, and in a way that may not depend on
the match. What is returned of written rows is a query over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.functions import CastContext, Failure, Unknown, cast, type_name
from mz_dagster.plan.relation import Constant, Filter, Project, Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.plan.scalar import ColumnRef, Literal, Scalar
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.plan.transform import fold_constants
from mz_dagster.plan.types import Column, RelationType
from mz_dagster.sql.binder import BoundQuery, bind_query, bound_query
from mz_dagster.sql.binding import Binding, only
from mz_dagster.sql.body_parser import Body, parse_body
from mz_dagster.sql.composed import Composed
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    InvalidSyntax,
    NullNotAllowed,
    UndefinedColumn,
    suggestion,
)
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.from_clause import FromBinder, Source
from mz_dagster.sql.pending import projected
from mz_dagster.sql.query import Queries, with_lets
from mz_dagster.sql.statements import Delete, Insert, Name, SqlText, Update


@dataclass(frozen=True, slots=True)
class BoundChange:
    """Is an UPDATE or DELETE as plans.

    Attributes:
        old: The table's rows that change or go, each as often as the table has it.
        new: For an UPDATE: those rows, each followed by the row that takes its place. Where other relations are
            joined a row is there once for every match; else as often as the table has it, and `old` is not needed.
        joins: Whether other relations are joined.
    """

    old: Relation
    new: Relation | None
    joins: bool


@dataclass(frozen=True, slots=True)
class _Context:
    """Is what the names and parameters of one statement stand for."""

    target: RelationType
    resolver: Resolver
    parameters: Sequence[object]
    clock: datetime | None


def bind_insert(
    statement: Insert,
    target: RelationType,
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    clock: datetime | None = None,
) -> BoundQuery:
    """Returns the plan of the rows to insert: exactly `target`'s columns, cast as an assignment casts them.

    Columns that are not listed, and DEFAULT, are NULL. Constant rows are folded, so that a VALUES list of literals is a
    `Constant`.

    Raises:
        NullNotAllowed: A NOT NULL column is not listed, or is given a constant NULL.
    """
    (bound,) = bind_insert_many(statement, target, resolver, [params], clock=clock)
    return bound


def bind_insert_many(
    statement: Insert,
    target: RelationType,
    resolver: Resolver,
    many: Iterable[Sequence[object]],
    *,
    clock: datetime | None = None,
) -> Iterator[BoundQuery]:
    """Yields for each set of parameters what `bind_insert` returns; the statement is parsed once."""
    position = (statement.query or statement.table).offset + 1
    places = _places(statement, target) if statement.query is not None else []
    body = None if statement.query is None else parse_body(statement.query)
    if body is not None:
        _write_defaults(body)
    for params in many:
        binding = Binding(resolver, params, clock)
        relation: Relation = ONE_ROW
        if body is not None:
            pending = Queries(binding, body).bind(body.root, {}, drops_order=True)
            given = len(pending.names)
            if given > len(places):
                raise InvalidSyntax("INSERT has more expressions than target columns", position=position)
            if given < len(places) and statement.columns:
                raise InvalidSyntax("INSERT has more target columns than expressions", position=position)
            places = places[:given]
            columns = [target.columns[i] for i in places]
            types, names = [one.type for one in columns], [one.name for one in columns]
            relation = pending.finish(types, "INSERT", CastContext.ASSIGNMENT, names)
        scalars = _whole_row(relation.relation_type, places, target, position)
        relation = fold_constants(with_lets(projected(relation, scalars, target.names), binding))
        for row in getattr(relation, "rows", ()):
            for cell, column in zip(row, target.columns, strict=True):
                if cell.value is None and not column.nullable:
                    raise _null_in(column, position)
        yield bound_query(binding, relation, relation.relation_type.with_names(target.names))


def _whole_row(given: RelationType, places: Sequence[int], target: RelationType, position: int) -> list[Scalar]:
    """Returns a scalar over the given columns for each of the target's, which are at `places`; NULL for the others."""
    scalars: list[Scalar] = []
    for i, column in enumerate(target.columns):
        if i in places:
            source = given.columns[places.index(i)]
            scalars.append(ColumnRef(places.index(i), source.type, source.nullable, column.name))
        elif column.nullable:
            scalars.append(Literal(None, column.type))
        else:
            raise _null_in(column, position)
    return scalars


def bind_delete(
    statement: Delete,
    target: RelationType,
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    clock: datetime | None = None,
) -> BoundChange:
    """Returns the plans of the rows to delete."""
    context = _Context(target, resolver, params, clock)
    return BoundChange(_old_rows(statement, context), None, statement.using is not None)


def bind_update(
    statement: Update,
    target: RelationType,
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    clock: datetime | None = None,
) -> BoundChange:
    """Returns the plans of the rows to update and of what takes their place, cast as an assignment casts it.

    Raises:
        NullNotAllowed: A NOT NULL column is set to a constant NULL.
    """
    context = _Context(target, resolver, params, clock)
    return BoundChange(_old_rows(statement, context), _new_rows(statement, context), statement.using is not None)


def bind_returning(
    returning: SqlText,
    called: str,
    rows: Constant,
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    clock: datetime | None = None,
) -> BoundQuery:
    """Returns the plan of what a RETURNING clause makes of the rows that a statement writes.

    Args:
        returning: The clause's items.
        called: What the items may call the table.
        rows: The rows, under the table's columns' names.
        resolver: Answers names, in subqueries.
        params: The values of all `?` of the statement, in order.
        clock: The statement's own time.
    """
    composed = Composed.of("SELECT ", returning, f" FROM {quoted(_Written.name)} AS {quoted(called)}")
    written = _Written(resolver, Item(GlobalId(_Written.name), called, "view", rows.relation_type, None, rows))
    with composed.blamed():
        body = parse_body(composed.text)
        select = body.root
        if not isinstance(select, exp.Select) or {one for one, value in select.args.items() if value} != {
            "expressions", "from_",
        }:  # fmt: skip
            raise InvalidSyntax("syntax error: RETURNING takes a list of expressions", position=body.text.offset + 8)
        binding = Binding(written, params, clock)
        binder = FromBinder(binding, body, {}, Queries(binding, body).derived)
        scope = binder.bind(select.args["from_"].this, []).scope
        expressions = Expressions(binding, body, scope, "RETURNING")
        with binding.binding_by(lambda one: binder.bind_query(one, binder)[0]):
            for item in select.expressions:  # here neither aggregates nor window functions may stand
                one = item.this if isinstance(item, exp.Alias) else item
                if not one.is_star:
                    expressions.bind(one)
        return bind_query(composed.text, written, params=params, clock=clock)


@dataclass(frozen=True, slots=True)
class _Written:
    """Resolves one name that nobody can write by chance to the rows that a statement writes, all others as before."""

    resolver: Resolver
    item: Item
    name = "rows written"

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        return self.item if name == (self.name,) else self.resolver.resolve(name)

    def names(self) -> tuple[str, ...]:
        return self.resolver.names()


def _old_rows(statement: Update | Delete, context: _Context) -> Relation:
    where = () if statement.predicate is None else (" WHERE ", statement.predicate)
    composed = Composed.of("SELECT 1 FROM ", statement.target, *where)
    if statement.using is not None:
        # First as the join that it means, in which a name may be ambiguous.
        _Join.bound(Composed.of("SELECT 1 FROM ", statement.target, ", ", statement.using, *where), context)
        match = ("SELECT 1 FROM ", statement.using, *where)
        composed = Composed.of("SELECT 1 FROM ", statement.target, " WHERE EXISTS (", *match, ")")
    join = _Join.bound(composed, context)
    return with_lets(Project(join.relation, tuple(range(context.target.arity))), join.binding)


def _new_rows(statement: Update, context: _Context) -> Relation:
    """Returns the plan of all pairs of an old row and the row that takes its place."""
    items: list[str | SqlText] = []
    for one in statement.assignments:
        if one.value is not None:
            items += [", ", one.value] if items else [one.value]
    others = () if statement.using is None else (", ", statement.using)
    where = () if statement.predicate is None else (" WHERE ", statement.predicate)
    join = _Join.bound(Composed.of("SELECT ", *(items or ["1"]), " FROM ", statement.target, *others, *where), context)
    columns, names = context.target.columns, context.target.names
    old = [ColumnRef(i, one.type, one.nullable, one.name) for i, one in enumerate(columns)]
    new: list[Scalar] = [*old]
    seen: set[str] = set()
    nodes = iter(join.select.expressions)
    for one in statement.assignments:
        position = one.offset + 1
        if one.column in seen:
            raise InvalidSyntax(f'multiple assignments to same column "{one.column}"', position=position)
        seen.add(one.column)
        place = _place(context.target, one.column, statement.table, position)
        column = columns[place]
        value = Literal(None, column.type) if one.value is None else join.assigned(next(nodes), column)
        if isinstance(value, Literal) and value.value is None and not column.nullable:
            raise _null_in(column, position)
        new[place] = value
    return with_lets(projected(join.relation, (*old, *new), (*names, *(f"new_{name}" for name in names))), join.binding)


@dataclass(frozen=True, slots=True)
class _Join:
    """Is the bound FROM and WHERE of a composed query, whose first columns are the target's.

    Attributes:
        composed: The query.
        select: Its syntax; what it selects is not bound yet.
        binding: The statement's state.
        source: The FROM clause.
        relation: The rows for which WHERE is true.
    """

    composed: Composed
    body: Body
    select: exp.Select
    binding: Binding
    source: Source
    relation: Relation

    @classmethod
    def bound(cls, composed: Composed, context: _Context) -> _Join:
        """Returns the bound query."""
        with composed.blamed():
            body = parse_body(composed.text)
            select = body.root
            if not isinstance(select, exp.Select):
                raise InvalidSyntax("syntax error: this is no condition", position=body.text.offset + 1)
            only(body, select, "expressions", "from_", "joins", "where")
            binding = Binding(context.resolver, context.parameters, context.clock)
            binder = FromBinder(binding, body, {}, Queries(binding, body).derived)
            with binding.binding_by(lambda one: binder.bind_query(one, binder)[0]):
                source = binder.bind(select.args["from_"].this, list(select.args.get("joins") or []))
                where = select.args.get("where")
                relation = source.relation
                if where is not None:
                    predicate = Expressions(binding, body, source.scope, "WHERE").boolean(where.this, "WHERE")
                    relation = Filter(relation, (predicate,))
        return cls(composed, body, select, binding, source, relation)

    def assigned(self, node: exp.Expr, column: Column) -> Scalar:
        """Returns the value that an expression assigns to a column."""
        with self.composed.blamed():
            binder = FromBinder(self.binding, self.body, {}, Queries(self.binding, self.body).derived)
            expressions = Expressions(self.binding, self.body, self.source.scope, "UPDATE")
            with self.binding.binding_by(lambda one: binder.bind_query(one, binder)[0]):
                bound = expressions.bind(node)
            if isinstance(bound, Unknown):
                return expressions.literal(bound, column.type, node, assigned=True)
            found = cast(bound.type, column.type, CastContext.ASSIGNMENT)
            if isinstance(found, Failure):
                raise DatatypeMismatch(
                    f'column "{column.name}" is of type {type_name(column.type)} '
                    f"but expression is of type {type_name(bound.type)}",
                    hint="You will need to rewrite or cast the expression.",
                    position=self.body.position(node),
                )
            return found.apply(bound)


def _write_defaults(body: Body) -> None:
    """Puts NULL in the place of each DEFAULT in a VALUES list: columns have no other."""
    if isinstance(body.root, exp.Values):
        for row in body.root.expressions:
            for cell in [*row.expressions, row.this]:
                if isinstance(cell, exp.Var) and cell.name.lower() == "default":
                    null = exp.Null()
                    null.meta.update(cell.meta)
                    cell.replace(null)


def _places(statement: Insert, target: RelationType) -> list[int]:
    """Returns the positions of the columns that an INSERT names; of all columns if it names none."""
    position = statement.table.offset + 1
    names = statement.columns or target.names
    places = [_place(target, name, statement.table, position) for name in names]
    if len(set(places)) != len(places):
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateColumn(f'column "{twice}" specified more than once', position=position)
    return places


def _place(target: RelationType, name: str, table: Name, position: int) -> int:
    if name not in target.names:
        raise UndefinedColumn(
            f'column "{name}" of relation "{table}" does not exist',
            hint=suggestion(name, target.names),
            position=position,
        )
    return target.names.index(name)


def _null_in(column: Column, position: int) -> NullNotAllowed:
    return NullNotAllowed(f'null value in column "{column.name}" violates not-null constraint', position=position)
