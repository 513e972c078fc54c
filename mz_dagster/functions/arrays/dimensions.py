"""Arrays of any number of dimensions in plain Python, whatever their elements are.

In its plain form such an array is a tuple of its elements, row by row, its lengths and its lower bounds, outermost
dimension first; an empty one has no dimensions (`scalars.types.dimensioned`). What compares elements is elsewhere: the
functions of lists do, over the first of the three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

from mz_dagster.functions.arrays.limits import ARRAY_ELEMENTS, MOST_DIMENSIONS, TOO_LONG
from mz_dagster.functions.errors import failure, out_of_range
from mz_dagster.functions.function import Nullability
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

#: The plain form: elements, lengths, lower bounds.
Plain: TypeAlias = tuple[Sequence[Any], Sequence[int], Sequence[int]]

_MOST = 2**31 - 1
_MISMATCH = "2202E multidimensional arrays must have array expressions with matching dimensions"
_INCOMPATIBLE = "2202E cannot concatenate incompatible arrays"
_OUT_OF_RANGE = out_of_range(Kind.INT4)


def empty() -> Plain:
    """Returns the array without elements, which has no dimensions."""
    return [], [], []


def checked(elements: Sequence[Any], lengths: Sequence[int], lowers: Sequence[int]) -> Plain:
    """Returns an array, unless it has more dimensions or elements than PostgreSQL's can have, or too large bounds."""
    check_shape(lengths, lowers)
    return (elements, lengths, lowers) if elements else empty()


def check_shape(lengths: Sequence[int], lowers: Sequence[int]) -> None:
    """Raises what PostgreSQL says of arrays that no array can be as large as."""
    if len(lengths) > MOST_DIMENSIONS:
        raise too_deep(len(lengths))
    count = 1
    for length in lengths:
        count *= length
        if length < 0 or count > _MOST:
            raise failure(TOO_LONG)
    if lengths and count > ARRAY_ELEMENTS:
        raise failure(TOO_LONG)
    for length, lower in zip(lengths, lowers, strict=True):
        if lower + length > _MOST:
            raise failure(f"54000 array lower bound is too large: {lower}")


def is_shape(count: int | None, lengths: Sequence[int] | None, lowers: Sequence[int] | None) -> bool:
    """Returns whether lengths and lower bounds are those of an array of so many elements.

    Raises:
        SqlFailure: No array is as large.
    """
    if count is None or lengths is None or lowers is None or len(lengths) != len(lowers):
        return False
    if None in lengths or None in lowers:
        return False
    check_shape(lengths, lowers)
    return (prod(lengths) if lengths else 0) == count and (count > 0 or not lengths)


def too_deep(count: int) -> SqlFailure:
    """Returns the failure of an array of so many dimensions, which are too many."""
    return failure(f"54000 number of array dimensions ({count}) exceeds the maximum allowed ({MOST_DIMENSIONS})")


def from_one(elements: Sequence[Any]) -> Plain:
    """Returns the array of one dimension, counted from 1.

    Example:
        >>> from_one([7, 8]), from_one([])
        (([7, 8], [2], [1]), ([], [], []))
    """
    return (elements, [len(elements)], [1]) if elements else empty()


@function("dimensions_text", (Kind.ARRAY, Kind.ARRAY), Kind.TEXT, nullability=Nullability.ALWAYS)
def dimensions_text(lengths: Sequence[int], lowers: Sequence[int]) -> str | None:
    """Returns what `array_dims` shows.

    Example:
        >>> dimensions_text([2, 3], [1, -1])
        '[1:2][-1:1]'
    """
    bounds = zip(lengths, lowers, strict=True)
    return "".join([f"[{lower}:{lower + length - 1}]" for length, lower in bounds]) or None


def nested_json(elements: Sequence[str], lengths: Sequence[int], outer: str = ",", inner: str = ",") -> str:
    """Returns the JSON of an array of arrays, given that of its elements and what stands between members.

    Example:
        >>> nested_json(["1", "2", "3", "null"], [2, 2])
        '[[1,2],[3,null]]'
    """
    found = list(elements)
    for depth in range(len(lengths), 0, -1):
        between, length = (inner if depth > 1 else outer), lengths[depth - 1]
        found = ["[" + between.join(found[at : at + length]) + "]" for at in range(0, len(found), length)]
    return found[0] if lengths else "[]"


@function("one_dimension", (Kind.DIMENSIONED, Kind.TEXT), Kind.ARRAY, fallible=True)
def one_dimension(array: Plain, message: str) -> Sequence[Any]:
    """Returns the elements of an array of one dimension; of several, `message` is the error."""
    if len(array[1]) > 1:
        raise failure(message)
    return array[0]


@function("counted_from_one", (Kind.DIMENSIONED, Kind.TEXT), Kind.ARRAY, fallible=True)
def counted_from_one(array: Plain, message: str) -> Sequence[Any]:
    """Returns the elements of an array of one dimension that is counted from 1; of others, `message` is the error."""
    if len(array[1]) > 1 or any(lower != 1 for lower in array[2]):
        raise failure(message)
    return array[0]


@function("dimensioned_subscript", (Kind.DIMENSIONED, Kind.ARRAY), None, nullability=Nullability.ALWAYS)
def subscript(array: Plain, places: Sequence[int | None]) -> Any:
    """Returns the element at subscripts, one for each dimension; None if there is none.

    Example:
        >>> subscript(([1, 2, 3, 4], [2, 2], [1, 1]), [2, 1])
        3
    """
    elements, lengths, lowers = array
    if len(places) != len(lengths):
        return None
    at = 0
    for place, length, lower in zip(places, lengths, lowers, strict=True):
        if place is None or not 0 <= place - lower < length:
            return None
        at = at * length + place - lower
    return elements[at]


@function(
    "dimensioned_slice",
    (Kind.DIMENSIONED, Kind.ARRAY, Kind.ARRAY, Kind.ARRAY),
    Kind.DIMENSIONED,
    nullability=Nullability.ALWAYS,
)
def sliced(
    array: Plain, firsts: Sequence[int | None], lasts: Sequence[int | None], given: Sequence[bool]
) -> Plain | None:
    """Returns the part between bounds, counted from 1; None if one that is given is NULL.

    Args:
        array: The whole.
        firsts: Where it begins in each of the first dimensions; of the others, all is taken.
        lasts: Where it ends.
        given: Which of these, of `firsts` and then of `lasts`, were written; others are the array's own bounds.
    """
    bounds = [*firsts, *lasts]
    if any(is_given and one is None for one, is_given in zip(bounds, given, strict=True)):
        return None
    elements, lengths, lowers = array
    count = len(firsts)
    if not lengths or len(lengths) < count:
        return empty()
    ranges: list[tuple[int, int]] = []
    for dimension, (length, lower) in enumerate(zip(lengths, lowers, strict=True)):
        first, last = lower, lower + length - 1
        if dimension < count:
            wanted, end = firsts[dimension], lasts[dimension]
            first = max(first, wanted) if given[dimension] and wanted is not None else first
            last = min(last, end) if given[count + dimension] and end is not None else last
        if first > last:
            return empty()
        ranges.append((first - lower, last - lower + 1))
    places: Iterable[int] = [0]
    for length, (start, stop) in zip(lengths, ranges, strict=True):
        places = [at * length + one for at in places for one in range(start, stop)]
    shape = [stop - start for start, stop in ranges]
    return [elements[at] for at in places], shape, [1] * len(shape)


@function("dimensioned_trim", (Kind.DIMENSIONED, Kind.INT4), Kind.DIMENSIONED, fallible=True)
def trimmed(array: Plain, count: int) -> Plain | None:
    """Returns an array without the last rows of its first dimension."""
    length = array[1][0] if array[1] else 0
    if not 0 <= count <= length:
        raise failure(f"2202E number of elements to trim must be between 0 and {length}")
    return sliced(array, [None], [array[2][0] + length - count - 1], [False, True]) if length else empty()


@function("dimensioned_cat", (Kind.DIMENSIONED, Kind.DIMENSIONED), Kind.DIMENSIONED, fallible=True)
def concatenated(left: Plain, right: Plain) -> Plain:
    """Returns two arrays one behind the other, or one as a row of the other.

    Example:
        >>> concatenated(([1, 2], [1, 2], [1, 1]), ([3, 4], [2], [1]))
        ([1, 2, 3, 4], [2, 2], [1, 1])
    """
    if not left[1] and right[1]:
        return right
    if not right[1]:
        return left
    difference = len(left[1]) - len(right[1])
    if abs(difference) > 1:
        raise failure(_INCOMPATIBLE)
    outer = right if difference < 0 else left
    row = [left[1], left[2]] if difference < 0 else [right[1], right[2]]
    if difference == 0:
        row = [row[0][1:], row[1][1:]]
    if [[*outer[1][1:]], [*outer[2][1:]]] != [[*one] for one in row]:
        raise failure(_INCOMPATIBLE)
    added = right[1][0] if difference == 0 else 1
    return checked([*left[0], *right[0]], [outer[1][0] + added, *outer[1][1:]], outer[2])


@function("dimensioned_append", (Kind.DIMENSIONED, Kind.ARRAY), Kind.DIMENSIONED, fallible=True)
def appended(array: Plain, one: Sequence[Any]) -> Plain:
    """Returns an array of one dimension with the one element of a list behind its own."""
    elements, lengths, lowers = _of_one_or_none(array)
    if not lengths:
        return from_one(one)
    if lowers[0] + lengths[0] > _MOST:
        raise failure(_OUT_OF_RANGE)
    return checked([*elements, *one], [lengths[0] + 1], lowers)


@function("dimensioned_prepend", (Kind.ARRAY, Kind.DIMENSIONED), Kind.DIMENSIONED, fallible=True)
def prepended(one: Sequence[Any], array: Plain) -> Plain:
    """Returns an array of one dimension with the one element of a list before its own; its bound stays."""
    elements, lengths, lowers = _of_one_or_none(array)
    if not lengths:
        return from_one(one)
    if lowers[0] <= -_MOST - 1:
        raise failure(_OUT_OF_RANGE)
    return checked([*one, *elements], [lengths[0] + 1], lowers)


def _of_one_or_none(array: Plain) -> Plain:
    if len(array[1]) > 1:
        raise failure("22000 argument must be empty or one-dimensional array")
    return array


@function("dimensioned_kept", (Kind.ARRAY, Kind.ARRAY), Kind.DIMENSIONED)
def kept(elements: Sequence[Any], lowers: Sequence[int]) -> Plain:
    """Returns what is left of the elements of an array of one dimension, which keeps its bound."""
    return (elements, [len(elements)], lowers) if elements else empty()


@function("place_from", (Kind.INT4, Kind.INT4), Kind.INT4)
def place_from(start: int, lower: int) -> int:
    """Returns the place, counted from 1, of a subscript where the first is `lower`; the first if it is before that."""
    return min(max(start - lower + 1, 1), _MOST)


@function("shifted_places", (Kind.ARRAY, Kind.INT4), Kind.ARRAY)
def shifted(places: Sequence[int], by: int) -> list[int]:
    """Returns places that are counted from elsewhere."""
    return [one + by for one in places]


@function("dimensioned_subscripts", (Kind.ARRAY, Kind.ARRAY, Kind.INT4, Kind.BOOL), Kind.ARRAY)
def subscripts(lengths: Sequence[int], lowers: Sequence[int], dimension: int, backwards: bool) -> list[int]:
    """Returns the subscripts of a dimension in order, or backwards."""
    if not 1 <= dimension <= len(lengths):
        return []
    first = lowers[dimension - 1]
    found = range(first, first + lengths[dimension - 1])
    return list(found[::-1] if backwards else found)


@function("dimensioned_fill", (Kind.ARRAY, Kind.DIMENSIONED), Kind.DIMENSIONED, fallible=True)
@function("dimensioned_fill_from", (Kind.ARRAY, Kind.DIMENSIONED, Kind.DIMENSIONED), Kind.DIMENSIONED, fallible=True)
def filled(one: Sequence[Any], lengths: Plain, lowers: Plain | None = None) -> Plain:
    """Returns an array with the one element of a list in all places; without lower bounds, they are 1."""
    if lowers is None:
        lowers = ([1] * len(lengths[0]), lengths[1], lengths[2])
    for bounds in (lengths, lowers):
        if len(bounds[1]) > 1:
            raise failure("2202E wrong number of array subscripts")
        if None in bounds[0]:
            raise failure("22004 dimension values cannot be null")
        if bounds is lengths and len(bounds[0]) > MOST_DIMENSIONS:
            raise too_deep(len(bounds[0]))
    if len(lengths[0]) != len(lowers[0]):
        raise failure("2202E wrong number of array subscripts")
    check_shape(lengths[0], lowers[0])
    count = prod(lengths[0]) if lengths[0] else 0
    return ([*one] * count, lengths[0], lowers[0]) if count else empty()


@function("stacked_arrays", (Kind.ARRAY,), Kind.DIMENSIONED, fallible=True)
def stacked(rows: Sequence[Plain | None]) -> Plain:
    """Returns what `ARRAY[...]` makes of arrays: one of one more dimension, whose rows they are.

    Example:
        >>> stacked([([1, 2], [2], [1]), ([3, 4], [2], [1])])
        ([1, 2, 3, 4], [2, 2], [1, 1])
    """
    present = [one for one in rows if one is not None and one[1]]
    if not present:
        return empty()
    _, lengths, lowers = present[0]
    if len(lengths) >= MOST_DIMENSIONS:
        raise too_deep(len(lengths) + 1)
    if len(present) < len(rows) or any([*one[1]] != [*lengths] or [*one[2]] != [*lowers] for one in present):
        raise failure(_MISMATCH)
    return checked([cell for one in present for cell in one[0]], [len(rows), *lengths], [1, *lowers])


@function("accumulated_arrays", (Kind.ARRAY,), Kind.DIMENSIONED, fallible=True)
def accumulated(rows: Sequence[Plain | None]) -> Plain:
    """Returns what `array_agg` makes of arrays: one of one more dimension, whose rows they are."""
    first: Plain | None = None
    for one in rows:
        if one is None:
            raise failure("22004 cannot accumulate null arrays")
        if first is None:
            if not one[1]:
                raise failure("2202E cannot accumulate empty arrays")
            if len(one[1]) >= MOST_DIMENSIONS:
                raise too_deep(len(one[1]) + 1)
            first = one
        elif [*one[1]] != [*first[1]] or [*one[2]] != [*first[2]]:
            raise failure("2202E cannot accumulate arrays of different dimensionality")
    if first is None:
        return empty()
    return checked([cell for one in rows if one for cell in one[0]], [len(rows), *first[1]], [1, *first[2]])
