"""Hashes of data files: a file is read only if it is the one that was written.

The catalog has the hash of each file of a batch from the moment at which the batch was written. Whoever reads a file in
this process, or has Spark read it, compares once, and again when the file is another or was written to. Pages that
Spark wrote have checksums of their own, which every read verifies beside that; delta-rs writes none.

Invariant: bytes that are read as updates were compared with the catalog's hash by this process, after the last time
that anybody touched the file. A batch of a version that kept no hashes is compared by its size alone.

Cost: one read of each file, at the speed of memory if it was just written (8 to 15 GB a second); after that, a `stat`.
Memory: about 300 bytes a file, of `MOST_FILES` at most.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

import xxhash

from mz_dagster.storage.shards import FileDamaged, StoredFile

#: Of how many files the hash is remembered; those hashed first are forgotten first.
MOST_FILES = 65_536
_BLOCK = 1 << 18


def hash_file(path: Path) -> str:
    """Returns the hash of a file's bytes, as `BatchFile.hash`.

    Raises:
        OSError: It cannot be read.
    """
    digest = xxhash.xxh3_128()
    block = bytearray(_BLOCK)
    view = memoryview(block)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(block):
            digest.update(view[:count])
    return digest.hexdigest()


class _Identity(NamedTuple):
    """What changes with a file's bytes, as long as the disk is sound."""

    device: int
    inode: int
    size: int
    changed_ns: int


class FileHashes:
    """Remembers the hashes of files. Safe for use from several threads."""

    def __init__(self, most: int = MOST_FILES) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._known: dict[Path, tuple[_Identity, str]] = {}

    def of(self, path: Path) -> str:
        """Returns a file's hash.

        Raises:
            OSError: It cannot be read.
        """
        return self._of(path, os.stat(path))

    def check(self, path: Path, file: StoredFile, collection: str) -> None:
        """Returns if a file is the one that was written.

        Args:
            path: Where it is.
            file: What is known of it.
            collection: The id of the collection whose it is.

        Raises:
            FileDamaged: It is not.
            OSError: It is gone, or cannot be read.
        """
        found = os.stat(path)
        if found.st_size != file.bytes:
            raise FileDamaged(path, f"It has {found.st_size} bytes, and had {file.bytes}", collection)
        if file.hash is not None and self._of(path, found) != file.hash:
            raise FileDamaged(path, "Its content is not what was written", collection)

    def _of(self, path: Path, found: os.stat_result) -> str:
        identity = _Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        with self._lock:
            known = self._known.get(path)
        if known is not None and known[0] == identity:
            return known[1]
        hash = hash_file(path)
        with self._lock:
            self._known.pop(path, None)
            self._known[path] = identity, hash
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return hash
