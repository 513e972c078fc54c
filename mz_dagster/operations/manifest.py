"""The manifest of a backup: which files it consists of, and how to tell that they are all there and unharmed.

It is written last, into a file of its own that is then renamed. So a backup without a manifest is one that did not
finish, and a manifest that differs from its own checksum was damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mz_dagster.disk import make_private_file, sync, sync_files
from mz_dagster.errors import OperationalError
from mz_dagster.progress import task
from mz_dagster.storage.shard_copy import CopiedFile

MANIFEST = "manifest.json"
FORMAT = 1

CATALOG = "catalog.sqlite"
STATE = "state"
PROJECT = "project"
"""What lies in a backup beside its manifest: a file, and two folders."""


class BackupUnusable(OperationalError):
    """A folder that is no backup, or one that is incomplete or damaged; nothing was made of it."""

    sqlstate = "58030"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself.

    Attributes:
        made_by: The version of the code.
        made_at_ms: When the catalog's state was taken, in milliseconds since the epoch.
        project: The project's name.
        left_out: Settings that are not in the backup, because they are secret or of the old place.
        files: Everything else in the backup's folder, sorted by path.
    """

    made_by: str
    made_at_ms: int
    project: str
    left_out: tuple[str, ...]
    files: tuple[CopiedFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(one.size for one in self.files)


def describe(root: Path, path: str) -> CopiedFile:
    """Returns size and hash of the file at `path` below a backup's root."""
    with open(root / path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return CopiedFile(path, os.fstat(file.fileno()).st_size, digest.hexdigest())


def write_manifest(root: Path, manifest: Manifest) -> None:
    """Makes what lies in a backup's folder a backup, once everything of it is on disk."""
    sync_files(root, (one.path for one in manifest.files))
    body = {"format": FORMAT, **asdict(manifest)}
    unfinished = root / f"{MANIFEST}.tmp"
    make_private_file(unfinished)
    unfinished.write_text(json.dumps({"sha256": _checksum(body), **body}, indent=1), encoding="utf-8")
    sync(unfinished)
    unfinished.rename(root / MANIFEST)
    sync(root)


def read_manifest(root: Path) -> Manifest:
    """Returns the manifest of the backup in a folder.

    Raises:
        BackupUnusable: There is none, it is damaged, of a newer format, or names what cannot be a part of a backup.
    """
    try:
        if not (root / MANIFEST).is_file():
            raise FileNotFoundError
        text = (root / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BackupUnusable(
            f'"{root}" is no backup: it has no {MANIFEST}',
            detail="A backup gets it last, so one without it did not finish.",
            hint="Use another backup; this folder can be removed.",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BackupUnusable(f'cannot read the manifest of "{root}": {error}', hint="Use another backup.") from error
    try:
        body: dict[str, Any] = json.loads(text)
        intact = body.pop("sha256") == _checksum(body)
        found = body.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError):
        intact, found = False, None
    if not intact:
        raise BackupUnusable(f'the manifest of "{root}" is damaged', hint="Use another backup.")
    if found != FORMAT:
        raise BackupUnusable(
            f'the backup in "{root}" was made by a newer version',
            detail=f"Its format is {found}; this version knows {FORMAT}.",
            hint=f"Restore it with mz_dagster {body['made_by']} or later.",
        )
    try:
        files = tuple(CopiedFile(str(one["path"]), int(one["size"]), str(one["sha256"])) for one in body.pop("files"))
        manifest = Manifest(files=files, left_out=tuple(body.pop("left_out")), **body)
    except (ValueError, KeyError, TypeError) as error:
        raise BackupUnusable(f'the manifest of "{root}" is not one of a backup', hint="Use another backup.") from error
    _check_paths(root, manifest)
    return manifest


def _check_paths(root: Path, manifest: Manifest) -> None:
    """Refuses a manifest that names what no backup holds: it may be forged, and a restore makes what it names."""
    seen: set[str] = set()
    for one in manifest.files:
        parts = one.path.split("/")
        is_known = one.path == CATALOG or (len(parts) > 1 and parts[0] in (STATE, PROJECT))
        if not is_known or "\0" in one.path or any(not part or part.startswith(".") for part in parts):
            raise BackupUnusable(
                f'the manifest of "{root}" names a file that cannot be of a backup: {one.path!r}',
                hint="It was not written by a backup; use another one. Nothing was restored.",
            )
        if one.path in seen:
            raise BackupUnusable(
                f'the manifest of "{root}" names {one.path!r} twice', hint="Use another backup. Nothing was restored."
            )
        seen.add(one.path)


def verify(root: Path, manifest: Manifest) -> None:
    """Checks size and hash of every file of a backup.

    Raises:
        BackupUnusable: A file is missing or differs; the error names the first, and how many there are.
    """
    broken = []
    place = root.resolve()
    with task("checking the backup", manifest.bytes, "bytes") as checking:
        for one in manifest.files:
            path = place / one.path
            try:
                if path.resolve() != path or not stat.S_ISREG(path.lstat().st_mode):
                    broken.append(f"{one.path}: not a file of its own, but a link or a device")
                    continue
                found = describe(root, one.path)
            except OSError as error:
                broken.append(f"{one.path}: {error.strerror}")
            else:
                if found != one:
                    broken.append(f"{one.path}: not what was written")
            checking.advance(one.size)
    if broken:
        raise BackupUnusable(
            f'{len(broken)} files of the backup in "{root}" are missing or damaged',
            detail=f"The first is {broken[0]}.",
            hint="Use another backup; nothing was restored.",
        )


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
