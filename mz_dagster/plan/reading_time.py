"""What a plan says of the time at which it is read: `mz_now()`.

A query reads at one time, which takes the place of `mz_now()` wherever it stands. A maintained plan has a content at
every time, so there `mz_now()` may only bound the times at which a row is valid (`transform/temporal_filters.py`);
whatever is left of it after that is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mz_dagster.plan.relation import Filter, Relation, TemporalFilter, inputs_of, query_of
from mz_dagster.plan.rewriting import (
    bottom_up,
    conjunction,
    conjuncts,
    nodes_of,
    scalars_of,
    with_mapped_parts,
    with_mapped_scalars,
)
from mz_dagster.plan.transform.fold_constants import fold_constants
from mz_dagster.plan.transform.temporal_filters import comparison_with_now, is_temporal, without_not
from mz_dagster.scalars.scalar import Call, Literal, Scalar, Subquery, is_now, reads_now, substitute, walk
from mz_dagster.scalars.types import BOOL, INT4, MZ_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Unmaintainable:
    """Says why a plan cannot be maintained.

    Attributes:
        position: Where the `mz_now()` to blame stands in the statement's text.
        message: Materialize's reason.
        hint: What to write instead.
    """

    position: int
    message: str
    hint: str


_FORM = (
    "Unsupported temporal predicate. Note: mz_now() must be directly compared to a mz_timestamp-castable expression "
    "free of mz_now()."
)
_HINT = "Compare mz_now() by =, <, <=, >, >= or BETWEEN, in WHERE, alone or together with others by AND."
_UNION = "Write one SELECT for each alternative, and UNION ALL between them."


def depends_on_time(relation: Relation) -> bool:
    """Returns whether `relation` has `mz_now()`, or what has become of it, anywhere."""
    return any(
        isinstance(one, TemporalFilter) or any(map(_mentions_now, scalars_of(one))) for one in nodes_of(relation)
    )


def at_time(relation: Relation, time: int) -> Relation:
    """Returns the plan of what `relation` is when it is looked at at `time`; its own bounds are filters again."""
    literal = Literal(time, MZ_TIMESTAMP)

    def filtered_at(one: Relation) -> Relation:
        if not isinstance(one, TemporalFilter):
            return one
        lower = [_compared(literal, "ge", "gt", bound) for bound in one.lower]
        upper = [_compared(literal, "lt", "le", bound) for bound in one.upper]
        predicates = (*lower, *upper)
        return Filter(one.input, (conjunction(predicates),))

    return fold_constants(bottom_up(_with_now(relation, lambda _: literal), filtered_at))


def with_position(relation: Relation, position: int) -> Relation:
    """Returns `relation` with every `mz_now()` said to stand at `position`: where a view of it is named."""
    place = (Literal(position, INT4),)
    return _with_now(relation, lambda call: replace(call, arguments=place)) if depends_on_time(relation) else relation


def unmaintainable(relation: Relation) -> Unmaintainable | None:
    """Returns why an optimized plan cannot be maintained, or None if it can: of several reasons the lowest one's.

    Cost: of what is there several times, as a view is that others read, once.
    """
    seen: set[int] = set()

    def reason(one: Relation) -> Unmaintainable | None:
        if id(one) in seen:
            return None
        seen.add(id(one))
        for below in inputs_of(one):
            if (found := reason(below)) is not None:
                return found
        for scalar in scalars_of(one):
            if reads_now(scalar):
                return _reason(scalar) if isinstance(one, Filter) else _call(scalar)
        return None

    return reason(relation)


def _reason(predicate: Scalar) -> Unmaintainable:
    for one in conjuncts(without_not(predicate)):
        if not reads_now(one) or is_temporal(one):
            continue
        compared = comparison_with_now(one)
        if compared is not None:
            message = "Unsupported binary temporal operation: NotEq"
            return Unmaintainable(
                _position(one), message, "Write two SELECTs, one with < and one with >, and UNION ALL."
            )
        either = isinstance(one, Call) and one.function == "or"
        return Unmaintainable(_position(one), _FORM, _UNION if either else _HINT)
    return _call(predicate)


def _call(scalar: Scalar) -> Unmaintainable:
    return Unmaintainable(_position(scalar), "cannot materialize call to mz_now", _HINT)


def _position(scalar: Scalar) -> int:
    for one in walk(scalar):
        if isinstance(one, Call) and is_now(one):
            (place,) = one.arguments
            assert isinstance(place, Literal)
            assert isinstance(place.value, int)
            return place.value
    raise AssertionError("there is no mz_now()")


def _compared(literal: Literal, plain: str, stepped: str, bound: Scalar) -> Scalar:
    """Returns `literal plain bound`; the step of e is compared as e itself is, for which there is no overflow."""
    if isinstance(bound, Call) and bound.function == "step_mz_timestamp":
        plain, bound = stepped, bound.arguments[0]
    return Call(f"{plain}_mz_timestamp", (literal, bound), BOOL, bound.nullable)


def _mentions_now(scalar: Scalar) -> bool:
    """Returns whether `mz_now()` stands in `scalar`, or in a query in it."""
    return any(
        is_now(one)
        or (
            isinstance(one, Subquery)
            and (depends_on_time(query_of(one)) or _mentions_now(one.test or Literal(None, BOOL)))
        )
        for one in walk(scalar)
    )


def _with_now(relation: Relation, value: Callable[[Call], Scalar]) -> Relation:
    """Returns `relation` with `value` of it in the place of each `mz_now()`."""

    def rule(one: Relation) -> Relation:
        if not any(_mentions_now(scalar) for scalar in scalars_of(one)):
            return one
        return with_mapped_scalars(one, lambda scalar: _replaced(scalar, value))

    return bottom_up(relation, rule)


def _replaced(scalar: Scalar, value: Callable[[Call], Scalar]) -> Scalar:
    def rule(one: Scalar) -> Scalar | None:
        if isinstance(one, Call) and is_now(one):
            return value(one)
        if isinstance(one, Subquery):
            return with_mapped_parts(one, lambda query: _with_now(query, value), lambda each: _replaced(each, value))
        return None

    return substitute(scalar, rule)
