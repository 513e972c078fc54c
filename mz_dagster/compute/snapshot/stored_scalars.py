"""Scalars over rows that are stored, column by column, for who writes these rows and plans nothing.

Memory: what the expressions make of as many rows as are evaluated at once.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.compute.snapshot.stored_rows import AT_ONCE, StoredRows
from mz_dagster.functions.evaluation import is_evaluable
from mz_dagster.plan.relation import Constant, Map, Projection, Relation
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Column
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.row_numbers import whole


def stored_values(scalar: Scalar, rows: StoredRows) -> pa.ChunkedArray | None:
    """Returns the stored values of a scalar over rows' columns.

    None if it is not evaluated in this process, or fails for one of the rows: then it is computed as a query is, which
    says so.

    Example:
        >>> from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
        >>> from mz_dagster.scalars.types import INT4, Column
        >>> rows = StoredRows.of([pa.array([2, 0], pa.int32())], [Column("a", INT4)])
        >>> [None if found is None else found.to_pylist()
        ...  for function in ("add_int4", "divide_int4")
        ...  for found in [stored_values(Call(function, (Literal(6, INT4), ColumnRef(0, INT4)), INT4), rows)]]
        [[8, 6], None]
    """
    if not is_evaluable(scalar):
        return None
    at_once = max(AT_ONCE, budget().scalar_rows)  # of which none declines for having too many different ones
    found: list[pa.Array] = []
    for start in range(0, len(rows), at_once):
        part = rows.table.slice(start, at_once)
        try:
            outcome = evaluated(scalar, RowBatch(len(part), partial(_column, part)))
        except Declined:
            return None
        if outcome.errors is not None and outcome.errors.null_count < len(part):
            return None
        found.append(outcome.array(len(part)))
    return pa.chunked_array(found, arrow_type(scalar.type))


def stored_projection(relation: Relation, rows: StoredRows) -> StoredRows | None:
    """Returns what a plan that does nothing but compute columns makes of rows in the place of its constants, in order.

    None if it does more, or as for `stored_values`.
    """
    match relation:
        case Constant():
            return rows
        case Projection():
            below = stored_projection(relation.input, rows)
            return None if below is None else below.arranged(relation.positions)
        case Map():
            found = stored_projection(relation.input, rows)
            for scalar, name in zip(relation.scalars, relation.names, strict=True):
                values = None if found is None else stored_values(scalar, found)
                if found is None or values is None:
                    return None
                column = Column(name, scalar.type, scalar.nullable)
                found = StoredRows.of([*found.table.columns, values], (*found.columns, column))
            return found
        case _:
            return None


def _column(table: pa.Table, place: int) -> pa.Array:
    return whole(table.column(place))
