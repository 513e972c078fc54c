"""Exact sums of doubles, and of products of two: how they are taken apart, put together and read.

Adding floats does not undo: (1e16 + 1) - 1e16 is 0. So a sum is kept as digits of 24 bits, which are added up place by
place; see `compute/spark/expressions/float_sum.py`. A product of two doubles is an integer of up to 106 bits in units
of 2^-2148: six digits from the place of its lowest one on.

What is read of a sum is *the exact sum*, as text that says nothing else: `<m>p<e>` is m * 2^e, m odd and hexadecimal;
0 is `0p0`; and there are `NaN`, `Infinity`, `-Infinity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

#: Bits of a digit, and how many digits a product has.
BITS = 24
PRODUCT_DIGITS = 6
#: The exponent of the unit of a double, and of a product.
LEAST = -1074
LEAST_PRODUCT = 2 * LEAST
MASK = (1 << BITS) - 1
_PLACES = tuple(range(0, BITS * PRODUCT_DIGITS, BITS))
#: What makes a fraction of `math.frexp` an integer, and the exponent that two of them then have in a product's units.
_MANTISSA = float(1 << 53)
LOWEST = 2 * 53 + LEAST_PRODUCT
#: In the place of the lowest digit: what is no finite number, and below these that there is none.
_NAN, _INFINITY, _NEGATIVE_INFINITY = -1, -2, -3


@function("product_digits_float8", (Kind.FLOAT8, Kind.FLOAT8), Kind.ARRAY, internal=True)
def product_digits(x: float, y: float) -> list[int]:
    """Returns the place of the lowest digit of a product, and its digits from there on, with its sign.

    Example:
        >>> product_digits(1.0, -3.0)
        [89, -12288, 0, 0, 0, 0, 0]
    """
    if not (math.isfinite(x) and math.isfinite(y)):
        product = x * y
        limb = _NAN if math.isnan(product) else _INFINITY if product > 0 else _NEGATIVE_INFINITY
        return [limb, *(0,) * PRODUCT_DIGITS]
    (fraction, exponent), (other_fraction, other_exponent) = math.frexp(x), math.frexp(y)
    units = int(fraction * _MANTISSA) * int(other_fraction * _MANTISSA)
    if not units:
        return [0] * (1 + PRODUCT_DIGITS)
    zeros = _zeros(units)
    limb, shift = divmod(exponent + other_exponent - LOWEST + zeros, BITS)
    if units > 0:
        rest = units >> zeros << shift
        return [limb, *(rest >> place & MASK for place in _PLACES)]
    rest = -units >> zeros << shift
    return [limb, *(-(rest >> place & MASK) for place in _PLACES)]


@function("exact_sum_float8", (Kind.ARRAY,) * 5, Kind.TEXT, internal=True)
def exact_sum(limbs: Sequence[int], *digits: Sequence[int]) -> str | None:
    """Returns the exact sum of doubles from the sums of their digits by place; none if there was no value."""
    return _whole(limbs, digits, LEAST)


@function("exact_product_sum_float8", (Kind.ARRAY,) * 7, Kind.TEXT, internal=True)
def exact_product_sum(limbs: Sequence[int], *digits: Sequence[int]) -> str | None:
    """Returns the exact sum of products from the sums of their digits by place; none if there was no value."""
    return _whole(limbs, digits, LEAST_PRODUCT)


@function("nearest_float8", (Kind.TEXT,), Kind.FLOAT8, fallible=True, internal=True)
def nearest_float8(total: str) -> float:
    """Returns the double that is nearest to an exact sum.

    Example:
        >>> nearest_float8("-3p-1"), nearest_float8("Infinity")
        (-1.5, inf)
    """
    found = _units_over(total)
    return float(total) if found is None else _quotient(*found)


@dataclass(frozen=True, slots=True)
class ExactSum:
    """The sum of products of two doubles.

    Attributes:
        count: How many.
        units: Of what is finite, in units of 2^-2148.
        nans: How many terms are no number; how many are infinite, with either sign, follows.
    """

    count: int
    units: int = 0
    nans: int = 0
    infinities: int = 0
    negatives: int = 0

    @classmethod
    def of(cls, x: float, y: float, times: int) -> ExactSum:
        """Returns the sum of one product, so many times.

        Example:
            >>> (ExactSum.of(0.5, 3.0, 2) + ExactSum.of(1.0, 1.0, -1)).text
            '1p1'
        """
        if math.isfinite(x) and math.isfinite(y):
            return cls(times, _units(x, y) * times)
        product = x * y
        if math.isnan(product):
            return cls(times, nans=times)
        return cls(times, infinities=times) if product > 0 else cls(times, negatives=times)

    def __add__(self, other: ExactSum) -> ExactSum:
        return ExactSum(
            self.count + other.count,
            self.units + other.units,
            self.nans + other.nans,
            self.infinities + other.infinities,
            self.negatives + other.negatives,
        )

    @property
    def text(self) -> str | None:
        """The exact sum, as text; None of nothing."""
        if not self.count:
            return None
        return special(self.nans, self.infinities, self.negatives) or shown(self.units, LEAST_PRODUCT)


def exact_sums_of_frames(
    values: Sequence[float | None], factors: Sequence[float | None], frames: Sequence[Sequence[int]]
) -> list[str | None]:
    """Returns the exact sum over each frame of a partition.

    Args:
        values: In order.
        factors: Of each value; none is NULL. Of a pair that is not complete nothing counts.
        frames: The first and last places, from 1, of each interval of a frame, one after the other.
    """
    counts, nans, infinities, negatives, totals = [0], [0], [0], [0], [0]
    for x, y in zip(values, factors, strict=True):
        present = x is not None and y is not None
        number = x * y if x is not None and y is not None else 0.0
        finite = x is None or y is None or (math.isfinite(x) and math.isfinite(y))
        counts.append(counts[-1] + present)
        nans.append(nans[-1] + (not finite and math.isnan(number)))
        infinities.append(infinities[-1] + (not finite and number == math.inf))
        negatives.append(negatives[-1] + (not finite and number == -math.inf))
        totals.append(totals[-1] + (_units(x, y) if x is not None and y is not None and finite else 0))
    found: list[str | None] = []
    for frame in frames:
        spans = [(frame[i] - 1, frame[i + 1]) for i in range(0, len(frame), 2)]

        def over(running: list[int], spans: list[tuple[int, int]] = spans) -> int:
            return sum(running[hi] - running[lo] for lo, hi in spans)

        if not over(counts):
            found.append(None)
            continue
        odd = special(over(nans), over(infinities), over(negatives))
        found.append(odd or shown(over(totals), LEAST_PRODUCT))
    return found


def special(nans: int, infinities: int, negatives: int) -> str | None:
    """Returns the sum of so many terms that are no number, infinite and negative infinite, as text; None without any.

    Example:
        >>> special(0, 2, 0), special(0, 1, 1), special(0, 0, 0)
        ('Infinity', 'NaN', None)
    """
    if nans or (infinities and negatives):
        return "NaN"
    if infinities or negatives:
        return "Infinity" if infinities else "-Infinity"
    return None


def parsed(total: str) -> Fraction | float:
    """Returns an exact sum: a double if it is not finite."""
    found = _units_over(total)
    return float(total) if found is None else Fraction(*found)


def units_of(total: str) -> tuple[int, int] | None:
    """Returns the integer and the exponent of the power of two of which an exact sum is the product.

    None of what is not finite.

    Example:
        >>> units_of("-3p-1"), units_of("NaN")
        ((-3, -1), None)
    """
    units, is_finite, exponent = total.partition("p")
    return (int(units, 16), int(exponent)) if is_finite else None


def _units_over(total: str) -> tuple[int, int] | None:
    """Returns the integers of which an exact sum is the quotient; None of what is not finite."""
    found = units_of(total)
    return None if found is None else (found[0] << max(found[1], 0), 1 << max(-found[1], 0))


def nearest(value: Fraction) -> float:
    """Returns the double that is nearest to `value`.

    Raises:
        SqlFailure: It is too large for one.
    """
    return _quotient(value.numerator, value.denominator)


def _quotient(above: int, below: int) -> float:
    """Returns the double that is nearest to a quotient: Python rounds one of integers once."""
    try:
        return above / below
    except OverflowError:
        raise SqlFailure("22003", "value out of range: overflow") from None


def _units(x: float, y: float) -> int:
    """Returns the product of finite numbers in units of 2^-2148."""
    (fraction, exponent), (other_fraction, other_exponent) = math.frexp(x), math.frexp(y)
    units = int(fraction * _MANTISSA) * int(other_fraction * _MANTISSA)
    place = exponent + other_exponent - LOWEST
    return units << place if place >= 0 else units >> -place


def _whole(limbs: Sequence[int], digits: Iterable[Sequence[int]], unit: int) -> str | None:
    if (odd := special(*map(limbs.count, (_NAN, _INFINITY, _NEGATIVE_INFINITY)))) is not None:
        return odd
    if max(limbs) < 0:
        return None
    placed = ((limb + i, one) for i, row in enumerate(digits) for limb, one in zip(limbs, row, strict=True))
    return shown(sum(one << BITS * place for place, one in placed if place >= 0), unit)


def shown(units: int, exponent: int) -> str:
    """Returns the exact sum that is `units * 2^exponent`, as text.

    Example:
        >>> shown(-12, -3)
        '-3p-1'
    """
    zeros = _zeros(units)
    return f"{units >> zeros:x}p{exponent + zeros if units else 0}"


def _zeros(units: int) -> int:
    """Returns how many zeros a number ends with in binary."""
    return (units & -units).bit_length() - 1 if units else 0
