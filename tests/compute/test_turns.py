"""Who computes in this process takes turns; who waits for another engine gives its turn up."""

from __future__ import annotations

import threading
import time

import pytest

from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.step import turns as turns_module
from mz_dagster.compute.step.turns import Turn, Turns


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has turns be those of a process that was told how much memory it may take."""
    monkeypatch.setattr(turns_module, "memory_limit", lambda: 1 << 30)
    monkeypatch.setattr(turns_module, "return_freed", lambda: None)


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


@pytest.mark.usefixtures("limited")
def test_who_waited_for_spark_goes_on_in_a_turn_and_many_do_so_one_at_a_time() -> None:
    turns, lock, within, most, done = Turns(), threading.Lock(), 0, 0, list[int]()
    looked_up = threading.Lock()  # as what several look up alike: taken within a turn, and held while Spark is asked

    def compute() -> None:
        nonlocal within, most
        with lock:
            within += 1
            most = max(most, within)
        time.sleep(0.001)
        with lock:
            within -= 1

    def collection(number: int) -> None:
        turn = Turn(turns)
        spark = SparkUse(lambda: time.sleep(0.001), turn)  # type: ignore[arg-type, return-value]
        with turn:
            for _ in range(5):
                compute()
                with looked_up:
                    spark.open("it is much")
                spark.resume()
                compute()
                spark.resume()  # it has its turn
        done.append(number)

    threads = [threading.Thread(target=collection, args=(number,), daemon=True) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list(range(12))
    assert most == 1
    assert [turns.free.acquire(blocking=False) for _ in range(3)] == [True, True, False]


@pytest.mark.usefixtures("limited")
def test_who_is_left_waits_for_no_turn() -> None:
    turns = Turns()
    with Turn(turns) as left:
        left.leave()
        with Turn(turns):
            left.resume()
    assert [turns.free.acquire(blocking=False) for _ in range(3)] == [True, True, False]


def test_where_nobody_limits_memory_who_waited_for_spark_goes_on_at_once() -> None:
    turns = Turns()
    with Turn(turns) as first, Turn(turns):
        first.give_up()
        with Turn(turns):
            first.resume()
