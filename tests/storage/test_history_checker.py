"""The checker of histories finds each kind of violation that is planted, says it in words, and finds nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.clock import ManualClock
from tests.storage.history import Event, Recorder, history
from tests.storage.history_checker import violations


def append(invoked: int, lower: int, upper: int, *rows: str, answer: str | None = "done", **facts: Any) -> Event:
    updates = [(row.lstrip("-"), lower, -1 if row.startswith("-") else 1) for row in rows]
    facts = {"returned": invoked + 5, **facts}
    return Event(
        "p1", "append", invoked, collection="s1", answer=answer, lower=lower, upper=upper, updates=updates, **facts
    )


def read(invoked: int, time: int, *rows: str, **facts: Any) -> Event:
    contents = {row: rows.count(row) for row in rows}
    return Event("p2", "read", invoked, invoked + 5, "s1", answer="contents", time=time, contents=contents, **facts)


def told(invoked: int, since: int | None, upper: int | None) -> Event:
    return Event("p3", "frontiers", invoked, invoked + 5, "s1", answer="told", since=since, upper=upper)


def capability(operation: str, invoked: int, frontier: int | None = 0, until: int | None = None) -> Event:
    return Event("p4", operation, invoked, invoked + 5, "s1", "done", token="r1", frontier=frontier, until=until)


def lead(process: str, invoked: int, epoch: int) -> Event:
    return Event(process, "lead", invoked, invoked + 5, answer="done", epoch=epoch)


#: A right history: two appends, one that lost its race, one that was killed and took effect, one that did not.
RIGHT = [
    told(0, 0, 1),
    append(10, 1, 2, "a", "b"),
    append(10, 1, 2, "x", answer="refused"),
    read(20, 1, "a", "b"),
    append(30, 2, 4, "c", "-a", answer=None, returned=None),
    append(31, 2, 4, "z", answer=None),
    read(40, 2, "b", "c"),
    read(41, 1, "a", "b"),
    read(42, 3, "b", "c"),
    told(50, 2, 4),
    Event("p2", "read", 60, 65, "s1", "before since", time=1, since=2, upper=4),
    Event("p2", "read", 60, 65, "s1", "beyond upper", time=4, since=2, upper=4),
    append(70, 4, 5, "d", epoch=1),
    told(80, 2, 5),
]

PLANTED = {
    "an update is missing": (
        [read(90, 4, "b", "c")],
        "lost update: the read of s1 at time 4 by p2 at 90 shows 0 of 'd'",
    ),
    "a retraction is missing": (
        [read(90, 3, "a", "b", "c")],
        "lost update: .* still shows 'a' of the append of .1, 2. to s1",
    ),
    "an update came twice": ([read(90, 4, "b", "c", "d", "d")], "doubled update: .* shows 2 of 'd' instead of 1"),
    "a refused append is there": ([read(90, 2, "b", "c", "x")], "refused and yet there: .* shows 'x'"),
    "a row is of nobody": ([read(90, 2, "b", "c", "y")], "out of nothing: .* shows 'y'"),
    "a row came before its append": ([read(45, 4, "b", "c", "d")], "exposed early: .* shows 'd' before"),
    "a row came before its time": ([read(90, 3, "b", "c", "d")], "exposed early: .* put at a later time"),
    "a time was read before it was complete": ([read(45, 4, "b", "c")], "was answered before any append beyond"),
    "the past changed": ([read(90, 2, "b")], "changed past: the read .* differs from the read .*: 'c' 1 then 0"),
    "one interval was appended twice": ([append(70, 4, 6, "e")], "two appends of one interval"),
    "since went back": ([told(90, 1, 5)], "since went back: .* told 1, although .* told 2 before"),
    "upper went back": ([told(90, 2, 4)], "upper went back: .* told 4, although .* told 5 before"),
    "upper went back from the end": ([told(90, 2, None), told(100, 2, 9)], "upper went back: .* told inf"),
    "an append took a lower that was over": ([append(90, 3, 9)], "upper went back: the append"),
    "a time before since was read": ([read(90, 1, "a", "b")], "read below since: .* told the since 2"),
    "what a capability holds was forgotten": (
        [capability("hold", 0, 1)],
        "held history was forgotten: .* held it at 1",
    ),
    "what a capability is on went by itself": (
        [capability("hold", 60, 2), told(90, None, None)],
        "held history was forgotten: .* told the since None",
    ),
    "what a renewed one holds was forgotten": (
        [capability("hold", 0, 1, until=20), capability("renew", 10, until=100)],
        "held history was forgotten",
    ),
    "an expired capability appended": (
        [capability("hold", 1, until=60), append(90, 5, 6, token="r1")],
        "expired capability: .* although r1 ended at 60",
    ),
    "a dropped capability appended": (
        [capability("hold", 1, 9), capability("release", 80), append(90, 5, 6, token="r1")],
        "expired capability: .* although the release of r1 by p4 at 80 came before",
    ),
    "two leaders sealed": (
        [lead("p1", 1, 1), lead("p2", 50, 2)],
        "two holders: the append .* under the epoch 1 was accepted after the lead of s? ?by p2 at 50 won 2",
    ),
    "two leaders of one epoch": ([lead("p1", 1, 1), lead("p2", 90, 1)], "two holders: .* both won the epoch 1"),
}


def test_nothing_is_said_of_a_right_history() -> None:
    assert violations(RIGHT) == []


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_violation_is_found(planted: str) -> None:
    events, words = PLANTED[planted]
    found = violations([*RIGHT, *events])
    assert any(re.search(words, sentence) for sentence in found), found


def test_a_capability_holds_no_longer_than_its_life() -> None:
    over = [
        [capability("hold", 0, 1, until=40)],
        [capability("hold", 0, 1), capability("downgrade", 30, 2)],
        [capability("hold", 0, 1), capability("release", 45)],
        [capability("hold", 78, 1)],
        [capability("hold", 60, 2), Event("p3", "drop", 85, 88, "s1", "done"), told(90, None, None)],
    ]
    for events in over:
        assert violations([*RIGHT, *events]) == []


def test_a_history_is_what_was_recorded(tmp_path: Path) -> None:
    clock = ManualClock(7)
    recorder = Recorder(tmp_path / "history", "p1", clock)
    with recorder.event("append", "s1", lower=1, upper=2, updates=[("a", 1, 1)]) as event:
        clock.advance(3)
        event.answer = "done"
    with pytest.raises(ValueError, match="died"), recorder.event("read", "s1", time=1) as event:
        raise ValueError("died")
    first, second = history(tmp_path / "history")
    assert first == append(7, 1, 2, "a", returned=10)
    assert (second.operation, second.answer, second.returned) == ("read", None, 10)
