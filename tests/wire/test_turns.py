"""Clients have their turns: none is held up by another's for long, and writes of a round are sealed together."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter.group_commit import GroupCommit, QueuedWrite
from mz_dagster.catalog import Catalog
from mz_dagster.formalism import GlobalId
from mz_dagster.wire import Server
from mz_dagster.wire.turns import Turns
from tests.wire.conftest import dsn

WAIT_S = 30.0


class Echo:
    """A client whose every byte is answered by the same, once `answer` returns."""

    def __init__(self, answer: Callable[[bytes], QueuedWrite | None] = lambda _: None) -> None:
        self.far, self.client = socket.socketpair()
        self.far.settimeout(WAIT_S)
        self.awaited: QueuedWrite | None = None
        self.ended = threading.Event()
        self._answer, self._said = answer, b""

    def proceed(self) -> bool:
        if self.awaited is None:
            self._said = self.client.recv(1)
            if not self._said:
                return False
            self.awaited = self._answer(self._said)
            if self.awaited is not None:
                return True
        self.awaited = None
        self.client.sendall(self._said)
        return True

    def end(self) -> None:
        self.client.close()
        self.ended.set()

    def ask(self, byte: bytes) -> bytes:
        self.far.sendall(byte)
        return self.far.recv(1)


def until(event: threading.Event) -> Callable[[bytes], None]:
    """Returns what answers once something has happened."""

    def answer(_: bytes) -> None:
        assert event.wait(WAIT_S)

    return answer


@contextmanager
def turns(
    *clients: Echo, seal: Callable[[], None] = lambda: None, tidy: Callable[[], None] = lambda: None
) -> Iterator[Turns]:
    made = Turns(seal, tidy)
    try:
        for one in clients:
            made.add(one)
        yield made
    finally:
        made.close()
        for one in clients:
            one.far.close()
            assert one.ended.wait(WAIT_S)


def test_who_is_slow_holds_nobody_up() -> None:
    goes_on = threading.Event()
    slow = [Echo(until(goes_on)) for _ in range(3)]
    quick = Echo()
    with turns(*slow, quick):
        for one in slow:
            one.far.sendall(b"a")
            assert [quick.ask(byte) for byte in (b"b", b"c")] == [b"b", b"c"]
        slow[0].far.sendall(b"d")  # it is not its turn
        assert quick.ask(b"e") == b"e"
        goes_on.set()
        assert [one.far.recv(1) for one in slow] == [b"a"] * 3
        assert slow[0].far.recv(1) == b"d"
        assert slow[1].ask(b"f") == b"f"


def test_who_waits_to_be_told_needs_no_thread() -> None:
    queued: list[QueuedWrite] = []

    def write(_: bytes) -> QueuedWrite:
        queued.append(QueuedWrite(GlobalId("u1"), None, lambda _: pytest.fail("nobody makes them")))
        return queued[-1]

    def seal() -> None:
        while queued:
            queued.pop().succeed(1)

    goes_on = threading.Event()
    writing, slow = Echo(write), Echo(until(goes_on))
    with turns(writing, slow, seal=seal):
        assert writing.ask(b"a") == b"a"
        writing.far.sendall(b"b")
        slow.far.sendall(b"c")  # another thread leads from here on, and seals
        assert writing.far.recv(1) == b"b"
        goes_on.set()
        assert slow.far.recv(1) == b"c"


def test_who_is_slow_in_the_next_round_holds_no_seal_up() -> None:
    queued: list[QueuedWrite] = []
    written, goes_on, tidied = threading.Event(), threading.Event(), threading.Event()

    def write(_: bytes) -> QueuedWrite:
        queued.append(QueuedWrite(GlobalId("u1"), None, lambda _: pytest.fail("nobody makes them")))
        written.set()
        threading.Event().wait(0.002)  # the other's byte is there when it is looked who has come meanwhile
        return queued[-1]

    def seal() -> None:
        while queued:
            queued.pop().succeed(1)

    def send() -> None:
        assert written.wait(WAIT_S)
        slow.far.sendall(b"b")

    writing, slow = Echo(write), Echo(until(goes_on))
    with turns(writing, slow, seal=seal, tidy=tidied.set), ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send)
        assert writing.ask(b"a") == b"a"
        sent.result()
        goes_on.set()
        assert slow.far.recv(1) == b"b"
        assert tidied.wait(WAIT_S)


def test_it_is_tidied_after_a_seal_that_took_long() -> None:
    queued: list[QueuedWrite] = []
    sealed, tidied = threading.Event(), threading.Event()

    def write(_: bytes) -> QueuedWrite:
        queued.append(QueuedWrite(GlobalId("u1"), None, lambda _: pytest.fail("nobody makes them")))
        return queued[-1]

    def seal() -> None:
        threading.Event().wait(0.1)  # another thread leads meanwhile
        while queued:
            queued.pop().succeed(1)
        threading.Event().wait(0.1)
        sealed.set()

    def tidy() -> None:
        if sealed.is_set():
            tidied.set()

    writing = Echo(write)
    with turns(writing, seal=seal, tidy=tidy):
        assert writing.ask(b"a") == b"a"
        assert tidied.wait(WAIT_S)


def test_who_has_gone_is_not_served_again() -> None:
    """What a thread heard of a client, before another that had served it told that it has gone."""
    client = Echo()
    with turns(client) as made:
        client.far.close()
        assert client.ended.wait(WAIT_S)
        assert not made._begins(client)


def test_it_ends_with_its_clients() -> None:
    client = Echo()
    before = {one for one in threading.enumerate() if one.name.startswith("mz-wire-")}
    with turns(client) as made:
        assert client.ask(b"a") == b"a"
        made.close()
        assert client.ask(b"b") == b"b"
    for one in {one for one in threading.enumerate() if one.name.startswith("mz-wire-")} - before:
        one.join(WAIT_S)
        assert not one.is_alive()


def test_who_closes_it_may_wait_for_what_clients_do_at_their_ends() -> None:
    class Slow(Echo):
        def end(self) -> None:
            threading.Event().wait(0.5)
            super().end()

    client = Slow()
    with turns(client) as made:
        assert client.ask(b"a") == b"a"
        client.far.shutdown(socket.SHUT_RDWR)
        made.close(WAIT_S)
        assert client.ended.is_set()


@contextmanager
def inserting(server: Server, count: int) -> Iterator[list[psycopg.Connection[Any]]]:
    with ExitStack() as opened:
        yield [opened.enter_context(psycopg.connect(dsn(server), autocommit=True)) for _ in range(count)]


def test_what_several_write_at_once_is_sealed_together(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clients, each = 6, 5
    with inserting(server, clients) as connections:
        connections[0].execute("CREATE TABLE a (x integer, y integer)")
        seals: list[int] = []
        seal = Catalog.seal

        def counted(*arguments: Any, **named: Any) -> Any:
            seals.append(1)
            threading.Event().wait(0.02)
            return seal(*arguments, **named)

        monkeypatch.setattr(Catalog, "seal", counted)
        barrier = threading.Barrier(clients)

        def insert(number: int) -> None:
            barrier.wait()
            for n in range(each):
                sql = "INSERT INTO a VALUES (%s, %s)" if number % 2 else f"INSERT INTO a VALUES ({number}, {n})"
                assert (
                    connections[number].execute(sql, (number, n) if number % 2 else None).statusmessage == "INSERT 0 1"
                )

        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(insert, range(clients)))
        assert len(seals) < clients * each
        found = connections[0].execute("SELECT x, y FROM a").fetchall()
        assert sorted(found) == [(x, y) for x in range(clients) for y in range(each)]


@contextmanager
def before_it_is_sealed(server: Server, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> Iterator[None]:
    """Acts once, in the block, when something is queued and before it is sealed."""
    seal, acted = GroupCommit.seal, threading.Event()
    while not server._engine.group_commit.is_idle:  # who seals what came before would seal this as well, at once
        threading.Event().wait(0.001)

    def late(self: GroupCommit) -> Any:
        if self._waiting and not acted.is_set():
            acted.set()
            act()
        return seal(self)

    with monkeypatch.context() as patched:
        patched.setattr(GroupCommit, "seal", late)
        yield
        assert acted.is_set()


@pytest.mark.parametrize("prepare", [False, True])
def test_a_table_that_changes_while_a_write_waits(
    server: Server, monkeypatch: pytest.MonkeyPatch, prepare: bool
) -> None:
    with inserting(server, 2) as (writing, other):
        other.execute("CREATE TABLE b (x integer)")

        def insert(x: int) -> str | None:
            if prepare:
                return writing.execute("INSERT INTO b VALUES (%s)", (x,), prepare=True).statusmessage
            return writing.execute(f"INSERT INTO b VALUES ({x})").statusmessage

        assert insert(0) == "INSERT 0 1"
        with before_it_is_sealed(
            server, monkeypatch, lambda: other.execute("ALTER TABLE b ADD COLUMN y integer DEFAULT 7")
        ):
            assert insert(1) == "INSERT 0 1"
        assert other.execute("SELECT x, y FROM b ORDER BY 1").fetchall() == [(0, 7), (1, 7)]
        with (
            before_it_is_sealed(server, monkeypatch, lambda: other.execute("DROP TABLE b")),
            pytest.raises(psycopg.errors.UndefinedTable),
        ):
            insert(2)
        assert writing.execute("SELECT 1").fetchall() == [(1,)]


def test_a_write_that_waits_can_be_cancelled(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with inserting(server, 1) as (writing,):
        writing.execute("CREATE TABLE c (x integer)")

        def cancel() -> None:
            for one in server.backends():
                one.cancel()

        with (
            before_it_is_sealed(server, monkeypatch, cancel),
            pytest.raises(psycopg.errors.QueryCanceled),
        ):
            writing.execute("INSERT INTO c VALUES (1)")
        assert writing.execute("SELECT count(*) FROM c").fetchall() == [(0,)]
