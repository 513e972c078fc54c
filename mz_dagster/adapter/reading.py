"""A collection at a time, as what the reader likes: a Spark DataFrame on its own session, or Arrow, Polars or pandas.

A shard's folder is the engine's own: its rows are updates, and not all of its batches count. This is the contract in
front of it. A Spark DataFrame reads the shard once it is evaluated; the others are what a SELECT answers, for which no
Spark is started while what it reads fits this process.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from mz_dagster.adapter.checking import last_held
from mz_dagster.adapter.connection import Connection, Cursor
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.timestamps import AsOfTime, Isolation, select_timestamp
from mz_dagster.compute import rows_frame
from mz_dagster.errors import InterfaceError
from mz_dagster.finalizers import DeferredCalls
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.schemas import written
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.read import leased

#: What reads beside Spark.
_READERS = ("arrow", "polars", "pandas")
#: What the frames hold that are there: leases, and what they are resigned by.
_held: set[ExitStack] = set()


@only_our_errors()
def read(
    reader: Any,
    name: str,
    as_of: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    held: bool = False,
    project: str | Path | None = None,
) -> Any:
    """Returns the rows of a source, table, materialized view or index at a time, as a DataFrame.

    Each row is there as often as its multiplicity says. With a Spark session the batches it reads are leased until the
    frame, and over Spark Connect every frame that was made of it, is garbage collected: it stays right while the
    collection is stepped and compacted. With a classic session keep the frame itself for as long as one that was made
    of it is used.

    Args:
        reader: What to read with: a Spark session, which needs Delta Lake and must see the project's folder; `"arrow"`
            for a `RecordBatchReader`, whose batches are made one by one, `"polars"`, or `"pandas"`.
        name: The object's name.
        as_of: The time, in the timeline's own numbers; by default the latest that is complete.
        columns: Which ones to read; by default all.
        where: A condition in SQL that rows fulfil, such as `"city = 'Paris'"`; not with a Spark session, whose frames
            have a `where` of their own.
        held: Whether to read the last tick until then at which the blocking checks of it, and of all that it is
            computed from, held; without it also what violates them is read.
        project: The project's folder; by default found from the current one.

    Raises:
        ProgrammingError: Nothing bears the name, it has no contents, or it cannot be read at that time; or its blocking
            checks held at no tick.
        InterfaceError: There is no such reader, or it takes no condition.
        DataError: The content at that time is an error.
    """
    if isinstance(reader, str) and reader not in _READERS:
        raise InterfaceError(
            f'nothing reads as "{reader}"', hint=f"Name {', '.join(_READERS)}, or give a Spark session."
        )
    if where is not None and not isinstance(reader, str):
        raise InterfaceError(
            "a Spark session reads by no condition in SQL",
            hint="Write read(...).where(...): Spark has the scan leave out what it can.",
        )
    found = Project.load(Path(project)) if project is not None else Project.find(Path.cwd())
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(found))
        row = engine.catalog.collection(engine.collection_of(name))
        asked = None if as_of is None else AsOfTime(as_of)
        read_ts = 0 if row.timeline is None else engine.catalog.read_ts(row.timeline)
        time = select_timestamp([row], read_ts, Isolation.SERIALIZABLE, asked)
        if row.timeline is not None:
            engine.reach(row.timeline, time, frozenset({row.id}))
            time = last_held(engine, row.id, time) if held else time
        if isinstance(reader, str):
            cursor = _selected(stack, engine, name, columns, where, None if row.timeline is None else time)
            return _as(reader, cursor, stack)
        lease = stack.enter_context(leased(engine.catalog, [row.id], holder=engine.holder, ttl_ms=found.lease_ms))
        frame = rows_frame(reader, found.state, engine.shards, row, lease.snapshots[row.id], time)
        if columns is not None:
            frame = frame.select(*(f"`{one.replace('`', '``')}`" for one in columns))
        # A frame that is made of another one refers to its plan, not to it; a classic one has its plan in the JVM.
        _close_behind(getattr(frame, "_plan", frame), stack)
    return frame


def _selected(
    stack: ExitStack, engine: Engine, name: str, columns: Sequence[str] | None, where: str | None, time: int | None
) -> Cursor:
    """Returns a cursor over the rows of an object, which the stack closes."""
    row = engine.catalog.resolve_name(name)
    assert row is not None, "it has a collection"
    if row.kind == "index":
        on = engine.definitions.definition_of(row).on
        assert on is not None, "an index is on something"
        row = engine.catalog.object(on.id)
    chosen = "*" if columns is None else ", ".join(map(quoted, columns))
    condition = "" if where is None else f" WHERE (\n{where}\n)"
    at = "" if time is None else f" AS OF {time}"
    connection = stack.enter_context(Connection(engine, Isolation.SERIALIZABLE, owns_engine=False))
    return connection.execute(f"SELECT {chosen} FROM {written(row.schema, str(row.name))}{condition}{at}")


def _as(reader: str, cursor: Cursor, stack: ExitStack) -> Any:
    """Returns what a cursor has, as a reader likes it; what is read batch by batch takes the stack along."""
    if reader == "pandas":
        return cursor.df()
    if reader == "polars":
        return cursor.pl()
    batches = cursor.fetch_record_batch()
    read_on = (one for one in batches)
    _close_behind(read_on, stack)
    return pa.RecordBatchReader.from_batches(batches.schema, read_on)


def _close_behind(reads: Any, stack: ExitStack) -> None:
    """Has a stack closed once what reads by what it holds is garbage collected."""
    used = stack.pop_all()
    _held.add(used)
    weakref.finalize(reads, _closing().call, partial(_close, used)).atexit = False


@cache
def _closing() -> DeferredCalls:
    """Returns what closes what frames held: to write to the catalog takes locks, which a finalizer must not take."""
    atexit.register(_close_all)
    return DeferredCalls(threads=1)


def _close(held: ExitStack) -> None:
    held.close()
    _held.discard(held)


def _close_all() -> None:
    for held in list(_held):
        _close(held)
