"""A PostgreSQL 15 of one's own, the referee of SQL semantics.

A cluster in a temporary folder, C collation, UTC, reachable by a Unix socket only. PostgreSQL refuses to run as root,
so as root it runs as `postgres` or `nobody`. Debian: `apt-get install postgresql-15 postgresql-client-15`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.string import TextLoader

INSTALL = "apt-get install postgresql-15 postgresql-client-15"
_numbers = count()
_DEBIAN = Path("/usr/lib/postgresql/15/bin")
_TRY = """
CREATE FUNCTION attempt(expression text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE result text;
BEGIN
  EXECUTE 'SELECT (' || expression || ')::text' INTO result;
  RETURN coalesce('=' || result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  RETURN '!' || SQLSTATE || ' ' || SQLERRM;
END $f$;
"""


class PostgresMissing(Exception):
    """Says that the referee is not installed: the test fails, it is not skipped."""


@dataclass(frozen=True)
class Postgres:
    """A running server.

    Attributes:
        socket_dir: The folder of its socket.
        psql: The client's path.
        user: The superuser's name.
        database: The database that scripts run in.
    """

    socket_dir: Path
    psql: str
    user: str
    database: str = "template1"

    def run(self, script: str) -> str:
        """Returns what psql prints for a script, unaligned and without headers; an error raises."""
        done = subprocess.run(
            [
                self.psql,
                "-XqAt",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                str(self.socket_dir),
                "-U",
                self.user,
                "-d",
                self.database,
            ],
            input=script,
            env=os.environ | {"PGTZ": "UTC", "PGCLIENTENCODING": "UTF8"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"psql: {done.stderr[:2000]}")
        return done.stdout

    def new_database(self, template: str = "template1") -> Postgres:
        """Makes a database, empty or as another that nobody has open, and returns the same server with it."""
        made = replace(self, database=f"test{next(_numbers)}")
        self.run(f"CREATE DATABASE {made.database} TEMPLATE {template}")
        return made

    def drop(self) -> None:
        """Drops the database, which nobody uses any more."""
        replace(self, database="template1").run(f"DROP DATABASE {self.database} WITH (FORCE)")

    def start(self) -> None:
        """Starts the server, with its files below the folder of its socket; waits until it answers."""
        options = f"-k {self.socket_dir} -c listen_addresses= -c fsync=off -c jit=off -c timezone=UTC"
        log = str(self.socket_dir / "log")
        self._pg_ctl("-l", log, "-o", f"{options} -c max_connections=20", "-w", "-t", "60", "start")

    def stop(self) -> None:
        """Stops the server as a crash would."""
        self._pg_ctl("-m", "immediate", "-w", "stop")

    def _pg_ctl(self, *arguments: str) -> None:
        # Without pipes, which a server that it starts would hold open.
        command = [*_unprivileged(), _program("pg_ctl"), "-D", str(self.socket_dir / "data"), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120, cwd=self.socket_dir)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Opens a connection on which each statement is a transaction; intervals and jsonb come as PostgreSQL's text.

        psycopg would make a timedelta of an interval, which has no months, and Python's numbers of jsonb's.
        """
        connection = psycopg.connect(host=str(self.socket_dir), user=self.user, dbname=self.database, autocommit=True)
        for name in ("interval", "jsonb"):
            connection.adapters.register_loader(name, TextLoader)
        return connection

    def attempt(self, expressions: Sequence[str]) -> list[str | None]:
        """Returns for each expression `=` and its value as text, `!` and SQLSTATE and message, or None for NULL."""
        found: list[str | None] = []
        for start in range(0, len(expressions), 500):
            chunk = expressions[start : start + 500]
            rows = ",\n".join(f"({i}, $quoted${one}$quoted$)" for i, one in enumerate(chunk))
            # Hexadecimal, so that neither newlines nor separators in a value matter.
            answer = self.run(
                f"SELECT encode(convert_to(attempt(e), 'UTF8'), 'hex') FROM (VALUES\n{rows}\n) AS x (i, e) ORDER BY i;"
            )
            lines = answer.splitlines()
            assert len(lines) == len(chunk), answer[:1000]
            texts = [bytes.fromhex(line).decode() for line in lines]
            found += [None if text == "NULL" else text for text in texts]
        return found


def _program(name: str) -> str:
    path = _DEBIAN / name if (_DEBIAN / name).exists() else shutil.which(name)
    if path is None:
        raise PostgresMissing(f"{name} of PostgreSQL 15 is not installed; on Debian: {INSTALL}")
    return str(path)


def _unprivileged() -> list[str]:
    """Returns the command prefix by which a program runs as somebody else than root, and makes sure there is one."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return ["runuser", "-u", name, "--"]
    raise PostgresMissing("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Runs a server for the duration of the block; yields an empty database of it."""
    initdb, psql = _program("initdb"), _program("psql")
    as_user = _unprivileged()
    # A socket's path may have 107 characters: pytest's folders are too deep.
    folder = Path(tempfile.mkdtemp(prefix="mz-pg-"))
    try:
        if as_user:
            shutil.chown(folder, user=as_user[2])
        data = folder / "data"
        quiet = {"check": True, "capture_output": True, "timeout": 120, "cwd": folder}
        subprocess.run(
            [*as_user, initdb, "-D", str(data), "-U", "referee", "-E", "UTF8", "--locale=C", "-A", "trust", "-N"],
            **quiet,  # type: ignore[call-overload]
        )
        server = Postgres(folder, psql, "referee")
        server.start()
        try:
            version = server.run("SHOW server_version")
            if not version.startswith("15"):
                raise PostgresMissing(f"the referee is PostgreSQL 15, not {version.strip()}; on Debian: {INSTALL}")
            server.run(_TRY)  # of which all others are copies
            yield server.new_database()
        finally:
            server.stop()
    finally:
        deadline = time.monotonic() + 5
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)
