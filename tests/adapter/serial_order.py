"""Explains in words why a history of SQL statements is not as if each had happened alone, in the order of their times.

Statements write two tables, of rows `(n, tag, k)` with a tag that is never used twice. So what a statement has written
tells at which time it took effect, by the tables' own updates; and what the tables held just before says what it must
have written. The promises:

    serial    each statement's effect is what it comes to over the tables as they were just before its time
    strict    a statement that was answered before another began has the lesser time
    whole     the tables' updates are those of the statements, each once; one that failed has none
    read-only one that wrote nothing, and a SELECT, is right at some time between those before it and those after it
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """

    sql: str
    table: str | None
    answer: tuple[tuple[object, ...], ...] | None
    begun: int
    ended: int
    effect: Callable[[State], Effect]
    result: Callable[[State], frozenset[tuple[object, ...]]]

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
    times = sorted(written)
    states = _states(times, written, list(updates))
    by_tags: defaultdict[tuple[str, frozenset[str]], list[tuple[int, Effect]]] = defaultdict(list)
    for n, time in enumerate(times):
        if len(written[time]) > 1:
            yield f"two tables were written at {time}"
        for table, rows in written[time].items():
            effect = frozenset((row, diff) for row, diff in rows.items() if diff)
            by_tags[table, frozenset(row[1] for row, _ in effect)].append((n, effect))
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
    for n, time in enumerate(times):
        if n not in positions:
            yield f"out of nothing: at {time} somebody wrote {written[time]}"
    yield from _out_of_order(positions, times)
    for one in rest:
        before = [n for n, other in positions.items() if other.ended < one.begun]
        after = [n for n, other in positions.items() if other.begun > one.ended]
        first, last = max(before, default=-1) + 1, min(after, default=len(times))
        if not any(one.result(states[n]) == frozenset(one.answer or ()) for n in range(first, last + 1)):
            yield f"not serial: {one}, which it does at no time between {first} and {last} of {len(times)}"


def _states(
    times: Sequence[int], written: Mapping[int, Mapping[str, Mapping[Row, int]]], tables: Sequence[str]
) -> list[State]:
    """Returns what the tables hold before each time, and after the last."""
    now: dict[str, dict[str, Row]] = {table: {} for table in tables}
    states: list[State] = [{table: dict(rows) for table, rows in now.items()}]
    for time in times:
        for table, rows in written[time].items():
            for row, diff in sorted(rows.items(), key=lambda one: one[1]):
                if diff > 0:
                    now[table][row[1]] = row
                elif diff < 0:
                    now[table].pop(row[1], None)
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
