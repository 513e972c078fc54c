"""The gRPC channel of a session: its token, its deadlines and when it gives up.

Owns what pyspark leaves open: by default its client retries a dead server for ten minutes and waits forever
for one that is silent; and it releases what is kept on the server in a finalizer, which runs wherever Python happens
to collect garbage. Invariant: every RPC has a deadline, an RPC to a local server whose process has
ended is not retried at all, and none is made by a finalizer. Imports pyspark, so only `session.py` imports it, when a
session is wanted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.storage.spark.ending import WatchedServer

#: A single unary RPC: settings, analysis of a plan. The analysis of a cold Delta table takes seconds.
UNARY_SECONDS = 120.0

# A result comes in streams that the server ends by itself, 30 s after their begin on an embedded server (see
# launch.py) and 2 min on others, and that the client then reattaches. So a stream that lives much longer is
# a server that hangs, however long the query may take.
EMBEDDED_STREAM_SECONDS = 120.0
REMOTE_STREAM_SECONDS = 600.0

#: How long closing a channel waits for a call of a finalizer, in seconds.
_LAST_SECONDS = 5.0
#: The deadline of such a call, how many of them are made at a time, and how often one is tried.
_RELEASE_SECONDS = 20.0
_RELEASING = 4
_RELEASE_ATTEMPTS = 3
#: pyspark executes plans by a call whose answer is a stream, but for what `CachedRemoteRelation.__del__` releases.
_EXECUTE = "/spark.connect.SparkConnectService/ExecutePlan"

_logger = logging.getLogger(__name__)


class _Details(NamedTuple):
    """Is what gRPC wants to know of a call, with the deadline set."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _Later:
    """Makes the calls of finalizers, a few at a time, in threads of their own.

    A finalizer runs in any thread, between any two instructions: also in one that gRPC has just started and waits for,
    holding the lock that each call takes. A call made there never returns, nor does any other one of that channel.
    """

    def __init__(self) -> None:
        # Its `put` may interrupt itself, which that of other queues may not.
        self._waiting: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=_make, args=(self._waiting, self._is_over), name="mz-release", daemon=True)
            for _ in range(_RELEASING)
        ]
        for thread in self._threads:
            thread.start()

    def call(self, call: Callable[[], Any]) -> None:
        """Has a call made some time later; its outcome is of no interest."""
        self._waiting.put(call)

    def end(self) -> None:
        """Begins no further call, those that wait included; when it returns, none is about to begin."""
        self._finish()
        deadline = SYSTEM_CLOCK.monotonic_ms() + 1000 * _LAST_SECONDS  # after so long they wait for an answer
        for thread in self._threads:
            thread.join(max(0.0, deadline - SYSTEM_CLOCK.monotonic_ms()) / 1000)

    def _finish(self) -> None:
        self._is_over.set()
        for _ in range(_RELEASING):
            self._waiting.put(None)

    def __del__(self) -> None:
        self._finish()


def _make(waiting: SimpleQueue[Callable[[], Any] | None], is_over: threading.Event) -> None:
    while (call := waiting.get()) is not None and not is_over.is_set():
        for attempt in range(1, _RELEASE_ATTEMPTS + 1):
            try:
                call().result()
                break
            except Exception as error:  # the server forgets everything with the session
                _logger.debug("attempt %d: what a finished query kept was not released: %s", attempt, error)
                if is_over.is_set():
                    break
        del call  # it holds the channel


class _Handed:
    """Is the outcome of a call that is made later."""

    def result(self) -> None:
        """Returns nothing."""


class _Calls(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]  # gRPC has no types
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
):
    """Gives every call without a deadline the one of its kind, and lets none begin once the channel is closed.

    What a finalizer asks for is done later, by threads of its own.

    A call that was given up goes on in its thread, and may want to release its results when the session is closed
    already. gRPC 1.85 crashes the whole process where a call begins on a closed channel.
    """

    def __init__(self, unary: float, stream: float, on_call: Callable[[], None] = lambda: None) -> None:
        self._unary = unary
        self._stream = stream
        self._on_call = on_call
        self._later = _Later()
        self.is_closed = False

    def close(self) -> None:
        """Lets no further call begin."""
        self.is_closed = True
        self._later.end()

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        if client_call_details.method in (_EXECUTE, _EXECUTE.encode()):
            details = self._bounded(client_call_details, min(self._unary, _RELEASE_SECONDS))
            self._later.call(lambda: continuation(details, request))
            return _Handed()
        return continuation(self._bounded(client_call_details, self._unary), request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(self._bounded(client_call_details, self._stream), request)

    def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return continuation(self._bounded(client_call_details, self._stream), request_iterator)

    def _bounded(self, details: Any, seconds: float) -> _Details:
        if self.is_closed:
            raise ConnectionError("the Spark session is closed")
        self._on_call()
        return _with_deadline(details, seconds)


class BoundedChannelBuilder(DefaultChannelBuilder):
    """Builds the channel to one server, with a token that is in no URL and deadlines on every call."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        stream_seconds: float,
        unary_seconds: float,
        on_call: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(url)
        if token is not None:
            self.set(self.PARAM_TOKEN, token)
        self._calls = _Calls(unary_seconds, stream_seconds, on_call)
        self.add_interceptor(self._calls)

    def refuse_calls(self) -> None:
        """Lets no further call begin: to be called before the channel is closed."""
        self._calls.close()


class BoundedPolicy(DefaultPolicy):
    """Retries what the default policy retries, but for seconds, and never a server that is known to be dead.

    Attributes:
        is_dead: Returns True if a retry is pointless; must be cheap.
        server: The embedded server that is called, if it is one; errors bear it (see `deadline.lost_spark`).
    """

    def __init__(self, is_dead: Callable[[], bool], server: WatchedServer | None = None) -> None:
        # 0.05 + 0.2 + 0.8 + 3 * 2 s
        super().__init__(max_retries=6, initial_backoff=50, max_backoff=2000, max_server_retry_delay=10_000)
        self.is_dead = is_dead
        self.server = server

    def to_state(self) -> RetryPolicyState:
        """Returns the state of one call's attempts."""
        return _Attempts(self)

    def can_retry(self, e: BaseException) -> bool:
        """Returns whether a call that failed with `e` may be tried again."""
        if self.server is not None:
            with suppress(AttributeError):
                e.mz_server = self.server  # type: ignore[attr-defined]
        return super().can_retry(e) and not self.is_dead()


class _Attempts(RetryPolicyState):
    """Counts one call's attempts, and refuses the one too many before pyspark would warn and then fail."""

    def can_retry(self, exception: BaseException) -> bool:
        limit = self.policy.max_retries
        return (limit is None or self._attempt < limit) and super().can_retry(exception)


def _with_deadline(details: Any, seconds: float) -> _Details:
    return _Details(
        details.method,
        seconds if details.timeout is None else details.timeout,
        details.metadata,
        details.credentials,
        getattr(details, "wait_for_ready", None),
        getattr(details, "compression", None),
    )
