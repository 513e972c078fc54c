"""Bound plans evaluated naively over multisets of rows, with all scalars and window functions the binder's tests need.

Relations are evaluated as in `tests/plan/reference.py`, from which the parts are taken; here scalars have SQL's exact
values (`numeric` by its scale), and windows have frames. Arrays are tuples; an error is `Failed`. Ties of an order
are in no order: the queries asked have none where that matters.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.functions.arrays.parts import PARTS
from mz_dagster.functions.evaluation import value_of
from mz_dagster.functions.moments import calendar
from mz_dagster.functions.moments.interval import length
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.relation import (
    Aggregate,
    CatchErrors,
    Constant,
    Filter,
    FlatMap,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    Window,
    WindowFrame,
    WindowFunction,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import TIME, Kind, ScalarType
from mz_dagster.scalars.values import Interval, to_stored
from tests.plan.reference import Row, Rows, aggregated, beside_elements, grouped, of_ordered, ordered
from tests.sql import array_values, jsonb_values, string_values


class Failed(Exception):
    """Is an error of the data."""


#: Has room for sums of the longest numerics.
_EXACT = Context(prec=200)


def rows_of(relation: Relation, collections: Mapping[str, Rows]) -> Rows:
    """Returns the rows of a plan, each with its multiplicity."""

    def below(one: Relation) -> Rows:
        return rows_of(one, collections)

    result: Rows = Counter()
    match relation:
        case Get():
            return collections[relation.id]
        case Constant():
            return Counter(tuple(cell.value for cell in row) for row in relation.rows)
        case Map():
            for row, n in below(relation.input).items():
                for scalar in relation.scalars:
                    row = (*row, value(scalar, row))
                result[row] += n
        case Filter():
            for row, n in below(relation.input).items():
                if all(value(one, row) is True for one in relation.predicates):
                    result[row] += n
        case Projection():
            for row, n in below(relation.input).items():
                result[tuple(row[i] for i in relation.positions)] += n
        case Join():
            result[()] = 1
            for one in relation.inputs:
                right = below(one)
                result = Counter({(*a, *b): n * m for a, n in result.items() for b, m in right.items()})
            for number, members in enumerate(relation.equivalences):
                safe = number in relation.null_safe
                cells = {row: [value(scalar, row) for scalar in members] for row in result}
                result = Counter(
                    {r: n for r, n in result.items() if len(set(cells[r])) == 1 and (safe or None not in cells[r])}
                )
        case CatchErrors():
            try:
                return Counter({(*row, None): n for row, n in below(relation.input).items()})
            except Failed as error:
                return Counter({(*[None] * relation.input.relation_type.arity, str(error)): 1})
        case Negate():
            return Counter({row: -n for row, n in below(relation.input).items()})
        case Union():
            for one in relation.inputs:
                for row, n in below(one).items():
                    result[row] += n
            # What cancels out is no row, and fails nowhere above.
            return Counter({row: n for row, n in result.items() if n})
        case Let():
            return rows_of(relation.body, {**collections, relation.id: below(relation.value)})
        case Reduce():
            groups = grouped(below(relation.input), relation.key)
            return Counter((*key, *(aggregated(one, rows) for one in relation.aggregates)) for key, rows in groups)
        case TopK():
            for _, rows in grouped(below(relation.input), relation.group):
                found = ordered(rows, relation.order, ())[relation.offset :]
                result.update(found if relation.limit is None else found[: relation.limit])
                if relation.ties and relation.limit and len(found) > relation.limit:
                    last = found[relation.limit - 1]
                    places = [one.position for one in relation.order]
                    result.update(row for row in found[relation.limit :] if all(row[p] == last[p] for p in places))
        case Threshold():
            return Counter({row: n for row, n in below(relation.input).items() if n > 0})
        case Window():
            for _, rows in grouped(below(relation.input), relation.partition):
                result.update(windowed(relation, rows))
        case FlatMap():
            for row, n in below(relation.input).items():
                for each in beside_elements(row, relation.arrays, relation.ordinality):
                    result[each] += n
        case _:
            raise NotImplementedError(relation)
    return result


def _rounded(number: Decimal, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec = 200
        return number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def _fitted(found: Any, type_: ScalarType) -> Any:
    limits = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**63}
    if type_.kind is Kind.NUMERIC:
        found = _rounded(Decimal(found), type_.scale)
        if abs(found) >= Decimal(10) ** (38 - type_.scale):
            raise Failed("22003")
    elif type_.kind in limits and not -limits[type_.kind] <= found < limits[type_.kind]:
        raise Failed("22003")
    return found


def _cast(found: Any, target: ScalarType) -> Any:
    match target.kind:
        case Kind.INT2 | Kind.INT4 | Kind.INT8 if isinstance(found, float):
            if not math.isfinite(found):
                raise Failed("22003")
            return _fitted(round(found), target)
        case Kind.INT2 | Kind.INT4 | Kind.INT8 if isinstance(found, str) and not re.fullmatch(r"\s*[-+]?\d+\s*", found):
            raise Failed("22P02")
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return _fitted(int(_rounded(Decimal(found), 0)), target)
        case Kind.NUMERIC:
            return _fitted(Decimal(found), target)
        case Kind.FLOAT8:
            return float(found)
        case Kind.FLOAT4:
            return struct.unpack("f", struct.pack("f", found))[0]
        case Kind.TEXT:
            return ("true" if found else "false") if isinstance(found, bool) else str(found)
        case _:
            raise NotImplementedError(target)


def _divided(a: Any, b: Any, type_: ScalarType) -> Any:
    if b == 0 and a == a:
        raise Failed("22012")
    if isinstance(a, float):
        return a / b if b else a
    if type_.kind is not Kind.NUMERIC:
        return _fitted(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), type_)
    with localcontext() as context:
        context.prec = 200
        return _fitted(a / b, type_)


def value(scalar: Scalar, row: Row) -> Any:
    """Returns the scalar's value for one row."""
    match scalar:
        case ColumnRef():
            return row[scalar.position]
        case Literal():
            return scalar.value
        case If():
            return value(scalar.then if value(scalar.condition, row) is True else scalar.otherwise, row)
        case Call(function="without_error"):
            try:
                return value(scalar.arguments[0], row)
            except Failed:
                return None
        case Call(function="error_of"):
            try:
                value(scalar.arguments[0], row)
            except Failed as failed:
                return str(failed)
            return None
        case Call(function="and" | "or" | "coalesce"):
            return _lazily(scalar, row)
        case Call():
            return _called(scalar, [value(one, row) for one in scalar.arguments])
        case _:
            raise NotImplementedError(scalar)


def _lazily(call: Call, row: Row) -> Any:
    """Returns the value of a function that some arguments decide whatever the others are, errors included."""
    if call.function == "coalesce":
        return next((found for one in call.arguments if (found := value(one, row)) is not None), None)
    decides, found, failure = call.function == "or", set[bool | None](), None
    for one in call.arguments:
        try:
            found.add(value(one, row))
        except Failed as failed:
            failure = failure or failed
    if failure is not None and decides not in found:
        raise failure
    return decides if decides in found else None if None in found else not decides


def _called(call: Call, arguments: list[Any]) -> Any:
    name = call.function
    first: Any = arguments[0] if arguments else None
    match name:
        case "is_null" | "is_not_null":
            return (first is None) is (name == "is_null")
        case "is_true" | "is_not_true":
            return (first is True) is (name == "is_true")
        case "is_false" | "is_not_false":
            return (first is False) is (name == "is_false")
        case "is_distinct_from" | "is_not_distinct_from":
            same = first == arguments[1]
            if isinstance(first, Interval) and isinstance(arguments[1], Interval):
                same = PURE["eq_interval"](first, arguments[1])
            elif call.arguments[0].type.kind is Kind.JSONB and None not in arguments:
                same = PURE["eq_jsonb"](first, arguments[1])
            return same is (name == "is_not_distinct_from")
        case "concat":
            return "".join(one for one in arguments if one is not None)
        case "greatest" | "least":
            extreme = max if name == "greatest" else min
            present = [one for one in arguments if one is not None]
            return extreme(present, key=_key, default=None)
    if name == "error" and first is not None:
        raise Failed(first[:5])
    try:
        if name in array_values.LENIENT:
            return array_values.LENIENT[name](call, *arguments)
        if None not in arguments and name in array_values.STRICT:
            return array_values.STRICT[name](call, *arguments)
    except array_values.ArrayFailure as failure:
        raise Failed(str(failure)) from None
    if None in arguments:
        return None
    if name in jsonb_values.STRICT:
        return jsonb_values.STRICT[name](call, *arguments)
    if name in string_values.STRICT:
        try:
            return string_values.STRICT[name](call, *arguments)
        except string_values.StringFailure as failure:
            raise Failed(str(failure)) from None
    if name in PURE or name in PARTS:
        return _in_python(call, arguments)
    if name == "cast_elements":
        assert call.type.element is not None
        return tuple(None if one is None else _cast(one, call.type.element) for one in first)
    if name.startswith("cast_"):
        return _cast(first, call.type)
    if name == "array_subscript":
        return first[arguments[1] - 1]
    if name == "elements_array":
        return tuple(None if place is None else first[place - 1] for place in arguments[1])
    second: Any = arguments[1] if len(arguments) > 1 else None
    match name.split("_")[0]:
        case "eq":
            return first == second
        case "ne":
            return first != second
        case "lt":
            return first < second
        case "le" | "lte":
            return first <= second
        case "gt":
            return first > second
        case "ge" | "gte":
            return first >= second
        case "add":
            with localcontext(_EXACT):
                return _fitted(first + second, call.type)
        case "subtract":
            with localcontext(_EXACT):
                return (first - second).days if name == "subtract_date_date" else _fitted(first - second, call.type)
        case "multiply":
            with localcontext() as context:
                context.prec = 200
                return _fitted(first * second, call.type)
        case "divide":
            return _divided(first, second, call.type)
        case "modulo":
            if second == 0:
                raise Failed("22012")
            with localcontext() as context:
                context.prec = 200
                return abs(first) % abs(second) * (1 if first >= 0 else -1)
        case "high" | "low" if name.endswith("_part_numeric"):
            return _part(name, first, call)
        case "whole" if name == "whole_numeric":
            scale = call.type.scale
            return _fitted(_EXACT.add(_EXACT.multiply(first, _unit(scale) if scale <= 19 else 1), second), call.type)
        case "widened":
            return first if abs(first) < 10 ** (38 - call.type.scale) else None
        case "negate":
            return _fitted(-first, call.type)
        case "abs":
            return _fitted(abs(first), call.type)
        case "not" if name == "not":
            return not first
        case "concat" if name == "concat_bytea":
            return first + second
        case "round" if name != "round_float8":
            return _rounded(first, call.type.scale)
        case _:
            raise NotImplementedError(name)


def _in_python(call: Call, arguments: list[Any]) -> Any:
    try:
        cells = tuple(Literal(value, one.type) for value, one in zip(arguments, call.arguments, strict=True))
        found = value_of(Call(call.function, cells, call.type))
    except SqlFailure as failure:
        raise Failed(str(failure)[:5]) from None
    return tuple(found) if isinstance(found, list) else found


def _unit(scale: int) -> Decimal:
    """Returns what the low part of a numeric is the remainder by."""
    return Decimal(10) ** (19 - scale)


def _part(name: str, value: Decimal, call: Call) -> Decimal:
    scale = call.arguments[0].type.scale
    low = _EXACT.remainder(value, _unit(scale))
    if name == "low_part_numeric":
        return low
    high = _EXACT.subtract(value, low)
    return _EXACT.divide(high, _unit(scale)) if scale <= 19 else high


def _key(cell: Any) -> Any:
    """Returns what a cell is ordered by; an interval is a tuple, too."""
    if isinstance(cell, Interval):
        return length(cell)
    return array_values.key_of(cell) if isinstance(cell, tuple) else cell


def windowed(window: Window, rows: list[Row]) -> list[Row]:
    """Returns the rows of one partition with the functions' values."""
    rows = ordered(rows, window.order, ())
    keys = [tuple(row[one.position] for one in window.order) for row in rows]
    # The peer group of each row, counted from 0.
    peers: list[int] = []
    for i, key in enumerate(keys):
        peers.append(0 if i == 0 else peers[-1] + (key != keys[i - 1]))
    columns = [[_function(window, one, rows, peers, i) for i in range(len(rows))] for one in window.functions]
    return [(*row, *(column[i] for column in columns)) for i, row in enumerate(rows)]


def _function(window: Window, function: WindowFunction, rows: list[Row], peers: list[int], i: int) -> Any:
    n, first = len(rows), peers.index(peers[i])
    last = n - 1 - peers[::-1].index(peers[i])
    arguments = [rows[i][position] for position in function.arguments]
    match function.name:
        case "row_number":
            return i + 1
        case "rank":
            return first + 1
        case "dense_rank":
            return peers[i] + 1
        case "percent_rank":
            return first / (n - 1) if n > 1 else 0.0
        case "cume_dist":
            return (last + 1) / n
        case "ntile":
            # PostgreSQL asks the partition's first row only.
            tiles = rows[0][function.arguments[0]]
            if tiles is None:
                return None
            if tiles <= 0:
                raise Failed("22014")
            size, bigger = divmod(n, tiles)
            return i // (size + 1) + 1 if i < bigger * (size + 1) else (i - bigger) // max(size, 1) + 1
        case "lag" | "lead":
            return _offset(function, rows, arguments, i)
    assert function.frame is not None
    seen = [rows[j] for j in _frame(window, function.frame, rows, peers, i)]
    match function.name:
        case "first_value" | "last_value" | "nth_value":
            values = [row[function.arguments[0]] for row in seen]
            if function.ignore_nulls:
                values = [one for one in values if one is not None]
            if function.name != "nth_value":
                return (values[0] if function.name == "first_value" else values[-1]) if values else None
            if arguments[1] is None:
                return None
            if arguments[1] <= 0:
                raise Failed("22016")
            return values[arguments[1] - 1] if arguments[1] <= len(values) else None
    aggregate = Aggregate(AggregateFunction(function.name), function.arguments, function.type, filter=function.filter)
    return of_ordered(aggregate, [row for row in seen if function.filter is None or row[function.filter] is True])


def _offset(function: WindowFunction, rows: list[Row], arguments: list[Any], i: int) -> Any:
    distance = arguments[1] if len(arguments) > 1 else 1
    default = arguments[2] if len(arguments) > 2 else None
    if distance is None:
        return None
    step = -1 if function.name == "lag" else 1
    if not function.ignore_nulls:
        j = i + step * distance
        return rows[j][function.arguments[0]] if 0 <= j < len(rows) else default
    assert distance > 0
    j = i
    while distance:
        j += step
        if not 0 <= j < len(rows):
            return default
        distance -= rows[j][function.arguments[0]] is not None
    return rows[j][function.arguments[0]]


def _frame(window: Window, frame: WindowFrame, rows: list[Row], peers: list[int], i: int) -> Iterable[int]:
    inside = [
        j
        for j in range(len(rows))
        if _reached(window, frame.unit, frame.start, rows, peers, i, j, start=True)
        and _reached(window, frame.unit, frame.end, rows, peers, i, j, start=False)
    ]
    match frame.exclusion:
        case FrameExclusion.CURRENT_ROW:
            return [j for j in inside if j != i]
        case FrameExclusion.GROUP:
            return [j for j in inside if peers[j] != peers[i]]
        case FrameExclusion.TIES:
            return [j for j in inside if j == i or peers[j] != peers[i]]
        case _:
            return inside


def _reached(
    window: Window,
    unit: FrameUnit,
    bound: FrameBound,
    rows: list[Row],
    peers: list[int],
    i: int,
    j: int,
    *,
    start: bool,
) -> bool:
    """Returns whether row j lies on the inner side of a bound of row i's frame."""
    if bound.unbounded:
        return True
    assert bound.offset is not None
    distance: Any = bound.offset.value
    distance = -distance if bound.preceding and not isinstance(distance, Interval) else distance
    if unit is FrameUnit.ROWS:
        return bool(j >= i + distance if start else j <= i + distance)
    if unit is FrameUnit.GROUPS or distance == 0:
        return bool(peers[j] >= peers[i] + distance if start else peers[j] <= peers[i] + distance)
    (order,) = window.order
    here, there = rows[i][order.position], rows[j][order.position]
    if here is None or there is None:
        return peers[j] >= peers[i] if start else peers[j] <= peers[i]
    sign = -1 if bound.preceding != order.descending else 1
    edge, there = _edge(here, bound.offset.value, sign), _number(there)
    return bool(there <= edge if start == order.descending else there >= edge)


def _number(key: Any) -> Any:
    """Returns what a key of an order is computed with: microseconds for dates and times."""
    match key:
        case datetime():
            return (key.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case date():
            return (key - date(1970, 1, 1)).days * calendar.DAY
        case time():
            return to_stored(key, TIME)
        case _:
            return key


def _edge(here: Any, distance: Any, sign: int) -> Any:
    if not isinstance(distance, Interval):
        return _number(here) + sign * distance
    return calendar.later(_number(here), *(sign * part for part in distance))
