"""What delete files take of data files.

Position deletes name rows by file and place, a deletion vector those of one file. Equality deletes take each row that
has the values of one of theirs, NULL being like NULL, also by columns that the table has no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.types import LongType, StringType
from pyroaring import BitMap64

from mz_dagster.storage.row_numbers import numbered, whole
from mz_dagster.storage.source.errors import SourceUnreadable
from mz_dagster.storage.source.iceberg.data_files import PATH_ID, POSITION_ID, TableFiles
from mz_dagster.storage.source.iceberg.live_files import LiveFile
from mz_dagster.storage.source.iceberg.manifests import ReadFile, is_vector

#: What a deletion vector begins with.
_MAGIC = bytes([0xD1, 0xD3, 0x39, 0x64])
_NO_POSITIONS: NDArray[np.int64] = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Left:
    """What deletes leave of a data file.

    Attributes:
        positions: Which rows are named, in order.
        equalities: The equality delete files that apply, and their rows by the columns that they delete by.
    """

    positions: NDArray[np.int64]
    equalities: Mapping[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def same_as(self) -> tuple[bytes, frozenset[str]]:
        """What is equal of those that leave the same."""
        return self.positions.tobytes(), frozenset(self.equalities)

    @property
    def ids(self) -> frozenset[int]:
        """The columns that rows are deleted by."""
        return frozenset(int(name) for one in self.equalities.values() for name in one.column_names)

    @cached_property
    def _by_columns(self) -> Mapping[tuple[str, ...], pa.Table]:
        """The rows of equality deletes, together by their columns."""
        found: dict[tuple[str, ...], list[pa.Table]] = defaultdict(list)
        for one in self.equalities.values():
            names = tuple(sorted(one.column_names))
            found[names].append(one.select(names))
        return {names: pa.concat_tables(some) for names, some in found.items()}

    def mask(self, batch: pa.RecordBatch, first: int) -> NDArray[np.bool_]:
        """Returns which rows are left of some.

        Args:
            batch: The rows, with the columns that they are deleted by.
            first: The position of the first one in the file.
        """
        left = ~np.isin(np.arange(first, first + batch.num_rows), self.positions)
        for names, gone in self._by_columns.items():
            both = [pa.concat_arrays([whole(gone.column(one)), batch.column(one)]) for one in names]
            numbers, _ = numbered(both, len(gone) + batch.num_rows)
            left &= ~np.isin(numbers[len(gone) :], numbers[: len(gone)])
        return left


class Deletes:
    """Reads the delete files of a table, each once, for several threads."""

    def __init__(self, files: TableFiles, known: Mapping[str, DataFile]) -> None:
        self._files = files
        self._known = known
        self._positions: dict[str, Mapping[str, NDArray[np.int64]]] = {}
        self._equalities: dict[str, pa.Table] = {}
        self._lock = Lock()

    def left(self, file: LiveFile) -> Left:
        """Returns what is left of a data file.

        Raises:
            FileNotFoundError: A delete file is gone.
            SourceUnreadable: One is damaged.
        """
        with self._lock:
            return self._left(file)

    def _left(self, file: LiveFile) -> Left:
        positions: list[NDArray[np.int64]] = []
        equalities: dict[str, pa.Table] = {}
        for path in sorted(file.deletes):
            delete = self._known[path]
            if is_vector(delete):
                positions.append(self._vector(delete))
            elif delete.content is DataFileContent.EQUALITY_DELETES:
                if path not in self._equalities:
                    self._equalities[path] = self._rows(delete)
                equalities[path] = self._equalities[path]
            else:
                if path not in self._positions:
                    self._positions[path] = self._places(delete)
                positions.append(self._positions[path].get(file.path, _NO_POSITIONS))
        return Left(np.unique(np.concatenate(positions)) if positions else _NO_POSITIONS, equalities)

    def _rows(self, delete: DataFile) -> pa.Table:
        return self._files.rows(delete, {id: self._files.type_of(id) for id in delete.equality_ids or ()})

    def _places(self, delete: DataFile) -> Mapping[str, NDArray[np.int64]]:
        rows = self._files.rows(delete, {PATH_ID: StringType(), POSITION_ID: LongType()})
        encoded = whole(rows.column(str(PATH_ID))).dictionary_encode()
        of, places = encoded.indices.to_numpy(), rows.column(str(POSITION_ID)).to_numpy()
        ends = np.cumsum(np.bincount(of, minlength=len(encoded.dictionary)))
        by_file = np.split(places[np.argsort(of, kind="stable")], ends[:-1])
        return dict(zip(encoded.dictionary.to_pylist(), by_file, strict=bool(len(of))))

    def _vector(self, delete: ReadFile) -> NDArray[np.int64]:
        """Returns the positions of a deletion vector: length, magic bytes, a bitmap, and a checksum of both."""
        start, size = delete.content_range
        with self._files.io.new_input(delete.file_path).open() as opened:
            opened.seek(start)
            content = opened.read(size)
        length, checksum = int.from_bytes(content[:4], "big"), int.from_bytes(content[-4:], "big")
        if length != size - 8 or content[4:8] != _MAGIC or crc32(content[4:-4]) != checksum:
            raise SourceUnreadable(
                f'the deletion vector at {start} of "{delete.file_path}" is damaged',
                hint="Have whoever writes the table mend it; the next step tries again.",
            )
        return np.array(BitMap64.deserialize(content[8:-4]), np.int64)
