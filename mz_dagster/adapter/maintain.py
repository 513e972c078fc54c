"""MaintainView: views by right of read capabilities on what they are computed from (items 83 to 89).

    reads on inputs, views  -->  a read on each view

All views begin at one time, the least at which every one of the inputs may be read by right of its capability; the next
step hydrates them as of then. From the moment they exist the catalog holds W and R between them and their inputs
(`catalog.maintaining`), so what was presented may be dropped or downgraded. To stop maintaining a view is to drop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.adapter.definition import define
from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import FrontierNotHeld, NewObject, ReadCapability
from mz_dagster.errors import ProgrammingError
from mz_dagster.sql import CreateMaterializedView, parse
from mz_dagster.storage import LEASE_MS


def maintain_view(
    engine: Engine, reads: Sequence[ReadCapability], sql: str, *, lease_ms: int | None = LEASE_MS
) -> tuple[ReadCapability, ...]:
    """Creates materialized views, durably, and returns a capability to read each of them.

    Args:
        engine: The project.
        reads: On every collection that a view reads.
        sql: One or more `CREATE MATERIALIZED VIEW` statements.
        lease_ms: How long the capabilities returned last unless renewed, in milliseconds; None for until they are
            dropped.

    Raises:
        InputNotHeld: A view reads a collection of which there is no capability.
        FrontierNotHeld: There are no capabilities, or one of the inputs is not known yet where another begins.
        UnknownCapability: A capability was dropped.
        CapabilityExpired: A capability's lease ran out.
        ProgrammingError: A statement is none that creates a materialized view, does not bind, or its name is taken.
        NotSupportedError: A view uses what cannot be maintained.
    """
    if not reads or any(one.frontier.is_empty for one in reads):
        raise FrontierNotHeld("a view needs capabilities to read what it is computed from", hint="Acquire them first.")
    as_of = max(one.frontier.only for one in reads)
    new: list[NewObject] = []
    for statement in parse(sql):
        if not isinstance(statement, CreateMaterializedView):
            raise ProgrammingError("only a materialized view is maintained", hint="Use CREATE MATERIALIZED VIEW.")
        definition = define(statement, engine.definitions, default_timeline=engine.project.timeline)
        new += engine.definitions.new_objects(definition, new)
    placed = [replace(one, since=as_of, upper=as_of) for one in new]
    tokens = [one.token for one in reads]
    return engine.catalog.maintain(tokens, placed, holder=engine.holder, ttl_ms=lease_ms)
