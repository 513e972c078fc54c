"""Updates of the error part: those that an operator passes on, and those that it makes."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.algebra.frame import ERROR, META
from mz_dagster.storage.arrow_schema import no_updates


def failed(changes: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the updates of the error part, which pass, as updates of something else."""
    if changes.column(ERROR).null_count == changes.num_rows:
        return no_updates(schema)
    errors = changes.filter(pc.is_valid(changes.column(ERROR)))
    columns = [
        errors.column(field.name) if field.name in META else pa.nulls(len(errors), field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def error_updates(diffs: Mapping[tuple[int, str], int], schema: pa.Schema) -> pa.Table:
    """Returns updates of the error part, by time and error."""
    found = [(*of, diff) for of, diff in diffs.items() if diff]
    times, errors, counts = zip(*found, strict=True) if found else ((), (), ())
    meta = [pa.array(times, pa.int64()), pa.array(counts, pa.int64()), pa.array(errors, pa.string())]
    data = [pa.nulls(len(found), field.type) for field in list(schema)[: -len(meta)]]
    return pa.Table.from_arrays([*data, *meta], schema=schema)
