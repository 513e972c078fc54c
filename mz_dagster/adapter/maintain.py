"""MaintainView: views by right of read capabilities on what they are computed from (items 83 to 89).

    reads on inputs, views, writes on collections  -->  a read on each view

All views begin at one time, the least at which every one of the inputs may be read by right of its capability; the next
step hydrates them as of then. From the moment they exist the catalog holds W and R between them and their inputs
(`catalog.maintaining`), so what was presented may be dropped or downgraded. To stop maintaining a view is to drop it.

A write capability, if one is presented for a view, says where to write it: on a collection that `storage.Storage` made
and that nobody has written yet, which from then on is the view. It is used up: every step writes the collection with
all others that it seals, and nobody else can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.adapter.definition import define
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.plan_limit import ensure_within_limit
from mz_dagster.catalog import FrontierNotHeld, NewObject, ReadCapability, WriteCapability
from mz_dagster.errors import ProgrammingError
from mz_dagster.sql import CreateMaterializedView, parse
from mz_dagster.sql.errors import QueryOfTwoTimelines
from mz_dagster.storage import LEASE_MS


def maintain_view(
    engine: Engine,
    reads: Sequence[ReadCapability],
    sql: str,
    writes: Sequence[WriteCapability | None] = (),
    *,
    lease_ms: int | None = LEASE_MS,
) -> tuple[ReadCapability, ...]:
    """Creates materialized views, durably, and returns a capability to read each of them.

    Args:
        engine: The project.
        reads: On every collection that a view reads.
        sql: One or more `CREATE MATERIALIZED VIEW` statements.
        writes: On the collections to write the views to, in their order; None, or too few of them, for views that get
            new collections. Each is the only live one on its collection.
        lease_ms: How long the capabilities returned last unless renewed, in milliseconds; None for until they are
            dropped.

    Raises:
        InputNotHeld: A view reads a collection of which there is no capability.
        FrontierNotHeld: There are no capabilities to read, or one of the inputs is not known yet where another begins;
            or a collection to be written has another writer, or a reader of times before the views begin.
        UnknownCapability: A capability was dropped.
        CapabilityExpired: A capability's lease ran out.
        WrongRight: A capability grants writing where reading is needed, or the other way round.
        QueryOfTwoTimelines: The capabilities are on collections of two timelines.
        WrongDefinition: A collection to be written holds updates, or is of other columns or another timeline.
        ProgrammingError: A statement is none that creates a materialized view, does not bind, or its name is taken.
        NotSupportedError: A view uses what cannot be maintained.
        PlanTooLarge: Spark would have too much to plan for a view.
    """
    if not reads or any(one.frontier.is_empty for one in reads):
        raise FrontierNotHeld("a view needs capabilities to read what it is computed from", hint="Acquire them first.")
    if any(one is not None and one.frontier.is_empty for one in writes):
        raise FrontierNotHeld(
            "a capability at {} grants no right to write",
            detail="What it is on is complete, or is written by the engine.",
            hint="Create a collection to write the view to.",
        )
    presented = [one for one in (*reads, *writes) if one is not None]
    _check_one_timeline(engine, presented)
    as_of = max(one.frontier.only for one in presented)
    new: list[NewObject] = []
    for statement in parse(sql):
        if not isinstance(statement, CreateMaterializedView):
            raise ProgrammingError("only a materialized view is maintained", hint="Use CREATE MATERIALIZED VIEW.")
        definition = define(statement, engine.definitions, default_timeline=engine.project.timeline)
        ensure_within_limit(definition, engine.project)
        new += engine.definitions.new_objects(definition, new)
    placed = [replace(one, since=as_of, upper=as_of) for one in new]
    return engine.catalog.maintain(
        [one.token for one in reads],
        placed,
        [None if one is None else one.token for one in writes],
        holder=engine.holder,
        ttl_ms=lease_ms,
    )


def _check_one_timeline(engine: Engine, presented: Sequence[ReadCapability | WriteCapability]) -> None:
    timelines = {engine.catalog.collection(one.collection).timeline: one.collection for one in presented}
    timelines.pop(None, None)  # constants are of none
    if len(timelines) > 1:
        (first, one), (second, other), *_ = timelines.items()
        raise QueryOfTwoTimelines(
            "a view cannot be maintained over collections of two timelines",
            detail=f'"{one}" is on timeline "{first}", "{other}" on "{second}"; their times never compare.',
            hint="Present capabilities on collections of one timeline.",
        )
