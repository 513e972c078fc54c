"""Files in an object store: a prefix of a bucket, which is listed like a folder.

An object comes into being whole, so each that is listed is ready unless its name says otherwise, as in a folder. The
store says of each what it is by (its entity tag): what has another one is hashed again.

Cost: a poll lists what is below the prefix, a thousand objects a request and without a look at any; without a `/` in
the pattern, only what is directly below it. A store lists by name and not by time, so what is new may be anywhere among
the names; where these are known to ascend, only what sorts behind a path is listed (`FileSource.names_ascend`). What is
new is read once to be checked and hashed, and once by its step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from io import BufferedReader, RawIOBase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from mz_dagster.catalog import BoundFile
from mz_dagster.errors import OperationalError
from mz_dagster.storage.object_client import Client, client_of
from mz_dagster.storage.object_store import ObjectStore
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.file_place import FilePlace, Listing, Look, Looks
from mz_dagster.storage.source.folder import is_unfinished, pattern_to_regex, refuse_unreadable_name

if TYPE_CHECKING:
    from obstore import ObjectMeta, ReadableFile

#: What the client raises: of what is not there an OSError, else errors of its own.
FAILURES = (BaseError, OSError)
_BLOCK = 1 << 20


@dataclass(frozen=True)
class InBucket(FilePlace):
    """A prefix of a bucket.

    Attributes:
        uri: `s3://bucket/prefix`, or `s3://bucket`; or `gs`, or `az` with a container.
        store: What leads there.
        root: Where relative paths of secrets lead from.
    """

    uri: str
    store: ObjectStore
    root: Path
    #: The last client, by what tells the settings that it was given from others.
    _clients: dict[bytes, Client] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __str__(self) -> str:
        return self.uri

    @property
    def folder(self) -> None:
        """None: Spark is not told how to get there."""

    def listing(self, pattern: str, after: str = "") -> Listing:
        """Returns the objects that are ready, with what the store says of them; see `FilePlace.listing`."""
        wanted = Wanted(pattern)
        found = {}
        try:
            for one in self._objects(after, recursive="/" in pattern):
                if wanted.has(one["path"]):
                    found[one["path"]] = _look(one)
        except FAILURES as error:
            raise SourceUnreadable(
                f'cannot list "{self}": {reason(error)}',
                hint="Check the URI, what the connection says, and that it may list the bucket; nothing was bound.",
            ) from error
        return _Behind(found, self, after) if after else Looks(found)

    def look(self, path: str) -> Look | None:
        """Returns what an object is like now."""
        try:
            return _look(obstore.head(self._client(), path))
        except FileNotFoundError:
            return None
        except FAILURES as error:
            raise self._unreadable(path, error) from error

    def hashed(self, path: str) -> BoundFile | None:
        """Returns an object's size and hash; see `FilePlace.hashed`."""
        try:
            return self._hashed(path, None)
        except FileNotFoundError:
            return None
        except FAILURES as error:
            raise self._unreadable(path, error) from error

    def read(self, path: str) -> bytes | None:
        """Returns what an object has; see `FilePlace.read`."""
        try:
            return bytes(obstore.get(self._client(), path).bytes())
        except FileNotFoundError:
            return None
        except FAILURES as error:
            raise self._unreadable(path, error) from error

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """Opens an object, of which parts will be read."""
        try:
            with BufferedReader(_Parts(obstore.open_reader(self._client(), path))) as file:
                yield cast("BinaryIO", file)
        except BaseError as error:
            raise self._unreadable(path, error) from error

    @contextmanager
    def fetched(self, path: str) -> Iterator[tuple[Path, BoundFile] | None]:
        """Has a copy of an object during the block; see `FilePlace.fetched`."""
        with TemporaryDirectory(prefix="mz_object_") as folder:
            copy = Path(folder, path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(copy, "wb") as target:
                    file = self._hashed(path, target)
            except FileNotFoundError:
                yield None
                return
            except FAILURES as error:
                raise self._unreadable(path, error) from error
            yield Path(folder), file

    def lasting(self, files: tuple[BoundFile, ...]) -> tuple[BoundFile, ...]:
        """Returns the files: what a store has said that it has lasts."""
        return files

    def create(self, path: str, content: bytes) -> bool:
        """Puts an object unless there is one of that name; returns whether it was put.

        Raises:
            OperationalError: It cannot be put, or nobody knows whether it was.
        """
        try:
            obstore.put(self._client(), path, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except FAILURES as error:
            raise OperationalError(
                f'cannot write "{self}/{path}": {reason(error)}',
                hint="Check that the connection may write there, and that the store knows If-None-Match; try again.",
            ) from error
        return True

    def _client(self) -> Client:
        """Returns a client, the same one as long as secrets stand for the same: it has its connections open."""
        settings = self.store.settings(self.root)
        given = sha256(repr(sorted(settings.items())).encode()).digest()
        client = self._clients.get(given)
        if client is None:
            client = client_of(self.uri, settings)
            self._clients.clear()
            self._clients[given] = client
        return client

    def _objects(self, after: str, *, recursive: bool) -> Iterator[ObjectMeta]:
        if not recursive and not after:
            yield from obstore.list_with_delimiter(self._client())["objects"]
            return
        for some in obstore.list(self._client(), offset=after or None, chunk_size=1000):
            yield from some

    def _hashed(self, path: str, target: BinaryIO | None) -> BoundFile:
        """Returns what an object is like, once it is copied into a file if there is one."""
        found = obstore.get(self._client(), path)
        look, digest, size = _look(found.meta), sha256(), 0
        for block in found.stream(min_chunk_size=_BLOCK):
            digest.update(block)
            size += len(block)
            if target is not None:
                target.write(block)
        return BoundFile(path, size, digest.hexdigest(), look.identity)

    def _unreadable(self, path: str, error: Exception) -> SourceUnreadable:
        return SourceUnreadable(
            f'cannot read "{self}/{path}": {reason(error)}',
            hint="Check that the connection may read it, or move it away; no file of the source was bound.",
        )


class _Behind(Looks):
    """A listing of what sorts behind a path; the store is asked for any other object by itself."""

    def __init__(self, looks: Mapping[str, Look], place: InBucket, after: str) -> None:
        super().__init__(looks)
        self._place, self._after = place, after

    def look(self, path: str) -> Look | None:
        """Returns what an object was like when it was listed, or is like now."""
        return super().look(path) if path > self._after else self._place.look(path)


class _Parts(RawIOBase):
    """What the client opens, as other libraries read from files."""

    def __init__(self, file: ReadableFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any, /) -> int:
        found = self._file.read(len(buffer))
        buffer[: len(found)] = bytes(found)
        return len(found)


def _look(found: Mapping[str, Any] | ObjectMeta) -> Look:
    # A store that says no tag says when the object came. Azure puts tags between quotes, but not in lists.
    tag = (found["e_tag"] or found["last_modified"].isoformat()).strip('"')
    return Look(found["size"], f"{tag}:{found['size']}")


def reason(error: Exception) -> str:
    """Returns what a client's error says, in a line: the store's own words, if there are some."""
    text = str(error).split("\n\nDebug source:")[0]
    said = re.search("<Code>([^<]*)</Code>\\s*<Message>([^<]*)</Message>", text)
    if said is not None:
        return f"{said[1]}: {said[2].splitlines()[0] if said[2] else ''}".rstrip(".: ")
    return " ".join(text.split())[:400].rstrip(".")


class Wanted:
    """The paths of a store that are ready and match a glob."""

    def __init__(self, pattern: str) -> None:
        self._matched = re.compile(pattern_to_regex(pattern), re.DOTALL)

    def has(self, path: str) -> bool:
        """Returns whether a path is one; raises SourceUnreadable if it is, and cannot be read."""
        if not self._matched.fullmatch(path) or any(map(is_unfinished, path.split("/"))):
            return False
        refuse_unreadable_name(path)
        _refuse_leading_out(path)
        return True


def _refuse_leading_out(path: str) -> None:
    """Raises if an object is called so that its copy would not be in the folder that it is meant for."""
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise SourceUnreadable(
            f'"{path}" has a part that is no name of a file', hint="Rename the object; it was not bound."
        )
