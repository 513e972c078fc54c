"""Binds rows of values: ROW(...), whole rows of relations, fields."""

from __future__ import annotations

from sqlglot import exp

from mz_dagster.scalars.record import field, record
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, Kind
from mz_dagster.sql.binding import Bound, name_of, qualifier_of, unwrapped
from mz_dagster.sql.enclosing import all_named, named
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    UndefinedColumn,
    UnsupportedForm,
    WrongObjectKind,
    suggestion,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.output_columns import bare_name
from mz_dagster.sql.scope import Scope, ScopeTable


def row_nodes(node: exp.Expr) -> list[exp.Expr] | None:
    """Returns the values of a row as written, `(a, b)` or `ROW(a, b)`; None if `node` is none."""
    node = unwrapped(node)
    if isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and name_of(node.this) == "row"):
        return list(node.expressions)
    return None


def bind_row(binder: ExpressionBinder, node: exp.Expr) -> list[tuple[Bound, exp.Expr]]:
    """Returns the values of a row as written, each with its syntax; `t.*` stands for all columns of `t`."""
    found: list[tuple[Bound, exp.Expr]] = []
    for one in row_nodes(node) or []:
        if isinstance(one, exp.Column) and isinstance(one.this, exp.Star):
            position = binder.body.position(one)
            columns = all_named(binder.scope, binder.binding.enclosing, qualifier_of(one) or "", position)
            found += [(column, one) for column in columns]
        else:
            found.append((binder.bind(one), one))
    return found


def bind_record(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    """Returns a row as written, as one value."""
    values = bind_row(binder, node)
    if not values:
        raise UnsupportedForm(
            "a row without values is not supported",
            detail="A record is stored by its fields.",
            position=binder.body.position(node),
        )
    return record([binder.as_type(bound, None, one) for bound, one in values])


def bind_field(binder: ExpressionBinder, node: exp.Dot) -> Scalar:
    """Returns `(record).name`; the column of that name, if the record is the row of a relation."""
    position = binder.body.position(node.expression)
    name = name_of(node.expression)
    starred = unwrapped(node.this)
    if isinstance(starred, exp.Column) and isinstance(starred.this, exp.Star):
        # Its columns, as an alias names them, while the row of `(t).name` has the fields that it was made with.
        return named(binder.scope, binder.binding.enclosing, name_of(starred.args["table"]), name, position)
    relation = _fields_of(binder, node.this)
    if relation is not None:
        return named(binder.scope, binder.binding.enclosing, relation, name, position)
    value = binder.typed(node.this)
    if value.type.kind is not Kind.RECORD:
        message = f"column notation .{name} applied to type {value.type}, which is not a composite type"
        raise WrongObjectKind(message, position=binder.body.position(node))
    names = [one for one, _ in value.type.fields]
    if name not in names:
        raise UndefinedColumn(
            f'column "{name}" not found in data type record', hint=suggestion(name, names), position=position
        )
    return field(value, names.index(name))


def bind_all_fields(binder: ExpressionBinder, node: exp.Dot) -> list[tuple[str, Scalar]]:
    """Returns the names and values of the fields in `(record).*`."""
    relation = _fields_of(binder, node.this)
    if relation is not None:
        position = binder.body.position(node)
        columns = all_named(binder.scope, binder.binding.enclosing, relation, position)
        return [(column.name, column) for column in columns]
    value = binder.typed(node.this)
    if value.type.kind is not Kind.RECORD:
        raise DatatypeMismatch(f"type {value.type} is not composite", position=binder.body.position(node))
    return [(name, field(value, number)) for number, (name, _) in enumerate(value.type.fields)]


def whole_row(binder: ExpressionBinder, node: exp.Column) -> Scalar | None:
    """Returns the row of the relation that a name means which is no column's; None if it is no relation's either."""
    name = _relation(binder, node)
    return None if name is None else row_of(binder, name, binder.body.position(node))


def _relation(binder: ExpressionBinder, node: exp.Expr) -> str | None:
    """Returns the name of the relation whose row a bare name means, which is no column's."""
    name = bare_name(unwrapped(node))
    scopes = _scopes(binder)
    if name is None or any(scope.offers(None, name) for scope in scopes):
        return None
    return name if any(scope.offers(name, "") for scope in scopes) else None


def _fields_of(binder: ExpressionBinder, node: exp.Expr) -> str | None:
    """Returns the name of the relation whose columns are the fields of a row."""
    name = _relation(binder, node)
    return None if name is None or _table(binder, name).is_value else name


def _table(binder: ExpressionBinder, name: str) -> ScopeTable:
    return next(scope for scope in _scopes(binder) if scope.offers(name, "")).table(name, 0)


def _scopes(binder: ExpressionBinder) -> list[Scope]:
    """Returns what can be named here, innermost first."""
    return [binder.scope, *(one.scope for one in reversed(binder.binding.enclosing) if one.visible)]


def fields_at(binder: ExpressionBinder, node: exp.Expr) -> list[tuple[str, Scalar]] | None:
    """Returns the fields of a table's or view's row, `t` or `t.*`, all NULL if it is missing; None of others."""
    name = _named_row(binder, node)
    if name is None:
        return None
    fields = _table(binder, name).fields
    columns = all_named(binder.scope, binder.binding.enclosing, name, binder.body.position(node))
    return list(zip(fields, columns, strict=True)) if fields else None


def row_at(binder: ExpressionBinder, node: exp.Expr) -> Scalar | None:
    """Returns the row of a relation, `t` or `t.*`, as one value; None if `node` is none."""
    name = _named_row(binder, node)
    return None if name is None else row_of(binder, name, binder.body.position(node))


def _named_row(binder: ExpressionBinder, node: exp.Expr) -> str | None:
    node = unwrapped(node)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return qualifier_of(node)
    return _relation(binder, node)


def row_of(binder: ExpressionBinder, name: str, position: int) -> Scalar:
    """Returns the row of the relation called `name`, which `name.*` is as a value, too.

    Raises:
        UndefinedTable: There is none.
        UnsupportedForm: It may be missing behind an outer join.
    """
    columns = all_named(binder.scope, binder.binding.enclosing, name, position)
    table = _table(binder, name)
    if table.is_value:
        return columns[0]
    row = record(columns, table.fields or [column.name for column in table.columns])
    if not table.maybe_missing:
        return row
    if table.present is None:
        raise UnsupportedForm(
            f'the whole row of "{name}" is not supported here',
            detail="Behind an outer join it may be NULL, which is not a row of NULLs; and none of its columns is NOT "
            "NULL, to tell that by.",
            hint="Name its columns.",
            position=position,
        )
    there = Call("is_not_null", (columns[table.present],), BOOL, False)
    return If(there, row, Literal(None, row.type))
