"""The evaluation of scalar expressions over a batch of rows, column by column.

The outcome is `functions.evaluation`'s for each row, value and error. A call whose function has a kernel is
evaluated by it, but for the rows that the kernel does not vouch for; they, and calls without a kernel, are evaluated
`by_row`, once for each distinct tuple of arguments.

Errors are values of their own here, so that what a row must not see is left out where outcomes are put together, not by
evaluating in an order: `and`, `or` and `coalesce` take what decides and the errors before it. Yet a branch of an `If`,
and what has no kernel, are evaluated only for the rows that ask for it: most of the cost is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.local.expressions.by_row import evaluated_by_row
from mz_dagster.compute.local.expressions.outcome import Evaluated, RowBatch, as_mask, first_errors, scattered
from mz_dagster.compute.local.expressions.registry import LENIENT, STRICT, Mask, Operand
from mz_dagster.functions import FUNCTIONS
from mz_dagster.functions.membership import AMONG
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, Subquery
from mz_dagster.scalars.values import to_stored
from mz_dagster.storage.arrow_schema import arrow_type


def evaluated(scalar: Scalar, batch: RowBatch) -> Evaluated:
    """Returns the outcome of a scalar that `functions.evaluation.is_evaluable` over a batch.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> quotient = Call("divide_int4", (Literal(6, INT4), ColumnRef(0, INT4)), INT4)
        >>> found = evaluated(quotient, RowBatch(2, {0: pa.array([2, 0], pa.int32())}.__getitem__))
        >>> found.values.to_pylist(), found.errors.to_pylist()
        ([3, None], [None, '22012 division by zero'])
    """
    match scalar:
        case ColumnRef():
            return Evaluated(batch.at(scalar.position))
        case Literal():
            return Evaluated(pa.scalar(to_stored(scalar.value, scalar.type), arrow_type(scalar.type)))
        case If():
            return _branched(scalar, batch)
        case Call():
            match scalar.function:
                case "and" | "or":
                    return _connected(scalar, batch)
                case "coalesce":
                    return _first_known(scalar, batch)
                case "without_error":
                    return Evaluated(evaluated(scalar.arguments[0], batch).values)
                case "error_of":
                    errors = evaluated(scalar.arguments[0], batch).errors
                    return Evaluated(pa.nulls(batch.rows, pa.string()) if errors is None else errors)
                case _:
                    return _called(scalar, batch)
        case OuterColumn() | Subquery():
            raise AssertionError("such a scalar is not evaluated here")
        case _:
            assert_never(scalar)


def _branched(scalar: If, batch: RowBatch) -> Evaluated:
    condition = evaluated(scalar.condition, batch)
    if isinstance(condition.values, pa.Scalar):
        return evaluated(scalar.then if condition.values.as_py() is True else scalar.otherwise, batch)
    is_true = as_mask(condition.values)
    failed = condition.is_failed
    is_other = ~is_true if failed is None else ~(is_true | failed)
    parts = [(is_true, scalar.then), (is_other, scalar.otherwise)]
    for mask, branch in parts:
        if mask.all():
            return evaluated(branch, batch)
    if failed is None and all(isinstance(branch, Literal | ColumnRef) for _, branch in parts):
        then, otherwise = (evaluated(branch, batch).values for _, branch in parts)
        return Evaluated(pc.if_else(condition.values.fill_null(False), then, otherwise))
    outcomes = [(mask, evaluated(branch, batch.where(mask))) for mask, branch in parts if mask.any()]
    if failed is not None and condition.errors is not None:
        nothing = pa.nulls(int(failed.sum()), arrow_type(scalar.type))
        outcomes.append((failed, Evaluated(nothing, condition.errors.drop_null())))
    return scattered(batch.rows, outcomes, arrow_type(scalar.type))


def _connected(call: Call, batch: RowBatch) -> Evaluated:
    """Returns `and` and `or`: what decides does so whatever fails in the others, the first of which counts."""
    decides = call.function == "or"
    combine = pc.or_kleene if decides else pc.and_kleene
    values: Operand = pa.scalar(not decides)
    outcomes: list[Evaluated] = []
    for argument in call.arguments:
        open_ = None if has_kernels(argument) else _undecided(values, decides=decides)
        if open_ is None or open_.all():
            found = evaluated(argument, batch)
        elif open_.any():
            found = scattered(batch.rows, [(open_, evaluated(argument, batch.where(open_)))], pa.bool_())
        else:
            break
        outcomes.append(found)
        values = combine(values, found.values)
    errors = first_errors(outcomes)
    if errors is not None:
        is_decided = pc.fill_null(pc.equal(values, decides), False)
        errors = pc.if_else(is_decided, pa.scalar(None, pa.string()), errors)
    return Evaluated(values, errors)


def _undecided(values: Operand, *, decides: bool) -> Mask | None:
    if isinstance(values, pa.Scalar):
        return None
    return ~as_mask(pc.equal(values, decides))


def _first_known(call: Call, batch: RowBatch) -> Evaluated:
    """Returns `coalesce`: what comes after the first value is not evaluated, nor what comes after an error."""
    type_ = arrow_type(call.type)
    first, *others = call.arguments
    if others and all(isinstance(one, Literal | ColumnRef) for one in others) and not pa.types.is_nested(type_):
        # As of what is summed, where NULL counts as zero: what follows costs nothing, and cannot fail.
        found = evaluated(first, batch)
        known = found.array(batch.rows)
        if known.null_count:
            known = pc.coalesce(known, *(evaluated(one, batch).values for one in others))
        if found.errors is not None:
            known = pc.if_else(found.errors.is_valid(), pa.scalar(None, type_), known)
        return Evaluated(known, found.errors)
    parts: list[tuple[Mask, Evaluated]] = []
    is_open = np.ones(batch.rows, np.bool_)
    for argument in call.arguments:
        if not is_open.any():
            break
        is_all = bool(is_open.all())
        found = evaluated(argument, batch if is_all else batch.where(is_open))
        rows = int(is_open.sum())
        values = found.array(rows)
        settled = as_mask(values.is_valid())
        if found.errors is not None:
            settled |= as_mask(found.errors.is_valid())
        if is_all and settled.all():
            return Evaluated(values, found.errors)
        chosen = pa.array(settled)
        mask = is_open.copy()
        mask[is_open] = settled
        parts.append(
            (mask, Evaluated(values.filter(chosen), None if found.errors is None else found.errors.filter(chosen)))
        )
        is_open &= ~mask
    return scattered(batch.rows, parts, type_)


def _called(call: Call, batch: RowBatch) -> Evaluated:
    asked = call.arguments[:1] if call.function == AMONG else call.arguments
    outcomes = [evaluated(one, batch) for one in asked]
    operands = [one.values for one in outcomes]
    errors = first_errors(outcomes)
    type_ = arrow_type(call.type)
    is_strict = call.function in STRICT or FUNCTIONS[call.function].strict
    if is_strict and any(isinstance(one, pa.Scalar) and not one.is_valid for one in operands):
        return Evaluated(pa.nulls(batch.rows, type_), errors)
    if all(isinstance(one, pa.Scalar) for one in operands):
        return _constant(call, operands, batch.rows, errors)
    if errors is not None:  # of a row with an error nothing is asked
        good = as_mask(errors.is_null())
        few = [one.filter(pa.array(good)) if isinstance(one, pa.Array) else one for one in operands]
        found = _applied(call, few, int(good.sum()))
        failed = Evaluated(pa.nulls(batch.rows - int(good.sum()), type_), errors.drop_null())
        return scattered(batch.rows, [(good, found), (~good, failed)], type_)
    return _applied(call, operands, batch.rows)


def _constant(call: Call, operands: Sequence[Operand], rows: int, errors: pa.Array | None) -> Evaluated:
    """Returns the outcome of a call whose arguments are the same for all rows."""
    assert errors is None, "a constant with an error is an array"
    found = evaluated_by_row(call, operands, 1)
    if found.errors is None:
        return Evaluated(found.array(1)[0])
    return Evaluated(pa.nulls(rows, arrow_type(call.type)), pa.repeat(found.errors[0], rows))


def _applied(call: Call, operands: Sequence[Operand], rows: int) -> Evaluated:
    """Returns the outcome of a call for arguments without errors, of which one varies."""
    if not rows:
        return Evaluated(pa.nulls(0, arrow_type(call.type)))
    kernel = STRICT.get(call.function) or LENIENT.get(call.function)
    computed = None if kernel is None else kernel(call, operands)
    if computed is None:
        return evaluated_by_row(call, operands, rows)
    type_ = arrow_type(call.type)
    values = computed.values if computed.values.type == type_ else computed.values.cast(type_)
    # Of an argument that is the same for all rows, a kernel may doubt as a whole.
    doubtful = None if computed.doubtful is None else np.broadcast_to(computed.doubtful, rows)
    if call.function in STRICT:
        values, doubtful = _null_for_null(values, doubtful, operands)
    if doubtful is None or not doubtful.any():
        return Evaluated(values)
    chosen = pa.array(doubtful)
    few = [one.filter(chosen) if isinstance(one, pa.Array) else one for one in operands]
    exact = evaluated_by_row(call, few, int(doubtful.sum()))
    sure = Evaluated(values.filter(pa.array(~doubtful)))
    return scattered(rows, [(~doubtful, sure), (doubtful, exact)], type_)


def _null_for_null(
    values: pa.Array, doubtful: Mask | None, operands: Sequence[Operand]
) -> tuple[pa.Array, Mask | None]:
    """Returns what a kernel made of a batch, with NULL wherever an argument is."""
    known: pa.Array | None = None
    for one in operands:
        if isinstance(one, pa.Array) and one.null_count:
            known = one.is_valid() if known is None else pc.and_(known, one.is_valid())
    if known is None:
        return values, doubtful
    return pc.if_else(known, values, pa.scalar(None, values.type)), None if doubtful is None else doubtful & as_mask(
        known
    )


#: What the evaluator does by itself.
_OWN = frozenset({"and", "or", "coalesce", "without_error", "error_of"})


def has_kernels(scalar: Scalar) -> bool:
    """Returns whether a scalar costs little for a row: all its functions have kernels."""
    match scalar:
        case Call():
            known = scalar.function in STRICT or scalar.function in LENIENT or scalar.function in _OWN
            asked = scalar.arguments[:1] if scalar.function == AMONG else scalar.arguments
            return known and all(map(has_kernels, asked))
        case If():
            return all(map(has_kernels, (scalar.condition, scalar.then, scalar.otherwise)))
        case ColumnRef() | Literal():
            return True
        case _:
            return False
