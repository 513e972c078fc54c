"""Explains in words what of a history cannot have happened in a project that keeps its promises.

The promises, for each collection:

- what a read finds at a time is the sum of the updates up to it of the appends that were accepted: nothing is lost or
  doubled, nothing is of an append that was refused, or there before its append began, and every time it is the same;
- intervals of accepted appends do not overlap; since and upper only advance, and reads keep to them;
- history that a live capability holds stays, until its collection is dropped; a capability that is over, or a leader
  that was replaced, appends nothing.

Only what is certain is used: an event happened before another if it was answered before the other was asked. So a
history that is told to be wrong is wrong; one that nothing is said about need not be right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from tests.storage.history import Event, Frontier


def violations(events: Sequence[Event]) -> list[str]:
    """Returns a sentence for each promise that was broken."""
    by_collection: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_collection[event.collection].append(event)
    found = [sentence for check in _OF_COLLECTIONS for each in by_collection.values() for sentence in check(each)]
    return [*found, *_leaders(events), *_expired(events)]


def _accepted(events: Iterable[Event]) -> list[Event]:
    """Returns the appends that were accepted: those of which a read shows rows are among them, whatever they heard."""
    shown = {row for event in events if event.answer == "contents" for row in event.contents}
    return [
        event
        for event in events
        if event.operation == "append"
        and (event.answer == "done" or (event.answer is None and any(row in shown for row in _own(event))))
    ]


def _own(append: Event) -> list[str]:
    return [row for row, _, diff in append.updates if diff > 0]


def _reads(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event.operation == "read" and event.answer == "contents"]


def _contents(events: Sequence[Event]) -> Iterator[str]:
    """Checks every read against the accepted appends."""
    accepted = sorted(_accepted(events), key=lambda event: event.invoked)
    writers = {row: event for event in events if event.operation == "append" for row in _own(event)}
    updates = sorted((time, row, diff) for event in accepted for row, time, diff in event.updates)
    expected: Counter[str] = Counter()
    position = 0
    for read in sorted(_reads(events), key=lambda event: event.time):
        while position < len(updates) and updates[position][0] <= read.time:
            _, row, diff = updates[position]
            expected[row] += diff
            position += 1
        for row in sorted({*expected, *read.contents}):
            wanted, found = expected[row], read.contents.get(row, 0)
            writer = writers.get(row)
            if writer is not None and found and writer.invoked > (read.returned or 0):
                yield f"exposed early: {read} shows {row!r} before {writer} began"
            elif found == wanted:
                continue
            elif writer is None:
                yield f"out of nothing: {read} shows {row!r}, which nobody appended"
            elif found < wanted:
                yield f"lost update: {read} shows {found} of {row!r} instead of {wanted}; it is of {writer}"
            elif wanted > 0:
                yield f"doubled update: {read} shows {found} of {row!r} instead of {wanted}; it is of {writer}"
            elif writer.answer == "refused":
                yield f"refused and yet there: {read} shows {row!r}, although {writer} was refused"
            elif all(time > read.time for one, time, diff in writer.updates if one == row and diff > 0):
                yield f"exposed early: {read} shows {row!r}, which {writer} put at a later time"
            else:
                yield f"lost update: {read} still shows {row!r} of {writer}, which was retracted by then"


def _changed_past(events: Sequence[Event]) -> Iterator[str]:
    first: dict[int, Event] = {}
    for read in _reads(events):
        before = first.setdefault(read.time, read)
        if before.contents != read.contents:
            yield f"changed past: {read} differs from {before}: {_difference(before.contents, read.contents)}"


def _difference(before: dict[str, int], after: dict[str, int]) -> str:
    changed = sorted(row for row in {*before, *after} if before.get(row, 0) != after.get(row, 0))
    return ", ".join(f"{row!r} {before.get(row, 0)} then {after.get(row, 0)}" for row in changed[:5])


def _intervals(events: Sequence[Event]) -> Iterator[str]:
    """Checks the appends by compare-and-set; those by capabilities may share intervals."""
    ordered = sorted((one for one in _accepted(events) if one.token is None), key=lambda event: event.lower or 0)
    for before, after in pairwise(ordered):
        if before.upper is None or (after.lower or 0) < before.upper:
            yield f"two appends of one interval: {after} and {before} were both accepted"


def _frontiers(events: Sequence[Event]) -> Iterator[str]:
    """Checks that since and upper advance, and that reads and appends keep to them."""
    answered = sorted((one for one in events if one.returned is not None), key=lambda one: one.returned or 0)
    least_since: tuple[float, Event | None] = (-1, None)
    least_upper: tuple[float, Event | None] = (-1, None)
    position = 0
    for event in sorted(events, key=lambda one: one.invoked):
        while position < len(answered) and answered[position].precedes(event):
            told = answered[position]
            least_since = max(least_since, (_since_told(told), told), key=lambda one: one[0])
            least_upper = max(least_upper, (_upper_told(told), told), key=lambda one: one[0])
            position += 1
        since, upper = least_since[0], least_upper[0]
        if event.answer == "contents" and event.time < since:
            yield f"read below since: {event} was answered, although {least_since[1]} told the since {since}"
        if event.answer in ("told", "before since") and _number(event.since) < since:
            yield f"since went back: {event} told {event.since}, although {least_since[1]} told {since} before"
        if event.answer in ("told", "beyond upper") and _number(event.upper) < upper:
            yield f"upper went back: {event} told {event.upper}, although {least_upper[1]} told {upper} before"
        if _is_compared(event) and _number(event.lower) < upper:
            yield f"upper went back: {event} was accepted, although {least_upper[1]} told {upper} before"


def _is_compared(event: Event) -> bool:
    """Returns whether this is an accepted append that compared and set the upper itself."""
    return event.operation == "append" and event.answer == "done" and event.token is None


def _since_told(event: Event) -> float:
    return _number(event.since) if event.answer in ("told", "before since") else -1


def _upper_told(event: Event) -> float:
    if _is_compared(event):
        return _number(event.upper)
    if event.answer == "contents":
        return event.time + 1
    return _number(event.upper) if event.answer in ("told", "beyond upper") else -1


def _number(frontier: Frontier) -> float:
    return float("inf") if frontier is None else frontier


def _exposed_early(events: Sequence[Event]) -> Iterator[str]:
    """Checks that nobody could read a time before an append that completes it had begun."""
    begun = [one for one in events if one.operation == "append" and one.answer in ("done", None)]
    begun.sort(key=lambda one: one.invoked)
    reached, position = float("-inf"), 0
    start = min((_number(one.lower) for one in begun), default=0)
    for read in sorted(_reads(events), key=lambda one: one.returned or 0):
        while position < len(begun) and begun[position].invoked <= (read.returned or 0):
            reached = max(reached, _number(begun[position].upper))
            position += 1
        if start <= read.time and reached <= read.time:
            yield f"exposed early: {read} was answered before any append beyond that time had begun"


def _held(events: Sequence[Event]) -> Iterator[str]:
    """Checks that what a live capability holds can be read, and that since is not beyond it, until all is dropped."""
    dropped = min((event.invoked for event in events if event.operation == "drop"), default=float("inf"))
    tokens: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.token is not None and event.operation in ("hold", "downgrade", "renew", "release"):
            tokens[event.token].append(event)
    for uses in tokens.values():
        uses.sort(key=lambda one: one.invoked)
        for begin, end in _lives(uses):
            for event in events:
                if not (begin.precedes(event) and event.returned is not None and event.returned < min(end, dropped)):
                    continue
                frontier = begin.frontier
                told = event.answer in ("told", "before since")
                if frontier is not None and told and _number(event.since) > frontier:
                    yield (
                        f"held history was forgotten: {event} told the since {event.since}, "
                        f"although {begin} held it at {frontier}"
                    )


def _lives(uses: Sequence[Event]) -> Iterator[tuple[Event, float]]:
    """Yields from which answer until when a capability certainly held the frontier of that answer."""
    begin: Event | None = None
    until = float("inf")
    for use in uses:
        if use.operation in ("downgrade", "release"):
            if begin is not None:
                yield begin, min(until, use.invoked)
            begin = use if use.operation == "downgrade" and use.answer == "done" and begin is not None else None
        elif use.answer == "done" and use.operation == "hold":
            begin, until = use, _until(use)
        elif use.answer == "done":
            until = _until(use)  # which may be sooner: whoever renews says for how long from now
    if begin is not None:
        yield begin, until


def _until(event: Event) -> float:
    return float("inf") if event.until is None else event.until


def _expired(events: Sequence[Event]) -> Iterator[str]:
    """Checks that no append was accepted of a capability that was over when it was asked for."""
    over: dict[str, list[Event]] = defaultdict(list)
    ends: dict[str, float] = {}
    for event in events:
        if event.token is None:
            continue
        if event.operation in ("hold", "renew") and event.answer == "done":
            ends[event.token] = max(ends.get(event.token, 0), _until(event))
        elif event.operation == "renew" and event.answer is None:
            ends[event.token] = float("inf")  # it may have been renewed until whenever
        elif event.operation == "release" and event.answer == "done":
            over[event.token].append(event)
    for event in events:
        if event.operation == "append" and event.answer == "done" and event.token is not None:
            if event.invoked >= ends.get(event.token, float("inf")):
                yield f"expired capability: {event} was accepted, although {event.token} ended at {ends[event.token]}"
            for release in over[event.token]:
                if release.precedes(event):
                    yield f"expired capability: {event} was accepted, although {release} came before"


def _leaders(events: Sequence[Event]) -> Iterator[str]:
    """Checks that an exclusive lease has one holder: who lost it seals nothing more."""
    won = sorted(
        (one for one in events if one.operation == "lead" and one.answer == "done"), key=lambda one: one.invoked
    )
    holders: dict[int, Event] = {}
    for lead in won:
        if lead.epoch is not None and (other := holders.setdefault(lead.epoch, lead)) is not lead:
            yield f"two holders: {lead} and {other} both won the epoch {lead.epoch}"
    for event in events:
        if event.operation != "append" or event.answer != "done" or event.epoch is None:
            continue
        for lead in won:
            if (lead.epoch or 0) > event.epoch and lead.precedes(event):
                yield f"two holders: {event} under the epoch {event.epoch} was accepted after {lead} won {lead.epoch}"
                break


_OF_COLLECTIONS: tuple[Callable[[Sequence[Event]], Iterator[str]], ...] = (
    _contents,
    _changed_past,
    _intervals,
    _frontiers,
    _exposed_early,
    _held,
)
