"""New projects for the model test, copied from one that is made once: a catalog takes longer to migrate than to use."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mz_dagster.catalog import Catalog
from mz_dagster.clock import ManualClock
from tests.cli.raw_catalog import url_of
from tests.postgres_server import Postgres

START_MS = 1_000_000_000


def new_project(server: Postgres | None) -> tuple[Path, str, Callable[[], None]]:
    """Returns a project's folder, the URL of its catalog, on a server or else SQLite, and what removes both."""
    folder = new_folder()
    if server is None:
        shutil.copytree(template(), folder, dirs_exist_ok=True)
        return folder, f"sqlite:///{folder}/catalog.sqlite", lambda: shutil.rmtree(folder, ignore_errors=True)
    database = server.new_database(template_database(server))

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        database.drop()

    return folder, url_of(database), remove


@cache
def template() -> Path:
    folder = new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make_catalog(f"sqlite:///{folder}/catalog.sqlite")
    return folder


@cache
def template_database(server: Postgres) -> str:
    made = server.new_database()
    make_catalog(url_of(made))
    return made.database


def make_catalog(url: str) -> None:
    with Catalog.open(url, clock=ManualClock(START_MS)) as catalog:
        catalog.declare_timeline("t")


def new_folder() -> Path:
    """Returns a folder in memory, if there is such a place: these tests lose processes, never power."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="mz-model-", dir=memory if memory.is_dir() else None))
