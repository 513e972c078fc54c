"""Kernels of booleans: NOT and the tests IS NULL, IS TRUE and the like. `and` and `or` are the evaluator's own."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from mz_dagster.compute.local.expressions.registry import Computed, Operand, lenient, strict
from mz_dagster.scalars.scalar import Call


@strict("not")
def _not(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pc.invert(operands[0]))


@lenient("is_null", "is_not_null")
def _is_null(call: Call, operands: Sequence[Operand]) -> Computed:
    test = pc.is_null if call.function == "is_null" else pc.is_valid
    return Computed(test(operands[0]))


@lenient("is_true", "is_not_false", "is_false", "is_not_true")
def _is(call: Call, operands: Sequence[Operand]) -> Computed:
    filled = pc.fill_null(operands[0], call.function in ("is_not_false", "is_false"))
    return Computed(filled if call.function in ("is_true", "is_not_false") else pc.invert(filled))
