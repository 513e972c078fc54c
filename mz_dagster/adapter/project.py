"""A project: the folder that holds a team's SQL files, and the settings in its `mz.toml`.

Owns the reading of `mz.toml` and the layout below the project's root:

    mz.toml           settings, all optional
    assets/           SQL files: the project's sources, tables, views and indexes
    .mz/              the engine's own state: catalog, shards, the Spark server's files, Dagster's instance

An embedded project is any other folder: no `mz.toml`, no `assets/`, all settings at their defaults.
Unknown settings are refused, so that a typing error never silently means the default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mz_dagster.errors import ProgrammingError

SETTINGS_FILE = "mz.toml"
STATE_FOLDER = ".mz"
DEFAULT_TIMELINE = "default"


class BadSettings(ProgrammingError):
    """Reports that `mz.toml` cannot be read or says something that is not understood."""

    sqlstate = "F0000"


class NoProject(ProgrammingError):
    """Reports that neither a folder nor any above it is a project."""

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
    """

    remote: str | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Project:
    """Is a project's root folder and its settings.

    Attributes:
        root: The absolute folder.
        name: For display.
        timeline: The timeline of objects that name none.
        timelines: By name; always holds `timeline`.
        catalog_url: SQLAlchemy URL of the catalog.
        spark: Which Spark.
        retention_ms: How much history every collection keeps readable behind its upper; None keeps all.
        lease_ms: How long a lease lasts before it must be renewed, in milliseconds.
    """

    root: Path
    name: str
    timeline: str
    timelines: Mapping[str, TimelineSettings]
    catalog_url: str
    spark: SparkSettings
    retention_ms: int | None
    lease_ms: int = 60_000

    @property
    def state(self) -> Path:
        """The folder of the engine's own state."""
        return self.root / STATE_FOLDER

    @property
    def assets(self) -> Path:
        """The folder of SQL files; an embedded project has none."""
        return self.root / "assets"

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
            settings = _Table(tomllib.loads(text), str(path), "")
        except tomllib.TOMLDecodeError as error:
            raise BadSettings(f'"{path}" is not TOML: {error}', hint="Correct that line.") from error
        return cls._from_settings(root, settings)

    @classmethod
    def _from_settings(cls, root: Path, settings: _Table) -> Project:
        project = settings.table("project")
        catalog = settings.table("catalog")
        spark = settings.table("spark")
        retention = settings.table("retention")
        declared = settings.table("timelines")
        name = project.text("name") or root.name
        timeline = project.text("timeline") or DEFAULT_TIMELINE
        timelines = {timeline: TimelineSettings(timeline)}
        for key in list(declared.values):
            one = declared.table(key)
            clock = one.text("clock")
            timelines[key] = TimelineSettings(key, None if clock is None else root / clock)
            one.refuse_rest()
        keep = retention.duration_ms("keep")
        remote, master, conf = spark.text("remote"), spark.text("master"), spark.mapping("conf")
        if remote is not None and master is not None:
            raise BadSettings(
                "settings spark.remote and spark.master exclude each other",
                hint="Keep one of them; without either a local Spark Connect server is started on demand.",
            )
        url = catalog.text("url") or f"sqlite:///{root / STATE_FOLDER / 'catalog.sqlite'}"
        for table in (project, catalog, spark, retention, declared, settings):
            table.refuse_rest()
        return cls(root, name, timeline, timelines, url, SparkSettings(remote, master, conf), keep)


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


class _Table:
    """Is a TOML table from which settings are taken one by one, so that what is left over is unknown."""

    def __init__(self, values: dict[str, Any], path: str, prefix: str) -> None:
        self.values = dict(values)
        self._path = path
        self._prefix = prefix

    def table(self, key: str) -> _Table:
        found = self.values.pop(key, {})
        if not isinstance(found, dict):
            raise self._wrong(key, "a table")
        return _Table(found, self._path, f"{self._prefix}{key}.")

    def text(self, key: str) -> str | None:
        found = self.values.pop(key, None)
        if found is not None and (not isinstance(found, str) or not found):
            raise self._wrong(key, "a text")
        return found

    def mapping(self, key: str) -> dict[str, str]:
        found = self.values.pop(key, {})
        if not isinstance(found, dict) or not all(isinstance(value, str | int | float) for value in found.values()):
            raise self._wrong(key, 'a table of settings, with quoted names: "spark.driver.memory" = "4g"')
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()}

    def duration_ms(self, key: str) -> int | None:
        found = self.text(key)
        if found is None:
            return None
        milliseconds = parse_duration_ms(found)
        if milliseconds is None:
            raise self._wrong(key, f"a duration such as '7 d'; the units are {', '.join(DURATION_UNITS_MS)}")
        return milliseconds

    def refuse_rest(self) -> None:
        for key in self.values:
            raise BadSettings(
                f'unknown setting "{self._prefix}{key}" in "{self._path}"',
                hint="Remove it, or correct its name; the README lists all settings.",
            )

    def _wrong(self, key: str, wanted: str) -> BadSettings:
        return BadSettings(
            f'setting "{self._prefix}{key}" in "{self._path}" must be {wanted}', hint="The README lists all settings."
        )
