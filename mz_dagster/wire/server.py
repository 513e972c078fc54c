"""Listens for clients, and gives each a session of its own on the project, and its turns."""

from __future__ import annotations

import hmac
import ipaddress
import itertools
import logging
import socket
import ssl
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from mz_dagster.adapter import Connection, Engine, Isolation
from mz_dagster.catalog import RoleRow
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.wire.backend import Backend
from mz_dagster.wire.credentials import Credentials
from mz_dagster.wire.idle import IdleClients
from mz_dagster.wire.turns import Turns

logger = logging.getLogger("mz_dagster.wire")

_END_S = 5.0
"""For how long at most who closes a server waits for its connections to end, in seconds."""

DEFAULT_PORT = 6875
"""Materialize's."""


class Server:
    """Serves PostgreSQL's protocol; a context manager that closes itself.

    Args:
        engine: The project.
        credentials: What the owner connects with.
        host: Where to listen; elsewhere than on loopback only with TLS.
        port: At which port; 0 for any that is free.
        certificate: A certificate and its key, in PEM, for TLS.
        connections: How many clients may be connected at once.
        authentication_s: How long a client may take to authenticate, in seconds.

    Raises:
        ProgrammingError: It would listen beyond this machine without TLS.
        OperationalError: It cannot listen there.
    """

    def __init__(
        self,
        engine: Engine,
        credentials: Credentials,
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        certificate: tuple[Path, Path] | None = None,
        connections: int = 100,
        authentication_s: float = 60.0,
    ) -> None:
        self._engine = engine
        self.credentials = credentials
        self.authentication_s = authentication_s
        self.requires_tls = not _is_loopback(host)
        if self.requires_tls and certificate is None:
            raise ProgrammingError(
                f'"{host}" is not on this machine alone, and there is no certificate',
                detail="Passwords and data would cross the network as they are.",
                hint="Give --certificate and --key, or listen on 127.0.0.1.",
            )
        self.tls: ssl.SSLContext | None = None
        try:
            if certificate is not None:
                self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                self.tls.load_cert_chain(*certificate)
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listening = socket.create_server((host, port), family=family)
        except OSError as error:
            raise OperationalError(
                f"cannot listen at {host}:{port}: {error}", hint="Is another server there? Choose another --port."
            ) from error
        self.host, self.port = host, self._listening.getsockname()[1]
        self._most = connections
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._backends: dict[int, Backend] = {}
        self._written: deque[GlobalId] = deque()
        self._turns = Turns(self._seal, self._tidy)
        self._idle = IdleClients[Backend](engine.clock, lambda one: self._turns.begin(one, one.time_out))

    def role(self, user: str) -> RoleRow | None:
        """Returns the role of a name, None if there is none or it is the owner's."""
        return None if user == self.credentials.user else self._engine.catalog.role(user)

    def connect(self, role: RoleRow | None) -> Connection:
        """Returns a session for a client that has authenticated as a role, or as the owner."""
        return Connection(self._engine, Isolation.STRICT_SERIALIZABLE, owns_engine=False, role=role)

    def serve(self) -> None:
        """Takes clients until the server is closed."""
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # it was closed
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                backend = Backend(client, self, next(self._numbers))
                is_full = len(self._backends) >= self._most
                if not is_full:
                    self._backends[backend.process_id] = backend
            threading.Thread(
                target=backend.refuse if is_full else self._start,
                args=() if is_full else (backend,),
                name=f"mz-wire-{backend.process_id}",
                daemon=True,
            ).start()

    def _start(self, backend: Backend) -> None:
        """Has a client served if it authenticates, which it may take its time for."""
        try:
            if backend.start():
                self._turns.add(backend)
                return
        except Exception:
            logger.exception("connection %d failed", backend.process_id)
        backend.end()

    def _seal(self) -> None:
        self._written.extend(self._engine.group_commit.seal())

    def _tidy(self) -> None:
        written: dict[GlobalId, None] = {}
        with suppress(IndexError):  # another thread may seal at the same time
            while True:
                written[self._written.popleft()] = None
        self._engine.group_commit.wrote(written)

    def ended(self, process_id: int) -> None:
        """Is told of each connection that has ended."""
        with self._lock:
            backend = self._backends.pop(process_id, None)
        if backend is not None:
            self._idle.idles(backend, 0)

    def idles(self, backend: Backend, for_ms: int) -> None:
        """Has a client end that is idle for longer from now on; 0 for never."""
        self._idle.idles(backend, for_ms)

    def backends(self) -> tuple[Backend, ...]:
        """Returns the connections that there are."""
        with self._lock:
            return tuple(self._backends.values())

    def cancel(self, process_id: int, secret: bytes) -> None:
        """Cancels what a client executes, if the secret is its own; tells nobody whether it did."""
        with self._lock:
            backend = self._backends.get(process_id)
        if backend is not None and hmac.compare_digest(backend.secret, secret):
            backend.cancel()

    def close(self) -> None:
        """Takes no more clients, and ends the connections of those there are; waits for that some seconds at most."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._idle.close()
        for one in self.backends():
            one.terminate()
        self._turns.close(_END_S)  # they end in the catalog as well, which whoever closes this closes next

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
