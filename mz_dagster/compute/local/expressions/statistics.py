"""Kernels of what sums of many groups are made into: exact sums of doubles, variances, deviations, regressions.

Their references are in `functions/aggregates/sums.py` and `functions/aggregates/statistics.py`. A double, and a sum of
doubles, is an integer times a power of two, so that each result is a quotient of two integers, which Python rounds
once: a few microseconds for a group, a tenth of what fractions take, as no common divisor is looked for. What is not
finite, or may be too large for a double, is doubtful.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.expressions.decimals import TOO_MANY
from mz_dagster.compute.local.expressions.floats import floats
from mz_dagster.compute.local.expressions.numbers import Integers, WideIntegers, integers, wide_decimals, wide_units
from mz_dagster.compute.local.expressions.quotients import wide_powers, wide_weight
from mz_dagster.compute.local.expressions.registry import Computed, Mask, Operand, are_constant, strict
from mz_dagster.functions.aggregates.sums import (
    BITS,
    LEAST,
    LEAST_PRODUCT,
    LOWEST,
    MASK,
    PRODUCT_DIGITS,
    nearest_float8,
    shown,
    units_of,
)
from mz_dagster.functions.numbers.float_evaluation import INFINITY, MANTISSA, NAN, NEGATIVE_INFINITY
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call
from mz_dagster.storage.arrow_schema import arrow_type

#: A number with less bits is no double's overflow.
_MOST_BITS = 1023
#: How much larger than others numbers may be to be integers of one unit, in bits; and how many bits an integer has.
_MOST_SPREAD = 512
_ROOM = 62
#: What counts from the variance of a population to that of a sample, and whether it is the root.
_VARIANCES = {
    "var_pop": (0, False),
    "var_samp": (1, False),
    "stddev_pop": (0, True),
    "stddev_samp": (1, True),
}
_root = np.frompyfunc(math.isqrt, 1, 1)


@strict(*(f"{name}_numeric" for name in _VARIANCES))
def _numeric_variance(call: Call, operands: Sequence[Operand]) -> Computed | None:
    if not are_constant(operands[3:]):
        return None
    less, is_root = _VARIANCES[call.function.removesuffix("_numeric")]
    count, total, squares = np.broadcast_arrays(
        integers(operands[0]).astype(object), wide_units(operands[1]), wide_units(operands[2])
    )
    own, of_squares, scale = operands[1].type.scale, operands[2].type.scale, operands[3].as_py()
    common = max(of_squares, 2 * own)
    above = count * squares * 10 ** (common - of_squares) - total * total * 10 ** (common - 2 * own)
    is_none = np.asarray(count <= less, np.bool_)
    is_zero = is_none | np.asarray(above <= 0, np.bool_)
    above, below = np.where(is_zero, 1, above), np.where(is_none, 1, count * (count - less))
    (first, digit), (second, other) = wide_weight(above, common), wide_weight(below, 0)
    digits = np.maximum(16 - 4 * (first - second - (digit <= other)), of_squares)
    found = _rounded(above * wide_powers(digits), below * 10**common)
    if is_root:
        # Rounded half up, from the root that is cut off exactly behind the next digit.
        found = (_root(found * wide_powers(digits + 2)) + 5) // 10
    more, fewer = np.maximum(scale - digits, 0), np.maximum(digits - scale, 0)
    found = _rounded(found * wide_powers(more), wide_powers(fewer))
    is_large = ~is_zero & np.asarray(found >= TOO_MANY, np.bool_)
    values = wide_decimals(np.where(is_zero | is_large, 0, found), arrow_type(call.type))
    return Computed(_without(values, is_none), is_large if is_large.any() else None)


def _rounded(above: WideIntegers, below: WideIntegers) -> WideIntegers:
    """Returns quotients of integers above zero, rounded half up."""
    found: WideIntegers = (2 * above + below) // (2 * below)
    return found


def _without(values: pa.Array, is_none: Mask) -> pa.Array:
    """Returns values, NULL where there is none."""
    if not is_none.any():
        return values
    return values.take(pa.array(np.arange(len(values)), mask=is_none))


@strict("product_digits_float8")
def _product_digits(call: Call, operands: Sequence[Operand]) -> Computed:
    left, right = np.broadcast_arrays(*map(floats, operands))
    is_finite = np.isfinite(left) & np.isfinite(right)
    first, first_exponent = _odd(np.where(is_finite, left, 0))
    second, second_exponent = _odd(np.where(is_finite, right, 0))
    is_zero = (first == 0) | (second == 0)
    limb, shift = np.divmod(np.where(is_zero, 0, first_exponent + second_exponent - LOWEST), BITS)
    found = np.zeros((len(left), 1 + PRODUCT_DIGITS), np.int64)
    parts, others = ([size & MASK, size >> BITS & MASK, size >> 2 * BITS] for size in (np.abs(first), np.abs(second)))
    columns: list[Integers] = [np.zeros(len(left), np.int64) for _ in range(PRODUCT_DIGITS)]
    for i, part in enumerate(parts):
        for j, other in enumerate(others):
            columns[i + j] = columns[i + j] + part * other
    columns = [one << shift for one in _carried(columns)]
    sign = np.where((first < 0) != (second < 0), -1, 1)
    for i, one in enumerate(_carried(columns)):
        found[:, 1 + i] = one * sign
    with np.errstate(all="ignore"):
        product = left * right
    special = np.where(np.isnan(product), NAN, np.where(product > 0, INFINITY, NEGATIVE_INFINITY))
    found[:, 0] = np.where(is_finite, limb, special)
    offsets = np.arange(len(left) + 1, dtype=np.int32) * found.shape[1]
    return Computed(pa.ListArray.from_arrays(pa.array(offsets), pa.array(found.ravel()), type=arrow_type(call.type)))


def _odd(value: NDArray[np.float64]) -> tuple[Integers, Integers]:
    """Returns mantissas without the zeros that they end with, and the exponents of their units, from that of 2^53."""
    fraction, exponent = np.frexp(value)
    mantissa = (fraction * 2.0**MANTISSA).astype(np.int64)
    zeros: Integers = np.maximum(np.frexp((mantissa & -mantissa).astype(np.float64))[1].astype(np.int64) - 1, 0)
    found: Integers = np.sign(mantissa) * (np.abs(mantissa) >> zeros)
    return found, exponent + zeros


class ExactProducts(NamedTuple):
    """Products of doubles as integers, times one power of two.

    Attributes:
        units: The integers; 0 of what is not finite. They are of 64 bits if the sum of any of them has room there.
        exponent: Of the power.
        special: What is not finite; 0 of what is.
    """

    units: Integers | WideIntegers
    exponent: int
    special: NDArray[np.float64]


def exact_products(factors: Sequence[NDArray[np.float64]]) -> ExactProducts | None:
    """Returns the products of one or two columns; None if they lie so far apart that the integers would be very long.

    Example:
        >>> exact_products([np.array([0.5, -3.0, np.inf])])
        ExactProducts(units=array([ 1, -6,  0]), exponent=-1, special=array([ 0.,  0., inf]))
    """
    is_finite = np.logical_and.reduce([np.isfinite(one) for one in factors])
    with np.errstate(all="ignore"):
        special = np.where(is_finite, 0.0, np.multiply.reduce(factors))
    parts = [_odd(np.where(is_finite, one, 0.0)) for one in factors]
    exponents = np.add.reduce([exponent for _, exponent in parts])
    is_zero = np.logical_or.reduce([units == 0 for units, _ in parts])
    least = int(exponents[~is_zero].min()) if not is_zero.all() else 0
    shift = np.where(is_zero, 0, exponents - least)
    spread = int(shift.max(initial=0))
    if spread > _MOST_SPREAD:
        return None
    if len(parts) == 1 and MANTISSA + spread + len(shift).bit_length() < _ROOM:
        units = parts[0][0] << shift
    else:
        units = np.multiply.reduce([units.astype(object) for units, _ in parts]) << shift.astype(object)
    return ExactProducts(units, least - MANTISSA * len(factors), special)


def _carried(columns: Sequence[Integers]) -> list[Integers]:
    """Returns digits of which each has no more bits than one has, carrying what is beyond; the last has room."""
    found, over = [], np.zeros_like(columns[0])
    for one in columns:
        total = one + over
        found.append(total & MASK)
        over = total >> BITS
    return found


@strict("exact_sum_float8", "exact_product_sum_float8", "whole_float8")
def _exact_sum(call: Call, operands: Sequence[Operand]) -> Computed | None:
    if any(isinstance(one, pa.Scalar) or one.null_count for one in operands):
        return None
    lists = [(one.values, np.asarray(one.offsets, np.int64)) for one in operands]
    start, end = lists[0][1][:-1], lists[0][1][1:]
    if any(values.null_count for values, _ in lists) or (start == end).any():
        return None
    places, *digits = (integers(values[int(offsets[0]) : int(offsets[-1])]) for values, offsets in lists)
    if any(len(one) != len(places) for one in digits):
        return None
    start = start - start[0]
    is_there = places >= 0
    is_special = (places < 0) & (places >= NEGATIVE_INFINITY)
    units = np.zeros(len(places), object)
    for i, one in enumerate(digits):
        units = units + (one.astype(object) << i * BITS)
    units = np.where(is_there, units << (np.maximum(places, 0) * BITS).astype(object), 0)
    totals = np.add.reduceat(units, start)
    doubtful = np.logical_or.reduceat(is_special, start)
    is_none = ~np.logical_or.reduceat(is_there, start)
    if call.function != "whole_float8":
        unit = LEAST_PRODUCT if call.function == "exact_product_sum_float8" else LEAST
        texts = [
            None if none else shown(one, unit) for one, none in zip(totals.tolist(), is_none.tolist(), strict=True)
        ]
        return Computed(pa.array(texts, pa.string()), doubtful)
    numbers = totals.tolist()
    bits = np.fromiter((one.bit_length() for one in numbers), np.int64, len(numbers))
    doubtful |= bits + LEAST > _MOST_BITS
    below = 1 << -LEAST
    nearest = [0.0 if skipped else one / below for one, skipped in zip(numbers, doubtful.tolist(), strict=True)]
    return Computed(_without(pa.array(nearest, pa.float64()), is_none), doubtful)


@strict("nearest_float8")
def _nearest(_: Call, operands: Sequence[Operand]) -> Computed | None:
    (totals,) = operands
    if isinstance(totals, pa.Scalar):
        return None
    found, doubtful = np.zeros(len(totals), np.float64), np.zeros(len(totals), np.bool_)
    for place, total in enumerate(totals.to_pylist()):
        if total is not None:
            try:
                found[place] = nearest_float8(total)
            except SqlFailure:
                doubtful[place] = True
    return Computed(pa.array(found), doubtful)


class _Sum(NamedTuple):
    """An integer times a power of two."""

    units: int
    exponent: int


#: Of the count, the exact sums and their spreads.
_Result = Callable[[int, Sequence[_Sum], Sequence[_Sum]], float | None]


def _spread(n: int, x: _Sum, y: _Sum, products: _Sum) -> _Sum | None:
    """Returns N times the joint spread of N pairs; None if a double may have no room for what it comes of."""
    both = x.exponent + y.exponent
    least = min(both, products.exponent)
    found = (n * products.units << products.exponent - least) - (x.units * y.units << both - least)
    for units, exponent in (x, y, (found, least)):
        if units.bit_length() + exponent > _MOST_BITS:
            return None
    return _Sum(found, least)


def _quotient(above: int, below: int, exponent: int) -> float:
    """Returns `above / below * 2^exponent`, rounded once."""
    if not above:
        return 0.0
    return (above << exponent) / below if exponent >= 0 else above / (below << -exponent)


def _shared(divisor: Callable[[int], int], *, is_root: bool = False) -> _Result:
    def computed(n: int, _: Sequence[_Sum], spreads: Sequence[_Sum]) -> float | None:
        if (others := divisor(n)) <= 0:
            return None
        found = _quotient(spreads[0].units, n * others, spreads[0].exponent)
        return math.sqrt(abs(found)) if is_root else found

    return computed


def _determination(spreads: Sequence[_Sum]) -> float:
    xx, yy, xy = spreads
    return _quotient(xy.units * xy.units, xx.units * yy.units, 2 * xy.exponent - xx.exponent - yy.exponent)


def _corr(_: int, __: Sequence[_Sum], spreads: Sequence[_Sum]) -> float | None:
    xx, yy, xy = spreads
    if not xx.units or not yy.units:
        return None
    return math.copysign(math.sqrt(abs(_determination(spreads))), xy.units) if xy.units else 0.0


def _r2(_: int, __: Sequence[_Sum], spreads: Sequence[_Sum]) -> float | None:
    xx, yy, _xy = spreads
    if not xx.units:
        return None
    return _determination(spreads) if yy.units else 1.0


def _slope(_: int, __: Sequence[_Sum], spreads: Sequence[_Sum]) -> float | None:
    xx, xy = spreads
    return _quotient(xy.units, xx.units, xy.exponent - xx.exponent) if xx.units else None


def _intercept(n: int, sums: Sequence[_Sum], spreads: Sequence[_Sum]) -> float | None:
    (x, y, *_), (xx, xy) = sums, spreads
    if not xx.units:
        return None
    first, second = y.exponent + xx.exponent, x.exponent + xy.exponent
    least = min(first, second)
    above = (y.units * xx.units << first - least) - (x.units * xy.units << second - least)
    return _quotient(above, n * xx.units, least - xx.exponent)


#: By function: of which sums its spreads are, as places of x, y and of the products, and what is made of them.
_ONE, _TWO = ((0, 0, 1),), ((0, 1, 2),)
_ALL, _LINE = ((0, 0, 2), (1, 1, 3), (0, 1, 4)), ((0, 0, 2), (0, 1, 3))
_RESULTS: dict[str, tuple[Sequence[tuple[int, int, int]], _Result]] = {
    "var_pop_float8": (_ONE, _shared(lambda n: n)),
    "var_samp_float8": (_ONE, _shared(lambda n: n - 1)),
    "stddev_pop_float8": (_ONE, _shared(lambda n: n, is_root=True)),
    "stddev_samp_float8": (_ONE, _shared(lambda n: n - 1, is_root=True)),
    "regr_sxx_float8": (_ONE, _shared(lambda _: 1)),
    "regr_sxy_float8": (_TWO, _shared(lambda _: 1)),
    "covar_pop_float8": (_TWO, _shared(lambda n: n)),
    "covar_samp_float8": (_TWO, _shared(lambda n: n - 1)),
    "corr_float8": (_ALL, _corr),
    "regr_r2_float8": (_ALL, _r2),
    "regr_slope_float8": (_LINE, _slope),
    "regr_intercept_float8": (_LINE, _intercept),
}


@strict(*_RESULTS)
def _of_exact_sums(call: Call, operands: Sequence[Operand]) -> Computed | None:
    if any(isinstance(one, pa.Scalar) for one in operands):
        return None
    places, result = _RESULTS[call.function]
    counts, *texts = (one.to_pylist() for one in operands)
    found: list[float | None] = [None] * len(counts)
    doubtful = np.zeros(len(counts), np.bool_)
    for row, (n, *given) in enumerate(zip(counts, *texts, strict=True)):
        sums = [one for one in map(_parsed, given) if one is not None]
        spreads: list[_Sum] = []
        if n and n > 0 and len(sums) == len(given):
            spreads += filter(None, (_spread(n, sums[x], sums[y], sums[xy]) for x, y, xy in places))
        if len(spreads) < len(places):
            doubtful[row] = True
            continue
        try:
            found[row] = result(n, sums, spreads)
        except OverflowError:
            doubtful[row] = True
    return Computed(pa.array(found, pa.float64()), doubtful if doubtful.any() else None)


def _parsed(total: str | None) -> _Sum | None:
    """Returns an exact sum; None of what is not finite, or NULL."""
    found = None if total is None else units_of(total)
    return None if found is None else _Sum(*found)
