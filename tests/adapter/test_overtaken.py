"""What another process does first costs a step no other work, holds it up by nothing, and is not called a failure."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Session
from mz_dagster.adapter.replica import Replica
from mz_dagster.compute import Outcome, Stepper
from mz_dagster.compute.step import stepper as stepper_module
from mz_dagster.errors import OperationalError
from tests.adapter.test_replica import TIMELINE, Held, at_work, other_of, rows, settled


def views(connection: Connection, **reads: str) -> int:
    """Makes views, each over a table or another view, and then a tick at which they have work; returns it."""
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("INSERT INTO t VALUES (1)")
    for name, read in reads.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a + 1 AS a FROM {read}")
    connection.execute("INSERT INTO t VALUES (2)")
    found = connection.engine.poll(TIMELINE).tick
    assert found is not None
    return found


def told_of(step: Future[Any], told: list[str], text: str) -> None:
    """Returns once a line with a text was told."""
    deadline = monotonic() + 30
    while not any(text in line for line in told):
        assert monotonic() < deadline, told
        assert not step.done(), told
        sleep(0.02)


@pytest.mark.deep
def test_an_input_that_goes_on_does_not_begin_what_reads_it_anew(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    leading = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (0)")
    sparkless.execute("CREATE MATERIALIZED VIEW light AS SELECT a + 1 AS a FROM t")
    begun: list[str] = []

    def slow(stepper: Stepper, name: str) -> None:
        if name == "heavy":
            if stepper is not leading.stepper:
                raise OperationalError("this replica cannot")
            begun.append(name)
            sleep(2.5)

    with at_work(monkeypatch, slow), ThreadPoolExecutor() as pool, other_of(sparkless) as other:
        made = pool.submit(Session(leading).execute, "CREATE MATERIALIZED VIEW heavy AS SELECT a + 1 AS a FROM light")
        replica, writer, end = Replica(other, "poor"), Session(other), monotonic() + 30
        count = 1
        while not made.done():
            assert monotonic() < end, f"begun {len(begun)} times"
            writer.execute(f"INSERT INTO t VALUES ({count})")
            count += 1
            replica.turn()
            sleep(0.2)
        made.result()
        assert len(begun) <= 2
    assert rows(sparkless, "SELECT a FROM heavy") == Counter([(one + 2,) for one in range(count)])


def test_a_group_that_is_found_overtaken_ends_no_step(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    tick = views(sparkless, light="t", heavy="light", beside="t")
    monkeypatch.setattr(stepper_module, "_LOOK_EVERY_S", 3600.0)  # a second between two looks, made long
    monkeypatch.setattr(leading.stepper, "_seal_after_s", 1.0)
    held = Held(monkeypatch, leading.stepper, "heavy")
    told: list[str] = []
    with ThreadPoolExecutor() as pool, other_of(sparkless) as other:
        step = pool.submit(leading.step, TIMELINE, tick, progress=told.append)
        try:
            assert held.begun.wait(30)
            leading.catalog.close_tables(TIMELINE, tick, [leading.collection_of("t")])
            settled(Replica(other, "big"))
            told_of(step, told, "another was faster")
        finally:
            held.go_on.set()
        assert not step.result(30).failures
    assert rows(sparkless, f"SELECT * FROM light, heavy, beside AS OF {tick}") == Counter(
        [(a, b, c) for a in (2, 3) for b in (3, 4) for c in (2, 3)]
    )


def test_what_another_seals_first_is_held_where_the_rest_stands(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    leading = sparkless.engine
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    for name in ("heavy", "beside"):
        sparkless.execute(f"CREATE MATERIALIZED VIEW {name} WITH (RETAIN HISTORY FOR '1s') AS SELECT a FROM t")
    sleep(1.5)
    sparkless.execute("INSERT INTO t VALUES (2)")
    tick = leading.poll(TIMELINE).tick
    assert tick is not None

    def fail(stepper: Stepper, name: str) -> None:
        if name == "heavy" and stepper is not leading.stepper:
            raise OperationalError("this replica cannot")

    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if "another was faster" in line:
            read.wait(30)  # what is told is so by then

    held, read = Held(monkeypatch, leading.stepper, "heavy"), Event()
    with at_work(monkeypatch, fail), ThreadPoolExecutor() as pool, other_of(sparkless) as other:
        step = pool.submit(leading.step, TIMELINE, tick, progress=tell)
        try:
            assert held.begun.wait(30)
            settled(Replica(other, "big"))
            beside = leading.collection_of("beside")
            told_of(step, told, "another was faster")
            assert leading.catalog.collection(beside).upper.only == tick + 1
            other.forget(TIMELINE)  # more than the second that is kept
            common = leading.catalog.collection(leading.collection_of("heavy")).upper.only - 1
            found = rows(Session(other), f"SELECT heavy.a, beside.a FROM heavy, beside AS OF {common}")
            assert found == Counter([(1, 1)])
        finally:
            read.set()
            held.go_on.set()
        assert not step.result(30).failures


def faster(connection: Connection, other: Engine) -> Any:
    """Returns what has a replica compute all before the leader fails at `m`."""

    def fail(stepper: Stepper, name: str) -> None:
        if name == "m" and stepper is connection.engine.stepper:
            settled(Replica(other, "big"))
            raise OperationalError("the leader has no disk")

    return fail


def test_what_another_has_done_has_not_failed(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    tick = views(sparkless, m="t", behind="m")
    leading.catalog.close_tables(TIMELINE, tick, [leading.collection_of("t")])
    with other_of(sparkless) as other, at_work(monkeypatch, faster(sparkless, other)):
        report = leading.step(TIMELINE, tick)
    assert not report.failures
    row = leading.catalog.collection(leading.collection_of("m"))
    assert (row.failure, row.upper.only) == (None, tick + 1)
    assert rows(sparkless, f"SELECT a FROM behind AS OF {tick}") == Counter([(3,), (4,)])


def test_a_view_that_another_has_hydrated_is_created(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    with other_of(sparkless) as other, at_work(monkeypatch, faster(sparkless, other)):
        sparkless.execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t")
    assert rows(sparkless, "SELECT a FROM m") == Counter([(2,)])


def test_what_fails_is_computed_once_in_a_step(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    tick = views(sparkless, light="t", bad="t", heavy="light")
    leading.catalog.close_tables(TIMELINE, tick, [leading.collection_of("t")])
    tried: list[str] = []

    def fail(stepper: Stepper, name: str) -> None:
        if name == "bad":
            tried.append(name)
            raise OperationalError("nobody has a disk")
        if name == "heavy" and stepper is leading.stepper:
            sleep(1.5)

    held = Held(monkeypatch, leading.stepper, "light")
    with at_work(monkeypatch, fail), ThreadPoolExecutor() as pool, other_of(sparkless) as other:
        step = pool.submit(leading.step, TIMELINE, tick)
        assert held.begun.wait(30)
        settled(Replica(other, "big"))
        held.go_on.set()
        report = step.result(30)
    assert [one.name for one in report.failures] == ["bad"]
    assert len(tried) <= 2, "once by each"
    outcomes = {one.name: one.outcome for one in report.collections}
    assert outcomes["heavy"] is Outcome.CURRENT


def test_what_is_overtaken_keeps_no_turn(sparkless: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    leading = sparkless.engine
    tick = views(sparkless, heavy1="t", heavy2="t", light="t")
    leading.catalog.close_tables(TIMELINE, tick, [leading.collection_of("t")])

    def slow(stepper: Stepper, name: str) -> None:
        if stepper is leading.stepper and name.startswith("heavy"):
            sleep(6)
        if stepper is not leading.stepper and name == "light":
            raise OperationalError("this replica cannot")

    with at_work(monkeypatch, slow), ThreadPoolExecutor() as pool, other_of(sparkless) as other:
        start = monotonic()
        step = pool.submit(leading.step, TIMELINE, tick)
        sleep(0.3)
        settled(Replica(other, "big"))
        assert not step.result(30).failures
        assert monotonic() - start < 5, "it waits for nobody who computes for nothing"


@pytest.mark.parametrize("where", ["_list", "_leased", "_written", "_seal"])
def test_a_drop_under_a_replica_only_ends_its_step(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    tick = views(sparkless, m="t", k="m")
    sparkless.engine.catalog.close_tables(TIMELINE, tick, [sparkless.engine.collection_of("t")])
    dropped: list[str] = []
    with other_of(sparkless) as other:
        replica = Replica(other, "big")
        real = getattr(Stepper, where)

        def dropping(stepper: Stepper, *rest: Any, **options: Any) -> Any:
            if stepper is replica._stepper and not dropped:
                for name in ("k", "m"):
                    dropped.append(name)
                    sparkless.execute(f"DROP MATERIALIZED VIEW {name}")
                list(sparkless.engine.compact())
            return real(stepper, *rest, **options)

        monkeypatch.setattr(Stepper, where, dropping)
        settled(replica)
        assert dropped == ["k", "m"]
        settled(replica)
