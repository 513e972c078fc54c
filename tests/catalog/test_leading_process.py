"""Whether a process that has a lease is dead: what is certain, who may lead a timeline then, and what is swept."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from itertools import pairwise

import pytest

from mz_dagster.catalog import (
    BatchStats,
    Catalog,
    Leadership,
    LeadershipLost,
    LedByAnother,
    NewObject,
    Replaced,
    Seal,
    Sealed,
)
from mz_dagster.clock import SYSTEM_CLOCK, ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.liveness import is_dead, state_and_start, this_process
from tests.command_line import Started
from tests.command_line import script as run_script

STATS = BatchStats(3, 1, 1, 100)
LEADS = """
import sys
from mz_dagster.catalog import Catalog
from mz_dagster.clock import ManualClock
from mz_dagster.liveness import this_process
with Catalog.open(sys.argv[1], clock=ManualClock(1_000_000)) as catalog:
    print(this_process(), flush=True)
    lead = catalog.lead("t", "a child", 60_000)
    print("leads", flush=True)
    sys.stdin.readline()
    print(catalog.seal([], leadership=lead), flush=True)
"""
READS_AND_WRITES = """
import sys
from mz_dagster.catalog import Catalog
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.liveness import this_process
with Catalog.open(sys.argv[1], clock=ManualClock(1_000_000)) as catalog:
    print(this_process(), flush=True)
    id = GlobalId(sys.argv[2])
    catalog.lease([id], "a child", 60_000)
    writer = catalog.register_writer("a child", 60_000)
    catalog.reserve_batch(id, writer, *(Antichain.of(EPOCH_MS, time) for time in (2, 3)))
    print("reads and writes", flush=True)
    sys.stdin.readline()
"""


class Child:
    """Is a process that leads the timeline and seals once it is told to, or one that runs another script."""

    def __init__(self, *arguments: str, script: str = LEADS) -> None:
        self.process = Started(run_script, script, *arguments)
        self.told = self.line()
        assert self.line() in ("leads", "reads and writes")

    def line(self) -> str:
        return self.process.stdout.readline().strip()

    def wait_for(self, states: str) -> None:
        """Waits until the system tells that the process is in one of these states, which is soon."""
        while self.process.state() not in states:
            SYSTEM_CLOCK.sleep(0.01)


@pytest.fixture
def child(catalog: Catalog, url: str) -> Iterator[Child]:
    started = Child(url)
    yield started
    started.process.kill()
    started.process.communicate(30)


#: On PostgreSQL only in the deep run.
ON_SQLITE = pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True
)


@ON_SQLITE
def test_a_process_is_dead_only_if_that_is_certain(child: Child) -> None:
    assert not is_dead(child.told)
    assert not is_dead(this_process())
    child.process.send_signal(signal.SIGSTOP)
    child.wait_for("T")
    assert not is_dead(child.told), "it is paused, and may go on"
    child.process.kill()
    child.process.wait(30)
    assert is_dead(child.told)


def test_a_zombie_is_dead() -> None:
    mine = this_process()
    assert mine is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        before = state_and_start(process.pid)
        assert before is not None
        told = " ".join((*mine.split(" ")[:3], str(process.pid), before[1]))
        assert not is_dead(told)
        process.kill()
        while (now := state_and_start(process.pid)) is not None and now[0] != "Z":
            SYSTEM_CLOCK.sleep(0.01)
        assert now == ("Z", before[1])
        assert is_dead(told), "it does nothing any more"


@ON_SQLITE
def test_of_processes_elsewhere_nobody_knows(child: Child) -> None:
    host, boot, namespace, pid, started = child.told.split(" ")
    child.process.kill()
    child.process.wait(30)
    for elsewhere in ((f"x{host}", boot, namespace), (host, boot[::-1], namespace), (host, boot, "pid:[1]")):
        assert not is_dead(" ".join((*elsewhere, pid, started)))
    for unknown in (None, "", "x", f"{host} {boot} {namespace} x {started}"):
        assert not is_dead(unknown)
    mine = this_process()
    assert mine is not None
    assert is_dead(f"{mine}1"), "another process has its number now"


def test_the_lease_of_a_killed_leader_is_taken_over_at_once(catalog: Catalog, child: Child) -> None:
    assert isinstance(catalog.lead("t", "me", 60_000), LedByAnother)
    assert catalog.leader("t", 60_000) is not None
    child.process.kill()
    child.process.wait(30)
    assert catalog.leader("t", 60_000) is None
    lost = catalog.lost_leader("t")
    assert lost is not None
    assert lost.is_dead
    assert catalog.lead("t", "me", 60_000) == Leadership("t", 2, "me")


@ON_SQLITE
def test_a_paused_leader_keeps_its_lease_until_it_runs_out_and_seals_nothing_later(
    catalog: Catalog, child: Child, clock: ManualClock
) -> None:
    child.process.send_signal(signal.SIGSTOP)
    child.wait_for("T")
    assert isinstance(catalog.lead("t", "me", 60_000), LedByAnother)
    clock.advance(60_000)
    assert isinstance(catalog.lead("t", "me", 60_000), Leadership)
    child.process.send_signal(signal.SIGCONT)
    print(file=child.process.stdin, flush=True)
    assert child.line() == str(LeadershipLost("t", 1))


@ON_SQLITE
def test_what_a_killed_process_reads_and_writes_is_swept_at_once(catalog: Catalog, url: str) -> None:
    at = [Antichain.of(EPOCH_MS, time) for time in range(3)]
    id = catalog.create_object(NewObject("x", "table", "", "t", ())).id
    mine, batches = catalog.register_writer("me", 60_000), []
    for lower, upper in pairwise(at):
        batches.append(catalog.reserve_batch(id, mine, lower, upper))
        assert isinstance(catalog.seal([Seal(id, lower, upper, batches[-1], STATS)]), Sealed)
    child = Child(url, id, script=READS_AND_WRITES)
    try:
        merged = catalog.reserve_batch(id, mine, at[0], at[2])
        assert isinstance(catalog.replace_batches(id, batches, merged, STATS), Replaced)
        child.process.send_signal(signal.SIGSTOP)
        child.wait_for("T")
        assert not catalog.sweepable(), "it is paused, and may go on"
        child.process.kill()
        child.process.wait(30)
        left = [one.id for one in catalog.sweepable()]
        assert len(left) == 3, "two are on its list, one is its own"
        assert set(batches) < set(left)
        assert list(catalog.declare_dead(left)) == left
        ours = catalog.reserve_batch(id, mine, at[2], Antichain.of(EPOCH_MS, 3))
        assert ours not in [one.id for one in catalog.sweepable()], "this process lives"
    finally:
        child.process.kill()
        child.process.communicate(30)


def test_a_lease_says_when_it_ends_in_seconds() -> None:
    led = LedByAnother("t", "somebody", 1_012_000)
    assert led.ending(1_000_000) == "its lease ends in 12 s unless it is renewed"
    assert led.ending(1_011_001) == "its lease ends in 1 s unless it is renewed"
    assert led.ending(1_020_000) == "its lease ends in 0 s unless it is renewed"
