"""Whose the shards in a folder are.

The folder of all shards bears the id of the project whose catalog lists their batches, so that a catalog never takes
another's shards for its own: both hand out the same ids, and the batches of one would overwrite the other's. A folder
from before it had an id, or a new one, is given that of the first catalog which it is opened with, if that knows it.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from mz_dagster.catalog import Catalog
from mz_dagster.disk import make_private, make_private_folder, sync
from mz_dagster.errors import OperationalError, ProgrammingError

FOLDER = "shards"
"""The folder of all shards, in that of the engine's state."""

MARK = ".project"
"""The file in it that holds the project's id."""

_MISTAKEN = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]|^\\\x00-\x1f\x7f]")
"""What `deltalake` takes for something else in a path: an escape is decoded twice, the others end its process."""

_TOGETHER = re.compile(r".*:.*[*?{}]|.*[*?{}].*:", re.DOTALL)
"""What Spark mistakes beside a colon: where one part of a path could be a pattern, it takes another for a scheme."""


class PlaceUnusable(ProgrammingError):
    """A folder in which no project can be, because of its name or of one above it."""

    sqlstate = "58P02"


class ShardsElsewhere(OperationalError):
    """A folder that lacks the shards whose batches a catalog lists."""

    sqlstate = "58030"


def check_place(root: Path) -> None:
    """Refuses a folder for shards under whose path they could not be read or written, before anything is made there.

    Raises:
        PlaceUnusable: It is such a folder.
    """
    path = str(root.absolute())
    alone, together = _MISTAKEN.search(path), _TOGETHER.match(path)
    if alone is not None or together is not None:
        what = repr(alone[0]) if alone is not None else "a colon and one of * ? { }"
        raise PlaceUnusable(
            f"a project cannot be in a folder whose path holds {what}",
            detail=f'What its tables are read and written with mistakes that; the path is "{root}".',
            hint="Rename that folder, or choose another one.",
        )


def owner_of(root: Path) -> str | None:
    """Returns the id of the project whose shards are below a folder, or None if that is not known."""
    try:
        return (root / FOLDER / MARK).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ShardsElsewhere(
            f'cannot read whose the shards in "{root / FOLDER}" are: {error}',
            hint=f'Make "{root / FOLDER / MARK}" readable.',
        ) from error


def claim_shards(catalog: Catalog, root: Path) -> None:
    """Gives the shards below a folder the id of a catalog's project, if they have none; a race is won by one.

    On a disk that cannot be written nothing is changed.

    Raises:
        ShardsElsewhere: The catalog lists batches of which nothing is there, or the shards are another project's.
    """
    folder, id = root / FOLDER, catalog.project_id()
    owner = owner_of(root)
    if owner is None:
        listed = [row for row in catalog.collections() if (root / row.shard).exists()]
        if not listed and any(stats.files for _, stats in catalog.live_batch_counts().values()):
            raise ShardsElsewhere(
                f'the shards of this catalog are not in "{folder}"',
                detail="The catalog lists batches, and of none there is a folder.",
                hint="Open the project that the catalog is of, or correct catalog.url in mz.toml; "
                "if the shards are lost, restore a backup.",
            )
        _mark(folder, id)
        owner = owner_of(root) or id
    elif folder.is_dir():
        make_private(folder)
    if owner != id:
        raise ShardsElsewhere(
            f'the shards in "{folder}" are another project\'s',
            detail=f"They are of project {owner}, and the catalog is of {id}.",
            hint="Correct catalog.url in mz.toml, or open the project whose catalog it is.",
        )


def _mark(folder: Path, id: str) -> None:
    """Writes the mark, unless there is one by then; a link is made once, or not at all."""
    draft = folder / f"{MARK}.{uuid4().hex}"
    try:
        make_private_folder(folder)
        draft.write_text(f"{id}\n", encoding="ascii")
        make_private(draft)
        sync(draft)
        with suppress(FileExistsError):
            os.link(draft, folder / MARK)
        sync(folder)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise OperationalError(
                f'cannot write in "{folder}": {error.strerror}', hint="Check its disk and free space, then try again."
            ) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
