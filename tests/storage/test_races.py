"""Several processes at one shard, some of them paused or killed: every read is right, or an error."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path

import pytest

from mz_dagster.catalog import BatchState, CollectionRow
from mz_dagster.clock import SYSTEM_CLOCK, ManualClock
from mz_dagster.storage import BatchIncomplete, Inlining, LeaseLost, LocalShards, read_at, sweep
from tests.command_line import Started
from tests.storage.life import ALL_INLINED, NOTHING_INLINED, Life, live_as_told, rows_at
from tests.storage.test_crashes import EPOCH, LATER, check_nothing_is_left


def run(
    folder: Path, command: str, now: int | str = EPOCH, inlining: Inlining = NOTHING_INLINED, url: str | None = None
) -> Started:
    arguments = [str(folder), command, str(now), str(inlining.rows), *([] if url is None else [url])]
    return Started(live_as_told, *arguments)


def wait_until_stopped(process: Started) -> None:
    while process.state() != "T":
        assert process.poll() is None, f"the process ended: {process.stderr.read()}"
        SYSTEM_CLOCK.sleep(0.01)


@pytest.mark.parametrize("command", [pytest.param("stop before write", marks=pytest.mark.deep), "stop before seal"])
def test_a_paused_writer_whose_batch_was_swept_cannot_seal(tmp_path: Path, command: str) -> None:
    with (life := Life(tmp_path, ManualClock(LATER))).catalog:
        for _ in range(3):
            life.tick()
        process = run(tmp_path, command, EPOCH)
        wait_until_stopped(process)
        paused = [batch.id for batch in life.catalog.batches(life.id, BatchState.WRITING)]
        assert len(paused) == 1
        swept = sweep(life.catalog, life.shards)
        assert swept.batches == {life.id: (paused[0],)}
        process.send_signal(signal.SIGCONT)
        out, errors = process.communicate(120)
        assert out.split() == ["BatchNotWriting", "True"], errors  # and its retry, under a fresh id, was sealed
        assert life.row.upper.only == 5
        life.check()
        # If it committed rows under its dead batch, they are in the table, and no list names them.
        stored = life.shards.stored_batches(life.row)
        assert (paused[0] in stored) == (command == "stop before write")
        check_nothing_is_left(life)


def test_a_paused_writer_that_nobody_swept_seals(tmp_path: Path) -> None:
    with (life := Life(tmp_path, ManualClock(LATER))).catalog:
        process = run(tmp_path, "stop before seal", EPOCH)
        wait_until_stopped(process)
        process.send_signal(signal.SIGCONT)
        out, errors = process.communicate(120)
        assert out.split() == ["Sealed"], errors
        life.check()


@pytest.mark.parametrize(
    ("url", "inlining", "swept"),
    [
        ("sqlite", NOTHING_INLINED, True),
        *(
            pytest.param(*one, marks=pytest.mark.deep)
            for one in (
                ("sqlite", NOTHING_INLINED, False),
                ("postgresql", ALL_INLINED, True),
                ("postgresql", ALL_INLINED, False),
            )
        ),
    ],
    indirect=["url"],
)
def test_a_paused_reader_gets_the_right_rows_or_an_error(
    tmp_path: Path, url: str, inlining: Inlining, swept: bool
) -> None:
    with (life := Life(tmp_path, ManualClock(EPOCH), inlining, url)).catalog:
        for _ in range(6):
            life.tick()
        process = run(tmp_path, "stop before read", EPOCH, inlining, url)
        wait_until_stopped(process)
        assert life.compact() is not None
        sweep(life.catalog, life.shards)  # the reader's lease protects its list
        if swept:
            with (later := Life(tmp_path, ManualClock(LATER), inlining, url)).catalog:
                assert later.id in sweep(later.catalog, later.shards).batches
        process.send_signal(signal.SIGCONT)
        out, errors = process.communicate(120)
        assert out.split() == ["BatchIncomplete" if swept else "9"], errors  # 6 insertions, 3 retractions
        life.check()


class Interfering(LocalShards):
    """Is shards in which compaction and a sweep long after strike in the middle of a read."""

    def __init__(self, folder: Path, before: bool, times: int) -> None:
        super().__init__(folder)
        self.folder, self.before, self.times = folder, before, times

    def strike(self) -> None:
        if self.times:
            self.times -= 1
            with (other := Life(self.folder, ManualClock(LATER * 2 - self.times * 100_000))).catalog:
                other.tick()
                other.compact()
                sweep(other.catalog, other.shards)

    def read(self, collection: CollectionRow, *args: object, **kwargs: object) -> object:
        if self.before:
            self.strike()
        frame: object = super().read(collection, *args, **kwargs)  # type: ignore[arg-type]
        if not self.before:
            self.strike()
        return frame


def test_a_read_that_was_swept_away_is_repeated_with_a_fresh_list(tmp_path: Path) -> None:
    with (life := Life(tmp_path, ManualClock(EPOCH))).catalog:
        for _ in range(6):
            life.tick()
        life.shards = Interfering(tmp_path, before=True, times=1)
        assert life.read(6) == rows_at(6)
        assert life.shards.times == 0
        # What is gone although it is listed is damage, and no fresh list helps.
        life.shards.delete(life.row, [batch.id for batch in life.catalog.batches(life.id, BatchState.LIVE)])
        with pytest.raises(BatchIncomplete):
            life.read(6)


def test_a_frame_that_was_swept_while_used_never_passes_for_whole(tmp_path: Path) -> None:
    with (life := Life(tmp_path, ManualClock(EPOCH))).catalog:
        for _ in range(6):
            life.tick()
        shards = Interfering(tmp_path, before=False, times=1)
        with pytest.raises(LeaseLost), read_at(life.catalog, shards, life.row, 6, holder="slow"):
            pass
        life.check()


def check_all_run(running: dict[int, Started]) -> None:
    for process in running.values():
        if process.poll() is not None:
            raise AssertionError(f"{process.arguments!r} ended: {process.communicate(30)!r}")


def _take(process: Started, said: list[str]) -> None:
    for line in process.stdout:
        said.append(line)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("pauses", [2, pytest.param(6, marks=pytest.mark.deep)])
def test_processes_at_one_shard_agree(tmp_path: Path, pauses: int) -> None:
    """Appenders race for each interval, while others compact, sweep and read; some are paused past their leases."""
    rng = random.Random(7)
    commands = ["append", "append", "compact", "sweep", "read"]
    with (life := Life(tmp_path, SYSTEM_CLOCK)).catalog:
        running = {n: run(tmp_path, command, "real") for n, command in enumerate(commands)}
        said: list[str] = []
        reader = threading.Thread(target=lambda: _take(running[4], said), daemon=True)
        try:
            for process in running.values():
                assert process.stdout.readline() == "ready\n", process.stderr.read()
            reader.start()
            for _ in range(pauses):
                victim = rng.choice([n for n, command in enumerate(commands) if command != "read"])
                running[victim].send_signal(signal.SIGSTOP)
                SYSTEM_CLOCK.sleep(0.7)  # more than twice the leases
                if rng.random() < 0.5:
                    running[victim].kill()
                    running[victim].communicate(30)
                    running[victim] = run(tmp_path, commands[victim], "real")
                else:
                    running[victim].send_signal(signal.SIGCONT)
                check_all_run(running)
            running[4].send_signal(signal.SIGSTOP)
            SYSTEM_CLOCK.sleep(0.7)
            running[4].send_signal(signal.SIGCONT)
            SYSTEM_CLOCK.sleep(0.5)
            deadline = SYSTEM_CLOCK.monotonic_ms() + 120_000  # a busy machine loses leases this short again and again
            while (life.row.upper.only <= 5 or "read 3\n" not in said) and SYSTEM_CLOCK.monotonic_ms() < deadline:
                SYSTEM_CLOCK.sleep(0.1)
            check_all_run(running)
        finally:
            outputs = {}
            for n, process in running.items():
                process.kill()
                if process is running[4] and reader.is_alive():
                    reader.join(30)
                outputs[n] = process.communicate(30)
        assert "read 3\n" in said
        assert not any("Traceback" in errors for _, errors in outputs.values()), outputs
        assert life.row.upper.only > 5, "they get on"
        life.check()
    with (late := Life(tmp_path, ManualClock(SYSTEM_CLOCK.now_ms() + LATER))).catalog:
        check_nothing_is_left(late)
