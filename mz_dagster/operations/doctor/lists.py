"""Checks of what each collection consists of: its live batches against the sums in its own row, and the way back.

The digest in a collection's row says exactly which rows the list had. So a batch that was taken off its list, or whose
row was changed, can be put back if it can be guessed: what its files and their log say of it, and between which of the
times that the catalog knows it lay. A guess is right if the digest says so, and nothing is changed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations, islice, product
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from mz_dagster.catalog import INLINED, BatchFile, BatchId, BatchState, CollectionRow
from mz_dagster.catalog.codec import file_list_text
from mz_dagster.catalog.contents import Contents, ListDamaged, contents_of, digest_of
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding
from mz_dagster.storage.batch_stats import stored_files
from mz_dagster.storage.file_hashes import hash_file
from mz_dagster.storage.inlined import inlined_stats
from mz_dagster.storage.open_tables import open_table

_MOST_GUESSES = 4_000_000
"""How many rows are compared with a digest at most: a few seconds' worth."""

Row = Mapping[str, Any]


def damaged_lists(examined: ExaminedProject) -> dict[GlobalId, Finding]:
    """Returns a finding for each collection whose list of live batches is not the one that was written."""
    found = {}
    for record in examined.records["collection"]:
        rows = [row for row in examined.records["batch"] if row["collection"] == record["id"]]
        live = [SimpleNamespace(**row) for row in rows if row["state"] == BatchState.LIVE.value]
        said = Contents(record["live_batches"], record["live_rows"], record["live_digest"])
        if (is_there := contents_of(live)) != said:
            id = GlobalId(record["id"])
            what = str(ListDamaged(id, said, is_there).detail).rstrip(".")
            put_back, way_back = partial(_put_back, examined, id, said), examined.way_back(id)
            found[id] = Finding("list-damaged", examined.called(id), what, put_back, way_back=way_back)
    return found


def _put_back(examined: ExaminedProject, id: GlobalId, said: Contents) -> str:
    called = examined.called(id)
    if examined.catalog.has_live_writer():
        return f"left the list of {called} alone, because somebody is writing; stop all writers and try again"
    rows = [row for row in examined.records["batch"] if row["collection"] == id]
    live = [row for row in rows if row["state"] == BatchState.LIVE.value]
    found = contents_of(SimpleNamespace(**row) for row in live)
    row = examined.collections[id]
    if said.batches == found.batches + 1:
        on_disk = _on_disk(examined, row)
        candidates = [one for one in rows if one not in live]
        known = {one["id"] for one in rows}
        candidates += [_unknown(row, number, files) for number, files in on_disk.items() if number not in known]
        guesses = (guess for one in candidates for guess in _candidates(examined, row, one, on_disk))
        guess = _proven(guesses, said.digest ^ found.digest)
    elif said.batches == found.batches:
        on_disk = _on_disk(examined, row)
        guess = None
        for one in live:
            rest = said.digest ^ found.digest ^ digest_of(SimpleNamespace(**one))
            guess = guess or _proven(_candidates(examined, row, one, on_disk), rest)
    else:
        guess = None
    if guess is None or not examined.catalog.relist(guess):
        return f"left the list of {called} alone: what was on it cannot be told from what is there"
    return f"put batch {guess['id']} of {called} back on its list, as it was written"


def _on_disk(examined: ExaminedProject, row: CollectionRow) -> dict[BatchId, tuple[BatchFile, ...]]:
    """Returns the files that the shard's log names, and the payloads in the catalog, by batch."""
    place, inlined = examined.shards.place, _inlined(examined, row)
    try:
        table = open_table(place.table(row.shard))
        stored = {} if table is None else stored_files(table)
        with place.as_it_lies(row.shard, [one.path for files in stored.values() for one in files]) as root:
            return inlined | {
                batch: tuple(
                    BatchFile(
                        one.path, one.rows, one.errors, one.bytes, hash_file(root / row.shard / one.path), one.times
                    )
                    for one in files
                )
                for batch, files in stored.items()
            }
    except (Error, OSError):
        return inlined


def _inlined(examined: ExaminedProject, row: CollectionRow) -> dict[BatchId, tuple[BatchFile, ...]]:
    """Returns what payloads say of a collection's batches, and of those of which nobody knows whose they are."""
    of_others = {one["id"] for one in examined.records["batch"] if one["collection"] != row.id}
    ids = [BatchId(one["batch"]) for one in examined.records["inlined"]]
    found = {}
    for id, payload in examined.catalog.payloads([id for id in ids if id not in of_others]).items():
        with suppress(pa.ArrowException, KeyError):
            stored = pa.ipc.open_stream(payload).read_all()
            found[id] = inlined_stats(stored, payload, None).file_list or ()
    return found


def _unknown(row: CollectionRow, batch: BatchId, files: Sequence[BatchFile]) -> Row:
    """Returns what the row of a batch must have been of which the catalog knows nothing, but for its interval."""
    return {"id": int(batch), "collection": row.id, "lower": "[]", "upper": "[]", "file_list": None, **_stats(files)}


def _stats(files: Sequence[BatchFile]) -> dict[str, int]:
    return {
        "rows": sum(one.rows for one in files),
        "errors": sum(one.errors for one in files),
        "files": sum(1 for one in files if one.path != INLINED),
        "bytes": sum(one.bytes for one in files),
    }


def _candidates(
    examined: ExaminedProject, row: CollectionRow, one: Row, on_disk: Mapping[BatchId, Sequence[BatchFile]]
) -> Iterator[Row]:
    """Yields what a batch's row may have been, the likeliest first."""
    files = on_disk.get(BatchId(one["id"]), ())
    stats = [{name: one[name] for name in ("rows", "errors", "files", "bytes")}, _stats(files)]
    lists = [one["file_list"], file_list_text(files), None]
    changed = [{"file_list": text, **held} for held, text in product(stats, lists)]
    base = dict(one)
    yield from (base | each for each in changed)
    moments = _moments(examined, row, files)
    for lower, upper in combinations(moments, 2):
        yield from (base | {"lower": f"[{lower}]", "upper": f"[{upper}]"} | each for each in changed)


def _moments(examined: ExaminedProject, row: CollectionRow, files: Sequence[BatchFile]) -> list[int]:
    """Returns the times at which a batch may begin or end: where any does, where ticks are, those in its files."""
    found = {0}
    for batches in examined.batches.values():
        for frontier in (each for one in batches for each in (one.lower, one.upper)):
            found |= set() if frontier.is_empty else {frontier.only}
    for each in examined.collections.values():
        found |= {frontier.only for frontier in (each.since, each.upper) if not frontier.is_empty}
    for tick in examined.records["tick"]:
        if tick["timeline"] == row.timeline:
            found |= {tick["tick"], tick["tick"] + 1}
    for file in files:
        if file.times is not None:
            found |= {file.times[0], file.times[1] + 1}
    return sorted(found)


def _proven(guesses: Iterable[Row], digest: int) -> Row | None:
    """Returns the guess that has a digest, if there is one."""
    for guess in islice(guesses, _MOST_GUESSES):
        if digest_of(SimpleNamespace(**guess)) == digest:
            return guess
    return None
