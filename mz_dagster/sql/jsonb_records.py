"""Binds functions that make records of jsonb or json.

Their columns are defined where they are called, or are those of a relation, which `NULL::name` names, or whose row is
given: as what is called `t` in FROM, or as `ROW(...)::name`. A row has the values of what a document does not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from mz_dagster.functions import CastContext, Failure, Unknown, cast
from mz_dagster.plan.relation import FlatMap, Map, Relation
from mz_dagster.plan.rewriting import projected_to, reference
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.record import record
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, JSON, JSONB, TEXT, Kind, ScalarType, array_of, dimensioned
from mz_dagster.sql.binding import Bound, name_of, only_parts
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import (
    CannotCoerce,
    DatatypeMismatch,
    DuplicateColumn,
    InvalidSyntax,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
    error_of,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.row_values import bind_row, fields_at, row_at, row_nodes
from mz_dagster.sql.type_names import column_type

RECORD_FUNCTIONS = frozenset(("json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset"))
#: Those whose first argument has the columns.
POPULATING = frozenset(one.replace("to", "populate") for one in RECORD_FUNCTIONS)
_STRINGS = (Kind.VARCHAR, Kind.CHAR)


class _Column(NamedTuple):
    """A column of the records.

    Attributes:
        name: Its name, which is its member's.
        type: Its type.
        position: Where it is said, in the statement.
        base: Its value where there is no such member; None: NULL.
        member: What its member is called instead.
    """

    name: str
    type: ScalarType
    position: int
    base: Scalar | None = None
    member: str | None = None


def bind_records(
    binder: ExpressionBinder, call: exp.Anonymous, definitions: Sequence[exp.ColumnDef]
) -> tuple[Relation, tuple[str, ...]]:
    """Returns the rows of a call whose columns are defined beside it, and their names.

    Each column is the member of its name, read as its type from the member's text; null and what is not there are NULL.
    """
    columns = _defined(binder, definitions)
    if name_of(call.this) in POPULATING:
        _count(binder, call, 2)
        columns = _beside(binder, call, columns)
    else:
        _count(binder, call, 1)
    return _rows(binder, call, call.expressions[-1], columns)


def _defined(binder: ExpressionBinder, definitions: Sequence[exp.ColumnDef]) -> list[_Column]:
    body, columns = binder.body, list[_Column]()
    for one in definitions:
        only_parts(body, one, "this", "kind", what="this form of column definition")
        name = name_of(one.this)
        if any(name == other.name for other in columns):
            raise DuplicateColumn(f'column name "{name}" specified more than once', position=body.position(one))
        columns.append(_Column(name, _type(binder, one), body.position(one)))
    return columns


def _beside(binder: ExpressionBinder, call: exp.Anonymous, columns: list[_Column]) -> list[_Column]:
    """Returns defined columns with the values of the record that is the first argument of a call.

    Raises:
        DatatypeMismatch: The record has others.
        InvalidSyntax: It is a row of a relation.
    """
    base = call.expressions[0]
    if _is_null_record(binder, base):
        return columns
    position = binder.body.position(base)
    if row_nodes(base) is None:
        message = "a column definition list is redundant for a function returning a named composite type"
        raise InvalidSyntax(message, position=position)
    bound = bind_row(binder, base)
    values = [binder.as_type(value, None, node) for value, node in bound]
    is_unknown = any(isinstance(value, Unknown) for value, _ in bound)
    if is_unknown or [one.type for one in values] != [one.type for one in columns]:
        raise DatatypeMismatch(
            "function return row and query-specified return row do not match",
            detail=f"The row has {_shown(values)}, the column definition list {_shown(columns)}.",
            position=position,
        )
    fields = zip(columns, values, strict=True)
    return [one._replace(base=value, member=f"f{number}") for number, (one, value) in enumerate(fields, 1)]


def _shown(typed: Sequence[Scalar | _Column]) -> str:
    return ", ".join(str(one.type) for one in typed)


def _is_null_record(binder: ExpressionBinder, node: exp.Expr) -> bool:
    """Returns whether something is `NULL::record`."""
    is_null = isinstance(node, exp.Cast) and isinstance(node.this, exp.Null)
    return is_null and binder.body.source(node.args["to"]).lower() == "record"


def bind_populated(binder: ExpressionBinder, call: exp.Anonymous) -> tuple[Relation, tuple[str, ...]]:
    """Returns the rows of a call of one of `POPULATING`, and their columns' names."""
    _count(binder, call, 2)
    return _rows(binder, call, call.expressions[1], _of_base(binder, call))


def bind_populated_record(binder: ExpressionBinder, call: exp.Anonymous) -> Scalar:
    """Returns the record that a call makes, as one value: of no document its first argument."""
    _count(binder, call, 2)
    columns = _of_base(binder, call)
    value, source = _document(binder, call, call.expressions[1])
    element = Call(name_of(call.this).replace("populate", "to"), (value,), source)
    names = [one.name for one in columns]
    made = record([_member(element, one) for one in columns], names)
    base = call.expressions[0]
    kept = row_at(binder, base)
    if kept is None and columns and columns[0].base is not None:
        kept = record([one.base for one in columns if one.base is not None], names)
    there = Call("is_not_null", (value,), BOOL, False)
    return If(there, made, Literal(None, made.type) if kept is None else kept)


def _of_base(binder: ExpressionBinder, call: exp.Anonymous) -> list[_Column]:
    """Returns the columns of the row that is the first argument of a call, with its values.

    Raises:
        DatatypeMismatch: It is no row.
        InvalidSyntax: It is a row of no relation.
    """
    base, name = call.expressions[0], name_of(call.this)
    position = binder.body.position(base)
    no_columns = InvalidSyntax(
        'a column definition list is required for functions returning "record"',
        hint=f"Write {name}(NULL::name, ...), or ROW(...)::name, of a table or view, which has the columns.",
        position=binder.body.position(call),
    )
    if _is_null_record(binder, base):
        raise no_columns
    if isinstance(base, exp.Cast) and (isinstance(base.this, exp.Null) or row_nodes(base.this) is not None):
        columns = _of_relation(binder, base, position)
        if columns is not None and not isinstance(base.this, exp.Null):
            values = bind_row(binder, base.this)
            if len(values) != len(columns):
                shown = ".".join(_cursor(binder.body, base.args["to"]).name().parts)
                raise CannotCoerce(f"cannot cast type record to {shown}", position=position)
            return [
                one._replace(base=_field(binder, value, one, node))
                for one, (value, node) in zip(columns, values, strict=True)
            ]
        if columns is not None:
            return columns
    elif (fields := fields_at(binder, base)) is not None:
        return [_Column(one, value.type, position, value) for one, value in fields]
    bound = binder.bind(base)
    if isinstance(bound, Unknown):
        message = "could not determine polymorphic type because input has type unknown"
        raise DatatypeMismatch(message, hint="Write NULL::name of a table or view.", position=position)
    if bound.type.kind is not Kind.RECORD:
        raise DatatypeMismatch(f"first argument of {name} must be a row type", position=position)
    raise no_columns


def _of_relation(binder: ExpressionBinder, base: exp.Cast, position: int) -> list[_Column] | None:
    """Returns the columns of the relation to whose rows something is cast; None if it is cast to another type.

    Raises:
        UndefinedObject: There is neither.
    """
    cursor = _cursor(binder.body, base.args["to"])
    parts = cursor.name().parts
    if cursor.current.kind is not TokenKind.END:
        return None
    try:
        columns = binder.binding.relation(parts, position)[1].relation_type.columns
    except UndefinedTable:
        try:
            binder.bind(base)
        except UndefinedObject:
            raise UndefinedObject(f'type "{".".join(parts)}" does not exist', position=position) from None
        return None
    return [_Column(one.name, one.type, position) for one in columns]


def _field(binder: ExpressionBinder, value: Bound, column: _Column, node: exp.Expr) -> Scalar:
    if isinstance(value, Unknown):
        return binder.literal(value, column.type, node)
    return _cast(value, column._replace(position=binder.body.position(node)), CastContext.EXPLICIT)


def _count(binder: ExpressionBinder, call: exp.Anonymous, wanted: int) -> None:
    only_parts(binder.body, call, "this", "expressions", "name", what="this form of call")
    if len(call.expressions) != wanted:
        message = f"function {name_of(call.this)}() of {len(call.expressions)} arguments does not exist"
        raise UndefinedFunction(message, position=binder.body.position(call))


def _rows(
    binder: ExpressionBinder, call: exp.Anonymous, node: exp.Expr, columns: Sequence[_Column]
) -> tuple[Relation, tuple[str, ...]]:
    name = name_of(call.this)
    value, source = _document(binder, call, node)
    relation: Relation
    if name.endswith("record"):
        # Of NULL it is a row, too.
        read = Call(name.replace("populate", "to"), (value,), source)
        whole = Call("coalesce", (read, Literal("{}", source)), source, False)
        relation = Map(ONE_ROW, (whole,), (name,))
    else:
        relation = FlatMap(Map(ONE_ROW, (Call(name, (value,), array_of(source)),), (name,)), 1)
    element = reference(relation.relation_type, 0)
    members = tuple(_member(element, one) for one in columns)
    names = tuple(one.name for one in columns)
    found = Map(relation, members, names)
    return projected_to(found, range(1, 1 + len(members))), names


def _document(binder: ExpressionBinder, call: exp.Anonymous, node: exp.Expr) -> tuple[Scalar, ScalarType]:
    name = name_of(call.this)
    source = JSONB if "jsonb" in name else JSON
    return binder.as_type(binder.bind(node), source, node, f"argument {len(call.expressions)} of {name}()"), source


def _member(element: Scalar, column: _Column) -> Scalar:
    key, kind = Literal(column.member or column.name, TEXT), element.type.kind.value
    member = Call(f"member_{kind}", (element, key), element.type)
    if column.base is not None:  # what is null is there
        there = Call("is_not_null", (Call(f"get_{kind}_text", (element, key), element.type),), BOOL, False)
        return If(there, _member(element, column._replace(base=None)), column.base)
    type_ = column.type
    if type_.array_element is not None:
        return _list(member, column)
    if type_ in (JSON, JSONB):
        as_document = cast(element.type, type_, CastContext.EXPLICIT)
        assert not isinstance(as_document, Failure)
        return as_document.apply(member)
    text = Call(f"get_text_{kind}_text", (element, key), TEXT)
    # Unlike a cast, it does not cut off what is too long.
    return _cast(text, column, CastContext.ASSIGNMENT if type_.kind in _STRINGS else CastContext.EXPLICIT)


def _list(member: Scalar, column: _Column) -> Scalar:
    """Returns an array of a member's elements, which are read from their texts, documents as they stand."""
    of, type_ = column.type.array_element, column.type
    assert of is not None
    text = Call(f"array_text_{member.type.kind.value}", (member, Literal(of in (JSON, JSONB), BOOL)), TEXT)
    texts, read = (
        (array_of(TEXT), "array_elements_of_text")
        if type_.kind is Kind.ARRAY
        else (dimensioned(TEXT), "dimensioned_of_text")
    )
    return _cast(
        Call(read, (text,), texts), column, CastContext.ASSIGNMENT if of.kind in _STRINGS else CastContext.EXPLICIT
    )


def _cast(value: Scalar, column: _Column, context: CastContext) -> Scalar:
    found = cast(value.type, column.type, context)
    if isinstance(found, Failure):
        raise error_of(found, column.position)
    return found.apply(value)


def _type(binder: ExpressionBinder, definition: exp.ColumnDef) -> ScalarType:
    cursor = _cursor(binder.body, definition.args["kind"])
    start = cursor.current.start
    type_ = column_type(cursor)
    cursor.expects_end()
    return binder.binding.type_named(type_, start + 1)


def _cursor(body: Body, node: exp.Expr) -> TokenCursor:
    """Returns a cursor over what a node was parsed from, where it stands in the statement."""
    span = body.span(node)
    start = body.text.offset + (span[0] if span else 0)
    text = body.source(node)
    cursor = TokenCursor(" " * max(start, 0) + text, (), start + len(text))
    cursor.tokens = tuple(one for one in tokens_of(cursor.source) if one.kind is not TokenKind.END)
    return cursor
