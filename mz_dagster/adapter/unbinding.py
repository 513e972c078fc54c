"""Files that changed, or are gone, after they were bound and before they were read: the source goes on without them.

A binding is definite: what a source contains at its tick is computed from that very file. If somebody wrote on at it,
or took it away, before a step has read it, no step can seal the tick. As long as nothing of the source is sealed there,
nobody has seen what the file held, so the binding can end as if it had never been: one transaction of the catalog,
under the lead of the timeline, so that no step that has begun before seals what it read. What is at the path now is new
to the next poll. Files whose bindings are sealed stay bound, whatever became of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.adapter.engine import Engine, SecondRunner
from mz_dagster.adapter.leading import leading
from mz_dagster.catalog import LeadershipLost
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.source import FileSource


def unbind_changed(engine: Engine, id: GlobalId, source: FileSource) -> Mapping[str, str]:
    """Ends the bindings of files that are not as they were bound, and that no step has read.

    Returns:
        What became of them, a sentence each, by their paths.

    Raises:
        SecondRunner: Another runner leads the timeline; nothing was done.
        SourceUnreadable: A file is there and cannot be read; nothing was done.
    """
    timeline = str(engine.catalog.collection(id).timeline)
    with leading(engine, timeline) as lead:
        upper = engine.catalog.collection(id).upper.only
        changed = source.lost(engine.catalog.bindings(id, upper))
        if isinstance(engine.catalog.unbind(id, [*changed], lead), LeadershipLost):
            raise SecondRunner(f'timeline "{timeline}" was led by another runner meanwhile', hint="Try again.")
    return changed
