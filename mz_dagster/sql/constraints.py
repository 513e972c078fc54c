"""What a table's definition demands of its rows, bound: defaults, CHECK conditions, keys.

Keys are looked up by `=`, as PostgreSQL does: a row with a NULL in a key equals none, and `0.0` is `-0.0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp

from mz_dagster.formalism import GlobalId
from mz_dagster.functions import UTC, CastContext, Failure, Unknown, cast, in_zone, type_name
from mz_dagster.functions.evaluation import compiled, is_evaluable
from mz_dagster.functions.plain import from_plain, to_plain
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.relation import Constant, Filter, Get, Projection, Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, Value, columns_of, walk
from mz_dagster.scalars.types import BOOL, INT8, Column, RelationType, ScalarType
from mz_dagster.sql.binder import bind_parsed
from mz_dagster.sql.binding import BindingContext
from mz_dagster.sql.body_parser import Body, parse_scalar
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.declared_keys import UniqueKey
from mz_dagster.sql.errors import DatatypeMismatch, InvalidObjectDefinition, UnsupportedForm
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.parsed_bodies import body_of, scalar_body_of
from mz_dagster.sql.pending import projected
from mz_dagster.sql.schemas import names_in
from mz_dagster.sql.scope import Scope
from mz_dagster.sql.session_values import CHANCE
from mz_dagster.sql.statements import CheckConstraint, CreateTable, Identity, SqlText

#: Up to how many rows are constants of a plan that reads them.
_MOST_LITERAL = 100
#: What the number of a written row among all that are written is called; nobody can write it by chance.
ORDINAL = "number of the row"
#: What the table is called whose rows are matched to given keys, likewise.
MATCHED = "table that is matched"


@dataclass(frozen=True, slots=True)
class TableConstraints:
    """What a table's definition demands of its rows, beside types and NOT NULL.

    Attributes:
        defaults: By column.
        keys: The columns in which no two rows are equal.
        checks: The conditions that no row makes false.
        identities: How columns generate their values, by column.
        computed: What columns are computed by of the others, by column.
    """

    defaults: Mapping[str, SqlText]
    keys: tuple[UniqueKey, ...]
    checks: tuple[CheckConstraint, ...]
    identities: Mapping[str, Identity]
    computed: Mapping[str, SqlText]

    @classmethod
    def of(cls, statement: CreateTable) -> TableConstraints:
        """Returns those of a table."""
        defaults = {one.name: one.default for one in statement.columns if one.default is not None}
        identities = {one.name: one.identity for one in statement.columns if one.identity is not None}
        computed = {one.name: one.computed for one in statement.columns if one.computed is not None}
        return cls(defaults, statement.keys, statement.checks, identities, computed)

    def __bool__(self) -> bool:
        return bool(self.keys or self.checks)

    @property
    def by_chance(self) -> Mapping[str, SqlText]:
        """The defaults that are another value for each row, by column."""
        return {name: text for name, text in self.defaults.items() if is_by_chance(text)}


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows:
    """Rows that are handed to who reads a plan: it reads them as a collection, and holds none of them itself.

    Attributes:
        columns: Their columns.
        rows: The rows.
    """

    columns: RelationType
    rows: Sequence[Sequence[Value]]
    id: ClassVar[GlobalId] = GlobalId("rows written")


@dataclass(frozen=True, slots=True)
class OverRows:
    """A plan with the rows that it is to be read with, if it has not got them itself."""

    relation: Relation
    given: GivenRows | None = None

    @classmethod
    def of(cls, columns: RelationType, rows: Sequence[Sequence[Value]]) -> OverRows:
        """Returns the plan of rows of some columns.

        Few are constants of the plan, by which what is read may be sought. Many would take longer to be bound, planned
        and compared than to be read: they are given.
        """
        type_ = RelationType(columns.columns)
        if len(rows) > _MOST_LITERAL:
            return cls(Get(GivenRows.id, type_, WrittenRows.name), GivenRows(type_, rows))
        return cls(Constant(literal_rows(rows, columns.columns), type_))


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Resolves one name that nobody can write by chance to given rows (`OverRows.of`), all others as before."""

    resolver: Resolver
    item: Item
    given: GivenRows | None = None
    name = str(GivenRows.id)

    @classmethod
    def of(cls, resolver: Resolver, columns: RelationType, rows: Sequence[Sequence[Value]] = ()) -> WrittenRows:
        """Returns the resolver of rows of a table's columns."""
        over = OverRows.of(columns, rows)
        item = Item(GivenRows.id, cls.name, "view", over.relation.relation_type, None, over.relation)
        return cls(resolver, item, over.given)

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        return self.item if name == (self.name,) else self.resolver.resolve(name)

    def names(self) -> tuple[str, ...]:
        """Returns the names that somebody may have meant."""
        return self.resolver.names()


def literal_rows(rows: Sequence[Sequence[Value]], columns: Sequence[Column]) -> tuple[tuple[Literal, ...], ...]:
    """Returns rows of values as those of a constant relation."""
    return tuple(
        tuple(Literal(_listed(cell), one.type) for cell, one in zip(row, columns, strict=True)) for row in rows
    )


def check_definition(statement: CreateTable) -> None:
    """Refuses defaults and conditions that could not be evaluated of a row alone.

    Raises:
        ProgrammingError: One does not bind, or is of another type.
        UnsupportedForm: One has a subquery.
    """
    columns = RelationType(tuple(Column(one.name, one.type, one.nullable) for one in statement.columns))
    for column, one in zip(columns.columns, statement.columns, strict=True):
        if one.default is not None:
            bind_default(column, one.default, Circumstances())
    computed = {one.name: one.computed for one in statement.columns if one.computed is not None}
    for name in computed:
        bind_computed(statement.name.last, columns, name, computed)
    for check in statement.checks:
        bind_check(statement.name.last, columns, check, Circumstances())


def is_by_chance(default: SqlText) -> bool:
    """Returns whether a DEFAULT is another value for each row: whether it calls `random()` or `gen_random_uuid()`."""
    tokens = tokens_of(default.text)
    return any(one.is_word(*CHANCE) and behind.is_symbol("(") for one, behind in pairwise(tokens))


def bind_defaults(
    column: Column, default: SqlText, circumstances: Circumstances | None, count: int
) -> Iterator[Scalar]:
    """Yields the value of a column's DEFAULT for each of so many rows."""
    body = _parsed(default, "DEFAULT expression")
    types = _TypesOf((column,))
    for _ in range(count):
        yield assigned(
            Expressions(BindingContext(types, (), circumstances), body, Scope(), "DEFAULT"), body.root, column
        )


def bind_default(column: Column, default: SqlText, circumstances: Circumstances | None) -> Scalar:
    """Returns the value of a column's DEFAULT, cast as an assignment casts it."""
    return next(bind_defaults(column, default, circumstances, 1))


def bind_check(
    table: str, columns: RelationType, check: CheckConstraint, circumstances: Circumstances | None
) -> Scalar:
    """Returns a CHECK's condition over the columns of its table."""
    body = _parsed(check.predicate, "check constraint")
    scope = Scope.of(table, columns)
    binding = BindingContext(_TypesOf(columns.columns), (), circumstances)
    return Expressions(binding, body, scope, "CHECK").boolean(body.root, "CHECK")


def bind_computed(
    table: str, columns: RelationType, name: str, computed: Mapping[str, SqlText], zone: str = UTC
) -> Scalar:
    """Returns what a column is computed by, over the columns of its table, cast as an assignment casts it.

    Args:
        table: The table.
        columns: Its columns.
        name: The column.
        computed: What columns are computed by, by their names.
        zone: The time zone that it is read in; another than UTC is for comparison.

    Raises:
        InvalidObjectDefinition: It is computed of a column that is computed itself.
    """
    body = _parsed(computed[name], "column generation expression")
    column = columns.columns[columns.names.index(name)]
    binder = Expressions(BindingContext(_TypesOf(columns.columns), ()), body, Scope.of(table, columns), "GENERATED")
    with in_zone(zone):
        found = assigned(binder, body.root, column)
    for one in walk(found):
        if isinstance(one, ColumnRef) and (used := columns.names[one.position]) in computed:
            raise InvalidObjectDefinition(
                f'cannot use generated column "{used}" in column generation expression',
                detail="A generated column cannot reference another generated column.",
                position=body.position(body.root),
            )
    return found


def evaluated(scalar: Scalar, columns: RelationType, rows: Sequence[Sequence[Value]]) -> list[Any] | None:
    """Returns what a scalar over a table's columns is for each of given rows.

    None if it is not evaluated here, or fails for one of them: then it is computed as a query is, which says so.
    """
    if not is_evaluable(scalar):
        return None
    evaluate = compiled(scalar)
    types = {i: columns.columns[i].type for i in sorted(columns_of(scalar))}
    try:
        found = [evaluate({i: to_plain(_listed(row[i]), one) for i, one in types.items()}) for row in rows]
    except SqlFailure:
        return None
    return [from_plain(one, scalar.type) for one in found]


def _listed(cell: Value) -> Value:
    """Returns a cell as a literal has it."""
    return tuple(cell) if isinstance(cell, list) else cell


def over_numbered(scalar: Scalar, columns: RelationType, rows: Sequence[Sequence[Value]]) -> OverRows:
    """Returns the plan of what a scalar over a table's columns is for each of numbered rows: its number, and that."""
    over = OverRows.of(numbered_columns(columns.columns), rows)
    shown = projected(over.relation, (ColumnRef(columns.arity, INT8, False, ORDINAL), scalar), (ORDINAL, "value"))
    return OverRows(shown, over.given)


def numbered_columns(columns: Sequence[Column]) -> RelationType:
    """Returns the columns of rows behind each of which its number stands."""
    return RelationType((*columns, Column(ORDINAL, INT8, False)))


@dataclass(frozen=True, slots=True)
class _TypesOf:
    """Resolves the types of a table's columns, which its defaults and conditions may name, and nothing else."""

    columns: tuple[Column, ...]

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        for column in self.columns:
            type_ = column.type.array_element or column.type
            if type_.enumeration is not None and name[-1] == names_in(type_.enumeration.name)[-1]:
                values = RelationType((Column("value", type_),))
                return Item(GlobalId(type_.enumeration.name), name[-1], "type", values, None)
        return None

    def names(self) -> tuple[str, ...]:
        return ()


def _parsed(text: SqlText, what: str) -> Body:
    return _without_query(scalar_body_of(text), what)


def _without_query(body: Body, what: str) -> Body:
    query = body.root.find(exp.Query)
    if query is not None:
        raise UnsupportedForm(f"cannot use subquery in {what}", position=body.position(query))
    return body


def assigned(expressions: ExpressionBinder, node: exp.Expr, column: Column) -> Scalar:
    """Returns the value that an expression assigns to a column.

    Raises:
        DatatypeMismatch: It is of a type that does not become the column's by itself.
    """
    bound = expressions.bind(node)
    if isinstance(bound, Unknown):
        return expressions.literal(bound, column.type, node, assigned=True)
    found = cast(bound.type, column.type, CastContext.ASSIGNMENT)
    if isinstance(found, Failure):
        raise DatatypeMismatch(
            f'column "{column.name}" is of type {type_name(column.type)} '
            f"but expression is of type {type_name(bound.type)}",
            hint="You will need to rewrite or cast the expression.",
            position=expressions.body.position(node),
        )
    return found.apply(bound)


def bind_argument(
    number: int,
    text: SqlText,
    type_: ScalarType,
    resolver: Resolver,
    params: Sequence[object],
    circumstances: Circumstances | None,
) -> Scalar:
    """Returns the value that EXECUTE gives a parameter, cast as an assignment casts it.

    Raises:
        DatatypeMismatch: It is of a type that does not become the parameter's by itself.
        UnsupportedForm: It has a subquery.
    """
    body = _without_query(parse_scalar(text), "EXECUTE parameter")
    expressions = Expressions(BindingContext(resolver, params, circumstances), body, Scope(), "EXECUTE")
    bound = expressions.bind(body.root)
    if isinstance(bound, Unknown):
        return expressions.literal(bound, type_, body.root, assigned=True)
    found = cast(bound.type, type_, CastContext.ASSIGNMENT)
    if isinstance(found, Failure):
        raise DatatypeMismatch(
            f"parameter ${number} of type {type_name(bound.type)} "
            f"cannot be coerced to the expected type {type_name(type_)}",
            hint="You will need to rewrite or cast the expression.",
            position=expressions.body.position(body.root),
        )
    return found.apply(bound)


def bind_present(
    key: UniqueKey, table: str, columns: RelationType, rows: Sequence[Sequence[Value]], resolver: Resolver
) -> OverRows:
    """Returns the query for the rows of a table that are equal to given ones in a key.

    Its columns are the number of the given row, then the table's own. Of the given rows it has the cells of the key,
    and the number. A single row is looked up, which is planned sooner than a join.
    """
    if len(rows) == 1:
        ((*cells, number),) = literal_rows(rows, numbered_columns(_key_columns(key, columns)).columns)
        query = f"SELECT ?, o.* FROM {quoted(table)} AS o WHERE " + " AND ".join(
            f"o.{quoted(one)} = ?" for one in key.columns
        )
        return OverRows(bind_parsed(body_of(SqlText(query)), resolver, params=[number, *cells]).relation)
    query = (
        f"SELECT n.{quoted(ORDINAL)}, o.* FROM {quoted(WrittenRows.name)} AS n JOIN {quoted(table)} AS o ON "
        + " AND ".join(f"n.{quoted(one)} = o.{quoted(one)}" for one in key.columns)
    )
    return _over_numbered(query, key, columns, rows, resolver)


def bind_matching(
    columns: Sequence[str], keys: Sequence[Sequence[Value]], types: Sequence[Column], resolver: Resolver, *, whole: bool
) -> OverRows:
    """Returns the query for the rows of a table that are equal to given keys in some columns.

    Its columns are the number of the given key, and if the rows are wanted whole, the table's own behind it. A single
    key is looked up, which is planned sooner than a join.

    Args:
        columns: The table's columns.
        keys: The cells of each key, none of them NULL.
        types: Of what types these are.
        resolver: Resolves `MATCHED` to the table.
        whole: Whether the rows are wanted, and not only which keys have any.
    """
    numbered = RelationType(
        (*(Column(f"k{i}", one.type, False) for i, one in enumerate(types)), Column(ORDINAL, INT8, False))
    )
    shown = ", o.*" if whole else ""
    table = quoted(MATCHED)
    if len(keys) == 1:
        ((*cells, number),) = literal_rows([(*keys[0], 0)], numbered.columns)
        equal = " AND ".join(f"o.{quoted(one)} = ?" for one in columns)
        query = f"SELECT ?{shown} FROM {table} AS o WHERE {equal}"
        return OverRows(bind_parsed(body_of(SqlText(query)), resolver, params=[number, *cells]).relation)
    equal = " AND ".join(f"n.k{i} = o.{quoted(one)}" for i, one in enumerate(columns))
    query = f"SELECT n.{quoted(ORDINAL)}{shown} FROM {quoted(WrittenRows.name)} AS n JOIN {table} AS o ON {equal}"
    written = WrittenRows.of(resolver, numbered, [(*key, number) for number, key in enumerate(keys)])
    return OverRows(bind_parsed(body_of(SqlText(query)), written).relation, written.given)


def bind_equal(key: UniqueKey, columns: RelationType, rows: Sequence[Sequence[Value]], resolver: Resolver) -> OverRows:
    """Returns the query for which of given rows are equal in a key: the number of the later, and of the earlier.

    It has of them what `bind_present` has.
    """
    number, written = quoted(ORDINAL), quoted(WrittenRows.name)
    query = (
        f"SELECT a.{number}, b.{number} FROM {written} AS a JOIN {written} AS b ON a.{number} > b.{number} AND "
        + " AND ".join(f"a.{quoted(one)} = b.{quoted(one)}" for one in key.columns)
    )
    return _over_numbered(query, key, columns, rows, resolver)


def _over_numbered(
    query: str, key: UniqueKey, columns: RelationType, rows: Sequence[Sequence[Value]], resolver: Resolver
) -> OverRows:
    numbered = numbered_columns(_key_columns(key, columns))
    written = WrittenRows.of(resolver, numbered, rows)
    return OverRows(bind_parsed(body_of(SqlText(query)), written).relation, written.given)


def _key_columns(key: UniqueKey, columns: RelationType) -> list[Column]:
    return [columns.columns[columns.names.index(name)] for name in key.columns]


def violations(predicate: Scalar, columns: RelationType, rows: Sequence[Sequence[Value]]) -> OverRows:
    """Returns the plan of the numbers of those of numbered rows that make a condition false."""
    over = OverRows.of(numbered_columns(columns.columns), rows)
    violating = Filter(over.relation, (Call("not", (predicate,), BOOL),))
    return OverRows(Projection(violating, (columns.arity,)), over.given)
