"""Functions over arrays and records.

Their types are more than a kind: `functions/polymorphic.py` resolves the calls, so there are few overloads here.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.function import Function, Nullability, Overload
from mz_dagster.scalars.types import TEXT, Kind, array_of

_A, _D, _R, _T, _B, _I4 = Kind.ARRAY, Kind.DIMENSIONED, Kind.RECORD, Kind.TEXT, Kind.BOOL, Kind.INT4
_NEVER, _ALWAYS = Nullability.NEVER, Nullability.ALWAYS


def functions() -> Iterator[Function]:
    """Yields the implementations."""
    # A record of the arguments; the field of one with a number, a literal; the texts of its fields, and its own.
    yield Function("record", (), _R, strict=False, nullability=_NEVER)
    yield Function("field", (_R, _I4), None, nullability=_ALWAYS)
    yield Function("record_output", (_R,), _A)
    yield Function("record_text", (_A,), _T)
    # An array of the arguments; with another element type; the texts of its elements, and its own, and back.
    yield Function("array", (), _A, strict=False, nullability=_NEVER)
    yield Function("cast_elements", (_A,), _A, fallible=True)
    yield Function("assign_elements", (_A,), _A, fallible=True)
    # What a modifier, of these digits and fields, makes of each element.
    yield Function("modified_elements", (_A, _I4, _T), _A, fallible=True)
    yield Function("array_output", (_A,), _A)
    yield Function("array_text", (_A,), _T)
    yield Function("array_elements_of_text", (_T,), _A, fallible=True)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield Function(f"{name}_array", (_A, _A), _B)
    for name in ("contains", "contained", "overlaps"):
        yield Function(f"array_{name}", (_A, _A), _B)
    # Whether a comparison, named by a literal, with the second argument's elements is true for any, for all of them.
    yield Function("any_element", (), _B, strict=False, fallible=True, nullability=_ALWAYS)
    yield Function("all_elements", (), _B, strict=False, fallible=True, nullability=_ALWAYS)
    # Whether a value is among the elements of a literal (`plan/membership.py`).
    yield Function("is_among", (), _B, nullability=_ALWAYS)
    yield Function("array_subscript", (_A, _I4), None, nullability=_ALWAYS)
    yield Function("array_slice", (_A, _I4, _I4), _A)
    yield Function("cardinality", (_A,), _I4)
    for name in ("length", "upper", "lower"):
        yield Function(f"array_{name}", (_A, _I4), _I4, nullability=_ALWAYS)
    yield Function("array_ndims", (_A,), _I4, nullability=_ALWAYS)
    yield Function("array_dims", (_A,), _T, nullability=_ALWAYS)
    yield Function("array_append", (), _A, strict=False, nullability=_NEVER)
    yield Function("array_prepend", (), _A, strict=False, nullability=_NEVER)
    yield Function("array_cat", (), _A, strict=False, nullability=Nullability.IF_ALL_ARGUMENTS)
    yield Function("array_position", (), _I4, strict=False, nullability=_ALWAYS)
    yield Function("array_position_from", (), _I4, strict=False, fallible=True, nullability=_ALWAYS)
    yield Function("array_positions", (), _A, strict=False, nullability=Nullability.IF_FIRST_ARGUMENT)
    yield Function("array_remove", (), _A, strict=False, nullability=Nullability.IF_FIRST_ARGUMENT)
    yield Function("array_replace", (), _A, strict=False, nullability=Nullability.IF_FIRST_ARGUMENT)
    yield Function("trim_array", (_A, _I4), _A, fallible=True)
    # What is left of an array of which equal elements are neighbours: the first of each.
    yield Function("distinct_elements", (_A,), _A)
    yield Function("array_fill", (), _A, strict=False, fallible=True, nullability=_NEVER)
    yield Function("width_bucket_array", (), _I4, fallible=True)
    yield Function("array_to_string", (), _T, strict=False, nullability=_ALWAYS)
    yield Function("string_to_array_by", (_T, _T), _A, strict=False, nullability=Nullability.IF_FIRST_ARGUMENT)
    yield Function("string_to_array", (_T, _T, _T), _A, strict=False, nullability=Nullability.IF_FIRST_ARGUMENT)
    yield from _of_dimensions()


def _of_dimensions() -> Iterator[Function]:
    """Yields the implementations over arrays of any dimensions; `dimensioned.py` puts functions of SQL together."""
    # Of its elements, lengths and lower bounds; of a list; of texts, and back.
    yield Function("dimensioned", (_A, _A, _A), _D)
    yield Function("dimensioned_list", (_A,), _D)
    yield Function("dimensioned_of_text", (_T,), _D, fallible=True)
    yield Function("dimensioned_text", (_A, _A, _A), _T)
    yield Function("dimensions_text", (_A, _A), _T, nullability=_ALWAYS)
    # Of one dimension the elements; the second argument is what is wrong with others.
    yield Function("one_dimension", (_D, _T), _A, fallible=True)
    yield Function("counted_from_one", (_D, _T), _A, fallible=True)
    # The elements at subscripts, or between bounds; the last argument says which of these there are.
    yield Function("dimensioned_subscript", (_D, _A), None, nullability=_ALWAYS)
    yield Function("dimensioned_slice", (_D, _A, _A, _A), _D, nullability=_ALWAYS)
    yield Function("dimensioned_trim", (_D, _I4), _D, fallible=True)
    yield Function("dimensioned_cat", (_D, _D), _D, fallible=True)
    # With the element of a list behind, before; what is left of elements, with the lower bound that they had.
    yield Function("dimensioned_append", (_D, _A), _D, fallible=True)
    yield Function("dimensioned_prepend", (_A, _D), _D, fallible=True)
    yield Function("dimensioned_kept", (_A, _A), _D)
    yield Function("place_from", (_I4, _I4), _I4)
    yield Function("shifted_places", (_A, _I4), _A)
    yield Function("dimensioned_subscripts", (_A, _A, _I4, _B), _A)
    yield Function("dimensioned_fill", (_A, _D), _D, fallible=True)
    yield Function("dimensioned_fill_from", (_A, _D, _D), _D, fallible=True)
    # Of arrays one of one more dimension: what ARRAY[...] makes of them, and what array_agg does.
    yield Function("stacked_arrays", (_A,), _D, fallible=True)
    yield Function("accumulated_arrays", (_A,), _D, fallible=True)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield Function(f"{name}_dimensioned", (_D, _D), _B)


def overloads() -> Iterator[Overload]:
    """Yields what is no array's function, but makes one."""
    yield Overload("string_to_array", (_T, _T), "string_to_array_by", result=lambda _: array_of(TEXT))
    yield Overload("string_to_array", (_T, _T, _T), "string_to_array", result=lambda _: array_of(TEXT))
