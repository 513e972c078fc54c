"""Rebuilding: the way back of what is damaged and computed from what is not.

A view, an index and their arrangements are functions of what they read. So if one of them is damaged, it gets a new id
and hydrates from its inputs, with all that reads it, as what a release plans otherwise does (`replanning`); the names
move in one swap, and the damaged collection goes with the next sweep. The history from before the rebuild is gone: what
is made anew is readable from the latest time on that is complete in its inputs.

What is read is looked at first: nothing is given up for what could not be made anew. A table or a source is computed
from nothing in the catalog and is refused, with what is to be done instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.replanning import Replanned, recreate, with_readers
from mz_dagster.catalog import ObjectRow
from mz_dagster.compute import Progress, quiet
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.sql.errors import UndefinedTable

_INSTEAD = {
    "table": 'Its rows exist nowhere else: put its files back with "mz-dagster doctor --from-backup FOLDER", or '
    "restore the backup.",
    "collection": 'Its rows are its writers\' own: put its files back with "mz-dagster doctor --from-backup FOLDER", '
    "or restore the backup.",
    "source": 'Read its files again with "mz-dagster reread NAME"; or put those of its batches back with "mz-dagster '
    'doctor --from-backup FOLDER".',
    "view": "Rebuild what it reads, or what reads it.",
}


class NotRebuilt(ProgrammingError):
    """An object that is computed from nothing that could be read again."""

    sqlstate = "42809"


def rebuild(engine: Engine, names: Sequence[str], progress: Progress = quiet) -> tuple[Replanned, ...]:
    """Makes views and indexes anew from what they read, with all that reads them, and hydrates them.

    If the hydration fails or is interrupted, the next step goes on with it.

    Args:
        engine: The project.
        names: Names or ids of views and indexes; of an arrangement its id or what `frontiers` calls it, which stands
            for its owner.
        progress: Receives lines that read as the story of it.

    Returns:
        What was made anew, each after those it reads.

    Raises:
        UndefinedTable: Nothing bears a name.
        NotRebuilt: It is a table, a source or a plain view.
        DamageError: What it is computed from is damaged, too; nothing was done.
        OperationalError: The outside world failed.
    """
    engine.replan()

    def attempt() -> tuple[tuple[Replanned, GlobalId], ...]:
        rows = {row.id: row for row in engine.catalog.objects()}
        ids = {_computed(engine, name, rows).id for name in names}
        objects = with_readers(engine.catalog, lambda row: "it is to be rebuilt" if row.id in ids else None)
        _check_inputs(engine, {one.row.id for one in objects}, rows)
        return recreate(engine.catalog, engine.definitions, objects)

    done = engine.change(attempt)
    for one, _ in done:
        progress(f'"{one.name}" hydrates anew: {one.reason}')
    wanted: dict[str, set[GlobalId]] = {}
    for one, id in done:
        if one.row.has_collection and one.row.timeline is not None:
            wanted.setdefault(one.row.timeline, set()).add(id)
    for timeline, ids in wanted.items():
        time = engine.catalog.read_ts(timeline)
        engine.reach(timeline, time, frozenset(ids), deadline_s=math.inf, progress=progress)
    return tuple(one for one, _ in done)


def _computed(engine: Engine, name: str, rows: Mapping[GlobalId, ObjectRow]) -> ObjectRow:
    """Returns the view or index that a name stands for, whose contents can be computed again."""
    row = engine.catalog.resolve_name(name) or rows.get(GlobalId(name))
    if row is None:
        called = {name: id for id, name in engine.definitions.display_names().items() if id in rows}
        if name not in called:
            raise UndefinedTable.named(name, called)
        row = rows[called[name]]
    if row.owner is not None:
        row = rows[row.owner]
    elif row.kind == "index":
        row = rows[engine.definitions.collection_of(row)]
    if row.kind in _INSTEAD:
        raise NotRebuilt(f'{row.kind} "{row.name or row.id}" cannot be rebuilt', hint=_INSTEAD[row.kind])
    return row


def _check_inputs(engine: Engine, anew: Set[GlobalId], rows: Mapping[GlobalId, ObjectRow]) -> None:
    """Reads every file from which objects are to be computed, and returns if each is the one that was written."""
    computed = [row for row in rows.values() if row.id in anew or row.owner in anew]
    for id in sorted({id for row in computed for id in row.dependencies.values()} - {row.id for row in computed}):
        if rows[id].has_collection:
            collection = engine.catalog.collection(id)
            batches = engine.catalog.live_batches([id])[id]
            engine.shards.check_files(collection, batches, engine.shards.files(collection, batches))
