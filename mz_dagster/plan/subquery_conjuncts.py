"""Conjuncts that pass rows by what a subquery has for them: `EXISTS`, `IN` and the negation of `EXISTS`."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.plan.dependence import free_columns, outer_columns
from mz_dagster.plan.equality_correlation import equality_correlation
from mz_dagster.plan.relation import query_of
from mz_dagster.scalars.scalar import Call, Literal, Scalar, Subquery, SubqueryKind, walk


def membership_of(predicate: Scalar) -> tuple[Subquery, bool] | None:
    """Returns the subquery of a conjunct that passes the rows that have, or with True have not, something in it."""
    match predicate:
        case Subquery(kind=SubqueryKind.EXISTS | SubqueryKind.ANY):
            return predicate, False
        case Call(function="not", arguments=(Subquery() as subquery,)):
            # Where the test may be NULL, a negated ANY passes less than what a semijoin leaves.
            if subquery.kind is not SubqueryKind.SCALAR and not subquery.nullable:
                return subquery, True
    return None


def asked_together(memberships: Sequence[tuple[Subquery, bool]]) -> list[tuple[Subquery, bool]]:
    """Returns those that are asked for the same arguments, by a domain, with one not negated; none if it is one alone.

    A row of the domain for which none of them has anything does not pass then, so it need not be counted.
    """
    for first, negated in memberships:
        alike = [
            (one, other)
            for one, other in memberships
            if one.arguments == first.arguments
            and one.arguments
            and _used(one) == _used(first)
            and equality_correlation(one) is None
            and not has_subqueries(one.arguments)
        ]
        if not negated and len(alike) > 1:
            return alike
    return []


def _used(subquery: Subquery) -> frozenset[int]:
    """Returns the numbers of the arguments that a subquery reads."""
    tested = frozenset[int]() if subquery.test is None else outer_columns(subquery.test)
    return free_columns(query_of(subquery)) | tested


def has_subqueries(scalars: Sequence[Scalar]) -> bool:
    """Returns whether there is a subquery in any of them."""
    composed = (scalar for scalar in scalars if not isinstance(scalar, Literal))
    return any(isinstance(one, Subquery) for scalar in composed for one in walk(scalar))
