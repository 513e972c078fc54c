"""Column lineage: from which columns of which collections each column's values derive.

A column derives from what computes its values: the arguments of expressions and aggregates, and what chooses between
values (the condition of a CASE, the order of a rank). What only chooses rows is no part of it: predicates, the
equalities of joins, groups, the order of a LIMIT; nor is what EXCEPT takes away. Whether or how many rows are there
(`count(*)`, EXISTS, IN) derives from no column.

Read off a bound plan, which says what its author said: the optimizer may well read an equal column of another
collection instead. Plain views are part of a bound plan, so lineage goes through them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.properties import properties_of
from mz_dagster.plan.relation import Constant, DependentJoin, Get, Join, Let, Negate, Relation, Union
from mz_dagster.plan.transform.share_subplans import share_subplans


class SourceColumn(NamedTuple):
    """A column of a collection, by its position."""

    collection: GlobalId
    position: int


#: Of each column of a relation, in order.
Lineage = tuple[frozenset[SourceColumn], ...]


def column_lineage(relation: Relation) -> Lineage:
    """Returns, for each column of a bound plan, the columns that its values derive from; of a constant none.

    Precondition: no subqueries and dependent joins, which `decorrelate` sees to.

    Example:
        >>> from mz_dagster.plan.relation import Projection
        >>> from mz_dagster.scalars.types import Column, INT4, RelationType
        >>> t = Get(GlobalId("t"), RelationType((Column("a", INT4), Column("b", INT4))))
        >>> column_lineage(Projection(t, (1,)))
        (frozenset({SourceColumn(collection='t', position=1)}),)
    """
    return _lineage(share_subplans(relation), {})  # which is looked at once wherever it is read


def _lineage(relation: Relation, local: Mapping[GlobalId, Lineage]) -> Lineage:
    match relation:
        case Get():
            if relation.id in local:
                return local[relation.id]
            arity = relation.relation_type.arity
            return tuple(frozenset({SourceColumn(relation.id, position)}) for position in range(arity))
        case Constant():
            return (frozenset(),) * relation.relation_type.arity
        case Join():
            return tuple(column for one in relation.inputs for column in _lineage(one, local))
        case Negate():
            return (frozenset(),) * relation.relation_type.arity
        case Union():
            inputs = [_lineage(one, local) for one in relation.inputs]
            return tuple(frozenset().union(*columns) for columns in zip(*inputs, strict=True))
        case Let():
            return _lineage(relation.body, {**local, relation.id: _lineage(relation.value, local)})
        case DependentJoin():
            raise InternalError("a dependent join is left in a bound plan")
        case _:
            below, own = _lineage(relation.input, local), properties_of(relation)
            made = (frozenset[SourceColumn]().union(*(below[position] for position in one)) for one in own.made)
            return (*(below[position] for position in own.passed), *made)
