"""Conditions that correlate a subquery with its outer row, tested first: rows that no outer row has do not fail.

    Filter[t = outer] Map[6 / x] R      is      Map[6 / x] Filter[t = outer] R

A subquery is computed for all rows that ask at once, and what in it takes no arguments is computed for all of its own
rows. So a condition that reads arguments moves as far down as it may before the domain is pushed in: what is above it
is then evaluated for the rows that it leaves, as it would be row by row. Only what cannot fail moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.dependence import outer_columns
from mz_dagster.plan.equality import equated
from mz_dagster.plan.outer_join import preserved
from mz_dagster.plan.properties import let_through
from mz_dagster.plan.relation import (
    Constant,
    DependentJoin,
    Filter,
    Get,
    Join,
    Let,
    Map,
    OneInput,
    Relation,
    Union,
    inputs_of,
)
from mz_dagster.plan.rewriting import can_fail, conjuncts, filtered, moved, shifted, substituted, with_inputs
from mz_dagster.scalars.scalar import Call, ColumnRef, Scalar, Subquery, columns_of, reads_now, walk


def with_correlation_first(relation: Relation) -> Relation:
    """Returns a plan with each condition that reads arguments as far down as it may go.

    Example:
        >>> from mz_dagster.formalism import GlobalId
        >>> from mz_dagster.plan.explain import explain_logical
        >>> from mz_dagster.plan.relation import Get
        >>> from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, OuterColumn
        >>> from mz_dagster.scalars.types import BOOL, INT4, Column, RelationType
        >>> u = Get(GlobalId("u1"), RelationType((Column("a", INT4), Column("x", INT4))), "u")
        >>> quotient = Call("divide_int4", (Literal(6, INT4), ColumnRef(1, INT4)), INT4)
        >>> correlation = Call("eq_int4", (ColumnRef(0, INT4), OuterColumn(0, INT4)), BOOL)
        >>> print(explain_logical(with_correlation_first(Filter(Map(u, (quotient,), ("q",)), (correlation,)))))
        Map q := (6 / #1)
          Filter (#0 = outer 0)
            Get u (u1)
    """
    return _with_correlations(relation, ())


def _with_correlations(relation: Relation, correlations: Sequence[Scalar]) -> Relation:
    """Returns the rows of `relation` that pass all of `correlations`, which cannot fail."""
    match relation:
        case Filter():
            parts = [one for predicate in relation.predicates for one in conjuncts(predicate)]
            own = [one for one in parts if _is_correlation(one)]
            return filtered(
                _with_correlations(relation.input, (*correlations, *own)),
                [one for one in parts if not _is_correlation(one)],
            )
        case Map():
            return _through_map(relation, correlations)
        case Union():
            return with_inputs(relation, [_with_correlations(one, correlations) for one in inputs_of(relation)])
        case Let():
            return _through_let(relation, correlations)
        case Join() | DependentJoin():
            return _into(relation, correlations)
        case Get() | Constant():
            return filtered(relation, correlations)
        case _:
            return _past(relation, correlations)


def _through_let(relation: Let, correlations: Sequence[Scalar]) -> Relation:
    """Returns a bound subplan with correlations in its body; in an outer join, in the side that they are about.

    What that side's column must be equal to, the other side's must be that is equal to it in partners.
    """
    into: dict[GlobalId | None, list[Scalar]] = {}
    if correlations and (found := preserved(relation)) is not None:
        own = [one for one in correlations if columns_of(one) <= set(found.columns)]
        correlations = [one for one in correlations if one not in own]
        into[found.side] = [shifted(one, -found.columns.start) for one in own]
        for one in own:
            column = min(columns_of(one))
            if len(columns_of(one)) == 1 and column in found.equal and _is_equality(one):
                into.setdefault(found.other, []).append(_of_other(one, found.equal[column]))

    def tied(one: Relation) -> Relation:
        if isinstance(one, Let) and into:
            return Let(one.id, _with_correlations(one.value, into.pop(one.id, [])), tied(one.body))
        return _with_correlations(one, correlations)

    if into:
        return tied(relation)
    return Let(relation.id, _with_correlations(relation.value, ()), _with_correlations(relation.body, correlations))


def _is_equality(correlation: Scalar) -> bool:
    """Returns whether a condition says that a column is equal to what reads none."""
    sides = equated(correlation)
    return sides is not None and any(isinstance(one, ColumnRef) for one in sides)


def _of_other(equality: Scalar, column: int) -> Scalar:
    """Returns an equality of a column as one of another, which may be NULL where that is not."""
    assert isinstance(equality, Call)
    arguments = (
        replace(one, position=column, nullable=True) if isinstance(one, ColumnRef) else one
        for one in equality.arguments
    )
    return replace(equality, arguments=tuple(arguments), nullable=True)


def _is_correlation(predicate: Scalar) -> bool:
    return not (
        can_fail(predicate)
        or reads_now(predicate)
        or any(isinstance(one, Subquery) for one in walk(predicate))
        or not outer_columns(predicate)
        or not columns_of(predicate)
    )


def _through_map(relation: Map, correlations: Sequence[Scalar]) -> Relation:
    arity = relation.input.relation_type.arity
    values: dict[int, Scalar] = {}
    for place, scalar in enumerate(relation.scalars, arity):
        value = substituted(scalar, values)
        if not can_fail(value) and not any(isinstance(one, Subquery) for one in walk(value)):
            values[place] = value
    inlined = [substituted(one, values) for one in correlations]
    below = [one for one in inlined if all(place < arity for place in columns_of(one))]
    stays = [correlation for correlation, one in zip(correlations, inlined, strict=True) if one not in below]
    return filtered(Map(_with_correlations(relation.input, below), relation.scalars, relation.names), stays)


def _into(relation: Join | DependentJoin, correlations: Sequence[Scalar]) -> Relation:
    """Returns a join with correlations in the inputs that have all their columns; of a lateral one, in the left one."""
    inputs = inputs_of(relation)
    open_ = inputs[:1] if isinstance(relation, DependentJoin) else inputs
    into: list[list[Scalar]] = [[] for _ in inputs]
    stays: list[Scalar] = []
    for correlation in correlations:
        start = 0
        for place, one in enumerate(open_):
            if columns_of(correlation) <= set(range(start, start + one.relation_type.arity)):
                into[place].append(shifted(correlation, -start))
                break
            start += one.relation_type.arity
        else:
            stays.append(correlation)
    below = [_with_correlations(one, own) for one, own in zip(inputs, into, strict=True)]
    return filtered(with_inputs(relation, below), stays)


def _past(relation: OneInput, correlations: Sequence[Scalar]) -> Relation:
    """Returns an operator over what passes the correlations that it lets through."""
    places = let_through(relation)
    through = [moved(one, places) for one in correlations if columns_of(one) <= places.keys()]
    stays = [one for one in correlations if not columns_of(one) <= places.keys()]
    return filtered(with_inputs(relation, [_with_correlations(relation.input, through)]), stays)
