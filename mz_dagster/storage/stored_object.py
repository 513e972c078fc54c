"""One object of a store, read and written whole: what is there is what was written before, or after, never a part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.errors import OperationalError
from mz_dagster.storage.object_store import ObjectStore
from mz_dagster.storage.table_place import InStore, is_full

if TYPE_CHECKING:
    from mz_dagster.storage.object_client import Client


class ObjectUnreachable(OperationalError):
    """An object can be neither read nor written; what was there is as it was, or what was to be written."""

    sqlstate = "58030"


@dataclass(frozen=True)
class StoredObject:
    """One object of a store.

    Attributes:
        uri: `s3://bucket/path`, or `gs`, or `az` with a container.
        store: What leads there.
        root: Where relative paths of secrets lead from.
    """

    uri: str
    store: ObjectStore
    root: Path

    def read(self) -> bytes:
        """Returns what it has, nothing if it is not there.

        Raises:
            ObjectUnreachable: It cannot be read.
        """
        with self._opened() as (client, name):
            try:
                return bytes(client.get(name).bytes())
            except FileNotFoundError:
                return b""

    def write(self, content: bytes) -> None:
        """Has it say something else.

        Raises:
            ObjectUnreachable: It cannot be written.
        """
        with self._opened() as (client, name):
            client.put(name, content)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Client, str]]:
        from obstore.exceptions import BaseError

        from mz_dagster.storage.object_client import client_of

        folder, _, name = self.uri.rpartition("/")
        try:
            yield client_of(folder, self.store.settings(self.root)), name
        except (OSError, BaseError) as error:
            raise ObjectUnreachable(
                f'cannot reach "{self.uri}": {InStore(folder, self.store, self.root).message_of(error)}',
                hint="Free space in the bucket, or raise its quota; the next step tries again."
                if is_full(error)
                else "Look at the store, and at what the connection may do there; the next step tries again.",
            ) from error
