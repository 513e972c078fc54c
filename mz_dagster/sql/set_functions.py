"""Binds functions that return rows: in FROM, and in the items of a SELECT.

Owns PostgreSQL's rules for both. In FROM such a function may depend on what stands to its left, several may stand side
by side in ROWS FROM, and WITH ORDINALITY numbers the rows. In the items of a SELECT all of them advance together, after
groups and windows; where one has no rows any more it is NULL. Each is bound as a scalar that returns an array, and the
plan is a `FlatMap` over these arrays; where one is an argument of another, a `FlatMap` over that of the argument, with
all that are as deep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mz_dagster.functions import SET_COLUMNS, TABLE_OVERLOADS, Unknown, resolve_table_function, type_name
from mz_dagster.functions.arrays.dimensioned import elements_of
from mz_dagster.plan.relation import FlatMap, Map, Relation
from mz_dagster.plan.rewriting import projected_to, reference
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.record import field as record_field
from mz_dagster.scalars.record import record
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import INT4, INT8, TEXT, Kind, array_of
from mz_dagster.sql.binding import Bound, argument_type, name_of, only_parts
from mz_dagster.sql.collected_calls import SetCalls
from mz_dagster.sql.errors import AmbiguousFunction, UndefinedFunction, UnsupportedForm
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.placeholders import SET_BASE, replaced, sets_in
from mz_dagster.sql.refusals import refusal_of_function

_HINT = "Move the set-returning function into a LATERAL FROM item."


def is_set_function(name: str) -> bool:
    """Returns whether a function of that name returns rows."""
    return name == "unnest" or name in TABLE_OVERLOADS


def bind_set_item(binder: ExpressionBinder, node: exp.Anonymous) -> Scalar:
    """Returns what stands for the rows of a function within an item of SELECT.

    Raises:
        UnsupportedForm: None may stand here.
    """
    position = binder.body.position(node)
    sets = binder.sets
    if sets is None:
        raise UnsupportedForm(
            f"set-returning functions are not allowed in {binder.clause}", hint=_HINT, position=position
        )
    name = name_of(node.this)
    arrays = _arrays(binder, node)
    if len(arrays) != 1:
        raise UndefinedFunction(
            f"function {name} of several arguments is not allowed in an item of SELECT",
            hint="Write it into FROM.",
            position=position,
        )
    column = sets.column(arrays[0], name, node)
    return _groups(column) if name == "regexp_matches" else column


def bind_information_call(binder: ExpressionBinder, node: exp.Anonymous) -> Scalar:
    """Returns what stands for a function of `information_schema` in an item of SELECT.

    There is one, which PostgreSQL's drivers call: `_pg_expandarray`, whose rows are elements with their places.

    Raises:
        UndefinedFunction: It is another.
        UnsupportedForm: None may stand here.
    """
    position = binder.body.position(node)
    name = name_of(node.this)
    if name != "_pg_expandarray" or len(node.expressions) != 1:
        raise UndefinedFunction(f"function information_schema.{name} does not exist", position=position)
    if binder.sets is None:
        message = f"set-returning functions are not allowed in {binder.clause}"
        raise UnsupportedForm(message, hint=_HINT, position=position)
    array = _unnested(binder, node.expressions[0], position)
    resolved = resolve_table_function("generate_subscripts", [array.type, INT4])
    places = binder.applied(resolved, [array, Literal(1, INT4)], position)
    return record([binder.sets.column(one, name, node) for one in (array, places)], ("x", "n"))


def check_unconditional(binder: ExpressionBinder, parts: Sequence[Bound], clause: str) -> None:
    """Refuses a function that returns rows where whether it is evaluated depends on the data: in CASE, COALESCE.

    Raises:
        UnsupportedForm: One stands there.
    """
    if binder.sets is None or not binder.sets.arrays:
        return
    for one in sorted(sets_in(one for one in parts if not isinstance(one, Unknown))):
        message = f"set-returning functions are not allowed in {clause}"
        raise UnsupportedForm(message, hint=_HINT, position=binder.body.position(binder.sets.syntax[one]))


def apply_sets(relation: Relation, sets: SetCalls, scalars: Sequence[Scalar]) -> tuple[Relation, dict[int, ColumnRef]]:
    """Returns `relation` beside the rows of the functions in `scalars`, and what replaces their placeholders."""
    columns: dict[int, ColumnRef] = {}
    for level in sets.levels(scalars):
        arity = relation.relation_type.arity
        arrays = tuple(replaced(sets.arrays[one], columns) for one in level)
        relation = FlatMap(Map(relation, arrays, tuple(sets.names[one] for one in level)), len(level))
        columns |= {SET_BASE + one: reference(relation.relation_type, arity + i) for i, one in enumerate(level)}
    return relation, columns


@dataclass(frozen=True, slots=True)
class RowsFrom:
    """The rows of functions in FROM.

    Attributes:
        relation: Its plan.
        names: Of its columns.
        scalar: Whether it is one function of one column that bears no name of its own: an alias then names that.
        is_value: Whether its one column is its whole row.
    """

    relation: Relation
    names: tuple[str, ...]
    scalar: bool
    is_value: bool


def bind_rows_from(
    binder: ExpressionBinder, calls: Sequence[exp.Expr], called: Sequence[str], *, ordinality: bool
) -> RowsFrom:
    """Returns the rows of functions side by side, as many as the longest has; one that returns a value has one row.

    Args:
        binder: Binds their arguments.
        calls: The calls.
        called: The name of each.
        ordinality: Whether the rows are numbered.
    """
    if not any(map(is_set_function, called)):
        values = tuple(binder.typed(one) for one in calls)
        numbers = (Literal(1, INT8),) if ordinality else ()
        shown = (*called, *(("ordinality",) if ordinality else ()))
        one = len(values) == 1
        return RowsFrom(Map(ONE_ROW, (*values, *numbers), shown), shown, one, one and not ordinality)
    arrays: list[Scalar] = []
    names: list[str] = []
    named: list[bool] = []
    for call, name in zip(calls, called, strict=True):
        found = _arrays(binder, call) if is_set_function(name) else [_alone(binder.typed(call))]
        arrays += found
        names += [SET_COLUMNS.get(name, name)] * len(found)
        named += [name in SET_COLUMNS] * len(found)
    relation: Relation = FlatMap(Map(ONE_ROW, tuple(arrays), tuple(names)), len(arrays), ordinality)
    if "regexp_matches" in names:
        relation = _with_groups(relation, names)
    records = any(column.type.kind is Kind.RECORD for column in relation.relation_type.columns)
    scalar = len(arrays) == 1 and not named[0] and not records
    if records:
        relation, names = _with_fields(relation, names)
    is_value = len(arrays) == 1 and not records and not ordinality
    return RowsFrom(relation, (*names, *(("ordinality",) if ordinality else ())), scalar, is_value)


def _alone(value: Scalar) -> Scalar:
    """Returns the array of one value, whose row it then is."""
    return Call("array", (value,), array_of(value.type), False)


def _groups(match: Scalar) -> Scalar:
    """Returns what the groups of a match hold, of a row of `regexp_matches`."""
    return Call("regexp_groups_text", (match,), array_of(TEXT), match.nullable)


def _with_groups(relation: Relation, names: Sequence[str]) -> Relation:
    """Returns `relation` with arrays in the places of the rows of `regexp_matches`."""
    arity = relation.relation_type.arity
    places = [place for place, name in enumerate(names) if name == "regexp_matches"]
    made = tuple(_groups(reference(relation.relation_type, place)) for place in places)
    positions = [arity + places.index(place) if place in places else place for place in range(arity)]
    return projected_to(Map(relation, made, tuple(names[place] for place in places)), positions)


def _with_fields(relation: Relation, names: Sequence[str]) -> tuple[Relation, list[str]]:
    """Returns `relation` with its records' fields in their places, and the names of all columns but the ordinality."""
    arity = relation.relation_type.arity
    fields: list[Scalar] = []
    positions: list[int] = []
    shown: list[str] = []
    for position, column in enumerate(relation.relation_type.columns):
        if column.type.kind is not Kind.RECORD:
            positions.append(position)
            shown += names[position : position + 1]
            continue
        record = reference(relation.relation_type, position)
        for number, (name, _) in enumerate(column.type.fields):
            positions.append(arity + len(fields))
            fields.append(record_field(record, number))
            shown.append(name)
    called = [name for column in relation.relation_type.columns for name, _ in column.type.fields]
    return projected_to(Map(relation, tuple(fields), tuple(called)), positions), shown


def _arrays(binder: ExpressionBinder, node: exp.Expr) -> list[Scalar]:
    """Returns the arrays that a function's rows are: of `unnest` one for each argument, else one."""
    body, position = binder.body, binder.body.position(node)
    if isinstance(node, exp.Unnest):
        only_parts(body, node, "expressions", "alias", "offset")
        return [_unnested(binder, one, position) for one in node.expressions]
    if not isinstance(node, exp.Anonymous):
        raise UnsupportedForm("this form in FROM is not supported", position=position)
    only_parts(body, node, "this", "expressions", "name", what="this form of call")
    name = name_of(node.this)
    if name == "unnest":
        return [_unnested(binder, one, position) for one in node.expressions]
    refused = refusal_of_function(body, node, name)
    if refused is not None:
        raise refused
    arguments = [binder.bind(one) for one in node.expressions]
    types = [argument_type(one) for one in arguments]
    literals = [one.value if isinstance(one, Literal) else None for one in arguments]
    return [binder.applied(resolve_table_function(name, types, literals), arguments, position, node.expressions)]


def _unnested(binder: ExpressionBinder, node: exp.Expr, position: int) -> Scalar:
    bound = binder.bind(node)
    if isinstance(bound, Unknown):
        message = "function unnest(unknown) is not unique"
        raise AmbiguousFunction(message, hint="You might need to add explicit type casts.", position=position)
    if bound.type.kind is Kind.DIMENSIONED:
        return elements_of(bound)
    if bound.type.kind is not Kind.ARRAY:
        raise UndefinedFunction(f"function unnest({type_name(bound.type)}) does not exist", position=position)
    return bound
