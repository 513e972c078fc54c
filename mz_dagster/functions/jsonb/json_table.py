"""The operators and functions of json, which has no comparisons.

`to_json` and what builds objects and arrays take arguments of any type: `functions/jsonb/as_json.py` says what each
becomes.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.arrays.set_table import rows_of
from mz_dagster.functions.function import Function, Nullability, Overload
from mz_dagster.scalars.types import JSON, TEXT, Kind, ScalarType, record_of

_J, _T, _I4, _ARRAY = Kind.JSON, Kind.TEXT, Kind.INT4, Kind.ARRAY

#: (SQL name, implementation, arguments, result) of what finds something, or NULL.
_FINDING: tuple[tuple[str, str, tuple[Kind, ...], Kind], ...] = (
    ("->", "get_json_text", (_J, _T), _J),
    ("->", "get_json_int4", (_J, _I4), _J),
    ("->>", "get_text_json_text", (_J, _T), _T),
    ("->>", "get_text_json_int4", (_J, _I4), _T),
    ("#>", "get_json_path", (_J, _ARRAY), _J),
    ("#>>", "get_text_json_path", (_J, _ARRAY), _T),
    ("json_object_field", "get_json_text", (_J, _T), _J),
    ("json_object_field_text", "get_text_json_text", (_J, _T), _T),
    ("json_array_element", "get_json_int4", (_J, _I4), _J),
    ("json_array_element_text", "get_text_json_int4", (_J, _I4), _T),
)
#: (SQL name, implementation, arguments, result, fallible).
_OTHERS: tuple[tuple[str, str, tuple[Kind, ...], Kind, bool], ...] = (
    ("json_typeof", "json_typeof", (_J,), _T, False),
    ("json_array_length", "json_array_length", (_J,), _I4, True),
    ("json_strip_nulls", "json_strip_nulls", (_J,), _J, True),
    ("json_object", "json_object_list", (_ARRAY,), _J, True),
    ("json_object", "json_object_lists", (_ARRAY, _ARRAY), _J, True),
)
#: Implementations without a name or signature of their own: (name, arguments, result).
_UNNAMED: tuple[tuple[str, tuple[Kind, ...], Kind], ...] = (
    ("to_json_number", (_T,), _J),
    ("json_of_list", (_ARRAY, _T), _J),
    ("json_nested", (_J, _ARRAY, _T), _J),
    ("json_of_texts", (_ARRAY, _T), _J),
    ("json_of_numbers", (_ARRAY, _T), _J),
    ("json_of_timestamps", (_ARRAY, _T), _J),
    ("json_member", (_T, _J), _T),
    ("json_of_members", (_ARRAY,), _J),
    ("json_of_fields", (), _J),
    ("json_build_array", (), _J),
    ("json_build_object", (), _J),
)
#: Functions that return rows, and the type of a row.
_SETS: tuple[tuple[str, ScalarType], ...] = (
    ("json_array_elements", JSON),
    ("json_array_elements_text", TEXT),
    ("json_object_keys", TEXT),
    ("json_each", record_of((("key", TEXT), ("value", JSON)))),
    ("json_each_text", record_of((("key", TEXT), ("value", TEXT)))),
)


def functions() -> Iterator[Function]:
    """Yields the implementations."""
    found = {name: (arguments, result) for _, name, arguments, result in _FINDING}
    for name, (arguments, result) in found.items():
        yield Function(name, arguments, result, fallible=True, nullability=Nullability.ALWAYS)
    for name in ("extract_path_json", "extract_path_text_json"):
        result = _T if "text" in name else _J
        yield Function(name, (), result, fallible=True, nullability=Nullability.ALWAYS)
    for _, name, arguments, result, fallible in _OTHERS:
        yield Function(name, arguments, result, fallible=fallible)
    for name, arguments, result in _UNNAMED:
        yield Function(name, arguments, result)
    for name, _ in _SETS:
        yield Function(name, (_J,), _ARRAY, fallible=True)
    for name in ("json_to_recordset", "json_populate_recordset"):
        yield Function(name, (_J,), _ARRAY, fallible=True)
    yield Function("array_text_json", (_J, Kind.BOOL), _T, fallible=True)
    yield Function("json_to_record", (_J,), _J, fallible=True)
    yield Function("member_json", (_J, _T), _J, nullability=Nullability.ALWAYS)
    yield Function("json_build_object_list", (_J, _T), _J, fallible=True)


def overloads() -> Iterator[Overload]:
    """Yields the operators and functions."""
    for symbol, name, arguments, _ in _FINDING:
        yield Overload(symbol, arguments, name)
    for symbol, name, arguments, _, _ in _OTHERS:
        yield Overload(symbol, arguments, name)


def set_overloads() -> Iterator[Overload]:
    """Yields the functions that return rows."""
    for name, row in _SETS:
        yield Overload(name, (_J,), name, result=rows_of(row))
