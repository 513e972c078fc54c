"""Dropping files into the place of a source that reads files, after what its writer knows of, and no other.

A file is whole once it is there, and its name sorts behind those that were dropped so before: its records are newer,
whichever files a tick binds together.

In a folder one writer at a time has it. It writes a file under a name that sources ignore, makes it durable, and
renames it; what a writer that was killed left unfinished is removed by the next one.

In a bucket nobody waits. The name is made of the last tick at which the source gained something, and whoever comes
first has it: two that know of the same files choose the same name, and the second is told to look again.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.disk import make_folder, sync
from mz_dagster.errors import OperationalError
from mz_dagster.fail_point import fail_point
from mz_dagster.storage.source.file_place import FilePlace

if TYPE_CHECKING:
    from mz_dagster.storage.source.bucket import InBucket

_LOCK = ".mz-landing.lock"
_DRAFT = ".mz-landing.draft"
_DIGITS = 20
#: For how long somebody else may have a folder, and how often it is asked for, in milliseconds.
_MOST_MS = 600_000
_LOOK_MS = 50


@dataclass(frozen=True, slots=True)
class Landing:
    """A folder that this process alone drops files into for now; `opened` gives it.

    Attributes:
        folder: The folder.
    """

    folder: Path

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Landing]:
        """Has a folder during the block, made if it is not there; waits until nobody else has it.

        Raises:
            OperationalError: Somebody else has it for very long.
        """
        if not folder.exists():
            make_folder(folder)
        with (folder / _LOCK).open("ab") as lock:
            _wait_for(lock, folder)
            (folder / _DRAFT).unlink(missing_ok=True)
            yield cls(folder)

    def put(self, content: bytes, said: str, suffix: str, known: int = 0) -> str:
        """Drops a file, and returns its name.

        Args:
            content: What it has.
            said: What its name says beside its place in the order: letters, digits, `-` and `_`.
            suffix: The end of its name.
            known: The last tick at which the source gained something of which the writer knows; only in buckets.
        """
        there = [one.name[:_DIGITS] for one in self.folder.iterdir() if one.name[:_DIGITS].isdecimal()]
        number = max(SYSTEM_CLOCK.now_ms(), *(int(one) + 1 for one in there), 0)
        name = f"{number:0{_DIGITS}}-{said}{suffix}"
        draft = self.folder / _DRAFT
        draft.write_bytes(content)
        sync(draft)
        fail_point("landing.written")
        draft.rename(self.folder / name)
        sync(self.folder)
        fail_point("landing.dropped")
        return name


@dataclass(frozen=True, slots=True)
class BucketLanding:
    """A prefix of a bucket that files are dropped into, as `Landing`.

    Attributes:
        place: The prefix.
    """

    place: InBucket

    def put(self, content: bytes, said: str, suffix: str, known: int) -> str | None:
        """Drops an object, and returns its name; None if there is something that the writer does not know of.

        Raises:
            OperationalError: The store cannot be written to, or nobody knows whether it was.
        """
        name = f"{known:0{_DIGITS}}-fed{suffix}"
        fail_point("landing.written")
        if not self.place.create(name, content):
            return None
        fail_point("landing.dropped")
        return name


@contextmanager
def landing_in(place: FilePlace) -> Iterator[Landing | BucketLanding]:
    """Has a place that takes files during the block; raises as `Landing.opened`."""
    if place.folder is not None:
        with Landing.opened(place.folder) as landing:
            yield landing
    else:
        from mz_dagster.storage.source.bucket import InBucket  # no other source needs its library

        assert isinstance(place, InBucket), "it takes files"
        yield BucketLanding(place)


def _wait_for(lock: IO[bytes], folder: Path) -> None:
    """Returns once this process has the lock: until the file is closed, or the process is killed."""
    until = SYSTEM_CLOCK.monotonic_ms() + _MOST_MS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if SYSTEM_CLOCK.monotonic_ms() > until:
                raise OperationalError(
                    f'folder "{folder}" has been fed by somebody else for {_MOST_MS // 60_000} minutes',
                    hint="See which materialization of it still runs, end it, and materialize again.",
                ) from error
        SYSTEM_CLOCK.sleep(_LOOK_MS / 1000)
