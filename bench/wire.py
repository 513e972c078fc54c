"""Clients of `mz-dagster serve`, by pgbench and psycopg.

Goals, on two idle cores, of which the clients take their part:

- point lookups by a primary key: a median under 3 ms, and 2,000 a second of 32 clients;
- `INSERT`s: 500 a second of 8 clients;
- from an acknowledged `INSERT` until a subscriber has the row: a median under 50 ms, 99 of 100 under 200 ms;
- 500 idle connections: under 300 MB in all.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.harness import Bench, say, table
from mz_dagster.clock import SYSTEM_CLOCK

ROWS = 100_000
_SECONDS = 5.0
_IDLE = 500
_PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"


@dataclass(frozen=True)
class Served:
    """Is a project that a process of its own serves.

    Attributes:
        folder: Its folder.
        process: The process.
        port: Where it listens.
        user: Who may connect.
    """

    folder: Path
    process: subprocess.Popen[str]
    port: int
    user: str

    @property
    def environment(self) -> dict[str, str]:
        """What clients are run with."""
        return os.environ | {"PGPASSFILE": str(self.folder / ".mz" / "pgpass")}

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Opens a connection."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            dbname="bench",
            passfile=str(self.folder / ".mz" / "pgpass"),
            autocommit=True,
        )

    @property
    def memory_mb(self) -> float:
        """How much memory the process has resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def run(bench: Bench) -> None:
    """Measures all of it, prints and records."""
    rows, seconds = max(1000, int(ROWS * min(1.0, bench.scale))), max(3.0, _SECONDS * min(1.0, bench.scale))
    with _served(bench) as served:
        with served.connect() as connection:
            connection.execute("CREATE TABLE points (id integer PRIMARY KEY, name text NOT NULL)")
            connection.execute("CREATE TABLE events (id integer, name text)")
            filled = f"INSERT INTO points SELECT n, 'row ' || n FROM generate_series(1, {rows}) AS g (n)"
            connection.execute(filled.encode())
        found: dict[str, Any] = {"rows": rows}
        shown: list[tuple[object, ...]] = []
        script = f"\\set id random(1, {rows})\nSELECT name FROM points WHERE id = :id;\n"
        for clients in (1, 8, 32):
            say(f"  lookups by {clients} clients")
            latencies = _by_pgbench(served, script, clients, seconds)
            found[f"lookups_{clients}"] = _told(latencies, seconds)
            shown.append((f"lookups, {clients} clients", *_row(latencies, seconds)))
        say("  INSERTs by 8 clients")
        script = "\\set id random(1, 1000000)\nINSERT INTO events VALUES (:id, 'event');\n"
        latencies = _by_pgbench(served, script, 8, seconds)
        found["inserts_8"] = _told(latencies, seconds)
        shown.append(("INSERTs, 8 clients", *_row(latencies, seconds)))
        say("  SUBSCRIBE")
        latencies = _subscribed(served, int(40 * seconds))
        found["subscribe"] = _told(latencies, None)
        shown.append(("SUBSCRIBE, after the INSERT", *_row(latencies, None)))
        say(f"  {_IDLE} idle connections")
        before, after = _idle(served)
        found["idle"] = {"connections": _IDLE, "memory_mb": round(after - before, 1), "process_mb": round(after, 1)}
    bench.results.record("wire", found)
    print(table(("", "a second", "median ms", "p99 ms"), shown))
    print(f"{_IDLE} idle connections take {after - before:.0f} MB; the process has {after:.0f} MB then")


@contextmanager
def _served(bench: Bench) -> Iterator[Served]:
    """Serves a new project, in a process of its own."""
    folder = bench.new_path("served")
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "mz_dagster.cli", "--project", str(folder), "serve"]  # not the one around it
    command += ["--port", "0", "--connections", str(_IDLE + 50)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().split("port ")[1].split(";")[0])
        user = process.stdout.readline().split("-U ")[1].split()[0]
        yield Served(folder, process, port, user)
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _by_pgbench(served: Served, script: str, clients: int, seconds: float) -> list[float]:
    """Returns how long each transaction of pgbench's took, in milliseconds, after a second that is not counted."""
    (served.folder / "script").write_text(script, encoding="ascii")
    command = [_PGBENCH, "-h", "127.0.0.1", "-p", str(served.port), "-U", served.user, "-n", "-M", "prepared"]
    command += ["-c", str(clients), "-j", "1", "-f", "script", "--max-tries=0"]
    for duration, log in ((1, []), (round(seconds), ["-l", "--log-prefix", "took"])):
        done = subprocess.run(
            [*command, "-T", str(duration), *log, "bench"],
            cwd=served.folder,
            env=served.environment,
            capture_output=True,
            text=True,
            timeout=60 + duration,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "failed transactions: 0 " in done.stdout, done.stdout
    found = []
    for path in served.folder.glob("took.*"):
        found += [int(line.split()[2]) / 1000 for line in path.read_text(encoding="ascii").splitlines()]
        path.unlink()
    return found


def _subscribed(served: Served, count: int) -> list[float]:
    """Returns how long after its acknowledgement each of some rows reached a subscriber, in milliseconds."""
    acknowledged: dict[int, float] = {}
    arrived: dict[int, float] = {}
    begun = threading.Event()

    def listen(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        with suppress(psycopg.errors.QueryCanceled), connection.cursor() as cursor:
            for _, is_progress, _, number, _ in cursor.stream("SUBSCRIBE events WITH (PROGRESS)"):
                begun.set()
                if not is_progress and number < 0:
                    arrived[-number] = SYSTEM_CLOCK.monotonic_ms()

    with closing(served.connect()) as writing, closing(served.connect()) as listening:
        thread = threading.Thread(target=listen, args=[listening])
        thread.start()
        assert begun.wait(60), "it begins with what there is"
        for number in range(1, count + 1):
            writing.execute("INSERT INTO events VALUES (%s, 'told')", (-number,))
            acknowledged[number] = SYSTEM_CLOCK.monotonic_ms()
            SYSTEM_CLOCK.sleep(0.02)
        is_whole = _all_there(arrived, count)
        listening.cancel_safe()
        thread.join(30)
    assert is_whole, f"{count - len(arrived)} rows did not come"
    # What came before its INSERT was acknowledged took no time.
    return [max(0.0, arrived[number] - acknowledged[number]) for number in acknowledged]


def _all_there(arrived: dict[int, float], count: int) -> bool:
    until = SYSTEM_CLOCK.monotonic_ms() + 30_000
    while len(arrived) < count and SYSTEM_CLOCK.monotonic_ms() < until:
        SYSTEM_CLOCK.sleep(0.05)
    return len(arrived) == count


def _idle(served: Served) -> tuple[float, float]:
    """Returns how much memory the process has before and after many have connected, and asked something once."""
    before = served.memory_mb
    with ExitStack() as stack:
        for _ in range(_IDLE):
            stack.enter_context(served.connect()).execute("SELECT 1")
        return before, served.memory_mb


def _told(latencies: Sequence[float], seconds: float | None) -> dict[str, object]:
    """Returns what is recorded of latencies in milliseconds."""
    found: dict[str, object] = {"median_ms": round(statistics.median(latencies), 2), "p99_ms": _p99(latencies)}
    return found if seconds is None else {"a_second": round(len(latencies) / seconds), **found}


def _row(latencies: Sequence[float], seconds: float | None) -> tuple[object, ...]:
    rate = "" if seconds is None else round(len(latencies) / seconds)
    return rate, statistics.median(latencies), _p99(latencies)


def _p99(latencies: Sequence[float]) -> float:
    return round(sorted(latencies)[int(len(latencies) * 0.99)], 2)
