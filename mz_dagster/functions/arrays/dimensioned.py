"""SQL's functions over arrays of any dimensions, put together of those over lists and over shapes.

Such an array is its elements as a list, with the lengths and lower bounds of its dimensions (`dimensions.py`). What is
asked of the elements alone is asked of the list, by the functions that lists have: so nothing here knows what the
elements are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mz_dagster.functions.arrays.dimensions import from_one
from mz_dagster.functions.session_zone import zoned
from mz_dagster.scalars.record import field
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, TEXT, Kind, ScalarType, array_of, dimensioned
from mz_dagster.scalars.values import Dimensioned

_INTEGERS = array_of(INT4)
_NO_BOUNDS = "22004 dimension array or low bound array cannot be null"
_SEARCHED = "0A000 searching for elements in multidimensional arrays is not supported"
_REMOVED = "0A000 removing elements from multidimensional arrays is not supported"
_THRESHOLDS = "2202E thresholds must be one-dimensional array"

#: Makes the scalar of a call of its arguments, whose arrays are of any dimensions.
Composer = Callable[..., Scalar]


def _element(array: Scalar) -> ScalarType:
    element = array.type.array_element
    assert element is not None
    return element


def elements_of(array: Scalar) -> Scalar:
    """Returns the list of an array's elements, row by row.

    Example:
        >>> elements_of(Literal(Dimensioned((1, 2), (1, 2), (1, 1)), dimensioned(INT4))).value
        (1, 2)
    """
    return _part(array, 0)


def lengths_of(array: Scalar) -> Scalar:
    """Returns the list of the lengths of an array's dimensions."""
    return _part(array, 1)


def _lowers(array: Scalar) -> Scalar:
    return _part(array, 2)


def _part(array: Scalar, number: int) -> Scalar:
    type_ = array.type.parts[number]
    if isinstance(array, Literal) and isinstance(array.value, Dimensioned):
        return Literal(tuple(array.value[number]), type_)
    found = field(array, number)
    return Call("field", found.arguments, type_, array.nullable) if isinstance(found, Call) else found


def literal(elements: Sequence[object], lengths: Sequence[int], lowers: Sequence[int], element: ScalarType) -> Literal:
    """Returns the literal of an array whose elements are in their Python form."""
    return Literal(Dimensioned(tuple(elements), tuple(lengths), tuple(lowers)), dimensioned(element))


def of_list(values: Scalar) -> Scalar:
    """Returns the array of one dimension that a list is."""
    type_ = dimensioned(_element(values))
    if not isinstance(values, Literal):
        return Call("dimensioned_list", (values,), type_, values.nullable)
    if values.value is None:
        return Literal(None, type_)
    assert isinstance(values.value, tuple)
    return literal(*from_one(values.value), _element(values))


def as_list(array: Scalar, message: str) -> Scalar:
    """Returns the list that an array is; `message` is the error of one that is none."""
    return Call("counted_from_one", (array, Literal(message, TEXT)), array.type.parts[0], array.nullable)


def with_elements(array: Scalar, elements: Scalar) -> Scalar:
    """Returns an array of the same shape with other elements, NULL if those are."""
    type_ = dimensioned(_element(elements))
    if isinstance(array, Literal) and isinstance(elements, Literal):
        if array.value is None:
            return Literal(None, type_)
        assert isinstance(array.value, Dimensioned)
        assert isinstance(elements.value, tuple)
        return literal(elements.value, array.value.lengths, array.value.lowers, _element(elements))
    return Call("dimensioned", (elements, lengths_of(array), _lowers(array)), type_, array.nullable)


def text_of(array: Scalar) -> Scalar:
    """Returns the text that PostgreSQL shows for an array; the texts of its elements are those within arrays."""
    return Call("dimensioned_text", (_shown(array), lengths_of(array), _lowers(array)), TEXT, array.nullable)


def _shown(array: Scalar) -> Scalar:
    elements = elements_of(array)
    if elements.type == array_of(TEXT):
        return elements
    return zoned(Call("array_output", (elements,), array_of(TEXT), array.nullable))


def stacked(arrays: Sequence[Scalar], element: ScalarType) -> Scalar:
    """Returns the array of one more dimension whose rows are `arrays`, each of dimensions and of this element type."""
    type_ = dimensioned(element)
    return Call("stacked_arrays", (Call("array", tuple(arrays), array_of(type_), False),), type_, False)


def accumulated(gathered: Scalar, element: ScalarType) -> Scalar:
    """Returns what `array_agg` makes of arrays that were gathered in a list, NULL if there were none."""
    return Call("accumulated_arrays", (gathered,), dimensioned(element))


def subscript(array: Scalar, places: Sequence[Scalar]) -> Scalar:
    """Returns `array[i][j]`."""
    return Call("dimensioned_subscript", (array, _list(places)), _element(array))


def part_between(array: Scalar, firsts: Sequence[Scalar | None], lasts: Sequence[Scalar | None]) -> Scalar:
    """Returns `array[i:j][k:l]`, of which any bound may be left out."""
    given = [one is not None for one in (*firsts, *lasts)]
    bounds = [_list([Literal(None, INT4) if one is None else one for one in each]) for each in (firsts, lasts)]
    written = Literal(tuple(given), array_of(BOOL))
    return Call("dimensioned_slice", (array, *bounds, written), array.type)


def _list(values: Sequence[Scalar]) -> Scalar:
    return Call("array", tuple(values), _INTEGERS, False)


def _empty(type_: ScalarType) -> Literal:
    return Literal(Dimensioned(), type_)


def _or_empty(array: Scalar) -> Scalar:
    return Call("coalesce", (array, _empty(array.type)), array.type, False) if array.nullable else array


def _of_elements(function: str, result: ScalarType) -> Composer:
    """Returns the like of a function of lists, of the elements."""

    def composed(*arguments: Scalar) -> Scalar:
        values = (elements_of(one) if one.type.kind is Kind.DIMENSIONED else one for one in arguments)
        return Call(function, tuple(values), result)

    return composed


def _compared(name: str) -> Composer:
    return lambda left, right: Call(f"{name}_dimensioned", (left, right), BOOL, left.nullable or right.nullable)


def _number_of(array: Scalar) -> Scalar:
    return Call("array_length", (lengths_of(array), Literal(1, INT4)), INT4)


def _length(array: Scalar, dimension: Scalar) -> Scalar:
    return Call("array_subscript", (lengths_of(array), dimension), INT4)


def _lower(array: Scalar, dimension: Scalar) -> Scalar:
    return Call("array_subscript", (_lowers(array), dimension), INT4)


def _upper(array: Scalar, dimension: Scalar) -> Scalar:
    return _moved(_length(array, dimension), _lower(array, dimension))


def _moved(place: Scalar, lower: Scalar) -> Scalar:
    """Returns the subscript of a place, counted from 1, where the first is `lower`."""
    before = Call("subtract_int4", (place, Literal(1, INT4)), INT4)
    return Call("add_int4", (before, lower), INT4)


def _first(array: Scalar) -> Scalar:
    """Returns the least subscript of an array of one dimension."""
    return Call("coalesce", (_lower(array, Literal(1, INT4)), Literal(1, INT4)), INT4, False)


def _dims(array: Scalar) -> Scalar:
    return Call("dimensions_text", (lengths_of(array), _lowers(array)), TEXT)


def _cat(left: Scalar, right: Scalar) -> Scalar:
    whole: Scalar = Call("dimensioned_cat", (left, right), left.type)
    for one, other in ((right, left), (left, right)):
        if one.nullable:
            whole = If(Call("is_null", (one,), BOOL, False), other, whole)
    return whole


def _append(array: Scalar, value: Scalar) -> Scalar:
    one = Call("array", (value,), array_of(value.type), False)
    return Call("dimensioned_append", (_or_empty(array), one), array.type, False)


def _prepend(value: Scalar, array: Scalar) -> Scalar:
    one = Call("array", (value,), array_of(value.type), False)
    return Call("dimensioned_prepend", (one, _or_empty(array)), array.type, False)


def _flat(array: Scalar, message: str) -> Scalar:
    return Call("one_dimension", (array, Literal(message, TEXT)), array.type.parts[0], array.nullable)


def _position(array: Scalar, value: Scalar) -> Scalar:
    return _moved(Call("array_position", (_flat(array, _SEARCHED), value), INT4), _first(array))


def _position_from(array: Scalar, value: Scalar, start: Scalar) -> Scalar:
    at = Call("place_from", (start, _first(array)), INT4)
    return _moved(Call("array_position_from", (_flat(array, _SEARCHED), value, at), INT4), _first(array))


def _positions(array: Scalar, value: Scalar) -> Scalar:
    places = Call("array_positions", (_flat(array, _SEARCHED), value), _INTEGERS, array.nullable)
    return Call("shifted_places", (places, Call("subtract_int4", (_first(array), Literal(1, INT4)), INT4)), _INTEGERS)


def _removed(array: Scalar, value: Scalar) -> Scalar:
    left = Call("array_remove", (_flat(array, _REMOVED), value), array.type.parts[0], array.nullable)
    return Call("dimensioned_kept", (left, _lowers(array)), array.type, array.nullable)


def _replaced(array: Scalar, old: Scalar, new: Scalar) -> Scalar:
    elements = elements_of(array)
    return with_elements(array, Call("array_replace", (elements, old, new), elements.type, array.nullable))


def _trimmed(array: Scalar, count: Scalar) -> Scalar:
    return Call("dimensioned_trim", (array, count), array.type, array.nullable or count.nullable)


def _subscripts(array: Scalar, dimension: Scalar, backwards: Scalar = Literal(False, BOOL)) -> Scalar:  # noqa: B008
    arguments = (lengths_of(array), _lowers(array), dimension, backwards)
    return Call("dimensioned_subscripts", arguments, _INTEGERS)


def _filled(value: Scalar, lengths: Scalar, lowers: Scalar | None = None) -> Scalar:
    """Returns `array_fill`: NULL among its bounds is an error."""
    one = Call("array", (value,), array_of(value.type), False)
    type_ = dimensioned(value.type)
    if lowers is None:
        return Call("dimensioned_fill", (one, _known(lengths)), type_, False)
    return Call("dimensioned_fill_from", (one, _known(lengths), _known(lowers)), type_, False)


def _known(bounds: Scalar) -> Scalar:
    if not bounds.nullable:
        return bounds
    return Call("coalesce", (bounds, Call("error", (Literal(_NO_BOUNDS, TEXT),), bounds.type)), bounds.type, False)


def _to_string(array: Scalar, *others: Scalar) -> Scalar:
    return Call("array_to_string", (_shown(array), *others), TEXT)


def _bucket(value: Scalar, array: Scalar) -> Scalar:
    found = Call("width_bucket_array", (value, _flat(array, _THRESHOLDS)), INT4)
    return If(Call("is_null", (value,), BOOL, False), Literal(None, INT4), found) if value.nullable else found


#: Of each implementation over lists, what it is over arrays of any dimensions.
COMPOSED: Mapping[str, Composer] = {
    **{f"{name}_array": _compared(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "array_contains": _of_elements("array_contains", BOOL),
    "array_contained": _of_elements("array_contained", BOOL),
    "array_overlaps": _of_elements("array_overlaps", BOOL),
    "array_cat": _cat,
    "array_append": _append,
    "array_prepend": _prepend,
    "cardinality": _of_elements("cardinality", INT4),
    "array_length": _length,
    "array_upper": _upper,
    "array_lower": _lower,
    "array_ndims": _number_of,
    "array_dims": _dims,
    "array_position": _position,
    "array_position_from": _position_from,
    "array_positions": _positions,
    "array_remove": _removed,
    "array_replace": _replaced,
    "generate_subscripts": _subscripts,
    "generate_subscripts_reversed": _subscripts,
    "dimensioned_fill": _filled,
    "dimensioned_fill_from": _filled,
    "width_bucket_array": _bucket,
    "trim_array": _trimmed,
    "array_to_string": _to_string,
}
