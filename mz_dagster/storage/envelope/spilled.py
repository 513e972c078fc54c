"""The first load of keyed records in this process, of which only what their keys are told by is in memory.

What `local.upserts` makes of a key follows from that key's records alone. So records may be told apart by hashes of
their keys, and each part computed for itself:

    upserts(R) = sum of upserts(R_h) over the parts R_h of R whose keys have the hash h

In a first load nearly each key comes once, and of such a record the update is known without a look at any other: it is
there from its tick on, unless it is a deletion. So records go to a file in their order while they are decoded, and of
each key's hash to another. Hashes that came more than once are found, a sixteenth of all at a time; then the records
are read again, and those whose hash came once are yielded in their order. The others, or all where a record's update
does not follow from itself, go into files by their hash, each with about `Budget.portion_rows` of them, and updates
are made of one file at a time.

Equal keys have equal hashes (`key_hash`); different ones that share a hash are compared in the end.

Memory: a portion of records, 2 bytes a record, 8 a hash that came more than once, and the records of one file of those
that are compared: at least all of one key. Disk: the records, compressed, in a folder of the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.budget import budget
from mz_dagster.errors import OperationalError
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.key_hash import key_hashes

_RECORDS = "records"
#: By so many of their first bits hashes go into files.
_SHARE_BITS = 4
#: Into so many files records go at most that are compared: all are open at once.
_MOST_FILES = 64


@dataclass(frozen=True, slots=True)
class SpilledRecords:
    """Records in a folder, and which of them are compared with others.

    Attributes:
        folder: The folder, which has nothing else in it.
        key: Of what type the columns are that are the key, by name.
        repeated: The hashes that came more than once, ascending; None if all records are compared.
        compared: How many records are compared.
    """

    folder: Path
    key: Mapping[str, ScalarType]
    repeated: NDArray[np.uint64] | None
    compared: int

    @classmethod
    def of(
        cls, portions: Iterable[pa.Table], folder: Path, key: Mapping[str, ScalarType], *, compares_all: bool
    ) -> SpilledRecords:
        """Returns records that are in a folder now.

        Args:
            portions: The records, in ingestion order.
            folder: An empty folder.
            key: As above.
            compares_all: Whether the updates of a record that is alone with its key do not follow from itself.
        """
        count = 0
        with ExitStack() as opened:
            shares = [opened.enter_context(open(path, "wb")) for path in _shares(folder)]
            writer: pa.ipc.RecordBatchStreamWriter | None = None
            for portion in portions:
                count += len(portion)
                with _told_if_full(folder):
                    writer = writer or opened.enter_context(_written_to(folder / _RECORDS, portion.schema))
                    writer.write_table(portion)
                    if not compares_all:
                        hashes = _hashes(portion, key)
                        numbers = hashes >> np.uint64(64 - _SHARE_BITS)
                        for number, share in enumerate(shares):
                            share.write(hashes[numbers == number].tobytes())
                            share.flush()
        if compares_all:
            return cls(folder, key, None, count)
        found = [_repeated(path) for path in _shares(folder)]
        return cls(folder, key, np.concatenate([hashes for hashes, _ in found]), sum(rows for _, rows in found))

    def updates(
        self, alone: Callable[[pa.Table], pa.Table], compared: Callable[[pa.Table], pa.Table]
    ) -> Iterator[pa.Table]:
        """Yields the records' updates.

        Args:
            alone: Makes updates of records, each of which is alone with its key.
            compared: Makes updates of records, of each key all.
        """
        count = max(1, min(_MOST_FILES, -(-self.compared // budget().portion_rows)))
        paths = [self.folder / f"{number}.compared" for number in range(count)]
        with ExitStack() as opened:
            writers = list[pa.ipc.RecordBatchStreamWriter]()
            for portion in _read_from(self.folder / _RECORDS):
                hashes = _hashes(portion, self.key)
                is_compared = self._are_compared(hashes)
                places = np.flatnonzero(is_compared)
                if len(places) < len(portion):
                    yield alone(portion.filter(pa.array(~is_compared)) if len(places) else portion)
                if not len(places):
                    continue
                numbers = (hashes[places] % np.uint64(count)).astype(np.int64)
                by_file = portion.take(pa.array(places[np.argsort(numbers, kind="stable")]))
                with _told_if_full(self.folder):
                    writers = writers or [opened.enter_context(_written_to(path, portion.schema)) for path in paths]
                    end = 0
                    for writer, rows in zip(writers, np.bincount(numbers, minlength=count).tolist(), strict=True):
                        start, end = end, end + rows
                        if rows:
                            writer.write_table(by_file.slice(start, rows))
        for path in paths:
            if parts := list(_read_from(path)):
                yield compared(pa.concat_tables(parts))

    def _are_compared(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        if self.repeated is None or not len(self.repeated):
            return np.full(len(hashes), self.repeated is None)
        places = np.searchsorted(self.repeated, hashes)
        found: NDArray[np.bool_] = self.repeated[np.minimum(places, len(self.repeated) - 1)] == hashes
        return found


@contextmanager
def _told_if_full(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperationalError(
            f'cannot write to folder "{folder}": {error.strerror or error}',
            detail="A first load of many records writes them there until their updates are made.",
            hint="Make room on that disk, then try again; nothing was read.",
        ) from error


def _shares(folder: Path) -> list[Path]:
    return [folder / f"{number}.hashes" for number in range(1 << _SHARE_BITS)]


def _hashes(records: pa.Table, key: Mapping[str, ScalarType]) -> NDArray[np.uint64]:
    return key_hashes([records.column(name) for name in key], list(key.values()))


def _repeated(path: Path) -> tuple[NDArray[np.uint64], int]:
    """Returns the hashes in a file that came more than once, and how often all of these came."""
    hashes, counts = np.unique(np.fromfile(path, np.uint64), return_counts=True)
    is_repeated = counts > 1
    return hashes[is_repeated], int(counts[is_repeated].sum())


def _written_to(path: Path, schema: pa.Schema) -> pa.ipc.RecordBatchStreamWriter:
    return pa.ipc.new_stream(str(path), schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))


def _read_from(path: Path) -> Iterator[pa.Table]:
    """Yields what was written to a file, portion by portion; nothing if there is none."""
    if path.exists():
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            yield from (pa.Table.from_batches([batch]) for batch in reader)
