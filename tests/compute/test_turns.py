"""Who computes in this process takes turns; who waits for another engine gives its turn up."""

from __future__ import annotations

import threading

import pytest

from mz_dagster.compute.step.turns import Turn, new_turns


def test_two_have_a_turn_and_the_third_waits_until_one_ends() -> None:
    turns, has_begun, entered = new_turns(), threading.Event(), threading.Event()

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
    assert [turns.acquire(blocking=False) for _ in range(3)] == [True, True, False]


def test_a_turn_ends_with_an_error() -> None:
    turns = new_turns()
    with pytest.raises(ValueError, match="failed"), Turn(turns):
        raise ValueError("failed")
    assert [turns.acquire(blocking=False) for _ in range(3)] == [True, True, False]
