"""The binder's entrances: queries, definitions of views, one-off selects, writes, times.

Owns what each kind of statement may contain. Everything returned is a typed plan over what the resolver
answered; the caller needs no syntax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from mz_dagster.formalism import GlobalId
from mz_dagster.functions import UTC as IN_UTC
from mz_dagster.functions import Failure, Unknown, in_zone, literal_of, type_name
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.plan.transform.comparable_columns import with_sortable_columns
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.types import MZ_TIMESTAMP, TIMESTAMPTZ, Kind, RelationType
from mz_dagster.sql.binding import BindingContext
from mz_dagster.sql.body_parser import Body, parse_body, parse_scalar
from mz_dagster.sql.circumstances import Circumstances, zone_of
from mz_dagster.sql.comparability import check_order
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    InvalidParameterValue,
    InvalidSyntax,
    InvalidTableDefinition,
    UnsupportedForm,
    error_of,
)
from mz_dagster.sql.expressions import Expressions
from mz_dagster.sql.finishing import RowSetFinishing
from mz_dagster.sql.ordering import folded
from mz_dagster.sql.pending import Pending
from mz_dagster.sql.query import Queries, with_lets
from mz_dagster.sql.scope import Scope
from mz_dagster.sql.statements import AsOf, SqlText

#: Column names under which shards keep their own data.
RESERVED_COLUMNS = ("mz_timestamp", "mz_diff", "mz_error", "mz_batch")


class _NoNames:
    def resolve(self, name: tuple[str, ...]) -> Item | None:
        return None

    def names(self) -> tuple[str, ...]:
        return ()


#: The resolver of what may name no relation.
NO_NAMES: Resolver = _NoNames()


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query that has become a plan.

    Attributes:
        relation: The plan. It has the columns that are handed out, then those only `finishing` needs.
        relation_type: Of the columns that are handed out, with their names.
        depends: All items that were named, plain views included.
        names: The names as used, and what they stood for.
        uses: Where in the text each of those names stands, as its position.
        timeline: The one timeline of all that is read; None for constants.
        finishing: ORDER BY, LIMIT, OFFSET.
        is_of_moment: Whether it may be another when it is executed again, though nothing is defined otherwise: by what
            the clock, the session or the system catalogs say then, or by chance.
    """

    relation: Relation
    relation_type: RelationType
    depends: frozenset[GlobalId]
    names: Mapping[str, GlobalId]
    uses: tuple[tuple[int, str], ...]
    timeline: str | None
    finishing: RowSetFinishing
    is_of_moment: bool


def bind_query(
    query: SqlText, resolver: Resolver, *, params: Sequence[object] = (), circumstances: Circumstances | None = None
) -> BoundQuery:
    """Returns the plan of a one-off query.

    Args:
        query: Its text.
        resolver: Answers names.
        params: The values of all `?` of the statement, in order.
        circumstances: When and by whom it is executed; without them `now()` and its like are refused.

    Raises:
        ProgrammingError: A name or type is wrong; with position and SQLSTATE.
        NotSupportedError: A form is legal but refused; with position and reason.
    """
    return bind_parsed(parse_body(query), resolver, params=params, circumstances=circumstances)


def bind_parsed(
    body: Body, resolver: Resolver, *, params: Sequence[object] = (), circumstances: Circumstances | None = None
) -> BoundQuery:
    """Returns what `bind_query` does of a query that was parsed before."""
    binding = BindingContext(resolver, params, circumstances)
    with zone_of(circumstances):
        return finished(binding, Queries(binding, body).bind(body.root, {}, finishing=True))


def finished(binding: BindingContext, pending: Pending) -> BoundQuery:
    """Returns the one-off query that `pending` is, whose order, limit and offset are left to its finishing."""
    shown = pending.names[: pending.shown]
    relation, order = with_sortable_columns(_plan(pending, binding), pending.order)
    types = tuple(column.type for column in relation.relation_type.columns)
    finishing = RowSetFinishing(order, pending.limit, pending.offset, tuple(range(len(shown))), types)
    columns = RelationType(relation.relation_type.columns[: len(shown)])
    if len(shown) == relation.relation_type.arity:
        columns = relation.relation_type
    return bound_query(binding, relation, columns.with_names(shown), finishing)


def bind_definition(query: SqlText, columns: Sequence[str], resolver: Resolver, *, zone: str = IN_UTC) -> BoundQuery:
    """Returns the plan of a view's query, whose first columns are renamed by `columns`.

    Rows of a collection have no order: an ORDER BY at the end that no LIMIT follows is checked, and without effect.
    What it means is the same in all sessions: conversions are those of UTC, or of another `zone` for who asks for that.

    Raises:
        DuplicateColumn: Two columns would bear one name.
        NotSupportedError: As for `bind_query`.
        InvalidTableDefinition: A column bears a name that shards need for themselves.
    """
    with in_zone(zone):
        return _bind_named(
            query, columns, BindingContext(resolver), "CREATE VIEW specifies more column names than columns"
        )


def bind_rows(
    query: SqlText,
    columns: Sequence[str],
    resolver: Resolver,
    *,
    params: Sequence[object] = (),
    circumstances: Circumstances | None = None,
) -> BoundQuery:
    """Returns the plan of a query whose rows a table is made of, and whose first columns are renamed by `columns`.

    Rows of a table have no order, as in `bind_definition`; but its parameters and `now()` have values.

    Raises:
        InvalidTableDefinition: A column bears a name that shards need for themselves, or is a record.
        ProgrammingError: As for `bind_definition`.
        NotSupportedError: As for `bind_query`.
    """
    with zone_of(circumstances):
        bound = _bind_named(
            query, columns, BindingContext(resolver, params, circumstances), "too many column names were specified"
        )
    for one in bound.relation_type.columns:
        if one.type.kind is Kind.RECORD or one.type.holds((Kind.RECORD,)):
            raise InvalidTableDefinition(
                f'column "{one.name}" has pseudo-type record', hint="Select its fields.", position=query.offset + 1
            )
    return bound


def _bind_named(query: SqlText, columns: Sequence[str], binding: BindingContext, too_many: str) -> BoundQuery:
    """Returns the plan of a query whose first columns are renamed, and all of whose columns have names of their own."""
    position = query.offset + 1
    body = parse_body(query)
    pending = Queries(binding, body).bind(body.root, {}, drops_order=True)
    relation = _plan(pending, binding)
    own = pending.names
    if len(columns) > len(own):
        raise InvalidSyntax(too_many, position=position)
    names = (*columns, *own[len(columns) :])
    for i, name in enumerate(names):
        node = pending.nodes[0][i]
        if names.index(name) != i:
            raise DuplicateColumn(
                f'column "{name}" specified more than once',
                hint="Give it another name with AS.",
                position=body.position(node),
            )
        if name in RESERVED_COLUMNS:
            raise InvalidTableDefinition(
                f'column name "{name}" is reserved',
                detail="Shards keep times, diffs and errors of updates under such names.",
                hint="Give it another name with AS.",
                position=body.position(node),
            )
    return bound_query(binding, relation, relation.relation_type.with_names(names))


def bind_predicate(
    columns: RelationType,
    text: SqlText,
    *,
    table: str | None = None,
    params: Sequence[object] = (),
    circumstances: Circumstances | None = None,
) -> Scalar:
    """Returns the boolean scalar that `text` is over the columns of one relation."""
    body = parse_scalar(text)
    return _scalars(columns, body, table, params, circumstances).boolean(body.root, "WHERE")


def bind_time(text: SqlText, *, params: Sequence[object] = (), circumstances: Circumstances | None = None) -> int:
    """Returns the time, in the timeline's own numbers, that a constant of AS OF or UP TO is, `now()` among them.

    A number, or a text of one, is the time itself; a date or timestamp is its milliseconds since 1970, in UTC.
    """
    body = parse_scalar(text)
    position = text.offset + 1
    binding = BindingContext(NO_NAMES, params, circumstances)
    bound = Expressions(binding, body, Scope(), "AS OF").bind(body.root)
    if isinstance(bound, Unknown):
        if bound.text is None:
            raise InvalidParameterValue("a time must not be NULL", position=position)
        found = literal_of(bound.text, MZ_TIMESTAMP)
        if isinstance(found, Failure):
            found = literal_of(bound.text, TIMESTAMPTZ)
        if isinstance(found, Failure):
            raise error_of(Failure("22P02", f'invalid input syntax for type mz_timestamp: "{bound.text}"'), position)
        bound = found
    bound = folded(bound)
    if not isinstance(bound, Literal):
        raise UnsupportedForm(
            "a time that is not a constant is not supported",
            hint="Write a number of milliseconds, or a quoted timestamp.",
            position=position,
        )
    return _time_of(bound, position)


def bind_as_of(as_of: AsOf, *, params: Sequence[object] = (), circumstances: Circumstances | None = None) -> int:
    """Returns the time of `AS OF`."""
    return bind_time(as_of.time, params=params, circumstances=circumstances)


def _time_of(literal: Literal, position: int) -> int:
    value = literal.value
    time: int | None = None
    match value:
        case bool():
            pass
        case int():
            time = value
        case datetime():
            aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
            delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
            time = (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000
        case date():
            time = (value - date(1970, 1, 1)).days * 86_400_000
        case Decimal():
            time = int(value) if value == int(value) else None
        case _:
            pass
    if time is None:
        raise DatatypeMismatch(
            f"a time must not be of type {type_name(literal.type)}" if value is not None else "a time must not be NULL",
            position=position,
        )
    if not 0 <= time < 2**63:
        raise InvalidParameterValue("mz_timestamp out of range", position=position)
    return time


def _plan(pending: Pending, binding: BindingContext) -> Relation:
    position = pending.body.position(pending.body.root)
    relation = pending.finish(pending.common_types("VALUES"), "VALUES")
    check_order((relation.relation_type.columns[key.position].type for key in pending.order), position)
    return with_lets(relation, binding, position)


def bound_query(
    binding: BindingContext, relation: Relation, relation_type: RelationType, finishing: RowSetFinishing | None = None
) -> BoundQuery:
    """Returns what the binding of a query has come to; without `finishing` its rows have no order and no limit."""
    if finishing is None:
        types = tuple(column.type for column in relation_type.columns)
        finishing = RowSetFinishing((), None, 0, tuple(range(len(types))), types)
    timeline = next(iter(binding.timelines), None)
    return BoundQuery(
        relation,
        relation_type,
        frozenset(binding.depends),
        dict(binding.names),
        tuple(binding.uses),
        timeline,
        finishing,
        binding.is_of_moment,
    )


def _scalars(
    columns: RelationType,
    body: Body,
    table: str | None,
    params: Sequence[object],
    circumstances: Circumstances | None = None,
) -> Expressions:
    return Expressions(BindingContext(NO_NAMES, params, circumstances), body, Scope.of(table, columns), "WHERE")
