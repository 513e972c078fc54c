"""Calls evaluated exactly, in Python: once for each distinct tuple of the arguments' values in a batch.

It is what has no kernel, and the rows that a kernel does not vouch for. What it costs is a microsecond or two for each
tuple, fifty where numerics of many digits are divided, and a tenth of a microsecond for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.expressions.outcome import Evaluated
from mz_dagster.compute.local.expressions.registry import Operand
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.plain_cells import plain_cells, stored_cells
from mz_dagster.storage.row_numbers import numbered


def evaluated_by_row(call: Call, operands: Sequence[Operand], rows: int) -> Evaluated:
    """Returns the outcome of a call for so many rows of its arguments' values, of which none has an error.

    Args:
        call: Whose arguments that are literals stay what they are.
        operands: The values of the others, and anything in the place of the literals.
        rows: How many; the arrays among the operands have as many values.

    Raises:
        Declined: The tuples are more than `Budget.scalar_rows`.
    """
    arguments = tuple(
        one if isinstance(one, Literal) else ColumnRef(place, one.type) for place, one in enumerate(call.arguments)
    )
    evaluate = compiled(replace(call, arguments=arguments))
    columns = {place: operands[place] for place, one in enumerate(arguments) if isinstance(one, ColumnRef)}
    varying = {place: one for place, one in columns.items() if isinstance(one, pa.Array)}
    tuples, _ = numbered(list(varying.values()), rows)
    _, first, numbers = np.unique(tuples, return_index=True, return_inverse=True)
    if 1 < len(first) > budget().scalar_rows:
        raise Declined(f"{call.function} is called for {len(first)} different arguments, row by row")
    cells: list[list[Any]] = [[None] * len(first) for _ in arguments]
    for place, values in columns.items():
        type_ = call.arguments[place].type
        if isinstance(values, pa.Array):
            cells[place] = plain_cells(values.take(pa.array(first)), type_)
        else:
            cells[place] = plain_cells(pa.repeat(values, 1), type_) * len(first)
    found: list[Any] = []
    errors: list[str | None] = []
    for row in zip(*cells, strict=True) if cells else [()] * len(first):
        try:
            found.append(evaluate(row))
            errors.append(None)
        except SqlFailure as failure:
            found.append(None)
            errors.append(str(failure))
    return _spread(found, errors, call.type, pa.array(numbers))


def _spread(values: list[Any], errors: list[str | None], type_: ScalarType, numbers: pa.Array) -> Evaluated:
    stored = stored_cells(values, type_).take(numbers)
    if not any(errors):
        return Evaluated(stored)
    return Evaluated(stored, pa.array(errors, pa.string()).take(numbers))
