"""Binds rows of values: ROW(...), comparisons of rows, whole rows of relations, fields.

Owns the two ways in which PostgreSQL compares rows. Written as rows, or asked of a subquery, they compare column by
column with SQL's third truth value: `(a, b) = (c, d)` is `a = c AND b = d`, `(a, b) < (c, d)` is `a < c OR (a = c AND
b < d)`. Records as values, a whole row of a relation for example, are equal if no field is distinct, and NULL is then
greater than everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from mz_dagster.plan.functions import Unknown
from mz_dagster.plan.record import field, record
from mz_dagster.plan.scalar import Call, If, Literal, Scalar
from mz_dagster.plan.types import BOOL, Kind
from mz_dagster.sql.binding import Bound, name_of, unwrapped
from mz_dagster.sql.enclosing import all_named
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    InvalidSyntax,
    UndefinedColumn,
    UnsupportedForm,
    WrongObjectKind,
    suggestion,
)

if TYPE_CHECKING:
    from mz_dagster.sql.expressions import Expressions

Compare = Callable[[str, Bound, Bound], Scalar]


def row_nodes(node: exp.Expr) -> list[exp.Expr] | None:
    """Returns the values of a row as written, `(a, b)` or `ROW(a, b)`; None if `node` is none."""
    node = unwrapped(node)
    if isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and name_of(node.this) == "row"):
        return list(node.expressions)
    return None


def bind_row(binder: Expressions, node: exp.Expr) -> list[tuple[Bound, exp.Expr]]:
    """Returns the values of a row as written, each with its syntax; `t.*` stands for all columns of `t`."""
    found: list[tuple[Bound, exp.Expr]] = []
    for one in row_nodes(node) or []:
        if isinstance(one, exp.Column) and isinstance(one.this, exp.Star):
            position = binder.body.position(one)
            columns = all_named(binder.scope, binder.binding.enclosing, name_of(one.args["table"]), position)
            found += [(column, one) for column in columns]
        else:
            found.append((binder.bind(one), one))
    return found


def bind_record(binder: Expressions, node: exp.Expr) -> Scalar:
    """Returns a row as written, as one value."""
    values = bind_row(binder, node)
    if not values:
        raise UnsupportedForm(
            "a row without values is not supported",
            detail="A record is stored by its fields.",
            position=binder.body.position(node),
        )
    return record([binder.as_type(bound, None, one) for bound, one in values])


def compared_rows(symbol: str, left: Sequence[Bound], right: Sequence[Bound], compare: Compare) -> Scalar:
    """Returns the comparison of two rows of one length, by that of their values."""
    pairs = list(zip(left, right, strict=True))
    if symbol in ("=", "<>"):
        tests = [compare(symbol, a, b) for a, b in pairs]
        return _connected("and" if symbol == "=" else "or", tests)
    *before, (last_left, last_right) = pairs
    result = compare(symbol, last_left, last_right)
    for a, b in reversed(before):
        equal = _connected("and", [compare("=", a, b), result])
        result = _connected("or", [compare(symbol[0], a, b), equal])
    return result


def bind_compared_rows(binder: Expressions, node: exp.Binary, symbol: str) -> Scalar | None:
    """Returns a comparison of which a side is a row as written; None if neither is."""
    sides = (node.this, node.expression)
    position = binder.body.operator_position(node)
    rows = [row_nodes(one) for one in sides]
    if rows == [None, None]:
        return None
    width = len(rows[0] if rows[0] is not None else rows[1] or [])
    values: list[list[Bound]] = []
    for side, row in zip(sides, rows, strict=True):
        if row is not None:
            values.append([bound for bound, _ in bind_row(binder, side)])
            continue
        found = _of_query(binder, side, width) if side is node.expression else None
        if found is None:
            return None
        values.append(found)
    return row_comparison(binder, symbol, values[0], values[1], position)


def row_comparison(
    binder: Expressions, symbol: str, left: Sequence[Bound], right: Sequence[Bound], position: int
) -> Scalar:
    """Returns the comparison of two rows as written; raises if they are not of one length."""
    if len(left) != len(right):
        raise InvalidSyntax("unequal number of entries in row expressions", position=position)
    if not left:
        raise UnsupportedForm("cannot compare rows of zero length", position=position)
    return compared_rows(symbol, left, right, lambda one, a, b: binder.operator(one, [a, b], position))


def _of_query(binder: Expressions, node: exp.Expr, width: int) -> list[Bound] | None:
    """Returns the columns of the one row of a subquery, compared with a row; None if `node` is none."""
    from mz_dagster.sql.subqueries import bind_row_subquery, is_query  # local: it compares rows as well

    node = unwrapped(node)
    return list(bind_row_subquery(binder, node, width)) if is_query(node) else None


def rows_distinct(binder: Expressions, symbol: str, node: exp.Binary) -> Scalar | None:
    """Returns `row IS [NOT] DISTINCT FROM row`; None if the sides are not both rows as written."""
    if row_nodes(node.this) is None or row_nodes(node.expression) is None:
        return None
    position = binder.body.operator_position(node)
    left, right = ([bound for bound, _ in bind_row(binder, one)] for one in (node.this, node.expression))
    if len(left) != len(right):
        raise InvalidSyntax("unequal number of entries in row expressions", position=position)
    tests = [binder.operator(symbol, [a, b], position) for a, b in zip(left, right, strict=True)]
    return _connected("and" if symbol.startswith("is not") else "or", tests)


def null_test(scalar: Scalar, *, negated: bool) -> Scalar:
    """Returns whether all fields of a record are NULL; negated: whether none is, which is not the contrary."""
    name = "is_not_null" if negated else "is_null"
    fields = [field(scalar, number) for number in range(len(scalar.type.fields))]
    return _connected("and", [Call(name, (one,), BOOL, False) for one in fields])


def compared_records(binder: Expressions, symbol: str, left: Scalar, right: Scalar, position: int) -> Scalar:
    """Returns the comparison of two records as values."""
    types = [[type_ for _, type_ in one.type.fields] for one in (left, right)]
    if len(types[0]) != len(types[1]):
        raise DatatypeMismatch("cannot compare record types with different numbers of columns", position=position)
    for number, (a, b) in enumerate(zip(*types, strict=True), 1):
        if a.kind is not b.kind:
            message = f"cannot compare dissimilar column types {a} and {b} at record column {number}"
            raise DatatypeMismatch(message, position=position)

    def compare(one: str, a: Bound, b: Bound) -> Scalar:
        assert not isinstance(a, Unknown)
        assert not isinstance(b, Unknown)
        if one == "=":
            return binder.operator("is not distinct from", [a, b], position)
        if one == "<>":
            return binder.operator("is distinct from", [a, b], position)
        return _with_nulls(one, a, b, binder.operator(one, [a, b], position))

    fields = [[field(one, number) for number in range(len(types[0]))] for one in (left, right)]
    found = compared_rows(symbol, fields[0], fields[1], compare)
    missing = [Call("is_null", (one,), BOOL, False) for one in (left, right) if one.nullable]
    return If(_connected("or", missing), Literal(None, BOOL), found) if missing else found


def records_distinct(binder: Expressions, symbol: str, left: Scalar, right: Scalar, position: int) -> Scalar:
    """Returns `left IS [NOT] DISTINCT FROM right` for two records as values."""
    same = compared_records(binder, "=", left, right, position)
    missing = [Call("is_null", (one,), BOOL, False) for one in (left, right)]
    if left.nullable or right.nullable:
        same = If(_connected("or", missing), _connected("and", missing), same)
    return same if symbol.startswith("is not") else binder.operator("not", [same], position)


def _with_nulls(symbol: str, a: Scalar, b: Scalar, test: Scalar) -> Scalar:
    """Returns an order's comparison in which NULL is greater than everything and equals NULL."""
    if not a.nullable and not b.nullable:
        return test
    nulls = [Call("is_null", (one,), BOOL, False) for one in (a, b)]
    less, or_equal = symbol[0] == "<", symbol.endswith("=")
    # Of a and b: whose being NULL alone proves the comparison, and whose refutes it.
    proves, refutes = (nulls[1], nulls[0]) if less else (nulls[0], nulls[1])
    both = If(proves, Literal(or_equal, BOOL), Literal(False, BOOL))
    return If(refutes, both, If(proves, Literal(True, BOOL), test))


def bind_field(binder: Expressions, node: exp.Dot) -> Scalar:
    """Returns `(record).name`."""
    value = binder.typed(node.this)
    position = binder.body.position(node.expression)
    name = name_of(node.expression)
    if value.type.kind is not Kind.RECORD:
        message = f"column notation .{name} applied to type {value.type}, which is not a composite type"
        raise WrongObjectKind(message, position=binder.body.position(node))
    names = [one for one, _ in value.type.fields]
    if name not in names:
        raise UndefinedColumn(
            f'column "{name}" not found in data type record', hint=suggestion(name, names), position=position
        )
    return field(value, names.index(name))


def bind_all_fields(binder: Expressions, node: exp.Dot) -> list[tuple[str, Scalar]]:
    """Returns the names and values of the fields in `(record).*`."""
    value = binder.typed(node.this)
    if value.type.kind is not Kind.RECORD:
        raise DatatypeMismatch(f"type {value.type} is not composite", position=binder.body.position(node))
    return [(name, field(value, number)) for number, (name, _) in enumerate(value.type.fields)]


def whole_row(binder: Expressions, node: exp.Column) -> Scalar | None:
    """Returns the row of the relation that a name means which is no column's; None if it is no relation's either."""
    name, position = name_of(node.this), binder.body.position(node)
    scopes = [binder.scope, *(one.scope for one in reversed(binder.binding.enclosing) if one.visible)]
    if any(scope.offers(None, name) for scope in scopes):
        return None
    nearest = next((scope for scope in scopes if scope.offers(name, "")), None)
    if nearest is None:
        return None
    table = nearest.table(name, position)
    if table.maybe_missing:
        raise UnsupportedForm(
            f'the whole row of "{name}" is not supported here',
            detail="Behind an outer join it may be NULL, which is not a row of NULLs.",
            hint=f'Name its columns, or write "{name}.*".',
            position=position,
        )
    columns = all_named(binder.scope, binder.binding.enclosing, name, position)
    if table.is_value:
        return columns[0]
    return record(columns, [column.name for column in table.columns])


def _connected(word: str, tests: Sequence[Scalar]) -> Scalar:
    return tests[0] if len(tests) == 1 else Call(word, tuple(tests), BOOL, any(one.nullable for one in tests))
