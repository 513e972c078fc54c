"""A server of Iceberg's REST protocol, as far as readers need it, over a catalog in SQLite; a process of its own.

It gives tokens for the right credential, and tables for a token. Table `slow` is never answered, `odd` with what is no
JSON, and whoever is refused is told what he sent, as a careless server might.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import parse_qs, unquote

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

CREDENTIAL = "reader:plAnted+credenTial/5d1e"
TOKEN = "plAnted-tokEn-7c2a"


@contextmanager
def running_server(folder: Path, properties: Mapping[str, str], config: Mapping[str, str]) -> Iterator[str]:
    """Runs a server over the catalog in a folder, and yields its URL.

    Args:
        folder: Where `catalog.db` is.
        properties: What leads the catalog to the tables' files.
        config: What readers are told of that.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = json.dumps([str(folder), port, dict(properties), dict(config)])
    server = subprocess.Popen([sys.executable, "-m", __name__, told])
    try:
        give_up = monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if server.poll() is not None or monotonic() > give_up:
                    raise
                sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def serve(folder: str, port: int, properties: dict[str, str], config: dict[str, str]) -> None:
    """Answers requests for ever."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def answer(self, status: int, said: object) -> None:
            body = said.encode() if isinstance(said, str) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def refuse(self, status: int, kind: str, message: str) -> None:
            self.answer(status, {"error": {"message": message, "type": kind, "code": status}})

        def do_POST(self) -> None:
            sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            given = f"{sent['client_id'][0]}:{sent['client_secret'][0]}"
            if self.path == "/v1/oauth/tokens" and given == CREDENTIAL:
                self.answer(200, {"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600})
            else:
                self.answer(401, {"error": "invalid_client", "error_description": f"nobody is {given}"})

        def do_GET(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.refuse(401, "NotAuthorizedException", f"no: {self.headers.get('Authorization')}")
                return
            path = unquote(self.path).partition("?")[0]
            if path == "/v1/config":
                self.answer(200, {"defaults": {}, "overrides": {"py-io-impl": "nothing.like.it"}})
                return
            name = path.rpartition("/")[2]
            if name == "slow":
                sleep(60)
            if name == "odd":
                self.answer(500, "<html>it broke</html>")
                return
            uri = f"sqlite:///{folder}/catalog.db"
            with SqlCatalog("default", uri=uri, **properties) as catalog:
                try:
                    table = catalog.load_table(f"db.{name}")
                except NoSuchTableError as error:
                    self.refuse(404, "NoSuchTableException", str(error))
                    return
            metadata = json.loads(table.metadata.model_dump_json(by_alias=True))
            self.answer(200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": config})

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(*json.loads(sys.argv[1]))
