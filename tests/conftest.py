"""Fixtures that every layer's tests share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mz_dagster.storage.spark import SparkConfig, close_sessions, ensure_server, open_session, warm_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[1]

#: Where the server of this test run keeps its files; its workers find it there, too.
STATE = "MZ_TEST_SPARK_STATE"

# Stops the server when its standard input ends: by our hand, or because this process died of whatever.
_WATCHER = """
import shutil
import sys
from pathlib import Path
from mz_dagster.storage.spark import stop_server
sys.stdin.read()
stop_server(Path(sys.argv[1]), seconds=300)
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""
_watcher = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_configure(config: pytest.Config) -> None:
    """Watches over one server for all workers: two would compile the same code twice, on two cores."""
    if hasattr(config, "workerinput"):
        return  # a worker; the process that started it watches
    if STATE in os.environ:
        return  # a server that outlives this run, for those who run single tests again and again
    os.environ[STATE] = state_dir = tempfile.mkdtemp(prefix="mz-spark-")
    config.stash[_watcher] = subprocess.Popen(
        [sys.executable, "-c", _WATCHER, state_dir], cwd=REPOSITORY, stdin=subprocess.PIPE, start_new_session=True
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stops the server."""
    watcher = config.stash.get(_watcher, None)
    if watcher is not None and watcher.stdin is not None:
        watcher.stdin.close()
        watcher.wait(60)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the fast tests first: those that need no Spark. Of the others, the long ones first: no worker ends late."""

    def place(item: pytest.Item) -> tuple[bool, bool]:
        return "spark_config" in getattr(item, "fixturenames", ()), item.get_closest_marker("timeout") is None

    items.sort(key=place)


@pytest.fixture(scope="session")
def spark_config() -> Iterator[SparkConfig]:
    """The configuration of this test run's own server, which is started by whoever needs it first."""
    try:
        yield SparkConfig(state_dir=Path(os.environ[STATE]), driver_memory="3g")
    finally:
        close_sessions()


@pytest.fixture(scope="session")
def spark(spark_config: SparkConfig) -> SparkSession:
    """A session on one warm Spark Connect server of this test run: UTC, ANSI, Delta."""
    ensure_server(spark_config)
    session = open_session(spark_config)
    warm_up(session)
    return session
