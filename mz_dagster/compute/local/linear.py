"""Maps, filters and projections over update frames, column by column.

As in Spark's `linear`: the first step that fails makes a row an error, at its time and with its diff, and a row stays
if all predicates are true. Each step sees only the rows that the ones before left.

Memory: the frame, and the columns that expressions make of it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.compute.local.expressions.outcome import as_mask
from mz_dagster.plan.physical import MapFilterProject
from mz_dagster.storage.arrow_schema import UPDATE_FIELDS, without_error_data
from mz_dagster.storage.row_numbers import whole
from mz_dagster.storage.shards import ERROR


def mapped(frame: pa.Table, mfp: MapFilterProject, schema: pa.Schema) -> pa.Table:
    """Returns what a map, filter and project makes of an update frame.

    Args:
        frame: The input's columns, then time, diff and error.
        mfp: All of whose scalars are evaluated in this process.
        schema: Of the result.
    """
    errors = frame.column(ERROR).combine_chunks()
    batch = RowBatch(len(frame), lambda position: whole(frame.column(position)))
    numbers = np.arange(len(frame))
    failed: list[tuple[NDArray[np.int64], pa.Array]] = []

    def keep(passes: NDArray[np.bool_]) -> None:
        nonlocal batch, numbers
        if not passes.all():
            batch, numbers = batch.where(passes), numbers[passes]

    if errors.null_count < len(errors):
        is_good = as_mask(errors.is_null())
        failed.append((numbers[~is_good], errors.drop_null()))
        keep(is_good)
    width = mfp.arity
    for kind, scalar in mfp.steps:
        found = evaluated(scalar, batch)
        is_failed = found.is_failed
        if kind == "map":
            batch = batch.with_column(width, found.array(batch.rows))
            width += 1
        if is_failed is not None:
            assert found.errors is not None
            failed.append((numbers[is_failed], found.errors.drop_null()))
        if kind == "filter":
            keep(as_mask(found.array(batch.rows)))
        elif is_failed is not None:
            keep(~is_failed)
    return _projected(frame, mfp, schema, batch, numbers, failed)


def _projected(
    frame: pa.Table,
    mfp: MapFilterProject,
    schema: pa.Schema,
    batch: RowBatch,
    numbers: NDArray[np.int64],
    failed: list[tuple[NDArray[np.int64], pa.Array]],
) -> pa.Table:
    """Returns the rows that passed, whose numbers in the frame are known, and the errors."""
    kept = pa.array(numbers)
    is_whole = len(numbers) == len(frame)
    times = len(UPDATE_FIELDS)
    meta = frame.select(range(frame.num_columns - times, frame.num_columns - 1))
    good = [
        *(batch.at(position) for position in mfp.projection),
        *(meta if is_whole else meta.take(kept)).columns,
        pa.nulls(len(numbers), pa.string()),
    ]
    passed = pa.Table.from_arrays(good, schema=schema)
    if not failed:
        return passed
    tables = [passed]
    for rows, errors in failed:
        data = [pa.nulls(len(rows), schema.field(place).type) for place in range(len(mfp.projection))]
        own = meta.take(pa.array(rows)).columns
        tables.append(pa.Table.from_arrays([*data, *own, errors], schema=schema))
    return without_error_data(pa.concat_tables(tables))
