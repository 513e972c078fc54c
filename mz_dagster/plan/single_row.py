"""The one row of a closed subquery as what cannot fail, and its value as a scalar over that, which can.

An aggregate without GROUP BY has one row, and what is computed of its aggregates fails in that row alone:

    Map[s] with_default(Reduce[][f] R)      is      s' over with_default(Reduce[][the parts of f] R)

(`total_groups`). So the value and its error are two columns of that row, `without_error(s')` and `error_of(s')`, and
the error is raised where the value is asked for. It costs no state, where errors that are told by rows cost two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mz_dagster.plan.relation import Map, Projection, Reduce, Relation
from mz_dagster.plan.rewriting import can_fail, reference, references
from mz_dagster.plan.row_count import default_of, is_one_row, with_default
from mz_dagster.plan.semijoin import Sharing
from mz_dagster.plan.total_groups import group_may_fail, without_group_errors
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar, Subquery, substitute, walk

#: A value that is built of more is not taken apart: what stands for a column is repeated where that is used.
_MOST_PARTS = 2_000


def row_and_value(
    relation: Relation, plain: Callable[[Relation], Relation], sharing: Sharing
) -> tuple[Relation, Scalar, Relation] | None:
    """Returns a row, over it the last column of `relation`, and what in the row may fail yet; None if nothing is.

    Args:
        relation: Closed.
        plain: Returns what is left of it without subqueries.
        sharing: Gives out ids, and takes what is read several times.
    """
    if not is_one_row(relation):
        return None
    value: Scalar = reference(relation.relation_type, relation.relation_type.arity - 1)
    below: Relation = relation
    while isinstance(below, Projection | Map):
        columns: tuple[Scalar, ...] = references(below.input, range(below.input.relation_type.arity))
        if isinstance(below, Projection):
            columns = tuple(columns[one] for one in below.positions)
        else:
            for one in below.scalars:
                columns = (*columns, _over(one, columns))
        below = below.input
        value = _over(value, columns)
        if sum(1 for _ in walk(value)) > _MOST_PARTS or any(isinstance(one, Subquery) for one in walk(value)):
            return None
    match default_of(below):
        case (Reduce() as reduce, cells) if group_may_fail(reduce):
            row, parts = without_group_errors(replace(reduce, input=plain(reduce.input)), sharing)
            whole = {one.position: cell for one, cell in zip(parts, cells, strict=True) if isinstance(one, ColumnRef)}
            defaults = [whole.get(n, Literal(None, one.type)) for n, one in enumerate(row.relation_type.columns)]
            return with_default(row, defaults, sharing.local_id()), _over(value, tuple(parts)), reduce.input
    return (plain(below), value, below) if can_fail(value) else None


def _over(scalar: Scalar, columns: tuple[Scalar, ...]) -> Scalar:
    """Returns `scalar` with what its columns are."""
    return substitute(scalar, lambda one: columns[one.position] if isinstance(one, ColumnRef) else None)
