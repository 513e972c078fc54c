"""Sessions on one Spark Connect server, as they are made and ended; which of them a process has is for `session`."""

from __future__ import annotations

import atexit
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakKeyDictionary

from mz_dagster.errors import OperationalError
from mz_dagster.finalizers import DeferredCalls
from mz_dagster.storage.spark.config import PLAN_BYTES
from mz_dagster.storage.spark.deadline import call_with_deadline, note_embedded
from mz_dagster.storage.spark.orphans import forget_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mz_dagster.storage.spark.channel import BoundedChannelBuilder, BoundedPolicy
    from mz_dagster.storage.spark.ending import WatchedServer

PING_SECONDS = 10.0
"""How long a small call may take."""

#: How many releases of what a session keeps are made at a time: a server that is slow to answer one holds up no other.
_RELEASING = 4

_builders: WeakKeyDictionary[SparkSession, BoundedChannelBuilder] = WeakKeyDictionary()
_policies: WeakKeyDictionary[SparkSession, BoundedPolicy] = WeakKeyDictionary()
_releases: WeakKeyDictionary[SparkSession, DeferredCalls] = WeakKeyDictionary()
_releases_lock = threading.Lock()


class LocalServer(Protocol):
    """A server that this machine runs; see `server.ServerInfo`."""

    @property
    def url(self) -> str:
        """Where it listens."""
        ...

    @property
    def token(self) -> str | None:
        """What it asks for."""
        ...

    @property
    def is_alive(self) -> bool:
        """True if its process is."""
        ...

    @property
    def watched(self) -> WatchedServer:
        """What tells why it ended."""
        ...

    def note_use(self) -> None:
        """Notes that it is used, so that it does not end as idle."""
        ...


def check_answer(server: LocalServer, *, seconds: float) -> None:
    """Runs `SELECT 1` on `server` in a session of its own.

    Raises:
        OperationalError: There was no right answer within `seconds`.
    """
    session = connect(server.url, server.token, server, own=False)
    try:
        rows = call_with_deadline(session, lambda: session.sql("SELECT 1 AS one").collect(), seconds)
        if [tuple(row) for row in rows] != [(1,)]:
            raise OperationalError("the Spark server answers nonsense", detail=f"SELECT 1 gave {rows}.")
    finally:
        stop(session)


def connect(
    url: str, token: str | None, server: LocalServer | None, *, own: bool, plan_bytes: int = PLAN_BYTES
) -> SparkSession:
    """Returns a new session on the Spark Connect server at `url`; makes no call yet.

    With `own`, it becomes the process's default session if there is none: parsing a schema needs one. A plan of
    more than `plan_bytes` is not sent.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    from mz_dagster.storage.spark.channel import (
        EMBEDDED_STREAM_SECONDS,
        REMOTE_STREAM_SECONDS,
        UNARY_SECONDS,
        BoundedChannelBuilder,
        BoundedPolicy,
    )

    stream = REMOTE_STREAM_SECONDS if server is None else EMBEDDED_STREAM_SECONDS
    channel = BoundedChannelBuilder(
        url,
        token=token,
        stream_seconds=stream,
        unary_seconds=UNARY_SECONDS,
        on_call=(lambda: None) if server is None else server.note_use,
        plan_bytes=plan_bytes,
    )
    session = ConnectSession.builder.channelBuilder(channel).create() if own else ConnectSession(connection=channel)
    _builders[cast("SparkSession", session)] = channel
    policy = BoundedPolicy(
        lambda: server is not None and not server.is_alive, None if server is None else server.watched
    )
    session.client.set_retry_policies([policy])
    _policies[cast("SparkSession", session)] = policy
    atexit.register(policy.end)  # behind pyspark's own, so done before that
    if server is not None:
        note_embedded(cast("SparkSession", session))
    return cast("SparkSession", session)


def stop(session: SparkSession) -> None:
    """Stops `session`, within seconds even if its server is silent."""
    if not is_connect(session):
        session.stop()
        return
    forget_session(session)
    if (policy := _policies.pop(session, None)) is not None:
        policy.end()
        atexit.unregister(policy.end)
    client: Any = session.client
    # A dead or silent server forgets the session by itself. Not session.stop in the thread of the deadline: what it
    # resets belongs to the calling thread.
    with contextlib.suppress(Exception):
        call_with_deadline(None, client.release_session, PING_SECONDS)
    cast(Any, session).release_session_on_close = False
    with _releases_lock:
        releases = _releases.pop(session, None)
    if releases is not None:
        releases.end()
    if (builder := _builders.get(session)) is not None:
        builder.refuse_calls()
    session.stop()


def releases_of(session: SparkSession) -> DeferredCalls:
    """Returns what releases the rows that a session of Spark Connect keeps on its server, until it is stopped."""
    with _releases_lock:
        if session not in _releases:
            _releases[session] = DeferredCalls(_RELEASING, "mz-release")
        return _releases[session]


def is_connect(session: SparkSession) -> bool:
    """Returns whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")
