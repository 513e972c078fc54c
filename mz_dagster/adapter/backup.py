"""Backup and restore: a consistent copy of a project, made while everything runs, and a project made from it.

A backup is a folder:

    manifest.json     every other file with size and hash; written last
    catalog.sqlite    one committed state of the catalog, whatever database it is in
    state/shards/...  the files of exactly the batches that are live in that state, as Delta tables of their own
    project/...       the project's files: `mz.toml`, SQL files, and landing data if they lie inside

In the transaction that picks the state, all its live batches are leased; so steps, appends, compactions and sweeps go
on, and the files stay until they are copied. A backup holds no leases, leaders, unfinished batches or capabilities that
expire, and no secrets: the catalog's URL, Spark's token and the like are left out, and named.

Left out of the project's files are the engine's folder `.mz`, whatever else begins with a dot, virtual environments,
bytecode, links to folders, and the catalog's own file.

A restore checks every hash before it makes anything, and makes the project in a hidden folder beside the one that it
was asked for, which gets its name last. So whenever either is killed: a backup has no manifest and is refused, and a
restore has not happened and can be repeated, which removes what the killed one left. Both are on disk when they are
said to be done.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter.manifest import (
    BackupUnusable,
    Manifest,
    describe,
    read_manifest,
    verify,
    write_manifest,
)
from mz_dagster.adapter.project import SETTINGS_FILE, STATE_FOLDER, Project
from mz_dagster.adapter.settings_text import with_catalog, without_secrets
from mz_dagster.catalog import Catalog
from mz_dagster.catalog.disk import make_folder, sync, sync_files
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute import Progress, quiet
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.read import LeaseLost
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shard_copy import CopiedFile, copy_file, copy_shard
from mz_dagster.version import __version__

_CATALOG = "catalog.sqlite"
_STATE = "state"
_PROJECT = "project"
_TELL_EVERY_MS = 2000


class FolderInTheWay(ProgrammingError):
    """Reports a folder that cannot become a backup or a restored project, because of what or where it is."""

    sqlstate = "58P02"


class NothingToBackUp(ProgrammingError):
    """Reports a project that nothing was ever applied to or written in."""

    sqlstate = "55000"


@dataclass(frozen=True, slots=True)
class Restored:
    """Is a project that was made from a backup.

    Attributes:
        root: Its folder.
        manifest: The backup's.
    """

    root: Path
    manifest: Manifest


def backup(project: Project, target: Path, *, progress: Progress = quiet, clock: Clock = SYSTEM_CLOCK) -> Manifest:
    """Copies a project, as it is at one moment, into a folder that is empty or does not exist.

    Raises:
        FolderInTheWay: The folder is not empty, or lies in the project.
        NothingToBackUp: The project has no catalog.
        BatchIncomplete: A shard is damaged.
        FileDamaged: A data file is damaged.
        LeaseLost: This process was paused for so long that files were swept under it; what is there is no backup.
        OperationalError: The outside world failed; what is there is no backup.
    """
    target = target.resolve()
    _check_empty(target)
    if target.is_relative_to(project.root):
        raise FolderInTheWay(
            f'a backup cannot lie in the project that it is of: "{target}"', hint="Name a folder outside of it."
        )
    catalog = Catalog.open_made(project.catalog_url, clock=clock)
    if catalog is None:
        raise NothingToBackUp("the project has no catalog yet", hint="There is nothing but its files; copy those.")
    told = _Told(progress, clock)
    with catalog, _writing(target):
        make_folder(target)
        made_at_ms = clock.now_ms()
        lease = catalog.copy_to(target / _CATALOG, holder=_holder("backup"), ttl_ms=project.lease_ms)
        ttl_ms = project.lease_ms
        try:
            with Renewal(lambda: catalog.renew_lease(lease, ttl_ms), every_ms=ttl_ms // 3):
                progress("copied the catalog")
                files = [*_copy_shards(project, target, clock, told)]
        except BaseException:
            catalog.release_lease(lease)
            raise
        if not catalog.release_lease(lease):
            raise LeaseLost(lease)
        copied, left_out = _copy_project(project, target, told)
        files += [*copied, describe(target, _CATALOG)]
        manifest = Manifest(
            __version__, made_at_ms, project.name, left_out, tuple(sorted(files, key=lambda one: one.path))
        )
        progress(f"writing {len(files)} files, {manifest.bytes} bytes, to disk")
        write_manifest(target, manifest)
    return manifest


def restore(
    source: Path,
    folder: Path,
    *,
    catalog_url: str | None = None,
    progress: Progress = quiet,
    clock: Clock = SYSTEM_CLOCK,
) -> Restored:
    """Makes a project from a backup, in a folder that is empty or does not exist.

    Args:
        source: The backup.
        folder: The project's root; it is there only once everything is.
        catalog_url: Where its catalog is to be, a database that holds none; by default SQLite in the project.
        progress: Hears what is done.
        clock: Wall clock.

    Raises:
        BackupUnusable: It is no backup, or incomplete or damaged; nothing was made.
        FolderInTheWay: The folder is not empty, or is the one that this process works in.
        CatalogTaken: The database holds a catalog.
        OperationalError: The outside world failed.
    """
    root = folder.resolve()
    _check_empty(root)
    if root == Path.cwd():
        raise FolderInTheWay(
            "a project cannot be restored into the folder that one is in",
            hint="Go to another folder and name this one: it is replaced by one that is complete.",
        )
    manifest = read_manifest(source)
    told = _Told(progress, clock)
    progress(f"checking {len(manifest.files)} files, {manifest.bytes} bytes")
    verify(source, manifest, lambda size: told.bytes("checked", size, manifest.bytes))
    with _writing(root):
        make_folder(root.parent)
        with _staging(root) as staging:
            _make_project(source, manifest, staging, catalog_url, told, clock)
            staging.chmod(0o755)
            sync_files(staging, (path.relative_to(staging).as_posix() for path in staging.rglob("*") if path.is_file()))
            staging.rename(root)  # an empty folder gives way
        sync(root.parent)
    return Restored(root, manifest)


@contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """Yields a new hidden folder beside `root`, which the block renames; removes those that killed restores left.

    A folder is locked for as long as the process lives that makes a project in it.
    """
    prefix = f".{root.name}.restoring-"
    for left in root.parent.glob(f"{glob.escape(prefix)}*"):
        with suppress(FileNotFoundError, BlockingIOError):
            number = _locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
            os.close(number)
    made, number = _locked_folder(prefix, root.parent)
    try:
        yield made
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    finally:
        os.close(number)


def _locked_folder(prefix: str, parent: Path) -> tuple[Path, int]:
    """Makes a folder and locks it; before it is locked, another restore may take it for a dead one's."""
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


def _make_project(
    source: Path, manifest: Manifest, staging: Path, catalog_url: str | None, told: _Told, clock: Clock
) -> None:
    state = staging / STATE_FOLDER
    state.mkdir()
    copy = staging / f".{_CATALOG}"
    for one in manifest.files:
        kind, _, rest = one.path.partition("/")
        path = {_CATALOG: copy, _STATE: state / rest, _PROJECT: staging / rest}[kind]
        if copy_file(source / one.path, path) != (one.size, one.sha256):
            raise BackupUnusable(f'"{source / one.path}" changed while it was read', hint="Restore again.")
        shutil.copystat(source / one.path, path)
        told.bytes("copied", one.size, manifest.bytes)
    url = catalog_url or f"sqlite:///{state / 'catalog.sqlite'}"
    with Catalog.open(url, clock=clock) as catalog:
        catalog.fill_from(copy)
    copy.unlink()
    if catalog_url is not None:
        settings = staging / SETTINGS_FILE
        text = settings.read_text(encoding="utf-8") if settings.exists() else ""
        settings.write_text(with_catalog(text, catalog_url), encoding="utf-8")


def _copy_shards(project: Project, target: Path, clock: Clock, told: _Told) -> Iterator[CopiedFile]:
    """Copies the live batches of the copied catalog; they are leased."""
    shards, copies = LocalShards(project.state), LocalShards(target / _STATE)
    with Catalog.open(f"sqlite:///{target / _CATALOG}", clock=clock) as copy:
        rows = copy.collections(dropped=True)
        live = copy.live_batches([row.id for row in rows])
    total = sum(batch.stats.bytes for batches in live.values() for batch in batches)
    for row in rows:
        if not live[row.id]:
            continue
        for one in copy_shard(shards, row, live[row.id], copies):
            told.bytes("copied", one.size, total)
            yield CopiedFile(f"{_STATE}/{one.path}", one.size, one.sha256)
        for entry in sorted((copies.path(row) / "_delta_log").iterdir()):
            yield describe(target, entry.relative_to(target).as_posix())


def _copy_project(project: Project, target: Path, told: _Told) -> tuple[list[CopiedFile], tuple[str, ...]]:
    """Copies the project's files, and returns them with the names of the settings that were left out."""
    files, left_out = [], tuple[str, ...]()
    for path in _project_files(project):
        relative = path.relative_to(project.root).as_posix()
        copy = target / _PROJECT / relative
        if relative == SETTINGS_FILE:
            text, left_out = without_secrets(path.read_text(encoding="utf-8"))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
            files.append(describe(target, f"{_PROJECT}/{relative}"))
            continue
        try:
            size, sha256 = copy_file(path, copy)
            shutil.copystat(path, copy)
        except FileNotFoundError:
            copy.unlink(missing_ok=True)
            continue  # it was removed or renamed meanwhile
        files.append(CopiedFile(f"{_PROJECT}/{relative}", size, sha256))
        told.bytes("copied", size, None)
    return files, left_out


def _project_files(project: Project) -> Iterator[Path]:
    url = project.catalog_url
    catalog = Path(url.removeprefix("sqlite:///")).resolve() if url.startswith("sqlite:///") else None
    own = {f"{catalog}{end}" for end in ("", "-wal", "-shm", "-journal")}
    for folder, folders, names in os.walk(project.root):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one != "__pycache__")
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and str(path) not in own:
                yield path


class _Told:
    """Tells how far it is, every so often."""

    def __init__(self, progress: Progress, clock: Clock) -> None:
        self._progress = progress
        self._clock = clock
        self._next_ms = clock.monotonic_ms() + _TELL_EVERY_MS
        self._done: dict[str, int] = {}

    def bytes(self, verb: str, size: int, total: int | None) -> None:
        done = self._done[verb] = self._done.get(verb, 0) + size
        if self._clock.monotonic_ms() >= self._next_ms:
            self._next_ms = self._clock.monotonic_ms() + _TELL_EVERY_MS
            self._progress(f"{verb} {done} bytes" + ("" if total is None else f" of {total}"))


def _check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderInTheWay(
            f'"{folder}" is not an empty folder',
            hint="Name one that is empty or does not exist. What an interrupted backup left can be removed.",
        )


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperationalError(
            f'cannot write "{error.filename or target}": {error.strerror}',
            hint="Check permissions and free space, then begin again with an empty folder.",
        ) from error


def _holder(what: str) -> str:
    return f"{socket.gethostname()} process {os.getpid()} ({what})"
