"""Binds functions that make records of jsonb or json: their columns are defined where they are called."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import CastContext, Failure, cast
from mz_dagster.plan.relation import FlatMap, Map, Relation
from mz_dagster.plan.rewriting import projected_to, reference
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import JSON, JSONB, TEXT, Kind, ScalarType, array_of
from mz_dagster.sql.binding import name_of, only_parts
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import DuplicateColumn, UndefinedFunction, error_of
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.type_names import column_type

RECORD_FUNCTIONS = frozenset(("json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset"))


def bind_records(
    binder: ExpressionBinder, call: exp.Anonymous, definitions: Sequence[exp.ColumnDef]
) -> tuple[Relation, tuple[str, ...]]:
    """Returns the rows of a call of one of `RECORD_FUNCTIONS`, and their columns' names.

    Each column is the member of its name, read as its type from the member's text; null and what is not there are NULL.
    """
    body, name, nodes = binder.body, name_of(call.this), call.expressions
    only_parts(body, call, "this", "expressions", "name", what="this form of call")
    if len(nodes) != 1:
        raise UndefinedFunction(
            f"function {name}() of {len(nodes)} arguments does not exist", position=body.position(call)
        )
    source = JSONB if "jsonb" in name else JSON
    value = binder.as_type(binder.bind(nodes[0]), source, nodes[0], f"argument 1 of {name}()")
    relation: Relation
    if name.endswith("record"):
        # Of NULL it is a row, too.
        whole = Call("coalesce", (Call(name, (value,), source), Literal("{}", source)), source, False)
        relation = Map(ONE_ROW, (whole,), (name,))
    else:
        relation = FlatMap(Map(ONE_ROW, (Call(name, (value,), array_of(source)),), (name,)), 1)
    element = reference(relation.relation_type, 0)
    names: list[str] = []
    members: list[Scalar] = []
    for one in definitions:
        only_parts(body, one, "this", "kind", what="this form of column definition")
        if name_of(one.this) in names:
            raise DuplicateColumn(
                f'column name "{name_of(one.this)}" specified more than once', position=body.position(one)
            )
        names.append(name_of(one.this))
        members.append(_member(binder, element, names[-1], one))
    found = Map(relation, tuple(members), tuple(names))
    return projected_to(found, range(1, 1 + len(members))), tuple(names)


def _member(binder: ExpressionBinder, element: Scalar, name: str, definition: exp.ColumnDef) -> Scalar:
    key, type_ = Literal(name, TEXT), _type(binder, definition)
    if type_ in (JSON, JSONB):
        as_document = cast(element.type, type_, CastContext.EXPLICIT)
        assert not isinstance(as_document, Failure)
        return as_document.apply(Call(f"member_{element.type.kind.value}", (element, key), element.type))
    text = Call(f"get_text_{element.type.kind.value}_text", (element, key), TEXT)
    # Unlike a cast, it does not cut off what is too long.
    strings = (Kind.VARCHAR, Kind.CHAR)
    found = cast(TEXT, type_, CastContext.ASSIGNMENT if type_.kind in strings else CastContext.EXPLICIT)
    if type_.array_element is not None and not isinstance(found, Failure):
        found = Failure("0A000", f"a column of type {type_} is not supported here", "Define it as jsonb.")
    if isinstance(found, Failure):
        raise error_of(found, binder.body.position(definition))
    return found.apply(text)


def _type(binder: ExpressionBinder, definition: exp.ColumnDef) -> ScalarType:
    body, kind = binder.body, definition.args["kind"]
    span = body.span(kind)
    start = body.text.offset + (span[0] if span else 0)
    cursor = TokenCursor(" " * max(start, 0) + body.source(kind), (), start + len(body.source(kind)))
    cursor.tokens = tuple(one for one in tokens_of(cursor.source) if one.kind is not TokenKind.END)
    type_ = column_type(cursor)
    cursor.expects_end()
    return binder.binding.type_named(type_, start + 1)
