"""What the columns of a collection are called in its shard.

A name of SQL is any text; a name in Delta Lake holds no blank, is told from others whatever its case, and must not be
one that a shard has for itself. A name that will do stays; another is the column's position. It follows from all the
names, and those that will do are what every version has stored: a shard is never renamed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from mz_dagster.scalars.types import Column

#: What every shard has beside its data: of an update, and how it is laid out.
_OWN = ("mz_timestamp", "mz_diff", "mz_error", "mz_batch", "mz_bucket")
#: Signs that Delta Lake does not store in a name, and the beginning that Arrow takes for a path.
_UNSTORABLE = re.compile(r"[ ,;{}()\n\t=]|\A\.")


def shard_names(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the names in the shard, in order; those of a shard are themselves.

    Example:
        >>> shard_names(["id", "order count", "ID", "mz_column_4", "é"])
        ('id', 'mz_column_2', 'mz_column_3', 'mz_column_4', 'é')
    """
    taken = {*_OWN}
    found: list[str | None] = []
    for name in names:
        fits = name.lower() not in taken and not _UNSTORABLE.search(name)
        found.append(name if fits else None)
        if fits:
            taken.add(name.lower())
    for i, kept in enumerate(found):
        if kept is None:
            name = f"mz_column_{i + 1}"
            while name in taken:
                name += "_"
            taken.add(name)
            found[i] = name
    return tuple(name for name in found if name is not None)


def in_shard(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Returns the columns under their names in the shard."""
    return _in_shard(tuple(columns))


@lru_cache(maxsize=4096)
def _in_shard(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    names = shard_names([one.name for one in columns])
    return tuple(replace(one, name=name) for one, name in zip(columns, names, strict=True))
