"""The protocol as clients speak it, and whether they still do."""

from __future__ import annotations

import select
import socket

from pygwire import BackendConnection, ConnectionPhase, TransactionStatus, messages


class Protocol3(BackendConnection):
    """The protocol, with a query behind messages that no Sync has ended, which PostgreSQL takes as if one had.

    Attributes:
        skips: Whether all is passed over until the next Sync, as after an error in an extended query.
    """

    skips = False

    def _receive_to_state_machine(self, msg: messages.PGMessage) -> None:
        if self.skips and not isinstance(msg, messages.Sync | messages.Terminate):
            return
        if isinstance(msg, messages.Query) and self._state_machine.phase is ConnectionPhase.EXTENDED_QUERY:
            self._state_machine.receive(messages.Sync())  # type: ignore[arg-type]
            self._state_machine.send(messages.ReadyForQuery(status=TransactionStatus.IDLE))  # type: ignore[arg-type]
        super()._receive_to_state_machine(msg)


def has_hung_up(client: socket.socket) -> bool:
    """Returns whether nobody is at the other end any more."""
    looking = select.poll()
    looking.register(client, getattr(select, "POLLRDHUP", select.POLLHUP))
    return bool(looking.poll(0))
