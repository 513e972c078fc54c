"""Sums of unconstrained numerics that updates can be taken out of again, and what is computed from them.

A value is digits of nine places, which are added up as integers by its scale and their place; see `unconstrained`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

from mz_dagster.functions.function import Nullability
from mz_dagster.functions.numbers.digits import places_of
from mz_dagster.functions.numbers.numerics import MOST_SHOWN, quotient_digits, rounded_root
from mz_dagster.functions.numbers.unconstrained import EXACT, at_scale, text_of
from mz_dagster.functions.numbers.unconstrained_functions import exact_quotient
from mz_dagster.functions.registry import function
from mz_dagster.scalars.types import Kind

#: Digits of one place of a sum: bigints add up 9 thousand million of them.
_PLACE_DIGITS = 9
#: A place is a scale, and which digits counted from the last one: `scale << 16 | number`; of what is no finite number,
#: the scale says what it is.
_NAN, _INFINITY, _NEGATIVE_INFINITY = 0xFF01, 0xFF02, 0xFF03
_SCALE_OF_SPECIAL = {"NaN": _NAN, "Infinity": _INFINITY, "-Infinity": _NEGATIVE_INFINITY}
#: The place of a row without a value.
NO_PLACE = -1


@function("sum_places_unconstrained", (Kind.UNCONSTRAINED,), Kind.ARRAY, internal=True)
def sum_places(value: str) -> list[int]:
    """Returns the places at which a number has digits.

    Example:
        >>> [divmod(one, 1 << 16) for one in sum_places("-1000000000.50")]
        [(2, 0), (2, 1)]
    """
    special = _SCALE_OF_SPECIAL.get(value)
    if special is not None:
        return [special << 16]
    whole, _, fraction = value.lstrip("-").partition(".")
    places = -(-(len(whole) + len(fraction)) // _PLACE_DIGITS)
    return [len(fraction) << 16 | number for number in range(places)]


@function("sum_digits_unconstrained", (Kind.UNCONSTRAINED,), Kind.ARRAY, internal=True)
def sum_digits(value: str) -> list[int]:
    """Returns the digits at each of these places, with the sign of the number.

    Example:
        >>> sum_digits("-1000000000.50")
        [-50, -100]
    """
    if value in _SCALE_OF_SPECIAL:
        return [0]
    digits = value.lstrip("-").replace(".", "")
    ends = range(len(digits), 0, -_PLACE_DIGITS)
    found = [int(digits[max(0, end - _PLACE_DIGITS) : end]) for end in ends]
    return [-one for one in found] if value.startswith("-") else found


@function(
    "sum_unconstrained",
    (Kind.ARRAY, Kind.ARRAY),
    Kind.UNCONSTRAINED,
    fallible=True,
    nullability=Nullability.ALWAYS,
    internal=True,
)
def total(places: Sequence[int], sums: Sequence[int]) -> str | None:
    """Returns the sum of numbers from the sums of their digits by place; none if there was no number.

    Example:
        >>> total([*sum_places("1.5"), *sum_places("-2.25")], [*sum_digits("1.5"), *sum_digits("-2.25")])
        '-0.75'
    """
    scales = {one >> 16 for one in places if one != NO_PLACE}
    if not scales:
        return None
    if _NAN in scales or {_INFINITY, _NEGATIVE_INFINITY} <= scales:
        return "NaN"
    if not scales.isdisjoint((_INFINITY, _NEGATIVE_INFINITY)):
        return "Infinity" if _INFINITY in scales else "-Infinity"
    found = Decimal(0)
    for place, digits in zip(places, sums, strict=True):
        exponent = (place & 0xFFFF) * _PLACE_DIGITS - (place >> 16)
        found = EXACT.add(found, Decimal(digits).scaleb(exponent, EXACT)) if place != NO_PLACE else found
    return text_of(at_scale(found, max(scales)))


@function("sum_list_unconstrained", (Kind.ARRAY,), Kind.UNCONSTRAINED, fallible=True, nullability=Nullability.ALWAYS)
def listed_total(values: Sequence[str | None]) -> str | None:
    """Returns the sum of the numbers of a list; none if it has none.

    Example:
        >>> listed_total(["1.5", None, "-2.250"])
        '-0.750'
    """
    numbers = [one for one in values if one is not None]
    places = [place for one in numbers for place in sum_places(one)]
    return total(places, [digits for one in numbers for digits in sum_digits(one)])


@function("rescaled_unconstrained", (Kind.UNCONSTRAINED, Kind.INT4), Kind.UNCONSTRAINED, internal=True)
def rescaled(value: str, digits: int) -> str:
    """Returns a number that shows at least so many digits after the point."""
    number = Decimal(value)
    if not number.is_finite() or places_of(number) >= digits:
        return value
    return text_of(at_scale(number, digits))


def _deviation(of_sample: bool, is_root: bool) -> Callable[[int, str, str], str | None]:
    def computed(count: int, total: str, squares: str) -> str | None:
        return _spread(count, count - 1 if of_sample else count, total, squares, root=is_root)

    return computed


def _spread(count: int, others: int, total: str, squares: str, *, root: bool) -> str | None:
    """Returns (squares - total * total / count) / others, or its root: PostgreSQL's `numeric_stddev_internal`."""
    if others <= 0:
        return None
    whole, square = Decimal(total), Decimal(squares)
    if not (whole.is_finite() and square.is_finite()):
        return "NaN"
    with localcontext(EXACT):
        above, below = count * square - whole * whole, Decimal(count) * others
        if above <= 0:
            return "0"
        digits = min(max(quotient_digits(above, below), places_of(above), 0), MOST_SHOWN)
        value = exact_quotient(above, below, digits)
    return text_of(rounded_root(value, digits) if root else value)


function(
    "var_pop_unconstrained",
    (Kind.INT8, Kind.UNCONSTRAINED, Kind.UNCONSTRAINED),
    Kind.UNCONSTRAINED,
    fallible=True,
    nullability=Nullability.ALWAYS,
    internal=True,
)(_deviation(False, False))
function(
    "var_samp_unconstrained",
    (Kind.INT8, Kind.UNCONSTRAINED, Kind.UNCONSTRAINED),
    Kind.UNCONSTRAINED,
    fallible=True,
    nullability=Nullability.ALWAYS,
    internal=True,
)(_deviation(True, False))
function(
    "stddev_pop_unconstrained",
    (Kind.INT8, Kind.UNCONSTRAINED, Kind.UNCONSTRAINED),
    Kind.UNCONSTRAINED,
    fallible=True,
    nullability=Nullability.ALWAYS,
    internal=True,
)(_deviation(False, True))
function(
    "stddev_samp_unconstrained",
    (Kind.INT8, Kind.UNCONSTRAINED, Kind.UNCONSTRAINED),
    Kind.UNCONSTRAINED,
    fallible=True,
    nullability=Nullability.ALWAYS,
    internal=True,
)(_deviation(True, True))
