"""Sinks that are written anew, from what they write, whatever became of what they wrote before."""

from __future__ import annotations

from mz_dagster.adapter.engine import Engine, SecondRunner
from mz_dagster.adapter.sink_versions import write_manifest
from mz_dagster.catalog import LedByAnother
from mz_dagster.compute import FailedNode, SinkNode
from mz_dagster.formalism import GlobalId


def rewrite_sink(engine: Engine, id: GlobalId) -> None:
    """Has a sink write anew what its input holds at the latest time at which that is complete.

    Raises:
        SecondRunner: Another runner leads; nothing was done.
        DatabaseError: It cannot be written; what was there is as it was.
    """
    timeline = str(engine.catalog.collection(id).timeline)
    with engine.lead(timeline) as lead:
        if isinstance(lead, LedByAnother):
            raise SecondRunner(f'timeline "{timeline}" is led by {lead.holder}', hint="Wait until it has finished.")
        node = engine.graph(timeline).by_id[id]
        if isinstance(node, FailedNode):
            raise node.error
        assert isinstance(node, SinkNode), "it is a sink's"
        engine.stepper.rewrite(node, lead)
    write_manifest(engine.project, engine.catalog, engine.definitions)
