"""Checks of sinks: what each has written, against what it writes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.errors import Error, one_line
from mz_dagster.formalism import GlobalId
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.read import overlapping


def check_sinks(examined: ExaminedProject, *, deep: bool) -> Iterator[Finding]:
    """Yields sinks whose place cannot be read, or does not say where it stands; `deep` compares every row."""
    definitions = CatalogDefinitions(examined.catalog, examined.project)
    for object in examined.catalog.objects("sink"):
        where, row = examined.called(object.id), examined.collections.get(object.id)
        try:
            sink = definitions.sink(object)
            stands = sink.stands_at()
            if stands is None:
                if row is not None and row.is_hydrated:
                    yield Finding("sink-differs", where, f'there is nothing of it at "{sink.table}"')
                continue
            on = definitions.definition_of(object).on
            assert on is not None, "a sink writes something"
            contents = _contents(examined, on.id, stands - 1) if deep else None
            what = None if contents is None else sink.difference(contents)
            if what is not None:
                yield Finding("sink-differs", where, f"{what}, at {stands - 1}")
        except Error as error:
            yield Finding("sink-unreadable", where, one_line(error))


def _contents(examined: ExaminedProject, id: GlobalId, time: int) -> pa.Table | None:
    """Returns what a collection holds at a time, None if that cannot be read any more, or not yet."""
    row = examined.collections.get(id)
    if row is None or not row.is_readable_at(time):
        return None
    batches = list(overlapping(examined.catalog.live_batches([id])[id], None, time + 1))
    return consolidated(examined.shards.read(row, batches, upper=time + 1), time)
