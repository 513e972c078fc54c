"""The gRPC channel of a session: its token, its deadlines and when it gives up.

Owns what pyspark leaves open: by default its client retries a dead server for ten minutes and waits forever
for one that is silent. Invariant: every RPC has a deadline, an RPC to a local server whose process has
ended is not retried at all, and no plan is sent that is larger than the settings allow: the server would refuse it, or
spend its heap on it. Imports pyspark, so only `connecting.py` imports it, when a session is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, cast

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.plan.plan_size import PlanTooLarge
from mz_dagster.storage.spark.config import PLAN_BYTES
from mz_dagster.storage.spark.ending import WatchedServer

#: A single unary RPC: settings, analysis of a plan. The analysis of a cold Delta table takes seconds.
UNARY_SECONDS = 120.0

# A result comes in streams that the server ends by itself, 30 s after their begin on an embedded server (see
# launch.py) and 2 min on others, and that the client then reattaches. So a stream that lives much longer is
# a server that hangs, however long the query may take.
EMBEDDED_STREAM_SECONDS = 120.0
REMOTE_STREAM_SECONDS = 600.0

#: How long the release of what is kept on the server may take: of all that pyspark executes, only that is a call whose
#: answer is no stream.
_RELEASE_SECONDS = 20.0
#: For how long a server that failed all attempts of a call has one attempt for each, in milliseconds.
_GIVEN_UP_MS = 10_000
_EXECUTE = "/spark.connect.SparkConnectService/ExecutePlan"


class _Details(NamedTuple):
    """What gRPC wants to know of a call, with the deadline set."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _Calls(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]  # gRPC has no types
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
):
    """Gives every call without a deadline the one of its kind, and lets none begin once the channel is closed.

    A call that was given up goes on in its thread, and may want to release its results when the session is closed
    already. gRPC 1.85 crashes the whole process where a call begins on a closed channel.
    """

    def __init__(
        self,
        unary: float,
        stream: float,
        on_call: Callable[[], None] = lambda: None,
        *,
        plan_bytes: int = PLAN_BYTES,
    ) -> None:
        self._unary = unary
        self._stream = stream
        self._on_call = on_call
        self._plan_bytes = plan_bytes
        self.is_closed = False

    def close(self) -> None:
        """Lets no further call begin."""
        self.is_closed = True

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        is_release = client_call_details.method in (_EXECUTE, _EXECUTE.encode())
        seconds = min(self._unary, _RELEASE_SECONDS) if is_release else self._unary
        self._measure(request)
        return continuation(self._bounded(client_call_details, seconds), request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        self._measure(request)
        return continuation(self._bounded(client_call_details, self._stream), request)

    def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return continuation(self._bounded(client_call_details, self._stream), request_iterator)

    def _measure(self, request: Any) -> None:
        """Refuses a request that is larger than a plan may be; to count its bytes takes a fraction of making it."""
        size = request.ByteSize()
        if size > self._plan_bytes:
            raise PlanTooLarge(
                "the plan is too large for Spark",
                detail=f"It has {size} bytes, and the limit is {self._plan_bytes}. Nothing was sent.",
                hint="Create materialized views of parts of it and read those. Or raise "
                '"spark.plan_bytes" in mz.toml, or have this process compute everything: engine = "local".',
            )

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
        plan_bytes: int = PLAN_BYTES,
    ) -> None:
        super().__init__(url)
        if token is not None:
            self.set(self.PARAM_TOKEN, token)
        self._calls = _Calls(unary_seconds, stream_seconds, on_call, plan_bytes=plan_bytes)
        self.add_interceptor(self._calls)

    def refuse_calls(self) -> None:
        """Lets no further call begin: to be called before the channel is closed."""
        self._calls.close()


class BoundedPolicy(DefaultPolicy):
    """Retries what the default policy retries, but for seconds, and never a server that is known to be dead.

    A server that has failed all attempts of a call is given up: for a while other calls have one attempt each, among
    them what pyspark still says of the failed one, for which the end of the process would wait.

    Attributes:
        is_dead: Returns True if a retry is pointless; must be cheap.
        server: The embedded server that is called, if it is one; errors bear it (see `deadline.lost_spark`).
    """

    def __init__(self, is_dead: Callable[[], bool], server: WatchedServer | None = None) -> None:
        # 0.05 + 0.2 + 0.8 + 3 * 2 s
        super().__init__(max_retries=6, initial_backoff=50, max_backoff=2000, max_server_retry_delay=10_000)
        self.is_dead = is_dead
        self.server = server
        self._is_over = False
        self._given_up_ms: float | None = None

    def end(self) -> None:
        """Retries nothing any more: what is said as a session or the process ends must not wait for a server."""
        self._is_over = True

    def to_state(self) -> RetryPolicyState:
        """Returns the state of one call's attempts."""
        return _Attempts(self)

    def can_retry(self, e: BaseException) -> bool:
        """Returns whether a call that failed with `e` may be tried again."""
        if self.server is not None:
            with suppress(AttributeError):
                e.mz_server = self.server  # type: ignore[attr-defined]
        return super().can_retry(e) and not (self._is_over or self._is_given_up or self.is_dead())

    def give_up(self) -> None:
        """Is told of a call whose attempts have all failed."""
        self._given_up_ms = SYSTEM_CLOCK.monotonic_ms()

    @property
    def _is_given_up(self) -> bool:
        return self._given_up_ms is not None and SYSTEM_CLOCK.monotonic_ms() < self._given_up_ms + _GIVEN_UP_MS


class _Attempts(RetryPolicyState):
    """Counts one call's attempts, and refuses the one too many before pyspark would warn and then fail."""

    def can_retry(self, exception: BaseException) -> bool:
        limit = self.policy.max_retries
        if limit is None or self._attempt < limit:
            return super().can_retry(exception)
        if super().can_retry(exception):
            cast(BoundedPolicy, self.policy).give_up()
        return False


def _with_deadline(details: Any, seconds: float) -> _Details:
    return _Details(
        details.method,
        seconds if details.timeout is None else details.timeout,
        details.metadata,
        details.credentials,
        getattr(details, "wait_for_ready", None),
        getattr(details, "compression", None),
    )
