"""Errors of the data that are reported alike wherever a value is computed, each PostgreSQL's SQLSTATE and message.

Those that have no like there are of inputs that retract what was not there, `NEGATIVE_MULTIPLICITY` and `RETRACTION`.
"""

from __future__ import annotations

from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import Kind

DIVISION_BY_ZERO = "22012 division by zero"
NUMERIC_OVERFLOW = "22003 numeric field overflow"
NUMERIC_NAN = "0A000 a numeric with a scale cannot be NaN: cast, or declare the column, as numeric without one"
#: Of a result that a fixed scale would leave fewer than `LEAST_DIGITS` significant digits of.
NUMERIC_UNDERFLOW = "22003 value out of range: underflow"
FLOAT_OVERFLOW = "22003 value out of range: overflow"
FLOAT_UNDERFLOW = "22003 value out of range: underflow"
DATE_OUT_OF_RANGE = "22008 date out of range"
TIMESTAMP_OUT_OF_RANGE = "22008 timestamp out of range"
MZ_TIMESTAMP_OUT_OF_RANGE = "22003 mz_timestamp out of range"
STEP_OVERFLOW = "22003 step mz_timestamp overflow"
NTILE_NOT_POSITIVE = "22014 argument of ntile must be greater than zero"
NTH_VALUE_NOT_POSITIVE = "22016 argument of nth_value must be greater than zero"
NEGATIVE_MULTIPLICITY = "XX001 a row has a negative multiplicity"
#: Of what never retracts.
RETRACTION = "XX001 a row was retracted from a collection that never retracts"
_OUT_OF_RANGE = {
    Kind.INT2: "22003 smallint out of range",
    Kind.INT4: "22003 integer out of range",
    Kind.INT8: "22003 bigint out of range",
}


def out_of_range(kind: Kind) -> str:
    """Returns the error of a result that the integer kind cannot hold."""
    return _OUT_OF_RANGE[kind]


def failure(text: str) -> SqlFailure:
    """Returns the failure of a text that begins with its SQLSTATE.

    Example:
        >>> failure(DIVISION_BY_ZERO)
        SqlFailure('22012 division by zero')
    """
    code, _, message = text.partition(" ")
    return SqlFailure(code, message)
