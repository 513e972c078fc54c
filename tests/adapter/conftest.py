"""An embedded project with the test run's own Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.storage.spark import SparkConfig
from tests.adapter.evaluated import evaluate_peeks
from tests.postgres_server import Postgres
from tests.sparkless import refuse_spark


@pytest.fixture
def connection(tmp_path: Path, spark_config: SparkConfig) -> Iterator[Connection]:
    """A connection to a new embedded project; starts no Spark until a statement needs it."""
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever opens Spark fails, and the test with it, even if somebody catches that."""
    tried = refuse_spark(monkeypatch)
    yield
    assert not tried, tried[0]


@pytest.fixture
def sparkless(connection: Connection, no_spark: None) -> Connection:
    """A connection on which whatever opens Spark fails, and the test with it."""
    return connection


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection to a new embedded project that starts no Spark: what it reads is evaluated naively."""
    evaluate_peeks(monkeypatch)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


@pytest.fixture
def theirs(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    """A connection to PostgreSQL, whose schema `public` is empty."""
    with postgres.connect() as opened:
        opened.prepare_threshold = None
        opened.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        yield opened
