"""Arrays and records evaluated in Python: places, comparisons, what is longer or shorter, and their texts' parts.

Arrays have one dimension and are counted from 1. Where equality decides, NULL equals NULL as in PostgreSQL's functions
of arrays; where SQL's third truth value counts (`@>`, `&&`), NULL equals nothing.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from mz_dagster.functions.arrays.dimensions import Plain, from_one
from mz_dagster.functions.arrays.limits import ARRAY_ELEMENTS, SEVERAL_DIMENSIONS, TOO_LONG
from mz_dagster.functions.arrays.parts import PARTS
from mz_dagster.functions.arrays.set_table import SERIES_ROWS, TOO_MANY, ZERO_STEP
from mz_dagster.functions.errors import NUMERIC_OVERFLOW, failure
from mz_dagster.functions.numbers.numerics import scaled, unscaled
from mz_dagster.functions.registry import function
from mz_dagster.functions.value_order import Key, nullable_key, order_key
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind

#: Returns what is made of the arguments' values, for a call.
Builder = Callable[[Call], Callable[..., Any]]


def _element_key(call: Call, argument: int = 0) -> Key:
    """Returns what the elements of an argument compare by; one of NULL is like others, and the greatest."""
    element = call.arguments[argument].type.element
    assert element is not None
    return nullable_key(order_key(element))


def _compared(compare: Callable[[Any, Any], bool]) -> Builder:
    def build(call: Call) -> Callable[..., bool]:
        left_key, right_key = (order_key(one.type) for one in call.arguments)
        return lambda left, right: compare(left_key(left), right_key(right))

    return build


def _contains(whole_first: bool) -> Builder:
    def build(call: Call) -> Callable[..., bool]:
        key = _element_key(call)

        def contains(whole: Sequence[Any], part: Sequence[Any]) -> bool:
            return None not in part and set(map(key, part)) <= set(map(key, whole))

        return contains if whole_first else lambda part, whole: contains(whole, part)

    return build


def _overlaps(call: Call) -> Callable[..., bool]:
    key = _element_key(call)

    def keys(values: Sequence[Any]) -> set[Any]:
        return {key(one) for one in values if one is not None}

    return lambda left, right: not keys(left).isdisjoint(keys(right))


def _subscript(array: Sequence[Any], place: int) -> Any:
    return array[place - 1] if 1 <= place <= len(array) else None


def _slice(array: Sequence[Any], first: int, last: int) -> list[Any]:
    return list(array[max(first, 1) - 1 : max(last, 0)])


def _length(array: Sequence[Any], dimension: int) -> int | None:
    return len(array) if array and dimension == 1 else None


def _lower(array: Sequence[Any], dimension: int) -> int | None:
    return 1 if array and dimension == 1 else None


def _trimmed(array: Sequence[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(array):
        raise failure(f"2202E number of elements to trim must be between 0 and {len(array)}")
    return list(array[: len(array) - count])


def _filled(value: Any, sizes: Sequence[int | None] | None) -> list[Any]:
    if sizes is None:
        raise failure("22004 dimension array or low bound array cannot be null")
    if None in sizes:
        raise failure("22004 dimension values cannot be null")
    counts = [one for one in sizes if one is not None]
    if any(one < 0 for one in counts) or (0 not in counts and any(one > ARRAY_ELEMENTS for one in counts)):
        raise failure(TOO_LONG)
    if not counts or 0 in counts:
        return []
    if len(counts) > 1:
        raise failure(SEVERAL_DIMENSIONS)
    return [value] * counts[0]


def _distinct(call: Call) -> Callable[[Sequence[Any]], list[Any]]:
    key = _element_key(call)
    return lambda array: [next(equal) for _, equal in groupby(array, key)]


def _bucket(call: Call) -> Callable[[Any, Sequence[Any]], int]:
    key, value_key = _element_key(call, 1), nullable_key(order_key(call.arguments[0].type))

    def bucket(value: Any, thresholds: Sequence[Any]) -> int:
        if None in thresholds:
            raise failure("22004 thresholds array must not contain NULLs")
        return bisect_right(thresholds, value_key(value), key=key)

    return bucket


@function("elements_array", (Kind.ARRAY, Kind.ARRAY), Kind.ARRAY, internal=True)
def at_places(array: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
    """Returns the elements at places that are counted from 1; NULL for none."""
    return [None if place is None else _subscript(array, place) for place in places]


def _with_null_last(array: Sequence[Any]) -> list[tuple[bool, Any]]:
    """Returns the elements as Spark orders them like PostgreSQL: beside whether they are NULL."""
    return [(one is None, one) for one in array]


def _in_order(array: Plain) -> list[tuple[int, Any, int]]:
    """Returns what orders arrays of any dimensions: their elements, NULL last, and behind these their dimensions."""
    elements, lengths, lowers = array
    ranked = [(int(one is None), one, 0) for one in elements]
    return ranked + [(-1, None, number) for number in (len(lengths), *lengths, *lowers)]


# Series of numbers.


def _series(call: Call) -> Callable[..., list[Any]]:
    element = call.type.element
    assert element is not None
    scale = element.scale if element.kind is Kind.NUMERIC else None

    def whole(value: Any) -> int:
        found = value if scale is None else unscaled(value, scale)
        if abs(found) >= 10**38:
            raise failure(NUMERIC_OVERFLOW)
        return int(found)

    def series(start: Any, stop: Any, *given: Any) -> list[Any]:
        first, last = whole(start), whole(stop)
        step = whole(given[0]) if given else 10 ** (scale or 0)
        if step == 0:
            raise failure(ZERO_STEP)
        count = max(0, (last - first) // step + 1)
        if count and abs(last - first) >= 10**38:
            raise failure(NUMERIC_OVERFLOW)
        if count > SERIES_ROWS:
            raise failure(TOO_MANY)
        units = range(first, first + count * step, step)
        return list(units) if scale is None else [scaled(one, scale) for one in units]

    return series


def _subscripts(array: Sequence[Any], dimension: int, backwards: bool = False) -> list[int]:
    places = list(range(1, len(array) + 1)) if dimension == 1 else []
    return places[::-1] if backwards else places


#: Strict functions: NULL for NULL.
STRICT_ARRAYS: Mapping[str, Builder] = {
    **{f"{name}_array": _compared(getattr(operator, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "array_contains": _contains(True),
    "array_contained": _contains(False),
    "array_overlaps": _overlaps,
    "array_subscript": lambda _: _subscript,
    "array_slice": lambda _: _slice,
    "cardinality": lambda _: len,
    "array_length": lambda _: _length,
    "array_upper": lambda _: _length,
    "array_lower": lambda _: _lower,
    "array_ndims": lambda _: lambda array: 1 if array else None,
    "array_dims": lambda _: lambda array: f"[1:{len(array)}]" if array else None,
    "trim_array": lambda _: _trimmed,
    "order_array": lambda _: _with_null_last,
    **{f"{name}_dimensioned": _compared(getattr(operator, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "dimensioned": lambda _: lambda *parts: parts,
    "dimensioned_list": lambda _: from_one,
    "order_dimensioned": lambda _: _in_order,
    "field": lambda _: operator.getitem,
    **PARTS,
    "generate_subscripts": lambda _: _subscripts,
    "generate_subscripts_reversed": lambda _: _subscripts,
    "width_bucket_array": _bucket,
    "distinct_elements": _distinct,
    **{f"generate_series_{kind}{by}": _series for kind in ("int4", "int8", "numeric") for by in ("", "_by_1")},
}


# Functions of which NULL is an argument like others.


def _places(call: Call) -> Callable[[Sequence[Any], Any], list[int]]:
    """Returns the function to the places of the elements that are not distinct from a value, in order."""
    key = _element_key(call)

    def places(array: Sequence[Any], value: Any) -> list[int]:
        wanted = key(value)
        return [place for place, one in enumerate(array, 1) if key(one) == wanted]

    return places


def _position(call: Call) -> Callable[..., int | None]:
    places = _places(call)
    return lambda array, value: None if array is None else next(iter(places(array, value)), None)


def _position_from(call: Call) -> Callable[..., int | None]:
    places = _places(call)

    def position(array: Sequence[Any] | None, value: Any, start: int | None) -> int | None:
        # Where PostgreSQL knows before that there is no such element it does not look at the start.
        if not array or (value is None and None not in array):
            return None
        if start is None:
            raise failure("22004 initial position must not be null")
        return next((place for place in places(array, value) if place >= start), None)

    return position


def _positions(call: Call) -> Callable[..., list[int] | None]:
    places = _places(call)
    return lambda array, value: None if array is None else places(array, value)


def _removed(call: Call) -> Callable[..., list[Any] | None]:
    key = _element_key(call)

    def removed(array: Sequence[Any] | None, value: Any) -> list[Any] | None:
        unwanted = key(value)
        return None if array is None else [one for one in array if key(one) != unwanted]

    return removed


def _replaced(call: Call) -> Callable[..., list[Any] | None]:
    key = _element_key(call)

    def replaced(array: Sequence[Any] | None, old: Any, new: Any) -> list[Any] | None:
        wanted = key(old)
        return None if array is None else [new if key(one) == wanted else one for one in array]

    return replaced


def _concatenated(left: Sequence[Any] | None, right: Sequence[Any] | None) -> Sequence[Any] | None:
    return right if left is None else left if right is None else [*left, *right]


def _joined(texts: Sequence[str | None] | None, separator: str | None, shown: str | None = None) -> str | None:
    if texts is None or separator is None:
        return None
    every = (shown if one is None else one for one in texts)
    return separator.join([one for one in every if one is not None])


def _parts(text: str | None, separator: str | None, null: str | None = None) -> list[str | None] | None:
    if text is None:
        return None
    if text == "":
        return []
    found = list(text) if separator is None else [text] if separator == "" else text.split(separator)
    return [None if one == null else one for one in found]


#: Functions that are called for NULL, too.
LENIENT_ARRAYS: Mapping[str, Builder] = {
    "array": lambda _: lambda *values: list(values),
    "record": lambda _: lambda *values: values,
    "array_fill": lambda _: _filled,
    "array_append": lambda _: lambda array, value: [*(array or ()), value],
    "array_prepend": lambda _: lambda value, array: [value, *(array or ())],
    "array_cat": lambda _: _concatenated,
    "array_position": _position,
    "array_position_from": _position_from,
    "array_positions": _positions,
    "array_remove": _removed,
    "array_replace": _replaced,
    "array_to_string": lambda _: _joined,
    "string_to_array": lambda _: _parts,
    "string_to_array_by": lambda _: _parts,
}
