"""Checks of inlined batches: whether the catalog has their updates, as they were written, and nothing beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.catalog import Batch, BatchId, CollectionRow
from mz_dagster.disk import make_folder, sync
from mz_dagster.errors import Error
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding, listing
from mz_dagster.operations.quarantine import quarantine_of
from mz_dagster.progress import advance
from mz_dagster.storage.shards import DIFF, BatchIncomplete


def check_payloads(
    examined: ExaminedProject, row: CollectionRow, batches: Sequence[Batch], frames: list[pa.Table], *, deep: bool
) -> Iterator[Finding]:
    """Yields what is wrong with a collection's inlined batches, and gathers the updates of those that are sound."""
    for batch in batches:
        where = f"batch {batch.id} of {examined.called(row.id)}"
        try:
            frame = examined.shards.read(row, [batch])
        except Error as error:
            check = "payload-missing" if isinstance(error, BatchIncomplete) else "payload-content"
            told = "the catalog has no updates of it" if isinstance(error, BatchIncomplete) else f"{error.detail}"
            yield Finding(check, where, told.rstrip("."), None, batch.id)
            continue
        frames.append(frame)
        if deep:
            advance(batch.stats.rows, "rows")
        if deep and pc.any(pc.equal(frame.column(DIFF), 0)).as_py():
            yield Finding("diff-zero", where, "it holds an update with diff 0", None, batch.id)


def stray_payloads(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields the payloads of batches that the catalog does not know, unless a list is damaged that they may prove."""
    strays = [BatchId(row["batch"]) for row in examined.records["inlined"]]
    known = {row["id"] for row in examined.records["batch"]}
    if (strays := [id for id in strays if id not in known]) and not examined.unlisted:
        what = f"it has updates of batches that it does not know: {listing(strays)}"
        yield Finding("payload-stray", "catalog", what, partial(_set_aside, examined, strays))


def _set_aside(examined: ExaminedProject, batches: Sequence[BatchId]) -> str:
    folder = quarantine_of(examined.project) / "inlined"
    make_folder(folder)
    for id, payload in examined.catalog.payloads(batches).items():
        path = folder / f"{int(id)}.arrow"
        path.write_bytes(payload)
        sync(path)
    sync(folder)
    count = examined.catalog.remove_stray_payloads(batches)
    return f"moved the updates of {count} unknown batches to the quarantine: {folder}"
