"""Kernels that compare: `=`, `<` and the like, IN, IS DISTINCT FROM, GREATEST and LEAST.

Arrow orders text by its bytes, as the C collation does, and decimals of one scale as numbers; those of two scales it
does not compare: they are, as integers of units of the smaller one, or as decimals of 256 bits where 64 do not hold
these. `char(n)` is stored without the blanks that do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.local.expressions.numbers import either, shifted, units
from mz_dagster.compute.local.expressions.registry import Computed, Mask, Operand, lenient, strict
from mz_dagster.functions.membership import AMONG, constants_of, has_null
from mz_dagster.functions.plain import to_plain
from mz_dagster.plan.representations import REPRESENTATIONS
from mz_dagster.scalars.scalar import Call
from mz_dagster.storage.plain_cells import stored_cells

_COMPARED = (
    *("bool", "int2", "int4", "int8", "numeric", "text", "bpchar", "uuid", "bytea"),
    *("date", "time", "timetz", "timestamp", "timestamptz", "mz_timestamp"),
)
_COMPARISONS = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}


def _have_one_type(operands: Sequence[Operand]) -> bool:
    return len({one.type for one in operands}) == 1


@strict(*(f"{name}_{kind}" for name in _COMPARISONS for kind in _COMPARED))
def _compared(call: Call, operands: Sequence[Operand]) -> Computed | None:
    compare = _COMPARISONS[call.function.partition("_")[0]]
    if _have_one_type(operands):
        return Computed(compare(*operands))
    if not all(pa.types.is_decimal(one.type) for one in operands):
        return None
    (left, right), doubtful = _at_one_scale(operands)
    if doubtful is None:
        return Computed(compare(left, right))
    # 38 digits, and as many of the other's scale, have room in 256 bits.
    wide = pa.decimal256(76, max(one.type.scale for one in operands))
    return Computed(compare(*(one.cast(wide) for one in operands)))


def _at_one_scale(operands: Sequence[Operand]) -> tuple[list[Operand], Mask | None]:
    """Returns numerics as integers of units of the smallest, those in the places of NULLs being any."""
    scale = max(one.type.scale for one in operands)
    found: list[Operand] = []
    doubtful: list[Mask | None] = []
    for one in operands:
        own, large = units(one)
        own, beyond = shifted(own, scale - one.type.scale)
        found.append(pa.scalar(int(own[0])) if isinstance(one, pa.Scalar) else pa.array(own))
        doubtful += [large, beyond]
    return found, either(*doubtful)


@strict(AMONG)
def _among(call: Call, operands: Sequence[Operand]) -> Computed | None:
    (values,) = operands
    element = call.arguments[1].type.element
    assert element is not None
    members = stored_cells([to_plain(one, element) for one in constants_of(call)], element)
    if members.type != values.type:
        return None
    # By their bits, of which -0 has others than 0.
    found = pc.is_in(pc.add(values, 0.0) if pa.types.is_floating(values.type) else values, members)
    return Computed(pc.if_else(found, found, pa.scalar(None, pa.bool_())) if has_null(call) else found)


@lenient("is_distinct_from", "is_not_distinct_from")
def _distinct(call: Call, operands: Sequence[Operand]) -> Computed | None:
    kind = operands[0].type
    doubtful = None
    if not _have_one_type(operands):
        if not all(pa.types.is_decimal(one.type) for one in operands):
            return None
        known, (found, doubtful) = [pc.is_valid(one) for one in operands], _at_one_scale(operands)
        operands = [pc.if_else(is_known, one, None) for is_known, one in zip(known, found, strict=True)]
    elif pa.types.is_nested(kind) or pa.types.is_floating(kind) or call.arguments[0].type.kind in REPRESENTATIONS:
        return None
    left, right = operands
    is_equal = pc.fill_null(pc.equal(left, right), False)
    is_same = pc.or_(is_equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    return Computed(is_same if call.function == "is_not_distinct_from" else pc.invert(is_same), doubtful)


@lenient("greatest", "least")
def _extreme(call: Call, operands: Sequence[Operand]) -> Computed | None:
    if not _have_one_type(operands) or not any(is_kind(operands[0].type) for is_kind in _ORDERED):
        return None
    if call.type.kind in REPRESENTATIONS:
        return None
    extreme = pc.max_element_wise if call.function == "greatest" else pc.min_element_wise
    return Computed(extreme(*operands))


#: Kinds of which Arrow finds the greatest; it does not of moments with a zone.
_ORDERED = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_string, pa.types.is_date, pa.types.is_time)
