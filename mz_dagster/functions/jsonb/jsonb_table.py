"""The operators and functions of jsonb.

`to_jsonb`, `jsonb_build_object` and `jsonb_build_array` take arguments of any type: `functions/jsonb/as_jsonb.py` says
what each becomes. A path is an array of text, or of `jsonb_path_` a text in SQL/JSON's language (`path_syntax`).
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.arrays.set_table import rows_of
from mz_dagster.functions.function import COMPARISONS, Function, Nullability, Overload
from mz_dagster.scalars.types import JSONB, TEXT, Kind, ScalarType, record_of

_J, _T, _I4, _B, _ARRAY = Kind.JSONB, Kind.TEXT, Kind.INT4, Kind.BOOL, Kind.ARRAY

#: (SQL name, implementation, arguments, result) of what finds something, or NULL.
_FINDING: tuple[tuple[str, str, tuple[Kind, ...], Kind], ...] = (
    ("->", "get_jsonb_text", (_J, _T), _J),
    ("->", "get_jsonb_int4", (_J, _I4), _J),
    ("->>", "get_text_jsonb_text", (_J, _T), _T),
    ("->>", "get_text_jsonb_int4", (_J, _I4), _T),
    ("#>", "get_jsonb_path", (_J, _ARRAY), _J),
    ("#>>", "get_text_jsonb_path", (_J, _ARRAY), _T),
    ("jsonb_object_field", "get_jsonb_text", (_J, _T), _J),
    ("jsonb_object_field_text", "get_text_jsonb_text", (_J, _T), _T),
    ("jsonb_array_element", "get_jsonb_int4", (_J, _I4), _J),
    ("jsonb_array_element_text", "get_text_jsonb_int4", (_J, _I4), _T),
)
#: (SQL name, implementation, arguments, result, fallible).
_OTHERS: tuple[tuple[str, str, tuple[Kind, ...], Kind, bool], ...] = (
    ("@>", "contains_jsonb", (_J, _J), _B, False),
    ("<@", "contained_jsonb", (_J, _J), _B, False),
    ("?", "has_key_jsonb", (_J, _T), _B, False),
    ("?|", "has_any_key_jsonb", (_J, _ARRAY), _B, False),
    ("?&", "has_all_keys_jsonb", (_J, _ARRAY), _B, False),
    ("||", "concat_jsonb", (_J, _J), _J, True),
    ("-", "subtract_jsonb_text", (_J, _T), _J, True),
    ("-", "subtract_jsonb_int4", (_J, _I4), _J, True),
    ("-", "subtract_jsonb_path", (_J, _ARRAY), _J, True),
    ("#-", "delete_path_jsonb", (_J, _ARRAY), _J, True),
    ("jsonb_set", "set_jsonb", (_J, _ARRAY, _J), _J, True),
    ("jsonb_set", "set_jsonb_bool", (_J, _ARRAY, _J, _B), _J, True),
    ("jsonb_insert", "insert_jsonb", (_J, _ARRAY, _J), _J, True),
    ("jsonb_insert", "insert_jsonb_bool", (_J, _ARRAY, _J, _B), _J, True),
    ("jsonb_typeof", "jsonb_typeof", (_J,), _T, False),
    ("jsonb_array_length", "jsonb_array_length", (_J,), _I4, True),
    ("jsonb_strip_nulls", "jsonb_strip_nulls", (_J,), _J, False),
    ("jsonb_pretty", "jsonb_pretty", (_J,), _T, False),
    ("jsonb_object", "jsonb_object_list", (_ARRAY,), _J, True),
    ("jsonb_object", "jsonb_object_lists", (_ARRAY, _ARRAY), _J, True),
)
#: The functions' names of operators.
_CALLED = {
    "@>": "jsonb_contains",
    "<@": "jsonb_contained",
    "?": "jsonb_exists",
    "?|": "jsonb_exists_any",
    "?&": "jsonb_exists_all",
    "||": "jsonb_concat",
    "-": "jsonb_delete",
    "#-": "jsonb_delete_path",
}
#: Implementations without a name or signature of their own: (name, arguments, result, fallible).
_UNNAMED: tuple[tuple[str, tuple[Kind, ...], Kind, bool], ...] = (
    ("jsonb_number_float4", (_J,), _T, True),
    ("jsonb_number_float8", (_J,), _T, True),
    ("jsonb_number_numeric", (_J,), _T, True),
    ("to_jsonb_bool", (_B,), _J, False),
    ("to_jsonb_int2", (Kind.INT2,), _J, False),
    ("to_jsonb_int4", (_I4,), _J, False),
    ("to_jsonb_int8", (Kind.INT8,), _J, False),
    ("to_jsonb_numeric", (Kind.NUMERIC,), _J, False),
    ("to_jsonb_number", (_T,), _J, False),
    ("to_jsonb_float8", (Kind.FLOAT8,), _J, False),
    ("to_jsonb_text", (_T,), _J, False),
    ("to_jsonb_date", (Kind.DATE,), _J, False),
    ("to_jsonb_timestamp", (Kind.TIMESTAMP,), _J, False),
    ("to_jsonb_timestamptz", (Kind.TIMESTAMPTZ,), _J, False),
    ("to_jsonb_array_jsonb", (_ARRAY,), _J, True),
    ("to_jsonb_array_number", (_ARRAY,), _J, False),
    ("to_jsonb_array_text", (_ARRAY,), _J, False),
    ("to_jsonb_array_timestamp", (_ARRAY,), _J, False),
    ("jsonb_nested", (_J, _ARRAY), _J, False),
    ("jsonb_object_of_pairs", (_ARRAY,), _J, True),
    ("jsonb_build_array", (), _J, True),
    ("jsonb_build_object", (), _J, True),
)
#: What makes of equal values one, and has the order of values, for the operators that compare what is stored.
INTERNAL = (
    Function("comparable_jsonb", (_J,), _J),
    Function("order_jsonb", (_J,), Kind.BYTEA),
    Function("ordered_jsonb", (_J,), Kind.BYTEA),
    Function("restored_jsonb", (Kind.BYTEA,), _J),
)
#: Functions that return rows, and the type of a row.
_SETS: tuple[tuple[str, ScalarType], ...] = (
    ("jsonb_array_elements", JSONB),
    ("jsonb_array_elements_text", TEXT),
    ("jsonb_object_keys", TEXT),
    ("jsonb_each", record_of((("key", TEXT), ("value", JSONB)))),
    ("jsonb_each_text", record_of((("key", TEXT), ("value", TEXT)))),
)
#: Functions of a path, and of its variables and whether errors of the data are silent: (name, result, may be NULL).
_OF_PATHS = (
    ("jsonb_path_exists", _B, True),
    ("jsonb_path_match", _B, True),
    ("jsonb_path_query", _ARRAY, False),
    ("jsonb_path_query_array", _J, False),
    ("jsonb_path_query_first", _J, True),
)
_PATH_ARGUMENTS = {"": (_J, _T), "_vars": (_J, _T, _J), "_silent": (_J, _T, _J, _B)}
_PATH_OPERATORS = {"@?": "jsonb_path_exists_operator", "@@": "jsonb_path_match_operator"}
#: What has a path as its second argument.
PATH_FUNCTIONS = frozenset((*_PATH_OPERATORS, *(f"{name}{zoned}" for name, _, _ in _OF_PATHS for zoned in ("", "_tz"))))


def functions() -> Iterator[Function]:
    """Yields the implementations."""
    for name in COMPARISONS.values():
        yield Function(f"{name}_jsonb", (_J, _J), _B)
    found = {name: (arguments, result) for _, name, arguments, result in _FINDING}
    for name, (arguments, result) in found.items():
        yield Function(name, arguments, result, nullability=Nullability.ALWAYS)
    for name in ("extract_path_jsonb", "extract_path_text_jsonb"):
        result = _T if "text" in name else _J
        yield Function(name, (), result, nullability=Nullability.ALWAYS)
    for _, name, arguments, result, fallible in _OTHERS:
        yield Function(name, arguments, result, fallible=fallible)
    for name, arguments, result, fallible in _UNNAMED:
        yield Function(name, arguments, result, fallible=fallible)
    for name, _ in _SETS:
        yield Function(name, (_J,), _ARRAY, fallible=True)
    for name, result, is_nullable in _OF_PATHS:
        nullability = Nullability.ALWAYS if is_nullable else Nullability.IF_ANY_ARGUMENT
        for ending, arguments in _PATH_ARGUMENTS.items():
            for zoned in ("", "_tz"):
                yield Function(f"{name}{zoned}{ending}", arguments, result, fallible=True, nullability=nullability)
    for name in _PATH_OPERATORS.values():
        yield Function(name, (_J, _T), _B, fallible=True, nullability=Nullability.ALWAYS)
    for name in ("jsonb_to_recordset", "jsonb_populate_recordset"):
        yield Function(name, (_J,), _ARRAY, fallible=True)
    yield Function("array_text_jsonb", (_J, _B), _T, fallible=True)
    yield Function("jsonb_to_record", (_J,), _J, fallible=True)
    yield Function("member_jsonb", (_J, _T), _J, nullability=Nullability.ALWAYS)


def overloads() -> Iterator[Overload]:
    """Yields the operators and functions."""
    for symbol, name in COMPARISONS.items():
        yield Overload(symbol, (_J, _J), f"{name}_jsonb")
    for symbol, name, arguments, _ in _FINDING:
        yield Overload(symbol, arguments, name)
    for symbol, name, arguments, _, _ in _OTHERS:
        yield Overload(symbol, arguments, name)
        if symbol in _CALLED:
            yield Overload(_CALLED[symbol], arguments, name)
    for symbol, name in _PATH_OPERATORS.items():
        yield Overload(symbol, (_J, _T), name)
    for name, result, _ in _OF_PATHS:
        for ending, arguments in _PATH_ARGUMENTS.items() if result is not _ARRAY else ():
            for called in (name, f"{name}_tz"):
                yield Overload(called, arguments, f"{called}{ending}")


def set_overloads() -> Iterator[Overload]:
    """Yields the functions that return rows."""
    for name, row in _SETS:
        yield Overload(name, (_J,), name, result=rows_of(row))
    for ending, arguments in _PATH_ARGUMENTS.items():
        for name in ("jsonb_path_query", "jsonb_path_query_tz"):
            yield Overload(name, arguments, f"{name}{ending}", result=rows_of(JSONB))
