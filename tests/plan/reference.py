"""Plans evaluated naively over multisets of rows: the slow reference beside which transforms and lowering are held.

Errors are left out on purpose: a transform may move them. The scalars known are those of the tests' queries. What a
negative multiplicity makes of an operator that counts rows is an error too: `Undefined`. Arrays are tuples.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from mz_dagster.functions.evaluation import value_of
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.physical import (
    Accumulate,
    Arrangement,
    Catch,
    ConstantRows,
    DeltaJoin,
    Extremes,
    Gathered,
    Linear,
    MaintainedPlan,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    SnapshotPlan,
    Staged,
    TemporalState,
    TopRows,
    UnionAll,
    Unnest,
    Windowed,
)
from mz_dagster.plan.relation import (
    Aggregate,
    CatchErrors,
    ColumnOrder,
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
    WindowFunction,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, Subquery

Row = tuple[Any, ...]
Rows = Counter[Row]


class Undefined(Exception):
    """Says that the plan has an error where a multiplicity is negative, not rows."""


def _counted(n: int) -> int:
    if n < 0:
        raise Undefined
    return n


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
    "multiplicity": _counted,
    "unsigned_zero": lambda a: a,
    "unsigned": lambda a: a,
    "order": lambda array: tuple((one is None, 0 if one is None else one) for one in array),
    "widened": lambda a: a,
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
        case OuterColumn() | Subquery():
            raise NotImplementedError(scalar)
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
        case "array":
            return tuple(arguments)
    if name == "array":
        return tuple(arguments)
    if None in arguments:
        return None
    if name.startswith("cast_"):
        return arguments[0] if isinstance(arguments[0], Decimal | float) else int(arguments[0])
    if name.endswith("_numeric") and name.partition("_")[0] in ("high", "low", "whole"):
        return _part(name, scalar, arguments)
    if name in ("limb_float8", "digit_float8", "whole_float8"):
        return _float_part(name, *arguments)
    if name == "array_subscript":
        return arguments[0][arguments[1] - 1]
    if name in PURE:
        cells = tuple(Literal(value, one.type) for value, one in zip(arguments, scalar.arguments, strict=True))
        found = value_of(Call(name, cells, scalar.type))
        return tuple(found) if isinstance(found, list) else found
    known = _STRICT.get(name.rpartition("_")[0]) or _STRICT[name.partition("_")[0]]
    return known(*arguments)


def _part(name: str, call: Call, arguments: list[Any]) -> Decimal:
    """The parts of a sum of numerics, over exact decimals."""
    scale = call.arguments[0].type.scale if name == "high_part_numeric" else call.type.scale
    with localcontext() as context:
        context.prec = 200
        unit = Decimal(1).scaleb(19 - scale)
        worth = unit if scale <= 19 else Decimal(1)
        if name == "whole_numeric":
            return Decimal(arguments[0] * worth + arguments[1])
        low = Decimal(arguments[0]) % unit
        return low if name == "low_part_numeric" else (arguments[0] - low) / worth


def float_sum(values: Iterable[float]) -> float | None:
    """Returns the double nearest to the exact sum; None if it is too large for one."""
    values = list(values)
    if not all(math.isfinite(one) for one in values):
        return math.fsum(one for one in values if not math.isfinite(one)) if not _opposed(values) else math.nan
    try:
        return float(sum(map(Fraction, values), Fraction(0)))
    except OverflowError:
        return None


def _opposed(values: list[float]) -> bool:
    return math.inf in values and -math.inf in values


def _float_part(name: str, *arguments: Any) -> Any:
    """The digits of a float by integers, x = n * 2^-1074: of 24 bits each, from that of its lowest mantissa bit."""
    if name == "whole_float8":
        limbs, *digits = arguments
        special = [{-1: math.nan, -2: math.inf, -3: -math.inf}[one] for one in limbs if one in (-1, -2, -3)]
        if special:
            return float_sum(special)
        if max(limbs) < 0:
            return None
        placed = ((limb + i, one) for i, row in enumerate(digits) for limb, one in zip(limbs, row, strict=True))
        return float(Fraction(sum(one << 24 * place for place, one in placed if place >= 0), 2**1074))
    x = arguments[0]
    if not math.isfinite(x):
        special_limb = -1 if math.isnan(x) else -2 if x > 0 else -3
        return special_limb if name == "limb_float8" else 0
    lowest = max(0, math.frexp(x)[1] - 53 + 1074) if x else 0
    if name == "limb_float8":
        return lowest // 24
    units = int(Fraction(abs(x)) * 2**1074) >> 24 * (lowest // 24) >> 24 * arguments[1] & (1 << 24) - 1
    return units if x > 0 else -units


def rows_of(relation: Relation, collections: Mapping[str, Rows], now: int = 0) -> Rows:
    """Returns the rows of a logical plan at time `now`, each with its multiplicity.

    Raises:
        Undefined: An operator that counts rows meets a negative multiplicity.
    """

    def below(one: Relation) -> Rows:
        return rows_of(one, collections, now)

    match relation:
        case Get():
            return collections[relation.id]
        case Constant():
            return Counter(tuple(cell.value for cell in row) for row in relation.rows)
        case Map():
            result: Rows = Counter()
            for row, n in below(relation.input).items():
                for scalar in relation.scalars:
                    row = (*row, value(scalar, row))
                result[row] += n
            return result
        case Filter():
            rows = below(relation.input)
            return Counter({r: n for r, n in rows.items() if all(value(p, r) is True for p in relation.predicates)})
        case Projection():
            return _projected(below(relation.input), relation.positions)
        case Join():
            return _joined([below(one) for one in relation.inputs], relation.equivalences, relation.null_safe)
        case Negate():
            return Counter({row: -n for row, n in below(relation.input).items()})
        case Union():
            return _sum([below(one) for one in relation.inputs])
        case Let():
            return rows_of(relation.body, {**collections, relation.id: below(relation.value)}, now)
        case Reduce():
            groups = grouped(below(relation.input), relation.key)
            return Counter((*key, *(aggregated(one, rows) for one in relation.aggregates)) for key, rows in groups)
        case TopK():
            return Counter(
                row
                for _, rows in grouped(below(relation.input), relation.group)
                for row in top(rows, relation.order, relation.limit, relation.offset, ties=relation.ties)
            )
        case Threshold():
            return Counter({row: n for row, n in below(relation.input).items() if n > 0})
        case Window():
            return Counter(
                row
                for _, rows in grouped(below(relation.input), relation.partition)
                for row in windowed(rows, relation.order, relation.functions)
            )
        case TemporalFilter():
            rows = below(relation.input)
            return Counter({r: n for r, n in rows.items() if is_valid(relation.lower, relation.upper, r, now)})
        case RepeatRow():
            return _repeated(below(relation.input), relation.count)
        case CatchErrors():  # nothing fails here
            return Counter({(*row, None): n for row, n in below(relation.input).items()})
        case FlatMap():
            return _unnested(below(relation.input), relation.arrays, relation.ordinality)
        case DependentJoin():
            raise NotImplementedError(relation)


def physical_rows(plan: Physical, collections: Mapping[str, Rows], now: int = 0) -> Rows:
    """Returns the rows of a physical plan at time `now`."""

    def below(one: Physical) -> Rows:
        return physical_rows(one, collections, now)

    match plan:
        case ReadCollection():
            return collections[plan.id]
        case ConstantRows():
            return Counter(tuple(cell.value for cell in row) for row in plan.rows)
        case Linear():
            return _linear(plan.mfp, below(plan.input))
        case NegateAll():
            return Counter({row: -n for row, n in below(plan.input).items()})
        case UnionAll():
            return _sum([below(one) for one in plan.inputs])
        case DeltaJoin():
            for i, order in enumerate(plan.orders):
                assert sorted((i, *order)) == list(range(len(plan.inputs)))
            return _joined([below(one) for one in plan.inputs], plan.equivalences, plan.null_safe)
        case Repeat():
            return _repeated(below(plan.input), plan.count)
        case Catch():
            return Counter({(*row, None): n for row, n in below(plan.input).items()})
        case Unnest():
            return _unnested(below(plan.input), plan.arrays, plan.ordinality)
        case Accumulate():
            return _fitting(plan, _accumulated(plan, below(plan.input)))
        case Staged():
            return _fitting(plan, _staged(plan, below(plan.input)))
        case TemporalState():
            return _fitting(plan, _temporal(plan, below(plan.input), now))


def snapshot_rows(plan: SnapshotPlan, collections: Mapping[str, Rows], now: int = 0) -> Rows:
    """Returns the rows of a plan that is computed once."""
    known = dict(collections)
    for one in plan.shared:
        known[one.id] = physical_rows(one.plan, known, now)
    return physical_rows(plan.output, known, now)


def maintained_rows(plan: MaintainedPlan, collections: Mapping[str, Rows], now: int = 0) -> Rows:
    """Returns the rows of a maintained plan, whose arrangements are collections of their own."""
    known = dict(collections)
    for one in plan.arrangements:
        assert isinstance(one, Arrangement)
        known[one.id] = physical_rows(one.plan, known, now)
    return physical_rows(plan.output, known, now)


def grouped(rows: Rows, key: Sequence[int]) -> list[tuple[Row, list[Row]]]:
    """Returns the groups that have rows, each row as often as its multiplicity says."""
    groups: dict[Row, list[Row]] = {}
    for row, n in rows.items():
        if n < 0:
            raise Undefined
        if n:
            groups.setdefault(tuple(row[i] for i in key), []).extend([row] * n)
    return list(groups.items())


def ordered(rows: Collection[Row], order: Iterable[ColumnOrder], ties: Iterable[int]) -> list[Row]:
    """Returns rows in an order; ties go by the columns `ties`, ascending, NULLs last."""
    result = list(rows)
    for one in reversed([*order, *(ColumnOrder(position, False, False) for position in ties)]):
        nulls = [row for row in result if row[one.position] is None]
        others = [row for row in result if row[one.position] is not None]
        # Stable in both directions.
        others.sort(key=lambda row: _sort_key(row[one.position]), reverse=one.descending)
        result = nulls + others if one.nulls_first else others + nulls
    return result


def _sort_key(cell: Any) -> Any:
    """Arrays compare element by element, NULL above all."""
    return tuple((one is None, 0 if one is None else one) for one in cell) if isinstance(cell, tuple) else cell


def aggregated(aggregate: Aggregate, rows: list[Row]) -> Any:
    """Returns an aggregate over the rows of a group, by its algebra."""
    rows = [row for row in rows if aggregate.filter is None or row[aggregate.filter] is True]
    if aggregate.distinct:
        rows = list({tuple(row[i] for i in aggregate.arguments): row for row in rows}.values())
    return of_ordered(aggregate, ordered(rows, aggregate.order, aggregate.arguments))


def of_ordered(aggregate: Aggregate, rows: list[Row]) -> Any:
    """Returns an aggregate over rows in their order; None, too, if it is too large for a double."""
    algebra = aggregate.function.record.algebra
    assert algebra is not None
    try:
        found = algebra(aggregate.type).value([([row[i] for i in aggregate.arguments], 1) for row in rows])
    except SqlFailure:
        return None
    return tuple(found) if isinstance(found, list) else found


def top(
    rows: list[Row], order: Collection[ColumnOrder], limit: int | None, offset: int, *, ties: bool = False
) -> list[Row]:
    """Returns the first rows of a group; with `ties` those, too, that equal the last one in the order."""
    found = ordered(rows, order, range(len(rows[0])))[offset:]
    if limit is None:
        return found
    last = found[limit - 1 : limit]
    peers = [
        row for row in found[limit:] if ties and last and all(row[o.position] == last[0][o.position] for o in order)
    ]
    return found[:limit] + peers


def windowed(rows: list[Row], order: tuple[ColumnOrder, ...], functions: Iterable[WindowFunction]) -> list[Row]:
    """Returns the rows of a partition with the values of functions; of those that the tests use."""
    sorted_ = ordered(rows, order, range(len(rows[0])))
    peers = [tuple(row[one.position] for one in order) for row in sorted_]
    result = []
    for number, row in enumerate(sorted_):
        added: list[Any] = []
        for one in functions:
            match one.name:
                case "row_number":
                    added.append(number + 1)
                case "rank":
                    added.append(peers.index(peers[number]) + 1)
                case "count":
                    added.append(len(rows))
                case "lag":
                    added.append(sorted_[number - 1][one.arguments[0]] if number else None)
                case "lead":
                    added.append(sorted_[number + 1][one.arguments[0]] if number + 1 < len(sorted_) else None)
                case "max" if one.frame is not None and one.frame.start.unbounded and one.frame.end.unbounded:
                    cells = [other[one.arguments[0]] for other in rows]
                    added.append(max((cell for cell in cells if cell is not None), default=None))
                case _:
                    raise NotImplementedError(one.name)
        result.append((*row, *added))
    return result


def is_valid(lower: Iterable[Scalar], upper: Iterable[Scalar], row: Row, now: int) -> bool:
    """Returns whether a row is valid at `now`."""
    first, last = [value(one, row) for one in lower], [value(one, row) for one in upper]
    return None not in (*first, *last) and all(one <= now for one in first) and all(now < one for one in last)


def _accumulated(plan: Accumulate, below: Rows) -> Rows:
    sums: dict[Row, list[Any]] = {}
    for row, n in below.items():
        key = row[: plan.key_arity]
        assert None not in row[plan.key_arity :], "a contribution is NULL"
        added = [n, *(n * one for one in row[plan.key_arity :])]
        sums[key] = [a + b for a, b in zip(sums.get(key, [0] * len(added)), added, strict=True)]
    return Counter((*key, *one) for key, one in sums.items() if any(one))


def _staged(plan: Staged, below: Rows) -> Rows:
    group = plan.group
    others = [i for i in range(plan.input.relation_type.arity) if i not in group]
    state: Rows = Counter()
    level = below
    for number, buckets in enumerate(plan.buckets):
        placed: Rows = Counter()
        for row, n in level.items():
            bucket = zlib.crc32(repr([row[i] for i in others]).encode()) % buckets
            placed[bucket, *row] += n
        if not plan.monotonic:
            padding = (None,) * (plan.relation_type.arity - 2 - plan.input.relation_type.arity)
            state += Counter({(number, *row, *padding): n for row, n in placed.items()})
        is_last = number == plan.last_level - 1
        found = grouped(placed, (0, *(1 + i for i in group)))
        level = Counter(one for _, rows in found for one in _stage(plan, [row[1:] for row in rows], is_last))
    return state + Counter({(plan.last_level, 0, *row): n for row, n in level.items()})


def _stage(plan: Staged, rows: list[Row], is_last: bool) -> list[Row]:
    group = plan.group
    others = [i for i in range(plan.input.relation_type.arity) if i not in group]
    function = plan.function
    match function:
        case TopRows():
            if is_last:
                return top(rows, function.order, function.limit, function.offset, ties=function.ties)
            limit = None if function.limit is None else function.limit + function.offset
            return top(rows, function.order, limit, 0, ties=function.ties)
        case Extremes():
            best: list[Any] = list(rows[0])
            for i, one in zip(others, function.functions, strict=True):
                best[i] = aggregated(Aggregate(one, (i,), plan.input.relation_type.columns[i].type), rows)
            return [tuple(best)]
        case Gathered():
            kept = [cell if i in group else None for i, cell in enumerate(rows[0])]
            return [(*kept, *(aggregated(one, rows) for one in function.aggregates))]
        case Windowed():
            return windowed(rows, function.order, function.functions)


def _temporal(plan: TemporalState, below: Rows, now: int) -> Rows:
    state: Rows = Counter()
    for row, n in below.items():
        first, last = [value(one, row) for one in plan.lower], [value(one, row) for one in plan.upper]
        if None in first or None in last or (last and max(now, *first, 0) >= min(last)):
            continue
        start = max(first, default=0)
        state[(*row, start, min(last, default=None), start <= now)] += n
    return state


def _fitting(plan: Physical, rows: Rows) -> Rows:
    assert all(len(row) == plan.relation_type.arity for row in rows), "the state's rows are not of its type"
    return rows


def _repeated(below: Rows, count: int) -> Rows:
    result: Rows = Counter()
    for row, n in below.items():
        result[row[:count] + row[count + 1 :]] += n * row[count]
    return result


def beside_elements(row: Row, arrays: int, ordinality: bool) -> list[Row]:
    """Returns the row with elements of its last `arrays` cells in their places, NULL where one has none any more."""
    kept = row[: len(row) - arrays]
    elements = itertools.zip_longest(*(() if cell is None else cell for cell in row[len(kept) :]))
    return [(*kept, *cells, *((n,) if ordinality else ())) for n, cells in enumerate(elements, 1)]


def _unnested(below: Rows, arrays: int, ordinality: bool) -> Rows:
    result: Rows = Counter()
    for row, n in below.items():
        for one in beside_elements(row, arrays, ordinality):
            result[one] += n
    return result


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


def _joined(inputs: list[Rows], equivalences: tuple[tuple[Scalar, ...], ...], null_safe: frozenset[int]) -> Rows:
    result: Rows = Counter()
    for combination in itertools.product(*(one.items() for one in inputs)):
        row = tuple(cell for part, _ in combination for cell in part)
        n = 1
        for _, multiplicity in combination:
            n *= multiplicity
        values = [[value(scalar, row) for scalar in one] for one in equivalences]
        if all((i in null_safe or None not in one) and len(set(one)) == 1 for i, one in enumerate(values)):
            result[row] += n
    return result


def _sum(inputs: list[Rows]) -> Rows:
    result: Rows = Counter()
    for one in inputs:
        for row, n in one.items():
            result[row] += n
    return result
