"""The function `is_among`: whether a value is among many constants, an array that is a literal.

    is_among(x, array)      NULL if x is, true if x is in the array, else NULL if the array has a NULL, else false

It is for kinds whose values are equal exactly where their stored forms are: a look into a hash set. Of floats two are
stored otherwise than what they are equal to: -0, which stands as 0 among the constants and is looked for as 0; and NaN,
which is not among them (`is_member`). What makes calls of it is `plan/membership.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from mz_dagster.scalars.scalar import Call, Literal, Scalar, Value
from mz_dagster.scalars.types import BOOL, array_of

AMONG = "is_among"


def among(value: Scalar, constants: Iterable[Value], *, like: Literal) -> Call:
    """Returns whether `value` is among constants of the type of `like`, each of which `is_member`; duplicates go."""
    members = (one + 0.0 if isinstance(one, float) else one for one in constants)
    array = Literal(tuple(dict.fromkeys(members)), array_of(like.type))
    return Call(AMONG, (value, array), BOOL)


def is_member(constant: Value) -> bool:
    """Returns whether a constant may be among those of `among`: whether it is found where it is equal."""
    return not (isinstance(constant, float) and math.isnan(constant))


def constants_of(call: Call) -> frozenset[Any]:
    """Returns among which constants a call of `is_among` looks, NULL aside."""
    array = call.arguments[1]
    assert isinstance(array, Literal)
    assert isinstance(array.value, tuple)
    return frozenset(one for one in array.value if one is not None)


def has_null(call: Call) -> bool:
    """Returns whether a NULL is among the constants, so that what is not found is NULL."""
    array = call.arguments[1]
    return isinstance(array, Literal) and isinstance(array.value, tuple) and None in array.value
