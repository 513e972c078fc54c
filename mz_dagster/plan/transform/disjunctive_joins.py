"""A join by one equality or another is the join by the one, and by the other what is not in the first.

    Filter (a.x = b.x or a.y = b.y) (Join A, B)   is
    Union (Filter (a.x = b.x) (Join A, B), Filter (a.y = b.y and (a.x = b.x) is not true) (Join A, B))

Each of these looks rows up, where a join by no equality pairs all of A with all of B. An alternative may ask for more
besides its equality. It is not done where something else links the two inputs by equality, nor for an OR that can fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.plan.relation import Filter, Join, Relation, Union
from mz_dagster.plan.rewriting import bottom_up, can_fail, conjuncts
from mz_dagster.plan.transform.join_equivalences import equated_inputs
from mz_dagster.plan.transform.split_disjunctions import disjuncts
from mz_dagster.scalars.scalar import Call, Scalar, columns_of, reads_now
from mz_dagster.scalars.types import BOOL

#: Of more alternatives the plan would be large.
_MOST = 8


def disjunctive_joins(relation: Relation) -> Relation:
    """Returns `relation` with joins by alternative equalities as unions of joins by one each."""
    return bottom_up(relation, _split)


def _split(relation: Relation) -> Relation:
    if not isinstance(relation, Filter) or not isinstance(relation.input, Join):
        return relation
    join = relation.input
    parts = [part for one in relation.predicates for part in ((one,) if can_fail(one) else conjuncts(one))]
    for place, one in enumerate(parts):
        before, behind = parts[:place], parts[place + 1 :]
        alternatives = disjuncts(one)
        if not 2 <= len(alternatives) <= _MOST or can_fail(one) or reads_now(one):
            continue
        links = [{link for part in conjuncts(each) if (link := equated_inputs(join, part))} for each in alternatives]
        inputs = set(join.owners(columns_of(one)))
        if len(inputs) == 2 and all(links) and not _are_linked(join, (*before, *behind), inputs):
            joins = (Filter(join, (*before, *each, *behind)) for each in _apart(alternatives))
            return Union(tuple(joins), relation.relation_type.keys)
    return relation


def _apart(alternatives: tuple[Scalar, ...]) -> Iterator[tuple[Scalar, ...]]:
    """Yields for each alternative the predicates of the rows for which it is the first that is true."""
    for number, one in enumerate(alternatives):
        earlier = (Call("is_not_true", (other,), BOOL, False) for other in alternatives[:number])
        yield (*conjuncts(one), *earlier)


def _are_linked(join: Join, predicates: tuple[Scalar, ...], inputs: set[int]) -> bool:
    """Returns whether equalities link two inputs, also by way of others."""
    links = [{owner for one in each for owner in join.owners(columns_of(one))} for each in join.equivalences]
    links += [set(equated_inputs(join, one)) for one in predicates]
    reached = {min(inputs)}
    for _ in join.inputs:
        reached = reached.union(*(one for one in links if one & reached))
    return inputs <= reached
