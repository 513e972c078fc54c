"""Files on a web server: those that its list names, each once, and never another content than was bound."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.storage.source import BoundFileChanged, SourceUnreadable
from tests.opened import opened
from tests.source.landing import poll

TOKEN = "t0ken+planted"


class Site:
    """A web server of a folder, which tells who knows the token."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()
        (folder / "data").mkdir(parents=True)
        site = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args, directory=str(folder))

            def send_head(self) -> Any:
                site.asked.append(f"{self.command} {self.path}")
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    return self.send_error(401)
                return super().send_head()

            def log_message(self, *args: Any) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @contextmanager
    def running(self) -> Iterator[Site]:
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()

    def put(self, path: str, content: str | bytes, line: str | None = None) -> None:
        """Writes a file, and then its line into the list."""
        body = content.encode() if isinstance(content, str) else content
        (self.folder / "data" / path).parent.mkdir(exist_ok=True)
        (self.folder / "data" / path).write_bytes(body)
        if line is not None:
            with open(self.folder / "data" / "list.txt", "a") as file:
                file.write(f"{line}\n")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path / "www").running() as site:
        yield site


@pytest.fixture
def connection(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv("WEB_TOKEN", TOKEN)
    with opened(tmp_path / "project") as connection:
        connection.execute("CREATE SECRET token AS '${WEB_TOKEN}'")
        connection.execute(f"CREATE CONNECTION web TO HTTP (URL = '{site.url}/data', TOKEN = SECRET token)")
        yield connection


def create(site: Site, pattern: str = "**/*") -> str:
    files = f"FILES (URI '{site.url}/data/list.txt', CONNECTION web, PATTERN '{pattern}')"
    return f"CREATE SOURCE s (id integer) FROM {files}"


def ids(connection: Connection) -> list[int]:
    return [id for (id,) in connection.execute("SELECT id FROM s ORDER BY id").fetchall()]


def test_files_are_read_as_they_are_listed(connection: Connection, site: Site) -> None:
    site.put("a b/é.json", '{"id": 1}', "# what there is\n\na%20b/%C3%A9.json")
    connection.execute(f"{create(site)} FORMAT JSON")
    poll(connection)
    assert ids(connection) == [1]
    site.put("not_listed.json", '{"id": 9}')
    site.put("2.json.gz", gzip.compress(b'{"id": 2}'), f"{site.url}/data/2.json.gz")
    poll(connection)
    assert ids(connection) == [1, 2]
    site.asked.clear()
    poll(connection)
    assert {one for one in site.asked if one.startswith("GET")} == {"GET /data/list.txt"}, "nothing is new"
    (made,) = connection.execute("SHOW CREATE SOURCE s").fetchall()
    assert f"URI '{site.url}/data/list.txt', CONNECTION web" in made[1]


def test_parquet_is_read_from_a_server_without_parts(connection: Connection, site: Site) -> None:
    target = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array([3, 4], pa.int32())}), target)
    site.put("x.parquet", target.getvalue().to_pybytes(), "x.parquet")
    connection.execute(f"{create(site)} FORMAT PARQUET")
    poll(connection)
    assert ids(connection) == [3, 4]


def test_what_is_wrong_is_told(connection: Connection, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.execute(f"{create(site)} FORMAT JSON")
    with pytest.raises(SourceUnreadable, match=r"cannot read the list .*list\.txt"):
        poll(connection)
    for line in ("http://127.0.0.1:1/data/x.json", "../x.json", "x.json?version=2"):
        site.put("list.txt", f"{line}\n")
        with pytest.raises(SourceUnreadable, match="which is not read"):
            poll(connection)
    site.put("list.txt", "gone.json\n")
    site.put("1.json", '{"id": 1}', "1.json")
    connection.engine.poll("default")
    site.put("1.json", '{"id": 1, "other": 0}')
    with pytest.raises(BoundFileChanged, match=r"1\.json"):
        poll(connection)
    site.put("1.json", '{"id": 1}')
    poll(connection)
    assert ids(connection) == [1]
    site.put("3.json", '{"id": 3}', "3.json")
    monkeypatch.setenv("WEB_TOKEN", "another")
    with pytest.raises(SourceUnreadable) as failure:
        poll(connection)
    assert "another" not in str(failure.value)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CREATE SOURCE t (a int) FROM FILES (URI 'https://h/x.txt') FORMAT JSON", "needs a CONNECTION"),
        ("CREATE SOURCE t (a int) FROM FILES (URI 'https://h/x.txt', CONNECTION web) FORMAT JSON", "is not below"),
        ("CREATE SOURCE t (a int) FROM FILES (URI 'https://h/x/', CONNECTION web) FORMAT JSON", "names no files"),
        ("CREATE CONNECTION c TO HTTP (TOKEN = SECRET token)", "requires a URL"),
        ("CREATE CONNECTION c TO HTTP (URL = 'ftp://h')", "requires a URL"),
        ("CREATE CONNECTION c TO HTTP (URL = 'http://u:p@h/')", "has to be a secret"),
    ],
)
def test_a_place_has_to_be_one(connection: Connection, statement: str, why: str) -> None:
    with pytest.raises(InvalidTableDefinition, match=why):
        connection.execute(statement)
