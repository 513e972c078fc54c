"""Backup and restore: a consistent copy of a project, made while everything runs, and a project made from it.

A backup is a folder:

    manifest.json     every other file with size and hash; written last
    catalog.sqlite    one committed state of the catalog, whatever database it is in
    state/shards/...  the files of exactly the batches that are live in that state, as Delta tables of their own
    project/...       the project's files: `mz.toml`, SQL files, and landing data if they lie inside

In the transaction that picks the state, all its live batches are leased; so steps, appends, compactions and sweeps go
on, and the files stay until they are copied. A backup holds no leases, leaders, unfinished batches or capabilities that
expire, and no secrets: the catalog's URL, Spark's token, files that CREATE SECRET names and the like are left out, and
named.

Shards in a bucket are fetched: a backup is whole wherever it lies, and what is restored of it has its shards in its
folder.

Left out of the project's files are the engine's folder `.mz`, whatever else begins with a dot, virtual environments,
bytecode, links to folders, and the catalog's own file.

A restore checks every hash before it makes anything, and makes the project, another one with an id of its own, in a
hidden folder beside the one that it was asked for, which gets its name last. So whenever either is killed: a backup has
no manifest and is refused, and a restore has not happened and can be repeated, which removes what the killed one left.
In a database of its own the catalog is there before that folder has its name, and is nobody's until then: a restore may
fill it anew. It gets its project's id in a transaction around the naming; killed within it, the project is there, and
who opens it first completes that (`Catalog.open`).
Both are on disk when they are said to be done.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.project import SETTINGS_FILE, STATE_FOLDER, Project
from mz_dagster.adapter.settings_text import with_catalog, without_secrets
from mz_dagster.catalog import Catalog, CatalogUrl
from mz_dagster.catalog.moved_tables import move_tables_aside
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute import Progress, quiet
from mz_dagster.disk import (
    make_folder,
    make_private_file,
    make_private_folder,
    make_tree_private,
    scratch_folder,
    sync,
    sync_files,
)
from mz_dagster.errors import NotSupportedError, OperationalError, ProgrammingError
from mz_dagster.operations.manifest import (
    CATALOG,
    PROJECT,
    STATE,
    BackupUnusable,
    Manifest,
    describe,
    read_manifest,
    verify,
    write_manifest,
)
from mz_dagster.operations.quarantine import quarantine_of
from mz_dagster.progress import task
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.object_store import Secret
from mz_dagster.storage.ownership import check_place, claim_shards
from mz_dagster.storage.read import LeaseLost
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shard_copy import CopiedFile, copy_file, copy_shard
from mz_dagster.storage.shard_place import FOLDER, ShardFolder, set_aside
from mz_dagster.version import __version__


class FolderInTheWay(ProgrammingError):
    """A folder that cannot become a backup or a restored project, because of what or where it is."""

    sqlstate = "58P02"


class NothingToBackUp(ProgrammingError):
    """A project that nothing was ever applied to or written in."""

    sqlstate = "55000"


class CatalogPresent(ProgrammingError):
    """A project's catalog is not lost, so that none is put in its place."""

    sqlstate = "55000"

    def __init__(self) -> None:
        super().__init__(
            "the project has a catalog",
            detail="Only a lost one is made anew from a backup.",
            hint='"mz-dagster doctor" says what is wrong with it; with "recover --damaged" it is moved out of the way.',
        )


@dataclass(frozen=True, slots=True)
class Restored:
    """A project that was made from a backup.

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
    check_place(target)
    if target.is_relative_to(project.root):
        raise FolderInTheWay(
            f'a backup cannot lie in the project that it is of: "{target}"', hint="Name a folder outside of it."
        )
    catalog = Catalog.open_made(project.catalog_url, clock=clock)
    if catalog is None:
        raise NothingToBackUp("the project has no catalog yet", hint="There is nothing but its files; copy those.")
    with catalog, _writing(target):
        make_private_folder(target)
        made_at_ms = clock.now_ms()
        lease = catalog.copy_to(target / CATALOG, holder=_holder("backup"), ttl_ms=project.lease_ms)
        ttl_ms = project.lease_ms
        try:
            with Renewal(lambda: catalog.renew_lease(lease, ttl_ms), every_ms=ttl_ms // 3):
                progress("copied the catalog")
                files = [*_copy_shards(project, target, clock)]
        except BaseException:
            catalog.release_lease(lease)
            raise
        if not catalog.release_lease(lease):
            raise LeaseLost(lease)
        secret = _files_of_secrets(project, catalog)
        copied, left_out = _copy_project(project, target, secret)
        files += [*copied, describe(target, CATALOG)]
        manifest = Manifest(
            __version__, made_at_ms, project.name, left_out, tuple(sorted(files, key=lambda one: one.path))
        )
        make_tree_private(target)
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
        catalog_url: Where its catalog is to be, a database that holds none, the path of a file relative to the
            project; by default SQLite in the project.
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
    check_place(root)
    if root == Path.cwd():
        raise FolderInTheWay(
            "a project cannot be restored into the folder that one is in",
            hint="Go to another folder and name this one: it is replaced by one that is complete.",
        )
    manifest = read_manifest(source)
    progress(f"checking {len(manifest.files)} files, {manifest.bytes} bytes")
    verify(source, manifest)
    with _writing(root):
        make_folder(root.parent)
        with _staging(root) as staging:
            _make_project(source, manifest, root, staging, catalog_url, clock)
        sync(root.parent)
    return Restored(root, manifest)


def recover(
    project: Project,
    source: Path,
    *,
    damaged: bool = False,
    progress: Progress = quiet,
    clock: Clock = SYSTEM_CLOCK,
) -> Manifest:
    """Gives a project whose catalog is lost that of a backup, with the shards that belong to it.

    It is again what it was when it was backed up, under its own files. Lost from since then are: rows that were written
    to tables, what sessions defined, and records of files that sources have read and that are not there any more;
    files that are there are new to the next poll, and come again at its tick. The present shards, of which nothing can
    say what is in them, go to the quarantine as they are. If it is killed, it can be repeated.

    Args:
        project: The project.
        source: The backup.
        damaged: Whether the catalog that is there is given up, too, because it is damaged: it goes to the quarantine,
            or on PostgreSQL into a schema of its own. Nobody may be at work on the project.
        progress: Hears what is done.
        clock: Wall clock.

    Raises:
        CatalogPresent: The project has a catalog; nothing was done.
        NotSupportedError: Its shards are in a bucket; nothing was done.
        BackupUnusable: It is no backup, or incomplete or damaged; nothing was done.
        OperationalError: The outside world failed.
    """
    if project.bucket is not None:
        raise NotSupportedError(
            f'a project whose shards are in "{project.bucket.uri}" cannot be recovered in its place',
            hint='Make another project of the backup, with "mz-dagster restore": its shards are in its folder.',
        )
    if not damaged and (present := Catalog.open_made(project.catalog_url, clock=clock)) is not None:
        with present:
            if present.timelines() or present.objects(dropped=True):  # else one that was killed has made it
                raise CatalogPresent
    manifest = read_manifest(source)
    progress(f"checking {len(manifest.files)} files, {manifest.bytes} bytes")
    verify(source, manifest)
    with _writing(project.state):
        make_private_folder(project.state)
        with _staging(project.state / FOLDER) as staging:
            copy = staging / f".{CATALOG}"
            _copy_files(source, manifest, {CATALOG: copy, STATE: staging})
            with Catalog.open(CatalogUrl.of_file(copy), clock=clock) as copied:
                _check_shards(copied)
            new = staging / FOLDER
            make_private_folder(new)
            make_tree_private(new)
            sync_files(new, (path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file()))
            if damaged:
                progress(f"the catalog that was there is {_set_catalog_aside(project, clock)}")
            if (shards := project.state / FOLDER).exists():
                kept = set_aside(shards, quarantine_of(project))
                progress(f"what was in the shards is in the quarantine: {kept}")
            new.rename(shards)
            sync(project.state)
            with Catalog.open(project.catalog_url, clock=clock) as catalog:
                catalog.fill_from(copy)
                claim_shards(catalog, ShardFolder(project.state))
            shutil.rmtree(staging)
    return manifest


def _set_catalog_aside(project: Project, clock: Clock) -> str:
    """Moves a project's catalog out of the way, and returns where it is now, in words."""
    file = project.catalog_url.file
    if file is None:
        return f'in schema "{move_tables_aside(project.catalog_url, clock)}" of its database'
    kept = [
        set_aside(path, quarantine_of(project))
        for path in (file.with_name(f"{file.name}{end}") for end in ("", "-wal", "-shm", "-journal"))
        if path.exists()
    ]
    return f"in the quarantine: {', '.join(map(str, kept)) or 'there was none'}"


def _staging(root: Path) -> AbstractContextManager[Path]:
    """Yields a new hidden folder beside `root`, which the block renames; removes those that killed restores left."""
    return scratch_folder(root.parent, f".{root.name}.restoring-")


def _make_project(
    source: Path, manifest: Manifest, root: Path, staging: Path, catalog_url: str | None, clock: Clock
) -> None:
    """Makes the project that is to be in `root`, in `staging`, which gets that name last."""
    state = staging / STATE_FOLDER
    default = CatalogUrl.of_file(root / STATE_FOLDER / "catalog.sqlite")
    url = default if catalog_url is None else CatalogUrl.parse(catalog_url, root)
    if is_inside := url.file is not None and url.file.is_relative_to(root):
        url = CatalogUrl.of_file(staging / url.file.relative_to(root))
    id = secrets.token_hex(16)
    state.mkdir(mode=0o700)
    ShardFolder(state).set_mark(id)
    copy = staging / f".{CATALOG}"
    _copy_files(source, manifest, {CATALOG: copy, STATE: state, PROJECT: staging})
    with Catalog.open(CatalogUrl.of_file(copy), clock=clock) as copied:
        _check_shards(copied)
    if catalog_url is not None:
        settings = staging / SETTINGS_FILE
        text = settings.read_text(encoding="utf-8") if settings.exists() else ""
        make_private_file(settings)  # the URL may hold a password
        settings.write_text(with_catalog(text, catalog_url), encoding="utf-8")

    with Catalog.open(url, clock=clock) as catalog:
        catalog.fill_from(copy, id=id)
        if is_inside:
            catalog.complete_restore(id)
    copy.unlink()
    make_tree_private(state)
    staging.chmod(0o755)
    sync_files(staging, (path.relative_to(staging).as_posix() for path in staging.rglob("*") if path.is_file()))
    if is_inside:
        staging.rename(root)  # an empty folder gives way
    else:
        with Catalog.open(url, clock=clock) as catalog:
            catalog.complete_restore(id, lambda: staging.rename(root))


def _copy_files(source: Path, manifest: Manifest, places: Mapping[str, Path]) -> None:
    """Copies the files of a backup, each kind below its place; the kinds without one are left out."""
    files = [(one, *one.path.partition("/")) for one in manifest.files]
    wanted = [(one, kind, rest) for one, kind, _, rest in files if kind in places]
    with task("copying", sum(one.size for one, _, _ in wanted), "bytes"):
        for one, kind, rest in wanted:
            path = places[kind] / rest if rest else places[kind]
            if copy_file(source / one.path, path) != (one.size, one.sha256):
                raise BackupUnusable(f'"{source / one.path}" changed while it was read', hint="Restore again.")
            shutil.copystat(source / one.path, path)


def _check_shards(catalog: Catalog) -> None:
    """Refuses a catalog that says of shards that they lie elsewhere than in the folder of shards: it may be forged."""
    for row in catalog.collections(dropped=True):
        folder, _, name = row.shard.partition("/")
        if folder != FOLDER or not name or name.startswith(".") or "/" in name:
            raise BackupUnusable(
                f"the backup's catalog names a folder that cannot be of a shard: {row.shard!r}",
                hint="It was not written by a backup; use another one.",
            )


def _copy_shards(project: Project, target: Path, clock: Clock) -> Iterator[CopiedFile]:
    """Copies the live batches of the copied catalog; they are leased."""
    with Catalog.open(CatalogUrl.of_file(target / CATALOG), clock=clock) as copy:
        shards, copies = LocalShards(project.shard_place(), copy), LocalShards(target / STATE)
        rows = copy.collections(dropped=True)
        live = copy.live_batches([row.id for row in rows])
        total = sum(batch.stats.bytes for batches in live.values() for batch in batches)
        with task("copying the state", total, "bytes"):
            for row in rows:
                for one in copy_shard(shards, row, live[row.id], copies):
                    yield CopiedFile(f"{STATE}/{one.path}", one.size, one.sha256)
                if (log := copies.path(row) / "_delta_log").exists():
                    for entry in sorted(log.iterdir()):
                        yield describe(target, entry.relative_to(target).as_posix())


def _files_of_secrets(project: Project, catalog: Catalog) -> Collection[Path]:
    """Returns the files whose content is a secret of the project."""
    definitions = CatalogDefinitions(catalog, project)
    found = (definitions.definition(one.id).means for one in catalog.objects("secret"))
    of_storage = () if project.bucket is None else (value for _, value in project.bucket.store.options)
    secrets = (one for one in (*found, *of_storage) if isinstance(one, Secret))
    return {path.resolve() for one in secrets if (path := one.path(project.root)) is not None}


def _copy_project(project: Project, target: Path, secret: Collection[Path]) -> tuple[list[CopiedFile], tuple[str, ...]]:
    """Copies the project's files, and returns them with the names of the settings and files that were left out."""
    files, left_out = [], tuple[str, ...]()
    paths = {path: size for path, size in _project_files(project) if path.resolve() not in secret}
    with task("copying the project's files", sum(paths.values()), "bytes"):
        for path in paths:
            relative = path.relative_to(project.root).as_posix()
            copy = target / PROJECT / relative
            if relative == SETTINGS_FILE:
                text, left_out = without_secrets(path.read_text(encoding="utf-8"))
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text, encoding="utf-8")
                files.append(describe(target, f"{PROJECT}/{relative}"))
                continue
            try:
                size, sha256 = copy_file(path, copy)
                shutil.copystat(path, copy)
            except FileNotFoundError:
                copy.unlink(missing_ok=True)
                continue  # it was removed or renamed meanwhile
            files.append(CopiedFile(f"{PROJECT}/{relative}", size, sha256))
    kept_back = (
        one.relative_to(project.root.resolve()) for one in secret if one.is_relative_to(project.root.resolve())
    )
    return files, (*left_out, *sorted(one.as_posix() for one in kept_back))


def _project_files(project: Project) -> Iterator[tuple[Path, int]]:
    """Yields the project's own files with their sizes."""
    catalog = project.catalog_url.file
    own = set() if catalog is None else {f"{catalog.resolve()}{end}" for end in ("", "-wal", "-shm", "-journal")}
    for folder, folders, names in os.walk(project.root):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one != "__pycache__")
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and str(path) not in own:
                with suppress(FileNotFoundError):  # it was removed or renamed meanwhile
                    yield path, path.stat().st_size


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
