"""A date compared with a constant moment is compared with a day.

`d < timestamp '2020-01-01'` is `d < date '2020-01-01'`, and of a moment within a day `d <` it is `d <=` that day. So
the usual `d >= date '1994-01-01' AND d < date '1994-01-01' + interval '1' year` bounds the column itself, by which
files are skipped.
"""

from __future__ import annotations

from datetime import datetime, time

from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import BOOL, DATE

_TURNED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
#: For a moment within a day, after its beginning.
_WITHIN = {"lt": "le", "le": "le", "gt": "gt", "ge": "gt"}


def compared_by_day(call: Call) -> Scalar:
    """Returns the comparison of a date with a constant moment as one with a day; any other call as it is.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import TIMESTAMP
        >>> moment = Call("cast_date_to_timestamp", (ColumnRef(0, DATE),), TIMESTAMP)
        >>> found = compared_by_day(Call("lt_timestamp", (moment, Literal(datetime(2020, 1, 1, 12), TIMESTAMP)), BOOL))
        >>> found.function, str(found.arguments[1].value)
        ('le_date', '2020-01-01')
    """
    operation, _, kind = call.function.partition("_")
    if operation not in _TURNED or kind not in ("timestamp", "timestamptz"):
        return call
    moment, constant = call.arguments
    if isinstance(moment, Literal):
        moment, constant, operation = constant, moment, _TURNED[operation]
    if not isinstance(moment, Call) or moment.function != f"cast_date_to_{kind}" or not isinstance(constant, Literal):
        return call
    value = constant.value
    if not isinstance(value, datetime):
        return call
    if value.time() != time():
        if operation not in _WITHIN:
            return call
        operation = _WITHIN[operation]
    return Call(f"{operation}_date", (moment.arguments[0], Literal(value.date(), DATE)), BOOL, call.nullable)
