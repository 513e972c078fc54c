"""Fixtures that every layer's tests share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mz_dagster.storage.spark import SparkConfig, close_sessions, ensure_server, open_session, warm_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[1]

# Stops the server when its standard input ends: by our hand, or because this process died of whatever.
_WATCHER = """
import sys
from pathlib import Path
from mz_dagster.storage.spark import stop_server
sys.stdin.read()
stop_server(Path(sys.argv[1]), seconds=300)
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the fast tests first: those that need no Spark. Of the others, the long ones first: no worker ends late."""

    def place(item: pytest.Item) -> tuple[bool, bool]:
        return "spark_config" in getattr(item, "fixturenames", ()), item.get_closest_marker("timeout") is None

    items.sort(key=place)


@pytest.fixture(scope="session")
def spark_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConfig]:
    """The configuration of this test run's own server, which ends with the run, even one that is killed."""
    state_dir = tmp_path_factory.mktemp("spark-state")
    watcher = subprocess.Popen(
        [sys.executable, "-c", _WATCHER, str(state_dir)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield SparkConfig(state_dir=state_dir, driver_memory="2g")
    finally:
        close_sessions()
        assert watcher.stdin is not None
        watcher.stdin.close()
        watcher.wait(60)


@pytest.fixture(scope="session")
def spark(spark_config: SparkConfig) -> SparkSession:
    """A session on one warm Spark Connect server of this test run: UTC, ANSI, Delta."""
    ensure_server(spark_config)
    session = open_session(spark_config)
    warm_up(session)
    return session
