"""Refuses to order by records, and to compare json at all.

Records have no order here, so that none is among the distinct values of an array either; a json has no comparisons.
Checked over the bound plan, subqueries included, before anything is added to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mz_dagster.functions import type_name
from mz_dagster.plan.relation import Join, Reduce, Relation, Threshold, TopK, Window, inputs_of, query_of
from mz_dagster.plan.rewriting import scalars_of
from mz_dagster.scalars.scalar import Literal, Subquery, walk
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.sql.errors import UndefinedFunction, UnsupportedForm


def check_comparable(relation: Relation, position: int | None) -> None:
    """Checks what the plan compares for equality and order.

    Raises:
        UnsupportedForm: It compares values that it cannot compare exactly.
        UndefinedFunction: They have no comparisons.
    """
    for one in _nodes(relation):
        for type_ in _grouped(one):
            if type_.kind is Kind.JSON or type_.holds((Kind.JSON,)):
                message = f"could not identify an equality operator for type {type_name(type_)}"
                raise UndefinedFunction(message, hint="Cast it to jsonb or text.", position=position)
        check_order(_ordered(one), position)


def check_order(types: Iterable[ScalarType], position: int | None) -> None:
    """Raises UnsupportedForm, at `position`, if rows are ordered by values of a type that has no exact order here."""
    for type_ in types:
        if type_.kind is Kind.JSON or type_.holds((Kind.JSON,)):
            message = f"could not identify an ordering operator for type {type_name(type_)}"
            raise UndefinedFunction(message, hint="Cast it to jsonb or text.", position=position)
        if type_.kind is Kind.RECORD or type_.holds((Kind.RECORD,)):
            raise UnsupportedForm(
                f"ordering by values of type {type_name(type_)} is not supported",
                hint="Order by their fields.",
                position=position,
            )


def _nodes(relation: Relation) -> Iterator[Relation]:
    """Yields all nodes of a plan and of its subqueries, each once."""
    seen: set[int] = set()
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += inputs_of(one)
        composed = (scalar for scalar in scalars_of(one) if not isinstance(scalar, Literal))
        waiting += (query_of(part) for scalar in composed for part in walk(scalar) if isinstance(part, Subquery))


def _grouped(relation: Relation) -> Iterable[ScalarType]:
    """Returns the types of what the operator itself compares for equality."""
    match relation:
        case Reduce():
            distinct = (position for one in relation.aggregates if one.distinct for position in one.arguments)
            return _types(relation.input, (*relation.key, *distinct))
        case TopK():
            return _types(relation.input, relation.group)
        case Window():
            return _types(relation.input, relation.partition)
        case Threshold():
            return _types(relation.input, range(relation.relation_type.arity))
        case Join():
            return (scalar.type for one in relation.equivalences for scalar in one)
        case _:
            return ()


def _ordered(relation: Relation) -> Iterable[ScalarType]:
    """Returns the types of what the operator itself orders rows by."""
    match relation:
        case Reduce():
            return _types(relation.input, (key.position for one in relation.aggregates for key in one.order))
        case TopK() | Window():
            return _types(relation.input, (key.position for key in relation.order))
        case _:
            return ()


def _types(relation: Relation, positions: Iterable[int]) -> list[ScalarType]:
    return [relation.relation_type.columns[position].type for position in positions]
