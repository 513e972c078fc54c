"""What a value is shown as within an array or a record: the type's output, which is not always its cast to text."""

from __future__ import annotations

from mz_dagster.functions.arrays.dimensioned import text_of
from mz_dagster.functions.casts import cast
from mz_dagster.functions.failure import Failure
from mz_dagster.scalars.scalar import Call, Scalar
from mz_dagster.scalars.types import TEXT, Kind, array_of

_OWN = {Kind.BOOL: "output_bool", Kind.CHAR: "output_bpchar"}


def output_of(scalar: Scalar) -> Scalar:
    """Returns the text that PostgreSQL shows for a value; precondition: `has_output` of its type.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import BOOL
        >>> output_of(ColumnRef(0, BOOL)).function
        'output_bool'
    """
    match scalar.type.kind:
        case Kind.TEXT:
            return scalar
        case Kind.ARRAY:
            return Call("array_text", (Call("array_output", (scalar,), array_of(TEXT), scalar.nullable),), TEXT)
        case Kind.DIMENSIONED:
            return text_of(scalar)
        case Kind.RECORD:
            return Call("record_text", (Call("record_output", (scalar,), array_of(TEXT), scalar.nullable),), TEXT)
        case kind if kind in _OWN:
            return Call(_OWN[kind], (scalar,), TEXT, scalar.nullable)
        case _:
            found = cast(scalar.type, TEXT)
            assert not isinstance(found, Failure), str(found)
            return found.apply(scalar)
