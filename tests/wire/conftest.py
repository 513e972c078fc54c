"""A server of PostgreSQL's protocol on a new embedded project, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mz_dagster.adapter import Engine, Project
from mz_dagster.wire import Credentials, Server
from tests.sparkless import refuse_spark


@contextmanager
def open_server(folder: Path, **options: object) -> Iterator[Server]:
    """Yields a server on a project that serves in a thread, all clients by one engine, as `mz-dagster serve` does."""
    project = Project.load(folder)
    with Engine(project) as engine:
        server = Server(engine, Credentials.of(project.state), port=0, **options)  # type: ignore[arg-type]
        with server:
            threading.Thread(target=server.serve, daemon=True).start()
            yield server


def password_of(server: Server) -> str:
    return server.credentials.path.read_text().strip().split(":")[4]


def dsn(server: Server) -> str:
    """Returns libpq's string for a server."""
    return (
        f"host=127.0.0.1 port={server.port} user={server.credentials.user} dbname=shop "
        f"password={password_of(server)} connect_timeout=30"
    )


def url(server: Server) -> str:
    """Returns SQLAlchemy's address of a server, through psycopg."""
    where = f"127.0.0.1:{server.port}/shop"
    return f"postgresql+psycopg://{server.credentials.user}:{password_of(server)}@{where}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of a file."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        tried = refuse_spark(monkeypatch)
        with open_server(tmp_path_factory.mktemp("served")) as opened:
            yield opened
        assert not tried, tried[0]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    tried = refuse_spark(monkeypatch)
    with open_server(tmp_path) as opened:
        yield opened
    assert not tried, tried[0]
