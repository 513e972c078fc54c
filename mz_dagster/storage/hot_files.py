"""Columns of data files that are read again and again: decoded, in memory, from one step to the next.

A step looks up few rows in what it has written since long ago, and in what the last step wrote. In a process that goes
on, a session's or the continuous job's, the same files are read at each step; to decode them is most of what a lookup
costs. So the columns that are asked for of a file for the second time are kept, as those of what this process writes
are from the first, up to so many bytes in all. What was least lately read is forgotten first, but not for a file that
was asked for before that was: a step reads its files one after the other, and if all of them are too many for memory,
each would be forgotten shortly before its turn comes. As it is, as many as find room stay (the rule of LIRS).

Of large files these columns are not this process's own, but mapped from the disk, as `decoded_files` says, which takes
none of that memory; and what another process has decoded is there at the first request. Pages of theirs that were
looked at count as taken by this process until it lets go of them, which it does each time that it was handed so many
bytes of them (`Budget.mapped_bytes`): they are in the machine's memory still, unless that is needed elsewhere.

What is looked up in such a file by values of a column is found by the order of its rows by that column, which is kept
beside the columns from the first such lookup on: so a lookup costs by its keys, not by what the file holds.

Invariant: what is kept is what the file holds. A file is written once and known by its hash, which the batch list
names; so an entry is found only by a reader whose list has that very file, and is never advanced or put right: a step's
own updates are a file of their own. Whether the file is still there, and still the one that was written, is looked at
by who asks, as for one that is read.

Memory: up to the limit, and while a file is decoded, its columns; of what is mapped what one read looks at, and up to
`Budget.mapped_bytes`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from operator import methodcaller
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.allocators import let_go
from mz_dagster.budget import budget
from mz_dagster.storage.decoded_files import DecodedFiles, HotFile, MappedColumn
from mz_dagster.storage.kept_columns import ascending, compacted
from mz_dagster.storage.row_numbers import whole

#: A file that would take more than this part of the limit is not kept: it would drive out all others.
_PART = 4
_AS_PY = methodcaller("as_py")
#: Of how many files it is known when they were last asked for.
_MOST_ASKED = 8_192
#: Of how many files columns are mapped. A process may have several times as many mappings.
_MOST_MAPPED = 8_192


class Ordered(NamedTuple):
    """The rows of a file in the order of a column.

    Attributes:
        values: Of the column, NULLs last.
        rows: The places of the rows in the file.
    """

    values: pa.Array
    rows: pa.Array

    def range_of(self, value: Any) -> tuple[int, int]:
        """Returns from where to where rows are in which the column has a value that is not NULL."""
        values, end = self.values, len(self.values) - self.values.null_count
        first = last = bisect_left(values, value, 0, end, key=_AS_PY)
        while last < end and values[last].as_py() == value:
            last += 1
        return first, last

    def places_among(self, values: pa.Array) -> pa.Array:
        """Returns the places of the rows in which the column has one of some values.

        Args:
            values: Of the column's type, which is stored as integers; each is there once, and NULL is like NULL.

        Example:
            >>> ordered = Ordered(pa.array([3, 3, 7, None]), pa.array([2, 0, 3, 1], pa.uint32()))
            >>> [ordered.places_among(pa.array(one, pa.int64())).to_pylist() for one in ([3, 5], [7, None])]
            [[0, 2], [1, 3]]
        """
        end = len(self.values) - self.values.null_count
        own, wanted = _as_integers(self.values.slice(0, end)), _as_integers(values.drop_null())
        begins, ends = np.searchsorted(own, wanted, "left"), np.searchsorted(own, wanted, "right")
        count = ends - begins
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        found = np.repeat(begins, count) + within
        if values.null_count:
            found = np.concatenate([found, np.arange(end, len(self.values))])
        return pa.array(np.sort(self.rows.to_numpy()[found]))

    def places_of(self, value: Any) -> list[int]:
        """Returns the places of those rows."""
        return [self.rows[one].as_py() for one in range(*self.range_of(value))]


class HotFiles:
    """Keeps columns of data files. Safe for use from several threads.

    Args:
        most: How many bytes are kept at most; by default those that the budget says.
        decoded: Keeps those of large files on disk, if any does.
    """

    def __init__(self, most: int | None = None, decoded: DecodedFiles | None = None) -> None:
        self._limit = most
        self._decoded = decoded
        self._lock = threading.Lock()
        #: Columns by file, those least lately read first.
        self._kept: dict[HotFile, dict[str, pa.ChunkedArray]] = {}
        self._sizes: dict[HotFile, int] = {}
        #: Columns that are mapped, likewise.
        self._mapped: dict[HotFile, dict[str, MappedColumn]] = {}
        self._bytes_mapped = 0
        #: The entries whose pages may have been looked at since all were let go, by entry and column.
        self._handed: WeakValueDictionary[tuple[str, str], pa.Buffer] = WeakValueDictionary()
        self._bytes_handed = 0
        #: When files were last asked for or written, as how many times that happened before; in this order.
        self._requested_at: dict[HotFile, int] = {}
        self._requests = 0
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """How many are kept."""
        return self._bytes

    def keep(self, file: HotFile, stored: pa.Table) -> None:
        """Keeps a file that this process has just written: in the form in which it is stored, in the order of its rows.

        What is decoded of it later, and the orders that are kept for other processes, are of the same rows.
        """
        with self._lock:
            self._ask(file)
        self._put(file, _compacted(stored), self._requests, on_disk=False)

    def columns(
        self,
        file: HotFile,
        rows: int,
        names: Sequence[str],
        read: Callable[[Sequence[str]], pa.Table],
        schema: pa.Schema | None = None,
    ) -> pa.Table | None:
        """Returns columns of a file; None if it is asked for the first time, or there is no room to keep it.

        Of a large one, by any process.

        Args:
            file: The file.
            rows: How many it has.
            names: Of the columns, as they are stored.
            read: Returns those of its columns that are not kept.
            schema: Of what types they are: another release may have kept them as others.
        """
        with self._lock:
            before = self._ask(file)
            kept = self._kept.pop(file, None)
            if kept is not None:
                self._kept[file] = kept
        found = self._found(file, names, rows)
        if schema is not None:
            found = {
                name: found[name] for name in names if name in found and found[name].type == schema.field(name).type
            }
        missing = [name for name in names if name not in found]
        if not missing:
            return pa.table({name: found[name] for name in names})
        decoded, size = self._decoded if self._is_for_disk(rows) else None, 8 * rows * len(missing)
        if before is None:
            if decoded is None or not decoded.was_asked_for(file):
                return None
            before = 0
        if decoded is None or not decoded.has_room(size):
            with self._lock:
                if self._driven_out(file, size, before) is None:
                    return None
        new = _compacted(read(missing))
        found |= {name: one for name, (one, _) in new.items()} | self._put(file, new, before, on_disk=True)
        return pa.table({name: found[name] for name in names})

    def has(self, file: HotFile, rows: int, names: Collection[str]) -> bool:
        """Returns whether columns of a file of so many rows are kept."""
        return self._found(file, names, rows).keys() >= set(names)

    def expects(self, files: Mapping[HotFile, int], columns: int) -> bool:
        """Returns whether so many columns of large files find room on disk; the next request for one is not its first.

        Args:
            files: How many rows each has.
            columns: How many columns, of eight bytes a cell.
        """
        rows = sum(files.values())
        if self._decoded is None or not files or not all(map(self._is_for_disk, files.values())):
            return False
        if not self._decoded.has_room(8 * rows * columns):
            return False
        with self._lock:
            for file in files:
                self._ask(file)
        return True

    def _found(self, file: HotFile, names: Collection[str], rows: int) -> dict[str, pa.ChunkedArray]:
        """Returns what is kept of a file, in memory and mapped; looks on the disk if some columns are not among it."""
        with self._lock:
            found = dict(self._kept.get(file, {}))
            mapped = self._mapped.pop(file, None)
            if mapped is not None:
                self._mapped[file] = mapped
        mapped = mapped or {}
        self._hand_out({name: one for name, one in mapped.items() if name in names})
        found |= {name: one.cells for name, one in mapped.items()}
        if self._decoded is not None and self._is_for_disk(rows) and not found.keys() >= set(names):
            new = self._decoded.columns(file, {one.entry for one in mapped.values()})
            self._map(file, new)
            found |= {name: one.cells for name, one in new.items()}
        return found

    def _is_for_disk(self, rows: int) -> bool:
        return self._decoded is not None and rows >= budget().decoded_rows

    def _map(self, file: HotFile, columns: Mapping[str, MappedColumn]) -> None:
        """Notes columns that were mapped; what was least lately asked for is let go if they are too many.

        Of what another process has removed, the disk is free again only then.
        """
        if columns and self._decoded is not None:
            self._hand_out(columns)  # all were compared with their hash
            with self._lock:
                self._mapped[file] = self._unmapped(file) | dict(columns)
                self._bytes_mapped += sum(one.bytes for one in self._mapped[file].values())
                while len(self._mapped) > _MOST_MAPPED or (
                    self._bytes_mapped > self._decoded.most and len(self._mapped) > 1
                ):
                    self._unmapped(next(iter(self._mapped)))

    def _hand_out(self, columns: Mapping[str, MappedColumn]) -> None:
        """Notes that columns that are mapped may be looked at; lets go of those before them if all are too many."""
        with self._lock:
            new = {(one.entry, name): one for name, one in columns.items() if (one.entry, name) not in self._handed}
            size = sum(one.bytes for one in new.values())
            if self._bytes_handed + size > budget().mapped_bytes:
                # Each is held until its turn: where another thread unmaps it, the address may be anybody's by then.
                for pages in {one.address: one for one in self._handed.values()}.values():
                    let_go(pages.address, pages.size)
                self._handed.clear()
                self._bytes_handed = 0
            self._handed.update((place, one.pages) for place, one in new.items())
            self._bytes_handed += size

    def _unmapped(self, file: HotFile) -> dict[str, MappedColumn]:
        """Lets go of the columns of a file that are mapped, and returns them."""
        columns = self._mapped.pop(file, {})
        self._bytes_mapped -= sum(one.bytes for one in columns.values())
        return columns

    def ordered(self, file: HotFile, kept: pa.Table, key: str) -> Ordered:
        """Returns the rows of a file in the order of a column, which is kept like a column from the first time on.

        Args:
            file: The file.
            kept: Columns of it, the key among them.
            key: The column, whose values Python orders as Arrow does.
        """
        # No column of a shard is called so. What earlier releases called "in order" may be the order of other rows.
        by_key, numbers = f"{key} in its order", f"places by {key}"
        found = self._found(file, (by_key, numbers), len(kept))
        if by_key not in found or numbers not in found:
            column = kept.column(key)
            is_in_order = _is_in_order(column)
            if is_in_order:
                sized = {by_key: (_one(whole(column)), 0), numbers: (_one(ascending(len(column))), 0)}
            else:
                order = pc.sort_indices(column).cast(pa.uint32())
                values = whole(column.take(order))
                sized = {by_key: (_one(values), values.nbytes), numbers: (_one(order), order.nbytes)}
            found = {name: one for name, (one, _) in sized.items()}
            with self._lock:
                before = self._requested_at.get(file) if file in self._kept or file in self._mapped else None
            if before is not None:
                found |= self._put(file, sized, before, on_disk=not is_in_order)
        return Ordered(found[by_key].chunk(0), found[numbers].chunk(0))

    def forget(self, shard: str, folders: Collection[str] | None = None) -> None:
        """Forgets the files in some folders of a shard, or all of them, on disk, too."""
        with self._lock:
            for file in [*self._kept, *self._mapped]:
                if file.shard == shard and (folders is None or file.folder in folders):
                    self._drop(file)
                    self._unmapped(file)
        if self._decoded is not None:
            self._decoded.forget(shard, folders)

    def _ask(self, file: HotFile) -> int | None:
        """Notes that a file is asked for; returns when it last was, None if that is not known."""
        before = self._requested_at.pop(file, None)
        self._requests += 1
        self._requested_at[file] = self._requests
        while len(self._requested_at) > _MOST_ASKED:
            del self._requested_at[next(iter(self._requested_at))]
        return before

    def _put(
        self, file: HotFile, columns: Mapping[str, tuple[pa.ChunkedArray, int]], before: int, *, on_disk: bool
    ) -> dict[str, pa.ChunkedArray]:
        """Keeps columns of a file beside those that are kept, unless they are too many; returns those that are mapped.

        Args:
            file: The file.
            columns: Its columns, and how many bytes each takes.
            before: When it was last asked for before now: what was read since then is not forgotten for it.
            on_disk: Whether others may map them, if there are many.
        """
        values = {name: one for name, (one, _) in columns.items()}
        decoded = self._decoded if on_disk and self._is_for_disk(len(next(iter(values.values())))) else None
        if decoded is not None and (mapped := decoded.keep(file, values)):
            self._map(file, mapped)
            return {name: one.cells for name, one in mapped.items()}
        with self._lock:
            kept = self._kept.get(file, {})
            new = {name: one for name, one in columns.items() if name not in kept}
            size = sum(one for _, one in new.values())
            driven_out = self._driven_out(file, size, before)
            if driven_out is None:
                return {}
            for one in driven_out:
                self._drop(one)
            self._kept[file] = self._kept.pop(file, {}) | {name: one for name, (one, _) in new.items()}
            self._sizes[file] = self._sizes.get(file, 0) + size
            self._bytes += size
        return {}

    def _driven_out(self, file: HotFile, size: int, before: int) -> list[HotFile] | None:
        """Returns what is to be forgotten so that a file may take so many bytes more; None if they are not to be had.

        Args:
            file: The file.
            size: The bytes.
            before: When it was last asked for before now.
        """
        if (self._sizes.get(file, 0) + size) * _PART > self._most:
            return None
        free, found = self._most - self._bytes, list[HotFile]()
        for one in self._kept:
            if size <= free:
                break
            if one != file:
                if self._requested_at.get(one, 0) > before:
                    return None
                found.append(one)
                free += self._sizes[one]
        return found if size <= free else None

    def _drop(self, file: HotFile) -> None:
        self._kept.pop(file, None)
        self._bytes -= self._sizes.pop(file, 0)

    @property
    def _most(self) -> int:
        return budget().hot_bytes if self._limit is None else self._limit


def _compacted(table: pa.Table) -> dict[str, tuple[pa.ChunkedArray, int]]:
    """Returns each column of a table as it is kept, and how many bytes it takes."""
    return {name: compacted(one) for name, one in zip(table.column_names, table.columns, strict=True)}


def _one(array: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([array])


def _is_in_order(column: pa.ChunkedArray) -> bool:
    """Returns whether the values of a column are stored as integers, ascend, and none is NULL."""
    type_ = column.type
    if column.null_count or not (pa.types.is_integer(type_) or pa.types.is_temporal(type_)):
        return False
    values = [_as_integers(one) for one in column.chunks]
    return all(bool(np.all(one[1:] >= one[:-1])) for one in values) and all(
        not len(later) or not len(one) or later[0] >= one[-1] for one, later in pairwise(values)
    )


def _as_integers(values: pa.Array) -> NDArray[Any]:
    found: NDArray[Any] = values.view(f"int{values.type.bit_width}").to_numpy()
    return found
