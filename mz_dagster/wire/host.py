"""What a connection asks of the server that it is one of."""

from __future__ import annotations

import ssl
from typing import Protocol, TypeVar

from mz_dagster.adapter import Connection
from mz_dagster.catalog import RoleRow
from mz_dagster.wire.credentials import Credentials

#: A connection.
C = TypeVar("C", contravariant=True)


class Host(Protocol[C]):
    """The server that a connection is one of.

    Attributes:
        credentials: Who may connect.
        authentication_s: How long a client may take to authenticate, in seconds.
        tls: How TLS is spoken, if it is.
        requires_tls: Whether it must be.
    """

    credentials: Credentials
    authentication_s: float
    tls: ssl.SSLContext | None
    requires_tls: bool

    def role(self, user: str) -> RoleRow | None:
        """Returns the role of a name, None if there is none or it is the owner's."""
        ...

    def connect(self, role: RoleRow | None) -> Connection:
        """Returns a session for a client that has authenticated as a role, or as the owner."""
        ...

    def cancel(self, process_id: int, secret: bytes) -> None:
        """Cancels what a client executes, if the secret is its own."""
        ...

    def ended(self, process_id: int) -> None:
        """Is told that a connection has ended."""
        ...

    def idles(self, backend: C, for_ms: int) -> None:
        """Has a client end that is idle for longer from now on, see `Backend.time_out`; 0 for never."""
        ...
