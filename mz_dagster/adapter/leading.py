"""The lead of a timeline for a block that does what nobody may step beside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mz_dagster.adapter.engine import Engine, SecondRunner
from mz_dagster.catalog import Leadership, LedByAnother


@contextmanager
def leading(engine: Engine, timeline: str) -> Iterator[Leadership]:
    """Leads a timeline for the length of a block.

    Raises:
        SecondRunner: Another runner leads it; nothing was done.
    """
    with engine.lead(timeline) as lead:
        if isinstance(lead, LedByAnother):
            raise SecondRunner(
                f'timeline "{timeline}" is led by {lead.holder}',
                detail=f"{lead.ending(engine.clock.now_ms()).capitalize()}.",
                hint="Wait until it has finished, and try again.",
            )
        yield lead
