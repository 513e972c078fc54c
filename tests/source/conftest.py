"""A project that starts no Spark, and where in it the tests' Delta table is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection
from tests.opened import opened


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A connection to a new project."""
    with opened(tmp_path) as connection:
        yield connection


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a Delta table, relative to the project `lake/t`."""
    return tmp_path / "lake" / "t"
