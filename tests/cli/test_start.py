"""What a process loads before it answers: nothing that it does not need."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mz_dagster import garbage

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
LOOK = "print(sorted({{name.partition('.')[0] for name in sys.modules}} & {{*{heavy!r}}}))"


def loaded(folder: Path, *scripts: tuple[str, tuple[str, ...]]) -> list[str]:
    """Returns which of heavy packages a new process has loaded after each of the scripts that it runs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MZ_ENGINE": "local"}
    program = "\n".join(["import sys", *(f"{script}\n{LOOK.format(heavy=heavy)}" for script, heavy in scripts)])
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("[")]


#: What the first tick of a new project needs none of, either.
NOT_OF_A_RUN = ("dagster_pyspark", "delta", "duckdb", "fastapi", "grpc", "IPython", "matplotlib", "py4j", "pyspark")
NOT_OF_HELP = ("numpy", "pandas", "pyarrow", "sqlalchemy", "sqlglot")
RUN = (
    "import mz_dagster.cli as c\nassert c.main(['init', 'shop']) == 0\nassert c.main(['--project', 'shop', 'run']) == 0"
)
HELP = "import contextlib, mz_dagster.cli as c\nwith contextlib.suppress(SystemExit):\n    c.main(['--help'])"


@pytest.mark.deep
def test_the_first_run_loads_no_spark_and_help_loads_next_to_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, (RUN, NOT_OF_A_RUN))[-1] == "[]"
    assert loaded(tmp_path, (HELP, (*HEAVY, *OF_SETTINGS, *NOT_OF_HELP)))[-1] == "[]"


#: What loads ever more, in one process: by name a script, and whether it opens a project.
SCRIPTS = {
    "package": ("import mz_dagster", False),
    "layers": ("import mz_dagster.adapter, mz_dagster.operations", False),
    "init": ("import mz_dagster.cli\nassert mz_dagster.cli.main(['init', 'shop']) == 0", False),
    # A new project, what is written, stepped and read.
    "connect": (
        "with mz_dagster.connect('.') as connection:\n"
        "    connection.execute('CREATE TABLE t (a integer, b numeric(10, 2))')\n"
        "    connection.execute('CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a')\n"
        "    connection.execute('INSERT INTO t VALUES (1, 2.5), (1, 3)')\n"
        "    assert len(connection.execute('SELECT * FROM v').fetchall()) == 1\n"
        "    connection.execute('EXPLAIN SELECT * FROM v')",
        True,
    ),
    "sql": ("assert mz_dagster.cli.main(['sql', '-c', 'SELECT 1']) == 0", True),
}


def test_a_process_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    scripts = [(script, HEAVY if opens else HEAVY + OF_SETTINGS) for script, opens in SCRIPTS.values()]
    assert dict(zip(SCRIPTS, loaded(tmp_path, *scripts), strict=True)) == dict.fromkeys(SCRIPTS, "[]")


@pytest.mark.parametrize(("least", "stays"), [(0, True), (1, False)])
def test_what_modules_make_is_never_looked_through(least: int, stays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_MANY_MODULES", least)
    looks = []

    def look(phase: str, info: dict[str, int]) -> None:
        looks.append(gc.get_freeze_count())

    before = gc.get_freeze_count()
    gc.callbacks.append(look)
    try:
        with garbage.loading_modules():
            made: list[list[None]] = [[] for _ in range(200_000)]
        assert made
        assert (gc.get_freeze_count() >= before + len(made)) is stays
        if stays:  # before Python looks for the first time
            assert all(count >= before + len(made) for count in looks)
    finally:
        gc.callbacks.remove(look)
