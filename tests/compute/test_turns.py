"""Who computes in this process takes turns; who waits for another engine gives its turn up."""

from __future__ import annotations

import threading
import time

import pytest

from mz_dagster.compute.step.turns import Turn, Turns


def test_two_have_a_turn_and_the_third_waits_until_one_ends() -> None:
    turns, has_begun, entered = Turns(), threading.Event(), threading.Event()

    def third() -> None:
        has_begun.set()
        with Turn(turns):
            entered.set()

    with Turn(turns), Turn(turns) as second:
        waiting = threading.Thread(target=third, daemon=True)
        waiting.start()
        assert has_begun.wait(10)
        assert not entered.wait(0.1)
        second.give_up()
        assert entered.wait(10)
        waiting.join(10)
    # Given up and ended, it has come back once.
    assert [turns.free.acquire(blocking=False) for _ in range(3)] == [True, True, False]


def test_a_turn_ends_with_an_error() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="failed"), Turn(turns):
        raise ValueError("failed")
    assert [turns.free.acquire(blocking=False) for _ in range(3)] == [True, True, False]


def test_who_is_alone_waits_for_all_and_is_not_passed_by() -> None:
    turns, entered = Turns(), list[str]()
    first = Turn(turns)

    def enter(name: str, *, is_alone: bool) -> threading.Thread:
        def wait() -> None:
            with Turn(turns, is_alone=is_alone):
                entered.append(name)
                assert turns.free.acquire(blocking=False) is not is_alone
                if not is_alone:
                    turns.free.release()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread

    with first:
        alone = enter("alone", is_alone=True)
        deadline = time.monotonic() + 10
        while turns.free.acquire(blocking=False):  # until it has taken what is free
            turns.free.release()
            assert time.monotonic() < deadline
        other = enter("other", is_alone=False)
        other.join(0.05)
        assert entered == []
    for thread in (alone, other):
        thread.join(10)
    assert entered == ["alone", "other"]
    assert [turns.free.acquire(blocking=False) for _ in range(3)] == [True, True, False]
