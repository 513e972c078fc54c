"""Data files that are damaged or gone, put back from a backup.

A file of a batch is never changed, and the catalog has its hash: so the one that was written is known again wherever it
lies, and a backup of any age has it, if the batch was there by then and was not merged since. What is put back is
exactly what was written; what is in its place goes to the quarantine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mz_dagster.adapter.project import Project
from mz_dagster.catalog import Batch, BatchFile, Catalog, payloads_in
from mz_dagster.disk import make_folder, sync_files
from mz_dagster.errors import DamageError
from mz_dagster.formalism import GlobalId
from mz_dagster.operations.manifest import CATALOG, read_manifest
from mz_dagster.operations.quarantine import quarantine_of
from mz_dagster.storage.file_hashes import hash_file
from mz_dagster.storage.inlined import PayloadDamaged, checked
from mz_dagster.storage.shards import BatchIncomplete


def recover_files(project: Project, catalog: Catalog, backup: Path) -> Iterator[str]:
    """Puts damaged and missing data files of live batches back from a backup; yields a line for each.

    Args:
        project: The project.
        catalog: Its catalog.
        backup: The backup's folder.

    Raises:
        BackupUnusable: It is no backup, or did not finish.
        OSError: A file cannot be read or written; those before it are back.
    """
    read_manifest(backup)
    place = project.shard_place()
    for row in catalog.collections():
        try:
            batches = catalog.live_batches([row.id])[row.id]
        except DamageError as error:
            yield f"left the files of {row.id} alone: {error.message}"
            continue
        inlined = [batch for batch in batches if batch.stats.inlined is not None]
        yield from _recover_payloads(project, catalog, backup, row.id, inlined)
        stored = (batch for batch in batches if batch.stats.inlined is None)
        for files in (batch.stats.file_list or () for batch in stored):
            with place.as_it_lies(row.shard, [one.path for one in files]) as root:
                damaged = [one for one in files if not _is_written(root / row.shard / one.path, one)]
            for file in damaged:
                copy = backup / "state" / row.shard / file.path
                if not _is_written(copy, file):
                    yield f"the backup does not have file {file.path} of {row.id}"
                    continue
                kept = place.put_back(row.shard, file.path, copy, quarantine_of(project))
                was = "" if kept is None else f"; what was in its place is {kept}"
                yield f"put back file {file.path} of {row.id}{was}"


def _recover_payloads(
    project: Project, catalog: Catalog, backup: Path, collection: GlobalId, batches: Sequence[Batch]
) -> Iterator[str]:
    """Puts damaged and missing payloads of inlined batches back from a backup's catalog; yields a line for each."""
    present = catalog.payloads([batch.id for batch in batches])
    damaged = [batch for batch in batches if not _is_payload(batch, present.get(batch.id))]
    if not damaged:
        return
    copies = payloads_in(backup / CATALOG, [batch.id for batch in damaged])
    for batch in damaged:
        copy = copies.get(batch.id)
        if copy is None or not _is_payload(batch, copy):
            yield f"the backup does not have the updates of batch {batch.id} of {collection}"
            continue
        kept = ""
        if (wrong := present.get(batch.id)) is not None:
            make_folder(folder := quarantine_of(project) / "inlined")
            (path := folder / f"{int(batch.id)}.arrow").write_bytes(wrong)
            sync_files(folder, [path.name])
            kept = f"; what was in their place is {path}"
        catalog.put_back_payload(batch.id, copy)
        yield f"put back the updates of batch {batch.id} of {collection}{kept}"


def _is_payload(batch: Batch, payload: bytes | None) -> bool:
    """Returns whether a payload is the one that was written."""
    try:
        checked(batch, payload)
    except (BatchIncomplete, PayloadDamaged):
        return False
    return True


def _is_written(path: Path, file: BatchFile) -> bool:
    """Returns whether a path has the file that was written."""
    try:
        return path.stat().st_size == file.bytes and hash_file(path) == file.hash
    except FileNotFoundError:
        return False
