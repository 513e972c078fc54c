"""What a power cut would leave of a folder: only what was forced to disk by then.

A `PowerCut` notes at each `fsync` what the file held, or which names the folder had. `left` makes a folder as it could
be afterwards, in the two ways that do most harm:

- *early* names: every name that there is by now is on disk, and every removed one is gone, but of a file that was never
  forced there nothing but the name;
- *late* names: a folder has the names that it had when it was last forced to disk, and not those of today.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR
from unittest import mock

_Identity = tuple[int, int]


class PowerCut:
    """Notes what is forced to disk below a folder.

    Args:
        root: The folder; it is on disk itself, and empty.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._contents: dict[_Identity, bytes] = {}
        self._names: dict[_Identity, dict[str, _Identity]] = {}
        self._is_over = False

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Notes for the length of a block; to be fast, nothing is really forced to disk."""
        with mock.patch.object(os, "fsync", self._fsync):
            yield

    @contextmanager
    def over(self) -> Iterator[None]:
        """Notes nothing for the length of a block: the power is cut at its beginning."""
        self._is_over = True
        try:
            yield
        finally:
            self._is_over = False

    def _fsync(self, number: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if self._is_over or not path.is_relative_to(self.root):
            return
        if path.is_dir():
            self._names[_identity(path)] = _names(path)
        else:
            self._contents[_identity(path)] = path.read_bytes()

    def left(self, target: Path, *, early: bool) -> Path:
        """Makes `target` what a power cut may leave of the folder, and returns it."""
        shutil.rmtree(target, ignore_errors=True)
        now = {_identity(path): path for path in (self.root, *self.root.rglob("*"))}
        self._leave(_identity(self.root), now, target, early)
        return target

    def _leave(self, one: _Identity, now: dict[_Identity, Path], target: Path, early: bool) -> None:
        path = now.get(one)
        if one in self._names or (path is not None and path.is_dir()):
            target.mkdir()
            there = _names(path) if early and path is not None else self._names.get(one, {})
            for name, named in there.items():
                self._leave(named, now, target / name, early)
        else:
            target.write_bytes(self._contents.get(one, b""))


def _names(folder: Path) -> dict[str, _Identity]:
    return {path.name: _identity(path) for path in folder.iterdir()}


def _identity(path: Path) -> _Identity:
    """Returns what is the same whatever a file is called; of two files that had one inode, one after the other, not."""
    found = path.stat()
    return found.st_ino, 0 if S_ISDIR(found.st_mode) else found.st_mtime_ns
