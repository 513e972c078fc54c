"""A project: the folder that holds a team's SQL files, and the settings in its `mz.toml`.

Owns what the settings are used as (`settings_file` says which there are), and the layout below the project's root:

    mz.toml           settings, all optional
    assets/           SQL files: the project's sources, tables, views and indexes
    .mz/              the engine's own state: catalog, shards, the Spark server's files, Dagster's instance

An embedded project is any other folder: no `mz.toml`, no `assets/`, all settings at their defaults.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from mz_dagster.adapter.setting_values import BadSettings, engine_setting_of
from mz_dagster.budget import EngineSetting, budget
from mz_dagster.catalog.url import CatalogUrl
from mz_dagster.disk import path_of
from mz_dagster.errors import NotSupportedError, ProgrammingError
from mz_dagster.storage.decoded_files import DecodedFiles
from mz_dagster.storage.inlined import Inlining
from mz_dagster.storage.shard_bucket import ShardBucket
from mz_dagster.storage.shard_place import FOLDER, ShardFolder, ShardPlace
from mz_dagster.storage.spark import SparkConfig

if TYPE_CHECKING:
    from mz_dagster.adapter.settings_file import BucketSettings, SparkSettings, TimelineSettings

SETTINGS_FILE = "mz.toml"
#: A variable of the environment that overrides the setting `engine` of the file.
ENGINE_VARIABLE = "MZ_ENGINE"
STATE_FOLDER = ".mz"
#: A process and its workers take at least so much each, or there are none.
_LEAST_SHARED = 1 << 30
#: Between what the heap of a Spark that is started here is, where it follows from the setting `memory`.
_HEAPS = 1 << 30, 4 << 30


class FolderNotAllowed(ProgrammingError):
    """A folder that is the engine's own, or is outside of the project and not named in `mz.toml`."""

    sqlstate = "42501"


class NoProject(ProgrammingError):
    """Neither a folder nor any above it is a project."""

    sqlstate = "3D000"

    @classmethod
    def at(cls, where: str) -> Self:
        """Returns the error that says that there is none at a place."""
        hint = f'Run from a folder that holds "{SETTINGS_FILE}", or name one with --project.'
        return cls(f"no project in {where}", hint=hint)


@dataclass(frozen=True, slots=True)
class Project:
    """A project's root folder and its settings.

    Attributes:
        root: The absolute folder.
        name: For display.
        timeline: The timeline of objects that name none.
        timelines: By name; always holds `timeline`.
        catalog_url: Where the catalog is.
        spark: Which Spark.
        retention_ms: How much history every collection keeps readable behind its upper; None keeps all.
        source_folders: Folders outside of the project in which, and below which, folders of sources may be.
        output_folders: Folders outside of the project in which, and below which, COPY and sinks may write.
        manifest: The file that says which versions of what sinks write belong together, or its URI; None for none.
        manifest_connection: What leads to the store that the URI is of.
        expect_files_ms: For how long after a source's files are sealed they have to stay where they are, in the
            timeline's milliseconds.
        lease_ms: How long a lease lasts before it must be renewed, in milliseconds.
        hydration_deadline_ms: After how long CREATE in a session gives up what it hydrates, in milliseconds.
        as_of_deadline_ms: For how long AS OF waits for a time that is not known yet, in milliseconds.
        polls_for_reads: Whether a strict serializable read asks the sources first what is new.
        write_deadline_ms: For how long a write that loses races against others tries again, in milliseconds.
        idle_transaction_ms: How long a transaction block may do nothing, in milliseconds; None: for ever.
        warm_runs: Whether Dagster's runs start in workers forked from a warm process, where that works: under Linux.
        engine: Who computes, where a session does not say otherwise.
        workers: How many processes compute beside one that steps again and again, where many views have work.
        memory: How many bytes a process that opens the project may take, with its workers; None for what the machine
            has.
        strict: Whether a file that is wrong keeps Dagster from loading the project.
        inlining: Which batches are stored in the catalog; None for those that the budget says.
        hot_bytes: How many bytes of what is read again and again a process keeps in memory; None for what the budget
            says.
        decoded_bytes: How many bytes of it are on disk besides, decoded, for other processes; None for what the budget
            says.
        bucket: In which bucket the shards are; None if they are in the project's folder.
    """

    root: Path
    name: str
    timeline: str
    timelines: Mapping[str, TimelineSettings]
    catalog_url: CatalogUrl
    spark: SparkSettings
    retention_ms: int | None
    lease_ms: int
    hydration_deadline_ms: int
    as_of_deadline_ms: int
    polls_for_reads: bool
    write_deadline_ms: int
    idle_transaction_ms: int | None
    warm_runs: bool
    engine: EngineSetting
    workers: int
    memory: int | None
    strict: bool
    source_folders: tuple[Path, ...]
    output_folders: tuple[Path, ...]
    manifest: str | None
    manifest_connection: str | None
    expect_files_ms: int
    hot_bytes: int | None
    decoded_bytes: int | None
    bucket: BucketSettings | None
    inlining: Inlining | None = None

    @property
    def state(self) -> Path:
        """The folder of the engine's own state."""
        return self.root / STATE_FOLDER

    @property
    def shards_called(self) -> str:
        """What to call the place of the shards before people."""
        return str(self.state / FOLDER) if self.bucket is None else f"{self.bucket.uri}/{FOLDER}"

    def shard_place(self) -> ShardPlace:
        """Returns where the project's shards are, anew at each call."""
        if self.bucket is None:
            return ShardFolder(self.state)
        return ShardBucket(
            self.bucket.uri, self.bucket.store, self.state / "objects", self.root, self.bucket.copies_bytes
        )

    def spark_config(self) -> SparkConfig:
        """Returns how the project's Spark is reached."""
        return SparkConfig(
            state_dir=self.spark.folder or self.state / "spark",
            remote=self.spark.remote,
            master=self.spark.master,
            conf=self.spark.conf,
            plan_bytes=self.spark.plan_bytes,
            probe_dir=self.state,
            start_seconds=self.spark.start_ms / 1000,
            idle_seconds=None if self.spark.idle_ms is None else self.spark.idle_ms / 1000,
            driver_memory=_heap(self.memory),
        )

    @property
    def most_workers(self) -> int:
        """How many workers a process has at most: so many as find room in memory, beside the process itself."""
        return self.workers if self.memory is None else min(self.workers, max(self.memory // _LEAST_SHARED - 1, 0))

    @property
    def process_memory(self) -> int | None:
        """How many bytes a process may take, and each of its workers; None for what the machine has."""
        return None if self.memory is None else self.memory // (1 + self.most_workers)

    def decoded_files(self) -> DecodedFiles | None:
        """Returns what keeps decoded columns of data files on disk, anew at each call; None if none are to be there."""
        return None if self.decoded_bytes == 0 else DecodedFiles(self.state / "decoded", self.decoded_bytes)

    @property
    def assets(self) -> Path:
        """The folder of SQL files; an embedded project has none."""
        return self.root / "assets"

    def clock_of(self, timeline: str) -> Path | None:
        """Returns the file that tells a timeline's time; None where the wall clock does."""
        return self.timelines[timeline].clock if timeline in self.timelines else None

    def source_folder(self, folder: str) -> Path:
        """Returns the folder that a source names, relative to the root, if sources may read there.

        What is a link counts as where it leads.

        Raises:
            FolderNotAllowed: It is neither in the project nor in a folder that `mz.toml` names.
        """
        path = self.root / folder
        self._check_allowed(path, path, self.source_folders, "sources read", "sources")
        return path

    def source_file(self, path: str) -> Path:
        """Returns a file that metadata of a source name, if sources may read there.

        Raises:
            FolderNotAllowed: As `source_folder`.
        """
        found = self.root / path
        self._check_allowed(found, found.parent, self.source_folders, "sources read", "sources")
        return found

    def table_folder(self, uri: str) -> Path:
        """Returns the folder of a table that a URI names, relative to the root, if sources may read there.

        Raises:
            FolderNotAllowed: As `source_folder`.
            NotSupportedError: It is not in a file system of this machine.
        """
        return self.source_folder(_local_path(uri)).resolve()

    def output_folder(self, uri: str) -> Path:
        """Returns the folder of a table that a sink is to write, relative to the root, if it may be written there.

        Raises:
            FolderNotAllowed: As `output_path`.
            NotSupportedError: It is not in a file system of this machine.
        """
        found = self.output_path(_local_path(uri)).resolve()
        if found == self.root.resolve():
            raise FolderNotAllowed("a table cannot take the project's folder", hint="Name a folder in it.")
        return found

    def manifest_path(self) -> Path | None:
        """Returns the file that says which versions of what sinks write belong together; None for none, or in a store.

        Raises:
            FolderNotAllowed: As `output_path`.
        """
        if self.manifest is None or self.manifest_connection is not None:
            return None
        return self.output_path(self.manifest)

    def output_path(self, path: str) -> Path:
        """Returns what COPY is to write, relative to the root, if it may be written there.

        What is a link counts as where it leads.

        Raises:
            FolderNotAllowed: It is neither in the project nor in a folder that `mz.toml` names; or it is the engine's
                own, or one of the files that define the project.
        """
        found = self.root / path_of(path)
        self._check_allowed(found, found.parent, self.output_folders, "COPY and sinks write", "outputs")
        place = found.resolve()
        if place == (self.root / SETTINGS_FILE).resolve() or place.is_relative_to(self.assets.resolve()):
            raise FolderNotAllowed(
                f'"{found}" is part of what defines the project', hint="Name a file in a folder of its own."
            )
        return found

    def _check_allowed(self, path: Path, folder: Path, allowed: tuple[Path, ...], what: str, table: str) -> None:
        found = path.resolve()
        if found.is_relative_to(self.state.resolve()):
            raise FolderNotAllowed(
                f'folder "{folder}" is the engine\'s own', hint=f'Name a folder outside of "{self.state}".'
            )
        if not any(found.is_relative_to(one.resolve()) for one in (self.root, *allowed)):
            to_name = found if path == folder else found.parent
            raise FolderNotAllowed(
                f'folder "{folder}" is outside of the project',
                detail=None if str(found) == str(path) else f'It leads to "{found}".',
                hint=f"To let {what} there, add to {self.root / SETTINGS_FILE}, in the table [{table}]: "
                f"folders = [{_quoted(str(to_name))}].",
            )

    @classmethod
    def find(cls, start: Path | str) -> Project:
        """Returns the project whose root is `start` or the nearest folder above it that holds `mz.toml`.

        Raises:
            NoProject: There is none.
            BadSettings: Its settings are wrong.
        """
        start = Path(start).resolve()
        for folder in (start, *start.parents):
            if (folder / SETTINGS_FILE).is_file():
                return cls.load(folder)
        raise NoProject.at(f'"{start}" or above it')

    @classmethod
    def find_or_embed(cls, start: Path | str) -> Project:
        """Returns the project around `start`, or an embedded one in `start` itself."""
        try:
            return cls.find(start)
        except NoProject:
            return cls.load(start)

    @classmethod
    def load(cls, root: Path | str) -> Project:
        """Returns the project at `root`; without a `mz.toml` an embedded one, with all defaults.

        Raises:
            BadSettings: The file is no TOML, or a setting is unknown or of the wrong type.
        """
        from mz_dagster.adapter.settings_file import read_settings

        root = Path(root).resolve()
        if root.exists() and not root.is_dir():
            raise BadSettings(f'"{root}" is not a folder', hint="Name a folder, or a path at which one can be made.")
        path = root / SETTINGS_FILE
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as error:
            raise BadSettings(f'cannot read "{path}": {error}', hint="Make the file readable, as UTF-8.") from error
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BadSettings(f'"{path}" is not TOML: {error}', hint="Correct that line.") from error
        given = read_settings(values, root, path)
        given["name"] = given["name"] or root.name
        given["catalog_url"] = given["catalog_url"] or CatalogUrl.of_file(root / STATE_FOLDER / "catalog.sqlite")
        given["engine"] = engine_setting_of(os.environ.get(ENGINE_VARIABLE) or given["engine"])
        rows, size = given.pop("inline_rows"), given.pop("inline_bytes")
        if rows is not None or size is not None:
            usual = budget()
            rows, size = (usual.inlined_rows if rows is None else rows), (usual.inlined_bytes if size is None else size)
            given["inlining"] = Inlining(rows, size)
        made = cls(root, **given)
        made.manifest_path()  # refused here, not by the first step
        return made


def _local_path(uri: str) -> str:
    """Returns the path that a URI of this machine's files names.

    Example:
        >>> _local_path("file:///a%20b"), _local_path("lake/t")
        ('/a b', 'lake/t')
    """
    scheme, separated, rest = uri.partition("://")
    if not separated:
        return uri
    if scheme != "file" or not rest.startswith("/"):
        raise NotSupportedError(
            f'tables of "{scheme}://" are not supported yet',
            detail="Tables are in a file system that this process sees, or in an object store: S3, GCS or Azure.",
            hint="Name a folder, relative to the project, or file:///..., or s3://..., gs://... or az://... with a "
            "CONNECTION.",
        )
    return unquote(rest)


def _quoted(text: str) -> str:
    """Returns a text as TOML has it."""
    return json.dumps(text, ensure_ascii=False)


def _heap(memory: int | None) -> str:
    """Returns the heap of a Spark that is started here, where a process may take so much memory."""
    least, most = _HEAPS
    return f"{max(least, most if memory is None else min(memory, most)) >> 20}m"
