"""Files that a web server has, which are those that a list of its names.

The list is a file of lines on the server, each the address of a file, relative to the list's own; empty lines count for
nothing, nor do those that begin with `#`. A file is ready once it is listed. What it is like the server says by its
entity tag, or by when it was last modified, and by its size: what has others is hashed again.

Cost: a poll asks for the list, and for the head of each file in it that is new or that still has to be as it was bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, ClassVar
from urllib.parse import unquote, urljoin, urlsplit

import obstore

from mz_dagster.storage.source.bucket import FAILURES, InBucket, Wanted, reason
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.file_place import Listing, Look


@dataclass(frozen=True)
class OnWeb(InBucket):
    """What a list on a web server names.

    Attributes:
        index: What the list is called there; `uri` is the folder that it is in.
    """

    takes_files: ClassVar[bool] = False
    index: str

    def listing(self, pattern: str, after: str = "") -> Listing:
        """Returns the files that the list names; see `FilePlace.listing`."""
        return _Listed(self, set(filter(Wanted(pattern).has, map(self._path, self._lines()))))

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """Opens a file, as a whole: not every server has parts of one."""
        content = self.read(path)
        if content is None:
            raise FileNotFoundError(path)
        yield BytesIO(content)

    def _lines(self) -> Iterator[str]:
        try:
            text = bytes(obstore.get(self._client(), self.index).bytes()).decode()
        except (*FAILURES, UnicodeDecodeError) as error:
            raise SourceUnreadable(
                f'cannot read the list "{self}/{self.index}": {reason(error)}',
                hint="Check the URI, what the connection says, and that the server has the list; nothing was bound.",
            ) from error
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                yield line.strip()

    def _path(self, line: str) -> str:
        """Returns the path of what a line names."""
        base = urljoin(f"{self.uri}/", ".")
        address = urljoin(base, line)
        split = urlsplit(address)
        if not address.startswith(base) or split.query or split.fragment:
            raise SourceUnreadable(
                f'the list "{self}/{self.index}" names "{line}", which is not read',
                detail="It names files in its own folder and in folders below that, without a query.",
                hint="Take the line out of the list; nothing was bound.",
            )
        return unquote(address.removeprefix(base))


class _Listed(Listing):
    """The files of a list, which are asked for one by one."""

    def __init__(self, place: OnWeb, paths: set[str]) -> None:
        self.paths = sorted(paths)
        self._listed = paths
        self._place = place

    def look(self, path: str) -> Look | None:
        """Returns what a file is like that the list names."""
        return self._place.look(path) if path in self._listed else None
