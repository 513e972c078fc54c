"""Shards in a bucket of an object store; see `shard_place`.

    root/shards/u1/mz_batch=7/...    copies of data files, under the paths that they have in the bucket
    root/drafts/...                  tables in which batches are being written

A put that the store has answered is durable, and nobody ever overwrites: each object has a name of its own, or is a
commit of a log, and is put only if it is not there. If the answer to such a put was lost, the client puts again and is
told that the object is there; it is this process's own if its bytes are.

A copy is made whole, under its name only then, and found damaged it is made again; so a process that is killed leaves
nothing that another could take for one. Copies that were not used for six hours go, least lately used first, when all
are more than so many bytes; what a step or query reads is younger.

Cost: a file that has a copy costs a `stat`, one that has none a GET; the GETs of a read run `AT_ONCE` at a time. A
batch costs a PUT for each file, one for the commit, and a look at the log before and after it. Memory: the files that
are being put.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote
from uuid import uuid4

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import Schema
from deltalake.transaction import AddAction, RemoveAction

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.disk import (
    files_below,
    make_folder,
    make_private_folder,
    remove_least_used,
    scratch_folder,
    sync_files,
)
from mz_dagster.fail_point import fail_point
from mz_dagster.storage.file_hashes import hash_file
from mz_dagster.storage.object_store import ObjectStore
from mz_dagster.storage.open_tables import open_table
from mz_dagster.storage.shard_place import FOLDER, MARK, NewTable, ShardPlace, free_path
from mz_dagster.storage.shards import BATCH, BUCKET, FileDamaged, ShardUnavailable, StoredFile
from mz_dagster.storage.table_place import InStore, is_full
from mz_dagster.storage.table_sync import LOG

if TYPE_CHECKING:
    from mz_dagster.storage.object_client import Client

#: How many objects are read at a time.
AT_ONCE = 16
#: How many are written at a time, each of which is in memory.
_PUTS = 4
#: After how long a request is given up, which may be one for a large file.
_TIMEOUT = "300s"
#: A copy that was used so lately stays, however many bytes there are, in milliseconds.
_USED_MS = 6 * 3_600_000
#: How often it is noted that a copy is used, in milliseconds.
_NOTED_MS = 600_000
#: After what part of the limit was copied it is looked whether there are too many bytes.
_PART = 16
#: How often a commit that another is in the way of is tried.
_CONFLICTS = 50
#: A lost race for a version only has to be run again.
_RETRIES = CommitProperties(max_commit_retries=1000)
#: After how many commits it is looked what lies behind a checkpoint and is old, and may go.
_CHECKPOINTS = 50

_LAST_CHECKPOINT = "_last_checkpoint"
_MARK = f"{FOLDER}/{MARK}"
#: What the mark says behind the project's id, once the store has shown it.
_PROVEN = "conditional-puts"

Value = TypeVar("Value")
Result = TypeVar("Result")


class ShardBucket(ShardPlace):
    """A prefix of a bucket.

    Args:
        uri: `s3://bucket/prefix`; or `gs`, or `az` with a container.
        store: What leads there.
        root: The folder of copies and drafts.
        secrets: The folder from which relative paths of secrets lead.
        copies_bytes: Up to how many bytes of copies are kept that nobody uses.
    """

    hint = "Check that the store can be reached and lets this process read, list, write and delete, then try again."

    def __init__(self, uri: str, store: ObjectStore, root: Path, secrets: Path, copies_bytes: int) -> None:
        super().__init__(root)
        self._uri = uri.rstrip("/")
        self._store = store
        self._secrets = secrets
        self._copies_bytes = copies_bytes
        self._lock = threading.Lock()
        self._client: tuple[bytes, Client] | None = None
        self._made: set[str] = set()
        self._is_proven = False
        self._noted: set[Path] = set()
        self._noted_since_ms = 0.0
        self._copied = copies_bytes  # so that the first copy has all of them looked at

    def __str__(self) -> str:
        return self._uri

    def message_of(self, error: Exception) -> str:
        """Returns what an error says, in a line, without a secret."""
        return InStore(self._uri, self._store, self._secrets).message_of(error)

    def hint_for(self, error: Exception) -> str:
        """Returns what to do about an error."""
        if not is_full(error):
            return self.hint
        if isinstance(error, OSError) and error.errno is not None:
            return f'Free space on the disk of "{self.root}", then try again.'
        return "Free space in the bucket, or raise its quota, then try again; what was sealed is there."

    def table(self, shard: str) -> InStore:
        """Returns where a shard's table is."""
        return InStore(f"{self._uri}/{shard}", self._store, self._secrets)

    def has_table(self, shard: str) -> bool:
        """Returns whether a shard's table was created."""
        if shard not in self._made:
            with self.newest(shard) as table:
                if table is None:
                    return False
            self._made.add(shard)
        return True

    def create(self, shard: str, table: NewTable) -> None:
        """Creates a shard's table; see `ShardPlace.create`."""
        try:
            table.create(f"{self._uri}/{shard}", self.table(shard).settings())
        except (DeltaError, OSError):
            if open_table(self.table(shard)) is None:  # else another process was faster
                raise
        self._made.add(shard)

    @contextmanager
    def draft(self, shard: str, table: NewTable) -> Iterator[Path]:
        """Yields the folder of an empty table of this machine."""
        make_private_folder(self.root)
        with scratch_folder(self.root / "drafts", "draft-") as folder:
            table.create(str(folder))
            yield folder

    @contextmanager
    def drafted(self, shard: str, draft: Path, *, is_newest: bool) -> Iterator[DeltaTable | None]:
        """Yields the newest snapshot of the table in a draft."""
        yield open_table(draft)

    def settle(self, shard: str, draft: Path, table: DeltaTable, batch_folder: str) -> None:
        """Puts the files of a batch, commits them, and keeps them as copies; see `ShardPlace.settle`."""
        adds = list(_added(draft, batch_folder))
        client = self._connected()
        self._each(lambda one: self._put(client, f"{shard}/{one.path}", draft / one.path), adds, _PUTS)
        fail_point("bucket.put")
        self._commit(shard, table.schema(), adds)
        fail_point("bucket.committed")
        self._make_room(sum(one.size for one in adds))
        for one in adds:
            copy = self.root / shard / one.path
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft / one.path, copy)

    def _put(self, client: Client, key: str, file: Path) -> None:
        from obstore.exceptions import AlreadyExistsError

        content = file.read_bytes()
        with self._asking("write", key):
            try:
                client.put(key, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                if bytes(client.get(key).bytes()) != content:
                    raise

    def _commit(self, shard: str, schema: Schema, adds: Sequence[AddAction]) -> None:
        """Commits files to the log of a shard's table, and adds the columns to it that it lacks."""
        actions: list[AddAction | RemoveAction] = list(adds)
        for attempt in range(_CONFLICTS):
            try:
                # What was committed since a snapshot is looked at by the commit: at first, any will do.
                with self.tables.lent(self.table(shard), is_newest=attempt > 0) as table:
                    if table is None:
                        self._made.discard(shard)
                        raise FileNotFoundError("there is no table")
                    known = {one.name for one in table.schema().fields}
                    if missing := [one for one in schema.fields if one.name not in known]:
                        table.alter.add_columns(missing, commit_properties=_RETRIES)
                    table.create_write_transaction(
                        actions, "append", table.schema(), partition_by=[BATCH, BUCKET], commit_properties=_RETRIES
                    )
                    table.update_incremental()
                    if table.version() % _CHECKPOINTS == 0:
                        table.cleanup_metadata()
                return
            except (DeltaError, OSError) as error:
                is_raced = isinstance(error, CommitFailedError) and not is_full(error) and attempt < _CONFLICTS - 1
                if is_full(error) or (attempt and not is_raced):
                    raise self._unavailable("append to", shard, error) from None

    def check(self, shard: str, files: Sequence[StoredFile], collection: str) -> None:
        """Makes the copies that are not there; see `ShardPlace.check`."""
        missing = [one for one in files if not self._has_copy(shard, one, collection)]
        if missing:
            client = self._connected()
            self._make_room(sum(one.bytes for one in missing))
            self._each(lambda one: self._copy(client, shard, one, collection), missing)

    def _has_copy(self, shard: str, file: StoredFile, collection: str) -> bool:
        path = self.root / shard / file.path
        try:
            self.hashes.check(path, file, collection)
            self._note_used(path)
        except (FileNotFoundError, FileDamaged):
            return False
        return True

    def _copy(self, client: Client, shard: str, file: StoredFile, collection: str) -> None:
        key = f"{shard}/{file.path}"
        path = self.root / shard / file.path
        new = path.with_name(f".{path.name}.{uuid4().hex}")
        make_private_folder(self.root)
        try:
            self._fetch(client, key, new)
            if (size := new.stat().st_size) != file.bytes:
                raise FileDamaged(self.called(key), f"It has {size} bytes, and had {file.bytes}", collection)
            if file.hash is not None and hash_file(new) != file.hash:
                raise FileDamaged(self.called(key), "Its content is not what was written", collection)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)
        self.hashes.check(path, file, collection)

    def _fetch(self, client: Client, key: str, target: Path) -> None:
        """Writes what an object holds now into a file, making the folders above it.

        Raises:
            FileNotFoundError: It is gone.
            ShardUnavailable: It cannot be read.
        """
        with self._asking("read", key):
            found = client.get(key)
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "wb") as file:
                for chunk in found:
                    file.write(chunk)

    def first_gone(self, shard: str, files: Sequence[StoredFile]) -> StoredFile | None:
        """Returns the first of some files of which there is neither a copy nor an object."""
        client = self._connected()

        def is_gone(one: StoredFile) -> bool:
            if (self.root / shard / one.path).exists():
                return False
            key = f"{shard}/{one.path}"
            try:
                with self._asking("look at", key):
                    client.head(key)
            except FileNotFoundError:
                return True
            return False

        gone = self._each(is_gone, files)
        return next((one for one, is_so in zip(files, gone, strict=True) if is_so), None)

    def remove(self, shard: str, batch_folder: str, aside: Path | None) -> None:
        """Deletes the objects of a batch; see `ShardPlace.remove`."""
        keys = self._keys(f"{shard}/{batch_folder}")
        if aside is not None:
            self._keep(keys, f"{shard}/{batch_folder}", aside)
        self._delete(keys)
        shutil.rmtree(self.root / shard / batch_folder, ignore_errors=True)

    def batch_folders(self, shard: str) -> Sequence[str]:
        """Returns the names of batches' prefixes."""
        return [name for name in self._names(shard) if name.startswith(f"{BATCH}=")]

    def sync_log(self, shard: str, version: int) -> None:
        """Does nothing: what the store has answered lasts."""

    def shards(self) -> frozenset[str]:
        """Returns the shards of which there is any object."""
        return frozenset(f"{FOLDER}/{name}" for name in self._names(FOLDER))

    def has_shard(self, shard: str) -> bool:
        """Returns whether there is any object of a shard."""
        return bool(self._names(shard))

    def destroy(self, shard: str) -> None:
        """Deletes all objects of a shard, those of its log first: what is left is no table."""
        keys = self._keys(shard)
        log = [one for one in keys if one.startswith(f"{shard}/{LOG}/")]
        self._delete(log)
        self._delete(sorted(set(keys) - set(log)))
        self._made.discard(shard)
        shutil.rmtree(self.root / shard, ignore_errors=True)

    @contextmanager
    def as_it_lies(self, shard: str, paths: Sequence[str] | None) -> Iterator[Path]:
        """Yields a folder into which files were fetched for the purpose; see `ShardPlace.as_it_lies`."""
        if paths is None:
            paths = [one.removeprefix(f"{shard}/") for one in self._keys(f"{shard}/{LOG}")]
        make_private_folder(self.root)
        client = self._connected()
        with scratch_folder(self.root / "drafts", "look-") as folder:

            def fetched(path: str) -> None:
                with suppress(FileNotFoundError):
                    self._fetch(client, f"{shard}/{path}", folder / shard / path)

            self._each(fetched, paths)
            yield folder

    def sizes(self, shard: str, paths: Sequence[str]) -> Mapping[str, int]:
        """Returns the sizes of those objects that are there."""
        found: dict[str, int] = {}
        for prefix in sorted({f"{shard}/{one.partition('/')[0]}" for one in paths}):
            with self._asking("list", prefix):
                for chunk in self._connected().list(prefix):
                    found |= {str(one["path"]).removeprefix(f"{shard}/"): int(one["size"]) for one in chunk}
        return {one: found[one] for one in paths if one in found}

    def put_back(self, shard: str, path: str, copy: Path, aside: Path) -> Path | None:
        """Puts an object back; see `ShardPlace.put_back`."""
        key = f"{shard}/{path}"
        kept, is_kept = free_path(aside / key), False
        with suppress(FileNotFoundError):
            self._fetch(self._connected(), key, kept)
            is_kept = True
        if is_kept:
            sync_files(aside, [kept.relative_to(aside).as_posix()])
        with self._asking("write", key):
            self._connected().put(key, copy.read_bytes(), use_multipart=False)
        return kept if is_kept else None

    def set_log_aside(self, shard: str) -> str:
        """Copies the objects of the log."""
        kept = f"{LOG}.damaged-1"
        number = 1
        while self._keys(f"{shard}/{kept}"):
            number += 1
            kept = f"{LOG}.damaged-{number}"
        client = self._connected()
        for key in self._keys(f"{shard}/{LOG}"):
            with self._asking("copy", key):
                client.copy(key, key.replace(f"{shard}/{LOG}/", f"{shard}/{kept}/"))
        return self.called(f"{shard}/{kept}")

    def replace_log(self, shard: str, root: Path) -> None:
        """Puts a checkpoint that goes on with the old log's numbers, which open tables elsewhere know.

        A table begins at the checkpoint that `_last_checkpoint` names; what was before it may go then.
        """
        made, log = root / shard / LOG, f"{shard}/{LOG}"
        table = DeltaTable(str(made.parent))
        table.create_checkpoint()
        old = self._keys(log)
        numbers = [int(name) for one in old if (name := one.rpartition("/")[2].partition(".")[0]).isdigit()]
        version = max(numbers, default=-1) + 1
        pointer = json.loads((made / _LAST_CHECKPOINT).read_text(encoding="utf-8")) | {"version": version}
        pointer.pop("checksum", None)
        client = self._connected()
        with self._asking("write", log):
            for end in ("checkpoint.parquet", "json"):
                content = (made / f"{table.version():020d}.{end}").read_bytes()
                client.put(f"{log}/{version:020d}.{end}", content, mode="create", use_multipart=False)
            client.put(f"{log}/{_LAST_CHECKPOINT}", json.dumps(pointer).encode(), use_multipart=False)
        self._delete([one for one in old if not one.endswith(f"/{_LAST_CHECKPOINT}")])

    def set_shard_aside(self, shard: str, folder: Path) -> Path | None:
        """Fetches all objects of a shard, and deletes them."""
        keys = self._keys(shard)
        kept = self._keep(keys, shard, folder)
        self.destroy(shard)
        return kept if keys else None

    def _keep(self, keys: Sequence[str], below: str, folder: Path) -> Path:
        """Fetches objects below a key into a folder, for good, and returns where they are."""
        kept, client = free_path(folder / below), self._connected()
        places = {key: kept / key.removeprefix(f"{below}/") for key in keys}
        self._each(lambda key: self._fetch(client, key, places[key]), keys)
        make_folder(folder)
        sync_files(folder, [one.relative_to(folder).as_posix() for one in places.values()])
        return kept

    def make_fit(self) -> None:
        """Has the store show that it keeps conditional puts, unless the mark says that it has: it may be a copy."""
        if not self._is_proven:
            self._prove()
            with self._asking("write", _MARK):
                text = bytes(self._connected().get(_MARK).bytes()).decode("ascii").split()[0]
                self._connected().put(_MARK, f"{text}\n{_PROVEN}\n".encode("ascii"), use_multipart=False)

    def mark(self) -> str | None:
        """Returns whose the prefix is marked as."""
        try:
            with self._asking("read", _MARK):
                words = bytes(self._connected().get(_MARK).bytes()).decode("ascii", "replace").split()
        except FileNotFoundError:
            return None
        self._is_proven = _PROVEN in words
        return words[0] if words else None

    def set_mark(self, id: str) -> None:
        """Puts the mark, if the store keeps conditional puts; see `ShardPlace.set_mark`."""
        from obstore.exceptions import AlreadyExistsError

        self._prove()
        with self._asking("write", _MARK), suppress(AlreadyExistsError):
            content = f"{id}\n{_PROVEN}\n".encode("ascii")
            self._connected().put(_MARK, content, mode="create", use_multipart=False)

    def _prove(self) -> None:
        """Puts an object twice, where it must not be there.

        Raises:
            ShardUnavailable: The store wrote it twice, or cannot be asked.
        """
        from obstore.exceptions import AlreadyExistsError

        client, probe = self._connected(), f"{FOLDER}/.probe-{uuid4().hex}"
        with self._asking("write", probe):
            client.put(probe, b"", mode="create", use_multipart=False)
            try:
                client.put(probe, b"", mode="create", use_multipart=False)
                keeps_conditions = False
            except AlreadyExistsError:
                keeps_conditions = True
            client.delete([probe])
        if not keeps_conditions:
            raise ShardUnavailable(
                f'the store of "{self}" overwrites what it is told to write only if it is not there',
                detail="Two writers of one table could overwrite each other's commits.",
                hint="Use a store that keeps conditional puts (If-None-Match), or a release of it that does.",
            )

    def _keys(self, prefix: str) -> list[str]:
        """Returns the keys of all objects below a prefix."""
        with self._asking("list", prefix):
            return [str(one["path"]) for chunk in self._connected().list(prefix) for one in chunk]

    def _names(self, prefix: str) -> list[str]:
        """Returns the names right below a prefix that have something below them."""
        with self._asking("list", prefix):
            found = self._connected().list_with_delimiter(prefix)
        return [str(one).rstrip("/").rpartition("/")[2] for one in found["common_prefixes"]]

    def _delete(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        client = self._connected()
        with self._asking("delete", keys[0]):
            try:
                client.delete(list(keys))
            except FileNotFoundError:  # somebody else deletes them at the same time
                for key in keys:
                    with suppress(FileNotFoundError):
                        client.delete([key])

    def _connected(self) -> Client:
        """Returns a client that knows the secrets as they are now."""
        from mz_dagster.storage.object_client import client_of

        settings = self._store.settings(self._secrets)
        known_by = hashlib.sha256(repr(sorted(settings.items())).encode()).digest()
        with self._lock:
            if self._client is None or self._client[0] != known_by:
                self._client = known_by, client_of(self._uri, settings, timeout=_TIMEOUT)
            return self._client[1]

    @contextmanager
    def _asking(self, what: str, key: str) -> Iterator[None]:
        """Says of what the client raises in the block what could not be done; what is gone stays as it is."""
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(self.called(key)) from None
        except (BaseError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # this machine's disk
            raise self._unavailable(what, key, error) from None

    def _unavailable(self, what: str, path: str, error: Exception) -> ShardUnavailable:
        hint = self.hint_for(error)
        return ShardUnavailable(f'cannot {what} "{self.called(path)}": {self.message_of(error)}', hint=hint)

    def _each(self, do: Callable[[Value], Result], values: Sequence[Value], at_once: int = AT_ONCE) -> list[Result]:
        """Returns what is done with each of some values, several at a time."""
        if len(values) < 2:
            return [do(one) for one in values]
        with ThreadPoolExecutor(min(at_once, len(values)), "objects") as pool:
            return list(pool.map(do, values))

    def _note_used(self, path: Path) -> None:
        now_ms = SYSTEM_CLOCK.monotonic_ms()
        if now_ms - self._noted_since_ms > _NOTED_MS:
            self._noted.clear()
            self._noted_since_ms = now_ms
        if path not in self._noted:
            self._noted.add(path)
            with suppress(OSError):
                os.utime(path, ns=(SYSTEM_CLOCK.now_ms() * 1_000_000, path.stat().st_mtime_ns))

    def _make_room(self, size: int) -> None:
        """Removes copies that were not used for long, if much was copied since that was done last."""
        with self._lock:
            self._copied += size
            if self._copied * _PART < self._copies_bytes:
                return
            self._copied = 0
        until_ns = (SYSTEM_CLOCK.now_ms() - _USED_MS) * 1_000_000
        copies = ((found.st_atime_ns, found.st_size, path) for path, found in files_below(self.root / FOLDER))
        remove_least_used(copies, self._copies_bytes, until_ns)


def _added(draft: Path, batch_folder: str) -> Iterator[AddAction]:
    """Yields the files that the commits to a draft have added to a batch, as their writers have described them."""
    for entry in sorted((draft / LOG).glob("*.json")):
        for line in entry.read_text(encoding="utf-8").splitlines():
            add: dict[str, Any] | None = json.loads(line).get("add")
            if add is not None and unquote(add["path"]).startswith(f"{batch_folder}/"):
                path, changed_ms, stats = unquote(add["path"]), add["modificationTime"], add["stats"]
                yield AddAction(path, add["size"], add["partitionValues"], changed_ms, True, stats)
