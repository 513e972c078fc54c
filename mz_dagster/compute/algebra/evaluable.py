"""Which scalars Python evaluates to the bit as Spark does, so that a row is the same wherever it is computed.

That is all that `functions.evaluation` knows, but for floats, of which machines differ, and patterns, matching
which may take for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.evaluation import is_evaluable
from mz_dagster.functions.membership import AMONG
from mz_dagster.scalars.scalar import Call, Scalar, children
from mz_dagster.scalars.types import Kind

_LEFT_KINDS = frozenset({Kind.FLOAT4, Kind.FLOAT8, Kind.ARRAY, Kind.RECORD})
_PATTERNS = ("regexp", "similar")


def is_exact_in_python(scalar: Scalar) -> bool:
    """Returns whether a scalar's value is worked out by Python."""
    return is_evaluable(scalar) and not any(map(_is_left, _evaluated_parts(scalar)))


def _evaluated_parts(scalar: Scalar) -> Iterator[Scalar]:
    """Yields a scalar and its subexpressions, but not the arrays in which values are only looked for."""
    pending = [scalar]
    while pending:
        one = pending.pop()
        yield one
        is_look = isinstance(one, Call) and one.function == AMONG
        pending += children(one)[:1] if is_look else children(one)


def _is_left(node: Scalar) -> bool:
    is_pattern = isinstance(node, Call) and any(name in node.function for name in _PATTERNS)
    return is_pattern or node.type.kind in _LEFT_KINDS
