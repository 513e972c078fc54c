"""Window functions on columns: rows of partitions, sorted, and for each row the frame it sees as spans of places.

A frame is an interval of places; less what is excluded it is up to three (`spark.window.positions` draws them). Counts
and sums are differences of running ones, exact as Python's integers where 64 bits might not do; the least and greatest
of a span come from those of runs whose lengths are powers of two, two of which cover it. So a row costs the same
however wide its frame is.

Not computed are distances between values (RANGE), what makes lists or texts of frames, and sums and extremes of floats;
what makes a row an error is `Declined`, which tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.local.coded_rows import NULL, CodedRows
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.expressions.numbers import halves, integers, nulls
from mz_dagster.compute.local.keys import whole
from mz_dagster.plan.relation import ColumnOrder, FrameBound, FrameExclusion, FrameUnit, WindowFrame, WindowFunction
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.arrow_schema import arrow_type

Integers: TypeAlias = NDArray[np.int64]
#: Integers of 64 bits, or Python's.
Exact: TypeAlias = NDArray[Any]
#: Places from one to another, both included; empty where the first is behind the other.
Span: TypeAlias = tuple[Integers, Integers]

_RANKS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})
_FRAMED = frozenset({"count", "sum", "min", "max", "bit_and", "bit_or", "bit_xor"})
_VALUES = frozenset({"first_value", "last_value", "nth_value"})
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
#: Farther than any place.
_FAR = 2**31


def is_computed_here(function: WindowFunction, columns: Sequence[Column]) -> bool:
    """Returns whether `Partitions.values` knows a function of some columns over its frame."""
    is_known = function.name in _RANKS | _FRAMED | _VALUES | {"lag", "lead"}
    if function.name in ("sum", "min", "max") and any(columns[one].type.kind in _FLOATS for one in function.arguments):
        return False
    frame = function.frame
    return is_known and (frame is None or not _has_distance(frame))


def _has_distance(frame: WindowFrame) -> bool:
    bounds = (frame.start, frame.end)
    return frame.unit is FrameUnit.RANGE and any(not one.unbounded and _steps(one) for one in bounds)


def _steps(bound: FrameBound) -> Any:
    """Returns by how much a bound lies behind the current row, or its group."""
    assert bound.offset is not None
    value: Any = bound.offset.value
    return value if not isinstance(value, int) else min(value, _FAR) * (-1 if bound.preceding else 1)


@dataclass(frozen=True, slots=True)
class Partitions:
    """Rows in partitions, sorted by these and then in full; places count from 0 over all of them.

    Attributes:
        order: Which row is at each place.
        begin: Of each place: the first place of its partition.
        end: The last one.
        first: The first place of its peers.
        last: The last one.
    """

    order: Integers
    begin: Integers
    end: Integers
    first: Integers
    last: Integers

    @classmethod
    def of(cls, partition: Integers, cells: Sequence[Integers], order: Sequence[ColumnOrder]) -> Partitions:
        """Returns rows in their partitions, by an order of codes, then by all of these."""
        keys = []
        for one in order:
            codes = cells[one.position]
            null = -NULL if one.nulls_first else NULL
            keys.append(np.where(codes == NULL, null, -codes if one.descending else codes))
        sorted_rows = np.lexsort([*reversed([partition, *keys, *cells])])
        parts = _edges([partition[sorted_rows]])
        peers = _edges([one[sorted_rows] for one in (partition, *keys)])
        return cls(sorted_rows, *parts, *peers)

    def values(self, function: WindowFunction, rows: CodedRows, row: Integers) -> pa.Array:
        """Returns what a function says of each place.

        Args:
            function: One that `is_computed_here`.
            rows: The coded rows.
            row: Which of them each row of the partitions is.

        Raises:
            Declined: It fails for a row, or a sum is beyond its type.
        """
        return _Function(self, function, rows, row[self.order]).values()

    @property
    def at(self) -> Integers:
        """Each place."""
        return np.arange(len(self.order))


@dataclass(frozen=True, slots=True)
class _Function:
    """Evaluates one function; `row` is which of the coded rows is at each place."""

    partitions: Partitions
    function: WindowFunction
    rows: CodedRows
    row: Integers

    def values(self) -> pa.Array:
        match self.function.name:
            case name if name in _RANKS:
                return self._from_place(name)
            case "lag" | "lead":
                return self._moved()
            case name if name in _VALUES:
                return self._value(name)
            case "count":
                return self._stored(_over(self._spans(), _until(self._counts())))
            case "sum":
                return self._sum()
            case "min" | "max":
                return self._extreme()
            case _:
                return self._bits()

    # ---- places

    def _from_place(self, name: str) -> pa.Array:
        parts = self.partitions
        match name:
            case "row_number":
                return self._stored(parts.at - parts.begin + 1)
            case "rank":
                return self._stored(parts.first - parts.begin + 1)
            case "dense_rank":
                groups = self._groups()
                return self._stored(groups - groups[parts.begin] + 1)
            case "percent_rank":
                others = np.maximum(parts.end - parts.begin, 1)
                return pa.array((parts.first - parts.begin).astype(np.float64) / others.astype(np.float64))
            case "cume_dist":
                size = parts.end - parts.begin + 1
                return pa.array((parts.last - parts.begin + 1).astype(np.float64) / size.astype(np.float64))
            case _:
                return self._ntile()

    def _ntile(self) -> pa.Array:
        """Counts from the first row whose argument is not NULL, by that argument."""
        parts, (given, is_null) = self.partitions, self._integers(0)
        # Of each place the next one, it being one, where the argument is not NULL.
        following = np.where(is_null, len(given), parts.at)
        start = np.minimum.accumulate(following[::-1])[::-1][parts.begin] if len(given) else following
        counted = (start <= parts.at) & (start <= parts.end)
        buckets = given[np.where(counted, start, 0)] if len(given) else given
        if (counted & (buckets <= 0)).any():
            raise Declined("an argument of ntile is not positive, which is Spark's to tell")
        buckets = np.where(counted, buckets, 1)
        row, size = parts.at - start, parts.end - parts.begin + 1
        small, large = size // buckets, size % buckets
        in_large = large * (small + 1)
        number = np.where(row < in_large, row // (small + 1), large + (row - in_large) // np.maximum(small, 1))
        return self._stored(number + 1, ~counted)

    def _groups(self) -> Integers:
        """Returns the number of each place's group of peers, over all partitions."""
        return np.cumsum(self.partitions.first == self.partitions.at) - 1

    # ---- values of other rows

    def _moved(self) -> pa.Array:
        parts, function = self.partitions, self.function
        steps, unknown = self._integers(1) if len(function.arguments) > 1 else (np.ones_like(parts.at), None)
        steps = np.clip(steps, -_FAR, _FAR) * (1 if function.name == "lead" else -1)
        if function.ignore_nulls:
            kept = self._kept()
            counts = _until(kept)
            there = np.flatnonzero(kept)
            # Behind the own value come the next ones; before it, those that were counted up to it.
            number = np.where(steps < 0, counts[parts.at] + steps, counts[parts.at + 1] + steps - 1)
            found = (number >= counts[parts.begin]) & (number < counts[parts.end + 1])
            place = there[np.where(found, number, 0)] if len(there) else np.zeros_like(parts.at)
            place, found = np.where(steps == 0, parts.at, place), found | (steps == 0)
        else:
            place = parts.at + steps
            found = (place >= parts.begin) & (place <= parts.end)
        values = self._column(0)
        chosen = self.row[np.where(found, place, 0)] if len(place) else place
        result = values.take(pa.array(chosen, mask=~found))
        if len(function.arguments) > 2:
            default = self._column(2).take(pa.array(self.row)).cast(result.type)
            result = pc.if_else(pa.array(found), result, default)
        return result if unknown is None else pc.if_else(pa.array(unknown), pa.scalar(None, result.type), result)

    def _value(self, name: str) -> pa.Array:
        spans, there = self._spans(), None
        if self.function.ignore_nulls:
            kept = self._kept()
            counts, there = _until(kept), np.flatnonzero(kept)
            spans = [(counts[lo], counts[np.maximum(hi + 1, lo)] - 1) for lo, hi in spans]
        place = np.full(len(self.row), -1)
        match name:
            case "first_value":
                for lo, hi in reversed(spans):
                    place = np.where(lo <= hi, lo, place)
            case "last_value":
                for lo, hi in spans:
                    place = np.where(lo <= hi, hi, place)
            case _:
                left, unknown = self._integers(1)
                if (~unknown & (left <= 0)).any():
                    raise Declined("an argument of nth_value is not positive, which is Spark's to tell")
                left = np.where(unknown, 0, np.minimum(left, _FAR))
                for lo, hi in spans:
                    length = np.maximum(hi - lo + 1, 0)
                    place = np.where((left >= 1) & (left <= length), lo + left - 1, place)
                    left = left - length
        if there is not None and len(there):
            place = np.where(place < 0, -1, there[np.maximum(place, 0)])
        chosen = self.row[np.maximum(place, 0)] if len(place) else place
        return self._column(0).take(pa.array(chosen, mask=place < 0))

    def _kept(self) -> NDArray[np.bool_]:
        """Returns where the first argument is not NULL."""
        kept: NDArray[np.bool_] = self.rows.columns[self.function.arguments[0]][self.row] != NULL
        return kept

    # ---- aggregates of frames

    def _sum(self) -> pa.Array:
        counts, spans = self._counts(), self._spans()
        found = self._column(0).take(pa.array(self.row))
        values: Exact
        if pa.types.is_decimal(found.type):
            low, high = halves(found)
            is_there = counts.astype(np.bool_)
            low, high = np.where(is_there, low, 0), np.where(is_there, high, 0)
            fits = np.array_equal(high, low >> 63)
            values = low if fits else high.astype(object) * 2**64 + low.astype(np.uint64).astype(object)
        else:
            values = np.where(counts, integers(found), 0)
        if values.dtype != object and _most(values) * max(1, len(values)) >= 2**62:
            values = values.astype(object)
        return self._stored(_over(spans, _until(values)), _over(spans, _until(counts)) == 0)

    def _counts(self) -> Integers:
        """Returns 1 for each row that counts, 0 for others."""
        kept = self._kept() if self.function.arguments else np.full(len(self.row), True)
        if self.function.filter is not None:
            passes = whole(self._at(self.function.filter)).take(pa.array(self.row)).fill_null(False)
            kept = kept & passes.to_numpy(zero_copy_only=False)
        return kept.astype(np.int64)

    def _extreme(self) -> pa.Array:
        """Returns the least or greatest value of each frame: values have the order of their codes."""
        position, is_least = self.function.arguments[0], self.function.name == "min"
        none = NULL if is_least else -1
        codes = np.where(self._counts() > 0, self.rows.columns[position][self.row], none)
        found = _folded(codes, self._spans(), np.minimum if is_least else np.maximum, none)
        return self.rows.decoded(position, np.where(found == none, NULL, found))

    def _bits(self) -> pa.Array:
        counts, spans = self._counts(), self._spans()
        fold, none = {
            "bit_and": (np.bitwise_and, -1), "bit_or": (np.bitwise_or, 0), "bit_xor": (np.bitwise_xor, 0)
        }[self.function.name]  # fmt: skip
        values, _ = self._integers(0)
        values = np.where(counts > 0, values, none)
        if self.function.name == "bit_xor":
            running = np.append(0, np.bitwise_xor.accumulate(values)) if len(values) else np.zeros(1, np.int64)
            found = np.zeros_like(values)
            for lo, hi in spans:
                found ^= running[np.maximum(hi + 1, lo)] ^ running[lo]
        else:
            found = _folded(values, spans, fold, none)
        return self._stored(found, _over(spans, _until(counts)) == 0)

    # ---- frames

    def _spans(self) -> list[Span]:
        """Returns the places that each row's frame holds, in order."""
        parts, frame = self.partitions, self.function.frame
        assert frame is not None
        lo, hi = self._start(frame), self._end(frame)
        match frame.exclusion:
            case FrameExclusion.NO_OTHERS:
                spans = [(lo, hi)]
            case FrameExclusion.CURRENT_ROW:
                spans = [(lo, np.minimum(hi, parts.at - 1)), (np.maximum(lo, parts.at + 1), hi)]
            case FrameExclusion.GROUP:
                spans = [(lo, np.minimum(hi, parts.first - 1)), (np.maximum(lo, parts.last + 1), hi)]
            case FrameExclusion.TIES:
                own = (np.maximum(lo, parts.at), np.minimum(hi, parts.at))
                spans = [(lo, np.minimum(hi, parts.first - 1)), own, (np.maximum(lo, parts.last + 1), hi)]
        # An empty span lies within the partition, too, so that it can be looked up.
        return [(np.clip(one, parts.begin, parts.end + 1), np.clip(other, parts.begin - 1, parts.end))
                for one, other in spans]  # fmt: skip

    def _start(self, frame: WindowFrame) -> Integers:
        parts = self.partitions
        if frame.start.unbounded:
            return parts.begin
        steps = int(_steps(frame.start))
        if frame.unit is FrameUnit.ROWS:
            return np.maximum(parts.at + steps, parts.begin)
        return self._of_group(steps, parts.first, parts.begin, parts.end + 1)

    def _end(self, frame: WindowFrame) -> Integers:
        parts = self.partitions
        if frame.end.unbounded:
            return parts.end
        steps = int(_steps(frame.end))
        if frame.unit is FrameUnit.ROWS:
            return np.minimum(parts.at + steps, parts.end)
        return self._of_group(steps, parts.last, parts.begin - 1, parts.end)

    def _of_group(self, steps: int, edge: Integers, before: Integers, behind: Integers) -> Integers:
        """Returns an edge of the group so many groups on, or what lies before or behind the partition's."""
        if not steps or not len(edge):
            return edge
        parts, groups = self.partitions, self._groups()
        firsts = np.flatnonzero(parts.first == parts.at)
        number = groups + steps
        found = edge[firsts[np.clip(number, 0, len(firsts) - 1)]]
        found = np.where(number > groups[parts.end], behind, found)
        return np.where(number < groups[parts.begin], before, found)

    # ---- columns

    def _at(self, position: int) -> pa.ChunkedArray:
        return self.rows.table.column(position)

    def _column(self, number: int) -> pa.Array:
        """Returns an argument's values, by coded rows."""
        return whole(self._at(self.function.arguments[number]))

    def _integers(self, number: int) -> tuple[Integers, NDArray[np.bool_]]:
        """Returns an argument's integers at each place, and which are NULL; those are 0."""
        found = self._column(number).take(pa.array(self.row))
        is_null = nulls(found)
        return np.where(is_null, 0, integers(found)), is_null

    def _stored(self, values: Exact, is_null: NDArray[np.bool_] | None = None) -> pa.Array:
        """Returns integers in the function's type, decimals as units.

        Raises:
            Declined: One is beyond it.
        """
        type_ = arrow_type(self.function.type)
        if is_null is not None:
            values = np.where(is_null, 0, values)
        if pa.types.is_decimal(type_):
            if _most(values) >= 10**type_.precision:
                raise Declined("a sum is beyond its type, which is Spark's to tell")
            return _decimals(values, is_null, type_)
        if _most(values) >= 2 ** (type_.bit_width - 1) and self.function.name == "sum":
            raise Declined("a sum is beyond its type, which is Spark's to tell")
        return pa.array(values.astype(np.int64), mask=is_null).cast(type_)


def _decimals(units: Exact, is_null: NDArray[np.bool_] | None, type_: pa.DataType) -> pa.Array:
    """Returns decimals of so many units, of up to 128 bits."""
    both = np.empty((len(units), 2), np.int64)
    if units.dtype == object:
        both[:, 0] = (units & (2**64 - 1)).astype(np.uint64).view(np.int64)
        both[:, 1] = (units >> 64).astype(np.int64)
    else:
        both[:, 0], both[:, 1] = units, units >> 63
    found = pa.Array.from_buffers(type_, len(units), [None, pa.py_buffer(both)])
    if is_null is None:
        return found
    return pc.if_else(pa.array(is_null), pa.scalar(None, type_), found)


def _edges(keys: Sequence[Integers]) -> tuple[Integers, Integers]:
    """Returns for each of some sorted rows the first and the last that is equal to it in all keys."""
    count = len(keys[0])
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    differs = np.zeros(count - 1, np.bool_)
    for key in keys:
        differs |= key[1:] != key[:-1]
    starts = np.flatnonzero(np.append(True, differs))
    lengths = np.diff(np.append(starts, count))
    return np.repeat(starts, lengths), np.repeat(starts + lengths - 1, lengths)


def _until(values: Exact) -> Exact:
    """Returns what values come to before each place, and before what lies behind the last."""
    zero = np.zeros(1, values.dtype if values.dtype == object else np.int64)
    return np.concatenate([zero, np.cumsum(values)])


def _over(spans: Sequence[Span], until: Exact) -> Exact:
    """Returns what is in the spans, by running totals."""
    parts = [until[np.maximum(hi + 1, lo)] - until[lo] for lo, hi in spans]
    total: Exact = sum(parts[1:], parts[0])
    return total


def _folded(values: Integers, spans: Sequence[Span], fold: Callable[..., Any], none: int) -> Integers:
    """Returns what values of the spans come to by a function of two, for which a value counts the same twice."""
    found = np.full(len(values), none)
    runs = [values]
    for lo, hi in spans:
        length = np.maximum(hi - lo + 1, 0)
        level = np.frexp(length.astype(np.float64))[1] - 1
        while 1 << len(runs) <= length.max(initial=0):
            half = 1 << (len(runs) - 1)
            runs.append(fold(runs[-1][:-half], runs[-1][half:]))
        for number, run in enumerate(runs):
            own = np.flatnonzero((level == number) & (length > 0))
            if len(own):
                both = fold(run[lo[own]], run[hi[own] - (1 << number) + 1])
                found[own] = fold(found[own], both)
    return found


def _most(values: Exact) -> int:
    """Returns the greatest absolute value, 0 of none."""
    return max(-int(values.min()), int(values.max())) if len(values) else 0
