"""Checks of what is on disk: the tables' logs, the files that they name, and files that nothing names.

The catalog is looked at first and the disk second. What is missing there is a break only if its batch is live still
when it is looked for again: a batch is declared dead before the first of its files goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.catalog import Batch, BatchState, BatchStats, CollectionRow
from mz_dagster.compute import Progress
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding, Repair, Severity, listing
from mz_dagster.operations.doctor.payloads import check_payloads, stray_payloads
from mz_dagster.progress import advance, task
from mz_dagster.storage.arrow_schema import update_schema, without_errors
from mz_dagster.storage.batch_stats import stored_files
from mz_dagster.storage.file_hashes import hash_file
from mz_dagster.storage.numerics import stored_names, whole
from mz_dagster.storage.open_tables import open_table
from mz_dagster.storage.parquet_file import open_parquet
from mz_dagster.storage.plain_cells import python_cells
from mz_dagster.storage.shard_bucket import ShardBucket
from mz_dagster.storage.shard_copy import read_footer
from mz_dagster.storage.shards import DIFF, ERROR, TIME, FileDamaged, StoredFile
from mz_dagster.storage.table_log import damaged_entries, rebuild_log

#: Kinds of objects whose contents are a multiset of rows; an arrangement may hold differences.
_MULTISETS = ("source", "table", "materialized view", "check", "collection")


def check_shards(examined: ExaminedProject, *, deep: bool, progress: Progress) -> Iterator[Finding]:
    """Yields what is wrong on disk; `deep` hashes every file, and reads every row of every live batch."""
    # What a damaged list consists of is not known.
    lists = [(row, examined.live(row.id)) for row in examined.readable() if row.id not in examined.unlisted]
    with task("looking at shards", sum(batch.stats.rows for _, live in lists for batch in live), "rows"):
        for row, live in lists:
            if not live:
                continue
            progress(f"looking at {examined.called(row.id)}: {len(live)} batches")
            found = list(_check_shard(examined, row, live, deep))
            if not deep:
                advance(sum(batch.stats.rows for batch in live), "rows")
            if found:
                alive = {batch.id for batch in examined.catalog.batches(row.id, BatchState.LIVE)}
                for one in found:
                    if one.batch is None or one.batch in alive:
                        is_break = one.severity is Severity.BREAK
                        yield replace(one, way_back=examined.way_back(row.id)) if is_break else one
    yield from _strays(examined)
    yield from stray_payloads(examined)


def _check_shard(examined: ExaminedProject, row: CollectionRow, live: Sequence[Batch], deep: bool) -> Iterator[Finding]:
    stored = [batch for batch in live if batch.stats.inlined is None]
    inlined = [batch for batch in live if batch.stats.inlined is not None]
    frames: list[pa.Table] = []
    found = [*check_payloads(examined, row, inlined, frames, deep=deep)]
    if stored:
        found += _check_stored(examined, row, stored, frames, deep)
    yield from found
    is_sound = not any(one.batch is not None and one.severity is Severity.BREAK for one in found)
    if deep and frames and is_sound and not row.since.is_empty and examined.objects[row.id]["kind"] in _MULTISETS:
        yield from _negative(examined, row, pa.concat_tables(frames), live[0])


def _check_stored(
    examined: ExaminedProject, row: CollectionRow, live: Sequence[Batch], frames: list[pa.Table], deep: bool
) -> Iterator[Finding]:
    where, place = examined.called(row.id), examined.shards.place
    rebuild = partial(_rebuild, examined, row.id)
    with place.as_it_lies(row.shard, None) as root:
        damage = damaged_entries(root / row.shard)
    if damage:
        yield Finding("log-damaged", where, "; ".join(damage), rebuild, live[0].id)
    try:
        table = open_table(place.table(row.shard))
        stored = {} if table is None else stored_files(table, [batch.id for batch in live])
    except Error as error:
        if not damage:
            yield Finding("log-damaged", where, error.message, rebuild, live[0].id)
        return
    if table is None:
        return
    for batch in live:
        files = stored.get(batch.id, [])
        paths = [one.path for one in files]
        examined.to_hash -= 0 if deep else batch.stats.bytes
        # What lies in a bucket is read only if it is hashed, too.
        is_read = deep or examined.to_hash >= 0 or not isinstance(place, ShardBucket)
        with place.as_it_lies(row.shard, paths if is_read else []) as root:
            folder = root / row.shard
            found = list(_check_batch(row, batch, files, rebuild))
            sizes = place.sizes(row.shard, paths)
            for one in files:
                found += _check_file(folder if is_read else None, sizes.get(one.path), one)
                if one.times is not None and batch.lower < batch.upper and (out := _outside(row, batch, *one.times)):
                    found.append(Finding("times-outside", "", f"file {one.path} {out}"))
            if not found and (deep or examined.to_hash >= 0):
                altered = ((one, _altered(folder / one.path, batch, one)) for one in files)
                found = [Finding("file-content", "", f"file {one.path} {what}") for one, what in altered if what]
            yield from (Finding(f.check, f"batch {batch.id} of {where}", f.what, f.repair, batch.id) for f in found)
            if deep and not found:
                yield from _check_rows(examined, row, batch, files, folder, frames)
    if unhashed := [batch.id for batch in live if batch.stats.file_list is None]:
        yield Finding("batch-unhashed", where, f"batch {listing(unhashed)}", None, unhashed[0])


def _check_batch(row: CollectionRow, batch: Batch, files: Sequence[StoredFile], rebuild: Repair) -> Iterator[Finding]:
    """Yields what differs between the catalog and the log."""
    stats = BatchStats(
        sum(one.rows for one in files),
        sum(one.errors for one in files),
        len(files),
        sum(one.bytes for one in files),
    )
    listed = batch.stats.file_list and [(one.path, one.bytes, one.rows) for one in batch.stats.file_list]
    if stats.rows != batch.stats.rows:
        what = f"the log holds {stats.rows} rows of it, and the catalog says {batch.stats.rows}"
        yield Finding("batch-rows", "", what, rebuild)
    elif listed is not None and set(listed) != {(one.path, one.bytes, one.rows) for one in files}:
        yield Finding("batch-files", "", "the log names other files of it than the catalog lists", rebuild)
    elif stats != batch.stats:
        what = f"the catalog says {_in_words(batch.stats)}, and the log {_in_words(stats)}"
        yield Finding("batch-stats", "", what, rebuild)


def _check_file(folder: Path | None, size: int | None, file: StoredFile) -> Iterator[Finding]:
    """Yields what differs between the log and a file, of which nothing is read without a folder."""
    if size is None:
        yield Finding("file-missing", "", f"file {file.path} is gone")
        return
    if size != file.bytes:
        yield Finding("file-size", "", f"file {file.path} has {size} bytes, and had {file.bytes}")
        return
    if folder is None:
        return
    try:
        footer = read_footer(folder / file.path)
    except FileDamaged as error:
        yield Finding("file-damaged", "", f"file {file.path} cannot be read: {error.detail}")
        return
    if (footer.rows, footer.errors, footer.times) != (file.rows, file.errors, file.times):
        yield Finding("file-damaged", "", f"file {file.path} is not the one that the log describes")


def _outside(row: CollectionRow, batch: Batch, least: int, greatest: int) -> str | None:
    """Returns how times contradict a batch's interval, or None: a merge moves those before since to since."""
    if not batch.lower.less_equal(least):
        return f"holds an update at {least}, before the batch's lower {batch.lower}"
    if batch.upper.less_equal(greatest) and not (not row.since.is_empty and greatest <= row.since.only):
        return f"holds an update at {greatest}, not before the batch's upper {batch.upper}"
    return None


def _check_rows(
    examined: ExaminedProject,
    row: CollectionRow,
    batch: Batch,
    files: Sequence[StoredFile],
    folder: Path,
    frames: list[pa.Table],
) -> Iterator[Finding]:
    """Yields what reading all rows of a batch whose metadata are sound tells; gathers them."""
    schema = update_schema(row.columns)
    where = f"batch {batch.id} of {examined.called(row.id)}"
    for one in files:
        path = folder / one.path
        try:
            with open_parquet(path) as file:
                stored = file.read(columns=stored_names(schema.names, row.columns))
            frame = whole(stored, row.columns).select(schema.names).cast(schema)
        except (OSError, pa.ArrowException, KeyError) as error:
            yield Finding("file-content", where, f"file {one.path} cannot be read: {error}", None, batch.id)
            continue
        frames.append(frame)
        advance(one.rows, "rows")
        if what := _miscounted(frame, one):
            yield Finding("file-content", where, f"file {one.path} {what}", None, batch.id)
        if pc.any(pc.equal(frame.column(DIFF), 0)).as_py():
            yield Finding("diff-zero", where, f"file {one.path} holds an update with diff 0", None, batch.id)


def _altered(path: Path, batch: Batch, file: StoredFile) -> str | None:
    """Returns how a file's bytes differ from what was written, as far as the catalog knows."""
    written = {one.path: one.hash for one in batch.stats.file_list or ()}
    try:
        is_sound = file.path not in written or hash_file(path) == written[file.path]
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if is_sound else "has another content than was written"


def _miscounted(frame: pa.Table, file: StoredFile) -> str | None:
    """Returns how a file's rows contradict what the log says of them."""
    errors = len(frame) - frame.column(ERROR).null_count
    times = pc.min_max(frame.column(TIME)).as_py()
    found = (len(frame), errors, (times["min"], times["max"]))
    expected = (file.rows, file.errors, file.times)
    return None if found == expected else f"holds {found}, and the log says {expected} (rows, errors, times)"


def _negative(examined: ExaminedProject, row: CollectionRow, frame: pa.Table, batch: Batch) -> Iterator[Finding]:
    """Yields the first time at which a row is there fewer than no times, if there is one."""
    if not pc.any(pc.less(frame.column(DIFF), 0)).as_py():
        return
    data = without_errors(frame)
    names = [column.name for column in row.columns]
    keys = zip(*(python_cells(data.column(name)) for name in names), strict=True) if names else [()] * len(data)
    since = row.since.only
    updates = sorted(
        (max(time, since), repr(key), diff)
        for key, time, diff in zip(keys, data.column(TIME).to_pylist(), data.column(DIFF).to_pylist(), strict=True)
    )
    held: Counter[str] = Counter()
    for position, (time, key, diff) in enumerate(updates):
        held[key] += diff
        ends = position + 1 == len(updates) or updates[position + 1][:2] != (time, key)
        if ends and held[key] < 0:
            what = f"at {time} it has the row {key} {held[key]} times"
            yield Finding("negative-rows", examined.called(row.id), what, None, batch.id)
            return


def _strays(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields what lies in the shards' folder under ids that the catalog does not know."""
    for row in examined.collections.values():
        if row.id in examined.unlisted or not examined.shards.place.has_shard(row.shard):
            continue
        try:
            stored = examined.shards.stored_batches(row)
            strays = stored - frozenset(examined.catalog.known_batches(row.id))
            strays &= examined.shards.stored_batches(row) if strays else frozenset()
        except Error:
            continue  # the log is damaged, which has been said
        if strays:
            what = f"there are files that the catalog knows no batch for: {listing(strays)}"
            yield Finding("stray-files", examined.called(row.id), what, examined.sweep)
    unknown = examined.shards.folders() - {row["shard"] for row in examined.records["collection"]}
    unknown -= {row.shard for row in examined.catalog.collections(dropped=True)} if unknown else set()
    buried = examined.catalog.buried_shards(unknown) if unknown else frozenset()
    for name in sorted(unknown & examined.shards.folders() if unknown else ()):
        where = examined.shards.place.called(name)
        if name in buried:
            yield Finding("stray-files", where, "it is of what was dropped", examined.sweep)
        else:
            yield Finding("stray-folder", where, "it is there")


def _rebuild(examined: ExaminedProject, id: GlobalId) -> str:
    called = examined.called(id)
    if examined.catalog.has_live_writer():
        return f"left the log of {called} alone, because somebody is writing; stop all writers and try again"
    row = examined.catalog.collection(id)
    kept = rebuild_log(examined.shards, row, examined.catalog.batches(id, BatchState.LIVE))
    if kept is None:
        return f"left the log of {called} alone: its files are not those that the catalog says"
    return f"made the log of {called} anew; the old one is {kept}"


def _in_words(stats: BatchStats) -> str:
    return f"{stats.errors} errors, {stats.files} files, {stats.bytes} bytes"
