"""Forces files and folders to disk, so that a power cut cannot take back what was said to be done.

A file is on disk once its bytes are, and each folder on the way to it that names the next. What another process of this
machine has written counts, too: `fsync` forces a file's bytes, whoever wrote them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

_UNKNOWN_THERE = (errno.EINVAL, errno.ENOTSUP)
"""What file systems say that know no `fsync` of a file or folder: what they were told is as durable as they make it."""


def sync(path: Path) -> None:
    """Returns once the bytes of a file, or the names in a folder, are on disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _UNKNOWN_THERE:
            raise
    finally:
        os.close(number)


def sync_files(root: Path, paths: Iterable[str]) -> None:
    """Returns once files below a folder are on disk, with the folders that name them."""
    folders = {root}
    for path in paths:
        sync(root / path)
        folders.update(parent for parent in (root / path).parents if parent.is_relative_to(root))
    for folder in folders:
        sync(folder)


def sync_tree(folder: Path) -> None:
    """Returns once everything below a folder is on disk; the folder's own name is its parent's to keep."""
    for name, _, files in os.walk(folder, topdown=False, onerror=_raise):
        for file in files:
            sync(Path(name, file))
        sync(Path(name))


def make_folder(path: Path) -> None:
    """Makes a folder with those above it that are missing, and returns once their names are on disk."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync(one.parent)


def _raise(error: OSError) -> None:
    raise error
