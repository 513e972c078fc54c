"""One small tick through Dagster; goal: under 6 s as shipped, under 1.5 s in continuous mode.

The project is the one that `mz-dagster init` makes. As shipped it is driven by `mz-dagster dev`: daemon, code server, a
process for each run; in continuous mode by `mz-dagster run --continuous`. A file with one record arrives; measured is
how long it takes until the view can be read with it, and how long the run takes from request to end. The first ticks
are not counted: Spark's JVM compiles, and so gets quicker, for about eight of them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.harness import Bench, Timing, round_name, say, table, timed
from mz_dagster.adapter import Engine, Project
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.orchestration.drive import instance_of
from mz_dagster.storage.spark import ensure_server
from mz_dagster.storage.spark.launch import free_port

_MODES = {"shipped": ("dev", "--port", str(free_port())), "continuous": ("run", "--continuous")}
#: How long the first tick may take, with the start of everything, and any other, in seconds.
_START_SECONDS, _TICK_SECONDS = 300.0, 120.0
_WARMUPS = 8
_LOOK_SECONDS = 0.02
#: Between ticks, so that the next file arrives at any moment of the sensor's period.
_PAUSE_SECONDS = 5.0


class TooLate(Exception):
    """Reports that a tick did not come."""


def run(bench: Bench) -> None:
    """Measures both modes, prints and records."""
    rows = []
    for mode, arguments in _MODES.items():
        arrivals, runs = _measure(bench, mode, arguments)
        bench.results.record(f"dagster.{mode}", {"arrival_to_readable": arrivals} | ({"run": runs} if runs else {}))
        rows.append((mode, arrivals, runs or ""))
    print(table(("one tick", "arrival to readable", "run"), rows))


def _measure(bench: Bench, mode: str, arguments: Sequence[str]) -> tuple[Timing, Timing | None]:
    root = bench.new_path("project")
    subprocess.run([_program("mz-dagster"), "init", str(root)], check=True, timeout=60, stdout=subprocess.DEVNULL)
    server = ensure_server(bench.spark)
    settings = root / "mz.toml"
    settings.write_text(settings.read_text().replace('# remote = "sc://host:15002"', f'remote = "{server.url}"'))
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = server.token
    project = Project.load(root)
    seconds = []
    with Engine(project) as engine:
        engine.apply()
        with driven(root, arguments):
            awaited(lambda: _upper(engine) > 1, _START_SECONDS, root)
            dice = random.Random(1)
            for number in range(_WARMUPS + bench.repetitions):
                SYSTEM_CLOCK.sleep(_PAUSE_SECONDS * dice.random())
                name = f"bench-{number}.jsonl"
                _drop(root / "landing" / "orders" / name, number)
                waited, _ = timed(awaited, partial(_is_readable, engine, name), _TICK_SECONDS, root)
                say(f"  {mode}, {round_name(number, _WARMUPS)}: {waited:.2f} s from arrival to readable")
                seconds.append(waited)
    if mode != "shipped":
        return Timing(tuple(seconds[_WARMUPS:])), None
    with instance_of(project) as instance:
        records = sorted(instance.get_run_records(), key=lambda one: one.create_timestamp)
    runs = [one.end_time - one.create_timestamp.timestamp() for one in records if one.end_time is not None]
    return Timing(tuple(seconds[_WARMUPS:])), Timing(tuple(runs[1 + _WARMUPS :]))


def _drop(target: Path, number: int) -> None:
    draft = target.with_name(f"{target.name}.tmp")
    value = '{"customer": "nobody", "amount": 1}'
    draft.write_text(f'{{"key": {{"id": {1000 + number}}}, "value": {value}}}\n', encoding="utf-8")
    draft.rename(target)


def _upper(engine: Engine) -> int:
    return engine.catalog.collection(engine.collection_of("sales_by_city")).upper.only


def _is_readable(engine: Engine, name: str) -> bool:
    bindings = engine.catalog.bindings(engine.collection_of("orders"))
    ticks = [one.tick for one in bindings if any(file.path == name for file in one.files)]
    return bool(ticks) and _upper(engine) > ticks[0]


def awaited(done: Callable[[], bool], seconds: float, root: Path, look_s: float = _LOOK_SECONDS) -> None:
    """Waits until something is done, looking every `look_s` seconds.

    Raises:
        TooLate: It is not within so many seconds.
    """
    until = SYSTEM_CLOCK.monotonic_ms() + 1000 * seconds
    while not done():
        if SYSTEM_CLOCK.monotonic_ms() > until:
            raise TooLate(f"not in {seconds:.0f} s: {(root / 'log').read_text()[-4000:]}")
        SYSTEM_CLOCK.sleep(look_s)


@contextmanager
def driven(root: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Drives a project by `mz-dagster` with some arguments, in a process group that is ended with the block."""
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(
            [_program("mz-dagster"), *arguments],
            cwd=root,
            env={name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))
