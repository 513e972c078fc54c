"""The wheel: built as `make dist` builds it, and used from an empty environment."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    """The environment holds the wheel alone; what it depends on is that of the tests, put behind it."""
    source, dist, environment = tmp_path / "source", tmp_path / "dist", tmp_path / "environment"
    source.mkdir()
    shutil.copytree(ROOT / "mz_dagster", source / "mz_dagster", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(dist), ".", cwd=source)
    (wheel,) = dist.glob("mz_dagster-*.whl")

    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    run("-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel), cwd=tmp_path)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))

    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MZ_"))}
    clean |= {"MZ_ENGINE": "local", "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    script = (
        "set -e\nmz-dagster init shop\ncd shop\nmz-dagster run\n"
        "python -c 'import mz_dagster; print(mz_dagster.__file__)'\n"
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "130.40" in done.stdout
    assert done.stdout.splitlines()[-1] == str(packages / "mz_dagster" / "__init__.py")


def run(*arguments: str, cwd: Path) -> None:
    """Runs Python with arguments; an error is the test's."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
