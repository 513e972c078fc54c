"""Rows that are asked for by their number or rank in a window are the first rows of its partitions.

    Filter (row_number <= k) (Window[p, o] R)   is   Window[p, o] (TopK[p, o, limit k] R)
    Filter (rank <= k) (Window[p, o] R)         is   Window[p, o] (TopK[p, o, limit k with ties] R)

for a window of functions that only count the rows before theirs, all of which are kept. A window is computed anew for
whole partitions, the first rows of one in buckets of it, and most changes are of rows behind them. If nobody reads the
numbers, `demand` takes the window out; those of a single row are known to be 1.

Many first rows are left to the window: each bucket would have as many.
"""

from __future__ import annotations

from dataclasses import replace

from mz_dagster.plan.relation import Filter, Map, Relation, TopK, Window
from mz_dagster.plan.rewriting import bottom_up, filtered
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import INT8

#: What counts rows before a row in its order; each is 1 in the first one.
_COUNTS = frozenset({"row_number", "rank", "dense_rank"})
#: The comparisons with a constant that bound a number, written either way, and how far above it the bound lies.
_ABOVE = {"le_int8": 0, "lt_int8": -1, "eq_int8": 0}
_BELOW = {"ge_int8": 0, "gt_int8": -1, "eq_int8": 0}
#: Of a bucket's thousand rows, so many are few.
_MOST = 200


def limited_windows(relation: Relation) -> Relation:
    """Returns `relation` in which windows whose first rows are asked for are over these."""
    return bottom_up(relation, _limited)


def _limited(relation: Relation) -> Relation:
    match relation:
        case Filter(input=Window() as window) if all(one.name in _COUNTS for one in window.functions):
            pass
        case _:
            return relation
    arity = window.input.relation_type.arity
    bounds = {
        (name, bound): predicate
        for predicate in relation.predicates
        for position, bound in _bounds(predicate)
        if position >= arity and (name := window.functions[position - arity].name) != "dense_rank"
    }
    if not bounds:
        return relation
    name, limit = min(bounds, key=lambda one: (one[1], one[0] != "row_number"))
    if not 1 <= limit <= _MOST:
        return relation
    ties = name == "rank"
    top = TopK(window.input, window.partition, window.order, limit, ties=ties)
    implied = [
        predicate
        for (of, bound), predicate in bounds.items()
        if (of == name or not ties) and (bound == 1 or not _is_equality(predicate))
    ]
    predicates = [one for one in relation.predicates if one not in implied]
    if limit == 1 and not (ties and any(one.name == "row_number" for one in window.functions)):
        first = Literal(1, INT8)
        return filtered(Map(top, (first,) * len(window.functions), window.names), predicates)
    return filtered(replace(window, input=top), predicates)


def _bounds(predicate: Scalar) -> list[tuple[int, int]]:
    """Returns which column of integers a predicate bounds from above, and by what."""
    match predicate:
        case Call(function=function, arguments=(ColumnRef() as column, Literal(value=int() as value))):
            by = _ABOVE
        case Call(function=function, arguments=(Literal(value=int() as value), ColumnRef() as column)):
            by = _BELOW
        case _:
            return []
    return [(column.position, value + by[function])] if function in by else []


def _is_equality(predicate: Scalar) -> bool:
    return isinstance(predicate, Call) and predicate.function == "eq_int8"
