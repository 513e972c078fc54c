"""An embedded project with the test run's own Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.compute import WarmSpark
from mz_dagster.storage.spark import SparkConfig


@pytest.fixture
def connection(tmp_path: Path, spark_config: SparkConfig) -> Iterator[Connection]:
    """A connection to a new embedded project; starts no Spark until a statement needs it."""
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


@pytest.fixture
def sparkless(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """A connection on which a statement that opens Spark fails."""

    def refuse(self: WarmSpark) -> None:
        raise AssertionError("this statement needs no Spark")

    monkeypatch.setattr(WarmSpark, "open", refuse)
    return connection
