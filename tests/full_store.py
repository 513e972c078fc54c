"""A store before another one, in a process of its own, that refuses what is written once it is said to be full."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.object_store import Store, free_port, serving

#: Where it is told what it refuses, and asked how often it did.
_CONTROL = "/-/full"


@dataclass
class Room:
    """How much room there is.

    Attributes:
        port: Where the store listens.
    """

    port: int

    def is_over(self, status: int, code: str, after: int = 0) -> None:
        """Has what is written be refused.

        Args:
            status: Of HTTP, with which it is.
            code: What the error is called.
            after: How many objects are taken all the same.
        """
        self._said({"status": status, "code": code, "room": after})

    def is_there(self) -> int:
        """Has all be let through, and returns how many objects were refused since it last was."""
        return int(self._said({"status": 0, "code": "", "room": 0, "refused": 0})["refused"])

    def _said(self, rule: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = HTTPConnection("127.0.0.1", self.port, timeout=10)
        asked.request("PUT", _CONTROL, json.dumps(rule))
        found: Mapping[str, Any] = json.loads(asked.getresponse().read())
        asked.close()
        return found


@contextmanager
def with_room(store: Store) -> Iterator[tuple[Store, Room]]:
    """Runs it."""
    port = free_port()
    with serving([sys.executable, "-m", "tests.full_store", str(port), store.endpoint], port):
        yield replace(store, endpoint=f"http://127.0.0.1:{port}"), Room(port)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    behind: str
    rule: dict[str, Any] = {"status": 0, "code": "", "room": 0, "refused": 0}

    def handle_one(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == _CONTROL:
            before = json.dumps(self.rule)
            self.rule.update(json.loads(content))
            self._answer(200, {}, before.encode())
        elif self.command == "PUT" and self._is_refused():
            said = f"<Error><Code>{self.rule['code']}</Code><Message>There is no room.</Message></Error>"
            self._answer(self.rule["status"], {"Content-Type": "application/xml"}, said.encode())
        else:
            asked = HTTPConnection(self.behind, timeout=60)
            asked.request(self.command, self.path, content, dict(self.headers))
            found = asked.getresponse()
            self._answer(found.status, dict(found.headers), found.read())
            asked.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

    def _is_refused(self) -> bool:
        if not self.rule["status"]:
            return False
        self.rule["room"] -= 1
        self.rule["refused"] += self.rule["room"] < 0
        return bool(self.rule["room"] < 0)

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        is_head = self.command == "HEAD"
        left_out = {"connection", "date", "server", "transfer-encoding", *(() if is_head else ("content-length",))}
        for name, value in headers.items():
            if name.lower() not in left_out:
                self.send_header(name, value)
        if not is_head:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not is_head:
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing."""


if __name__ == "__main__":
    _Handler.behind = urlsplit(sys.argv[2]).netloc
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
