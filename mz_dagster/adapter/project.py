"""A project: the folder that holds a team's SQL files, and the settings in its `mz.toml`.

Owns the reading of `mz.toml` and the layout below the project's root:

    mz.toml           settings, all optional
    assets/           SQL files: the project's sources, tables, views and indexes
    .mz/              the engine's own state: catalog, shards, the Spark server's files, Dagster's instance

An embedded project is any other folder: no `mz.toml`, no `assets/`, all settings at their defaults.
Unknown settings are refused, so that a typing error never silently means the default. Paths are relative to the
project's root, never to a process's working directory. In a text, `${NAME}` stands for a variable of the environment
(`$${NAME}` for itself), so that secrets need not stand in the file.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload
from urllib.parse import unquote

from mz_dagster.budget import EngineSetting, budget
from mz_dagster.catalog.url import BadCatalogUrl, CatalogUrl
from mz_dagster.errors import NotSupportedError, ProgrammingError
from mz_dagster.storage.append import LEASE_MS
from mz_dagster.storage.inlined import Inlining
from mz_dagster.storage.object_store import OBJECT_STORES, ObjectStore, Secret, Web
from mz_dagster.storage.shard_bucket import ShardBucket
from mz_dagster.storage.shard_place import FOLDER, ShardFolder, ShardPlace
from mz_dagster.storage.spark.config import IDLE_SECONDS, PLAN_BYTES, START_SECONDS

SETTINGS_FILE = "mz.toml"
#: A variable of the environment that overrides the setting `engine` of the file.
ENGINE_VARIABLE = "MZ_ENGINE"
STATE_FOLDER = ".mz"
DEFAULT_TIMELINE = "default"

_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_STORES = [one for one in OBJECT_STORES.values() if one is not Web]
#: The settings of `storage` that are secret.
_SECRETS = frozenset(option.replace(" ", "_") for one in _STORES for option in one.secrets)
_OBJECT = re.compile(r"(s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._=-]+)+")
_BUCKET = re.compile(r"(?P<scheme>s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._=-]+)*/?")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+")
_URL = re.compile(r"https?://[^/@\s]+(/[^@\s]*)?")

RETENTION_MS = 86_400_000
"""How much history is kept where `mz.toml` does not say, in milliseconds: a day."""

KEEP_ALL = "all"
#: What `spark.idle` says of a server that does not end by itself.
NEVER = "never"
_IDLE_MS = round(IDLE_SECONDS * 1000)
_START_MS = round(START_SECONDS * 1000)
#: The shortest time after which the local server may end, in milliseconds.
SHORTEST_IDLE_MS = 60_000
"""What `retention.keep` says where no history is ever forgotten."""

HYDRATION_DEADLINE_MS = 3_600_000
"""After how long CREATE gives up what it hydrates where `mz.toml` does not say, in milliseconds."""

AS_OF_DEADLINE_MS = 10_000
"""For how long AS OF waits for a time to come where `mz.toml` does not say, in milliseconds."""

COPIES_BYTES = 10_000_000_000
"""How many bytes of copies of a bucket's files are kept that nobody uses, where `mz.toml` does not say."""

SHORTEST_LEASE_MS = 3_000
"""Below this a lease could run out between two renewals of a busy process, in milliseconds."""

LONGEST_LEASE_MS = 3_600_000
"""Nobody shall wait longer than this for a machine that is gone, in milliseconds."""

PLAN_OPERATORS = 10_000
"""How many operators Spark may have to plan at once for a step where `mz.toml` does not say; it takes minutes then."""

WRITE_DEADLINE_MS = 30_000
"""For how long a write that loses races tries again where `mz.toml` does not say, in milliseconds."""

IDLE_TRANSACTION_MS = 600_000
"""How long a transaction block may do nothing where `mz.toml` does not say, in milliseconds."""


class BadSettings(ProgrammingError):
    """`mz.toml` cannot be read or says something that is not understood."""

    sqlstate = "F0000"


class FolderNotAllowed(ProgrammingError):
    """A folder that is the engine's own, or is outside of the project and not named in `mz.toml`."""

    sqlstate = "42501"


class NoProject(ProgrammingError):
    """Neither a folder nor any above it is a project."""

    sqlstate = "3D000"


@dataclass(frozen=True, slots=True)
class TimelineSettings:
    """Says how a timeline tells time.

    Attributes:
        name: The timeline's id.
        clock: A file that holds the feed's own time as epoch milliseconds, or None for the wall clock. The feed
            promises: whatever it drops after it wrote T into the file belongs to a time after T.
    """

    name: str
    clock: Path | None = None


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Says which Spark runs the steps; at most one of `remote` and `master`.

    Attributes:
        remote: A Spark Connect URL, `sc://host:port`.
        master: A classic master, `local[2]` or `spark://host:port`.
        conf: Spark's own settings, passed through.
        folder: Where the local server keeps its files; projects that name the same one share a server. None: the
            project's own.
        idle_ms: After how long without use the local server ends, in milliseconds; None: never.
        start_ms: How long to wait for a Spark to start, and for a named one to show that it is fit, in milliseconds.
        plan_operators: Nothing is created of which a step would have Spark plan more operators at once.
        plan_bytes: A larger plan is not sent to Spark.
    """

    remote: str | None = field(default=None, repr=False)
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: Path | None = None
    idle_ms: int | None = _IDLE_MS
    start_ms: int = _START_MS
    plan_operators: int = PLAN_OPERATORS
    plan_bytes: int = PLAN_BYTES


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """Says in which bucket the shards are.

    Attributes:
        uri: `s3://bucket/prefix`, or `gs`, or `az` with a container.
        store: What leads there; its secrets are references.
        copies_bytes: How many bytes of copies of its files are kept that nobody uses.
    """

    uri: str
    store: ObjectStore
    copies_bytes: int = COPIES_BYTES


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
        engine: Who computes, where a session does not say otherwise.
        strict: Whether a file that is wrong keeps Dagster from loading the project.
        inlining: Which batches are stored in the catalog; None for those that the budget says.
        hot_bytes: How many bytes of what is read again and again a process keeps in memory; None for what the budget
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
    lease_ms: int = LEASE_MS
    hydration_deadline_ms: int = HYDRATION_DEADLINE_MS
    as_of_deadline_ms: int = AS_OF_DEADLINE_MS
    polls_for_reads: bool = True
    write_deadline_ms: int = WRITE_DEADLINE_MS
    idle_transaction_ms: int | None = IDLE_TRANSACTION_MS
    engine: EngineSetting = EngineSetting.AUTO
    strict: bool = False
    source_folders: tuple[Path, ...] = ()
    output_folders: tuple[Path, ...] = ()
    manifest: str | None = None
    manifest_connection: str | None = None
    expect_files_ms: int = 0
    inlining: Inlining | None = None
    hot_bytes: int | None = None
    bucket: BucketSettings | None = None

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
        found = self.root / Path(path).expanduser()
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
    def find(cls, start: Path) -> Project:
        """Returns the project whose root is `start` or the nearest folder above it that holds `mz.toml`.

        Raises:
            NoProject: There is none.
            BadSettings: Its settings are wrong.
        """
        for folder in (start.resolve(), *start.resolve().parents):
            if (folder / SETTINGS_FILE).is_file():
                return cls.load(folder)
        raise NoProject(
            f'no project in "{start}" or above it',
            hint=f'Run from a folder that holds "{SETTINGS_FILE}", or name one with --project.',
        )

    @classmethod
    def find_or_embed(cls, start: Path) -> Project:
        """Returns the project around `start`, or an embedded one in `start` itself."""
        try:
            return cls.find(start)
        except NoProject:
            return cls.load(start)

    @classmethod
    def load(cls, root: Path) -> Project:
        """Returns the project at `root`; without a `mz.toml` an embedded one, with all defaults.

        Raises:
            BadSettings: The file is no TOML, or a setting is unknown or of the wrong type.
        """
        root = root.resolve()
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
            # A secret of the store stays a reference.
            settings = _Table(
                {**_expanded({**values, "storage": {}}, path), **_of_storage(values, path)}, str(path), ""
            )
        except tomllib.TOMLDecodeError as error:
            raise BadSettings(f'"{path}" is not TOML: {error}', hint="Correct that line.") from error
        return cls._from_settings(root, settings)

    @classmethod
    def _from_settings(cls, root: Path, settings: _Table) -> Project:
        project = settings.table("project")
        catalog = settings.table("catalog")
        spark = settings.table("spark")
        retention = settings.table("retention")
        leases = settings.table("leases")
        writes = settings.table("writes")
        reads = settings.table("reads")
        sources = settings.table("sources")
        outputs = settings.table("outputs")
        hydration = settings.table("hydration")
        transactions = settings.table("transactions")
        storage = settings.table("storage")
        declared = settings.table("timelines")
        name = project.text("name") or root.name
        timeline = project.text("timeline") or DEFAULT_TIMELINE
        timelines = {timeline: TimelineSettings(timeline)}
        for key in list(declared.values):
            one = declared.table(key)
            clock = one.text("clock")
            timelines[key] = TimelineSettings(key, None if clock is None else root / clock)
            one.refuse_rest()
        stated = project.text("engine")
        strict = project.flag("strict", otherwise=False)
        engine = engine_setting_of(os.environ.get(ENGINE_VARIABLE) or stated or EngineSetting.AUTO.value)
        keep = retention.duration_ms("keep", otherwise=RETENTION_MS, forever=KEEP_ALL)
        remote, master, conf = spark.text("remote"), spark.text("master"), spark.mapping("conf")
        if remote is not None and master is not None:
            raise BadSettings(
                "settings spark.remote and spark.master exclude each other",
                hint="Keep one of them; without either a local Spark Connect server is started on demand.",
            )
        folder = spark.text("folder")
        plan_operators = spark.number("plan_operators", otherwise=PLAN_OPERATORS)
        plan_bytes = spark.number("plan_bytes", otherwise=PLAN_BYTES)
        start_ms = spark.duration_ms("start", otherwise=_START_MS)
        idle_ms = spark.duration_ms("idle", otherwise=_IDLE_MS, forever=NEVER)
        if idle_ms is not None and idle_ms < SHORTEST_IDLE_MS:
            raise BadSettings(
                f'setting "spark.idle" is {idle_ms} ms',
                detail="A server that ends so soon ends between two steps, and starting one takes 15 s.",
                hint="Use a duration from '1 min' on, or 'never'; the default is '15 min'.",
            )
        if (remote or master) is not None and folder is not None:
            raise BadSettings(
                f"settings spark.folder and spark.{'remote' if remote else 'master'} exclude each other",
                hint="The folder is that of a local Spark Connect server, which is started where neither is set.",
            )
        url = catalog.url("url", root) or CatalogUrl.of_file(root / STATE_FOLDER / "catalog.sqlite")
        usual = budget()
        inline_rows = writes.number("inline_rows", otherwise=usual.inlined_rows)
        inline_bytes = writes.number("inline_bytes", otherwise=usual.inlined_bytes)
        is_usual = (inline_rows, inline_bytes) == (usual.inlined_rows, usual.inlined_bytes)
        inlining = None if is_usual else Inlining(inline_rows, inline_bytes)
        hot_bytes = reads.number("hot_bytes", otherwise=usual.hot_bytes)
        as_of_deadline_ms = reads.duration_ms("as_of_deadline", otherwise=AS_OF_DEADLINE_MS)
        polls_for_reads = reads.flag("poll", otherwise=True)
        idle_transaction_ms = transactions.duration_ms("idle_timeout", otherwise=IDLE_TRANSACTION_MS, forever=NEVER)
        deadline_ms = writes.duration_ms("deadline", otherwise=WRITE_DEADLINE_MS)
        hydration_deadline_ms = hydration.duration_ms("deadline", otherwise=HYDRATION_DEADLINE_MS)
        expect_files_ms = sources.duration_ms("expect_files", otherwise=0)
        folders = tuple(root / one for one in sources.texts("folders"))
        output_folders = tuple(root / one for one in outputs.texts("folders"))
        manifest, manifest_connection = outputs.text("manifest"), outputs.text("connection")
        if manifest_connection is not None and (manifest is None or not _OBJECT.fullmatch(manifest)):
            raise outputs.refused(
                "connection",
                "leads to a manifest in a store, and none is named",
                'Write manifest = "s3://bucket/path.json", or gs:// or az://, or leave the connection away.',
            )
        if manifest_connection is None and manifest is not None and "://" in manifest:
            raise outputs.refused(
                "manifest",
                "is reached by no connection",
                'Write connection = "name", the name of a CONNECTION, beside it.',
            )
        lease_ms = leases.duration_ms("duration", otherwise=LEASE_MS)
        if not SHORTEST_LEASE_MS <= lease_ms <= LONGEST_LEASE_MS:
            raise BadSettings(
                f'setting "leases.duration" is {lease_ms} ms',
                detail="A shorter one runs out while its holder works; a longer one keeps others waiting.",
                hint="Use a duration from '3 s' to '1 h'; the default is '60 s'.",
            )
        bucket = _bucket(storage)
        tables = (
            project,
            storage,
            catalog,
            spark,
            retention,
            leases,
            writes,
            reads,
            sources,
            outputs,
            hydration,
            transactions,
            declared,
            settings,
        )
        for table in tables:
            table.refuse_rest()
        made = cls(
            root,
            name,
            timeline,
            timelines,
            url,
            SparkSettings(
                remote,
                master,
                conf,
                None if folder is None else root / Path(folder).expanduser(),
                idle_ms=idle_ms,
                start_ms=start_ms,
                plan_operators=plan_operators,
                plan_bytes=plan_bytes,
            ),
            keep,
            source_folders=folders,
            output_folders=output_folders,
            manifest=manifest,
            manifest_connection=manifest_connection,
            expect_files_ms=expect_files_ms,
            lease_ms=lease_ms,
            hydration_deadline_ms=hydration_deadline_ms,
            as_of_deadline_ms=as_of_deadline_ms,
            polls_for_reads=polls_for_reads,
            write_deadline_ms=deadline_ms,
            idle_transaction_ms=idle_transaction_ms,
            engine=engine,
            strict=strict,
            inlining=inlining,
            hot_bytes=None if hot_bytes == usual.hot_bytes else hot_bytes,
            bucket=bucket,
        )
        made.manifest_path()  # refused here, not by the first step
        return made


def engine_setting_of(text: str) -> EngineSetting:
    """Returns the value of the setting `engine` that a text spells.

    Raises:
        BadSettings: It spells none.

    Example:
        >>> engine_setting_of("Local")
        <EngineSetting.LOCAL: 'local'>
    """
    try:
        return EngineSetting(text.lower())
    except ValueError:
        raise BadSettings(
            f'invalid value for setting "engine": "{text}"',
            hint="It is auto: this process computes what is little, Spark the rest; spark: Spark whatever it can; or "
            "local: this process whatever it can, and no Spark is started.",
        ) from None


DURATION_UNITS_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration_ms(text: str) -> int | None:
    """Returns the milliseconds of a duration: a whole number and a unit; None if it is not one.

    Example:
        >>> parse_duration_ms("30 min"), parse_duration_ms("soon")
        (1800000, None)
    """
    number, _, unit = text.partition(" ")
    if not (number.isascii() and number.isdigit() and unit in DURATION_UNITS_MS):
        return None
    return int(number) * DURATION_UNITS_MS[unit]


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


def _expanded(value: Any, path: Path) -> Any:
    """Returns what TOML says with variables of the environment in the place of their names."""
    if isinstance(value, dict):
        return {key: _expanded(one, path) for key, one in value.items()}
    if isinstance(value, list):
        return [_expanded(one, path) for one in value]
    return _VARIABLE.sub(lambda found: _variable(found, path), value) if isinstance(value, str) else value


def _variable(found: re.Match[str], path: Path) -> str:
    escaped, name = found.groups()
    if escaped:
        return found[0][1:]
    if name not in os.environ:
        raise BadSettings(
            f'the environment has no variable "{name}", which "{path}" names',
            hint="Set it where this process is started; write $${...} for the text itself.",
        )
    return os.environ[name]


def _of_storage(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Returns the table `storage` with variables in the place of their names, but where it refers to secrets."""
    table = values.get("storage")
    if not isinstance(table, dict):
        return {} if table is None else {"storage": table}
    return {"storage": {key: one if key in _SECRETS else _expanded(one, path) for key, one in table.items()}}


def _bucket(storage: _Table) -> BucketSettings | None:
    """Returns where the shards are, by the table `storage`."""
    uri = storage.text("uri")
    if uri is None:
        return None
    found = _BUCKET.fullmatch(uri)
    if found is None:
        raise storage.refused(
            "uri",
            "must name a prefix in a bucket",
            "Write s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.",
        )
    kind = next(one for one in _STORES if found["scheme"] in one.schemes)
    options: list[tuple[str, str | Secret]] = []
    for option in kind.names:
        value = storage.text(option.replace(" ", "_"))
        if value is None:
            continue
        if option in kind.secrets:
            if _REFERENCE.fullmatch(value) is None:
                raise storage.refused(
                    option.replace(" ", "_"),
                    "must say where the secret is",
                    'Write "${VARIABLE}", a variable of the environment, or "file:PATH".',
                )
            options.append((option, Secret(f"storage.{option.replace(' ', '_')}", value)))
        elif option == "endpoint" and _URL.fullmatch(value) is None:
            raise storage.refused(
                "endpoint", "must be a URL without a user", "Write https://host, or https://host:port."
            )
        else:
            options.append((option, value))
    copies_bytes = storage.number("copies_bytes", otherwise=COPIES_BYTES)
    return BucketSettings(uri.rstrip("/"), kind("storage", tuple(options)), copies_bytes)


class _Table:
    """A TOML table from which settings are taken one by one, so that what is left over is unknown."""

    def __init__(self, values: dict[str, Any], path: str, prefix: str) -> None:
        self.values = dict(values)
        self._known: list[str] = []
        self._path = path
        self._prefix = prefix

    def table(self, key: str) -> _Table:
        found = self._take(key, {})
        if not isinstance(found, dict):
            raise self._wrong(key, "a table")
        return _Table(found, self._path, f"{self._prefix}{key}.")

    def text(self, key: str) -> str | None:
        found = self._take(key)
        if found is not None and (not isinstance(found, str) or not found):
            raise self._wrong(key, "a text")
        return found

    def url(self, key: str, root: Path) -> CatalogUrl | None:
        found = self.text(key)
        try:
            return None if found is None else CatalogUrl.parse(found, root)
        except BadCatalogUrl as error:
            raise BadSettings(
                f'setting "{self._prefix}{key}" in "{self._path}": {error.message}',
                detail=error.detail,
                hint=error.hint,
            ) from error

    def texts(self, key: str) -> list[str]:
        found = self._take(key, [])
        if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
            raise self._wrong(key, "a list of texts")
        return found

    def mapping(self, key: str) -> dict[str, str]:
        found = self._take(key, {})
        if not isinstance(found, dict) or not all(isinstance(value, str | int | float) for value in found.values()):
            raise self._wrong(key, 'a table of settings, with quoted names: "spark.driver.memory" = "4g"')
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()}

    def number(self, key: str, *, otherwise: int) -> int:
        found = self._take(key, otherwise)
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise self._wrong(key, "a whole number, not negative")
        return found

    def flag(self, key: str, *, otherwise: bool) -> bool:
        found = self._take(key, otherwise)
        if not isinstance(found, bool):
            raise self._wrong(key, "true or false")
        return found

    @overload
    def duration_ms(self, key: str, *, otherwise: int) -> int: ...

    @overload
    def duration_ms(self, key: str, *, otherwise: int, forever: str) -> int | None: ...

    def duration_ms(self, key: str, *, otherwise: int, forever: str | None = None) -> int | None:
        """Returns the milliseconds of a duration; None for the word that says that it never ends."""
        found = self.text(key)
        if found is None or found == forever:
            return otherwise if found is None else None
        milliseconds = parse_duration_ms(found)
        if milliseconds is None:
            raise self._wrong(key, f"a duration such as '7 d'; the units are {', '.join(DURATION_UNITS_MS)}")
        return milliseconds

    def refused(self, key: str, why: str, hint: str) -> BadSettings:
        """Returns an error about a setting, which does not repeat its value."""
        return BadSettings(f'setting "{self._prefix}{key}" in "{self._path}" {why}', hint=hint)

    def refuse_rest(self) -> None:
        for key in self.values:
            known = ", ".join(f"{self._prefix}{one}" for one in sorted(self._known))
            raise BadSettings(
                f'unknown setting "{self._prefix}{key}" in "{self._path}"',
                detail=f"Known are {known}." if known else None,
                hint="Remove it, or correct its name; docs/project.md lists all settings.",
            )

    def _take(self, key: str, otherwise: Any = None) -> Any:
        self._known.append(key)
        return self.values.pop(key, otherwise)

    def _wrong(self, key: str, wanted: str) -> BadSettings:
        return BadSettings(
            f'setting "{self._prefix}{key}" in "{self._path}" must be {wanted}',
            hint="All settings are in docs/project.md.",
        )
