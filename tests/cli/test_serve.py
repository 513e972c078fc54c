"""`mz-dagster serve`: it says how to connect, takes many clients at little cost each, and ends when it is told to."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from mz_dagster.cli import main
from tests.command_line import Started

#: How many clients are idle, and how much memory each may hold, in bytes: a session, and what a query left.
CLIENTS, MOST_EACH = 40, 400_000


@contextmanager
def served(folder: Path) -> Iterator[tuple[Started, str]]:
    """Yields the command at work on a project, and libpq's string that it says to connect by."""
    with Started(main, "serve", "--port", "0", folder=folder) as process:
        first, second = process.stdout.readline(), process.stdout.readline()
        assert re.fullmatch(r"listening at 127\.0\.0\.1, port \d+; stop it with Ctrl-C\n", first), first
        words = shlex.split(second)
        passfile, psql = words[0].removeprefix("PGPASSFILE="), words[2:]
        where = dict(zip(psql[:-1:2], psql[1::2], strict=True))
        yield (
            process,
            f"host={where['-h']} port={where['-p']} user={where['-U']} dbname={psql[-1]} "
            f"passfile='{folder / passfile}' connect_timeout=30",
        )


def _resident(process: Started) -> int:
    """Returns how many bytes of memory a process has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_clients_that_are_idle_hold_little_memory(tmp_path: Path) -> None:
    with ExitStack() as opened:
        process, dsn = opened.enter_context(served(tmp_path))

        def connect() -> None:
            connection = opened.enter_context(psycopg.connect(dsn, autocommit=True))
            assert connection.execute("SELECT b FROM t WHERE a = 7").fetchall() == [("x",)]

        with psycopg.connect(dsn, autocommit=True) as first:
            first.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
            first.execute("INSERT INTO t SELECT n, 'x' FROM generate_series(1, 1000) AS g (n)")
        for _ in range(5):
            connect()
        before = _resident(process)
        for _ in range(CLIENTS):
            connect()
        assert (_resident(process) - before) / CLIENTS < MOST_EACH


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with served(tmp_path) as (process, dsn), psycopg.connect(dsn):
        process.send_signal(signal.SIGINT)
        process.wait(20)
