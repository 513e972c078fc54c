"""The types that parameters are of: types without a length, a precision or a scale, which a value brings with it."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.scalars.type_ids import LABELLED, type_id
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    JSONB,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNCONSTRAINED,
    UUID,
    ScalarType,
    array_of,
)

#: What a client may say that a parameter is, by object ids.
OF_PARAMETERS: Mapping[int, ScalarType] = {
    type_id(one): one
    for one in (
        *(
            BOOL,
            BYTEA,
            INT8,
            INT2,
            INT4,
            TEXT,
            JSON,
            FLOAT4,
            FLOAT8,
            DATE,
            TIME,
            TIMETZ,
            TIMESTAMP,
            TIMESTAMPTZ,
            INTERVAL,
        ),
        *(UNCONSTRAINED, UUID, JSONB, *LABELLED.values()),
    )
}


def without_size(type_: ScalarType) -> ScalarType:
    """Returns what a parameter is of that stands where a type is expected; of texts of a length, text.

    Example:
        >>> from mz_dagster.scalars.types import numeric
        >>> without_size(numeric(2)) == UNCONSTRAINED, without_size(array_of(numeric(2))) == array_of(UNCONSTRAINED)
        (True, True)
    """
    if type_.element is not None:
        return array_of(without_size(type_.element))
    if type_.enumeration is not None or type_.array_element is not None:
        return type_
    return OF_PARAMETERS.get(type_id(type_), TEXT)
