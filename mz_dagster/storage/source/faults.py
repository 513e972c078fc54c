"""What can be wrong with a record, in PostgreSQL's words: `<SQLSTATE> <message>`; what reads it adds the place."""

from __future__ import annotations

from mz_dagster.scalars.types import Kind, ScalarType

#: Bytes that are no text.
BAD_BYTES = '22021 invalid byte sequence for encoding "UTF8"'
UNTERMINATED = "22P04 unterminated CSV quoted field"
ILL_QUOTED = "22P04 quote within an unquoted CSV field, or text after a quoted one"
EXTRA_DATA = "22P04 extra data after last expected column"
NULL_KEY = "23502 null key"

#: What a file may hold beyond the years 1 to 9999, and how its errors call it.
MOMENTS = {Kind.DATE: "date", Kind.TIMESTAMP: "timestamp", Kind.TIMESTAMPTZ: "timestamp"}


def null_in(column: str) -> str:
    """Returns what is wrong with NULL in a column that must have a value."""
    return f'23502 null value in column "{column}" violates not-null constraint'


def out_of_range(type_: ScalarType) -> str:
    """Returns what is wrong with a typed value of a file that a column's type does not hold."""
    if type_.kind in MOMENTS:
        return f"22008 {MOMENTS[type_.kind]} out of range"
    if type_.kind is Kind.DIMENSIONED:
        return "2202E multidimensional arrays must have array expressions with matching dimensions"
    return "22003 numeric field overflow" if type_.kind is Kind.NUMERIC else f"22003 {type_.kind.value} out of range"
