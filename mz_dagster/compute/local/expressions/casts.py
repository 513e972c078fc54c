"""Kernels of casts between integers, numerics, booleans and texts.

What reads text has none: its rules are PostgreSQL's, and a column has few different texts, or what reads it is busy
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.local.expressions import decimals, integers
from mz_dagster.compute.local.expressions.numbers import either, shifted, units
from mz_dagster.compute.local.expressions.numbers import integers as integers_of
from mz_dagster.compute.local.expressions.registry import Computed, Operand, strict
from mz_dagster.scalars.scalar import Call

_KINDS = integers.KINDS
_MOST_TIME = 2**63 - 1


@strict(*(f"cast_{one}_to_{other}" for one in _KINDS for other in _KINDS if one != other))
def _integer(call: Call, operands: Sequence[Operand]) -> Computed:
    return integers.of_type(integers_of(operands[0]), call.type)


@strict(*(f"cast_{one}_to_numeric" for one in _KINDS))
def _numeric(call: Call, operands: Sequence[Operand]) -> Computed:
    found, doubtful = shifted(integers_of(operands[0]), call.type.scale)
    return decimals.of_type(found, call.type, doubtful)


@strict(*(f"cast_numeric_to_{one}" for one in _KINDS))
def _rounded(call: Call, operands: Sequence[Operand]) -> Computed:
    value, large = units(operands[0])
    found, doubtful = decimals.rescaled(value, -operands[0].type.scale)
    return integers.of_type(found, call.type, either(large, doubtful))


@strict("cast_numeric_to_float8")
def _float(_: Call, operands: Sequence[Operand]) -> Computed:
    """Both are doubles without a rest, units and the power of ten, so that their quotient is the nearest one."""
    value, large = units(operands[0])
    scale = operands[0].type.scale
    is_rounded = np.abs(value) >= 2**53 if scale <= 22 else value != 0
    return Computed(pa.array(value / 10.0**scale), either(large, is_rounded))


@strict("cast_numeric_to_text", "cast_numeric_to_unconstrained", "to_jsonb_numeric")
def _digits(_: Call, operands: Sequence[Operand]) -> Computed:
    """As Arrow has them, but where it writes an exponent."""
    value, _large = units(operands[0])
    has_exponent = np.abs(value) < 10 ** max(0, min(18, operands[0].type.scale - 6))
    return Computed(operands[0].cast(pa.string()), has_exponent if operands[0].type.scale > 6 else None)


@strict(*(f"cast_{one}_to_text" for one in _KINDS), "cast_mz_timestamp_to_text")
def _text(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(operands[0].cast(pa.string()))


@strict(
    "cast_uuid_to_text",
    "cast_jsonb_to_text",
    "cast_json_to_text",
    "cast_jsonb_to_json",
    "cast_varchar_to_text",
    "cast_bpchar_to_text",
)
def _same_text(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(operands[0])


@strict("cast_bool_to_text")
def _true(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pc.if_else(operands[0], "true", "false"))


@strict("output_bool")
def _t(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pc.if_else(operands[0], "t", "f"))


@strict("cast_bool_to_int4")
def _number(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(operands[0].cast(pa.int32()))


@strict("cast_int4_to_bool")
def _boolean(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pc.not_equal(operands[0], 0))


@strict("cast_int4_to_mz_timestamp", "cast_int8_to_mz_timestamp")
def _time(_: Call, operands: Sequence[Operand]) -> Computed:
    value = integers_of(operands[0])
    return Computed(pa.array(value), value < 0)


@strict("step_mz_timestamp")
def _step(_: Call, operands: Sequence[Operand]) -> Computed:
    value = integers_of(operands[0])
    is_last = value == _MOST_TIME
    return Computed(pa.array(np.where(is_last, 0, value) + 1), is_last)
