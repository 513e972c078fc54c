"""Random sequences of every command, against the formalism as the specification, with crashes at every fail point."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from mz_dagster.catalog import BatchState, WriterId
from mz_dagster.clock import ManualClock
from mz_dagster.fail_point import FAIL_POINTS
from mz_dagster.formalism import Update
from mz_dagster.storage import Inlining, compare_and_append, update_table
from tests.postgres_server import Postgres
from tests.storage import specification
from tests.storage.crashing import crashing
from tests.storage.life import COLUMNS, Life, at, updates_at
from tests.storage.model_machine import SOME_INLINED, StorageMachine
from tests.storage.test_crashes import EPOCH

#: What a deep run has to have met; rarer ones it meets, too.
OUTCOMES = {
    *("Sealed", "CollectionUpperMismatch", "LeadershipLost", "Leadership", "LedByAnother", "TickMinted", "TickMoved"),
    *("UpdateNotBeyondLower", "UpdateBeyondUpper", "UpperBeyondInput", "SinceBehindInput", "NameTaken", "StillNeeded"),
    *("ReadBeforeSince", "ReadBeyondUpper", "UnknownObject", "WrongSeal", "Right", "WrongRight", "FrontierNotHeld"),
    *("CapabilityExpired", "UnknownCapability", "CollectionVersion"),
}

UPDATES: specification.Updates = [Update((1, None), 0, 1)]

HEALTH = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.mark.parametrize(("name", "upper"), [("append.written", 1), ("seal.in_transaction", 1), ("seal.sealed", 2)])
def test_a_crash_leaves_what_was_committed_and_nothing_more(tmp_path: Path, name: str, upper: int) -> None:
    with (life := Life(tmp_path, ManualClock(EPOCH))).catalog:
        with crashing((name, 1)) as machine:
            frame = update_table(COLUMNS, updates_at(1))
            compare_and_append(life.catalog, life.shards, life.row, at(1), at(2), frame, holder="crashing")
        assert machine.crashed
        assert life.row.upper.only == upper
        (batch,) = life.catalog.batches(life.id)
        assert batch.state is (BatchState.WRITING if upper == 1 else BatchState.LIVE)
        life.catalog.renew_writer(WriterId(1), 1)  # which a process that is dead could not retire


#: Of each protocol one; that processes are killed at the others `test_crashes.py` shows.
SAMPLE = ("append.written", "seal.in_transaction", "compact.replaced", "sweep.dead", "tick.minted", "catalog.committed")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)])
def server(request: pytest.FixtureRequest) -> Postgres | None:
    """Where catalogs are; None if they are SQLite."""
    found: Postgres | None = None if request.param == "sqlite" else request.getfixturevalue("postgres_server")
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in SAMPLE else pytest.mark.deep) for one in FAIL_POINTS]
)
def test_a_life_with_a_crash_at_each_fail_point_is_as_specified(name: str, server: Postgres | None) -> None:
    StorageMachine.crashes.clear()
    _, _, where = name.rpartition(".")
    inlining = {"inlined": Inlining(9, 65_536), "reserved": Inlining(0, 0), "written": Inlining(0, 0)}
    machine, spot = StorageMachine(inlining.get(where, SOME_INLINED), server), (name, 1)
    try:
        machine.create_collection("a", (), 0, None, None)
        (id,) = machine.spec.tvcs
        for spots in ((None, spot), (spot, None)):  # the second time there is more to merge and to sweep
            for one in spots:
                (upper,) = machine.spec.tvcs[id].upper
                updates = [Update((upper, None), upper, 1)]
                machine.compare_and_append(
                    specification.Append(id, specification.at(upper), specification.at(upper + 1), updates), one
                )
                machine.merge_one(id, 1, one)
                machine.sweep_all(thorough=True, spot=one)
                machine.mint_after(1, stale=False, spot=one)
    finally:
        machine.teardown()
    assert machine.crashes[name] >= 2


def test_what_was_swept_under_a_slow_writer_is_sealed_by_nobody() -> None:
    StorageMachine.outcomes.clear()
    machine = StorageMachine()
    try:
        machine.create_collection("a", (), 0, None, None)
        (id,) = machine.spec.tvcs
        machine.write_slowly(specification.Append(id, specification.at(0), specification.at(1), []), 1_000)
        machine.write_slowly(specification.Append(id, specification.at(0), specification.at(1), UPDATES), 1_000)
        machine.clock.advance(1_001)
        machine.spec.now_ms += 1_001
        machine.sweep_all(thorough=True, spot=None)
        for batch in list(machine.spec.writes):
            machine.seal_written(batch, None)
    finally:
        machine.teardown()
    assert machine.outcomes["BatchNotWriting"] == 2


def test_a_slow_reader_sees_nothing_of_a_writer_that_is_ahead_of_the_others() -> None:
    machine = StorageMachine()
    try:
        machine.begin(0)
        (id,) = machine.spec.shared
        machine.hold(lambda: machine.storage().acquire_capabilities(id), lambda spec: spec.acquire(id, 60_000))
        ahead = machine.spec.last_right
        (upper,) = machine.spec.tvcs[id].upper
        machine.append_with(ahead, specification.at(upper + 2), [Update((upper, None), upper, 1)], None)
        reader = machine.read_slowly([id], 60_000)
        machine.merge_one(id, 1, None)
        machine.end_read(reader)
    finally:
        machine.teardown()


def machine_on(server: Postgres | None) -> type[StorageMachine]:
    class Machine(StorageMachine):
        def __init__(self) -> None:
            super().__init__(server=server)

    return Machine


@pytest.mark.parametrize(("server", "examples"), [("sqlite", 3), ("postgresql", 1)], indirect=["server"])
def test_storage_does_what_its_specification_says(server: Postgres | None, examples: int) -> None:
    few = settings(max_examples=examples, stateful_step_count=20, deadline=None, suppress_health_check=HEALTH)
    run_state_machine_as_test(machine_on(server), settings=few)


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_storage_does_what_its_specification_says_wherever_it_crashes(server: Postgres | None) -> None:
    StorageMachine.crashes.clear()
    StorageMachine.outcomes.clear()
    many = settings(max_examples=500, stateful_step_count=40, deadline=None, suppress_health_check=HEALTH)
    run_state_machine_as_test(machine_on(server), settings=many)
    assert OUTCOMES - set(StorageMachine.outcomes) == set()
    # At each for certain in the lives above; at nearly all of them here, in the midst of whatever was drawn.
    assert len(StorageMachine.crashes) >= len(FAIL_POINTS) - 3
