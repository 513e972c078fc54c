"""The files of batches of which a log was asked before: it is not asked again what it says of them.

A batch is written by one commit and never changed, so its files are the same in every snapshot that holds all of its
rows, until it is swept; then they are gone, and reading one fails (`BatchIncomplete`). What is remembered is therefore
never wrong: at worst it is no use any more.

Memory: about a kilobyte a file, of `MOST_FILES` at most.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

from mz_dagster.catalog import Batch, BatchId
from mz_dagster.storage.shards import StoredFile

#: Of how many files it is remembered what a log says; those of the batches least lately read are forgotten first.
MOST_FILES = 16_384

_Key = tuple[str, BatchId, tuple[str, ...]]


class KnownFiles:
    """Remembers the files of batches. Safe for use from several threads."""

    def __init__(self, most: int = MOST_FILES) -> None:
        self._lock = threading.Lock()
        self._most = most
        #: Those least lately asked for come first.
        self._known: dict[_Key, tuple[StoredFile, ...]] = {}
        self._total = 0

    def of(
        self,
        shard: str,
        batches: Sequence[Batch],
        bounds: tuple[str, ...],
        ask: Callable[[Sequence[Batch]], Sequence[tuple[StoredFile, ...]]],
    ) -> dict[BatchId, tuple[StoredFile, ...]]:
        """Returns the files of each of some batches.

        Args:
            shard: The shard that they are in.
            batches: The batches.
            bounds: The columns whose bounds are wanted.
            ask: Returns the files of each of those batches that are not remembered.
        """
        keys = {batch.id: (shard, batch.id, bounds) for batch in batches}
        with self._lock:
            found = {id: self._known.pop(key) for id, key in keys.items() if key in self._known}
            self._known.update({keys[id]: files for id, files in found.items()})
        missing = [batch for batch in batches if batch.id not in found]
        if missing:
            asked = dict(zip((batch.id for batch in missing), ask(missing), strict=True))
            found |= asked
            with self._lock:
                for id, files in asked.items():
                    self._drop(keys[id])
                    self._known[keys[id]] = files
                    self._total += max(1, len(files))
                while self._total > self._most:
                    self._drop(next(iter(self._known)))
        return found

    def forget(self, shard: str, batches: Collection[BatchId]) -> None:
        """Forgets some batches' files."""
        with self._lock:
            for key in [one for one in self._known if one[0] == shard and one[1] in batches]:
                self._drop(key)

    def _drop(self, key: _Key) -> None:
        files = self._known.pop(key, None)
        if files is not None:
            self._total -= max(1, len(files))
