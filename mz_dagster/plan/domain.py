"""From which rows the domain of a subquery is taken.

A domain may have more rows of arguments than are asked for: what a subquery says of those is looked up by no row. So it
is taken from the one input of a join that has the arguments' columns, under the filters on that input alone, if that is
selective enough: then neither the domain nor the subquery waits for the join. That is the case where the columns hold a
unique key of the input, which makes the domain free, or a filter compares for equality with a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.dependence import outer_columns
from mz_dagster.plan.equality import is_equality
from mz_dagster.plan.relation import Filter, Get, Join, Map, Projection, Relation
from mz_dagster.plan.rewriting import can_fail, conjuncts, filtered, moved
from mz_dagster.scalars.scalar import Call, Literal, Scalar, Subquery, columns_of, reads_now, walk


def domain_source(
    relation: Relation, positions: Sequence[int], shared: Mapping[GlobalId, Relation]
) -> tuple[Relation, tuple[int, ...]]:
    """Returns what has all values of the columns at `positions` of `relation`, and where it has them.

    Args:
        relation: The rows that ask.
        positions: Of the arguments.
        shared: What the local ids in `relation` stand for.
    """
    source, places, predicates, below_join = relation, tuple(positions), list[Scalar](), False
    while True:
        match source:
            case Get() if source.id in shared:
                source = shared[source.id]
            case Projection():
                predicates = [moved(one, dict(enumerate(source.positions))) for one in predicates]
                places = tuple(source.positions[one] for one in places)
                source = source.input
            case Map() if all(one < source.input.relation_type.arity for one in places):
                predicates = _over(predicates, range(source.input.relation_type.arity))
                source = source.input
            case Filter():
                predicates = [*(one for each in source.predicates for one in conjuncts(each)), *predicates]
                source = source.input
            case Join():
                owner = source.only_owner(places)
                if owner is None:
                    break
                offset = source.offsets[owner]
                own = source.columns_of(owner)
                there = {column: column - offset for column in own}
                predicates = [moved(one, there) for one in _over(predicates, own)]
                places = tuple(one - offset for one in places)
                source, below_join = source.inputs[owner], True
            case _:
                break
    predicates = [one for one in predicates if _is_plain(one)]
    is_key = any(key <= set(places) for key in source.relation_type.keys)
    if below_join and predicates and (is_key or any(map(_selects, predicates))):
        return filtered(source, predicates), places
    return relation, tuple(positions)


def _over(predicates: Sequence[Scalar], columns: range) -> list[Scalar]:
    return [one for one in predicates if columns_of(one) <= set(columns)]


def _is_plain(predicate: Scalar) -> bool:
    """Returns whether `predicate` can be asked once more, elsewhere."""
    asks = any(isinstance(one, Subquery) for one in walk(predicate)) or outer_columns(predicate)
    return bool(columns_of(predicate)) and not asks and not can_fail(predicate) and not reads_now(predicate)


def _selects(predicate: Scalar) -> bool:
    return (
        is_equality(predicate)
        and isinstance(predicate, Call)
        and any(isinstance(one, Literal) for one in predicate.arguments)
    )
