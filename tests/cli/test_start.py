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
    "pygments",
    "pyspark",
    "rich",
)
#: What a project's settings need, and nothing before one is opened.
OF_SETTINGS = ("pydantic",)
LOADED = "print(sorted({{name.partition('.')[0] for name in sys.modules}} & {{*{heavy!r}}}))"


def loaded(script: str, folder: Path, heavy: tuple[str, ...]) -> str:
    """Returns which of heavy packages a new process has loaded after a script."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MZ_ENGINE": "local"}
    command = [sys.executable, "-c", f"import sys\n{script}\n{LOADED.format(heavy=heavy)}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=True)
    return done.stdout.splitlines()[-1]


#: What the first tick of a new project needs none of, either.
NOT_OF_A_RUN = ("dagster_pyspark", "delta", "duckdb", "fastapi", "grpc", "IPython", "matplotlib", "py4j", "pyspark")
NOT_OF_HELP = ("numpy", "pandas", "pyarrow", "sqlalchemy", "sqlglot")
RUN = (
    "import mz_dagster.cli as c\nassert c.main(['init', 'shop']) == 0\nassert c.main(['--project', 'shop', 'run']) == 0"
)
HELP = "import contextlib, mz_dagster.cli as c\nwith contextlib.suppress(SystemExit):\n    c.main(['--help'])"


@pytest.mark.deep
def test_the_first_run_loads_no_spark_and_help_loads_next_to_nothing(tmp_path: Path) -> None:
    assert loaded(RUN, tmp_path, NOT_OF_A_RUN) == "[]"
    assert loaded(HELP, tmp_path, (*HEAVY, *OF_SETTINGS, *NOT_OF_HELP)) == "[]"


@pytest.mark.parametrize(
    ("script", "opens"),
    [
        ("import mz_dagster", False),
        ("import mz_dagster, mz_dagster.adapter, mz_dagster.operations", False),
        # A new project, what is written, stepped and read, all in one process.
        (
            "import mz_dagster\n"
            "with mz_dagster.connect('.') as connection:\n"
            "    connection.execute('CREATE TABLE t (a integer, b numeric(10, 2))')\n"
            "    connection.execute('CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a')\n"
            "    connection.execute('INSERT INTO t VALUES (1, 2.5), (1, 3)')\n"
            "    assert len(connection.execute('SELECT * FROM v').fetchall()) == 1\n"
            "    connection.execute('EXPLAIN SELECT * FROM v')",
            True,
        ),
        ("import mz_dagster.cli\nassert mz_dagster.cli.main(['init', 'shop']) == 0", False),
        ("import mz_dagster.cli\nassert mz_dagster.cli.main(['sql', '-c', 'SELECT 1']) == 0", True),
    ],
    ids=["package", "layers", "connect", "init", "sql"],
)
def test_a_process_loads_nothing_that_it_does_not_need(script: str, opens: bool, tmp_path: Path) -> None:
    assert loaded(script, tmp_path, HEAVY if opens else HEAVY + OF_SETTINGS) == "[]"
