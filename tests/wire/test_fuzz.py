"""Damaged messages: whatever a client sends, it is answered or its connection ends, and nobody gets in by it.

Bytes of whole conversations are mutated: bits, lengths, kinds and order of messages. The client then sends no more, so
the server has no reason to wait: it answers what there was and closes. Each time a fresh client is served as before.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.catalog import RoleRow
from mz_dagster.wire import Server
from tests.wire.conftest import dsn

#: After how long a connection that is not closed hangs, in seconds.
_DEADLINE_S = 30.0
#: What a client gets that has authenticated: AuthenticationOk.
_LET_IN = b"R" + struct.pack("!ii", 8, 0)


def _message(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return kind + struct.pack("!i", 4 + len(body)) + body


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


def _numbers(*numbers: int) -> bytes:
    return struct.pack(f"!{len(numbers)}h", *numbers)


def _ids(*numbers: int) -> bytes:
    return struct.pack(f"!{len(numbers)}i", *numbers)


def _query(text: str) -> bytes:
    return _message(b"Q", _text(text))


_SYNC, _FLUSH = _message(b"S"), _message(b"H")
#: What clients say once they are in.
CONVERSATIONS: tuple[tuple[bytes, ...], ...] = (
    (_query("SELECT 1, 'a', NULL::numeric"), _query("SELECT a FROM t ORDER BY a; SHOW timezone"), _query("")),
    (_query("BEGIN"), _query("SELECT a FROM t"), _query("SAVEPOINT s"), _query("SELECT 1/0"), _query("ROLLBACK")),
    (
        _message(b"P", _text("s"), _text("SELECT $1::int + a, $2::text FROM t"), _numbers(2), _ids(23, 25)),
        _message(b"D", b"S", _text("s")),
        _message(b"B", _text("p"), _text("s"), _numbers(2, 1, 0, 2), _ids(4, 7), _ids(2), b"xy", _numbers(1, 1)),
        _message(b"D", b"P", _text("p")),
        _message(b"E", _text("p"), _ids(1)),
        _FLUSH,
        _message(b"E", _text("p"), _ids(0)),
        _message(b"C", b"P", _text("p")),
        _message(b"C", b"S", _text("s")),
        _SYNC,
    ),
    (
        _query("COPY t FROM STDIN"),
        _message(b"d", b"1\tx\n2\ty\n"),
        _message(b"d", b"\\.\n"),
        _message(b"f", _text("changed my mind")),
        _query("COPY t TO STDOUT (FORMAT binary)"),
        _query("COPY t FROM STDIN (FORMAT csv)"),
        _message(b"d", b'3,"a\nb"\n'),
        _message(b"f", _text("")),
    ),
    (
        _message(b"P", _text(""), _text("DECLARE c CURSOR FOR SELECT a FROM t"), _numbers(0)),
        _message(b"B", _text(""), _text(""), _numbers(0), _numbers(0), _numbers(0)),
        _message(b"E", _text(""), _ids(0)),
        _SYNC,
        _query("FETCH 1 FROM c"),
        _message(b"F", _ids(1), _numbers(0, 0, 0)),
        _message(b"X"),
    ),
)  # fmt: skip
#: What they say before.
STARTUPS: tuple[tuple[bytes, ...], ...] = tuple(
    (
        *([struct.pack("!ii", 8, request)] if request else []),
        struct.pack("!ii", 8 + len(parameters), 196608) + parameters,
        _message(b"p", _text("SCRAM-SHA-256"), _ids(len(first)), first),
        _message(b"p", b"c=biws,r=abcd,p=" + b"A" * 44),
        _query("SELECT 1"),
    )
    for request in (0, 80877103, 80877104)
    for parameters in (b"user\0mz\0database\0shop\0\0",)
    for first in (b"n,,n=,r=abcdefgh", b"y,,n=mz,r=abcdefgh", b"p=tls-unique,,n=mz,r=a")
)


def mutated(conversation: tuple[bytes, ...], chance: random.Random) -> bytes:
    """Returns the bytes of a conversation with some messages damaged, missing, doubled, or in another order."""
    sent = [bytearray(one) for one in conversation]
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(sent))
        one = sent[place]
        match chance.randrange(8):
            case 0:
                one[chance.randrange(len(one))] ^= 1 << chance.randrange(8)
            case 1:
                one[chance.randrange(len(one))] = chance.randrange(256)
            case 2:
                del one[chance.randrange(len(one)) :]
                one += b"\0" * (not one)
            case 3:
                at = chance.randrange(len(one) + 1)
                one[at:at] = chance.randbytes(chance.randint(1, 9))
            case 4 if len(one) >= 5:
                one[1:5] = struct.pack("!i", chance.choice((-1, 0, 3, 4, 5, 255, 70_000, 2**30 + 9, 2**31 - 1)))
            case 5:
                sent.insert(chance.randrange(len(sent) + 1), bytearray(one))
            case 6 if len(sent) > 1:
                del sent[place]
            case _:
                chance.shuffle(sent)
    return b"".join(sent)


def _said_to(client: socket.socket, sent: bytes) -> bytes:
    """Returns all that the server answers to what is the last that a client sends."""
    client.settimeout(_DEADLINE_S)
    answer = bytearray()
    with suppress(ConnectionError):  # who is not listened to any more may be told so
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while data := client.recv(65536):
            answer += data
    return bytes(answer)


@contextmanager
def _let_in(server: Server) -> Iterator[socket.socket]:
    """Yields the socket of a client that has authenticated."""
    with (
        psycopg.connect(dsn(server), autocommit=True) as connection,
        socket.socket(fileno=os.dup(connection.pgconn.socket)) as client,
    ):
        yield client


def _own(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Returns what the project has logged; others may log what is left of tests before."""
    return [one for one in caplog.records if one.name.startswith(("mz_dagster", "asyncio"))]


def _fuzz(server: Server, seed: int, count: int, caplog: pytest.LogCaptureFixture) -> int:
    """Sends at least so many messages by clients that are let in; returns how many."""
    chance, sent = random.Random(seed), 0
    while sent < count:
        several = [chance.choice(CONVERSATIONS) for _ in range(4)]
        said = b"".join(mutated(one, chance) for one in several)
        with caplog.at_level(logging.WARNING, "mz_dagster.wire"), _let_in(server) as client:
            _said_to(client, said)
        assert not _own(caplog), (seed, said, caplog.text)
        sent += sum(map(len, several))
    with psycopg.connect(dsn(server)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    return sent


def _fuzz_startup(server: Server, seed: int, count: int, caplog: pytest.LogCaptureFixture) -> None:
    """Sends so many messages by clients that are not, and none of which gets in."""
    chance, sent = random.Random(seed), 0
    while sent < count:
        conversation = chance.choice(STARTUPS)
        said = mutated(conversation, chance)
        with (
            caplog.at_level(logging.WARNING, "mz_dagster.wire"),
            socket.create_connection(("127.0.0.1", server.port), _DEADLINE_S) as client,
        ):
            assert _LET_IN not in _said_to(client, said), (seed, said)
        assert not _own(caplog), (seed, said, caplog.text)
        sent += len(conversation)


@pytest.fixture
def table(served: Server) -> Server:
    with psycopg.connect(dsn(served), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (a integer, b text)")
    return served


def test_damaged_messages_end_their_own_connection_alone(table: Server, caplog: pytest.LogCaptureFixture) -> None:
    _fuzz(table, 1, 1_000, caplog)


def test_nobody_gets_in_by_damaged_messages(
    served: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[None] = []

    def connect(role: RoleRow | None) -> Connection:
        opened.append(None)
        raise AssertionError("nobody has authenticated")

    monkeypatch.setattr(served, "connect", connect)
    _fuzz_startup(served, 1, 1_000, caplog)
    assert not opened


def test_after_an_error_all_is_skipped_until_the_next_sync(table: Server) -> None:
    """A simple query, too, as in PostgreSQL."""
    wrong = _message(b"D", b"S", _text("no such statement"))
    with _let_in(table) as client:
        answer = _said_to(client, wrong + _query("INSERT INTO t VALUES (7)") + _SYNC + _query("SELECT 1"))
    kinds = []
    while answer:
        kinds.append(answer[:1])
        answer = answer[1 + struct.unpack("!i", answer[1:5])[0] :]
    assert b"".join(kinds) == b"EZTDCZ"


@pytest.mark.deep
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(2, 7))
def test_damaged_messages_at_length(table: Server, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    assert _fuzz(table, seed, 15_000, caplog) >= 15_000
    _fuzz_startup(table, seed, 5_000, caplog)
