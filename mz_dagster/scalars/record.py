"""Records in the algebra: a row of values as one, and its fields."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import INT4, record_of


def record(fields: Sequence[Scalar], names: Sequence[str] = ()) -> Call:
    """Returns the record of `fields`, which are called `f1`, `f2`, ... unless they have names; never NULL."""
    called = names or [f"f{i}" for i in range(1, len(fields) + 1)]
    types = [(name, one.type) for name, one in zip(called, fields, strict=True)]
    return Call("record", tuple(fields), record_of(types), False)


def field(scalar: Scalar, number: int) -> Scalar:
    """Returns the field of a record with that number, from 0; NULL if the record is.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> a = ColumnRef(0, INT4)
        >>> field(record([a, Literal(1, INT4)]), 0) == a
        True
    """
    if isinstance(scalar, Call) and scalar.function == "record":
        return scalar.arguments[number]
    _, type_ = scalar.type.fields[number]
    return Call("field", (scalar, Literal(number, INT4)), type_)
