"""Long lists of constants: `x = a OR x = b OR ...` as one test of whether x is among them.

`IN`, `NOT IN`, `= ANY` and `<> ALL` over constants are connectives of comparisons, as everything that plans with them
expects. Beyond a handful that is a tree to be walked and evaluated for each row, and too deep a one to be sent to
Spark. So the comparisons of one scalar with many constants become the call

    is_among(x, array)      NULL if x is, true if x is in the array, else NULL if the array has a NULL, else false

for kinds whose values are equal where their stored forms are, but for the zeros and NaN of floats: it is a look into a
hash set then.
"""

from __future__ import annotations

from collections import Counter

from mz_dagster.budget import budget
from mz_dagster.functions.membership import among, is_member
from mz_dagster.plan.rewriting import can_fail
from mz_dagster.scalars.scalar import Call, Literal, Scalar, reads_now, walk
from mz_dagster.scalars.types import BOOL, Kind

_KINDS = frozenset(
    {
        *(Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.UUID),
        *(Kind.FLOAT4, Kind.FLOAT8),
        *(Kind.TEXT, Kind.VARCHAR, Kind.CHAR),
        *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
    }
)
#: Kinds that are compared as they are, and stored alike.
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR})


def compared(test: Scalar, operation: str = "eq") -> tuple[Scalar, Literal] | None:
    """Returns what a test compares with which constant, None if it is no such test or of no such kind."""
    if not isinstance(test, Call) or not test.function.startswith(f"{operation}_") or len(test.arguments) != 2:
        return None
    value, constant = test.arguments
    if isinstance(value, Literal):
        value, constant = constant, value
    if not isinstance(constant, Literal) or isinstance(value, Literal) or constant.value is None:
        return None
    if constant.type.kind not in _KINDS or not is_member(constant.value) or reads_now(value):
        return None
    if value.type.kind is not constant.type.kind and not {value.type.kind, constant.type.kind} <= _TEXTS:
        return None
    if value.type.scale != constant.type.scale:
        return None
    # Equality does not tell 0.0 from -0.0.
    if any(isinstance(one, Literal) and isinstance(one.value, float) for one in walk(value)):
        return None
    return value, constant


def as_membership(connective: Call) -> Scalar:
    """Returns an `and` or `or` with the comparisons of one scalar with many constants as one test.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import INT4
        >>> x = ColumnRef(0, INT4)
        >>> tests = tuple(Call("eq_int4", (x, Literal(n, INT4)), BOOL) for n in range(99))
        >>> found = as_membership(Call("or", tests, BOOL))
        >>> found.function, len(found.arguments[1].value)
        ('is_among', 99)
    """
    if len(connective.arguments) <= budget().compared_constants:
        return connective
    is_or = connective.function == "or"
    comparisons = [compared(one, "eq" if is_or else "ne") for one in connective.arguments]
    times = Counter(found[0] for found in comparisons if found is not None)
    # Of several that fail the leftmost one's error counts: what may fail keeps its place.
    many = {
        value: [found[1] for found in comparisons if found is not None and found[0] == value]
        for value, count in times.items()
        if count > budget().compared_constants and (count == len(comparisons) or not can_fail(value))
    }
    arguments: list[Scalar] = [
        one
        for one, found in zip(connective.arguments, comparisons, strict=True)
        if found is None or found[0] not in many
    ]
    for value, constants in many.items():
        test = among(value, (one.value for one in constants), like=constants[0])
        arguments.append(test if is_or else Call("not", (test,), BOOL))
    return arguments[0] if len(arguments) == 1 else Call(connective.function, tuple(arguments), BOOL)
