"""Whose the shards in a place are.

The place of all shards bears the id of the project whose catalog lists their batches, so that a catalog never takes
another's shards for its own: both hand out the same ids, and the batches of one would overwrite the other's. A folder
from before it had an id, or a new one, is given that of the first catalog which it is opened with, if that knows it.
"""

from __future__ import annotations

import errno
import re
from pathlib import Path

from mz_dagster.catalog import Catalog
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.storage.shard_place import FOLDER, MARK, ShardPlace

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


def owner_of(place: ShardPlace) -> str | None:
    """Returns the id of the project whose shards are in a place, or None if that is not known."""
    try:
        return place.mark()
    except OSError as error:
        raise ShardsElsewhere(
            f'cannot read whose the shards in "{place.called(FOLDER)}" are: {error}',
            hint=f'Make "{place.called(f"{FOLDER}/{MARK}")}" readable.',
        ) from error


def claim_shards(catalog: Catalog, place: ShardPlace) -> None:
    """Gives the shards in a place the id of a catalog's project, if they have none; a race is won by one.

    On a disk that cannot be written nothing is changed.

    Raises:
        ShardsElsewhere: The catalog lists batches of which nothing is there, or the shards are another project's.
    """
    called, id = place.called(FOLDER), catalog.project_id()
    owner = owner_of(place)
    if owner is None:
        if catalog.restored_for is not None:
            raise ShardsElsewhere(
                "the catalog is that of a restore that did not finish",
                hint="Restore again, into any folder, or name another catalog.",
            )
        listed = [row for row in catalog.collections() if place.has_shard(row.shard)]
        if not listed and any(stats.files for _, stats in catalog.live_batch_counts().values()):
            raise ShardsElsewhere(
                f'the shards of this catalog are not in "{called}"',
                detail="The catalog lists batches, and of none there is a folder.",
                hint="Open the project that the catalog is of, or correct catalog.url or storage.uri in mz.toml; "
                "if the shards are lost, restore a backup.",
            )
        try:
            place.set_mark(id)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise OperationalError(
                    f'cannot write in "{called}": {error.strerror or error}',
                    hint="Check its disk and free space, then try again.",
                ) from error
        owner = owner_of(place) or id
    else:
        place.make_fit()
    if owner != id:
        raise ShardsElsewhere(
            f'the shards in "{called}" are another project\'s',
            detail=f"They are of project {owner}, and the catalog is of {id}.",
            hint="Correct catalog.url or storage.uri in mz.toml, or open the project whose catalog it is.",
        )
