"""A project's catalog on SQLite or PostgreSQL, copied with its project, and changed without asking the engine."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from mz_dagster.adapter import Project
from tests.postgres_server import Postgres

Execute = Callable[..., Any]


def url_of(server: Postgres) -> str:
    """Returns the URL of a server's database."""
    return f"postgresql+psycopg://{server.user}@/{server.database}?host={server.socket_dir}"


@contextmanager
def raw(root: Path) -> Iterator[Execute]:
    """Yields what executes a statement, with `?` for values, in one transaction in which no key is checked."""
    project = Project.load(root)
    if (file := project.catalog_url.file) is not None:
        with closing(sqlite3.connect(file)) as connection, connection:
            yield lambda statement, *values: connection.execute(statement, values)
        return
    url = project.catalog_url.url
    host = str(url.query["host"])
    with psycopg.connect(host=host, user=url.username, dbname=url.database) as server:
        server.execute("SET session_replication_role = replica")
        yield lambda statement, *values: server.execute(statement.replace("?", "%s"), values or None)


def copied(root: Path, to: Path, server: Postgres | None) -> Path:
    """Copies a project that nobody has open, with its catalog."""
    shutil.copytree(root, to)
    if server is not None:
        database = str(Project.load(root).catalog_url.url.database)
        fresh = server.new_database(template=database)
        settings = to / "mz.toml"
        settings.write_text(settings.read_text().replace(f"/{database}?", f"/{fresh.database}?"))
    return to
