"""The facts of the formalism that a caller can break, each as an error that names it.

All of them are the caller's: repeating the call cannot help, so none is ever retried. Each carries
the offending times and frontiers as attributes, so that a layer above can say it in its own words.

This module raises nothing itself, and it knows times and frontiers only by their printed form, so
that every other module of the formalism can import it.
"""

from __future__ import annotations

from mz_dagster.errors import DataError, ProgrammingError


class NotATime(ProgrammingError):
    """A value that is not a time of the lattice it was used with."""

    sqlstate = "22023"

    def __init__(self, value: object, lattice: object) -> None:
        """Names the value and the lattice that has no such time."""
        super().__init__(
            f"{value!r} is not a time of {lattice}",
            hint="Times are exact: whole numbers within the bounds of their lattice, or pairs of such times.",
        )
        self.value = value
        self.lattice = lattice


class NotAFrontier(ProgrammingError):
    """A value that does not denote an antichain in its canonical form."""

    sqlstate = "22023"

    def __init__(self, value: object, lattice: object) -> None:
        """Names the value and the lattice over which it was read."""
        super().__init__(
            f"{value!r} is not a frontier over {lattice}",
            hint="A frontier lists times of which no two compare, in the order of their encoding.",
        )
        self.value = value
        self.lattice = lattice


class FrontierNotSingle(ProgrammingError):
    """A frontier with no element, or several, where exactly one was asked for."""

    def __init__(self, frontier: object) -> None:
        """Names the frontier."""
        super().__init__(
            f"frontier {frontier} does not have exactly one element",
            hint="Ask for is_empty first; over a partial order, iterate over the elements instead.",
        )
        self.frontier = frontier


class TimelinesDiffer(ProgrammingError):
    """Times or frontiers of two timelines met: they never compare."""

    def __init__(self, left: object, right: object) -> None:
        """Names the two timelines, or bare lattices, that met."""
        super().__init__(
            f"times of {left} and of {right} do not compare",
            hint="Reclock one of the two sides into the other's timeline.",
        )
        self.left = left
        self.right = right


class TimeNotBeyondSince(ProgrammingError):
    """A read at a time whose history is forgotten: not `since <= time`."""

    def __init__(self, time: object, since: object) -> None:
        """Names the time and the read frontier that it is not beyond."""
        super().__init__(
            f"time {time} is not beyond since {since}",
            detail="What the collection contained at that time is forgotten.",
            hint="Read at a later time, or retain more history.",
        )
        self.time = time
        self.since = since


class TimeBeyondUpper(ProgrammingError):
    """A read at a time that may still be written: `upper <= time`."""

    def __init__(self, time: object, upper: object) -> None:
        """Names the time and the write frontier that it is beyond."""
        super().__init__(
            f"time {time} is beyond upper {upper}",
            detail="What the collection contains at that time is not known yet.",
            hint="Wait until upper has advanced past the time, or read at an earlier one.",
        )
        self.time = time
        self.upper = upper


class UpdateNotBeyondLower(ProgrammingError):
    """An update for a time that is already sealed: not `lower <= update.time`."""

    def __init__(self, update: object, lower: object) -> None:
        """Names the update and the lower frontier of the append."""
        super().__init__(
            f"update {update} is not beyond lower {lower}",
            detail="The collection's content at that time is already complete.",
            hint="Give the update a time that is beyond the collection's upper.",
        )
        self.update = update
        self.lower = lower


class UpdateBeyondUpper(ProgrammingError):
    """An update for a time that its append leaves open: `upper <= update.time`."""

    def __init__(self, update: object, upper: object) -> None:
        """Names the update and the new upper of the append."""
        super().__init__(
            f"update {update} is beyond upper {upper}",
            detail="An append takes only updates of the interval that it completes.",
            hint="Append up to a later upper, or keep the update for a later append.",
        )
        self.update = update
        self.upper = upper


class SinceWentBack(ProgrammingError):
    """An attempt to move a since to a frontier that is not beyond it."""

    def __init__(self, current: object, proposed: object) -> None:
        """Names the present since and the one that was asked for."""
        super().__init__(
            f"since {proposed} is not beyond since {current}",
            hint="What is forgotten stays forgotten: since only advances.",
        )
        self.current = current
        self.proposed = proposed


class UpperWentBack(ProgrammingError):
    """An attempt to move an upper to a frontier that is not beyond it."""

    def __init__(self, current: object, proposed: object) -> None:
        """Names the present upper and the one that was asked for."""
        super().__init__(
            f"upper {proposed} is not beyond upper {current}",
            hint="What is complete stays complete: upper only advances.",
        )
        self.current = current
        self.proposed = proposed


class BindingWentBack(ProgrammingError):
    """A binding that is not beyond the one before it, so that it would rewrite history."""

    def __init__(self, current: object, proposed: object) -> None:
        """Names the latest binding and the one that was asked for."""
        super().__init__(
            f"binding {proposed} is not beyond binding {current}",
            hint="Bind a later tick, to an external frontier that is at or beyond the last one.",
        )
        self.current = current
        self.proposed = proposed


class NegativeMultiplicity(DataError):
    """A piece of data that occurs fewer than zero times where only a multiset has meaning."""

    def __init__(self, data: object, multiplicity: int) -> None:
        """Names the piece of data and its multiplicity."""
        super().__init__(
            f"multiplicity of {data!r} is {multiplicity}",
            detail="More copies were retracted than were ever inserted.",
            hint="Look for a retraction without its insertion in the source of the collection.",
        )
        self.data = data
        self.multiplicity = multiplicity


class IdAlreadyBound(ProgrammingError):
    """An attempt to bind a `GlobalId` a second time, which also dropping it never allows."""

    sqlstate = "42710"

    def __init__(self, id: object) -> None:
        """Names the id."""
        super().__init__(
            f'id "{id}" was bound before',
            hint="Take a fresh id: one id denotes one collection for all time.",
        )
        self.id = id


class IdUnbound(ProgrammingError):
    """A `GlobalId` that was never bound."""

    sqlstate = "42704"

    def __init__(self, id: object) -> None:
        """Names the id."""
        super().__init__(f'id "{id}" is not bound', hint="Bind it to a timeline first.")
        self.id = id
