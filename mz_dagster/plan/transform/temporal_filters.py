"""Comparisons of `mz_now()` become the interval of time in which a row is valid.

    mz_now() >= e   lower e            mz_now() <  e   upper e
    mz_now() >  e   lower step(e)      mz_now() <= e   upper step(e)
    mz_now() =  e   both               step(e) is the time after e

of what is left of the filter. Where `mz_now()` is anything but one side of such a comparison, in a conjunction, the
predicate stays as it is: a query at one time can evaluate it, a maintained plan can not (see `plan/reading_time.py`).

Cost: a collection of the rows that are or will be valid, so predicates must have been pushed down before.
"""

from __future__ import annotations

from mz_dagster.plan.relation import Filter, Relation, TemporalFilter
from mz_dagster.plan.rewriting import bottom_up, can_fail, conjunction, conjuncts, filtered
from mz_dagster.scalars.scalar import Call, Literal, Scalar, is_now, reads_now
from mz_dagster.scalars.types import BOOL, MZ_TIMESTAMP

_TURNED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
#: What a bound must be of for its step to be one.
_LAST = 2**63 - 1


def temporal_filters(relation: Relation) -> Relation:
    """Returns `relation` with temporal filters where filters compare `mz_now()`."""
    return bottom_up(relation, _split)


def comparison_with_now(predicate: Scalar) -> tuple[str, Scalar] | None:
    """Returns `(op, e)` if `predicate` is `mz_now() op e`, from either side, and e is free of `mz_now()`; else None.

    Example:
        >>> from mz_dagster.scalars.scalar import now
        >>> comparison_with_now(Call("lt_mz_timestamp", (Literal(5, MZ_TIMESTAMP), now(1)), BOOL))[0]
        'gt'
    """
    if not isinstance(predicate, Call) or len(predicate.arguments) != 2:
        return None
    operation, _, kind = predicate.function.partition("_")
    if operation not in _TURNED or kind != "mz_timestamp":
        return None
    left, right = predicate.arguments
    if is_now(left) and not reads_now(right):
        return operation, right
    if is_now(right) and not reads_now(left):
        return _TURNED[operation], left
    return None


def is_temporal(predicate: Scalar) -> bool:
    """Returns whether `predicate` becomes bounds of a temporal filter."""
    found = comparison_with_now(predicate)
    return found is not None and found[0] != "ne"


def without_not(predicate: Scalar) -> Scalar:
    """Returns `predicate` with NOT moved below AND and OR, and into comparisons of `mz_now()`."""
    if not isinstance(predicate, Call) or not reads_now(predicate):
        return predicate
    if predicate.function in ("and", "or"):
        arguments = tuple(without_not(one) for one in predicate.arguments)
        return Call(predicate.function, arguments, BOOL, predicate.nullable)
    if predicate.function != "not" or not isinstance(predicate.arguments[0], Call):
        return predicate
    inner = predicate.arguments[0]
    if inner.function == "not":
        return without_not(inner.arguments[0])
    if inner.function in ("and", "or"):
        other = "or" if inner.function == "and" else "and"
        negated = tuple(without_not(Call("not", (one,), BOOL, one.nullable)) for one in inner.arguments)
        return Call(other, negated, BOOL, inner.nullable)
    operation, _, kind = inner.function.partition("_")
    if comparison_with_now(inner) is not None:
        return Call(f"{_OPPOSITE[operation]}_{kind}", inner.arguments, BOOL, inner.nullable)
    return predicate


def _split(relation: Relation) -> Relation:
    if not isinstance(relation, Filter) or not any(reads_now(one) for one in relation.predicates):
        return relation
    lower: dict[Scalar, None] = {}
    upper: dict[Scalar, None] = {}
    rest: list[Scalar] = []
    for predicate in relation.predicates:
        for one in conjuncts(without_not(predicate)):
            found = comparison_with_now(one)
            if found is None or found[0] == "ne":
                rest.append(one)
                continue
            operation, bound = found
            if operation in ("eq", "ge"):
                lower[bound] = None
            if operation == "gt":
                lower[step(bound)] = None
            if operation == "lt":
                upper[bound] = None
            if operation in ("eq", "le"):
                upper[step(bound)] = None
    if not lower and not upper:
        return relation
    stays = [one for one in rest if not can_fail(one)]
    unsafe = [one for one in rest if can_fail(one)]
    if unsafe:
        stays.append(conjunction(unsafe))
    return TemporalFilter(filtered(relation.input, stays), tuple(lower), tuple(upper))


def step(bound: Scalar) -> Scalar:
    """Returns the time after `bound`; after the last one there is none, which is an error."""
    if isinstance(bound, Literal) and isinstance(bound.value, int) and bound.value < _LAST:
        return Literal(bound.value + 1, MZ_TIMESTAMP)
    return Call("step_mz_timestamp", (bound,), MZ_TIMESTAMP, bound.nullable)
