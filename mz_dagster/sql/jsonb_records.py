"""Binds functions that make records of jsonb or json.

Their columns are defined where they are called, or are those of a relation that `NULL::name` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from mz_dagster.functions import CastContext, Failure, cast
from mz_dagster.plan.relation import FlatMap, Map, Relation
from mz_dagster.plan.rewriting import projected_to, reference
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import BOOL, JSON, JSONB, TEXT, Kind, ScalarType, array_of, dimensioned
from mz_dagster.sql.binding import name_of, only_parts
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import (
    DuplicateColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
    UnsupportedForm,
    error_of,
)
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.lexer import TokenKind, tokens_of
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
    """

    name: str
    type: ScalarType
    position: int


def bind_records(
    binder: ExpressionBinder, call: exp.Anonymous, definitions: Sequence[exp.ColumnDef]
) -> tuple[Relation, tuple[str, ...]]:
    """Returns the rows of a call of one of `RECORD_FUNCTIONS`, and their columns' names.

    Each column is the member of its name, read as its type from the member's text; null and what is not there are NULL.
    """
    body, columns = binder.body, list[_Column]()
    _count(binder, call, 1)
    for one in definitions:
        only_parts(body, one, "this", "kind", what="this form of column definition")
        name = name_of(one.this)
        if any(name == other.name for other in columns):
            raise DuplicateColumn(f'column name "{name}" specified more than once', position=body.position(one))
        columns.append(_Column(name, _type(binder, one), body.position(one)))
    return _rows(binder, call, call.expressions[0], columns)


def bind_populated(binder: ExpressionBinder, call: exp.Anonymous) -> tuple[Relation, tuple[str, ...]]:
    """Returns the rows of a call of one of `POPULATING`, and their columns' names.

    Raises:
        UnsupportedForm: What is to have the columns is a row.
    """
    body = binder.body
    _count(binder, call, 2)
    base, value = call.expressions
    position = body.position(base)
    kind = base.args.get("to") if isinstance(base, exp.Cast) and isinstance(base.this, exp.Null) else None
    if kind is None:
        raise UnsupportedForm(
            f"a row as the first argument of {name_of(call.this)}() is not supported",
            hint="Write NULL::name of a table or view, which has the columns.",
            position=position,
        )
    cursor = _cursor(body, kind)
    parts = cursor.name().parts
    cursor.expects_end()
    try:
        columns = binder.binding.relation(parts, position)[1].relation_type.columns
    except UndefinedTable:
        raise UndefinedObject(f'type "{".".join(parts)}" does not exist', position=position) from None
    return _rows(binder, call, value, [_Column(one.name, one.type, position) for one in columns])


def _count(binder: ExpressionBinder, call: exp.Anonymous, wanted: int) -> None:
    only_parts(binder.body, call, "this", "expressions", "name", what="this form of call")
    if len(call.expressions) != wanted:
        message = f"function {name_of(call.this)}() of {len(call.expressions)} arguments does not exist"
        raise UndefinedFunction(message, position=binder.body.position(call))


def _rows(
    binder: ExpressionBinder, call: exp.Anonymous, node: exp.Expr, columns: Sequence[_Column]
) -> tuple[Relation, tuple[str, ...]]:
    name = name_of(call.this)
    source = JSONB if "jsonb" in name else JSON
    value = binder.as_type(binder.bind(node), source, node, f"argument {len(call.expressions)} of {name}()")
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


def _member(element: Scalar, column: _Column) -> Scalar:
    key, type_ = Literal(column.name, TEXT), column.type
    if type_.array_element is not None:
        return _list(Call(f"member_{element.type.kind.value}", (element, key), element.type), column)
    if type_ in (JSON, JSONB):
        as_document = cast(element.type, type_, CastContext.EXPLICIT)
        assert not isinstance(as_document, Failure)
        return as_document.apply(Call(f"member_{element.type.kind.value}", (element, key), element.type))
    text = Call(f"get_text_{element.type.kind.value}_text", (element, key), TEXT)
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
    if of.kind in _STRINGS and of.length:
        # A cast would cut off what is too long, which here is an error.
        hint = "Define it as text[]."
        raise error_of(Failure("0A000", f"a column of type {type_} is not supported here", hint), column.position)
    return _cast(Call(read, (text,), texts), column, CastContext.EXPLICIT)


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
