"""The value of CASE: nested conditions, of which a long list is no deeper than a short one."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.scalars.scalar import Call, If, Literal, Scalar, Subquery, walk
from mz_dagster.scalars.types import BOOL

DEEPEST = 1_000
"""How many arms are one below the other: what walks plans by recursion takes some thousand steps."""

GROUP = 256
"""Of a longer list, how many arms are in a group, and how many groups in a group of these."""


def chosen(arms: Sequence[tuple[Scalar, Scalar]], otherwise: Scalar) -> Scalar:
    """Returns the value of the first of `arms`, pairs of a condition and a value, whose condition is true.

    Of a long list a group of arms is entered if one of its conditions is true, so each of them is there twice, or once
    more for each power of 256. As in the list itself, no condition is evaluated for a row behind one that is true.
    """
    if len(arms) > DEEPEST and not any(isinstance(part, Subquery) for one, _ in arms for part in walk(one)):
        return _grouped(arms, otherwise)
    for condition, value in reversed(arms):
        otherwise = If(condition, value, otherwise)
    return otherwise


def _grouped(arms: Sequence[tuple[Scalar, Scalar]], otherwise: Scalar) -> Scalar:
    size = GROUP
    while size * GROUP < len(arms):
        size *= GROUP
    groups = [arms[start : start + size] for start in range(0, len(arms), size)]
    for group in reversed(groups):
        nothing = Literal(None, otherwise.type)
        inner = _grouped(group, nothing) if len(group) > GROUP else chosen(group, nothing)
        otherwise = If(_any_true([condition for condition, _ in group]), inner, otherwise)
    return otherwise


def _any_true(conditions: Sequence[Scalar]) -> Scalar:
    """Returns whether a condition is true; those behind the first one that is are not evaluated."""
    tests = (If(one, Literal(True, BOOL), Literal(None, BOOL)) for one in conditions)
    return Call("coalesce", (*tests, Literal(False, BOOL)), BOOL, False)
