"""One connection of a client: startup, authentication, and queries, until it ends.

    startup     TLS if asked for, SCRAM-SHA-256, the settings that clients read, the key by which to cancel
    simple      each statement of a text, one after the other
    extended    parse: a statement by name; bind: a portal of it with values; execute: some of its rows

Several statements of a simple query are one transaction, and so are those of extended queries up to a Sync
(`pipelines`).

A portal is executed when its rows are first asked for. An error ends what is under way: of an extended query, all
messages until the next Sync. Results leave in portions, as the client takes them: a slow reader slows its own query.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from pygwire import TransactionStatus, messages
from pygwire.exceptions import PygwireError
from scramp import ScramException, ScramMechanism

from mz_dagster.adapter import Connection, Result
from mz_dagster.adapter.cancelling import Cancellation, StatementCancelled
from mz_dagster.adapter.group_commit import QueuedWrite
from mz_dagster.adapter.kept_statements import KeptStatement
from mz_dagster.adapter.prepared_statements import DuplicateStatement, UndefinedStatement
from mz_dagster.adapter.result import Rows, StreamedRows
from mz_dagster.adapter.session_settings import SPELLED
from mz_dagster.adapter.wire_client import ReceivedRows
from mz_dagster.catalog import RoleRow, UnknownObject
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import Error
from mz_dagster.scalars.types import TEXT, Column, ScalarType
from mz_dagster.sql import ClientFormat, CopyFromClient, Insert, Select, Statement
from mz_dagster.sql.parsed_texts import fragments_of
from mz_dagster.wire.answers import (
    ProtocolViolation,
    cell_encoder,
    copy_data,
    data_rows,
    description,
    error_response,
    notice_response,
    spread,
)
from mz_dagster.wire.copying import Encoder, received
from mz_dagster.wire.credentials import set_client_first
from mz_dagster.wire.descriptions import columns_of, described, parameter_ids, types_of
from mz_dagster.wire.errors import (
    CopyEnded,
    InvalidPassword,
    NotPermitted,
    TooManyConnections,
    UndefinedPortal,
    idle_error,
)
from mz_dagster.wire.host import Host
from mz_dagster.wire.pipelines import Pipeline, runs_alone
from mz_dagster.wire.protocol import Protocol3, has_hung_up
from mz_dagster.wire.row_columns import row_messages
from mz_dagster.wire.startup_settings import startup_settings
from mz_dagster.wire.statements import ClientStatement, Portal, Prepared, typed
from mz_dagster.wire.types import parameter_of, parameter_type

logger = logging.getLogger("mz_dagster.wire")

_RECEIVED = 1 << 13
"""How many bytes are read at once; who waits for a message holds room for so many."""
_LONGEST_STARTUP = 1 << 14
"""How many bytes somebody may send before having authenticated."""
_LONGEST_MESSAGE = 1 << 28
"""How long a message may be."""
_PORTION = 1 << 16
"""How many bytes of a result are collected before they are sent."""
_LISTEN_S = 1.0
"""How often it is looked whether who listens to a subscription is still there, in seconds."""
_PARAMETERS = (
    *("server_version", "server_encoding", "client_encoding", "datestyle", "timezone", "integer_datetimes"),
    *("intervalstyle", "standard_conforming_strings", "application_name", "is_superuser", "session_authorization"),
)

#: What a client is told of its isolation level, which is one that PostgreSQL knows; the strongest serves it.
_LEVEL = "repeatable read"


class _ClientGone(Exception):
    """Says that the client has gone."""


@dataclass(slots=True, eq=False)
class Backend:
    """Serves one connection: when it begins, and whenever it is its turn (`turns`).

    Attributes:
        client: The socket.
        server: Who may connect, and to what.
        process_id: What the client knows it by.
        secret: What the client shows to cancel its queries.
    """

    client: socket.socket
    server: Host[Backend]
    process_id: int
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(4), repr=False)
    cancellation: Cancellation = field(default_factory=Cancellation, repr=False)
    _protocol: Protocol3 = field(default_factory=Protocol3, repr=False)
    _out: bytearray = field(default_factory=bytearray, repr=False)
    _connection: Connection | None = None
    _role: RoleRow | None = None
    _prepared: dict[str, Prepared] = field(default_factory=dict)
    _portals: dict[str, Portal] = field(default_factory=dict)
    _reported: dict[str, str] = field(default_factory=dict, repr=False)
    _received: Pipeline = field(init=False, repr=False)
    #: What is to be told of a write that is queued, once it is over.
    _untold: Callable[[], None] | None = field(default=None, repr=False)
    #: When what is executed was begun, by the monotonic clock.
    _begun_ms: float = field(default=0.0, init=False, repr=False)
    awaited: QueuedWrite | None = field(default=None, init=False, repr=False)
    _may_time_out: bool = field(default=False, init=False, repr=False)
    _is_timed_out: bool = field(default=False, init=False, repr=False)

    @property
    def address(self) -> str:
        """Where the client is; see `WireClient`."""
        try:
            return str(self.client.getpeername()[0])
        except OSError:
            return "gone"

    # ---- from beginning to end

    def start(self) -> bool:
        """Returns whether the client is to be served: it has authenticated, and a session is open."""
        with self._ending():
            self.client.settimeout(self.server.authentication_s)
            if self._start():
                self._flush()
                self.client.settimeout(None)
                self._received = Pipeline(self._messages(_LONGEST_MESSAGE, pauses=True), self._asks_for_rows)
                self._note_idle()
                return next(self._received) is None
        return False

    def time_out(self) -> None:
        """Has the turn that follows be the last one, as the client was idle for too long; it has no other meanwhile."""
        self._is_timed_out = True

    def proceed(self) -> bool:
        """Serves what the client has sent; returns whether it goes on; see `Served`."""
        goes_on = not self._has_timed_out() and self._proceed()
        if goes_on and self.awaited is None:
            self._note_idle()
        return goes_on

    def _note_idle(self) -> None:
        for_ms = self.connection.idle_timeout_ms
        if for_ms or self._may_time_out:
            self._may_time_out = bool(for_ms)
            self.server.idles(self, for_ms)

    def _has_timed_out(self) -> bool:
        if self._is_timed_out:
            self._fatal(idle_error(in_transaction=self.connection.transaction_status != "I"))
        return self._is_timed_out

    def _proceed(self) -> bool:
        with self._ending():
            if self._untold is not None:
                tell, self._untold, self.awaited = self._untold, None, None
                tell()
            for message in self._received:
                if message is None:
                    return True
                if isinstance(message, messages.Terminate):
                    return False
                self._handle(message)
                if self.awaited is not None:
                    return True
        return False

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """Goes on behind its block, if that ends the connection."""
        try:
            yield
        except (_ClientGone, TimeoutError, ssl.SSLError, ConnectionError, OSError) as error:
            logger.debug("connection %d ended: %s", self.process_id, error)
        except PygwireError as error:
            self._fatal(ProtocolViolation(f"the protocol was violated: {error}"))

    def cancel(self, why: str = "canceling statement due to user request") -> None:
        """Cancels what the client executes, if it does."""
        awaited = self.awaited
        if not self.cancellation.cancel(why) and awaited is not None:
            self.connection.engine.group_commit.withdraw(awaited, StatementCancelled(why, hint="Nothing was written."))

    def terminate(self) -> None:
        """Ends the connection, and what the client executes."""
        self.cancel("terminating connection due to administrator command")
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """Tells the client that there are too many."""
        try:
            self.client.settimeout(self.server.authentication_s)
            for message in self._messages(_LONGEST_STARTUP):
                if isinstance(message, messages.SSLRequest):
                    self._answer_tls()
                elif isinstance(message, messages.StartupMessage):
                    self._fatal(TooManyConnections("sorry, too many clients already", hint="Close some."))
                    return
        except (_ClientGone, TimeoutError, ssl.SSLError, OSError, PygwireError) as error:
            logger.debug("connection %d ended: %s", self.process_id, error)
        finally:
            self.end()

    def end(self) -> None:
        """Ends the connection."""
        self.server.ended(self.process_id)
        if self._connection is not None:
            with contextlib.suppress(Error):
                self._connection.close()
        with contextlib.suppress(OSError):
            self.client.close()

    def _messages(self, most: int, *, pauses: bool = False) -> Iterator[Any]:
        """Yields what the client sends, and sends before it waits what it is to receive.

        Args:
            most: How long a message may be.
            pauses: Whether to yield None before it waits.
        """
        while True:
            self._flush()
            if pauses and not (isinstance(self.client, ssl.SSLSocket) and self.client.pending()):
                yield None
            data = self.client.recv(_RECEIVED)
            if not data:
                raise _ClientGone("the client has gone")
            try:
                yield from self._protocol.receive(data)
            except (struct.error, IndexError, ValueError, OverflowError) as error:  # of a body that is cut off
                raise PygwireError(f"invalid message format: {error}") from error
            if self._protocol._decoder.buffered > most:
                raise PygwireError(f"a message of more than {most} bytes")

    def _send(self, message: messages.PGMessage) -> None:
        self._out += self._protocol.send(message)
        if len(self._out) >= _PORTION:
            self._flush()

    def _flush(self) -> None:
        if self._out:
            data, self._out = bytes(self._out), bytearray()
            self.client.sendall(data)

    # ---- startup

    def _start(self) -> bool:
        """Returns whether the client may go on: it has authenticated, and a session is open."""
        received = self._messages(_LONGEST_STARTUP)
        for message in received:
            match message:
                case messages.SSLRequest():
                    self._answer_tls()
                    received = self._messages(_LONGEST_STARTUP)
                    return self._start()
                case messages.GSSEncRequest():
                    self._send(messages.GSSResponse(accepted=False))
                case messages.CancelRequest(process_id=id, secret_key=secret):
                    self.server.cancel(id, secret)
                    return False
                case messages.StartupMessage(params=params):
                    return self._authenticated(params, received) and self._opened(params)
                case _:
                    raise PygwireError(f"{type(message).__name__} at the start")
        return False

    def _answer_tls(self) -> None:
        context = self.server.tls
        self._send(messages.SSLResponse(accepted=context is not None))
        self._flush()
        if context is not None:
            self.client = context.wrap_socket(self.client, server_side=True)

    def _authenticated(self, params: dict[str, str], received: Iterator[Any]) -> bool:
        if self.server.requires_tls and not isinstance(self.client, ssl.SSLSocket):
            self._fatal(InvalidPassword("this server takes connections with TLS only", hint="Set sslmode=require."))
            return False
        user = params.get("user", "")
        try:
            self._role = self.server.role(user)
        except Error as error:
            self._fatal(error)
            return False
        verifier = self.server.credentials.verifier(user, self._role)
        scram = ScramMechanism().make_server(lambda _: verifier)
        self._send(messages.AuthenticationSASL(mechanisms=["SCRAM-SHA-256"]))
        try:
            first = next(received)
            if not isinstance(first, messages.SASLInitialResponse) or first.mechanism != "SCRAM-SHA-256":
                raise PygwireError("a client that does not speak SCRAM-SHA-256")
            set_client_first(scram, bytes(first.data or b"").decode())
            self._send(messages.AuthenticationSASLContinue(data=scram.get_server_first().encode()))
            last = next(received)
            if not isinstance(last, messages.SASLResponse):
                raise PygwireError("a client that ends the authentication")
            scram.set_client_final(bytes(last.data).decode())
        except (ScramException, UnicodeDecodeError):
            self._fatal(
                InvalidPassword(
                    f'password authentication failed for user "{user}"',
                    hint="The owner's are in the file that the server names when it starts; others have a role's.",
                )
            )
            return False
        if self._role is not None and not self._role.can_login:
            self._fatal(NotPermitted(f'role "{user}" is not permitted to log in', hint="ALTER ROLE ... LOGIN."))
            return False
        self._send(messages.AuthenticationSASLFinal(data=scram.get_server_final().encode()))
        self._send(messages.AuthenticationOk())
        return True

    def _opened(self, params: dict[str, str]) -> bool:
        try:
            self._connection = self.server.connect(self._role)
            self._connection.serve(self)
            self._connection.begin_with("default_transaction_isolation", _LEVEL)
            for name, value in startup_settings(params):
                self._connection.begin_with(name, value)
        except Error as error:
            self._fatal(error)
            return False
        superuser = "on" if self._role is None else "off"
        self._tell_parameters({"is_superuser": superuser, "session_authorization": params["user"]})
        self._send(messages.BackendKeyData(process_id=self.process_id, secret_key=self.secret))
        self._ready()
        return True

    def _fatal(self, error: Error) -> None:
        """Tells an error that ends the connection."""
        with contextlib.suppress(PygwireError, OSError):
            self._send(error_response(error, "", severity="FATAL"))
            self._flush()

    # ---- queries

    @property
    def connection(self) -> Connection:
        """The client's session."""
        assert self._connection is not None, "the client has authenticated"
        return self._connection

    def _tell_parameters(self, more: Mapping[str, str] = MappingProxyType({})) -> None:
        """Tells the client those settings that it follows, as far as it does not know them."""
        settings = {**self.connection.settings(), **more}
        for name in _PARAMETERS:
            if name in settings and settings[name] != self._reported.get(name):
                self._reported[name] = settings[name]
                self._send(messages.ParameterStatus(name=SPELLED.get(name, name), value=settings[name]))

    def _ready(self) -> None:
        self._tell_parameters()
        self._send(messages.ReadyForQuery(status=TransactionStatus(self.connection.transaction_status)))

    def _handle(self, message: messages.PGMessage) -> None:
        if isinstance(message, messages.Sync):
            self._protocol.skips = False
            try:
                self._end_transaction()
            except Error as error:
                self._send(error_response(error, ""))
            if self.connection.transaction_status == "I":
                for name in [*self._portals]:
                    self._close_portal(name)
            self._ready()
            return
        if self._protocol.skips or isinstance(message, messages.CopyData | messages.CopyDone | messages.CopyFail):
            return
        if isinstance(message, messages.Query):
            self._query(message.query_string)
            return
        self._guarded(self._extended, message)

    def _guarded(self, carry_out: Callable[[Any], None], message: Any) -> None:
        try:
            carry_out(message)
        except Error as error:
            self._protocol.skips = True
            self._tell_failure(error, getattr(message, "query", ""))

    def _tell_failure(self, error: Error, text: str) -> None:
        """Tells an error, by which the transaction fails that is open."""
        self.connection.fail()
        self._send(error_response(error, text))

    def _end_transaction(self) -> None:
        """Ends the transaction that no BEGIN has begun, if there is one: commits it, or rolls it back if it has failed.

        Raises:
            Error: It cannot commit; nothing was written.
        """
        if not self.connection.is_in_implicit_block:
            return
        try:
            self.cancellation.execute(self.connection.end_implicitly, self.connection.statement_timeout_ms)
        except Error:
            self.connection.fail()
            self.connection.end_implicitly()
            raise
        finally:
            for notice in self.connection.notices():
                self._send(notice_response(notice))

    def _query(self, text: str, *, queues: bool = True) -> None:
        """Answers a simple query: each statement's result, up to the first error."""
        cursor = self.connection.cursor()
        queues = queues and self._may_queue
        number = 0
        try:
            for result in self._executed(lambda: cursor.results(text, queues=queues, as_one=True)):
                number += 1
                if result.queued is not None:
                    self._wait_for(result.queued, partial(self._query_sealed, text, result))
                    return
                self._answer(result, is_last=number == len(fragments_of(text)))
            if not number:
                self._end_transaction()
                self._send(messages.EmptyQueryResponse())
        except Error as error:
            self._tell_failure(error, text)
            self._end_transaction()
        self._ready()

    def _query_sealed(self, text: str, result: Result) -> None:
        """Answers a simple query whose one statement wrote, now that this is over."""
        try:
            self._answer(self.connection.acknowledged(result), is_last=True)
        except UnknownObject:
            self._query(text, queues=False)
            return
        except Error as error:
            self._send(error_response(error, text))
        self._ready()

    def _answer(self, result: Result, *, is_last: bool) -> None:
        """Sends what a statement of a simple query returned; of the last only once that is committed."""
        tag = result.tag
        if result.sent_as is not None:
            tag = self._copy_out(result, result.sent_as)
        else:
            if result.columns:
                self._send(description(result.columns, ()))
                self._send_result(result.columns, result.rows, ())
            if result.stream is not None:
                tag = f"{tag} {self._send_stream(result, partial(self._send_rows, result.columns))}"
        if is_last:
            self._end_transaction()
        self._send(messages.CommandComplete(tag=tag))

    @property
    def _may_queue(self) -> bool:
        """Whether what is written may be sealed later than its statement ends, by a thread that has no timeout."""
        return not self.connection.statement_timeout_ms

    def _wait_for(self, awaited: QueuedWrite, tell: Callable[[], None]) -> None:
        """Has the client wait, without a thread, until something is over."""
        self._untold, self.awaited = tell, awaited

    def _executed(self, results: Callable[[], Iterator[Result]]) -> Iterator[Result]:
        """Yields results, each of which can be cancelled while it is computed, but not while it is sent."""
        found = results()
        while True:
            self._begun_ms = SYSTEM_CLOCK.monotonic_ms()
            try:
                result = self.cancellation.execute(partial(next, found, None), self.connection.statement_timeout_ms)
            finally:
                for notice in self.connection.notices():
                    self._send(notice_response(notice))
            if result is None:
                return
            yield result

    def _extended(self, message: Any) -> None:
        match message:
            case messages.Parse():
                self._parse(message)
                self._send(messages.ParseComplete())
            case messages.Bind():
                bound = self._bound(message)
                self._close_portal(message.portal)
                self._portals[message.portal] = bound
                self._send(messages.BindComplete())
            case messages.Describe(kind="S", name=name):
                prepared = self._statement(name)
                columns, types = described(self.connection, prepared)
                self._send(messages.ParameterDescription(type_oids=parameter_ids(prepared, types)))
                self._send(description(columns, ()) if columns else messages.NoData())
            case messages.Describe(name=name) if self._is_cursor(name):
                columns = self.connection.cursor_columns(name)
                self._send(description(columns, ()) if columns else messages.NoData())
            case messages.Describe(name=name):
                portal = self._portal(name)
                columns = columns_of(self.connection, portal)
                self._send(description(columns, portal.formats) if columns else messages.NoData())
            case messages.Execute(portal=name, max_rows=most):
                self._execute(self._portal(name), most)
            case messages.Close(kind="S", name=name):
                self.connection.forget_prepared(name)
                self._prepared.pop(name, None)
                self._send(messages.CloseComplete())
            case messages.Close(name=name):
                self._close_portal(name)
                self._send(messages.CloseComplete())
            case messages.Flush():
                self._flush()
            case _:
                raise ProtocolViolation(f"{type(message).__name__} is not supported")

    def _parse(self, message: messages.Parse) -> None:
        if message.statement and self._known(message.statement) is not None:
            raise DuplicateStatement.named(message.statement)
        if not message.statement:
            self._prepared.pop("", None)
        statement = ClientStatement.of(message.query)
        types = [parameter_type(id) for id in message.param_types]
        types += [None] * (statement.count - len(types))
        parsed = None if statement.is_empty else self.connection.parsed(statement.text)
        kept_ms, given = SYSTEM_CLOCK.now_ms(), message.param_types
        self._prepared[message.statement] = Prepared(statement, types, parsed, message.query, kept_ms, given_ids=given)

    def _bound(self, message: messages.Bind) -> Portal:
        prepared = self._statement(message.statement)
        count = len(message.param_values)
        if count != len(prepared.types):
            raise ProtocolViolation(
                f"bind message supplies {count} parameters, but prepared statement requires {len(prepared.types)}"
            )
        formats = spread(message.param_formats, count, "parameters")
        found = prepared.types
        if any(formats) and any(one is None for one in found):
            _, found = described(self.connection, prepared)
        values = [
            None if data is None else parameter_of(data, type_ or TEXT, binary=format == 1)
            for data, type_, format in zip(message.param_values, found, formats, strict=True)
        ]
        types = types_of(self.connection, prepared) if isinstance(prepared.parsed, Select | Insert) else prepared.types
        given = [typed(one, type_) for one, type_ in zip(values, types, strict=True)]
        return Portal(prepared, given, message.result_formats)

    def _execute(self, portal: Portal, most: int, *, queues: bool = True) -> None:
        if portal.prepared.statement.is_empty:
            self._send(messages.EmptyQueryResponse())
            return
        if portal.result is None:
            values = [portal.values[place] for place in portal.prepared.statement.places]
            cursor, text, parsed = self.connection.cursor(), portal.prepared.statement.text, portal.prepared.parsed
            if not self._received.ends and parsed is not None and not runs_alone(parsed):
                self.connection.begin_implicitly(parsed)
            queues = queues and self._may_queue
            (portal.result,) = self._executed(lambda: cursor.results(text, values, queues=queues))
        else:
            self._begun_ms = SYSTEM_CLOCK.monotonic_ms()
        result = portal.result
        if result.queued is not None:
            sealed = partial(self._execute_sealed, portal, result)
            self._wait_for(result.queued, partial(self._guarded, sealed, most))
            return
        if result.sent_as is not None:
            self._send(messages.CommandComplete(tag=self._copy_out(result, result.sent_as)))
            return
        if result.stream is not None:
            self._execute_stream(portal, result, most)
            return
        end = min(len(result.rows), portal.sent + most) if most > 0 else len(result.rows)
        if result.columns:
            self._send_result(result.columns, result.rows[portal.sent : end], portal.formats)
            portal.sent = end
        if end < len(result.rows):
            self._send(messages.PortalSuspended())
        else:
            self._send(messages.CommandComplete(tag=result.tag))

    def _execute_sealed(self, portal: Portal, result: Result, most: int) -> None:
        """Goes on with a portal whose statement wrote, now that this is over."""
        try:
            portal.result = self.connection.acknowledged(result)
        except UnknownObject:
            portal.result = None
        self._execute(portal, most, queues=False)

    def _execute_stream(self, portal: Portal, result: Result, most: int) -> None:
        """Sends the rows of a subscription as they come: all until it ends, or so many."""
        end = portal.sent + most if most > 0 else None
        with self.cancellation.going_on():
            while end is None or portal.sent < end:
                if not portal.come:
                    found = self._next_rows(result)
                    if found is None:
                        self._send(messages.CommandComplete(tag=f"{result.tag} {portal.sent}"))
                        return
                    portal.come.extend(found)
                count = len(portal.come) if end is None else min(len(portal.come), end - portal.sent)
                self._send_rows(result.columns, [portal.come.popleft() for _ in range(count)], portal.formats)
                self._flush()
                portal.sent += count
        self._send(messages.PortalSuspended())

    def _next_rows(self, result: Result) -> Rows | None:
        """Returns the next rows of a subscription, which can be cancelled meanwhile; None at its end.

        Raises:
            _ClientGone: Nobody is there to get them.
        """
        assert result.stream is not None
        while True:
            found = self.cancellation.execute(partial(result.stream.next_rows, _LISTEN_S))
            if found is None or found:
                return found
            self._flush()
            if has_hung_up(self.client):
                raise _ClientGone("the client has gone")

    def _send_stream(self, result: Result, send: Callable[[Rows], None]) -> int:
        """Sends the rows of a subscription as they come; returns how many there were."""
        assert result.stream is not None
        sent = 0
        try:
            with self.cancellation.going_on():
                while (rows := self._next_rows(result)) is not None:
                    send(rows)
                    self._flush()
                    sent += len(rows)
        finally:
            result.stream.close()
        return sent

    # ---- COPY

    def _copy_out(self, result: Result, format: ClientFormat) -> str:
        """Sends the rows of COPY TO STDOUT; returns what is to be told of them."""
        encoder = Encoder(format, result.columns, ZoneInfo(self.connection.zone))
        binary = int(format.kind == "binary")
        self._send(messages.CopyOutResponse(overall_format=binary, col_formats=[binary] * len(result.columns)))

        def send(rows: Rows) -> None:
            self._send_made(copy_data(map(encoder.row, rows)))

        if header := encoder.header():
            self._send(messages.CopyData(data=header))
        for some in self._portions(result.rows):
            send(some)
        count = len(result.rows) + (0 if result.stream is None else self._send_stream(result, send))
        if end := encoder.end():
            self._send(messages.CopyData(data=end))
        self._send(messages.CopyDone())
        return f"COPY {count}"

    def receive(self, format: ClientFormat, columns: Sequence[Column]) -> ReceivedRows:
        """Asks the client for the rows of COPY FROM STDIN; see `WireClient`."""
        binary = int(format.kind == "binary")
        self._send(messages.CopyInResponse(overall_format=binary, col_formats=[binary] * len(columns)))
        self._flush()
        data = bytearray()
        self._received.forget_sync()
        for message in self._received:
            match message:
                case messages.CopyData():
                    data += message.data
                case messages.CopyDone():
                    text = bytes(data)
                    return ReceivedRows.of(text, format, received(text, format, columns))
                case messages.CopyFail(error_message=why):
                    raise CopyEnded(f"COPY from stdin failed: {why}", hint="Nothing was written.")
                case messages.Terminate():
                    break
                case _:  # none yet
                    pass
        raise _ClientGone("the client has gone")

    def _portions(self, rows: Rows) -> Iterator[Rows]:
        """Yields rows as they are made, between which and while which a statement can be cancelled.

        Raises:
            StatementCancelled: It was, or has taken too long, the time included that the client takes.
        """
        if not isinstance(rows, StreamedRows):
            yield rows
            return
        yield from self._as_made(rows.portions())

    def _as_made(self, portions: Iterator[Any]) -> Iterator[Any]:
        """Yields what is made step by step; raises as `_portions`."""
        timeout_ms = self.connection.statement_timeout_ms
        with self.cancellation.going_on():
            while True:
                left_ms = int(self._begun_ms + timeout_ms - SYSTEM_CLOCK.monotonic_ms()) if timeout_ms else 0
                if timeout_ms and left_ms <= 0:
                    raise StatementCancelled("canceling statement due to statement timeout", hint="Ask for fewer rows.")
                some = self.cancellation.execute(partial(next, portions, None), left_ms)
                if some is None:
                    return
                yield some

    def _send_result(self, columns: Sequence[Column], rows: Rows, formats: Sequence[int]) -> None:
        stored = rows.stored if isinstance(rows, StreamedRows) else None
        if stored is None:
            for some in self._portions(rows):
                self._send_rows(columns, some, formats)
            return
        formats = spread(formats, len(columns), "columns")
        made = row_messages(stored, columns, formats, ZoneInfo(self.connection.zone))
        self._send_made(self._as_made(made))

    def _send_rows(self, columns: Sequence[Column], rows: Rows, formats: Sequence[int] = ()) -> None:
        formats = spread(formats, len(columns), "columns")
        zone = ZoneInfo(self.connection.zone)
        encoders = [cell_encoder(one.type, form == 1, zone) for one, form in zip(columns, formats, strict=True)]
        self._send_made(data_rows(rows, encoders))

    def _send_made(self, sent: Iterator[bytes]) -> None:
        """Sends messages of which any number may come where they do."""
        for one in sent:
            self._out += one
            if len(self._out) >= _PORTION:
                self._flush()

    def forget_prepared(self, name: str | None) -> bool:
        """Forgets a prepared statement, or all of them; see `WireClient`."""
        if name is not None:
            return self._prepared.pop(name, None) is not None
        self._prepared.clear()
        return True

    def _statement(self, name: str) -> Prepared:
        found = self._known(name)
        if found is None:
            raise UndefinedStatement.named(name)
        return found

    def _known(self, name: str) -> Prepared | None:
        """Returns what is prepared under a name, by the protocol or by SQL."""
        by_sql = None if name in self._prepared else self.connection.prepared_statement(name)
        if by_sql is None:
            return self._prepared.get(name)
        text = ClientStatement(by_sql.text, by_sql.places, len(by_sql.types))
        return Prepared(text, [*by_sql.types], by_sql.statement, by_sql.source, by_sql.kept_ms)

    def prepared_statement(
        self, name: str
    ) -> tuple[Statement, str, tuple[int, ...], Sequence[ScalarType | None]] | None:
        """Returns a statement that the protocol has prepared; see `WireClient`."""
        found = self._prepared.get(name)
        if found is None or found.parsed is None:
            return None
        return found.parsed, found.statement.text, found.statement.places, found.types

    def kept_statements(self) -> Iterator[KeptStatement]:
        """Yields the statements that the protocol has prepared; see `WireClient`."""
        for name, one in self._prepared.items():
            if name:
                types = one.types if one.found is None else one.found[1]
                yield KeptStatement(name, one.source, one.kept_ms, types, from_sql=False)

    def _is_cursor(self, name: str) -> bool:
        """Returns whether a name is that of a cursor that SQL declared, which is a portal to PostgreSQL's clients."""
        return name not in self._portals and self.connection.cursor_columns(name) is not None

    def _close_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None and portal.result is not None and portal.result.stream is not None:
            portal.result.stream.close()

    def _asks_for_rows(self, execute: messages.Execute) -> bool:
        portal = self._portals.get(execute.portal)
        return portal is not None and isinstance(portal.prepared.parsed, CopyFromClient)

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise UndefinedPortal(f'portal "{name}" does not exist')
        return self._portals[name]
