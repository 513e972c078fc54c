"""The command line as a user meets it: processes, exit codes, what is printed where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mz_dagster.cli import main
from mz_dagster.storage.spark import SparkConfig, ensure_server
from mz_dagster.storage.spark.known_servers import remember
from tests.command_line import mz_dagster

ROOT = Path(__file__).resolve().parents[2]


class Cli:
    """Runs `mz-dagster` in a folder with the test run's Spark."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder = folder
        self._token = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return mz_dagster(arguments, self.folder, environment=self._token)

    def anew(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs it in a new interpreter."""
        return subprocess.run(
            [sys.executable, "-m", "mz_dagster.cli", *arguments],
            cwd=self.folder,
            env=os.environ | self._token | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.fixture
def cli(tmp_path: Path, spark_config: SparkConfig) -> Cli:
    server = ensure_server(spark_config)
    (tmp_path / "mz.toml").write_text(f"[spark]\nremote = '{server.url}'\n")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.sql").write_text(
        "CREATE TABLE t (a integer, b text);\nCREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a1, b FROM t WHERE a > 1;\n"
    )
    return Cli(tmp_path, server.token)


def test_a_session_on_the_command_line(cli: Cli) -> None:
    applied = cli("apply")
    assert applied.stdout == "created: t, m\n", applied.stderr
    assert cli("apply").stdout == "kept: t, m\n"

    frontier = "SELECT write_frontier FROM mz_frontiers WHERE name = 'm'"
    done = cli("sql", "-c", "INSERT INTO t VALUES (1, 'x'), (2, 'y')", "-c", "SELECT * FROM m", "-c", frontier)
    assert done.returncode == 0, done.stderr
    *shown, _, _, upper = done.stdout.splitlines()
    assert shown == ["INSERT 0 2", "a1  b", "--  -", " 3  y"]

    then = f"SELECT a1 FROM m AS OF {int(upper) - 1}"
    done = cli("sql", "-c", "DELETE FROM t WHERE b = 'y'", "-c", "SELECT a1 FROM m", "-c", then)
    assert done.stdout.splitlines() == ["DELETE 1", "a1", "--", "a1", "--", " 3"]

    frontiers = cli("frontiers").stdout
    assert "m " in frontiers
    assert "upper" in frontiers
    assert "Linear" in cli("explain", "m").stdout
    assert "Read t" in cli("explain", "SELECT a FROM t").stdout
    compacted = cli("compact")
    assert compacted.returncode == 0, compacted.stderr
    assert "swept" in compacted.stdout


def test_statements_are_read_from_standard_input(cli: Cli) -> None:
    done = cli.anew(
        "sql", stdin="CREATE TABLE u (a integer);\n-- a comment\nINSERT INTO u VALUES (7);\nSELECT a FROM u;\n"
    )
    assert done.stdout.splitlines() == ["CREATE TABLE", "INSERT 0 1", "a", "-", "7"], done.stderr


def test_an_error_goes_to_standard_error_with_its_hint(cli: Cli) -> None:
    done = cli("sql", "-c", "SELECT * FROM nothing")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith('ERROR: relation "nothing" does not exist')
    assert "Traceback" not in done.stderr


def test_an_error_of_a_file_says_its_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "my script.sql"
    rows = ",\n".join(f"({i}, 'some text of a certain length')" for i in range(2_000))
    lines = ("CREATE TABLE u (a integer CHECK (a >= 0), b text);", f"INSERT INTO u VALUES\n{rows};", "SELECT count(*)")
    for last, told in (
        ("  FORM u;", f"at line 2004, column 8 of {script}\nLINE 2004:   FORM u;\n                  ^"),
        ("FROM u; SELECT c FROM u;", f"at line 2004, column 16 of {script}\nLINE 2004: FROM u; SELECT c FROM u;"),
        ("FROM u;\nINSERT INTO u\nVALUES (-1);", f"in the statement at line 2005, column 1 of {script}\n"),
    ):
        script.write_text("\n".join((*lines, last)))
        (folder := tmp_path / str(len(last))).mkdir()
        assert main(["--project", str(folder), "sql", "-f", str(script)]) == 1
        printed = capsys.readouterr()
        assert told in printed.err
        assert printed.out.startswith("CREATE TABLE\nINSERT 0 2000\n")
    assert main(["--project", str(folder), "sql", "-f", str(tmp_path / "none.sql")]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_commands_of_the_shell_stand_in_files_and_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nested := tmp_path / "nested.sql").write_text("\\format csv\nSELECT a FROM t;\n\\q\nSELECT 4 AS four;")
    lines = (
        "CREATE TABLE t (a integer, b text);", "\\dt", "  \\x", "INSERT INTO t VALUES (1, 'one\n\\x line');",
        "SELECT * FROM t;", "\\x off", f"\\i {nested}", "\\timing", "SELECT 2 AS two;", "\\q", "SELECT 3 AS three;",
    )  # fmt: skip
    (script := tmp_path / "script.sql").write_text("\n".join(lines))
    assert main(["--project", str(tmp_path), "sql", "-f", str(script), "-c", "\\d t", "-c", "SELECT 5 AS five"]) == 0
    told = capsys.readouterr().out
    assert "\nExpanded display is on.\nINSERT 0 1\n" in told
    assert "\na  1\nb  one\n\\x line\n" in told
    assert "Rows are printed as csv.\na\n1\nTiming is on.\ntwo\n2\nTime: " in told
    assert "five\n5\n" in told
    assert not {"three", "four"} & set(told.split())
    script.write_text("SELECT 1;\n\\x on\n\nSELECT FORM;\n")
    assert main(["--project", str(tmp_path), "sql", "-f", str(script)]) == 1
    assert f"at line 4, column 8 of {script}" in capsys.readouterr().err
    script.write_text("SELECT 1;\n\\nothing\nSELECT 2;")
    assert main(["--project", str(tmp_path), "sql", "-f", str(script)]) == 1
    assert "there is no command \\nothing" in capsys.readouterr().err


def test_outside_of_a_project_the_error_says_what_to_do(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    cli.folder = tmp_path_factory.mktemp("nowhere")
    done = cli("frontiers")
    assert done.returncode == 1
    assert "no project in" in done.stderr
    assert "HINT" in done.stderr


def test_wrong_arguments_exit_with_2(cli: Cli) -> None:
    assert cli.anew("run", "--ticks", "0").returncode == 2
    assert cli("nonsense").returncode == 2


def test_a_named_spark_is_left_to_its_own_tools(cli: Cli) -> None:
    assert "names its own Spark" in cli("spark", "status").stdout


def test_every_command_has_a_help_text(cli: Cli) -> None:
    listed = cli("--help").stdout
    commands = "init run dev sql frontiers compact backup restore doctor explain plan apply spark"
    for command in commands.split():
        assert f"    {command} " in listed


def test_the_local_servers_of_all_projects_are_listed(
    tmp_path: Path, spark_config: SparkConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ensure_server(spark_config)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    gone = tmp_path / "gone"
    gone.mkdir()
    for folder in (spark_config.state_dir.absolute(), tmp_path, gone):
        remember(folder)
    gone.rmdir()
    assert main(["spark", "status", "--all"]) == 0
    told = capsys.readouterr().out
    first, last = told.splitlines()
    assert first.startswith(f"{spark_config.state_dir.absolute()}: running: {server.url} (process {server.pid})")
    assert last == "1 running"
    assert len([*(tmp_path / "state").rglob("*")]) == 4, "two folders, and two files in them"
    assert main(["spark", "start", "--all"]) == 1
    assert "--all is for stop and status" in capsys.readouterr().err
