"""A project as tests open it that have no Spark of their own to name."""

from __future__ import annotations

from pathlib import Path

from mz_dagster.adapter import Connection, Engine, Isolation, Project


def opened(root: Path) -> Connection:
    """Returns a connection to a project."""
    return Connection(Engine(Project.load(root)), Isolation.STRICT_SERIALIZABLE)
