"""A project as tests open it that have no Spark of their own to name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mz_dagster.adapter import Connection, Engine, Isolation, Project

#: Opens a project in a folder; whose it is closes it.
Connect = Callable[[Path], Connection]


def opened(root: Path) -> Connection:
    """Returns a connection to a project."""
    return Connection(Engine(Project.load(root)), Isolation.STRICT_SERIALIZABLE)
