"""pgbench with many connections: points that are looked up, and accounts that are written, in each way to ask."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.wire.conftest import dsn
from tests.wire.test_clients import environment

ACCOUNTS = 200
#: As `pgbench -S` and `pgbench -N` have them.
SCRIPTS = {
    "look up": f"\\set aid random(1, {ACCOUNTS})\nSELECT abalance FROM accounts WHERE aid = :aid;\n",
    "write": f"""\\set aid random(1, {ACCOUNTS})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
INSERT INTO history (aid, delta, mtime) VALUES (:aid, :delta, CURRENT_TIMESTAMP);
END;
""",
}


def resident_mb() -> int:
    """Returns how much memory this process, which serves, has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1_000_000


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=[pytest.mark.deep, pytest.mark.timeout(300)])])
@pytest.mark.parametrize(
    ("script", "mode"),
    [
        ("look up", "prepared"),
        ("write", "extended"),
        *(pytest.param(one, "simple", marks=pytest.mark.deep) for one in ("look up", "write")),
    ],
)
def test_many_clients_get_no_error(served: Server, tmp_path: Path, script: str, mode: str, seconds: int) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS accounts (aid integer PRIMARY KEY, abalance integer NOT NULL)")
        connection.execute("CREATE TABLE IF NOT EXISTS history (aid integer, delta integer, mtime timestamp)")
        connection.execute(
            f"INSERT INTO accounts SELECT n, 0 FROM generate_series(1, {ACCOUNTS}) AS g (n) ON CONFLICT DO NOTHING"
        )
        (tmp_path / "script").write_text(SCRIPTS[script])
        where = ("-h", "127.0.0.1", "-p", str(served.port), "-U", served.credentials.user)
        # What another has overtaken is tried again, as every client of serializable transactions does.
        how = (
            "-n",
            "-c",
            "32",
            "-j",
            "2",
            "-T",
            str(seconds),
            "-M",
            mode,
            "--max-tries=0",
            "-f",
            str(tmp_path / "script"),
        )
        before = resident_mb()
        ran = subprocess.run(
            ["pgbench", *where, *how, "shop"],
            env=environment(served),
            capture_output=True,
            text=True,
            timeout=seconds + 60,
        )
        assert ran.returncode == 0, ran.stderr
        assert resident_mb() - before < 150, (
            "32 sessions, and what is kept of files, however many statements there were"
        )
        assert "number of failed transactions: 0 (0.000%)" in ran.stdout, ran.stdout
        done = re.search(r"transactions actually processed: (\d+)", ran.stdout)
        assert done is not None
        assert int(done[1]) > 0
        assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (ACCOUNTS,)
        moved = "SELECT (SELECT sum(abalance) FROM accounts) = coalesce((SELECT sum(delta) FROM history), 0)"
        assert connection.execute(moved.encode()).fetchone() == (True,)
