"""Linear plans over few updates, in this process.

What passes on what an arrangement holds, as most views do with the last of theirs, has a handful of updates in a step.
A query for them costs Spark a tenth of a second, to read, evaluate and hand them over; here it is a few milliseconds.

A plan of linear operators qualifies if all its scalars are columns, constants and functions of the table below: what
lowering puts around the states of aggregates and tournaments, and comparisons of integers. For these, exact arithmetic
on Python's integers is the same as Spark's: as in `linear`, the first step that fails makes a row an error, and a row
stays if all predicates are true.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.constant import FIRST_TIME
from mz_dagster.compute.frame import DIFF, ERROR, META, positional
from mz_dagster.compute.scalar.accumulation import NEGATIVE_MULTIPLICITY
from mz_dagster.compute.scalar.arithmetic import out_of_range
from mz_dagster.compute.scalar.numeric import NUMERIC_OVERFLOW
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    ConstantRows,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    UnionAll,
    physical_inputs,
)
from mz_dagster.plan.scalar import Call, ColumnRef, Literal, Scalar, columns_of
from mz_dagster.plan.types import Kind
from mz_dagster.storage.local_shards import arrow_type, update_schema, without_error_data

#: More updates are left to Spark: one takes microseconds here, and nanoseconds there.
MOST_ROWS = 5_000

_DIGITS = Context(prec=100)


class _Failed(Exception):
    """Says with which error a row fails."""


def _multiplicity(_: Call, count: int) -> int:
    if count < 0:
        raise _Failed(NEGATIVE_MULTIPLICITY)
    return count


def _whole(call: Call, high: Decimal, low: Decimal) -> Decimal:
    """Returns the sum of which the arguments are the sums of parts (`scalar.accumulation`)."""
    scale = call.type.scale
    total = unscaled(high, call.arguments[0].type.scale) * 10**19 + unscaled(low, scale)
    if abs(total) >= 10**38:
        raise _Failed(NUMERIC_OVERFLOW)
    return scaled(total, scale)


def _to_int8(call: Call, value: Decimal) -> int:
    near = int(value.to_integral_value(ROUND_HALF_UP, _DIGITS))
    if not -(2**63) <= near < 2**63:
        raise _Failed(out_of_range(call.type.kind))
    return near


def unscaled(value: Decimal, scale: int) -> int:
    """Returns a number of some decimals as that of units of the last."""
    return int(value.scaleb(scale, _DIGITS))


def scaled(units: int, scale: int) -> Decimal:
    """Returns what has so many units of the last of some decimals."""
    return Decimal(units).scaleb(-scale, _DIGITS)


def _compared(compare: Callable[[int, int], bool]) -> Callable[[Call, int, int], bool]:
    return lambda _, left, right: compare(left, right)


#: By function: what makes its value, or `_Failed`, of the call and the values of its arguments, none of which is NULL.
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "multiplicity_int8": _multiplicity,
    "whole_numeric": _whole,
    "cast_numeric_to_int8": _to_int8,
    **{
        f"{name}_{kind}": _compared(getattr(operator, name))
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for kind in ("int2", "int4", "int8")
    },
}
#: Of constants that become columns.
_CONSTANTS = frozenset({Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.TEXT, Kind.NUMERIC})


def is_evaluated_here(plan: Physical) -> bool:
    """Returns whether a plan is one that `few_linear` evaluates."""
    match plan:
        case ReadCollection() | ConstantRows():
            return True
        case Linear():
            return is_simple(plan.mfp) and is_evaluated_here(plan.input)
        case NegateAll() | UnionAll():
            return all(is_evaluated_here(one) for one in physical_inputs(plan))
        case _:
            return False


def is_simple(mfp: MapFilterProject) -> bool:
    """Returns whether `evaluated` knows all functions of a map, filter and project."""
    return all(_is_simple(scalar) for _, scalar in mfp.steps)


def few_linear(plan: Physical, read: Callable[[GlobalId], pa.Table], lower: int) -> pa.Table:
    """Returns the updates of a plan that `is_evaluated_here`, in an interval, not consolidated.

    Args:
        plan: The plan.
        read: Returns the updates of a collection in the interval, as an update frame: its columns, time, diff, error.
        lower: Where the interval begins, after the first time of all.

    Returns:
        A table with a column for each of the plan's, `c0`, `c1`, ..., then time, diff and error.
    """
    match plan:
        case ReadCollection():
            return without_error_data(read(plan.id)).rename_columns(plan_schema(plan).names)
        case ConstantRows():
            assert lower > FIRST_TIME, "constants change at the first time only"
            return plan_schema(plan).empty_table()
        case Linear():
            return evaluated(few_linear(plan.input, read, lower), plan)
        case NegateAll():
            return negated(few_linear(plan.input, read, lower))
        case UnionAll():
            return pa.concat_tables([few_linear(one, read, lower) for one in plan.inputs])
        case _:
            raise AssertionError("such a plan is not evaluated here")


def evaluated(frame: pa.Table, node: Linear) -> pa.Table:
    """Returns what a map, filter and project makes of an update frame: see `linear`."""
    mfp, arity = node.mfp, node.mfp.arity
    mapped = [scalar for kind, scalar in mfp.steps if kind == "map"]
    asked = {position for _, scalar in mfp.steps for position in columns_of(scalar) if position < arity}
    cells = {position: frame.column(position).to_pylist() for position in asked}
    errors = frame.column(ERROR).to_pylist()
    kept: list[int] = []
    rows: list[list[Any]] = []
    for number, error in enumerate(errors):
        row: dict[int, Any] = {position: values[number] for position, values in cells.items()}
        if error is None:
            try:
                if not _passes(mfp, row):
                    continue
            except _Failed as failed:
                errors[number] = str(failed)
        kept.append(number)
        rows.append([row.get(arity + n) for n in range(len(mapped))])
    chosen = frame.take(pa.array(kept, pa.int64()))
    columns = []
    for position in mfp.projection:
        if position < arity:
            columns.append(chosen.column(position))
        else:
            type_ = arrow_type(mapped[position - arity].type)
            columns.append(pa.chunked_array([pa.array([row[position - arity] for row in rows], type_)]))
    meta = [chosen.column(name) for name in META if name != ERROR]
    outcomes = pa.array([errors[number] for number in kept], pa.string())
    return without_error_data(pa.Table.from_arrays([*columns, *meta, outcomes], schema=plan_schema(node)))


def _passes(mfp: MapFilterProject, row: dict[int, Any]) -> bool:
    """Returns whether a row passes all predicates, adding the mapped columns to it."""
    width = mfp.arity
    for kind, scalar in mfp.steps:
        value = _value(scalar, row)
        if kind == "map":
            row[width] = value
            width += 1
        elif value is not True:
            return False
    return True


def _value(scalar: Scalar, row: Mapping[int, Any]) -> Any:
    match scalar:
        case ColumnRef():
            return row[scalar.position]
        case Literal():
            return scalar.value
        case Call():
            values = [_value(one, row) for one in scalar.arguments]
            return None if None in values else _FUNCTIONS[scalar.function](scalar, *values)
        case _:
            raise AssertionError("such a scalar is not evaluated here")


def _is_simple(scalar: Scalar) -> bool:
    match scalar:
        case ColumnRef():
            return True
        case Literal():
            return scalar.type.element is None and scalar.type.kind in _CONSTANTS
        case Call():
            return scalar.function in _FUNCTIONS and all(_is_simple(one) for one in scalar.arguments)
        case _:
            return False


def negated(frame: pa.Table) -> pa.Table:
    """Returns the frame with the diffs negated but for those of the error part: see `negate`."""
    position = frame.column_names.index(DIFF)
    diffs = frame.column(position)
    negated = pc.if_else(pc.is_null(frame.column(ERROR)), pc.negate(diffs), diffs)
    return frame.set_column(position, frame.schema.field(position), negated)


def plan_schema(node: Physical) -> pa.Schema:
    """Returns the schema of a plan's updates: `c0`, `c1`, ..., then time, diff and error."""
    named = node.relation_type.with_names(positional(node.relation_type.arity))
    return update_schema(named.columns)
