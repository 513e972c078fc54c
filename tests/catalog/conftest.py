"""Fixtures of the catalog's tests: a catalog on a clock that is moved by hand, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.catalog import Catalog
from mz_dagster.clock import ManualClock
from tests.postgres_server import Postgres


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    server: Postgres = request.getfixturevalue("postgres_server")
    database = server.new_database().database
    return f"postgresql+psycopg://{server.user}@/{database}?host={server.socket_dir}"


@pytest.fixture
def catalog(url: str, clock: ManualClock) -> Iterator[Catalog]:
    with Catalog.open(url, clock=clock) as catalog:
        catalog.declare_timeline("t")
        yield catalog
