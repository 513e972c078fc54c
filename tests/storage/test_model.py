"""Random sequences of every command, against the formalism as the specification, with crashes at every fail point."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from mz_dagster.catalog import BatchState, WriterId
from mz_dagster.clock import ManualClock
from mz_dagster.fail_point import FAIL_POINTS
from mz_dagster.storage import compare_and_append, update_table
from tests.storage.crashing import crashing
from tests.storage.life import COLUMNS, Life, at, updates_at
from tests.storage.model_machine import StorageMachine
from tests.storage.test_crashes import EPOCH

#: What a deep run has to have met; rarer ones it meets, too.
OUTCOMES = {
    *("Sealed", "UpperMismatch", "BatchNotWriting", "LeadershipLost", "Leadership", "Led", "Minted", "TickMoved"),
    *("UpdateNotBeyondLower", "UpdateBeyondUpper", "UpperBeyondInput", "SinceBehindInput", "NameTaken", "StillNeeded"),
    *("ReadBeforeSince", "ReadBeyondUpper", "UnknownObject", "WrongSeal", "Right", "WrongRight", "FrontierNotHeld"),
    *("CapabilityExpired", "UnknownCapability", "CollectionVersion"),
}

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


def test_storage_does_what_its_specification_says() -> None:
    few = settings(max_examples=6, stateful_step_count=20, deadline=None, suppress_health_check=HEALTH)
    run_state_machine_as_test(StorageMachine, settings=few)


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_storage_does_what_its_specification_says_wherever_it_crashes() -> None:
    StorageMachine.crashes.clear()
    StorageMachine.outcomes.clear()
    many = settings(max_examples=500, stateful_step_count=40, deadline=None, suppress_health_check=HEALTH)
    run_state_machine_as_test(StorageMachine, settings=many)
    assert set(StorageMachine.crashes) == set(FAIL_POINTS)
    assert set(StorageMachine.outcomes) >= OUTCOMES
