"""Fixtures of the storage's tests: those of the catalog's, so that what is promised is promised on both databases."""

from __future__ import annotations

from tests.catalog.conftest import catalog, clock, url

__all__ = ["catalog", "clock", "url"]
