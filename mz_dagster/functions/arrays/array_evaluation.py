"""Arrays and records evaluated in Python: places, comparisons, what is longer or shorter, and their texts' parts.

Arrays have one dimension and are counted from 1. Where equality decides, NULL equals NULL as in PostgreSQL's functions
of arrays; where SQL's third truth value counts (`@>`, `&&`), NULL equals nothing.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from mz_dagster.functions.arrays.dimensions import Plain, from_one
from mz_dagster.functions.arrays.limits import (
    ARRAY_ELEMENTS,
    SERIES_ROWS,
    SEVERAL_DIMENSIONS,
    TOO_LONG,
    TOO_MANY_ROWS,
    ZERO_STEP,
)
from mz_dagster.functions.errors import NUMERIC_OVERFLOW, failure
from mz_dagster.functions.function import COMPARISONS, Nullability, Pseudo, list_of
from mz_dagster.functions.numbers.numerics import scaled, unscaled
from mz_dagster.functions.registry import Named, function
from mz_dagster.functions.value_order import Key, nullable_key, order_key
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import BOOL, INT4, INT8, TEXT, Kind, ScalarType, array_of, numeric

_A, _E = Pseudo.ARRAY, Pseudo.ELEMENT
#: Returns what is made of the arguments' values, for a call.
Builder = Callable[[Call], Callable[..., Any]]


def _given(apply: Callable[..., Any]) -> Builder:
    """Returns the reference of a function that is the same for all types."""
    return lambda _: apply


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


@function(
    "array_overlaps",
    (Kind.ARRAY, Kind.ARRAY),
    Kind.BOOL,
    sql="&&",
    says="Whether two arrays have an element in common.",
    example="ARRAY[1, 4, 3] && ARRAY[2, 1]",
    gives="true",
    of_any={(_A, _A): BOOL},
    of_call=True,
)
def _overlaps(call: Call) -> Callable[..., bool]:
    key = _element_key(call)

    def keys(values: Sequence[Any]) -> set[Any]:
        return {key(one) for one in values if one is not None}

    return lambda left, right: not keys(left).isdisjoint(keys(right))


def _subscript(array: Sequence[Any], place: int) -> Any:
    return array[place - 1] if 1 <= place <= len(array) else None


@function(
    "array_slice",
    (Kind.ARRAY, Kind.INT4, Kind.INT4),
    Kind.ARRAY,
    sql="array_slice",
    says="The elements from one place to another.",
    example="(ARRAY[1, 2, 3, 4])[2:3]",
    gives="{2,3}",
    of_any={(_A, INT4, INT4): _A},
)
def _slice(array: Sequence[Any], first: int, last: int) -> list[Any]:
    return list(array[max(first, 1) - 1 : max(last, 0)])


@function(
    "array_length",
    (Kind.ARRAY, Kind.INT4),
    Kind.INT4,
    sql="array_length",
    says="How many elements an array has in a dimension, NULL if none.",
    example="array_length(ARRAY[1, 2, 3], 1)",
    gives="3",
    of_any={(_A, INT4): INT4},
    nullability=Nullability.ALWAYS,
)
@function(
    "array_upper",
    (Kind.ARRAY, Kind.INT4),
    Kind.INT4,
    sql="array_upper",
    says="The number of the last element.",
    example="array_upper(ARRAY[1, 8, 3], 1)",
    gives="3",
    of_any={(_A, INT4): INT4},
    nullability=Nullability.ALWAYS,
)
def _length(array: Sequence[Any], dimension: int) -> int | None:
    return len(array) if array and dimension == 1 else None


@function(
    "array_lower",
    (Kind.ARRAY, Kind.INT4),
    Kind.INT4,
    sql="array_lower",
    says="The number of the first element.",
    example="array_lower(ARRAY[5], 1)",
    gives="1",
    of_any={(_A, INT4): INT4},
    nullability=Nullability.ALWAYS,
)
def _lower(array: Sequence[Any], dimension: int) -> int | None:
    return 1 if array and dimension == 1 else None


@function(
    "trim_array",
    (Kind.ARRAY, Kind.INT4),
    Kind.ARRAY,
    sql="trim_array",
    says="An array without so many last elements.",
    example="trim_array(ARRAY[1, 2, 3, 4], 2)",
    gives="{1,2}",
    of_any={(_A, INT4): _A},
    fallible=True,
)
def _trimmed(array: Sequence[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(array):
        raise failure(f"2202E number of elements to trim must be between 0 and {len(array)}")
    return list(array[: len(array) - count])


@function(
    "array_fill",
    (),
    Kind.ARRAY,
    sql="array_fill",
    says="An array of so many equal elements.",
    example="array_fill(7, ARRAY[3])",
    gives="{7,7,7}",
    of_any={(_E, array_of(INT4)): _A},
    strict=False,
    fallible=True,
    nullability=Nullability.NEVER,
)
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


# What is left of an array of which equal elements are neighbours: the first of each.
@function("distinct_elements", (Kind.ARRAY,), Kind.ARRAY, of_call=True)
def _distinct(call: Call) -> Callable[[Sequence[Any]], list[Any]]:
    key = _element_key(call)
    return lambda array: [next(equal) for _, equal in groupby(array, key)]


@function(
    "width_bucket_array",
    (),
    Kind.INT4,
    sql="width_bucket",
    of_any={(_E, _A): INT4},
    fallible=True,
    of_call=True,
)
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


@function("order_array", (Kind.ARRAY,), Kind.ARRAY, internal=True)
def _with_null_last(array: Sequence[Any]) -> list[tuple[bool, Any]]:
    """Returns the elements as Spark orders them like PostgreSQL: beside whether they are NULL."""
    return [(one is None, one) for one in array]


@function("order_dimensioned", (Kind.DIMENSIONED,), Kind.ARRAY, internal=True)
def _in_order(array: Plain) -> list[tuple[int, Any, int]]:
    """Returns what orders arrays of any dimensions: their elements, NULL last, and behind these their dimensions."""
    elements, lengths, lowers = array
    ranked = [(int(one is None), one, 0) for one in elements]
    return ranked + [(-1, None, number) for number in (len(lengths), *lengths, *lowers)]


# Series of numbers.


def _numerics(types: Sequence[ScalarType]) -> ScalarType:
    return array_of(numeric(max(one.scale for one in types)))


@function(
    "generate_series_int4_by_1",
    (Kind.INT4, Kind.INT4),
    Kind.ARRAY,
    rows="generate_series",
    says="The numbers or moments from one to another, by steps.",
    example="(SELECT sum(n) FROM generate_series(2, 10, 4) AS g(n))",
    gives="18",
    fallible=True,
    type=list_of(INT4),
    of_call=True,
)
@function(
    "generate_series_int4",
    (Kind.INT4, Kind.INT4, Kind.INT4),
    Kind.ARRAY,
    rows="generate_series",
    fallible=True,
    type=list_of(INT4),
    of_call=True,
)
@function(
    "generate_series_int8_by_1",
    (Kind.INT8, Kind.INT8),
    Kind.ARRAY,
    rows="generate_series",
    fallible=True,
    type=list_of(INT8),
    of_call=True,
)
@function(
    "generate_series_int8",
    (Kind.INT8, Kind.INT8, Kind.INT8),
    Kind.ARRAY,
    rows="generate_series",
    fallible=True,
    type=list_of(INT8),
    of_call=True,
)
@function(
    "generate_series_numeric_by_1",
    (Kind.NUMERIC, Kind.NUMERIC),
    Kind.ARRAY,
    rows="generate_series",
    fallible=True,
    type=_numerics,
    of_call=True,
)
@function(
    "generate_series_numeric",
    (Kind.NUMERIC, Kind.NUMERIC, Kind.NUMERIC),
    Kind.ARRAY,
    rows="generate_series",
    fallible=True,
    type=_numerics,
    of_call=True,
)
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
            raise failure(TOO_MANY_ROWS)
        units = range(first, first + count * step, step)
        return list(units) if scale is None else [scaled(one, scale) for one in units]

    return series


@function(
    "generate_subscripts",
    (Kind.ARRAY, Kind.INT4),
    Kind.ARRAY,
    sql="generate_subscripts",
    of_any={(_A, INT4): array_of(INT4)},
    rows="generate_subscripts",
    says="The places of an array's elements.",
    example="(SELECT max(n) FROM generate_subscripts(ARRAY['a', 'b'], 1) AS g(n))",
    gives="2",
    type=list_of(INT4),
)
@function(
    "generate_subscripts_reversed",
    (Kind.ARRAY, Kind.INT4, Kind.BOOL),
    Kind.ARRAY,
    sql="generate_subscripts",
    of_any={(_A, INT4, BOOL): array_of(INT4)},
    rows="generate_subscripts",
    type=list_of(INT4),
)
def _subscripts(array: Sequence[Any], dimension: int, backwards: bool = False) -> list[int]:
    places = list(range(1, len(array) + 1)) if dimension == 1 else []
    return places[::-1] if backwards else places


function(
    "array_contains",
    (Kind.ARRAY, Kind.ARRAY),
    Kind.BOOL,
    sql="@>",
    of_any={(_A, _A): BOOL},
    of_call=True,
)(_contains(True))
function(
    "array_contained",
    (Kind.ARRAY, Kind.ARRAY),
    Kind.BOOL,
    sql="<@",
    of_any={(_A, _A): BOOL},
    of_call=True,
)(_contains(False))
for _symbol, _name in COMPARISONS.items():
    _builder = _compared(getattr(operator, _name))
    function(f"{_name}_array", (Kind.ARRAY, Kind.ARRAY), Kind.BOOL, sql=_symbol, of_any={(_A, _A): BOOL}, of_call=True)(
        _builder
    )
    function(f"{_name}_dimensioned", (Kind.DIMENSIONED, Kind.DIMENSIONED), Kind.BOOL, of_call=True)(_builder)
function(
    "array_subscript",
    (Kind.ARRAY, Kind.INT4),
    None,
    sql="array_subscript",
    says="An element, from 1 on.",
    example="(ARRAY[7, 8, 9])[2]",
    gives="8",
    of_any={(_A, INT4): _E},
    nullability=Nullability.ALWAYS,
    of_call=True,
)(_given(_subscript))


@function(
    "cardinality",
    (Kind.ARRAY,),
    Kind.INT4,
    sql="cardinality",
    says="How many elements an array has.",
    example="cardinality(ARRAY[1, 2])",
    gives="2",
    of_any={(_A,): INT4},
)
def _cardinality(array: Sequence[Any]) -> int:
    return len(array)


@function(
    "array_ndims",
    (Kind.ARRAY,),
    Kind.INT4,
    sql="array_ndims",
    says="How many dimensions an array has.",
    example="array_ndims(ARRAY[1])",
    gives="1",
    of_any={(_A,): INT4},
    nullability=Nullability.ALWAYS,
)
def _ndims(array: Sequence[Any]) -> int | None:
    return 1 if array else None


@function(
    "array_dims",
    (Kind.ARRAY,),
    Kind.TEXT,
    sql="array_dims",
    says="The bounds of an array, as text.",
    example="array_dims(ARRAY[5, 6])",
    gives="[1:2]",
    of_any={(_A,): TEXT},
    nullability=Nullability.ALWAYS,
)
def _dims(array: Sequence[Any]) -> str | None:
    return f"[1:{len(array)}]" if array else None


# The field of a record with a number, a literal.
function("field", (Kind.RECORD, Kind.INT4), None, nullability=Nullability.ALWAYS, of_call=True)(
    _given(operator.getitem)
)
# Of its elements, lengths and lower bounds; of a list.
function("dimensioned", (Kind.ARRAY, Kind.ARRAY, Kind.ARRAY), Kind.DIMENSIONED, of_call=True)(
    _given(lambda *parts: parts)
)
function("dimensioned_list", (Kind.ARRAY,), Kind.DIMENSIONED, of_call=True)(_given(from_one))


# Functions of which NULL is an argument like others.


def _places(call: Call) -> Callable[[Sequence[Any], Any], list[int]]:
    """Returns the function to the places of the elements that are not distinct from a value, in order."""
    key = _element_key(call)

    def places(array: Sequence[Any], value: Any) -> list[int]:
        wanted = key(value)
        return [place for place, one in enumerate(array, 1) if key(one) == wanted]

    return places


@function(
    "array_position",
    (),
    Kind.INT4,
    sql="array_position",
    says="Where an element first is.",
    example="array_position(ARRAY['sun', 'mon', 'tue'], 'mon')",
    gives="2",
    of_any={(_A, _E): INT4},
    strict=False,
    nullability=Nullability.ALWAYS,
    of_call=True,
)
def _position(call: Call) -> Callable[..., int | None]:
    places = _places(call)
    return lambda array, value: None if array is None else next(iter(places(array, value)), None)


@function(
    "array_position_from",
    (),
    Kind.INT4,
    sql="array_position",
    of_any={(_A, _E, INT4): INT4},
    strict=False,
    fallible=True,
    nullability=Nullability.ALWAYS,
    of_call=True,
)
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


@function(
    "array_positions",
    (),
    Kind.ARRAY,
    sql="array_positions",
    says="All places where an element is.",
    example="array_positions(ARRAY['A', 'B', 'A'], 'A')",
    gives="{1,3}",
    of_any={(_A, _E): array_of(INT4)},
    strict=False,
    nullability=Nullability.IF_FIRST_ARGUMENT,
    of_call=True,
)
def _positions(call: Call) -> Callable[..., list[int] | None]:
    places = _places(call)
    return lambda array, value: None if array is None else places(array, value)


@function(
    "array_remove",
    (),
    Kind.ARRAY,
    sql="array_remove",
    says="An array without the elements that are a value.",
    example="array_remove(ARRAY[1, 2, 3, 2], 2)",
    gives="{1,3}",
    of_any={(_A, _E): _A},
    strict=False,
    nullability=Nullability.IF_FIRST_ARGUMENT,
    of_call=True,
)
def _removed(call: Call) -> Callable[..., list[Any] | None]:
    key = _element_key(call)

    def removed(array: Sequence[Any] | None, value: Any) -> list[Any] | None:
        unwanted = key(value)
        return None if array is None else [one for one in array if key(one) != unwanted]

    return removed


@function(
    "array_replace",
    (),
    Kind.ARRAY,
    sql="array_replace",
    says="An array with such elements replaced.",
    example="array_replace(ARRAY[1, 2, 5], 5, 3)",
    gives="{1,2,3}",
    of_any={(_A, _E, _E): _A},
    strict=False,
    nullability=Nullability.IF_FIRST_ARGUMENT,
    of_call=True,
)
def _replaced(call: Call) -> Callable[..., list[Any] | None]:
    key = _element_key(call)

    def replaced(array: Sequence[Any] | None, old: Any, new: Any) -> list[Any] | None:
        wanted = key(old)
        return None if array is None else [new if key(one) == wanted else one for one in array]

    return replaced


@function(
    "array_cat",
    (),
    Kind.ARRAY,
    sql=("array_cat", "||"),
    says="Two arrays, one after the other.",
    example="array_cat(ARRAY[1, 2], ARRAY[3])",
    gives="{1,2,3}",
    of_any={(_A, _A): _A},
    strict=False,
    nullability=Nullability.IF_ALL_ARGUMENTS,
)
def _concatenated(left: Sequence[Any] | None, right: Sequence[Any] | None) -> Sequence[Any] | None:
    return right if left is None else left if right is None else [*left, *right]


@function(
    "array_to_string",
    (),
    Kind.TEXT,
    sql="array_to_string",
    says="The elements' texts, with a separator between, and a text for NULL.",
    example="array_to_string(ARRAY[1, NULL, 3], ',', '*')",
    gives="1,*,3",
    of_any={(_A, TEXT): TEXT, (_A, TEXT, TEXT): TEXT},
    strict=False,
    nullability=Nullability.ALWAYS,
)
def _joined(texts: Sequence[str | None] | None, separator: str | None, shown: str | None = None) -> str | None:
    if texts is None or separator is None:
        return None
    every = (shown if one is None else one for one in texts)
    return separator.join([one for one in every if one is not None])


@function(
    "string_to_array_by",
    (Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    sql="string_to_array",
    says="The parts of a text between separators.",
    example="string_to_array('xx~~yy~~zz', '~~', 'yy')",
    gives="{xx,NULL,zz}",
    rows=Named(
        "string_to_table",
        "The parts of a text between separators.",
        "(SELECT max(w) FROM string_to_table('a,b', ',') AS s(w))",
        "b",
    ),
    strict=False,
    nullability=Nullability.IF_FIRST_ARGUMENT,
    type=list_of(TEXT),
)
@function(
    "string_to_array",
    (Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.ARRAY,
    sql="string_to_array",
    rows="string_to_table",
    strict=False,
    nullability=Nullability.IF_FIRST_ARGUMENT,
    type=list_of(TEXT),
)
def _parts(text: str | None, separator: str | None, null: str | None = None) -> list[str | None] | None:
    if text is None:
        return None
    if text == "":
        return []
    found = list(text) if separator is None else [text] if separator == "" else text.split(separator)
    return [None if one == null else one for one in found]


# An array of the arguments, and a record of them.
@function("array", (), Kind.ARRAY, strict=False, nullability=Nullability.NEVER)
def _listed(*values: Any) -> list[Any]:
    return list(values)


@function("record", (), Kind.RECORD, strict=False, nullability=Nullability.NEVER)
def _as_record(*values: Any) -> tuple[Any, ...]:
    return values


@function(
    "array_append",
    (),
    Kind.ARRAY,
    sql=("array_append", "||"),
    says="An array with one more element.",
    example="array_append(ARRAY[1, 2], 3)",
    gives="{1,2,3}",
    of_any={(_A, _E): _A},
    strict=False,
    nullability=Nullability.NEVER,
)
def _appended(array: Sequence[Any] | None, value: Any) -> list[Any]:
    return [*(array or ()), value]


@function(
    "array_prepend",
    (),
    Kind.ARRAY,
    sql=("array_prepend", "||"),
    says="Likewise before it.",
    example="array_prepend(0, ARRAY[1, 2])",
    gives="{0,1,2}",
    of_any={(_E, _A): _A},
    strict=False,
    nullability=Nullability.NEVER,
)
def _prepended(value: Any, array: Sequence[Any] | None) -> list[Any]:
    return [value, *(array or ())]
