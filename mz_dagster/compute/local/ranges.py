"""Which rows of two sides compare as is asked.

What is computed of the one side is put in order, behind the keys that must be equal if there are some; what rows of the
other are compared with says from where to where in it their matches are. So a join by ranges costs a sort and what it
makes, not what a cross join would make, or one by the keys alone.

Two intervals overlap, `a.begin < b.end AND b.begin < a.end`, if one of them begins within the other. Each comparison by
itself leaves half of all pairs; so what begins within the other is looked for twice, from either side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.local.coded_rows import CodedRows, in_order_of_floats
from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.compute.local.expressions.numbers import nulls
from mz_dagster.compute.local.matching import RowPairs, spans
from mz_dagster.plan.bounding import Comparison
from mz_dagster.scalars.scalar import Scalar, columns_of
from mz_dagster.storage.row_numbers import floats_as_bits, is_stored_as_integer, order_by, ranked, stored_integers

_Numbers = NDArray[np.int64]

_COMPARE: Mapping[str, Callable[[_Numbers, np.int64], NDArray[np.bool_]]] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
#: With so few rows each of the other side is compared.
_FEW = 4


class Ranges(NamedTuple):
    """Where among the rows of one side, put together so, the matches of each row of the other are.

    Attributes:
        rows: The numbers of the one side's rows: in order of what is compared, without those of NULLs; or of the few
            rows of the other side one after the other, those that each meets.
        begin: By row of the other side: the place of its first match among them.
        counts: By row of the other side: how many matches it has.
    """

    rows: _Numbers
    begin: _Numbers
    counts: _Numbers

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return int(self.counts.sum())

    def pairs(self, most: int) -> tuple[_Numbers, _Numbers]:
        """Returns the numbers of the rows of the other side, and of those that they meet.

        Raises:
            TooManyMade: The pairs are more than `most`.
        """
        asking, places = spans(self.counts, self.begin, most)
        return asking, self.rows[places]


class Bound(NamedTuple):
    """With what something is compared.

    Attributes:
        operation: `eq`, `lt`, `le`, `gt` or `ge`.
        values: With what.
        null_passes: Whether what is compared with NULL passes.
    """

    operation: str
    values: pa.Array
    null_passes: bool = False


#: Ranges, and whether it is the right side's rows that are in order.
_Way: TypeAlias = tuple[Ranges, bool]


def ranges(values: pa.Array, asked: Sequence[Bound], keys: tuple[_Numbers, _Numbers] | None = None) -> Ranges:
    """Returns where the rows of one side are that compare as each row of another asks, with all it has.

    Args:
        values: What is compared, by row of the one side, in a form that is stored in its order.
        asked: With what, by row of the other side: values of the same type; one at least.
        keys: Of the rows of both sides: numbers from 0 on, which must be equal.

    Example:
        >>> between = [Bound("ge", pa.array([2, 9])), Bound("lt", pa.array([4, None]))]
        >>> found = ranges(pa.array([3, None, 2, 4]), between)
        >>> [numbers.tolist() for numbers in found.pairs(9)]
        [[0, 0], [0, 2]]
        >>> found = ranges(pa.array([3, None, 2, 4]), between, (np.array([1, 1, 0, 1]), np.array([1, 1])))
        >>> [numbers.tolist() for numbers in found.pairs(9)]
        [[0], [0]]
    """
    own, *bounds = _comparable([values, *(one.values for one in asked)])
    present = np.flatnonzero(~nulls(values)) if values.null_count else np.arange(len(values))
    if keys is None and len(bounds[0]) <= _FEW:
        return _of_few(own[present], present, asked, bounds)
    distinct, ranks = ranked(own[present])
    size = len(asked[0].values)
    first, end = np.zeros(size, np.int64), np.full(size, len(distinct))
    for (operation, others, null_passes), bound in zip(asked, bounds, strict=True):
        before, behind = first, end
        if operation in ("ge", "gt", "eq"):
            first = np.maximum(first, np.searchsorted(distinct, bound, "right" if operation == "gt" else "left"))
        if operation in ("le", "lt", "eq"):
            end = np.minimum(end, np.searchsorted(distinct, bound, "left" if operation == "lt" else "right"))
        if others.null_count:
            is_null = nulls(others)
            first, end = np.where(is_null, before, first), np.where(is_null, behind if null_passes else 0, end)
    if keys is not None:
        places = len(distinct) + 1
        ranks = keys[0][present] * places + ranks
        first, end = keys[1] * places + first, keys[1] * places + end
    order = order_by([ranks]) if len(ranks) else ranks
    begin, behind = (np.searchsorted(ranks[order], one) for one in (first, end))
    return Ranges(present[order], begin, np.maximum(behind - begin, 0))


def _of_few(own: _Numbers, rows: _Numbers, asked: Sequence[Bound], bounds: Sequence[_Numbers]) -> Ranges:
    """Returns the ranges of so few rows that each of another side is sooner compared with them than put in order.

    Args:
        own: What is compared.
        rows: The numbers of the rows that have it.
        asked: With what, by row of the other side.
        bounds: The same, as numbers that compare with `own`.
    """
    found = []
    for row in range(len(bounds[0])):
        passes = np.full(len(own), True)
        for (operation, others, null_passes), bound in zip(asked, bounds, strict=True):
            if others[row].is_valid:
                passes &= _COMPARE[operation](own, bound[row])
            else:
                passes &= null_passes
        found.append(rows[passes])
    counts = np.array([len(one) for one in found], np.int64)
    return Ranges(np.concatenate([rows[:0], *found]), np.cumsum(counts) - counts, counts)


def _comparable(arrays: Sequence[pa.Array]) -> list[_Numbers]:
    """Returns integers that compare as the values of some arrays of one type; those in the places of NULLs are any."""
    if is_stored_as_integer(arrays[0].type):
        return [stored_integers(one) for one in arrays]
    if pa.types.is_floating(arrays[0].type):
        bits = (floats_as_bits(one.fill_null(0.0), signs=False).to_numpy() for one in arrays)
        return [in_order_of_floats(one).astype(np.int64) for one in bits]
    together = pa.table({"values": pa.concat_arrays(arrays)})
    (codes,) = CodedRows(together, len(together)).compared
    return np.split(codes, np.cumsum([len(one) for one in arrays])[:-1])


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of one side.

    Attributes:
        rows: They.
        positions: Of the columns that are its.
    """

    rows: RowBatch
    positions: frozenset[int]

    def has(self, scalar: Scalar) -> bool:
        """Returns whether a scalar is over columns of this side alone."""
        return columns_of(scalar) <= self.positions

    def values(self, scalar: Scalar) -> pa.Array | None:
        """Returns what a scalar comes to; None if it fails for a row, or is not worked out here."""
        if not is_exact_in_python(scalar) or self.rows.rows > budget().frame_rows:
            return None
        found = evaluated(scalar, self.rows)
        return found.array(self.rows.rows) if found.errors is None else None


def compared_pairs(
    left: Side,
    right: Side,
    compared: Sequence[Comparison],
    keys: tuple[_Numbers, _Numbers] | None,
    most: int,
) -> RowPairs | None:
    """Returns the pairs of rows of two sides that may compare as is asked; None if what is asked says nothing of them.

    Of what is compared that is put in order by which there are the fewest pairs.

    Args:
        left: The one side.
        right: The other.
        compared: What is asked, each both ways; what does not compare the two sides says nothing.
        keys: Of the rows of both sides: numbers from 0 on, which must be equal; None if nothing must.
        most: How many pairs there may be.

    Raises:
        TooManyMade: They are more than `most`.
    """
    ways_round = (left, right), (right, left)
    between = [one for one in compared if any(a.has(one.scalar) and b.has(one.other) for a, b in ways_round)]
    scalars = dict.fromkeys(scalar for one in between for scalar in (one.scalar, one.other))
    values = {scalar: (left if left.has(scalar) else right).values(scalar) for scalar in scalars}
    asked: dict[Scalar, list[Comparison]] = {}
    for one in between:
        if values[one.scalar] is not None and values[one.other] is not None:
            asked.setdefault(one.scalar, []).append(one)

    def way(scalar: Scalar, asks: Sequence[Comparison]) -> _Way:
        """Returns the pairs of what a scalar's order tells, and whether it is the right side's."""
        own, *others = _of_one_type([values[one] for one in (scalar, *(each.other for each in asks))])
        bounds = [Bound(one.operation, with_, one.null_passes) for one, with_ in zip(asks, others, strict=True)]
        of_right = right.has(scalar)
        return ranges(own, bounds, keys if keys is None or not of_right else (keys[1], keys[0])), of_right

    by_few = [one for one in asked if keys is None and (left if right.has(one) else right).rows.rows <= _FEW]
    ways = [[way(scalar, asked[scalar])] for scalar in by_few or asked]
    if not ways:
        return None
    best = min(ways, key=_total)
    if _total(best) > budget().pairs_per_row * (left.rows.rows + right.rows.rows):
        lower = [[one for one in asked if side.has(one) and _is_lower(asked[one])] for side in (left, right)]
        overlaps = [
            [
                way(one, [Comparison(one, "gt", other), *asked[one]]),
                way(other, [Comparison(other, "ge", one), *asked[other]]),
            ]
            for one, other in product(*lower)
            if one.type.kind is other.type.kind
        ]
        best = min([best, *overlaps], key=_total)
    parts: list[RowPairs] = []
    for found, of_right in best:
        asking, met = found.pairs(most - sum(len(lefts) for lefts, _ in parts))
        parts.append((asking, met) if of_right else (met, asking))
    lefts, rights = zip(*parts, strict=True)
    return np.concatenate(lefts), np.concatenate(rights)


def _total(parts: Sequence[_Way]) -> int:
    return sum(found.total for found, _ in parts)


def _is_lower(asks: Sequence[Comparison]) -> bool:
    """Returns whether a value has to be less than others, as the begin of an interval that overlaps with another."""
    return any(one.operation in ("lt", "le") for one in asks)


def _of_one_type(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Returns values of one kind as values of one type: numerics of several scales are of several."""
    if len({one.type for one in arrays}) == 1:
        return list(arrays)
    # 38 digits, and as many of another's scale, have room in 256 bits.
    wide = pa.decimal256(76, max(one.type.scale for one in arrays))
    return [one.cast(wide) for one in arrays]
