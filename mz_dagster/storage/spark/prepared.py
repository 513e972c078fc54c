"""What makes starts of a Spark on this machine quick, made once: an archive of its classes, and its packages resolved.

A JVM that starts Spark reads, checks and links some 20,000 classes, and Spark asks Ivy for Delta's jars; both come out
the same each time. `prepare` starts a server once, lets it work a little, and keeps what that came to: the archive
that the JVM writes at its end (class data sharing), which later ones map into their memory, and the list of jars
(`docs/performance.md` has what that saves).

Owns one folder for each Java, Spark and set of packages below `XDG_CACHE_HOME`: `classes.jsa` and `prepared.json`.
Invariants: a folder is whole or not there; nobody else may write there, as what lies there is executed; nothing depends
on it. The JVM compares the archive with its class path and goes on without where they differ; jars that are gone are
resolved anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mz_dagster.storage.spark.launch import java_version, spark_home

_logger = logging.getLogger(__name__)

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PACKAGES = "spark.jars.packages"
JARS = "spark.jars"
CLASSES = "classes.jsa"
PREPARED = "prepared.json"
#: Signs that mean something in a list of jars.
_SPECIAL = frozenset(",*?[]{}\\")


@dataclass(frozen=True, slots=True)
class PreparedStart:
    """What is kept for starts of one Spark on one Java.

    Attributes:
        folder: Where it lies.
        jars: The files that its packages were resolved to, all there.
    """

    folder: Path
    jars: tuple[str, ...]

    @property
    def classes(self) -> Path:
        """The archive; a Java that writes none has none."""
        return self.folder / CLASSES


def with_prepared_start(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of a Spark about to be started, changed to use what was prepared for them, if anything.

    Args:
        settings: As `server_conf` returns them.
    """
    found = find_prepared_start(settings)
    if found is None:
        return dict(settings)
    changed = dict(settings)
    if not any(_SPECIAL.intersection(jar) for jar in found.jars):
        del changed[_PACKAGES]
        changed[JARS] = ",".join([*own_jars(settings), *found.jars])
    if found.classes.exists():
        # The last of several wins: the user's own.
        changed[JAVA_OPTIONS] = (
            f"{archive_option('SharedArchiveFile', found.classes)} {settings.get(JAVA_OPTIONS, '')}".strip()
        )
    return changed


def find_prepared_start(settings: Mapping[str, str]) -> PreparedStart | None:
    """Returns what was prepared for a Spark of these settings; None: nothing, or nothing that can still be used."""
    folder = prepared_folder(settings)
    try:
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            _logger.warning("%s is not used: others may write there", folder)
            return None
        jars = tuple(map(str, json.loads((folder / PREPARED).read_text(encoding="utf-8"))["jars"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        _logger.warning("%s is not used: %s", folder, error)
        return None
    if not all(map(os.path.exists, jars)):
        return None
    with suppress(OSError):  # of a folder that is only read
        os.utime(folder)  # what nobody uses goes first
    return PreparedStart(folder, jars)


def prepared_folder(settings: Mapping[str, str]) -> Path:
    """Returns where what fits is kept: by Java, Spark, and whatever decides which jars there are."""
    facts = {
        "java": java_version(),
        "spark": [str(spark_home()), metadata.version("pyspark")],
        "packages": {key: value for key, value in settings.items() if key.startswith(JARS) and key != JARS},
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
    return _cache() / digest


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mz_dagster" / "spark"


def own_jars(settings: Mapping[str, str]) -> list[str]:
    """Returns the jars that the user names."""
    return [jar for jar in settings.get(JARS, "").split(",") if jar]


def archive_option(name: str, path: Path) -> str:
    """Returns an option of the JVM as Spark's launcher takes it apart: in quotes, a backslash hides what follows."""
    quoted = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'-XX:{name}="{quoted}"'
