"""Where the files of a source are: the seam between what is read and how it is reached.

Paths are relative to the place, with `/` between their parts. What cannot be reached is a `SourceUnreadable`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple

from mz_dagster.catalog import BoundFile


class Look(NamedTuple):
    """What can be told of a file without reading it.

    Attributes:
        size: In bytes.
        identity: What changes whenever it is written or replaced, as `BoundFile.identity`.
    """

    size: int
    identity: str


class Listing(ABC):
    """The files of a place that are ready, as they were when it was listed.

    Attributes:
        paths: Sorted by code point.
    """

    paths: Sequence[str]

    @abstractmethod
    def look(self, path: str) -> Look | None:
        """Returns what a file is like; None if it is not there."""


class FilePlace(ABC):
    """A folder, or what is like one; `str` is what it is called.

    Attributes:
        takes_files: Whether this process may put files there.
    """

    takes_files: ClassVar[bool] = True

    @property
    @abstractmethod
    def folder(self) -> Path | None:
        """The folder that this process and Spark both find the files in; None if they have to be fetched."""

    @abstractmethod
    def listing(self, pattern: str, after: str = "") -> Listing:
        """Returns the files that are ready and match a glob, see `folder.pattern_to_regex`.

        Args:
            pattern: The glob.
            after: Of paths that do not sort behind this, as bytes do, any may be left out; each may be looked at still.

        Raises:
            SourceUnreadable: It cannot be listed, or has a name that cannot be read.
        """

    @abstractmethod
    def look(self, path: str) -> Look | None:
        """Returns what a file is like now; None if it is not there."""

    @abstractmethod
    def hashed(self, path: str) -> BoundFile | None:
        """Returns a file's size and hash; None if it is gone, or is being written to.

        Raises:
            SourceUnreadable: It is there and cannot be read.
        """

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """Returns what a file has; None if it is gone.

        Raises:
            SourceUnreadable: It is there and cannot be read.
        """

    @abstractmethod
    def opened(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Opens a file, of which parts will be read.

        Raises:
            OSError: It is gone, or cannot be read.
        """

    @abstractmethod
    def fetched(self, path: str) -> AbstractContextManager[tuple[Path, BoundFile] | None]:
        """Has a file in a folder of this machine during the block, under its own path there.

        Returns:
            The folder, and the file as it is there; None if it is gone, or is being written to.

        Raises:
            SourceUnreadable: It is there and cannot be read.
        """

    @abstractmethod
    def lasting(self, files: tuple[BoundFile, ...]) -> tuple[BoundFile, ...]:
        """Returns those of new files that are still there, once no power cut takes them away.

        Raises:
            OperationalError: That cannot be had.
        """


class Looks(Listing):
    """A listing that came with all that can be told of the files."""

    def __init__(self, looks: Mapping[str, Look]) -> None:
        self.paths = sorted(looks)
        self._looks = looks

    def look(self, path: str) -> Look | None:
        """Returns what a file was like when it was listed."""
        return self._looks.get(path)
