"""Binds INSERT, UPDATE and DELETE: which rows of a table they read, and which they write.

An UPDATE or DELETE is a query over its table and what it joins, whose first columns are the table's own. A joined row
may match one of the table several times; the table's row changes once all the same, and in a way that may not depend on
the match. What is returned of written rows is a query over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from sqlglot import exp

from mz_dagster.functions import UTC, CastContext, in_zone
from mz_dagster.plan.relation import Constant, Filter, Projection, Relation
from mz_dagster.plan.resolver import Resolver
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.plan.transform import fold_constants
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar, Value
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.sql.binder import BoundQuery, bound_query, finished
from mz_dagster.sql.binding import BindingContext, CommonTable, only_parts
from mz_dagster.sql.body_parser import Body, parse_body
from mz_dagster.sql.circumstances import Circumstances, zone_of
from mz_dagster.sql.composed import Composed, parameters_in
from mz_dagster.sql.constant_rows import constant_rows
from mz_dagster.sql.constraints import WrittenRows, assigned, bind_default, is_by_chance, literal_rows
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import (
    DuplicateColumn,
    GeneratedAlways,
    InvalidColumnReference,
    InvalidSyntax,
    NullNotAllowed,
    UndefinedColumn,
    UndefinedTable,
    UnsupportedForm,
    suggestion,
)
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.from_clause import FromBinder, FromItem
from mz_dagster.sql.lexer import Token, tokens_of
from mz_dagster.sql.pending import projected
from mz_dagster.sql.query import Queries, with_lets
from mz_dagster.sql.select import SelectBinder
from mz_dagster.sql.statements import Delete, Identity, Insert, Name, SqlText, Update

Out = TypeVar("Out")
#: Returns so many numbers of a column's sequence.
Claim = Callable[[str, int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class BoundChange:
    """An UPDATE or DELETE as plans.

    Attributes:
        old: The table's rows that change or go, each as often as the table has it.
        matches: For an UPDATE, and for a DELETE that returns rows and joins others: those rows, each followed by the
            row that takes its place (of an UPDATE), and by all columns of what is joined. Where others are joined a row
            is there once for every match; else as often as the table has it, and `old` is not needed.
        joins: Whether other relations are joined.
    """

    old: Relation
    matches: Relation | None
    joins: bool


@dataclass(frozen=True, slots=True)
class _Context:
    """What the names and parameters of one statement stand for."""

    target: RelationType
    resolver: Resolver
    parameters: Sequence[object]
    circumstances: Circumstances | None
    defaults: Mapping[str, SqlText] = field(default_factory=dict)
    identities: Mapping[str, Identity] = field(default_factory=dict)


def bind_insert(
    statement: Insert,
    target: RelationType,
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    circumstances: Circumstances | None = None,
) -> BoundQuery:
    """Returns the plan of the rows to insert: exactly `target`'s columns, cast as an assignment casts them.

    Columns that are not listed, and DEFAULT, are NULL. Constant rows are folded, so that a VALUES list of literals is a
    `Constant`.

    Raises:
        NullNotAllowed: A NOT NULL column is not listed, or is given a constant NULL.
    """
    ((bound, _),) = bind_insert_many(statement, target, resolver, [params], circumstances=circumstances)
    return bound


def bind_insert_many(
    statement: Insert,
    target: RelationType,
    resolver: Resolver,
    many: Iterable[Sequence[object]],
    *,
    circumstances: Circumstances | None = None,
    defaults: Mapping[str, SqlText] | None = None,
    identities: Mapping[str, Identity] | None = None,
    claim: Claim | None = None,
) -> Iterator[tuple[BoundQuery, tuple[int, ...]]]:
    """Yields for each set of parameters what `bind_insert` returns, and the columns that every row is to generate.

    The statement is parsed once. Columns of which it says nothing, and DEFAULT, are what `defaults` says of them, by
    name; NULL if it says nothing, or if every row is to generate them, as those by chance. DEFAULT of the other
    `identities` is claimed.

    Raises:
        GeneratedAlways: A column that always generates its values is given one.
    """
    position = (statement.query or statement.table).offset + 1
    places = _places(statement, target) if statement.query is not None else []
    defaults, identities = defaults or {}, identities or {}
    zone = UTC if circumstances is None else circumstances.settings["timezone"]
    body: Body | None = None
    composed: Composed | None = None
    constant: Constant | None = None
    if statement.query is not None:
        with zone_of(circumstances):
            constant = constant_rows(statement.query.text, [target.columns[i] for i in places])
        width = _Values.of(statement.query).width if constant is None else constant.relation_type.arity
        if width and (constant is None or identities):  # before anything is claimed
            _check_generated(statement, target, places[:width], identities)
        if constant is not None and width < len(places) and statement.columns:
            constant = None
    for params in many:
        if statement.query is not None and constant is None and (body is None or claim is not None):
            composed = _with_defaults(statement.query, places, target, defaults, identities, claim, zone)
            with nullcontext() if composed is None else composed.blamed():
                body = parse_body(statement.query if composed is None else composed.text)
            _write_defaults(body)
        values = params if composed is None else composed.parameters(params)
        binding = BindingContext(resolver, values, circumstances)
        relation: Relation = ONE_ROW
        if constant is not None:
            relation, places = constant, places[: constant.relation_type.arity]
        elif body is not None:
            with nullcontext() if composed is None else composed.blamed(), zone_of(circumstances):
                pending = Queries(binding, body).bind(body.root, {}, drops_order=True)
            given = len(pending.names)
            if given > len(places):
                raise InvalidSyntax("INSERT has more expressions than target columns", position=position)
            if given < len(places) and statement.columns:
                raise InvalidSyntax("INSERT has more target columns than expressions", position=position)
            places = places[:given]
            columns = [target.columns[i] for i in places]
            types, names = [one.type for one in columns], [one.name for one in columns]
            with zone_of(circumstances):
                relation = pending.finish(types, "INSERT", CastContext.ASSIGNMENT, names)
        if identities:
            _check_generated(statement, target, places, identities)
        generated = _generated(statement, target, places, identities, defaults)
        omitted: dict[int, Scalar] = {
            i: bind_default(one, defaults[one.name], circumstances)
            for i, one in enumerate(target.columns)
            if i not in places and i not in generated and one.name in defaults
        }
        omitted |= {i: Literal(None, target.columns[i].type) for i in generated}
        scalars = _whole_row(relation.relation_type, places, target, omitted, position)
        relation = fold_constants(with_lets(projected(relation, scalars, target.names), binding))
        for row in getattr(relation, "rows", ()):
            for i, (cell, column) in enumerate(zip(row, target.columns, strict=True)):
                if cell.value is None and not column.nullable and i not in generated:
                    raise _null_in(column, position)
        yield bound_query(binding, relation, relation.relation_type.with_names(target.names)), generated


def _whole_row(
    given: RelationType, places: Sequence[int], target: RelationType, omitted: Mapping[int, Scalar], position: int
) -> list[Scalar]:
    """Returns a scalar over the given columns for each of the target's, which are at `places`; defaults for others."""
    scalars: list[Scalar] = []
    for i, column in enumerate(target.columns):
        if i in places and i not in omitted:
            source = given.columns[places.index(i)]
            scalars.append(ColumnRef(places.index(i), source.type, source.nullable, column.name))
        elif i in omitted:
            scalars.append(omitted[i])
        elif column.nullable:
            scalars.append(Literal(None, column.type))
        else:
            raise _null_in(column, position)
    return scalars


def _generated(
    statement: Insert,
    target: RelationType,
    places: Sequence[int],
    identities: Mapping[str, Identity],
    defaults: Mapping[str, SqlText],
) -> tuple[int, ...]:
    """Returns the columns of which an INSERT says nothing that counts, so that every row gets a generated value."""
    return tuple(
        i
        for i, name in enumerate(target.names)
        if (i not in places and (name in identities or (name in defaults and is_by_chance(defaults[name]))))
        or (name in identities and statement.overriding == "user" and identities[name].generated != "serial")
    )


def _check_generated(
    statement: Insert, target: RelationType, places: Sequence[int], identities: Mapping[str, Identity]
) -> None:
    """Refuses what is given for a column that always generates its values."""
    if statement.overriding is not None:
        return
    for item, place in enumerate(places):
        name = target.names[place]
        if name in identities and identities[name].generated == "always":
            assert statement.query is not None
            values = _Values.of(statement.query)
            given = values.rows or 1  # of another query nobody can tell
            if sum(one == item for _, one in values.defaults) < given:
                raise GeneratedAlways(
                    f'cannot insert a non-DEFAULT value into column "{name}"',
                    detail=f'Column "{name}" is an identity column defined as GENERATED ALWAYS.',
                    hint="Use OVERRIDING SYSTEM VALUE to override.",
                )


@dataclass(frozen=True, slots=True)
class _Values:
    """The form of a VALUES list.

    Attributes:
        rows: How many it has; 0 if the query is another.
        width: How many values the longest has.
        defaults: Each DEFAULT in it, with its place in its row.
    """

    rows: int
    width: int
    defaults: tuple[tuple[Token, int], ...]

    @classmethod
    def of(cls, query: SqlText) -> _Values:
        """Returns that of a query."""
        tokens = tokens_of(query.text)
        return _form(tokens) if tokens[0].is_word("values") else cls(0, 0, ())


def _form(tokens: Sequence[Token]) -> _Values:
    found: list[tuple[Token, int]] = []
    rows = item = depth = width = 0
    for previous, token, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        if depth == 1 and token.is_symbol("(", ","):
            item = 0 if token.is_symbol("(") else item + 1
            rows += token.is_symbol("(")
            width = max(width, item + 1)
        alone = previous.is_symbol("(", ",") and behind.is_symbol(",", ")")
        if depth == 1 and token.is_word("default") and alone:
            found.append((token, item))
    return _Values(rows, width, tuple(found))


def _with_defaults(
    query: SqlText,
    places: Sequence[int],
    target: RelationType,
    defaults: Mapping[str, SqlText],
    identities: Mapping[str, Identity],
    claim: Claim | None,
    zone: str,
) -> Composed | None:
    """Returns a VALUES list with what its column's default is in the place of each DEFAULT; None if there is none.

    DEFAULT of a column without one stays.
    """
    if not defaults and not identities:
        return None
    found = _Values.of(query).defaults
    named = [(token, target.names[places[item]]) for token, item in found if item < len(places)]
    wanted = Counter(name for _, name in named if name in identities)
    claimed = {name: iter(claim(name, count)) for name, count in wanted.items()} if claim is not None else {}
    pieces: list[str | SqlText] = []
    at = 0
    for token, name in named:
        if name in defaults and name not in claimed:
            _check_zone(target.columns[target.names.index(name)], defaults[name], zone)
        if name in claimed or name in defaults:
            pieces += [_part(query, at, token.start)]
            pieces += [f"({next(claimed[name]) if name in claimed else defaults[name].text})"]
            at = token.end
    if not pieces:
        return None
    return Composed.of(*pieces, _part(query, at, len(query.text)))


def _part(query: SqlText, start: int, stop: int) -> SqlText:
    """Returns a part of a query; neither end is within a literal."""
    before = query.parameters_before + parameters_in(query.text[:start])
    return SqlText(query.text[start:stop], query.offset + start, before)


def _check_zone(column: Column, default: SqlText, zone: str) -> None:
    """Refuses to write out a DEFAULT that would mean something else in the session's time zone than in UTC."""
    if zone == UTC or is_by_chance(default):
        return
    meanings: list[Scalar] = []
    for one in (UTC, zone):
        with in_zone(one):
            meanings.append(bind_default(column, default, Circumstances()))
    if meanings[0] != meanings[1]:
        raise UnsupportedForm(
            f'DEFAULT of column "{column.name}" is not supported in a session in another time zone',
            detail=f'What it says depends on the zone, and this session\'s is "{zone}".',
            hint="Leave the column out, or SET TIME ZONE 'UTC'.",
        )


def bind_delete(
    statement: Delete,
    target: RelationType,
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    circumstances: Circumstances | None = None,
) -> BoundChange:
    """Returns the plans of the rows to delete."""
    context = _Context(target, resolver, params, circumstances)
    joins = statement.using is not None
    with zone_of(circumstances):
        matches = _joined_rows(statement, context) if joins and statement.returning is not None else None
        return BoundChange(_old_rows(statement, context), matches, joins)


def bind_update(
    statement: Update,
    target: RelationType,
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    circumstances: Circumstances | None = None,
    defaults: Mapping[str, SqlText] | None = None,
    identities: Mapping[str, Identity] | None = None,
) -> BoundChange:
    """Returns the plans of the rows to update and of what takes their place, cast as an assignment casts it.

    DEFAULT of those of the `identities` is NULL.

    Raises:
        GeneratedAlways: A column that always generates its values is set to one.
        NullNotAllowed: A NOT NULL column is set to a constant NULL.
    """
    context = _Context(target, resolver, params, circumstances, defaults or {}, identities or {})
    with zone_of(circumstances):
        return BoundChange(_old_rows(statement, context), _new_rows(statement, context), statement.using is not None)


def bind_returning(
    statement: Insert | Update | Delete,
    target: RelationType,
    rows: Sequence[Sequence[Value]],
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    circumstances: Circumstances | None = None,
) -> BoundQuery:
    """Returns the plan of what a RETURNING clause makes of the rows that a statement writes.

    Args:
        statement: What has the clause.
        target: The table's columns.
        rows: The rows, each followed by all columns of what is joined.
        resolver: Answers names, in subqueries.
        params: The values of all `?` of the statement, in order.
        circumstances: When and by whom it is executed.
    """
    assert statement.returning is not None, "it has the clause"
    using = None if isinstance(statement, Insert) else statement.using
    written = WrittenRows.of(resolver, target)
    others = () if using is None else (", ", using)
    called = statement.alias or statement.table.last
    named = Composed.of(*_ctes(statement), f"SELECT 1 FROM {quoted(written.name)} AS {quoted(called)}", *others)
    source = _Join.bound(named, _Context(RelationType(target.columns), written, params, circumstances)).source
    scope, item = source.scope, resolver.resolve(statement.table.parts)
    if statement.alias is None and item is not None:
        scope = scope.of_schema(item.schema)
    columns = source.relation.relation_type.columns
    literals = literal_rows(rows, columns)
    composed = Composed.of(*_ctes(statement), "SELECT ", statement.returning)
    with composed.blamed(), zone_of(circumstances):
        body = parse_body(composed.text)
        select = body.root
        given = {one for one, value in select.args.items() if value}
        if not isinstance(select, exp.Select) or given - {"with_"} != {"expressions"}:
            raise InvalidSyntax("syntax error: RETURNING takes a list of expressions", position=body.text.offset + 8)
        binding = BindingContext(resolver, composed.parameters(params), circumstances)
        queries = Queries(binding, body)
        binder = FromBinder(binding, body, queries.common_tables(select, {}), queries.ordered)
        expressions = Expressions(binding, body, scope, "RETURNING")
        with binding.binding_by(lambda one: queries.derived(one, binder)):
            for item in select.expressions:  # here neither aggregates nor window functions may stand
                one = item.this if isinstance(item, exp.Alias) else item
                if not one.is_star:
                    expressions.bind(one)
            relation = Constant(literals, RelationType(columns))
            pending = SelectBinder(binding, body, scope).bind(select, relation, None)
        return finished(binding, pending)


def _ctes(statement: Insert | Update | Delete) -> tuple[str | SqlText, ...]:
    """Returns what a query begins with that may name what the statement's WITH clause does."""
    return () if statement.ctes is None else (statement.ctes, " ")


def _old_rows(statement: Update | Delete, context: _Context) -> Relation:
    where = () if statement.predicate is None else (" WHERE ", statement.predicate)
    ctes = _ctes(statement)
    composed = Composed.of(*ctes, "SELECT 1 FROM ", statement.target, *where)
    if statement.using is not None:
        # First as the join that it means, in which a name may be ambiguous.
        _Join.bound(Composed.of(*ctes, "SELECT 1 FROM ", statement.target, ", ", statement.using, *where), context)
        _check_apart(statement, statement.using, context)
        match = ("SELECT 1 FROM ", statement.using, *where)
        composed = Composed.of(*ctes, "SELECT 1 FROM ", statement.target, " WHERE EXISTS (", *match, ")")
    join = _Join.bound(composed, context)
    return with_lets(Projection(join.relation, tuple(range(context.target.arity))), join.binding)


def _check_apart(statement: Update | Delete, using: SqlText, context: _Context) -> None:
    """Refuses what a lateral relation takes of the target, which is not joined before it but with it."""
    try:
        _Join.bound(Composed.of(*_ctes(statement), "SELECT 1 FROM ", using), context)
    except UndefinedTable as error:
        raise InvalidColumnReference(
            error.message.replace("missing", "invalid reference to", 1),
            detail="It is the table that is written, which is joined with all others.",
            hint="Refer to it in WHERE, not within FROM or USING.",
            position=error.position,
        ) from None


def _joined_rows(statement: Delete, context: _Context) -> Relation:
    """Returns the plan of all matches: an old row and what is joined."""
    assert statement.using is not None
    where = () if statement.predicate is None else (" WHERE ", statement.predicate)
    parts = (*_ctes(statement), "SELECT 1 FROM ", statement.target, ", ", statement.using, *where)
    join = _Join.bound(Composed.of(*parts), context)
    return with_lets(join.relation, join.binding)


def _new_rows(statement: Update, context: _Context) -> Relation:
    """Returns the plan of all matches: an old row, the row that takes its place, and what is joined."""
    items: list[str | SqlText] = []
    for one in statement.assignments:
        if one.value is not None:
            items += [", ", one.value] if items else [one.value]
    using = () if statement.using is None else (", ", statement.using)
    where = () if statement.predicate is None else (" WHERE ", statement.predicate)
    ctes, from_ = _ctes(statement), (" FROM ", statement.target, *using, *where)
    join = _Join.bound(Composed.of(*ctes, "SELECT ", *(items or ["1"]), *from_), context)
    _check_rows(statement, using, context)
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
        value: Scalar
        identity = context.identities.get(one.column)
        if one.value is not None and identity is not None and identity.generated == "always":
            raise GeneratedAlways(
                f'column "{one.column}" can only be updated to DEFAULT',
                detail=f'Column "{one.column}" is an identity column defined as GENERATED ALWAYS.',
                position=position,
            )
        if one.value is not None:
            value = join.assigned(next(nodes), column)
        elif one.column in context.defaults:
            with in_zone(UTC):  # as all of a table's definition
                value = bind_default(column, context.defaults[one.column], context.circumstances)
        else:
            value = Literal(None, column.type)
        generates = one.value is None and identity is not None
        if isinstance(value, Literal) and value.value is None and not column.nullable and not generates:
            raise _null_in(column, position)
        new[place] = value
    joined = join.relation.relation_type.columns[len(columns) :]
    others = [ColumnRef(i, one.type, one.nullable, one.name) for i, one in enumerate(joined, len(columns))]
    called = (*names, *(f"new_{name}" for name in names), *(one.name for one in joined))
    return with_lets(projected(join.relation, (*old, *new, *others), called), join.binding)


def _check_rows(statement: Update, using: Sequence[str | SqlText], context: _Context) -> None:
    """Refuses `(column, ...) = (SELECT ...)` if the query has another number of columns."""
    rows = {one.row: one.offset for one in statement.assignments if one.row is not None}
    if not rows:
        return
    from_ = (*_ctes(statement), "SELECT 1 FROM ", statement.target, *using)
    alone = _Join.bound(Composed.of(*from_), context).relation.relation_type.arity
    for (query, count), offset in rows.items():
        joined = _Join.bound(Composed.of(*from_, ", LATERAL (", query, ") AS mz_row"), context)
        if joined.relation.relation_type.arity - alone != count:
            raise InvalidSyntax("number of columns does not match number of values", position=offset + 1)


@dataclass(frozen=True, slots=True)
class _Join:
    """The bound FROM and WHERE of a composed query, whose first columns are the target's.

    Attributes:
        composed: The query.
        select: Its syntax; what it selects is not bound yet.
        binding: The statement's state.
        source: The FROM clause.
        relation: The rows for which WHERE is true.
        tables: What the WITH clause names.
    """

    composed: Composed
    body: Body
    select: exp.Select
    binding: BindingContext
    source: FromItem
    relation: Relation
    tables: dict[str, CommonTable]

    @classmethod
    def bound(cls, composed: Composed, context: _Context) -> _Join:
        """Returns the bound query."""
        with composed.blamed():
            body = parse_body(composed.text)
            select = body.root
            if not isinstance(select, exp.Select):
                raise InvalidSyntax("syntax error: this is no condition", position=body.text.offset + 1)
            only_parts(body, select, "expressions", "from_", "joins", "where", "with_")
            binding = BindingContext(context.resolver, composed.parameters(context.parameters), context.circumstances)
            queries = Queries(binding, body)
            tables = queries.common_tables(select, {})
            binder = FromBinder(binding, body, tables, queries.ordered)
            with binding.binding_by(lambda one: queries.derived(one, binder)):
                source = binder.bind(select.args["from_"].this, list(select.args.get("joins") or []))
                where = select.args.get("where")
                relation = source.relation
                if where is not None:
                    predicate = Expressions(binding, body, source.scope, "WHERE").boolean(where.this, "WHERE")
                    relation = Filter(relation, (predicate,))
        return cls(composed, body, select, binding, source, relation, tables)

    def assigned(self, node: exp.Expr, column: Column) -> Scalar:
        """Returns the value that an expression assigns to a column."""
        return self.bound_by(lambda expressions, one: assigned(expressions, one, column), node)

    def bound_by(self, bind: Callable[[Expressions, exp.Expr], Out], node: exp.Expr) -> Out:
        """Returns what `bind` makes of an expression over the rows of FROM."""
        with self.composed.blamed():
            binder = FromBinder(self.binding, self.body, self.tables, Queries(self.binding, self.body).ordered)
            expressions = Expressions(self.binding, self.body, self.source.scope, "UPDATE")
            with self.binding.binding_by(lambda one: Queries(self.binding, self.body).derived(one, binder)):
                return bind(expressions, node)


def _write_defaults(body: Body) -> None:
    """Puts NULL in the place of each DEFAULT in a VALUES list, whose columns have no other."""
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
