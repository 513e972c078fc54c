"""Serves clients one after the other in one thread, as long as none takes long.

Threads of Python that work at once wait for each other at every call that lets go of the interpreter: with a thread for
each client most of a second goes to that. So one thread, which leads, waits for whichever clients have sent something
and serves each where it is. Another looks now and then whether the same client is still being served. Then a new thread
leads, and the old one goes on with that client alone, for as long as it takes: what waits for a disk, for a step or for
its client holds nobody up for longer than that look.

A client that is served has no turn of its own before that has ended, whoever does it. One that has only to be told that
what it wrote is durable waits without a thread: writes that clients have sent in one round are sealed together.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

logger = logging.getLogger("mz_dagster.wire")

_LOOK_S = 0.005
"""After how long another thread takes over from one that is kept by a client, in seconds, or up to twice as long."""
_IDLE_LOOKS = 40
"""After how many looks at which nobody was served it is not looked any more, until somebody is."""


class Awaited(Protocol):
    """Something that a client waits for without a thread."""

    def when_over(self, told: Callable[[], None]) -> None:
        """Has `told` called once it is over, by any thread; at once if it is."""
        ...


class Served(Protocol):
    """A client, as far as it has turns.

    Attributes:
        client: The socket.
        awaited: What has to be over before it is served again; None if nothing.
    """

    client: socket.socket

    @property
    def awaited(self) -> Awaited | None:
        """What has to be over before it is served again; None if nothing."""
        ...

    def proceed(self) -> bool:
        """Serves what it has sent; returns whether it goes on."""
        ...

    def end(self) -> None:
        """Ends its connection."""
        ...


class Turns:
    """Gives clients their turns. Safe for use from several threads.

    Args:
        seal: Seals what clients wrote that wait to be told so.
        tidy: Does what is left to do once they have been told.
    """

    def __init__(self, seal: Callable[[], None], tidy: Callable[[], None]) -> None:
        self._seal, self._tidy = seal, tidy
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._woken, self._waking = socket.socketpair()
        for end in (self._woken, self._waking):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        #: Who has not gone; who of them is served or waits for something; who of those has sent more; who waits for
        #: nothing any more.
        self._clients: set[Served] = set()
        self._busy: set[Served] = set()
        self._unheard: set[Served] = set()
        self._resumed: deque[Served] = deque()
        #: The number of the thread that leads, and its identity; whether it serves anybody, and how often that changed.
        self._leader = self._thread = self._moves = 0
        self._serves = False
        #: Whether somebody waits for what it wrote to be sealed, and whether there is something left to do after that.
        self._is_written = self._is_sealed = False
        self._is_closing = False
        self._is_over = threading.Event()
        self._is_unwatched, self._begun = False, threading.Event()
        self._lead_anew()
        threading.Thread(target=self._watch, name="mz-wire-watch", daemon=True).start()

    def add(self, client: Served) -> None:
        """Serves a client from now on, until it goes."""
        with self._lock:
            self._clients.add(client)
            self._selector.register(client.client, selectors.EVENT_READ, client)
        self._wake()

    def begin(self, client: Served, first: Callable[[], None]) -> None:
        """Has a client's turn begin although it has sent nothing, after `first`; nothing if it has one, or has gone."""
        with self._lock:
            if client not in self._clients or client in self._busy:
                return
            self._busy.add(client)
            first()
        self._resume(client)

    def close(self, wait_s: float = 0) -> None:
        """Ends once those clients have gone that there are, and waits for that so many seconds at most."""
        self._is_closing = True
        self._wake()
        self._is_over.wait(wait_s)

    # ---- the thread that leads

    def _lead_anew(self) -> None:
        self._leader += 1
        self._serves = False
        name = f"mz-wire-turns-{self._leader}"
        threading.Thread(target=self._lead, args=[self._leader], name=name, daemon=True).start()

    def _lead(self, number: int) -> None:
        self._thread = threading.get_ident()
        while not self._has_ended():
            while self._resumed:
                client = self._resumed.popleft()
                if not self._leads_after(number, partial(self._serve, client)):
                    return
            # Others set these at any time: each is taken back only where it was seen, right before what it asks for.
            if self._is_sealed:
                self._is_sealed = False
                if not self._leads_after(number, self._tidy):
                    return
            # What was written in one round is sealed after the next, which is of those who have come meanwhile.
            is_due = self._is_written
            for key, _ in self._selector.select(0 if is_due else None):
                if key.data is None:
                    with suppress(BlockingIOError):
                        self._woken.recv(1 << 12)
                elif self._begins(key.data) and not self._leads_after(number, partial(self._serve, key.data)):
                    return
            if is_due:
                self._is_written = False
                leads = self._leads_after(number, self._seal)
                self._is_sealed = True
                if not leads:
                    self._wake()
                    return

    def _has_ended(self) -> bool:
        """Returns whether nobody is to be served any more; then all is let go of."""
        with self._lock:
            if not self._is_closing or self._busy or len(self._selector.get_map()) > 1:
                return False
            self._selector.close()
            self._woken.close()
            self._waking.close()
        self._is_over.set()
        self._begun.set()
        return True

    def _leads_after(self, number: int, work: Callable[[], None]) -> bool:
        """Does what may take long; returns whether this thread still leads when it is done."""
        self._moves += 1
        self._serves = True
        if self._is_unwatched:
            self._is_unwatched = False
            self._begun.set()
        work()
        with self._lock:
            if self._leader != number:
                return False
            self._moves += 1
            self._serves = False
            return True

    def _begins(self, client: Served) -> bool:
        """Returns whether a client's turn begins; one whose last has not ended is not heard until it has.

        One that was heard may have gone since: by the thread that still served it, which does not lead any more.
        """
        with self._lock:
            if client not in self._clients:
                return False
            if client in self._busy:
                self._selector.unregister(client.client)
                self._unheard.add(client)
                return False
            self._busy.add(client)
            return True

    def _serve(self, client: Served) -> None:
        goes_on = False
        try:
            goes_on = client.proceed()
        except Exception:
            logger.exception("a connection failed")
        if goes_on and client.awaited is not None:
            self._is_written = True
            client.awaited.when_over(partial(self._resume, client))
            if threading.get_ident() != self._thread:
                self._wake()
            return
        with self._lock:
            if goes_on:
                self._busy.discard(client)
            is_unheard = client in self._unheard
            self._unheard.discard(client)
            if goes_on and is_unheard:
                self._selector.register(client.client, selectors.EVENT_READ, client)
            if not goes_on:
                self._clients.discard(client)
                if not is_unheard:
                    self._selector.unregister(client.client)
        if not goes_on:
            client.end()
            with self._lock:
                self._busy.discard(client)  # who waits for all to be over waits for this
        if is_unheard or self._is_closing:
            self._wake()

    def _resume(self, client: Served) -> None:
        """Gives a client its turn again, as soon as there is one."""
        self._resumed.append(client)
        if threading.get_ident() != self._thread:
            self._wake()

    def _wake(self) -> None:
        """Has the thread that leads look about; that has been told already if there is no room to tell it."""
        with suppress(BlockingIOError, OSError):
            self._waking.send(b"!")

    # ---- the thread that looks

    def _watch(self) -> None:
        """Has another thread lead whenever the one that does is kept too long."""
        looked_at, idle = 0, 0
        while not self._is_over.wait(_LOOK_S):
            with self._lock:
                if self._serves and self._moves == looked_at:
                    self._lead_anew()
                idle = 0 if self._serves or self._moves != looked_at else idle + 1
                looked_at = self._moves
            if idle >= _IDLE_LOOKS:
                self._begun.clear()
                self._is_unwatched = True
                if not self._serves and not self._is_over.is_set():  # whoever begins from here on tells so
                    self._begun.wait()
                self._is_unwatched, idle = False, 0
