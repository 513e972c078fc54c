"""Explains in words why a history of SQL statements is not as if each had happened alone, in the order of their times.

Statements write two tables, of rows `(n, tag, k)` with a tag that is never used twice. So what a statement has written
tells at which time it took effect, by the tables' own updates; and what the tables held just before says what it must
have written. Statements that read nothing may be sealed together, at one time (`group_commit`): they count as one after
the other. The promises:

    serial    each statement's effect is what it comes to over the tables as they were just before its time
    strict    a statement that was answered before another began has the lesser time
    whole     the tables' updates are those of the statements, each once; one that failed has none
    read-only one that wrote nothing, and a SELECT, is right at some time between those before it and those after it
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

Row = tuple[int, str, int]
State = Mapping[str, Mapping[str, Row]]
"""By table, its rows by their tags."""

Effect = frozenset[tuple[Row, int]]


@dataclass(frozen=True)
class Ran:
    """Is a statement that was run.

    Attributes:
        sql: Its text, for people.
        table: What it writes; None if it reads only.
        answer: The rows that it returned; None if it failed.
        begun: When it was asked, by a clock that all share.
        ended: When it was answered.
        effect: What it does to its table, given what the tables hold.
        result: What it returns, given what the tables hold.
        reads: Whether its effect depends on what tables hold.
    """

    sql: str
    table: str | None
    answer: tuple[tuple[object, ...], ...] | None
    begun: int
    ended: int
    effect: Callable[[State], Effect]
    result: Callable[[State], frozenset[tuple[object, ...]]]
    reads: bool = True

    def __str__(self) -> str:
        return f"{self.sql!r} returned {self.answer}"


def violations(ran: Sequence[Ran], updates: Mapping[str, Sequence[tuple[Row, int, int]]]) -> Iterator[str]:
    """Yields a sentence for each promise that was broken.

    Args:
        ran: The statements.
        updates: By table, its updates: row, time, diff.
    """
    written: defaultdict[int, dict[str, dict[Row, int]]] = defaultdict(dict)
    for table, each in updates.items():
        for row, time, diff in each:
            there = written[time].setdefault(table, {})
            there[row] = there.get(row, 0) + diff
    blind = {str(tag) for one in ran if not one.reads for (tag,) in one.answer or ()}
    writes: list[_Write] = []
    for time in sorted(written):
        at_once = [one for table, rows in written[time].items() for one in _split(time, table, rows, blind)]
        if len(at_once) > 1 and not all(one.is_blind for one in at_once):
            yield f"two statements wrote at {time}, and one of them reads: {written[time]}"
        writes += at_once
    times = [one.time for one in writes]
    states = _states(writes, list(updates))
    by_tags: defaultdict[tuple[str, frozenset[str]], list[tuple[int, Effect]]] = defaultdict(list)
    for n, write in enumerate(writes):
        by_tags[write.table, frozenset(row[1] for row, _ in write.effect)].append((n, write.effect))
    positions: dict[int, Ran] = {}
    rest: list[Ran] = []
    for one in ran:
        if one.answer is None:
            continue
        if not one.answer or one.table is None:
            rest.append(one)
            continue
        found = by_tags[one.table, frozenset(str(tag) for (tag,) in one.answer)]
        right = [n for n, effect in found if one.effect(states[n]) == effect]
        if right:
            positions[right[0]] = one
        elif not found:
            yield f"lost: {one}, and nothing was written like it"
        else:
            for n, effect in found:
                yield f"not serial: {one} at {times[n]} wrote {sorted(effect)}, not {sorted(one.effect(states[n]))}"
    for n, write in enumerate(writes):
        if n not in positions:
            yield f"out of nothing: at {write.time} somebody wrote {sorted(write.effect)} to {write.table}"
    yield from _out_of_order(positions, times)
    for one in rest:
        before = [n for n, other in positions.items() if other.ended < one.begun]
        after = [n for n, other in positions.items() if other.begun > one.ended]
        first, last = max(before, default=-1) + 1, min(after, default=len(times))
        if not any(one.result(states[n]) == frozenset(one.answer or ()) for n in range(first, last + 1)):
            yield f"not serial: {one}, which it does at no time between {first} and {last} of {len(times)}"


@dataclass(frozen=True)
class _Write:
    """What one statement wrote, as far as a table's updates tell."""

    time: int
    table: str
    effect: Effect
    is_blind: bool


def _split(time: int, table: str, rows: Mapping[Row, int], blind: Set[str]) -> Iterator[_Write]:
    """Yields what was written to a table at a time, by statements: those that read nothing wrote one row each."""
    effect = frozenset((row, diff) for row, diff in rows.items() if diff)
    alone = {one for one in effect if one[0][1] in blind and one[0][0] == -1 and one[1] == 1}
    for one in sorted(alone):
        yield _Write(time, table, frozenset({one}), is_blind=True)
    if rest := effect - alone:
        yield _Write(time, table, rest, is_blind=False)


def _states(writes: Sequence[_Write], tables: Sequence[str]) -> list[State]:
    """Returns what the tables hold before each write, and after the last."""
    now: dict[str, dict[str, Row]] = {table: {} for table in tables}
    states: list[State] = [{table: dict(rows) for table, rows in now.items()}]
    for write in writes:
        for row, diff in sorted(write.effect, key=lambda one: one[1]):
            if diff > 0:
                now[write.table][row[1]] = row
            else:
                now[write.table].pop(row[1], None)
        states.append({table: dict(rows) for table, rows in now.items()})
    return states


def _out_of_order(positions: Mapping[int, Ran], times: Sequence[int]) -> Iterator[str]:
    ended = sorted((one.ended, n) for n, one in positions.items())
    ends = [end for end, _ in ended]
    latest = -1
    highest = [latest := max(latest, n) for _, n in ended]
    for n, one in positions.items():
        count = bisect_left(ends, one.begun)
        if count and highest[count - 1] > n:
            yield f"not strict: {one} took effect at {times[n]}, after one at {times[highest[count - 1]]} was answered"
