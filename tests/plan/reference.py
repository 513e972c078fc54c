"""Plans evaluated naively over multisets of rows: the slow reference beside which transforms and lowering are held.

Errors are left out on purpose: a transform may move them. The scalars known are those of the tests' queries.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from mz_dagster.plan.physical import (
    Arrangement,
    ConstantRows,
    DeltaJoin,
    Linear,
    MaintainedPlan,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    UnionAll,
)
from mz_dagster.plan.relation import Constant, Filter, Get, Join, Let, Map, Negate, Project, Relation, Union
from mz_dagster.plan.scalar import Call, ColumnRef, If, Literal, Scalar

Row = tuple[Any, ...]
Rows = Counter[Row]

_STRICT: dict[str, Callable[..., Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "not": lambda a: not a,
    "concat": lambda a, b: a + b,
    "upper": lambda a: a.upper(),
    "negate": lambda a: -a,
}


def value(scalar: Scalar, row: Row) -> Any:
    """Returns the scalar's value for one row."""
    match scalar:
        case ColumnRef():
            return row[scalar.position]
        case Literal():
            return scalar.value
        case If():
            return value(scalar.then if value(scalar.condition, row) is True else scalar.otherwise, row)
        case Call():
            arguments = [value(one, row) for one in scalar.arguments]
    name = scalar.function
    match name:
        case "and":
            return False if False in arguments else None if None in arguments else True
        case "or":
            return True if True in arguments else None if None in arguments else False
        case "is_null":
            return arguments[0] is None
        case "is_not_null":
            return arguments[0] is not None
        case "is_true":
            return arguments[0] is True
        case "is_not_true":
            return arguments[0] is not True
        case "is_not_distinct_from":
            return arguments[0] == arguments[1]
        case "coalesce":
            return next((one for one in arguments if one is not None), None)
        case "is_distinct_from":
            return arguments[0] != arguments[1]
    if None in arguments:
        return None
    if name.startswith("cast_"):
        return int(arguments[0])
    return _STRICT[name.rpartition("_")[0] or name](*arguments)


def rows_of(relation: Relation, collections: Mapping[str, Rows]) -> Rows:
    """Returns the rows of a logical plan, each with its multiplicity."""
    match relation:
        case Get():
            return collections[relation.id]
        case Constant():
            return Counter(tuple(cell.value for cell in row) for row in relation.rows)
        case Map():
            result: Rows = Counter()
            for row, n in rows_of(relation.input, collections).items():
                for scalar in relation.scalars:
                    row = (*row, value(scalar, row))
                result[row] += n
            return result
        case Filter():
            below = rows_of(relation.input, collections)
            return Counter({r: n for r, n in below.items() if all(value(p, r) is True for p in relation.predicates)})
        case Project():
            return _projected(rows_of(relation.input, collections), relation.positions)
        case Join():
            return _joined([rows_of(one, collections) for one in relation.inputs], relation.equivalences)
        case Negate():
            return Counter({row: -n for row, n in rows_of(relation.input, collections).items()})
        case Union():
            return _sum([rows_of(one, collections) for one in relation.inputs])
        case Let():
            return rows_of(relation.body, {**collections, relation.id: rows_of(relation.value, collections)})


def physical_rows(plan: Physical, collections: Mapping[str, Rows]) -> Rows:
    """Returns the rows of a physical plan."""
    match plan:
        case ReadCollection():
            return collections[plan.id]
        case ConstantRows():
            return Counter(tuple(cell.value for cell in row) for row in plan.rows)
        case Linear():
            return _linear(plan.mfp, physical_rows(plan.input, collections))
        case NegateAll():
            return Counter({row: -n for row, n in physical_rows(plan.input, collections).items()})
        case UnionAll():
            return _sum([physical_rows(one, collections) for one in plan.inputs])
        case DeltaJoin():
            for i, order in enumerate(plan.orders):
                assert sorted((i, *order)) == list(range(len(plan.inputs)))
            return _joined([physical_rows(one, collections) for one in plan.inputs], plan.equivalences)


def maintained_rows(plan: MaintainedPlan, collections: Mapping[str, Rows]) -> Rows:
    """Returns the rows of a maintained plan, whose arrangements are collections of their own."""
    known = dict(collections)
    for one in plan.arrangements:
        assert isinstance(one, Arrangement)
        known[one.id] = physical_rows(one.plan, known)
    return physical_rows(plan.output, known)


def _linear(mfp: MapFilterProject, below: Rows) -> Rows:
    result: Rows = Counter()
    for row, n in below.items():
        kept = True
        for kind, scalar in mfp.steps:
            found = value(scalar, row)
            if kind == "map":
                row = (*row, found)
            elif found is not True:
                kept = False
                break
        if kept:
            result[tuple(row[i] for i in mfp.projection)] += n
    return result


def _projected(below: Rows, positions: tuple[int, ...]) -> Rows:
    result: Rows = Counter()
    for row, n in below.items():
        result[tuple(row[i] for i in positions)] += n
    return result


def _joined(inputs: list[Rows], equivalences: tuple[tuple[Scalar, ...], ...]) -> Rows:
    result: Rows = Counter()
    for combination in itertools.product(*(one.items() for one in inputs)):
        row = tuple(cell for part, _ in combination for cell in part)
        n = 1
        for _, multiplicity in combination:
            n *= multiplicity
        values = [[value(scalar, row) for scalar in one] for one in equivalences]
        if all(None not in one and len(set(one)) == 1 for one in values):
            result[row] += n
    return result


def _sum(inputs: list[Rows]) -> Rows:
    result: Rows = Counter()
    for one in inputs:
        for row, n in one.items():
            result[row] += n
    return result
