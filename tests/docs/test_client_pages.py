"""The pages about clients: their code runs against one server, and prints what they say.

A page's connections are to port 6875, as `ann`: here that is the server's own port and user. Programs of JavaScript and
Java find what `setup/clients.py` fetched, as those of `tests/wire` do.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb_extension_postgres_scanner
import psycopg
import pytest

from mz_dagster.wire import Server
from tests.command_line import python
from tests.docs.test_pages import ROOT, blocks, check, commands
from tests.wire.conftest import dsn, open_server

PAGES = sorted(page for page in (ROOT / "docs" / "clients").glob("*.md") if page.name != "index.md")
FETCHED = ROOT / ".make" / "clients"
#: Blocks that are read, not run: dbt has tests of its own (`tests/wire/test_dbt.py`).
READ = {"", "text", "yaml"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with open_server(tmp_path_factory.mktemp("shop")) as server:
        yield server


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    """The one server, without the relations of the page before."""
    yield running
    with psycopg.connect(dsn(running), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS orders CASCADE")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_client_runs(server: Server, page: Path, tmp_path: Path) -> None:
    assert FETCHED.is_dir(), "make test fetches the clients: .venv/bin/python setup/clients.py"
    (tmp_path / ".mz").mkdir()
    (tmp_path / ".mz/pgpass").symlink_to(server.credentials.path)
    for name in ("node_modules", "postgresql.jar"):
        (tmp_path / name).symlink_to(FETCHED / name)
    for block in blocks(page):
        language, text = block.info.split(" ")[0], here(block.text, server)
        if block.title is not None:
            (tmp_path / block.title).write_text(text)
        elif language == "console":
            for command, printed in commands(text):
                check(printed, run(["bash", "-c", command], tmp_path, server), command)
        elif language == "python":
            ran = python(text, tmp_path, environment=environment(server))
            assert ran.returncode == 0, f"{text}\n{ran.stdout}{ran.stderr}"
            # DuckDB shows how far it is where a query takes two seconds, as it may on a busy machine.
            check(block.printed, re.sub(r".*▕.*[\r\n]+", "", ran.stdout), text)
        else:
            assert block.info in READ, f"{page.name}: nobody runs a block of {block.info!r}"


def here(text: str, server: Server) -> str:
    """Returns a page's text for the server and the extension that are here."""
    (scanner,) = (Path(duckdb_extension_postgres_scanner.__file__).parent / "extensions").glob("*/*.duckdb_extension")
    text = text.replace("INSTALL postgres; LOAD postgres", f"LOAD '{scanner}'")
    return re.sub(r"\bann\b", server.credentials.user, text.replace("6875", str(server.port)))


def environment(server: Server) -> dict[str, str]:
    """Returns what programs find in theirs."""
    return {"PGPASSFILE": str(server.credentials.path), "TZ": "UTC", "PAGER": "cat"}


def run(command: list[str], folder: Path, server: Server) -> str:
    """Runs a command; returns what it printed, each line when it was printed."""
    env = os.environ | environment(server)
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def test_dbt_is_asked_for_what_its_page_says() -> None:
    asked = re.findall(r"^\$ dbt (\w+)", (ROOT / "docs" / "clients" / "dbt.md").read_text(), re.M)
    program = (ROOT / "tests" / "wire" / "clients" / "dbt_commands.py").read_text()
    assert asked
    assert all(f'["{one}"]' in program for one in asked)


def test_the_list_of_clients_has_all_pages() -> None:
    listed = re.findall(r"\| \[[^]]+\]\((\w+\.md)\)", (ROOT / "docs" / "clients" / "index.md").read_text())
    assert sorted(listed) == [page.name for page in PAGES]
