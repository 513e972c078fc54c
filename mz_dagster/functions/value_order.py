"""The order of values: by what PostgreSQL compares the values of a type, whatever their representations.

Two values are equal where their keys are, and ordered as these are. NaN is equal to itself and greater than every
number; the two zeros are equal; intervals compare by their lengths, jsonb and numerics without a scale by their
values. Within an array or a record NULL equals NULL, and is greater than everything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from mz_dagster.functions.jsonb.jsonb import order as jsonb_order
from mz_dagster.functions.moments.interval import length as interval_length
from mz_dagster.functions.numbers.unconstrained import order as unconstrained_order
from mz_dagster.scalars.types import Kind, ScalarType

#: Maps a value in its plain form, which is not None, to what it compares by.
Key: TypeAlias = Callable[[Any], Any]


def order_key(type_: ScalarType) -> Key:
    """Returns the function from the plain form of a type's values to keys, which are hashable and have one order.

    Example:
        >>> from mz_dagster.scalars.types import FLOAT8, INT4, array_of
        >>> key = order_key(FLOAT8)
        >>> key(float("nan")) == key(float("nan")) > key(float("inf")), key(0.0) == key(-0.0)
        (True, True)
        >>> key = order_key(array_of(INT4))
        >>> key([1]) < key([1, 2]) < key([1, None]) == key([1, None])
        True
    """
    match type_.kind:
        case Kind.FLOAT4 | Kind.FLOAT8:
            return _of_float
        case Kind.INTERVAL:
            return interval_length
        case Kind.JSONB:
            return jsonb_order
        case Kind.UNCONSTRAINED:
            return unconstrained_order
        case Kind.ARRAY:
            assert type_.element is not None
            of_element = nullable_key(order_key(type_.element))
            return lambda values: tuple(map(of_element, values))
        case Kind.DIMENSIONED:
            # As PostgreSQL's: by elements, and how many, and only then by dimensions.
            of_elements = order_key(type_.parts[0])
            return lambda array: (of_elements(array[0]), len(array[1]), tuple(array[1]), tuple(array[2]))
        case Kind.RECORD:
            of_fields = [nullable_key(order_key(one)) for _, one in type_.fields]
            return lambda cells: tuple(key(cell) for key, cell in zip(of_fields, cells, strict=True))
        case _:
            return _itself


def nullable_key(key: Key) -> Key:
    """Returns the like of `key` by which NULL equals NULL and is greater than everything."""
    return lambda value: (True,) if value is None else (False, key(value))


def _of_float(value: float) -> Hashable:
    return (False, value) if value == value else (True, 0.0)


def _itself(value: Any) -> Any:
    return value
