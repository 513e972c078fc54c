"""Fetches what tests connect with and this environment lacks, into `.make/clients`, within a bounded time.

    clients.py           pgjdbc and node's `pg`
    clients.py --deep    what deep tests alone need, whose packages are many: Azurite and dbt

pgjdbc comes by Spark's own package resolution, as Delta's jars do, and is held against its hash; node's `pg` and
Azurite, which is Azure's Blob Storage to tests, come by npm, which holds every package against the hash in a
`package-lock.json`, in `tests/wire/clients` and `tests/azurite`. dbt, whose packages are older than the project's, is
installed in an environment of its own, by the hashes in `tests/wire/clients/dbt-requirements.txt` (`make lock` writes
them anew).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mz_dagster.storage.spark.launch import spark_home

_ROOT = Path(__file__).resolve().parents[1]
_TESTS = _ROOT / "tests"
FOLDER = _ROOT / ".make" / "clients"
PGJDBC = "org.postgresql:postgresql:42.7.14"
_SHA256 = "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c"
_SECONDS = 600


def main(arguments: Sequence[str]) -> int:
    """Returns 0 if the clients are there."""
    parser = argparse.ArgumentParser(description="Fetches what tests connect with.")
    parser.add_argument("--deep", action="store_true", help="what deep tests alone need, and not the others")
    deep = parser.parse_args(arguments).deep
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        if deep:
            failure = _fetch_by_npm(_TESTS / "azurite", FOLDER / "azurite") or _fetch_dbt()
        else:
            failure = _fetch_pgjdbc() or _fetch_by_npm(_TESTS / "wire" / "clients", FOLDER)
    except subprocess.TimeoutExpired as late:
        failure = f"{late.cmd[0]} was not done within {_SECONDS} s; try again."
    if failure:
        print(failure, file=sys.stderr)
    return 1 if failure else 0


def _fetch_pgjdbc() -> str:
    """Fetches pgjdbc; returns what went wrong, if anything did."""
    jar = FOLDER / "postgresql.jar"
    if jar.exists() and _is_right(jar):
        return ""
    home = str(spark_home())
    environment = os.environ | {"SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder) / "nothing.py"
        nothing.touch()
        command = [f"{home}/bin/spark-submit", "--master", "local[1]", "--conf", f"spark.jars.ivy={folder}/ivy"]
        command += ["--packages", PGJDBC, "--exclude-packages", "org.checkerframework:checker-qual", str(nothing)]
        done = subprocess.run(
            command, env=environment, timeout=_SECONDS, check=False, capture_output=True, text=True, cwd=folder
        )
        found = list(Path(folder, "ivy", "jars").glob("org.postgresql_postgresql-*.jar"))
        if len(found) != 1:
            return (
                f"{done.stderr[-4000:]}\nSpark could not resolve {PGJDBC}. Is a Maven repository reachable from here?"
            )
        if not _is_right(found[0]):
            return f"{PGJDBC} is not the one that was pinned: its hash is another."
        made = jar.with_name(f"{jar.name}.{os.getpid()}")
        shutil.copyfile(found[0], made)
        made.replace(jar)
    return ""


def _is_right(jar: Path) -> bool:
    return hashlib.sha256(jar.read_bytes()).hexdigest() == _SHA256


def _fetch_by_npm(listed: Path, folder: Path) -> str:
    """Fetches node's packages that a folder lists into another; returns what went wrong, if anything did."""
    folder.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(listed / name, folder / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    done = subprocess.run(command, timeout=_SECONDS, check=False, capture_output=True, text=True, cwd=folder)
    return f"{done.stdout}{done.stderr}\nnpm could not install node's packages." if done.returncode else ""


def _fetch_dbt() -> str:
    """Installs dbt; returns what went wrong, if anything did."""
    folder, lock = FOLDER / "dbt", _TESTS / "wire" / "clients" / "dbt-requirements.txt"
    command = ["sh", str(_ROOT / "setup" / "venv.sh"), sys.executable, str(folder), str(lock)]
    done = subprocess.run(command, timeout=_SECONDS, check=False, capture_output=True, text=True)
    return f"{done.stdout}{done.stderr}\ndbt could not be installed." if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
