"""Rows of a collection by the value of one column, where all of its files are in memory: a lookup is a bisection.

That is so of a collection that is asked again and again and has not been written meanwhile. What is found is what a
`Lookup` finds in the same files (`LocalShards.read_files`), if all that is found says that a row is there, and nothing
of the collection is an error; where that is not so, nothing is said, and whoever asks reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.scalars.types import ScalarType
from mz_dagster.scalars.values import from_stored
from mz_dagster.storage.hot_files import Ordered
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.numerics import stored_names
from mz_dagster.storage.plain_cells import moments_as_numbers
from mz_dagster.storage.shards import DIFF, StoredFile

#: Of more files each is not asked.
_MOST_FILES = 8


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """The rows of a collection, by the value of one column.

    Attributes:
        shards: Where they are.
        collection: The collection.
        batches: The batches that are listed.
        files: All of their files.
        contents: Of each its rows in the order of the key, and the columns that are shown, the last of them the diffs.
        types: Of the columns.
    """

    shards: LocalShards
    collection: CollectionRow
    batches: Sequence[Batch]
    files: Sequence[StoredFile]
    contents: Sequence[tuple[Ordered, Sequence[pa.ChunkedArray]]]
    types: Sequence[ScalarType]

    @classmethod
    def of(
        cls,
        shards: LocalShards,
        collection: CollectionRow,
        batches: Sequence[Batch],
        key: str,
        shown: Sequence[int],
        time: int,
    ) -> KeyedRows | None:
        """Returns those at a time; None if one of the files is not in memory, or not all of them are plain.

        Args:
            shards: Where they are.
            collection: The collection.
            batches: Its batches.
            key: The column, whose values Python orders as Arrow does.
            shown: The positions of the columns that are shown.
            time: The time.
        """
        columns = [collection.columns[one] for one in shown]
        names = [*dict.fromkeys(one.name for one in columns), key]
        files = shards.files(collection, batches)
        if len(files) > _MOST_FILES or stored_names(names, collection.columns) != names:
            return None
        contents = []
        for one in files:
            if one.errors or one.inlined is not None or one.times is None or one.times[1] > time:
                return None
            found = shards.in_order(collection, one, key, [*names, DIFF])
            if found is None:
                return None
            order, table = found
            shows = [moments_as_numbers(table.column(column.name)) for column in columns]
            contents.append((order, (*shows, table.column(DIFF))))
        return cls(shards, collection, batches, files, contents, [one.type for one in columns])

    def find(self, value: Any) -> list[tuple[Any, ...]] | None:
        """Returns the rows in which the key has a value that is not NULL; None if that takes to sum them up.

        Raises:
            BatchIncomplete: A file is gone.
            FileDamaged: One is another.
        """
        self.shards.check_files(self.collection, self.batches, self.files)
        rows = []
        for order, columns in self.contents:
            for place in order.places_of(value):
                *cells, diff = (one[place].as_py() for one in columns)
                if diff != 1:
                    return None
                rows.append(tuple(map(from_stored, cells, self.types)))
        return rows
