"""A collection at a time, as a Spark DataFrame on the reader's own session: what other Spark code reads views by.

A shard's folder is the engine's own: its rows are updates, and not all of its batches count. This is the contract in
front of it.
"""

from __future__ import annotations

import atexit
import weakref
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

from mz_dagster.adapter.checking import last_held
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.timestamps import AsOfTime, Isolation, select_timestamp
from mz_dagster.compute import rows_frame
from mz_dagster.finalizers import DeferredCalls
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.read import leased

#: What the frames hold that are there: leases, and what they are resigned by.
_held: set[ExitStack] = set()


@only_our_errors()
def read(
    spark: Any, name: str, as_of: int | None = None, *, held: bool = False, project: str | Path | None = None
) -> Any:
    """Returns the rows of a source, table, materialized view or index at a time, as a DataFrame.

    Each row is there as often as its multiplicity says. The batches it reads are leased until the frame, and over Spark
    Connect every frame that was made of it, is garbage collected: it stays right while the collection is stepped and
    compacted. With a classic session keep the frame itself for as long as one that was made of it is used.

    Args:
        spark: The session to read with; it needs Delta Lake and must see the project's folder.
        name: The object's name.
        as_of: The time, in the timeline's own numbers; by default the latest that is complete.
        held: Whether to read the last tick until then at which the blocking checks of it, and of all that it is
            computed from, held; without it also what violates them is read.
        project: The project's folder; by default found from the current one.

    Raises:
        ProgrammingError: Nothing bears the name, it has no contents, or it cannot be read at that time; or its blocking
            checks held at no tick.
        DataError: The content at that time is an error.
    """
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
        lease = stack.enter_context(leased(engine.catalog, [row.id], holder=engine.holder, ttl_ms=found.lease_ms))
        frame = rows_frame(spark, found.state, engine.shards, row, lease.snapshots[row.id], time)
        # A frame that is made of another one refers to its plan, not to it; a classic one has its plan in the JVM.
        used = stack.pop_all()
        _held.add(used)
        weakref.finalize(getattr(frame, "_plan", frame), _closing().call, partial(_close, used)).atexit = False
    return frame


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
