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
from dataclasses import dataclass
from pathlib import Path

INSTALL = "apt-get install postgresql-15 postgresql-client-15"
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
    """

    socket_dir: Path
    psql: str
    user: str

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
                "postgres",
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
    """Runs a server for the duration of the block."""
    initdb, pg_ctl, psql = _program("initdb"), _program("pg_ctl"), _program("psql")
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
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c jit=off -c timezone=UTC -c max_connections=20"
        log = folder / "log"
        subprocess.run(
            [*as_user, pg_ctl, "-D", str(data), "-l", str(log), "-o", options, "-w", "-t", "60", "start"],
            **(quiet | {"capture_output": False, "stdout": subprocess.DEVNULL}),  # type: ignore[call-overload]
        )
        server = Postgres(folder, psql, "referee")
        try:
            version = server.run("SHOW server_version")
            if not version.startswith("15"):
                raise PostgresMissing(f"the referee is PostgreSQL 15, not {version.strip()}; on Debian: {INSTALL}")
            server.run(_TRY)
            yield server
        finally:
            subprocess.run(
                [*as_user, pg_ctl, "-D", str(data), "-m", "immediate", "-w", "stop"],
                **quiet,  # type: ignore[call-overload]
            )
    finally:
        deadline = time.monotonic() + 5
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)
