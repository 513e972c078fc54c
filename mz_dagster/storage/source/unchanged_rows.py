"""Rows of a rewritten file that are what they were, found before any of them becomes an update.

A writer that changes a few rows of a file removes it and adds another one, with all the others copied. Let G be the
multiset of the rows that go, and C that of those that come. `net_rows` yields some G' and C' with

    C' - G' = C - G

of which what has an equal in the other is about as little as can be had at little cost: what is left over is summed
later, with the updates. So a pair may be missed and never be invented: two rows are a pair if they have the same bits
in each column. Each column is made words of 64 bits that are equal if and only if the values are (`row_hashes`).

First the rows are walked side by side, as a writer that keeps their order leaves them: in pieces of the files that go,
with changed rows between. What that does not pair is looked up in a table by a hash of the words, in rounds, in each of
which a place of the table holds one row. Rows that are there many times are left over there, of which sums are cheap.

Memory: the rows, and eight bytes for each of their values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.budget import budget
from mz_dagster.storage.row_hashes import Words, hashed, words_of
from mz_dagster.storage.source.local.cells import PORTION_ROWS

Mask = NDArray[np.bool_]

#: How many rows are compared at once.
_COMPARED = 4_096
#: How far the walk looks for where rows go on that were taken out or put in.
_NEAR = 256
#: How often the walk looks for where rows go on among all, and again as often once that has led on.
_SCANS = 16
#: How many steps the walk has, and in how many rows one more.
_PATIENCE, _RARE = 256, 128
_ROUNDS = 6


def net_rows(
    portions: Iterable[tuple[pa.RecordBatch, NDArray[np.int64]]],
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Yields rows with their diffs, in portions, about without those that equal ones take away.

    Args:
        portions: Rows of files with their diffs, each file's in their order.

    Example:
        >>> def rows(*values): return pa.record_batch({"a": pa.array(values, pa.int64())})
        >>> found = list(net_rows([(rows(1, 2, 3), np.full(3, -1)), (rows(1, 5, 3), np.full(3, 1))]))
        >>> [(batch.column("a").to_pylist(), diffs.tolist()) for batch, diffs in found]
        [([2], [-1]), ([5], [1])]
    """
    sides: dict[Any, dict[int, list[pa.RecordBatch]]] = defaultdict(lambda: {-1: [], 1: []})
    for batch, diffs in portions:
        columns = tuple(zip(batch.schema.names, batch.schema.types, strict=True))
        single = np.abs(diffs) == 1
        if not single.all() or not columns:
            yield batch, diffs
            continue
        for diff, some in sides[columns].items():
            of_diff = diffs == diff
            if of_diff.all():
                some.append(batch)
            elif of_diff.any():
                some.append(batch.filter(pa.array(of_diff)))
    for found in sides.values():
        kept: dict[int, Mask] = {}
        if found[-1] and found[1] and all(_is_compared(type_) for type_ in found[1][0].schema.types):
            kept[-1], kept[1] = unpaired(found[-1], found[1])
        for diff, some in found.items():
            if not some:
                continue
            table = pa.Table.from_batches(some)
            if diff in kept:
                table = table.filter(pa.array(kept[diff]))
            for batch in table.combine_chunks().to_batches(PORTION_ROWS):
                yield batch, np.full(batch.num_rows, diff, np.int64)


def _is_compared(type_: pa.DataType) -> bool:
    return not pa.types.is_map(type_) and all(
        _is_compared(type_.field(place).type) for place in range(type_.num_fields)
    )


def unpaired(gone: Sequence[pa.RecordBatch], came: Sequence[pa.RecordBatch]) -> tuple[Mask, Mask]:
    """Returns which rows of either side are not paired with an equal row of the other one.

    Args:
        gone: Rows, of one schema.
        came: Others, of the same types.
    """
    rows = sum(one.num_rows for one in gone)
    batches = [*gone, *came]
    columns = (pa.chunked_array([one.column(place) for one in batches]) for place in range(batches[0].num_columns))
    words = [word for column in columns for word in words_of(column, has_nulls=column.null_count > 0)]
    words = words or [np.zeros(sum(one.num_rows for one in batches), np.uint64)]
    hashes = hashed(words)
    sides = _Sides([one[:rows] for one in words], [one[rows:] for one in words], hashes[:rows], hashes[rows:])
    _walk(sides, np.cumsum([one.num_rows for one in gone]).tolist())
    _look_up(sides)
    return sides.gone, sides.came


class _Sides:
    """The rows of both sides, and which of them are not paired yet.

    Args:
        gone_words: The words of those that go, by column.
        came_words: Those of those that come.
        gone_hash: A hash of each row's words.
        came_hash: That of those that come.
    """

    def __init__(
        self, gone_words: Sequence[Words], came_words: Sequence[Words], gone_hash: Words, came_hash: Words
    ) -> None:
        self._words = list(zip(gone_words, came_words, strict=True))
        self.gone_hash, self.came_hash = gone_hash, came_hash
        self.gone: Mask = np.ones(len(gone_hash), np.bool_)
        self.came: Mask = np.ones(len(came_hash), np.bool_)

    def pair_slices(self, gone: int, came: int, rows: int) -> None:
        """Pairs those of some rows beside each other that are equal."""
        of_gone, of_came = slice(gone, gone + rows), slice(came, came + rows)
        differ: Mask = np.zeros(rows, np.bool_)
        for left, right in self._words:
            differ |= left[of_gone] != right[of_came]
        self.gone[of_gone], self.came[of_came] = differ, differ

    def equal(self, gone: NDArray[np.int64], came: NDArray[np.int64]) -> Mask:
        """Returns which of some rows are equal to one of the other side each."""
        found: Mask = np.ones(len(gone), np.bool_)
        for left, right in self._words:
            found &= np.take(left, gone) == np.take(right, came)
        return found


def _walk(sides: _Sides, ends: Sequence[int]) -> None:
    """Pairs rows that are in the same order on both sides, in pieces.

    Args:
        sides: The rows.
        ends: Where files, or parts of them, end among the rows that go.
    """
    heads = _Heads(sides.gone_hash, ends)
    hashed, most = sides.came_hash, len(sides.came_hash)
    row, piece, steps, scans = 0, 0, 0, _SCANS
    while row < most and steps < _PATIENCE + row // _RARE:
        steps += 1
        found = heads.at(int(hashed[row]))
        if found is None:  # no file begins or goes on here
            gone, came = heads.near(piece), hashed[row : row + _NEAR]
            if (further := _first(gone == came[0])) is not None:  # after rows that were taken out
                heads.move(piece, further)
            elif len(gone) and (further := _first(came == gone[0])) is not None:  # after rows that were put in
                row += further
            elif (further := _first(gone[: len(came)] == came[: len(gone)])) is not None:  # after changed ones
                heads.move(piece, further)
                row += further
            else:
                elsewhere = _first(sides.gone_hash == came[0]) if scans else None
                there = None if elsewhere is None else heads.split(elsewhere)
                scans = max(0, scans - 1)
                if there is None:
                    row += 1
                else:
                    piece = there
            continue
        piece = found
        begin = heads.next[piece]
        rows = min(heads.ends[piece] - begin, most - row, _COMPARED)
        same = sides.gone_hash[begin : begin + rows] == hashed[row : row + rows]
        rows -= int(np.argmax(same[::-1]))
        if rows * 8 >= _COMPARED:
            scans = min(scans + 2, _SCANS)
        sides.pair_slices(begin, row, rows)
        heads.move(piece, rows)
        row += rows


def _first(found: Mask) -> int | None:
    """Returns where something is true first, None if nowhere."""
    place = int(np.argmax(found)) if len(found) else 0
    return place if len(found) and found[place] else None


class _Heads:
    """Up to where the pieces of some files were walked.

    Args:
        hashed: The hashes of their rows.
        ends: Where they end.
    """

    def __init__(self, hashed: Words, ends: Sequence[int]) -> None:
        self._hashed = hashed
        #: The next row of each, and where it ends.
        self.next, self.ends = [0, *ends[:-1]], [*ends]
        self._known: dict[int, int] = {}
        for piece in range(len(ends)):
            self._note(piece)

    def at(self, hash_: int) -> int | None:
        """Returns which file's next row has a hash, None if none has."""
        piece = self._known.get(hash_)
        if piece is None or self.next[piece] >= self.ends[piece]:
            return None
        return piece if int(self._hashed[self.next[piece]]) == hash_ else None

    def split(self, row: int) -> int | None:
        """Returns the piece that begins with a row, if it was not walked yet: what is left of a file is two then."""
        for piece in range(len(self.ends)):
            if self.next[piece] < row < self.ends[piece]:
                self.next.append(row)
                self.ends.append(self.ends[piece])
                self.ends[piece] = row
                self._note(len(self.ends) - 1)
                return len(self.ends) - 1
        return None

    def near(self, piece: int) -> Words:
        """Returns the hashes of a file's next rows."""
        begin = self.next[piece]
        return self._hashed[begin : min(begin + _NEAR, self.ends[piece])]

    def move(self, piece: int, rows: int) -> None:
        """Passes rows of a file."""
        self.next[piece] += rows
        self._note(piece)

    def _note(self, piece: int) -> None:
        if self.next[piece] < self.ends[piece]:
            self._known[int(self._hashed[self.next[piece]])] = piece


def _look_up(sides: _Sides) -> None:
    """Pairs rows wherever they are, by a table of those that come."""
    gone, came = np.flatnonzero(sides.gone), np.flatnonzero(sides.came)
    for number in range(_ROUNDS):
        if min(len(gone), len(came)) < budget().unmatched_rows:
            return
        bits = (2 * max(len(gone), len(came))).bit_length()
        shift, mask = np.uint64(64 - bits - number), np.uint64((1 << bits) - 1)  # other bits each time
        table = np.full(1 << bits, -1, np.int32 if len(came) < 2**31 else np.int64)
        places = (np.take(sides.came_hash, came) >> shift) & mask
        table[places.view(np.int64)] = np.arange(len(came), dtype=table.dtype)
        places = (np.take(sides.gone_hash, gone) >> shift) & mask
        met = np.take(table, places.view(np.int64))
        tried = np.flatnonzero(met >= 0)
        met = np.take(met, tried).astype(np.int64)
        is_equal = np.flatnonzero(sides.equal(np.take(gone, tried), np.take(came, met)))
        tried, met = np.take(tried, is_equal), np.take(met, is_equal)
        taken = np.empty(len(came), table.dtype)
        taken[met] = tried
        first = np.flatnonzero(np.take(taken, met) == tried)  # of several that met one row, one takes it
        sides.gone[np.take(gone, np.take(tried, first))] = False
        sides.came[np.take(came, np.take(met, first))] = False
        if len(first) * 8 < min(len(gone), len(came)):
            return  # what is left has no equal, or many
        gone, came = gone[np.take(sides.gone, gone)], came[np.take(sides.came, came)]
