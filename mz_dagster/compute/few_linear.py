"""Linear operators over few updates, in this process.

What passes on what an arrangement holds, as most views do with the last of theirs, has a handful of updates in a step.
A query for them costs Spark a tenth of a second, to read, evaluate and hand them over; here it is a few milliseconds.

A map, filter and project is `is_simple` if Python evaluates all its scalars (`plan.functions.evaluation`) as Spark does
on any machine, of which floats may differ; nor are patterns matched here, which may take for ever. As in `linear`, the
first step that fails makes a row an error, and a row stays if all predicates are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.cells import plain_cells, stored_cells
from mz_dagster.compute.few_join import NotFew
from mz_dagster.compute.frame import DIFF, ERROR, META, positional
from mz_dagster.plan.functions.evaluation import Evaluate, compiled, is_evaluable
from mz_dagster.plan.functions.pure import SqlFailure
from mz_dagster.plan.physical import Linear, MapFilterProject, Physical, Repeat, Unnest
from mz_dagster.plan.scalar import Call, Scalar, columns_of, walk
from mz_dagster.plan.types import Kind
from mz_dagster.storage.local_shards import update_schema, without_error_data

#: More updates are left to Spark: one takes microseconds here, and nanoseconds there.
MOST_ROWS = 5_000
#: More rows than this are not fetched from Spark, nor made of arrays.
MOST_FETCHED = 200_000
_LEFT_KINDS = frozenset({Kind.FLOAT4, Kind.FLOAT8, Kind.ARRAY, Kind.RECORD})
_PATTERNS = ("regexp", "similar")


def is_simple(mfp: MapFilterProject) -> bool:
    """Returns whether `evaluated` knows all functions of a map, filter and project."""
    return all(is_evaluated_here(scalar) for _, scalar in mfp.steps)


def is_evaluated_here(scalar: Scalar) -> bool:
    """Returns whether a scalar's value is worked out here, for few rows."""
    return is_evaluable(scalar) and not any(map(_is_left, walk(scalar)))


def _is_left(node: Scalar) -> bool:
    is_pattern = isinstance(node, Call) and any(name in node.function for name in _PATTERNS)
    return is_pattern or node.type.kind in _LEFT_KINDS


def evaluated(frame: pa.Table, node: Linear) -> pa.Table:
    """Returns what a map, filter and project makes of an update frame: see `linear`."""
    mfp, arity = node.mfp, node.mfp.arity
    steps = [(kind, compiled(scalar)) for kind, scalar in mfp.steps]
    mapped = [scalar.type for kind, scalar in mfp.steps if kind == "map"]
    columns = node.input.relation_type.columns
    asked = {position for _, scalar in mfp.steps for position in columns_of(scalar) if position < arity}
    cells = {position: plain_cells(frame.column(position), columns[position].type) for position in asked}
    errors = frame.column(ERROR).to_pylist()
    kept: list[int] = []
    rows: list[list[Any]] = []
    for number, error in enumerate(errors):
        row: dict[int, Any] = {position: values[number] for position, values in cells.items()}
        if error is None:
            try:
                if not _passes(steps, row, arity):
                    continue
            except SqlFailure as failed:
                errors[number] = str(failed)
        kept.append(number)
        rows.append([row.get(arity + n) for n in range(len(mapped))])
    chosen = frame.take(pa.array(kept, pa.int64()))
    found = []
    for position in mfp.projection:
        if position < arity:
            found.append(chosen.column(position))
        else:
            values = [row[position - arity] for row in rows]
            found.append(pa.chunked_array([stored_cells(values, mapped[position - arity])]))
    meta = [chosen.column(name) for name in META if name != ERROR]
    outcomes = pa.array([errors[number] for number in kept], pa.string())
    return without_error_data(pa.Table.from_arrays([*found, *meta, outcomes], schema=plan_schema(node)))


def _passes(steps: Sequence[tuple[str, Evaluate]], row: dict[int, Any], width: int) -> bool:
    """Returns whether a row passes all predicates, adding the mapped columns to it."""
    for kind, evaluate in steps:
        value = evaluate(row)
        if kind == "map":
            row[width] = value
            width += 1
        elif value is not True:
            return False
    return True


def negated(frame: pa.Table) -> pa.Table:
    """Returns the frame with the diffs negated but for those of the error part: see `negate`."""
    position = frame.column_names.index(DIFF)
    diffs = frame.column(position)
    negated = pc.if_else(pc.is_null(frame.column(ERROR)), pc.negate(diffs), diffs)
    return frame.set_column(position, frame.schema.field(position), negated)


def repeated(frame: pa.Table, node: Repeat) -> pa.Table:
    """Returns the frame with diffs multiplied by a column, which goes: see `repeat`.

    Raises:
        NotFew: A product is beyond a bigint.
    """
    is_good = pc.is_null(frame.column(ERROR))
    counts = pc.if_else(is_good, frame.column(f"c{node.count}").cast(pa.int64()), 1)
    try:
        diffs = pc.multiply_checked(frame.column(DIFF), counts)
    except pa.ArrowInvalid as error:
        raise NotFew("a diff is out of range, which is Spark's to tell") from error
    position = frame.column_names.index(DIFF)
    frame = frame.set_column(position, frame.schema.field(position), diffs).filter(pc.not_equal(diffs, 0))
    return frame.drop_columns(f"c{node.count}").rename_columns(plan_schema(node).names)


def unnested(frame: pa.Table, node: Unnest) -> pa.Table:
    """Returns the updates with elements in the places of the arrays: see `unnest`.

    Raises:
        NotFew: There are very many.
    """
    arity = node.input.relation_type.arity
    kept = arity - node.arrays
    arrays = [frame.column(position).to_pylist() for position in range(kept, arity)]
    sources: list[int] = []
    rows: list[tuple[Any, ...]] = []
    for number, error in enumerate(frame.column(ERROR).to_pylist()):
        found = zip_longest(*(array[number] or () for array in arrays))
        elements = [(None,) * len(arrays)] if error is not None else list(found)
        sources += [number] * len(elements)
        rows += ((*cells, place) for place, cells in enumerate(elements, 1))
        if len(rows) > MOST_FETCHED:
            raise NotFew("arrays have many elements")
    chosen, schema = frame.take(pa.array(sources, pa.int64())), plan_schema(node)
    made = [[row[n] for row in rows] for n in range(len(arrays) + node.ordinality)]
    columns = [pa.chunked_array([pa.array(cells, schema.field(kept + n).type)]) for n, cells in enumerate(made)]
    meta = [chosen.column(name) for name in META]
    return pa.Table.from_arrays([*chosen.columns[:kept], *columns, *meta], schema=schema)


def plan_schema(node: Physical) -> pa.Schema:
    """Returns the schema of a plan's updates: `c0`, `c1`, ..., then time, diff and error."""
    named = node.relation_type.with_names(positional(node.relation_type.arity))
    return update_schema(named.columns)
