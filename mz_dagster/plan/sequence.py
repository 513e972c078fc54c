"""Sequences: the numbers that a column generates, one after the other.

What is handed out is decided by the last number that was, which somebody else keeps; here is only the arithmetic, which
is PostgreSQL's.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.errors import DataError


class SequenceExhausted(DataError):
    """A sequence has no further number."""

    sqlstate = "2200H"


@dataclass(frozen=True, slots=True)
class SequenceDefinition:
    """Which numbers a sequence has.

    Attributes:
        start: The first.
        increment: What is added to one to get the next; not 0.
        minimum: The least that there may be.
        maximum: The greatest.
        cycles: Whether it begins again at the other end once it has reached one.
    """

    start: int
    increment: int
    minimum: int
    maximum: int
    cycles: bool

    def following(self, last: int | None, count: int, name: str) -> tuple[int, ...]:
        """Returns the next numbers.

        Args:
            last: The last that was handed out; None if none was.
            count: How many.
            name: The sequence's, for the error.

        Raises:
            SequenceExhausted: There are fewer.

        Example:
            >>> SequenceDefinition(2, 2, 1, 6, cycles=True).following(None, 4, "s")
            (2, 4, 6, 1)
        """
        found: list[int] = []
        for _ in range(count):
            last = self.start if last is None else last + self.increment
            if not self.minimum <= last <= self.maximum:
                upwards = self.increment > 0
                if not self.cycles:
                    end, value = ("maximum", self.maximum) if upwards else ("minimum", self.minimum)
                    raise SequenceExhausted(
                        f'nextval: reached {end} value of sequence "{name}" ({value})',
                        hint="Let the column be of a wider type, or its sequence CYCLE.",
                    )
                last = self.minimum if upwards else self.maximum
            found.append(last)
        return tuple(found)
