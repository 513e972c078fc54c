"""Fixtures of the catalog's tests: a catalog on a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.catalog import Catalog
from mz_dagster.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'catalog.sqlite'}"


@pytest.fixture
def catalog(url: str, clock: ManualClock) -> Iterator[Catalog]:
    with Catalog.open(url, clock=clock) as catalog:
        catalog.declare_timeline("t")
        yield catalog
