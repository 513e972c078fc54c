"""Linear operators over few updates, in this process.

What passes on what an arrangement holds, as most views do with the last of theirs, has a handful of updates in a step.
A query for them costs Spark a tenth of a second, to read, evaluate and hand them over; here it is a few milliseconds.

A map, filter and project is `is_simple` if all its scalars are evaluated here (`local.expressions`) as Spark does on
any machine (`algebra/evaluable.py`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, positional
from mz_dagster.compute.local.declined import TooManyMade
from mz_dagster.compute.local.expressions.outcome import as_mask
from mz_dagster.compute.local.linear import mapped
from mz_dagster.compute.local.multiplicities import opposites, products
from mz_dagster.object_cache import cached_by_object
from mz_dagster.plan.physical import Catch, ConstantRows, Linear, MapFilterProject, Physical, Repeat, Unnest
from mz_dagster.storage.arrow_schema import no_updates, update_schema, update_table, without_error_data
from mz_dagster.storage.row_numbers import whole


def is_simple(mfp: MapFilterProject) -> bool:
    """Returns whether `evaluated` knows all functions of a map, filter and project."""
    return all(is_exact_in_python(scalar) for _, scalar in mfp.steps)


def evaluated(frame: pa.Table, node: Linear) -> pa.Table:
    """Returns what a map, filter and project makes of an update frame: see `linear`.

    Raises:
        Declined: Much would be evaluated row by row.
    """
    return mapped(frame, node.mfp, plan_schema(node))


def constant(node: ConstantRows, time: int) -> pa.Table:
    """Returns the updates by which constant rows are there from a time on."""
    rows = [(tuple(cell.value for cell in row), time, 1) for row in node.rows]
    return update_table(node.relation_type.columns, rows).rename_columns(plan_schema(node).names)


def negated(frame: pa.Table) -> pa.Table:
    """Returns the frame with the diffs negated but for those of the error part: see `negate`.

    Raises:
        MultiplicityOverflow: A diff is the least bigint.
    """
    position = frame.column_names.index(DIFF)
    diffs = frame.column(position)
    negated = pc.if_else(pc.is_null(frame.column(ERROR)), opposites(diffs), diffs)
    return frame.set_column(position, frame.schema.field(position), negated)


def repeated(frame: pa.Table, node: Repeat) -> pa.Table:
    """Returns the frame with diffs multiplied by a column, which goes: see `repeat`.

    Raises:
        MultiplicityOverflow: A product is beyond a bigint.
    """
    is_good = pc.is_null(frame.column(ERROR))
    counts = pc.if_else(is_good, frame.column(f"c{node.count}").cast(pa.int64()), 1)
    diffs = products(frame.column(DIFF), counts)
    position = frame.column_names.index(DIFF)
    frame = frame.set_column(position, frame.schema.field(position), diffs).filter(pc.not_equal(diffs, 0))
    return frame.drop_columns(f"c{node.count}").rename_columns(plan_schema(node).names)


def caught(frame: pa.Table, node: Catch) -> pa.Table:
    """Returns the frame without an error part, the errors being rows: see `catch`."""
    schema = plan_schema(node)
    data = without_error_data(frame)
    error = frame.column(ERROR).cast(schema.field(node.input.relation_type.arity).type)
    none = pa.nulls(frame.num_rows, schema.field(ERROR).type)
    columns = [*data.columns[: node.input.relation_type.arity], error, frame.column(TIME), frame.column(DIFF), none]
    return pa.Table.from_arrays(columns, schema=schema)


def unnested(frame: pa.Table, node: Unnest) -> pa.Table:
    """Returns the updates with elements in the places of the arrays: see `unnest`.

    Raises:
        TooManyMade: There are very many.
    """
    arity = node.input.relation_type.arity
    kept, schema = arity - node.arrays, plan_schema(node)
    is_good = as_mask(whole(pc.is_null(frame.column(ERROR))))
    arrays = [whole(frame.column(position)) for position in range(kept, arity)]
    lengths = [np.where(is_good, pc.fill_null(pc.list_value_length(array), 0).to_numpy(), 0) for array in arrays]
    count = np.where(is_good, np.maximum.reduce(lengths), 1)
    if int(count.sum()) > budget().made_rows:
        raise TooManyMade("arrays have many elements")
    sources = np.repeat(np.arange(frame.num_rows), count)
    places = np.arange(len(sources)) - np.repeat(np.cumsum(count) - count, count)
    made: list[pa.Array] = []
    for array, length in zip(arrays, lengths, strict=True):
        begins = array.offsets.to_numpy()[:-1]
        at = pa.array(begins[sources] + places, pa.int64(), mask=places >= length[sources])
        made.append(array.values.take(at))
    if node.ordinality:
        made.append(pa.array(places + 1, pa.int64()))
    # Without the arrays, each of which would be copied as often as it has elements.
    others = frame.select([*range(kept), *range(arity, frame.num_columns)])
    chosen = others.take(pa.array(sources, pa.int64()))
    columns = [cells.cast(schema.field(kept + n).type) for n, cells in enumerate(made)]
    meta = [chosen.column(name) for name in META]
    return pa.Table.from_arrays([*chosen.columns[:kept], *columns, *meta], schema=schema)


def no_updates_of(node: Physical) -> pa.Table:
    """Returns a plan's updates where it has none."""
    return no_updates(plan_schema(node))


@cached_by_object(most=20_000)
def plan_schema(node: Physical) -> pa.Schema:
    """Returns the schema of a plan's updates: `c0`, `c1`, ..., then time, diff and error."""
    named = node.relation_type.with_names(positional(node.relation_type.arity))
    return update_schema(named.columns)
