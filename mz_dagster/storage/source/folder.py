"""Lists and hashes the files of a landing folder, without Spark.

Owns what "a file is ready" means: its name says so. A writer drops a file under a name that is ignored (a leading
`.` or `_`, or a trailing `.tmp`, `.part` or `.crdownload`, in any part of the path) and renames it into place. A file
that changes while it is hashed was not renamed into place, and counts as not ready until it keeps still.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mz_dagster.catalog import BoundFile
from mz_dagster.disk import sync_files
from mz_dagster.errors import OperationalError
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.file_place import FilePlace, Listing, Look

_UNFINISHED_PREFIXES = (".", "_")
_UNFINISHED_SUFFIXES = (".tmp", ".part", ".crdownload")


@dataclass(frozen=True)
class InFolder(FilePlace):
    """A folder of this machine.

    Attributes:
        path: The folder, absolute. It must be the same folder for this process and for Spark.
    """

    path: Path

    def __post_init__(self) -> None:
        if not self.path.is_absolute():
            raise ValueError(f"{self.path} is not absolute")
        object.__setattr__(self, "path", Path(os.path.abspath(self.path)))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self.path

    def listing(self, pattern: str, after: str = "") -> Listing:
        """Returns the files that are ready, without a look at any; see `FilePlace.listing`."""
        return _Listed(self, ready_paths(self.path, pattern))

    def look(self, path: str) -> Look | None:
        """Returns what a file is like now."""
        try:
            status = os.stat(self.path / path)
        except OSError:
            return None
        return Look(status.st_size, identity_text(status))

    def hashed(self, path: str) -> BoundFile | None:
        """Returns a file's size and hash; see `FilePlace.hashed`."""
        return hash_file(self.path, path)

    def read(self, path: str) -> bytes | None:
        """Returns what a file has; see `FilePlace.read`."""
        try:
            return (self.path / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self.path / path, error) from error

    def opened(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Opens a file."""
        return open(self.path / path, "rb")

    def fetched(self, path: str) -> AbstractContextManager[tuple[Path, BoundFile] | None]:
        """Has a file where it is; see `FilePlace.fetched`."""
        file = self.hashed(path)
        return nullcontext(None if file is None else (self.path, file))

    def lasting(self, files: tuple[BoundFile, ...]) -> tuple[BoundFile, ...]:
        """Returns those of new files that are still there, once they are on disk."""
        while files:
            try:
                sync_files(self.path, (file.path for file in files))
                break
            except OSError as error:
                there = tuple(file for file in files if (self.path / file.path).exists())
                if isinstance(error, FileNotFoundError) and len(there) < len(files):
                    files = there  # somebody has taken one away since it was read
                    continue
                raise OperationalError(
                    f'cannot force new files in "{self.path}" to disk: {error}',
                    hint="Nothing was bound. Check that the files are still there and that their disk works.",
                ) from error
        return files


class _Listed(Listing):
    """The files of a folder, which are looked at one by one."""

    def __init__(self, place: InFolder, paths: list[str]) -> None:
        self.paths = paths
        self._place = place

    def look(self, path: str) -> Look | None:
        return self._place.look(path)


def ready_paths(folder: Path, pattern: str) -> list[str]:
    """Returns the ready files' paths relative to `folder`, with `/` between parts, sorted by code point.

    Args:
        folder: An absolute path.
        pattern: A glob: `*`, `?` and `[...]` stay within one part of a path, `**/` stands for any folders. Without a
            `/` in it only the folder itself is searched.

    Raises:
        SourceUnreadable: The folder is missing, is no folder, or cannot be listed; or a name cannot be read by Spark,
            or is a link to a file outside of the folder.
    """
    wanted = re.compile(pattern_to_regex(pattern), re.DOTALL)
    found = []
    for path, is_link in _walk(folder, "", recursive="/" in pattern):
        if wanted.fullmatch(path):
            refuse_unreadable_name(path)
            if is_link:
                _refuse_outside(folder, path)
            found.append(path)
    return sorted(found)


def is_unfinished(name: str) -> bool:
    """Returns whether a part of a path says that what it names is not ready."""
    return name.startswith(_UNFINISHED_PREFIXES) or name.endswith(_UNFINISHED_SUFFIXES)


def pattern_to_regex(pattern: str) -> str:
    """Returns the regular expression of a glob.

    Example:
        >>> pattern_to_regex("**/*_csv")
        '(?:.*/)?[^/]*_csv'
    """
    parts, position = [], 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            parts.append("(?:.*/)?")
            position += 3
            continue
        sign = pattern[position]
        closing = pattern.find("]", position + 2) if sign == "[" else -1
        position += 1
        if sign == "*":
            parts.append("[^/]*")
        elif sign == "?":
            parts.append("[^/]")
        elif closing > 0:
            inside = pattern[position:closing].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"(?!/)[{'^' + inside[1:] if inside.startswith('!') else inside}]")
            position = closing + 1
        else:
            parts.append(re.escape(sign))
    return "".join(parts)


def hash_file(folder: Path, path: str) -> BoundFile | None:
    """Returns the file's size and hash, or None if it is gone or changed meanwhile and so is not ready.

    Raises:
        SourceUnreadable: It is there but cannot be read.
    """
    try:
        with open(folder / path, "rb") as file:
            before = os.fstat(file.fileno())
            digest = hashlib.file_digest(file, "sha256")
            after = os.fstat(file.fileno())
        named = os.stat(folder / path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(folder / path, error) from error
    if not identity(before) == identity(after) == identity(named):
        return None
    return BoundFile(path, after.st_size, digest.hexdigest(), identity_text(after))


def unreadable(path: Path, error: OSError) -> SourceUnreadable:
    """Returns what is said of a file that is there but cannot be read."""
    return SourceUnreadable(
        f'cannot read file "{path}": {error.strerror}',
        hint="Make the file readable for this user, or move it away; no file of the source was bound.",
    )


def identity(status: os.stat_result) -> tuple[int, int, int, int]:
    """Returns what changes whenever a file is written or replaced."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def identity_text(status: os.stat_result) -> str:
    """Returns it as the catalog keeps it."""
    return ":".join(map(str, identity(status)))


def _walk(folder: Path, prefix: str, *, recursive: bool) -> Iterator[tuple[str, bool]]:
    """Yields the files that may be read, with whether they are links; folders that are links are not followed."""
    try:
        with os.scandir(folder / prefix) as entries:
            listed = list(entries)
    except FileNotFoundError as error:
        if prefix:
            return
        raise SourceUnreadable(
            f'folder "{folder}" does not exist', hint="Create the folder, or correct FOLDER in CREATE SOURCE."
        ) from error
    except NotADirectoryError as error:
        raise SourceUnreadable(
            f'"{folder / prefix}" is not a folder', hint="Name in FOLDER the folder that holds the files."
        ) from error
    except OSError as error:
        raise SourceUnreadable(
            f'cannot list folder "{folder / prefix}": {error.strerror}',
            hint="Make the folder readable for this user.",
        ) from error
    for entry in listed:
        if is_unfinished(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            if recursive:
                yield from _walk(folder, f"{prefix}{entry.name}/", recursive=True)
        elif _is_regular(entry):
            yield prefix + entry.name, entry.is_symlink()


def _is_regular(entry: os.DirEntry[str]) -> bool:
    """Returns whether opening the entry gives bytes: neither a pipe, on which opening would wait, nor a dead link."""
    if entry.is_file(follow_symlinks=False):
        return True  # which the folder itself says, without a look at the file
    try:
        return stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        return False


def _refuse_outside(folder: Path, path: str) -> None:
    """Raises if a link leads out of its folder: whoever may drop files may not choose which others are read."""
    found = (folder / path).resolve()
    if not found.is_relative_to(folder.resolve()):
        raise SourceUnreadable(
            f'"{path}" is a link out of its folder "{folder}"',
            detail=f'It leads to "{found}".',
            hint="Put the file itself there, or name its own folder in FOLDER; no file of the source was bound.",
        )


def refuse_unreadable_name(path: str) -> None:
    """Raises if Spark's file system could not open a file of this name, or the catalog not record it."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SourceUnreadable(
            f"file name {os.fsencode(path)!r} is not UTF-8", hint="Rename the file; it was not bound."
        ) from error
    if ":" in path:
        raise SourceUnreadable(
            f'file name "{path}" contains a colon, which Spark cannot open',
            hint="Rename the file; it was not bound.",
        )
