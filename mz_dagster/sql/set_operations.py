"""UNION, INTERSECT and EXCEPT, with and without ALL.

Owns their meaning as multiplicities: UNION ALL adds them, EXCEPT ALL is what is left of `a - b` above 0, INTERSECT ALL
is `a` less that; without ALL each side is made distinct first (the sum, for UNION).
"""

from __future__ import annotations

from sqlglot import exp

from mz_dagster.plan.relation import Get, Let, Negate, Reduce, Relation, Threshold, Union
from mz_dagster.plan.transform.comparable_columns import comparable_rows, represented_as_in
from mz_dagster.scalars.scalar import ColumnRef
from mz_dagster.sql.binding import BindingContext, Bound
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import InvalidSyntax
from mz_dagster.sql.pending import Pending

_WORDS: dict[type[exp.Expr], str] = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


def combined(binding: BindingContext, body: Body, node: exp.Expr, left: Pending, right: Pending) -> Pending:
    """Returns the set operation `node` over two queries; the left one gives the names.

    Raises:
        InvalidSyntax: They differ in their number of columns.
        DatatypeMismatch: Two columns have no type in common.
    """
    word = _WORDS[type(node)]
    if len(left.names) != len(right.names):
        raise InvalidSyntax(
            f"each {word} query must have the same number of columns", position=body.position(right.nodes[0][0])
        )
    both = Pending(body, [*left.rows, *right.rows], [*left.nodes, *right.nodes], left.names)
    types = both.common_types(word)
    distinct = node.args.get("distinct") is not False
    relation: Relation
    if isinstance(node, exp.Union):
        relation = both.finish(types, word)
        relation = _distinct(relation) if distinct else relation
    else:
        given = [Pending(body, side.rows, side.nodes, left.names).finish(types, word) for side in (left, right)]
        sides = [_distinct(comparable_rows(one)) if distinct else comparable_rows(one) for one in given]
        relation = _except(*sides) if isinstance(node, exp.Except) else _intersect(binding, *sides)
        relation = represented_as_in(relation, given[0])
    items: list[Bound] = [
        ColumnRef(i, column.type, column.nullable, left.names[i])
        for i, column in enumerate(relation.relation_type.columns)
    ]
    return Pending(body, [(relation, items)], [left.nodes[0]], left.names)


def _distinct(relation: Relation) -> Relation:
    return Reduce(relation, tuple(range(relation.relation_type.arity)), (), ())


def _except(left: Relation, right: Relation) -> Relation:
    return Threshold(Union((left, Negate(right))))


def _intersect(binding: BindingContext, left: Relation, right: Relation) -> Relation:
    identity = binding.local_id()
    both = Get(identity, left.relation_type, str(identity))
    return Let(identity, left, Union((both, Negate(_except(both, right)))))
