"""Appends to tables.

A write is `compare_and_append` at a timestamp of the oracle, strictly greater than any that a read was given.
INSERT of given rows asks nothing of the table: it loses a race only to take a later timestamp. What reads before it
writes reads the table as of `upper - 1` and appends only if the upper still is the one it saw, so nothing can have
come in between; otherwise it reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.peeks import TableMoved
from mz_dagster.catalog import CollectionRow, Sealed, UnknownObject
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.scalar import Value
from mz_dagster.plan.types import Column
from mz_dagster.sql.errors import NullNotAllowed
from mz_dagster.storage.append import compare_and_append
from mz_dagster.storage.local_shards import update_schema, update_table
from mz_dagster.storage.read import ReadBeforeSince

Row = tuple[Value, ...]
#: A row with its diff.
RowUpdate = tuple[Row, int]

_TRIES = 50


class WriteContended(OperationalError):
    """Reports a write that lost every race against others; nothing was written."""

    sqlstate = "40001"


def append(engine: Engine, table: GlobalId, updates: Sequence[RowUpdate]) -> int:
    """Appends updates that do not depend on the table's content; returns their timestamp.

    Raises:
        WriteContended: Others were faster, many times; nothing was written.
    """
    return read_and_append(engine, table, lambda _: updates)


def read_and_append(engine: Engine, table: GlobalId, decide: Callable[[CollectionRow], Sequence[RowUpdate]]) -> int:
    """Appends what `decide` makes of the table as it stands; returns the timestamp.

    Args:
        engine: The project.
        table: The table.
        decide: Given the table's row, whose `upper - 1` is the time to read at, returns the updates. Called again
            whenever somebody else wrote in between.

    Raises:
        WriteContended: Others were faster, many times; nothing was written.
        UnknownObject: The table was dropped.
    """

    def decided(row: CollectionRow) -> _FrameAt:
        updates = decide(row)
        return lambda time: update_table(row.columns, [(data, time, diff) for data, diff in updates])

    return _append(engine, table, decided)


def append_columns(engine: Engine, table: CollectionRow, name: str, found: Mapping[str, pa.Array], count: int) -> None:
    """Appends rows that are given as stored columns; a column that is not given is NULL.

    Raises:
        NullNotAllowed: A column that was declared NOT NULL has a NULL.
        WriteContended: Others were faster, many times; nothing was written.
    """
    schema = update_schema(table.columns)
    columns = {one.name: found.get(one.name, pa.nulls(count, schema.field(one.name).type)) for one in table.columns}
    for column in table.columns:
        if not column.nullable and columns[column.name].null_count:
            raise _null_in(column, name)
    if not count:
        return

    def frame(time: int) -> pa.Table:
        times, ones = (pa.repeat(pa.scalar(one, pa.int64()), count) for one in (time, 1))
        return pa.Table.from_arrays([*columns.values(), times, ones, pa.nulls(count, pa.string())], schema=schema)

    _append(engine, table.id, lambda _: frame)


_FrameAt = Callable[[int], pa.Table]


def _append(engine: Engine, table: GlobalId, decide: Callable[[CollectionRow], _FrameAt]) -> int:
    for _ in range(_TRIES):
        row = engine.catalog.collection(table)
        assert row.timeline is not None
        if row.upper.is_empty:
            raise UnknownObject(table, dropped=True)
        try:
            frame_at = decide(row)
        except (ReadBeforeSince, TableMoved):
            continue  # what it builds on is forgotten or was moved, so somebody else has written
        time = engine.catalog.write_ts(row.timeline, engine.now(row.timeline))
        if row.upper.less_equal(time):
            sealed = compare_and_append(
                engine.catalog,
                engine.shards,
                row,
                row.upper,
                Antichain.of(row.upper.lattice, time + 1),
                frame_at(time),
                holder=engine.holder,
                apply=(row.timeline, time),
            )
            if isinstance(sealed, Sealed):
                engine.wrote(table)
                return time
    raise WriteContended(
        f'table "{table}" is written by others all the time',
        detail=f"{_TRIES} attempts lost the race.",
        hint="Nothing was written; try again, or write in larger statements.",
    )


def check_not_null(row: CollectionRow, name: str, rows: Sequence[Row]) -> None:
    """Refuses a NULL in a column that was declared NOT NULL.

    Raises:
        NullNotAllowed: There is one.
    """
    for position, column in enumerate(row.columns):
        if not column.nullable and any(one[position] is None for one in rows):
            raise _null_in(column, name)


def _null_in(column: Column, name: str) -> NullNotAllowed:
    return NullNotAllowed(
        f'null value in column "{column.name}" of relation "{name}" violates not-null constraint',
        hint="Give a value, or create the column without NOT NULL.",
    )
