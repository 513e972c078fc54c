"""Files and folders that are on disk once that is said, and that are their owner's alone.

A power cut cannot take back what was said to be done. A file is on disk once its bytes are, and each folder on the way
to it that names the next. What another process of this machine has written counts, too: `fsync` forces a file's bytes,
whoever wrote them.

What is private has mode 0600, a folder 0700, whatever the process's umask is, and from the moment at which it is made.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_UNKNOWN_THERE = (errno.EINVAL, errno.ENOTSUP)
"""What file systems say that know no `fsync` of a file or folder: what they were told is as durable as they make it."""


#: A file may change twice within what its time tells apart, in milliseconds.
_SETTLED_MS = 2000


@dataclass(frozen=True, slots=True)
class FileState:
    """By what a file is known to be the one that was read, without reading it again.

    Attributes:
        file: Its number in the file system.
        bytes: Its size.
        changed_ns: When it, or what the file system says of it, changed last, in nanoseconds since the epoch.
    """

    file: int
    bytes: int
    changed_ns: int

    def is_settled(self, now_ms: int) -> bool:
        """Returns whether that is so long ago that what changes from now on has another time."""
        return self.changed_ns // 1_000_000 + _SETTLED_MS < now_ms


def file_state(path: Path) -> FileState | None:
    """Returns what a file is known by, None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return FileState(found.st_ino, found.st_size, found.st_ctime_ns)


def path_of(text: str) -> Path:
    """Returns the path that a text names; a leading `~/` is this user's home, and any other `~` part of a name.

    Example:
        >>> path_of("~/a").is_absolute(), path_of("~a"), path_of("~")
        (True, PosixPath('~a'), PosixPath('~'))
    """
    return Path(text).expanduser() if text.startswith("~/") else Path(text)


def sync(path: Path, *, private: bool = False) -> None:
    """Returns once the bytes of a file, or the names in a folder, are on disk; if so asked, it is private by then."""
    number = os.open(path, os.O_RDONLY)
    try:
        if private:
            make_private(number)
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


def sync_tree(folder: Path, *, private: bool = False) -> None:
    """Does as `sync` with everything below a folder; the folder's own name is its parent's to keep."""
    for name, _, files in os.walk(folder, topdown=False, onerror=_raise):
        for file in files:
            sync(Path(name, file), private=private)
        sync(Path(name), private=private)


def make_folder(path: Path) -> None:
    """Makes a folder with those above it that are missing, and returns once their names are on disk."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync(one.parent)


def make_private_folder(path: Path) -> None:
    """Makes a folder as `make_folder` does, or takes one that is there, and closes it to other users."""
    if not path.exists():
        make_folder(path.parent)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        sync(path.parent)
    make_private(path)


def make_private_file(path: Path) -> None:
    """Makes an empty file, or takes one that is there, and closes it to other users."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    make_private(path)


def make_private(path: Path | int) -> None:
    """Closes a file or folder to other users; leaves it as it is if it is another's, or on what cannot be written.

    Args:
        path: Its path, or its descriptor.
    """
    mode = os.stat(path).st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        try:
            os.chmod(path, stat.S_IMODE(mode) & stat.S_IRWXU)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EROFS):
                raise


def make_tree_private(folder: Path) -> None:
    """Closes a folder and everything below it to other users."""
    for name, _, files in os.walk(folder, onerror=_raise):
        make_private(Path(name))
        for file in files:
            make_private(Path(name, file))


def files_below(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields the files in a folder and in those below it, but for such as go meanwhile."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            with suppress(OSError):
                yield path, path.stat()


def remove_least_used(files: Iterable[tuple[float, int, Path]], most: int, until: float) -> int:
    """Removes files, the least lately used first, until all take at most so many bytes; returns how many they take.

    Args:
        files: When each was used, how many bytes it takes, and where it is.
        most: The bytes.
        until: What was used later stays.
    """
    found = sorted(files)
    total = sum(size for _, size, _ in found)
    for used, size, path in found:
        if total <= most or used > until:
            break
        with suppress(OSError):
            path.unlink()
            total -= size
    return total


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yields a new folder, which the block may rename and which else goes with it; removes those of killed processes.

    A folder is locked for as long as the process lives that has made it.
    """
    make_folder(parent)
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        with suppress(FileNotFoundError, BlockingIOError):
            number = _locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
            os.close(number)
    made, number = _locked_folder(prefix, parent)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(number)


def _locked_folder(prefix: str, parent: Path) -> tuple[Path, int]:
    """Makes a folder and locks it; before it is locked, another process may take it for a dead one's."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            number = _locked(made, fcntl.LOCK_EX)
            if made.exists():
                return made, number
            os.close(number)


def _locked(folder: Path, how: int) -> int:
    """Returns a descriptor of a folder under a lock, which ends when it is closed."""
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, how)
    except BaseException:
        os.close(number)
        raise
    return number


def _raise(error: OSError) -> None:
    raise error
