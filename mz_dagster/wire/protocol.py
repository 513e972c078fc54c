"""The protocol as clients speak it, and whether they still do."""

from __future__ import annotations

import select
import socket
from dataclasses import replace

from pygwire import BackendConnection, ConnectionPhase, TransactionStatus, messages


class Protocol3(BackendConnection):
    """The protocol, with what PostgreSQL takes beside what its description says.

    A query behind messages that no Sync has ended is as if one had. COPY by an extended query is followed by what may
    follow in extended queries.

    Attributes:
        skips: Whether all is passed over until the next Sync, as after an error in an extended query.
    """

    skips = False
    _is_copy_extended = False

    def _receive_to_state_machine(self, msg: messages.PGMessage) -> None:
        if self.skips and not isinstance(msg, messages.Sync | messages.Terminate):
            return
        phase = self._state_machine.phase
        if isinstance(msg, messages.Query) and phase is ConnectionPhase.EXTENDED_QUERY:
            self._state_machine.receive(messages.Sync())  # type: ignore[arg-type]
            self._state_machine.send(messages.ReadyForQuery(status=TransactionStatus.IDLE))  # type: ignore[arg-type]
        super()._receive_to_state_machine(msg)
        self._after_copy(msg)

    def _send_to_state_machine(self, msg: messages.PGMessage) -> None:
        if isinstance(msg, messages.CopyInResponse | messages.CopyOutResponse):
            self._is_copy_extended = self._state_machine.phase is ConnectionPhase.EXTENDED_QUERY
        super()._send_to_state_machine(msg)
        self._after_copy(msg)

    def _after_copy(self, msg: messages.PGMessage) -> None:
        """Goes on with extended queries behind a COPY by one of them, which the library takes for a simple query's."""
        is_over = isinstance(msg, messages.CopyDone | messages.CopyFail)
        if self._is_copy_extended and is_over:
            machine = self._state_machine
            machine._state = replace(machine._state, phase=ConnectionPhase.EXTENDED_QUERY, in_extended_batch=True)
            self._decoder.phase = machine.phase


def has_hung_up(client: socket.socket) -> bool:
    """Returns whether nobody is at the other end any more."""
    looking = select.poll()
    looking.register(client, getattr(select, "POLLRDHUP", select.POLLHUP))
    return bool(looking.poll(0))
