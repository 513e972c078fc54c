"""Infinite dates and timestamps: `infinity` is later than all others, `-infinity` earlier.

Their stored form is a day of its own on either side of the years that values may have, 10000-01-01 and 0000-12-31, and
of a timestamp that day's midnight. So they sort as they should wherever dates do, no finite value equals them, and what
casts dates and timestamps into each other casts them, too. Python has no such days: their Python form is `Infinity`.
"""

from __future__ import annotations

from datetime import date

from mz_dagster.scalars.types import Kind

#: The kinds that have infinite values.
INFINITE_KINDS = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})

_DAY = 86_400_000_000
#: 0000-12-31 and 10000-01-01 as days since 1970-01-01.
_BEFORE, _AFTER = -719_163, 2_932_897


class Infinity:
    """The Python form of an infinite date or timestamp: `INFINITY` or `NEGATIVE_INFINITY`.

    It compares with every date and datetime, and as a parameter it is the literal that its text is.

    Example:
        >>> from datetime import datetime
        >>> str(INFINITY), INFINITY > datetime.max, sorted([INFINITY, date.min, NEGATIVE_INFINITY])[0]
        ('infinity', True, NEGATIVE_INFINITY)
    """

    __slots__ = ("_sign",)
    _sign: int

    def __init__(self, sign: int) -> None:
        self._sign = sign

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Infinity) and self._sign == other._sign

    def __hash__(self) -> int:
        return hash((Infinity, self._sign))

    def __reduce__(self) -> tuple[type[Infinity], tuple[int]]:
        return Infinity, (self._sign,)

    def stored(self, kind: Kind) -> int:
        """Returns its stored form: days since 1970-01-01 of a date, else microseconds."""
        day = _AFTER if self._sign > 0 else _BEFORE
        return day if kind is Kind.DATE else day * _DAY

    def __lt__(self, other: object) -> bool:
        return self._compared(other, self._sign < 0)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, self._sign > 0)

    def __le__(self, other: object) -> bool:
        return self == other or self < other

    def __ge__(self, other: object) -> bool:
        return self == other or self > other

    def _compared(self, other: object, found: bool) -> bool:
        if isinstance(other, Infinity):
            return found and self != other
        return found if isinstance(other, date) else NotImplemented

    def __str__(self) -> str:
        return "infinity" if self._sign > 0 else "-infinity"

    def __repr__(self) -> str:
        return "INFINITY" if self._sign > 0 else "NEGATIVE_INFINITY"


INFINITY, NEGATIVE_INFINITY = Infinity(1), Infinity(-1)


def infinity_of(stored: int, kind: Kind) -> Infinity | None:
    """Returns the infinite value that days or microseconds since 1970-01-01 are; None if they are finite.

    Example:
        >>> infinity_of(2_932_897, Kind.DATE), infinity_of(2_932_896, Kind.DATE)
        (INFINITY, None)
    """
    for one in (INFINITY, NEGATIVE_INFINITY):
        if stored == one.stored(kind):
            return one
    return None
