"""What a process loads before it answers: nothing that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What takes long to load, and a session in this process needs none of.
HEAVY = (
    "alembic",
    "dagster",
    "delta",
    "duckdb",
    "fastapi",
    "grpc",
    "IPython",
    "matplotlib",
    "prompt_toolkit",
    "py4j",
    "pydantic",
    "pygments",
    "pyspark",
    "rich",
)
LOADED = f"print(sorted({{name.partition('.')[0] for name in sys.modules}} & {{*{HEAVY!r}}}))"


def loaded(script: str, folder: Path) -> str:
    """Returns which heavy packages a new process has loaded after a script."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MZ_ENGINE": "local"}
    command = [sys.executable, "-c", f"import sys\n{script}\n{LOADED}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "script",
    [
        "import mz_dagster",
        "import mz_dagster, mz_dagster.adapter, mz_dagster.operations",
        # A new project, what is written, stepped and read, all in one process.
        "import mz_dagster\n"
        "with mz_dagster.connect('.') as connection:\n"
        "    connection.execute('CREATE TABLE t (a integer, b numeric(10, 2))')\n"
        "    connection.execute('CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a')\n"
        "    connection.execute('INSERT INTO t VALUES (1, 2.5), (1, 3)')\n"
        "    assert len(connection.execute('SELECT * FROM v').fetchall()) == 1\n"
        "    connection.execute('EXPLAIN SELECT * FROM v')",
        "import mz_dagster.cli\nassert mz_dagster.cli.main(['init', 'shop']) == 0",
        "import mz_dagster.cli\nassert mz_dagster.cli.main(['sql', '-c', 'SELECT 1']) == 0",
    ],
    ids=["package", "layers", "connect", "init", "sql"],
)
def test_a_process_loads_nothing_that_it_does_not_need(script: str, tmp_path: Path) -> None:
    assert loaded(script, tmp_path) == "[]"
