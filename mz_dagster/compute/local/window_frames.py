"""Frames of window functions on columns: for each row of sorted partitions the places that it sees, as spans.

A frame is an interval of places; less what is excluded it is up to three (`spark.window.positions` draws them). Bounds
of RANGE at a distance are found by bisection among the groups of peers, whose keys are looked at once each.

What was measured against it is with `window_functions`; Arrow has no frames.

With NULLS FIRST a NULL key is less, with NULLS LAST greater than all others, and peers of NULLs are NULLs. NaN is
greater than all numbers, and NaN plus or minus a distance is NaN. Infinity less infinity is, as in PostgreSQL, whatever
makes the frame larger. A bound beyond the type's last value lies behind all keys. A distance is cut to the key's scale,
which loses nothing. An interval is added to dates and timestamps as `+` does.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.coded_rows import sorting_codes
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.relation import ColumnOrder, FrameBound, FrameExclusion, FrameUnit, WindowFrame
from mz_dagster.scalars.infinity import INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.scalar import Call, ColumnRef
from mz_dagster.scalars.types import TIMESTAMP, Kind, ScalarType
from mz_dagster.scalars.values import Interval
from mz_dagster.storage.plain_cells import plain_cells
from mz_dagster.storage.row_numbers import order_by

Integers: TypeAlias = NDArray[np.int64]
#: Places from one to another, both included; empty where the first is behind the other.
Span: TypeAlias = tuple[Integers, Integers]

#: Farther than any place.
FAR = 2**31
_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.TIME)
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_MICROSECONDS_OF_DAY = 86_400_000_000


@dataclass(frozen=True)
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
        keys = [sorting_codes(cells[one.position], one) for one in order]
        sorted_rows = order_by([partition, *keys, *cells])
        parts = _edges([partition[sorted_rows]])
        peers = _edges([one[sorted_rows] for one in (partition, *keys)])
        return cls(sorted_rows, *parts, *peers)

    @cached_property
    def at(self) -> Integers:
        """Each place."""
        return np.arange(len(self.order))

    @cached_property
    def groups(self) -> Integers:
        """The number of each place's group of peers, over all partitions."""
        return np.cumsum(self.first == self.at) - 1

    @cached_property
    def group_firsts(self) -> Integers:
        """The first place of each group of peers."""
        return np.flatnonzero(self.first == self.at)


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of rows in partitions.

    Attributes:
        partitions: They.
        order: What they are sorted by.
        types: Of the rows' columns.
        column: Returns the values of a column at some places.
    """

    partitions: Partitions
    order: Sequence[ColumnOrder]
    types: Sequence[ScalarType]
    column: Callable[[int, Integers], pa.Array]

    def spans(self, frame: WindowFrame) -> list[Span]:
        """Returns the places that each row's frame holds, in order."""
        parts = self.partitions
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
        if _is_distance(frame, frame.start):
            return self._at_distance(frame.start, starts=True)
        steps = int(_steps(frame.start))
        if frame.unit is FrameUnit.ROWS:
            return np.maximum(parts.at + steps, parts.begin)
        return self._of_group(steps, parts.first, parts.begin, parts.end + 1)

    def _end(self, frame: WindowFrame) -> Integers:
        parts = self.partitions
        if frame.end.unbounded:
            return parts.end
        if _is_distance(frame, frame.end):
            return self._at_distance(frame.end, starts=False) - 1
        steps = int(_steps(frame.end))
        if frame.unit is FrameUnit.ROWS:
            return np.minimum(parts.at + steps, parts.end)
        return self._of_group(steps, parts.last, parts.begin - 1, parts.end)

    def _of_group(self, steps: int, edge: Integers, before: Integers, behind: Integers) -> Integers:
        """Returns an edge of the group so many groups on, or what lies before or behind the partition's."""
        if not steps or not len(edge):
            return edge
        parts, groups = self.partitions, self.partitions.groups
        number = groups + steps
        found = edge[parts.group_firsts[np.clip(number, 0, len(parts.group_firsts) - 1)]]
        found = np.where(number > groups[parts.end], behind, found)
        return np.where(number < groups[parts.begin], before, found)

    def _at_distance(self, bound: FrameBound, *, starts: bool) -> Integers:
        """Returns the place of the first row that is not before the frame, or that is behind it."""
        parts = self.partitions
        if not len(parts.order):
            return parts.at
        places = parts.group_firsts
        begins, ends = parts.groups[parts.begin[places]].tolist(), parts.groups[parts.end[places]].tolist()
        (order,) = self.order
        type_ = self.types[order.position]
        keys = _keys(self.column(order.position, places), type_)
        told = _Distance(order, type_, bound, starts=starts)
        found: list[int] = []
        for own, begin, end in zip(keys, begins, ends, strict=True):
            is_behind = told.is_behind(own)
            found.append(bisect_left(keys, True, begin, end + 1, key=is_behind))
        reached = np.array(found, np.int64)
        place = np.append(places, len(parts.order))[reached]
        within: Integers = np.minimum(place, parts.end[places] + 1)
        return within[parts.groups]


def _steps(bound: FrameBound) -> Any:
    """Returns by how much a bound lies behind the current row, or its group."""
    assert bound.offset is not None
    value: Any = bound.offset.value
    return value if not isinstance(value, int) else min(value, FAR) * (-1 if bound.preceding else 1)


def _is_distance(frame: WindowFrame, bound: FrameBound) -> bool:
    return frame.unit is FrameUnit.RANGE and not bound.unbounded and bool(_steps(bound))


def _keys(values: pa.Array, type_: ScalarType) -> list[Any]:
    """Returns the plain form of keys; of a date that of its midnight."""
    found = plain_cells(values, type_)
    return (
        found if type_.kind is not Kind.DATE else [None if one is None else one * _MICROSECONDS_OF_DAY for one in found]
    )


@dataclass(frozen=True, slots=True)
class _Distance:
    """A bound of RANGE at a distance.

    Attributes:
        order: Of the key.
        type: Its type.
        bound: The bound.
        starts: Whether frames begin there; else they end.
    """

    order: ColumnOrder
    type: ScalarType
    bound: FrameBound
    starts: bool

    @property
    def _adds(self) -> bool:
        return self.order.descending == self.bound.preceding

    def is_behind(self, own: Any) -> Callable[[Any], bool]:
        """Returns what tells of a key whether it is in or behind the frame of `own`, or only whether it is behind."""
        ascending, adds, nulls_first = not self.order.descending, self._adds, self.order.nulls_first
        if own is None:
            # Peers of NULLs are NULLs, which are all at one end.
            return lambda key: nulls_first or key is None if self.starts else nulls_first and key is not None
        target = self._target(own)

        def is_before(key: Any) -> bool:
            if key is None:
                return nulls_first
            below, above = self._beyond(key, adds=adds) if target is None else _compared(key, target)
            if self.starts:
                return below if ascending else above
            return not (above if ascending else below)

        return lambda key: not is_before(key)

    def _beyond(self, key: Any, *, adds: bool) -> tuple[bool, bool]:
        """Returns whether a key is below or above a bound that lies beyond all finite ones, where it moves to."""
        assert self.bound.offset is not None
        if not isinstance(self.bound.offset.value, Interval):
            return adds, not adds
        infinite = (INFINITY if adds else NEGATIVE_INFINITY).stored(Kind.TIMESTAMP)
        return (key < infinite, key == infinite) if adds else (key == infinite, key > infinite)

    def _target(self, own: Any) -> Any:
        """Returns the value at which the bound lies; None if its type has no such value."""
        assert self.bound.offset is not None
        value: Any = self.bound.offset.value
        if isinstance(value, Interval):
            moment = TIMESTAMP if self.type.kind is Kind.DATE else self.type
            name = f"{'add' if self._adds else 'subtract'}_{moment.kind.value}_interval"
            try:
                return compiled(Call(name, (ColumnRef(0, moment), self.bound.offset), moment))((own,))
            except SqlFailure:
                return None
        if self.type.kind in _FLOATS:
            moved = own + float(value) if self._adds else own - float(value)
            if math.isnan(moved) and not math.isnan(own):
                return -math.inf if self.starts != self.order.descending else math.inf
            return moved
        with localcontext() as context:
            context.prec = 100
            rounding = ROUND_FLOOR if self.starts == self.bound.preceding else ROUND_CEILING
            distance = Decimal(value).quantize(Decimal(1).scaleb(-self.type.scale), rounding)
            if self.type.kind in _INTEGERS:
                reached = own + int(distance) if self._adds else own - int(distance)
                return reached if -(2**63) <= reached < 2**63 else None
            if distance.scaleb(self.type.scale) >= 10**38:
                return None
            moved = own + distance if self._adds else own - distance
            return moved if abs(moved.scaleb(self.type.scale)) < 10**38 else None


def _compared(key: Any, target: Any) -> tuple[bool, bool]:
    """Returns whether a key is below, and whether it is above a value; NaN is above all numbers."""
    if isinstance(key, float) and (math.isnan(key) or math.isnan(target)):
        return math.isnan(target) and not math.isnan(key), math.isnan(key) and not math.isnan(target)
    return key < target, key > target


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
