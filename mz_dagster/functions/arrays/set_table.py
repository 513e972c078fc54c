"""The functions that return rows.

Each is an implementation that returns an array, of records if it returns several columns, whose elements a `FlatMap`
puts beside the row: so evaluating it is an expression's business, and its errors are data like any other's. NULL is an
array without elements. `unnest` is not here: the array is its argument.

A series has at most `SERIES_ROWS` elements, one of moments fewer (`functions/moments/series.py`): they are in memory
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mz_dagster.functions.function import Function, Overload, TypeRule
from mz_dagster.scalars.types import (
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    ScalarType,
    array_of,
    numeric,
)

SERIES_ROWS = 10_000_000
ZERO_STEP = "22023 step size cannot equal zero"
TOO_MANY = f"54000 generate_series makes more than {SERIES_ROWS} rows"

#: The one column's name of functions that give it a name; it is called as the function, or its alias, otherwise.
SET_COLUMNS = dict.fromkeys(
    ("json_array_elements", "json_array_elements_text", "jsonb_array_elements", "jsonb_array_elements_text"), "value"
)


def rows_of(element: ScalarType) -> TypeRule:
    """Returns the rule for the result of a function whose rows have one type."""
    return lambda types: array_of(element)


def _numerics(types: Sequence[ScalarType]) -> ScalarType:
    return array_of(numeric(max(one.scale for one in types)))


_SERIES: tuple[tuple[Kind, str, TypeRule], ...] = (
    (Kind.INT4, "int4", rows_of(INT4)),
    (Kind.INT8, "int8", rows_of(INT8)),
    (Kind.NUMERIC, "numeric", _numerics),
)


_MOMENTS = ((Kind.TIMESTAMP, "timestamp", TIMESTAMP), (Kind.TIMESTAMPTZ, "timestamptz", TIMESTAMPTZ))


def functions() -> Iterator[Function]:
    """Yields the implementations."""
    for kind, short, _ in _MOMENTS:
        yield Function(f"generate_series_{short}", (kind, kind, Kind.INTERVAL), Kind.ARRAY, fallible=True)
    yield Function("generate_subscripts", (Kind.ARRAY, Kind.INT4), Kind.ARRAY)
    yield Function("generate_subscripts_reversed", (Kind.ARRAY, Kind.INT4, Kind.BOOL), Kind.ARRAY)
    for kind, short, _ in _SERIES:
        yield Function(f"generate_series_{short}_by_1", (kind, kind), Kind.ARRAY, fallible=True)
        yield Function(f"generate_series_{short}", (kind, kind, kind), Kind.ARRAY, fallible=True)


def overloads() -> Iterator[Overload]:
    """Yields what may stand in any expression: nothing."""
    yield from ()


def set_overloads() -> Iterator[Overload]:
    """Yields what may stand in FROM, and as an item of SELECT."""
    for kind, short, result in _SERIES:
        yield Overload("generate_series", (kind, kind), f"generate_series_{short}_by_1", result=result)
        yield Overload("generate_series", (kind, kind, kind), f"generate_series_{short}", result=result)
    for kind, short, element in _MOMENTS:
        arguments = (kind, kind, Kind.INTERVAL)
        yield Overload("generate_series", arguments, f"generate_series_{short}", result=rows_of(element))
    text = Kind.TEXT
    yield Overload("string_to_table", (text, text), "string_to_array_by", result=rows_of(TEXT))
    yield Overload("string_to_table", (text, text, text), "string_to_array", result=rows_of(TEXT))
    # `polymorphic.py` resolves it, for arrays of any type.
    subscripts = (Kind.ARRAY, Kind.INT4)
    yield Overload("generate_subscripts", subscripts, "generate_subscripts", result=rows_of(INT4))
    reversed_ = (*subscripts, Kind.BOOL)
    yield Overload("generate_subscripts", reversed_, "generate_subscripts_reversed", result=rows_of(INT4))
