"""What keyed operators compute before and after their accumulators; no SQL name leads here.

`multiplicity_int8(n)` is n, and `XX001 a row has a negative multiplicity` below zero. `unsigned_zero_*` make one
value of the two zeros.

A sum of numerics must be able to pass beyond 38 digits and come back, so a numeric x of scale s is kept as two parts
whose sums cannot overflow before 10^18 rows are added up, with the unit d = 10^(19 - s):

    low_part_numeric(x)  = x mod d, with the sign of x; numeric(38, s)
    high_part_numeric(x) = (x - low) / d if s <= 19, as numeric(38, 0); else x - low, as numeric(38, s - 19)
    whole_numeric(h, l)  = the sum of which h and l are the sums of parts, or `22003 numeric field overflow`

For |x| < d, which is 19 digits, the high part is 0 and costs one comparison.

A decimal of 38 digits is cut by 19 digits, so both parts have at most 19. Two bigints would not do: 10^19 > 2^63.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, decimal, failing, strict, try_cast
from mz_dagster.compute.spark.expressions.numeric import rounded
from mz_dagster.functions.errors import NEGATIVE_MULTIPLICITY, NUMERIC_OVERFLOW
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_DIGITS = 19


@strict("multiplicity_int8")
def _multiplicity(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return failing(sf.when(value >= 0, value), [value], NEGATIVE_MULTIPLICITY)


@strict("unsigned_zero_float4", "unsigned_zero_float8")
def _unsigned_zero(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    zero = sf.lit(0.0).cast("float" if invocation.function.endswith("4") else "double")
    return sf.when(value == 0, zero).otherwise(value), None


@strict("widened_numeric")
def _widened(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return try_cast(value, f"decimal(38,{invocation.type.scale})"), None


@strict("low_part_numeric", heavy=True)
def _low_part(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return _low(value, invocation.type.scale), None


@strict("high_part_numeric", heavy=True)
def _high_part(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return _high(value, invocation.scalars[0].type.scale, invocation.type.scale), None


@strict("whole_numeric", heavy=True)
def _whole(invocation: Invocation) -> Outcome:
    high, low = invocation.values
    scale, high_scale = invocation.type.scale, invocation.scalars[0].type.scale
    unit = _unit(scale)
    one = decimal("1" if scale <= _DIGITS else f"1e-{high_scale}", high_scale)
    # The low parts' sum carries into the high part; after that the two get one sign, so that the product overflows
    # only if the whole does.
    carry = _high(low, scale, high_scale)
    carried, rest = invocation.share(rounded(sf.try_add(high, carry), high_scale), _low(low, scale))
    borrow, lend = (carried > 0) & (rest < 0), (carried < 0) & (rest > 0)
    carried, rest = (
        sf.when(borrow, sf.try_subtract(carried, one)).when(lend, sf.try_add(carried, one)).otherwise(carried),
        sf.when(borrow, sf.try_add(rest, unit)).when(lend, sf.try_subtract(rest, unit)).otherwise(rest),
    )
    product = rounded(carried, high_scale)
    if scale < _DIGITS:
        product = sf.try_multiply(product, decimal(f"1e{_DIGITS - scale}", 0))
    value = rounded(sf.try_add(rounded(product, scale), rounded(rest, scale)), scale)
    return failing(value, [high, low], NUMERIC_OVERFLOW)


def _unit(scale: int) -> Column:
    return decimal(f"1e{_DIGITS - scale}", max(0, scale - _DIGITS))


def _is_small(value: Column, scale: int) -> Column:
    unit = _unit(scale)
    negative = decimal(f"-1e{_DIGITS - scale}", max(0, scale - _DIGITS))
    return (value < unit) & (value > negative)


def _low(value: Column, scale: int) -> Column:
    return sf.when(_is_small(value, scale), value).otherwise(rounded(sf.try_mod(value, _unit(scale)), scale))


def _high(value: Column, scale: int, high_scale: int) -> Column:
    zero = decimal("0", high_scale)
    whole = rounded(sf.try_subtract(value, rounded(sf.try_mod(value, _unit(scale)), scale)), scale)
    if scale < _DIGITS:
        whole = sf.try_multiply(whole, decimal(f"1e-{_DIGITS - scale}", _DIGITS - scale))
    return sf.when(_is_small(value, scale), zero).when(value.isNotNull(), rounded(whole, high_scale))
