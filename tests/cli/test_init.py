"""A scaffolded project: it is what a user reads first, so it must be clean, load, and run at once."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.cli import main

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
LAYOUT = [
    ".gitignore",
    "README.md",
    "assets/__init__.py",
    "assets/orders.sql",
    "assets/sales_by_city.sql",
    "definitions.py",
    "landing/customers/1.csv",
    "landing/orders/1.jsonl",
    "mz.toml",
    "pyproject.toml",
    "resources/__init__.py",
    "sensors/__init__.py",
    "workspace.yaml",
]


@pytest.fixture
def shop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "shop"
    assert main(["init", str(folder)]) == 0
    assert "next:" in capsys.readouterr().out
    return folder


def _environment(shop: Path) -> dict[str, str]:
    home = shop.parent / "dagster_home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\nnux:\n  enabled: false\n")
    return os.environ | {
        "DAGSTER_HOME": str(home),
        "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }


def _run(shop: Path, environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=shop, env=environment, capture_output=True, text=True, timeout=240, check=False)


def files_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# ---- what is written


def test_the_layout_is_the_repositorys_own(shop: Path) -> None:
    assert files_of(shop) == LAYOUT
    for path in LAYOUT:
        assert "{{" not in (shop / path).read_text() or path.endswith(".jsonl"), path
    for path in ("assets/__init__.py", "resources/__init__.py", "sensors/__init__.py", "definitions.py", "mz.toml"):
        assert (ROOT / path).is_file(), path
    assert len((shop / "README.md").read_text().splitlines()) <= 15


def test_the_wheel_holds_every_template() -> None:
    package = ROOT / "mz_dagster"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["mz_dagster"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    assert set(package.rglob("*.tmpl")) <= packed


def test_what_is_written_is_clean_by_our_own_rules(shop: Path) -> None:
    for check in (["check"], ["format", "--check"]):
        done = _run(shop, _environment(shop), "ruff", *check, "--config", str(ROOT / "pyproject.toml"), ".")
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_that_holds_a_project_is_refused_and_left_as_it_was(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in LAYOUT:
        if path not in ("mz.toml", "assets/orders.sql"):
            (shop / path).unlink()
    (shop / "mz.toml").write_text("# mine\n")
    assert main(["init", str(shop)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "assets/orders.sql, mz.toml" in told.err
    assert "HINT" in told.err
    assert files_of(shop) == ["assets/orders.sql", "mz.toml"]
    assert (shop / "mz.toml").read_text() == "# mine\n"


def test_other_files_are_no_obstacle_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["init", "--name", "shop"]) == 0
    assert files_of(tmp_path) == sorted([*LAYOUT, "notes.txt"])
    assert 'name = "shop"' in (tmp_path / "mz.toml").read_text()


def test_a_name_that_is_none_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "new"), "--name", 'x"y']) == 1
    assert "--name" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


# ---- what it does


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_dagster_and_dg_load_it(shop: Path) -> None:
    loads = (
        "import dagster as dg, definitions; dg.Definitions.validate_loadable(definitions.defs);"
        "print(*(one.name for one in definitions.defs.sensors if one.default_status.value == 'RUNNING'))"
    )
    loaded = _run(shop, _environment(shop), sys.executable, "-W", "error", "-c", loads)
    assert loaded.returncode == 0, loaded.stderr
    assert "mz_frontier_default" in loaded.stdout.split()
    listed = _run(shop, _environment(shop), "dg", "list", "defs", "--json")
    found = json.loads(listed.stdout)
    assert [one["asset_key"] for one in found["assets"]] == ["customers", "orders", "sales_by_city"]
    assert [one["name"] for one in found["jobs"]] == ["mz_compaction", "mz_continuous_default", "step"]
    assert [one["name"] for one in found["schedules"]] == ["mz_compaction_schedule"]
    assert [one["name"] for one in found["sensors"]] == ["mz_frontier_default", "mz_retention_default"]
    checks = {one["name"] for one in found["asset_checks"]}
    assert checks >= {"since_le_upper", "frontiers_monotone", "no_errors", "no_negative_multiplicity", "audit"}
    assert not (shop / ".mz").exists(), "loading makes no state"


@pytest.mark.deep
def test_dg_checks_it(shop: Path) -> None:
    checked = _run(shop, _environment(shop), "dg", "check", "defs")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_one_tick_makes_the_sample_files_readable_without_a_jvm(shop: Path) -> None:
    environment = _environment(shop)
    ran = _run(shop, environment, "mz-dagster", "run")
    assert ran.returncode == 0, ran.stderr
    _, view = ran.stdout.split("\nsales_by_city\n")
    assert [line.split() for line in view.splitlines()[:4]] == [
        ["city", "orders", "amount"],
        ["--------", "------", "------"],
        ["London", "2", "130.40"],
        ["New", "York", "1", "80.00"],
    ]
    assert ran.stdout.count("this process") == 3
    assert not (shop / ".mz" / "spark").exists(), "a Spark was started for five rows"
    assert _run(shop, environment, "mz-dagster", "plan", "--check").returncode == 0


@pytest.mark.deep
@pytest.mark.timeout(200)
def test_dagster_dev_serves_it(shop: Path) -> None:
    with _dagster_dev(shop, _environment(shop)) as port:
        _until(lambda: _answer(port, "{ version }"), seconds=90)
        # A location that is still loading has no entry that says so.
        location = _until(lambda: _location(port), seconds=60)
    assert location["__typename"] == "RepositoryLocation", location.get("message")
    (repository,) = location["repositories"]
    assert [one["assetKey"]["path"] for one in repository["assetNodes"]]
    running = {one["name"] for one in repository["sensors"] if one["sensorState"]["status"] == "RUNNING"}
    assert "mz_frontier_default" in running


@contextmanager
def _dagster_dev(shop: Path, environment: dict[str, str]) -> Iterator[int]:
    """Runs `dagster dev` in the project's folder, in a process group of its own that ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with (shop.parent / "dagster_dev.log").open("w") as log:
        process = subprocess.Popen(
            ["dagster", "dev", "-h", "127.0.0.1", "-p", str(port)],
            cwd=shop,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_listen_to_interrupts,
        )
    try:
        yield port
    finally:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):  # the group may have ended whole
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def _listen_to_interrupts() -> None:
    """Undoes what a shell's background jobs inherit: they ignore SIGINT, and `dagster dev` stops at nothing else."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _until(look: Any, *, seconds: float) -> Any:
    """Returns what `look` finds, as soon as it finds something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.5)
    raise AssertionError(f"not found in {seconds} s")


def _answer(port: int, query: str) -> Any:
    """Returns what the webserver answers, or None as long as it does not."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)["data"]
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def _location(port: int) -> Any:
    answer = _answer(
        port,
        """{ workspaceOrError { ... on Workspace { locationEntries { loadStatus locationOrLoadError {
            __typename
            ... on PythonError { message }
            ... on RepositoryLocation { repositories {
                assetNodes { assetKey { path } }
                sensors { name sensorState { status } }
            } }
        } } } } }""",
    )
    entries = [] if answer is None else answer["workspaceOrError"]["locationEntries"]
    return next((one["locationOrLoadError"] for one in entries if one["loadStatus"] == "LOADED"), None)
